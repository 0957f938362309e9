//! A user's CA, for tests with external certificates.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use quorate_harness::TestContext;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::json;

const ONE_YEAR: Duration = Duration::from_hours(24 * 365);

/// A CA that issues leaf certificates.
pub(super) struct TestCa {
    pub(super) pem: String,
    key: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub(super) struct LeafPem {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// The extended key usages of a certificate.
#[derive(Clone, Copy)]
pub(super) enum Usage {
    /// Server and client authentication.
    Both,
    /// Server authentication alone.
    Server,
    /// Client authentication alone.
    Client,
}

impl TestCa {
    pub(super) fn new(name: &str) -> Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = params(name, &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let pem = params.self_signed(&key)?.pem();
        let text = key.serialize_pem();
        Ok(Self { pem, key: text, issuer: Issuer::new(params, key) })
    }

    /// The CA's key, as PEM.
    pub(super) fn key(&self) -> String {
        self.key.clone()
    }

    /// Issues a certificate that is valid for a year.
    pub(super) fn issue(&self, name: &str, hosts: &[String], usage: Usage) -> Result<LeafPem> {
        self.issue_for(name, hosts, usage, ONE_YEAR)
    }

    pub(super) fn issue_for(
        &self,
        name: &str,
        hosts: &[String],
        usage: Usage,
        lifetime: Duration,
    ) -> Result<LeafPem> {
        let key = KeyPair::generate()?;
        let mut params = params(name, hosts)?;
        let (server, client) =
            (ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth);
        params.extended_key_usages = match usage {
            Usage::Both => vec![server, client],
            Usage::Server => vec![server],
            Usage::Client => vec![client],
        };
        params.not_after = SystemTime::now().checked_add(lifetime).context("no such time")?.into();
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(LeafPem { certificate, key: key.serialize_pem() })
    }

    /// The data of the Secret that a user creates for a cluster in this namespace.
    pub(super) fn secret(&self, namespace: &str) -> Result<BTreeMap<String, String>> {
        let leaf = self.issue("members", &[format!("*.{namespace}.svc")], Usage::Both)?;
        let client = self.issue("applications", &[], Usage::Client)?;
        let all = [
            ("ca.crt", self.pem.clone()),
            ("tls.crt", leaf.certificate),
            ("tls.key", leaf.key),
            ("client.crt", client.certificate),
            ("client.key", client.key),
        ];
        Ok(all.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }
}

fn params(name: &str, hosts: &[String]) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(hosts.to_vec())?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before =
        SystemTime::now().checked_sub(Duration::from_mins(5)).context("no such time")?.into();
    Ok(params)
}

/// Creates or replaces a Secret in the test's namespace with exactly this data.
pub(super) async fn put_secret(
    ctx: &TestContext,
    name: &str,
    data: &BTreeMap<String, String>,
) -> Result<()> {
    let data: BTreeMap<&String, ByteString> =
        data.iter().map(|(key, value)| (key, ByteString(value.clone().into_bytes()))).collect();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": name}, "data": data,
    });
    let params = PatchParams::apply("a-user").force();
    let applied = ctx.api::<Secret>().patch(name, &params, &Patch::Apply(secret)).await;
    applied.map(drop).with_context(|| format!("Secret {name} was rejected"))
}
