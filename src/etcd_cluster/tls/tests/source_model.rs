//! Model test of certificate source changes: kubelets that update Secrets late, crashes of the operator
//! between any two writes, member restarts, broken Secrets. Running members always trust each other.

mod check;

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
use super::external_secret::{Elsewhere, elsewhere};
use super::*;
use crate::etcd_cluster::state::Reading;

const BOTH: Sides = Sides { client: true, peer: true };
const HOUR: i64 = 60 * 60;
const WALKS: u64 = 10;
const EVENTS: usize = 400;
/// So many events without a fault bring every change to its end.
const FAIR: usize = 60;

/// Whom somebody trusts among clients and among members.
type Trusted = [Vec<Certificate>; 2];

type Judged = (Vec<u8>, Vec<Vec<u8>>, String);

/// A member that runs: what its node has handed to it, and whom etcd read to trust when it started.
struct Member {
    name: MemberName,
    mounted: Option<MemberCertificates>,
    /// Nothing while it is down.
    trusts: Option<Trusted>,
    word: Option<String>,
    /// Whether it asks others for the name of the cluster.
    named: bool,
    pods: u32,
}

struct World {
    now: i64,
    seed: u64,
    ring: CaSet,
    footings: TrustStates,
    /// What there is elsewhere, for clients and for members.
    elsewhere: Vec<[Elsewhere; 2]>,
    /// Which of it is asked for; nothing for what our own authorities sign.
    source: [Option<usize>; 2],
    is_broken: bool,
    secrets: BTreeMap<MemberName, MemberCertificates>,
    binding: ClientSecret,
    /// What an application has read, and when.
    application: (ClientSecret, i64),
    members: Vec<Member>,
    lacking: Vec<String>,
    /// What was judged before: a certificate, whom somebody trusts, and the host if it was called.
    memory: BTreeMap<Judged, bool>,
    moves: u32,
    /// How often a change came to its end.
    dropped: u32,
}

impl World {
    fn new(seed: u64) -> Self {
        let ring = ring();
        let all = ["main-a", "main-b", "main-c"].map(name);
        let secrets: BTreeMap<MemberName, MemberCertificates> =
            all.iter().map(|it| (it.clone(), member(&ring, it, at(0)))).collect();
        let binding = binding(&ring, &all, at(0));
        let members = all.map(|name| Member {
            mounted: secrets.get(&name).cloned(),
            trusts: Some([ring.for_clients(), ring.for_peers()]),
            // Made by an older release, which did not write it down.
            word: None,
            named: false,
            pods: 0,
            name,
        });
        Self {
            now: 0,
            seed,
            ring,
            footings: TrustStates::managed(),
            elsewhere: (0..3).map(|_| [elsewhere(), elsewhere()]).collect(),
            source: [None, None],
            is_broken: false,
            secrets,
            application: (binding.clone(), 0),
            binding,
            members: members.into(),
            lacking: Vec::new(),
            memory: BTreeMap::new(),
            moves: 0,
            dropped: 0,
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

    fn offers(&self) -> SourceStates {
        let offer = |side: usize| match self.source[side] {
            None => SourceState::managed(),
            Some(_) if self.is_broken => SourceState::unchanged(None, true),
            Some(at) => {
                let Elsewhere { pair, authority, application } = self.elsewhere[at][side].clone();
                let roots = TrustBundle::external(vec![authority.certificate]);
                SourceState {
                    wish: Some(DesiredTrust { roots, pair: Some(pair.clone()) }),
                    pairs: Leaves::Shared(Box::new(pair)),
                    application: Some(application),
                    flaw: None,
                    is_given: true,
                }
            }
        };
        SourceStates { client: offer(0), peer: offer(1) }
    }

    fn trust(&self) -> TrustHash {
        TrustHash::on(BOTH, &self.ring, &self.footings)
    }

    /// One pass of the operator, which dies after so many writes.
    fn pass(&mut self, mut left: usize) {
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
            let moves = self.moves();
            if moves.is_empty() {
                self.roll();
                return;
            }
            self.moves = self.moves.saturating_add(1);
            let drops = |(_, it): &(Side, TrustStep)| matches!(it, TrustStep::RemoveRoots(..));
            self.dropped = self.dropped.saturating_add(u32::from(moves.iter().any(drops)));
            self.footings = written_down(&self.ring, &self.footings.moved(&moves, at(self.now)));
        }
    }

    fn secret_writes(&self) -> Vec<SecretWrite> {
        let spec = spec();
        let known = |(name, it): (&MemberName, &MemberCertificates)| {
            (name.clone(), Reading::Known(Some(Ok(it.clone()))))
        };
        let looked = SecretsState {
            ring: Reading::Known(Some(Ok(self.ring.clone()))),
            footings: self.footings.clone(),
            offers: self.offers(),
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
        match write {
            SecretWrite::CreateCa => panic!("they are there"),
            SecretWrite::Member(name, draft) => {
                let signing = signing(&self.ring, now);
                let leaves = signing.member(&blueprint(&spec), name, draft).unwrap();
                self.secrets.insert(name.clone(), leaves);
            }
            SecretWrite::MemberBundle(name, leaves) => {
                self.secrets.insert(name.clone(), (**leaves).clone());
            }
            SecretWrite::ClientCert => {
                let ca = self.footings.client.told.list(&self.ring, Side::Client);
                self.binding = ClientSecret { ca, ..binding(&self.ring, &self.names(), now) };
            }
            SecretWrite::ClientFields(binding) => self.binding = (**binding).clone(),
        }
    }

    fn moves(&mut self) -> Vec<(Side, TrustStep)> {
        let word = self.trust().word;
        let seats: Vec<PodTrust> = self
            .members
            .iter()
            .map(|it| PodTrust {
                member: it.name.clone(),
                pod: format!("{}-{}", it.name, it.pods),
                trusts: it.word.clone(),
            })
            .collect();
        let (members, offers, footings) = (self.names(), self.offers(), self.footings.clone());
        let mut moves = Vec::new();
        for side in Side::BOTH {
            let footing = footings.of(side);
            let wish = offers.of(side).wish.as_ref();
            let wished = wish.map(|it| it.roots.list(&self.ring, side)).unwrap_or_default();
            let facts = TrustChangeContext {
                footing,
                wish,
                is_used: true,
                may_move: true,
                overlap: match side {
                    Side::Client => Lifetimes::default().overlap,
                    Side::Peer => Duration::ZERO,
                },
                now: at(self.now),
                proven: &footing.proven.list(&self.ring, side),
                wished: &wished,
                company: MemberReadiness { word: &word, members: &members, seats: &seats },
            };
            let mut decided = trust_change::next(&facts, None);
            if decided == TrustDecision::NeedsProbe {
                let proof = self.proof(side, facts.wish.unwrap());
                decided = trust_change::next(&facts, Some(&proof));
                let trusts_others = |it: &&PodTrust| {
                    matches!(
                        proof.get(&it.member),
                        Some(TlsProbe::RejectsNewCa | TlsProbe::TrustsOldCa)
                    )
                };
                self.lacking.extend(seats.iter().filter(trusts_others).map(|it| it.pod.clone()));
            }
            match decided {
                TrustDecision::Idle | TrustDecision::Wait(_) => {}
                TrustDecision::NeedsProbe => panic!("it was proven"),
                TrustDecision::Apply(change) => moves.push((side, change)),
            }
        }
        moves
    }

    /// Starts one member anew that trusts others than it should, if all run.
    fn roll(&mut self) {
        let trust = self.trust();
        let named = !self.footings.peer.told.ours;
        if self.members.iter().any(|it| it.trusts.is_none()) {
            return;
        }
        let lacking = self.lacking.clone();
        let differs = |it: &Member| {
            let says_other = it.word.as_ref().map_or(trust.is_turning, |word| *word != trust.word);
            says_other || lacking.contains(&format!("{}-{}", it.name, it.pods)) || it.named != named
        };
        if let Some(member) = self.members.iter_mut().find(|it| differs(it)) {
            member.trusts = None;
            member.word = Some(trust.word.clone());
            member.named = named;
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
        match self.chance(13) {
            0..3 => {
                let writes = usize::try_from(self.chance(8)).unwrap();
                self.pass(writes);
            }
            3 | 4 => self.pass(usize::MAX),
            5 | 6 => {
                let member = &mut self.members[who];
                member.mounted = self.secrets.get(&member.name).cloned();
            }
            7 => self.start(who, false),
            8 | 9 => self.start(who, true),
            // It crashes and starts in the same pod.
            10 => self.members[who].trusts = None,
            11 => self.wait(),
            _ => {
                // Most changes come to their end before the next one is asked for.
                let is_at_rest = self.is_at_rest();
                if is_at_rest || self.chance(12) == 0 {
                    self.ask_for_another();
                }
            }
        }
    }

    fn ask_for_another(&mut self) {
        let side = usize::try_from(self.chance(2)).unwrap();
        match self.chance(6) {
            0 => self.is_broken = !self.is_broken,
            at => self.source[side] = usize::try_from(at).unwrap().checked_sub(3),
        }
    }

    fn is_at_rest(&self) -> bool {
        let offers = self.offers();
        let rests = |side: Side| {
            let wish = offers.of(side).wish.as_ref();
            wish.is_some_and(|it| self.footings.of(side).rests_on(it))
        };
        Side::BOTH.into_iter().all(rests)
    }

    /// Twenty hours. Applications read their Secret after less than three days.
    fn wait(&mut self) {
        self.now = self.now.saturating_add(20 * HOUR);
        if self.now.saturating_sub(self.application.1) > 48 * HOUR {
            self.application = (self.binding.clone(), self.now);
        }
    }
}

/// What is read again of what was written down, by way of the Secret.
fn written_down(ring: &CaSet, footings: &TrustStates) -> TrustStates {
    let spec = spec();
    let mut held = ring.secret(&blueprint(&spec));
    let patch = footings.written(&held);
    let value = &patch["data"]["trust-state"];
    let read = serde_json::from_value::<Option<ByteString>>(value.clone()).unwrap();
    held.data.as_mut().unwrap().extend(read.map(|it| ("trust-state".to_owned(), it)));
    let read = TrustStates::read(&held).unwrap();
    assert_eq!(read, *footings, "what is written is read again");
    read
}

#[test]
fn at_every_moment_of_a_change_of_sources_everybody_knows_everybody() {
    let (mut moves, mut dropped) = (0_u32, 0_u32);
    for seed in 0..WALKS {
        let mut world = World::new(seed);
        for event in 0..EVENTS {
            world.happen();
            world.check(&format!("walk {seed}, event {event}"));
        }
        world.is_broken = false;
        for event in 0..FAIR {
            world.pass(usize::MAX);
            for index in 0..3 {
                // Nodes are late now and then to the end.
                world.start(index, !event.is_multiple_of(3));
                let member = &mut world.members[index];
                member.mounted = world.secrets.get(&member.name).cloned();
            }
            world.wait();
            world.check(&format!("walk {seed}, fair event {event}"));
        }
        moves = world.moves.saturating_add(moves);
        dropped = world.dropped.saturating_add(dropped);
        let asked = world.offers();
        for side in Side::BOTH {
            let wish = asked.of(side).wish.as_ref().unwrap();
            let rests = world.footings.of(side).rests_on(wish);
            assert!(rests, "walk {seed} does not come to rest on its {} side", side.word());
        }
        let expected = Some(world.trust().word);
        assert!(
            world.members.iter().all(|it| it.word == expected),
            "walk {seed}: somebody was left out"
        );
        let told = Side::BOTH.map(|it| world.footings.of(it).told.list(&world.ring, it));
        assert!(
            world.members.iter().all(|it| it.trusts.as_ref() == Some(&told)),
            "walk {seed}: somebody trusts who was dropped"
        );
    }
    let walks = u32::try_from(WALKS).unwrap();
    assert!(moves > 10 * walks, "only {moves} moves were made");
    assert!(dropped > 2 * walks, "only {dropped} changes came to their end");
}
