//! Random name suffixes, as Kubernetes generates them.

use rustls::crypto::ring::default_provider;

/// The alphabet of Kubernetes: without vowels and similar characters, so that no words appear.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const LENGTH: usize = 5;

/// `count` suffixes of five letters and digits; none if the random source fails.
pub(crate) fn name_suffixes(count: usize) -> Vec<String> {
    (0..count).filter_map(|_| name_suffix()).collect()
}

fn name_suffix() -> Option<String> {
    let mut bytes = [0_u8; LENGTH];
    default_provider().secure_random.fill(&mut bytes).ok()?;
    let letter = |byte: &u8| ALPHABET.get(usize::from(*byte).checked_rem(ALPHABET.len())?).copied();
    bytes.iter().map(|byte| letter(byte).map(char::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_have_five_characters_and_differ() {
        let suffixes = name_suffixes(20);
        assert_eq!(suffixes.len(), 20);
        let is_valid = |suffix: &String| {
            suffix.len() == LENGTH && suffix.bytes().all(|byte| ALPHABET.contains(&byte))
        };
        assert!(suffixes.iter().all(is_valid));
        assert!(suffixes.iter().any(|suffix| Some(suffix) != suffixes.first()));
    }
}
