//! Hostile HTTP: inconsistent lengths, malformed headers and unsupported methods.

use super::rng::Rng;
use super::server_process::post;

/// A hostile request on one connection, and the expected outcome.
pub(crate) struct Request {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) expected: Expected,
}

/// Expected outcome.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    /// One of these status codes.
    Status(&'static [u16]),
    /// An error response, or a closed connection.
    NoSuccess,
    /// A response; a success must be a review with this uid.
    Review(Option<String>),
    /// Any response, or a closed connection.
    Any,
}

const MIB: usize = 1 << 20;
const JSON: &str = "Host: a\r\nContent-Type: application/json\r\n";

fn request(name: &'static str, bytes: impl Into<Vec<u8>>, expected: Expected) -> Request {
    Request { name, bytes: bytes.into(), expected }
}

/// Large requests, once each. On a busy machine they may time out, with a response.
pub(crate) fn large() -> Vec<Request> {
    let at = |path: &str, length: usize| post(path, &vec![b' '; length]);
    let review = Expected::Review(None);
    let too_large = Expected::Status(&[413]);
    let busy_or_too_large = Expected::Status(&[408, 413, 503]);
    let head = format!("POST /convert HTTP/1.1\r\n{JSON}Transfer-Encoding: chunked\r\n\r\n");
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(MIB));
    let endless = [head.as_bytes(), chunk.repeat(100).as_bytes()].concat();
    let extensions =
        format!("{head}{}0\r\n\r\n", format!("1;{}\r\n \r\n", "x".repeat(2000)).repeat(3000));
    vec![
        request("one byte less than the limit", at("/mutate", 8 * MIB - 1), review.clone()),
        request("body at the limit", at("/validate", 8 * MIB), review.clone()),
        request("one byte more than the limit", at("/mutate", 8 * MIB + 1), too_large.clone()),
        request(
            "conversion at the limit",
            at("/convert", 32 * MIB),
            Expected::Status(&[400, 408, 503]),
        ),
        request("one byte more than a conversion limit", at("/convert", 32 * MIB + 1), too_large),
        request("a hundred megabytes in chunks", endless, busy_or_too_large),
        request("a flood of chunk extensions", extensions, Expected::NoSuccess),
    ]
}

/// A random small request.
pub(crate) fn small(rng: &mut Rng) -> Request {
    let at = rng.below(FIXED.len() + 8);
    if let Some((name, text, statuses)) = FIXED.get(at) {
        let text = text.replace("{JSON}", JSON);
        let expected =
            if statuses.is_empty() { Expected::NoSuccess } else { Expected::Status(statuses) };
        return request(name, text, expected);
    }
    let length = rng.below(3000);
    match at - FIXED.len() {
        0 => request("an empty body", post("/mutate", b""), Expected::Review(None)),
        1 => request("one byte", post("/convert", &[rng.byte()]), Expected::Review(None)),
        2 => request("random body", post("/validate", &rng.bytes(length)), Expected::Review(None)),
        3 => request("random request", rng.bytes(length), Expected::NoSuccess),
        4 => {
            let name = "x".repeat(64 * 1024);
            let text = format!("POST /convert HTTP/1.1\r\n{JSON}{name}: 1\r\n\r\n");
            request("a header of 64 KiB", text, Expected::Status(&[400, 431]))
        }
        5 => {
            let many = "A: b\r\n".repeat(10_000);
            let text = format!("POST /convert HTTP/1.1\r\n{JSON}{many}\r\n");
            request("ten thousand headers", text, Expected::Status(&[400, 431]))
        }
        6 => {
            let text = format!("POST /{} HTTP/1.1\r\n{JSON}\r\n", "a/".repeat(40_000));
            request("a path of 80 kB", text, Expected::Status(&[400, 404, 414, 431]))
        }
        _ => {
            let mut bytes = post("/mutate", b"{\"apiVersion\":\"admission.k8s.io/v1\"}");
            rng.disturb(&mut bytes);
            // The request ends here, whatever it became.
            bytes.extend_from_slice(b"\r\n\r\n");
            request("a disturbed request", bytes, Expected::Any)
        }
    }
}

/// Short requests. Without status codes: an error response or a closed connection.
const FIXED: &[(&str, &str, &[u16])] = &[
    (
        "a length and chunks",
        "POST /convert HTTP/1.1\r\n{JSON}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        &[400],
    ),
    (
        "two lengths",
        "POST /convert HTTP/1.1\r\n{JSON}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        &[],
    ),
    ("a negative length", "POST /convert HTTP/1.1\r\n{JSON}Content-Length: -1\r\n\r\n{}", &[]),
    ("a length with a sign", "POST /convert HTTP/1.1\r\n{JSON}Content-Length: +2\r\n\r\n{}", &[]),
    (
        "a length out of range",
        "POST /convert HTTP/1.1\r\n{JSON}Content-Length: 99999999999999999999\r\n\r\n{}",
        &[],
    ),
    (
        "chunks twice",
        "POST /convert HTTP/1.1\r\n{JSON}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        &[],
    ),
    (
        "chunked is not the last encoding",
        "POST /convert HTTP/1.1\r\n{JSON}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        &[],
    ),
    (
        "a chunk without a size",
        "POST /convert HTTP/1.1\r\n{JSON}Transfer-Encoding: chunked\r\n\r\nz\r\n\r\n",
        &[],
    ),
    (
        "a chunk size out of range",
        "POST /convert HTTP/1.1\r\n{JSON}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n",
        &[],
    ),
    (
        "a compressed body",
        "POST /convert HTTP/1.1\r\n{JSON}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\u{1f}\r\n\r\n",
        &[415],
    ),
    (
        "a multipart body",
        "POST /convert HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 2\r\n\r\n{}",
        &[415],
    ),
    ("no content type", "POST /convert HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", &[415]),
    (
        "another content type",
        "POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Type: application/yaml\r\nContent-Length: 2\r\n\r\n{}",
        &[415],
    ),
    ("GET", "GET /convert HTTP/1.1\r\nHost: a\r\n\r\n", &[405]),
    ("HEAD", "HEAD /mutate HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", &[]),
    ("DELETE", "DELETE /validate HTTP/1.1\r\nHost: a\r\n\r\n", &[405]),
    ("TRACE", "TRACE /validate HTTP/1.1\r\nHost: a\r\n\r\n", &[405]),
    ("CONNECT", "CONNECT somewhere:443 HTTP/1.1\r\nHost: a\r\n\r\n", &[400, 404, 405]),
    ("OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", &[404]),
    ("an unknown method", "BREW /convert HTTP/1.1\r\nHost: a\r\n\r\n", &[405]),
    ("another path", "POST /metrics HTTP/1.1\r\n{JSON}Content-Length: 2\r\n\r\n{}", &[404]),
    ("a pprof path", "GET /debug/pprof/heap HTTP/1.1\r\nHost: a\r\n\r\n", &[404]),
    (
        "a path traversal",
        "POST /../../etc/passwd HTTP/1.1\r\n{JSON}Content-Length: 2\r\n\r\n{}",
        &[404],
    ),
    (
        "an encoded path traversal",
        "POST /convert/%2e%2e/mutate HTTP/1.1\r\n{JSON}Content-Length: 2\r\n\r\n{}",
        &[404],
    ),
    ("an absolute URL", "GET http://169.254.169.254/latest HTTP/1.1\r\nHost: a\r\n\r\n", &[404]),
    (
        "an upgrade",
        "POST /nowhere HTTP/1.1\r\n{JSON}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nContent-Length: 2\r\n\r\n{}",
        &[404],
    ),
    ("HTTP/2 by prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0", &[]),
    ("HTTP/3.0", "POST /convert HTTP/3.0\r\n{JSON}\r\n\r\n", &[]),
    ("HTTP/0.9", "GET /convert\r\n\r\n", &[]),
    ("a folded header", "POST /convert HTTP/1.1\r\n{JSON}A: b\r\n c\r\n\r\n", &[]),
    ("a header with a space", "POST /convert HTTP/1.1\r\n{JSON}Content-Length : 2\r\n\r\n{}", &[]),
    ("a header with a NUL", "POST /convert HTTP/1.1\r\n{JSON}A: \0\r\n\r\n", &[]),
    ("only line ends", "\r\n\r\n\r\n\r\n\0", &[]),
    (
        "expect continue",
        "POST /convert HTTP/1.1\r\n{JSON}Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n",
        &[413],
    ),
    (
        "request smuggling",
        "POST /nowhere HTTP/1.1\r\n{JSON}Content-Length: 0\r\n\r\nGET /convert HTTP/1.1\r\nHost: a\r\n\r\n",
        &[404],
    ),
];
