//! Flags and subcommands of `quorate`: clap types and `--help` texts.
//!
//! The values of `run` stay strings here so that `settings` can report every invalid one at once;
//! clap would stop at the first.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::api::names;
use crate::api::start_mode::StartMode;

/// A Kubernetes operator for etcd and the applications on it.
#[derive(Debug, Parser)]
#[command(name = "quorate", version, about, arg_required_else_help = true)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands of `quorate`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the operator until SIGTERM or SIGINT
    ///
    /// The cluster configuration is loaded from KUBECONFIG, then ~/.kube/config, then the service
    /// account of the pod. Several replicas may run; the holder of the Lease leads. A second signal
    /// exits immediately.
    Run(Box<RunArgs>),
    /// Print the custom resource definitions of this release as YAML, or compare a cluster with
    /// them
    ///
    /// Before an upgrade, run: quorate crds --check
    Crds(CrdsArgs),
    /// Print the manifests that install this release as YAML
    ///
    /// Example: quorate manifests | kubectl apply -f -
    Manifests(ManifestsArgs),
    /// Show and control storage version migration
    ///
    /// Before and after an upgrade, run: quorate migrate status
    Migrate(MigrateArgs),
    /// Commands that the pods of etcd members run; not for interactive use
    #[command(subcommand, hide = true)]
    Agent(AgentCommand),
    /// Print the version
    Version(VersionArgs),
    /// Print a completion script for a shell
    ///
    /// Example: source <(quorate completion bash)
    Completion {
        /// Name of the shell.
        shell: Shell,
    },
}

/// The flags of `quorate run`. Durations have a unit: 500ms, 15s or 1m30s.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// Log format on stderr: json or text.
    #[arg(long, value_name = "FORMAT", env = "QUORATE_LOG_FORMAT", default_value = "json")]
    pub log_format: String,
    /// Log filter: a level (error, warn, info, debug, trace, off) or directives such as
    /// info,quorate=debug.
    #[arg(long, value_name = "FILTER", env = "QUORATE_LOG", default_value = "info")]
    pub log_filter: String,
    /// Address of the probe and metrics server (plain HTTP): an IP address and a port.
    #[arg(long, value_name = "ADDRESS", env = "QUORATE_LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: String,
    /// Address of the webhook server (HTTPS): an IP address and a port, or none to disable
    /// the server.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "QUORATE_WEBHOOK_LISTEN",
        default_value = "0.0.0.0:9443"
    )]
    pub webhook_listen: String,
    /// Directory with tls.crt and tls.key of the webhook server, reloaded on change [default:
    /// certificates issued by the operator's own CA].
    #[arg(long, value_name = "DIR", env = "QUORATE_WEBHOOK_CERT_DIR")]
    pub webhook_cert_dir: Option<PathBuf>,
    /// Lifetime of the operator's own webhook CA; rotated after two thirds of the lifetime.
    #[arg(
        long,
        value_name = "DURATION",
        env = "QUORATE_WEBHOOK_CA_LIFETIME",
        default_value = "2160h"
    )]
    pub webhook_ca_lifetime: String,
    /// Lifetime of the webhook serving certificate; at most a quarter of the CA lifetime.
    #[arg(
        long,
        value_name = "DURATION",
        env = "QUORATE_WEBHOOK_LEAF_LIFETIME",
        default_value = "168h"
    )]
    pub webhook_leaf_lifetime: String,
    /// Duration a new CA must be in the CA bundles of the API server before it issues certificates.
    #[arg(
        long,
        value_name = "DURATION",
        env = "QUORATE_WEBHOOK_CA_PROPAGATION_DELAY",
        default_value = "30s"
    )]
    pub webhook_ca_propagation_delay: String,
    /// Duration the webhook server keeps answering after shutdown has started.
    #[arg(
        long,
        value_name = "DURATION",
        env = "QUORATE_WEBHOOK_DRAIN_TIMEOUT",
        default_value = "8s"
    )]
    pub webhook_drain_timeout: String,
    /// Watch a single namespace; disables the webhook server and the management of CRDs [default:
    /// all namespaces].
    #[arg(long, value_name = "NAME", env = "QUORATE_WATCH_NAMESPACE")]
    pub watch_namespace: Option<String>,
    /// Role binding of the operator in each namespace with its objects: auto (created and deleted
    /// by the operator) or manual (created by an administrator).
    #[arg(long, value_name = "MODE", env = "QUORATE_NAMESPACE_ACCESS", default_value = "auto")]
    pub namespace_access: String,
    /// Storage version migration: operator, kubernetes (storagemigration.k8s.io API) or off.
    #[arg(
        long,
        value_name = "MODE",
        env = "QUORATE_STORAGE_MIGRATION",
        default_value = "operator"
    )]
    pub storage_migration: String,
    /// Image of this operator; pods of etcd members copy the agent from it.
    #[arg(
        long,
        value_name = "IMAGE",
        env = "QUORATE_AGENT_IMAGE",
        default_value_t = names::image()
    )]
    pub agent_image: String,
    /// Lifetime of the CAs of an etcd cluster.
    #[arg(
        long,
        value_name = "DURATION",
        env = "QUORATE_ETCD_CA_LIFETIME",
        default_value = "87600h"
    )]
    pub etcd_ca_lifetime: String,
    /// Lifetime of the certificates of an etcd cluster; renewed after two thirds of the lifetime.
    #[arg(
        long,
        value_name = "DURATION",
        env = "QUORATE_ETCD_LEAF_LIFETIME",
        default_value = "2160h"
    )]
    pub etcd_leaf_lifetime: String,
    /// Duration both CAs are trusted before a new CA issues certificates, and again before the old
    /// CA is removed from the trust bundles.
    #[arg(long, value_name = "DURATION", env = "QUORATE_ETCD_CA_OVERLAP", default_value = "72h")]
    pub etcd_ca_overlap: String,
    /// Name of the leader election Lease.
    #[arg(long, value_name = "NAME", env = "QUORATE_LEASE_NAME", default_value = names::LEASE)]
    pub lease_name: String,
    /// Namespace of the Lease and of the operator's other own objects [default: the namespace of
    /// the pod].
    #[arg(long, value_name = "NAME", env = "QUORATE_LEASE_NAMESPACE")]
    pub lease_namespace: Option<String>,
    /// Holder identity in the Lease, unique per process [default: the pod name or host name with a
    /// random suffix].
    #[arg(long, value_name = "NAME", env = "QUORATE_IDENTITY")]
    pub identity: Option<String>,
    /// Duration non-leader candidates wait before acquiring the Lease; whole seconds.
    #[arg(long, value_name = "DURATION", env = "QUORATE_LEASE_DURATION", default_value = "15s")]
    pub lease_duration: String,
    /// Duration the leader retries renewing the Lease before giving up leadership; at most four
    /// fifths of the lease duration.
    #[arg(long, value_name = "DURATION", env = "QUORATE_RENEW_DEADLINE", default_value = "10s")]
    pub renew_deadline: String,
    /// Duration between two attempts to acquire or renew the Lease; at most half of the renew
    /// deadline.
    #[arg(long, value_name = "DURATION", env = "QUORATE_RETRY_PERIOD", default_value = "2s")]
    pub retry_period: String,
    /// Maximum duration of a graceful shutdown; at least one and a half times the renew deadline
    /// plus two seconds, and at least the webhook drain timeout plus five seconds.
    #[arg(long, value_name = "DURATION", env = "QUORATE_SHUTDOWN_GRACE", default_value = "20s")]
    pub shutdown_grace: String,
}

/// The subcommands of `quorate agent`.
#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Copy this binary into a directory
    Install {
        /// Target directory.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
    /// Replace this process with etcd, unless the member has lost its data
    Start {
        /// Start mode of the member: bootstrap, join or rejoin.
        #[arg(long, value_name = "MODE")]
        start_mode: StartMode,
        /// Data directory of etcd.
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// Directory of the pod that outlives its containers.
        #[arg(long, value_name = "DIR")]
        pod: PathBuf,
        /// Path of etcd and its flags.
        #[arg(required = true, last = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
}

/// The flags of `quorate crds`.
#[derive(Args, Debug)]
pub struct CrdsArgs {
    /// Write one file per CRD into this directory instead of stdout.
    #[arg(long, value_name = "DIR")]
    pub write: Option<PathBuf>,
    /// Compare the CRDs of the current cluster with this release; exit code 1 if an upgrade would
    /// make stored objects unreadable.
    #[arg(long, conflicts_with = "write")]
    pub check: bool,
    /// Namespace of the operator and of its conversion webhook Service.
    #[arg(long, value_name = "NAME", default_value = names::NAMESPACE, value_parser = namespace)]
    pub namespace: String,
}

/// The flags of `quorate migrate`.
#[derive(Args, Debug)]
pub struct MigrateArgs {
    /// Namespace of the operator and of its migration record.
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        default_value = names::NAMESPACE,
        value_parser = namespace
    )]
    pub namespace: String,
    /// The subcommand.
    #[command(subcommand)]
    pub command: MigrateCommand,
}

/// The subcommands of `quorate migrate`.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum MigrateCommand {
    /// Show the stored versions of each kind and the progress of the migration
    Status,
    /// Retry failed objects now, and follow the migration until it completes
    Run,
    /// Dry-run the migration, and list the objects that would be rejected
    DryRun,
}

/// The flags of `quorate manifests`.
#[derive(Args, Debug)]
pub struct ManifestsArgs {
    /// Namespace to install into.
    #[arg(long, value_name = "NAME", default_value = names::NAMESPACE, value_parser = namespace)]
    pub namespace: String,
    /// Omit the Namespace object: an existing namespace is neither labelled on apply nor deleted
    /// with the installation.
    #[arg(long)]
    pub no_namespace: bool,
    /// Omit the custom resource definitions; on delete, this keeps them and all their objects.
    #[arg(long, conflicts_with = "write")]
    pub no_crds: bool,
    /// Image of the operator.
    #[arg(long, value_name = "IMAGE", default_value_t = names::image(), value_parser = image)]
    pub image: String,
    /// Write DIR/install.yaml and the kustomize base, components and overlays instead of stdout.
    #[arg(long, value_name = "DIR")]
    pub write: Option<PathBuf>,
}

/// The flags of `quorate version`.
#[derive(Args, Debug)]
pub struct VersionArgs {
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Output::Text)]
    pub output: Output,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Human-readable text.
    Text,
    /// JSON.
    Json,
}

/// What a namespace name must be.
pub(crate) const NAMESPACE_RULE: &str = "must be a lowercase RFC 1123 label: at most 63 \
     alphanumeric characters or '-', starting and ending with an alphanumeric character";

fn namespace(text: &str) -> Result<String, String> {
    if names::is_dns_label(text) {
        return Ok(text.to_owned());
    }
    Err(NAMESPACE_RULE.to_owned())
}

fn image(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err("must be an image reference such as registry.example/quorate:v1.0.0".to_owned());
    }
    Ok(text.to_owned())
}
