//! A small API server in memory: objects by path, versions, apply of bundles, watches, refusals.
//! Comes in: requests of a real client. Goes out: answers as Kubernetes words them.
//! May touch: nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::api::{crd, names};

pub(super) const SPACE: &str = "space";
pub(super) const SECRET: &str = "/api/v1/namespaces/space/secrets/quorate-webhook-ca";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CONFIGURATIONS: [&str; 2] = [
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
];

/// Every definition that converts, with its path. To write one down takes a while.
static DEFINED: LazyLock<Vec<(String, Value)>> = LazyLock::new(|| {
    let ours = crd::all().into_iter().filter(|it| it.spec.conversion.is_some());
    let written = ours.map(|definition| {
        let mut value = serde_json::to_value(&definition).unwrap();
        let config = &mut value["spec"]["conversion"]["webhook"]["clientConfig"];
        config["service"]["namespace"] = json!(SPACE);
        (format!("{DEFINITIONS}/{}", definition.metadata.name.unwrap()), value)
    });
    written.collect()
});

/// What the server has.
pub(super) struct Store {
    pub(super) objects: BTreeMap<String, Value>,
    version: u64,
    /// Every write, as method and path.
    pub(super) writes: Vec<(String, String)>,
    /// Paths that are refused.
    pub(super) refused: BTreeSet<String>,
    changes: broadcast::Sender<(String, Value)>,
}

#[derive(Clone)]
pub(super) struct Server(Arc<Mutex<Store>>);

impl Server {
    /// A cluster in which everything was installed a moment ago.
    pub(super) fn new() -> Self {
        let (changes, _) = broadcast::channel(1000);
        let server = Self(Arc::new(Mutex::new(Store {
            objects: BTreeMap::new(),
            version: 0,
            writes: Vec::new(),
            refused: BTreeSet::new(),
            changes,
        })));
        for (path, value) in DEFINED.iter() {
            server.store().put(path, value.clone());
        }
        for path in CONFIGURATIONS {
            let service = json!({ "namespace": SPACE, "name": names::WEBHOOK_SERVICE });
            let hook = |name: &str| json!({ "name": name, "clientConfig": { "service": service } });
            let value = json!({
                "metadata": { "name": "quorate" }, "webhooks": [hook("a"), hook("b")],
            });
            server.store().put(&format!("{path}/quorate"), value);
        }
        server
    }

    pub(super) fn store(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap()
    }

    pub(super) fn client(&self) -> Client {
        Client::new(Router::new().fallback(answer).with_state(self.clone()), SPACE)
    }

    /// The bundle of each webhook of each target.
    pub(super) fn bundles(&self) -> Vec<Vec<u8>> {
        let store = self.store();
        let mut found = Vec::new();
        for value in store.objects.values() {
            let conversion = &value["spec"]["conversion"]["webhook"];
            let hooks = value["webhooks"].as_array().cloned().unwrap_or_default();
            for hook in std::iter::once(conversion.clone()).chain(hooks) {
                if hook["clientConfig"].is_object() {
                    let bundle = hook["clientConfig"]["caBundle"].as_str().unwrap_or_default();
                    found.push(STANDARD.decode(bundle).unwrap());
                }
            }
        }
        found
    }

    /// How often targets were written.
    pub(super) fn injections(&self) -> usize {
        self.store().writes.iter().filter(|(method, _)| method == "PATCH").count()
    }
}

impl Store {
    /// Puts an object in its place, with a new version.
    pub(super) fn put(&mut self, path: &str, mut value: Value) -> Value {
        self.version += 1;
        let metadata = &mut value["metadata"];
        metadata["resourceVersion"] = json!(self.version.to_string());
        metadata["generation"] = json!(self.version);
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!("uid-{}", self.version));
        }
        self.objects.insert(path.to_owned(), value.clone());
        self.tell("MODIFIED", path, &value);
        value
    }

    pub(super) fn delete(&mut self, path: &str) {
        if let Some(value) = self.objects.remove(path) {
            self.tell("DELETED", path, &value);
        }
    }

    fn tell(&self, what: &str, path: &str, value: &Value) {
        let event = json!({ "type": what, "object": partial(value) });
        // Nobody may be listening.
        self.changes.send((path.to_owned(), event)).unwrap_or_default();
    }

    /// Whether a write names the object that is there.
    fn fits(&self, path: &str, new: &Value) -> bool {
        let Some(old) = self.objects.get(path) else { return false };
        ["uid", "resourceVersion"].iter().all(|it| new["metadata"][it] == old["metadata"][it])
    }
}

fn partial(value: &Value) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": value["metadata"],
    })
}

async fn answer(State(server): State<Server>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let name = path.rsplit('/').next().unwrap().to_owned();
    if server.store().refused.contains(&path) {
        return status(StatusCode::FORBIDDEN, &name);
    }
    if query.contains("watch=") {
        return watch(&server, &path, &query);
    }
    if query.contains("fieldSelector=") {
        return list(&server, &path, &query);
    }
    let mut store = server.store();
    match parts.method {
        Method::GET => match store.objects.get(&path) {
            Some(value) => json_answer(value),
            None => status(StatusCode::NOT_FOUND, &name),
        },
        Method::POST => {
            let path = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap());
            store.writes.push(("POST".to_owned(), path.clone()));
            if store.objects.contains_key(&path) {
                return status(StatusCode::CONFLICT, &name);
            }
            json_answer(&store.put(&path, body))
        }
        Method::PUT if store.fits(&path, &body) => {
            store.writes.push(("PUT".to_owned(), path.clone()));
            json_answer(&store.put(&path, body))
        }
        Method::PATCH if store.fits(&path, &body) => {
            assert!(query.contains("fieldManager=quorate-ca") && query.contains("force=true"));
            store.writes.push(("PATCH".to_owned(), path.clone()));
            let value = applied(store.objects[&path].clone(), &body);
            json_answer(&store.put(&path, value))
        }
        _ => status(StatusCode::CONFLICT, &name),
    }
}

/// As much of a server-side apply as a bundle needs.
fn applied(mut value: Value, body: &Value) -> Value {
    let conversion = &body["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"];
    if conversion.is_string() {
        value["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = conversion.clone();
    }
    for new in body["webhooks"].as_array().into_iter().flatten() {
        let old = value["webhooks"].as_array_mut().unwrap();
        let old = old.iter_mut().find(|old| old["name"] == new["name"]).unwrap();
        old["clientConfig"]["caBundle"] = new["clientConfig"]["caBundle"].clone();
    }
    value
}

fn list(server: &Server, path: &str, query: &str) -> Response {
    let store = server.store();
    let items: Vec<Value> = store
        .objects
        .iter()
        .filter(|(at, _)| at.starts_with(path) && query.contains(at.rsplit('/').next().unwrap()))
        .map(|(_, value)| partial(value))
        .collect();
    json_answer(&json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
        "metadata": { "resourceVersion": store.version.to_string() }, "items": items,
    }))
}

fn watch(server: &Server, path: &str, query: &str) -> Response {
    let changes = server.store().changes.subscribe();
    let (path, query) = (path.to_owned(), query.to_owned());
    let events = futures::stream::unfold(changes, move |mut changes| {
        let (path, query) = (path.clone(), query.clone());
        async move {
            loop {
                let (at, event) = changes.recv().await.ok()?;
                if at.starts_with(&path) && query.contains(at.rsplit('/').next().unwrap()) {
                    return Some((Ok::<_, Infallible>(format!("{event}\n")), changes));
                }
            }
        }
    });
    Body::from_stream(events).into_response()
}

fn json_answer(value: &Value) -> Response {
    value.to_string().into_response()
}

fn status(code: StatusCode, name: &str) -> Response {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16(),
        "reason": "Said", "message": "said so", "details": { "name": name },
    });
    (code, body.to_string()).into_response()
}
