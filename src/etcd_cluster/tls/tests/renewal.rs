//! Which Secrets are written, when, and why.

use super::super::client_secret::{ClientSecret, fields};
use super::super::lifetimes::{due, due_at};
use super::super::secrets_plan::{
    CertificateError, SecretWrite, SecretsPlan, SecretsState, WriteReason, plan_secrets,
};
use super::super::source::SourceStates;
use super::super::trust_state::TrustStates;
use super::*;
use crate::etcd_cluster::state::Reading;

const DAY: i64 = 24 * 60 * 60;

/// A cluster with one member, whose Secrets were all written at the start.
fn fresh(ring: &CaSet) -> SecretsState {
    let (leaves, binding) = (leaves(ring), binding(ring, &[name("main-a")], at(0)));
    SecretsState {
        ring: Reading::Known(Some(Ok(ring.clone()))),
        footings: TrustStates::managed(),
        offers: SourceStates::managed(),
        members: vec![(name("main-a"), Reading::Known(Some(Ok(leaves))))],
        binding: Reading::Known(Some((binding, None))),
    }
}

fn decided(looked: &SecretsState, now: Timestamp) -> SecretsPlan {
    plan_secrets(&blueprint(&spec()), looked, &[name("main-a")], Lifetimes::default(), now)
}

fn broken(key: &'static str) -> InvalidSecret {
    InvalidSecret { secret: "main-ca".to_owned(), key, why: ParseError::NotPem }
}

/// Both certificates are signed anew.
fn renewed(ring: &CaSet) -> SecretWrite {
    let (client_ca, peer_ca) = (ring.for_clients(), ring.for_peers());
    let draft =
        MemberCertPlan { server: LeafSource::Issue, peer: LeafSource::Issue, client_ca, peer_ca };
    SecretWrite::Member(name("main-a"), Box::new(draft))
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
    let SecretsPlan { writes, stuck, next } = decided(&looked, at(DAY));
    assert_eq!((writes, stuck), (vec![], None));
    let next = next.unwrap();
    assert!(at(59 * DAY) < next && next < at(61 * DAY), "{next}");
    assert_eq!(decided(&looked, at(59 * DAY)).writes, []);
    let writes = decided(&looked, at(61 * DAY)).writes;
    assert_eq!(
        writes,
        [
            (renewed(&ring), WriteReason::RenewalDue),
            (SecretWrite::ClientCert, WriteReason::RenewalDue)
        ]
    );
}

#[test]
fn nothing_is_there_so_authorities_come_first_and_then_the_rest() {
    let ring = ring();
    let mut looked = SecretsState {
        ring: Reading::Known(None),
        footings: TrustStates::managed(),
        offers: SourceStates::managed(),
        members: vec![(name("main-a"), Reading::Known(None))],
        binding: Reading::Known(None),
    };
    let first = decided(&looked, at(0));
    assert_eq!(first.writes, [(SecretWrite::CreateCa, WriteReason::Missing)]);
    looked.ring = Reading::Known(Some(Ok(ring.clone())));
    let then = decided(&looked, at(0));
    let missing = WriteReason::Missing;
    assert_eq!(
        then.writes,
        [(renewed(&ring), missing.clone()), (SecretWrite::ClientCert, missing)]
    );
    assert!(then.next.unwrap() > at(59 * DAY), "what is written now is due then");
}

#[test]
fn what_could_not_be_read_is_not_written() {
    let ring = ring();
    let unknown = SecretsState { ring: Reading::Unknown, ..fresh(&ring) };
    assert_eq!(decided(&unknown, at(61 * DAY)).writes, []);
    let mut looked = fresh(&ring);
    looked.members = vec![(name("main-a"), Reading::Unknown)];
    looked.binding = Reading::Unknown;
    assert_eq!(decided(&looked, at(61 * DAY)).writes, []);
}

#[test]
fn authorities_that_are_broken_or_lost_are_never_replaced_under_running_members() {
    let looked = fresh(&ring());
    let damaged =
        SecretsState { ring: Reading::Known(Some(Err(broken("peer.key")))), ..looked.clone() };
    let SecretsPlan { writes, stuck, .. } = decided(&damaged, at(DAY));
    assert_eq!(
        (writes, stuck),
        (vec![], Some(CertificateError::InvalidSecret(broken("peer.key"))))
    );
    let mut lost = SecretsState { ring: Reading::Known(None), ..looked };
    assert_eq!(decided(&lost, at(DAY)).stuck, Some(CertificateError::CaSecretLost));
    lost.members = vec![(name("main-a"), Reading::Unknown)];
    assert_eq!(
        decided(&lost, at(DAY)).stuck,
        Some(CertificateError::CaSecretLost),
        "it may be in use"
    );
}

#[test]
fn what_another_authority_signed_is_signed_again() {
    let (own, other) = (ring(), ring());
    let looked = SecretsState { ring: Reading::Known(Some(Ok(own.clone()))), ..fresh(&other) };
    let writes = decided(&looked, at(DAY)).writes;
    let because = WriteReason::Untrusted;
    assert_eq!(writes, [(renewed(&own), because.clone()), (SecretWrite::ClientCert, because)]);
}

#[test]
fn what_is_good_for_other_hosts_is_signed_again() {
    let ring = ring();
    let mut looked = fresh(&ring);
    let leaves = member(&ring, &name("main-b"), at(0));
    looked.members = vec![(name("main-a"), Reading::Known(Some(Ok(leaves))))];
    assert_eq!(decided(&looked, at(DAY)).writes, [(renewed(&ring), WriteReason::SanMismatch)]);
}

#[test]
fn what_is_broken_is_signed_again() {
    let ring = ring();
    let mut looked = fresh(&ring);
    looked.members = vec![(name("main-a"), Reading::Known(Some(Err(broken("peer.crt")))))];
    let writes = decided(&looked, at(DAY)).writes;
    assert_eq!(writes, [(renewed(&ring), WriteReason::Invalid(broken("peer.crt")))]);
}

#[test]
fn other_members_are_told_to_applications_without_a_new_key() {
    let ring = ring();
    let (looked, spec) = (fresh(&ring), spec());
    let both = [name("main-a"), name("main-b")];
    let wanted = plan_secrets(&blueprint(&spec), &looked, &both, Lifetimes::default(), at(DAY));
    let [(SecretWrite::ClientFields(binding), WriteReason::ContentChanged)] =
        wanted.writes.as_slice()
    else {
        panic!("{wanted:?}");
    };
    assert_eq!(binding.words, fields(&blueprint(&spec), &both));
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
    let SecretsPlan { writes, next, .. } = decided(&looked, later);
    assert_eq!((writes, next), (vec![], None));
    assert_eq!(decided(&looked, at(3651 * DAY)).stuck, Some(CertificateError::CaExpired));
}

#[test]
fn where_connections_are_in_the_clear_applications_are_told_so_and_given_no_keys() {
    let open = cluster(json!({"tls": {"client": {"source": "Disabled"}}}));
    let blueprint = blueprint(&open);
    let members = [name("main-a")];
    let mut looked = fresh(&ring());
    let decided = |looked: &SecretsState| {
        plan_secrets(&blueprint, looked, &members, Lifetimes::default(), at(DAY)).writes
    };
    let plain = ClientSecret::open(fields(&blueprint, &members));
    assert_eq!(plain.words["uri"], "http://main-client.space.svc:2379");
    assert_eq!(plain.words["endpoints"], "http://main-a.space.svc:2379");
    assert_eq!(plain.secret(&blueprint).data.unwrap().len(), 6, "no keys");
    let written = (SecretWrite::ClientFields(Box::new(plain.clone())), WriteReason::ContentChanged);
    assert_eq!(decided(&looked), [written]);
    looked.binding = Reading::Known(Some((plain.clone(), None)));
    assert_eq!(decided(&looked), []);
    looked.binding = Reading::Known(None);
    assert_eq!(
        decided(&looked),
        [(SecretWrite::ClientFields(Box::new(plain)), WriteReason::Missing)]
    );
}
