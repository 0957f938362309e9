//! The certificates of a member, parsed from and written to its Secret, and their SANs. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::Secret;

use super::secret_keys::{
    CLIENT_CA, InvalidSecret, PEER, PEER_CA, SERVER, bundle_entry, read_bundle,
};
use crate::api::names;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::state::MemberName;
use crate::pki::ca::Certificate;
use crate::pki::leaf::CertifiedKey;

/// The certificates and trust bundles of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberCertificates {
    /// Presented to clients. etcd presents it to itself, too, as a client.
    pub(crate) server: CertifiedKey,
    /// Presented to other members, as server and as client.
    pub(crate) peer: CertifiedKey,
    /// The CAs trusted for clients.
    pub(crate) client_ca: Vec<Certificate>,
    /// The CAs trusted for peers.
    pub(crate) peer_ca: Vec<Certificate>,
}

/// Where one certificate of a member comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeafSource {
    /// The managed CA issues a new one.
    Issue,
    /// This one is used.
    Use(Box<CertifiedKey>),
}

/// The desired certificates and trust bundles of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberCertPlan {
    pub(crate) server: LeafSource,
    pub(crate) peer: LeafSource,
    pub(crate) client_ca: Vec<Certificate>,
    pub(crate) peer_ca: Vec<Certificate>,
}

impl MemberCertificates {
    /// Parses a member's Secret.
    pub(crate) fn read(secret: &Secret) -> Result<Self, InvalidSecret> {
        Ok(Self {
            server: SERVER.read_key_pair(secret)?,
            peer: PEER.read_key_pair(secret)?,
            client_ca: read_bundle(secret, CLIENT_CA)?,
            peer_ca: read_bundle(secret, PEER_CA)?,
        })
    }

    /// The Secret of the member, owned by its EtcdMember.
    pub(crate) fn secret(
        &self,
        blueprint: &Blueprint<'_>,
        member: &MemberName,
        member_uid: &str,
    ) -> Secret {
        let Self { server, peer, client_ca, peer_ca } = self;
        let bundles = [bundle_entry(CLIENT_CA, client_ca), bundle_entry(PEER_CA, peer_ca)];
        let data = SERVER.entries(server).into_iter().chain(PEER.entries(peer)).chain(bundles);
        let name = names::member_secret(&member.0);
        Secret {
            metadata: blueprint.member_metadata(name, member, member_uid),
            type_: Some("Opaque".to_owned()),
            data: Some(data.collect()),
            ..Secret::default()
        }
    }
}

/// The SANs of a server certificate: the member's names, those of the client Service, and the
/// loopback addresses. The cluster domain is unknown to the operator and not among them.
pub(crate) fn server_hosts(blueprint: &Blueprint<'_>, member: &MemberName) -> Vec<String> {
    let Blueprint { name, namespace, .. } = *blueprint;
    let service = names::client_service(name);
    vec![
        names::member_host(&member.0, namespace),
        format!("{member}.{namespace}"),
        member.to_string(),
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}"),
        service,
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ]
}

/// The SANs of a peer certificate: exactly the host that other members dial.
pub(crate) fn peer_hosts(blueprint: &Blueprint<'_>, member: &MemberName) -> Vec<String> {
    vec![names::member_host(&member.0, blueprint.namespace)]
}
