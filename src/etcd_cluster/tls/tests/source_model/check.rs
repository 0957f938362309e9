//! What must hold at every moment in which sources change: everybody who runs knows everybody else.

use super::super::super::client_secret::ClientSecret;
use super::super::super::readiness::{ProbeResults, TlsProbe};
use super::super::super::source::DesiredTrust;
use super::super::super::trust_bundle::Side;
use super::super::super::trust_change::TrustPhase;
use super::super::*;
use super::{Trusted, World};
use crate::api::names;
use crate::pki::leaf::CertifiedKey;

impl World {
    /// What members show when they are called.
    pub(super) fn proof(&mut self, side: Side, wish: &DesiredTrust) -> ProbeResults {
        let footing = self.footings.of(side).clone();
        let signing = signing(&self.ring, at(0));
        let authority = match side {
            Side::Client => &self.ring.now.client,
            Side::Peer => &self.ring.now.peer,
        };
        let shown = wish.pair.clone().unwrap_or_else(|| signing.caller(authority).unwrap());
        let trusts = match footing.stage(wish) {
            TrustPhase::Requested | TrustPhase::Distributing => footing.told.list(&self.ring, side),
            TrustPhase::Retiring | TrustPhase::Verifying => wish.roots.list(&self.ring, side),
        };
        let dropped = footing.unnamed(&self.ring, side);
        let all: Vec<_> = self
            .members
            .iter()
            .map(|it| (it.name.clone(), it.mounted.clone(), it.trusts.clone(), it.named))
            .collect();
        let mut proof = ProbeResults::new();
        for (name, mounted, trusted, named) in all {
            let (Some(leaves), Some(trusted)) = (mounted, trusted) else {
                proof.insert(name, TlsProbe::Unreachable("it is down".to_owned()));
                continue;
            };
            let (pair, believes) = of_side(side, &leaves, &trusted);
            let asked = if named && side == Side::Peer {
                names::member_host("main", "space")
            } else {
                String::new()
            };
            let verdict = if !self.lets_in(believes, &shown, &asked) {
                TlsProbe::RejectsNewCa
            } else if !self.serves(&trusts, pair, &host(&name)) {
                TlsProbe::PresentsOldCert
            } else if believes.iter().any(|it| dropped.contains(it)) {
                TlsProbe::TrustsOldCa
            } else {
                TlsProbe::Ok
            };
            proof.insert(name, verdict);
        }
        proof
    }

    fn judged(&mut self, pair: &CertifiedKey, all: &[Certificate], host: &str) -> bool {
        let roots = all.iter().map(|it| it.der.clone()).collect();
        let key = (pair.certificate.der.clone(), roots, host.to_owned());
        let now = at(self.now);
        *self.memory.entry(key).or_insert_with(|| {
            if host.is_empty() {
                pair.verify_as_client(all, now).is_ok()
            } else {
                pair.verify_as_server(all, host, now).is_ok()
            }
        })
    }

    /// Whether whoever trusts these takes it from somebody who calls, and asks them for a name if there is one.
    pub(super) fn lets_in(
        &mut self,
        all: &[Certificate],
        pair: &CertifiedKey,
        asked: &str,
    ) -> bool {
        self.judged(pair, all, "")
            && (asked.is_empty() || pair.certificate.hosts().iter().any(|it| covers(it, asked)))
    }

    pub(super) fn serves(&mut self, all: &[Certificate], pair: &CertifiedKey, host: &str) -> bool {
        self.judged(pair, all, host)
    }

    /// Everybody who runs knows everybody else, and applications know them and are known.
    pub(super) fn check(&mut self, story: &str) {
        type Runs = (MemberName, MemberCertificates, Trusted, bool);
        let runs: Vec<Runs> = self
            .members
            .iter()
            .filter_map(|it| {
                Some((it.name.clone(), it.mounted.clone()?, it.trusts.clone()?, it.named))
            })
            .collect();
        let applications = [self.application.0.clone(), self.binding.clone()];
        for (name, leaves, [clients, peers], named) in &runs {
            let asked = if *named { names::member_host("main", "space") } else { String::new() };
            for (other, shown, _, _) in &runs {
                let lets_in = self.lets_in(peers, &shown.peer, &asked);
                assert!(lets_in, "{story}: {name} does not let {other} in");
                let serves = self.serves(peers, &shown.peer, &host(other));
                assert!(serves, "{story}: {name} does not call {other}");
            }
            for (late, binding) in applications.iter().enumerate() {
                let ClientSecret { pair: Some(pair), ca, .. } = binding else { panic!("no key") };
                let serves = self.serves(ca, &leaves.server, &host(name));
                assert!(serves, "{story}: application {late} does not know {name}");
                let lets_in = self.lets_in(clients, pair, "");
                assert!(lets_in, "{story}: {name} does not know application {late}");
            }
        }
    }
}

pub(super) fn host(name: &MemberName) -> String {
    names::member_host(&name.0, "space")
}

/// Whether a name in a certificate is that host's.
fn covers(name: &str, host: &str) -> bool {
    let wild = name
        .strip_prefix("*.")
        .is_some_and(|it| host.split_once('.').is_some_and(|(_, rest)| rest == it));
    wild || name == host
}

fn of_side<'a>(
    side: Side,
    leaves: &'a MemberCertificates,
    [clients, peers]: &'a Trusted,
) -> (&'a CertifiedKey, &'a [Certificate]) {
    match side {
        Side::Client => (&leaves.server, clients),
        Side::Peer => (&leaves.peer, peers),
    }
}
