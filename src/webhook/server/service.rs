//! The HTTP service: responds to every request, with the review or with a rejection.
//!
//! Small reviews are handled at once. Large ones need a permit and are handled with
//! `block_in_place`, because the same event loop renews the Lease.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, StatusCode};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;
use tokio::time::{Instant, timeout};

use super::activity::Activity;
use super::body::{self, RequestBody};
use super::memory_budget::BudgetGuard;
use super::state::ConnectionState;
use super::{HandleFn, Shared};
use crate::clients::clock;
use crate::telemetry::{self, RejectReason};
use crate::webhook::handler::{Outcome, ReviewResponse, ReviewType};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const POST: HeaderValue = HeaderValue::from_static("POST");
const CLOSE: HeaderValue = HeaderValue::from_static("close");
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// Responds to one request.
pub(super) async fn respond(
    request: Request<Incoming>,
    shared: &Shared,
    state: &ConnectionState,
) -> (Response<Full<Bytes>>, Option<RejectReason>) {
    state.enter(Activity::ReadingBody);
    let (mut response, rejected) = match handle_review(request, shared, state).await {
        Ok(response) => (response, None),
        Err(reason) => (rejection_response(reason), Some(reason)),
    };
    if shared.is_draining() {
        response.headers_mut().insert(header::CONNECTION, CLOSE);
    }
    state.enter(Activity::Responding);
    (response, rejected)
}

async fn handle_review(
    request: Request<Incoming>,
    shared: &Shared,
    state: &ConnectionState,
) -> Result<Response<Full<Bytes>>, RejectReason> {
    let review_type = body::review_type(&request)?;
    let received =
        body::read(request.into_body(), review_type, &shared.budget, &shared.limits).await?;
    // The limit applies from here: a client that stalls its body takes no permit from requests that
    // are complete.
    let _permit = shared.reviews.try_acquire().map_err(|_full| RejectReason::Busy)?;
    state.enter(Activity::Handling);
    let started = Instant::now();
    let RequestBody { body, mut guard } = received;
    let review_response = run_handler(shared, review_type, body).await?;
    let ReviewResponse { status, body, outcome, objects } = review_response;
    shared.rejections.metrics.request(
        type_label(review_type),
        outcome_label(outcome),
        started.elapsed(),
    );
    shared.rejections.metrics.converted(objects);
    guard.resize(body.len());
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = if status == StatusCode::OK { JSON } else { TEXT };
    Ok(response(status, content_type, Bytes::from_owner(ResponseBody { body, _guard: guard })))
}

/// Runs the handler. The request body is freed before this returns.
async fn run_handler(
    shared: &Shared,
    review_type: ReviewType,
    body: Vec<u8>,
) -> Result<ReviewResponse, RejectReason> {
    let handle: HandleFn = shared.handle;
    if body.len() <= shared.limits.small_body_bytes {
        return Ok(handle(review_type, &body, clock::wall()));
    }
    let permit = timeout(shared.limits.large_review_timeout, shared.large_reviews.acquire()).await;
    let Ok(Ok(_permit)) = permit else {
        return Err(RejectReason::Busy);
    };
    // A single-threaded runtime has no other thread that could take over the event loop.
    if Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
        Ok(block_in_place(|| handle(review_type, &body, clock::wall())))
    } else {
        Ok(handle(review_type, &body, clock::wall()))
    }
}

/// A response body, with the memory budget that it holds until it is sent.
struct ResponseBody {
    body: Vec<u8>,
    _guard: BudgetGuard,
}

impl AsRef<[u8]> for ResponseBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

fn response(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// The response to a rejected request.
fn rejection_response(reason: RejectReason) -> Response<Full<Bytes>> {
    let (status, message) = rejection_message(reason);
    let mut response = response(status, TEXT, Bytes::from_static(message.as_bytes()));
    let headers = response.headers_mut();
    match status {
        StatusCode::METHOD_NOT_ALLOWED => headers.insert(header::ALLOW, POST),
        StatusCode::SERVICE_UNAVAILABLE => headers.insert(header::RETRY_AFTER, RETRY_AFTER_SECONDS),
        // The rest of such a body is not read.
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
            headers.insert(header::CONNECTION, CLOSE)
        }
        _ => None,
    };
    response
}

const fn rejection_message(reason: RejectReason) -> (StatusCode, &'static str) {
    match reason {
        RejectReason::Path => {
            (StatusCode::NOT_FOUND, "unknown path; use /mutate, /validate or /convert\n")
        }
        RejectReason::Method => {
            (StatusCode::METHOD_NOT_ALLOWED, "unsupported method; send the review with POST\n")
        }
        RejectReason::MediaType => (
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported media type; send the review as application/json without a content \
             encoding\n",
        ),
        RejectReason::TooLarge => (
            StatusCode::PAYLOAD_TOO_LARGE,
            "the request body is too large; the limit is 8 MiB for an admission review and 32 MiB \
             for a conversion review\n",
        ),
        RejectReason::SlowBody => {
            (StatusCode::REQUEST_TIMEOUT, "timed out reading the request body\n")
        }
        RejectReason::Malformed => (StatusCode::BAD_REQUEST, "the request body is incomplete\n"),
        RejectReason::MemoryBudget | RejectReason::Busy | RejectReason::ConnectionLimit => {
            (StatusCode::SERVICE_UNAVAILABLE, "the server is overloaded; retry after 1 second\n")
        }
        // These close the connection without a response.
        RejectReason::Accept
        | RejectReason::Handshake
        | RejectReason::SlowHandshake
        | RejectReason::NoRequest
        | RejectReason::SlowHeader
        | RejectReason::SlowReader
        | RejectReason::Evicted
        | RejectReason::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, "internal error\n"),
    }
}

const fn type_label(review_type: ReviewType) -> telemetry::RequestType {
    match review_type {
        ReviewType::Mutate => telemetry::RequestType::Mutate,
        ReviewType::Validate => telemetry::RequestType::Validate,
        ReviewType::Convert => telemetry::RequestType::Convert,
    }
}

const fn outcome_label(outcome: Outcome) -> telemetry::RequestOutcome {
    match outcome {
        Outcome::Allowed => telemetry::RequestOutcome::Allowed,
        Outcome::Patched => telemetry::RequestOutcome::Patched,
        Outcome::Denied => telemetry::RequestOutcome::Denied,
        Outcome::Converted => telemetry::RequestOutcome::Converted,
        Outcome::Unconverted => telemetry::RequestOutcome::Unconverted,
        Outcome::Unreadable => telemetry::RequestOutcome::Unreadable,
        Outcome::Panicked => telemetry::RequestOutcome::Panicked,
    }
}
