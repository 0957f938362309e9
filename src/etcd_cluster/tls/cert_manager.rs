//! The Certificates that cert-manager is asked for, and what there is of them.
//! Comes in: a blueprint, a member, who signs and for how long. Goes out: whole objects, and what their Secrets must be good for.
//! May touch: the blueprint, Kubernetes' own types; pure. Each member has its own with exactly its names; the operator and
//! applications have one each. Private keys are requested as PKCS #8 ECDSA, with a new key for each renewal.
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

/// The shortest that cert-manager takes.
const MIN_DURATION: Duration = Duration::from_hours(1);

/// What is asked of cert-manager, in its own words.
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

/// What the Secret says beside the certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SecretTemplate {
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
}

/// What kind of key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PrivateKeySpec {
    algorithm: String,
    size: u32,
    encoding: String,
    rotation_policy: String,
}

/// Who signs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IssuerRef {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) group: String,
}

/// What cert-manager says of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CertificateStatus {
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}

/// Whom a certificate is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The operator, on this side.
    Operator,
    /// Applications.
    Applications,
    /// A member, with the uid of its EtcdMember.
    Member(MemberName, String),
}

/// Who signs for one side, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CertManagerIssuer<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: IssuerKind,
    pub(crate) side: Side,
    pub(crate) lifetimes: Lifetimes,
}

impl CertManagerIssuer<'_> {
    /// The Certificate for somebody.
    pub(crate) fn certificate(&self, blueprint: &Blueprint<'_>, whose: &Subject) -> Certificate {
        let name = names::cert_manager_certificate(&whose.name(blueprint), self.side.word());
        let hosts = self.hosts(blueprint, whose);
        let (addresses, dns_names): (Vec<_>, Vec<_>) =
            hosts.into_iter().partition(|it| it.parse::<IpAddr>().is_ok());
        let life = self.lifetimes.leaf.max(MIN_DURATION);
        let before = life.checked_div(3).unwrap_or_default();
        let seconds = |it: Duration| format!("{}s", it.as_secs());
        let metadata = match whose {
            Subject::Operator | Subject::Applications => blueprint.metadata(name.as_str()),
            Subject::Member(member, uid) => blueprint.member_metadata(name.as_str(), member, uid),
        };
        let spec = CertificateSpec {
            secret_name: name,
            secret_template: SecretTemplate { labels: metadata.labels.clone().unwrap_or_default() },
            common_name: match whose {
                Subject::Operator => names::OPERATOR.to_owned(),
                Subject::Applications => names::client_secret(blueprint.name),
                Subject::Member(member, _) => member.to_string(),
            },
            dns_names,
            ip_addresses: addresses,
            usages: usages(whose),
            duration: seconds(life),
            renew_before: seconds(before),
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

    /// What the Secret of that must be good for.
    pub(crate) fn needs(&self, blueprint: &Blueprint<'_>, whose: &Subject) -> Requirements {
        let hosts = match whose {
            Subject::Operator | Subject::Applications => Vec::new(),
            Subject::Member(..) => self.hosts(blueprint, whose),
        };
        Requirements { hosts, wildcard: None }
    }

    fn hosts(&self, blueprint: &Blueprint<'_>, whose: &Subject) -> Vec<String> {
        // What members ask of each other, beside the name by which they call.
        let cluster = names::member_host(blueprint.name, blueprint.namespace);
        match (whose, self.side) {
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
    /// Why it is not there yet, in cert-manager's own words if it said any.
    pub(crate) fn reason(&self) -> Option<&str> {
        let conditions = &self.status.as_ref()?.conditions;
        let told = |kind: &str| {
            let mut all = conditions.iter();
            all.find(|it| it.type_ == kind && !it.message.is_empty()).map(|it| it.message.as_str())
        };
        told("Issuing").or_else(|| told("Ready"))
    }
}

/// Whoever is only a client serves nobody.
fn usages(whose: &Subject) -> Vec<String> {
    let words: &[&str] = match whose {
        Subject::Operator | Subject::Applications => &["digital signature", "client auth"],
        Subject::Member(..) => &["digital signature", "server auth", "client auth"],
    };
    words.iter().map(|it| (*it).to_owned()).collect()
}
