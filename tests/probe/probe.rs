//! Runs inside a pod and tries something from there, for a story that watches its exit code.
//!
//! It uses the libraries that the product uses for the same job, so what it proves holds for the product.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    Certificate, ClientOptions, Error, ObjectStore, ObjectStoreExt, PutMode, PutPayload,
};

/// S3 wants every part but the last to have at least this size.
const PART: usize = 5 << 20;

#[derive(Parser)]
enum Probe {
    /// Upload an object in parts over TLS, read it back, and try to create it a second time.
    S3(S3),
}

#[derive(Args)]
struct S3 {
    #[arg(long)]
    endpoint: String,
    #[arg(long)]
    bucket: String,
    /// The only CA that is trusted.
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
    let parts: Vec<Vec<u8>> = (0_u8..3).map(|number| vec![number; PART]).collect();

    let mut upload = store.put_multipart(&object).await.context("the upload was refused")?;
    for part in &parts {
        upload.put_part(PutPayload::from(part.clone())).await.context("a part was refused")?;
    }
    upload.complete().await.context("the upload was not completed")?;
    let stored = store.get(&object).await?.bytes().await.context("it cannot be read back")?;
    ensure!(stored == parts.concat(), "what was read is not what was written");

    let again = store.put_opts(&object, "x".into(), PutMode::Create.into()).await;
    ensure!(matches!(again, Err(Error::AlreadyExists { .. })), "created twice: {again:?}");
    store.delete(&object).await.context("it cannot be deleted")?;
    writeln!(std::io::stdout(), "{} bytes in {} parts", stored.len(), parts.len())?;
    Ok(())
}

fn connect(s3: &S3) -> Result<AmazonS3> {
    let ca = std::fs::read(&s3.ca).context("the CA cannot be read")?;
    let options = ClientOptions::new().with_root_certificate(Certificate::from_pem(&ca)?);
    AmazonS3Builder::new()
        .with_endpoint(&s3.endpoint)
        .with_bucket_name(&s3.bucket)
        .with_region("us-east-1")
        .with_access_key_id(&s3.access)
        .with_secret_access_key(&s3.secret)
        .with_client_options(options)
        .build()
        .context("the settings are refused")
}
