//! The certificate source of each side: where certificates should come from, and which are
//! available. Pure.
//! A source is not used at once: members present its certificates only when all members are
//! confirmed to trust its CAs.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use super::external_secret::CertificateProblem;
use super::trust_bundle::{Side, TrustBundle};
use crate::etcd_cluster::state::MemberName;
use crate::pki::leaf::CertifiedKey;

/// The trust that one side should end up with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DesiredTrust {
    pub(crate) bundle: TrustBundle,
    /// The operator's external client certificate; `None` if the managed CA issues it.
    pub(crate) operator_cert: Option<CertifiedKey>,
}

/// The leaf certificates available for members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// Issued by the managed CA.
    Managed,
    /// One external certificate for all members.
    Shared(Box<CertifiedKey>),
    /// One external certificate per member, as far as they are issued.
    PerMember(BTreeMap<MemberName, CertifiedKey>),
    /// Members keep their current certificates.
    Unchanged,
}

/// The state of the certificate source of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceState {
    /// `None` if the current trust is kept.
    pub(crate) desired: Option<DesiredTrust>,
    pub(crate) leaves: Leaves,
    /// The client certificate for applications.
    pub(crate) application: Option<CertifiedKey>,
    pub(crate) problem: Option<CertificateProblem>,
    /// Whether the source is external and must be read periodically.
    pub(crate) is_external: bool,
}

/// The sources of both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceStates {
    pub(crate) client: SourceState,
    pub(crate) peer: SourceState,
}

impl SourceState {
    /// Certificates are issued by the managed CA.
    pub(crate) const fn managed() -> Self {
        let desired = Some(DesiredTrust { bundle: TrustBundle::managed(), operator_cert: None });
        let leaves = Leaves::Managed;
        Self { desired, leaves, application: None, problem: None, is_external: false }
    }

    /// Members keep their current certificates and trust.
    pub(crate) const fn unchanged(problem: Option<CertificateProblem>, is_external: bool) -> Self {
        let leaves = Leaves::Unchanged;
        Self { desired: None, leaves, application: None, problem, is_external }
    }
}

impl SourceStates {
    /// Both sides use the managed CAs.
    #[cfg(test)]
    pub(crate) const fn managed() -> Self {
        Self { client: SourceState::managed(), peer: SourceState::managed() }
    }

    /// The source of one side.
    pub(crate) const fn get(&self, side: Side) -> &SourceState {
        match side {
            Side::Client => &self.client,
            Side::Peer => &self.peer,
        }
    }

    /// The most severe problem of either side.
    pub(crate) fn problem(&self) -> Option<&CertificateProblem> {
        let sides = [&self.client, &self.peer];
        let all = || sides.into_iter().filter_map(|source| source.problem.as_ref());
        all().find(|problem| problem.is_fatal()).or_else(|| all().next())
    }

    /// Whether either side is external.
    pub(crate) const fn is_external(&self) -> bool {
        self.client.is_external || self.peer.is_external
    }
}
