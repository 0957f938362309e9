//! The built program, run as a user runs it: with nothing of the test machine's environment.
//! Comes in: arguments. Goes out: what it wrote and how it ended, or a running process whose log
//! can be asked. A running process is ended when it is dropped.
#![allow(dead_code, reason = "each test program uses its part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(30);

/// An empty folder that belongs to the caller alone.
pub(crate) fn folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("program-{}-{count}", std::process::id());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// The program, with an empty environment and a home without a kubeconfig.
pub(crate) fn quorate(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command
        .env_clear()
        .env("HOME", env!("CARGO_TARGET_TMPDIR"))
        .args(args);
    command
}

/// Runs it to its end.
pub(crate) fn finished(args: &[&str]) -> Output {
    quorate(args).stdin(Stdio::null()).output().unwrap()
}

/// A kubeconfig for an API server without TLS at a loopback port.
pub(crate) fn kubeconfig(port: u16) -> PathBuf {
    let path = folder().join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: it\n\
         clusters:\n- name: it\n  cluster: {{server: 'http://127.0.0.1:{port}'}}\n\
         contexts:\n- name: it\n  context: {{cluster: it, user: it}}\n\
         users:\n- name: it\n  user: {{}}\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// Asks again and again until the answer is yes, or fails with `what` was waited for.
pub(crate) fn until(what: &str, mut ready: impl FnMut() -> bool) {
    let start = Instant::now();
    while !ready() {
        assert!(
            start.elapsed() < PATIENCE,
            "waited {PATIENCE:?} in vain until {what}"
        );
        thread::sleep(Duration::from_millis(10));
    }
}

/// `quorate run`, running.
pub(crate) struct Running {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Running {
    /// Starts it against the API server at a loopback port, with short times.
    pub(crate) fn start(api_port: u16) -> Self {
        let mut child = quorate(&["run", "--listen=127.0.0.1:0", "--lease-namespace=here"])
            .args([
                "--lease-duration=1s",
                "--renew-deadline=800ms",
                "--retry-period=200ms",
            ])
            .env("KUBECONFIG", kubeconfig(api_port))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (stderr, written) = (child.stderr.take().unwrap(), Arc::clone(&lines));
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                written.lock().unwrap().push(line);
            }
        });
        Self { child, lines }
    }

    /// The log lines that hold `words`, as JSON.
    pub(crate) fn log(&self, words: &str) -> Vec<Value> {
        let lines = self.lines.lock().unwrap();
        let chosen = lines.iter().filter(|line| line.contains(words));
        chosen
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub(crate) fn logs(&self, words: &str) {
        until(
            &format!("the log says {words:?}; it says {:?}", self.lines),
            || !self.log(words).is_empty(),
        );
    }

    /// The answer to a GET on the probe port, head and body.
    pub(crate) fn get(&self, path: &str) -> String {
        self.logs("quorate runs");
        let address = self.log("quorate runs")[0]["listen"]
            .as_str()
            .unwrap()
            .to_owned();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    pub(crate) fn leads(&self) -> bool {
        self.get("/metrics").contains("\nquorate_leader 1\n")
    }

    pub(crate) fn identity(&self) -> String {
        self.logs("quorate runs");
        self.log("quorate runs")[0]["identity"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Sends a signal by its name, such as TERM.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        until("the process ends", || !self.is_alive());
        self.child.wait().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
