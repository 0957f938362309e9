//! The file and the loop device behind a volume.
//!
//! The file's name is the volume's name. A device is found by its backing file, never by its
//! number: numbers are reused, also by others. (Only the volume object has the number, for the
//! kubelet.)

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::{command, wait};

const SUFFIX: &str = "img";

/// The device of a volume of this size; file and device are created or enlarged if needed.
pub(super) async fn ensure(folder: &Path, name: &str, size: u64) -> Result<PathBuf> {
    let file = path(folder, name);
    let sparse = OpenOptions::new().create(true).truncate(false).write(true).open(&file)?;
    if sparse.metadata()?.len() < size {
        sparse.set_len(size).context("cannot enlarge the file")?;
    }
    let Some(device) = device_of(&file)? else {
        let mut attach = command::command("losetup");
        let device = command::output(attach.args(["--find", "--show"]).arg(&file)).await;
        return Ok(PathBuf::from(device.context("no loop device is available")?.trim()));
    };
    // Read from the device: an earlier run may have crashed after enlarging the file.
    if size_of(&device)? < size {
        let mut resize = command::command("losetup");
        command::output(resize.arg("--set-capacity").arg(&device)).await?;
    }
    Ok(device)
}

/// The kernel counts in sectors of 512 bytes.
fn size_of(device: &Path) -> Result<u64> {
    let name = device.file_name().context("a device without a name")?;
    let sectors = std::fs::read_to_string(Path::new("/sys/block").join(name).join("size"))?;
    Ok(sectors.trim().parse::<u64>()?.saturating_mul(512))
}

/// Detaches the device and removes the file, unless it is mounted.
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

/// Removes the files for which `is_known` is false, and their devices.
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

/// Detaches every device whose file is below a folder, and waits until they are free: a lazy
/// unmount releases its device asynchronously.
///
/// # Errors
/// If a device stays in use.
pub(crate) async fn detach_all(below: &Path) -> Result<()> {
    wait::until("the loop devices to be free", Duration::from_secs(10), async || {
        let ours: Vec<_> =
            devices()?.into_iter().filter(|(_, file)| file.starts_with(below)).collect();
        for (device, _) in &ours {
            detach(device).await?;
        }
        match ours.first() {
            Some((device, _)) => bail!("{} still exists", device.display()),
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

/// The loop devices in use, with their backing files.
fn devices() -> Result<Vec<(PathBuf, PathBuf)>> {
    let blocks = std::fs::read_dir("/sys/block").context("cannot list loop devices")?;
    let in_use = blocks.flatten().filter_map(|block| {
        let file = std::fs::read_to_string(block.path().join("loop/backing_file")).ok()?;
        let file = file.trim_end();
        let file = file.strip_suffix(" (deleted)").unwrap_or(file);
        Some((Path::new("/dev").join(block.file_name()), PathBuf::from(file)))
    });
    Ok(in_use.collect())
}
