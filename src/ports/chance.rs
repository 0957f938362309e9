//! Chance, for names that nobody has yet.
//! Comes in: how many. Goes out: short words. May touch: the system's source of randomness.

use rustls::crypto::ring::default_provider;

/// Letters and digits that make no words, as Kubernetes' own names have them.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const LENGTH: usize = 5;

/// So many words of five letters and digits; none if there is no randomness to be had.
pub(crate) fn words(count: usize) -> Vec<String> {
    (0..count).filter_map(|_| word()).collect()
}

fn word() -> Option<String> {
    let mut bytes = [0_u8; LENGTH];
    default_provider().secure_random.fill(&mut bytes).ok()?;
    let letter = |byte: &u8| LETTERS.get(usize::from(*byte).checked_rem(LETTERS.len())?).copied();
    bytes.iter().map(|byte| letter(byte).map(char::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_five_letters_and_differ() {
        let words = words(20);
        assert_eq!(words.len(), 20);
        assert!(
            words.iter().all(|it| it.len() == LENGTH && it.bytes().all(|it| LETTERS.contains(&it)))
        );
        assert!(words.iter().any(|it| Some(it) != words.first()));
    }
}
