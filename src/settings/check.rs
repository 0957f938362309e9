//! Converts flags and environment into `Settings`, or into all errors at once, so that a user can fix
//! them in one go. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod etcd;
mod webhooks;

use std::net::SocketAddr;
use std::time::Duration;

use jiff::SignedDuration;

use super::{Election, Environment, RunConfig, SettingError, SettingErrors, Settings};
use crate::api::names;
use crate::cli::RunArgs;
use crate::leader_election::{MAX_LEASE_DURATION, Timing};
use crate::telemetry::{LogFilter, LogFormat, SHUTDOWN_GRACE};

/// For the last answers of the webhooks, and to close the ports.
const DRAIN_CLOSE_GRACE: Duration = Duration::from_secs(5);

/// Checks everything, and only then answers. `cluster` is the way to the API server, or why there
/// is none; whoever gets settings gets it with them.
pub(crate) fn check<Cluster>(
    args: &RunArgs,
    environment: &Environment,
    cluster: Result<Cluster, String>,
) -> Result<(Settings, Cluster), SettingErrors> {
    let mut checker = Checker(Vec::new());
    let log_format = checker.log_format(&args.log_format);
    let log_filter = checker.log_filter(&args.log_filter);
    let listen = checker.listen(&args.listen);
    let lease_name = checker.lease_name(&args.lease_name);
    let lease_namespace = checker.lease_namespace(args.lease_namespace.as_deref(), environment);
    let identity = checker.identity(args.identity.as_deref(), environment);
    let timing = checker.timing(args);
    let scope = checker.scope(args);
    let webhooks = checker.webhooks(args);
    let etcd = checker.etcd(args);
    let migration = checker.migration(args);
    let shutdown_grace = checker.shutdown_grace(args, timing);
    let cluster = checker.cluster(cluster);
    let settings = || {
        Some(Settings {
            log_format: log_format?,
            log_filter: log_filter?,
            config: RunConfig {
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
    match (settings(), cluster, checker.0) {
        (Some(settings), Some(cluster), problems) if problems.is_empty() => Ok((settings, cluster)),
        (_, _, problems) => Err(SettingErrors(problems)),
    }
}

/// The problems found so far. Each question answers with the value, or notes why it cannot.
struct Checker(Vec<SettingError>);

impl Checker {
    fn add(&mut self, setting: &'static str, found: &str, expected: &str, hint: &str) {
        self.0.push(SettingError {
            setting,
            found: Some(found.to_owned()),
            expected: expected.to_owned(),
            hint: hint.to_owned(),
        });
    }

    fn log_format(&mut self, text: &str) -> Option<LogFormat> {
        let format = LogFormat::named(text);
        if format.is_none() {
            let expected = "it must be json or text";
            self.add("--log-format", text, expected, "give one of the two, or leave it out");
        }
        format
    }

    fn log_filter(&mut self, text: &str) -> Option<LogFilter> {
        let filter = LogFilter::parse(text);
        if filter.is_none() {
            let expected = "it must be a level (error, warn, info, debug, trace, off) or a list \
                           like info,quorate=debug";
            self.add("--log-filter", text, expected, "try info");
        }
        filter
    }

    fn listen(&mut self, text: &str) -> Option<SocketAddr> {
        self.address("--listen", text, "0.0.0.0:8080 or [::]:8080")
    }

    fn address(&mut self, setting: &'static str, text: &str, like: &str) -> Option<SocketAddr> {
        let address = text.parse().ok();
        if address.is_none() {
            let expected = format!("it must be an IP address and a port, like {like}");
            self.add(setting, text, &expected, "write the address in digits, with its port");
        }
        address
    }

    fn lease_name(&mut self, text: &str) -> Option<String> {
        if names::is_dns_subdomain(text) {
            return Some(text.to_owned());
        }
        let expected = "Kubernetes names have lower case letters, digits, dashes and dots";
        self.add("--lease-name", text, expected, "rename it, or leave it out");
        None
    }

    fn lease_namespace(&mut self, flag: Option<&str>, environment: &Environment) -> Option<String> {
        let Some(namespace) = flag.or(environment.pod_namespace.as_deref()) else {
            self.0.push(SettingError {
                setting: "--lease-namespace",
                found: None,
                expected: "the Lease must live in a namespace, and this is no pod that could tell \
                          its own (POD_NAMESPACE is not set, no service account is mounted)"
                    .to_owned(),
                hint: format!("give --lease-namespace, for example {}", names::NAMESPACE),
            });
            return None;
        };
        self.namespace("--lease-namespace", namespace)
    }

    fn namespace(&mut self, setting: &'static str, text: &str) -> Option<String> {
        if names::is_dns_label(text) {
            return Some(text.to_owned());
        }
        let expected = "namespaces have 1 to 63 lower case letters, digits and dashes";
        self.add(setting, text, expected, "give the name of one that exists");
        None
    }

    /// A name of the process, not of the pod: a container that is started again in the same pod
    /// must not take the lease of the one before it, whose last calls may still be on their way.
    fn identity(&mut self, flag: Option<&str>, environment: &Environment) -> Option<String> {
        let host = environment.pod_name.as_deref().or(environment.host_name.as_deref());
        let host = host.unwrap_or(names::OPERATOR);
        let identity =
            flag.map_or_else(|| format!("{host}_{:08x}", environment.nonce), ToOwned::to_owned);
        let fits = !identity.is_empty()
            && identity.len() <= 253
            && identity.bytes().all(|byte| byte.is_ascii_graphic());
        if fits {
            return Some(identity);
        }
        let expected = "it must be 1 to 253 visible ASCII characters without spaces";
        let hint = "choose a name that only this process has";
        self.add("--identity", &identity, expected, hint);
        None
    }

    fn timing(&mut self, args: &RunArgs) -> Option<Timing> {
        let lease = self.duration("--lease-duration", &args.lease_duration);
        let renew = self.duration("--renew-deadline", &args.renew_deadline);
        let retry = self.duration("--retry-period", &args.retry_period);
        if lease.is_some_and(|lease| lease.subsec_nanos() != 0) {
            let expected = "a Lease counts whole seconds";
            self.add("--lease-duration", &args.lease_duration, expected, "round it up");
        }
        // Clocks differ, and a leader must have stopped before another may start: a fifth of the
        // lease duration lies between them.
        if let (Some(lease), Some(renew)) = (lease, renew)
            && renew.saturating_mul(5) > lease.saturating_mul(4)
        {
            let lease = &args.lease_duration;
            let expected = format!("it must be at most four fifths of --lease-duration {lease}");
            let hint = "lower it, so that a leader stops well before another may start";
            self.add("--renew-deadline", &args.renew_deadline, &expected, hint);
        }
        if let (Some(renew), Some(retry)) = (renew, retry)
            && renew < retry.saturating_mul(2)
        {
            let expected =
                format!("it must be at most half of --renew-deadline {}", args.renew_deadline);
            let hint = "lower it, so that one failed call does not cost the lease";
            self.add("--retry-period", &args.retry_period, &expected, hint);
        }
        Some(Timing { lease_duration: lease?, renew_deadline: renew?, retry_period: retry? })
    }

    fn duration(&mut self, setting: &'static str, text: &str) -> Option<Duration> {
        let fits =
            time(text).filter(|it| *it >= Duration::from_millis(100) && *it <= MAX_LEASE_DURATION);
        if fits.is_none() {
            let expected = "it must be a time between 100ms and 1h, like 500ms, 15s or 1m30s";
            self.add(setting, text, expected, "write a number with its unit, or leave it out");
        }
        fits
    }

    /// The grace must be long enough to let the Lease go and to close the probe port; a release
    /// that is cut short costs the next leader a whole lease duration. The webhooks are drained
    /// meanwhile, and need a moment for their last answers.
    fn shutdown_grace(&mut self, args: &RunArgs, timing: Option<Timing>) -> Option<Duration> {
        let grace = self.duration("--shutdown-grace", &args.shutdown_grace)?;
        let least = timing.map(|it| it.release_timeout().saturating_add(SHUTDOWN_GRACE));
        if let Some(least) = least.filter(|least| grace < *least) {
            let expected = format!(
                "it must be at least {}ms, one and a half times --renew-deadline {} and {}s for \
                 the probe port",
                least.as_millis(),
                args.renew_deadline,
                SHUTDOWN_GRACE.as_secs(),
            );
            let hint = "raise it, and the pod's terminationGracePeriodSeconds with it, or lower \
                          --renew-deadline";
            self.add("--shutdown-grace", &args.shutdown_grace, &expected, hint);
        }
        let drained =
            time(&args.webhook_drain_timeout).map(|it| it.saturating_add(DRAIN_CLOSE_GRACE));
        if drained.is_some_and(|drained| grace < drained) {
            let (drain, more) = (&args.webhook_drain_timeout, DRAIN_CLOSE_GRACE.as_secs());
            let expected =
                format!("it must be at least --webhook-drain-timeout {drain} and {more}s longer");
            self.add(
                "--shutdown-grace",
                &args.shutdown_grace,
                &expected,
                "raise it, or lower --webhook-drain-timeout",
            );
        }
        Some(grace)
    }

    fn cluster<Cluster>(&mut self, cluster: Result<Cluster, String>) -> Option<Cluster> {
        match cluster {
            Ok(cluster) => Some(cluster),
            Err(why) => {
                self.0.push(SettingError {
                    setting: "the Kubernetes cluster",
                    found: None,
                    expected: format!("quorate must know which API server to talk to ({why})"),
                    hint: "run in a pod with a service account, or set KUBECONFIG to a file \
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
