//! An API server that knows one Lease, for tests that need its answers and not its weight.
//! Comes in: HTTP/1.1 requests for that Lease. Goes out: what Kubernetes would answer: uids and
//! versions are checked, a uid is given, what is missing is 404. It can be told to stop answering,
//! to forbid, and to do a write and say that it does not know.

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
    mood: Mood,
    /// Each write that was asked for and when, whatever became of it.
    tried: Vec<(String, Instant)>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Mood {
    #[default]
    Well,
    /// Requests are taken and never answered.
    Silent,
    ForbidsAll,
    ForbidsWrites,
    /// The next write is done and answered with 504; then all is well again.
    WritesThen504,
}

/// The server; it ends with the test program.
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

    /// Who holds the Lease; an empty name if nobody does.
    pub(crate) fn holder(&self) -> Option<String> {
        let state = self.state();
        let holder = &state.lease.as_ref()?["spec"]["holderIdentity"];
        Some(holder.as_str().unwrap_or_default().to_owned())
    }

    pub(crate) fn delete_lease(&self) {
        self.state().lease = None;
    }

    /// Someone empties the holder's field by hand.
    pub(crate) fn empty_the_holder(&self) {
        let mut state = self.state();
        let mut lease = state.lease.clone().unwrap();
        lease["spec"]["holderIdentity"] = json!("");
        let uid = lease["metadata"]["uid"].clone();
        write_lease(&mut state, &lease, uid);
    }

    /// When each write of a kind, POST or PUT, was tried.
    pub(crate) fn tried(&self, method: &str) -> Vec<Instant> {
        let state = self.state();
        let tried = state.tried.iter().filter(|(of, _)| of == method);
        tried.map(|(_, at)| *at).collect()
    }

    pub(crate) fn be_well(&self) {
        self.state().mood = Mood::Well;
    }

    /// From now on requests are taken and never answered.
    pub(crate) fn fall_silent(&self) {
        self.state().mood = Mood::Silent;
    }

    pub(crate) fn forbid_all(&self) {
        self.state().mood = Mood::ForbidsAll;
    }

    pub(crate) fn forbid_writes(&self) {
        self.state().mood = Mood::ForbidsWrites;
    }

    /// The next write is done, and answered with 504.
    pub(crate) fn write_then_504(&self) {
        self.state().mood = Mood::WritesThen504;
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    let Some((method, path, body)) = request(&stream) else {
        return;
    };
    let writes = method != "GET";
    if writes {
        state.lock().unwrap().tried.push((method.clone(), Instant::now()));
    }
    let mood = state.lock().unwrap().mood;
    let (code, answer) = match mood {
        Mood::Silent => {
            // The connection stays open as long as the asker waits.
            stream.set_read_timeout(Some(Duration::from_mins(2))).unwrap();
            stream.read_exact(&mut [0]).ok();
            return;
        }
        Mood::ForbidsAll => failure(403, "Forbidden"),
        Mood::ForbidsWrites if writes => failure(403, "Forbidden"),
        Mood::WritesThen504 if writes => {
            let mut state = state.lock().unwrap();
            state.mood = Mood::Well;
            answer(&mut state, &method, &path, &body);
            failure(504, "Timeout")
        }
        Mood::Well | Mood::ForbidsWrites | Mood::WritesThen504 => {
            answer(&mut state.lock().unwrap(), &method, &path, &body)
        }
    };
    let text = answer.to_string();
    let head = "Content-Type: application/json\r\nConnection: close";
    let length = text.len();
    write!(stream, "HTTP/1.1 {code} it\r\n{head}\r\nContent-Length: {length}\r\n\r\n{text}").ok();
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
            let mut words = line.split(' ');
            let (method, path) = (words.next()?, words.next()?);
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

fn answer(state: &mut State, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let fresh = json!(format!("uid-{}", state.writes));
    match (method, path, state.lease.clone()) {
        ("GET", LEASE, Some(lease)) => (200, lease),
        ("POST", LEASES, None) => (201, write_lease(state, body, fresh)),
        // As in Kubernetes: what does not exist is made, unless the request says which one it means.
        ("PUT", LEASE, None) if body["metadata"]["uid"].is_null() => {
            (201, write_lease(state, body, fresh))
        }
        ("PUT", LEASE, Some(lease)) if names(body, &lease) => {
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

/// Whether a replacement names exactly the Lease that is there.
fn names(body: &Value, lease: &Value) -> bool {
    let fits = |field| {
        let (new, old) = (&body["metadata"][field], &lease["metadata"][field]);
        new.is_null() || new == old
    };
    fits("uid") && fits("resourceVersion")
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
