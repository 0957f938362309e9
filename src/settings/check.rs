//! Converts flags and environment into `Settings`, or reports all errors at once. Pure.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod etcd;
mod webhooks;

use std::net::SocketAddr;
use std::time::Duration;

use jiff::SignedDuration;

use super::{Election, Environment, RunConfig, SettingError, SettingErrors, Settings};
use crate::api::names;
use crate::cli::{NAMESPACE_RULE, RunArgs};
use crate::leader_election::{MAX_LEASE_DURATION, Timing};
use crate::telemetry::{LogFilter, LogFormat, SHUTDOWN_GRACE};

/// Time for the last webhook responses, and to close the ports.
const DRAIN_CLOSE_GRACE: Duration = Duration::from_secs(5);
const OMIT_HINT: &str = "omit the flag for the default";

/// Checks all settings before it returns. `cluster` is the client of the API server, or the error
/// of its configuration.
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
        (Some(settings), Some(cluster), errors) if errors.is_empty() => Ok((settings, cluster)),
        (_, _, errors) => Err(SettingErrors(errors)),
    }
}

/// The errors found so far. Each method returns the value, or adds an error.
struct Checker(Vec<SettingError>);

impl Checker {
    fn add(&mut self, setting: &'static str, value: &str, expected: &str, hint: &str) {
        self.0.push(SettingError {
            setting,
            value: Some(value.to_owned()),
            expected: expected.to_owned(),
            hint: hint.to_owned(),
        });
    }

    fn log_format(&mut self, text: &str) -> Option<LogFormat> {
        let format = LogFormat::named(text);
        if format.is_none() {
            self.add("--log-format", text, "must be json or text", OMIT_HINT);
        }
        format
    }

    fn log_filter(&mut self, text: &str) -> Option<LogFilter> {
        let filter = LogFilter::parse(text);
        if filter.is_none() {
            let expected = "must be a level (error, warn, info, debug, trace, off) or directives \
                            such as info,quorate=debug";
            self.add("--log-filter", text, expected, OMIT_HINT);
        }
        filter
    }

    fn listen(&mut self, text: &str) -> Option<SocketAddr> {
        self.address("--listen", text, "0.0.0.0:8080 or [::]:8080")
    }

    fn address(&mut self, setting: &'static str, text: &str, example: &str) -> Option<SocketAddr> {
        let address = text.parse().ok();
        if address.is_none() {
            let expected = format!("must be an IP address and a port, such as {example}");
            self.add(setting, text, &expected, "host names are not resolved");
        }
        address
    }

    fn lease_name(&mut self, text: &str) -> Option<String> {
        if names::is_dns_subdomain(text) {
            return Some(text.to_owned());
        }
        let expected = "must be a lowercase RFC 1123 subdomain: alphanumeric characters, '-' or \
                        '.', starting and ending with an alphanumeric character";
        self.add("--lease-name", text, expected, OMIT_HINT);
        None
    }

    fn lease_namespace(&mut self, flag: Option<&str>, environment: &Environment) -> Option<String> {
        let Some(namespace) = flag.or(environment.pod_namespace.as_deref()) else {
            self.0.push(SettingError {
                setting: "--lease-namespace",
                value: None,
                expected: "not running in a pod (POD_NAMESPACE is not set and no service account \
                           is mounted)"
                    .to_owned(),
                hint: format!("set the flag, for example --lease-namespace={}", names::NAMESPACE),
            });
            return None;
        };
        self.namespace("--lease-namespace", namespace)
    }

    fn namespace(&mut self, setting: &'static str, text: &str) -> Option<String> {
        if names::is_dns_label(text) {
            return Some(text.to_owned());
        }
        self.add(setting, text, NAMESPACE_RULE, "use the name of an existing namespace");
        None
    }

    /// An identity of the process, not of the pod: a restarted container must not hold the Lease of
    /// its predecessor: the last requests of that process may still be in flight.
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
        let expected = "must be 1 to 253 printable ASCII characters without spaces";
        let hint = "use a name that is unique to this process";
        self.add("--identity", &identity, expected, hint);
        None
    }

    fn timing(&mut self, args: &RunArgs) -> Option<Timing> {
        let lease = self.duration("--lease-duration", &args.lease_duration);
        let renew = self.duration("--renew-deadline", &args.renew_deadline);
        let retry = self.duration("--retry-period", &args.retry_period);
        if lease.is_some_and(|lease| lease.subsec_nanos() != 0) {
            let expected = "must be whole seconds";
            self.add("--lease-duration", &args.lease_duration, expected, "round up");
        }
        // Clocks drift, and a leader must have stopped before another replica may lead: a fifth of
        // the lease duration lies between.
        if let (Some(lease), Some(renew)) = (lease, renew)
            && renew.saturating_mul(5) > lease.saturating_mul(4)
        {
            let lease = &args.lease_duration;
            let expected = format!("must be at most four fifths of --lease-duration {lease}");
            let hint = "a leader must stop before another replica may acquire the Lease";
            self.add("--renew-deadline", &args.renew_deadline, &expected, hint);
        }
        if let (Some(renew), Some(retry)) = (renew, retry)
            && renew < retry.saturating_mul(2)
        {
            let expected =
                format!("must be at most half of --renew-deadline {}", args.renew_deadline);
            let hint = "a single failed request must not lose the Lease";
            self.add("--retry-period", &args.retry_period, &expected, hint);
        }
        Some(Timing { lease_duration: lease?, renew_deadline: renew?, retry_period: retry? })
    }

    fn duration(&mut self, setting: &'static str, text: &str) -> Option<Duration> {
        let allowed = Duration::from_millis(100)..=MAX_LEASE_DURATION;
        let duration = parse_duration(text).filter(|duration| allowed.contains(duration));
        if duration.is_none() {
            let expected = "must be a duration from 100ms to 1h, such as 500ms, 15s or 1m30s";
            self.add(setting, text, expected, OMIT_HINT);
        }
        duration
    }

    /// The grace period must suffice to release the Lease and to close the probe port; without a
    /// release the next leader waits for a whole lease duration. The webhook server drains
    /// meanwhile, and needs time for its last responses.
    fn shutdown_grace(&mut self, args: &RunArgs, timing: Option<Timing>) -> Option<Duration> {
        let grace = self.duration("--shutdown-grace", &args.shutdown_grace)?;
        let min = timing.map(|timing| timing.release_timeout().saturating_add(SHUTDOWN_GRACE));
        if let Some(min) = min.filter(|min| grace < *min) {
            let expected = format!(
                "must be at least {}ms: one and a half times --renew-deadline {} plus {}s for the \
                 probe server",
                min.as_millis(),
                args.renew_deadline,
                SHUTDOWN_GRACE.as_secs(),
            );
            let hint = "raise --shutdown-grace and terminationGracePeriodSeconds of the pod, or \
                        lower --renew-deadline";
            self.add("--shutdown-grace", &args.shutdown_grace, &expected, hint);
        }
        let drained = parse_duration(&args.webhook_drain_timeout);
        if drained.is_some_and(|drained| grace < drained.saturating_add(DRAIN_CLOSE_GRACE)) {
            let (drain, more) = (&args.webhook_drain_timeout, DRAIN_CLOSE_GRACE.as_secs());
            let expected = format!("must be at least --webhook-drain-timeout {drain} plus {more}s");
            self.add(
                "--shutdown-grace",
                &args.shutdown_grace,
                &expected,
                "raise --shutdown-grace, or lower --webhook-drain-timeout",
            );
        }
        Some(grace)
    }

    fn cluster<Cluster>(&mut self, cluster: Result<Cluster, String>) -> Option<Cluster> {
        match cluster {
            Ok(cluster) => Some(cluster),
            Err(error) => {
                self.0.push(SettingError {
                    setting: "kubeconfig",
                    value: None,
                    expected: format!("no usable cluster configuration ({error})"),
                    hint: "run in a pod with a service account, or set KUBECONFIG to a file that \
                           kubectl can use"
                        .to_owned(),
                });
                None
            }
        }
    }
}

/// A duration such as `500ms` or `1m30s`.
fn parse_duration(text: &str) -> Option<Duration> {
    text.parse::<SignedDuration>().ok().and_then(|duration| Duration::try_from(duration).ok())
}

#[cfg(test)]
mod tests;
