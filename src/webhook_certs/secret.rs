//! Converts between the CA set and its Secret. Pure.
//! Guarantees: entries of other writers are preserved; an update keeps uid and resourceVersion of
//! the Secret that was read, so that a write based on an old version conflicts.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use jiff::{Timestamp, Unit};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::ca_set::{CaSet, InvalidEntry};
use crate::api::names;
use crate::pki::ca::{Certificate, CertificateAuthority, ParseError, bundle};

const CURRENT: [&str; 2] = ["current.crt", "current.key"];
const NEXT: [&str; 2] = ["next.crt", "next.key"];
const PREVIOUS: &str = "previous.crt";
/// The trust bundle under its conventional key, for users and tools.
const BUNDLE: &str = "ca.crt";
/// When a CA last became `current`, by the wall clock of the leader that activated it.
const ROTATED_AT: &str = "quorate.appdelivery.cncf.io/rotated-at";
/// The API server's limit.
const MAX_SECRET_BYTES: usize = 1024 * 1024;

/// The CA set in a Secret, and the invalid entries.
pub(crate) fn parse(secret: &Secret) -> (CaSet, Vec<InvalidEntry>) {
    let empty = BTreeMap::new();
    let data = secret.data.as_ref().filter(|data| size(data) <= MAX_SECRET_BYTES).unwrap_or(&empty);
    let mut invalid = Vec::new();
    let mut without_key = Vec::new();
    let current = parse_ca(data, CURRENT, &mut invalid, &mut without_key);
    let next = parse_ca(data, NEXT, &mut invalid, &mut without_key);
    let mut previous =
        data.get(PREVIOUS).map_or_else(Vec::new, |pem| Certificate::parse_ca_bundle(&pem.0));
    if data.get(PREVIOUS).is_some_and(|pem| pem.0 != bundle(&previous)) {
        invalid.push(InvalidEntry { key: PREVIOUS, error: ParseError::NotPem });
    }
    // A CA without its key cannot sign any more, but its leaves may be in use.
    previous.extend(without_key);
    let annotations = secret.metadata.annotations.as_ref();
    let rotated_at = annotations.and_then(|annotations| annotations.get(ROTATED_AT)?.parse().ok());
    let ca_set = CaSet { current, next, previous, rotated_at };
    if data.get(BUNDLE).is_none_or(|pem| pem.0 != ca_set.bundle()) {
        invalid.push(InvalidEntry { key: BUNDLE, error: ParseError::NotPem });
    }
    (ca_set, invalid)
}

/// The CA under these two keys, if it is valid. Of an invalid pair a valid certificate is kept.
fn parse_ca(
    data: &BTreeMap<String, ByteString>,
    [certificate, key]: [&'static str; 2],
    invalid: &mut Vec<InvalidEntry>,
    without_key: &mut Vec<Certificate>,
) -> Option<CertificateAuthority> {
    let (found, parsed) = match (data.get(certificate), data.get(key)) {
        (None, None) => return None,
        (None, Some(_)) => {
            invalid.push(InvalidEntry { key: certificate, error: ParseError::Missing });
            return None;
        }
        (Some(found), None) => (found, Err(ParseError::Missing)),
        (Some(found), Some(key)) => (found, CertificateAuthority::from_pem(&found.0, &key.0)),
    };
    let valid = parsed.map_err(|error| {
        let alone = Certificate::parse_ca_pem(&found.0);
        let key = if alone.is_ok() { key } else { certificate };
        invalid.push(InvalidEntry { key, error });
        without_key.extend(alone);
    });
    valid.ok()
}

fn size(data: &BTreeMap<String, ByteString>) -> usize {
    data.values().fold(0, |sum, value| sum.saturating_add(value.0.len()))
}

/// A new Secret.
pub(crate) fn new_secret(namespace: &str, ca_set: &CaSet) -> Secret {
    let labels = [
        (names::NAME_LABEL, names::OPERATOR),
        (names::PART_OF_LABEL, names::OPERATOR),
        (names::COMPONENT_LABEL, "webhook"),
        (names::MANAGED_BY_LABEL, names::OPERATOR),
    ];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let metadata = ObjectMeta {
        name: Some(names::WEBHOOK_CA_SECRET.to_owned()),
        namespace: Some(namespace.to_owned()),
        labels: Some(labels.into()),
        ..ObjectMeta::default()
    };
    let type_ = Some("Opaque".to_owned());
    updated_secret(&Secret { metadata, type_, ..Secret::default() }, ca_set)
}

/// The Secret with this CA set.
pub(crate) fn updated_secret(read: &Secret, ca_set: &CaSet) -> Secret {
    let mut secret = read.clone();
    let data = secret.data.get_or_insert_default();
    if size(data) > MAX_SECRET_BYTES {
        data.clear();
    }
    let mut put = |key: &str, value: Option<Vec<u8>>| {
        match value {
            Some(value) => data.insert(key.to_owned(), ByteString(value)),
            None => data.remove(key),
        };
    };
    for ([certificate, key], ca) in [(CURRENT, &ca_set.current), (NEXT, &ca_set.next)] {
        put(certificate, ca.as_ref().map(|ca| ca.certificate.pem().into_bytes()));
        put(key, ca.as_ref().map(|ca| ca.key.pem().into_bytes()));
    }
    put(PREVIOUS, (!ca_set.previous.is_empty()).then(|| bundle(&ca_set.previous)));
    put(BUNDLE, Some(ca_set.bundle()));
    let annotations = secret.metadata.annotations.get_or_insert_default();
    match ca_set.rotated_at {
        Some(time) => annotations.insert(ROTATED_AT.to_owned(), whole_seconds(time).to_string()),
        None => annotations.remove(ROTATED_AT),
    };
    secret
}

/// Rounded up, so that no CA is removed early.
fn whole_seconds(time: Timestamp) -> Timestamp {
    let up = jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Ceil);
    time.round(up).unwrap_or(time)
}

#[cfg(test)]
mod tests;
