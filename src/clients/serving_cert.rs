//! The serving certificate of the webhook server, replaceable while connections come in.
//!
//! Each handshake gets the newest certificate; open connections keep theirs.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// The slot. Copies see the same certificate.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertResolver(Arc<RwLock<Option<Arc<CertifiedKey>>>>);

impl CertResolver {
    /// Puts a certificate in the place of the one before.
    pub(crate) fn put(&self, certificate: CertifiedKey) {
        // Nothing can break between taking the lock and giving it back, so a poisoned one is sound.
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certificate));
    }

    /// The certificate of the next handshake, if there is one yet.
    pub(crate) fn current(&self) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesServerCert for CertResolver {
    /// Whatever name was asked for: the client knows which names it trusts.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current()
    }
}
