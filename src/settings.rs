//! The checked settings of `quorate run`, and what is said when they cannot be.
//! Comes in: flags and surroundings, as text. Goes out: `Settings`, or every problem at once.
//! May touch: what `surroundings` reads. Settings are read once, at the start, and then passed by
//! value; there are no globals.

mod check;
mod surroundings;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use check::check;
pub(crate) use surroundings::Surroundings;

use crate::api::grants::Grants;
use crate::certificates::Lifetimes;
use crate::etcd_cluster;
use crate::leadership::Timing;
use crate::storage_migration;
use crate::telemetry::{LogFilter, LogFormat};

/// What `run` needs to know. Every value here has been checked.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) log_format: LogFormat,
    pub(crate) log_filter: LogFilter,
    pub(crate) running: Running,
}

/// What stays of it once the log has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) listen: SocketAddr,
    pub(crate) election: Election,
    pub(crate) webhooks: Served,
    pub(crate) scope: Scope,
    pub(crate) etcd: Etcd,
    /// Who carries stored objects to another version.
    pub(crate) migration: storage_migration::Way,
    pub(crate) shutdown_grace: Duration,
}

/// Whether the webhooks are served by this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// So.
    Here(Webhooks),
    /// By another installation, or not at all.
    Elsewhere,
}

/// How the webhooks are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Webhooks {
    pub(crate) listen: SocketAddr,
    pub(crate) certificates: Certificates,
    /// How long they still answer after the end was asked for.
    pub(crate) drain: Duration,
}

/// Where the webhooks' certificates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Certificates {
    /// An authority of our own signs them.
    BuiltIn(Lifetimes),
    /// They stand in a folder.
    Files(PathBuf),
}

/// Whose objects are looked after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everybody's, with rights that are granted in each namespace.
    Cluster(Grants),
    /// Those of one namespace, with rights that stand from the beginning.
    Namespace(String),
}

/// What the members of etcd clusters are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Etcd {
    /// The image with this very program.
    pub(crate) agent_image: String,
    pub(crate) lifetimes: etcd_cluster::Lifetimes,
}

/// What the replicas compete for, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Election {
    pub(crate) lease_name: String,
    pub(crate) lease_namespace: String,
    pub(crate) identity: String,
    pub(crate) timing: Timing,
}

/// One setting that cannot be used: which, what it is, what is allowed, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) setting: &'static str,
    pub(crate) found: Option<String>,
    pub(crate) allowed: String,
    pub(crate) remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, found, allowed, remedy } = self;
        match found {
            Some(found) => write!(f, "{setting} is {found:?}, but {allowed}: {remedy}"),
            None => write!(f, "{setting} is not known, but {allowed}: {remedy}"),
        }
    }
}

/// Everything that is wrong with the settings, in the order of the flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problems(pub(crate) Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "quorate: the settings cannot be used:")?;
        self.0.iter().try_for_each(|problem| writeln!(f, "  {problem}"))
    }
}
