//! Images without a registry: made from scratch, imported into containerd under their public names.

mod archive;
pub mod catalog;

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::command;
use crate::files;
use crate::places::Places;
use crate::programs::hex;
use crate::progress::Step;

/// What an image holds and how it starts.
#[derive(Debug)]
pub struct Image {
    /// Its name, as manifests write it.
    pub name: String,
    /// Files: where they come from, and where they are in the image.
    pub files: Vec<(PathBuf, String)>,
    /// Symbolic links: where they are, and where they point.
    pub links: Vec<(String, String)>,
    /// Empty folders, with their mode.
    pub folders: Vec<(&'static str, u32)>,
    /// The program that starts.
    pub entrypoint: Vec<String>,
    /// Its arguments, unless the pod gives others.
    pub arguments: Vec<String>,
    /// Who it runs as, unless the pod says otherwise. Empty is root, as in many official images.
    pub user: &'static str,
}

impl Image {
    /// Imports it, unless this very content is there; tells whether it had to.
    ///
    /// # Errors
    /// If a file of it is missing or containerd refuses it.
    pub async fn import(&self, places: &Places) -> Result<bool> {
        let key = self.key()?;
        let record = places.imported_images().join(self.name.replace(['/', ':'], "_"));
        if std::fs::read_to_string(&record).is_ok_and(|imported| imported == key) {
            return Ok(false);
        }
        let step = Step::begin(format!("importing image {}", self.name));
        let full_name = full_name(&self.name);
        let archive = archive::docker_archive(self, &full_name)
            .with_context(|| format!("cannot make image {}", self.name))?;
        let mut import = ctr(places);
        import.args(["images", "import", "-"]);
        command::feed(&mut import, &archive)
            .await
            .with_context(|| format!("cannot import image {}", self.name))?;
        files::write(&record, key)?;
        step.done("");
        Ok(true)
    }

    /// Changes when the image does. Programs in the cache never change under their name, so size and time
    /// tell as much as hashing a hundred megabytes would.
    ///
    /// # Errors
    /// If a file of it is missing.
    pub fn key(&self) -> Result<String> {
        let mut hash = Sha256::new();
        hash.update(format!("{self:?}"));
        for (source, _) in &self.files {
            let about = std::fs::metadata(source)
                .with_context(|| format!("image {} needs {}", self.name, source.display()))?;
            hash.update(format!("{} {} {}", about.len(), about.mtime(), about.mtime_nsec()));
        }
        Ok(hex(&hash.finalize()))
    }
}

/// containerd's own client, talking to the cluster's containerd.
fn ctr(places: &Places) -> tokio::process::Command {
    let mut ctr = command::command("ctr");
    ctr.arg("--address").arg(places.containerd_socket()).args(["--namespace", "k8s.io"]);
    ctr
}

/// A name as containerd stores it: short names belong to the default registry.
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
    fn short_names_are_stored_as_the_kubelet_will_ask_for_them() {
        assert_eq!(full_name("busybox:1"), "docker.io/library/busybox:1");
        assert_eq!(full_name("quorate/quorate:v1"), "docker.io/quorate/quorate:v1");
        assert_eq!(full_name("localhost/a:1"), "localhost/a:1");
        assert_eq!(full_name("gcr.io/etcd-development/etcd:v3"), "gcr.io/etcd-development/etcd:v3");
    }
}
