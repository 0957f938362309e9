//! The files in `deploy/` and `crds/` are the output of `quorate manifests` and `quorate crds`, and
//! the objects have the required properties.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "manifests/components.rs"]
mod components;
#[path = "manifests/permissions.rs"]
mod permissions;
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

const REMEDY: &str = "run `make manifests` and commit the result";
/// The limit of Kubernetes for the annotations of one object. `kubectl apply` writes the whole
/// object to one annotation.
const MAX_BYTES: usize = 262_144;

/// The cluster-scoped kinds of an installation, besides the Namespace.
const CLUSTER_SCOPED: [&str; 5] = [
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

fn other_namespace() -> Install {
    Install { namespace: "elsewhere".to_owned(), image: "mine:1".to_owned(), ..default_install() }
}

/// The objects of an installation, parsed from the rendered YAML.
fn parsed_objects(install: &Install) -> Vec<Value> {
    serde_saphyr::from_multiple(&manifests::install(install).unwrap()).unwrap()
}

/// The objects of the installation in `deploy`. The CRDs are long, so they are parsed once for all
/// tests.
fn objects() -> &'static [Value] {
    static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| parsed_objects(&default_install()));
    &OBJECTS
}

/// The generated files of `deploy`.
fn files() -> &'static [File] {
    static FILES: LazyLock<Vec<File>> =
        LazyLock::new(|| manifests::files(&default_install()).unwrap());
    &FILES
}

/// The generated files for another namespace.
fn files_for_other_namespace() -> &'static [File] {
    static FILES: LazyLock<Vec<File>> =
        LazyLock::new(|| manifests::files(&other_namespace()).unwrap());
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
    let matches = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    let found = objects().iter().find(matches);
    found.unwrap_or_else(|| panic!("there is no {kind} {name}"))
}

/// The kinds of the objects in a YAML text, in order.
fn kinds(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("kind: ")).collect()
}

/// The relative paths of the YAML files below a folder; empty if the folder does not exist.
fn yaml_files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(yaml_files(&path).into_iter().map(|below| format!("{name}/{below}")));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.insert(name);
        }
    }
    found
}

#[test]
fn files_in_deploy_are_up_to_date() {
    let files = files();
    for file in files {
        let path = root().join("deploy").join(&file.path);
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == file.text, "deploy/{} is out of date; {REMEDY}", file.path);
    }
    for folder in ["base", "components", "overlays"] {
        let prefix = format!("{folder}/");
        let expected: BTreeSet<String> = files
            .iter()
            .filter_map(|file| file.path.strip_prefix(&prefix))
            .map(str::to_owned)
            .collect();
        let committed = yaml_files(&root().join("deploy").join(folder));
        assert_eq!(
            committed, expected,
            "deploy/{folder} has a file that is not generated; remove it"
        );
    }
}

#[test]
fn files_in_crds_are_up_to_date() {
    let mut expected = BTreeSet::new();
    for definition in crd::all() {
        let name = crd::file_name(&definition);
        let text = format!("---\n{}", manifests::document(&definition).unwrap());
        let committed = fs::read_to_string(root().join("crds").join(&name)).unwrap_or_default();
        assert!(
            committed == text,
            "crds/{name} is out of date; run `make crds` and commit the result"
        );
        expected.insert(name);
    }
    assert_eq!(yaml_files(&root().join("crds")), expected, "crds has a file that is not generated");
}

#[test]
fn objects_follow_their_dependencies() {
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
    let kustomization = files().iter().find(|file| file.path.starts_with("base/k"));
    let kustomization: Value = serde_saphyr::from_str(&kustomization.unwrap().text).unwrap();
    assert_eq!(kustomization["resources"][0], "namespace.yaml");
    assert_eq!(kustomization["resources"][1], "definitions.yaml");
    // Only the Namespace can be omitted.
    let install = Install { with_namespace: false, ..default_install() };
    assert_eq!(kinds(&manifests::install(&install).unwrap()), all[1..]);
    let files = manifests::files(&install).unwrap();
    assert!(!files.iter().any(|file| file.path.ends_with("namespace.yaml")));
    assert!(!files.iter().any(|file| file.text.contains("- namespace.yaml")));
}

#[test]
fn crds_can_be_omitted() {
    let install = Install { with_definitions: false, ..default_install() };
    let mut expected = objects().to_vec();
    expected.retain(|object| object["kind"] != "CustomResourceDefinition");
    assert!(parsed_objects(&install) == expected);
}

#[test]
fn installed_crds_are_those_in_crds() {
    let mut installed = objects().to_vec();
    installed.retain(|object| object["kind"] == "CustomResourceDefinition");
    let rendered: Vec<Value> =
        crd::all().iter().map(|definition| serde_json::to_value(definition).unwrap()).collect();
    assert!(installed == rendered);
}

#[test]
fn every_object_is_small_enough_for_client_side_apply() {
    for object in objects() {
        let bytes = serde_json::to_string(object).unwrap().len();
        let name = &object["metadata"]["name"];
        // 4 KiB for the key of the annotation and the other annotations.
        assert!(bytes < MAX_BYTES - 4096, "{name} has {bytes} bytes");
    }
}

#[test]
fn pod_complies_with_the_restricted_standard() {
    let pod = &object("Deployment")["spec"]["template"]["spec"];
    let pod_context = json!({
        "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    assert_eq!(pod["securityContext"], pod_context);
    let containers = pod["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 1);
    let container_context = json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
        "capabilities": {"drop": ["ALL"]},
    });
    assert_eq!(containers[0]["securityContext"], container_context);
    for field in ["hostNetwork", "hostPID", "hostIPC", "volumes", "initContainers"] {
        assert_eq!(pod[field], Value::Null, "the pod has {field}");
    }
    let labels = &object("Namespace")["metadata"]["labels"];
    for mode in ["enforce", "audit", "warn"] {
        assert_eq!(labels[format!("pod-security.kubernetes.io/{mode}")], "restricted");
    }
}

#[test]
fn pod_has_the_ports_memory_and_grace_period_of_the_webhooks() {
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
fn webhook_service_selects_the_operator_pods() {
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
fn disruption_budget_keeps_one_replica_and_allows_eviction_of_unhealthy_pods() {
    let budget = &object("PodDisruptionBudget")["spec"];
    assert_eq!(budget["minAvailable"], 1);
    assert_eq!(budget["unhealthyPodEvictionPolicy"], "AlwaysAllow");
    assert_eq!(budget["selector"], object("Deployment")["spec"]["selector"]);
}

#[test]
fn namespace_and_image_are_set_in_every_object() {
    let (mut conversion_webhooks, mut admission_webhooks) = (0, 0);
    for object in parsed_objects(&other_namespace()) {
        let metadata = &object["metadata"];
        match object["kind"].as_str().unwrap() {
            "Namespace" => assert_eq!(metadata["name"], "elsewhere"),
            kind if CLUSTER_SCOPED.contains(&kind) => {
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
                    conversion_webhooks += 1;
                }
            }
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                for webhook in object["webhooks"].as_array().unwrap() {
                    assert_eq!(webhook["clientConfig"]["service"]["namespace"], "elsewhere");
                    admission_webhooks += 1;
                }
            }
            "Deployment" => {
                let container = &object["spec"]["template"]["spec"]["containers"][0];
                assert_eq!(container["image"], "mine:1");
            }
            _ => {}
        }
    }
    assert_eq!((conversion_webhooks, admission_webhooks), (2, 5));
    for file in files_for_other_namespace() {
        assert!(
            !file.text.contains(names::NAMESPACE),
            "{} contains {}",
            file.path,
            names::NAMESPACE
        );
    }
}

#[test]
fn every_generated_file_names_its_generator() {
    for file in files() {
        let first = file.text.lines().next().unwrap();
        assert!(first.starts_with("# Generated by `quorate manifests`"), "{}", file.path);
        assert!(first.contains("`make manifests`"), "{}", file.path);
    }
}
