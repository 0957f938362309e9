//! Classified responses, and counts.

use super::*;

fn key(version: &str) -> ObjectKey {
    let text = str::to_owned;
    ObjectKey {
        namespace: text("space"),
        name: text("one"),
        uid: text("1"),
        resource_version: text(version),
    }
}

#[test]
fn object_whose_resource_version_is_unchanged_was_current() {
    let accepted =
        |version: &str| classify_response(&key("5"), WriteResponse::Accepted(version.to_owned()));
    assert_eq!(accepted("5"), Some(ObjectOutcome::Current));
    assert_eq!(accepted("9"), Some(ObjectOutcome::Rewritten));
    assert_eq!(classify_response(&key("5"), WriteResponse::Conflict), None, "must be read");
}

#[test]
fn conflict_counts_as_current_only_if_the_object_was_written_after_the_start() {
    let conflict = |found: Option<ObjectKey>| classify_conflict(&key("5"), 7, found.as_ref());
    assert_eq!(conflict(None), ObjectOutcome::Deleted);
    assert_eq!(conflict(Some(key("8"))), ObjectOutcome::Current);
    let recreated = ObjectKey { uid: "2".to_owned(), ..key("5") };
    assert_eq!(conflict(Some(recreated)), ObjectOutcome::Current);
    let unchanged = conflict(Some(key("5")));
    assert!(matches!(unchanged, ObjectOutcome::Failed(_)), "conflict of a webhook");
    assert!(matches!(conflict(Some(key("no number"))), ObjectOutcome::Failed(_)));
}

#[test]
fn retried_page_counts_each_write_once() {
    let mut page = PageResult::default();
    for outcome in [
        ObjectOutcome::Current,
        ObjectOutcome::Current,
        ObjectOutcome::Rewritten,
        ObjectOutcome::Unknown("timeout".to_owned()),
    ] {
        page.add(&key("5"), outcome);
    }
    page.add_earlier(1);
    let counts = Counts { listed: 3, written: 2, current: 1, ..Counts::default() };
    assert_eq!(page.counts, counts);
    page.fail_unknown();
    assert_eq!(page.counts, Counts { listed: 4, failed: 1, ..counts });
    assert_eq!(page.failures.len(), 1);
}
