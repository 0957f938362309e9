//! Honest clients. Whatever goes on around them, each must get the answer that it got when all was
//! quiet: one on a connection that it keeps, one that connects anew each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::port::{HONEST, Heard, Port, Result, post};

const PAUSE: Duration = Duration::from_millis(4);

/// What the honest clients have lived through.
#[derive(Debug, Default)]
pub(crate) struct Lived {
    pub(crate) answers: usize,
    pub(crate) failures: Vec<String>,
    pub(crate) times: Vec<Duration>,
}

impl Lived {
    pub(crate) fn add(&mut self, other: Self) {
        self.answers += other.answers;
        self.failures.extend(other.failures);
        self.times.extend(other.times);
        self.times.sort();
    }

    /// The time within which that part of a thousand was answered.
    pub(crate) fn within(&self, permille: usize) -> Duration {
        let last = self.times.len().saturating_sub(1);
        self.times.get(last * permille / 1000).copied().unwrap_or_default()
    }
}

/// The reviews that the honest clients send, as whole requests.
pub(crate) fn requests() -> Vec<Vec<u8>> {
    let object = |version: &str| {
        json!({
            "apiVersion": format!("etcd.appdelivery.cncf.io/{version}"), "kind": "EtcdCluster",
            "metadata": {"name": "honest", "namespace": "default", "uid": "1"},
            "spec": {"replicas": 3, "version": "3.6.10"},
        })
    };
    let what = |version: &str| json!({"group": "etcd.appdelivery.cncf.io", "version": version, "kind": "EtcdCluster"});
    let plural = |version: &str| json!({"group": "etcd.appdelivery.cncf.io", "version": version, "resource": "etcdclusters"});
    let admission = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "honest-admission", "operation": "CREATE", "name": "honest",
            "namespace": "default", "kind": what("v1"), "requestKind": what("v1"),
            "resource": plural("v1"), "requestResource": plural("v1"),
            "userInfo": {"username": "somebody"}, "object": object("v1"), "oldObject": null,
            "dryRun": false, "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    });
    let conversion = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {
            "uid": "honest-conversion", "desiredAPIVersion": "etcd.appdelivery.cncf.io/v1",
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

/// The answers on a quiet port.
pub(crate) async fn quiet(port: &Port, requests: &[Vec<u8>]) -> Vec<Heard> {
    let mut client = port.connect(HONEST).await.unwrap();
    let mut answers = Vec::new();
    for request in requests {
        match client.ask(request).await {
            Result::Heard(heard) => answers.push(heard),
            got @ (Result::HungUp | Result::Silence) => {
                panic!("a quiet port has no answer: {got:?}")
            }
        }
    }
    answers
}

/// Asks until `over`, always on the same connection or always on a new one.
pub(crate) async fn ask(
    port: Arc<Port>,
    requests: Arc<Vec<Vec<u8>>>,
    expected: Arc<Vec<Heard>>,
    keeps: bool,
    over: Arc<AtomicBool>,
) -> Lived {
    let mut lived = Lived::default();
    let mut kept = None;
    while !over.load(Ordering::Acquire) {
        let at = lived.answers % requests.len();
        let began = Instant::now();
        let mut client = match kept.take() {
            Some(client) => client,
            None => match port.connect(HONEST).await {
                Ok(client) => client,
                Err(error) => {
                    lived.failures.push(format!("no connection: {error}"));
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
        };
        match client.ask(&requests[at]).await {
            Result::Heard(heard) if heard == expected[at] => {
                lived.answers += 1;
                lived.times.push(began.elapsed());
                kept = keeps.then_some(client);
            }
            got @ (Result::Heard(_) | Result::HungUp | Result::Silence) => {
                let after = began.elapsed();
                lived.failures.push(format!("request {at} after {after:?}: {got:?}"));
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    lived
}
