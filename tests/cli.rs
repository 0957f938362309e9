//! The built program from the outside: what it prints, how it ends, and that it needs no cluster
//! to stay alive. Comes in: the program. Goes out: its promises, one sentence each.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "support/binary.rs"]
mod binary;

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use binary::{Running, finished, folder, quorate, until};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A loopback port at which nobody listens.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn help_lists_every_subcommand() {
    let help = text(&finished(&["--help"]).stdout);
    for subcommand in ["run", "crds", "manifests", "migrate", "version", "completion"] {
        let listed = help.lines().any(|line| line.trim_start().starts_with(subcommand));
        assert!(listed, "{subcommand} is missing in {help}");
    }
}

#[test]
fn whoever_cannot_reach_a_cluster_is_told_so_and_nothing_is_shown() {
    for what in ["status", "run", "dry-run"] {
        let output = finished(&["migrate", what]);
        assert_eq!(output.status.code(), Some(1), "{what}");
        assert!(text(&output.stdout).is_empty(), "{what}");
        assert!(
            text(&output.stderr).starts_with("quorate: failed to find a cluster"),
            "{what}: {output:?}"
        );
    }
}

#[test]
fn without_a_subcommand_help_is_shown_and_it_is_an_error() {
    let output = finished(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("Usage: quorate <COMMAND>"));
}

#[test]
fn version_is_told_to_people_and_to_programs() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(text(&finished(&["version"]).stdout), format!("quorate {version}\n"));
    let output = finished(&["version", "--output", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["version"], version);
}

#[test]
fn crds_prints_what_is_in_crds_and_writes_the_same_into_a_folder() {
    let there = concat!(env!("CARGO_MANIFEST_DIR"), "/crds");
    let folder = folder();
    let output = finished(&["crds", "--write", folder.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let printed = finished(&["crds"]);
    let printed = text(&printed.stdout);
    let mut files = 0;
    for file in fs::read_dir(there).unwrap() {
        let file = file.unwrap();
        let words = fs::read_to_string(file.path()).unwrap();
        assert!(fs::read_to_string(folder.join(file.file_name())).unwrap() == words);
        assert!(printed.contains(&words), "{:?} was not printed", file.file_name());
        files += 1;
    }
    assert_eq!(files, 5);
}

#[test]
fn crds_cannot_check_and_write_at_once() {
    let output = finished(&["crds", "--check", "--write", "somewhere"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn manifests_prints_what_is_in_deploy_and_writes_the_same_into_a_folder() {
    let there = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/install.yaml");
    let there = fs::read_to_string(there).unwrap();
    assert_eq!(text(&finished(&["manifests"]).stdout), there);
    let folder = folder();
    let output = finished(&["manifests", "--write", folder.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read_to_string(folder.join("install.yaml")).unwrap(), there);
    assert!(folder.join("base/kustomization.yaml").is_file());
}

#[test]
fn another_namespace_reaches_the_service_that_converts() {
    let printed = text(&finished(&["crds", "--namespace", "elsewhere"]).stdout);
    assert_eq!(printed.matches("          namespace: elsewhere\n").count(), 2);
    assert!(!printed.contains("quorate-system"));
    let refused = finished(&["crds", "--namespace", "Not_One"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn the_definitions_can_be_left_out_but_not_of_what_is_written() {
    let without = text(&finished(&["manifests", "--no-crds"]).stdout);
    assert!(!without.contains("kind: CustomResourceDefinition\n"));
    assert!(without.contains("kind: ValidatingWebhookConfiguration\n"));
    let output = finished(&["manifests", "--no-crds", "--write", "somewhere"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_namespace_that_kubernetes_would_refuse_makes_no_manifests() {
    let output = finished(&["manifests", "--namespace", "Not_One"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("lower case"));
}

#[test]
fn completion_for_bash_is_a_script_that_bash_can_read() {
    let script = finished(&["completion", "bash"]).stdout;
    assert!(text(&script).contains("quorate"));
    let path = folder().join("completion.bash");
    fs::write(&path, script).unwrap();
    assert!(Command::new("bash").arg("-n").arg(path).status().unwrap().success());
}

#[test]
fn all_wrong_settings_are_reported_at_once() {
    let output = quorate(&[
        "run",
        "--listen=nowhere",
        "--retry-period=9s",
        "--log-filter=inof",
        "--identity=",
    ])
    .env("QUORATE_LOG_FORMAT", "xml")
    .env("QUORATE_LEASE_DURATION", "soon")
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let told = text(&output.stderr);
    for words in [
        "--log-format is \"xml\"",
        "--log-filter is \"inof\"",
        "--listen is \"nowhere\"",
        "--lease-namespace is not set",
        "--identity is \"\"",
        "--lease-duration is \"soon\"",
        "--retry-period is \"9s\"",
        "the Kubernetes cluster is not set",
        "set KUBECONFIG",
    ] {
        assert!(told.contains(words), "{words} is missing in {told}");
    }
}

#[test]
fn without_a_cluster_that_answers_it_stays_alive_and_unready_and_does_not_lead() {
    let mut running = Running::start(closed_port());
    running.logs("cannot reach the Kubernetes API");
    let line = running.log("cannot reach the Kubernetes API").remove(0);
    assert_eq!(line["level"], "WARN");
    assert!(line["error"].as_str().unwrap().contains("Connection refused"), "{line}");

    assert!(running.get("/livez").starts_with("HTTP/1.1 200"));
    let ready = running.get("/readyz");
    assert!(ready.starts_with("HTTP/1.1 503"), "{ready}");
    assert!(ready.contains("[-]kubernetes-api failed"), "{ready}");
    let metrics = running.get("/metrics");
    for line in [
        "quorate_build_info{",
        "process_start_time_seconds ",
        "quorate_leader 0\n",
        "quorate_leadership_changes_total 0\n",
    ] {
        assert!(metrics.contains(line), "{line} is missing in {metrics}");
    }
    assert!(running.is_alive());

    running.signal("TERM");
    assert_eq!(running.end().code(), Some(0));
    assert!(!running.log("\"stopped\"").is_empty());
    assert_eq!(running.log("stopping").remove(0)["signal"], "SIGTERM");
}

#[test]
fn an_address_in_use_is_told_with_its_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("--listen={}", taken.local_addr().unwrap());
    let output = quorate(&["run", &listen, "--lease-namespace=here"])
        .env("KUBECONFIG", binary::kubeconfig(closed_port()))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    // The log has begun by then, so it is a line of the log.
    let told: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(told["level"], "ERROR");
    let error = told["error"].as_str().unwrap();
    assert!(error.contains("is the port of --listen already in use?"), "{error}");
}

#[test]
fn a_signal_is_heard_while_the_cluster_is_still_being_found() {
    let begun = folder().join("begun");
    let user = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, \
         command: sh, args: [-c, 'touch {}; exec sleep 45']}}}}",
        begun.display()
    );
    let kubeconfig = binary::kubeconfig_of_user(closed_port(), &user);
    let mut running = Running::given(&kubeconfig, &[]);
    until("credentials are asked for", || begun.is_file());
    running.signal("TERM");
    assert_eq!(running.end().code(), Some(0));
}

#[test]
fn a_namespace_that_is_there_already_can_be_left_out() {
    let with = finished(&["manifests", "--namespace", "mine"]);
    assert!(text(&with.stdout).contains("kind: Namespace\n"));
    let without = finished(&["manifests", "--namespace", "mine", "--no-namespace"]);
    assert!(without.status.success());
    assert!(!text(&without.stdout).contains("kind: Namespace\n"));
    assert!(text(&without.stdout).contains("  namespace: mine\n"));
    let folder = folder();
    let written = finished(&["manifests", "--no-namespace", "--write", folder.to_str().unwrap()]);
    assert!(written.status.success());
    assert!(!folder.join("base/namespace.yaml").exists());
    let kustomization = fs::read_to_string(folder.join("base/kustomization.yaml")).unwrap();
    assert!(!kustomization.contains("namespace.yaml"));
}
