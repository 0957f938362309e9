//! The serving certificate of the webhook server, replaceable while connections come in.
//!
//! Each handshake gets the newest certificate; open connections keep theirs.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// Resolves every handshake to the current certificate. Copies share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertResolver(Arc<RwLock<Option<Arc<CertifiedKey>>>>);

impl CertResolver {
    /// Replaces the certificate.
    pub(crate) fn put(&self, certificate: CertifiedKey) {
        // No code can panic while the lock is held, so a poisoned lock is valid.
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certificate));
    }

    /// The certificate of the next handshake; none before the first.
    pub(crate) fn current(&self) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesServerCert for CertResolver {
    /// For any server name: the client verifies the name.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current()
    }
}
