//! The webhook port by itself, for those who try it from outside: tests, and measurements.
//! Comes in: a certificate with its key, a socket. Goes out: the same answers as from the whole
//! operator, and what was measured meanwhile. May touch: the socket it was given.

use rustls::sign::CertifiedKey;
use tokio::net::TcpListener;

use super::serve::{self, Door, OpenError};
use crate::ports::clock;
use crate::ports::identity::Identity;
use crate::telemetry::Metrics;

/// A webhook port without an operator around it.
pub struct Stand {
    identity: Identity,
    metrics: Metrics,
}

impl Stand {
    /// A port that shows this certificate.
    #[must_use]
    pub fn new(certificate: CertifiedKey) -> Self {
        let identity = Identity::default();
        identity.put(certificate);
        Self { identity, metrics: Metrics::new(clock::wall()) }
    }

    /// Shows another certificate from the next handshake on.
    pub fn renew(&self, certificate: CertifiedKey) {
        self.identity.put(certificate);
    }

    /// Serves until `stop` is done. Answers ask to connect anew once `drain` is done.
    ///
    /// # Errors
    ///
    /// If TLS cannot be prepared.
    pub async fn serve(
        &self,
        listener: TcpListener,
        drain: impl Future<Output = ()>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), OpenError> {
        let door = Door::new(self.identity.clone(), self.metrics.webhook())?;
        serve::serve(listener, door, drain, stop).await;
        Ok(())
    }

    /// What was measured so far, as text.
    #[must_use]
    pub fn measured(&self) -> String {
        self.metrics.encode().unwrap_or_default()
    }
}
