//! Model test of certificate source changes: kubelets that update Secrets late, crashes of the
//! operator between any two writes, member restarts, invalid Secrets. Running members and
//! applications always accept each other's certificates.

mod check;
mod events;

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::ca_set::CaSet;
use super::super::client_secret::ClientSecret;
use super::super::readiness::{MemberReadiness, PodTrust, TlsProbe};
use super::super::secrets_plan::{SecretWrite, SecretsPlan, SecretsState, plan_secrets};
use super::super::source::{DesiredTrust, Leaves, SourceState, SourceStates};
use super::super::trust_bundle::{Side, TrustBundle};
use super::super::trust_change::{self, TrustChangeContext, TrustDecision};
use super::super::trust_hash::{Sides, TrustHash};
use super::super::trust_state::{TrustStates, TrustStep};
use super::external_secret::{ExternalCa, external_ca};
use super::*;
use crate::etcd_cluster::state::Reading;

const BOTH: Sides = Sides { client: true, peer: true };
const HOUR: i64 = 60 * 60;
const SEEDS: u64 = 10;
const EVENTS: usize = 400;
/// Events without faults that finish every change.
const QUIET_EVENTS: usize = 60;

/// The CAs trusted for clients and for peers.
type Trusted = [Vec<Certificate>; 2];

/// A certificate, the trusted CAs, and the host if it is verified as a server.
type Verified = (Vec<u8>, Vec<Vec<u8>>, String);

/// A member: the Secret mounted by the kubelet, and the trust bundles that etcd read at start.
struct Member {
    name: MemberName,
    mounted: Option<MemberCertificates>,
    /// `None` while the member is down.
    trusts: Option<Trusted>,
    /// The annotation of the pod.
    trust_hash: Option<String>,
    /// Whether the member requires the cluster's name of its peers.
    requires_cluster_name: bool,
    /// How often the pod was recreated.
    recreated: u32,
}

impl Member {
    fn pod_uid(&self) -> String {
        format!("{}-{}", self.name, self.recreated)
    }
}

struct Model {
    now: i64,
    seed: u64,
    ca_set: CaSet,
    trust_states: TrustStates,
    /// The external CAs, for clients and for peers.
    external_cas: Vec<[ExternalCa; 2]>,
    /// The index of the external CA in the spec; `None` for the managed CA.
    source: [Option<usize>; 2],
    is_broken: bool,
    secrets: BTreeMap<MemberName, MemberCertificates>,
    client_secret: ClientSecret,
    /// The client Secret that an application has read, and when.
    application: (ClientSecret, i64),
    members: Vec<Member>,
    stale_pods: Vec<String>,
    /// Cached verification results.
    verified: BTreeMap<Verified, bool>,
    /// How often steps were applied.
    steps: u32,
    /// How often old CAs were removed.
    removals: u32,
}

impl Model {
    fn new(seed: u64) -> Self {
        let ca_set = ca_set();
        let all = ["main-a", "main-b", "main-c"].map(name);
        let secrets: BTreeMap<MemberName, MemberCertificates> =
            all.iter().map(|name| (name.clone(), member(&ca_set, name, at(0)))).collect();
        let client_secret = client_secret(&ca_set, &all, at(0));
        let members = all.map(|name| Member {
            mounted: secrets.get(&name).cloned(),
            trusts: Some([ca_set.client_bundle(), ca_set.peer_bundle()]),
            // Created by an older release, which did not set the annotation.
            trust_hash: None,
            requires_cluster_name: false,
            recreated: 0,
            name,
        });
        Self {
            now: 0,
            seed,
            ca_set,
            trust_states: TrustStates::managed(),
            external_cas: (0..3).map(|_| [external_ca(), external_ca()]).collect(),
            source: [None, None],
            is_broken: false,
            secrets,
            application: (client_secret.clone(), 0),
            client_secret,
            members: members.into(),
            stale_pods: Vec::new(),
            verified: BTreeMap::new(),
            steps: 0,
            removals: 0,
        }
    }

    fn random(&mut self, bound: u64) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33).checked_rem(bound).unwrap_or(0)
    }

    fn names(&self) -> Vec<MemberName> {
        self.members.iter().map(|member| member.name.clone()).collect()
    }

    fn sources(&self) -> SourceStates {
        let source = |side: usize| match self.source[side] {
            None => SourceState::managed(),
            Some(_) if self.is_broken => SourceState::unchanged(None, true),
            Some(index) => {
                let ExternalCa { key_pair, ca, application } =
                    self.external_cas[index][side].clone();
                let bundle = TrustBundle::external(vec![ca.certificate]);
                SourceState {
                    desired: Some(DesiredTrust { bundle, operator_cert: Some(key_pair.clone()) }),
                    leaves: Leaves::Shared(Box::new(key_pair)),
                    application: Some(application),
                    problem: None,
                    is_external: true,
                }
            }
        };
        SourceStates { client: source(0), peer: source(1) }
    }

    fn trust(&self) -> TrustHash {
        TrustHash::new(BOTH, &self.ca_set, &self.trust_states)
    }

    /// One reconciliation; the operator crashes after `left` writes.
    fn reconcile(&mut self, mut left: usize) {
        for _ in 0..10 {
            let writes = self.secret_writes();
            for write in &writes {
                if left == 0 {
                    return;
                }
                left = left.saturating_sub(1);
                self.write(write);
            }
            if !writes.is_empty() {
                continue;
            }
            if left == 0 {
                return;
            }
            left = left.saturating_sub(1);
            let steps = self.next_steps();
            if steps.is_empty() {
                self.recreate_one_pod();
                return;
            }
            self.steps = self.steps.saturating_add(1);
            let removes =
                |(_, step): &(Side, TrustStep)| matches!(step, TrustStep::RemoveRoots(..));
            self.removals = self.removals.saturating_add(u32::from(steps.iter().any(removes)));
            let trust_states = self.trust_states.apply(&steps, at(self.now));
            self.trust_states = recorded(&self.ca_set, &trust_states);
        }
    }

    fn secret_writes(&self) -> Vec<SecretWrite> {
        let spec = spec();
        let known = |(name, certs): (&MemberName, &MemberCertificates)| {
            (name.clone(), Reading::Known(Some(Ok(certs.clone()))))
        };
        let state = SecretsState {
            ca_set: Reading::Known(Some(Ok(self.ca_set.clone()))),
            trust_states: self.trust_states.clone(),
            sources: self.sources(),
            members: self.secrets.iter().map(known).collect(),
            client_secret: Reading::Known(Some((self.client_secret.clone(), None))),
        };
        let (members, lifetimes) = (self.names(), Lifetimes::default());
        let plan = plan_secrets(&blueprint(&spec), &state, &members, lifetimes, at(self.now));
        let SecretsPlan { writes, error, next_renewal: _ } = plan;
        assert_eq!(error, None);
        writes.into_iter().map(|(write, _)| write).collect()
    }

    fn write(&mut self, write: &SecretWrite) {
        let (spec, now) = (spec(), at(self.now));
        match write {
            SecretWrite::CreateCa => panic!("the CAs exist"),
            SecretWrite::Member(name, plan) => {
                let issuer = issuer(&self.ca_set, now);
                let certs = issuer.member(&blueprint(&spec), name, plan).unwrap();
                self.secrets.insert(name.clone(), certs);
            }
            SecretWrite::MemberBundle(name, certs) => {
                self.secrets.insert(name.clone(), (**certs).clone());
            }
            SecretWrite::ClientCert => {
                let ca =
                    self.trust_states.client.published.certificates(&self.ca_set, Side::Client);
                self.client_secret =
                    ClientSecret { ca, ..client_secret(&self.ca_set, &self.names(), now) };
            }
            SecretWrite::ClientFields(client_secret) => {
                self.client_secret = (**client_secret).clone();
            }
        }
    }

    fn pods(&self) -> Vec<PodTrust> {
        let pod = |member: &Member| PodTrust {
            member: member.name.clone(),
            pod_uid: member.pod_uid(),
            trust_hash: member.trust_hash.clone(),
        };
        self.members.iter().map(pod).collect()
    }

    fn next_steps(&mut self) -> Vec<(Side, TrustStep)> {
        let trust_hash = self.trust().hash;
        let (members, pods, sources) = (self.names(), self.pods(), self.sources());
        let trust_states = self.trust_states.clone();
        let mut steps = Vec::new();
        for side in Side::BOTH {
            let trust_state = trust_states.get(side);
            let desired = sources.get(side).desired.as_ref();
            let desired_cas =
                desired.map(|desired| desired.bundle.certificates(&self.ca_set, side));
            let context = TrustChangeContext {
                trust_state,
                desired,
                is_used: true,
                may_change: true,
                overlap: match side {
                    Side::Client => Lifetimes::default().overlap,
                    Side::Peer => Duration::ZERO,
                },
                now: at(self.now),
                confirmed_cas: &trust_state.confirmed.certificates(&self.ca_set, side),
                desired_cas: &desired_cas.unwrap_or_default(),
                readiness: MemberReadiness {
                    trust_hash: &trust_hash,
                    members: &members,
                    pods: &pods,
                },
            };
            let mut decision = trust_change::next(&context, None);
            if decision == TrustDecision::NeedsProbe {
                let results = self.probe(side, context.desired.unwrap());
                decision = trust_change::next(&context, Some(&results));
                let is_stale = |pod: &&PodTrust| {
                    matches!(
                        results.get(&pod.member),
                        Some(TlsProbe::RejectsNewCa | TlsProbe::TrustsOldCa)
                    )
                };
                self.stale_pods.extend(pods.iter().filter(is_stale).map(|pod| pod.pod_uid.clone()));
            }
            match decision {
                TrustDecision::Idle | TrustDecision::Wait(_) => {}
                TrustDecision::NeedsProbe => panic!("all members were probed"),
                TrustDecision::Apply(step) => steps.push((side, step)),
            }
        }
        steps
    }
}

fn recorded(ca_set: &CaSet, trust_states: &TrustStates) -> TrustStates {
    let spec = spec();
    let mut secret = ca_set.secret(&blueprint(&spec));
    let patch = trust_states.patch(&secret);
    let value = &patch["data"]["trust-state"];
    let read = serde_json::from_value::<Option<ByteString>>(value.clone()).unwrap();
    secret.data.as_mut().unwrap().extend(read.map(|bytes| ("trust-state".to_owned(), bytes)));
    let read = TrustStates::read(&secret).unwrap();
    assert_eq!(read, *trust_states, "the record is parsed as written");
    read
}

#[test]
fn members_and_applications_accept_each_other_at_every_point_of_a_source_change() {
    let (mut steps, mut removals) = (0_u32, 0_u32);
    for seed in 0..SEEDS {
        let mut model = Model::new(seed);
        for event in 0..EVENTS {
            model.random_event();
            model.check(&format!("seed {seed}, event {event}"));
        }
        model.is_broken = false;
        for event in 0..QUIET_EVENTS {
            model.reconcile(usize::MAX);
            for index in 0..3 {
                // Some kubelets are late until the end.
                model.start(index, !event.is_multiple_of(3));
                let member = &mut model.members[index];
                member.mounted = model.secrets.get(&member.name).cloned();
            }
            model.wait();
            model.check(&format!("seed {seed}, quiet event {event}"));
        }
        steps = model.steps.saturating_add(steps);
        removals = model.removals.saturating_add(removals);
        let sources = model.sources();
        for side in Side::BOTH {
            let desired = sources.get(side).desired.as_ref().unwrap();
            let is_complete = model.trust_states.get(side).is_complete(desired);
            assert!(is_complete, "seed {seed}: unfinished change of the {} side", side.as_str());
        }
        let hash = Some(model.trust().hash);
        assert!(
            model.members.iter().all(|member| member.trust_hash == hash),
            "seed {seed}: a pod was not recreated"
        );
        let published = Side::BOTH
            .map(|side| model.trust_states.get(side).published.certificates(&model.ca_set, side));
        assert!(
            model.members.iter().all(|member| member.trusts.as_ref() == Some(&published)),
            "seed {seed}: a member trusts a removed CA"
        );
    }
    let seeds = u32::try_from(SEEDS).unwrap();
    assert!(steps > 10 * seeds, "only {steps} steps were applied");
    assert!(removals > 2 * seeds, "only {removals} changes were finished");
}
