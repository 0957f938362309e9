//! A server with a self-signed certificate, and a client that sends exactly the given bytes.

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
use crate::telemetry::{Metrics, RejectReason};
use crate::webhook::handler::Outcome;

pub(super) const NAME: &str = "quorate-webhook.quorate-system.svc";

/// A timeout short enough for a test. A test shortens only the timeouts that it examines.
pub(super) const SHORT: Duration = Duration::from_millis(300);

pub(super) struct Fixture {
    pub(super) address: SocketAddr,
    pub(super) metrics: WebhookMetrics,
    pub(super) drain: Option<oneshot::Sender<()>>,
    pub(super) stop: Option<oneshot::Sender<()>>,
    pub(super) task: JoinHandle<()>,
    roots: RootCertStore,
}

/// Returns the review type and the length of the body.
pub(super) fn echo(review_type: ReviewType, body: &[u8], _: Timestamp) -> ReviewResponse {
    let body = format!("{{\"type\":\"{review_type:?}\",\"bytes\":{}}}", body.len()).into_bytes();
    ReviewResponse { status: 200, body, outcome: Outcome::Allowed, objects: 0 }
}

pub(super) fn limits() -> Limits {
    Limits { sweep_interval: Duration::from_millis(20), ..Limits::DEFAULT }
}

pub(super) async fn start_default() -> Fixture {
    start(limits(), echo).await
}

pub(super) async fn start(limits: Limits, handle: HandleFn) -> Fixture {
    let generated = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(generated.signing_key.serialize_der()).unwrap();
    let provider = ring::default_provider();
    let certificate = CertifiedKey::from_der(vec![generated.cert.der().clone()], key, &provider);
    let identity = CertResolver::default();
    identity.put(certificate.unwrap());
    let mut roots = RootCertStore::empty();
    roots.add(generated.cert.der().clone()).unwrap();

    let metrics = Metrics::new(Timestamp::UNIX_EPOCH).webhook();
    let config =
        ServerConfig { limits, handle, ..ServerConfig::new(identity, metrics.clone()).unwrap() };
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
    let task = tokio::spawn(serve(listener, config, drained, stopped));
    Fixture { address, metrics, drain: Some(drain), stop: Some(stop), task, roots }
}

impl Fixture {
    /// A TCP connection from the loopback address with this last byte.
    pub(super) async fn socket(&self, from: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, from), 0))).unwrap();
        socket.connect(self.address).await.unwrap()
    }

    /// A connection that offers these TLS versions and ALPN protocols.
    pub(super) async fn offer(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&str],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        self.handshake(self.socket(1).await, versions, protocols).await
    }

    async fn handshake(
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

    /// A connection like that of the API server, from the loopback address with this last byte.
    pub(super) async fn client_from(&self, from: u8) -> std::io::Result<Client> {
        let socket = self.socket(from).await;
        let stream = self.handshake(socket, &[&version::TLS13], &["http/1.1"]).await?;
        Ok(Client { stream, unread: Vec::new() })
    }

    pub(super) async fn client(&self) -> Client {
        self.client_from(1).await.unwrap()
    }

    /// Waits until the counter of this reason has reached `count`.
    pub(super) async fn wait_for_rejections(&self, reason: RejectReason, count: u64) {
        let reached = async {
            while self.metrics.count(reason) < count {
                time::sleep(Duration::from_millis(5)).await;
            }
        };
        let found = time::timeout(Duration::from_secs(20), reached).await;
        assert!(found.is_ok(), "{}: {} of {count}", reason.as_str(), self.metrics.count(reason));
    }
}

pub(super) struct Client {
    pub(super) stream: TlsStream<TcpStream>,
    unread: Vec<u8>,
}

/// One response.
#[derive(Debug)]
pub(super) struct HttpResponse {
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
    pub(super) async fn send(&mut self, bytes: &[u8]) {
        // The server may have closed the connection; the reader finds out.
        self.stream.write_all(bytes).await.ok();
        self.stream.flush().await.ok();
    }

    pub(super) async fn request(&mut self, path: &str, body: &[u8]) -> Option<HttpResponse> {
        self.send(&post(path, body)).await;
        self.receive().await
    }

    /// The next response, or none if the server closes the connection first.
    pub(super) async fn receive(&mut self) -> Option<HttpResponse> {
        loop {
            if let Some((response, used)) = parse_response(&self.unread) {
                self.unread.drain(..used);
                return Some(response);
            }
            let mut buffer = vec![0_u8; 16 * 1024];
            match self.stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.unread.extend_from_slice(&buffer[..count]),
            }
        }
    }

    /// Whether the server closes the connection within a generous time.
    pub(super) async fn is_closed(&mut self) -> bool {
        let response = time::timeout(Duration::from_secs(20), self.receive()).await;
        matches!(response, Ok(None))
    }
}

fn parse_response(bytes: &[u8]) -> Option<(HttpResponse, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?.saturating_add(4);
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = |line: &str| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok();
    // Only an interim response may lack a length.
    let length = head.lines().find_map(length).unwrap_or(0);
    let all = end.saturating_add(length);
    let body = bytes.get(end..all)?.to_vec();
    Some((HttpResponse { status, head, body }, all))
}
