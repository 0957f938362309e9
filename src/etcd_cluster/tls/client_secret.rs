//! All that an application needs to connect, in a Secret and out of it, in the words of
//! servicebinding.io.
//! Comes in: a Secret that anyone may have written to, or what belongs into it. Goes out: the other one.
//! May touch: `pki`, the blueprint, Kubernetes' own types; pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;

use super::secret_keys::{APPLICATION, CA, InvalidSecret, bundled, entry, has, trusted};
use crate::api::names;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::render::metadata::string_map;
use crate::etcd_cluster::state::MemberName;
use crate::pki::ca::Certificate;
use crate::pki::leaf::CertifiedKey;

/// The type of the Secret, which never changes.
const TYPE: &str = "servicebinding.io/etcd";
const WORDS: [&str; 6] = ["type", "provider", "host", "port", "uri", "endpoints"];

/// What an application is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientSecret {
    /// What is no secret.
    pub(crate) words: BTreeMap<String, String>,
    /// What it shows; nothing where connections are in the clear, or where applications bring their own.
    pub(crate) pair: Option<CertifiedKey>,
    /// Whom it trusts; nobody where connections are in the clear.
    pub(crate) ca: Vec<Certificate>,
}

impl ClientSecret {
    /// What a Secret says. What of its identity cannot be used is told beside it: the words are of use
    /// without it.
    pub(crate) fn read(secret: &Secret) -> (Self, Option<InvalidSecret>) {
        let word = |key: &str| {
            let bytes = &secret.data.as_ref()?.get(key)?.0;
            Some((key.to_owned(), str::from_utf8(bytes).ok()?.to_owned()))
        };
        let words = WORDS.into_iter().filter_map(word).collect();
        let found = match APPLICATION.signed(secret) {
            Ok(pair) => Ok(Some(pair)),
            // Whoever brings their own is given none.
            Err(_) if !APPLICATION.is_there(secret) && has(secret, CA) => Ok(None),
            Err(broken) => Err(broken),
        };
        match found.and_then(|pair| Ok((pair, trusted(secret, CA)?))) {
            Ok((pair, ca)) => (Self { words, pair, ca }, None),
            Err(broken) => (Self::open(words), Some(broken)),
        }
    }

    /// What is told where connections are in the clear.
    pub(crate) const fn open(words: BTreeMap<String, String>) -> Self {
        Self { words, pair: None, ca: Vec::new() }
    }

    /// The Secret with this.
    pub(crate) fn secret(&self, blueprint: &Blueprint<'_>) -> Secret {
        let Self { words, pair, ca } = self;
        let words = words.iter().map(|(key, value)| entry(key, value.as_str()));
        let pair = pair.iter().flat_map(|it| APPLICATION.written(it));
        let ca = (!ca.is_empty()).then(|| bundled(CA, ca));
        Secret {
            metadata: blueprint.metadata(names::client_secret(blueprint.name)),
            type_: Some(TYPE.to_owned()),
            data: Some(words.chain(pair).chain(ca).collect()),
            ..Secret::default()
        }
    }
}

/// What an application is told of a cluster with these members.
pub(crate) fn fields(
    blueprint: &Blueprint<'_>,
    members: &[MemberName],
) -> BTreeMap<String, String> {
    let Blueprint { name, namespace, .. } = *blueprint;
    let host = format!("{}.{namespace}.svc", names::client_service(name));
    let port = names::ETCD_CLIENT_PORT.to_string();
    let uri = format!("{}://{host}:{port}", blueprint.advertised_scheme().as_str());
    let mut endpoints: Vec<String> = members.iter().map(|it| blueprint.client_url(it)).collect();
    // The same members make the same Secret, in whatever order they were listed.
    endpoints.sort();
    // Before there is a member there is the Service, which waits for them.
    let endpoints = if endpoints.is_empty() { uri.clone() } else { endpoints.join(",") };
    string_map(&[
        ("type", "etcd"),
        ("provider", names::OPERATOR),
        ("host", &host),
        ("port", &port),
        ("uri", &uri),
        ("endpoints", &endpoints),
    ])
}
