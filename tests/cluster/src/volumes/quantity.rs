//! Parses Kubernetes quantities.

use anyhow::{Context, Result};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// `1.5Gi` as bytes. Fractions of a byte are dropped.
pub(super) fn bytes(quantity: &Quantity) -> Result<u64> {
    let text = quantity.0.trim();
    let split = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(split).unwrap_or((text, ""));
    let wrong = || format!("{text:?} is not a size");
    let unit: u128 = match unit {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => anyhow::bail!(wrong()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().with_context(wrong)?;
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len())?).with_context(wrong)?;
    let scaled = digits.checked_mul(unit).with_context(wrong)?;
    u64::try_from(scaled.checked_div(scale).with_context(wrong)?).with_context(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_quantities_are_parsed() {
        let read = |text: &str| bytes(&Quantity(text.to_owned()));
        assert_eq!(read("320Mi").unwrap(), 320 << 20);
        assert_eq!(read("1.5Gi").unwrap(), 3 << 29);
        assert_eq!(read("1G").unwrap(), 1_000_000_000);
        assert_eq!(read("42").unwrap(), 42);
        for wrong in ["", "Gi", "-1Gi", "1Xi", "1..5Gi"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
