//! The corridor against an API server that answers like the real one.

mod server;

use std::future::Future;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::*;
use crate::api::leadership::Leadership;
use crate::api::monotonic::MonotonicTime;
use crate::grants::render;
use server::Server;

const SYSTEM: &str = "quorate-system";
const GRANT: &str = "quorate-namespace";

fn steward(server: &Server, way: NamespaceAccess, told: &watch::Sender<Leadership>) -> Steward {
    Steward {
        client: server.client(),
        mandate: LeaderGuard::new(told.subscribe(), Clock::start()),
        namespace: SYSTEM.to_owned(),
        way,
        metrics: Metrics::new(Timestamp::UNIX_EPOCH),
    }
}

fn leading() -> watch::Sender<Leadership> {
    watch::Sender::new(Leadership::Leading { until: MonotonicTime::new(Duration::from_hours(1)) })
}

/// Runs a steward while `story` is told.
async fn during<T>(server: &Server, way: NamespaceAccess, story: impl Future<Output = T>) -> T {
    let told = leading();
    let steward = steward(server, way, &told);
    tokio::select! {
        () = steward.run() => panic!("the steward goes on until it is dropped"),
        end = story => end,
    }
}

/// Waits until something is so. Time is paused: it passes only while nobody has anything to do.
async fn until(what: &str, mut so: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if so() {
            return;
        }
        time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to be: {what}");
}

/// Long enough for everything that is going to happen without waiting.
async fn a_while() {
    time::sleep(Duration::from_secs(3)).await;
}

fn binding(server: &Server, namespace: &str) -> Option<Value> {
    server.get("rolebindings", namespace, GRANT)
}

fn writes(calls: &[String]) -> Vec<&str> {
    calls.iter().map(String::as_str).filter(|call| !call.starts_with("GET")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_grant_comes_with_the_first_object_and_goes_with_the_last() {
    let server = Server::new();
    during(&server, NamespaceAccess::Auto, async {
        a_while().await;
        assert_eq!(server.calls(), Vec::<String>::new(), "an empty cluster needs nothing");
        server.put("etcdclusters", "team", "data", json!({}));
        until("granted", || binding(&server, "team").is_some()).await;
        let made = binding(&server, "team").unwrap();
        let wanted = serde_json::to_value(render::binding("team", SYSTEM)).unwrap();
        assert_eq!(
            (&made["roleRef"], &made["subjects"]),
            (&wanted["roleRef"], &wanted["subjects"])
        );
        server.put("exampleapps", "team", "app", json!({}));
        server.remove("etcdclusters", "team", "data");
        a_while().await;
        assert_eq!(server.calls(), ["POST rolebindings team "]);
        server.remove("exampleapps", "team", "app");
        until("taken back", || binding(&server, "team").is_none()).await;
        a_while().await;
        // A live look at every kind comes before the deletion, and nothing after it.
        let kinds = ["etcdclusters", "etcdmembers", "etcdbackups", "etcdrestores", "exampleapps"];
        let looks = kinds.map(|kind| format!("GET {kind} team "));
        let wanted: Vec<String> =
            looks.into_iter().chain([format!("DELETE rolebindings team {GRANT}")]).collect();
        assert_eq!(server.calls(), wanted);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_finds_everything_done_and_writes_nothing() {
    let server = Server::new();
    server.put("etcdbackups", "team", "one", json!({}));
    during(&server, NamespaceAccess::Auto, until("granted", || binding(&server, "team").is_some()))
        .await;
    server.calls();
    during(&server, NamespaceAccess::Auto, a_while()).await;
    assert_eq!(server.calls(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn our_binding_is_repaired_and_what_others_added_to_it_stays() {
    let server = Server::new();
    server.put("etcdclusters", "team", "data", json!({}));
    let mut ours = serde_json::to_value(render::binding("team", SYSTEM)).unwrap();
    ours["subjects"] = json!([{ "kind": "User", "name": "eve" }]);
    ours["metadata"]["annotations"] = json!({ "note": "kept" });
    server.put("rolebindings", "team", GRANT, ours);
    during(&server, NamespaceAccess::Auto, async {
        let repaired = || binding(&server, "team").unwrap()["subjects"][0]["name"] == "quorate";
        until("repaired", repaired).await;
        a_while().await;
    })
    .await;
    assert_eq!(server.calls(), [format!("PATCH rolebindings team {GRANT}")]);
    assert_eq!(binding(&server, "team").unwrap()["metadata"]["annotations"]["note"], "kept");
}

#[tokio::test(start_paused = true)]
async fn nobody_elses_binding_is_written_to() {
    let server = Server::new();
    server.put("etcdclusters", "team", "data", json!({}));
    let other = json!({ "roleRef": { "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role", "name": "quorate" } });
    let before = server.put("rolebindings", "team", GRANT, other.clone());
    server.put("rolebindings", "empty", GRANT, other);
    during(&server, NamespaceAccess::Auto, a_while()).await;
    assert_eq!(server.calls(), Vec::<String>::new());
    assert_eq!(binding(&server, "team"), Some(before));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_keeps_every_binding_and_hinders_no_grant() {
    let server = Server::new();
    server.refuse(("GET", "etcdrestores"), (404, "NotFound", ""));
    let ours = serde_json::to_value(render::binding("old", SYSTEM)).unwrap();
    server.put("rolebindings", "old", GRANT, ours);
    server.put("etcdclusters", "team", "data", json!({}));
    during(&server, NamespaceAccess::Auto, async {
        until("granted", || binding(&server, "team").is_some()).await;
        a_while().await;
        assert!(binding(&server, "old").is_some());
        server.relent();
        until("taken back", || binding(&server, "old").is_none()).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_lead_writes_nothing() {
    let server = Server::new();
    server.put("etcdclusters", "team", "data", json!({}));
    let told = watch::Sender::new(Leadership::Following);
    let steward = steward(&server, NamespaceAccess::Auto, &told);
    tokio::select! {
        () = steward.run() => panic!("the steward goes on until it is dropped"),
        () = a_while() => {}
    }
    assert_eq!(writes(&server.calls()), Vec::<&str>::new());
}

#[tokio::test(start_paused = true)]
async fn objects_say_what_is_missing_until_it_is_granted() {
    let server = Server::new();
    server.put("etcdclusters", "team", "data", json!({ "metadata": { "generation": 1 } }));
    during(&server, NamespaceAccess::Manual, async {
        let status = || server.get("etcdclusters", "team", "data").unwrap()["status"].clone();
        until("said", || status()["conditions"][1]["reason"] == "NamespaceNotGranted").await;
        a_while().await;
        let said = ["GET etcdclusters team data", "PATCH etcdclusters team data/status"]
            .map(str::to_owned);
        assert_eq!(server.calls(), said, "said once, and no binding was made");
        let mut bound = serde_json::to_value(render::binding("team", SYSTEM)).unwrap();
        bound["metadata"]["labels"] = Value::Null;
        server.put("rolebindings", "team", GRANT, bound);
        until("taken back", || status() == json!({})).await;
        a_while().await;
        assert_eq!(server.calls(), said);
        server.remove("rolebindings", "team", GRANT);
        until("said again", || status()["conditions"].is_array()).await;
    })
    .await;
}

/// A corridor that has heard of one object, and not of what else is true.
fn run(server: &Server) -> Run {
    use crate::api::kinds;
    use crate::grants::seen::{News, Which, thing};
    use crate::grants::shelf::Change;
    let told = leading();
    let Steward { client, mandate, namespace, way, metrics } =
        steward(server, NamespaceAccess::Auto, &told);
    let mut world = World::default();
    for kind in kinds::ALL {
        world.take(News::Object(Which(kind), Change::Begun));
        world.take(News::Object(Which(kind), Change::Complete));
    }
    world.take(News::Binding(Change::Begun));
    world.take(News::Binding(Change::Complete));
    let object = server.put("etcdclusters", "team", "data", json!({}));
    let metadata = serde_json::from_value(object["metadata"].clone()).unwrap();
    let put = Change::Put(thing(&metadata));
    world.take(News::Object(Which(&kinds::ETCD_CLUSTER), put));
    Run {
        port: RbacClient::new(client, mandate),
        operator: namespace,
        way,
        metrics,
        clock: Clock::start(),
        world,
        memory: Memory::default(),
        said: Said::default(),
    }
}

#[tokio::test]
async fn a_binding_that_somebody_else_made_first_is_no_trouble() {
    let server = Server::new();
    let mut run = run(&server);
    let ours = serde_json::to_value(render::binding("team", SYSTEM)).unwrap();
    let there = server.put("rolebindings", "team", GRANT, ours);
    assert!(run.pass().await.is_some(), "a later pass looks again");
    assert_eq!(binding(&server, "team"), Some(there));
}

#[tokio::test]
async fn a_namespace_that_is_going_is_waited_for() {
    for refusal in [(403, "Forbidden", "NamespaceTerminating"), (404, "NotFound", "")] {
        let server = Server::new();
        let mut run = run(&server);
        server.refuse(("POST", "rolebindings"), refusal);
        let pause = run.pass().await.unwrap();
        assert!(pause <= Duration::from_secs(1), "{pause:?}");
        assert!(run.pass().await.is_some());
        assert_eq!(server.calls().len(), 1, "it rests meanwhile");
    }
}

#[tokio::test]
async fn a_binding_that_changed_after_the_decision_is_not_deleted() {
    use crate::grants::seen::{News, bond};
    use crate::grants::shelf::Change;
    let server = Server::new();
    let mut run = run(&server);
    let binding_of = |value: Value| serde_json::from_value(value).unwrap();
    let ours = serde_json::to_value(render::binding("empty", SYSTEM)).unwrap();
    let seen = server.put("rolebindings", "empty", GRANT, ours.clone());
    run.world.take(News::Binding(Change::Put(bond(&binding_of(seen), SYSTEM))));
    server.put("rolebindings", "empty", GRANT, ours);
    run.pass().await;
    let calls = server.calls();
    assert!(calls.contains(&format!("DELETE rolebindings empty {GRANT}")), "{calls:?}");
    assert!(binding(&server, "empty").is_some());
}

#[tokio::test]
async fn an_object_that_the_watch_has_not_told_keeps_the_binding() {
    use crate::grants::seen::{News, bond};
    use crate::grants::shelf::Change;
    let server = Server::new();
    let mut run = run(&server);
    let ours = serde_json::to_value(render::binding("late", SYSTEM)).unwrap();
    let seen = server.put("rolebindings", "late", GRANT, ours);
    let seen = serde_json::from_value(seen).unwrap();
    run.world.take(News::Binding(Change::Put(bond(&seen, SYSTEM))));
    server.put("exampleapps", "late", "app", json!({}));
    run.pass().await;
    assert!(!server.calls().iter().any(|call| call.starts_with("DELETE")));
}
