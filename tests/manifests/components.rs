//! Kustomize components and overlays: every patch has a target, permissions are minimal, names
//! match.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use quorate::api::names;
use serde_json::{Value, json};

use super::{files, files_for_other_namespace, kinds, object, objects, root};

const COMPONENTS: [&str; 5] =
    ["cert-manager", "certificate-files", "namespaced", "network-policy", "strict"];
const OVERLAYS: [&str; 4] = ["cert-manager", "namespaced", "network-policy", "strict"];

/// The documents of a generated file.
fn documents(path: &str) -> Vec<Value> {
    let file = files().iter().find(|file| file.path == path);
    let file = file.unwrap_or_else(|| panic!("{path} is not generated"));
    serde_saphyr::from_multiple(&file.text).unwrap()
}

/// The only document of a file of a component.
fn component_file(component: &str, file: &str) -> Value {
    documents(&format!("components/{component}/{file}")).remove(0)
}

fn strings(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_overlay_is_the_base_and_its_component() {
    for name in OVERLAYS {
        let overlay = documents(&format!("overlays/{name}/kustomization.yaml")).remove(0);
        assert_eq!(overlay["kind"], "Kustomization");
        assert_eq!(overlay["resources"], json!(["../../base"]));
        assert_eq!(overlay["components"], json!([format!("../../components/{name}")]));
    }
}

#[test]
fn every_patch_exists_and_has_a_target() {
    let base = objects();
    let generated: BTreeSet<&str> = files().iter().map(|file| file.path.as_str()).collect();
    for name in COMPONENTS {
        let folder = format!("components/{name}");
        let component = component_file(name, "kustomization.yaml");
        assert_eq!(component["kind"], "Component", "{name}");
        let mut used = BTreeSet::from(["kustomization.yaml".to_owned()]);
        used.extend(strings(&component["resources"]));
        for required in strings(&component["components"]) {
            let required = required.strip_prefix("../").unwrap();
            assert!(COMPONENTS.contains(&required), "{name} requires {required}");
        }
        for patch in component["patches"].as_array().into_iter().flatten() {
            used.insert(patch["path"].as_str().unwrap().to_owned());
            let target = &patch["target"];
            let is_target = |object: &&Value| {
                let named =
                    target["name"].is_null() || target["name"] == object["metadata"]["name"];
                object["kind"] == target["kind"] && named
            };
            assert!(
                base.iter().any(|object| is_target(&object)),
                "{name}: {target} does not exist"
            );
        }
        let prefix = format!("{folder}/");
        let in_folder = generated.iter().filter_map(|path| path.strip_prefix(&prefix));
        assert_eq!(in_folder.map(str::to_owned).collect::<BTreeSet<_>>(), used, "{name}");
    }
}

#[test]
fn components_append_flags_and_never_replace_those_of_others() {
    for (component, file, flag) in [
        ("certificate-files", "flag.yaml", "--webhook-cert-dir=/etc/quorate/webhook-certs"),
        ("strict", "flag.yaml", "--namespace-access=manual"),
        ("namespaced", "deployment.yaml", "--watch-namespace=$(POD_NAMESPACE)"),
        ("kubernetes-migration", "flag.yaml", "--storage-migration=kubernetes"),
    ] {
        let args = "/spec/template/spec/containers/0/args";
        let change = json!({"op": "add", "path": format!("{args}/-"), "value": flag});
        assert_eq!(component_file(component, file)[0], change, "{component}");
        assert_eq!(object("Deployment").pointer(args).unwrap(), &json!(["run"]));
    }
    let variable = &object("Deployment")["spec"]["template"]["spec"]["containers"][0]["env"][1];
    assert_eq!(variable["name"], "POD_NAMESPACE", "Kubernetes expands the variable in the flag");
}

#[test]
fn external_webhook_certificates_need_no_permissions_for_secrets_and_ca_bundles() {
    let role = component_file("certificate-files", "role.yaml");
    assert!(!role.to_string().contains("secrets"), "{role}");
    assert_eq!(
        role["rules"].as_array().unwrap().len(),
        4,
        "the Lease and the migration record only"
    );
    let removed: Vec<Value> = component_file("certificate-files", "kustomization.yaml")["patches"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|patch| patch["path"] == "remove.yaml")
        .map(|patch| patch["target"].clone())
        .collect();
    let expected = ["ClusterRole", "ClusterRoleBinding"]
        .map(|kind| json!({"kind": kind, "name": names::WEBHOOKS_ROLE}));
    assert_eq!(removed, expected);
    let pod =
        component_file("certificate-files", "volume.yaml")["spec"]["template"]["spec"].clone();
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "quorate-webhook-tls");
    let mount = &pod["containers"][0]["volumeMounts"][0];
    assert_eq!(mount["mountPath"], "/etc/quorate/webhook-certs");
    assert_eq!(mount["name"], pod["volumes"][0]["name"]);
    assert_eq!(mount["subPath"], Value::Null, "a subPath mount is never updated");
}

#[test]
fn cert_manager_issues_the_mounted_certificate_and_injects_its_ca() {
    let objects = documents("components/cert-manager/certificates.yaml");
    let leaf = objects.last().unwrap();
    assert_eq!(leaf["spec"]["secretName"], "quorate-webhook-tls");
    let service = "quorate-webhook.quorate-system";
    let expected =
        json!([format!("{service}.svc"), format!("{service}.svc.cluster.local"), service]);
    assert_eq!(leaf["spec"]["dnsNames"], expected);
    // A self-signed issuer issues the CA, the CA issues the serving certificate.
    let ca = &objects[1];
    assert_eq!(ca["spec"]["isCA"], true);
    assert_eq!(ca["spec"]["issuerRef"]["name"], objects[0]["metadata"]["name"]);
    assert_eq!(objects[0]["spec"], json!({"selfSigned": {}}));
    assert_eq!(objects[2]["spec"]["ca"]["secretName"], ca["spec"]["secretName"]);
    assert_eq!(leaf["spec"]["issuerRef"]["name"], objects[2]["metadata"]["name"]);
    assert_ne!(
        ca["spec"]["secretName"],
        names::WEBHOOK_CA_SECRET,
        "the name of the operator's CA Secret"
    );
    assert_eq!(ca["spec"]["privateKey"]["rotationPolicy"], "Never");

    let annotations = &component_file("cert-manager", "inject.yaml")["metadata"]["annotations"];
    let expected = json!({"cert-manager.io/inject-ca-from": "quorate-system/quorate-webhook"});
    assert_eq!(*annotations, expected);
    let injected: BTreeSet<String> =
        component_file("cert-manager", "kustomization.yaml")["patches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|patch| patch["target"]["name"].as_str().unwrap().to_owned())
            .collect();
    assert_eq!(injected, bundle_targets().into_iter().map(|(_, name)| name).collect());
}

/// The objects with a CA bundle that the API server reads.
fn bundle_targets() -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for object in objects() {
        let converted = object.pointer("/spec/conversion/webhook").is_some();
        if converted || object["webhooks"].is_array() {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            found.insert((text(&object["kind"]), text(&object["metadata"]["name"])));
        }
    }
    assert_eq!(found.len(), 4);
    found
}

#[test]
fn strict_operator_reads_role_bindings_and_creates_none() {
    let role = component_file("strict", "cluster-role.yaml");
    let rules = role["rules"].as_array().unwrap();
    let rbac_rules: Vec<&Value> =
        rules.iter().filter(|rule| rule.to_string().contains("rbac.authorization")).collect();
    let expected = json!([{
        "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["rolebindings"],
        "resourceNames": [names::NAMESPACE_ROLE_BINDING], "verbs": ["list", "watch"],
    }]);
    assert_eq!(json!(rbac_rules), expected);
    // A condition must be set in namespaces without access.
    let writes: Vec<&Value> =
        rules.iter().filter(|rule| rule["verbs"] == json!(["patch"])).collect();
    // Two API groups, and the CRDs.
    assert_eq!(writes.len(), 3, "{role}");
    let mut written = writes.iter().flat_map(|rule| strings(&rule["resources"]));
    assert!(written.all(|resource| resource.ends_with("/status")));
    let base = objects().iter().find(|object| object["kind"] == "ClusterRole").unwrap();
    let kept: Vec<&Value> = base["rules"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|rule| !rule.to_string().contains("rbac.authorization.k8s.io"))
        .collect();
    for rule in kept {
        assert!(rules.contains(rule), "all other rules stay: {rule}");
    }
    let page = fs::read_to_string(root().join("deploy/README.md")).unwrap();
    let command = format!(
        "create rolebinding {} --clusterrole={} --serviceaccount={}:{}",
        names::NAMESPACE_ROLE_BINDING,
        names::NAMESPACE_ROLE,
        names::NAMESPACE,
        names::OPERATOR
    );
    assert!(page.contains(&command), "deploy/README.md does not contain: {command}");
}

#[test]
fn namespaced_operator_has_no_cluster_scoped_objects() {
    let patches =
        component_file("namespaced", "kustomization.yaml")["patches"].as_array().unwrap().clone();
    let removed = patches.iter().filter(|patch| patch["path"] == "remove.yaml");
    let removed: Vec<&Value> = removed.map(|patch| &patch["target"]).collect();
    for object in objects() {
        let is_removed = removed.iter().any(|target| {
            target["kind"] == object["kind"]
                && (target["name"].is_null() || target["name"] == object["metadata"]["name"])
        });
        let cluster_scoped =
            object["metadata"]["namespace"].is_null() && object["kind"] != "Namespace";
        let for_webhooks = object["metadata"]["name"] == names::WEBHOOK_SERVICE;
        assert_eq!(is_removed, cluster_scoped || for_webhooks, "{}", object["metadata"]);
    }
    let role = component_file("namespaced", "role.yaml");
    let rules = role["rules"].as_array().unwrap();
    let resources: BTreeSet<String> =
        rules.iter().flat_map(|rule| strings(&rule["resources"])).collect();
    for required in ["leases", "etcdclusters", "etcdmembers", "pods", "secrets", "events"] {
        assert!(resources.contains(required), "{required} is not in {resources:?}");
    }
    for never in ["rolebindings", "clusterroles", "customresourcedefinitions"] {
        assert!(!resources.contains(never), "{never} is cluster-scoped");
    }
    let change = component_file("namespaced", "deployment.yaml");
    let port = change[2]["path"].as_str().unwrap();
    assert_eq!(change[2]["op"], "remove");
    let deployment = object("Deployment");
    assert_eq!(deployment.pointer(port).unwrap()["name"], names::WEBHOOK_PORT_NAME);
}

#[test]
fn network_policy_selects_the_operator_pods_and_their_ports() {
    let policy = component_file("network-policy", "network-policy.yaml");
    assert_eq!(policy["metadata"]["namespace"], names::NAMESPACE);
    let spec = &policy["spec"];
    assert_eq!(spec["podSelector"], object("Deployment")["spec"]["selector"]);
    assert_eq!(spec["policyTypes"], json!(["Ingress", "Egress"]));
    let tcp = |port: u16| json!({"port": port, "protocol": "TCP"});
    // From any source: no selector matches the kubelet or the API server.
    let ingress =
        json!([{"ports": [tcp(names::METRICS_PORT)]}, {"ports": [tcp(names::WEBHOOK_PORT)]}]);
    assert_eq!(spec["ingress"], ingress);
    let egress = json!([
        {"ports": [{"port": 53, "protocol": "UDP"}, tcp(53)]},
        {"ports": [tcp(6443), tcp(443)]},
        {"ports": [tcp(names::ETCD_CLIENT_PORT), tcp(names::ETCD_PEER_PORT), tcp(names::ETCD_METRICS_PORT)]},
    ]);
    assert_eq!(spec["egress"], egress);
}

#[test]
fn user_provided_ca_is_set_in_every_object_with_a_ca_bundle() {
    let folder = root().join("webhook-certs/own");
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
    let kustomization: Value = serde_saphyr::from_str(&read("kustomization.yaml")).unwrap();
    assert_eq!(kustomization["resources"], json!(["../../deploy/base"]));
    assert_eq!(kustomization["components"], json!(["../../deploy/components/certificate-files"]));
    let mut targets = BTreeSet::new();
    let trust: Vec<Value> = serde_saphyr::from_multiple(&read("trust.yaml")).unwrap();
    for object in trust {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
        let base = super::named(&kind, &name);
        assert_eq!(object["apiVersion"], base["apiVersion"], "{kind} {name}");
        match object["webhooks"].as_array() {
            None => {
                let bundle =
                    json!({"conversion": {"webhook": {"clientConfig": {"caBundle": "CA_BUNDLE"}}}});
                assert_eq!(object["spec"], bundle, "{kind} {name}");
            }
            Some(webhooks) => {
                let with_bundle = |webhook: &Value| json!({"name": webhook["name"], "clientConfig": {"caBundle": "CA_BUNDLE"}});
                let base = base["webhooks"].as_array().unwrap().iter();
                let expected: Vec<Value> = base.map(with_bundle).collect();
                assert_eq!(*webhooks, expected, "{kind} {name}");
            }
        }
        targets.insert((kind, name));
    }
    assert_eq!(targets, bundle_targets());
}

#[test]
fn namespace_is_set_in_every_component() {
    let text = |path: &str| {
        files_for_other_namespace().iter().find(|file| file.path == path).unwrap().text.clone()
    };
    let certificates = text("components/cert-manager/certificates.yaml");
    assert!(certificates.contains("- quorate-webhook.elsewhere.svc\n"));
    let inject = text("components/cert-manager/inject.yaml");
    assert!(inject.contains("cert-manager.io/inject-ca-from: elsewhere/quorate-webhook\n"));
    let policy = text("components/network-policy/network-policy.yaml");
    assert!(policy.contains("namespace: elsewhere\n"));
}

/// The sorted kinds of the output of `kubectl kustomize`; `None` if kubectl is not installed.
fn built(folder: &str) -> Option<Vec<String>> {
    let built = Command::new("kubectl").arg("kustomize").arg(root().join(folder)).output().ok()?;
    assert!(built.status.success(), "{folder}: {}", String::from_utf8_lossy(&built.stderr));
    let text = String::from_utf8(built.stdout).unwrap();
    Some(sorted(kinds(&text).into_iter().map(str::to_owned)))
}

fn sorted(kinds: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut kinds: Vec<String> = kinds.into_iter().collect();
    kinds.sort();
    kinds
}

#[test]
fn kustomize_renders_the_expected_kinds_of_every_overlay() {
    let Some(base) = built("deploy/base") else { return };
    let kind_of = |object: &Value| object["kind"].as_str().unwrap().to_owned();
    assert_eq!(base, sorted(objects().iter().map(kind_of)));
    assert_eq!(built("deploy/overlays/strict").unwrap(), base);
    let and = |kinds: &[String], more: &[&str]| {
        sorted(kinds.iter().cloned().chain(more.iter().map(|kind| (*kind).to_owned())))
    };
    let kubernetes_migration = built("deploy/overlays/kubernetes-migration").unwrap();
    assert_eq!(kubernetes_migration, and(&base, &["ClusterRole", "ClusterRoleBinding"]));
    let network_policy = built("deploy/overlays/network-policy").unwrap();
    assert_eq!(network_policy, and(&base, &["NetworkPolicy"]));
    // Without one role and its binding.
    let own = built("webhook-certs/own").unwrap();
    assert_eq!(and(&own, &["ClusterRole", "ClusterRoleBinding"]), base);
    let cert_manager = built("deploy/overlays/cert-manager").unwrap();
    assert_eq!(cert_manager, and(&own, &["Certificate", "Certificate", "Issuer", "Issuer"]));
    let namespaced = [
        "Deployment",
        "Namespace",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    ];
    assert_eq!(built("deploy/overlays/namespaced").unwrap(), namespaced);
}
