//! Time zones by name, from the list that is built into the program.
//! Comes in: a name. Goes out: its zone, or the name that was probably meant.
//! May touch: jiff's bundled zones; never the machine's, which an image from scratch has not.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::Problem;
use crate::api::spelling;

/// The zone of that name. Case is forgiven, as the list itself forgives it.
pub(super) fn read(name: &str) -> Result<TimeZone, Problem> {
    let zones = TimeZoneDatabase::bundled();
    match zones.get(name) {
        Ok(zone) if !zone.is_unknown() => Ok(zone),
        Ok(_) | Err(_) => {
            Err(Problem::Zone { name: name.to_owned(), meant: nearest(name, &zones) })
        }
    }
}

/// The zone that was probably meant: by its whole name, or by its city alone. Abbreviations are
/// not offered: PST is one letter from EST and three hours away from it.
fn nearest(name: &str, zones: &TimeZoneDatabase) -> Option<String> {
    let name = spelling::typographic(name).unwrap_or_else(|| name.trim().replace(' ', "_"));
    let names: Vec<String> = zones.available().map(|zone| zone.to_string()).collect();
    let places = || names.iter().map(String::as_str).filter(|zone| is_place(zone));
    let city = |zone: &&str| {
        zone.rsplit_once('/').is_some_and(|(_, city)| city.eq_ignore_ascii_case(&name))
    };
    let utc = ["UTC", "GMT"].into_iter().find(|zone| zone.eq_ignore_ascii_case(&name));
    utc.or_else(|| places().find(city))
        .or_else(|| spelling::did_you_mean(&name, places()))
        .map(str::to_owned)
}

fn is_place(zone: &str) -> bool {
    zone.contains('/') && !["Etc/", "SystemV/", "US/"].iter().any(|group| zone.starts_with(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str) -> String {
        read(name).unwrap_err().to_string()
    }

    #[test]
    fn the_zones_are_built_in() {
        let zones = TimeZoneDatabase::bundled();
        assert!(zones.available().count() > 400);
        for name in ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "europe/berlin"] {
            assert!(read(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_slip_and_a_city_are_understood_well_enough_to_ask() {
        for (name, meant) in [
            ("Europe/Berln", "Europe/Berlin"),
            ("Berlin", "Europe/Berlin"),
            ("Europa/Berlin", "Europe/Berlin"),
            ("New York", "America/New_York"),
            ("\u{201C}Europe/Berlin\u{201D}", "Europe/Berlin"),
        ] {
            let said = said(name);
            assert!(said.contains(&format!("(did you mean '{meant}'?)")), "{said}");
        }
    }

    #[test]
    fn no_guess_is_made_from_an_abbreviation_or_an_offset() {
        for name in ["", "PST", "CEST", "+02:00", "UTC+2", "Etc/Unknown", "Local", "x"] {
            let said = said(name);
            assert!(!said.contains("did you mean"), "{said}");
            assert!(said.ends_with("example \"Europe/Berlin\" or \"UTC\""), "{said}");
        }
    }
}
