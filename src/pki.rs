//! X.509 certificates, private keys and CAs: parsing, verification and issuance. Only `issue` has a
//! side effect: it reads the system's random source.

pub(crate) mod ca;
pub(crate) mod issue;
mod key;
pub(crate) mod leaf;
