//! The tool shed: thin typed calls to the outside world, each with a time limit.
//! Comes in: what to call with. Goes out: the answer, or an error that says what was being done.
//! May touch: client libraries and clocks. No decision is made here, and no wing is known.

pub(crate) mod clock;
pub(crate) mod definitions;
pub(crate) mod kube;
pub(crate) mod lease;
