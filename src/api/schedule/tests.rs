//! Valid and invalid schedules.
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use super::{CronField, ScheduleError, parse};

const NOON: &str = "2026-01-15T12:00:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn message(text: &str) -> String {
    parse(text, None).unwrap_err().to_string()
}

fn next(text: &str, zone: &str, after: &str) -> String {
    parse(text, Some(zone)).unwrap().next(at(after)).unwrap().to_string()
}

#[test]
fn next_run_is_strictly_after_the_given_time() {
    assert_eq!(next("0 3 * * *", "UTC", NOON), "2026-01-16T03:00:00Z");
    assert_eq!(next("0 12 * * *", "UTC", NOON), "2026-01-16T12:00:00Z");
    assert_eq!(next("0 12 * * *", "UTC", "2026-01-15T11:59:59.999Z"), "2026-01-15T12:00:00Z");
    assert_eq!(next("0 12 * * *", "UTC", "2026-01-15T12:00:00.001Z"), "2026-01-16T12:00:00Z");
    assert_eq!(next("*/15 * * * *", "UTC", NOON), "2026-01-15T12:15:00Z");
    assert_eq!(next("0 0 29 2 *", "UTC", NOON), "2028-02-29T00:00:00Z");
    assert_eq!(next("0 0 L * *", "UTC", NOON), "2026-01-31T00:00:00Z");
    assert_eq!(next("0 0 * * fri#2", "UTC", NOON), "2026-02-13T00:00:00Z");
}

#[test]
fn every_name_of_the_schema_is_known() {
    for (name, run) in [
        ("@hourly", "2026-01-15T13:00:00Z"),
        ("@daily", "2026-01-16T00:00:00Z"),
        ("@midnight", "2026-01-16T00:00:00Z"),
        ("@weekly", "2026-01-18T00:00:00Z"),
        ("@monthly", "2026-02-01T00:00:00Z"),
        ("@yearly", "2027-01-01T00:00:00Z"),
        ("@annually", "2027-01-01T00:00:00Z"),
    ] {
        assert_eq!(next(name, "UTC", NOON), run, "{name}");
    }
}

#[test]
fn time_zone_is_honored_across_daylight_saving_changes() {
    assert_eq!(next("0 3 * * *", "Europe/Berlin", NOON), "2026-01-16T02:00:00Z");
    assert_eq!(next("0 3 * * *", "Europe/Berlin", "2026-07-01T12:00:00Z"), "2026-07-02T01:00:00Z");
    // 02:30 does not exist on this day: the run is the first time after the gap, once.
    let gap = next("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z");
    assert_eq!(gap, "2026-03-29T01:00:00Z");
    assert_eq!(next("30 2 * * *", "Europe/Berlin", &gap), "2026-03-30T00:30:00Z");
    // 02:30 comes twice on this day: the run is the first of them, once.
    let twice = next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z");
    assert_eq!(twice, "2026-10-25T00:30:00Z");
    assert_eq!(next("30 2 * * *", "Europe/Berlin", &twice), "2026-10-26T01:30:00Z");
}

#[test]
fn impossible_day_is_reported_without_a_long_search() {
    for text in [
        "0 0 31 2 *",
        "0 0 30 feb *",
        "0 0 31 4,6,9,11 *",
        "0 0 30,31 2 ?",
        "0 0 30-31 2 *",
        "0 0 31W 2 *",
    ] {
        let cron = parse(text, None).unwrap();
        assert_eq!(cron.next(at(NOON)), Err(ScheduleError::NeverRuns), "{text}");
        assert_eq!(cron.shortest_gap(at(NOON)), Err(ScheduleError::NeverRuns), "{text}");
    }
    assert_eq!(
        ScheduleError::NeverRuns.to_string(),
        "never runs: no month has such a day; example \"0 3 * * *\" (every day at 03:00)"
    );
    // On a Monday or on the 31st: there are Mondays in February.
    assert_eq!(next("0 0 31 2 1", "UTC", NOON), "2026-02-02T00:00:00Z");
}

#[test]
fn end_of_the_calendar_does_not_panic() {
    let cron = parse("0 3 * * *", Some("Europe/Berlin")).unwrap();
    assert_eq!(cron.next(Timestamp::MAX), Err(ScheduleError::NeverRuns));
    assert!(cron.next(Timestamp::MIN).is_ok());
}

#[test]
fn wrong_number_of_fields_is_reported() {
    let five = "must have five: minute, hour, day of the month, month, day of the week; \
                example \"0 3 * * *\" (every day at 03:00)";
    assert_eq!(message("0 3 * *"), format!("has four fields; {five}"));
    assert_eq!(message("nightly"), format!("has one field; {five}"));
    assert_eq!(
        message("0 0 3 * * *"),
        format!("has six fields; the seconds field is not supported; {five}")
    );
    assert!(
        message("0 0 3 * * * 2026")
            .starts_with("has seven fields; the fields for seconds and years")
    );
    assert!(message("1 2 3 4 5 6 7 8").starts_with("has 8 fields; must have five"));
}

#[test]
fn number_out_of_range_is_reported_with_its_bounds() {
    let example = "; example \"0 3 * * *\" (every day at 03:00)";
    for (text, expected) in [
        ("61 * * * *", "minute 61 is outside 0 to 59"),
        ("0 24 * * *", "hour 24 is outside 0 to 23"),
        ("0 0 0 * *", "day of the month 0 is outside 1 to 31"),
        ("0 0 1,32 * *", "day of the month 32 is outside 1 to 31"),
        ("0 0 * 13 *", "month 13 is outside 1 to 12"),
        ("0 0 * * 8", "day of the week 8 is outside 0 to 7"),
        ("0-60 * * * *", "minute 60 is outside 0 to 59"),
        ("0 0 99999999999 * *", "day of the month 99999999999 is outside 1 to 31"),
        ("0 0 32W * *", "day of the month 32 is outside 1 to 31"),
    ] {
        assert_eq!(message(text), format!("{expected}{example}"), "{text}");
    }
}

#[test]
fn unknown_word_gets_a_suggestion() {
    for (text, expected) in [
        ("0 0 * * monday", "'MONDAY' is not a valid day of the week (did you mean 'MON'?)"),
        ("0 0 * * mno", "'MNO' is not a valid day of the week (did you mean 'MON'?)"),
        ("0 0 * march *", "'MARCH' is not a valid month (did you mean 'MAR'?)"),
        ("0 noon * * *", "'NOON' is not a valid hour; numbers go from 0 to 23"),
        ("mon * * * *", "'MON' is not a valid minute; numbers go from 0 to 59"),
        (
            "0 0 * * L",
            "'L' is not a valid day of the week; numbers go from 0 to 7, or 'SUN' to 'SAT'",
        ),
        ("@dayly", "'@dayly' is not a schedule (did you mean '@daily'?)"),
        ("daily", "'daily' is not a schedule (did you mean '@daily'?)"),
        ("@every 5m", "'@every 5m' is not a schedule; the names are '@hourly'"),
    ] {
        assert!(message(text).starts_with(expected), "{text}: {}", message(text));
    }
}

#[test]
fn items_that_croner_would_ignore_are_rejected() {
    for text in [
        ", * * * *",
        "1,,2 * * * *",
        "1, * * * *",
        "*,5 * * * *",
        "? * * * *",
        "0 0 *W * *",
        "0 0 L-3 * *",
        "0 0 * * +1",
        "0 0 * * 1-5#2",
        "0 0 * * 5#6",
        "0 0 * * 5#",
        "-5 * * * *",
        "1-2-3 * * * *",
        "0/10 * * * *",
        "/10 * * * *",
        "*/0 * * * *",
        "*/61 * * * *",
        "*/x * * * *",
        "50-10 * * * *",
        "0 0 * * sat-mon",
        "*/5/5 * * * *",
        "0x1 * * * *",
        "1.5 * * * *",
    ] {
        let message = message(text);
        assert!(
            message.ends_with("example \"0 3 * * *\" (every day at 03:00)"),
            "{text}: {message}"
        );
        assert!(!message.starts_with("'0"), "{text} has no specific message: {message}");
    }
    assert!(message("0/10 * * * *").contains("such as '*/15' or '0-59/15'"));
    assert!(message("50-10 * * * *").contains("'50-10' ends before it begins"));
}

#[test]
fn string_that_is_not_a_schedule_gets_a_hint() {
    assert!(message("").starts_with("must not be empty; example"));
    assert!(message("  ").starts_with("must not be empty; example"));
    assert!(message("12:00").contains("write \"0 12 * * *\" for every day at that time"));
    assert!(message("12:99").starts_with("has one field"));
    assert!(message("CRON_TZ=Europe/Berlin 0 3 * * *").contains("set `timeZone` instead"));
    assert!(message("TZ=UTC 0 3 * * *").contains("set `timeZone` instead"));
    assert!(message("\u{201C}0 3 * * *\u{201D}").contains("write \"0 3 * * *\" with plain ones"));
    assert!(matches!(parse("0\u{A0}3 * * *", None), Err(ScheduleError::Typographic { .. })));
}

#[test]
fn unknown_time_zone_has_its_own_error() {
    let error = parse("0 3 * * *", Some("Europe/Berln")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "'Europe/Berln' is not a time zone (did you mean 'Europe/Berlin'?); \
         example \"Europe/Berlin\" or \"UTC\""
    );
    let both = parse("61 * * * *", Some("nowhere"));
    assert!(matches!(both, Err(ScheduleError::OutOfRange { field: CronField::Minute, .. })));
}

#[test]
fn shortest_interval_is_found_at_any_position() {
    let gap = |text| parse(text, None).unwrap().shortest_gap(at(NOON)).unwrap();
    let minutes = |number: u64| Duration::from_secs(number * 60);
    assert_eq!(gap("* * * * *"), minutes(1));
    assert_eq!(gap("*/5 * * * *"), minutes(5));
    assert_eq!(gap("*/7 * * * *"), minutes(4));
    assert_eq!(gap("0,2 3 * * *"), minutes(2));
    assert_eq!(gap("0,59 1,5,6 * * *"), minutes(1));
    assert_eq!(gap("0,57 0,23 * * *"), minutes(3));
    assert_eq!(gap("0 3 * * *"), minutes(24 * 60));
    assert_eq!(gap("0 3 * * 1"), minutes(7 * 24 * 60));
    assert_eq!(gap("@yearly"), minutes(365 * 24 * 60));
}

#[test]
fn common_schedules_have_a_description() {
    let description = |text| parse(text, Some("Europe/Berlin")).unwrap().description();
    for (text, expected) in [
        ("0 3 * * *", "every day at 03:00"),
        ("@daily", "every day at 00:00"),
        ("30 14 * * sun", "every Sunday at 14:30"),
        ("30 14 * * 7", "every Sunday at 14:30"),
        ("0 4 1 * ?", "on day 1 of every month at 04:00"),
        ("0 * * * *", "every hour"),
        ("5 * * * *", "every hour at minute 5"),
        ("*/15 * * * *", "every 15 minutes"),
        ("*/7 * * * *", "at \"*/7 * * * *\""),
        ("* * * * *", "every minute"),
        ("* 3 * * *", "at \"* 3 * * *\""),
        ("0 3 1 1 *", "at \"0 3 1 1 *\""),
        ("0 3 1 * mon", "at \"0 3 1 * MON\""),
    ] {
        assert_eq!(description(text), format!("{expected} (Europe/Berlin)"), "{text}");
    }
    assert!(parse("0 3 * * *", None).unwrap().description().ends_with("(UTC)"));
}

proptest! {
    #[test]
    fn accepted_schedule_is_parsed_by_croner(
        minute in "(\\*|[0-9]{1,2}|\\*/[0-9]{1,2}|[0-9]-[0-9]{2}|[0-9]{1,2},[0-9])",
        hour in "(\\*|[0-9]{1,2}|[0-9]-[0-9]{1,2}/[1-9])",
        day in "(\\*|\\?|L|LW|[0-9]{1,2}|[0-9]{1,2}W|[0-9]{1,2}-[0-9]{2})",
        month in "(\\*|[0-9]{1,2}|jan|Feb-OCT|\\*/[0-9])",
        weekday in "(\\*|\\?|[0-9]|[0-9]L|sun|Mon-SUN|fri#[0-9]|[0-9]#[0-9]|TUEL)",
    ) {
        let text = format!("{minute} {hour} {day} {month} {weekday}");
        match parse(&text, None) {
            Ok(cron) => {
                let after = at(NOON);
                match cron.next(after) {
                    Ok(next) => prop_assert!(next > after),
                    Err(error) => prop_assert_eq!(error, ScheduleError::NeverRuns),
                }
            }
            Err(ScheduleError::Unparsable { text }) => prop_assert!(false, "{} was accepted by the fields and rejected by croner", text),
            Err(_) => {}
        }
    }

    #[test]
    fn arbitrary_input_does_not_panic(text in "\\PC{0,40}", zone in "\\PC{0,20}") {
        if let Err(error) = parse(&text, Some(&zone)) {
            prop_assert!(error.to_string().contains("; example "));
        }
    }
}
