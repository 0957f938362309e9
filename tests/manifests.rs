//! `deploy/` and `crds/` equal what the program writes, and what it writes keeps its promises.
//! Comes in: the pure renderer, and the files of the repository. Goes out: each difference, with
//! the command that mends it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use quorate::api::{crd, names};
use quorate::manifests::{self, Install};
use serde_json::{Value, json};

const MEND: &str = "run `make manifests` and commit the result";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn default_install() -> Install {
    Install { namespace: names::NAMESPACE.to_owned(), image: names::image(), with_namespace: true }
}

/// The objects of an installation, read back from the text that a cluster would get.
fn objects(install: &Install) -> Vec<Value> {
    serde_saphyr::from_multiple(&manifests::install(install).unwrap()).unwrap()
}

fn object(kind: &str) -> Value {
    let mut objects = objects(&default_install());
    objects.retain(|object| object["kind"] == kind);
    assert_eq!(objects.len(), 1, "{kind}");
    objects.remove(0)
}

fn kinds(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["kind"].as_str().unwrap()).collect()
}

/// The YAML files of a folder; none if there is no such folder.
fn yaml_files(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let yaml = paths.filter(|path| path.extension().is_some_and(|it| it == "yaml"));
    let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut names: Vec<String> = yaml.map(name).collect();
    names.sort();
    names
}

#[test]
fn the_files_in_deploy_are_those_that_the_program_writes() {
    let files = manifests::files(&default_install()).unwrap();
    for file in &files {
        let path = root().join("deploy").join(&file.path);
        let there = fs::read_to_string(&path).unwrap_or_default();
        assert!(there == file.text, "deploy/{} is out of date; {MEND}", file.path);
    }
    let mut expected: Vec<String> = files
        .iter()
        .filter_map(|file| file.path.strip_prefix("base/"))
        .map(str::to_owned)
        .collect();
    expected.sort();
    let there = yaml_files(&root().join("deploy/base"));
    assert_eq!(there, expected, "deploy/base has a file that is not generated; remove it");
}

#[test]
fn the_files_in_crds_are_those_that_the_program_writes() {
    let mut expected = Vec::new();
    for definition in crd::all() {
        let name = crd::file_name(&definition);
        let text = format!("---\n{}", manifests::document(&definition).unwrap());
        let there = fs::read_to_string(root().join("crds").join(&name)).unwrap_or_default();
        assert!(there == text, "crds/{name} is out of date; run `make crds` and commit the result");
        expected.push(name);
    }
    expected.sort();
    assert_eq!(yaml_files(&root().join("crds")), expected, "crds has a file that is not generated");
}

#[test]
fn the_namespace_comes_before_everything_that_lives_in_it() {
    let all = [
        "Namespace",
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "Service",
        "Deployment",
        "PodDisruptionBudget",
    ];
    let mut install = default_install();
    assert_eq!(kinds(&objects(&install)), all);
    // One that is not ours is left out, and nothing else is.
    install.with_namespace = false;
    assert_eq!(kinds(&objects(&install)), all[1..]);
    let files = manifests::files(&install).unwrap();
    assert!(!files.iter().any(|file| file.path.ends_with("namespace.yaml")));
    assert!(!files.iter().any(|file| file.text.contains("- namespace.yaml")));
}

#[test]
fn the_operator_has_exactly_the_rights_that_it_uses() {
    let leases = |verbs: Value, named: Option<Value>| {
        let mut rule = json!({
            "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs,
        });
        if let Some(named) = named {
            rule["resourceNames"] = named;
        }
        rule
    };
    let expected = json!([
        leases(json!(["create"]), None),
        leases(json!(["get", "update"]), Some(json!(["quorate"])))
    ]);
    assert_eq!(object("Role")["rules"], expected);
    let binding = object("RoleBinding");
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "quorate"});
    assert_eq!(binding["roleRef"], role);
    let account =
        json!([{"kind": "ServiceAccount", "name": "quorate", "namespace": names::NAMESPACE}]);
    assert_eq!(binding["subjects"], account);
    assert_eq!(object("ServiceAccount")["automountServiceAccountToken"], json!(false));
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
fn a_drain_takes_one_replica_and_is_not_held_up_by_one_that_is_ill() {
    let budget = &object("PodDisruptionBudget")["spec"];
    assert_eq!(budget["minAvailable"], 1);
    assert_eq!(budget["unhealthyPodEvictionPolicy"], "AlwaysAllow");
    assert_eq!(budget["selector"], object("Deployment")["spec"]["selector"]);
}

#[test]
fn another_namespace_and_another_image_reach_every_object() {
    let install = Install {
        namespace: "elsewhere".to_owned(),
        image: "mine:1".to_owned(),
        with_namespace: true,
    };
    for object in objects(&install) {
        let metadata = &object["metadata"];
        match object["kind"].as_str().unwrap() {
            "Namespace" => assert_eq!(metadata["name"], "elsewhere"),
            kind => assert_eq!(metadata["namespace"], "elsewhere", "{kind}"),
        }
        match object["kind"].as_str().unwrap() {
            "RoleBinding" => assert_eq!(object["subjects"][0]["namespace"], "elsewhere"),
            "Deployment" => {
                let container = &object["spec"]["template"]["spec"]["containers"][0];
                assert_eq!(container["image"], "mine:1");
            }
            _ => {}
        }
        assert!(!object.to_string().contains(names::NAMESPACE), "{object}");
    }
}

#[test]
fn every_generated_file_says_that_it_is_and_how() {
    for file in manifests::files(&default_install()).unwrap() {
        let first = file.text.lines().next().unwrap();
        assert!(first.starts_with("# Generated by `quorate manifests`"), "{}", file.path);
        assert!(first.contains("`make manifests`"), "{}", file.path);
    }
}

#[test]
fn the_network_policy_is_about_the_pods_and_the_port_that_there_are() {
    let overlay = root().join("deploy/overlays/network-policy");
    let policy = fs::read_to_string(overlay.join("network-policy.yaml")).unwrap();
    assert!(policy.contains(&format!("namespace: {}\n", names::NAMESPACE)));
    assert!(policy.contains(&format!("{}: {}\n", names::NAME_LABEL, names::OPERATOR)));
    assert!(policy.contains(&format!("- port: {}\n", names::METRICS_PORT)));
    let kustomization = fs::read_to_string(overlay.join("kustomization.yaml")).unwrap();
    assert!(kustomization.contains("- ../../base\n"));
}
