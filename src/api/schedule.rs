//! Cron schedules: five fields, or a name such as `@daily`, in a time zone.
//! Time zones are built into the binary: the image contains no others, and every host computes the
//! same runs.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod error;
mod fields;
mod zone;

use std::time::Duration;

use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use error::ScheduleError;
pub use fields::CronField;

use self::fields::CronFields;
use crate::api::suggest;

/// Names of schedules and their five fields.
const NAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];
/// Minimum time between two runs of five fields.
const MIN_INTERVAL: Duration = Duration::from_mins(1);
/// Number of runs that are sampled for the shortest interval: more than a day has, unless they are
/// minutes apart, and then the first hour is sufficient.
const SAMPLED_RUNS: usize = 150;
/// Period in which runs are sampled: one day and its border to the next.
const SEARCH_HORIZON: Duration = Duration::from_hours(48);

/// Maximum number of days of each month.
const MAX_DAYS: [u16; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// A parsed schedule.
#[derive(Clone, Debug)]
pub struct Cron {
    pattern: croner::Cron,
    fields: CronFields,
    zone: TimeZone,
}

/// Parses a schedule. Without a time zone it is in UTC.
///
/// # Errors
///
/// If the schedule or the time zone is invalid.
pub fn parse(text: &str, zone: Option<&str>) -> Result<Cron, ScheduleError> {
    let fields = fields(text)?;
    fields.check()?;
    let zone = zone.map_or(Ok(TimeZone::UTC), zone::read)?;
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    match parser.parse(&fields.to_string()) {
        Ok(pattern) => Ok(Cron { pattern, fields, zone }),
        // The fields were checked above. If croner disagrees, there is still a message.
        Err(_) => Err(ScheduleError::Unparsable { text: text.to_owned() }),
    }
}

/// Splits a schedule into its five fields.
fn fields(text: &str) -> Result<CronFields, ScheduleError> {
    if let Some(suggestion) = suggest::replace_typographic(text) {
        return Err(ScheduleError::Typographic { suggestion });
    }
    let text = text.trim();
    let named = NAMES.iter().find(|(name, _)| *name == text);
    let parts: Vec<&str> = named.map_or(text, |(_, fields)| fields).split_whitespace().collect();
    match parts.as_slice() {
        [] => Err(ScheduleError::Empty),
        [name, ..] if name.starts_with('@') => {
            Err(ScheduleError::UnknownName { name: text.to_owned(), suggestion: nearest(text) })
        }
        [zone, ..] if zone.starts_with("TZ=") || zone.starts_with("CRON_TZ=") => {
            Err(ScheduleError::TimeZoneInExpression)
        }
        [one] => Err(single_word_error(one)),
        [minute, hour, day, month, weekday] => {
            Ok(CronFields::new([minute, hour, day, month, weekday]))
        }
        other => Err(ScheduleError::FieldCount(other.len())),
    }
}

/// Error for a single word: probably a time of day, or a name without its `@`.
fn single_word_error(word: &str) -> ScheduleError {
    match (fields::time_of_day(word), nearest(&format!("@{word}"))) {
        (Some(suggestion), _) => ScheduleError::TimeOfDay { suggestion },
        (None, Some(suggestion)) => {
            ScheduleError::UnknownName { name: word.to_owned(), suggestion: Some(suggestion) }
        }
        (None, None) => ScheduleError::FieldCount(1),
    }
}

fn nearest(name: &str) -> Option<&'static str> {
    suggest::did_you_mean(name, NAMES.iter().map(|(name, _)| *name))
}

impl Cron {
    /// The first run after a time; a run at exactly that time does not count.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::NeverRuns`], if no day matches.
    pub fn next(&self, after: Timestamp) -> Result<Timestamp, ScheduleError> {
        if self.matches_no_day() {
            return Err(ScheduleError::NeverRuns);
        }
        let after = after.to_zoned(self.zone.clone());
        match self.pattern.find_next_occurrence(&after, false) {
            Ok(next) => Ok(next.timestamp()),
            // The only possible error of the search is that the calendar ends before a run.
            Err(_) => Err(ScheduleError::NeverRuns),
        }
    }

    /// Whether all days are beyond the ends of the months. croner finds the same, but searches
    /// thousands of years first.
    fn matches_no_day(&self) -> bool {
        let (days, months) = (&self.pattern.pattern.days, self.pattern.pattern.months.values());
        let length = |month: &u16| MAX_DAYS.get(usize::from(month.saturating_sub(1)));
        let longest = months.iter().filter_map(length).max();
        let beyond = |longest: &u16| days.values().iter().all(|day| day > longest);
        self.fields.any_weekday() && !days.has_modifiers() && longest.is_some_and(beyond)
    }

    /// The shortest time between two of the next runs.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::NeverRuns`], if there are fewer than two runs.
    pub fn shortest_gap(&self, after: Timestamp) -> Result<Duration, ScheduleError> {
        let first = self.next(after)?;
        let mut run = self.next(first)?;
        let mut shortest = run.duration_since(first).unsigned_abs();
        for _ in 0..SAMPLED_RUNS {
            let near = run.duration_since(first).unsigned_abs() < SEARCH_HORIZON;
            if !near || shortest <= MIN_INTERVAL {
                break;
            }
            let Ok(later) = self.next(run) else { break };
            shortest = shortest.min(later.duration_since(run).unsigned_abs());
            run = later;
        }
        Ok(shortest)
    }

    /// Name of the time zone.
    #[must_use]
    pub fn zone(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// A short description, such as `every day at 03:00 (UTC)`.
    #[must_use]
    pub fn description(&self) -> String {
        format!("{} ({})", self.fields.description(), self.zone())
    }
}

#[cfg(test)]
mod tests;
