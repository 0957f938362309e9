//! Rotations in a made-up world: nodes that hand out Secrets late, an operator that dies between any two writes, members
//! that restart by themselves, applications that read their Secret days later. At every moment everybody who runs
//! must know everybody else.

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
const WALKS: u64 = 24;
const EVENTS: usize = 240;
/// So many events without a fault bring every rotation to its end.
const FAIR: usize = 60;

/// A member that runs: what its node has handed to it, and whom etcd read to trust when it started.
struct Member {
    name: MemberName,
    mounted: Option<MemberCertificates>,
    /// Whom it trusts among clients and among members; nothing while it is down.
    trusts: Option<[Vec<Certificate>; 2]>,
    word: Option<String>,
    pods: u32,
}

struct World {
    now: i64,
    seed: u64,
    asked: u32,
    ring: CaSet,
    secrets: BTreeMap<MemberName, MemberCertificates>,
    binding: ClientSecret,
    /// What an application has read, and when.
    application: (ClientSecret, i64),
    members: Vec<Member>,
    lacking: Vec<String>,
    memory: BTreeMap<(Vec<u8>, Vec<u8>), bool>,
}

impl World {
    fn new(seed: u64) -> Self {
        let ring = ring();
        let all = ["main-a", "main-b", "main-c"].map(name);
        let signed = |it: &MemberName| member(&ring, it, at(0));
        let secrets: BTreeMap<MemberName, MemberCertificates> =
            all.iter().map(|it| (it.clone(), signed(it))).collect();
        let binding = binding(&ring, &all, at(0));
        let members = all.map(|name| Member {
            mounted: secrets.get(&name).cloned(),
            trusts: Some([ring.for_clients(), ring.for_peers()]),
            // Made by an older release, which did not write it down.
            word: None,
            pods: 0,
            name,
        });
        let application = (binding.clone(), 0);
        let members = members.into();
        let (memory, lacking) = (BTreeMap::new(), Vec::new());
        Self {
            now: 0,
            seed,
            asked: 0,
            ring,
            secrets,
            binding,
            application,
            members,
            lacking,
            memory,
        }
    }

    fn chance(&mut self, of: u64) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33).checked_rem(of).unwrap_or(0)
    }

    fn names(&self) -> Vec<MemberName> {
        self.members.iter().map(|it| it.name.clone()).collect()
    }

    /// One pass of the operator, which dies after so many writes.
    fn pass(&mut self, mut left: usize) {
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
            let Some(turn) = self.turn() else {
                self.roll();
                return;
            };
            self.ring = super::ca_rotation::turned(&self.ring, &turn, at(self.now));
        }
    }

    fn secret_writes(&self) -> Vec<SecretWrite> {
        let spec = spec();
        let known = |(name, it): (&MemberName, &MemberCertificates)| {
            (name.clone(), Reading::Known(Some(Ok(it.clone()))))
        };
        let looked = SecretsState {
            ring: Reading::Known(Some(Ok(self.ring.clone()))),
            footings: TrustStates::managed(),
            offers: SourceStates::managed(),
            members: self.secrets.iter().map(known).collect(),
            binding: Reading::Known(Some((self.binding.clone(), None))),
        };
        let (members, lifetimes) = (self.names(), Lifetimes::default());
        let found = plan_secrets(&blueprint(&spec), &looked, &members, lifetimes, at(self.now));
        let SecretsPlan { writes, stuck, next: _ } = found;
        assert_eq!(stuck, None);
        writes.into_iter().map(|(write, _)| write).collect()
    }

    fn write(&mut self, write: &SecretWrite) {
        let (spec, now) = (spec(), at(self.now));
        let blueprint = blueprint(&spec);
        match write {
            SecretWrite::CreateCa => panic!("they are there"),
            SecretWrite::Member(name, draft) => {
                let leaves = signing(&self.ring, now).member(&blueprint, name, draft).unwrap();
                self.secrets.insert(name.clone(), leaves);
            }
            SecretWrite::MemberBundle(name, leaves) => {
                self.secrets.insert(name.clone(), (**leaves).clone());
            }
            SecretWrite::ClientCert => self.binding = binding(&self.ring, &self.names(), now),
            SecretWrite::ClientFields(binding) => self.binding = (**binding).clone(),
        }
    }

    fn turn(&mut self) -> Option<RotationStep> {
        let word = TrustHash::of(BOTH, &self.ring).word;
        let seats: Vec<PodTrust> = self
            .members
            .iter()
            .map(|it| PodTrust {
                member: it.name.clone(),
                pod: format!("{}-{}", it.name, it.pods),
                trusts: it.word.clone(),
            })
            .collect();
        let (members, asked, ring) = (self.names(), self.asked.to_string(), self.ring.clone());
        let facts = RotationContext {
            ring: &ring,
            lifetimes: Lifetimes::default(),
            now: at(self.now),
            asked: (self.asked > 0).then_some(asked.as_str()),
            may_turn: true,
            may_begin: true,
            company: MemberReadiness { word: &word, members: &members, seats: &seats },
        };
        let mut decided = next(&facts, None);
        if decided == RotationDecision::NeedsProbe {
            let proof = self.proof();
            decided = next(&facts, Some(&proof));
            for seat in &seats {
                if let Some(TlsProbe::RejectsNewCa | TlsProbe::TrustsOldCa) =
                    proof.get(&seat.member)
                {
                    self.lacking.push(seat.pod.clone());
                }
            }
        }
        match decided {
            RotationDecision::Idle | RotationDecision::Wait(_) => None,
            RotationDecision::NeedsProbe => panic!("it was proven"),
            RotationDecision::Start => {
                Some(RotationStep::Start(Box::new(authorities(at(self.now))), Some(asked)))
            }
            RotationDecision::StartOverlap => Some(RotationStep::StartOverlap),
            RotationDecision::SwitchIssuer(next) => Some(RotationStep::SwitchIssuer(next)),
            RotationDecision::RemoveOldCa => Some(RotationStep::RemoveOldCa),
            RotationDecision::Finish => Some(RotationStep::Finish),
        }
    }

    /// What members show when they are called.
    fn proof(&mut self) -> ProbeResults {
        let (coming, alone) = match &self.ring.stage {
            RotationPhase::Distributing(next) => (next.certificates().map(Clone::clone), false),
            RotationPhase::Idle | RotationPhase::Retiring(_) | RotationPhase::Verifying(_) => {
                (self.ring.now.certificates().map(Clone::clone), true)
            }
        };
        let dropped = match &self.ring.stage {
            RotationPhase::Verifying(old) => old.to_vec(),
            RotationPhase::Idle | RotationPhase::Distributing(_) | RotationPhase::Retiring(_) => {
                Vec::new()
            }
        };
        let all: Vec<_> = self
            .members
            .iter()
            .map(|it| (it.name.clone(), it.mounted.clone(), it.trusts.clone()))
            .collect();
        let mut proof = ProbeResults::new();
        for (name, mounted, trusts) in all {
            let (Some(leaves), Some(trusts)) = (mounted, trusts) else {
                proof.insert(name, TlsProbe::Unreachable("it is down".to_owned()));
                continue;
            };
            let takes = trusts.iter().zip(&coming).all(|(all, it)| all.contains(it));
            let pairs = [leaves.server.certificate, leaves.peer.certificate];
            let is_old = pairs.iter().zip(&coming).any(|(leaf, by)| !self.takes(by, leaf));
            let still_trusts = trusts.iter().flatten().any(|it| dropped.contains(it));
            let verdict = match (takes, alone && is_old, still_trusts) {
                (false, _, _) => TlsProbe::RejectsNewCa,
                (true, true, _) => TlsProbe::PresentsOldCert,
                (true, false, true) => TlsProbe::TrustsOldCa,
                (true, false, false) => TlsProbe::Ok,
            };
            proof.insert(name, verdict);
        }
        proof
    }

    /// Starts one member anew that trusts others than it should, if all run.
    fn roll(&mut self) {
        let trust = TrustHash::of(BOTH, &self.ring);
        let differs = |it: &Member, lacking: &[String]| {
            let says_other = it.word.as_ref().map_or(trust.is_turning, |word| *word != trust.word);
            says_other || lacking.contains(&format!("{}-{}", it.name, it.pods))
        };
        if self.members.iter().any(|it| it.trusts.is_none()) {
            return;
        }
        let lacking = self.lacking.clone();
        if let Some(member) = self.members.iter_mut().find(|it| differs(it, &lacking)) {
            member.trusts = None;
            member.word = Some(trust.word.clone());
            member.pods = member.pods.saturating_add(1);
        }
    }

    /// A member that is down starts. Its node may not have heard yet of what was written last.
    fn start(&mut self, index: usize, fresh: bool) {
        let member = &mut self.members[index];
        if member.trusts.is_some() {
            return;
        }
        if fresh {
            member.mounted = self.secrets.get(&member.name).cloned();
        }
        member.trusts =
            member.mounted.as_ref().map(|it| [it.client_ca.clone(), it.peer_ca.clone()]);
    }

    fn happen(&mut self) {
        let who = usize::try_from(self.chance(3)).unwrap();
        match self.chance(10) {
            0..3 => {
                let writes = usize::try_from(self.chance(8)).unwrap();
                self.pass(writes);
            }
            3 => self.pass(usize::MAX),
            4 | 5 => {
                let member = &mut self.members[who];
                member.mounted = self.secrets.get(&member.name).cloned();
            }
            6 => self.start(who, false),
            7 => self.start(who, true),
            // It crashes and starts in the same pod.
            8 => self.members[who].trusts = None,
            _ => self.wait(),
        }
        if self.asked == 0 || self.ring.stage == RotationPhase::Idle && self.chance(4) == 0 {
            self.asked = self.asked.saturating_add(1);
        }
    }

    /// Twenty hours. Applications read their Secret after less than three days.
    fn wait(&mut self) {
        self.now = self.now.saturating_add(20 * HOUR);
        if self.now.saturating_sub(self.application.1) > 48 * HOUR {
            self.application = (self.binding.clone(), self.now);
        }
    }

    fn takes(&mut self, authority: &Certificate, leaf: &Certificate) -> bool {
        let key = (authority.der.clone(), leaf.der.clone());
        let now = at(self.now);
        *self.memory.entry(key).or_insert_with(|| leaf.is_signed_by(authority, now))
    }

    fn any_takes(&mut self, all: &[Certificate], leaf: &Certificate) -> bool {
        all.iter().any(|it| self.takes(it, leaf))
    }

    /// Everybody who runs knows everybody else, and applications know them and are known.
    fn check(&mut self, story: &str) {
        type Runs = (MemberName, MemberCertificates, [Vec<Certificate>; 2]);
        let runs: Vec<Runs> = self
            .members
            .iter()
            .filter_map(|it| Some((it.name.clone(), it.mounted.clone()?, it.trusts.clone()?)))
            .collect();
        let applications = [self.application.0.clone(), self.binding.clone()];
        for (name, leaves, [clients, peers]) in &runs {
            for (other, shown, _) in &runs {
                let known = self.any_takes(peers, &shown.peer.certificate);
                assert!(known, "{story}: {name} does not know {other}");
            }
            for (late, binding) in applications.iter().enumerate() {
                let ClientSecret { pair: Some(pair), ca, .. } = binding else { panic!("no key") };
                let serves = self.any_takes(ca, &leaves.server.certificate);
                assert!(serves, "{story}: application {late} does not know {name}");
                let lets_in = self.any_takes(clients, &pair.certificate);
                assert!(lets_in, "{story}: {name} does not know application {late}");
            }
        }
    }
}

#[test]
fn at_every_moment_of_a_rotation_everybody_knows_everybody() {
    let mut rotations = 0_u32;
    for seed in 0..WALKS {
        let mut world = World::new(seed);
        for event in 0..EVENTS {
            world.happen();
            world.check(&format!("walk {seed}, event {event}"));
        }
        let asked = world.asked;
        for event in 0..FAIR {
            world.pass(usize::MAX);
            for index in 0..3 {
                world.start(index, true);
                let member = &mut world.members[index];
                member.mounted = world.secrets.get(&member.name).cloned();
            }
            world.wait();
            world.check(&format!("walk {seed}, fair event {event}"));
        }
        rotations = asked.saturating_add(rotations);
        let wanted = Some(TrustHash::of(BOTH, &world.ring).word);
        assert_eq!(world.ring.stage, RotationPhase::Idle, "walk {seed} does not come to rest");
        assert_eq!(world.ring.asked, Some(asked.to_string()), "walk {seed}");
        let trusted = Some([world.ring.for_clients(), world.ring.for_peers()]);
        assert!(
            world.members.iter().all(|it| it.word == wanted && it.trusts == trusted),
            "walk {seed}: somebody was left out"
        );
    }
    assert!(rotations > u32::try_from(WALKS).unwrap(), "only {rotations} rotations were asked for");
}
