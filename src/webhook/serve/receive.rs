//! Takes the body of one review off the line.
//! Comes in: a request. Goes out: its errand and its bytes with the room they hold, or why not.
//! May touch: the request, the room. What a header promises is believed only where it makes us
//! refuse; memory is taken as bytes come, and paid for before.

use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap};
use hyper::{Method, Request};
use tokio::time::{Instant, timeout_at};

use super::limits::Limits;
use super::room::{Held, Room};
use crate::api::names;
use crate::telemetry::Refused;
use crate::webhook::desk::Errand;

/// The first step of a buffer whose size nobody has promised.
const FIRST_BYTES: usize = 4 * 1024;

/// A body, with the room that it holds.
pub(super) struct Received {
    /// All of it.
    pub(super) body: Vec<u8>,
    /// Its room.
    pub(super) held: Held,
}

/// What a request asks for, by its head alone.
pub(super) fn errand<B>(request: &Request<B>) -> Result<Errand, Refused> {
    let errand = match request.uri().path() {
        names::MUTATE_PATH => Errand::Mutate,
        names::VALIDATE_PATH => Errand::Validate,
        names::CONVERT_PATH => Errand::Convert,
        _ => return Err(Refused::Path),
    };
    if request.method() != Method::POST {
        return Err(Refused::Method);
    }
    if !is_plain_json(request.headers()) {
        return Err(Refused::MediaType);
    }
    Ok(errand)
}

/// A body that has to be unpacked first could be a thousand times as big as it looks.
fn is_plain_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(only), None) = (types.next(), types.next()) else {
        return false;
    };
    let essence = only.to_str().ok().and_then(|text| text.split(';').next()).map(str::trim);
    essence.is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"))
        && !headers.contains_key(header::CONTENT_ENCODING)
}

/// Takes the whole body.
pub(super) async fn receive(
    incoming: Incoming,
    errand: Errand,
    room: &Room,
    limits: &Limits,
) -> Result<Received, Refused> {
    let most = match errand {
        Errand::Mutate | Errand::Validate => limits.admission_bytes,
        Errand::Convert => limits.conversion_bytes,
    };
    let promised = incoming.size_hint().exact().map(|bytes| usize::try_from(bytes).unwrap_or(most));
    if incoming.size_hint().lower() > u64::try_from(most).unwrap_or(u64::MAX) {
        return Err(Refused::TooLarge);
    }
    let deadline = deadline(limits);
    let mut received = Received { body: Vec::new(), held: room.nothing() };
    match timeout_at(deadline, collect(incoming, promised, most, deadline, &mut received)).await {
        Ok(collected) => collected.map(|()| received),
        Err(_elapsed) => Err(Refused::SlowBody),
    }
}

fn deadline(limits: &Limits) -> Instant {
    let now = Instant::now();
    now.checked_add(limits.body).unwrap_or(now)
}

async fn collect(
    mut incoming: Incoming,
    promised: Option<usize>,
    most: usize,
    deadline: Instant,
    received: &mut Received,
) -> Result<(), Refused> {
    while let Some(frame) = incoming.frame().await {
        let Ok(frame) = frame else {
            return Err(Refused::Malformed);
        };
        // Trailers say nothing to us.
        let Some(chunk) = frame.data_ref() else {
            continue;
        };
        let needed = received.body.len().saturating_add(chunk.len());
        if needed > most {
            return Err(Refused::TooLarge);
        }
        if needed > received.body.capacity() {
            let capacity =
                next_capacity(received.body.capacity(), needed, promised.unwrap_or(most));
            match timeout_at(deadline, received.held.grow(capacity)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Err(Refused::NoRoom),
            }
            let more = capacity.saturating_sub(received.body.len());
            received.body.reserve_exact(more);
        }
        received.body.extend_from_slice(chunk);
    }
    Ok(())
}

/// Twice as much as before, but not beyond what can come, and never less than what is there.
fn next_capacity(now: usize, needed: usize, most: usize) -> usize {
    now.saturating_mul(2).max(FIRST_BYTES).min(most).max(needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut builder = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap()
    }

    const JSON: (&str, &str) = ("content-type", "application/json");

    #[test]
    fn a_review_is_known_by_its_path_whatever_else_the_address_says() {
        for (path, expected) in [
            ("/mutate?timeout=10s", Errand::Mutate),
            ("/validate", Errand::Validate),
            ("https://webhook.example/convert?timeout=30s", Errand::Convert),
        ] {
            assert_eq!(errand(&request("POST", path, &[JSON])), Ok(expected), "{path}");
        }
        for path in ["/", "/convert/", "/Convert", "//convert", "/convert/../mutate", "/metrics"] {
            assert_eq!(errand(&request("POST", path, &[JSON])), Err(Refused::Path), "{path}");
        }
        assert_eq!(errand(&request("GET", "/convert", &[JSON])), Err(Refused::Method));
    }

    #[test]
    fn only_plain_json_is_taken() {
        for good in ["application/json", "application/JSON; charset=utf-8", "application/json ;a=b"]
        {
            let request = request("POST", "/convert", &[("content-type", good)]);
            assert_eq!(errand(&request), Ok(Errand::Convert), "{good}");
        }
        let bad: [&[(&str, &str)]; 7] = [
            &[],
            &[("content-type", "text/plain")],
            &[("content-type", "application/json-patch+json")],
            &[("content-type", "multipart/form-data; boundary=application/json")],
            &[JSON, ("content-type", "text/plain")],
            &[JSON, ("content-encoding", "gzip")],
            &[JSON, ("content-encoding", "identity")],
        ];
        for headers in bad {
            let request = request("POST", "/convert", headers);
            assert_eq!(errand(&request), Err(Refused::MediaType), "{headers:?}");
        }
    }

    #[test]
    fn a_buffer_grows_with_what_comes_and_not_with_what_was_promised() {
        assert_eq!(next_capacity(0, 10, 8_000_000), FIRST_BYTES);
        assert_eq!(next_capacity(FIRST_BYTES, FIRST_BYTES + 1, 8_000_000), 2 * FIRST_BYTES);
        assert_eq!(next_capacity(FIRST_BYTES, 5000, 5000), 5000);
        assert_eq!(next_capacity(0, 70_000, 8_000_000), 70_000);
    }
}
