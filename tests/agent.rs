//! The start agent as a process, with a shell in place of etcd that prints its flags: when etcd is
//! started, when the start is denied, and what is recorded.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "support/binary.rs"]
mod binary;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use binary::{finished, folder};

/// The volume of a member and the directory of its pod.
struct Member {
    data: PathBuf,
    pod: PathBuf,
}

impl Member {
    fn new() -> Self {
        Self { data: folder(), pod: folder() }
    }

    /// Runs the agent as the container does; a shell prints the flags of etcd.
    fn start(&self, mode: &str) -> Output {
        let (data, pod) = (self.data.to_str().unwrap(), self.pod.to_str().unwrap());
        let line = ["agent", "start", "--start-mode", mode, "--data", data, "--pod", pod, "--"];
        let etcd = ["/bin/sh", "-c", "echo \"$@\"", "etcd", "--name=a"];
        finished(&[&line[..], &etcd].concat())
    }

    fn starts(&self, mode: &str, state: &str) {
        let output = self.start(mode);
        let flags = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(flags, format!("--name=a --initial-cluster-state={state}\n"), "{output:?}");
        assert!(output.status.success());
    }

    fn denies(&self, mode: &str) {
        let output = self.start(mode);
        assert_eq!(output.status.code(), Some(77), "{output:?}");
        assert_eq!(output.stdout, b"", "etcd was started");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.starts_with("quorate: refused to start etcd: "), "{message}");
        assert!(!message.trim_end().contains('\n'), "more than one line: {message}");
    }

    /// The state that etcd leaves when it exits before the first WAL file.
    fn initialize(&self) {
        fs::create_dir_all(self.data.join("member/snap")).unwrap();
    }

    fn write_wal(&self) {
        fs::create_dir_all(self.data.join("member/wal")).unwrap();
        fs::write(self.data.join("member/wal/0000000000000000-0000000000000000.wal"), "x").unwrap();
    }

    fn empty(&self) {
        fs::remove_dir_all(self.data.join("member")).unwrap();
    }

    /// The pod is recreated with the same volume.
    fn recreate_pod(&mut self) {
        self.pod = folder();
    }
}

#[test]
fn initial_member_bootstraps_once_and_rejoins_with_its_wal() {
    let mut member = Member::new();
    member.starts("bootstrap", "new");
    member.initialize();
    member.starts("bootstrap", "new");
    member.write_wal();
    member.starts("bootstrap", "existing");
    member.recreate_pod();
    member.starts("rejoin", "existing");
}

#[test]
fn member_with_missing_data_is_never_started() {
    for mode in ["bootstrap", "join"] {
        let member = Member::new();
        assert!(member.start(mode).status.success());
        member.write_wal();
        member.empty();
        member.denies(mode);
        member.denies(mode);
    }
    let mut member = Member::new();
    member.recreate_pod();
    member.denies("rejoin");
    member.initialize();
    member.denies("rejoin");
}

#[test]
fn unreadable_data_directory_does_not_count_as_empty() {
    let member = Member::new();
    // A file in place of the WAL directory.
    fs::create_dir_all(member.data.join("member")).unwrap();
    fs::write(member.data.join("member/wal"), "x").unwrap();
    let output = member.start("bootstrap");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        message.contains("failed to inspect the data directory before etcd starts"),
        "{message}"
    );
}

#[test]
fn etcd_is_not_started_if_the_start_cannot_be_recorded() {
    let mut member = Member::new();
    member.pod = member.pod.join("not-there");
    let output = member.start("bootstrap");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]));
}

#[test]
fn installed_copy_of_the_binary_works() {
    let to = folder();
    let installed = || finished(&["agent", "install", "--to", to.to_str().unwrap()]);
    assert!(installed().status.success());
    assert!(installed().status.success(), "a second installation replaces the first");
    let copy: &Path = &to.join("quorate");
    let output = std::process::Command::new(copy).arg("version").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read_dir(&to).unwrap().count(), 1, "other files are left");
}
