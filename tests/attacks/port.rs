//! The port under attack, in a process of its own, so that its memory is its own, too; and the
//! connections to it, from any loopback address.

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

/// Set for the process that is the port.
const IS_PORT: &str = "QUORATE_ATTACKED";
const NAME: &str = "quorate-webhook.quorate-system.svc";
/// Longer than any limit of the port but that of idle connections.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);
/// The last number of the honest client's address.
pub(crate) const HONEST: u8 = 1;

/// The port, as its attackers see it.
pub(crate) struct Port {
    pub(crate) address: SocketAddr,
    pub(crate) roots: RootCertStore,
    process: Child,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

/// Whether this process is to be the port.
pub(crate) fn is_port() -> bool {
    std::env::var_os(IS_PORT).is_some()
}

/// Is the port: says where it is, tells what it measures when asked, ends with its parent.
pub(crate) fn be_port() {
    let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = ring::default_provider();
    let chain = vec![made.cert.der().clone()];
    let stand = Arc::new(TestServer::new(CertifiedKey::from_der(chain, key, &provider).unwrap()));
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let hex: Vec<String> = made.cert.der().iter().map(|byte| format!("{byte:02x}")).collect();
    say(&format!("{} {}\n", listener.local_addr().unwrap(), hex.concat()));
    let (stop, stopped) = oneshot::channel::<()>();
    let served = Arc::clone(&stand);
    let serving = runtime.spawn(async move {
        let stopped = async {
            stopped.await.ok();
        };
        served.serve(listener, std::future::pending(), stopped).await.unwrap();
    });
    for line in std::io::stdin().lines() {
        line.unwrap();
        say(&stand.metrics_text());
    }
    stop.send(()).unwrap();
    runtime.block_on(serving).unwrap();
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).unwrap();
    out.flush().unwrap();
}

impl Port {
    /// Starts this very program again, as the port.
    pub(crate) fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .env(IS_PORT, "1")
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

    /// What it has measured.
    pub(crate) fn measured(&self) -> String {
        let mut pipes = self.pipes.lock().unwrap();
        pipes.0.write_all(b"\n").unwrap();
        pipes.0.flush().unwrap();
        let mut text = String::new();
        while !text.ends_with("# EOF\n") {
            assert!(pipes.1.read_line(&mut text).unwrap() > 0, "the port has ended");
        }
        text
    }

    /// The number behind that name and those labels.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.measured();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("{name} is not measured")).parse().unwrap()
    }

    /// The most memory it has ever had, and what it has now, in MiB.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let path = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(path).unwrap();
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
        };
        (of("VmHWM:"), of("VmRSS:"))
    }

    /// Ends it, and waits until it has.
    pub(crate) fn end(self) {
        let Self { mut process, pipes, .. } = self;
        drop(pipes);
        assert!(process.wait().unwrap().success());
    }

    /// A bare socket from a loopback address with that last number.
    pub(crate) async fn socket(&self, from: u8) -> std::io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, from), 0)))?;
        let stream = socket.connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// A connection like the API server's.
    pub(crate) async fn connect(&self, from: u8) -> std::io::Result<Client> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&version::TLS13])
            .unwrap()
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let (input, output) = tokio::io::split(self.shake(from, config).await?);
        Ok(Client { input, output, unread: Vec::new() })
    }

    /// A handshake with that configuration.
    pub(crate) async fn shake(
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
pub(crate) struct Heard {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// What came of what was said.
#[derive(Debug)]
pub(crate) enum Result {
    Heard(Heard),
    HungUp,
    Silence,
}

impl Client {
    /// Says all of it while it listens, because the answer may come before the end.
    pub(crate) async fn ask(&mut self, bytes: &[u8]) -> Result {
        let Self { input, output, unread } = self;
        let say = async {
            output.write_all(bytes).await.ok();
            output.flush().await.ok();
            std::future::pending::<Result>().await
        };
        let hear = async {
            match timeout(PATIENCE, hear(input, unread)).await {
                Ok(Some(heard)) => Result::Heard(heard),
                Ok(None) => Result::HungUp,
                Err(_) => Result::Silence,
            }
        };
        tokio::select! {
            result = say => result,
            result = hear => result,
        }
    }
}

/// The next response that is not an interim one, or none if the other end hangs up before.
async fn hear(input: &mut ReadHalf<TlsStream<TcpStream>>, unread: &mut Vec<u8>) -> Option<Heard> {
    loop {
        while let Some((heard, used)) = whole(unread) {
            unread.drain(..used);
            if heard.status >= 200 {
                return Some(heard);
            }
        }
        let mut space = vec![0_u8; 64 * 1024];
        match input.read(&mut space).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => unread.extend_from_slice(&space[..count]),
        }
    }
}

fn whole(bytes: &[u8]) -> Option<(Heard, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = |line: &str| line.strip_prefix("content-length: ")?.parse::<usize>().ok();
    let length = head.lines().find_map(length).unwrap_or(0);
    let body = bytes.get(end..end + length)?.to_vec();
    Some((Heard { status, body }, end + length))
}

/// A request as the API server would send it.
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
