//! An API server that knows our kinds and bindings, for tests that need its answers.
//! Comes in: requests of a kube client, without a network. Goes out: what Kubernetes would answer:
//! lists, watches, conflicts, preconditions, field managers. It can be told to refuse.
//! May touch: nothing outside.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Method, Response, Uri};
use futures::stream;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::watch;

/// A plural, a namespace and a name.
type Key = (String, String, String);

#[derive(Default)]
struct State {
    version: u64,
    objects: BTreeMap<Key, Value>,
    events: Vec<(String, Value)>,
    /// Every call that is no watch and no list of everything.
    calls: Vec<String>,
    /// What is refused: by method and plural, with code, reason and cause.
    refused: BTreeMap<(String, String), (u16, &'static str, &'static str)>,
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
        let answer = async move |method: Method, uri: Uri, body: Bytes| {
            server.answer(&method, &uri, &serde_json::from_slice(&body).unwrap_or_default())
        };
        Client::new(Router::new().fallback(answer), "default")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Someone makes or replaces an object.
    pub(super) fn put(&self, plural: &str, namespace: &str, name: &str, object: Value) -> Value {
        let object = self.state().put(plural, namespace, name, object);
        self.tell();
        object
    }

    /// Someone deletes an object.
    pub(super) fn remove(&self, plural: &str, namespace: &str, name: &str) {
        self.state().remove(&(plural.to_owned(), namespace.to_owned(), name.to_owned()));
        self.tell();
    }

    pub(super) fn get(&self, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let key = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        self.state().objects.get(&key).cloned()
    }

    pub(super) fn refuse(
        &self,
        (method, plural): (&str, &str),
        answer: (u16, &'static str, &'static str),
    ) {
        self.state().refused.insert((method.to_owned(), plural.to_owned()), answer);
    }

    pub(super) fn relent(&self) {
        self.state().refused.clear();
    }

    /// The calls since this was last asked.
    pub(super) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state().calls)
    }

    fn tell(&self) {
        let count = self.state().events.len();
        self.events.send_replace(count);
    }

    fn answer(&self, method: &Method, uri: &Uri, body: &Value) -> Response<Body> {
        let query = uri.query().unwrap_or_default();
        let path = Path::read(uri.path());
        let key = (method.to_string(), path.plural.clone());
        let whole = path.namespace.is_none();
        if query.contains("watch=true") {
            return self.watch(&path.plural, query);
        }
        let mut state = self.state();
        if !whole {
            let Path { plural, namespace, name, sub } = &path;
            let (namespace, name) = (namespace.as_deref().unwrap(), name.as_deref().unwrap_or(""));
            state.calls.push(format!("{method} {plural} {namespace} {name}{sub}"));
        }
        let (code, answer) = match state.refused.get(&key) {
            Some((code, reason, cause)) => failure(*code, reason, cause),
            None if whole && path.plural == "rolebindings" && !query.contains("fieldSelector") => {
                failure(403, "Forbidden", "")
            }
            None => state.answer(method, &path, body, query),
        };
        drop(state);
        self.tell();
        Response::builder().status(code).body(Body::from(answer.to_string())).unwrap()
    }

    /// Everything after the version in the query, without end.
    fn watch(&self, plural: &str, query: &str) -> Response<Body> {
        let since = query.split('&').find_map(|it| it.strip_prefix("resourceVersion=")).unwrap();
        let since: u64 = since.parse().unwrap();
        let (server, plural) = (self.clone(), plural.to_owned());
        let begun = (server, plural, 0, self.events.subscribe());
        let lines = stream::unfold(begun, move |(server, plural, mut at, mut events)| async move {
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

    fn answer(&mut self, method: &Method, path: &Path, body: &Value, query: &str) -> (u16, Value) {
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
            ("DELETE", Some(old)) if is_meant(&body["preconditions"], &old) => {
                self.remove(&key);
                (200, json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" }))
            }
            ("PATCH", Some(old)) if is_meant(&body["metadata"], &old) => {
                let new =
                    if sub.is_empty() { merged(old, body) } else { applied(old, body, query) };
                (200, self.put(plural, &namespace, &name, new))
            }
            (_, Some(_)) => failure(409, "Conflict", ""),
        }
    }

    fn list(&self, plural: &str, namespace: Option<&str>) -> Value {
        let here = |key: &Key| key.0 == plural && namespace.is_none_or(|it| it == key.1);
        let items = self.objects.iter().filter(|(key, _)| here(key)).map(|(_, object)| object);
        json!({
            "apiVersion": "v1", "kind": "List",
            "metadata": { "resourceVersion": self.version.to_string() },
            "items": items.collect::<Vec<_>>(),
        })
    }
}

/// Whether a write names exactly the object that is there.
fn is_meant(named: &Value, old: &Value) -> bool {
    let fits = |field| named[field].is_null() || named[field] == old["metadata"][field];
    fits("uid") && fits("resourceVersion")
}

fn merged(mut old: Value, body: &Value) -> Value {
    old["subjects"] = body["subjects"].clone();
    old
}

/// Server-side apply, as far as one manager of conditions goes.
fn applied(mut old: Value, body: &Value, query: &str) -> Value {
    assert!(query.contains("fieldManager=quorate-grants") && query.contains("force=true"));
    let conditions = body["status"]["conditions"].clone();
    let manager = json!([{ "manager": "quorate-grants", "operation": "Apply" }]);
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
