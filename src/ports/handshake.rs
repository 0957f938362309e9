//! One handshake with one member, to see whom it trusts and what it shows.
//! Comes in: where it is, what to show it, whom to trust. Goes out: how it ended. May touch: the network, within a limit.
//! Nothing is asked for, and nothing is repeated. It speaks TLS 1.2, in which whoever is called has judged the caller
//! before the handshake ends; in 1.3 the caller would believe to be let in until it asks for something.

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

use super::etcd::Place;

/// What a caller shows, and whom it trusts, all as DER.
pub(crate) struct Caller<'a> {
    pub(crate) certificate: &'a [u8],
    /// Who signed it, one after the other.
    pub(crate) chain: Vec<&'a [u8]>,
    /// As PKCS #8.
    pub(crate) key: &'a [u8],
    pub(crate) trusts: Vec<&'a [u8]>,
}

/// How a handshake ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Both took what the other showed.
    Well {
        /// The names of those whom the member trusts: who is called says whose certificates it asks for.
        asks_for: Vec<Vec<u8>>,
    },
    /// The member did not take what was shown to it.
    Refused,
    /// The caller did not take what the member showed.
    NotTrusted,
    /// Neither can be said; why.
    Unknown(String),
}

/// Makes one.
pub(crate) async fn shake(place: &Place, caller: &Caller<'_>, limit: Duration) -> Ended {
    let Some((connector, name, shows)) = prepared(place, caller) else {
        return Ended::Unknown("what would be shown cannot be used".to_owned());
    };
    let call = async {
        let stream = TcpStream::connect((place.address, place.port)).await?;
        connector.connect(name, stream).await
    };
    match time::timeout(limit, call).await {
        Ok(Ok(_)) => Ended::Well { asks_for: shows.asked_for() },
        Ok(Err(error)) => ended(&error),
        Err(_) => Ended::Unknown(format!("no answer within {}ms", limit.as_millis())),
    }
}

/// Shows one certificate to whoever asks, and remembers whose was asked for.
#[derive(Debug)]
struct Shows {
    pair: Arc<CertifiedKey>,
    asked_for: Mutex<Vec<Vec<u8>>>,
}

impl Shows {
    fn asked_for(&self) -> Vec<Vec<u8>> {
        self.asked_for.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesClientCert for Shows {
    fn resolve(&self, asked_for: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let names = asked_for.iter().map(|it| it.to_vec()).collect();
        *self.asked_for.lock().unwrap_or_else(PoisonError::into_inner) = names;
        Some(self.pair.clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

type Prepared = (TlsConnector, ServerName<'static>, Arc<Shows>);

fn prepared(place: &Place, caller: &Caller<'_>) -> Option<Prepared> {
    let Caller { certificate, chain, key, trusts } = caller;
    let mut roots = RootCertStore::empty();
    for der in trusts {
        roots.add(CertificateDer::from(der.to_vec())).ok()?;
    }
    let shown = [certificate].into_iter().chain(chain);
    let shown = shown.map(|der| CertificateDer::from(der.to_vec())).collect();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.to_vec()));
    let provider = default_provider();
    let key = provider.key_provider.load_private_key(key).ok()?;
    let pair = Arc::new(CertifiedKey::new(shown, key));
    let resolver = Arc::new(Shows { pair, asked_for: Mutex::default() });
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS12])
        .ok()?
        .with_root_certificates(roots)
        .with_client_cert_resolver(resolver.clone());
    let name = ServerName::try_from(place.host.clone()).ok()?;
    Some((TlsConnector::from(Arc::new(config)), name, resolver))
}

/// The kind of a failure is read from its type, never from its words.
fn ended(error: &io::Error) -> Ended {
    let said = error.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>());
    match said {
        Some(rustls::Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            // Somebody of the same name has another key.
            | AlertDescription::DecryptError
            | AlertDescription::UnknownCA,
        )) => Ended::Refused,
        Some(rustls::Error::InvalidCertificate(_)) => Ended::NotTrusted,
        Some(_) | None => Ended::Unknown(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
