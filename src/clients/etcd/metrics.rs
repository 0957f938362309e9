//! Reads the metrics of a member.
//!
//! The port is plaintext, because the kubelet probes it too; nothing is sent to it, and the size of
//! the response is bounded.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time;

use crate::api::names;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// Many times the metrics of a member.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Why the metrics could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MetricsError {
    /// The port is unreachable.
    #[error("failed to connect to the metrics port of a member")]
    Connect(#[source] io::Error),
    /// The call failed.
    #[error("failed to read the metrics of a member")]
    Call(#[source] hyper::Error),
    /// The response is incomplete, or too long.
    #[error("failed to read the metrics of a member: the response is incomplete or too long")]
    Body,
    /// The response has another status than 200.
    #[error("failed to read the metrics of a member: the response is {0}")]
    Status(StatusCode),
    /// No response came in time.
    #[error("failed to read the metrics of a member: no response within {}ms", REQUEST_TIMEOUT.as_millis())]
    TimedOut,
}

/// The metrics of the member at an address.
pub(crate) async fn metrics(address: IpAddr) -> Result<String, MetricsError> {
    time::timeout(REQUEST_TIMEOUT, read(address, names::ETCD_METRICS_PORT))
        .await
        .unwrap_or(Err(MetricsError::TimedOut))
}

async fn read(address: IpAddr, port: u16) -> Result<String, MetricsError> {
    let stream = TcpStream::connect((address, port)).await.map_err(MetricsError::Connect)?;
    let (mut sender, connection) =
        handshake(TokioIo::new(stream)).await.map_err(MetricsError::Call)?;
    let request = http::Request::get("/metrics").header(http::header::HOST, "metrics");
    // A request of constants is always valid.
    let request = request.body(Empty::<Bytes>::new()).or(Err(MetricsError::Body))?;
    let response = async {
        let response = sender.send_request(request).await.map_err(MetricsError::Call)?;
        if response.status() != StatusCode::OK {
            return Err(MetricsError::Status(response.status()));
        }
        let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
        let body = body.or(Err(MetricsError::Body))?.to_bytes();
        Ok(String::from_utf8_lossy(&body).into_owned())
    };
    // The connection must be polled too, and ends with the response.
    tokio::pin!(response);
    tokio::select! {
        result = &mut response => result,
        ended = connection => match ended {
            Ok(()) => response.await,
            Err(error) => Err(MetricsError::Call(error)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    async fn member(response: String) -> u16 {
        let listener = TcpListener::bind((LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await.unwrap();
            drop(stream.write_all(response.as_bytes()).await);
        });
        port
    }

    #[tokio::test]
    async fn metrics_are_read_completely_or_not_at_all() {
        let response = |length: usize, body: &str| {
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
        };
        let port = member(response(9, "figures 1")).await;
        assert_eq!(read(LOCALHOST, port).await.unwrap(), "figures 1");
        let port = member(response(10, "figures 1")).await;
        assert!(matches!(
            read(LOCALHOST, port).await,
            Err(MetricsError::Body | MetricsError::Call(_))
        ));
        let port = member(response(MAX_BYTES + 1, &"1".repeat(MAX_BYTES + 1))).await;
        assert!(matches!(read(LOCALHOST, port).await, Err(MetricsError::Body)));
        let port = member("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
        assert!(matches!(read(LOCALHOST, port).await, Err(MetricsError::Status(_))));
    }
}
