//! What stays in a Lease and what changes, one sentence each.

use super::*;
use crate::leader_election::state::LeaseRecord;

fn holder(identity: &str) -> LeaseHolder<'_> {
    LeaseHolder { identity, acquired: Timestamp::UNIX_EPOCH, duration: Duration::from_secs(15) }
}

/// A Lease as the API server gives it, with an annotation of another writer.
fn read() -> Lease {
    let lease_ref = LeaseRef { namespace: "space", name: "lease" };
    let mut lease = created(lease_ref, &holder("other"), Timestamp::UNIX_EPOCH);
    lease.metadata.uid = Some("one".to_owned());
    lease.metadata.resource_version = Some("7".to_owned());
    let note = ("note".to_owned(), "kept".to_owned());
    lease.metadata.annotations = Some([note].into());
    lease
}

#[test]
fn every_replacement_names_the_lease_and_the_version_that_were_read() {
    let read = read();
    let now = Timestamp::UNIX_EPOCH;
    for written in
        [held(&read, &holder("me"), now), released(&read, false, now), released(&read, true, now)]
    {
        assert_eq!(written.metadata.uid, read.metadata.uid);
        assert_eq!(written.metadata.resource_version, read.metadata.resource_version);
        let notes = written.metadata.annotations.unwrap();
        assert_eq!(notes.get("note").map(String::as_str), Some("kept"));
    }
}

#[test]
fn the_mark_of_a_release_is_written_by_a_release_and_goes_with_the_next_holder() {
    let free = released(&read(), false, Timestamp::UNIX_EPOCH);
    assert!(LeaseRecord::from_lease(&free).released);
    let acquisition = held(&free, &holder("me"), Timestamp::UNIX_EPOCH);
    let notes = acquisition.metadata.annotations.as_ref().unwrap();
    assert!(!notes.contains_key(names::RELEASED_ANNOTATION));
}

#[test]
fn a_release_during_probation_leaves_no_mark() {
    let free = released(&read(), true, Timestamp::UNIX_EPOCH);
    let record = LeaseRecord::from_lease(&free);
    assert_eq!((record.holder, record.released), (None, false));
}

#[test]
fn only_a_change_of_hands_is_a_transition() {
    let transitions = |lease: Lease| lease.spec.unwrap().lease_transitions;
    let renewed = held(&read(), &holder("other"), Timestamp::UNIX_EPOCH);
    assert_eq!(transitions(renewed), Some(0));
    let acquisition = held(&read(), &holder("me"), Timestamp::UNIX_EPOCH);
    assert_eq!(transitions(acquisition), Some(1));
}
