//! Which fields of a Lease a write changes and which it preserves.

use super::*;
use crate::leader_election::state::LeaseRecord;

fn holder(identity: &str) -> LeaseHolder<'_> {
    LeaseHolder { identity, acquired: Timestamp::UNIX_EPOCH, duration: Duration::from_secs(15) }
}

/// A Lease as read from the API server, with an annotation of another writer.
fn read() -> Lease {
    let lease_ref = LeaseRef { namespace: "space", name: "lease" };
    let mut lease = created(lease_ref, &holder("other"), Timestamp::UNIX_EPOCH);
    lease.metadata.uid = Some("one".to_owned());
    lease.metadata.resource_version = Some("7".to_owned());
    let annotation = ("other".to_owned(), "preserved".to_owned());
    lease.metadata.annotations = Some([annotation].into());
    lease
}

#[test]
fn every_replacement_carries_the_uid_and_resource_version_that_were_read() {
    let read = read();
    let now = Timestamp::UNIX_EPOCH;
    for written in
        [held(&read, &holder("me"), now), released(&read, false, now), released(&read, true, now)]
    {
        assert_eq!(written.metadata.uid, read.metadata.uid);
        assert_eq!(written.metadata.resource_version, read.metadata.resource_version);
        let annotations = written.metadata.annotations.unwrap();
        assert_eq!(annotations.get("other").map(String::as_str), Some("preserved"));
    }
}

#[test]
fn release_mark_is_written_on_release_and_removed_by_the_next_holder() {
    let released = released(&read(), false, Timestamp::UNIX_EPOCH);
    assert!(LeaseRecord::from_lease(&released).released);
    let acquired = held(&released, &holder("me"), Timestamp::UNIX_EPOCH);
    let annotations = acquired.metadata.annotations.as_ref().unwrap();
    assert!(!annotations.contains_key(names::RELEASED_ANNOTATION));
}

#[test]
fn release_during_probation_writes_no_mark() {
    let released = released(&read(), true, Timestamp::UNIX_EPOCH);
    let record = LeaseRecord::from_lease(&released);
    assert_eq!((record.holder, record.released), (None, false));
}

#[test]
fn only_a_change_of_the_holder_counts_as_a_transition() {
    let transitions = |lease: Lease| lease.spec.unwrap().lease_transitions;
    let renewed = held(&read(), &holder("other"), Timestamp::UNIX_EPOCH);
    assert_eq!(transitions(renewed), Some(0));
    let acquired = held(&read(), &holder("me"), Timestamp::UNIX_EPOCH);
    assert_eq!(transitions(acquired), Some(1));
}
