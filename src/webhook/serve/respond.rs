//! Responds to one request.
//! Comes in: a request, and what its connection shares with the others. Goes out: a response, always.
//! May touch: the body, the desk, the wall clock, metrics. Small reviews are answered on the spot.
//! Big ones take turns and give their thread away first, because the same event loop renews a lease.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, StatusCode};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;
use tokio::time::{Instant, timeout};

use super::activity::Activity;
use super::pulse::Pulse;
use super::receive::{self, Received};
use super::room::Held;
use super::{Answer, House};
use crate::ports::clock;
use crate::telemetry::{Refused, ReviewErrand, ReviewOutcome};
use crate::webhook::desk::{Errand, Outcome, Reply};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const POST: HeaderValue = HeaderValue::from_static("POST");
const CLOSE: HeaderValue = HeaderValue::from_static("close");
const SOON: HeaderValue = HeaderValue::from_static("1");

/// The response to one request.
pub(super) async fn respond(
    request: Request<Incoming>,
    house: &House,
    pulse: &Pulse,
) -> (Response<Full<Bytes>>, Option<Refused>) {
    pulse.begin(Activity::Body);
    let (mut response, refused) = match review(request, house, pulse).await {
        Ok(response) => (response, None),
        Err(why) => (refusal(why), Some(why)),
    };
    if house.is_draining() {
        response.headers_mut().insert(header::CONNECTION, CLOSE);
    }
    pulse.begin(Activity::Answering);
    (response, refused)
}

async fn review(
    request: Request<Incoming>,
    house: &House,
    pulse: &Pulse,
) -> Result<Response<Full<Bytes>>, Refused> {
    let errand = receive::errand(&request)?;
    let received =
        receive::receive(request.into_body(), errand, &house.room, &house.limits).await?;
    // Counted from here: whoever stalls a body takes no place from those who have sent theirs.
    let _place = house.reviews.try_acquire().map_err(|_full| Refused::Busy)?;
    pulse.begin(Activity::Judging);
    let began = Instant::now();
    let Received { body, mut held } = received;
    let reply = judge(house, errand, body).await?;
    let Reply { status, body, outcome, objects } = reply;
    house.tell.metrics.reviewed(errand_label(errand), outcome_label(outcome), began.elapsed());
    house.tell.metrics.converted(objects);
    held.settle(body.len());
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = if status == StatusCode::OK { JSON } else { TEXT };
    Ok(response(status, kind, Bytes::from_owner(Sent { body, _held: held })))
}

/// Asks the desk. The body is gone when the answer is there.
async fn judge(house: &House, errand: Errand, body: Vec<u8>) -> Result<Reply, Refused> {
    let answer: Answer = house.answer;
    if body.len() <= house.limits.small_bytes {
        return Ok(answer(errand, &body, clock::wall()));
    }
    let turn = timeout(house.limits.turn, house.big.acquire()).await;
    let Ok(Ok(_turn)) = turn else {
        return Err(Refused::Busy);
    };
    // A loop of one thread has none that could take over.
    if Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
        Ok(block_in_place(|| answer(errand, &body, clock::wall())))
    } else {
        Ok(answer(errand, &body, clock::wall()))
    }
}

/// An answer on its way, with the room that it holds until it is sent.
struct Sent {
    body: Vec<u8>,
    _held: Held,
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

fn response(status: StatusCode, kind: HeaderValue, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// What somebody is told who gets no review.
fn refusal(why: Refused) -> Response<Full<Bytes>> {
    let (status, words) = said(why);
    let mut response = response(status, TEXT, Bytes::from_static(words.as_bytes()));
    let headers = response.headers_mut();
    match status {
        StatusCode::METHOD_NOT_ALLOWED => headers.insert(header::ALLOW, POST),
        StatusCode::SERVICE_UNAVAILABLE => headers.insert(header::RETRY_AFTER, SOON),
        // What is left of such a body is not worth reading.
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
            headers.insert(header::CONNECTION, CLOSE)
        }
        _ => None,
    };
    response
}

const fn said(why: Refused) -> (StatusCode, &'static str) {
    match why {
        Refused::Path => {
            (StatusCode::NOT_FOUND, "nothing is here; try /mutate, /validate or /convert\n")
        }
        Refused::Method => (StatusCode::METHOD_NOT_ALLOWED, "send a review with POST\n"),
        Refused::MediaType => (
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send a review as application/json, without a content encoding\n",
        ),
        Refused::TooLarge => (
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body is too large: at most 8 MiB for an admission review, 32 MiB for a \
             conversion review\n",
        ),
        Refused::SlowBody => (StatusCode::REQUEST_TIMEOUT, "the body took too long\n"),
        Refused::Malformed => (StatusCode::BAD_REQUEST, "the body ended before its end\n"),
        Refused::NoRoom | Refused::Busy | Refused::Full => {
            (StatusCode::SERVICE_UNAVAILABLE, "too much is going on; try again in a second\n")
        }
        // These end a connection, so nobody is there to be told.
        Refused::Accept
        | Refused::Handshake
        | Refused::SlowHandshake
        | Refused::Silent
        | Refused::SlowHeader
        | Refused::SlowReader
        | Refused::Displaced
        | Refused::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, "something went wrong here\n"),
    }
}

const fn errand_label(errand: Errand) -> ReviewErrand {
    match errand {
        Errand::Mutate => ReviewErrand::Mutate,
        Errand::Validate => ReviewErrand::Validate,
        Errand::Convert => ReviewErrand::Convert,
    }
}

const fn outcome_label(outcome: Outcome) -> ReviewOutcome {
    match outcome {
        Outcome::Allowed => ReviewOutcome::Allowed,
        Outcome::Patched => ReviewOutcome::Patched,
        Outcome::Denied => ReviewOutcome::Denied,
        Outcome::Converted => ReviewOutcome::Converted,
        Outcome::Unconverted => ReviewOutcome::Unconverted,
        Outcome::Unreadable => ReviewOutcome::Unreadable,
        Outcome::Panicked => ReviewOutcome::Panicked,
    }
}
