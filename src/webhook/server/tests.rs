//! The webhook server over loopback sockets, as its clients see it.

mod contention;
mod fixture;
mod protocol;
mod shutdown;
mod timeouts;

use super::*;
