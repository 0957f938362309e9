//! A port with a certificate of its own, and a client that says exactly what it is told to say.

use std::net::{Ipv4Addr, SocketAddr};

use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::telemetry::Metrics;
use crate::webhook::desk::Outcome;

pub(super) const NAME: &str = "quorate-webhook.quorate-system.svc";

/// Bounds that a test can wait for. Only those are short that it wants to see.
pub(super) const SHORT: Duration = Duration::from_millis(300);

pub(super) struct Port {
    pub(super) address: SocketAddr,
    pub(super) metrics: WebhookMetrics,
    pub(super) drain: Option<oneshot::Sender<()>>,
    pub(super) stop: Option<oneshot::Sender<()>>,
    pub(super) task: JoinHandle<()>,
    roots: RootCertStore,
}

/// Says what was asked, and how long it was.
pub(super) fn echo(errand: Errand, body: &[u8], _: Timestamp) -> Reply {
    let body = format!("{{\"errand\":\"{errand:?}\",\"bytes\":{}}}", body.len()).into_bytes();
    Reply { status: 200, body, outcome: Outcome::Allowed, objects: 0 }
}

pub(super) fn limits() -> Limits {
    Limits { round: Duration::from_millis(20), ..Limits::STANDARD }
}

pub(super) async fn port() -> Port {
    open(limits(), echo).await
}

pub(super) async fn open(limits: Limits, answer: Answer) -> Port {
    let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = ring::default_provider();
    let certificate = CertifiedKey::from_der(vec![made.cert.der().clone()], key, &provider);
    let identity = Identity::default();
    identity.put(certificate.unwrap());
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();

    let metrics = Metrics::new(Timestamp::UNIX_EPOCH).webhook();
    let door = Door { limits, answer, ..Door::new(identity, metrics.clone()).unwrap() };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (drain, drained) = oneshot::channel::<()>();
    let (stop, stopped) = oneshot::channel::<()>();
    let drained = async {
        if drained.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let stopped = async {
        stopped.await.ok();
    };
    let task = tokio::spawn(serve(listener, door, drained, stopped));
    Port { address, metrics, drain: Some(drain), stop: Some(stop), task, roots }
}

impl Port {
    /// A bare socket from a loopback address with that last number.
    pub(super) async fn socket(&self, from: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, from), 0))).unwrap();
        socket.connect(self.address).await.unwrap()
    }

    /// A connection that offers these versions and protocols.
    pub(super) async fn offer(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&str],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        self.shake(self.socket(1).await, versions, protocols).await
    }

    async fn shake(
        &self,
        socket: TcpStream,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&str],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = ServerName::try_from(NAME).unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, socket).await
    }

    /// A connection like the API server's, from a loopback address with that last number.
    pub(super) async fn client_from(&self, from: u8) -> std::io::Result<Client> {
        let socket = self.socket(from).await;
        let stream = self.shake(socket, &[&version::TLS13], &["http/1.1"]).await?;
        Ok(Client { stream, unread: Vec::new() })
    }

    pub(super) async fn client(&self) -> Client {
        self.client_from(1).await.unwrap()
    }

    /// Waits until so many were refused for that reason.
    pub(super) async fn refused(&self, why: Refused, count: u64) {
        let seen = async {
            while self.metrics.count(why) < count {
                time::sleep(Duration::from_millis(5)).await;
            }
        };
        let found = time::timeout(Duration::from_secs(20), seen).await;
        assert!(found.is_ok(), "{}: {} of {count}", why.word(), self.metrics.count(why));
    }
}

pub(super) struct Client {
    pub(super) stream: TlsStream<TcpStream>,
    unread: Vec<u8>,
}

/// One response.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

pub(super) fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n"
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

impl Client {
    pub(super) async fn say(&mut self, bytes: &[u8]) {
        // The other end may have hung up in the middle, which is for the reader to see.
        self.stream.write_all(bytes).await.ok();
        self.stream.flush().await.ok();
    }

    pub(super) async fn ask(&mut self, path: &str, body: &[u8]) -> Option<Heard> {
        self.say(&post(path, body)).await;
        self.hear().await
    }

    /// The next response, or none if the other end hangs up before it is whole.
    pub(super) async fn hear(&mut self) -> Option<Heard> {
        loop {
            if let Some((heard, used)) = whole(&self.unread) {
                self.unread.drain(..used);
                return Some(heard);
            }
            let mut space = vec![0_u8; 16 * 1024];
            match self.stream.read(&mut space).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.unread.extend_from_slice(&space[..count]),
            }
        }
    }

    /// Whether the other end hangs up, within a time in which it certainly would.
    pub(super) async fn is_hung_up(&mut self) -> bool {
        let heard = time::timeout(Duration::from_secs(20), self.hear()).await;
        matches!(heard, Ok(None))
    }
}

fn whole(bytes: &[u8]) -> Option<(Heard, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?.saturating_add(4);
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = |line: &str| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok();
    // Only an interim response may come without a length.
    let length = head.lines().find_map(length).unwrap_or(0);
    let all = end.saturating_add(length);
    let body = bytes.get(end..all)?.to_vec();
    Some((Heard { status, head, body }, all))
}
