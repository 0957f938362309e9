//! What was written, what was acknowledged, and whether all of that is still there. No clock and no client.
//!
//! A write that failed or was not answered may have happened, and it may happen late: after writes that came after
//! it. So a value that nobody acknowledged may be there, if it was written after the last one that somebody did.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::etcd::Value;

/// The books of one writer.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    keys: BTreeMap<String, Entry>,
    pub(super) acknowledged: u64,
    pub(super) unknown: u64,
    last: Duration,
    /// The longest time without an acknowledged write, and when it began.
    pub(super) gap: (Duration, Duration),
    highest: i64,
}

#[derive(Debug, Default)]
struct Entry {
    acknowledged: Option<(String, i64)>,
    maybe: Vec<String>,
}

impl Ledger {
    /// A write was acknowledged with this revision.
    pub(super) fn acknowledge(&mut self, key: &str, value: String, revision: i64, at: Duration) {
        self.acknowledged = self.acknowledged.saturating_add(1);
        self.highest = self.highest.max(revision);
        self.pass(at);
        self.last = self.last.max(at);
        let entry = self.keys.entry(key.to_owned()).or_default();
        // Answers of two members can come in another order than the writes.
        if entry.acknowledged.as_ref().is_none_or(|(_, before)| *before < revision) {
            entry.acknowledged = Some((value, revision));
        }
    }

    /// A write may have happened.
    pub(super) fn doubt(&mut self, key: &str, value: String) {
        self.unknown = self.unknown.saturating_add(1);
        self.keys.entry(key.to_owned()).or_default().maybe.push(value);
    }

    /// Time goes by; at the end it may have gone by without a write.
    pub(super) fn pass(&mut self, now: Duration) {
        let since = now.saturating_sub(self.last);
        if since > self.gap.0 {
            self.gap = (since, self.last);
        }
    }

    /// What is wrong with what is there now.
    pub(super) fn judge(&self, there: &[Value]) -> Vec<String> {
        let found = |key: &str| there.iter().find(|it| it.key == key);
        self.keys.iter().filter_map(|(key, entry)| entry.judge(key, found(key))).collect()
    }

    /// The highest revision that was acknowledged.
    pub(super) fn highest(&self) -> i64 {
        self.highest
    }
}

impl Entry {
    fn judge(&self, key: &str, found: Option<&Value>) -> Option<String> {
        let maybe = |value: &String| self.maybe.contains(value);
        match (&self.acknowledged, found) {
            (None, None) => None,
            (None, Some(there)) if maybe(&there.value) => None,
            (None, Some(there)) => {
                Some(format!("{key} holds {:?}, which nobody wrote", there.value))
            }
            (Some((value, revision)), None) => {
                Some(format!("{key} is gone; {value:?} was acknowledged at revision {revision}"))
            }
            (Some((value, revision)), Some(there)) => {
                let kept = there.value == *value && there.revision == *revision;
                let overwritten = maybe(&there.value) && there.revision > *revision;
                (!kept && !overwritten).then(|| {
                    format!(
                        "{key} holds {:?} of revision {}; {value:?} was acknowledged at revision {revision}",
                        there.value, there.revision
                    )
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    fn there(value: &str, revision: i64) -> [Value; 1] {
        [Value { key: "a".to_owned(), value: value.to_owned(), revision }]
    }

    fn written() -> Ledger {
        let mut ledger = Ledger::default();
        ledger.acknowledge("a", "1".to_owned(), 10, second(1));
        ledger.doubt("a", "2".to_owned());
        ledger.acknowledge("a", "3".to_owned(), 12, second(2));
        ledger
    }

    #[test]
    fn the_last_acknowledged_value_is_right() {
        assert!(written().judge(&there("3", 12)).is_empty());
    }

    #[test]
    fn a_doubtful_value_is_right_only_if_it_was_written_later() {
        assert!(written().judge(&there("2", 13)).is_empty());
        assert_eq!(written().judge(&there("2", 11)).len(), 1);
    }

    #[test]
    fn an_older_value_or_none_is_a_lost_write() {
        assert_eq!(written().judge(&there("1", 10)).len(), 1);
        assert_eq!(written().judge(&[]).len(), 1);
        assert_eq!(written().judge(&there("7", 99)).len(), 1);
    }

    #[test]
    fn the_longest_time_without_a_write_is_known_with_its_begin() {
        let mut ledger = written();
        ledger.acknowledge("a", "4".to_owned(), 14, second(6));
        ledger.pass(second(7));
        assert_eq!(ledger.gap, (second(4), second(2)));
        ledger.pass(second(20));
        assert_eq!(ledger.gap, (second(14), second(6)));
    }
}
