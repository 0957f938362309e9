//! Checks the head of a request and reads its body within the limits.
//!
//! `Content-Length` is trusted only to reject a request. Memory is allocated as bytes arrive, and
//! taken from the budget first.

use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap};
use hyper::{Method, Request};
use tokio::time::{Instant, timeout_at};

use super::limits::Limits;
use super::memory_budget::{BudgetGuard, MemoryBudget};
use crate::api::names;
use crate::telemetry::RejectReason;
use crate::webhook::handler::ReviewType;

/// The first allocation for a body without a known length.
const MIN_BUFFER_BYTES: usize = 4 * 1024;

/// A body, with the memory budget that it holds.
pub(super) struct RequestBody {
    /// The whole body.
    pub(super) body: Vec<u8>,
    /// The memory budget of the body.
    pub(super) guard: BudgetGuard,
}

/// The review type of a request, from its path, method and headers.
pub(super) fn review_type<B>(request: &Request<B>) -> Result<ReviewType, RejectReason> {
    let review_type = match request.uri().path() {
        names::MUTATE_PATH => ReviewType::Mutate,
        names::VALIDATE_PATH => ReviewType::Validate,
        names::CONVERT_PATH => ReviewType::Convert,
        _ => return Err(RejectReason::Path),
    };
    if request.method() != Method::POST {
        return Err(RejectReason::Method);
    }
    if !is_plain_json(request.headers()) {
        return Err(RejectReason::MediaType);
    }
    Ok(review_type)
}

/// Compressed bodies are rejected: they could be a thousand times as large as their length.
fn is_plain_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(only), None) = (types.next(), types.next()) else {
        return false;
    };
    let essence = only.to_str().ok().and_then(|text| text.split(';').next()).map(str::trim);
    essence.is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"))
        && !headers.contains_key(header::CONTENT_ENCODING)
}

/// Reads the whole body.
pub(super) async fn read(
    incoming: Incoming,
    review_type: ReviewType,
    budget: &MemoryBudget,
    limits: &Limits,
) -> Result<RequestBody, RejectReason> {
    let max = match review_type {
        ReviewType::Mutate | ReviewType::Validate => limits.admission_bytes,
        ReviewType::Convert => limits.conversion_bytes,
    };
    let content_length =
        incoming.size_hint().exact().map(|bytes| usize::try_from(bytes).unwrap_or(max));
    if incoming.size_hint().lower() > u64::try_from(max).unwrap_or(u64::MAX) {
        return Err(RejectReason::TooLarge);
    }
    let deadline = deadline(limits);
    let mut received = RequestBody { body: Vec::new(), guard: budget.guard() };
    match timeout_at(deadline, read_frames(incoming, content_length, max, deadline, &mut received))
        .await
    {
        Ok(collected) => collected.map(|()| received),
        Err(_elapsed) => Err(RejectReason::SlowBody),
    }
}

fn deadline(limits: &Limits) -> Instant {
    let now = Instant::now();
    now.checked_add(limits.body_timeout).unwrap_or(now)
}

async fn read_frames(
    mut incoming: Incoming,
    content_length: Option<usize>,
    max: usize,
    deadline: Instant,
    received: &mut RequestBody,
) -> Result<(), RejectReason> {
    while let Some(frame) = incoming.frame().await {
        let Ok(frame) = frame else {
            return Err(RejectReason::Malformed);
        };
        // Trailers are ignored.
        let Some(chunk) = frame.data_ref() else {
            continue;
        };
        let needed = received.body.len().saturating_add(chunk.len());
        if needed > max {
            return Err(RejectReason::TooLarge);
        }
        if needed > received.body.capacity() {
            let capacity =
                next_capacity(received.body.capacity(), needed, content_length.unwrap_or(max));
            match timeout_at(deadline, received.guard.grow(capacity)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Err(RejectReason::MemoryBudget),
            }
            let more = capacity.saturating_sub(received.body.len());
            received.body.reserve_exact(more);
        }
        received.body.extend_from_slice(chunk);
    }
    Ok(())
}

/// Doubles the capacity, up to the maximum, but never below the bytes at hand.
fn next_capacity(now: usize, needed: usize, max: usize) -> usize {
    now.saturating_mul(2).max(MIN_BUFFER_BYTES).min(max).max(needed)
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
    fn review_type_is_decided_by_the_path_alone() {
        for (path, expected) in [
            ("/mutate?timeout=10s", ReviewType::Mutate),
            ("/validate", ReviewType::Validate),
            ("https://webhook.example/convert?timeout=30s", ReviewType::Convert),
        ] {
            assert_eq!(review_type(&request("POST", path, &[JSON])), Ok(expected), "{path}");
        }
        for path in ["/", "/convert/", "/Convert", "//convert", "/convert/../mutate", "/metrics"] {
            assert_eq!(
                review_type(&request("POST", path, &[JSON])),
                Err(RejectReason::Path),
                "{path}"
            );
        }
        assert_eq!(review_type(&request("GET", "/convert", &[JSON])), Err(RejectReason::Method));
    }

    #[test]
    fn only_uncompressed_json_is_accepted() {
        for good in ["application/json", "application/JSON; charset=utf-8", "application/json ;a=b"]
        {
            let request = request("POST", "/convert", &[("content-type", good)]);
            assert_eq!(review_type(&request), Ok(ReviewType::Convert), "{good}");
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
            assert_eq!(review_type(&request), Err(RejectReason::MediaType), "{headers:?}");
        }
    }

    #[test]
    fn buffer_grows_with_received_bytes_not_with_content_length() {
        assert_eq!(next_capacity(0, 10, 8_000_000), MIN_BUFFER_BYTES);
        assert_eq!(
            next_capacity(MIN_BUFFER_BYTES, MIN_BUFFER_BYTES + 1, 8_000_000),
            2 * MIN_BUFFER_BYTES
        );
        assert_eq!(next_capacity(MIN_BUFFER_BYTES, 5000, 5000), 5000);
        assert_eq!(next_capacity(0, 70_000, 8_000_000), 70_000);
    }
}
