//! The webhook server without the operator, for tests and benchmarks from outside the crate.
//!
//! It responds as the operator does and exposes the metrics of the server.

use rustls::sign::CertifiedKey;
use tokio::net::TcpListener;

use super::server::{self, ServerConfig, SetupError};
use crate::clients::clock;
use crate::clients::serving_cert::CertResolver;
use crate::telemetry::Metrics;

/// A webhook server without the operator.
pub struct TestServer {
    identity: CertResolver,
    metrics: Metrics,
}

impl TestServer {
    /// A server that presents this certificate.
    #[must_use]
    pub fn new(certificate: CertifiedKey) -> Self {
        let identity = CertResolver::default();
        identity.put(certificate);
        Self { identity, metrics: Metrics::new(clock::wall()) }
    }

    /// Presents another certificate from the next handshake on.
    pub fn set_certificate(&self, certificate: CertifiedKey) {
        self.identity.put(certificate);
    }

    /// Serves until `stop` is done. From `drain` on, responses ask the client to reconnect.
    ///
    /// # Errors
    ///
    /// If TLS cannot be set up.
    pub async fn serve(
        &self,
        listener: TcpListener,
        drain: impl Future<Output = ()>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), SetupError> {
        let config = ServerConfig::new(self.identity.clone(), self.metrics.webhook())?;
        server::serve(listener, config, drain, stop).await;
        Ok(())
    }

    /// The metrics in text format.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        self.metrics.encode().unwrap_or_default()
    }
}
