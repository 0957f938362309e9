//! The checked settings of `quorate run`, and the errors of invalid ones.
//!
//! Settings are read once at startup and passed by value; there are no globals.

mod check;
mod environment;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use check::check;
pub(crate) use environment::Environment;

use crate::api::namespace_access::NamespaceAccess;
use crate::etcd_cluster;
use crate::leader_election::Timing;
use crate::storage_migration;
use crate::telemetry::{LogFilter, LogFormat};
use crate::webhook_certs::Lifetimes;

/// The settings of `run`. Every value is checked.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) log_format: LogFormat,
    pub(crate) log_filter: LogFilter,
    pub(crate) config: RunConfig,
}

/// The settings that remain once the log is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunConfig {
    pub(crate) listen: SocketAddr,
    pub(crate) election: Election,
    pub(crate) webhooks: WebhookMode,
    pub(crate) scope: Scope,
    pub(crate) etcd: Etcd,
    /// Mode of storage version migration.
    pub(crate) migration: storage_migration::MigrationMode,
    pub(crate) shutdown_grace: Duration,
}

/// Whether this process serves the webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WebhookMode {
    /// With these settings.
    Serve(Webhooks),
    /// Served by another installation, or not at all.
    Disabled,
}

/// Settings of the webhook server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Webhooks {
    pub(crate) listen: SocketAddr,
    pub(crate) certificates: Certificates,
    /// Duration the server keeps answering after shutdown has started.
    pub(crate) drain: Duration,
}

/// The source of the serving certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Certificates {
    /// Issued by the operator's own CA.
    BuiltIn(Lifetimes),
    /// Read from a directory.
    Files(PathBuf),
}

/// The watched namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All namespaces, with a `RoleBinding` in each namespace in use.
    Cluster(NamespaceAccess),
    /// One namespace, with a Role from the installation.
    Namespace(String),
}

/// Settings of etcd members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Etcd {
    /// Image of this operator.
    pub(crate) agent_image: String,
    pub(crate) lifetimes: etcd_cluster::Lifetimes,
}

/// Settings of leader election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Election {
    pub(crate) lease_name: String,
    pub(crate) lease_namespace: String,
    pub(crate) identity: String,
    pub(crate) timing: Timing,
}

/// An invalid or missing setting, in the form of Kubernetes' field errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingError {
    pub(crate) setting: &'static str,
    pub(crate) value: Option<String>,
    pub(crate) expected: String,
    pub(crate) hint: String,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, value, expected, hint } = self;
        match value {
            Some(value) => write!(f, "{setting}: Invalid value: {value:?}: {expected}; {hint}"),
            None => write!(f, "{setting}: Required value: {expected}; {hint}"),
        }
    }
}

/// All invalid settings, in the order of the flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingErrors(pub(crate) Vec<SettingError>);

impl fmt::Display for SettingErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "quorate: invalid settings:")?;
        self.0.iter().try_for_each(|error| writeln!(f, "  {error}"))
    }
}
