//! An S3 server in the cluster, started on request, with TLS and generated credentials.

use std::io::Read;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use crate::binaries::hex;
use crate::images::catalog;
use crate::kubeconfig;
use crate::kubectl::Kubectl;
use crate::paths::Paths;
use crate::pki::{self, CertificateAuthority, Subject};
use crate::progress::Step;
use crate::settings::{CLUSTER_DOMAIN, Settings};

/// The namespace of the S3 server.
pub const NAMESPACE: &str = "quorate-s3";
const SECRET: &str = "s3";
const SERVICE: &str = "s3";
const BUCKET: &str = "quorate";
const PROGRAM: &str = "/usr/local/bin/versitygw";

/// The connection settings of a client.
#[derive(Clone)]
pub struct S3 {
    /// The URL in the cluster.
    pub endpoint: String,
    /// The access key.
    pub access: String,
    /// The secret key.
    pub secret: String,
    /// An existing bucket.
    pub bucket: &'static str,
    /// The CA of the server certificate.
    pub ca: String,
}

impl std::fmt::Debug for S3 {
    /// Without the keys.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("S3").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Starts the server unless it runs, and returns its connection settings.
///
/// # Errors
/// If there is no cluster, or the server does not become ready.
pub async fn ensure(settings: &Settings, paths: &Paths) -> Result<S3> {
    let client = kubeconfig::client(paths, "admin").await?;
    catalog::image(catalog::VERSITYGW, paths).await?.import(paths).await?;
    let step = Step::begin("starting the S3 server");
    let kubectl = Kubectl::admin(&settings.kubernetes, paths).await?;
    let s3 = match existing(&client).await? {
        Some(s3) => s3,
        None => create_secret(&kubectl, paths).await?,
    };
    let manifests =
        include_str!("../manifests/s3.yaml").replace("@VERSITYGW_IMAGE@", catalog::VERSITYGW);
    kubectl.apply(&manifests).await?;
    kubectl
        .run(&["--namespace", NAMESPACE, "rollout", "status", "deployment/s3", "--timeout=90s"])
        .await
        .context("the S3 server does not become ready")?;
    create_bucket(&kubectl, &s3).await?;
    step.done(&s3.endpoint);
    Ok(s3)
}

/// Creates the bucket with the client in the server's pod.
async fn create_bucket(kubectl: &Kubectl, s3: &S3) -> Result<()> {
    let admin = ["--namespace", NAMESPACE, "exec", "deployment/s3", "--", PROGRAM, "admin"];
    let listed = kubectl.run(&[&admin[..], &["list-buckets"]].concat()).await?;
    if listed.lines().any(|line| line.split_whitespace().next() == Some(s3.bucket)) {
        return Ok(());
    }
    let create = ["create-bucket", "--bucket", s3.bucket, "--owner", &s3.access];
    kubectl.run(&[&admin[..], &create].concat()).await.map(drop).context("cannot create the bucket")
}

/// The connection settings of a running server.
async fn existing(client: &Client) -> Result<Option<S3>> {
    let secrets = Api::<Secret>::namespaced(client.clone(), NAMESPACE);
    let Some(secret) =
        secrets.get_opt(SECRET).await.context("cannot read the S3 server's Secret")?
    else {
        return Ok(None);
    };
    let data = secret.data.unwrap_or_default();
    let text = |key: &str| {
        let value = data.get(key).with_context(|| format!("the S3 server's Secret lacks {key}"))?;
        String::from_utf8(value.0.clone()).with_context(|| format!("{key} is not text"))
    };
    Ok(Some(S3 {
        endpoint: endpoint(),
        bucket: BUCKET,
        access: text("ROOT_ACCESS_KEY")?,
        secret: text("ROOT_SECRET_KEY")?,
        ca: text("ca.crt")?,
    }))
}

fn endpoint() -> String {
    format!("https://{SERVICE}.{NAMESPACE}.svc:7070")
}

async fn create_secret(kubectl: &Kubectl, paths: &Paths) -> Result<S3> {
    let host = format!("{SERVICE}.{NAMESPACE}.svc");
    let full = format!("{host}.{CLUSTER_DOMAIN}");
    let hosts = [host.as_str(), full.as_str()];
    let (cert, key) =
        CertificateAuthority::of_cluster(paths)?.pem(&Subject::server("s3", &hosts))?;
    let ca = std::fs::read_to_string(pki::key_pair(paths, "ca").cert)?;
    let s3 =
        S3 { endpoint: endpoint(), bucket: BUCKET, access: random(10)?, secret: random(20)?, ca };
    let secret = serde_json::json!({
        "apiVersion": "v1", "kind": "List", "items": [
            { "apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": NAMESPACE,
                "labels": { "pod-security.kubernetes.io/enforce": "restricted" },
            }},
            { "apiVersion": "v1", "kind": "Secret", "metadata": { "name": SECRET, "namespace": NAMESPACE },
              "stringData": {
                "ROOT_ACCESS_KEY": s3.access, "ROOT_SECRET_KEY": s3.secret,
                "tls.crt": cert, "tls.key": key, "ca.crt": s3.ca,
            }},
        ],
    });
    kubectl.apply(&secret.to_string()).await?;
    Ok(s3)
}

/// Random bytes in hexadecimal.
fn random(bytes: usize) -> Result<String> {
    let mut buffer = vec![0_u8; bytes];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut buffer)?;
    Ok(hex(&buffer))
}
