//! Shutdown signals: the first SIGTERM or SIGINT starts a graceful shutdown, the second aborts it.
//!
//! The handlers are installed first of all, because PID 1 of a container ignores signals without a
//! handler.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// SIGTERM and SIGINT.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Installs the handlers.
    pub(super) fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal and returns its name.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Requests every holder of a [`ShutdownSignal`] to stop.
pub(super) struct ShutdownHandle(watch::Sender<bool>);

/// Waits for the request to stop.
#[derive(Clone)]
pub(super) struct ShutdownSignal(watch::Receiver<bool>);

/// A handle and its signal.
pub(super) fn channel() -> (ShutdownHandle, ShutdownSignal) {
    let (sender, receiver) = watch::channel(false);
    (ShutdownHandle(sender), ShutdownSignal(receiver))
}

impl ShutdownHandle {
    /// Requests the stop.
    pub(super) fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl ShutdownSignal {
    /// Completes once the stop was requested, or once the handle was dropped.
    pub(super) async fn requested(mut self) {
        self.0.wait_for(|requested| *requested).await.ok();
    }
}
