//! A minimal API server with one Lease. It responds as Kubernetes does: it checks uids and resource
//! versions, assigns uids, and returns 404 for what does not exist. It can be set to stop
//! responding, to forbid requests, and to execute a write and respond with 504.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/here/leases";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/here/leases/quorate";

#[derive(Default)]
struct State {
    lease: Option<Value>,
    writes: u64,
    behavior: Behavior,
    /// Method and time of each attempted write.
    attempts: Vec<(String, Instant)>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Behavior {
    #[default]
    Normal,
    /// Requests are accepted and get no response.
    NoResponse,
    ForbidAll,
    ForbidWrites,
    /// The next write is executed and gets 504; then the behavior is normal again.
    WriteThen504,
}

/// The server; it stops with the test process.
pub(crate) struct ApiServer {
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
}

impl ApiServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &state));
            }
        });
        Self { port, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Holder of the Lease; empty if there is none.
    pub(crate) fn holder(&self) -> Option<String> {
        let state = self.state();
        let holder = &state.lease.as_ref()?["spec"]["holderIdentity"];
        Some(holder.as_str().unwrap_or_default().to_owned())
    }

    pub(crate) fn delete_lease(&self) {
        self.state().lease = None;
    }

    /// Clears the holder, as a user could.
    pub(crate) fn clear_holder(&self) {
        let mut state = self.state();
        let mut lease = state.lease.clone().unwrap();
        lease["spec"]["holderIdentity"] = json!("");
        let uid = lease["metadata"]["uid"].clone();
        write_lease(&mut state, &lease, uid);
    }

    /// Times of the attempted writes with this method, POST or PUT.
    pub(crate) fn attempts(&self, method: &str) -> Vec<Instant> {
        let state = self.state();
        let attempts = state.attempts.iter().filter(|(attempted, _)| attempted == method);
        attempts.map(|(_, at)| *at).collect()
    }

    pub(crate) fn recover(&self) {
        self.state().behavior = Behavior::Normal;
    }

    /// From now on requests get no response.
    pub(crate) fn stop_responding(&self) {
        self.state().behavior = Behavior::NoResponse;
    }

    pub(crate) fn forbid_all(&self) {
        self.state().behavior = Behavior::ForbidAll;
    }

    pub(crate) fn forbid_writes(&self) {
        self.state().behavior = Behavior::ForbidWrites;
    }

    /// The next write is executed and gets 504.
    pub(crate) fn write_then_504(&self) {
        self.state().behavior = Behavior::WriteThen504;
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    let Some((method, path, body)) = request(&stream) else {
        return;
    };
    let writes = method != "GET";
    if writes {
        state.lock().unwrap().attempts.push((method.clone(), Instant::now()));
    }
    let behavior = state.lock().unwrap().behavior;
    let (code, response) = match behavior {
        Behavior::NoResponse => {
            // The connection stays open as long as the client waits.
            stream.set_read_timeout(Some(Duration::from_mins(2))).unwrap();
            stream.read_exact(&mut [0]).ok();
            return;
        }
        Behavior::ForbidAll => failure(403, "Forbidden"),
        Behavior::ForbidWrites if writes => failure(403, "Forbidden"),
        Behavior::WriteThen504 if writes => {
            let mut state = state.lock().unwrap();
            state.behavior = Behavior::Normal;
            respond(&mut state, &method, &path, &body);
            failure(504, "Timeout")
        }
        Behavior::Normal | Behavior::ForbidWrites | Behavior::WriteThen504 => {
            respond(&mut state.lock().unwrap(), &method, &path, &body)
        }
    };
    let text = response.to_string();
    let head = "Content-Type: application/json\r\nConnection: close";
    let length = text.len();
    write!(stream, "HTTP/1.1 {code} test\r\n{head}\r\nContent-Length: {length}\r\n\r\n{text}").ok();
}

/// The method, the path without its query, and the body.
fn request(stream: &TcpStream) -> Option<(String, String, Value)> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if first.is_none() {
            let mut parts = line.split(' ');
            let (method, path) = (parts.next()?, parts.next()?);
            first = Some((method.to_owned(), path.split('?').next()?.to_owned()));
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (method, path) = first?;
    Some((method, path, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}

fn respond(state: &mut State, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let new_uid = json!(format!("uid-{}", state.writes));
    match (method, path, state.lease.clone()) {
        ("GET", LEASE, Some(lease)) => (200, lease),
        ("POST", LEASES, None) => (201, write_lease(state, body, new_uid)),
        // As in Kubernetes: PUT creates a missing object, unless the request has a uid.
        ("PUT", LEASE, None) if body["metadata"]["uid"].is_null() => {
            (201, write_lease(state, body, new_uid))
        }
        ("PUT", LEASE, Some(lease)) if preconditions_hold(body, &lease) => {
            (200, write_lease(state, body, lease["metadata"]["uid"].clone()))
        }
        ("POST", LEASES, Some(_)) => failure(409, "AlreadyExists"),
        ("PUT", LEASE, _) => failure(409, "Conflict"),
        ("GET", LEASE, None) => {
            let (code, mut status) = failure(404, "NotFound");
            status["details"] = json!({ "name": "quorate" });
            (code, status)
        }
        _ => failure(404, "NotFound"),
    }
}

/// Whether uid and resource version of a replacement match the Lease.
fn preconditions_hold(body: &Value, lease: &Value) -> bool {
    let matches = |field| {
        let (new, old) = (&body["metadata"][field], &lease["metadata"][field]);
        new.is_null() || new == old
    };
    matches("uid") && matches("resourceVersion")
}

fn write_lease(state: &mut State, body: &Value, uid: Value) -> Value {
    state.writes = state.writes.wrapping_add(1);
    let mut lease = body.clone();
    lease["metadata"]["uid"] = uid;
    lease["metadata"]["resourceVersion"] = json!(state.writes.to_string());
    state.lease = Some(lease.clone());
    lease
}

fn failure(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {},
        "status": "Failure", "message": reason, "reason": reason, "code": code,
    });
    (code, status)
}
