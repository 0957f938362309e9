//! The wish to stop, as a value that many can wait for.
//! Comes in: SIGTERM and SIGINT. Goes out: a first signal that begins an orderly end, and a
//! second that cuts it short. May touch: signal handlers; installed first of all, because the
//! first process of a container ignores signals that it does not handle.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The signals that ask the process to stop.
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

    /// Waits for the next signal and says its name.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Asks every holder of a [`Stop`] to come to an end.
pub(super) struct Stopper(watch::Sender<bool>);

/// Waits to be asked.
#[derive(Clone)]
pub(super) struct Stop(watch::Receiver<bool>);

/// The two ends of one wish.
pub(super) fn pair() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Asks.
    pub(super) fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Is done once the stop was asked for, or once nobody is left who could ask.
    pub(super) async fn asked(mut self) {
        self.0.wait_for(|asked| *asked).await.ok();
    }
}
