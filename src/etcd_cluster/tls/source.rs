//! What each side of a cluster is offered: where its certificates shall come from, and what is there of them.
//! Comes in: nothing; others fill it in. Goes out: what members, the operator and applications could show.
//! May touch: `pki`; pure. An offer is not yet taken: what is shown depends on whom all are known to trust.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use super::external_secret::CertificateProblem;
use super::trust_bundle::{Side, TrustBundle};
use crate::etcd_cluster::state::MemberName;
use crate::pki::leaf::CertifiedKey;

/// What a side shall rest on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DesiredTrust {
    pub(crate) roots: TrustBundle,
    /// What the operator would show; our own authorities sign that if there is nothing.
    pub(crate) pair: Option<CertifiedKey>,
}

/// What members could show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// What our own authorities sign.
    Managed,
    /// All the same.
    Shared(Box<CertifiedKey>),
    /// Each its own, as far as it is there.
    PerMember(BTreeMap<MemberName, CertifiedKey>),
    /// What they have.
    Unchanged,
}

/// What one side is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceState {
    /// Nothing if everything stays as it is.
    pub(crate) wish: Option<DesiredTrust>,
    pub(crate) pairs: Leaves,
    /// What applications could be handed.
    pub(crate) application: Option<CertifiedKey>,
    /// What is wrong with it.
    pub(crate) flaw: Option<CertificateProblem>,
    /// Whether it comes from elsewhere, and must be looked at again and again.
    pub(crate) is_given: bool,
}

/// Both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceStates {
    pub(crate) client: SourceState,
    pub(crate) peer: SourceState,
}

impl SourceState {
    /// What our own authorities sign.
    pub(crate) const fn managed() -> Self {
        let wish = Some(DesiredTrust { roots: TrustBundle::managed(), pair: None });
        Self { wish, pairs: Leaves::Managed, application: None, flaw: None, is_given: false }
    }

    /// Everything stays as it is.
    pub(crate) const fn unchanged(flaw: Option<CertificateProblem>, is_given: bool) -> Self {
        Self { wish: None, pairs: Leaves::Unchanged, application: None, flaw, is_given }
    }
}

impl SourceStates {
    /// What our own authorities sign, on both sides.
    #[cfg(test)]
    pub(crate) const fn managed() -> Self {
        Self { client: SourceState::managed(), peer: SourceState::managed() }
    }

    /// One of the two.
    pub(crate) const fn of(&self, side: Side) -> &SourceState {
        match side {
            Side::Client => &self.client,
            Side::Peer => &self.peer,
        }
    }

    /// The worst that is wrong with either.
    pub(crate) fn flaw(&self) -> Option<&CertificateProblem> {
        let all = || [&self.client, &self.peer].into_iter().filter_map(|it| it.flaw.as_ref());
        all().find(|it| it.is_fatal()).or_else(|| all().next())
    }

    /// Whether either comes from elsewhere.
    pub(crate) const fn is_given(&self) -> bool {
        self.client.is_given || self.peer.is_given
    }
}
