//! What answers mean, and what is counted.

use super::*;

fn listed(version: &str) -> Listed {
    let text = str::to_owned;
    Listed { namespace: text("space"), name: text("one"), uid: text("1"), version: text(version) }
}

#[test]
fn an_object_whose_version_stays_was_stored_as_it_should_be() {
    let taken = |version: &str| fate(&listed("5"), Answer::Taken(version.to_owned()));
    assert_eq!(taken("5"), Some(Fate::Fresh));
    assert_eq!(taken("9"), Some(Fate::Written));
    assert_eq!(fate(&listed("5"), Answer::Conflict), None, "somebody must look");
}

#[test]
fn a_conflict_is_believed_only_if_the_object_was_written_after_the_beginning() {
    let conflict = |found: Option<Listed>| fate_in_conflict(&listed("5"), 7, found.as_ref());
    assert_eq!(conflict(None), Fate::Gone);
    assert_eq!(conflict(Some(listed("8"))), Fate::Fresh);
    assert_eq!(conflict(Some(Listed { uid: "2".to_owned(), ..listed("5") })), Fate::Fresh);
    assert!(matches!(conflict(Some(listed("5"))), Fate::Failed(_)), "a webhook answered so");
    assert!(matches!(conflict(Some(listed("no number"))), Fate::Failed(_)));
}

#[test]
fn a_page_that_is_tried_again_counts_each_write_once() {
    let mut paged = Paged::default();
    for fate in [Fate::Fresh, Fate::Fresh, Fate::Written, Fate::Unknown("silence".to_owned())] {
        paged.add(&listed("5"), fate);
    }
    paged.carry(1);
    let counted = Tally { looked: 3, written: 2, fresh: 1, ..Tally::default() };
    assert_eq!(paged.tally, counted);
    paged.give_up();
    assert_eq!(paged.tally, Tally { looked: 4, failed: 1, ..counted });
    assert_eq!(paged.failures.len(), 1);
}
