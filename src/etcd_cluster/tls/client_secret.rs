//! The Secret with all that an application needs to connect, in the format of servicebinding.io.
//! Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;

use super::secret_keys::{APPLICATION, CA, InvalidSecret, bundle_entry, entry, has, read_bundle};
use crate::api::names;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::render::metadata::string_map;
use crate::etcd_cluster::state::MemberName;
use crate::pki::ca::Certificate;
use crate::pki::leaf::CertifiedKey;

/// The type of the Secret, which is immutable.
const TYPE: &str = "servicebinding.io/etcd";
const FIELDS: [&str; 6] = ["type", "provider", "host", "port", "uri", "endpoints"];

/// The content of the client Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientSecret {
    /// The fields that are not confidential.
    pub(crate) fields: BTreeMap<String, String>,
    /// The client certificate; `None` for plaintext, or if applications bring their own.
    pub(crate) key_pair: Option<CertifiedKey>,
    /// The trust bundle; empty for plaintext.
    pub(crate) ca: Vec<Certificate>,
}

impl ClientSecret {
    /// Parses the Secret. An invalid certificate or trust bundle is returned beside the fields,
    /// which can be used without them.
    pub(crate) fn read(secret: &Secret) -> (Self, Option<InvalidSecret>) {
        let field = |key: &str| {
            let bytes = &secret.data.as_ref()?.get(key)?.0;
            Some((key.to_owned(), str::from_utf8(bytes).ok()?.to_owned()))
        };
        let fields = FIELDS.into_iter().filter_map(field).collect();
        let parsed = match APPLICATION.read_key_pair(secret) {
            Ok(key_pair) => Ok(Some(key_pair)),
            // Applications bring their own certificates.
            Err(_) if !APPLICATION.exists_in(secret) && has(secret, CA) => Ok(None),
            Err(invalid) => Err(invalid),
        };
        match parsed.and_then(|key_pair| Ok((key_pair, read_bundle(secret, CA)?))) {
            Ok((key_pair, ca)) => (Self { fields, key_pair, ca }, None),
            Err(invalid) => (Self::plaintext(fields), Some(invalid)),
        }
    }

    /// The content for plaintext connections.
    pub(crate) const fn plaintext(fields: BTreeMap<String, String>) -> Self {
        Self { fields, key_pair: None, ca: Vec::new() }
    }

    /// The Secret with this content.
    pub(crate) fn secret(&self, blueprint: &Blueprint<'_>) -> Secret {
        let Self { fields, key_pair, ca } = self;
        let fields = fields.iter().map(|(key, value)| entry(key, value.as_str()));
        let key_pair = key_pair.iter().flat_map(|key_pair| APPLICATION.entries(key_pair));
        let ca = (!ca.is_empty()).then(|| bundle_entry(CA, ca));
        Secret {
            metadata: blueprint.metadata(names::client_secret(blueprint.name)),
            type_: Some(TYPE.to_owned()),
            data: Some(fields.chain(key_pair).chain(ca).collect()),
            ..Secret::default()
        }
    }
}

/// The fields for a cluster with these members.
pub(crate) fn fields(
    blueprint: &Blueprint<'_>,
    members: &[MemberName],
) -> BTreeMap<String, String> {
    let Blueprint { name, namespace, .. } = *blueprint;
    let host = format!("{}.{namespace}.svc", names::client_service(name));
    let port = names::ETCD_CLIENT_PORT.to_string();
    let uri = format!("{}://{host}:{port}", blueprint.advertised_scheme().as_str());
    let mut endpoints: Vec<String> =
        members.iter().map(|member| blueprint.client_url(member)).collect();
    // The order of the members must not change the Secret.
    endpoints.sort();
    // Without members the Service is the endpoint: it exists before them.
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
