//! The agent in a member's pod, from the outside: what starts, what is refused, and what is remembered.
//! Comes in: the program, two folders, and a stand-in for etcd that tells its flags. Goes out: its
//! promises, one sentence each.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "support/program.rs"]
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use program::{finished, folder};

/// A member's volume and a pod's own folder.
struct Member {
    data: PathBuf,
    pod: PathBuf,
}

impl Member {
    fn new() -> Self {
        Self { data: folder(), pod: folder() }
    }

    /// Starts it as a container would; in the place of etcd a shell tells its flags.
    fn start(&self, told: &str) -> Output {
        let (data, pod) = (self.data.to_str().unwrap(), self.pod.to_str().unwrap());
        let line = ["agent", "start", "--start-mode", told, "--data", data, "--pod", pod, "--"];
        let etcd = ["/bin/sh", "-c", "echo \"$@\"", "etcd", "--name=a"];
        finished(&[&line[..], &etcd].concat())
    }

    fn starts(&self, told: &str, state: &str) {
        let output = self.start(told);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(said, format!("--name=a --initial-cluster-state={state}\n"), "{output:?}");
        assert!(output.status.success());
    }

    fn refuses(&self, told: &str) {
        let output = self.start(told);
        assert_eq!(output.status.code(), Some(77), "{output:?}");
        assert_eq!(output.stdout, b"", "etcd was started");
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(words.starts_with("quorate: refused to start etcd: "), "{words}");
        assert!(!words.trim_end().contains('\n'), "one sentence to show: {words}");
    }

    /// What etcd leaves when it ends before it has a log.
    fn begin(&self) {
        fs::create_dir_all(self.data.join("member/snap")).unwrap();
    }

    fn write_log(&self) {
        fs::create_dir_all(self.data.join("member/wal")).unwrap();
        fs::write(self.data.join("member/wal/0000000000000000-0000000000000000.wal"), "x").unwrap();
    }

    fn empty(&self) {
        fs::remove_dir_all(self.data.join("member")).unwrap();
    }

    /// The pod is deleted and made again, on the same volume.
    fn another_pod(&mut self) {
        self.pod = folder();
    }
}

#[test]
fn a_founder_founds_once_and_returns_with_its_log() {
    let mut member = Member::new();
    member.starts("bootstrap", "new");
    member.begin();
    member.starts("bootstrap", "new");
    member.write_log();
    member.starts("bootstrap", "existing");
    member.another_pod();
    member.starts("rejoin", "existing");
}

#[test]
fn a_member_whose_data_is_gone_is_refused_for_ever() {
    for told in ["bootstrap", "join"] {
        let member = Member::new();
        assert!(member.start(told).status.success());
        member.write_log();
        member.empty();
        member.refuses(told);
        member.refuses(told);
    }
    let mut member = Member::new();
    member.another_pod();
    member.refuses("rejoin");
    member.begin();
    member.refuses("rejoin");
}

#[test]
fn a_disk_that_cannot_be_read_is_not_an_empty_one() {
    let member = Member::new();
    // Where a folder belongs is something else.
    fs::create_dir_all(member.data.join("member")).unwrap();
    fs::write(member.data.join("member/wal"), "x").unwrap();
    let output = member.start("bootstrap");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("failed to inspect the data directory before etcd starts"), "{words}");
}

#[test]
fn what_cannot_be_remembered_is_not_started() {
    let mut member = Member::new();
    member.pod = member.pod.join("not-there");
    let output = member.start("bootstrap");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]));
}

#[test]
fn the_program_copies_itself_and_the_copy_works() {
    let to = folder();
    let installed = || finished(&["agent", "install", "--to", to.to_str().unwrap()]);
    assert!(installed().status.success());
    assert!(installed().status.success(), "again, beside one that is there");
    let copy: &Path = &to.join("quorate");
    let said = std::process::Command::new(copy).arg("version").output().unwrap();
    assert!(said.status.success(), "{said:?}");
    assert_eq!(fs::read_dir(&to).unwrap().count(), 1, "nothing else is left there");
}
