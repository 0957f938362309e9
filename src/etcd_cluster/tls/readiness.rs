//! Whether all members are ready for the next step of a CA rotation or a trust change: their pods
//! run with the current trust bundle, the overlap is over, and a TLS probe confirms it. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::etcd_cluster::state::MemberName;

/// A pod of a member, and the trust bundle it was created with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodTrust {
    pub(crate) member: MemberName,
    pub(crate) pod_uid: String,
    /// The trust bundle hash in the pod's annotation.
    pub(crate) trust_hash: Option<String>,
}

/// The result of a TLS handshake with a member, with a client certificate of the new CA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TlsProbe {
    /// The member accepts the client certificate and presents the expected one.
    Ok,
    /// The member rejects the client certificate: its trust bundle lacks the new CA.
    RejectsNewCa,
    /// The member still presents a certificate of the old CA.
    PresentsOldCert,
    /// The member still accepts certificates of a removed CA.
    TrustsOldCa,
    /// The member cannot be reached, with the error.
    Unreachable(String),
}

/// The probe results of all members that have a pod.
pub(crate) type ProbeResults = BTreeMap<MemberName, TlsProbe>;

/// What a step waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WaitingFor {
    /// Changes of the cluster are paused.
    Unpause,
    /// The trust bundle would contain too many CAs.
    BundleSpace,
    /// These members have not been restarted with the current trust bundle.
    Restart(Vec<MemberName>),
    /// Applications have until this time to read their Secret.
    Overlap(Timestamp),
    /// The probe of this member failed.
    Probe(MemberName, TlsProbe),
}

/// The members and pods that must be ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberReadiness<'a> {
    /// The trust bundle hash of a pod that is created now.
    pub(crate) trust_hash: &'a str,
    pub(crate) members: &'a [MemberName],
    pub(crate) pods: &'a [PodTrust],
}

/// Whether a step can be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    /// The members must be probed first.
    NeedsProbe,
    Wait(WaitingFor),
}

impl MemberReadiness<'_> {
    /// Whether all members have been restarted, `ready_at` has passed, and all probes succeeded.
    pub(crate) fn ready(
        &self,
        ready_at: Timestamp,
        now: Timestamp,
        results: Option<&ProbeResults>,
    ) -> Readiness {
        let not_restarted = self.not_restarted();
        if !not_restarted.is_empty() {
            return Readiness::Wait(WaitingFor::Restart(not_restarted));
        }
        if now < ready_at {
            return Readiness::Wait(WaitingFor::Overlap(ready_at));
        }
        let Some(results) = results else { return Readiness::NeedsProbe };
        for pod in self.pods {
            match results.get(&pod.member) {
                Some(TlsProbe::Ok) => {}
                Some(result) => {
                    return Readiness::Wait(WaitingFor::Probe(pod.member.clone(), result.clone()));
                }
                None => return Readiness::NeedsProbe,
            }
        }
        Readiness::Ready
    }

    /// Members whose pod has another trust bundle, and members without a pod, which may be about
    /// to start with an older one.
    fn not_restarted(&self) -> Vec<MemberName> {
        let is_current = |pod: &&PodTrust| pod.trust_hash.as_deref() == Some(self.trust_hash);
        let has_pod = |name: &&MemberName| self.pods.iter().any(|pod| pod.member == **name);
        let without_pod = self.members.iter().filter(|name| !has_pod(name));
        let stale = self.pods.iter().filter(|pod| !is_current(pod)).map(|pod| &pod.member);
        let mut all: Vec<MemberName> = without_pod.chain(stale).cloned().collect();
        all.sort();
        all.dedup();
        all
    }
}
