//! An API server that knows one Lease, for tests that need its answers and not its weight.
//! Comes in: HTTP/1.1 requests for that Lease. Goes out: what Kubernetes would answer: versions are
//! checked, a uid is given, what is missing is 404. It can also be told to stop answering.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

#[derive(Default)]
struct State {
    lease: Option<Value>,
    writes: u64,
    silent: bool,
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

    /// Who holds the Lease; an empty name if nobody does.
    pub(crate) fn holder(&self) -> Option<String> {
        let state = self.state.lock().unwrap();
        let lease = state.lease.as_ref()?;
        Some(
            lease["spec"]["holderIdentity"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    }

    pub(crate) fn delete_lease(&self) {
        self.state.lock().unwrap().lease = None;
    }

    /// From now on requests are taken and never answered.
    pub(crate) fn fall_silent(&self) {
        self.state.lock().unwrap().silent = true;
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    let Some((method, body)) = request(&stream) else {
        return;
    };
    if state.lock().unwrap().silent {
        // The connection stays open as long as the asker waits.
        stream
            .set_read_timeout(Some(Duration::from_mins(1)))
            .unwrap();
        stream.read_exact(&mut [0]).ok();
        return;
    }
    let (code, answer) = answer(&mut state.lock().unwrap(), &method, &body);
    let text = answer.to_string();
    let head = "Content-Type: application/json\r\nConnection: close";
    let length = text.len();
    write!(
        stream,
        "HTTP/1.1 {code} it\r\n{head}\r\nContent-Length: {length}\r\n\r\n{text}"
    )
    .ok();
}

fn request(stream: &TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(stream);
    let (mut method, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if method.is_none() {
            method = Some(line.split(' ').next()?.to_owned());
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
    Some((
        method?,
        serde_json::from_slice(&body).unwrap_or(Value::Null),
    ))
}

fn answer(state: &mut State, method: &str, body: &Value) -> (u16, Value) {
    let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
    match (method, state.lease.clone()) {
        ("GET", Some(lease)) => (200, lease),
        ("POST", None) => {
            let uid = json!(format!("uid-{}", state.writes));
            (201, write_lease(state, body, uid))
        }
        ("PUT", Some(lease)) if version(&lease) == version(body) => (
            200,
            write_lease(state, body, lease["metadata"]["uid"].clone()),
        ),
        ("POST" | "PUT", Some(_)) => (409, failure(409, "Conflict")),
        _ => (404, failure(404, "NotFound")),
    }
}

fn write_lease(state: &mut State, body: &Value, uid: Value) -> Value {
    state.writes = state.writes.wrapping_add(1);
    let mut lease = body.clone();
    lease["metadata"]["uid"] = uid;
    lease["metadata"]["resourceVersion"] = json!(state.writes.to_string());
    state.lease = Some(lease.clone());
    lease
}

fn failure(code: u16, reason: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {},
        "status": "Failure", "message": reason, "reason": reason, "code": code,
    })
}
