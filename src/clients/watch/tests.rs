//! A failing watch against a scripted API server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use axum::Router;
use axum::http::{StatusCode, Uri};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use tokio::time::Instant;

use super::*;

/// Responds to lists with a configurable code, and to watches with 410.
#[derive(Clone, Default)]
struct Server {
    code: Arc<AtomicU16>,
    lists: Arc<AtomicUsize>,
}

impl Server {
    fn relisting_watch(&self) -> BoxStream<'static, Result<Event<ConfigMap>, WatchError>> {
        let server = self.clone();
        let respond = async move |uri: Uri| {
            if uri.query().unwrap_or_default().contains("watch=true") {
                return failure(410);
            }
            server.lists.fetch_add(1, Ordering::SeqCst);
            match server.code.load(Ordering::SeqCst) {
                0 => std::future::pending().await,
                200 => (StatusCode::OK, list()),
                code => failure(code),
            }
        };
        let client = Client::new(Router::new().fallback(respond), "default");
        relisting_watch(Api::all(client), Config::default())
    }
}

fn list() -> String {
    let item = r#"{"metadata":{"name":"one","namespace":"here","resourceVersion":"1"}}"#;
    format!(r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{item}]}}"#)
}

fn failure(code: u16) -> (StatusCode, String) {
    let text = format!(
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"","code":{code}}}"#
    );
    (StatusCode::from_u16(code).unwrap(), text)
}

#[tokio::test(start_paused = true)]
async fn failed_watch_restarts_with_a_complete_list() {
    let server = Server::default();
    server.code.store(200, Ordering::SeqCst);
    let mut events = server.relisting_watch();
    for _ in 0..3 {
        assert!(matches!(events.next().await, Some(Ok(Event::Init))));
        assert!(matches!(events.next().await, Some(Ok(Event::InitApply(_)))));
        assert!(matches!(events.next().await, Some(Ok(Event::InitDone))));
        let error = events.next().await.unwrap().unwrap_err();
        assert_eq!(error.class(), WatchErrorClass::Expired);
    }
}

#[tokio::test(start_paused = true)]
async fn failing_list_is_retried_with_growing_backoff() {
    let server = Server::default();
    for (code, class) in [
        (403, WatchErrorClass::Rejected),
        (404, WatchErrorClass::NotFound),
        (500, WatchErrorClass::ServerError),
    ] {
        server.code.store(code, Ordering::SeqCst);
        let lists = server.lists.load(Ordering::SeqCst);
        let mut events = server.relisting_watch();
        let start = Instant::now();
        while start.elapsed() < Duration::from_mins(10) {
            if let Some(Err(error)) = events.next().await {
                assert_eq!(error.class(), class);
            }
        }
        let lists = server.lists.load(Ordering::SeqCst).checked_sub(lists).unwrap();
        assert!((8..40).contains(&lists), "{lists} lists in ten minutes");
    }
}

#[tokio::test(start_paused = true)]
async fn list_without_response_times_out() {
    let mut events = Server::default().relisting_watch();
    assert!(matches!(events.next().await, Some(Ok(Event::Init))));
    assert!(matches!(events.next().await, Some(Err(WatchError::TimedOut))));
}
