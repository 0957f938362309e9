//! Numbers of bytes as the API writes them: `10Gi`, `1.5Gi`, `500M`, `1073741824`.
//! Comes in: a text within the bounds of `texts::Size`. Goes out: bytes, and bytes in words.
//! May touch: std only. Sums are made in 128 bits, so that an overflow is seen and not wrapped.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

/// The binary units with their bytes, greatest first.
const BINARY: [(&str, u64); 5] =
    [("Pi", 1 << 50), ("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
/// The decimal units with their bytes, greatest first.
const DECIMAL: [(&str, u64); 5] = [
    ("P", 1_000_000_000_000_000),
    ("T", 1_000_000_000_000),
    ("G", 1_000_000_000),
    ("M", 1_000_000),
    ("k", 1_000),
];
/// How many digits may stand before the point, and after it.
const DIGITS: (usize, usize) = (15, 3);
/// What a number with that many digits after the point is counted in.
const THOUSANDTHS: u64 = 1_000;

/// The bytes that `text` says. A part of a byte counts as a whole one, as Kubernetes counts it;
/// nothing if the text is not such a number, or if it is more than Kubernetes can count.
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text);
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (digits(whole, DIGITS.0)?, thousandths(fraction)?),
        None => (digits(number, DIGITS.0)?, 0),
    };
    let thousandths = u128::from(whole)
        .checked_mul(u128::from(THOUSANDTHS))?
        .checked_add(u128::from(fraction))?
        .checked_mul(u128::from(unit))?;
    let bytes = u64::try_from(thousandths.div_ceil(u128::from(THOUSANDTHS))).ok()?;
    i64::try_from(bytes).is_ok().then_some(bytes)
}

/// The number and the bytes of its unit.
fn split_unit(text: &str) -> (&str, u64) {
    let found = BINARY.iter().chain(DECIMAL.iter()).find_map(|(unit, bytes)| {
        let number = text.strip_suffix(unit)?;
        Some((number, *bytes))
    });
    found.unwrap_or((text, 1))
}

/// The number that up to `most` digits say; no sign, no space, at least one digit.
fn digits(text: &str, most: usize) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (plain && text.len() <= most).then(|| text.parse().ok()).flatten()
}

fn thousandths(fraction: &str) -> Option<u64> {
    digits(fraction, DIGITS.1)?;
    digits(&format!("{fraction:0<3}"), DIGITS.1)
}

/// The bytes in words for a message: `10Gi`, `1.5Gi`, `500M`. What no unit says exactly is `about
/// 1.1Gi`, so that nobody takes it for the number itself.
#[must_use]
pub fn format(bytes: u64) -> String {
    let exact = |units: &[(&str, u64)]| {
        let (unit, size) = units.iter().find(|(_, size)| *size <= bytes)?;
        let scaled = u128::from(bytes).checked_mul(u128::from(THOUSANDTHS))?;
        let (parts, rest) =
            (scaled.checked_div(u128::from(*size))?, scaled.checked_rem(u128::from(*size))?);
        (rest == 0).then(|| format!("{}{unit}", with_point(parts)))
    };
    // Below the least unit the number itself is the shortest word.
    let small = BINARY.iter().all(|(_, size)| bytes < *size).then(|| bytes.to_string());
    small
        .or_else(|| exact(&BINARY))
        .or_else(|| exact(&DECIMAL))
        .or_else(|| about(bytes))
        .unwrap_or_else(|| bytes.to_string())
}

/// The bytes in the greatest binary unit that they fill, to one digit after the point.
fn about(bytes: u64) -> Option<String> {
    let (unit, size) = BINARY.iter().find(|(_, size)| *size <= bytes)?;
    let half = size.checked_div(2)?;
    let tenths = u128::from(bytes)
        .checked_mul(10)?
        .checked_add(u128::from(half))?
        .checked_div(u128::from(*size))?;
    Some(format!("about {}{unit}", with_point(tenths.checked_mul(100)?)))
}

/// Thousandths as a number with a point, without zeros at its end.
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
    fn every_unit_is_what_kubernetes_takes_it_for() {
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
    fn fractions_are_exact_and_a_part_of_a_byte_is_a_byte() {
        assert_eq!(parse("1.5Gi"), Some(1_610_612_736));
        assert_eq!(parse("0.5Ki"), Some(512));
        assert_eq!(parse("1.125Ki"), Some(1152));
        assert_eq!(parse("0.1k"), Some(100));
        assert_eq!(parse("1.001Ki"), Some(1026));
        assert_eq!(parse("0.001"), Some(1));
        assert_eq!(parse("1.0"), Some(1));
    }

    #[test]
    fn what_is_not_a_size_is_none() {
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
    fn what_kubernetes_could_not_count_is_none() {
        assert_eq!(parse("8191Pi"), Some(8191 << 50));
        assert_eq!(parse("8192Pi"), None);
        assert_eq!(parse("999999999999999Pi"), None);
        assert_eq!(parse("999999999999999.999P"), None);
    }

    #[test]
    fn words_are_what_a_person_would_write() {
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
        fn words_that_are_exact_say_the_same_number(bytes in 0..1_u64 << 60) {
            let words = format(bytes);
            if !words.starts_with("about ") {
                prop_assert_eq!(parse(&words), Some(bytes));
            }
        }

        #[test]
        fn whatever_the_schema_allows_is_read_or_too_much(
            text in "[0-9]{1,15}([.][0-9]{1,3})?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?"
        ) {
            let enormous = text.ends_with('P') || text.ends_with("Pi") || text.ends_with('T')
                || text.ends_with("Ti") || text.ends_with('G') || text.ends_with("Gi")
                || text.ends_with('M') || text.ends_with("Mi");
            prop_assert!(parse(&text).is_some() || enormous);
        }
    }
}
