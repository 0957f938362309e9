//! Errors of schedules and time zones.
//! Each message follows the field path and states the error, the allowed values and an example.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;

use super::fields::CronField;

/// End of every message about a schedule.
const EXAMPLE: &str = "example \"0 3 * * *\" (every day at 03:00)";
/// End of every message about a time zone.
const ZONES: &str = "example \"Europe/Berlin\" or \"UTC\"";

/// Error of a schedule or its time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// The string is empty.
    Empty,
    /// The number of fields is not five.
    FieldCount(usize),
    /// A time of day and not a schedule.
    TimeOfDay {
        /// The schedule for this time every day.
        suggestion: String,
    },
    /// The schedule begins with a time zone.
    TimeZoneInExpression,
    /// The string has typographic characters.
    Typographic {
        /// The string with plain characters.
        suggestion: String,
    },
    /// Unknown name of a schedule.
    UnknownName {
        /// The name.
        name: String,
        /// The most similar valid value.
        suggestion: Option<&'static str>,
    },
    /// A number is out of range for its field.
    OutOfRange {
        /// The field.
        field: CronField,
        /// The number.
        value: String,
    },
    /// A word is not valid in its field.
    UnknownWord {
        /// The field.
        field: CronField,
        /// The word.
        word: String,
        /// The most similar valid value.
        suggestion: Option<&'static str>,
    },
    /// A range ends before it begins.
    ReversedRange {
        /// The field.
        field: CronField,
        /// The range.
        range: String,
    },
    /// A step does not follow `*` or a range, or is not a positive number.
    InvalidStep {
        /// The field.
        field: CronField,
        /// The item.
        item: String,
    },
    /// An item of a field is invalid.
    InvalidItem {
        /// The field.
        field: CronField,
        /// The item.
        item: String,
    },
    /// The string cannot be parsed for another reason.
    Unparsable {
        /// The string.
        text: String,
    },
    /// No day matches.
    NeverRuns,
    /// Unknown time zone.
    UnknownTimeZone {
        /// The name.
        name: String,
        /// The most similar valid value.
        suggestion: Option<String>,
    },
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_detail(f)?;
        let example = if matches!(self, Self::UnknownTimeZone { .. }) { ZONES } else { EXAMPLE };
        write!(f, "; {example}")
    }
}

impl ScheduleError {
    fn fmt_detail(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("must not be empty"),
            Self::FieldCount(count) => fmt_field_count(f, *count),
            Self::TimeOfDay { suggestion } => write!(
                f,
                "is a time of day and not a schedule: write \"{suggestion}\" for every day at that time"
            ),
            Self::TimeZoneInExpression => {
                f.write_str("contains a time zone; set `timeZone` instead")
            }
            Self::Typographic { suggestion } => {
                write!(f, "has typographic characters; write \"{suggestion}\" with plain ones")
            }
            Self::UnknownName { name, suggestion } => write!(
                f,
                "'{name}' is not a schedule{}; the names are '@hourly', '@daily', '@weekly', '@monthly' and '@yearly'",
                suggestion_text(*suggestion)
            ),
            Self::OutOfRange { field, value } => {
                let (low, high) = field.bounds();
                write!(f, "{field} {value} is outside {low} to {high}")
            }
            Self::UnknownWord { field, word, suggestion } => {
                write!(
                    f,
                    "'{word}' is not a valid {field}{}; {}",
                    suggestion_text(*suggestion),
                    field.allowed()
                )
            }
            Self::ReversedRange { field, range } => write!(
                f,
                "the {field} range '{range}' ends before it begins; write its two parts with a comma between them"
            ),
            Self::InvalidStep { field, item } => write!(
                f,
                "the {field} step '{item}' must follow '*' or a range and be a number from 1, such as '*/{0}' or '{1}-{2}/{0}'",
                field.step(),
                field.bounds().0,
                field.bounds().1
            ),
            Self::InvalidItem { field, item } => {
                write!(f, "the {field} '{item}' is invalid; {}", field.allowed())
            }
            Self::Unparsable { text } => write!(f, "'{text}' is invalid"),
            Self::NeverRuns => f.write_str("never runs: no month has such a day"),
            Self::UnknownTimeZone { name, suggestion } => {
                write!(f, "'{name}' is not a time zone{}", suggestion_text(suggestion.as_deref()))
            }
        }
    }
}

fn suggestion_text(suggestion: Option<&str>) -> String {
    suggestion.map(|suggestion| format!(" (did you mean '{suggestion}'?)")).unwrap_or_default()
}

fn fmt_field_count(f: &mut fmt::Formatter<'_>, count: usize) -> fmt::Result {
    let hint = match count {
        6 => "the seconds field is not supported; ",
        7 => "the fields for seconds and years are not supported; ",
        _ => "",
    };
    let plural = if count == 1 { "field" } else { "fields" };
    let count = match count {
        1 => "one".to_owned(),
        2 => "two".to_owned(),
        3 => "three".to_owned(),
        4 => "four".to_owned(),
        6 => "six".to_owned(),
        7 => "seven".to_owned(),
        other => other.to_string(),
    };
    write!(
        f,
        "has {count} {plural}; {hint}must have five: minute, hour, day of the month, month, day of the week"
    )
}

impl std::error::Error for ScheduleError {}
