//! The control plane's etcd, read directly: what the apiserver really stored, byte by byte.

use std::path::PathBuf;

use anyhow::{Context, Result};
use etcd_client::{Certificate, Client, ConnectOptions, GetOptions, Identity, TlsOptions};
use quorate_cluster::{components, pki};

use crate::story::Story;

/// So much is read at a time.
const PAGE: i64 = 500;

/// What is kept under a key.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The key, such as `/registry/configmaps/default/name`.
    pub key: String,
    /// The bytes.
    pub value: Vec<u8>,
}

/// A connection to it.
pub struct ControlPlane {
    client: Client,
}

impl Story {
    /// Connects to the control plane's etcd.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn control_plane(&self) -> Result<ControlPlane> {
        let read = |path: PathBuf| {
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let own = pki::key_pair(&self.places, "etcd-client");
        let tls = TlsOptions::new()
            .ca_certificate(Certificate::from_pem(read(
                pki::key_pair(&self.places, "etcd-ca").cert,
            )?))
            .identity(Identity::from_pem(read(own.cert)?, read(own.key)?));
        let endpoint = components::etcd::endpoint(&self.settings.network);
        let options = ConnectOptions::new().with_tls(tls);
        let client =
            Client::connect([endpoint], Some(options)).await.context("the control plane's etcd")?;
        Ok(ControlPlane { client })
    }
}

impl ControlPlane {
    /// The bytes under a key such as `/registry/configmaps/default/name`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>> {
        let answer =
            self.client.get(key, None).await.with_context(|| format!("cannot read {key}"))?;
        Ok(answer.kvs().first().map(|pair| pair.value().to_vec()))
    }

    /// Everything below a prefix.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn all(&mut self, prefix: &str) -> Result<Vec<Kept>> {
        let end = format!("{prefix}\u{ff}").into_bytes();
        let (mut found, mut next) = (Vec::new(), prefix.as_bytes().to_vec());
        loop {
            let options = GetOptions::new().with_range(end.clone()).with_limit(PAGE);
            let answer = self.client.get(next.clone(), Some(options)).await;
            let answer = answer.with_context(|| format!("cannot read {prefix}"))?;
            for pair in answer.kvs() {
                found.push(Kept { key: pair.key_str()?.to_owned(), value: pair.value().to_vec() });
            }
            match found.last() {
                Some(last) if answer.more() => {
                    next = last.key.as_bytes().to_vec();
                    next.push(0);
                }
                Some(_) | None => return Ok(found),
            }
        }
    }

    /// The keys below a prefix.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn keys(&mut self, prefix: &str) -> Result<Vec<String>> {
        let options = GetOptions::new().with_prefix().with_keys_only();
        let answer = self.client.get(prefix, Some(options)).await;
        let answer = answer.with_context(|| format!("cannot list {prefix}"))?;
        answer.kvs().iter().map(|pair| Ok(pair.key_str()?.to_owned())).collect()
    }
}
