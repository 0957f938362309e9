//! What was written, what was acknowledged, and whether all of that is still readable. No clock and
//! no client.
//!
//! A write that failed or timed out may have been applied, even after writes that were sent later.
//! So a value that was never acknowledged may be read, if its revision is higher than that of the
//! last acknowledged write.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::etcd::KeyValue;

/// The writes of one writer.
#[derive(Debug, Default)]
pub(super) struct WriteLog {
    keys: BTreeMap<String, Entry>,
    pub(super) acknowledged: u64,
    pub(super) unknown: u64,
    last: Duration,
    /// The longest time without an acknowledged write, and when it started.
    pub(super) gap: (Duration, Duration),
    highest: i64,
}

#[derive(Debug, Default)]
struct Entry {
    acknowledged: Option<(String, i64)>,
    unknown: Vec<String>,
}

impl WriteLog {
    /// Records a write that was acknowledged with this revision.
    pub(super) fn acknowledge(&mut self, key: &str, value: String, revision: i64, at: Duration) {
        self.acknowledged = self.acknowledged.saturating_add(1);
        self.highest = self.highest.max(revision);
        self.advance(at);
        self.last = self.last.max(at);
        let entry = self.keys.entry(key.to_owned()).or_default();
        // Responses of two members can arrive in another order than the writes were applied.
        if entry.acknowledged.as_ref().is_none_or(|(_, before)| *before < revision) {
            entry.acknowledged = Some((value, revision));
        }
    }

    /// Records a write with an unknown outcome.
    pub(super) fn unknown(&mut self, key: &str, value: String) {
        self.unknown = self.unknown.saturating_add(1);
        self.keys.entry(key.to_owned()).or_default().unknown.push(value);
    }

    /// Advances the time; a gap at the end counts as well.
    pub(super) fn advance(&mut self, now: Duration) {
        let since = now.saturating_sub(self.last);
        if since > self.gap.0 {
            self.gap = (since, self.last);
        }
    }

    /// A message for each lost write, given the present keys.
    pub(super) fn lost_writes(&self, present: &[KeyValue]) -> Vec<String> {
        let found = |key: &str| present.iter().find(|entry| entry.key == key);
        self.keys.iter().filter_map(|(key, entry)| entry.lost_write(key, found(key))).collect()
    }

    /// The highest acknowledged revision.
    pub(super) fn highest(&self) -> i64 {
        self.highest
    }
}

impl Entry {
    fn lost_write(&self, key: &str, found: Option<&KeyValue>) -> Option<String> {
        let unknown = |value: &String| self.unknown.contains(value);
        match (&self.acknowledged, found) {
            (None, None) => None,
            (None, Some(found)) if unknown(&found.value) => None,
            (None, Some(found)) => {
                Some(format!("{key} holds {:?}, which was never written", found.value))
            }
            (Some((value, revision)), None) => {
                Some(format!("{key} is missing; {value:?} was acknowledged at revision {revision}"))
            }
            (Some((value, revision)), Some(found)) => {
                let kept = found.value == *value && found.revision == *revision;
                let overwritten = unknown(&found.value) && found.revision > *revision;
                (!kept && !overwritten).then(|| {
                    format!(
                        "{key} holds {:?} of revision {}; {value:?} was acknowledged at revision {revision}",
                        found.value, found.revision
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

    fn present(value: &str, revision: i64) -> [KeyValue; 1] {
        [KeyValue { key: "a".to_owned(), value: value.to_owned(), revision }]
    }

    fn written() -> WriteLog {
        let mut log = WriteLog::default();
        log.acknowledge("a", "1".to_owned(), 10, second(1));
        log.unknown("a", "2".to_owned());
        log.acknowledge("a", "3".to_owned(), 12, second(2));
        log
    }

    #[test]
    fn last_acknowledged_value_is_not_lost() {
        assert!(written().lost_writes(&present("3", 12)).is_empty());
    }

    #[test]
    fn unacknowledged_value_is_allowed_only_with_a_higher_revision() {
        assert!(written().lost_writes(&present("2", 13)).is_empty());
        assert_eq!(written().lost_writes(&present("2", 11)).len(), 1);
    }

    #[test]
    fn older_value_or_missing_key_is_a_lost_write() {
        assert_eq!(written().lost_writes(&present("1", 10)).len(), 1);
        assert_eq!(written().lost_writes(&[]).len(), 1);
        assert_eq!(written().lost_writes(&present("7", 99)).len(), 1);
    }

    #[test]
    fn longest_gap_is_recorded_with_its_start() {
        let mut log = written();
        log.acknowledge("a", "4".to_owned(), 14, second(6));
        log.advance(second(7));
        assert_eq!(log.gap, (second(4), second(2)));
        log.advance(second(20));
        assert_eq!(log.gap, (second(14), second(6)));
    }
}
