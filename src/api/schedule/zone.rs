//! Time zones by name, from the database built into the binary.
//! The database of the host is never used: an image from scratch has none.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::ScheduleError;
use crate::api::suggest;

/// The time zone of this name, ignoring case, as the database does.
pub(super) fn read(name: &str) -> Result<TimeZone, ScheduleError> {
    let zones = TimeZoneDatabase::bundled();
    match zones.get(name) {
        Ok(zone) if !zone.is_unknown() => Ok(zone),
        Ok(_) | Err(_) => Err(ScheduleError::UnknownTimeZone {
            name: name.to_owned(),
            suggestion: nearest(name, &zones),
        }),
    }
}

/// The most similar time zone, by its full name or by its city alone. Abbreviations are not
/// suggested: PST is one letter from EST and three hours away from it.
fn nearest(name: &str, zones: &TimeZoneDatabase) -> Option<String> {
    let name = suggest::replace_typographic(name).unwrap_or_else(|| name.trim().replace(' ', "_"));
    let names: Vec<String> = zones.available().map(|zone| zone.to_string()).collect();
    let places = || names.iter().map(String::as_str).filter(|zone| is_place(zone));
    let city = |zone: &&str| {
        zone.rsplit_once('/').is_some_and(|(_, city)| city.eq_ignore_ascii_case(&name))
    };
    let utc = ["UTC", "GMT"].into_iter().find(|zone| zone.eq_ignore_ascii_case(&name));
    utc.or_else(|| places().find(city))
        .or_else(|| suggest::did_you_mean(&name, places()))
        .map(str::to_owned)
}

fn is_place(zone: &str) -> bool {
    zone.contains('/') && !["Etc/", "SystemV/", "US/"].iter().any(|group| zone.starts_with(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(name: &str) -> String {
        read(name).unwrap_err().to_string()
    }

    #[test]
    fn time_zones_are_built_in() {
        let zones = TimeZoneDatabase::bundled();
        assert!(zones.available().count() > 400);
        for name in ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "europe/berlin"] {
            assert!(read(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn typo_or_city_gets_a_suggestion() {
        for (name, suggestion) in [
            ("Europe/Berln", "Europe/Berlin"),
            ("Berlin", "Europe/Berlin"),
            ("Europa/Berlin", "Europe/Berlin"),
            ("New York", "America/New_York"),
            ("\u{201C}Europe/Berlin\u{201D}", "Europe/Berlin"),
        ] {
            let message = message(name);
            assert!(message.contains(&format!("(did you mean '{suggestion}'?)")), "{message}");
        }
    }

    #[test]
    fn abbreviation_or_offset_gets_no_suggestion() {
        for name in ["", "PST", "CEST", "+02:00", "UTC+2", "Etc/Unknown", "Local", "x"] {
            let message = message(name);
            assert!(!message.contains("did you mean"), "{message}");
            assert!(message.ends_with("example \"Europe/Berlin\" or \"UTC\""), "{message}");
        }
    }
}
