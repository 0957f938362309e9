//! The probe server: `/livez`, `/readyz` and `/metrics` over plain HTTP/1.1.
//!
//! Headers, connections and durations are bounded, and no single peer can use all connections: a
//! kubelet that gets none would restart a healthy process.

mod connections;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time;

use connections::PeerConnections;

use super::{Gates, Metrics};
use crate::api::names;

/// A kubelet and a few scrapers need a handful. Further connections wait.
const MAX_CONNECTIONS: usize = 64;
/// Further connections of the same address are closed without a response.
const MAX_CONNECTIONS_PER_PEER: usize = 8;
/// Also closes idle connections.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Bounds clients that read the response slowly.
const CONNECTION_TIMEOUT: Duration = Duration::from_mins(1);
/// How long responses in progress may take after shutdown starts.
pub(crate) const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
const MAX_HEADER_BYTES: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// `accept` most likely fails for lack of file descriptors: an immediate retry would fail again.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The state that the handlers report.
#[derive(Clone)]
pub(crate) struct Probes {
    /// Reported by `/readyz`.
    pub(crate) gates: Gates,
    /// Reported by `/metrics`.
    pub(crate) metrics: Metrics,
}

/// Serves until `stop` completes, then finishes the responses in progress.
pub(crate) async fn serve(listener: TcpListener, probes: Probes, stop: impl Future<Output = ()>) {
    let router = router(probes);
    let open = GracefulShutdown::new();
    let connection_slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let peers = PeerConnections::new(MAX_CONNECTIONS_PER_PEER);
    let mut stop = std::pin::pin!(stop);
    loop {
        let permit = tokio::select! {
            () = &mut stop => break,
            permit = Arc::clone(&connection_slots).acquire_owned() => permit,
        };
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Some(slot) = peers.take(peer.ip()) else {
                    continue;
                };
                let connection = open.watch(connection(stream, router.clone()));
                tokio::spawn(async move {
                    // Either side may close the connection at any time: errors are not reported.
                    time::timeout(CONNECTION_TIMEOUT, connection).await.ok();
                    drop((slot, permit));
                });
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection on the probe port");
                time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
    drop(listener);
    open.shutdown().await;
}

fn connection(
    stream: TcpStream,
    router: Router,
) -> http1::Connection<TokioIo<TcpStream>, TowerToHyperService<Router>> {
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
}

fn router(probes: Probes) -> Router {
    Router::new()
        .route(names::LIVE_PATH, get(live))
        .route(names::READY_PATH, get(ready))
        .route(names::METRICS_PATH, get(metrics))
        .fallback(not_found)
        .with_state(probes)
}

/// A response proves that the event loop runs. Nothing else is checked: a restart fixes neither the
/// API server nor the Lease.
async fn live() -> &'static str {
    "ok\n"
}

async fn ready(State(probes): State<Probes>) -> Response {
    let state = probes.gates.state();
    let code = if state.ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, state.to_string()).into_response()
}

async fn metrics(State(probes): State<Probes>) -> Response {
    match probes.metrics.encode() {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to encode the metrics");
            (StatusCode::INTERNAL_SERVER_ERROR, "failed to encode the metrics\n").into_response()
        }
    }
}

async fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "not found; available paths: /livez, /readyz, /metrics\n")
        .into_response()
}

#[cfg(test)]
mod tests;
