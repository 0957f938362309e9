//! Tests of the decisions and the record of a trust change.

use std::time::Duration;

use super::super::ca_set::CaSet;
use super::super::readiness::{MemberReadiness, PodTrust, ProbeResults, TlsProbe, WaitingFor};
use super::super::source::DesiredTrust;
use super::super::trust_bundle::{MAX_EXTERNAL_CAS, Side, TrustBundle};
use super::super::trust_change::{TrustChangeContext, TrustDecision, TrustPhase, next};
use super::super::trust_state::{TrustState, TrustStates, TrustStep};
use super::external_secret::{ExternalCa, external_ca};
use super::*;

const DAY: i64 = 24 * 60 * 60;

/// One side of a running cluster with two members.
struct Case {
    ca_set: CaSet,
    trust_state: TrustState,
    desired: Option<DesiredTrust>,
    is_used: bool,
    may_change: bool,
    pods: Vec<PodTrust>,
    results: Option<ProbeResults>,
    now: Timestamp,
}

fn pod(text: &str, hash: &str) -> PodTrust {
    PodTrust {
        member: name(text),
        pod_uid: format!("uid of {text}"),
        trust_hash: Some(hash.to_owned()),
    }
}

fn desired(external: &ExternalCa) -> DesiredTrust {
    let bundle = TrustBundle::external(vec![external.ca.certificate.clone()]);
    DesiredTrust { bundle, operator_cert: Some(external.key_pair.clone()) }
}

fn managed() -> DesiredTrust {
    DesiredTrust { bundle: TrustBundle::managed(), operator_cert: None }
}

impl Case {
    fn of(trust_state: TrustState, desired: DesiredTrust) -> Self {
        Self {
            ca_set: ca_set(),
            trust_state,
            desired: Some(desired),
            is_used: true,
            may_change: true,
            pods: vec![pod("main-a", "now"), pod("main-b", "now")],
            results: None,
            now: at(0),
        }
    }

    fn next(&self) -> TrustDecision {
        let desired_cas = self
            .desired
            .as_ref()
            .map(|desired| desired.bundle.certificates(&self.ca_set, Side::Client));
        let desired_cas = desired_cas.unwrap_or_default();
        let context = TrustChangeContext {
            trust_state: &self.trust_state,
            desired: self.desired.as_ref(),
            is_used: self.is_used,
            may_change: self.may_change,
            overlap: Duration::from_hours(24),
            now: self.now,
            confirmed_cas: &self.trust_state.confirmed.certificates(&self.ca_set, Side::Client),
            desired_cas: &desired_cas,
            readiness: MemberReadiness {
                trust_hash: "now",
                members: &[name("main-a"), name("main-b")],
                pods: &self.pods,
            },
        };
        next(&context, self.results.as_ref())
    }

    /// The case after the next step.
    fn applied(mut self) -> Self {
        let TrustDecision::Apply(step) = self.next() else { panic!("{:?}", self.next()) };
        let both = TrustStates { client: self.trust_state, peer: TrustState::managed() };
        self.trust_state = both.apply(&[(Side::Client, step)], self.now).client;
        self
    }

    fn later(mut self, second: i64) -> Self {
        self.now = at(second);
        self
    }

    fn probed(mut self, a: TlsProbe, b: TlsProbe) -> Self {
        self.results = Some([(name("main-a"), a), (name("main-b"), b)].into());
        self
    }
}

#[test]
fn unused_side_is_initialized_with_the_desired_trust() {
    let external = external_ca();
    let mut case = Case::of(TrustState::managed(), desired(&external));
    case.is_used = false;
    case.may_change = false;
    let case = case.applied();
    assert!(case.trust_state.is_complete(&desired(&external)));
    assert_eq!(case.trust_state.operator_cert, Some(external.key_pair));
    assert_eq!(case.next(), TrustDecision::Idle);
}

#[test]
fn new_cas_are_added_then_used_then_trusted_alone() {
    let external = external_ca();
    let case = Case::of(TrustState::managed(), desired(&external)).applied();
    let both = TrustBundle::managed().union(&desired(&external).bundle);
    assert_eq!(
        (&case.trust_state.published, &case.trust_state.confirmed),
        (&both, &TrustBundle::managed())
    );
    assert_eq!(case.trust_state.phase(&desired(&external)), TrustPhase::Distributing);
    // All Secrets are up to date: the overlap of one day starts.
    let case = case.applied();
    assert_eq!(case.trust_state.overlap_start, Some((at(0), desired(&external).bundle)));
    assert_eq!(case.next(), TrustDecision::Wait(WaitingFor::Overlap(at(DAY))));
    let case = case.later(DAY);
    assert_eq!(case.next(), TrustDecision::NeedsProbe);
    let case = case.probed(TlsProbe::Ok, TlsProbe::Ok).applied();
    assert_eq!(case.trust_state.confirmed, both);
    assert_eq!(case.trust_state.phase(&desired(&external)), TrustPhase::Retiring);
    // The operator uses the external certificate, and the overlap starts again.
    let case = case.applied();
    assert_eq!(case.trust_state.operator_cert, Some(external.key_pair.clone()));
    let case = case.applied();
    assert_eq!(case.next(), TrustDecision::Wait(WaitingFor::Overlap(at(2 * DAY))));
    let case = case.later(2 * DAY).applied();
    assert_eq!(case.trust_state.phase(&desired(&external)), TrustPhase::Verifying);
    assert_eq!(case.trust_state.published, desired(&external).bundle);
    let case = case.applied();
    assert!(case.trust_state.is_complete(&desired(&external)));
    assert_eq!(case.next(), TrustDecision::Idle);
}

/// A cluster after the managed CAs were removed from the trust bundle.
fn removed(external: &ExternalCa) -> Case {
    let case = Case::of(TrustState::managed(), desired(external)).applied().applied().later(DAY);
    let case = case.probed(TlsProbe::Ok, TlsProbe::Ok).applied().applied().applied();
    let mut case = case.later(2 * DAY).applied();
    case.results = None;
    case
}

#[test]
fn removed_cas_are_recorded_until_every_probe_confirms_the_removal() {
    let external = external_ca();
    let mut case = removed(&external);
    let managed = TrustBundle::managed().certificates(&case.ca_set, Side::Client);
    assert_eq!(case.trust_state.removed_to_verify(&case.ca_set, Side::Client), managed);
    assert!(!case.trust_state.is_complete(&desired(&external)), "a CA rotation must not start");
    assert_eq!(case.next(), TrustDecision::NeedsProbe, "the overlap does not apply");
    case.pods = vec![pod("main-a", "now"), pod("main-b", "before")];
    assert_eq!(case.next(), TrustDecision::Wait(WaitingFor::Restart(vec![name("main-b")])));
    case.pods = vec![pod("main-a", "now"), pod("main-b", "now")];
    let case = case.probed(TlsProbe::Ok, TlsProbe::TrustsOldCa);
    assert_eq!(
        case.next(),
        TrustDecision::Wait(WaitingFor::Probe(name("main-b"), TlsProbe::TrustsOldCa))
    );
    let case = case.probed(TlsProbe::Ok, TlsProbe::Ok);
    assert_eq!(case.next(), TrustDecision::Apply(TrustStep::Finish));
    assert_eq!(case.applied().next(), TrustDecision::Idle);
}

#[test]
fn trust_state_is_not_idle_in_any_phase_of_a_change() {
    let external = external_ca();
    assert!(TrustState::managed().is_idle());
    let requested = Case::of(TrustState::managed(), desired(&external));
    assert_eq!(requested.trust_state.phase(&desired(&external)), TrustPhase::Requested);
    let distributing = requested.applied();
    assert!(!distributing.trust_state.is_idle());
    let retiring = distributing.applied().later(DAY).probed(TlsProbe::Ok, TlsProbe::Ok).applied();
    assert_eq!(retiring.trust_state.phase(&desired(&external)), TrustPhase::Retiring);
    assert!(!retiring.trust_state.is_idle(), "members still trust the managed CAs");
    let removed = removed(&external);
    assert!(!removed.trust_state.is_idle());
    assert!(removed.probed(TlsProbe::Ok, TlsProbe::Ok).applied().trust_state.is_idle());
}

#[test]
fn too_many_cas_are_reported_and_the_previous_source_is_accepted() {
    let several = |count: usize| {
        let all = (0..count).map(|_| external_ca().ca.certificate).collect();
        DesiredTrust { bundle: TrustBundle::external(all), operator_cert: None }
    };
    let (a, b) = (several(MAX_EXTERNAL_CAS), several(MAX_EXTERNAL_CAS));
    let both = a.bundle.union(&b.bundle);
    let trust_state =
        TrustState { confirmed: both.clone(), published: both, ..TrustState::managed() };
    assert_eq!(
        Case::of(trust_state.clone(), several(1)).next(),
        TrustDecision::Wait(WaitingFor::BundleSpace)
    );
    assert_ne!(
        Case::of(trust_state, b).next(),
        TrustDecision::Wait(WaitingFor::BundleSpace),
        "a source whose CAs are trusted already needs no space"
    );
}

#[test]
fn record_of_an_older_release_is_parsed() {
    let existing = ca_set().secret(&blueprint(&spec()));
    let steps = [(Side::Client, TrustStep::Initialize(desired(&external_ca()).bundle, None))];
    let trust_states = TrustStates::managed().apply(&steps, at(0));
    let patch = trust_states.patch(&existing);
    let text: ByteString = serde_json::from_value(patch["data"]["trust-state"].clone()).unwrap();
    let mut record: serde_json::Value = serde_json::from_slice(&text.0).unwrap();
    for side in ["client", "peer"] {
        assert!(record[side].as_object_mut().unwrap().remove("removed").is_some());
    }
    let older = record.to_string();
    assert_eq!(
        TrustStates::read(&with_value(&existing, "trust-state", Some(older.as_bytes()))),
        Ok(trust_states)
    );
}

#[test]
fn removed_ca_that_is_desired_again_is_accepted() {
    let mut case = removed(&external_ca());
    case.desired = Some(managed());
    let case = case.applied();
    assert_eq!(case.trust_state.phase(&managed()), TrustPhase::Distributing);
    assert_eq!(case.trust_state.removed_to_verify(&case.ca_set, Side::Client), []);
}

#[test]
fn removed_cas_are_verified_during_the_next_change() {
    let other = external_ca();
    let mut case = removed(&external_ca());
    case.desired = Some(desired(&other));
    let case = case.applied().applied().later(3 * DAY);
    let managed = TrustBundle::managed().certificates(&case.ca_set, Side::Client);
    assert_eq!(case.trust_state.removed_to_verify(&case.ca_set, Side::Client), managed);
    let case = case.probed(TlsProbe::Ok, TlsProbe::Ok).applied();
    assert_eq!(case.trust_state.removed, [], "the same probes have confirmed the removal");
}

#[test]
fn removed_ca_with_the_subject_of_a_trusted_ca_is_not_verified() {
    // Managed CAs have serial numbers in their subjects; external CAs may not.
    let same_subject = || {
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        Certificate::parse_ca_der(certificate.der()).unwrap()
    };
    let (before, after) = (same_subject(), same_subject());
    assert_ne!(before, after);
    let bundle = TrustBundle::external(vec![after]);
    let old_cas = vec![before];
    let trust_state = TrustState {
        confirmed: bundle.clone(),
        published: bundle,
        removed: old_cas.clone(),
        ..TrustState::managed()
    };
    assert_eq!(trust_state.removed_to_verify(&ca_set(), Side::Client), []);
    let trust_state = TrustState { removed: old_cas.clone(), ..TrustState::managed() };
    assert_eq!(trust_state.removed_to_verify(&ca_set(), Side::Client), old_cas);
}

#[test]
fn leaves_are_not_switched_before_every_probe_succeeded() {
    let case =
        Case::of(TrustState::managed(), desired(&external_ca())).applied().applied().later(DAY);
    let rejected = TrustDecision::Wait(WaitingFor::Probe(name("main-b"), TlsProbe::RejectsNewCa));
    assert_eq!(case.probed(TlsProbe::Ok, TlsProbe::RejectsNewCa).next(), rejected);
    let mut case =
        Case::of(TrustState::managed(), desired(&external_ca())).applied().applied().later(DAY);
    case.pods = vec![pod("main-a", "now"), pod("main-b", "before")];
    assert_eq!(case.next(), TrustDecision::Wait(WaitingFor::Restart(vec![name("main-b")])));
    case.pods = vec![pod("main-a", "now")];
    assert_eq!(case.next(), TrustDecision::Wait(WaitingFor::Restart(vec![name("main-b")])));
}

#[test]
fn new_certificate_of_a_confirmed_ca_is_used_at_once() {
    let external = external_ca();
    let mut case = Case::of(TrustState::managed(), desired(&external));
    case.is_used = false;
    let mut case = case.applied();
    case.is_used = true;
    case.may_change = false;
    let renewed = ExternalCa { key_pair: external.application.clone(), ..external.clone() };
    case.desired = Some(desired(&renewed));
    let case = case.applied();
    assert_eq!(case.trust_state.operator_cert, Some(external.application));
    assert_eq!(case.next(), TrustDecision::Idle);
}

#[test]
fn change_can_be_reverted_before_the_switch() {
    let external = external_ca();
    let mut case = Case::of(TrustState::managed(), desired(&external)).applied().applied();
    case.desired = Some(managed());
    let case = case.applied();
    assert_eq!(case.trust_state, TrustState::managed());
    assert_eq!(case.next(), TrustDecision::Idle);
}

#[test]
fn new_target_restarts_the_overlap() {
    let external = external_ca();
    let case = Case::of(TrustState::managed(), desired(&external)).applied().applied().later(DAY);
    let case = case.probed(TlsProbe::Ok, TlsProbe::Ok).applied().applied().applied();
    let mut case = case.later(2 * DAY - 1);
    assert_eq!(
        case.next(),
        TrustDecision::Wait(WaitingFor::Overlap(at(2 * DAY))),
        "the managed CAs are about to be removed"
    );
    case.desired = Some(managed());
    let case = case.applied();
    assert_eq!(case.next(), TrustDecision::Wait(WaitingFor::Overlap(at(3 * DAY - 1))));
}

#[test]
fn external_certificate_is_dropped_after_returning_to_managed_cas() {
    let external = external_ca();
    let mut case = Case::of(TrustState::managed(), desired(&external));
    case.is_used = false;
    let mut case = case.applied();
    case.is_used = true;
    case.desired = Some(managed());
    let case = case.applied().applied().later(DAY).probed(TlsProbe::Ok, TlsProbe::Ok).applied();
    assert_eq!(
        case.trust_state.operator_cert,
        Some(external.key_pair),
        "kept until the external CA is removed"
    );
    let case = case.applied().later(3 * DAY).applied();
    assert_eq!(case.trust_state.operator_cert, None);
    assert_eq!(case.applied().trust_state, TrustState::managed());
}

#[test]
fn invalid_source_changes_nothing() {
    let mut case = Case::of(TrustState::managed(), desired(&external_ca())).applied();
    case.desired = None;
    assert_eq!(case.next(), TrustDecision::Idle);
}

#[test]
fn paused_cluster_keeps_its_trust_state() {
    let mut case = Case::of(TrustState::managed(), desired(&external_ca()));
    case.may_change = false;
    assert_eq!(case.next(), TrustDecision::Wait(WaitingFor::Unpause));
}

#[test]
fn invalid_record_is_named_and_never_quoted() {
    let ca_set = ca_set();
    let existing = ca_set.secret(&blueprint(&spec()));
    assert_eq!(TrustStates::read(&existing), Ok(TrustStates::managed()));
    for text in ["hunter2", "{}", r#"{"client": {"key": "hunter2"}, "peer": null}"#] {
        let invalid =
            TrustStates::read(&with_value(&existing, "trust-state", Some(text.as_bytes())))
                .unwrap_err();
        assert_eq!((invalid.key, invalid.error), ("trust-state", ParseError::Modified));
        assert!(!format!("{invalid} {invalid:?}").contains("hunter2"));
    }
    let steps = [(Side::Client, TrustStep::Initialize(TrustBundle::external(Vec::new()), None))];
    let patch = TrustStates::managed().apply(&steps, at(0)).patch(&existing);
    let value = serde_json::from_value(patch["data"]["trust-state"].clone()).unwrap();
    let mut existing = existing;
    existing.data.as_mut().unwrap().insert("trust-state".to_owned(), value);
    assert!(TrustStates::read(&existing).is_err(), "an empty trust bundle is invalid");
}
