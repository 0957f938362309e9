//! The webhook server in a separate process, so that its memory can be measured, and connections to
//! it from any loopback address.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate::webhook::testing::TestServer;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, version};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Environment variable of the server process.
const IS_SERVER: &str = "QUORATE_WEBHOOK_ABUSE_SERVER";
const NAME: &str = "quorate-webhook.quorate-system.svc";
/// Longer than any timeout of the server except that of idle connections.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(40);
/// Last byte of the address of legitimate clients.
pub(crate) const LEGITIMATE: u8 = 1;

/// The server process, as seen by its clients.
pub(crate) struct ServerProcess {
    pub(crate) address: SocketAddr,
    pub(crate) roots: RootCertStore,
    process: Child,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

/// Whether this process is the server.
pub(crate) fn is_server() -> bool {
    std::env::var_os(IS_SERVER).is_some()
}

/// Runs the server: prints its address and certificate, prints its metrics for each line on stdin,
/// and stops with its parent.
pub(crate) fn run() {
    let generated = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(generated.signing_key.serialize_der()).unwrap();
    let provider = ring::default_provider();
    let chain = vec![generated.cert.der().clone()];
    let server = Arc::new(TestServer::new(CertifiedKey::from_der(chain, key, &provider).unwrap()));
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let hex: Vec<String> = generated.cert.der().iter().map(|byte| format!("{byte:02x}")).collect();
    print(&format!("{} {}\n", listener.local_addr().unwrap(), hex.concat()));
    let (stop, stopped) = oneshot::channel::<()>();
    let served = Arc::clone(&server);
    let serving = runtime.spawn(async move {
        let stopped = async {
            stopped.await.ok();
        };
        served.serve(listener, std::future::pending(), stopped).await.unwrap();
    });
    for line in std::io::stdin().lines() {
        line.unwrap();
        print(&server.metrics_text());
    }
    stop.send(()).unwrap();
    runtime.block_on(serving).unwrap();
}

fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).unwrap();
    out.flush().unwrap();
}

impl ServerProcess {
    /// Starts this test binary again, as the server.
    pub(crate) fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .env(IS_SERVER, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = process.stdin.take().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let (address, hex) = line.trim().split_once(' ').unwrap();
        let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        let der: Vec<u8> = pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(der)).unwrap();
        let address = address.parse().unwrap();
        Self { address, roots, process, pipes: Mutex::new((stdin, stdout)) }
    }

    /// The metrics of the server.
    pub(crate) fn metrics(&self) -> String {
        let mut pipes = self.pipes.lock().unwrap();
        pipes.0.write_all(b"\n").unwrap();
        pipes.0.flush().unwrap();
        let mut text = String::new();
        while !text.ends_with("# EOF\n") {
            assert!(pipes.1.read_line(&mut text).unwrap() > 0, "the server has stopped");
        }
        text
    }

    /// The value of a metric, by name and labels.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.metrics();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("{name} does not exist")).parse().unwrap()
    }

    /// Peak and current memory in MiB.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let path = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(path).unwrap();
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
        };
        (value("VmHWM:"), value("VmRSS:"))
    }

    /// Stops the server and waits for its exit.
    pub(crate) fn stop(self) {
        let Self { mut process, pipes, .. } = self;
        drop(pipes);
        assert!(process.wait().unwrap().success());
    }

    /// A TCP connection from the loopback address with this last byte.
    pub(crate) async fn socket(&self, from: u8) -> std::io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, from), 0)))?;
        let stream = socket.connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// A connection like that of the API server.
    pub(crate) async fn connect(&self, from: u8) -> std::io::Result<Client> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&version::TLS13])
            .unwrap()
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let (input, output) = tokio::io::split(self.handshake(from, config).await?);
        Ok(Client { input, output, unread: Vec::new() })
    }

    /// A TLS handshake with this configuration.
    pub(crate) async fn handshake(
        &self,
        from: u8,
        config: ClientConfig,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let socket = self.socket(from).await?;
        let name = ServerName::try_from(NAME).unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, socket).await
    }
}

/// One connection.
pub(crate) struct Client {
    pub(crate) input: ReadHalf<TlsStream<TcpStream>>,
    pub(crate) output: WriteHalf<TlsStream<TcpStream>>,
    unread: Vec<u8>,
}

/// One response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// Outcome of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    Response(Response),
    /// The server closed the connection.
    Closed,
    /// No response within the timeout.
    NoResponse,
}

impl Client {
    /// Sends while it receives, because the response may come before the end of the request.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Outcome {
        let Self { input, output, unread } = self;
        let send = async {
            output.write_all(bytes).await.ok();
            output.flush().await.ok();
            std::future::pending::<Outcome>().await
        };
        let receive = async {
            match timeout(RESPONSE_TIMEOUT, receive(input, unread)).await {
                Ok(Some(response)) => Outcome::Response(response),
                Ok(None) => Outcome::Closed,
                Err(_) => Outcome::NoResponse,
            }
        };
        tokio::select! {
            outcome = send => outcome,
            outcome = receive => outcome,
        }
    }
}

/// The next response that is not an interim one; `None` if the server closes the connection.
async fn receive(
    input: &mut ReadHalf<TlsStream<TcpStream>>,
    unread: &mut Vec<u8>,
) -> Option<Response> {
    loop {
        while let Some((response, used)) = parse_response(unread) {
            unread.drain(..used);
            if response.status >= 200 {
                return Some(response);
            }
        }
        let mut buffer = vec![0_u8; 64 * 1024];
        match input.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => unread.extend_from_slice(&buffer[..count]),
        }
    }
}

fn parse_response(bytes: &[u8]) -> Option<(Response, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = |line: &str| line.strip_prefix("content-length: ")?.parse::<usize>().ok();
    let length = head.lines().find_map(length).unwrap_or(0);
    let body = bytes.get(end..end + length)?.to_vec();
    Some((Response { status, body }, end + length))
}

/// A request as the API server sends it.
pub(crate) fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}
