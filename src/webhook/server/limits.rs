//! All limits of the webhook server.
//!
//! The API server keeps idle connections for 90 seconds and does not retry a request that it loses,
//! so an idle connection must outlive that. The other timeouts are longer than any working network
//! needs.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Duration;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The limits of one webhook server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Concurrent connections.
    pub(crate) connections: usize,
    /// Concurrent handshakes.
    pub(crate) handshakes: usize,
    /// Concurrent handshakes per client address, so that no address can take all of them.
    pub(crate) handshakes_per_peer: usize,
    /// From the connection to the first byte of the handshake, and from there to its end.
    pub(crate) handshake_timeout: Duration,
    /// From the handshake to the first byte of the first request.
    pub(crate) first_request_timeout: Duration,
    /// Between two requests.
    pub(crate) idle_timeout: Duration,
    /// From the first byte of the headers to their end.
    pub(crate) header_timeout: Duration,
    /// For a whole body, including the wait for memory budget.
    pub(crate) body_timeout: Duration,
    /// The wait for a permit to handle a large review.
    pub(crate) large_review_timeout: Duration,
    /// Until the response has been sent.
    pub(crate) response_timeout: Duration,
    /// For a peer that still sends after the server has closed its side, so that it can read the
    /// response.
    pub(crate) drain_timeout: Duration,
    /// For requests in progress at shutdown.
    pub(crate) shutdown_timeout: Duration,
    /// How often overdue connections are looked for.
    pub(crate) sweep_interval: Duration,
    /// The body of an admission review: two objects of 3 MiB, the maximum of the API server, and
    /// the envelope.
    pub(crate) admission_bytes: usize,
    /// The body of a conversion review, which may hold many objects.
    pub(crate) conversion_bytes: usize,
    /// Bodies up to this size are handled at once and need no memory budget: there is at most one
    /// per connection.
    pub(crate) small_body_bytes: usize,
    /// The memory budget of all larger bodies and their responses together.
    pub(crate) memory_budget_bytes: usize,
    /// Large reviews that are handled concurrently; the remaining threads serve the event loop.
    pub(crate) large_reviews: usize,
    /// Reviews that have been read and not answered yet.
    pub(crate) reviews: usize,
}

impl Limits {
    /// The limits of a replica.
    pub(crate) const DEFAULT: Self = Self {
        connections: 512,
        handshakes: 64,
        handshakes_per_peer: 16,
        handshake_timeout: Duration::from_secs(5),
        first_request_timeout: Duration::from_secs(10),
        idle_timeout: Duration::from_secs(150),
        header_timeout: Duration::from_secs(5),
        body_timeout: Duration::from_secs(10),
        large_review_timeout: Duration::from_secs(10),
        response_timeout: Duration::from_secs(10),
        drain_timeout: Duration::from_secs(1),
        shutdown_timeout: Duration::from_secs(5),
        sweep_interval: Duration::from_millis(500),
        admission_bytes: 8 * MIB,
        conversion_bytes: 32 * MIB,
        small_body_bytes: 128 * KIB,
        memory_budget_bytes: 64 * MIB,
        large_reviews: 2,
        reviews: 256,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_timeout_exceeds_the_connection_pool_of_the_api_server() {
        assert!(Limits::DEFAULT.idle_timeout > Duration::from_secs(90));
    }

    #[test]
    fn largest_body_fits_into_the_memory_budget() {
        let limits = Limits::DEFAULT;
        assert!(limits.memory_budget_bytes >= limits.conversion_bytes);
        assert!(limits.memory_budget_bytes >= limits.admission_bytes);
    }
}
