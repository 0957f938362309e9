//! Legitimate clients, which must get the same responses as without hostile clients: one with a
//! persistent connection, one with a new connection for each request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::server_process::{LEGITIMATE, Outcome, Response, ServerProcess, post};

const REQUEST_INTERVAL: Duration = Duration::from_millis(4);

/// Observations of the legitimate clients.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) responses: usize,
    pub(crate) failures: Vec<String>,
    pub(crate) times: Vec<Duration>,
}

impl Observed {
    pub(crate) fn add(&mut self, other: Self) {
        self.responses += other.responses;
        self.failures.extend(other.failures);
        self.times.extend(other.times);
        self.times.sort();
    }

    /// The response time at this permille.
    pub(crate) fn percentile(&self, permille: usize) -> Duration {
        let last = self.times.len().saturating_sub(1);
        self.times.get(last * permille / 1000).copied().unwrap_or_default()
    }
}

/// The reviews of the legitimate clients, as complete requests.
pub(crate) fn requests() -> Vec<Vec<u8>> {
    let object = |version: &str| {
        json!({
            "apiVersion": format!("etcd.appdelivery.cncf.io/{version}"), "kind": "EtcdCluster",
            "metadata": {"name": "legitimate", "namespace": "default", "uid": "1"},
            "spec": {"replicas": 3, "version": "3.6.10"},
        })
    };
    let kind = |version: &str| json!({"group": "etcd.appdelivery.cncf.io", "version": version, "kind": "EtcdCluster"});
    let plural = |version: &str| json!({"group": "etcd.appdelivery.cncf.io", "version": version, "resource": "etcdclusters"});
    let admission = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "legitimate-admission", "operation": "CREATE", "name": "legitimate",
            "namespace": "default", "kind": kind("v1"), "requestKind": kind("v1"),
            "resource": plural("v1"), "requestResource": plural("v1"),
            "userInfo": {"username": "user"}, "object": object("v1"), "oldObject": null,
            "dryRun": false, "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    });
    let conversion = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {
            "uid": "legitimate-conversion", "desiredAPIVersion": "etcd.appdelivery.cncf.io/v1",
            "objects": [object("v1"), object("v1")],
        },
    });
    let (admission, conversion) = (admission.to_string(), conversion.to_string());
    vec![
        post("/mutate?timeout=10s", admission.as_bytes()),
        post("/validate?timeout=10s", admission.as_bytes()),
        post("/convert?timeout=30s", conversion.as_bytes()),
    ]
}

/// The responses without hostile clients.
pub(crate) async fn baseline(server: &ServerProcess, requests: &[Vec<u8>]) -> Vec<Response> {
    let mut client = server.connect(LEGITIMATE).await.unwrap();
    let mut responses = Vec::new();
    for request in requests {
        match client.send(request).await {
            Outcome::Response(response) => responses.push(response),
            outcome @ (Outcome::Closed | Outcome::NoResponse) => {
                panic!("no response without hostile clients: {outcome:?}")
            }
        }
    }
    responses
}

/// Sends requests until `done`, on one connection or on a new one each.
pub(crate) async fn send_until_done(
    server: Arc<ServerProcess>,
    requests: Arc<Vec<Vec<u8>>>,
    expected: Arc<Vec<Response>>,
    keep_alive: bool,
    done: Arc<AtomicBool>,
) -> Observed {
    let mut observed = Observed::default();
    let mut connection = None;
    while !done.load(Ordering::Acquire) {
        let at = observed.responses % requests.len();
        let start = Instant::now();
        let mut client = match connection.take() {
            Some(client) => client,
            None => match server.connect(LEGITIMATE).await {
                Ok(client) => client,
                Err(error) => {
                    observed.failures.push(format!("no connection: {error}"));
                    tokio::time::sleep(REQUEST_INTERVAL).await;
                    continue;
                }
            },
        };
        match client.send(&requests[at]).await {
            Outcome::Response(response) if response == expected[at] => {
                observed.responses += 1;
                observed.times.push(start.elapsed());
                connection = keep_alive.then_some(client);
            }
            outcome @ (Outcome::Response(_) | Outcome::Closed | Outcome::NoResponse) => {
                let elapsed = start.elapsed();
                observed.failures.push(format!("request {at} after {elapsed:?}: {outcome:?}"));
            }
        }
        tokio::time::sleep(REQUEST_INTERVAL).await;
    }
    observed
}
