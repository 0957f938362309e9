//! Flags and surroundings into `Settings`, or into every problem at once.
//! Comes in: text as the user wrote it, and where the process runs. Goes out: checked values.
//! May touch: nothing; pure. A user mends a list in one go, but one error at a time in many.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod etcd;
mod webhooks;

use std::net::SocketAddr;
use std::time::Duration;

use jiff::SignedDuration;

use super::{Election, Problem, Problems, Running, Settings, Surroundings};
use crate::api::names;
use crate::cli::RunArgs;
use crate::leadership::{LONGEST, Timing};
use crate::telemetry::{LAST_ANSWERS, LogFilter, LogFormat};

/// For the last answers of the webhooks, and to close the ports.
const AFTER_THE_DRAIN: Duration = Duration::from_secs(5);

/// Checks everything, and only then answers. `cluster` is the way to the API server, or why there
/// is none; whoever gets settings gets it with them.
pub(crate) fn check<Cluster>(
    args: &RunArgs,
    around: &Surroundings,
    cluster: Result<Cluster, String>,
) -> Result<(Settings, Cluster), Problems> {
    let mut found = Findings(Vec::new());
    let log_format = found.log_format(&args.log_format);
    let log_filter = found.log_filter(&args.log_filter);
    let listen = found.listen(&args.listen);
    let lease_name = found.lease_name(&args.lease_name);
    let lease_namespace = found.lease_namespace(args.lease_namespace.as_deref(), around);
    let identity = found.identity(args.identity.as_deref(), around);
    let timing = found.timing(args);
    let scope = found.scope(args);
    let webhooks = found.webhooks(args);
    let etcd = found.etcd(args);
    let migration = found.migration(args);
    let shutdown_grace = found.shutdown_grace(args, timing);
    let cluster = found.cluster(cluster);
    let settings = || {
        Some(Settings {
            log_format: log_format?,
            log_filter: log_filter?,
            running: Running {
                listen: listen?,
                election: Election {
                    lease_name: lease_name?,
                    lease_namespace: lease_namespace?,
                    identity: identity?,
                    timing: timing?,
                },
                webhooks: webhooks?,
                scope: scope?,
                etcd: etcd?,
                migration: migration?,
                shutdown_grace: shutdown_grace?,
            },
        })
    };
    match (settings(), cluster, found.0) {
        (Some(settings), Some(cluster), problems) if problems.is_empty() => Ok((settings, cluster)),
        (_, _, problems) => Err(Problems(problems)),
    }
}

/// The problems found so far. Each question answers with the value, or notes why it cannot.
struct Findings(Vec<Problem>);

impl Findings {
    fn note(&mut self, setting: &'static str, found: &str, allowed: &str, remedy: &str) {
        self.0.push(Problem {
            setting,
            found: Some(found.to_owned()),
            allowed: allowed.to_owned(),
            remedy: remedy.to_owned(),
        });
    }

    fn log_format(&mut self, text: &str) -> Option<LogFormat> {
        let format = LogFormat::named(text);
        if format.is_none() {
            let allowed = "it must be json or text";
            self.note("--log-format", text, allowed, "give one of the two, or leave it out");
        }
        format
    }

    fn log_filter(&mut self, text: &str) -> Option<LogFilter> {
        let filter = LogFilter::parse(text);
        if filter.is_none() {
            let allowed = "it must be a level (error, warn, info, debug, trace, off) or a list \
                           like info,quorate=debug";
            self.note("--log-filter", text, allowed, "try info");
        }
        filter
    }

    fn listen(&mut self, text: &str) -> Option<SocketAddr> {
        self.address("--listen", text, "0.0.0.0:8080 or [::]:8080")
    }

    fn address(&mut self, setting: &'static str, text: &str, like: &str) -> Option<SocketAddr> {
        let address = text.parse().ok();
        if address.is_none() {
            let allowed = format!("it must be an IP address and a port, like {like}");
            self.note(setting, text, &allowed, "write the address in digits, with its port");
        }
        address
    }

    fn lease_name(&mut self, text: &str) -> Option<String> {
        if names::is_dns_subdomain(text) {
            return Some(text.to_owned());
        }
        let allowed = "Kubernetes names have lower case letters, digits, dashes and dots";
        self.note("--lease-name", text, allowed, "rename it, or leave it out");
        None
    }

    fn lease_namespace(&mut self, flag: Option<&str>, around: &Surroundings) -> Option<String> {
        let Some(namespace) = flag.or(around.pod_namespace.as_deref()) else {
            self.0.push(Problem {
                setting: "--lease-namespace",
                found: None,
                allowed: "the Lease must live in a namespace, and this is no pod that could tell \
                          its own (POD_NAMESPACE is not set, no service account is mounted)"
                    .to_owned(),
                remedy: format!("give --lease-namespace, for example {}", names::NAMESPACE),
            });
            return None;
        };
        self.namespace("--lease-namespace", namespace)
    }

    fn namespace(&mut self, setting: &'static str, text: &str) -> Option<String> {
        if names::is_dns_label(text) {
            return Some(text.to_owned());
        }
        let allowed = "namespaces have 1 to 63 lower case letters, digits and dashes";
        self.note(setting, text, allowed, "give the name of one that exists");
        None
    }

    /// A name of the process, not of the pod: a container that is started again in the same pod
    /// must not take the lease of the one before it, whose last calls may still be on their way.
    fn identity(&mut self, flag: Option<&str>, around: &Surroundings) -> Option<String> {
        let host = around.pod_name.as_deref().or(around.host_name.as_deref());
        let host = host.unwrap_or(names::OPERATOR);
        let identity =
            flag.map_or_else(|| format!("{host}_{:08x}", around.nonce), ToOwned::to_owned);
        let fits = !identity.is_empty()
            && identity.len() <= 253
            && identity.bytes().all(|byte| byte.is_ascii_graphic());
        if fits {
            return Some(identity);
        }
        let allowed = "it must be 1 to 253 visible ASCII characters without spaces";
        let remedy = "choose a name that only this process has";
        self.note("--identity", &identity, allowed, remedy);
        None
    }

    fn timing(&mut self, args: &RunArgs) -> Option<Timing> {
        let lease = self.duration("--lease-duration", &args.lease_duration);
        let renew = self.duration("--renew-deadline", &args.renew_deadline);
        let retry = self.duration("--retry-period", &args.retry_period);
        if lease.is_some_and(|lease| lease.subsec_nanos() != 0) {
            let allowed = "a Lease counts whole seconds";
            self.note("--lease-duration", &args.lease_duration, allowed, "round it up");
        }
        // Clocks differ, and a leader must have stopped before another may start: a fifth of the
        // lease duration lies between them.
        if let (Some(lease), Some(renew)) = (lease, renew)
            && renew.saturating_mul(5) > lease.saturating_mul(4)
        {
            let lease = &args.lease_duration;
            let allowed = format!("it must be at most four fifths of --lease-duration {lease}");
            let remedy = "lower it, so that a leader stops well before another may start";
            self.note("--renew-deadline", &args.renew_deadline, &allowed, remedy);
        }
        if let (Some(renew), Some(retry)) = (renew, retry)
            && renew < retry.saturating_mul(2)
        {
            let allowed =
                format!("it must be at most half of --renew-deadline {}", args.renew_deadline);
            let remedy = "lower it, so that one failed call does not cost the lease";
            self.note("--retry-period", &args.retry_period, &allowed, remedy);
        }
        Some(Timing { lease_duration: lease?, renew_deadline: renew?, retry_period: retry? })
    }

    fn duration(&mut self, setting: &'static str, text: &str) -> Option<Duration> {
        let fits = time(text).filter(|it| *it >= Duration::from_millis(100) && *it <= LONGEST);
        if fits.is_none() {
            let allowed = "it must be a time between 100ms and 1h, like 500ms, 15s or 1m30s";
            self.note(setting, text, allowed, "write a number with its unit, or leave it out");
        }
        fits
    }

    /// The grace must be long enough to let the Lease go and to close the probe port; a release
    /// that is cut short costs the next leader a whole lease duration. The webhooks are drained
    /// meanwhile, and need a moment for their last answers.
    fn shutdown_grace(&mut self, args: &RunArgs, timing: Option<Timing>) -> Option<Duration> {
        let grace = self.duration("--shutdown-grace", &args.shutdown_grace)?;
        let least = timing.map(|it| it.release_limit().saturating_add(LAST_ANSWERS));
        if let Some(least) = least.filter(|least| grace < *least) {
            let allowed = format!(
                "it must be at least {}ms, one and a half times --renew-deadline {} and {}s for \
                 the probe port",
                least.as_millis(),
                args.renew_deadline,
                LAST_ANSWERS.as_secs(),
            );
            let remedy = "raise it, and the pod's terminationGracePeriodSeconds with it, or lower \
                          --renew-deadline";
            self.note("--shutdown-grace", &args.shutdown_grace, &allowed, remedy);
        }
        let drained = time(&args.drain).map(|it| it.saturating_add(AFTER_THE_DRAIN));
        if drained.is_some_and(|drained| grace < drained) {
            let (drain, more) = (&args.drain, AFTER_THE_DRAIN.as_secs());
            let allowed = format!("it must be at least --drain {drain} and {more}s longer");
            self.note(
                "--shutdown-grace",
                &args.shutdown_grace,
                &allowed,
                "raise it, or lower --drain",
            );
        }
        Some(grace)
    }

    fn cluster<Cluster>(&mut self, cluster: Result<Cluster, String>) -> Option<Cluster> {
        match cluster {
            Ok(cluster) => Some(cluster),
            Err(why) => {
                self.0.push(Problem {
                    setting: "the Kubernetes cluster",
                    found: None,
                    allowed: format!("quorate must know which API server to talk to ({why})"),
                    remedy: "run in a pod with a service account, or set KUBECONFIG to a file \
                             that kubectl can use"
                        .to_owned(),
                });
                None
            }
        }
    }
}

/// A time such as `500ms` or `1m30s`.
fn time(text: &str) -> Option<Duration> {
    text.parse::<SignedDuration>().ok().and_then(|it| Duration::try_from(it).ok())
}

#[cfg(test)]
mod tests;
