//! Which Secrets are written, when, and why.

use super::super::binding::{Binding, words};
use super::super::footing::Footings;
use super::super::lifetimes::{due, due_at};
use super::super::offer::Offers;
use super::super::wanted::{Because, Looked, Stuck, Wanted, Write, wanted};
use super::*;
use crate::etcd_cluster::seen::Reading;

const DAY: i64 = 24 * 60 * 60;

/// A cluster with one member, whose Secrets were all written at the start.
fn fresh(ring: &Ring) -> Looked {
    let (leaves, binding) = (leaves(ring), binding(ring, &[name("main-a")], at(0)));
    Looked {
        ring: Reading::Known(Some(Ok(ring.clone()))),
        footings: Footings::plain(),
        offers: Offers::ours(),
        members: vec![(name("main-a"), Reading::Known(Some(Ok(leaves))))],
        binding: Reading::Known(Some((binding, None))),
    }
}

fn decided(looked: &Looked, now: Timestamp) -> Wanted {
    wanted(&blueprint(&spec()), looked, &[name("main-a")], Lifetimes::default(), now)
}

fn broken(key: &'static str) -> Broken {
    Broken { secret: "main-ca".to_owned(), key, why: Unfit::NotPem }
}

/// Both certificates are signed anew.
fn renewed(ring: &Ring) -> Write {
    let (client_ca, peer_ca) = (ring.for_clients(), ring.for_peers());
    let draft = Draft { server: Part::Sign, peer: Part::Sign, client_ca, peer_ca };
    Write::Member(name("main-a"), Box::new(draft))
}

#[test]
fn something_is_due_after_two_thirds_of_its_life() {
    let ring = ring();
    let pair = signing(&ring, at(0)).operator().unwrap();
    let (from, until) = (pair.certificate.from, pair.certificate.until);
    assert_eq!(until, at(90 * DAY));
    assert_eq!(from, at(-300));
    assert_eq!(due_at(&pair.certificate), at(-300 + (90 * DAY + 300) / 3 * 2));
    assert!(!due(&pair.certificate, at(59 * DAY)));
    assert!(due(&pair.certificate, at(61 * DAY)));
}

#[test]
fn what_is_as_it_should_be_is_left_alone_until_it_is_due() {
    let ring = ring();
    let looked = fresh(&ring);
    let Wanted { writes, stuck, next } = decided(&looked, at(DAY));
    assert_eq!((writes, stuck), (vec![], None));
    let next = next.unwrap();
    assert!(at(59 * DAY) < next && next < at(61 * DAY), "{next}");
    assert_eq!(decided(&looked, at(59 * DAY)).writes, []);
    let writes = decided(&looked, at(61 * DAY)).writes;
    assert_eq!(writes, [(renewed(&ring), Because::Old), (Write::Binding, Because::Old)]);
}

#[test]
fn nothing_is_there_so_authorities_come_first_and_then_the_rest() {
    let ring = ring();
    let mut looked = Looked {
        ring: Reading::Known(None),
        footings: Footings::plain(),
        offers: Offers::ours(),
        members: vec![(name("main-a"), Reading::Known(None))],
        binding: Reading::Known(None),
    };
    let first = decided(&looked, at(0));
    assert_eq!(first.writes, [(Write::Authorities, Because::Missing)]);
    looked.ring = Reading::Known(Some(Ok(ring.clone())));
    let then = decided(&looked, at(0));
    let missing = Because::Missing;
    assert_eq!(then.writes, [(renewed(&ring), missing.clone()), (Write::Binding, missing)]);
    assert!(then.next.unwrap() > at(59 * DAY), "what is written now is due then");
}

#[test]
fn what_could_not_be_read_is_not_written() {
    let ring = ring();
    let unknown = Looked { ring: Reading::Unknown, ..fresh(&ring) };
    assert_eq!(decided(&unknown, at(61 * DAY)).writes, []);
    let mut looked = fresh(&ring);
    looked.members = vec![(name("main-a"), Reading::Unknown)];
    looked.binding = Reading::Unknown;
    assert_eq!(decided(&looked, at(61 * DAY)).writes, []);
}

#[test]
fn authorities_that_are_broken_or_lost_are_never_replaced_under_running_members() {
    let looked = fresh(&ring());
    let damaged = Looked { ring: Reading::Known(Some(Err(broken("peer.key")))), ..looked.clone() };
    let Wanted { writes, stuck, .. } = decided(&damaged, at(DAY));
    assert_eq!((writes, stuck), (vec![], Some(Stuck::Broken(broken("peer.key")))));
    let mut lost = Looked { ring: Reading::Known(None), ..looked };
    assert_eq!(decided(&lost, at(DAY)).stuck, Some(Stuck::Lost));
    lost.members = vec![(name("main-a"), Reading::Unknown)];
    assert_eq!(decided(&lost, at(DAY)).stuck, Some(Stuck::Lost), "it may be in use");
}

#[test]
fn what_another_authority_signed_is_signed_again() {
    let (own, other) = (ring(), ring());
    let looked = Looked { ring: Reading::Known(Some(Ok(own.clone()))), ..fresh(&other) };
    let writes = decided(&looked, at(DAY)).writes;
    let because = Because::NotTaken;
    assert_eq!(writes, [(renewed(&own), because.clone()), (Write::Binding, because)]);
}

#[test]
fn what_is_good_for_other_hosts_is_signed_again() {
    let ring = ring();
    let mut looked = fresh(&ring);
    let leaves = member(&ring, &name("main-b"), at(0));
    looked.members = vec![(name("main-a"), Reading::Known(Some(Ok(leaves))))];
    assert_eq!(decided(&looked, at(DAY)).writes, [(renewed(&ring), Because::OtherHosts)]);
}

#[test]
fn what_is_broken_is_signed_again() {
    let ring = ring();
    let mut looked = fresh(&ring);
    looked.members = vec![(name("main-a"), Reading::Known(Some(Err(broken("peer.crt")))))];
    let writes = decided(&looked, at(DAY)).writes;
    assert_eq!(writes, [(renewed(&ring), Because::Broken(broken("peer.crt")))]);
}

#[test]
fn other_members_are_told_to_applications_without_a_new_key() {
    let ring = ring();
    let (looked, spec) = (fresh(&ring), spec());
    let both = [name("main-a"), name("main-b")];
    let wanted = wanted(&blueprint(&spec), &looked, &both, Lifetimes::default(), at(DAY));
    let [(Write::Words(binding), Because::OtherWords)] = wanted.writes.as_slice() else {
        panic!("{wanted:?}");
    };
    assert_eq!(binding.words, words(&blueprint(&spec), &both));
    let Reading::Known(Some((held, None))) = looked.binding else { panic!("it was there") };
    assert!(binding.pair.is_some(), "the key is gone");
    assert_eq!(binding.pair, held.pair);
}

#[test]
fn what_ends_with_its_authority_is_not_signed_over_and_over() {
    let ring = ring();
    let (late, later) = (at(3640 * DAY), at(3649 * DAY));
    let mut looked = fresh(&ring);
    let leaves = member(&ring, &name("main-a"), late);
    looked.members = vec![(name("main-a"), Reading::Known(Some(Ok(leaves))))];
    looked.binding = Reading::Unknown;
    let Wanted { writes, next, .. } = decided(&looked, later);
    assert_eq!((writes, next), (vec![], None));
    assert_eq!(decided(&looked, at(3651 * DAY)).stuck, Some(Stuck::Expired));
}

#[test]
fn where_connections_are_in_the_clear_applications_are_told_so_and_given_no_keys() {
    let open = cluster(json!({"tls": {"client": {"source": "Disabled"}}}));
    let blueprint = blueprint(&open);
    let members = [name("main-a")];
    let mut looked = fresh(&ring());
    let decided = |looked: &Looked| {
        wanted(&blueprint, looked, &members, Lifetimes::default(), at(DAY)).writes
    };
    let plain = Binding::open(words(&blueprint, &members));
    assert_eq!(plain.words["uri"], "http://main-client.space.svc:2379");
    assert_eq!(plain.words["endpoints"], "http://main-a.space.svc:2379");
    assert_eq!(plain.secret(&blueprint).data.unwrap().len(), 6, "no keys");
    let written = (Write::Words(Box::new(plain.clone())), Because::OtherWords);
    assert_eq!(decided(&looked), [written]);
    looked.binding = Reading::Known(Some((plain.clone(), None)));
    assert_eq!(decided(&looked), []);
    looked.binding = Reading::Known(None);
    assert_eq!(decided(&looked), [(Write::Words(Box::new(plain)), Because::Missing)]);
}
