//! The binaries that are built from Go modules, and their cache.
//!
//! A folder below `programs/` contains only `go.mod` and `go.sum`; the `tool` directives name the
//! packages. A program whose module no proxy serves has a `main.go` that starts it. Built binaries
//! are cached by name, version and content of those files.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::paths::Paths;
use crate::progress::{Step, log};
use crate::{command, go, locks};

/// Prefix of the names of folders with an unfinished build.
const UNFINISHED: &str = ".building-";

/// One folder below `programs/`: the binaries that are built together.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The display name.
    pub title: &'static str,
    /// The folder's name without the version.
    pub name: &'static str,
    /// Package path and file name of each binary.
    pub binaries: &'static [(&'static str, &'static str)],
    /// Packages whose version variables are set by the linker.
    version_packages: &'static [&'static str],
}

/// Kubernetes: the control plane, the node's components and kubectl.
pub const KUBERNETES: Source = Source {
    title: "Kubernetes",
    name: "kubernetes",
    binaries: &[
        ("k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"),
        ("k8s.io/kubernetes/cmd/kube-controller-manager", "kube-controller-manager"),
        ("k8s.io/kubernetes/cmd/kube-proxy", "kube-proxy"),
        ("k8s.io/kubernetes/cmd/kube-scheduler", "kube-scheduler"),
        ("k8s.io/kubernetes/cmd/kubectl", "kubectl"),
        ("k8s.io/kubernetes/cmd/kubelet", "kubelet"),
    ],
    version_packages: &["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"],
};

/// etcd and its two command-line tools.
pub const ETCD: Source = Source {
    title: "etcd",
    name: "etcd",
    binaries: &[
        ("go.etcd.io/etcd/server/v3", "etcd"),
        ("go.etcd.io/etcd/etcdctl/v3", "etcdctl"),
        ("go.etcd.io/etcd/etcdutl/v3", "etcdutl"),
    ],
    version_packages: &[],
};

/// The cluster's name server.
pub const COREDNS: Source = Source {
    title: "CoreDNS",
    name: "coredns",
    binaries: &[("github.com/coredns/coredns", "coredns")],
    version_packages: &[],
};

/// The S3 server.
pub const VERSITYGW: Source = Source {
    title: "the S3 server versitygw",
    name: "versitygw",
    binaries: &[("github.com/versity/versitygw/cmd/versitygw", "versitygw")],
    version_packages: &[],
};

/// cert-manager's controllers for Certificates of CA issuers.
pub const CERT_MANAGER: Source = Source {
    title: "cert-manager",
    name: "cert-manager",
    binaries: &[("quorate-cluster/programs/cert-manager", "cert-manager")],
    version_packages: &[],
};

impl Source {
    /// The folder with the binaries of this source, built now unless they are cached.
    ///
    /// # Errors
    /// If there is no such version, or Go cannot build it.
    pub async fn binaries(&self, version: &str, paths: &Paths) -> Result<PathBuf> {
        let recipe = recipe(self.name, version);
        let key = self.key(&recipe, version)?;
        let ready = paths.binaries().join(format!("{}-{version}-{key}", self.name));
        if ready.exists() {
            return Ok(ready);
        }
        let _lock = locks::exclusive(&paths.binaries().join(".lock"), || {
            log(&format!("  waiting for another process that builds {}", self.title));
        })?;
        if !ready.exists() {
            let step = Step::begin(format!("building {} {version} (once per machine)", self.title));
            let go = go::find(paths).await?;
            // Renamed as a whole: a folder with the final name is always complete. The folder of
            // this process only: the compiler of a killed run may still write to the folder of that
            // run.
            let scratch = paths.binaries().join(format!("{UNFINISHED}{}", std::process::id()));
            remove_unfinished(&paths.binaries());
            tokio::fs::create_dir_all(&scratch).await.context("cannot write to the cache")?;
            self.build(version, &scratch, &go, &step)
                .await
                .with_context(|| format!("cannot build {} {version}", self.title))?;
            tokio::fs::rename(&scratch, &ready).await.context("cannot write to the cache")?;
            step.done("");
        }
        Ok(ready)
    }

    /// The folder with the sources of a module that is built into the binaries.
    ///
    /// # Errors
    /// If there is no such module.
    pub async fn module(&self, version: &str, module: &str, paths: &Paths) -> Result<PathBuf> {
        let mut list = tool(&go::find(paths).await?, &recipe(self.name, version));
        list.args(["list", "-m", "-f", "{{.Dir}}", module]);
        Ok(PathBuf::from(command::output(&mut list).await?.trim()))
    }

    /// Strips the binaries and sets the version of Kubernetes (v0.0.0 otherwise) in two packages:
    /// one for `--version`, one for the user agent.
    fn link_flags(&self, version: &str) -> String {
        let mut flags = "-s -w".to_owned();
        let mut numbers = version.split('.');
        let (major, minor) =
            (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        for package in self.version_packages {
            let values = [
                ("gitVersion", format!("v{version}")),
                ("gitMajor", major.into()),
                ("gitMinor", minor.into()),
            ];
            for (name, value) in values {
                flags.extend([" -X ", package, ".", name, "=", &value]);
            }
        }
        flags
    }

    fn key(&self, recipe: &Path, version: &str) -> Result<String> {
        let mut hash = Sha256::new();
        for file in ["go.mod", "go.sum"] {
            let path = recipe.join(file);
            let content = std::fs::read(&path).with_context(|| {
                format!("no {} {version} here: {} is missing", self.title, path.display())
            })?;
            hash.update(content);
        }
        hash.update(std::fs::read(recipe.join("main.go")).unwrap_or_default());
        hash.update(self.link_flags(version));
        Ok(hex(&hash.finalize()).chars().take(12).collect())
    }

    async fn build(&self, version: &str, into: &Path, go: &Path, step: &Step) -> Result<()> {
        let recipe = recipe(self.name, version);
        let packages: Vec<&str> = self.binaries.iter().map(|(package, _)| *package).collect();

        step.detail("downloading modules");
        let mut list = tool(go, &recipe);
        list.args(["list", "-deps"]).args(&packages);
        let total = command::output(&mut list).await?.lines().count();

        let mut build = tool(go, &recipe);
        build.args(["build", "-v", "-trimpath", "-buildvcs=false", "-ldflags"]);
        build.arg(self.link_flags(version)).arg("-o").arg(into).args(&packages);
        let mut child = build.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut lines_read = Vec::new();
        if let Some(stderr) = child.stderr.take() {
            let mut lines = BufReader::new(stderr).lines();
            while let Some(line) = lines.next_line().await? {
                lines_read.push(line);
                step.detail(format!("{} of {total} packages", lines_read.len()));
            }
        }
        if !child.wait().await?.success() {
            bail!("go build failed: {}", command::tail(&lines_read.join("\n"), 20));
        }
        self.rename(into).await
    }

    /// Go names a program after its package; `go.etcd.io/etcd/server/v3` becomes `server`.
    async fn rename(&self, folder: &Path) -> Result<()> {
        for (package, program) in self.binaries {
            let built = package.split('/').rfind(|name| !name.starts_with('v') || name.len() > 2);
            let built = folder.join(built.unwrap_or(program));
            if built != folder.join(program) {
                tokio::fs::rename(&built, folder.join(program)).await?;
            }
        }
        Ok(())
    }
}

fn tool(go: &Path, recipe: &Path) -> tokio::process::Command {
    let mut command = command::command(go);
    // Static binaries for this machine, from the modules pinned by go.sum, with the local
    // toolchain.
    command.current_dir(recipe).env("CGO_ENABLED", "0").env("GOTOOLCHAIN", "local");
    command.env("GOFLAGS", "-mod=readonly").env("GOWORK", "off");
    for chosen_by_user in ["GOOS", "GOARCH", "GOEXPERIMENT"] {
        command.env_remove(chosen_by_user);
    }
    command
}

fn remove_unfinished(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}

fn recipe(name: &str, version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(format!("{name}-{version}"))
}

/// Bytes in hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings;

    #[test]
    fn every_selectable_version_has_a_module_with_all_binaries() {
        let chosen = (settings::KUBERNETES_VERSIONS.iter().map(|version| (KUBERNETES, *version)))
            .chain(settings::ETCD_VERSIONS.iter().map(|version| (ETCD, *version)))
            .chain([(ETCD, settings::CONTROL_PLANE_ETCD)])
            .chain([(COREDNS, settings::COREDNS_VERSION)])
            .chain([(VERSITYGW, settings::VERSITYGW_VERSION)])
            .chain([(CERT_MANAGER, settings::CERT_MANAGER_VERSION)]);
        for (source, version) in chosen {
            let recipe = recipe(source.name, version);
            source.key(&recipe, version).unwrap();
            let text = std::fs::read_to_string(recipe.join("go.mod")).unwrap();
            for (package, _) in source.binaries {
                assert!(text.contains(package), "{} lacks tool {package}", recipe.display());
            }
            assert!(
                text.contains(&format!(" v{version}")),
                "{} has another version than {version}",
                recipe.display()
            );
        }
    }
}
