//! The webhook port: HTTPS with HTTP/1.1 inside, bounded in every direction.
//! Comes in: connections from the API server, and from anything else that finds the port. Goes out:
//! what the desk answers. May touch: the socket it was given, the certificate's slot, log, metrics.
//! Connections, handshakes, bytes and time are all limited, and the limits fall on whoever takes
//! most: a stranger must be able to keep neither the API server out nor the lease from renewal.

mod activity;
mod attend;
mod displace;
mod limits;
mod line;
mod pulse;
mod receive;
mod respond;
mod room;
mod seats;
mod tell;
mod tls;

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{self, MissedTickBehavior};
use tokio_rustls::TlsAcceptor;

use limits::Limits;
use room::Room;
use seats::{Seats, Taking};
use tell::Tell;

use super::desk::{self, Errand, Reply};
use crate::ports::identity::Identity;
use crate::telemetry::{Refused, WebhookMetrics};

/// Out of file descriptors, most likely; asking again at once would only burn time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Whoever answers.
type Answer = fn(Errand, &[u8], Timestamp) -> Reply;

/// Why the port cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The library refused what we want of it.
    #[error("failed to prepare TLS for the webhook port")]
    Tls(#[source] rustls::Error),
}

/// What the port is opened with.
pub(crate) struct Door {
    acceptor: TlsAcceptor,
    metrics: WebhookMetrics,
    limits: Limits,
    answer: Answer,
}

impl Door {
    /// A door with the usual limits, and the desk behind it.
    pub(crate) fn new(identity: Identity, metrics: WebhookMetrics) -> Result<Self, OpenError> {
        let acceptor = tls::acceptor(identity).map_err(OpenError::Tls)?;
        Ok(Self { acceptor, metrics, limits: Limits::STANDARD, answer: desk::answer })
    }
}

/// What the connections share.
struct House {
    acceptor: TlsAcceptor,
    limits: Limits,
    answer: Answer,
    handshakes: Semaphore,
    room: Room,
    big: Semaphore,
    reviews: Semaphore,
    tell: Tell,
    draining: AtomicBool,
}

impl House {
    fn new(door: Door) -> Self {
        let Door { acceptor, metrics, limits, answer } = door;
        Self {
            acceptor,
            limits,
            answer,
            handshakes: Semaphore::new(limits.handshakes),
            room: Room::new(limits.room_bytes, limits.small_bytes),
            big: Semaphore::new(limits.big_at_once),
            reviews: Semaphore::new(limits.reviews),
            tell: Tell::new(metrics),
            draining: AtomicBool::new(false),
        }
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }
}

/// Serves until `stop` is done, then lets the answers that were begun come to their end. From
/// `drain` on each answer also asks its client to connect anew, which finds another replica.
pub(crate) async fn serve(
    listener: TcpListener,
    door: Door,
    drain: impl Future<Output = ()>,
    stop: impl Future<Output = ()>,
) {
    let seats = Arc::new(Seats::new(door.limits, door.metrics.clone()));
    let house = Arc::new(House::new(door));
    let mut tasks = JoinSet::new();
    let (mut drain, mut stop) = (pin!(drain), pin!(stop));
    let mut round = time::interval(house.limits.round);
    round.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = &mut stop => break,
            () = &mut drain, if !house.is_draining() => {
                house.draining.store(true, Ordering::Release);
            }
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => welcome(socket, peer, &seats, &house, &mut tasks),
                Err(error) => {
                    house.tell.failed_to_accept(&error);
                    time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(ended) = tasks.join_next(), if !tasks.is_empty() => mourn(&house, ended),
            _ = round.tick(), if !seats.are_empty() => look_around(&seats, &house),
        }
    }
    drop(listener);
    close(&seats, &house, tasks).await;
}

fn welcome(
    socket: TcpStream,
    peer: SocketAddr,
    seats: &Arc<Seats>,
    house: &Arc<House>,
    tasks: &mut JoinSet<()>,
) {
    let peer = peer.ip().to_canonical();
    let seat = match seats.take(peer) {
        Taking::Free(seat) => seat,
        Taking::Cleared(seat, gone) => {
            house.tell.refused(Refused::Displaced, gone, "it was idle, and every place was taken");
            seat
        }
        Taking::Full => {
            house.tell.refused(Refused::Full, peer, "every place is taken");
            return;
        }
    };
    // Answers are short and waited for. A socket that refuses this is broken, and says so soon.
    socket.set_nodelay(true).ok();
    tasks.spawn(attend::attend(socket, seat, Arc::clone(house)));
}

fn mourn(house: &House, ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        house.tell.panicked(&error);
    }
}

fn look_around(seats: &Seats, house: &House) {
    for overdue in seats.round() {
        if let Some(why) = overdue.offence() {
            house.tell.refused(why, overdue.peer, "its time was over");
        }
    }
}

async fn close(seats: &Seats, house: &House, mut tasks: JoinSet<()>) {
    house.draining.store(true, Ordering::Release);
    seats.ring();
    let last = async {
        while let Some(ended) = tasks.join_next().await {
            mourn(house, ended);
        }
    };
    if time::timeout(house.limits.last_answers, last).await.is_err() {
        tracing::info!("the webhook port was closed on a client");
    }
    tasks.shutdown().await;
}

#[cfg(test)]
mod tests;
