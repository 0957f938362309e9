//! Tests of which Secrets are written, when, and why.

use super::super::client_secret::{ClientSecret, fields};
use super::super::lifetimes::{is_renewal_due, renewal_time};
use super::super::secrets_plan::{
    CertificateError, SecretWrite, SecretsPlan, SecretsState, WriteReason, plan_secrets,
};
use super::super::source::SourceStates;
use super::super::trust_state::TrustStates;
use super::*;
use crate::etcd_cluster::state::Reading;

const DAY: i64 = 24 * 60 * 60;

/// A cluster with one member; all Secrets were written at the start.
fn fresh(ca_set: &CaSet) -> SecretsState {
    let (certs, client_secret) = (certs(ca_set), client_secret(ca_set, &[name("main-a")], at(0)));
    SecretsState {
        ca_set: Reading::Known(Some(Ok(ca_set.clone()))),
        trust_states: TrustStates::managed(),
        sources: SourceStates::managed(),
        members: vec![(name("main-a"), Reading::Known(Some(Ok(certs))))],
        client_secret: Reading::Known(Some((client_secret, None))),
    }
}

fn plan(state: &SecretsState, now: Timestamp) -> SecretsPlan {
    plan_secrets(&blueprint(&spec()), state, &[name("main-a")], Lifetimes::default(), now)
}

fn invalid(key: &'static str) -> InvalidSecret {
    InvalidSecret { secret: "main-ca".to_owned(), key, error: ParseError::NotPem }
}

/// Both certificates are issued again.
fn renewed(ca_set: &CaSet) -> SecretWrite {
    let (client_ca, peer_ca) = (ca_set.client_bundle(), ca_set.peer_bundle());
    let plan =
        MemberCertPlan { server: LeafSource::Issue, peer: LeafSource::Issue, client_ca, peer_ca };
    SecretWrite::Member(name("main-a"), Box::new(plan))
}

#[test]
fn renewal_is_due_after_two_thirds_of_the_lifetime() {
    let ca_set = ca_set();
    let key_pair = issuer(&ca_set, at(0)).operator().unwrap();
    let (from, until) = (key_pair.certificate.from, key_pair.certificate.until);
    assert_eq!(until, at(90 * DAY));
    assert_eq!(from, at(-300));
    assert_eq!(renewal_time(&key_pair.certificate), at(-300 + (90 * DAY + 300) / 3 * 2));
    assert!(!is_renewal_due(&key_pair.certificate, at(59 * DAY)));
    assert!(is_renewal_due(&key_pair.certificate, at(61 * DAY)));
}

#[test]
fn valid_secrets_are_not_written_until_renewal_is_due() {
    let ca_set = ca_set();
    let state = fresh(&ca_set);
    let SecretsPlan { writes, error, next_renewal } = plan(&state, at(DAY));
    assert_eq!((writes, error), (vec![], None));
    let next = next_renewal.unwrap();
    assert!(at(59 * DAY) < next && next < at(61 * DAY), "{next}");
    assert_eq!(plan(&state, at(59 * DAY)).writes, []);
    let writes = plan(&state, at(61 * DAY)).writes;
    assert_eq!(
        writes,
        [
            (renewed(&ca_set), WriteReason::RenewalDue),
            (SecretWrite::ClientCert, WriteReason::RenewalDue)
        ]
    );
}

#[test]
fn cas_are_created_before_all_other_secrets() {
    let ca_set = ca_set();
    let mut state = SecretsState {
        ca_set: Reading::Known(None),
        trust_states: TrustStates::managed(),
        sources: SourceStates::managed(),
        members: vec![(name("main-a"), Reading::Known(None))],
        client_secret: Reading::Known(None),
    };
    let first = plan(&state, at(0));
    assert_eq!(first.writes, [(SecretWrite::CreateCa, WriteReason::Missing)]);
    state.ca_set = Reading::Known(Some(Ok(ca_set.clone())));
    let then = plan(&state, at(0));
    let missing = WriteReason::Missing;
    assert_eq!(
        then.writes,
        [(renewed(&ca_set), missing.clone()), (SecretWrite::ClientCert, missing)]
    );
    assert!(then.next_renewal.unwrap() > at(59 * DAY), "renewal of the new certificates");
}

#[test]
fn unknown_secrets_are_not_written() {
    let ca_set = ca_set();
    let unknown = SecretsState { ca_set: Reading::Unknown, ..fresh(&ca_set) };
    assert_eq!(plan(&unknown, at(61 * DAY)).writes, []);
    let mut state = fresh(&ca_set);
    state.members = vec![(name("main-a"), Reading::Unknown)];
    state.client_secret = Reading::Unknown;
    assert_eq!(plan(&state, at(61 * DAY)).writes, []);
}

#[test]
fn invalid_or_lost_cas_are_never_replaced_under_running_members() {
    let state = fresh(&ca_set());
    let damaged =
        SecretsState { ca_set: Reading::Known(Some(Err(invalid("peer.key")))), ..state.clone() };
    let SecretsPlan { writes, error, .. } = plan(&damaged, at(DAY));
    assert_eq!(
        (writes, error),
        (vec![], Some(CertificateError::InvalidSecret(invalid("peer.key"))))
    );
    let mut lost = SecretsState { ca_set: Reading::Known(None), ..state };
    assert_eq!(plan(&lost, at(DAY)).error, Some(CertificateError::CaSecretLost));
    lost.members = vec![(name("main-a"), Reading::Unknown)];
    assert_eq!(
        plan(&lost, at(DAY)).error,
        Some(CertificateError::CaSecretLost),
        "the unknown Secret may be in use"
    );
}

#[test]
fn certificate_of_another_ca_is_replaced() {
    let (current, other) = (ca_set(), ca_set());
    let state = SecretsState { ca_set: Reading::Known(Some(Ok(current.clone()))), ..fresh(&other) };
    let writes = plan(&state, at(DAY)).writes;
    let reason = WriteReason::Untrusted;
    assert_eq!(writes, [(renewed(&current), reason.clone()), (SecretWrite::ClientCert, reason)]);
}

#[test]
fn certificate_with_other_sans_is_replaced() {
    let ca_set = ca_set();
    let mut state = fresh(&ca_set);
    let certs = member(&ca_set, &name("main-b"), at(0));
    state.members = vec![(name("main-a"), Reading::Known(Some(Ok(certs))))];
    assert_eq!(plan(&state, at(DAY)).writes, [(renewed(&ca_set), WriteReason::SanMismatch)]);
}

#[test]
fn invalid_certificate_is_replaced() {
    let ca_set = ca_set();
    let mut state = fresh(&ca_set);
    state.members = vec![(name("main-a"), Reading::Known(Some(Err(invalid("peer.crt")))))];
    let writes = plan(&state, at(DAY)).writes;
    assert_eq!(writes, [(renewed(&ca_set), WriteReason::Invalid(invalid("peer.crt")))]);
}

#[test]
fn new_members_are_published_to_applications_without_a_new_key() {
    let ca_set = ca_set();
    let (state, spec) = (fresh(&ca_set), spec());
    let both = [name("main-a"), name("main-b")];
    let plan = plan_secrets(&blueprint(&spec), &state, &both, Lifetimes::default(), at(DAY));
    let [(SecretWrite::ClientFields(client_secret), WriteReason::ContentChanged)] =
        plan.writes.as_slice()
    else {
        panic!("{plan:?}");
    };
    assert_eq!(client_secret.fields, fields(&blueprint(&spec), &both));
    let Reading::Known(Some((existing, None))) = state.client_secret else {
        panic!("the client Secret exists")
    };
    assert!(client_secret.key_pair.is_some(), "the key pair is missing");
    assert_eq!(client_secret.key_pair, existing.key_pair);
}

#[test]
fn certificate_that_expires_with_its_ca_is_not_issued_repeatedly() {
    let ca_set = ca_set();
    let (late, later) = (at(3640 * DAY), at(3649 * DAY));
    let mut state = fresh(&ca_set);
    let certs = member(&ca_set, &name("main-a"), late);
    state.members = vec![(name("main-a"), Reading::Known(Some(Ok(certs))))];
    state.client_secret = Reading::Unknown;
    let SecretsPlan { writes, next_renewal, .. } = plan(&state, later);
    assert_eq!((writes, next_renewal), (vec![], None));
    assert_eq!(plan(&state, at(3651 * DAY)).error, Some(CertificateError::CaExpired));
}

#[test]
fn plaintext_client_secret_has_http_endpoints_and_no_keys() {
    let open = cluster(json!({"tls": {"client": {"source": "Disabled"}}}));
    let blueprint = blueprint(&open);
    let members = [name("main-a")];
    let mut state = fresh(&ca_set());
    let plan = |state: &SecretsState| {
        plan_secrets(&blueprint, state, &members, Lifetimes::default(), at(DAY)).writes
    };
    let desired = ClientSecret::plaintext(fields(&blueprint, &members));
    assert_eq!(desired.fields["uri"], "http://main-client.space.svc:2379");
    assert_eq!(desired.fields["endpoints"], "http://main-a.space.svc:2379");
    assert_eq!(desired.secret(&blueprint).data.unwrap().len(), 6, "no keys");
    let written =
        (SecretWrite::ClientFields(Box::new(desired.clone())), WriteReason::ContentChanged);
    assert_eq!(plan(&state), [written]);
    state.client_secret = Reading::Known(Some((desired.clone(), None)));
    assert_eq!(plan(&state), []);
    state.client_secret = Reading::Known(None);
    assert_eq!(
        plan(&state),
        [(SecretWrite::ClientFields(Box::new(desired)), WriteReason::Missing)]
    );
}
