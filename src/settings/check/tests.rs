//! Which settings are taken, and what is said about those that are not.

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

fn in_a_pod() -> Surroundings {
    Surroundings {
        pod_name: Some("quorate-0".to_owned()),
        pod_namespace: Some("quorate-system".to_owned()),
        host_name: Some("node".to_owned()),
        nonce: 0xabc,
        no_cluster: None,
    }
}

fn problems(flags: &[&str], around: &Surroundings) -> Vec<&'static str> {
    let Problems(problems) = check(&args(flags), around).unwrap_err();
    problems
        .into_iter()
        .map(|problem| problem.setting)
        .collect()
}

#[test]
fn in_a_pod_nothing_needs_to_be_given() {
    let settings = check(&args(&[]), &in_a_pod()).unwrap();
    assert_eq!(settings.listen, "0.0.0.0:8080".parse().unwrap());
    assert_eq!(settings.lease_name, "quorate");
    assert_eq!(settings.lease_namespace, "quorate-system");
    assert_eq!(settings.identity, "quorate-0_00000abc");
    assert_eq!(settings.timing.lease_duration, Duration::from_secs(15));
    assert_eq!(settings.timing.renew_deadline, Duration::from_secs(10));
    assert_eq!(settings.timing.retry_period, Duration::from_secs(2));
    assert_eq!(settings.shutdown_grace, Duration::from_secs(20));
    assert_eq!(settings.log_format, LogFormat::Json);
}

#[test]
fn outside_a_pod_the_host_gives_the_name_and_the_user_gives_the_namespace() {
    let around = Surroundings {
        pod_name: None,
        pod_namespace: None,
        ..in_a_pod()
    };
    assert_eq!(problems(&[], &around), ["--lease-namespace"]);
    let settings = check(&args(&["--lease-namespace", "here"]), &around).unwrap();
    assert_eq!(settings.identity, "node_00000abc");
    assert_eq!(settings.lease_namespace, "here");
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
    let around = Surroundings {
        no_cluster: Some("no file".to_owned()),
        ..in_a_pod()
    };
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
    assert_eq!(problems(&flags, &around), expected);
}

#[test]
fn times_that_could_make_two_leaders_are_refused() {
    assert_eq!(
        problems(&["--renew-deadline=15s"], &in_a_pod()),
        ["--renew-deadline"]
    );
    assert_eq!(
        problems(&["--retry-period=5001ms"], &in_a_pod()),
        ["--retry-period"]
    );
    assert_eq!(
        problems(&["--lease-duration=15500ms"], &in_a_pod()),
        ["--lease-duration"]
    );
    let tight = [
        "--lease-duration=2s",
        "--renew-deadline=1s",
        "--retry-period=500ms",
    ];
    assert!(check(&args(&tight), &in_a_pod()).is_ok());
}

#[test]
fn a_problem_names_the_flag_the_value_what_is_allowed_and_what_to_do() {
    let problems = check(&args(&["--log-format=xml"]), &in_a_pod())
        .unwrap_err()
        .to_string();
    for words in [
        "--log-format",
        "\"xml\"",
        "must be json or text",
        "leave it out",
    ] {
        assert!(problems.contains(words), "{words} is missing in {problems}");
    }
}
