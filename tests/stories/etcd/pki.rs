//! A certificate authority of a user's own, for stories in which certificates come from elsewhere.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use quorate_harness::Story;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::json;

/// A year.
const LONG: Duration = Duration::from_hours(24 * 365);

/// One that signs.
pub(super) struct Authority {
    pub(super) pem: String,
    key: String,
    issuer: Issuer<'static, KeyPair>,
}

/// What it signed, as PEM.
#[derive(Clone)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// What a certificate is for.
#[derive(Clone, Copy)]
pub(super) enum Use {
    /// It is shown by whoever is called, and by whoever calls.
    Both,
    /// It is shown by whoever is called alone.
    Server,
    /// It is shown by whoever calls alone.
    Client,
}

impl Authority {
    pub(super) fn new(name: &str) -> Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = params(name, &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let pem = params.self_signed(&key)?.pem();
        let text = key.serialize_pem();
        Ok(Self { pem, key: text, issuer: Issuer::new(params, key) })
    }

    /// Its key, as PEM.
    pub(super) fn key(&self) -> String {
        self.key.clone()
    }

    /// Signs something that lives so long from now.
    pub(super) fn sign(&self, name: &str, hosts: &[String], what: Use) -> Result<Pair> {
        self.sign_until(name, hosts, what, LONG)
    }

    pub(super) fn sign_until(
        &self,
        name: &str,
        hosts: &[String],
        what: Use,
        life: Duration,
    ) -> Result<Pair> {
        let key = KeyPair::generate()?;
        let mut params = params(name, hosts)?;
        let (server, client) =
            (ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth);
        params.extended_key_usages = match what {
            Use::Both => vec![server, client],
            Use::Server => vec![server],
            Use::Client => vec![client],
        };
        params.not_after = SystemTime::now().checked_add(life).context("no such time")?.into();
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    }

    /// The Secret that a user makes for a cluster in this namespace.
    pub(super) fn secret(&self, namespace: &str) -> Result<BTreeMap<String, String>> {
        let pair = self.sign("members", &[format!("*.{namespace}.svc")], Use::Both)?;
        let client = self.sign("applications", &[], Use::Client)?;
        let all = [
            ("ca.crt", self.pem.clone()),
            ("tls.crt", pair.certificate),
            ("tls.key", pair.key),
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

/// Puts these into a Secret of the story's namespace, whether it is there or not, and nothing else.
pub(super) async fn put(story: &Story, name: &str, data: &BTreeMap<String, String>) -> Result<()> {
    let data: BTreeMap<&String, ByteString> =
        data.iter().map(|(key, value)| (key, ByteString(value.clone().into_bytes()))).collect();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": name}, "data": data,
    });
    let params = PatchParams::apply("a-user").force();
    let done = story.api::<Secret>().patch(name, &params, &Patch::Apply(secret)).await;
    done.map(drop).with_context(|| format!("the Secret {name} was refused"))
}
