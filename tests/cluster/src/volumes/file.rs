//! The file and the loop device behind a volume.
//!
//! The file's name is the volume's name. A device is always found by the file behind it, never by its
//! number: numbers are used again, and by others.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command;

const SUFFIX: &str = "img";

/// The device of a volume of this size: file and device are made, enlarged or found as needed.
pub(super) async fn ensure(folder: &Path, name: &str, size: u64) -> Result<PathBuf> {
    let file = path(folder, name);
    let sparse = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&file)?;
    let grown = sparse.metadata()?.len() < size;
    if grown {
        sparse.set_len(size).context("cannot enlarge the file")?;
    }
    let Some(device) = device_of(&file) else {
        let mut attach = command::command("losetup");
        let device = command::output(attach.args(["--find", "--show"]).arg(&file)).await;
        return Ok(PathBuf::from(
            device.context("no loop device to be had")?.trim(),
        ));
    };
    if grown {
        command::output(
            command::command("losetup")
                .arg("--set-capacity")
                .arg(&device),
        )
        .await?;
    }
    Ok(device)
}

/// Detaches the device and removes the file, once nothing is mounted from it.
pub(super) async fn remove(folder: &Path, name: &str) -> Result<()> {
    let file = path(folder, name);
    if let Some(device) = device_of(&file) {
        let mounts = std::fs::read_to_string("/proc/self/mounts")?;
        let device_name = device.to_string_lossy().into_owned();
        if mounts
            .lines()
            .any(|line| line.split(' ').next() == Some(&device_name))
        {
            bail!("{device_name} is still mounted");
        }
        detach(&device).await?;
    }
    match std::fs::remove_file(&file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes the files that `is_known` does not know, and their devices.
pub(super) async fn remove_orphans(folder: &Path, is_known: impl Fn(&str) -> bool) -> Result<()> {
    for entry in std::fs::read_dir(folder)?.flatten() {
        let file = entry.path();
        let name = file
            .file_stem()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if file.extension().is_some_and(|suffix| suffix == SUFFIX) && !is_known(name) {
            remove(folder, name).await?;
        }
    }
    Ok(())
}

/// Detaches every device whose file is below a folder, whoever attached it.
///
/// # Errors
/// If a device is held by somebody.
pub(crate) async fn detach_all(below: &Path) -> Result<()> {
    for (device, file) in devices() {
        if file.starts_with(below) {
            detach(&device).await?;
        }
    }
    Ok(())
}

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.{SUFFIX}"))
}

async fn detach(device: &Path) -> Result<()> {
    command::output(command::command("losetup").arg("--detach").arg(device))
        .await
        .map(drop)
}

fn device_of(file: &Path) -> Option<PathBuf> {
    devices()
        .into_iter()
        .find(|(_, behind)| behind == file)
        .map(|(device, _)| device)
}

/// The loop devices in use, with the files behind them.
fn devices() -> Vec<(PathBuf, PathBuf)> {
    let blocks = std::fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .flatten();
    blocks
        .filter_map(|block| {
            let file = std::fs::read_to_string(block.path().join("loop/backing_file")).ok()?;
            let file = file.trim_end();
            let file = file.strip_suffix(" (deleted)").unwrap_or(file);
            Some((
                Path::new("/dev").join(block.file_name()),
                PathBuf::from(file),
            ))
        })
        .collect()
}
