//! Runs the built binary with an empty environment: to its end, or as a process whose log can be
//! read and which is killed on drop.
#![allow(dead_code, reason = "each test uses a part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// A new empty directory.
pub(crate) fn folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("binary-{}-{count}", std::process::id());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// The command, with an empty environment and a home without a kubeconfig.
pub(crate) fn quorate(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.env_clear().env("HOME", env!("CARGO_TARGET_TMPDIR")).args(args);
    command
}

/// Runs the binary to its end.
pub(crate) fn finished(args: &[&str]) -> Output {
    quorate(args).stdin(Stdio::null()).output().unwrap()
}

/// A kubeconfig for an API server without TLS at a loopback port.
pub(crate) fn kubeconfig(port: u16) -> PathBuf {
    kubeconfig_of_user(port, "{}")
}

/// The same, with `user` as the YAML of the user.
pub(crate) fn kubeconfig_of_user(port: u16, user: &str) -> PathBuf {
    let path = folder().join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         clusters:\n- name: test\n  cluster: {{server: 'http://127.0.0.1:{port}'}}\n\
         contexts:\n- name: test\n  context: {{cluster: test, user: test}}\n\
         users:\n- name: test\n  user: {user}\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// Waits until `ready`, or fails with `what` was waited for.
pub(crate) fn until(what: &str, ready: impl FnMut() -> bool) {
    wait_until(|| what.to_owned(), ready);
}

/// As [`until`], with a message that is computed on failure.
fn wait_until(what: impl Fn() -> String, mut ready: impl FnMut() -> bool) {
    let start = Instant::now();
    while !ready() {
        assert!(
            start.elapsed() < WAIT_TIMEOUT,
            "timed out after {WAIT_TIMEOUT:?} waiting until {}",
            what()
        );
        thread::sleep(Duration::from_millis(10));
    }
}

/// A `quorate run` process.
pub(crate) struct Running {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts it with the API server at a loopback port and short lease durations.
    pub(crate) fn start(api_port: u16) -> Self {
        Self::timed(api_port, "1s", "800ms", "200ms")
    }

    /// The same, with a lease duration, a renew deadline and a retry period.
    pub(crate) fn timed(api_port: u16, lease: &str, renew: &str, retry: &str) -> Self {
        Self::given(
            &kubeconfig(api_port),
            &[
                "--shutdown-grace=5m",
                &format!("--lease-duration={lease}"),
                &format!("--renew-deadline={renew}"),
                &format!("--retry-period={retry}"),
            ],
        )
    }

    /// Starts it with a kubeconfig and flags. It watches a single namespace, so that it only takes
    /// part in leader election.
    pub(crate) fn given(kubeconfig: &Path, flags: &[&str]) -> Self {
        let defaults = ["--listen=127.0.0.1:0", "--lease-namespace=here", "--watch-namespace=here"];
        let mut child = quorate(&["run"])
            .args(defaults)
            .args(flags)
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (stderr, log) = (child.stderr.take().unwrap(), Arc::clone(&lines));
        let reader = thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                log.lock().unwrap().push(line);
            }
        });
        Self { child, lines, reader: Some(reader) }
    }

    /// Waits until `ready`, or fails with the log.
    pub(crate) fn until(&self, what: &str, mut ready: impl FnMut(&Self) -> bool) {
        let message = || format!("{what}; log:\n{}", self.lines.lock().unwrap().join("\n"));
        wait_until(message, || ready(self));
    }

    /// The log lines that contain `text`, as JSON.
    pub(crate) fn log(&self, text: &str) -> Vec<Value> {
        let lines = self.lines.lock().unwrap();
        let matching = lines.iter().filter(|line| line.contains(text));
        matching.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until the log contains `text`.
    pub(crate) fn logs(&self, text: &str) {
        self.until(&format!("the log contains {text:?}"), |running| !running.log(text).is_empty());
    }

    /// The times of the log lines that contain `text`.
    pub(crate) fn logged_at(&self, text: &str) -> Vec<Timestamp> {
        let time = |line: &Value| line["timestamp"].as_str().unwrap().parse().unwrap();
        self.log(text).iter().map(time).collect()
    }

    /// The response to a GET on the probe port, head and body.
    pub(crate) fn get(&self, path: &str) -> String {
        self.logs("quorate started");
        let address = self.log("quorate started")[0]["listen"].as_str().unwrap().to_owned();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    pub(crate) fn leads(&self) -> bool {
        self.get("/metrics").contains("\nquorate_leader 1\n")
    }

    pub(crate) fn identity(&self) -> String {
        self.logs("quorate started");
        self.log("quorate started")[0]["identity"].as_str().unwrap().to_owned()
    }

    /// Sends a signal by its name, such as TERM.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for the process to exit; then the log is complete.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let start = Instant::now();
        while self.is_alive() {
            let log = self.lines.lock().unwrap().join("\n");
            assert!(start.elapsed() < WAIT_TIMEOUT, "the process does not exit; log:\n{log}");
            thread::sleep(Duration::from_millis(10));
        }
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.child.wait().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
