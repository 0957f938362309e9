//! Suggestions for invalid input: plain characters in place of typographic ones, and the most
//! similar valid value. A suggestion appears only in messages; input is never corrected silently.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

/// The string with plain characters, if it has characters that word processors and web pages
/// insert: quotes and invisible characters are removed, dashes and spaces replaced.
#[must_use]
pub fn replace_typographic(text: &str) -> Option<String> {
    if text.chars().all(|letter| plain_form(letter).is_none()) {
        return None;
    }
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match plain_form(letter) {
            Some(replacement) => plain.push_str(replacement),
            None => plain.push(letter),
        }
    }
    Some(plain.trim().to_owned())
}

/// The plain form of a typographic character; `None` for any other character.
const fn plain_form(letter: char) -> Option<&'static str> {
    match letter {
        // Quotes and zero-width characters are never part of a value.
        '\u{2018}'..='\u{201F}'
        | '\u{2039}'
        | '\u{203A}'
        | '\u{00AB}'
        | '\u{00BB}'
        | '\u{00AD}'
        | '\u{200B}'..='\u{200F}'
        | '\u{2060}'
        | '\u{FEFF}' => Some(""),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some("-"),
        '\u{00A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => Some(" "),
        '\u{2217}' | '\u{FF0A}' => Some("*"),
        '\u{2026}' => Some("..."),
        _ => None,
    }
}

/// The candidate that is most similar to `word`, ignoring case. The longer the word, the more
/// letters may differ; words of up to two letters must match.
#[must_use]
pub fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.trim().to_lowercase();
    let max_distance = match word.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        6..=8 => 2,
        _ => 3,
    };
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= max_distance)
        // The first of equally similar ones: callers determine the order.
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typographic_characters_are_replaced() {
        for (written, plain) in [
            ("\u{201C}s3\u{201D}", "s3"),
            ("\u{201E}s3\u{201C}", "s3"),
            ("\u{2018}0 3 * * *\u{2019}", "0 3 * * *"),
            ("\u{00AB}\u{00A0}s3\u{00A0}\u{00BB}", "s3"),
            ("my\u{2013}bucket", "my-bucket"),
            ("my\u{2014}bucket", "my-bucket"),
            ("0\u{00A0}3 * * *", "0 3 * * *"),
            ("a\u{200B}b\u{FEFF}", "ab"),
            ("0 3 \u{2217} * *", "0 3 * * *"),
        ] {
            assert_eq!(replace_typographic(written).as_deref(), Some(plain), "{written:?}");
        }
    }

    #[test]
    fn plain_text_and_other_alphabets_are_not_typographic() {
        for plain in ["", "s3", "\"s3\"", "it's", "a-b", "Z\u{FC}rich", "\u{6771}\u{4EAC}"] {
            assert_eq!(replace_typographic(plain), None, "{plain:?}");
        }
    }

    #[test]
    fn suggested_text_is_plain() {
        for code in 0..=0x3100 {
            let Some(letter) = char::from_u32(code) else { continue };
            if let Some(plain) = replace_typographic(&format!("a{letter}b")) {
                assert_eq!(replace_typographic(&plain), None, "U+{code:04X}");
            }
        }
    }

    #[test]
    fn case_is_ignored_at_any_length() {
        assert_eq!(did_you_mean("S3", ["gcs", "s3"]), Some("s3"));
        assert_eq!(did_you_mean(" AZURE ", ["gcs", "azure"]), Some("azure"));
        assert_eq!(did_you_mean("Memory", ["memori", "memory"]), Some("memory"));
    }

    #[test]
    fn typo_gets_a_suggestion_and_a_different_word_does_not() {
        let words = ["Retain", "Delete", "SnapshotThenDelete", "Disconnect"];
        assert_eq!(did_you_mean("Retian", words), Some("Retain"));
        assert_eq!(did_you_mean("delet", words), Some("Delete"));
        assert_eq!(did_you_mean("snapshotAndDelete", words), None);
        assert_eq!(did_you_mean("SnapshotThanDelet", words), Some("SnapshotThenDelete"));
        for other in ["", "x", "Keep", "Orphan"] {
            assert_eq!(did_you_mean(other, words), None, "{other:?}");
        }
    }

    #[test]
    fn two_letters_are_too_few_for_a_suggestion() {
        assert_eq!(did_you_mean("s4", ["s3"]), None);
        assert_eq!(did_you_mean("sss", ["gcs", "s3"]), None);
        assert_eq!(did_you_mean("gsc", ["s3", "gcs"]), Some("gcs"));
    }

    #[test]
    fn first_of_equally_similar_candidates_is_suggested() {
        assert_eq!(did_you_mean("cat", ["bat", "hat"]), Some("bat"));
        assert_eq!(did_you_mean("cat", []), None);
    }
}
