//! The wing that runs etcd clusters: it founds them, lets members join and leave, heals and changes them.
//!
//! ```text
//!   control: watches --> observe --Stock, Heard--> compose --Seen--> decide --Plan--> act --> status --> report
//!                                    decide: hold > form > sleep > leave > join > heal > scale > roll > switch
//!                                    render, identity, furnish, keyring: what members are made of; doors, doorkeeper: who may come in
//!                                    pace, pacer: how often the leader is heard
//! ```
//!
//! Comes in: objects of EtcdCluster, and what etcd says. Goes out: members, what stands around them, and what is
//! told. May touch: `api`, `pki`, `ports`, `telemetry`. The decisions are walked by `tests/convergence.rs`.

mod act;
mod compose;
mod control;
pub mod decide;
mod doorkeeper;
pub mod doors;
mod furnish;
mod heard;
mod hop;
mod identity;
mod keyring;
mod log;
mod observe;
mod pace;
mod pacer;
pub mod plan;
mod render;
mod report;
pub mod seen;
mod status;
mod stock;
mod undo;
mod upkeep;

pub(crate) use control::Control;
pub(crate) use identity::lifetimes::Lifetimes;
