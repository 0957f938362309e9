//! One TLS handshake with one member, to learn which CAs it trusts and which certificate it
//! presents.
//!
//! No request is sent. It uses TLS 1.2, in which the server has verified the client certificate
//! before the handshake completes; with 1.3 the client would only learn of a rejection on its first
//! read.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::client::ResolvesClientCert;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::version::TLS12;
use rustls::{AlertDescription, ClientConfig, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio::time;
use tokio_rustls::TlsConnector;

use super::etcd::MemberEndpoint;

/// The certificate that is presented, and the CAs that are trusted, all as DER.
pub(crate) struct ClientIdentity<'a> {
    pub(crate) certificate: &'a [u8],
    /// The intermediate CAs, in order.
    pub(crate) chain: Vec<&'a [u8]>,
    /// The private key, as PKCS #8.
    pub(crate) key: &'a [u8],
    pub(crate) trusted_cas: Vec<&'a [u8]>,
}

/// The result of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// Both sides accepted the other's certificate.
    Ok {
        /// The subjects of the CAs that the member trusts: a server names them in its request for a
        /// client certificate.
        accepted_issuers: Vec<Vec<u8>>,
    },
    /// The member rejected the client certificate.
    Rejected,
    /// The client rejected the member's certificate.
    UntrustedServer,
    /// The handshake failed for another reason.
    Failed(String),
}

/// Makes one handshake.
pub(crate) async fn probe(
    endpoint: &MemberEndpoint,
    identity: &ClientIdentity<'_>,
    timeout: Duration,
) -> Handshake {
    let Some((connector, name, recorder)) = connector(endpoint, identity) else {
        return Handshake::Failed(
            "the client certificate or the trust bundle is invalid".to_owned(),
        );
    };
    let call = async {
        let stream = TcpStream::connect((endpoint.address, endpoint.port)).await?;
        connector.connect(name, stream).await
    };
    match time::timeout(timeout, call).await {
        Ok(Ok(_)) => Handshake::Ok { accepted_issuers: recorder.accepted_issuers() },
        Ok(Err(error)) => classify(&error),
        Err(_) => Handshake::Failed(format!("no response within {}ms", timeout.as_millis())),
    }
}

/// Presents one certificate to any server, and records the CAs that the server accepts.
#[derive(Debug)]
struct IssuerRecorder {
    certified_key: Arc<CertifiedKey>,
    accepted_issuers: Mutex<Vec<Vec<u8>>>,
}

impl IssuerRecorder {
    fn accepted_issuers(&self) -> Vec<Vec<u8>> {
        self.accepted_issuers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesClientCert for IssuerRecorder {
    fn resolve(
        &self,
        accepted_issuers: &[&[u8]],
        _: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        let names = accepted_issuers.iter().map(|name| name.to_vec()).collect();
        *self.accepted_issuers.lock().unwrap_or_else(PoisonError::into_inner) = names;
        Some(self.certified_key.clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

type Connector = (TlsConnector, ServerName<'static>, Arc<IssuerRecorder>);

fn connector(endpoint: &MemberEndpoint, identity: &ClientIdentity<'_>) -> Option<Connector> {
    let ClientIdentity { certificate, chain, key, trusted_cas } = identity;
    let mut roots = RootCertStore::empty();
    for der in trusted_cas {
        roots.add(CertificateDer::from(der.to_vec())).ok()?;
    }
    let chain = [certificate].into_iter().chain(chain);
    let chain = chain.map(|der| CertificateDer::from(der.to_vec())).collect();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.to_vec()));
    let provider = default_provider();
    let key = provider.key_provider.load_private_key(key).ok()?;
    let certified_key = Arc::new(CertifiedKey::new(chain, key));
    let resolver = Arc::new(IssuerRecorder { certified_key, accepted_issuers: Mutex::default() });
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS12])
        .ok()?
        .with_root_certificates(roots)
        .with_client_cert_resolver(resolver.clone());
    let name = ServerName::try_from(endpoint.host.clone()).ok()?;
    Some((TlsConnector::from(Arc::new(config)), name, resolver))
}

/// A failure is classified by its type, never by its message.
fn classify(error: &io::Error) -> Handshake {
    let tls_error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    match tls_error {
        Some(rustls::Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            // A CA with the same subject has another key.
            | AlertDescription::DecryptError
            | AlertDescription::UnknownCA,
        )) => Handshake::Rejected,
        Some(rustls::Error::InvalidCertificate(_)) => Handshake::UntrustedServer,
        Some(_) | None => Handshake::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
