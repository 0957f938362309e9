//! An API server in memory: objects by path, resourceVersions, server-side apply of bundles,
//! watches and forbidden paths.

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

pub(super) const NAMESPACE: &str = "space";
pub(super) const SECRET: &str = "/api/v1/namespaces/space/secrets/quorate-webhook-ca";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CONFIGURATIONS: [&str; 2] = [
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
];

/// Every CRD with a conversion webhook, by path. Built once, because serialization is slow.
static CONVERTED_CRDS: LazyLock<Vec<(String, Value)>> = LazyLock::new(|| {
    let converted = crd::all().into_iter().filter(|crd| crd.spec.conversion.is_some());
    let values = converted.map(|crd| {
        let mut value = serde_json::to_value(&crd).unwrap();
        let config = &mut value["spec"]["conversion"]["webhook"]["clientConfig"];
        config["service"]["namespace"] = json!(NAMESPACE);
        (format!("{CRDS}/{}", crd.metadata.name.unwrap()), value)
    });
    values.collect()
});

/// The content of the server.
pub(super) struct Store {
    pub(super) objects: BTreeMap<String, Value>,
    version: u64,
    /// Every write: method and path.
    pub(super) writes: Vec<(String, String)>,
    /// Paths that return 403.
    pub(super) forbidden: BTreeSet<String>,
    changes: broadcast::Sender<(String, Value)>,
}

#[derive(Clone)]
pub(super) struct ApiServer(Arc<Mutex<Store>>);

impl ApiServer {
    /// A freshly installed cluster.
    pub(super) fn new() -> Self {
        let (changes, _) = broadcast::channel(1000);
        let server = Self(Arc::new(Mutex::new(Store {
            objects: BTreeMap::new(),
            version: 0,
            writes: Vec::new(),
            forbidden: BTreeSet::new(),
            changes,
        })));
        for (path, value) in CONVERTED_CRDS.iter() {
            server.store().put(path, value.clone());
        }
        for path in CONFIGURATIONS {
            let service = json!({ "namespace": NAMESPACE, "name": names::WEBHOOK_SERVICE });
            let webhook =
                |name: &str| json!({ "name": name, "clientConfig": { "service": service } });
            let value = json!({
                "metadata": { "name": "quorate" }, "webhooks": [webhook("a"), webhook("b")],
            });
            server.store().put(&format!("{path}/quorate"), value);
        }
        server
    }

    pub(super) fn store(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap()
    }

    pub(super) fn client(&self) -> Client {
        Client::new(Router::new().fallback(respond).with_state(self.clone()), NAMESPACE)
    }

    /// The bundle of each webhook of each target.
    pub(super) fn bundles(&self) -> Vec<Vec<u8>> {
        let store = self.store();
        let mut found = Vec::new();
        for value in store.objects.values() {
            let conversion = &value["spec"]["conversion"]["webhook"];
            let webhooks = value["webhooks"].as_array().cloned().unwrap_or_default();
            for webhook in std::iter::once(conversion.clone()).chain(webhooks) {
                if webhook["clientConfig"].is_object() {
                    let bundle = webhook["clientConfig"]["caBundle"].as_str().unwrap_or_default();
                    found.push(STANDARD.decode(bundle).unwrap());
                }
            }
        }
        found
    }

    /// Number of writes to targets.
    pub(super) fn injections(&self) -> usize {
        self.store().writes.iter().filter(|(method, _)| method == "PATCH").count()
    }
}

impl Store {
    /// Stores an object with a new resourceVersion.
    pub(super) fn put(&mut self, path: &str, mut value: Value) -> Value {
        self.version += 1;
        let metadata = &mut value["metadata"];
        metadata["resourceVersion"] = json!(self.version.to_string());
        metadata["generation"] = json!(self.version);
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!("uid-{}", self.version));
        }
        self.objects.insert(path.to_owned(), value.clone());
        self.notify("MODIFIED", path, &value);
        value
    }

    pub(super) fn delete(&mut self, path: &str) {
        if let Some(value) = self.objects.remove(path) {
            self.notify("DELETED", path, &value);
        }
    }

    fn notify(&self, event_type: &str, path: &str, value: &Value) {
        let event = json!({ "type": event_type, "object": partial(value) });
        // An error only means that there is no watch.
        self.changes.send((path.to_owned(), event)).unwrap_or_default();
    }

    /// Whether a write carries uid and resourceVersion of the stored object.
    fn matches(&self, path: &str, new: &Value) -> bool {
        let Some(old) = self.objects.get(path) else { return false };
        ["uid", "resourceVersion"]
            .iter()
            .all(|field| new["metadata"][field] == old["metadata"][field])
    }
}

fn partial(value: &Value) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": value["metadata"],
    })
}

async fn respond(State(server): State<ApiServer>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let name = path.rsplit('/').next().unwrap().to_owned();
    if server.store().forbidden.contains(&path) {
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
            Some(value) => json_response(value),
            None => status(StatusCode::NOT_FOUND, &name),
        },
        Method::POST => {
            let path = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap());
            store.writes.push(("POST".to_owned(), path.clone()));
            if store.objects.contains_key(&path) {
                return status(StatusCode::CONFLICT, &name);
            }
            json_response(&store.put(&path, body))
        }
        Method::PUT if store.matches(&path, &body) => {
            store.writes.push(("PUT".to_owned(), path.clone()));
            json_response(&store.put(&path, body))
        }
        Method::PATCH if store.matches(&path, &body) => {
            assert!(query.contains("fieldManager=quorate-ca") && query.contains("force=true"));
            store.writes.push(("PATCH".to_owned(), path.clone()));
            let value = apply_bundle(store.objects[&path].clone(), &body);
            json_response(&store.put(&path, value))
        }
        _ => status(StatusCode::CONFLICT, &name),
    }
}

/// Server-side apply, as far as a CA bundle needs it.
fn apply_bundle(mut value: Value, body: &Value) -> Value {
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

fn list(server: &ApiServer, path: &str, query: &str) -> Response {
    let store = server.store();
    let items: Vec<Value> = store
        .objects
        .iter()
        .filter(|(at, _)| at.starts_with(path) && query.contains(at.rsplit('/').next().unwrap()))
        .map(|(_, value)| partial(value))
        .collect();
    json_response(&json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
        "metadata": { "resourceVersion": store.version.to_string() }, "items": items,
    }))
}

fn watch(server: &ApiServer, path: &str, query: &str) -> Response {
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

fn json_response(value: &Value) -> Response {
    value.to_string().into_response()
}

fn status(code: StatusCode, name: &str) -> Response {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16(),
        "reason": "Test", "message": "returned by the test server", "details": { "name": name },
    });
    (code, body.to_string()).into_response()
}
