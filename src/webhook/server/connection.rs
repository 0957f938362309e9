//! Serves one connection from the TLS handshake to its end.
//!
//! A socket that sends nothing takes none of the handshake permits, and one client address cannot
//! take all of them.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{error::Elapsed, timeout};
use tokio_rustls::server::TlsStream;

use super::Shared;
use super::activity::Activity;
use super::connections::Slot;
use super::service::respond;
use super::stream::TrackedStream;
use crate::telemetry::{RejectReason, error_chain};

const MAX_HEADERS: usize = 64;
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// The maximum size of the read buffer of a connection.
const MAX_READ_BUFFER_BYTES: usize = 32 * 1024;

/// Serves a connection until either side closes it.
pub(super) async fn serve_connection(socket: TcpStream, slot: Slot, shared: Arc<Shared>) {
    let stream = tokio::select! {
        stream = handshake(socket, &slot, &shared) => stream,
        // Aborted, or the server shuts down: no request has started yet.
        _aborted = slot.state.notified() => None,
    };
    if let Some(stream) = stream
        && slot.state.enter(Activity::AwaitingRequest)
    {
        serve_http(TrackedStream::new(stream, Arc::clone(&slot.state)), &slot, &shared).await;
    }
}

async fn handshake(
    socket: TcpStream,
    slot: &Slot,
    shared: &Shared,
) -> Option<TlsStream<TcpStream>> {
    let handshake_timeout = shared.limits.handshake_timeout;
    match timeout(handshake_timeout, socket.peek(&mut [0_u8])).await {
        // A peer that connects and closes without sending a byte is a TCP probe.
        Ok(Ok(0) | Err(_)) => return None,
        Ok(Ok(_)) => {}
        Err(Elapsed { .. }) => {
            shared.rejections.record(RejectReason::SlowHandshake, slot.peer, "no data received");
            return None;
        }
    }
    let permits = async { (slot.handshakes.acquire().await, shared.handshakes.acquire().await) };
    // A burst of legitimate handshakes may have to wait; after twice the timeout the client has
    // given up.
    let Ok((Ok(_peer_permit), Ok(_permit))) =
        timeout(handshake_timeout.saturating_mul(2), permits).await
    else {
        shared.rejections.record(RejectReason::SlowHandshake, slot.peer, "handshake limit reached");
        return None;
    };
    match timeout(handshake_timeout, shared.acceptor.accept(socket)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            shared.rejections.record(RejectReason::Handshake, slot.peer, error);
            None
        }
        Err(Elapsed { .. }) => {
            shared.rejections.record(
                RejectReason::SlowHandshake,
                slot.peer,
                "handshake not completed",
            );
            None
        }
    }
}

async fn serve_http(stream: TrackedStream, slot: &Slot, shared: &Shared) {
    let service = service_fn(async |request| {
        let (response, rejected) = respond(request, shared, &slot.state).await;
        if let Some(reason) = rejected {
            shared.rejections.record(reason, slot.peer, response.status());
        }
        Ok::<_, Infallible>(response)
    });
    let connection = http1::Builder::new()
        // The periodic sweep finds slow connections. A timer here would also close the connections
        // that the API server keeps idle, and lose a request that it sends at the same time.
        .header_read_timeout(None)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEADER_BYTES)
        .max_buf_size(MAX_READ_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    loop {
        tokio::select! {
            result = connection.as_mut() => {
                if let Err(error) = result {
                    log_connection_error(&error, slot.peer, shared);
                }
                return;
            }
            is_aborted = slot.state.notified() => {
                if is_aborted {
                    return;
                }
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Either side may close at any time; only malformed HTTP counts as a rejection.
fn log_connection_error(error: &hyper::Error, peer: IpAddr, shared: &Shared) {
    if error.is_parse() || error.is_incomplete_message() {
        shared.rejections.record(RejectReason::Malformed, peer, error_chain(error));
    } else {
        tracing::debug!(%peer, error = error_chain(error), "webhook connection failed");
    }
}
