//! Images without a registry: built from scratch, imported into containerd with their public names.

mod archive;
pub mod catalog;

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::binaries::hex;
use crate::command;
use crate::files;
use crate::paths::Paths;
use crate::progress::Step;

/// The content of an image, and its entry point.
#[derive(Debug)]
pub struct Image {
    /// Name, as in manifests.
    pub name: String,
    /// Files: source path and path in the image.
    pub files: Vec<(PathBuf, String)>,
    /// Symbolic links: path in the image and target.
    pub links: Vec<(String, String)>,
    /// Empty folders, with their mode.
    pub folders: Vec<(&'static str, u32)>,
    /// The entry point.
    pub entrypoint: Vec<String>,
    /// Default arguments.
    pub arguments: Vec<String>,
    /// Default user. Empty is root, as in many official images.
    pub user: &'static str,
}

impl Image {
    /// Imports the image unless the same content is imported already; true if it was imported.
    ///
    /// # Errors
    /// If a file is missing or containerd rejects the image.
    pub async fn import(&self, paths: &Paths) -> Result<bool> {
        let key = self.key()?;
        let record = paths.imported_images().join(self.name.replace(['/', ':'], "_"));
        if std::fs::read_to_string(&record).is_ok_and(|imported| imported == key) {
            return Ok(false);
        }
        let step = Step::begin(format!("importing image {}", self.name));
        let full_name = full_name(&self.name);
        let archive = archive::docker_archive(self, &full_name)
            .with_context(|| format!("cannot build image {}", self.name))?;
        let mut import = ctr(paths);
        import.args(["images", "import", "-"]);
        command::feed(&mut import, &archive)
            .await
            .with_context(|| format!("cannot import image {}", self.name))?;
        files::write(&record, key)?;
        step.done("");
        Ok(true)
    }

    /// A key that changes with the image. Binaries in the cache never change under the same name,
    /// so size and mtime are enough, and hashing a hundred megabytes is not needed.
    ///
    /// # Errors
    /// If a file is missing.
    pub fn key(&self) -> Result<String> {
        let mut hash = Sha256::new();
        hash.update(format!("{self:?}"));
        for (source, _) in &self.files {
            let metadata = std::fs::metadata(source)
                .with_context(|| format!("image {} needs {}", self.name, source.display()))?;
            hash.update(format!(
                "{} {} {}",
                metadata.len(),
                metadata.mtime(),
                metadata.mtime_nsec()
            ));
        }
        Ok(hex(&hash.finalize()))
    }
}

/// containerd's client for the cluster's containerd.
fn ctr(paths: &Paths) -> tokio::process::Command {
    let mut ctr = command::command("ctr");
    ctr.arg("--address").arg(paths.containerd_socket()).args(["--namespace", "k8s.io"]);
    ctr
}

/// A name as containerd stores it: short names are in the default registry.
fn full_name(name: &str) -> String {
    match name.split_once('/') {
        None => format!("docker.io/library/{name}"),
        Some((first, _)) if first == "localhost" || first.contains(['.', ':']) => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::full_name;

    #[test]
    fn short_names_are_stored_as_the_kubelet_requests_them() {
        assert_eq!(full_name("busybox:1"), "docker.io/library/busybox:1");
        assert_eq!(full_name("quorate/quorate:v1"), "docker.io/quorate/quorate:v1");
        assert_eq!(full_name("localhost/a:1"), "localhost/a:1");
        assert_eq!(full_name("gcr.io/etcd-development/etcd:v3"), "gcr.io/etcd-development/etcd:v3");
    }
}
