//! Who is who in a cluster: its two authorities, and the certificates that they sign.
//!
//! ```text
//!   client CA --+--> server pair of each member     peer CA ----> peer pair of each member
//!               +--> the applications' pair, in the binding
//!               +--> the operator's own pair, which is stored nowhere
//! ```
//!
//! Comes in: Secrets as they were read, and the time. Goes out: which to write, and what is in them.
//! May touch: `api`, `pki`. Only `mint` is not pure. The authorities are two, so that nobody who may
//! be a client can be a member.

pub(crate) mod authorities;
pub(crate) mod binding;
pub(crate) mod changeover;
pub(crate) mod company;
pub(crate) mod footing;
pub(crate) mod given;
pub(crate) mod issued;
pub(crate) mod keys;
pub(crate) mod leaves;
pub(crate) mod lifetimes;
pub(crate) mod mint;
pub(crate) mod offer;
mod pick;
pub(crate) mod ring;
pub(crate) mod roots;
pub(crate) mod rotation;
pub(crate) mod tidings;
pub(crate) mod trust;
pub(crate) mod wanted;

#[cfg(test)]
mod tests;
