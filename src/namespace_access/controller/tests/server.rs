//! A simulated API server for our kinds and bindings: lists, watches, conflicts, preconditions,
//! field managers and configurable rejections, without a network.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Method, Response, Uri};
use futures::stream;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::watch;

/// Plural, namespace and name.
type Key = (String, String, String);

#[derive(Default)]
struct State {
    version: u64,
    objects: BTreeMap<Key, Value>,
    events: Vec<(String, Value)>,
    /// Every request except watches and lists of all namespaces.
    calls: Vec<String>,
    /// Rejections by method and plural: code, reason and cause.
    rejections: BTreeMap<(String, String), (u16, &'static str, &'static str)>,
}

#[derive(Clone)]
pub(super) struct Server {
    state: Arc<Mutex<State>>,
    events: watch::Sender<usize>,
}

impl Server {
    pub(super) fn new() -> Self {
        Self { state: Arc::default(), events: watch::Sender::new(0) }
    }

    pub(super) fn client(&self) -> Client {
        let server = self.clone();
        let respond = async move |method: Method, uri: Uri, body: Bytes| {
            server.respond(&method, &uri, &serde_json::from_slice(&body).unwrap_or_default())
        };
        Client::new(Router::new().fallback(respond), "default")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Another client creates or replaces an object.
    pub(super) fn put(&self, plural: &str, namespace: &str, name: &str, object: Value) -> Value {
        let object = self.state().put(plural, namespace, name, object);
        self.notify();
        object
    }

    /// Another client deletes an object.
    pub(super) fn remove(&self, plural: &str, namespace: &str, name: &str) {
        self.state().remove(&(plural.to_owned(), namespace.to_owned(), name.to_owned()));
        self.notify();
    }

    pub(super) fn get(&self, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let key = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        self.state().objects.get(&key).cloned()
    }

    pub(super) fn reject(
        &self,
        (method, plural): (&str, &str),
        response: (u16, &'static str, &'static str),
    ) {
        self.state().rejections.insert((method.to_owned(), plural.to_owned()), response);
    }

    pub(super) fn accept_all(&self) {
        self.state().rejections.clear();
    }

    /// The requests since the last call.
    pub(super) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state().calls)
    }

    fn notify(&self) {
        let count = self.state().events.len();
        self.events.send_replace(count);
    }

    fn respond(&self, method: &Method, uri: &Uri, body: &Value) -> Response<Body> {
        let query = uri.query().unwrap_or_default();
        let path = Path::read(uri.path());
        let key = (method.to_string(), path.plural.clone());
        let all_namespaces = path.namespace.is_none();
        if query.contains("watch=true") {
            return self.watch(&path.plural, query);
        }
        let mut state = self.state();
        if !all_namespaces {
            let Path { plural, namespace, name, sub } = &path;
            let (namespace, name) = (namespace.as_deref().unwrap(), name.as_deref().unwrap_or(""));
            state.calls.push(format!("{method} {plural} {namespace} {name}{sub}"));
        }
        let (code, response) = match state.rejections.get(&key) {
            Some((code, reason, cause)) => failure(*code, reason, cause),
            None if all_namespaces
                && path.plural == "rolebindings"
                && !query.contains("fieldSelector") =>
            {
                failure(403, "Forbidden", "")
            }
            None => state.respond(method, &path, body, query),
        };
        drop(state);
        self.notify();
        Response::builder().status(code).body(Body::from(response.to_string())).unwrap()
    }

    /// An endless stream of the events after the version in the query.
    fn watch(&self, plural: &str, query: &str) -> Response<Body> {
        let since =
            query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion=")).unwrap();
        let since: u64 = since.parse().unwrap();
        let (server, plural) = (self.clone(), plural.to_owned());
        let start = (server, plural, 0, self.events.subscribe());
        let lines = stream::unfold(start, move |(server, plural, mut at, mut events)| async move {
            loop {
                let next = server.state().events.get(at).cloned();
                match next {
                    Some((of, event)) => {
                        at = at.saturating_add(1);
                        let version = event["object"]["metadata"]["resourceVersion"].as_str();
                        let version: u64 = version.unwrap().parse().unwrap();
                        if of == plural && version > since {
                            let line = format!("{event}\n");
                            let state = (server, plural, at, events);
                            return Some((Ok::<_, std::io::Error>(line), state));
                        }
                    }
                    None => events.changed().await.unwrap(),
                }
            }
        });
        Response::new(Body::from_stream(lines))
    }
}

impl State {
    fn put(&mut self, plural: &str, namespace: &str, name: &str, mut object: Value) -> Value {
        let key = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        self.version = self.version.saturating_add(1);
        let old = self.objects.get(&key);
        let fresh = json!(format!("uid-{}", self.version));
        let uid = old.map_or(fresh, |old| old["metadata"]["uid"].clone());
        let kind = if old.is_some() { "MODIFIED" } else { "ADDED" };
        object["metadata"]["uid"] = uid;
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["name"] = json!(name);
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.events.push((plural.to_owned(), json!({ "type": kind, "object": object })));
        self.objects.insert(key, object.clone());
        object
    }

    fn remove(&mut self, key: &Key) {
        self.version = self.version.saturating_add(1);
        let mut object = self.objects.remove(key).unwrap();
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.events.push((key.0.clone(), json!({ "type": "DELETED", "object": object })));
    }

    fn respond(&mut self, method: &Method, path: &Path, body: &Value, query: &str) -> (u16, Value) {
        let Path { plural, namespace, name, sub } = path;
        let Some(name) =
            name.clone().or_else(|| body["metadata"]["name"].as_str().map(str::to_owned))
        else {
            return (200, self.list(plural, namespace.as_deref()));
        };
        let namespace = namespace.clone().unwrap();
        let key = (plural.clone(), namespace.clone(), name.clone());
        let old = self.objects.get(&key).cloned();
        match (method.as_str(), old) {
            ("POST", Some(_)) => failure(409, "AlreadyExists", ""),
            ("POST", None) => (201, self.put(plural, &namespace, &name, body.clone())),
            (_, None) => failure(404, "NotFound", ""),
            ("GET", Some(old)) => (200, old),
            ("DELETE", Some(old)) if preconditions_hold(&body["preconditions"], &old) => {
                self.remove(&key);
                (200, json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" }))
            }
            ("PATCH", Some(old)) if preconditions_hold(&body["metadata"], &old) => {
                let new =
                    if sub.is_empty() { merged(old, body) } else { applied(old, body, query) };
                (200, self.put(plural, &namespace, &name, new))
            }
            (_, Some(_)) => failure(409, "Conflict", ""),
        }
    }

    fn list(&self, plural: &str, namespace: Option<&str>) -> Value {
        let matches =
            |key: &Key| key.0 == plural && namespace.is_none_or(|namespace| namespace == key.1);
        let items = self.objects.iter().filter(|(key, _)| matches(key)).map(|(_, object)| object);
        json!({
            "apiVersion": "v1", "kind": "List",
            "metadata": { "resourceVersion": self.version.to_string() },
            "items": items.collect::<Vec<_>>(),
        })
    }
}

/// Whether the preconditions of a write match the stored object.
fn preconditions_hold(preconditions: &Value, old: &Value) -> bool {
    let matches =
        |field| preconditions[field].is_null() || preconditions[field] == old["metadata"][field];
    matches("uid") && matches("resourceVersion")
}

fn merged(mut old: Value, body: &Value) -> Value {
    old["subjects"] = body["subjects"].clone();
    old
}

/// Server-side apply, reduced to one manager of conditions.
fn applied(mut old: Value, body: &Value, query: &str) -> Value {
    assert!(
        query.contains("fieldManager=quorate-namespace-access") && query.contains("force=true")
    );
    let conditions = body["status"]["conditions"].clone();
    let manager = json!([{ "manager": "quorate-namespace-access", "operation": "Apply" }]);
    let owns = !conditions.is_null();
    old["metadata"]["managedFields"] = if owns { manager } else { Value::Null };
    old["status"] = if owns { json!({ "conditions": conditions }) } else { json!({}) };
    old
}

fn failure(code: u16, reason: &str, cause: &str) -> (u16, Value) {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code,
        "details": { "causes": [{ "reason": cause, "message": cause }] },
    });
    (code, status)
}

/// The parts of a path.
struct Path {
    plural: String,
    namespace: Option<String>,
    name: Option<String>,
    sub: String,
}

impl Path {
    fn read(path: &str) -> Self {
        let parts: Vec<&str> = path.trim_matches('/').split('/').skip(3).collect();
        let owned = |text: &&str| (*text).to_owned();
        match parts.as_slice() {
            ["namespaces", namespace, plural, rest @ ..] => Self {
                plural: owned(plural),
                namespace: Some(owned(namespace)),
                name: rest.first().map(owned),
                sub: rest.get(1).map(|sub| format!("/{sub}")).unwrap_or_default(),
            },
            parts => {
                let plural = parts.first().map(owned).unwrap();
                Self { plural, namespace: None, name: None, sub: String::new() }
            }
        }
    }
}
