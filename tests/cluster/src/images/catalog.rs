//! The images and their names.
//!
//! An image with an official counterpart has the same name and layout, so that a manifest works
//! unchanged here and on a user's cluster.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::Image;
use crate::paths::Paths;
use crate::progress::Step;
use crate::settings::{COREDNS_VERSION, ETCD_VERSIONS, VERSITYGW_VERSION};
use crate::{binaries, command, host};

/// The first process of every pod sandbox.
pub const PAUSE: &str = "localhost/quorate/pause:1";
/// The cluster's name server.
pub const COREDNS: &str = "coredns/coredns:1.15.0";
/// The S3 server.
pub const VERSITYGW: &str = "versity/versitygw:v1.8.0";
/// A shell and small tools for e2e tests in pods.
pub const BUSYBOX: &str = "busybox:1.35";
/// The probe that e2e tests run in pods.
pub const PROBE: &str = "localhost/quorate/probe:1";
/// The operator of this checkout.
pub const QUORATE: &str = concat!("quorate/quorate:v", env!("CARGO_PKG_VERSION"));

/// Prefixes of the variables that cargo sets for the package of a running program.
const CARGO_PACKAGE_VARIABLES: [&str; 5] =
    ["CARGO_BIN_", "CARGO_CRATE_", "CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_PRIMARY_"];

/// The etcd image of a release, under the name the product uses by default.
#[must_use]
pub fn etcd_name(version: &str) -> String {
    format!("gcr.io/etcd-development/etcd:v{version}")
}

/// The names of all images.
#[must_use]
pub fn names() -> Vec<String> {
    let etcd = ETCD_VERSIONS.iter().map(|version| etcd_name(version));
    let others = [PAUSE, COREDNS, QUORATE, BUSYBOX, PROBE, VERSITYGW].map(str::to_owned);
    others.into_iter().chain(etcd).collect()
}

/// Builds the content of an image and returns its description.
///
/// # Errors
/// If there is no such image, or its content cannot be built.
pub async fn image(name: &str, paths: &Paths) -> Result<Image> {
    match name {
        PAUSE => pause(paths).await,
        COREDNS => coredns(paths).await,
        VERSITYGW => versitygw(paths).await,
        BUSYBOX => busybox(paths).await,
        PROBE => probe(paths).await,
        QUORATE => quorate(paths).await,
        other => {
            let version = ETCD_VERSIONS.iter().find(|version| etcd_name(version) == other);
            match version {
                Some(version) => etcd(version, paths).await,
                None => bail!("there is no image {other:?}; there are {}", names().join(", ")),
            }
        }
    }
}

async fn pause(paths: &Paths) -> Result<Image> {
    let program = static_program("quorate-cluster-pause", "pause", paths).await?;
    Ok(single(PAUSE, program, "/pause", "65535:65535"))
}

async fn coredns(paths: &Paths) -> Result<Image> {
    let built = binaries::COREDNS.binaries(COREDNS_VERSION, paths).await?;
    Ok(single(COREDNS, built.join("coredns"), "/coredns", "65532:65532"))
}

async fn versitygw(paths: &Paths) -> Result<Image> {
    let built = binaries::VERSITYGW.binaries(VERSITYGW_VERSION, paths).await?;
    let program = "/usr/local/bin/versitygw";
    Ok(Image {
        folders: vec![("/tmp", 0o1777)],
        ..single(VERSITYGW, built.join("versitygw"), program, "")
    })
}

async fn probe(paths: &Paths) -> Result<Image> {
    let program = static_program("quorate-probe", "probe", paths).await?;
    Ok(single(PROBE, program, "/probe", "65532:65532"))
}

async fn quorate(paths: &Paths) -> Result<Image> {
    let program = static_program("quorate", "quorate", paths).await?;
    Ok(Image {
        arguments: vec!["run".into()],
        ..single(QUORATE, program, "/usr/local/bin/quorate", "65532:65532")
    })
}

/// Like the official image: binaries in /usr/local/bin, no entry point, no user.
async fn etcd(version: &str, paths: &Paths) -> Result<Image> {
    let built = binaries::ETCD.binaries(version, paths).await?;
    let files = ["etcd", "etcdctl", "etcdutl"]
        .map(|program| (built.join(program), format!("/usr/local/bin/{program}")));
    Ok(Image {
        name: etcd_name(version),
        files: files.into(),
        links: vec![],
        folders: vec![("/tmp", 0o1777), ("/var/etcd", 0o755), ("/var/lib/etcd", 0o755)],
        entrypoint: vec![],
        arguments: vec!["/usr/local/bin/etcd".into()],
        user: "",
    })
}

/// Debian's static busybox, with a link for each applet. Unpacked, not installed: the package would
/// replace another busybox of the machine.
async fn busybox(paths: &Paths) -> Result<Image> {
    let program = paths.busybox().join("bin/busybox");
    if !program.exists() {
        host::unpack("busybox-static", &paths.busybox()).await?;
    }
    let applets = command::output(command::command(&program).arg("--list")).await?;
    let links = applets.lines().filter(|applet| *applet != "busybox");
    Ok(Image {
        name: BUSYBOX.to_owned(),
        files: vec![(program, "/bin/busybox".into())],
        links: links.map(|applet| (format!("/bin/{applet}"), "/bin/busybox".into())).collect(),
        folders: vec![("/tmp", 0o1777), ("/etc", 0o755)],
        entrypoint: vec![],
        arguments: vec!["/bin/sh".into()],
        user: "",
    })
}

fn single(name: &str, program: PathBuf, target: &str, user: &'static str) -> Image {
    Image {
        name: name.to_owned(),
        files: vec![(program, target.to_owned())],
        links: vec![],
        folders: vec![],
        entrypoint: vec![target.to_owned()],
        arguments: vec![],
        user,
    }
}

/// Builds a static binary of this checkout, which runs in an empty image.
async fn static_program(package: &str, program: &str, paths: &Paths) -> Result<PathBuf> {
    let step = Step::begin(format!("building {program} as a static binary"));
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut cargo = command::command("cargo");
    cargo
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .args(["build", "--release", "--locked", "--package", package, "--bin", program])
        .args(["--target", &target])
        .env("CARGO_TARGET_DIR", paths.target())
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        // Takes precedence over RUSTFLAGS, and the binary would not be static.
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    // Build scripts would be run again if these variables changed.
    for (name, _) in std::env::vars_os() {
        if CARGO_PACKAGE_VARIABLES.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            cargo.env_remove(&name);
        }
    }
    command::output(&mut cargo).await.with_context(|| format!("cannot build {program}"))?;
    step.done("");
    Ok(paths.target().join(target).join("release").join(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_tags_match_the_built_versions() {
        assert!(COREDNS.ends_with(&format!(":{COREDNS_VERSION}")), "{COREDNS}");
        assert!(VERSITYGW.ends_with(&format!(":v{VERSITYGW_VERSION}")), "{VERSITYGW}");
    }
}
