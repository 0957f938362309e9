//! The state of a pod on the node: its volume and the memory of its processes. The tests run on the
//! node, so they can wipe, fill or corrupt a volume without etcd noticing.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use crate::context::TestContext;
use crate::faults::pod_processes;

const FILLER: &str = "filler";
const CHUNK: usize = 1 << 20;
/// The database file on a member's volume.
const DATABASE: &str = "data/member/snap/db";
/// The directory in which the kubelet mounts the local cluster's volumes of a pod.
const VOLUMES: &str = "volumes/kubernetes.io~local-volume";

/// Memory of a pod's processes, in KiB.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Resident set size.
    pub resident: u64,
    /// Proportional set size: shared pages divided among the processes that share them.
    pub proportional: u64,
}

impl TestContext {
    /// The directory in which the pod's volume is mounted.
    ///
    /// # Errors
    /// If the pod has no volume.
    pub fn volume_path(&self, pod: &Pod) -> Result<PathBuf> {
        let uid = pod.uid().unwrap_or_default();
        let folder = self.paths.kubelet().join("pods").join(uid).join(VOLUMES);
        let mut entries = fs::read_dir(&folder)
            .with_context(|| format!("pod {} has no volume", pod.name_any()))?
            .flatten();
        let volume = entries.next().context("no volume is mounted")?;
        Ok(volume.path())
    }

    /// Deletes everything on the pod's volume while its processes are paused, and kills them.
    ///
    /// # Errors
    /// If the pod has no volume, or no process.
    pub fn wipe_volume(&self, pod: &Pod) -> Result<()> {
        let volume = self.volume_path(pod)?;
        let _paused = self.pause_pod(pod)?;
        for entry in fs::read_dir(&volume)?.flatten() {
            let path = entry.path();
            let removed =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.with_context(|| format!("cannot remove {}", path.display()))?;
        }
        self.kill_pod(pod)
    }

    /// Fills the pod's volume until no space is left.
    ///
    /// # Errors
    /// If the volume cannot be written at all.
    pub fn fill_volume(&self, pod: &Pod) -> Result<u64> {
        let path = self.volume_path(pod)?.join(FILLER);
        let mut file = File::create(&path).context("cannot fill the volume")?;
        let mut bytes = 0_u64;
        for size in [CHUNK, 4096, 1] {
            bytes = bytes.saturating_add(write_while_possible(&mut file, size)?);
        }
        Ok(bytes)
    }

    /// Deletes the file that fills the volume.
    ///
    /// # Errors
    /// If the volume was not filled.
    pub fn unfill_volume(&self, pod: &Pod) -> Result<()> {
        fs::remove_file(self.volume_path(pod)?.join(FILLER)).context("the volume was not filled")
    }

    /// Whether a member's database file contains a text.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn database_contains(&self, pod: &Pod, text: &str) -> Result<bool> {
        let bytes = fs::read(self.volume_path(pod)?.join(DATABASE))?;
        Ok(bytes.windows(text.len()).any(|window| window == text.as_bytes()))
    }

    /// Replaces a text in a member's database file while the member is paused: etcd maps the file
    /// into memory, so it reads the changed data afterwards. Returns the number of replacements.
    ///
    /// # Errors
    /// If the file does not contain the text.
    pub fn corrupt_database(&self, pod: &Pod, from: &str, to: &str) -> Result<usize> {
        ensure!(from.len() == to.len(), "{from} and {to} have different lengths");
        let path = self.volume_path(pod)?.join(DATABASE);
        // A running member could move the text.
        let _paused = self.pause_pod(pod)?;
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let windows = bytes.windows(from.len()).enumerate();
        let offsets: Vec<usize> =
            windows.filter(|(_, window)| *window == from.as_bytes()).map(|(at, _)| at).collect();
        ensure!(!offsets.is_empty(), "{from} is not in {}", path.display());
        let file = File::options().write(true).open(&path)?;
        for offset in &offsets {
            file.write_all_at(to.as_bytes(), u64::try_from(*offset)?)?;
        }
        Ok(offsets.len())
    }

    /// The memory of a pod's processes.
    ///
    /// # Errors
    /// If the pod has no process.
    pub fn pod_memory(&self, pod: &Pod) -> Result<Memory> {
        let mut all = Memory { resident: 0, proportional: 0 };
        for process in pod_processes(pod)? {
            let path = PathBuf::from(format!("/proc/{}/smaps_rollup", process.pid()));
            all.resident = all.resident.saturating_add(kibibytes(&path, "Rss:")?);
            all.proportional = all.proportional.saturating_add(kibibytes(&path, "Pss:")?);
        }
        Ok(all)
    }
}

fn write_while_possible(file: &mut File, size: usize) -> Result<u64> {
    let chunk = vec![0_u8; size];
    let mut bytes = 0_u64;
    loop {
        let written = file.write(&chunk).and_then(|written| file.sync_data().map(|()| written));
        match written {
            Ok(written) => bytes = bytes.saturating_add(u64::try_from(written)?),
            Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(bytes),
            Err(error) => return Err(error.into()),
        }
    }
}

fn kibibytes(path: &Path, field: &str) -> Result<u64> {
    let text = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.with_context(|| format!("no {field}"))?.parse()?)
}
