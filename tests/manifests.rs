//! `deploy/` and `crds/` equal what the program writes, and what it writes keeps its promises.
//! Comes in: the pure renderer, and the files of the repository. Goes out: each difference, with
//! the command that mends it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "manifests/components.rs"]
mod components;
#[path = "manifests/rights.rs"]
mod rights;
#[path = "support/markdown_tables.rs"]
mod tables;
#[path = "manifests/webhooks.rs"]
mod webhooks;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use quorate::api::{crd, names};
use quorate::manifests::{self, File, Install};
use serde_json::{Value, json};

const MEND: &str = "run `make manifests` and commit the result";
/// What Kubernetes takes as the annotations of one object. `kubectl apply` writes the whole object
/// into one of them.
const MOST_BYTES: usize = 262_144;

/// The kinds of ours that belong to no namespace, besides the Namespace.
const OF_THE_CLUSTER: [&str; 5] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn default_install() -> Install {
    Install {
        namespace: names::NAMESPACE.to_owned(),
        image: names::image(),
        with_namespace: true,
        with_definitions: true,
    }
}

fn elsewhere() -> Install {
    Install { namespace: "elsewhere".to_owned(), image: "mine:1".to_owned(), ..default_install() }
}

/// The objects of an installation, read back from the text that a cluster would get.
fn read_back(install: &Install) -> Vec<Value> {
    serde_saphyr::from_multiple(&manifests::install(install).unwrap()).unwrap()
}

/// The objects of the installation that is in `deploy`. The definitions are long, so they are read
/// once for all tests.
fn objects() -> &'static [Value] {
    static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| read_back(&default_install()));
    &OBJECTS
}

/// The files that are in `deploy`.
fn files() -> &'static [File] {
    static FILES: LazyLock<Vec<File>> =
        LazyLock::new(|| manifests::files(&default_install()).unwrap());
    &FILES
}

/// The files of another installation.
fn files_elsewhere() -> &'static [File] {
    static FILES: LazyLock<Vec<File>> = LazyLock::new(|| manifests::files(&elsewhere()).unwrap());
    &FILES
}

/// The only object of a kind.
fn object(kind: &str) -> &'static Value {
    let mut found = objects().iter().filter(|object| object["kind"] == kind);
    let object = found.next().unwrap_or_else(|| panic!("there is no {kind}"));
    assert!(found.next().is_none(), "there are several {kind}");
    object
}

/// The object of a kind with a name.
fn named(kind: &str, name: &str) -> &'static Value {
    let is_meant = |it: &&Value| it["kind"] == kind && it["metadata"]["name"] == name;
    let found = objects().iter().find(is_meant);
    found.unwrap_or_else(|| panic!("there is no {kind} {name}"))
}

/// The kinds of a text with objects, in order.
fn kinds(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("kind: ")).collect()
}

/// The YAML files below a folder, by their paths; none if there is no such folder.
fn yaml_files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(yaml_files(&path).into_iter().map(|below| format!("{name}/{below}")));
        } else if path.extension().is_some_and(|it| it == "yaml") {
            found.insert(name);
        }
    }
    found
}

#[test]
fn the_files_in_deploy_are_those_that_the_program_writes() {
    let files = files();
    for file in files {
        let path = root().join("deploy").join(&file.path);
        let there = fs::read_to_string(&path).unwrap_or_default();
        assert!(there == file.text, "deploy/{} is out of date; {MEND}", file.path);
    }
    for folder in ["base", "components", "overlays"] {
        let prefix = format!("{folder}/");
        let expected: BTreeSet<String> = files
            .iter()
            .filter_map(|file| file.path.strip_prefix(&prefix))
            .map(str::to_owned)
            .collect();
        let there = yaml_files(&root().join("deploy").join(folder));
        assert_eq!(there, expected, "deploy/{folder} has a file that is not generated; remove it");
    }
}

#[test]
fn the_files_in_crds_are_those_that_the_program_writes() {
    let mut expected = BTreeSet::new();
    for definition in crd::all() {
        let name = crd::file_name(&definition);
        let text = format!("---\n{}", manifests::document(&definition).unwrap());
        let there = fs::read_to_string(root().join("crds").join(&name)).unwrap_or_default();
        assert!(there == text, "crds/{name} is out of date; run `make crds` and commit the result");
        expected.insert(name);
    }
    assert_eq!(yaml_files(&root().join("crds")), expected, "crds has a file that is not generated");
}

#[test]
fn everything_comes_after_what_it_needs() {
    let all = [
        "Namespace",
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterRole",
        "ClusterRole",
        "ClusterRole",
        "Service",
        "Service",
        "Deployment",
        "PodDisruptionBudget",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ];
    assert_eq!(kinds(&manifests::install(&default_install()).unwrap()), all);
    let kustomization = files().iter().find(|it| it.path.starts_with("base/k"));
    let kustomization: Value = serde_saphyr::from_str(&kustomization.unwrap().text).unwrap();
    assert_eq!(kustomization["resources"][0], "namespace.yaml");
    assert_eq!(kustomization["resources"][1], "definitions.yaml");
    // A namespace that is not ours is left out, and nothing else is.
    let install = Install { with_namespace: false, ..default_install() };
    assert_eq!(kinds(&manifests::install(&install).unwrap()), all[1..]);
    let files = manifests::files(&install).unwrap();
    assert!(!files.iter().any(|file| file.path.ends_with("namespace.yaml")));
    assert!(!files.iter().any(|file| file.text.contains("- namespace.yaml")));
}

#[test]
fn the_definitions_can_be_left_where_they_are() {
    let install = Install { with_definitions: false, ..default_install() };
    let mut expected = objects().to_vec();
    expected.retain(|object| object["kind"] != "CustomResourceDefinition");
    assert!(read_back(&install) == expected);
}

#[test]
fn the_definitions_that_are_installed_are_those_in_crds() {
    let mut installed = objects().to_vec();
    installed.retain(|object| object["kind"] == "CustomResourceDefinition");
    let written: Vec<Value> =
        crd::all().iter().map(|definition| serde_json::to_value(definition).unwrap()).collect();
    assert!(installed == written);
}

#[test]
fn every_object_is_small_enough_for_a_plain_apply() {
    for object in objects() {
        let bytes = serde_json::to_string(object).unwrap().len();
        let name = &object["metadata"]["name"];
        // The key of the annotation and the object's other annotations need room as well.
        assert!(bytes < MOST_BYTES - 4096, "{name} has {bytes} bytes");
    }
}

#[test]
fn the_pod_obeys_the_restricted_standard() {
    let pod = &object("Deployment")["spec"]["template"]["spec"];
    let of_pod = json!({
        "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    assert_eq!(pod["securityContext"], of_pod);
    let containers = pod["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 1);
    let of_container = json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
        "capabilities": {"drop": ["ALL"]},
    });
    assert_eq!(containers[0]["securityContext"], of_container);
    for lax in ["hostNetwork", "hostPID", "hostIPC", "volumes", "initContainers"] {
        assert_eq!(pod[lax], Value::Null, "the pod has {lax}");
    }
    let labels = &object("Namespace")["metadata"]["labels"];
    for mode in ["enforce", "audit", "warn"] {
        assert_eq!(labels[format!("pod-security.kubernetes.io/{mode}")], "restricted");
    }
}

#[test]
fn the_pod_has_the_ports_the_memory_and_the_time_that_reviews_need() {
    let pod = &object("Deployment")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let ports = json!([
        {"name": names::METRICS_PORT_NAME, "containerPort": names::METRICS_PORT, "protocol": "TCP"},
        {"name": names::WEBHOOK_PORT_NAME, "containerPort": names::WEBHOOK_PORT, "protocol": "TCP"},
    ]);
    assert_eq!(container["ports"], ports);
    assert_eq!(container["resources"]["limits"]["memory"], "512Mi");
    assert_eq!(container["resources"]["requests"]["memory"], "32Mi");
    assert_eq!(pod["terminationGracePeriodSeconds"], 45);
}

#[test]
fn the_api_server_reaches_ready_replicas_only() {
    let service = &named("Service", names::WEBHOOK_SERVICE)["spec"];
    let expected = json!({
        "selector": object("Deployment")["spec"]["selector"]["matchLabels"],
        "ports": [{
            "name": names::WEBHOOK_PORT_NAME, "port": 443, "protocol": "TCP",
            "targetPort": names::WEBHOOK_PORT_NAME,
        }],
    });
    assert_eq!(*service, expected);
}

#[test]
fn a_drain_takes_one_replica_and_is_not_held_up_by_one_that_is_ill() {
    let budget = &object("PodDisruptionBudget")["spec"];
    assert_eq!(budget["minAvailable"], 1);
    assert_eq!(budget["unhealthyPodEvictionPolicy"], "AlwaysAllow");
    assert_eq!(budget["selector"], object("Deployment")["spec"]["selector"]);
}

#[test]
fn another_namespace_and_another_image_reach_every_object() {
    let (mut converted, mut asked) = (0, 0);
    for object in read_back(&elsewhere()) {
        let metadata = &object["metadata"];
        match object["kind"].as_str().unwrap() {
            "Namespace" => assert_eq!(metadata["name"], "elsewhere"),
            kind if OF_THE_CLUSTER.contains(&kind) => {
                assert_eq!(metadata["namespace"], Value::Null);
            }
            kind => assert_eq!(metadata["namespace"], "elsewhere", "{kind}"),
        }
        match object["kind"].as_str().unwrap() {
            "RoleBinding" | "ClusterRoleBinding" => {
                assert_eq!(object["subjects"][0]["namespace"], "elsewhere");
            }
            "CustomResourceDefinition" => {
                if let Some(webhook) = object.pointer("/spec/conversion/webhook/clientConfig") {
                    assert_eq!(webhook["service"]["namespace"], "elsewhere");
                    converted += 1;
                }
            }
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                for webhook in object["webhooks"].as_array().unwrap() {
                    assert_eq!(webhook["clientConfig"]["service"]["namespace"], "elsewhere");
                    asked += 1;
                }
            }
            "Deployment" => {
                let container = &object["spec"]["template"]["spec"]["containers"][0];
                assert_eq!(container["image"], "mine:1");
            }
            _ => {}
        }
    }
    assert_eq!((converted, asked), (2, 5));
    for file in files_elsewhere() {
        assert!(!file.text.contains(names::NAMESPACE), "{} names it", file.path);
    }
}

#[test]
fn every_generated_file_says_that_it_is_and_how() {
    for file in files() {
        let first = file.text.lines().next().unwrap();
        assert!(first.starts_with("# Generated by `quorate manifests`"), "{}", file.path);
        assert!(first.contains("`make manifests`"), "{}", file.path);
    }
}
