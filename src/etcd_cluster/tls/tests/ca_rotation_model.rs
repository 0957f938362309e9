//! Model test of CA rotations: kubelets that update Secrets late, crashes of the operator between
//! any two writes, member restarts, applications that read their Secret days later. Running members
//! and applications always accept each other's certificates.

use std::collections::BTreeMap;

use super::super::ca_rotation::{RotationContext, RotationDecision, next};
use super::super::ca_set::{CaSet, RotationPhase, RotationStep};
use super::super::client_secret::ClientSecret;
use super::super::readiness::{MemberReadiness, PodTrust, ProbeResults, TlsProbe};
use super::super::secrets_plan::{SecretWrite, SecretsPlan, SecretsState, plan_secrets};
use super::super::source::SourceStates;
use super::super::trust_hash::{Sides, TrustHash};
use super::super::trust_state::TrustStates;
use super::*;
use crate::etcd_cluster::state::{MemberName, Reading};

const BOTH: Sides = Sides { client: true, peer: true };
const HOUR: i64 = 60 * 60;
const SEEDS: u64 = 24;
const EVENTS: usize = 240;
/// Events without faults that finish every rotation.
const QUIET_EVENTS: usize = 60;

/// A member: the Secret mounted by the kubelet, and the trust bundles that etcd read at start.
struct Member {
    name: MemberName,
    mounted: Option<MemberCertificates>,
    /// The CAs trusted for clients and for peers; `None` while the member is down.
    trusts: Option<[Vec<Certificate>; 2]>,
    /// The annotation of the pod.
    trust_hash: Option<String>,
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
    requests: u32,
    ca_set: CaSet,
    secrets: BTreeMap<MemberName, MemberCertificates>,
    client_secret: ClientSecret,
    /// The client Secret that an application has read, and when.
    application: (ClientSecret, i64),
    members: Vec<Member>,
    stale_pods: Vec<String>,
    verified: BTreeMap<(Vec<u8>, Vec<u8>), bool>,
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
            recreated: 0,
            name,
        });
        let application = (client_secret.clone(), 0);
        let members = members.into();
        let (verified, stale_pods) = (BTreeMap::new(), Vec::new());
        Self {
            now: 0,
            seed,
            requests: 0,
            ca_set,
            secrets,
            client_secret,
            application,
            members,
            stale_pods,
            verified,
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

    /// One reconciliation; the operator crashes after `left` writes.
    fn reconcile(&mut self, mut left: usize) {
        for _ in 0..6 {
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
            let Some(step) = self.next_step() else {
                self.recreate_one_pod();
                return;
            };
            self.ca_set = super::ca_rotation::apply_step(&self.ca_set, &step, at(self.now));
        }
    }

    fn secret_writes(&self) -> Vec<SecretWrite> {
        let spec = spec();
        let known = |(name, certs): (&MemberName, &MemberCertificates)| {
            (name.clone(), Reading::Known(Some(Ok(certs.clone()))))
        };
        let state = SecretsState {
            ca_set: Reading::Known(Some(Ok(self.ca_set.clone()))),
            trust_states: TrustStates::managed(),
            sources: SourceStates::managed(),
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
        let blueprint = blueprint(&spec);
        match write {
            SecretWrite::CreateCa => panic!("the CAs exist"),
            SecretWrite::Member(name, plan) => {
                let certs = issuer(&self.ca_set, now).member(&blueprint, name, plan).unwrap();
                self.secrets.insert(name.clone(), certs);
            }
            SecretWrite::MemberBundle(name, certs) => {
                self.secrets.insert(name.clone(), (**certs).clone());
            }
            SecretWrite::ClientCert => {
                self.client_secret = client_secret(&self.ca_set, &self.names(), now);
            }
            SecretWrite::ClientFields(client_secret) => {
                self.client_secret = (**client_secret).clone();
            }
        }
    }

    fn next_step(&mut self) -> Option<RotationStep> {
        let trust_hash = TrustHash::managed(BOTH, &self.ca_set).hash;
        let pods: Vec<PodTrust> = self
            .members
            .iter()
            .map(|member| PodTrust {
                member: member.name.clone(),
                pod_uid: member.pod_uid(),
                trust_hash: member.trust_hash.clone(),
            })
            .collect();
        let (members, request, ca_set) =
            (self.names(), self.requests.to_string(), self.ca_set.clone());
        let context = RotationContext {
            ca_set: &ca_set,
            lifetimes: Lifetimes::default(),
            now: at(self.now),
            rotation_request: (self.requests > 0).then_some(request.as_str()),
            may_rotate: true,
            may_start: true,
            readiness: MemberReadiness { trust_hash: &trust_hash, members: &members, pods: &pods },
        };
        let mut decision = next(&context, None);
        if decision == RotationDecision::NeedsProbe {
            let results = self.probe();
            decision = next(&context, Some(&results));
            for pod in &pods {
                if let Some(TlsProbe::RejectsNewCa | TlsProbe::TrustsOldCa) =
                    results.get(&pod.member)
                {
                    self.stale_pods.push(pod.pod_uid.clone());
                }
            }
        }
        match decision {
            RotationDecision::Idle | RotationDecision::Wait(_) => None,
            RotationDecision::NeedsProbe => panic!("all members were probed"),
            RotationDecision::Start => {
                Some(RotationStep::Start(Box::new(ca_pair(at(self.now))), Some(request)))
            }
            RotationDecision::StartOverlap => Some(RotationStep::StartOverlap),
            RotationDecision::SwitchIssuer(next) => Some(RotationStep::SwitchIssuer(next)),
            RotationDecision::RemoveOldCa => Some(RotationStep::RemoveOldCa),
            RotationDecision::Finish => Some(RotationStep::Finish),
        }
    }

    /// Probes all members.
    fn probe(&mut self) -> ProbeResults {
        let (new_cas, presents_new) = match &self.ca_set.phase {
            RotationPhase::Distributing(next) => (next.certificates().map(Clone::clone), false),
            RotationPhase::Idle | RotationPhase::Retiring(_) | RotationPhase::Verifying(_) => {
                (self.ca_set.current.certificates().map(Clone::clone), true)
            }
        };
        let removed = match &self.ca_set.phase {
            RotationPhase::Verifying(old) => old.to_vec(),
            RotationPhase::Idle | RotationPhase::Distributing(_) | RotationPhase::Retiring(_) => {
                Vec::new()
            }
        };
        let all: Vec<_> = self
            .members
            .iter()
            .map(|member| (member.name.clone(), member.mounted.clone(), member.trusts.clone()))
            .collect();
        let mut results = ProbeResults::new();
        for (name, mounted, trusts) in all {
            let (Some(certs), Some(trusts)) = (mounted, trusts) else {
                results.insert(name, TlsProbe::Unreachable("down".to_owned()));
                continue;
            };
            let accepts = trusts.iter().zip(&new_cas).all(|(bundle, ca)| bundle.contains(ca));
            let leaves = [certs.server.certificate, certs.peer.certificate];
            let is_old = leaves.iter().zip(&new_cas).any(|(leaf, ca)| !self.is_signed(ca, leaf));
            let still_trusts = trusts.iter().flatten().any(|ca| removed.contains(ca));
            let result = match (accepts, presents_new && is_old, still_trusts) {
                (false, _, _) => TlsProbe::RejectsNewCa,
                (true, true, _) => TlsProbe::PresentsOldCert,
                (true, false, true) => TlsProbe::TrustsOldCa,
                (true, false, false) => TlsProbe::Ok,
            };
            results.insert(name, result);
        }
        results
    }

    /// Recreates one pod with another trust bundle, if all members run.
    fn recreate_one_pod(&mut self) {
        let trust = TrustHash::managed(BOTH, &self.ca_set);
        let differs = |member: &Member, stale_pods: &[String]| {
            let hash = member.trust_hash.as_ref();
            let has_other_hash = hash.map_or(trust.in_rotation, |hash| *hash != trust.hash);
            has_other_hash || stale_pods.contains(&member.pod_uid())
        };
        if self.members.iter().any(|member| member.trusts.is_none()) {
            return;
        }
        let stale_pods = self.stale_pods.clone();
        if let Some(member) = self.members.iter_mut().find(|member| differs(member, &stale_pods)) {
            member.trusts = None;
            member.trust_hash = Some(trust.hash.clone());
            member.recreated = member.recreated.saturating_add(1);
        }
    }

    /// Starts a member that is down. If not `fresh`, the kubelet mounts an older Secret.
    fn start(&mut self, index: usize, fresh: bool) {
        let member = &mut self.members[index];
        if member.trusts.is_some() {
            return;
        }
        if fresh {
            member.mounted = self.secrets.get(&member.name).cloned();
        }
        member.trusts =
            member.mounted.as_ref().map(|certs| [certs.client_ca.clone(), certs.peer_ca.clone()]);
    }

    fn random_event(&mut self) {
        let index = usize::try_from(self.random(3)).unwrap();
        match self.random(10) {
            0..3 => {
                let writes = usize::try_from(self.random(8)).unwrap();
                self.reconcile(writes);
            }
            3 => self.reconcile(usize::MAX),
            4 | 5 => {
                let member = &mut self.members[index];
                member.mounted = self.secrets.get(&member.name).cloned();
            }
            6 => self.start(index, false),
            7 => self.start(index, true),
            // The container crashes and restarts in the same pod.
            8 => self.members[index].trusts = None,
            _ => self.wait(),
        }
        if self.requests == 0 || self.ca_set.phase == RotationPhase::Idle && self.random(4) == 0 {
            self.requests = self.requests.saturating_add(1);
        }
    }

    /// Advances time by twenty hours. Applications read their Secret within three days.
    fn wait(&mut self) {
        self.now = self.now.saturating_add(20 * HOUR);
        if self.now.saturating_sub(self.application.1) > 48 * HOUR {
            self.application = (self.client_secret.clone(), self.now);
        }
    }

    fn is_signed(&mut self, ca: &Certificate, leaf: &Certificate) -> bool {
        let key = (ca.der.clone(), leaf.der.clone());
        let now = at(self.now);
        *self.verified.entry(key).or_insert_with(|| leaf.is_signed_by(ca, now))
    }

    fn is_signed_by_any(&mut self, cas: &[Certificate], leaf: &Certificate) -> bool {
        cas.iter().any(|ca| self.is_signed(ca, leaf))
    }

    /// All running members and the applications accept each other's certificates.
    fn check(&mut self, context: &str) {
        type Running = (MemberName, MemberCertificates, [Vec<Certificate>; 2]);
        let running: Vec<Running> = self
            .members
            .iter()
            .filter_map(|member| {
                Some((member.name.clone(), member.mounted.clone()?, member.trusts.clone()?))
            })
            .collect();
        let applications = [self.application.0.clone(), self.client_secret.clone()];
        for (name, certs, [clients, peers]) in &running {
            for (other, presented, _) in &running {
                let accepted = self.is_signed_by_any(peers, &presented.peer.certificate);
                assert!(accepted, "{context}: {name} rejects {other}");
            }
            for (index, client_secret) in applications.iter().enumerate() {
                let ClientSecret { key_pair: Some(key_pair), ca, .. } = client_secret else {
                    panic!("no client certificate")
                };
                let accepted = self.is_signed_by_any(ca, &certs.server.certificate);
                assert!(accepted, "{context}: application {index} rejects {name}");
                let accepted = self.is_signed_by_any(clients, &key_pair.certificate);
                assert!(accepted, "{context}: {name} rejects application {index}");
            }
        }
    }
}

#[test]
fn members_and_applications_accept_each_other_at_every_point_of_a_rotation() {
    let mut rotations = 0_u32;
    for seed in 0..SEEDS {
        let mut model = Model::new(seed);
        for event in 0..EVENTS {
            model.random_event();
            model.check(&format!("seed {seed}, event {event}"));
        }
        let requests = model.requests;
        for event in 0..QUIET_EVENTS {
            model.reconcile(usize::MAX);
            for index in 0..3 {
                model.start(index, true);
                let member = &mut model.members[index];
                member.mounted = model.secrets.get(&member.name).cloned();
            }
            model.wait();
            model.check(&format!("seed {seed}, quiet event {event}"));
        }
        rotations = requests.saturating_add(rotations);
        let hash = Some(TrustHash::managed(BOTH, &model.ca_set).hash);
        assert_eq!(model.ca_set.phase, RotationPhase::Idle, "seed {seed}: unfinished rotation");
        assert_eq!(model.ca_set.rotation_request, Some(requests.to_string()), "seed {seed}");
        let trusted = Some([model.ca_set.client_bundle(), model.ca_set.peer_bundle()]);
        assert!(
            model
                .members
                .iter()
                .all(|member| member.trust_hash == hash && member.trusts == trusted),
            "seed {seed}: a member has another trust bundle"
        );
    }
    assert!(rotations > u32::try_from(SEEDS).unwrap(), "only {rotations} rotations were requested");
}
