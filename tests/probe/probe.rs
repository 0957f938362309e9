//! Runs in a pod for an e2e test that checks the exit code.
//!
//! Uses the same libraries as the product, so that its results apply to the product.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    Certificate, ClientOptions, Error, ObjectStore, ObjectStoreExt, PutMode, PutPayload,
};

/// The minimum size of a part of an S3 multipart upload, except the last.
const MIN_PART_SIZE: usize = 5 << 20;

#[derive(Parser)]
enum Probe {
    /// Upload an object in parts over TLS, read the object, and try to create it again.
    S3(S3),
}

#[derive(Args)]
struct S3 {
    #[arg(long)]
    endpoint: String,
    #[arg(long)]
    bucket: String,
    /// The trusted CA.
    #[arg(long)]
    ca: PathBuf,
    #[arg(long, env = "S3_ACCESS_KEY", hide_env_values = true)]
    access: String,
    #[arg(long, env = "S3_SECRET_KEY", hide_env_values = true)]
    secret: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    drop(rustls::crypto::ring::default_provider().install_default());
    match Probe::parse() {
        Probe::S3(s3) => upload(&s3).await,
    }
}

async fn upload(s3: &S3) -> Result<()> {
    let store = connect(s3)?;
    let object = Path::from(format!("probe/{}", std::process::id()));
    let parts: Vec<Vec<u8>> = (0_u8..3).map(|number| vec![number; MIN_PART_SIZE]).collect();

    let mut upload = store.put_multipart(&object).await.context("upload was rejected")?;
    for part in &parts {
        upload.put_part(PutPayload::from(part.clone())).await.context("part was rejected")?;
    }
    upload.complete().await.context("upload was not completed")?;
    let stored = store.get(&object).await?.bytes().await.context("object cannot be read")?;
    ensure!(stored == parts.concat(), "the object differs from the upload");

    let second = store.put_opts(&object, "x".into(), PutMode::Create.into()).await;
    ensure!(matches!(second, Err(Error::AlreadyExists { .. })), "created twice: {second:?}");
    store.delete(&object).await.context("object cannot be deleted")?;
    writeln!(std::io::stdout(), "{} bytes in {} parts", stored.len(), parts.len())?;
    Ok(())
}

fn connect(s3: &S3) -> Result<AmazonS3> {
    let ca = std::fs::read(&s3.ca).context("CA cannot be read")?;
    let options = ClientOptions::new().with_root_certificate(Certificate::from_pem(&ca)?);
    AmazonS3Builder::new()
        .with_endpoint(&s3.endpoint)
        .with_bucket_name(&s3.bucket)
        .with_region("us-east-1")
        .with_access_key_id(&s3.access)
        .with_secret_access_key(&s3.secret)
        .with_client_options(options)
        .build()
        .context("invalid settings")
}
