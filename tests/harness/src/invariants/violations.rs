//! A mismatch that lasts is a violation; one that disappears in time was only a status that lagged
//! behind. No clock and no client.

use std::collections::BTreeMap;
use std::time::Duration;

use super::status::Mismatches;

/// On a machine that is stalled, time passes although the operator had no chance to update the
/// status. So a mismatch must also have been observed this often.
const MIN_OBSERVATIONS: u32 = 8;

/// The mismatches at present, and those that lasted too long.
#[derive(Debug, Default)]
pub(super) struct Violations {
    open: BTreeMap<String, Open>,
    recorded: BTreeMap<String, (Duration, Duration)>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    since: Duration,
    observations: u32,
}

impl Violations {
    /// Adds the mismatches of one comparison, each with the time that it may last.
    pub(super) fn observe(&mut self, at: Duration, mismatches: &Mismatches) {
        self.open.retain(|message, _| mismatches.contains_key(message));
        for (message, tolerance) in mismatches {
            let new = Open { since: at, observations: 0 };
            let open = self.open.entry(message.clone()).or_insert(new);
            open.observations = open.observations.saturating_add(1);
            if at.saturating_sub(open.since) > *tolerance && open.observations >= MIN_OBSERVATIONS {
                self.recorded.insert(message.clone(), (open.since, at));
            }
        }
    }

    /// Drops the open mismatches: no operator can update the status at present.
    pub(super) fn reset(&mut self) {
        self.open.clear();
    }

    /// One message for each mismatch that lasted too long.
    pub(super) fn messages(&self) -> Vec<String> {
        let message = |(message, (since, until)): (&String, &(Duration, Duration))| {
            let (from, to) = (since.as_secs_f32(), until.as_secs_f32());
            format!("{message} (from second {from:.0} to second {to:.0} of the check)")
        };
        self.recorded.iter().map(message).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mismatch() -> Mismatches {
        Mismatches::from([("mismatch".to_owned(), Duration::from_secs(15))])
    }

    fn observed(seconds: impl IntoIterator<Item = u64>) -> Violations {
        let mut violations = Violations::default();
        for second in seconds {
            violations.observe(Duration::from_secs(second), &mismatch());
        }
        violations
    }

    #[test]
    fn mismatch_that_lasts_is_a_violation() {
        assert!(observed(0..10).messages().is_empty());
        assert_eq!(observed(0..20).messages().len(), 1);
    }

    #[test]
    fn mismatch_that_disappears_in_between_is_no_violation() {
        let mut violations = observed(0..10);
        violations.observe(Duration::from_secs(10), &Mismatches::new());
        violations.observe(Duration::from_secs(20), &mismatch());
        assert!(violations.messages().is_empty());
    }

    #[test]
    fn stalled_machine_causes_no_violation() {
        assert!(observed([0, 60]).messages().is_empty());
    }
}
