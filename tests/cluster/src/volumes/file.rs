//! The file and the loop device behind a volume.
//!
//! The file's name is the volume's name. We find a device by the file behind it, never by its number: numbers
//! are used again, and by others. (Only the volume object names the number, for the kubelet.)

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::{command, wait};

const SUFFIX: &str = "img";

/// The device of a volume of this size: file and device are made, enlarged or found as needed.
pub(super) async fn ensure(folder: &Path, name: &str, size: u64) -> Result<PathBuf> {
    let file = path(folder, name);
    let sparse = OpenOptions::new().create(true).truncate(false).write(true).open(&file)?;
    if sparse.metadata()?.len() < size {
        sparse.set_len(size).context("cannot enlarge the file")?;
    }
    let Some(device) = device_of(&file)? else {
        let mut attach = command::command("losetup");
        let device = command::output(attach.args(["--find", "--show"]).arg(&file)).await;
        return Ok(PathBuf::from(device.context("no loop device to be had")?.trim()));
    };
    // Asked of the device, not remembered: we may have died after enlarging the file.
    if size_of(&device)? < size {
        let mut tell = command::command("losetup");
        command::output(tell.arg("--set-capacity").arg(&device)).await?;
    }
    Ok(device)
}

/// The kernel counts in sectors of 512 bytes.
fn size_of(device: &Path) -> Result<u64> {
    let name = device.file_name().context("a device without a name")?;
    let sectors = std::fs::read_to_string(Path::new("/sys/block").join(name).join("size"))?;
    Ok(sectors.trim().parse::<u64>()?.saturating_mul(512))
}

/// Detaches the device and removes the file, once nothing is mounted from it.
pub(super) async fn remove(folder: &Path, name: &str) -> Result<()> {
    let file = path(folder, name);
    if let Some(device) = device_of(&file)? {
        let mounts = std::fs::read_to_string("/proc/self/mounts")?;
        let device_name = device.to_string_lossy().into_owned();
        if mounts.lines().any(|line| line.split(' ').next() == Some(&device_name)) {
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
        let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if file.extension().is_some_and(|suffix| suffix == SUFFIX) && !is_known(name) {
            remove(folder, name).await?;
        }
    }
    Ok(())
}

/// Detaches every device whose file is below a folder, whoever attached it, and waits until they are free: a
/// mount that was taken away lazily lets go of its device a moment later.
///
/// # Errors
/// If a device is held by somebody.
pub(crate) async fn detach_all(below: &Path) -> Result<()> {
    wait::until("the loop devices to be free", Duration::from_secs(10), async || {
        let ours: Vec<_> =
            devices()?.into_iter().filter(|(_, file)| file.starts_with(below)).collect();
        for (device, _) in &ours {
            detach(device).await?;
        }
        match ours.first() {
            Some((device, _)) => bail!("{} was still there", device.display()),
            None => Ok(()),
        }
    })
    .await
}

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.{SUFFIX}"))
}

async fn detach(device: &Path) -> Result<()> {
    command::output(command::command("losetup").arg("--detach").arg(device)).await.map(drop)
}

fn device_of(file: &Path) -> Result<Option<PathBuf>> {
    Ok(devices()?.into_iter().find(|(_, behind)| behind == file).map(|(device, _)| device))
}

/// The loop devices in use, with the files behind them.
fn devices() -> Result<Vec<(PathBuf, PathBuf)>> {
    let blocks = std::fs::read_dir("/sys/block").context("cannot look for loop devices")?;
    let in_use = blocks.flatten().filter_map(|block| {
        let file = std::fs::read_to_string(block.path().join("loop/backing_file")).ok()?;
        let file = file.trim_end();
        let file = file.strip_suffix(" (deleted)").unwrap_or(file);
        Some((Path::new("/dev").join(block.file_name()), PathBuf::from(file)))
    });
    Ok(in_use.collect())
}
