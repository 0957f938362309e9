//! The webhook port over real loopback sockets, in the words of those who come to it.

mod crowds;
mod ends;
mod protocol;
mod rig;
mod slowness;

use super::*;
