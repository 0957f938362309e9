//! Random name suffixes, as Kubernetes generates them.

use rustls::crypto::ring::default_provider;

/// Letters and digits that make no `name_suffixes`, as Kubernetes' own names have them.
const LEALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const LENGTH: usize = 5;

/// So many `name_suffixes` of five letters and digits; none if there is no randomness to be had.
pub(crate) fn name_suffixes(count: usize) -> Vec<String> {
    (0..count).filter_map(|_| name_suffix()).collect()
}

fn name_suffix() -> Option<String> {
    let mut bytes = [0_u8; LENGTH];
    default_provider().secure_random.fill(&mut bytes).ok()?;
    let letter =
        |byte: &u8| LEALPHABET.get(usize::from(*byte).checked_rem(LEALPHABET.len())?).copied();
    bytes.iter().map(|byte| letter(byte).map(char::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_five_letters_and_differ() {
        let name_suffixes = name_suffixes(20);
        assert_eq!(name_suffixes.len(), 20);
        assert!(
            name_suffixes
                .iter()
                .all(|it| it.len() == LENGTH && it.bytes().all(|it| LEALPHABET.contains(&it)))
        );
        assert!(name_suffixes.iter().any(|it| Some(it) != name_suffixes.first()));
    }
}
