//! The five fields of a schedule and what may stand in each.
//! Comes in: the parts of a text. Goes out: a verdict on each, and words for the usual ones.
//! May touch: `spelling`. croner takes empty parts in silence, takes a weekday's name in any field and
//! says no more than "number out of bounds"; here every part is read first, so it never sees those.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;

use super::Problem;
use crate::api::spelling;

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const WEEKDAY_NAMES: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// One of the five fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
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

impl fmt::Display for Field {
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

impl Field {
    const ALL: [Self; 5] = [Self::Minute, Self::Hour, Self::Day, Self::Month, Self::Weekday];

    /// The least and the greatest number that may stand in it.
    pub(super) const fn bounds(self) -> (u16, u16) {
        match self {
            Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::Day => (1, 31),
            Self::Month => (1, 12),
            Self::Weekday => (0, 7),
        }
    }

    /// A step that makes sense in it, for an example.
    pub(super) const fn step(self) -> u16 {
        match self {
            Self::Minute => 15,
            Self::Hour => 6,
            Self::Day | Self::Month | Self::Weekday => 2,
        }
    }

    /// What may stand in it, for a message.
    pub(super) fn allowed(self) -> String {
        let (low, high) = self.bounds();
        let words = match self {
            Self::Minute | Self::Hour => "",
            Self::Day => ", and 'L' is the last day",
            Self::Month => ", or 'JAN' to 'DEC'",
            Self::Weekday => ", or 'SUN' to 'SAT'",
        };
        format!("numbers go from {low} to {high}{words}")
    }

    /// The words that stand for numbers, beginning with the one for the least.
    const fn words(self) -> &'static [&'static str] {
        match self {
            Self::Minute | Self::Hour | Self::Day => &[],
            Self::Month => &MONTHS,
            Self::Weekday => &WEEKDAYS,
        }
    }

    /// The whole field: parts with commas between them.
    fn check(self, text: &str) -> Result<(), Problem> {
        let is_any = text == "*" || (text == "?" && matches!(self, Self::Day | Self::Weekday));
        if is_any {
            return Ok(());
        }
        text.split(',').try_for_each(|item| self.check_item(item))
    }

    fn check_item(self, item: &str) -> Result<(), Problem> {
        let odd = || Problem::Item { field: self, item: item.to_owned() };
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

    fn check_step(self, item: &str, range: &str, step: &str) -> Result<(), Problem> {
        let (low, high) = self.bounds();
        match plain(step) {
            Some(step) if (1..=high.saturating_sub(low).saturating_add(1)).contains(&step) => {}
            Some(_) | None => return Err(Problem::Step { field: self, item: item.to_owned() }),
        }
        match range.split_once('-') {
            Some((low, high)) => self.check_range(range, low, high),
            None if range == "*" => Ok(()),
            None => Err(Problem::Step { field: self, item: item.to_owned() }),
        }
    }

    fn check_range(self, range: &str, low: &str, high: &str) -> Result<(), Problem> {
        let low = self.number(low)?;
        let high = match self.number(high)? {
            // The week ends on a Sunday if it has begun on another day.
            0 if self == Self::Weekday && high == "SUN" => 7,
            high => high,
        };
        if low > high {
            return Err(Problem::Backwards { field: self, range: range.to_owned() });
        }
        Ok(())
    }

    /// `15`, `15W` (the working day nearest to it), `L` (the last day) or `LW`.
    fn check_day(self, item: &str) -> Result<(), Problem> {
        match item.strip_suffix('W') {
            _ if item == "L" || item == "LW" => Ok(()),
            Some(day) => self.number(day).map(drop),
            None => self.number(item).map(drop),
        }
    }

    /// `5` or `FRI`, `5#2` (the second one of the month), or `5L` (the last one).
    fn check_weekday(self, item: &str) -> Result<(), Problem> {
        if let Some((day, nth)) = item.split_once('#') {
            self.number(day)?;
            let odd = Problem::Item { field: self, item: item.to_owned() };
            return plain(nth).filter(|nth| (1..=5).contains(nth)).map(drop).ok_or(odd);
        }
        let day = item.strip_suffix('L').filter(|day| !day.is_empty());
        self.number(day.unwrap_or(item)).map(drop)
    }

    /// The number that a text says, in digits or as a word.
    fn number(self, text: &str) -> Result<u16, Problem> {
        let (low, high) = self.bounds();
        let words = self.words();
        if let Some(at) = words.iter().position(|word| *word == text) {
            return Ok(u16::try_from(at).unwrap_or(high).saturating_add(low));
        }
        let in_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match plain(text) {
            Some(number) if (low..=high).contains(&number) => Ok(number),
            Some(_) => Err(Problem::Outside { field: self, value: text.to_owned() }),
            None if in_digits => Err(Problem::Outside { field: self, value: text.to_owned() }),
            None if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic()) => {
                let meant = long_name(text, words)
                    .or_else(|| spelling::did_you_mean(text, words.iter().copied()));
                Err(Problem::Word { field: self, word: text.to_owned(), meant })
            }
            None => Err(Problem::Item { field: self, item: text.to_owned() }),
        }
    }
}

/// The short word for a long name: `MONDAY` is one, and its first letters are the word.
fn long_name(text: &str, words: &'static [&'static str]) -> Option<&'static str> {
    words.iter().copied().find(|word| text.len() > word.len() && text.starts_with(*word))
}

/// A number in digits and nothing but digits.
fn plain(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// The schedule for a time of the day such as `12:00`, if `text` is one.
pub(super) fn clock(text: &str) -> Option<String> {
    let (hour, minute) = text.split_once(':')?;
    let (hour, minute) = (plain(hour)?, plain(minute)?);
    (hour < 24 && minute < 60).then(|| format!("{minute} {hour} * * *"))
}

/// The five fields as they were written, but in capital letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fields([String; 5]);

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

impl Fields {
    pub(super) fn new(parts: [&str; 5]) -> Self {
        Self(parts.map(str::to_ascii_uppercase))
    }

    /// Whether every field says something that can be.
    pub(super) fn check(&self) -> Result<(), Problem> {
        Field::ALL.into_iter().zip(&self.0).try_for_each(|(field, text)| field.check(text))
    }

    /// Whether any day of the week will do.
    pub(super) fn any_weekday(&self) -> bool {
        let [.., weekday] = &self.0;
        weekday == "*" || weekday == "?"
    }

    /// The usual schedules in words; any other as it is written.
    pub(super) fn words(&self) -> String {
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
                // Only then are all the gaps equal.
                Some(step) if 60_u16.checked_rem(step) == Some(0) => {
                    format!("every {step} minutes")
                }
                Some(_) | None => other(),
            },
        }
    }
}

fn weekday_name(text: &str) -> Option<&'static str> {
    let number = Field::Weekday.number(text).ok()?;
    WEEKDAY_NAMES.iter().cycle().nth(usize::from(number)).copied()
}
