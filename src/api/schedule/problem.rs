//! What can be wrong with a schedule, in sentences that teach.
//! Comes in: what was found. Goes out: words that go after the name of the field.
//! May touch: `fields`, for names and bounds. Each sentence says what is wrong, what is allowed, and gives an example.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt;

use super::fields::Field;

/// What every sentence about a schedule ends with.
const EXAMPLE: &str = "example \"0 3 * * *\" (every day at 03:00)";
/// What every sentence about a zone ends with.
const ZONES: &str = "example \"Europe/Berlin\" or \"UTC\"";

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no text.
    Empty,
    /// There are more or fewer than five fields.
    Count(usize),
    /// It is a time of the day and no schedule.
    Clock {
        /// The schedule for that time of every day.
        meant: String,
    },
    /// It begins with a time zone.
    ZoneInside,
    /// It has typographic characters.
    Typographic {
        /// The text as it was probably meant.
        meant: String,
    },
    /// It is a name that stands for no schedule.
    Name {
        /// The name.
        name: String,
        /// The one that was probably meant.
        meant: Option<&'static str>,
    },
    /// A number is too small or too great for its field.
    Outside {
        /// The field.
        field: Field,
        /// The number as it was written.
        value: String,
    },
    /// A word is none that the field knows.
    Word {
        /// The field.
        field: Field,
        /// The word.
        word: String,
        /// The one that was probably meant.
        meant: Option<&'static str>,
    },
    /// A range ends before it begins.
    Backwards {
        /// The field.
        field: Field,
        /// The range.
        range: String,
    },
    /// A step stands behind something that has no steps, or is no step.
    Step {
        /// The field.
        field: Field,
        /// The part of the field.
        item: String,
    },
    /// A part of a field is none of the things that can stand there.
    Item {
        /// The field.
        field: Field,
        /// The part of the field.
        item: String,
    },
    /// The text is not understood, for no reason that has its own sentence.
    NotUnderstood {
        /// The text.
        text: String,
    },
    /// No day is ever like that.
    Never,
    /// There is no such time zone.
    Zone {
        /// The name.
        name: String,
        /// The one that was probably meant.
        meant: Option<String>,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.say(f)?;
        let example = if matches!(self, Self::Zone { .. }) { ZONES } else { EXAMPLE };
        write!(f, "; {example}")
    }
}

impl Problem {
    fn say(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("must not be empty"),
            Self::Count(count) => say_count(f, *count),
            Self::Clock { meant } => write!(
                f,
                "is a time of the day; a schedule has five fields: write \"{meant}\" for every day at that time"
            ),
            Self::ZoneInside => f.write_str("names a time zone; write it into `timeZone` instead"),
            Self::Typographic { meant } => {
                write!(f, "has typographic characters; write \"{meant}\" with plain ones")
            }
            Self::Name { name, meant } => write!(
                f,
                "'{name}' stands for no schedule{}; the names are '@hourly', '@daily', '@weekly', '@monthly' and '@yearly'",
                guess(*meant)
            ),
            Self::Outside { field, value } => {
                let (low, high) = field.bounds();
                write!(f, "{field} {value} is outside {low} to {high}")
            }
            Self::Word { field, word, meant } => {
                write!(f, "'{word}' is no {field}{}; {}", guess(*meant), field.allowed())
            }
            Self::Backwards { field, range } => write!(
                f,
                "the {field} range '{range}' ends before it begins; write its two parts with a comma between them"
            ),
            Self::Step { field, item } => write!(
                f,
                "the {field} step '{item}' must follow '*' or a range and be a number from 1, such as '*/{0}' or '{1}-{2}/{0}'",
                field.step(),
                field.bounds().0,
                field.bounds().1
            ),
            Self::Item { field, item } => {
                write!(f, "the {field} '{item}' is not understood; {}", field.allowed())
            }
            Self::NotUnderstood { text } => write!(f, "'{text}' is not understood"),
            Self::Never => f.write_str("never fires: no month has such a day"),
            Self::Zone { name, meant } => {
                write!(f, "'{name}' is not a time zone{}", guess(meant.as_deref()))
            }
        }
    }
}

fn guess(meant: Option<&str>) -> String {
    meant.map(|meant| format!(" (did you mean '{meant}'?)")).unwrap_or_default()
}

fn say_count(f: &mut fmt::Formatter<'_>, count: usize) -> fmt::Result {
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

impl std::error::Error for Problem {}
