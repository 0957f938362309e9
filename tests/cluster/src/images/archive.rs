//! An image as a tar archive in the format of `docker save`: one layer, configuration, manifest.
//!
//! Reproducible: no times, no owners, a fixed order.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use super::Image;
use crate::binaries::hex;

/// The archive of an image with its full name.
pub(super) fn docker_archive(image: &Image, full_name: &str) -> Result<Vec<u8>> {
    let layer = layer(image)?;
    let config = serde_json::to_vec(&json!({
        "architecture": architecture(),
        "os": "linux",
        "config": {
            "Entrypoint": image.entrypoint,
            "Cmd": image.arguments,
            "User": image.user,
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "WorkingDir": "/",
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer))] },
    }))?;
    let config_name = format!("{}.json", sha256(&config));
    let manifest = serde_json::to_vec(&json!([
        { "Config": config_name, "RepoTags": [full_name], "Layers": ["layer.tar"] },
    ]))?;

    let mut archive = Builder::new(Vec::new());
    append(&mut archive, &config_name, 0o644, &config)?;
    append(&mut archive, "layer.tar", 0o644, &layer)?;
    append(&mut archive, "manifest.json", 0o644, &manifest)?;
    archive.into_inner().context("cannot finish the archive")
}

fn layer(image: &Image) -> Result<Vec<u8>> {
    let mut layer = Builder::new(Vec::new());
    let mut created = BTreeSet::new();
    for (folder, mode) in &image.folders {
        parents(&mut layer, folder, &mut created)?;
        append_folder(&mut layer, folder, *mode)?;
        created.insert((*folder).to_owned());
    }
    for (source, target) in &image.files {
        parents(&mut layer, target, &mut created)?;
        let content =
            std::fs::read(source).with_context(|| format!("cannot read {}", source.display()))?;
        append(&mut layer, target, 0o755, &content)?;
    }
    for (link, target) in &image.links {
        parents(&mut layer, link, &mut created)?;
        let mut header = header(EntryType::Symlink, 0o777, 0);
        layer.append_link(&mut header, inside(link), target)?;
    }
    layer.into_inner().context("cannot finish the layer")
}

/// Adds the parent folders of a path, each once.
fn parents(layer: &mut Builder<Vec<u8>>, path: &str, created: &mut BTreeSet<String>) -> Result<()> {
    let mut parents: Vec<&Path> = Path::new(path).ancestors().skip(1).collect();
    parents.reverse();
    for folder in parents {
        let folder = folder.to_string_lossy().into_owned();
        if folder != "/" && !folder.is_empty() && created.insert(folder.clone()) {
            append_folder(layer, &folder, 0o755)?;
        }
    }
    Ok(())
}

fn append_folder(layer: &mut Builder<Vec<u8>>, path: &str, mode: u32) -> Result<()> {
    let mut header = header(EntryType::Directory, mode, 0);
    layer.append_data(&mut header, inside(path), std::io::empty())?;
    Ok(())
}

fn append(archive: &mut Builder<Vec<u8>>, path: &str, mode: u32, content: &[u8]) -> Result<()> {
    let size = u64::try_from(content.len())?;
    let mut header = header(EntryType::Regular, mode, size);
    archive.append_data(&mut header, inside(path), content)?;
    Ok(())
}

fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Paths in an archive have no leading slash.
fn inside(path: &str) -> &str {
    path.trim_start_matches('/')
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Go's name of the architecture, which images use.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(folder: &Path) -> Image {
        let program = folder.join("program");
        std::fs::write(&program, b"#!").unwrap();
        Image {
            name: "some/image:1".into(),
            files: vec![(program, "/usr/local/bin/program".into())],
            links: vec![("/bin/sh".into(), "/usr/local/bin/program".into())],
            folders: vec![("/tmp", 0o1777)],
            entrypoint: vec!["/usr/local/bin/program".into()],
            arguments: vec![],
            user: "65532:65532",
        }
    }

    #[test]
    fn archive_is_reproducible() {
        let folder = std::env::temp_dir().join(format!("archive-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let image = image(&folder);
        let first = docker_archive(&image, "docker.io/some/image:1").unwrap();
        let second = docker_archive(&image, "docker.io/some/image:1").unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(first, second);

        let mut archive = tar::Archive::new(first.as_slice());
        let names: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        assert!(names.contains(&"manifest.json".to_owned()), "{names:?}");
    }
}
