//! The controller against an API server that responds like the real one.

mod server;

use std::future::Future;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::*;
use crate::api::leadership::Leadership;
use crate::api::monotonic::MonotonicTime;
use crate::namespace_access::render;
use server::Server;

const SYSTEM: &str = "quorate-system";
const BINDING: &str = "quorate-namespace";

fn controller(
    server: &Server,
    mode: NamespaceAccess,
    leadership: &watch::Sender<Leadership>,
) -> NamespaceAccessController {
    NamespaceAccessController {
        client: server.client(),
        leader_guard: LeaderGuard::new(leadership.subscribe(), Clock::start()),
        namespace: SYSTEM.to_owned(),
        mode,
        metrics: Metrics::new(Timestamp::UNIX_EPOCH),
    }
}

fn leading() -> watch::Sender<Leadership> {
    watch::Sender::new(Leadership::Leading { until: MonotonicTime::new(Duration::from_hours(1)) })
}

/// Runs a controller until `scenario` completes.
async fn during<T>(server: &Server, mode: NamespaceAccess, scenario: impl Future<Output = T>) -> T {
    let leadership = leading();
    let controller = controller(server, mode, &leadership);
    tokio::select! {
        () = controller.run() => panic!("the controller exited"),
        end = scenario => end,
    }
}

/// Waits for a condition. Time is paused: it advances only while all tasks are idle.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        time::sleep(Duration::from_millis(10)).await;
    }
    panic!("timed out waiting: {what}");
}

/// Long enough for everything that happens without a backoff.
async fn settle() {
    time::sleep(Duration::from_secs(3)).await;
}

fn binding(server: &Server, namespace: &str) -> Option<Value> {
    server.get("rolebindings", namespace, BINDING)
}

fn writes(calls: &[String]) -> Vec<&str> {
    calls.iter().map(String::as_str).filter(|call| !call.starts_with("GET")).collect()
}

#[tokio::test(start_paused = true)]
async fn binding_is_created_with_the_first_object_and_deleted_with_the_last() {
    let server = Server::new();
    during(&server, NamespaceAccess::Auto, async {
        settle().await;
        assert_eq!(server.calls(), Vec::<String>::new(), "an empty cluster needs nothing");
        server.put("etcdclusters", "team", "data", json!({}));
        until("binding created", || binding(&server, "team").is_some()).await;
        let created = binding(&server, "team").unwrap();
        let expected = serde_json::to_value(render::binding("team", SYSTEM)).unwrap();
        assert_eq!(
            (&created["roleRef"], &created["subjects"]),
            (&expected["roleRef"], &expected["subjects"])
        );
        server.put("exampleapps", "team", "app", json!({}));
        server.remove("etcdclusters", "team", "data");
        settle().await;
        assert_eq!(server.calls(), ["POST rolebindings team "]);
        server.remove("exampleapps", "team", "app");
        until("binding deleted", || binding(&server, "team").is_none()).await;
        settle().await;
        // A live list of every kind precedes the deletion, and nothing follows it.
        let kinds = ["etcdclusters", "etcdmembers", "etcdbackups", "etcdrestores", "exampleapps"];
        let lists = kinds.map(|kind| format!("GET {kind} team "));
        let expected: Vec<String> =
            lists.into_iter().chain([format!("DELETE rolebindings team {BINDING}")]).collect();
        assert_eq!(server.calls(), expected);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn new_leader_writes_nothing_if_all_bindings_exist() {
    let server = Server::new();
    server.put("etcdbackups", "team", "one", json!({}));
    during(
        &server,
        NamespaceAccess::Auto,
        until("binding created", || binding(&server, "team").is_some()),
    )
    .await;
    server.calls();
    during(&server, NamespaceAccess::Auto, settle()).await;
    assert_eq!(server.calls(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn managed_binding_is_repaired_and_keeps_foreign_annotations() {
    let server = Server::new();
    server.put("etcdclusters", "team", "data", json!({}));
    let mut managed = serde_json::to_value(render::binding("team", SYSTEM)).unwrap();
    managed["subjects"] = json!([{ "kind": "User", "name": "eve" }]);
    managed["metadata"]["annotations"] = json!({ "note": "kept" });
    server.put("rolebindings", "team", BINDING, managed);
    during(&server, NamespaceAccess::Auto, async {
        let repaired = || binding(&server, "team").unwrap()["subjects"][0]["name"] == "quorate";
        until("repaired", repaired).await;
        settle().await;
    })
    .await;
    assert_eq!(server.calls(), [format!("PATCH rolebindings team {BINDING}")]);
    assert_eq!(binding(&server, "team").unwrap()["metadata"]["annotations"]["note"], "kept");
}

#[tokio::test(start_paused = true)]
async fn unmanaged_binding_is_not_written() {
    let server = Server::new();
    server.put("etcdclusters", "team", "data", json!({}));
    let other = json!({ "roleRef": { "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role", "name": "quorate" } });
    let before = server.put("rolebindings", "team", BINDING, other.clone());
    server.put("rolebindings", "empty", BINDING, other);
    during(&server, NamespaceAccess::Auto, settle()).await;
    assert_eq!(server.calls(), Vec::<String>::new());
    assert_eq!(binding(&server, "team"), Some(before));
}

#[tokio::test(start_paused = true)]
async fn unserved_kind_prevents_deletion_but_not_creation_of_bindings() {
    let server = Server::new();
    server.reject(("GET", "etcdrestores"), (404, "NotFound", ""));
    let managed = serde_json::to_value(render::binding("old", SYSTEM)).unwrap();
    server.put("rolebindings", "old", BINDING, managed);
    server.put("etcdclusters", "team", "data", json!({}));
    during(&server, NamespaceAccess::Auto, async {
        until("binding created", || binding(&server, "team").is_some()).await;
        settle().await;
        assert!(binding(&server, "old").is_some());
        server.accept_all();
        until("binding deleted", || binding(&server, "old").is_none()).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn follower_writes_nothing() {
    let server = Server::new();
    server.put("etcdclusters", "team", "data", json!({}));
    let leadership = watch::Sender::new(Leadership::Following);
    let controller = controller(&server, NamespaceAccess::Auto, &leadership);
    tokio::select! {
        () = controller.run() => panic!("the controller exited"),
        () = settle() => {}
    }
    assert_eq!(writes(&server.calls()), Vec::<&str>::new());
}

#[tokio::test(start_paused = true)]
async fn objects_have_the_condition_until_access_is_granted() {
    let server = Server::new();
    server.put("etcdclusters", "team", "data", json!({ "metadata": { "generation": 1 } }));
    during(&server, NamespaceAccess::Manual, async {
        let status = || server.get("etcdclusters", "team", "data").unwrap()["status"].clone();
        until("condition set", || status()["conditions"][1]["reason"] == "NamespaceNotGranted")
            .await;
        settle().await;
        let update = ["GET etcdclusters team data", "PATCH etcdclusters team data/status"]
            .map(str::to_owned);
        assert_eq!(server.calls(), update, "updated once, and no binding was created");
        let mut bound = serde_json::to_value(render::binding("team", SYSTEM)).unwrap();
        bound["metadata"]["labels"] = Value::Null;
        server.put("rolebindings", "team", BINDING, bound);
        until("condition removed", || status() == json!({})).await;
        settle().await;
        assert_eq!(server.calls(), update);
        server.remove("rolebindings", "team", BINDING);
        until("condition set again", || status()["conditions"].is_array()).await;
    })
    .await;
}

/// A reconciler with complete lists that contain a single object.
fn reconciler(server: &Server) -> Reconciler {
    use crate::api::kinds;
    use crate::namespace_access::state::{KindRef, WatchEvent, object_entry};
    use crate::namespace_access::store::StoreEvent;
    let leadership = leading();
    let NamespaceAccessController { client, leader_guard, namespace, mode, metrics } =
        controller(server, NamespaceAccess::Auto, &leadership);
    let mut watches = WatchState::default();
    for kind in kinds::ALL {
        watches.apply(WatchEvent::Object(KindRef(kind), StoreEvent::ListStarted));
        watches.apply(WatchEvent::Object(KindRef(kind), StoreEvent::ListComplete));
    }
    watches.apply(WatchEvent::Binding(StoreEvent::ListStarted));
    watches.apply(WatchEvent::Binding(StoreEvent::ListComplete));
    let object = server.put("etcdclusters", "team", "data", json!({}));
    let metadata = serde_json::from_value(object["metadata"].clone()).unwrap();
    let applied = StoreEvent::Applied(object_entry(&metadata));
    watches.apply(WatchEvent::Object(KindRef(&kinds::ETCD_CLUSTER), applied));
    Reconciler {
        rbac: RbacClient::new(client, leader_guard),
        operator: namespace,
        mode,
        metrics,
        clock: Clock::start(),
        watches,
        backoff: Backoff::default(),
        reporter: Reporter::default(),
    }
}

#[tokio::test]
async fn binding_created_by_another_writer_first_is_kept() {
    let server = Server::new();
    let mut reconciler = reconciler(&server);
    let managed = serde_json::to_value(render::binding("team", SYSTEM)).unwrap();
    let existing = server.put("rolebindings", "team", BINDING, managed);
    assert!(reconciler.reconcile().await.is_some(), "a retry is scheduled");
    assert_eq!(binding(&server, "team"), Some(existing));
}

#[tokio::test]
async fn terminating_namespace_is_retried_with_backoff() {
    for rejection in [(403, "Forbidden", "NamespaceTerminating"), (404, "NotFound", "")] {
        let server = Server::new();
        let mut reconciler = reconciler(&server);
        server.reject(("POST", "rolebindings"), rejection);
        let delay = reconciler.reconcile().await.unwrap();
        assert!(delay <= Duration::from_secs(1), "{delay:?}");
        assert!(reconciler.reconcile().await.is_some());
        assert_eq!(server.calls().len(), 1, "the namespace backs off");
    }
}

#[tokio::test]
async fn binding_changed_after_the_decision_is_not_deleted() {
    use crate::namespace_access::state::{WatchEvent, binding_entry};
    use crate::namespace_access::store::StoreEvent;
    let server = Server::new();
    let mut reconciler = reconciler(&server);
    let parse = |value: Value| serde_json::from_value(value).unwrap();
    let managed = serde_json::to_value(render::binding("empty", SYSTEM)).unwrap();
    let observed = server.put("rolebindings", "empty", BINDING, managed.clone());
    reconciler
        .watches
        .apply(WatchEvent::Binding(StoreEvent::Applied(binding_entry(&parse(observed), SYSTEM))));
    server.put("rolebindings", "empty", BINDING, managed);
    reconciler.reconcile().await;
    let calls = server.calls();
    assert!(calls.contains(&format!("DELETE rolebindings empty {BINDING}")), "{calls:?}");
    assert!(binding(&server, "empty").is_some());
}

#[tokio::test]
async fn object_not_yet_delivered_by_the_watch_keeps_the_binding() {
    use crate::namespace_access::state::{WatchEvent, binding_entry};
    use crate::namespace_access::store::StoreEvent;
    let server = Server::new();
    let mut reconciler = reconciler(&server);
    let managed = serde_json::to_value(render::binding("late", SYSTEM)).unwrap();
    let observed = server.put("rolebindings", "late", BINDING, managed);
    let observed = serde_json::from_value(observed).unwrap();
    reconciler
        .watches
        .apply(WatchEvent::Binding(StoreEvent::Applied(binding_entry(&observed, SYSTEM))));
    server.put("exampleapps", "late", "app", json!({}));
    reconciler.reconcile().await;
    assert!(!server.calls().iter().any(|call| call.starts_with("DELETE")));
}
