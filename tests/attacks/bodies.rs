//! Hostile HTTP: bodies that lie about themselves, and heads that nobody sends by accident.

use super::dice::Dice;
use super::port::post;

/// What an attacker sends on one connection, and what it may get.
pub(crate) struct Strike {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) may: May,
}

/// What may come back.
#[derive(Clone, Debug)]
pub(crate) enum May {
    /// One of these.
    Status(&'static [u16]),
    /// Any response that is no success, or the end of the connection.
    NoSuccess,
    /// Some response; if it is a success, it is a review with this uid.
    Review(Option<String>),
    /// Any response, or the end of the connection; but one of them.
    End,
}

const MIB: usize = 1 << 20;
const JSON: &str = "Host: a\r\nContent-Type: application/json\r\n";

fn strike(name: &'static str, bytes: impl Into<Vec<u8>>, may: May) -> Strike {
    Strike { name, bytes: bytes.into(), may }
}

/// Those that are big, once each. A machine that is busy enough takes too long for them, and then
/// they are told so.
pub(crate) fn big() -> Vec<Strike> {
    let at = |path: &str, length: usize| post(path, &vec![b' '; length]);
    let read = May::Review(None);
    let large = May::Status(&[413]);
    let busy_or_large = May::Status(&[408, 413, 503]);
    let head = format!("POST /convert HTTP/1.1\r\n{JSON}Transfer-Encoding: chunked\r\n\r\n");
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(MIB));
    let endless = [head.as_bytes(), chunk.repeat(100).as_bytes()].concat();
    let extensions =
        format!("{head}{}0\r\n\r\n", format!("1;{}\r\n \r\n", "x".repeat(2000)).repeat(3000));
    vec![
        strike("one byte less than allowed", at("/mutate", 8 * MIB - 1), read.clone()),
        strike("as much as allowed", at("/validate", 8 * MIB), read.clone()),
        strike("one byte more than allowed", at("/mutate", 8 * MIB + 1), large.clone()),
        strike(
            "as much as a conversion may have",
            at("/convert", 32 * MIB),
            May::Status(&[400, 408, 503]),
        ),
        strike("one byte more than that", at("/convert", 32 * MIB + 1), large),
        strike("a hundred megabytes in chunks", endless, busy_or_large),
        strike("a flood of chunk extensions", extensions, May::NoSuccess),
    ]
}

/// Those that are small, in any number.
pub(crate) fn small(dice: &mut Dice) -> Strike {
    let at = dice.below(FIXED.len() + 8);
    if let Some((name, text, statuses)) = FIXED.get(at) {
        let text = text.replace("{JSON}", JSON);
        let may = if statuses.is_empty() { May::NoSuccess } else { May::Status(statuses) };
        return strike(name, text, may);
    }
    let length = dice.below(3000);
    match at - FIXED.len() {
        0 => strike("an empty body", post("/mutate", b""), May::Review(None)),
        1 => strike("one byte", post("/convert", &[dice.byte()]), May::Review(None)),
        2 => strike("noise for a body", post("/validate", &dice.bytes(length)), May::Review(None)),
        3 => strike("noise for a request", dice.bytes(length), May::NoSuccess),
        4 => {
            let name = "x".repeat(64 * 1024);
            let text = format!("POST /convert HTTP/1.1\r\n{JSON}{name}: 1\r\n\r\n");
            strike("a header of 64 KiB", text, May::Status(&[400, 431]))
        }
        5 => {
            let many = "A: b\r\n".repeat(10_000);
            let text = format!("POST /convert HTTP/1.1\r\n{JSON}{many}\r\n");
            strike("ten thousand headers", text, May::Status(&[400, 431]))
        }
        6 => {
            let text = format!("POST /{} HTTP/1.1\r\n{JSON}\r\n", "a/".repeat(40_000));
            strike("a path of 80 kB", text, May::Status(&[400, 404, 414, 431]))
        }
        _ => {
            let mut bytes = post("/mutate", b"{\"apiVersion\":\"admission.k8s.io/v1\"}");
            dice.disturb(&mut bytes);
            // Whatever it became, there is no more to come.
            bytes.extend_from_slice(b"\r\n\r\n");
            strike("a disturbed request", bytes, May::End)
        }
    }
}

/// Requests of a few lines. No status: anything but a success, or none.
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
        "a length beyond all numbers",
        "POST /convert HTTP/1.1\r\n{JSON}Content-Length: 99999999999999999999\r\n\r\n{}",
        &[],
    ),
    (
        "chunks twice",
        "POST /convert HTTP/1.1\r\n{JSON}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        &[],
    ),
    (
        "chunks that are not last",
        "POST /convert HTTP/1.1\r\n{JSON}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        &[],
    ),
    (
        "a chunk of no size",
        "POST /convert HTTP/1.1\r\n{JSON}Transfer-Encoding: chunked\r\n\r\nz\r\n\r\n",
        &[],
    ),
    (
        "a chunk beyond all numbers",
        "POST /convert HTTP/1.1\r\n{JSON}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n",
        &[],
    ),
    (
        "a packed body",
        "POST /convert HTTP/1.1\r\n{JSON}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\u{1f}\r\n\r\n",
        &[415],
    ),
    (
        "a body in parts",
        "POST /convert HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 2\r\n\r\n{}",
        &[415],
    ),
    ("no type", "POST /convert HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", &[415]),
    (
        "another type",
        "POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Type: application/yaml\r\nContent-Length: 2\r\n\r\n{}",
        &[415],
    ),
    ("GET", "GET /convert HTTP/1.1\r\nHost: a\r\n\r\n", &[405]),
    ("HEAD", "HEAD /mutate HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", &[]),
    ("DELETE", "DELETE /validate HTTP/1.1\r\nHost: a\r\n\r\n", &[405]),
    ("TRACE", "TRACE /validate HTTP/1.1\r\nHost: a\r\n\r\n", &[405]),
    ("CONNECT", "CONNECT somewhere:443 HTTP/1.1\r\nHost: a\r\n\r\n", &[400, 404, 405]),
    ("OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", &[404]),
    ("a method of its own", "BREW /convert HTTP/1.1\r\nHost: a\r\n\r\n", &[405]),
    ("another path", "POST /metrics HTTP/1.1\r\n{JSON}Content-Length: 2\r\n\r\n{}", &[404]),
    ("a debugger", "GET /debug/pprof/heap HTTP/1.1\r\nHost: a\r\n\r\n", &[404]),
    ("a way up", "POST /../../etc/passwd HTTP/1.1\r\n{JSON}Content-Length: 2\r\n\r\n{}", &[404]),
    (
        "a hidden way up",
        "POST /convert/%2e%2e/mutate HTTP/1.1\r\n{JSON}Content-Length: 2\r\n\r\n{}",
        &[404],
    ),
    (
        "somebody else's address",
        "GET http://169.254.169.254/latest HTTP/1.1\r\nHost: a\r\n\r\n",
        &[404],
    ),
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
        "a wait to be told to go on",
        "POST /convert HTTP/1.1\r\n{JSON}Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n",
        &[413],
    ),
    (
        "two requests, one hidden",
        "POST /nowhere HTTP/1.1\r\n{JSON}Content-Length: 0\r\n\r\nGET /convert HTTP/1.1\r\nHost: a\r\n\r\n",
        &[404],
    ),
];
