//! The events of the source model: restarts, rolling updates, source changes and time.

use super::*;

impl Model {
    /// Recreates one pod with another template or trust bundle, if all members run.
    pub(super) fn recreate_one_pod(&mut self) {
        let trust = self.trust();
        let requires_name = !self.trust_states.peer.published.managed;
        if self.members.iter().any(|member| member.trusts.is_none()) {
            return;
        }
        let stale_pods = self.stale_pods.clone();
        let differs = |member: &Member| {
            let hash = member.trust_hash.as_ref();
            let has_other_hash = hash.map_or(trust.in_rotation, |hash| *hash != trust.hash);
            has_other_hash
                || stale_pods.contains(&member.pod_uid())
                || member.requires_cluster_name != requires_name
        };
        if let Some(member) = self.members.iter_mut().find(|member| differs(member)) {
            member.trusts = None;
            member.trust_hash = Some(trust.hash.clone());
            member.requires_cluster_name = requires_name;
            member.recreated = member.recreated.saturating_add(1);
        }
    }

    /// Starts a member that is down. If not `fresh`, the kubelet mounts an older Secret.
    pub(super) fn start(&mut self, index: usize, fresh: bool) {
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

    pub(super) fn random_event(&mut self) {
        let index = usize::try_from(self.random(3)).unwrap();
        match self.random(13) {
            0..3 => {
                let writes = usize::try_from(self.random(8)).unwrap();
                self.reconcile(writes);
            }
            3 | 4 => self.reconcile(usize::MAX),
            5 | 6 => {
                let member = &mut self.members[index];
                member.mounted = self.secrets.get(&member.name).cloned();
            }
            7 => self.start(index, false),
            8 | 9 => self.start(index, true),
            // The container crashes and restarts in the same pod.
            10 => self.members[index].trusts = None,
            11 => self.wait(),
            _ => {
                // Most changes finish before the next one is requested.
                let is_complete = self.is_complete();
                if is_complete || self.random(12) == 0 {
                    self.change_source();
                }
            }
        }
    }

    pub(super) fn change_source(&mut self) {
        let side = usize::try_from(self.random(2)).unwrap();
        match self.random(6) {
            0 => self.is_broken = !self.is_broken,
            number => self.source[side] = usize::try_from(number).unwrap().checked_sub(3),
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        let sources = self.sources();
        let is_complete = |side: Side| {
            let desired = sources.get(side).desired.as_ref();
            desired.is_some_and(|desired| self.trust_states.get(side).is_complete(desired))
        };
        Side::BOTH.into_iter().all(is_complete)
    }

    /// Advances time by twenty hours. Applications read their Secret within three days.
    pub(super) fn wait(&mut self) {
        self.now = self.now.saturating_add(20 * HOUR);
        if self.now.saturating_sub(self.application.1) > 48 * HOUR {
            self.application = (self.client_secret.clone(), self.now);
        }
    }
}
