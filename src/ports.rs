//! The tool shed: thin typed calls to the outside world, each with a time limit.
//! Comes in: what to call with. Goes out: the answer, or an error that says what was being done.
//! May touch: client libraries and clocks. No decision is made here, and no wing is known.

pub(crate) mod authorities;
pub(crate) mod call;
pub(crate) mod chance;
pub(crate) mod changes;
pub(crate) mod clock;
pub(crate) mod definitions;
pub(crate) mod etcd;
pub(crate) mod grants;
pub(crate) mod handshake;
pub(crate) mod identity;
pub(crate) mod kube;
pub(crate) mod lease;
pub(crate) mod mandate;
pub(crate) mod objects;
pub(crate) mod pair;
pub(crate) mod rehearsal;
pub(crate) mod stored;
pub(crate) mod trust;
pub(crate) mod watch;
