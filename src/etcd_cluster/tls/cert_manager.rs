//! The Certificate objects requested from cert-manager, and the requirements of their Secrets.
//! Pure. Each member has its own Certificate with exactly its SANs; the operator and applications
//! have one each. Private keys are requested as PKCS #8 ECDSA, with a new key for each renewal.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use serde::{Deserialize, Serialize};

use super::external_secret::Requirements;
use super::lifetimes::Lifetimes;
use super::member_certs::{peer_hosts, server_hosts};
use super::trust_bundle::Side;
use crate::api::etcd_cluster::v1::IssuerKind;
use crate::api::names;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::state::MemberName;

/// The shortest duration that cert-manager accepts.
const MIN_DURATION: Duration = Duration::from_hours(1);

/// `spec` of a Certificate.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "cert-manager.io",
    version = "v1",
    kind = "Certificate",
    namespaced,
    schema = "disabled",
    status = "CertificateStatus"
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CertificateSpec {
    pub(crate) secret_name: String,
    pub(crate) secret_template: SecretTemplate,
    pub(crate) common_name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) dns_names: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ip_addresses: Vec<String>,
    pub(crate) usages: Vec<String>,
    pub(crate) duration: String,
    pub(crate) renew_before: String,
    pub(crate) private_key: PrivateKeySpec,
    pub(crate) issuer_ref: IssuerRef,
}

/// `spec.secretTemplate`: metadata of the Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SecretTemplate {
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
}

/// `spec.privateKey`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PrivateKeySpec {
    algorithm: String,
    size: u32,
    encoding: String,
    rotation_policy: String,
}

/// `spec.issuerRef`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IssuerRef {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) group: String,
}

/// `status` of a Certificate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CertificateStatus {
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}

/// The subject of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Operator,
    Applications,
    /// A member, with the UID of its EtcdMember.
    Member(MemberName, String),
}

/// The cert-manager issuer of one side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CertManagerIssuer<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: IssuerKind,
    pub(crate) side: Side,
    pub(crate) lifetimes: Lifetimes,
}

impl CertManagerIssuer<'_> {
    /// The Certificate for a subject.
    pub(crate) fn certificate(&self, blueprint: &Blueprint<'_>, subject: &Subject) -> Certificate {
        let name = names::cert_manager_certificate(&subject.name(blueprint), self.side.as_str());
        let hosts = self.hosts(blueprint, subject);
        let (addresses, dns_names): (Vec<_>, Vec<_>) =
            hosts.into_iter().partition(|host| host.parse::<IpAddr>().is_ok());
        let duration = self.lifetimes.leaf.max(MIN_DURATION);
        let renew_before = duration.checked_div(3).unwrap_or_default();
        let seconds = |span: Duration| format!("{}s", span.as_secs());
        let metadata = match subject {
            Subject::Operator | Subject::Applications => blueprint.metadata(name.as_str()),
            Subject::Member(member, uid) => blueprint.member_metadata(name.as_str(), member, uid),
        };
        let spec = CertificateSpec {
            secret_name: name,
            secret_template: SecretTemplate { labels: metadata.labels.clone().unwrap_or_default() },
            common_name: match subject {
                Subject::Operator => names::OPERATOR.to_owned(),
                Subject::Applications => names::client_secret(blueprint.name),
                Subject::Member(member, _) => member.to_string(),
            },
            dns_names,
            ip_addresses: addresses,
            usages: usages(subject),
            duration: seconds(duration),
            renew_before: seconds(renew_before),
            private_key: PrivateKeySpec {
                algorithm: "ECDSA".to_owned(),
                size: 256,
                encoding: "PKCS8".to_owned(),
                rotation_policy: "Always".to_owned(),
            },
            issuer_ref: IssuerRef {
                name: self.name.to_owned(),
                kind: self.kind.as_str().to_owned(),
                group: "cert-manager.io".to_owned(),
            },
        };
        Certificate { metadata, spec, status: None }
    }

    /// The requirements of the Secret of a subject.
    pub(crate) fn requirements(
        &self,
        blueprint: &Blueprint<'_>,
        subject: &Subject,
    ) -> Requirements {
        let hosts = match subject {
            Subject::Operator | Subject::Applications => Vec::new(),
            Subject::Member(..) => self.hosts(blueprint, subject),
        };
        Requirements { hosts, wildcard: None }
    }

    fn hosts(&self, blueprint: &Blueprint<'_>, subject: &Subject) -> Vec<String> {
        // Members require the cluster's name of their peers, beside the dialed host.
        let cluster = names::member_host(blueprint.name, blueprint.namespace);
        match (subject, self.side) {
            (Subject::Operator | Subject::Applications, Side::Client) => Vec::new(),
            (Subject::Operator | Subject::Applications, Side::Peer) => vec![cluster],
            (Subject::Member(member, _), Side::Client) => server_hosts(blueprint, member),
            (Subject::Member(member, _), Side::Peer) => {
                let mut hosts = peer_hosts(blueprint, member);
                hosts.push(cluster);
                hosts
            }
        }
    }
}

impl Subject {
    fn name(&self, blueprint: &Blueprint<'_>) -> String {
        match self {
            Self::Operator => format!("{}-operator", blueprint.name),
            Self::Applications => format!("{}-application", blueprint.name),
            Self::Member(name, _) => name.to_string(),
        }
    }
}

impl Certificate {
    /// The message of cert-manager about a certificate that is not issued yet.
    pub(crate) fn pending_message(&self) -> Option<&str> {
        let conditions = &self.status.as_ref()?.conditions;
        let message = |kind: &str| {
            let messages = conditions.iter().filter(|condition| condition.type_ == kind);
            messages.map(|condition| condition.message.as_str()).find(|text| !text.is_empty())
        };
        message("Issuing").or_else(|| message("Ready"))
    }
}

/// Only members need `server auth`.
fn usages(subject: &Subject) -> Vec<String> {
    let usages: &[&str] = match subject {
        Subject::Operator | Subject::Applications => &["digital signature", "client auth"],
        Subject::Member(..) => &["digital signature", "server auth", "client auth"],
    };
    usages.iter().map(|usage| (*usage).to_owned()).collect()
}
