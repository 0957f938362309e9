//! Which images there are. The one place that knows their names.
//!
//! Where the world has an official image, ours carries its name and looks like it from the inside, so that
//! a manifest works unchanged here and on a user's cluster.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::Image;
use crate::places::Places;
use crate::progress::Step;
use crate::settings::{COREDNS_VERSION, ETCD_VERSIONS, VERSITYGW_VERSION};
use crate::{command, machine, programs};

/// The first process of every pod sandbox.
pub const PAUSE: &str = "localhost/quorate/pause:1";
/// The cluster's name server.
pub const COREDNS: &str = "coredns/coredns:1.15.0";
/// The S3 server.
pub const VERSITYGW: &str = "versity/versitygw:v1.8.0";
/// A shell and small programs, for stories that look at things from inside a pod.
pub const BUSYBOX: &str = "busybox:1.35";
/// What stories run inside pods to try things from there.
pub const PROBE: &str = "localhost/quorate/probe:1";
/// The operator of this checkout.
pub const QUORATE: &str = concat!("quorate/quorate:v", env!("CARGO_PKG_VERSION"));

/// Variables by which cargo tells a program about the package that it belongs to.
const CARGO_TELLS: [&str; 5] =
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

/// Builds what an image needs, and describes it.
///
/// # Errors
/// If there is no such image, or a part of it cannot be built.
pub async fn image(name: &str, places: &Places) -> Result<Image> {
    match name {
        PAUSE => pause(places).await,
        COREDNS => coredns(places).await,
        VERSITYGW => versitygw(places).await,
        BUSYBOX => busybox(places).await,
        PROBE => probe(places).await,
        QUORATE => quorate(places).await,
        other => {
            let version = ETCD_VERSIONS.iter().find(|version| etcd_name(version) == other);
            match version {
                Some(version) => etcd(version, places).await,
                None => bail!("there is no image {other:?}; there are {}", names().join(", ")),
            }
        }
    }
}

async fn pause(places: &Places) -> Result<Image> {
    let program = static_program("quorate-cluster-pause", "pause", places).await?;
    Ok(single(PAUSE, program, "/pause", "65535:65535"))
}

async fn coredns(places: &Places) -> Result<Image> {
    let built = programs::COREDNS.programs(COREDNS_VERSION, places).await?;
    Ok(single(COREDNS, built.join("coredns"), "/coredns", "65532:65532"))
}

async fn versitygw(places: &Places) -> Result<Image> {
    let built = programs::VERSITYGW.programs(VERSITYGW_VERSION, places).await?;
    let program = "/usr/local/bin/versitygw";
    Ok(Image {
        folders: vec![("/tmp", 0o1777)],
        ..single(VERSITYGW, built.join("versitygw"), program, "")
    })
}

async fn probe(places: &Places) -> Result<Image> {
    let program = static_program("quorate-probe", "probe", places).await?;
    Ok(single(PROBE, program, "/probe", "65532:65532"))
}

async fn quorate(places: &Places) -> Result<Image> {
    let program = static_program("quorate", "quorate", places).await?;
    Ok(Image {
        arguments: vec!["run".into()],
        ..single(QUORATE, program, "/usr/local/bin/quorate", "65532:65532")
    })
}

/// As the official image: programs in /usr/local/bin, no entry point, no user.
async fn etcd(version: &str, places: &Places) -> Result<Image> {
    let built = programs::ETCD.programs(version, places).await?;
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

/// Debian's static busybox, with a link for each program in it. Unpacked, not installed: the machine may have
/// another busybox, which this one would replace.
async fn busybox(places: &Places) -> Result<Image> {
    let program = places.busybox().join("bin/busybox");
    if !program.exists() {
        machine::unpack("busybox-static", &places.busybox()).await?;
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

/// Builds a program of this checkout so that it runs in an empty image.
async fn static_program(package: &str, program: &str, places: &Places) -> Result<PathBuf> {
    let step = Step::begin(format!("building {program} as a static program"));
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut cargo = command::command("cargo");
    cargo
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .args(["build", "--release", "--locked", "--package", package, "--bin", program])
        .args(["--target", &target])
        .env("CARGO_TARGET_DIR", places.target())
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        // Would win over RUSTFLAGS, and the program would not be static.
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    // What cargo tells a program that it runs, build scripts take for a reason to build again.
    for (name, _) in std::env::vars_os() {
        if CARGO_TELLS.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            cargo.env_remove(&name);
        }
    }
    command::output(&mut cargo).await.with_context(|| format!("cannot build {program}"))?;
    step.done("");
    Ok(places.target().join(target).join("release").join(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_carry_the_versions_that_are_built() {
        assert!(COREDNS.ends_with(&format!(":{COREDNS_VERSION}")), "{COREDNS}");
        assert!(VERSITYGW.ends_with(&format!(":v{VERSITYGW_VERSION}")), "{VERSITYGW}");
    }
}
