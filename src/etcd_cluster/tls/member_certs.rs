//! The certificates of a member, in a Secret and out of it, and the hosts they must be good for.
//! Comes in: a Secret that anyone may have written to, or certificates. Goes out: the other one.
//! May touch: `pki`, the blueprint, Kubernetes' own types; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::core::v1::Secret;

use super::secret_keys::{CLIENT_CA, InvalidSecret, PEER, PEER_CA, SERVER, bundled, trusted};
use crate::api::names;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::state::MemberName;
use crate::pki::ca::Certificate;
use crate::pki::leaf::CertifiedKey;

/// What a member shows, and whom it trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberCertificates {
    /// What it shows to clients. etcd shows it to itself, too, as a client.
    pub(crate) server: CertifiedKey,
    /// What it shows to other members, whoever of the two calls.
    pub(crate) peer: CertifiedKey,
    /// Whom it trusts among clients.
    pub(crate) client_ca: Vec<Certificate>,
    /// Whom it trusts among members.
    pub(crate) peer_ca: Vec<Certificate>,
}

/// Where one certificate of a member comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeafSource {
    /// Our own authority signs it anew.
    Issue,
    /// It is this.
    Use(Box<CertifiedKey>),
}

/// What a member shall have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberCertPlan {
    pub(crate) server: LeafSource,
    pub(crate) peer: LeafSource,
    pub(crate) client_ca: Vec<Certificate>,
    pub(crate) peer_ca: Vec<Certificate>,
}

impl MemberCertificates {
    /// What a Secret says.
    pub(crate) fn read(secret: &Secret) -> Result<Self, InvalidSecret> {
        Ok(Self {
            server: SERVER.signed(secret)?,
            peer: PEER.signed(secret)?,
            client_ca: trusted(secret, CLIENT_CA)?,
            peer_ca: trusted(secret, PEER_CA)?,
        })
    }

    /// The Secret with these, which goes with the EtcdMember.
    pub(crate) fn secret(
        &self,
        blueprint: &Blueprint<'_>,
        member: &MemberName,
        member_uid: &str,
    ) -> Secret {
        let Self { server, peer, client_ca, peer_ca } = self;
        let trusted = [bundled(CLIENT_CA, client_ca), bundled(PEER_CA, peer_ca)];
        let data = SERVER.written(server).into_iter().chain(PEER.written(peer)).chain(trusted);
        let name = names::member_secret(&member.0);
        Secret {
            metadata: blueprint.member_metadata(name, member, member_uid),
            type_: Some("Opaque".to_owned()),
            data: Some(data.collect()),
            ..Secret::default()
        }
    }
}

/// The hosts by which clients call a member: its own, those of the Service for all, and its own node's
/// word for itself. No cluster domain: nobody tells us what it is.
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

/// The host by which other members call one. Exactly that one.
pub(crate) fn peer_hosts(blueprint: &Blueprint<'_>, member: &MemberName) -> Vec<String> {
    vec![names::member_host(&member.0, blueprint.namespace)]
}
