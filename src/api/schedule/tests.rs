//! Schedules as people write them, rightly and wrongly.
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use super::{Field, Problem, read};

const NOON: &str = "2026-01-15T12:00:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn said(text: &str) -> String {
    read(text, None).unwrap_err().to_string()
}

fn next(text: &str, zone: &str, after: &str) -> String {
    read(text, Some(zone)).unwrap().next(at(after)).unwrap().to_string()
}

#[test]
fn the_next_run_is_after_the_moment_and_never_at_it() {
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
fn every_name_that_the_schema_lets_in_is_known() {
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
fn a_zone_moves_the_run_and_keeps_it_over_the_change_of_the_clocks() {
    assert_eq!(next("0 3 * * *", "Europe/Berlin", NOON), "2026-01-16T02:00:00Z");
    assert_eq!(next("0 3 * * *", "Europe/Berlin", "2026-07-01T12:00:00Z"), "2026-07-02T01:00:00Z");
    // 02:30 is left out on this day: the run is the first moment after the gap, once.
    let gap = next("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z");
    assert_eq!(gap, "2026-03-29T01:00:00Z");
    assert_eq!(next("30 2 * * *", "Europe/Berlin", &gap), "2026-03-30T00:30:00Z");
    // 02:30 comes twice on this day: the run is the first of them, once.
    let twice = next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z");
    assert_eq!(twice, "2026-10-25T00:30:00Z");
    assert_eq!(next("30 2 * * *", "Europe/Berlin", &twice), "2026-10-26T01:30:00Z");
}

#[test]
fn a_day_that_never_comes_is_named_so_and_at_once() {
    for text in [
        "0 0 31 2 *",
        "0 0 30 feb *",
        "0 0 31 4,6,9,11 *",
        "0 0 30,31 2 ?",
        "0 0 30-31 2 *",
        "0 0 31W 2 *",
    ] {
        let plan = read(text, None).unwrap();
        assert_eq!(plan.next(at(NOON)), Err(Problem::Never), "{text}");
        assert_eq!(plan.shortest_gap(at(NOON)), Err(Problem::Never), "{text}");
    }
    assert_eq!(
        Problem::Never.to_string(),
        "never fires: no month has such a day; example \"0 3 * * *\" (every day at 03:00)"
    );
    // On a Monday, or on the 31st: Mondays there are.
    assert_eq!(next("0 0 31 2 1", "UTC", NOON), "2026-02-02T00:00:00Z");
}

#[test]
fn the_end_of_the_calendar_is_no_panic() {
    let plan = read("0 3 * * *", Some("Europe/Berlin")).unwrap();
    assert_eq!(plan.next(Timestamp::MAX), Err(Problem::Never));
    assert!(plan.next(Timestamp::MIN).is_ok());
}

#[test]
fn a_wrong_number_of_fields_is_counted() {
    let five = "must have five: minute, hour, day of the month, month, day of the week; \
                example \"0 3 * * *\" (every day at 03:00)";
    assert_eq!(said("0 3 * *"), format!("has four fields; {five}"));
    assert_eq!(said("nightly"), format!("has one field; {five}"));
    assert_eq!(
        said("0 0 3 * * *"),
        format!("has six fields; the seconds field is not supported; {five}")
    );
    assert!(
        said("0 0 3 * * * 2026").starts_with("has seven fields; the fields for seconds and years")
    );
    assert!(said("1 2 3 4 5 6 7 8").starts_with("has 8 fields; must have five"));
}

#[test]
fn a_number_outside_its_field_is_named_with_its_bounds() {
    let example = "; example \"0 3 * * *\" (every day at 03:00)";
    for (text, words) in [
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
        assert_eq!(said(text), format!("{words}{example}"), "{text}");
    }
}

#[test]
fn a_word_that_is_none_is_met_with_the_one_that_was_meant() {
    for (text, words) in [
        ("0 0 * * monday", "'MONDAY' is no day of the week (did you mean 'MON'?)"),
        ("0 0 * * mno", "'MNO' is no day of the week (did you mean 'MON'?)"),
        ("0 0 * march *", "'MARCH' is no month (did you mean 'MAR'?)"),
        ("0 noon * * *", "'NOON' is no hour; numbers go from 0 to 23"),
        ("mon * * * *", "'MON' is no minute; numbers go from 0 to 59"),
        ("0 0 * * L", "'L' is no day of the week; numbers go from 0 to 7, or 'SUN' to 'SAT'"),
        ("@dayly", "'@dayly' stands for no schedule (did you mean '@daily'?)"),
        ("daily", "'daily' stands for no schedule (did you mean '@daily'?)"),
        ("@every 5m", "'@every 5m' stands for no schedule; the names are '@hourly'"),
    ] {
        assert!(said(text).starts_with(words), "{text}: {}", said(text));
    }
}

#[test]
fn parts_that_croner_would_take_in_silence_are_refused() {
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
        let said = said(text);
        assert!(said.ends_with("example \"0 3 * * *\" (every day at 03:00)"), "{text}: {said}");
        assert!(!said.starts_with("'0"), "{text} has no sentence of its own: {said}");
    }
    assert!(said("0/10 * * * *").contains("such as '*/15' or '0-59/15'"));
    assert!(said("50-10 * * * *").contains("'50-10' ends before it begins"));
}

#[test]
fn what_is_not_a_schedule_at_all_is_told_what_one_is() {
    assert!(said("").starts_with("must not be empty; example"));
    assert!(said("  ").starts_with("must not be empty; example"));
    assert!(said("12:00").contains("write \"0 12 * * *\" for every day at that time"));
    assert!(said("12:99").starts_with("has one field"));
    assert!(said("CRON_TZ=Europe/Berlin 0 3 * * *").contains("write it into `timeZone`"));
    assert!(said("TZ=UTC 0 3 * * *").contains("write it into `timeZone`"));
    assert!(said("\u{201C}0 3 * * *\u{201D}").contains("write \"0 3 * * *\" with plain ones"));
    assert!(matches!(read("0\u{A0}3 * * *", None), Err(Problem::Typographic { .. })));
}

#[test]
fn a_zone_that_is_none_is_a_problem_of_its_own() {
    let problem = read("0 3 * * *", Some("Europe/Berln")).unwrap_err();
    assert_eq!(
        problem.to_string(),
        "'Europe/Berln' is not a time zone (did you mean 'Europe/Berlin'?); \
         example \"Europe/Berlin\" or \"UTC\""
    );
    let both = read("61 * * * *", Some("nowhere"));
    assert!(matches!(both, Err(Problem::Outside { field: Field::Minute, .. })));
}

#[test]
fn the_shortest_gap_is_found_wherever_it_is() {
    let gap = |text| read(text, None).unwrap().shortest_gap(at(NOON)).unwrap();
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
fn the_usual_schedules_have_words() {
    let words = |text| read(text, Some("Europe/Berlin")).unwrap().words();
    for (text, say) in [
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
        assert_eq!(words(text), format!("{say} (Europe/Berlin)"), "{text}");
    }
    assert!(read("0 3 * * *", None).unwrap().words().ends_with("(UTC)"));
}

proptest! {
    #[test]
    fn what_passes_our_eyes_passes_the_parser_and_runs_or_never_does(
        minute in "(\\*|[0-9]{1,2}|\\*/[0-9]{1,2}|[0-9]-[0-9]{2}|[0-9]{1,2},[0-9])",
        hour in "(\\*|[0-9]{1,2}|[0-9]-[0-9]{1,2}/[1-9])",
        day in "(\\*|\\?|L|LW|[0-9]{1,2}|[0-9]{1,2}W|[0-9]{1,2}-[0-9]{2})",
        month in "(\\*|[0-9]{1,2}|jan|Feb-OCT|\\*/[0-9])",
        weekday in "(\\*|\\?|[0-9]|[0-9]L|sun|Mon-SUN|fri#[0-9]|[0-9]#[0-9]|TUEL)",
    ) {
        let text = format!("{minute} {hour} {day} {month} {weekday}");
        match read(&text, None) {
            Ok(plan) => {
                let after = at(NOON);
                match plan.next(after) {
                    Ok(next) => prop_assert!(next > after),
                    Err(problem) => prop_assert_eq!(problem, Problem::Never),
                }
            }
            Err(Problem::NotUnderstood { text }) => prop_assert!(false, "{} is read twice", text),
            Err(_) => {}
        }
    }

    #[test]
    fn whatever_arrives_is_no_panic(text in "\\PC{0,40}", zone in "\\PC{0,20}") {
        if let Err(problem) = read(&text, Some(&zone)) {
            prop_assert!(problem.to_string().contains("; example "));
        }
    }
}
