//! Protocol: TLS, HTTP versions, paths, methods, media types and body limits.

use rustls::version::{TLS12, TLS13};
use tokio::io::AsyncWriteExt;

use super::fixture::{Client, HttpResponse, limits, post, start, start_default};
use super::*;

#[tokio::test]
async fn every_review_type_is_served_on_one_connection_without_a_server_header() {
    let server = start_default().await;
    let mut client = server.client().await;
    for (path, review_type) in
        [("/mutate?timeout=9s", "Mutate"), ("/validate", "Validate"), ("/convert", "Convert")]
    {
        let HttpResponse { status, head, body } = client.request(path, b"{}").await.unwrap();
        assert_eq!(
            (status, body),
            (200, format!("{{\"type\":\"{review_type}\",\"bytes\":2}}").into())
        );
        let head = head.to_lowercase();
        assert!(head.contains("content-type: application/json\r\n"), "{head}");
        assert!(head.contains("content-length: ") && !head.contains("server:"), "{head}");
        assert!(!head.contains("connection: close"), "{head}");
    }
}

#[tokio::test]
async fn client_that_offers_only_http_2_is_rejected_in_the_handshake() {
    let server = start_default().await;
    assert!(server.offer(&[&TLS13], &["h2"]).await.is_err());
    let both = server.offer(&[&TLS13], &["h2", "http/1.1"]).await.unwrap();
    assert_eq!(both.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert!(server.offer(&[&TLS13], &[]).await.is_ok());
    server.wait_for_rejections(RejectReason::Handshake, 1).await;
}

#[tokio::test]
async fn client_that_offers_only_tls_1_2_is_rejected() {
    let server = start_default().await;
    assert!(server.offer(&[&TLS12], &["http/1.1"]).await.is_err());
    assert!(server.offer(&[&TLS12, &TLS13], &["http/1.1"]).await.is_ok());
    server.wait_for_rejections(RejectReason::Handshake, 1).await;
}

#[tokio::test]
async fn http_2_after_a_valid_handshake_is_malformed() {
    let server = start_default().await;
    let mut client = server.client().await;
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    let response = client.receive().await;
    assert!(response.is_none_or(|response| response.status >= 400));
    assert!(client.is_closed().await);
    server.wait_for_rejections(RejectReason::Malformed, 1).await;
}

async fn send_and_receive(client: &mut Client, request: &str) -> HttpResponse {
    client.send(request.as_bytes()).await;
    client.receive().await.unwrap()
}

#[tokio::test]
async fn unsupported_requests_get_a_message_with_the_remedy() {
    let server = start_default().await;
    let json = "Content-Type: application/json\r\nContent-Length: 2\r\n";
    for (request, status, message) in [
        (format!("POST /nowhere HTTP/1.1\r\nHost: a\r\n{json}\r\n{{}}"), 404, "/convert"),
        (format!("PUT /convert HTTP/1.1\r\nHost: a\r\n{json}\r\n{{}}"), 405, "POST"),
        ("GET /mutate HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 405, "POST"),
        (
            format!(
                "POST /convert HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n{json}\r\n{{}}"
            ),
            415,
            "application/json",
        ),
        (
            "POST /convert HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}".to_owned(),
            415,
            "application/json",
        ),
    ] {
        let mut client = server.client().await;
        let response = send_and_receive(&mut client, &request).await;
        assert_eq!(response.status, status, "{request}");
        assert!(String::from_utf8_lossy(&response.body).contains(message), "{response:?}");
        assert!(response.head.to_lowercase().contains("content-type: text/plain"), "{response:?}");
        // A body that has already arrived does not cost the connection.
        assert_eq!(client.request("/convert", b"{}").await.unwrap().status, 200, "{request}");
    }
    server.wait_for_rejections(RejectReason::Path, 1).await;
    server.wait_for_rejections(RejectReason::Method, 2).await;
    server.wait_for_rejections(RejectReason::MediaType, 2).await;
}

fn small() -> Limits {
    Limits { admission_bytes: 1000, conversion_bytes: 4000, ..limits() }
}

#[tokio::test]
async fn body_at_its_limit_is_accepted_and_one_byte_more_is_rejected() {
    let server = start(small(), fixture::echo).await;
    for (path, limit) in [("/mutate", 1000), ("/validate", 1000), ("/convert", 4000)] {
        let at_limit = vec![b' '; limit];
        let beyond = vec![b' '; limit.saturating_add(1)];
        let mut client = server.client().await;
        assert_eq!(client.request(path, &at_limit).await.unwrap().status, 200);
        assert_eq!(client.request(path, &beyond).await.unwrap().status, 413);
        assert!(client.is_closed().await);
    }
    server.wait_for_rejections(RejectReason::TooLarge, 3).await;
}

#[tokio::test]
async fn endless_body_gets_413() {
    let limits = Limits { drain_timeout: Duration::from_mins(1), ..small() };
    let server = start(limits, fixture::echo).await;
    let mut client = server.client().await;
    let head = "POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    client.send(head.as_bytes()).await;
    let chunks = format!("100\r\n{}\r\n", " ".repeat(256)).repeat(400);
    // More than the limit and more than is read: it is still unread when the response is sent.
    client.send(chunks.as_bytes()).await;
    assert_eq!(client.receive().await.unwrap().status, 413);
    assert!(client.is_closed().await);
    // A client that is still writing gets no error before it has read the response.
    for _ in 0..5 {
        time::sleep(Duration::from_millis(20)).await;
        client.stream.write_all(chunks.as_bytes()).await.unwrap();
        client.stream.flush().await.unwrap();
    }
}

#[tokio::test]
async fn content_length_beyond_the_limit_is_rejected_before_the_body() {
    let server = start_default().await;
    let head = |length: &str| {
        format!(
            "POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    };
    assert_eq!(send_and_receive(&mut server.client().await, &head("8388609")).await.status, 413);
    // Invalid lengths, and lengths out of range, are rejected before that.
    for length in ["18446744073709551615", "99999999999999999999", "-1", "+5", "5, 6", "0x5", ""] {
        let status = send_and_receive(&mut server.client().await, &head(length)).await.status;
        assert!((400..500).contains(&status), "{length}: {status}");
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = start_default().await;
    let mut client = server.client().await;
    let mut all = post("/mutate", b"1");
    all.extend(post("/convert", b"22"));
    all.extend(post("/validate", b"333"));
    client.send(&all).await;
    for (review_type, bytes) in [("Mutate", 1), ("Convert", 2), ("Validate", 3)] {
        let body = client.receive().await.unwrap().body;
        assert_eq!(body, format!("{{\"type\":\"{review_type}\",\"bytes\":{bytes}}}").into_bytes());
    }
}
