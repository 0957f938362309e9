//! Attends to one connection, from its first byte to its last.
//! Comes in: a socket with its seat. Goes out: nothing; the socket is closed when this ends.
//! May touch: the socket, and what the connections share. A socket that says nothing takes no place
//! among the handshakes, and one address cannot take all of those places.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{error::Elapsed, timeout};
use tokio_rustls::server::TlsStream;

use super::House;
use super::activity::Activity;
use super::line::Line;
use super::respond::respond;
use super::seats::Seat;
use crate::telemetry::{Refused, chain};

const HEADERS: usize = 64;
const HEADER_BYTES: usize = 16 * 1024;
/// What is read at once, for each connection.
const BUFFER_BYTES: usize = 32 * 1024;

/// Attends until either end has had enough.
pub(super) async fn attend(socket: TcpStream, seat: Seat, house: Arc<House>) {
    let shaken = tokio::select! {
        shaken = shake_hands(socket, &seat, &house) => shaken,
        // Cut, or the port closes: nothing has begun here yet.
        _cut = seat.pulse.rung() => None,
    };
    if let Some(stream) = shaken
        && seat.pulse.begin(Activity::Silent)
    {
        converse(Line::new(stream, Arc::clone(&seat.pulse)), &seat, &house).await;
    }
}

async fn shake_hands(
    socket: TcpStream,
    seat: &Seat,
    house: &House,
) -> Option<TlsStream<TcpStream>> {
    let limit = house.limits.handshake;
    match timeout(limit, socket.peek(&mut [0_u8])).await {
        // Whoever comes and goes without a word wanted to know whether the port is open.
        Ok(Ok(0) | Err(_)) => return None,
        Ok(Ok(_)) => {}
        Err(Elapsed { .. }) => {
            house.tell.refused(Refused::SlowHandshake, seat.peer, "no byte came");
            return None;
        }
    }
    let turn = async { (seat.handshakes.acquire().await, house.handshakes.acquire().await) };
    // A burst of honest ones may have to wait; whoever waits for longer has given up itself.
    let Ok((Ok(_of_peer), Ok(_of_all))) = timeout(limit.saturating_mul(2), turn).await else {
        house.tell.refused(Refused::SlowHandshake, seat.peer, "too many others were at it");
        return None;
    };
    match timeout(limit, house.acceptor.accept(socket)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            house.tell.refused(Refused::Handshake, seat.peer, error);
            None
        }
        Err(Elapsed { .. }) => {
            house.tell.refused(Refused::SlowHandshake, seat.peer, "it did not come to its end");
            None
        }
    }
}

async fn converse(line: Line, seat: &Seat, house: &House) {
    let service = service_fn(async |request| {
        let (response, refused) = respond(request, house, &seat.pulse).await;
        if let Some(why) = refused {
            house.tell.refused(why, seat.peer, response.status());
        }
        Ok::<_, Infallible>(response)
    });
    let connection = http1::Builder::new()
        // Slow ones are found by the round. A timer here would also end connections that the API
        // server has parked, and it would lose the request that it sends at that moment.
        .header_read_timeout(None)
        .max_headers(HEADERS)
        .max_header_size(HEADER_BYTES)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(line), service);
    let mut connection = pin!(connection);
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tell_of_the_end(&error, seat.peer, house);
                }
                return;
            }
            is_cut = seat.pulse.rung() => {
                if is_cut {
                    return;
                }
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Either end may hang up at any time; only what was not HTTP is told of.
fn tell_of_the_end(error: &hyper::Error, peer: IpAddr, house: &House) {
    if error.is_parse() || error.is_incomplete_message() {
        house.tell.refused(Refused::Malformed, peer, chain(error));
    } else {
        tracing::debug!(%peer, error = chain(error), "a connection to the webhook port broke");
    }
}
