//! How the webhook port speaks TLS: version 1.3, HTTP/1.1 inside, and nothing to come back with.
//! Comes in: the slot with the certificate. Goes out: what handshakes are done with.
//! May touch: nothing outside. The API server speaks HTTP/1.1 to a webhook behind a Service; what
//! is not offered cannot be attacked.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::server::NoServerSessionStorage;
use rustls::{Error, ServerConfig, version};
use tokio_rustls::TlsAcceptor;

use crate::ports::identity::Identity;

const HTTP_1_1: &[u8] = b"http/1.1";

/// What handshakes are done with.
pub(super) fn acceptor(identity: Identity) -> Result<TlsAcceptor, Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&version::TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(identity));
    config.alpn_protocols = vec![HTTP_1_1.to_vec()];
    // No tickets, no memory of sessions, no data before the handshake's end: nothing can be
    // replayed, and a certificate that was replaced is seen by whoever connects next.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.max_early_data_size = 0;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
