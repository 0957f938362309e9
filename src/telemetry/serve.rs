//! The probe port: `/livez`, `/readyz` and `/metrics` over plain HTTP/1.1.
//! Comes in: requests of a kubelet or a scraper, and anything else that finds the port.
//! Goes out: short answers. May touch: gates, metrics and the socket it was given.
//! Headers, connections and time are bounded, and no single peer can take all connections: a
//! kubelet that finds no place would restart a process that is well.

mod seats;

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

use seats::Seats;

use super::{Gates, Metrics};
use crate::api::names;

/// A kubelet and a few scrapers need a handful. When all are taken, the next waits for one.
const CONNECTIONS: usize = 64;
/// What one address may have at once; the next is closed unheard.
const CONNECTIONS_OF_ONE_PEER: usize = 8;
/// A client that has not sent its header by then is not a client of ours. It also ends
/// connections that are kept open in idleness.
const HEADER_TIME: Duration = Duration::from_secs(5);
/// Bounds a client that reads its answer drop by drop.
const CONNECTION_TIME: Duration = Duration::from_mins(1);
/// How long the answers that were begun may take once the end was asked for.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_secs(2);
const HEADER_BYTES: usize = 16 * 1024;
const HEADERS: usize = 64;
/// Out of file descriptors, most likely; asking again at once would only burn time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the answers are made of.
#[derive(Clone)]
pub(crate) struct Probes {
    /// Asked by `/readyz`.
    pub(crate) gates: Gates,
    /// Asked by `/metrics`.
    pub(crate) metrics: Metrics,
}

/// Serves until `stop` is done, then lets the answers that were begun come to their end.
pub(crate) async fn serve(listener: TcpListener, probes: Probes, stop: impl Future<Output = ()>) {
    let router = router(probes);
    let open = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let seats = Seats::new(CONNECTIONS_OF_ONE_PEER);
    let mut stop = std::pin::pin!(stop);
    loop {
        let place = tokio::select! {
            () = &mut stop => break,
            place = Arc::clone(&places).acquire_owned() => place,
        };
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Some(seat) = seats.take(peer.ip()) else {
                    continue;
                };
                let connection = open.watch(connection(stream, router.clone()));
                tokio::spawn(async move {
                    // Either end may hang up at any time; there is nothing to be mended.
                    time::timeout(CONNECTION_TIME, connection).await.ok();
                    drop((seat, place));
                });
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection on the probe port");
                time::sleep(ACCEPT_PAUSE).await;
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
        .header_read_timeout(HEADER_TIME)
        .max_headers(HEADERS)
        .max_buf_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
}

fn router(probes: Probes) -> Router {
    Router::new()
        .route(names::LIVE_PATH, get(live))
        .route(names::READY_PATH, get(ready))
        .route(names::METRICS_PATH, get(metrics))
        .fallback(lost)
        .with_state(probes)
}

/// The answer itself is the proof that the event loop turns. Nothing else is asked: a restart
/// would mend no API server and no lease.
async fn live() -> &'static str {
    "alive\n"
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
            tracing::error!(%error, "failed to write the metrics");
            (StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written\n")
                .into_response()
        }
    }
}

async fn lost() -> Response {
    (StatusCode::NOT_FOUND, "nothing is here; try /livez, /readyz or /metrics\n").into_response()
}

#[cfg(test)]
mod tests;
