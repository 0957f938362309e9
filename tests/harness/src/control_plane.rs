//! The control plane's etcd, read directly: the bytes that the API server stored.

use std::path::PathBuf;

use anyhow::{Context, Result};
use etcd_client::{Certificate, Client, ConnectOptions, GetOptions, Identity, TlsOptions};
use quorate_cluster::{components, pki};

use crate::context::TestContext;

const PAGE_SIZE: i64 = 500;

/// A key of the control plane's etcd with its value.
#[derive(Clone, Debug)]
pub struct StoredObject {
    /// The key, such as `/registry/configmaps/default/name`.
    pub key: String,
    /// The stored bytes.
    pub value: Vec<u8>,
}

/// A connection to the control plane's etcd.
pub struct ControlPlane {
    client: Client,
}

impl TestContext {
    /// Connects to the control plane's etcd.
    ///
    /// # Errors
    /// If etcd is unreachable.
    pub async fn control_plane(&self) -> Result<ControlPlane> {
        let read = |path: PathBuf| {
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let own = pki::key_pair(&self.paths, "etcd-client");
        let tls = TlsOptions::new()
            .ca_certificate(Certificate::from_pem(read(
                pki::key_pair(&self.paths, "etcd-ca").cert,
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
    /// If the key cannot be read.
    pub async fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>> {
        let response =
            self.client.get(key, None).await.with_context(|| format!("cannot read {key}"))?;
        Ok(response.kvs().first().map(|pair| pair.value().to_vec()))
    }

    /// All keys with a prefix.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn list(&mut self, prefix: &str) -> Result<Vec<StoredObject>> {
        let end = format!("{prefix}\u{ff}").into_bytes();
        let (mut found, mut next) = (Vec::new(), prefix.as_bytes().to_vec());
        loop {
            let options = GetOptions::new().with_range(end.clone()).with_limit(PAGE_SIZE);
            let response = self.client.get(next.clone(), Some(options)).await;
            let response = response.with_context(|| format!("cannot read {prefix}"))?;
            for pair in response.kvs() {
                found.push(StoredObject {
                    key: pair.key_str()?.to_owned(),
                    value: pair.value().to_vec(),
                });
            }
            match found.last() {
                Some(last) if response.more() => {
                    next = last.key.as_bytes().to_vec();
                    next.push(0);
                }
                Some(_) | None => return Ok(found),
            }
        }
    }

    /// The names of all keys with a prefix.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn keys(&mut self, prefix: &str) -> Result<Vec<String>> {
        let options = GetOptions::new().with_prefix().with_keys_only();
        let response = self.client.get(prefix, Some(options)).await;
        let response = response.with_context(|| format!("cannot list {prefix}"))?;
        response.kvs().iter().map(|pair| Ok(pair.key_str()?.to_owned())).collect()
    }
}
