//! Certificates, keys and authorities, for every wing that needs some.
//! Comes in: names, times, and PEM from anyone. Goes out: what it says, and new ones.
//! May touch: `mint` the system's source of randomness; nothing else.

pub(crate) mod ca;
pub(crate) mod issue;
mod key;
pub(crate) mod leaf;
