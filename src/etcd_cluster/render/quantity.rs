//! Parses Kubernetes quantities (`500m`, `2`, `1Gi`, `1e3`) and formats bytes as one.
//! A quantity that cannot be parsed or overflows is `None`, and no option is derived from it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// The factor of a suffix: a power of 1024, or a power of ten.
enum Unit {
    Binary(u32),
    Decimal(i32),
}

const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const MILLI_DIGITS: i32 = 3;

/// The quantity in thousandths of its unit, rounded up.
pub(super) fn milli_units(quantity: &Quantity) -> Option<u128> {
    let text = quantity.0.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let shift = MILLI_DIGITS.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    match unit(suffix)? {
        Unit::Binary(power) => scaled(digits.checked_mul(1024_u128.checked_pow(power)?)?, shift),
        Unit::Decimal(power) => scaled(digits, shift.checked_add(power)?),
    }
}

/// Bytes in the largest binary unit that divides them.
pub(super) fn from_bytes(bytes: u64) -> Quantity {
    let (mut number, mut suffix) = (bytes, "");
    for larger in BINARY {
        let Some(units) =
            number.checked_div(1024).filter(|units| units.checked_mul(1024) == Some(number))
        else {
            break;
        };
        if units == 0 {
            break;
        }
        (number, suffix) = (units, larger);
    }
    Quantity(format!("{number}{suffix}"))
}

fn unit(suffix: &str) -> Option<Unit> {
    let binary = BINARY.iter().zip(1..).find(|(name, _)| **name == suffix);
    let decimal = DECIMAL.iter().find(|(name, _)| *name == suffix);
    let exponent = || suffix.strip_prefix(['e', 'E'])?.parse().ok().map(Unit::Decimal);
    binary
        .map(|(_, power)| Unit::Binary(power))
        .or_else(|| decimal.map(|(_, power)| Unit::Decimal(*power)))
        .or_else(exponent)
}

fn scaled(number: u128, power: i32) -> Option<u128> {
    let ten = 10_u128.checked_pow(power.unsigned_abs())?;
    if power < 0 { Some(number.div_ceil(ten)) } else { number.checked_mul(ten) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<u128> {
        milli_units(&Quantity(text.to_owned()))
    }

    #[test]
    fn every_quantity_format_is_parsed() {
        for (text, expected) in [
            ("2", 2_000),
            ("500m", 500),
            ("1.5", 1_500),
            (".5", 500),
            ("2.", 2_000),
            ("1u", 1),
            ("1n", 1),
            ("1Ki", 1_024_000),
            ("1.5Gi", 1_610_612_736_000),
            ("1k", 1_000_000),
            ("1E", 1_000_000_000_000_000_000_000),
            ("1e3", 1_000_000),
            ("1E-1", 100),
        ] {
            assert_eq!(read(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn bytes_use_the_largest_whole_unit() {
        for (bytes, expected) in [
            (0, "0"),
            (1, "1"),
            (1 << 10, "1Ki"),
            (400 << 20, "400Mi"),
            (1536 << 20, "1536Mi"),
            (8 << 30, "8Gi"),
            (1_000_000, "1000000"),
            (u64::MAX, "18446744073709551615"),
        ] {
            let written = from_bytes(bytes);
            assert_eq!(written.0, expected);
            assert_eq!(milli_units(&written), Some(u128::from(bytes) * 1000));
        }
    }

    #[test]
    fn invalid_quantities_are_none() {
        for text in ["", "m", "1x", "-1", "1e99", "999999999999999999999999999999999Ei"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
