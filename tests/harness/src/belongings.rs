//! What belongs to a pod on the node: its volumes and the memory of its processes. The stories run on the node, so
//! they can take a volume's content away or fill it up behind etcd's back.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use crate::disturb::processes_of;
use crate::story::Story;

const FILLER: &str = "filler";
const CHUNK: usize = 1 << 20;
/// etcd's file on a member's volume.
const FILE: &str = "data/member/snap/db";
/// Under this name the kubelet mounts volumes of the local cluster.
const VOLUMES: &str = "volumes/kubernetes.io~local-volume";

/// Memory of a pod's processes, in KiB.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// All that is resident.
    pub resident: u64,
    /// The same, with what is shared divided among those who share it.
    pub proportional: u64,
}

impl Story {
    /// Where the pod's volume is mounted.
    ///
    /// # Errors
    /// If it has none.
    pub fn volume_of(&self, pod: &Pod) -> Result<PathBuf> {
        let uid = pod.uid().unwrap_or_default();
        let folder = self.places.kubelet().join("pods").join(uid).join(VOLUMES);
        let mut inside = fs::read_dir(&folder)
            .with_context(|| format!("pod {} has no volume", pod.name_any()))?
            .flatten();
        let volume = inside.next().context("there is nothing mounted")?;
        Ok(volume.path())
    }

    /// Takes everything off the pod's volume, and kills its processes before they can notice.
    ///
    /// # Errors
    /// If there is no volume, or no process.
    pub fn empty_volume(&self, pod: &Pod) -> Result<()> {
        let volume = self.volume_of(pod)?;
        let _stopped = self.stop_pod(pod)?;
        for entry in fs::read_dir(&volume)?.flatten() {
            let path = entry.path();
            let gone =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            gone.with_context(|| format!("cannot remove {}", path.display()))?;
        }
        self.kill_pod(pod)
    }

    /// Fills the pod's volume until it takes no more.
    ///
    /// # Errors
    /// If it cannot be written at all.
    pub fn fill_volume(&self, pod: &Pod) -> Result<u64> {
        let path = self.volume_of(pod)?.join(FILLER);
        let mut file = File::create(&path).context("cannot fill the volume")?;
        let mut bytes = 0_u64;
        for size in [CHUNK, 4096, 1] {
            bytes = bytes.saturating_add(write_while_possible(&mut file, size)?);
        }
        Ok(bytes)
    }

    /// Takes away what filled the volume.
    ///
    /// # Errors
    /// If it was not filled.
    pub fn unfill_volume(&self, pod: &Pod) -> Result<()> {
        fs::remove_file(self.volume_of(pod)?.join(FILLER)).context("it was not filled")
    }

    /// Whether something is in a member's file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn is_in_file(&self, pod: &Pod, text: &str) -> Result<bool> {
        let bytes = fs::read(self.volume_of(pod)?.join(FILE))?;
        Ok(bytes.windows(text.len()).any(|it| it == text.as_bytes()))
    }

    /// Changes what is in a member's file behind its back, while it stands still: it reads through the same memory, so it has
    /// something else when it goes on. Answers how often.
    ///
    /// # Errors
    /// If it is not in there.
    pub fn tamper(&self, pod: &Pod, from: &str, to: &str) -> Result<usize> {
        ensure!(from.len() == to.len(), "{from} and {to} have different lengths");
        let path = self.volume_of(pod)?.join(FILE);
        // Where it is now may be something else in a moment.
        let _stopped = self.stop_pod(pod)?;
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let places = bytes.windows(from.len()).enumerate();
        let places: Vec<usize> =
            places.filter(|(_, it)| *it == from.as_bytes()).map(|(at, _)| at).collect();
        ensure!(!places.is_empty(), "{from} is not in {}", path.display());
        let file = File::options().write(true).open(&path)?;
        for at in &places {
            file.write_all_at(to.as_bytes(), u64::try_from(*at)?)?;
        }
        Ok(places.len())
    }

    /// The memory of a pod's processes.
    ///
    /// # Errors
    /// If it has none.
    pub fn memory_of(&self, pod: &Pod) -> Result<Memory> {
        let mut all = Memory { resident: 0, proportional: 0 };
        for process in processes_of(pod)? {
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
    let page = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let line = page.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.with_context(|| format!("no {field}"))?.parse()?)
}
