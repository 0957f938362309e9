//! A difference that lasts is a lie. One that goes by is only news on its way. No clock and no client.

use std::collections::BTreeMap;
use std::time::Duration;

use super::claims::Differences;

/// On a machine that stands still, time goes by and nobody had a chance to speak.
const SEEN_OFTEN: u32 = 8;

/// What is different now, and what was for too long.
#[derive(Debug, Default)]
pub(super) struct Lies {
    open: BTreeMap<String, Since>,
    told: BTreeMap<String, (Duration, Duration)>,
}

#[derive(Clone, Copy, Debug)]
struct Since {
    begun: Duration,
    seen: u32,
}

impl Lies {
    /// What is different at this moment, and for how long it may be.
    pub(super) fn hear(&mut self, at: Duration, different: &Differences) {
        self.open.retain(|words, _| different.contains_key(words));
        for (words, tolerance) in different {
            let since = self.open.entry(words.clone()).or_insert(Since { begun: at, seen: 0 });
            since.seen = since.seen.saturating_add(1);
            if at.saturating_sub(since.begun) > *tolerance && since.seen >= SEEN_OFTEN {
                self.told.insert(words.clone(), (since.begun, at));
            }
        }
    }

    /// Nobody can be expected to speak now.
    pub(super) fn forget(&mut self) {
        self.open.clear();
    }

    /// What was different for too long, in words.
    pub(super) fn words(&self) -> Vec<String> {
        let words = |(words, (begun, until)): (&String, &(Duration, Duration))| {
            let (from, to) = (begun.as_secs_f32(), until.as_secs_f32());
            format!("{words} (from second {from:.0} to second {to:.0} of the watch)")
        };
        self.told.iter().map(words).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn it_lies() -> Differences {
        Differences::from([("it lies".to_owned(), Duration::from_secs(15))])
    }

    fn heard(seconds: impl IntoIterator<Item = u64>) -> Lies {
        let mut lies = Lies::default();
        for second in seconds {
            lies.hear(Duration::from_secs(second), &it_lies());
        }
        lies
    }

    #[test]
    fn a_difference_that_lasts_is_a_lie() {
        assert!(heard(0..10).words().is_empty());
        assert_eq!(heard(0..20).words().len(), 1);
    }

    #[test]
    fn a_difference_that_comes_and_goes_is_none() {
        let mut lies = heard(0..10);
        lies.hear(Duration::from_secs(10), &Differences::new());
        lies.hear(Duration::from_secs(20), &it_lies());
        assert!(lies.words().is_empty());
    }

    #[test]
    fn a_machine_that_stood_still_proves_nothing() {
        assert!(heard([0, 60]).words().is_empty());
    }
}
