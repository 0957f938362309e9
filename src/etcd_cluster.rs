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
//! told. May touch: `api`, `pki`, `clients`, `telemetry`. The decisions are walked by `tests/convergence.rs`.

mod act;
mod controller;
pub mod decide;
mod defragmentation;
mod drift;
mod heartbeat;
mod observe;
pub mod plan;
mod raft_log;
mod reconcile;
mod render;
mod report;
mod rollback;
pub mod state;
mod status;
mod tls;
pub mod transport;
mod version;

pub(crate) use controller::EtcdClusterController;
pub(crate) use tls::lifetimes::Lifetimes;
