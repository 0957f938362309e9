//! Accepted settings, and the errors of invalid ones.

use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};

fn args(flags: &[&str]) -> RunArgs {
    let line = ["quorate", "run"].iter().chain(flags);
    let Command::Run(args) = Cli::try_parse_from(line).unwrap().command else {
        panic!("not the subcommand run");
    };
    *args
}

fn in_a_pod() -> Environment {
    Environment {
        pod_name: Some("quorate-0".to_owned()),
        pod_namespace: Some("quorate-system".to_owned()),
        host_name: Some("node".to_owned()),
        nonce: 0xabc,
    }
}

/// Checks with a usable cluster configuration.
fn checked(flags: &[&str], environment: &Environment) -> Result<Settings, SettingErrors> {
    check(&args(flags), environment, Ok(())).map(|(settings, ())| settings)
}

fn names(SettingErrors(errors): SettingErrors) -> Vec<&'static str> {
    errors.into_iter().map(|error| error.setting).collect()
}

fn invalid(flags: &[&str], environment: &Environment) -> Vec<&'static str> {
    names(checked(flags, environment).unwrap_err())
}

#[test]
fn in_a_pod_all_settings_have_defaults() {
    let settings = checked(&[], &in_a_pod()).unwrap();
    assert_eq!(settings.config.listen, "0.0.0.0:8080".parse().unwrap());
    assert_eq!(settings.config.election.lease_name, "quorate");
    assert_eq!(settings.config.election.lease_namespace, "quorate-system");
    assert_eq!(settings.config.election.identity, "quorate-0_00000abc");
    assert_eq!(settings.config.election.timing.lease_duration, Duration::from_secs(15));
    assert_eq!(settings.config.election.timing.renew_deadline, Duration::from_secs(10));
    assert_eq!(settings.config.election.timing.retry_period, Duration::from_secs(2));
    assert_eq!(settings.config.shutdown_grace, Duration::from_secs(20));
    assert_eq!(settings.log_format, LogFormat::Json);
}

#[test]
fn outside_a_pod_the_lease_namespace_is_required() {
    let environment = Environment { pod_name: None, pod_namespace: None, ..in_a_pod() };
    assert_eq!(invalid(&[], &environment), ["--lease-namespace"]);
    let settings = checked(&["--lease-namespace", "here"], &environment).unwrap();
    assert_eq!(settings.config.election.identity, "node_00000abc");
    assert_eq!(settings.config.election.lease_namespace, "here");
}

#[test]
fn all_invalid_settings_are_reported_at_once() {
    let flags = [
        "--log-format=xml",
        "--log-filter=quorate=loud",
        "--listen=localhost",
        "--lease-name=Not_A_Name",
        "--lease-namespace=a.b",
        "--identity=two words",
        "--lease-duration=later",
        "--renew-deadline=-1s",
        "--retry-period=0s",
        "--shutdown-grace=2h",
    ];
    let expected = [
        "--log-format",
        "--log-filter",
        "--listen",
        "--lease-name",
        "--lease-namespace",
        "--identity",
        "--lease-duration",
        "--renew-deadline",
        "--retry-period",
        "--shutdown-grace",
        "kubeconfig",
    ];
    let cluster: Result<(), String> = Err("no file".to_owned());
    let checked = check(&args(&flags), &in_a_pod(), cluster);
    assert_eq!(names(checked.unwrap_err()), expected);
}

#[test]
fn durations_that_allow_two_leaders_are_invalid() {
    for (flag, setting) in [
        ("--renew-deadline=8001ms", "--renew-deadline"),
        ("--retry-period=4001ms", "--retry-period"),
        ("--lease-duration=10500ms", "--lease-duration"),
    ] {
        let flags = ["--lease-duration=10s", "--renew-deadline=8s"];
        let mut flags: Vec<&str> =
            flags.into_iter().filter(|flag| !flag.starts_with(setting)).collect();
        flags.push(flag);
        assert_eq!(invalid(&flags, &in_a_pod()), [setting]);
    }
    let tight = ["--lease-duration=15s", "--renew-deadline=12s", "--retry-period=6s"];
    assert!(checked(&tight, &in_a_pod()).is_ok());
}

#[test]
fn shutdown_grace_too_short_to_release_the_lease_is_invalid() {
    // Three requests of half the renew deadline each, and two seconds for the probe server.
    assert_eq!(invalid(&["--shutdown-grace=16999ms"], &in_a_pod()), ["--shutdown-grace"]);
    assert!(checked(&["--shutdown-grace=17s"], &in_a_pod()).is_ok());
}

#[test]
fn last_third_of_the_ca_lifetime_has_time_for_two_overlaps() {
    let lifetime = "--etcd-ca-lifetime=2160h";
    assert!(checked(&[lifetime, "--etcd-ca-overlap=360h"], &in_a_pod()).is_ok());
    let too_long = [lifetime, "--etcd-ca-overlap=361h"];
    assert_eq!(invalid(&too_long, &in_a_pod()), ["--etcd-ca-overlap"]);
    assert_eq!(invalid(&["--etcd-ca-overlap=later"], &in_a_pod()), ["--etcd-ca-overlap"]);
}

#[test]
fn identity_from_the_environment_is_validated_like_the_flag() {
    let environment = Environment { pod_name: Some("two words".to_owned()), ..in_a_pod() };
    assert_eq!(invalid(&[], &environment), ["--identity"]);
    assert!(checked(&["--identity=mine"], &environment).is_ok());
}

#[test]
fn error_has_the_flag_the_value_the_expected_values_and_a_hint() {
    let errors = checked(&["--log-format=xml"], &in_a_pod()).unwrap_err().to_string();
    let expected = "  --log-format: Invalid value: \"xml\": must be json or text; omit the flag \
                    for the default\n";
    assert!(errors.contains(expected), "{errors}");
}
