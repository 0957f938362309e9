//! Sizes in bytes: `10Gi`, `1.5Gi`, `500M`, `1073741824`.
//! Computed in 128 bits, so that an overflow is detected and does not wrap around.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

/// Binary units and their bytes, largest first.
const BINARY: [(&str, u64); 5] =
    [("Pi", 1 << 50), ("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
/// Decimal units and their bytes, largest first.
const DECIMAL: [(&str, u64); 5] = [
    ("P", 1_000_000_000_000_000),
    ("T", 1_000_000_000_000),
    ("G", 1_000_000_000),
    ("M", 1_000_000),
    ("k", 1_000),
];
/// Maximum number of digits before and after the decimal point.
const MAX_DIGITS: (usize, usize) = (15, 3);
/// Fractions are counted in thousandths.
const THOUSANDTHS: u64 = 1_000;

/// Parses a size. A fraction of a byte is rounded up, as in Kubernetes. `None` if the string is not
/// a size or does not fit into the 64 bits of a Kubernetes quantity.
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text);
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (digits(whole, MAX_DIGITS.0)?, thousandths(fraction)?),
        None => (digits(number, MAX_DIGITS.0)?, 0),
    };
    let thousandths = u128::from(whole)
        .checked_mul(u128::from(THOUSANDTHS))?
        .checked_add(u128::from(fraction))?
        .checked_mul(u128::from(unit))?;
    let bytes = u64::try_from(thousandths.div_ceil(u128::from(THOUSANDTHS))).ok()?;
    i64::try_from(bytes).is_ok().then_some(bytes)
}

/// Splits a size into its number and the bytes of its unit.
fn split_unit(text: &str) -> (&str, u64) {
    let found = BINARY.iter().chain(DECIMAL.iter()).find_map(|(unit, bytes)| {
        let number = text.strip_suffix(unit)?;
        Some((number, *bytes))
    });
    found.unwrap_or((text, 1))
}

/// Parses 1 to `max` digits, without a sign or spaces.
fn digits(text: &str, max: usize) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (plain && text.len() <= max).then(|| text.parse().ok()).flatten()
}

fn thousandths(fraction: &str) -> Option<u64> {
    digits(fraction, MAX_DIGITS.1)?;
    digits(&format!("{fraction:0<3}"), MAX_DIGITS.1)
}

/// Formats a size for a message: `10Gi`, `1.5Gi`, `500M`. A size that is not exact in any unit is
/// `about 1.1Gi`, so that it is not mistaken for the exact number.
#[must_use]
pub fn format(bytes: u64) -> String {
    let exact = |units: &[(&str, u64)]| {
        let (unit, size) = units.iter().find(|(_, size)| *size <= bytes)?;
        let scaled = u128::from(bytes).checked_mul(u128::from(THOUSANDTHS))?;
        let (parts, rest) =
            (scaled.checked_div(u128::from(*size))?, scaled.checked_rem(u128::from(*size))?);
        (rest == 0).then(|| format!("{}{unit}", with_point(parts)))
    };
    // Below the smallest unit the plain number is the shortest form.
    let small = BINARY.iter().all(|(_, size)| bytes < *size).then(|| bytes.to_string());
    small
        .or_else(|| exact(&BINARY))
        .or_else(|| exact(&DECIMAL))
        .or_else(|| about(bytes))
        .unwrap_or_else(|| bytes.to_string())
}

/// The size in the largest binary unit that is not larger, with one decimal.
fn about(bytes: u64) -> Option<String> {
    let (unit, size) = BINARY.iter().find(|(_, size)| *size <= bytes)?;
    let half = size.checked_div(2)?;
    let tenths = u128::from(bytes)
        .checked_mul(10)?
        .checked_add(u128::from(half))?
        .checked_div(u128::from(*size))?;
    Some(format!("about {}{unit}", with_point(tenths.checked_mul(100)?)))
}

/// Formats thousandths as a decimal number without trailing zeros.
fn with_point(thousandths: u128) -> String {
    let split = |by: u128| (thousandths.checked_div(by), thousandths.checked_rem(by));
    let (Some(whole), Some(rest)) = split(u128::from(THOUSANDTHS)) else {
        return thousandths.to_string();
    };
    let text = format!("{whole}.{rest:03}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_are_those_of_kubernetes() {
        for (text, bytes) in [
            ("0", 0),
            ("1073741824", 1 << 30),
            ("1Ki", 1 << 10),
            ("1Mi", 1 << 20),
            ("10Gi", 10 << 30),
            ("1Ti", 1 << 40),
            ("1Pi", 1 << 50),
            ("1k", 1_000),
            ("500M", 500_000_000),
            ("1G", 1_000_000_000),
            ("1T", 1_000_000_000_000),
            ("1P", 1_000_000_000_000_000),
            ("007Gi", 7 << 30),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn fractions_are_exact_and_rounded_up_to_a_byte() {
        assert_eq!(parse("1.5Gi"), Some(1_610_612_736));
        assert_eq!(parse("0.5Ki"), Some(512));
        assert_eq!(parse("1.125Ki"), Some(1152));
        assert_eq!(parse("0.1k"), Some(100));
        assert_eq!(parse("1.001Ki"), Some(1026));
        assert_eq!(parse("0.001"), Some(1));
        assert_eq!(parse("1.0"), Some(1));
    }

    #[test]
    fn invalid_sizes_are_none() {
        for text in [
            "",
            "Gi",
            ".5Gi",
            "5.Gi",
            "-1",
            "+1",
            "1 Gi",
            " 1Gi",
            "1gi",
            "1GI",
            "1K",
            "1m",
            "1Ei",
            "1E",
            "1e3",
            "1.5.5Gi",
            "0x10",
            "1,5Gi",
            "1.2345Gi",
            "1234567890123456",
            "\u{661}Gi",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn sizes_beyond_64_bits_are_none() {
        assert_eq!(parse("8191Pi"), Some(8191 << 50));
        assert_eq!(parse("8192Pi"), None);
        assert_eq!(parse("999999999999999Pi"), None);
        assert_eq!(parse("999999999999999.999P"), None);
    }

    #[test]
    fn sizes_are_formatted_in_the_shortest_unit() {
        for (bytes, text) in [
            (0, "0"),
            (1, "1"),
            (1023, "1023"),
            (1024, "1Ki"),
            (10 << 30, "10Gi"),
            (1_610_612_736, "1.5Gi"),
            (500_000_000, "500M"),
            (1_000_000_000, "1G"),
            (2 << 40, "2Ti"),
            ((1 << 30) + 1, "about 1Gi"),
            (1_234_567_890, "about 1.1Gi"),
        ] {
            assert_eq!(format(bytes), text);
        }
    }

    proptest! {
        #[test]
        fn exact_format_round_trips(bytes in 0..1_u64 << 60) {
            let text = format(bytes);
            if !text.starts_with("about ") {
                prop_assert_eq!(parse(&text), Some(bytes));
            }
        }

        #[test]
        fn sizes_that_the_schema_allows_are_parsed_or_out_of_range(
            text in "[0-9]{1,15}([.][0-9]{1,3})?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?"
        ) {
            let enormous = text.ends_with('P') || text.ends_with("Pi") || text.ends_with('T')
                || text.ends_with("Ti") || text.ends_with('G') || text.ends_with("Gi")
                || text.ends_with('M') || text.ends_with("Mi");
            prop_assert!(parse(&text).is_some() || enormous);
        }
    }
}
