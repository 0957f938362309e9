//! The TLS configuration: version 1.3 with ALPN `http/1.1`, without session resumption.
//!
//! The API server uses HTTP/1.1 for a webhook behind a Service. What is not offered cannot be
//! attacked.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::server::NoServerSessionStorage;
use rustls::{Error, ServerConfig, version};
use tokio_rustls::TlsAcceptor;

use crate::clients::serving_cert::CertResolver;

const HTTP_1_1: &[u8] = b"http/1.1";

/// The acceptor for handshakes.
pub(super) fn acceptor(identity: CertResolver) -> Result<TlsAcceptor, Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&version::TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(identity));
    config.alpn_protocols = vec![HTTP_1_1.to_vec()];
    // No tickets, no session storage, no early data: nothing can be replayed, and a replaced
    // certificate is presented from the next connection on.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.max_early_data_size = 0;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
