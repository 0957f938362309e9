//! The webhook server: HTTP/1.1 over TLS with a limit on every resource.
//!
//! Connections, handshakes, bytes and durations are limited, and the limits hit the client address
//! that uses most. A hostile client must neither keep the API server out nor keep the operator from
//! renewing its Lease.

mod activity;
mod body;
mod connection;
mod connections;
mod eviction;
mod limits;
mod memory_budget;
mod rejections;
mod service;
mod state;
mod stream;
mod tls;

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{self, MissedTickBehavior};
use tokio_rustls::TlsAcceptor;

use connections::{Accept, Connections};
use limits::Limits;
use memory_budget::MemoryBudget;
use rejections::RejectionLog;

use super::handler::{self, ReviewResponse, ReviewType};
use crate::clients::serving_cert::CertResolver;
use crate::telemetry::{RejectReason, WebhookMetrics};

/// Accept fails when file descriptors are exhausted; an immediate retry would only use CPU time.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Handles one review.
type HandleFn = fn(ReviewType, &[u8], Timestamp) -> ReviewResponse;

/// Why the server cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// rustls rejected the configuration.
    #[error("failed to set up TLS for the webhook server")]
    Tls(#[source] rustls::Error),
}

/// The configuration of the server.
pub(crate) struct ServerConfig {
    acceptor: TlsAcceptor,
    metrics: WebhookMetrics,
    limits: Limits,
    handle: HandleFn,
}

impl ServerConfig {
    /// A configuration with the default limits and the review handler.
    pub(crate) fn new(identity: CertResolver, metrics: WebhookMetrics) -> Result<Self, SetupError> {
        let acceptor = tls::acceptor(identity).map_err(SetupError::Tls)?;
        Ok(Self { acceptor, metrics, limits: Limits::DEFAULT, handle: handler::handle })
    }
}

/// State shared by all connections.
struct Shared {
    acceptor: TlsAcceptor,
    limits: Limits,
    handle: HandleFn,
    handshakes: Semaphore,
    budget: MemoryBudget,
    large_reviews: Semaphore,
    reviews: Semaphore,
    rejections: RejectionLog,
    draining: AtomicBool,
}

impl Shared {
    fn new(config: ServerConfig) -> Self {
        let ServerConfig { acceptor, metrics, limits, handle } = config;
        Self {
            acceptor,
            limits,
            handle,
            handshakes: Semaphore::new(limits.handshakes),
            budget: MemoryBudget::new(limits.memory_budget_bytes, limits.small_body_bytes),
            large_reviews: Semaphore::new(limits.large_reviews),
            reviews: Semaphore::new(limits.reviews),
            rejections: RejectionLog::new(metrics),
            draining: AtomicBool::new(false),
        }
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }
}

/// Serves until `stop` is done, then finishes the requests in progress. From `drain` on, each
/// response also asks its client to reconnect, which leads it to another replica.
pub(crate) async fn serve(
    listener: TcpListener,
    config: ServerConfig,
    drain: impl Future<Output = ()>,
    stop: impl Future<Output = ()>,
) {
    let connections = Arc::new(Connections::new(config.limits, config.metrics.clone()));
    let shared = Arc::new(Shared::new(config));
    let mut tasks = JoinSet::new();
    let (mut drain, mut stop) = (pin!(drain), pin!(stop));
    let mut sweep = time::interval(shared.limits.sweep_interval);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = &mut stop => break,
            () = &mut drain, if !shared.is_draining() => {
                shared.draining.store(true, Ordering::Release);
            }
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => accept(socket, peer, &connections, &shared, &mut tasks),
                Err(error) => {
                    shared.rejections.accept_failed(&error);
                    time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
            Some(result) = tasks.join_next(), if !tasks.is_empty() => log_panic(&shared, result),
            _ = sweep.tick(), if !connections.is_empty() => abort_overdue(&connections, &shared),
        }
    }
    drop(listener);
    shutdown(&connections, &shared, tasks).await;
}

fn accept(
    socket: TcpStream,
    peer: SocketAddr,
    connections: &Arc<Connections>,
    shared: &Arc<Shared>,
    tasks: &mut JoinSet<()>,
) {
    let peer = peer.ip().to_canonical();
    let slot = match connections.accept(peer) {
        Accept::Free(slot) => slot,
        Accept::Evicted(slot, evicted) => {
            shared.rejections.record(
                RejectReason::Evicted,
                evicted,
                "evicted: connection limit reached",
            );
            slot
        }
        Accept::Full => {
            shared.rejections.record(
                RejectReason::ConnectionLimit,
                peer,
                "connection limit reached",
            );
            return;
        }
    };
    // Responses are small and awaited, so Nagle's algorithm only adds latency. A socket that
    // rejects the option is broken and fails at the next read.
    socket.set_nodelay(true).ok();
    tasks.spawn(connection::serve_connection(socket, slot, Arc::clone(shared)));
}

fn log_panic(shared: &Shared, result: Result<(), JoinError>) {
    if let Err(error) = result
        && error.is_panic()
    {
        shared.rejections.panicked(&error);
    }
}

fn abort_overdue(connections: &Connections, shared: &Shared) {
    for overdue in connections.abort_overdue() {
        if let Some(reason) = overdue.rejection() {
            shared.rejections.record(reason, overdue.peer, "timed out");
        }
    }
}

async fn shutdown(connections: &Connections, shared: &Shared, mut tasks: JoinSet<()>) {
    shared.draining.store(true, Ordering::Release);
    connections.notify_all();
    let finish = async {
        while let Some(result) = tasks.join_next().await {
            log_panic(shared, result);
        }
    };
    if time::timeout(shared.limits.shutdown_timeout, finish).await.is_err() {
        tracing::info!("webhook server closed with requests in progress");
    }
    tasks.shutdown().await;
}

#[cfg(test)]
mod tests;
