//! The line to one peer: a TLS stream that notes what happens on it.
//! Comes in: bytes in both directions. Goes out: the same bytes, and notes in the pulse.
//! May touch: the stream it was given. Answers are handed on without a copy, so that their room is
//! given back when they are gone and not before.

use std::io::{Error, ErrorKind, IoSlice, Result, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::activity::Activity;
use super::pulse::Pulse;

/// What a peer may still send after the last word. It is thrown away unread: a socket that is
/// closed with unread bytes in it takes the last word back.
const GOODBYE_BYTES: usize = 4 * 1024 * 1024;
const GOODBYE_STEP: usize = 8 * 1024;

/// One line.
pub(super) struct Line {
    stream: TlsStream<TcpStream>,
    pulse: Arc<Pulse>,
    goodbye_left: usize,
    said_goodbye: bool,
}

impl Line {
    /// A line over a stream whose handshake is over.
    pub(super) fn new(stream: TlsStream<TcpStream>, pulse: Arc<Pulse>) -> Self {
        Self { stream, pulse, goodbye_left: GOODBYE_BYTES, said_goodbye: false }
    }

    /// Throws away what still comes, until the peer has closed its side, too.
    fn poll_goodbye(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let (socket, _) = self.stream.get_mut();
        let mut space = [0_u8; GOODBYE_STEP];
        while self.goodbye_left > 0 {
            let mut thrown = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut *socket).poll_read(cx, &mut thrown))?;
            if thrown.filled().is_empty() {
                break;
            }
            self.goodbye_left = self.goodbye_left.saturating_sub(thrown.filled().len());
        }
        Poll::Ready(Ok(()))
    }
}

fn cut() -> Error {
    Error::new(ErrorKind::ConnectionAborted, "the connection was cut")
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > before && !self.pulse.heard() {
            return Poll::Ready(Err(cut()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    /// Head and body become one TLS record if they fit. They are encrypted into a buffer of 64 KiB;
    /// when that is full, it has to be sent before there is more.
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
        self.pulse.sent();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if !self.said_goodbye {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.said_goodbye = true;
            self.pulse.begin(Activity::Closing);
        }
        self.poll_goodbye(cx)
    }
}
