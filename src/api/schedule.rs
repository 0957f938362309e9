//! Schedules: five fields, or a name such as `@daily`, in a time zone.
//! Comes in: the texts of a schedule and of a zone, and moments. Goes out: the next run, the shortest
//! time between runs, a few words, or what is wrong. May touch: croner, jiff and the time zones that
//! are built into the program: the image holds nothing else, and every machine answers the same.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod fields;
mod problem;
mod zone;

use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use fields::Field;
pub use problem::Problem;

use self::fields::Fields;
use crate::api::spelling;

/// The names that stand for a schedule, and what they stand for.
const NAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];
/// The least time that can lie between two runs of five fields.
const LEAST: Duration = Duration::from_mins(1);
/// How many runs are looked at for the shortest time between two: more than a day of them has
/// unless they are minutes apart, and then the first hour shows it.
const RUNS: usize = 150;
/// How far these runs are looked for: the hours of one day and its border to the next.
const HORIZON: Duration = Duration::from_hours(48);

/// The most days that each month has.
const LENGTHS: [u16; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// A schedule that was read.
#[derive(Clone, Debug)]
pub struct Plan {
    cron: Cron,
    fields: Fields,
    zone: TimeZone,
}

/// Reads a schedule. Without a zone it is meant in UTC.
///
/// # Errors
///
/// What is wrong with the schedule, or with the zone.
pub fn read(text: &str, zone: Option<&str>) -> Result<Plan, Problem> {
    let fields = fields(text)?;
    fields.check()?;
    let zone = zone.map_or(Ok(TimeZone::UTC), zone::read)?;
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    match parser.parse(&fields.to_string()) {
        Ok(cron) => Ok(Plan { cron, fields, zone }),
        // The fields were checked above. Should both ever disagree, there is still a sentence.
        Err(_) => Err(Problem::NotUnderstood { text: text.to_owned() }),
    }
}

/// The five fields of a text, or why there are not five.
fn fields(text: &str) -> Result<Fields, Problem> {
    if let Some(meant) = spelling::typographic(text) {
        return Err(Problem::Typographic { meant });
    }
    let text = text.trim();
    let named = NAMES.iter().find(|(name, _)| *name == text);
    let parts: Vec<&str> = named.map_or(text, |(_, fields)| fields).split_whitespace().collect();
    match parts.as_slice() {
        [] => Err(Problem::Empty),
        [name, ..] if name.starts_with('@') => {
            Err(Problem::Name { name: text.to_owned(), meant: nearest(text) })
        }
        [zone, ..] if zone.starts_with("TZ=") || zone.starts_with("CRON_TZ=") => {
            Err(Problem::ZoneInside)
        }
        [one] => Err(one_word(one)),
        [minute, hour, day, month, weekday] => Ok(Fields::new([minute, hour, day, month, weekday])),
        other => Err(Problem::Count(other.len())),
    }
}

/// What one word was probably meant to be: a time of the day, or a name without its `@`.
fn one_word(word: &str) -> Problem {
    match (fields::clock(word), nearest(&format!("@{word}"))) {
        (Some(meant), _) => Problem::Clock { meant },
        (None, Some(meant)) => Problem::Name { name: word.to_owned(), meant: Some(meant) },
        (None, None) => Problem::Count(1),
    }
}

fn nearest(name: &str) -> Option<&'static str> {
    spelling::did_you_mean(name, NAMES.iter().map(|(name, _)| *name))
}

impl Plan {
    /// The first run after a moment; a run at that very moment is over.
    ///
    /// # Errors
    ///
    /// [`Problem::Never`], if no day is like that.
    pub fn next(&self, after: Timestamp) -> Result<Timestamp, Problem> {
        if self.names_no_day() {
            return Err(Problem::Never);
        }
        let after = after.to_zoned(self.zone.clone());
        match self.cron.find_next_occurrence(&after, false) {
            Ok(next) => Ok(next.timestamp()),
            // All that can go wrong in the search is that the calendar ends before a run.
            Err(_) => Err(Problem::Never),
        }
    }

    /// Whether the days are all beyond the ends of the months. croner finds the same, but it looks
    /// through thousands of years first.
    fn names_no_day(&self) -> bool {
        let (days, months) = (&self.cron.pattern.days, self.cron.pattern.months.values());
        let length = |month: &u16| LENGTHS.get(usize::from(month.saturating_sub(1)));
        let longest = months.iter().filter_map(length).max();
        let beyond = |longest: &u16| days.values().iter().all(|day| day > longest);
        self.fields.any_weekday() && !days.has_modifiers() && longest.is_some_and(beyond)
    }

    /// The shortest time between two of the next runs.
    ///
    /// # Errors
    ///
    /// [`Problem::Never`], if there are no two of them.
    pub fn shortest_gap(&self, after: Timestamp) -> Result<Duration, Problem> {
        let first = self.next(after)?;
        let mut run = self.next(first)?;
        let mut shortest = run.duration_since(first).unsigned_abs();
        for _ in 0..RUNS {
            let near = run.duration_since(first).unsigned_abs() < HORIZON;
            if !near || shortest <= LEAST {
                break;
            }
            let Ok(later) = self.next(run) else { break };
            shortest = shortest.min(later.duration_since(run).unsigned_abs());
            run = later;
        }
        Ok(shortest)
    }

    /// The zone's name.
    #[must_use]
    pub fn zone(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// A short description, such as `every day at 03:00 (UTC)`.
    #[must_use]
    pub fn words(&self) -> String {
        format!("{} ({})", self.fields.words(), self.zone())
    }
}

#[cfg(test)]
mod tests;
