//! The five cron fields and their allowed values.
//! croner accepts empty items and weekday names in any field without an error, and reports no more
//! than "number out of bounds"; so every item is checked here first.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;

use super::ScheduleError;
use crate::api::suggest;

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const WEEKDAY_NAMES: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// One of the five fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CronField {
    /// The minute.
    Minute,
    /// The hour.
    Hour,
    /// The day of the month.
    Day,
    /// The month.
    Month,
    /// The day of the week.
    Weekday,
}

impl fmt::Display for CronField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day of the month",
            Self::Month => "month",
            Self::Weekday => "day of the week",
        })
    }
}

impl CronField {
    const ALL: [Self; 5] = [Self::Minute, Self::Hour, Self::Day, Self::Month, Self::Weekday];

    /// Smallest and largest number of the field.
    pub(super) const fn bounds(self) -> (u16, u16) {
        match self {
            Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::Day => (1, 31),
            Self::Month => (1, 12),
            Self::Weekday => (0, 7),
        }
    }

    /// A typical step of the field, for an example.
    pub(super) const fn step(self) -> u16 {
        match self {
            Self::Minute => 15,
            Self::Hour => 6,
            Self::Day | Self::Month | Self::Weekday => 2,
        }
    }

    /// Allowed values of the field, for a message.
    pub(super) fn allowed(self) -> String {
        let (low, high) = self.bounds();
        let names = match self {
            Self::Minute | Self::Hour => "",
            Self::Day => ", and 'L' is the last day",
            Self::Month => ", or 'JAN' to 'DEC'",
            Self::Weekday => ", or 'SUN' to 'SAT'",
        };
        format!("numbers go from {low} to {high}{names}")
    }

    /// Names of the numbers, starting with the smallest.
    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Minute | Self::Hour | Self::Day => &[],
            Self::Month => &MONTHS,
            Self::Weekday => &WEEKDAYS,
        }
    }

    /// Checks the field: items separated by commas.
    fn check(self, text: &str) -> Result<(), ScheduleError> {
        let is_any = text == "*" || (text == "?" && matches!(self, Self::Day | Self::Weekday));
        if is_any {
            return Ok(());
        }
        text.split(',').try_for_each(|item| self.check_item(item))
    }

    fn check_item(self, item: &str) -> Result<(), ScheduleError> {
        let odd = || ScheduleError::InvalidItem { field: self, item: item.to_owned() };
        if item.is_empty() || item == "*" || item == "?" {
            return Err(odd());
        }
        if let Some((range, step)) = item.split_once('/') {
            return self.check_step(item, range, step);
        }
        if let Some((low, high)) = item.split_once('-') {
            return self.check_range(item, low, high);
        }
        match self {
            Self::Minute | Self::Hour | Self::Month => self.number(item).map(drop),
            Self::Day => self.check_day(item),
            Self::Weekday => self.check_weekday(item),
        }
    }

    fn check_step(self, item: &str, range: &str, step: &str) -> Result<(), ScheduleError> {
        let (low, high) = self.bounds();
        match plain(step) {
            Some(step) if (1..=high.saturating_sub(low).saturating_add(1)).contains(&step) => {}
            Some(_) | None => {
                return Err(ScheduleError::InvalidStep { field: self, item: item.to_owned() });
            }
        }
        match range.split_once('-') {
            Some((low, high)) => self.check_range(range, low, high),
            None if range == "*" => Ok(()),
            None => Err(ScheduleError::InvalidStep { field: self, item: item.to_owned() }),
        }
    }

    fn check_range(self, range: &str, low: &str, high: &str) -> Result<(), ScheduleError> {
        let low = self.number(low)?;
        let high = match self.number(high)? {
            // A range that starts on another day may end on Sunday.
            0 if self == Self::Weekday && high == "SUN" => 7,
            high => high,
        };
        if low > high {
            return Err(ScheduleError::ReversedRange { field: self, range: range.to_owned() });
        }
        Ok(())
    }

    /// `15`, `15W` (the working day nearest to it), `L` (the last day) or `LW`.
    fn check_day(self, item: &str) -> Result<(), ScheduleError> {
        match item.strip_suffix('W') {
            _ if item == "L" || item == "LW" => Ok(()),
            Some(day) => self.number(day).map(drop),
            None => self.number(item).map(drop),
        }
    }

    /// `5` or `FRI`, `5#2` (the second one of the month), or `5L` (the last one).
    fn check_weekday(self, item: &str) -> Result<(), ScheduleError> {
        if let Some((day, nth)) = item.split_once('#') {
            self.number(day)?;
            let odd = ScheduleError::InvalidItem { field: self, item: item.to_owned() };
            return plain(nth).filter(|nth| (1..=5).contains(nth)).map(drop).ok_or(odd);
        }
        let day = item.strip_suffix('L').filter(|day| !day.is_empty());
        self.number(day.unwrap_or(item)).map(drop)
    }

    /// The number of an item, in digits or as a name.
    fn number(self, text: &str) -> Result<u16, ScheduleError> {
        let (low, high) = self.bounds();
        let names = self.names();
        if let Some(at) = names.iter().position(|name| *name == text) {
            return Ok(u16::try_from(at).unwrap_or(high).saturating_add(low));
        }
        let in_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match plain(text) {
            Some(number) if (low..=high).contains(&number) => Ok(number),
            Some(_) => Err(ScheduleError::OutOfRange { field: self, value: text.to_owned() }),
            None if in_digits => {
                Err(ScheduleError::OutOfRange { field: self, value: text.to_owned() })
            }
            None if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic()) => {
                let suggestion = long_name(text, names)
                    .or_else(|| suggest::did_you_mean(text, names.iter().copied()));
                Err(ScheduleError::UnknownWord { field: self, word: text.to_owned(), suggestion })
            }
            None => Err(ScheduleError::InvalidItem { field: self, item: text.to_owned() }),
        }
    }
}

/// The short form of a long name: `MON` for `MONDAY`.
fn long_name(text: &str, names: &'static [&'static str]) -> Option<&'static str> {
    names.iter().copied().find(|name| text.len() > name.len() && text.starts_with(*name))
}

/// A number that consists of digits only.
fn plain(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// The schedule for a time of day such as `12:00`.
pub(super) fn time_of_day(text: &str) -> Option<String> {
    let (hour, minute) = text.split_once(':')?;
    let (hour, minute) = (plain(hour)?, plain(minute)?);
    (hour < 24 && minute < 60).then(|| format!("{minute} {hour} * * *"))
}

/// The five fields in upper case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CronFields([String; 5]);

impl fmt::Display for CronFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

impl CronFields {
    pub(super) fn new(parts: [&str; 5]) -> Self {
        Self(parts.map(str::to_ascii_uppercase))
    }

    /// Checks every field.
    pub(super) fn check(&self) -> Result<(), ScheduleError> {
        CronField::ALL.into_iter().zip(&self.0).try_for_each(|(field, text)| field.check(text))
    }

    /// Whether every day of the week matches.
    pub(super) fn any_weekday(&self) -> bool {
        let [.., weekday] = &self.0;
        weekday == "*" || weekday == "?"
    }

    /// Description of common schedules; any other schedule verbatim.
    pub(super) fn description(&self) -> String {
        let [minute, hour, day, month, weekday] = self.0.each_ref().map(String::as_str);
        let any = |text: &str| text == "*" || text == "?";
        let other = || format!("at \"{self}\"");
        match (plain(minute), plain(hour)) {
            _ if !any(month) => other(),
            (Some(minute), Some(hour)) => {
                let days = match (plain(day), weekday_name(weekday)) {
                    (None, None) if any(day) && any(weekday) => "every day".to_owned(),
                    (None, Some(name)) if any(day) => format!("every {name}"),
                    (Some(day), None) if any(weekday) => format!("on day {day} of every month"),
                    _ => return other(),
                };
                format!("{days} at {hour:02}:{minute:02}")
            }
            _ if !(any(day) && any(weekday) && any(hour)) => other(),
            (Some(0), None) => "every hour".to_owned(),
            (Some(minute), None) => format!("every hour at minute {minute}"),
            (None, _) if any(minute) => "every minute".to_owned(),
            (None, _) => match minute.strip_prefix("*/").and_then(plain) {
                // Only then are all intervals equal.
                Some(step) if 60_u16.checked_rem(step) == Some(0) => {
                    format!("every {step} minutes")
                }
                Some(_) | None => other(),
            },
        }
    }
}

fn weekday_name(text: &str) -> Option<&'static str> {
    let number = CronField::Weekday.number(text).ok()?;
    WEEKDAY_NAMES.iter().cycle().nth(usize::from(number)).copied()
}
