//! The rules of the migration, one by one.

use jiff::Timestamp;

use super::*;
use crate::api::kinds;
use crate::storage_migration::progress_cache::ProgressCache;
use crate::storage_migration::record::DelegatedRecord;
use crate::storage_migration::transition::{self, StartParams};

/// After the propagation delay of a CRD that was observed at the start.
const LATER: MonotonicTime = MonotonicTime::new(Duration::from_mins(1));

fn crd(stored: &[&str]) -> StoredCrd {
    let text = |text: &&str| (*text).to_owned();
    StoredCrd {
        name: "etcdclusters.etcd.appdelivery.cncf.io".to_owned(),
        uid: "uid".to_owned(),
        resource_version: "1".to_owned(),
        storage: "v1".to_owned(),
        versions: ["v1", "v1beta1", "v1alpha1"].map(|name| (name.to_owned(), true)).to_vec(),
        stored: stored.iter().map(text).collect(),
        established: true,
        converted: true,
        paused: false,
        spec_fingerprint: "kubectl".to_owned(),
    }
}

fn run(crd: &StoredCrd, phase: Phase) -> Record {
    let params = StartParams {
        goal: Goal::StorageVersion,
        mode: MigrationMode::Operator,
        threshold: 7,
        total: 3,
        now: Timestamp::UNIX_EPOCH,
    };
    let record = transition::start(crd, None, &params);
    Record { phase, served_by_managers: crd.served(), ..record }
}

struct TestState {
    crd: StoredCrd,
    record: Option<Record>,
    mode: MigrationMode,
    mixed_versions: Reading<bool>,
    delegated: DelegatedMigration,
    retry_request: Option<String>,
    cache: ProgressCache,
}

impl TestState {
    fn new(stored: &[&str], phase: Option<Phase>) -> Self {
        let crd = crd(stored);
        let mut cache = ProgressCache::default();
        cache.observe(&crd, MonotonicTime::default());
        Self {
            record: phase.map(|phase| run(&crd, phase)),
            crd,
            mode: MigrationMode::Operator,
            mixed_versions: Reading::Known(false),
            delegated: DelegatedMigration::NotFound,
            retry_request: None,
            cache,
        }
    }

    fn decide_at(&self, now: MonotonicTime) -> Plan {
        decide(&ObservedState {
            kind: kinds::by_name("EtcdCluster").unwrap(),
            mode: self.mode,
            crd: Reading::Known(Some(self.crd.clone())),
            record: Reading::Known(self.record.clone()),
            retry_request: self.retry_request.clone(),
            mixed_versions: self.mixed_versions.clone(),
            delegated: Reading::Known(self.delegated.clone()),
            cache: &self.cache,
            now,
        })
    }

    fn decide(&self) -> (Step, Reason) {
        let Plan { step, reason, requeue_at: _ } = self.decide_at(LATER);
        (step, reason)
    }
}

#[test]
fn up_to_date_objects_are_not_migrated() {
    let state = TestState::new(&["v1"], Some(Phase::Complete));
    let plan = state.decide_at(LATER);
    assert_eq!((plan.step, plan.reason, plan.requeue_at), (Step::Wait, Reason::UpToDate, None));
}

#[test]
fn migration_starts_only_after_the_propagation_delay_of_a_changed_crd() {
    let state = TestState::new(&["v1alpha1", "v1"], None);
    let plan = state.decide_at(MonotonicTime::new(Duration::from_secs(1)));
    assert_eq!((plan.step, plan.reason), (Step::Wait, Reason::WaitingForPropagation));
    assert_eq!(plan.requeue_at, Some(MonotonicTime::new(PROPAGATION_DELAY)));
    assert_eq!(state.decide(), (Step::Start(Goal::StorageVersion), Reason::OldVersionsStored));
}

#[test]
fn migration_resumes_from_its_record() {
    for (phase, step) in [
        (Phase::Rewriting, Step::ProcessPage(Phase::Rewriting)),
        (Phase::Verifying, Step::ProcessPage(Phase::Verifying)),
        (Phase::Verified, Step::TrimStoredVersions),
        (Phase::ManagedFields, Step::ProcessPage(Phase::ManagedFields)),
    ] {
        assert_eq!(TestState::new(&["v1alpha1", "v1"], Some(phase)).decide().0, step);
    }
}

#[test]
fn record_of_another_crd_spec_does_not_allow_trimming() {
    let changes: [fn(&mut StoredCrd); 4] = [
        |crd| crd.spec_fingerprint = "kubectl, later".to_owned(),
        |crd| crd.storage = "v1beta1".to_owned(),
        |crd| crd.uid = "another".to_owned(),
        |crd| crd.versions.truncate(2),
    ];
    for change in changes {
        let mut state = TestState::new(&["v1alpha1", "v1"], Some(Phase::Verified));
        change(&mut state.crd);
        assert_eq!(state.decide(), (Step::Start(Goal::StorageVersion), Reason::OldVersionsStored));
        state.cache.observe(&state.crd, LATER);
        let (step, reason) = state.decide();
        // The list of versions does not affect what is stored, so it needs no propagation delay.
        let waits = state.crd.versions.len() == 3;
        let waiting = step == Step::Wait && reason == Reason::WaitingForPropagation;
        assert_eq!(waiting, waits, "{reason:?}");
    }
}

#[test]
fn injected_ca_bundle_does_not_restart_a_migration() {
    let mut state = TestState::new(&["v1alpha1", "v1"], Some(Phase::Verified));
    state.crd.resource_version = "2".to_owned();
    assert_eq!(state.decide(), (Step::TrimStoredVersions, Reason::Verified));
}

#[test]
fn each_obstacle_has_its_reason_and_nothing_is_written() {
    let check = |change: fn(&mut TestState), reason| {
        for phase in [None, Some(Phase::Rewriting), Some(Phase::Verifying), Some(Phase::Verified)] {
            let mut state = TestState::new(&["v1alpha1", "v1"], phase);
            change(&mut state);
            assert_eq!(state.decide(), (Step::Wait, reason), "{phase:?}");
        }
    };
    check(|state| state.mode = MigrationMode::Off, Reason::Disabled);
    check(|state| state.crd.stored.push("v2".to_owned()), Reason::UnknownStoredVersion);
    check(|state| state.crd.established = false, Reason::NotEstablished);
    check(|state| state.crd.versions[0].1 = false, Reason::NotEstablished);
    check(|state| state.crd.converted = false, Reason::NoConversionWebhook);
    check(|state| state.crd.paused = true, Reason::Paused);
    check(|state| state.mixed_versions = Reading::Known(true), Reason::MixedOperatorVersions);
    check(|state| state.mixed_versions = Reading::Unknown, Reason::ReadFailed);
    check(|state| state.cache.record_failure(LATER), Reason::BackingOff);
}

#[test]
fn failed_reads_are_retried() {
    let state = TestState::new(&["v1alpha1", "v1"], Some(Phase::Verified));
    let observed = |crd, record| ObservedState {
        kind: kinds::by_name("EtcdCluster").unwrap(),
        mode: MigrationMode::Operator,
        crd,
        record,
        retry_request: None,
        mixed_versions: Reading::Known(false),
        delegated: Reading::Unknown,
        cache: &state.cache,
        now: LATER,
    };
    let known = || Reading::Known(Some(state.crd.clone()));
    for observed in [
        observed(Reading::Unknown, Reading::Known(None)),
        observed(known(), Reading::Unknown),
        observed(Reading::Unknown, Reading::Unknown),
    ] {
        assert_eq!(decide(&observed).reason, Reason::ReadFailed);
    }
}

#[test]
fn failed_objects_are_retried_after_a_delay_or_on_request() {
    let mut state = TestState::new(&["v1alpha1", "v1"], Some(Phase::Blocked));
    state.cache.record_blocked(LATER);
    assert_eq!(state.decide(), (Step::Wait, Reason::ObjectsFailed));
    let later = state.decide_at(LATER.plus(MIN_RETRY_DELAY));
    let retry = (Step::EnterPhase(Phase::Rewriting), Reason::Retrying);
    assert_eq!((later.step, later.reason), retry);
    state.retry_request = Some("now".to_owned());
    assert_eq!(state.decide(), retry);
    state.cache.record_retry(state.retry_request.clone());
    assert_eq!(state.decide(), (Step::Wait, Reason::ObjectsFailed));
}

#[test]
fn field_managers_are_checked_once_for_each_set_of_served_versions() {
    let mut state = TestState::new(&["v1"], Some(Phase::Complete));
    state.crd.versions[2].1 = false;
    assert_eq!(state.decide(), (Step::Start(Goal::ManagedFields), Reason::OldFieldManagers));
    let served = state.crd.served();
    state.record.as_mut().unwrap().served_by_managers = served;
    assert_eq!(state.decide(), (Step::Wait, Reason::UpToDate));
}

#[test]
fn migration_completes_if_another_client_trims_stored_versions() {
    for phase in [Phase::Rewriting, Phase::Verifying, Phase::Verified, Phase::Blocked] {
        let state = TestState::new(&["v1"], Some(phase));
        assert_eq!(state.decide(), (Step::EnterPhase(Phase::Complete), Reason::AlreadyTrimmed));
    }
}

#[test]
fn delegated_migration_is_verified_and_replaced_after_repeated_failures() {
    let mut state = TestState::new(&["v1alpha1", "v1"], Some(Phase::Delegated));
    state.mode = MigrationMode::Kubernetes;
    assert_eq!(state.decide().0, Step::CreateDelegated);
    let found = |uid: &str, outcome| DelegatedMigration::Found { uid: uid.to_owned(), outcome };
    state.delegated = found("old", Some(Outcome::Succeeded));
    let delete = Step::DeleteDelegated { uid: "old".to_owned(), failed: false };
    assert_eq!(state.decide().0, delete, "left by an earlier migration");
    let recorded = DelegatedRecord { uid: "mine".to_owned(), failed: 0 };
    state.record.as_mut().unwrap().delegated = Some(recorded);
    state.delegated = found("mine", None);
    assert_eq!(state.decide(), (Step::Wait, Reason::DelegatedInProgress));
    state.delegated = found("mine", Some(Outcome::Succeeded));
    let verify = Step::EnterPhase(Phase::Verifying);
    assert_eq!(state.decide(), (verify, Reason::DelegatedSucceeded));
    state.delegated = found("mine", Some(Outcome::Failed));
    let delete = Step::DeleteDelegated { uid: "mine".to_owned(), failed: true };
    assert_eq!(state.decide().0, delete);
    let recorded = state.record.as_mut().unwrap().delegated.as_mut();
    recorded.unwrap().failed = MAX_DELEGATED_FAILURES;
    let rewrite = Step::EnterPhase(Phase::Rewriting);
    assert_eq!(state.decide(), (rewrite.clone(), Reason::DelegatedFailed));
    state.record.as_mut().unwrap().delegated = None;
    state.delegated = DelegatedMigration::NotServed;
    assert_eq!(state.decide(), (rewrite, Reason::MigratorUnavailable));
}
