//! What is spoken here, and what is answered to everything else.

use rustls::version::{TLS12, TLS13};
use tokio::io::AsyncWriteExt;

use super::rig::{Client, Heard, limits, open, port, post};
use super::*;

#[tokio::test]
async fn every_errand_is_answered_on_one_connection_and_nothing_tells_what_answers() {
    let port = port().await;
    let mut client = port.client().await;
    for (path, errand) in
        [("/mutate?timeout=9s", "Mutate"), ("/validate", "Validate"), ("/convert", "Convert")]
    {
        let Heard { status, head, body } = client.ask(path, b"{}").await.unwrap();
        assert_eq!(
            (status, body),
            (200, format!("{{\"errand\":\"{errand}\",\"bytes\":2}}").into())
        );
        let head = head.to_lowercase();
        assert!(head.contains("content-type: application/json\r\n"), "{head}");
        assert!(head.contains("content-length: ") && !head.contains("server:"), "{head}");
        assert!(!head.contains("connection: close"), "{head}");
    }
}

#[tokio::test]
async fn a_client_that_speaks_only_http_2_is_refused_in_the_handshake() {
    let port = port().await;
    assert!(port.offer(&[&TLS13], &["h2"]).await.is_err());
    let both = port.offer(&[&TLS13], &["h2", "http/1.1"]).await.unwrap();
    assert_eq!(both.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert!(port.offer(&[&TLS13], &[]).await.is_ok());
    port.refused(Refused::Handshake, 1).await;
}

#[tokio::test]
async fn a_client_that_speaks_only_tls_1_2_is_refused() {
    let port = port().await;
    assert!(port.offer(&[&TLS12], &["http/1.1"]).await.is_err());
    assert!(port.offer(&[&TLS12, &TLS13], &["http/1.1"]).await.is_ok());
    port.refused(Refused::Handshake, 1).await;
}

#[tokio::test]
async fn http_2_inside_an_honest_handshake_is_not_http() {
    let port = port().await;
    let mut client = port.client().await;
    client.say(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    let heard = client.hear().await;
    assert!(heard.is_none_or(|heard| heard.status >= 400));
    assert!(client.is_hung_up().await);
    port.refused(Refused::Malformed, 1).await;
}

async fn said(client: &mut Client, request: &str) -> Heard {
    client.say(request.as_bytes()).await;
    client.hear().await.unwrap()
}

#[tokio::test]
async fn whoever_asks_for_something_else_is_told_what_to_ask_for() {
    let port = port().await;
    let json = "Content-Type: application/json\r\nContent-Length: 2\r\n";
    for (request, status, words) in [
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
        let mut client = port.client().await;
        let heard = said(&mut client, &request).await;
        assert_eq!(heard.status, status, "{request}");
        assert!(String::from_utf8_lossy(&heard.body).contains(words), "{heard:?}");
        assert!(heard.head.to_lowercase().contains("content-type: text/plain"), "{heard:?}");
        // A body that has come already does not cost the connection.
        assert_eq!(client.ask("/convert", b"{}").await.unwrap().status, 200, "{request}");
    }
    port.refused(Refused::Path, 1).await;
    port.refused(Refused::Method, 2).await;
    port.refused(Refused::MediaType, 2).await;
}

fn small() -> Limits {
    Limits { admission_bytes: 1000, conversion_bytes: 4000, ..limits() }
}

#[tokio::test]
async fn a_body_beyond_its_limit_is_too_large_and_one_at_its_limit_is_not() {
    let port = open(small(), rig::echo).await;
    for (path, limit) in [("/mutate", 1000), ("/validate", 1000), ("/convert", 4000)] {
        let at_limit = vec![b' '; limit];
        let beyond = vec![b' '; limit.saturating_add(1)];
        let mut client = port.client().await;
        assert_eq!(client.ask(path, &at_limit).await.unwrap().status, 200);
        assert_eq!(client.ask(path, &beyond).await.unwrap().status, 413);
        assert!(client.is_hung_up().await);
    }
    port.refused(Refused::TooLarge, 3).await;
}

#[tokio::test]
async fn an_endless_body_is_told_that_it_is_too_large() {
    let limits = Limits { goodbye: Duration::from_mins(1), ..small() };
    let port = open(limits, rig::echo).await;
    let mut client = port.client().await;
    let head = "POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    client.say(head.as_bytes()).await;
    let chunks = format!("100\r\n{}\r\n", " ".repeat(256)).repeat(400);
    // More than the limit and more than is read: it is still there when the answer comes.
    client.say(chunks.as_bytes()).await;
    assert_eq!(client.hear().await.unwrap().status, 413);
    assert!(client.is_hung_up().await);
    // A client that is still writing finds no error before it has read that.
    for _ in 0..5 {
        time::sleep(Duration::from_millis(20)).await;
        client.stream.write_all(chunks.as_bytes()).await.unwrap();
        client.stream.flush().await.unwrap();
    }
}

#[tokio::test]
async fn a_promise_of_much_takes_no_memory_and_is_refused_at_once_beyond_the_limit() {
    let port = port().await;
    let head = |length: &str| {
        format!(
            "POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    };
    assert_eq!(said(&mut port.client().await, &head("8388609")).await.status, 413);
    // What is no length, or none that a number can hold, is refused before that.
    for length in ["18446744073709551615", "99999999999999999999", "-1", "+5", "5, 6", "0x5", ""] {
        let status = said(&mut port.client().await, &head(length)).await.status;
        assert!((400..500).contains(&status), "{length}: {status}");
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let port = port().await;
    let mut client = port.client().await;
    let mut all = post("/mutate", b"1");
    all.extend(post("/convert", b"22"));
    all.extend(post("/validate", b"333"));
    client.say(&all).await;
    for (errand, bytes) in [("Mutate", 1), ("Convert", 2), ("Validate", 3)] {
        let body = client.hear().await.unwrap().body;
        assert_eq!(body, format!("{{\"errand\":\"{errand}\",\"bytes\":{bytes}}}").into_bytes());
    }
}
