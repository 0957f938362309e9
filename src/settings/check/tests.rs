//! Accepted settings, and the errors of invalid ones.

use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};

fn args(flags: &[&str]) -> RunArgs {
    let line = ["quorate", "run"].iter().chain(flags);
    let Command::Run(args) = Cli::try_parse_from(line).unwrap().command else {
        panic!("the line does not say run");
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

/// Checks with a cluster at hand.
fn checked(flags: &[&str], environment: &Environment) -> Result<Settings, SettingErrors> {
    check(&args(flags), environment, Ok(())).map(|(settings, ())| settings)
}

fn named(SettingErrors(problems): SettingErrors) -> Vec<&'static str> {
    problems.into_iter().map(|problem| problem.setting).collect()
}

fn problems(flags: &[&str], environment: &Environment) -> Vec<&'static str> {
    named(checked(flags, environment).unwrap_err())
}

#[test]
fn in_a_pod_nothing_needs_to_be_given() {
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
fn outside_a_pod_the_host_gives_the_name_and_the_user_gives_the_namespace() {
    let environment = Environment { pod_name: None, pod_namespace: None, ..in_a_pod() };
    assert_eq!(problems(&[], &environment), ["--lease-namespace"]);
    let settings = checked(&["--lease-namespace", "here"], &environment).unwrap();
    assert_eq!(settings.config.election.identity, "node_00000abc");
    assert_eq!(settings.config.election.lease_namespace, "here");
}

#[test]
fn every_wrong_setting_is_reported_and_not_only_the_first() {
    let flags = [
        "--log-format=xml",
        "--log-filter=quorate=loud",
        "--listen=localhost",
        "--lease-name=Not_A_Name",
        "--lease-namespace=a.b",
        "--identity=two words",
        "--lease-duration=soon",
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
        "the Kubernetes cluster",
    ];
    let cluster: Result<(), String> = Err("no file".to_owned());
    let refused = check(&args(&flags), &in_a_pod(), cluster);
    assert_eq!(named(refused.unwrap_err()), expected);
}

#[test]
fn times_that_could_make_two_leaders_are_refused() {
    for (flag, setting) in [
        ("--renew-deadline=8001ms", "--renew-deadline"),
        ("--retry-period=4001ms", "--retry-period"),
        ("--lease-duration=10500ms", "--lease-duration"),
    ] {
        let flags = ["--lease-duration=10s", "--renew-deadline=8s"];
        let mut flags: Vec<&str> =
            flags.into_iter().filter(|it| !it.starts_with(setting)).collect();
        flags.push(flag);
        assert_eq!(problems(&flags, &in_a_pod()), [setting]);
    }
    let tight = ["--lease-duration=15s", "--renew-deadline=12s", "--retry-period=6s"];
    assert!(checked(&tight, &in_a_pod()).is_ok());
}

#[test]
fn a_grace_that_is_too_short_for_a_release_is_refused() {
    // Three calls of half the renew deadline, and two seconds for the probe port.
    assert_eq!(problems(&["--shutdown-grace=16999ms"], &in_a_pod()), ["--shutdown-grace"]);
    assert!(checked(&["--shutdown-grace=17s"], &in_a_pod()).is_ok());
}

#[test]
fn an_authority_lives_long_enough_for_two_overlaps_in_the_last_third_of_its_life() {
    let life = "--etcd-ca-lifetime=2160h";
    assert!(checked(&[life, "--etcd-ca-overlap=360h"], &in_a_pod()).is_ok());
    let too_long = [life, "--etcd-ca-overlap=361h"];
    assert_eq!(problems(&too_long, &in_a_pod()), ["--etcd-ca-overlap"]);
    assert_eq!(problems(&["--etcd-ca-overlap=soon"], &in_a_pod()), ["--etcd-ca-overlap"]);
}

#[test]
fn a_name_that_the_surroundings_give_is_checked_like_one_that_was_given() {
    let environment = Environment { pod_name: Some("two words".to_owned()), ..in_a_pod() };
    assert_eq!(problems(&[], &environment), ["--identity"]);
    assert!(checked(&["--identity=mine"], &environment).is_ok());
}

#[test]
fn a_problem_names_the_flag_the_value_what_is_allowed_and_what_to_do() {
    let problems = checked(&["--log-format=xml"], &in_a_pod()).unwrap_err().to_string();
    for words in ["--log-format", "\"xml\"", "must be json or text", "leave it out"] {
        assert!(problems.contains(words), "{words} is missing in {problems}");
    }
}
