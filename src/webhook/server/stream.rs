//! A TLS stream that tracks the state of its connection.
//!
//! Responses are written without a copy, so that their memory budget is held until they are sent.

use std::io::{Error, ErrorKind, IoSlice, Result, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::activity::Activity;
use super::state::ConnectionState;

/// The bytes that a peer may still send after the server has closed its side. They are discarded:
/// closing a socket with unread bytes resets it, and the peer loses the response.
const MAX_DRAIN_BYTES: usize = 4 * 1024 * 1024;
const DRAIN_BUFFER_BYTES: usize = 8 * 1024;

/// A TLS stream that updates the connection state.
pub(super) struct TrackedStream {
    stream: TlsStream<TcpStream>,
    state: Arc<ConnectionState>,
    drain_left: usize,
    shutdown_sent: bool,
}

impl TrackedStream {
    /// Wraps a stream after its handshake.
    pub(super) fn new(stream: TlsStream<TcpStream>, state: Arc<ConnectionState>) -> Self {
        Self { stream, state, drain_left: MAX_DRAIN_BYTES, shutdown_sent: false }
    }

    /// Discards incoming bytes until the peer has closed its side, too.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let (socket, _) = self.stream.get_mut();
        let mut buffer = [0_u8; DRAIN_BUFFER_BYTES];
        while self.drain_left > 0 {
            let mut discarded = ReadBuf::new(&mut buffer);
            ready!(Pin::new(&mut *socket).poll_read(cx, &mut discarded))?;
            if discarded.filled().is_empty() {
                break;
            }
            self.drain_left = self.drain_left.saturating_sub(discarded.filled().len());
        }
        Poll::Ready(Ok(()))
    }
}

fn aborted() -> Error {
    Error::new(ErrorKind::ConnectionAborted, "connection aborted by the server")
}

impl AsyncRead for TrackedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > before && !self.state.on_read() {
            return Poll::Ready(Err(aborted()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TrackedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    /// Headers and body become one TLS record if they fit. They are encrypted into a buffer of 64
    /// KiB, which must be flushed when it is full.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        if slices.iter().all(|slice| slice.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        loop {
            let taken = self.stream.get_mut().1.writer().write_vectored(slices)?;
            if taken > 0 {
                return Poll::Ready(Ok(taken));
            }
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.state.on_flush();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if !self.shutdown_sent {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.shutdown_sent = true;
            self.state.enter(Activity::Closing);
        }
        self.poll_drain(cx)
    }
}
