//! The built binary: output, exit codes, and that it stays alive without a reachable cluster.
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

/// A closed loopback port.
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
fn migrate_without_a_cluster_fails_and_prints_nothing() {
    for command in ["status", "run", "dry-run"] {
        let output = finished(&["migrate", command]);
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert!(text(&output.stdout).is_empty(), "{command}");
        assert!(
            text(&output.stderr)
                .starts_with("quorate: failed to read a kubeconfig or a service account"),
            "{command}: {output:?}"
        );
    }
}

#[test]
fn missing_subcommand_prints_help_and_fails() {
    let output = finished(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("Usage: quorate <COMMAND>"));
}

#[test]
fn version_is_printed_as_text_and_as_json() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(text(&finished(&["version"]).stdout), format!("quorate {version}\n"));
    let output = finished(&["version", "--output", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["version"], version);
}

#[test]
fn crds_prints_and_writes_the_files_in_crds() {
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/crds");
    let folder = folder();
    let output = finished(&["crds", "--write", folder.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let printed = finished(&["crds"]);
    let printed = text(&printed.stdout);
    let mut files = 0;
    for file in fs::read_dir(committed).unwrap() {
        let file = file.unwrap();
        let content = fs::read_to_string(file.path()).unwrap();
        assert!(fs::read_to_string(folder.join(file.file_name())).unwrap() == content);
        assert!(printed.contains(&content), "{:?} was not printed", file.file_name());
        files += 1;
    }
    assert_eq!(files, 5);
}

#[test]
fn crds_check_and_write_are_mutually_exclusive() {
    let output = finished(&["crds", "--check", "--write", "somewhere"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn manifests_prints_and_writes_the_files_in_deploy() {
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/install.yaml");
    let committed = fs::read_to_string(committed).unwrap();
    assert_eq!(text(&finished(&["manifests"]).stdout), committed);
    let folder = folder();
    let output = finished(&["manifests", "--write", folder.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read_to_string(folder.join("install.yaml")).unwrap(), committed);
    assert!(folder.join("base/kustomization.yaml").is_file());
}

#[test]
fn namespace_flag_sets_the_namespace_of_the_conversion_webhook() {
    let printed = text(&finished(&["crds", "--namespace", "elsewhere"]).stdout);
    assert_eq!(printed.matches("          namespace: elsewhere\n").count(), 2);
    assert!(!printed.contains("quorate-system"));
    let invalid = finished(&["crds", "--namespace", "Not_One"]);
    assert_eq!(invalid.status.code(), Some(2));
}

#[test]
fn crds_can_be_omitted_from_printed_manifests_only() {
    let without = text(&finished(&["manifests", "--no-crds"]).stdout);
    assert!(!without.contains("kind: CustomResourceDefinition\n"));
    assert!(without.contains("kind: ValidatingWebhookConfiguration\n"));
    let output = finished(&["manifests", "--no-crds", "--write", "somewhere"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn invalid_namespace_prints_no_manifests() {
    let output = finished(&["manifests", "--namespace", "Not_One"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("must be a lowercase RFC 1123 label"));
}

#[test]
fn bash_completion_is_a_valid_bash_script() {
    let script = finished(&["completion", "bash"]).stdout;
    assert!(text(&script).contains("quorate"));
    let path = folder().join("completion.bash");
    fs::write(&path, script).unwrap();
    assert!(Command::new("bash").arg("-n").arg(path).status().unwrap().success());
}

#[test]
fn all_invalid_settings_are_reported_at_once() {
    let output = quorate(&[
        "run",
        "--listen=nowhere",
        "--retry-period=9s",
        "--log-filter=inof",
        "--identity=",
    ])
    .env("QUORATE_LOG_FORMAT", "xml")
    .env("QUORATE_LEASE_DURATION", "later")
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let errors = text(&output.stderr);
    for expected in [
        "quorate: invalid settings:\n",
        "--log-format: Invalid value: \"xml\": must be json or text",
        "--log-filter: Invalid value: \"inof\"",
        "--listen: Invalid value: \"nowhere\"",
        "--lease-namespace: Required value",
        "--identity: Invalid value: \"\"",
        "--lease-duration: Invalid value: \"later\"",
        "--retry-period: Invalid value: \"9s\"",
        "kubeconfig: Required value",
        "set KUBECONFIG",
    ] {
        assert!(errors.contains(expected), "{expected} is missing in {errors}");
    }
}

#[test]
fn with_an_unreachable_cluster_the_replica_is_live_and_not_ready_and_does_not_lead() {
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
    assert_eq!(running.log("shutting down").remove(0)["signal"], "SIGTERM");
}

#[test]
fn address_in_use_is_reported_with_its_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("--listen={}", taken.local_addr().unwrap());
    let output = quorate(&["run", &listen, "--lease-namespace=here"])
        .env("KUBECONFIG", binary::kubeconfig(closed_port()))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    // The log is started by then, so the error is a log line.
    let line: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(line["level"], "ERROR");
    let error = line["error"].as_str().unwrap();
    assert!(error.contains("is the port of --listen already in use?"), "{error}");
}

#[test]
fn signal_is_handled_while_the_cluster_configuration_is_loaded() {
    let started = folder().join("started");
    let user = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, \
         command: sh, args: [-c, 'touch {}; exec sleep 45']}}}}",
        started.display()
    );
    let kubeconfig = binary::kubeconfig_of_user(closed_port(), &user);
    let mut running = Running::given(&kubeconfig, &[]);
    until("the credential plugin runs", || started.is_file());
    running.signal("TERM");
    assert_eq!(running.end().code(), Some(0));
}

#[test]
fn namespace_object_can_be_omitted() {
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
