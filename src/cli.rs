//! The flags and subcommands of `quorate`; clap's types and the words of `--help`, nothing else.
//! Comes in: the command line and the environment. Goes out: what was asked for, as text.
//! May touch: the words of `api`. The values of `run` stay text here so that `settings` can report every
//! wrong one at once; clap would stop at the first.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::api::names;
use crate::api::told::Told;

/// A Kubernetes operator for etcd and the applications on it.
#[derive(Debug, Parser)]
#[command(name = "quorate", version, about, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What `quorate` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the operator until it is told to stop (SIGTERM or SIGINT)
    ///
    /// The cluster is found as kubectl finds it: KUBECONFIG, then ~/.kube/config, then the service
    /// account of the pod. Several replicas may run; the one that holds the Lease leads.
    /// A second signal ends the process at once.
    Run(Box<RunArgs>),
    /// Write this release's custom resource definitions as YAML, or check a cluster's
    ///
    /// Before an upgrade, try: quorate crds --check
    Crds(CrdsArgs),
    /// Write the manifests that install this release as YAML
    ///
    /// Try: quorate manifests | kubectl apply -f -
    Manifests(ManifestsArgs),
    /// Say in which versions objects are stored, and follow how they are carried to today's
    ///
    /// Before and after an upgrade, try: quorate migrate status
    Migrate(MigrateArgs),
    /// What the pods of an etcd cluster's members run; not for people
    #[command(subcommand, hide = true)]
    Agent(AgentCommand),
    /// Say which release this is
    Version(VersionArgs),
    /// Write a completion script for a shell
    ///
    /// Try: source <(quorate completion bash)
    Completion {
        /// The shell that will read the script.
        shell: Shell,
    },
}

/// The flags of `quorate run`. Durations are written like 500ms, 15s or 1m30s.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// The form of the log on stderr: json or text.
    #[arg(long, value_name = "FORM", env = "QUORATE_LOG_FORMAT", default_value = "json")]
    pub log_format: String,
    /// What is logged: a level (error, warn, info, debug, trace), or a list such as
    /// `info,quorate=debug`.
    #[arg(long, value_name = "FILTER", env = "QUORATE_LOG", default_value = "info")]
    pub log_filter: String,
    /// Where probes and metrics are served, in plain HTTP: an IP address and a port.
    #[arg(long, value_name = "ADDRESS", env = "QUORATE_LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: String,
    /// Where the webhooks are served, over HTTPS: an IP address and a port, or `none` to serve none.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "QUORATE_WEBHOOK_LISTEN",
        default_value = "0.0.0.0:9443"
    )]
    pub webhook_listen: String,
    /// A folder with `tls.crt` and `tls.key` for the webhooks, read again as they change [default:
    /// certificates of an authority of our own].
    #[arg(long, value_name = "DIR", env = "QUORATE_WEBHOOK_CERT_DIR")]
    pub webhook_cert_dir: Option<PathBuf>,
    /// How long an authority of our own lives; it is replaced after two thirds of that.
    #[arg(long, value_name = "TIME", env = "QUORATE_WEBHOOK_CA_LIFETIME", default_value = "2160h")]
    pub webhook_ca_lifetime: String,
    /// How long a certificate that it signs lives; at most a quarter of the authority's life.
    #[arg(
        long,
        value_name = "TIME",
        env = "QUORATE_WEBHOOK_LEAF_LIFETIME",
        default_value = "168h"
    )]
    pub webhook_leaf_lifetime: String,
    /// How long a new authority must have been known to the API server before it signs.
    #[arg(long, value_name = "TIME", env = "QUORATE_WEBHOOK_SETTLE", default_value = "30s")]
    pub webhook_settle: String,
    /// How long the webhooks still answer after the end was asked for, until nobody sends more.
    #[arg(long, value_name = "TIME", env = "QUORATE_DRAIN", default_value = "8s")]
    pub drain: String,
    /// Look after the objects of this namespace only; no webhooks are served then, and no
    /// definitions touched [default: all namespaces].
    #[arg(long, value_name = "NAME", env = "QUORATE_WATCH_NAMESPACE")]
    pub watch_namespace: Option<String>,
    /// Who grants the operator its rights in a namespace: auto (it does so itself where objects of
    /// ours appear) or strict (an administrator does).
    #[arg(long, value_name = "WAY", env = "QUORATE_GRANTS", default_value = "auto")]
    pub grants: String,
    /// Who carries stored objects to the version that is stored today: own (the operator), kubernetes (its own migrator,
    /// where it is served) or off.
    #[arg(long, value_name = "WAY", env = "QUORATE_STORAGE_MIGRATION", default_value = "own")]
    pub storage_migration: String,
    /// The image of this very program, which the pods of etcd's members copy their agent from.
    #[arg(
        long,
        value_name = "IMAGE",
        env = "QUORATE_AGENT_IMAGE",
        default_value_t = names::image()
    )]
    pub agent_image: String,
    /// How long the certificate authorities of an etcd cluster live.
    #[arg(long, value_name = "TIME", env = "QUORATE_ETCD_CA_LIFETIME", default_value = "87600h")]
    pub etcd_ca_lifetime: String,
    /// How long a certificate that they sign lives; it is renewed after two thirds of that.
    #[arg(long, value_name = "TIME", env = "QUORATE_ETCD_LEAF_LIFETIME", default_value = "2160h")]
    pub etcd_leaf_lifetime: String,
    /// How long applications have to hear of a new authority before it signs, and again before the old one is
    /// trusted no more.
    #[arg(long, value_name = "TIME", env = "QUORATE_ETCD_CA_OVERLAP", default_value = "72h")]
    pub etcd_ca_overlap: String,
    /// The name of the Lease that the replicas compete for.
    #[arg(long, value_name = "NAME", env = "QUORATE_LEASE_NAME", default_value = names::LEASE)]
    pub lease_name: String,
    /// The namespace of that Lease, and of everything else that belongs to the operator [default:
    /// `POD_NAMESPACE`, else the service account's].
    #[arg(long, value_name = "NAME", env = "QUORATE_LEASE_NAMESPACE")]
    pub lease_namespace: Option<String>,
    /// This replica's name in the Lease; no two processes may share one [default: `POD_NAME` or
    /// the host name, and a random part].
    #[arg(long, value_name = "NAME", env = "QUORATE_IDENTITY")]
    pub identity: Option<String>,
    /// How long the others leave a silent leader alone; whole seconds.
    #[arg(long, value_name = "TIME", env = "QUORATE_LEASE_DURATION", default_value = "15s")]
    pub lease_duration: String,
    /// How long the leader goes on without renewing; at most four fifths of the lease duration.
    #[arg(long, value_name = "TIME", env = "QUORATE_RENEW_DEADLINE", default_value = "10s")]
    pub renew_deadline: String,
    /// The pause between two looks at the Lease; at most half of the renew deadline.
    #[arg(long, value_name = "TIME", env = "QUORATE_RETRY_PERIOD", default_value = "2s")]
    pub retry_period: String,
    /// How long an orderly end may take before it is cut short; at least one and a half times the
    /// renew deadline, and two seconds; at least the drain, and five seconds.
    #[arg(long, value_name = "TIME", env = "QUORATE_SHUTDOWN_GRACE", default_value = "20s")]
    pub shutdown_grace: String,
}

/// What the pods of members run.
#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Put a copy of this program into a folder
    Install {
        /// The folder.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
    /// Become etcd, unless its data is gone
    Start {
        /// What the pod is for: found, join or return.
        #[arg(long, value_name = "WORD")]
        told: Told,
        /// The folder with etcd's data.
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// A folder of the pod that outlives its containers.
        #[arg(long, value_name = "DIR")]
        pod: PathBuf,
        /// etcd and its flags.
        #[arg(required = true, last = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
}

/// The flags of `quorate crds`.
#[derive(Args, Debug)]
pub struct CrdsArgs {
    /// Write one file for each definition into this folder, instead of all to stdout.
    #[arg(long, value_name = "DIR")]
    pub write: Option<PathBuf>,
    /// Write nothing; compare the definitions of the current cluster with these, and refuse (exit
    /// code 1) what would strand its data.
    #[arg(long, conflicts_with = "write")]
    pub check: bool,
    /// The namespace of the operator, whose Service converts between versions.
    #[arg(long, value_name = "NAME", default_value = names::NAMESPACE, value_parser = namespace)]
    pub namespace: String,
}

/// The flags of `quorate migrate`.
#[derive(Args, Debug)]
pub struct MigrateArgs {
    /// The namespace of the operator, where it writes down how far it is.
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        default_value = names::NAMESPACE,
        value_parser = namespace
    )]
    pub namespace: String,
    /// What to do.
    #[command(subcommand)]
    pub command: MigrateCommand,
}

/// What `quorate migrate` can do.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum MigrateCommand {
    /// Say in which versions objects are stored, and how far the operator is
    Status,
    /// Ask the operator to try at once what waits to be tried again, and follow it to the end
    Run,
    /// Try to write each object without writing it, and say which ones would be refused
    DryRun,
}

/// The flags of `quorate manifests`.
#[derive(Args, Debug)]
pub struct ManifestsArgs {
    /// The namespace to install into.
    #[arg(long, value_name = "NAME", default_value = names::NAMESPACE, value_parser = namespace)]
    pub namespace: String,
    /// Leave the Namespace out: it exists already, and is not this installation's to label on
    /// apply or to remove on delete.
    #[arg(long)]
    pub no_namespace: bool,
    /// Leave the custom resource definitions out. On delete this keeps them, and with them every
    /// object of their kinds.
    #[arg(long, conflicts_with = "write")]
    pub no_crds: bool,
    /// The operator's image.
    #[arg(long, value_name = "IMAGE", default_value_t = names::image(), value_parser = image)]
    pub image: String,
    /// Write DIR/install.yaml, the kustomize base DIR/base and what goes with it, instead of all
    /// to stdout.
    #[arg(long, value_name = "DIR")]
    pub write: Option<PathBuf>,
}

/// The flags of `quorate version`.
#[derive(Args, Debug)]
pub struct VersionArgs {
    /// The form of the answer.
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Output::Text)]
    pub output: Output,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

fn namespace(text: &str) -> Result<String, String> {
    if names::is_dns_label(text) {
        Ok(text.to_owned())
    } else {
        Err("a namespace has 1 to 63 lower case letters, digits and dashes, and begins and ends \
             with a letter or digit"
            .to_owned())
    }
}

fn image(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(|letter: char| letter.is_whitespace()) {
        Err("an image is named like registry.example/quorate/quorate:v1.0.0, without spaces"
            .to_owned())
    } else {
        Ok(text.to_owned())
    }
}
