//! What can be added to the base goes together with it.
//! Comes in: the files of `deploy` and `webhook-certs`. Goes out: each patch without an object, each
//! right too many, each name that differs.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use quorate::api::names;
use serde_json::{Value, json};

use super::{files, files_elsewhere, kinds, object, objects, root};

const COMPONENTS: [&str; 5] =
    ["cert-manager", "certificate-files", "namespaced", "network-policy", "strict"];
const OVERLAYS: [&str; 4] = ["cert-manager", "namespaced", "network-policy", "strict"];

/// The documents of a generated file.
fn documents(path: &str) -> Vec<Value> {
    let file = files().iter().find(|file| file.path == path);
    let file = file.unwrap_or_else(|| panic!("{path} is not written"));
    serde_saphyr::from_multiple(&file.text).unwrap()
}

/// The only document of a file of a part.
fn part(component: &str, file: &str) -> Value {
    documents(&format!("components/{component}/{file}")).remove(0)
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_overlay_is_the_base_and_its_part() {
    for name in OVERLAYS {
        let overlay = documents(&format!("overlays/{name}/kustomization.yaml")).remove(0);
        assert_eq!(overlay["kind"], "Kustomization");
        assert_eq!(overlay["resources"], json!(["../../base"]));
        assert_eq!(overlay["components"], json!([format!("../../components/{name}")]));
    }
}

#[test]
fn every_patch_is_there_and_has_something_to_change() {
    let base = objects();
    let written: BTreeSet<&str> = files().iter().map(|file| file.path.as_str()).collect();
    for name in COMPONENTS {
        let folder = format!("components/{name}");
        let part = part(name, "kustomization.yaml");
        assert_eq!(part["kind"], "Component", "{name}");
        let mut used = BTreeSet::from(["kustomization.yaml".to_owned()]);
        used.extend(texts(&part["resources"]));
        for needed in texts(&part["components"]) {
            let needed = needed.strip_prefix("../").unwrap();
            assert!(COMPONENTS.contains(&needed), "{name} needs {needed}");
        }
        for patch in part["patches"].as_array().into_iter().flatten() {
            used.insert(patch["path"].as_str().unwrap().to_owned());
            let target = &patch["target"];
            let is_meant = |object: &&Value| {
                let named =
                    target["name"].is_null() || target["name"] == object["metadata"]["name"];
                object["kind"] == target["kind"] && named
            };
            assert!(base.iter().any(|object| is_meant(&object)), "{name}: {target} is not there");
        }
        let prefix = format!("{folder}/");
        let of_folder = written.iter().filter_map(|path| path.strip_prefix(&prefix));
        assert_eq!(of_folder.map(str::to_owned).collect::<BTreeSet<_>>(), used, "{name}");
    }
}

#[test]
fn parts_add_flags_and_never_replace_each_others() {
    for (component, file, flag) in [
        ("certificate-files", "flag.yaml", "--webhook-cert-dir=/etc/quorate/webhook-certs"),
        ("strict", "flag.yaml", "--namespace-access=manual"),
        ("namespaced", "deployment.yaml", "--watch-namespace=$(POD_NAMESPACE)"),
        ("kubernetes-migration", "flag.yaml", "--storage-migration=kubernetes"),
    ] {
        let args = "/spec/template/spec/containers/0/args";
        let change = json!({"op": "add", "path": format!("{args}/-"), "value": flag});
        assert_eq!(part(component, file)[0], change, "{component}");
        assert_eq!(object("Deployment").pointer(args).unwrap(), &json!(["run"]));
    }
    let variable = &object("Deployment")["spec"]["template"]["spec"]["containers"][0]["env"][1];
    assert_eq!(variable["name"], "POD_NAMESPACE", "kubernetes puts its value into the flag");
}

#[test]
fn whoever_gets_certificates_from_elsewhere_reads_no_secret_and_changes_no_trust() {
    let role = part("certificate-files", "role.yaml");
    assert!(!role.to_string().contains("secrets"), "{role}");
    assert_eq!(
        role["rules"].as_array().unwrap().len(),
        4,
        "the Lease and the record, and nothing else"
    );
    let removed: Vec<Value> = part("certificate-files", "kustomization.yaml")["patches"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|patch| patch["path"] == "remove.yaml")
        .map(|patch| patch["target"].clone())
        .collect();
    let expected = ["ClusterRole", "ClusterRoleBinding"]
        .map(|kind| json!({"kind": kind, "name": names::WEBHOOKS_ROLE}));
    assert_eq!(removed, expected);
    let pod = part("certificate-files", "volume.yaml")["spec"]["template"]["spec"].clone();
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "quorate-webhook-tls");
    let mount = &pod["containers"][0]["volumeMounts"][0];
    assert_eq!(mount["mountPath"], "/etc/quorate/webhook-certs");
    assert_eq!(mount["name"], pod["volumes"][0]["name"]);
    assert_eq!(mount["subPath"], Value::Null, "a subPath is never refreshed");
}

#[test]
fn cert_manager_makes_the_certificate_that_is_mounted_and_tells_everyone_who_must_trust_it() {
    let objects = documents("components/cert-manager/certificates.yaml");
    let leaf = objects.last().unwrap();
    assert_eq!(leaf["spec"]["secretName"], "quorate-webhook-tls");
    let service = "quorate-webhook.quorate-system";
    let expected =
        json!([format!("{service}.svc"), format!("{service}.svc.cluster.local"), service]);
    assert_eq!(leaf["spec"]["dnsNames"], expected);
    // Who signs whom: a self-signed issuer the authority, the authority the certificate.
    let authority = &objects[1];
    assert_eq!(authority["spec"]["isCA"], true);
    assert_eq!(authority["spec"]["issuerRef"]["name"], objects[0]["metadata"]["name"]);
    assert_eq!(objects[0]["spec"], json!({"selfSigned": {}}));
    assert_eq!(objects[2]["spec"]["ca"]["secretName"], authority["spec"]["secretName"]);
    assert_eq!(leaf["spec"]["issuerRef"]["name"], objects[2]["metadata"]["name"]);
    assert_ne!(authority["spec"]["secretName"], names::WEBHOOK_CA_SECRET, "that one is ours");
    assert_eq!(authority["spec"]["privateKey"]["rotationPolicy"], "Never");

    let from = &part("cert-manager", "inject.yaml")["metadata"]["annotations"];
    assert_eq!(*from, json!({"cert-manager.io/inject-ca-from": "quorate-system/quorate-webhook"}));
    let trusting: BTreeSet<String> = part("cert-manager", "kustomization.yaml")["patches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|patch| patch["target"]["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(trusting, must_trust().into_iter().map(|(_, name)| name).collect());
}

/// Everything in which the API server looks up whom to trust.
fn must_trust() -> BTreeSet<(String, String)> {
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
fn a_strict_operator_sees_bindings_and_makes_none() {
    let role = part("strict", "cluster-role.yaml");
    let rules = role["rules"].as_array().unwrap();
    let about_roles: Vec<&Value> =
        rules.iter().filter(|rule| rule.to_string().contains("rbac.authorization")).collect();
    let seen = json!([{
        "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["rolebindings"],
        "resourceNames": [names::NAMESPACE_ROLE_BINDING], "verbs": ["list", "watch"],
    }]);
    assert_eq!(json!(about_roles), seen);
    // Where nothing is granted it must still be able to say so.
    let writes: Vec<&Value> = rules.iter().filter(|it| it["verbs"] == json!(["patch"])).collect();
    // Two groups of kinds, and the definitions.
    assert_eq!(writes.len(), 3, "{role}");
    assert!(writes.iter().flat_map(|it| texts(&it["resources"])).all(|it| it.ends_with("/status")));
    let whole = objects().iter().find(|it| it["kind"] == "ClusterRole").unwrap();
    let kept: Vec<&Value> = whole["rules"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|rule| !rule.to_string().contains("rbac.authorization.k8s.io"))
        .collect();
    for rule in kept {
        assert!(rules.contains(rule), "everything else stays: {rule}");
    }
    let page = fs::read_to_string(root().join("deploy/README.md")).unwrap();
    let command = format!(
        "create rolebinding {} --clusterrole={} --serviceaccount={}:{}",
        names::NAMESPACE_ROLE_BINDING,
        names::NAMESPACE_ROLE,
        names::NAMESPACE,
        names::OPERATOR
    );
    assert!(page.contains(&command), "deploy/README.md lacks: {command}");
}

#[test]
fn a_namespaced_operator_has_nothing_that_belongs_to_the_cluster() {
    let patches = part("namespaced", "kustomization.yaml")["patches"].as_array().unwrap().clone();
    let removed = patches.iter().filter(|patch| patch["path"] == "remove.yaml");
    let removed: Vec<&Value> = removed.map(|patch| &patch["target"]).collect();
    for object in objects() {
        let goes = removed.iter().any(|target| {
            target["kind"] == object["kind"]
                && (target["name"].is_null() || target["name"] == object["metadata"]["name"])
        });
        let of_cluster = object["metadata"]["namespace"].is_null() && object["kind"] != "Namespace";
        let for_webhooks = object["metadata"]["name"] == names::WEBHOOK_SERVICE;
        assert_eq!(goes, of_cluster || for_webhooks, "{}", object["metadata"]);
    }
    let role = part("namespaced", "role.yaml");
    let resources: BTreeSet<String> =
        role["rules"].as_array().unwrap().iter().flat_map(|it| texts(&it["resources"])).collect();
    for needed in ["leases", "etcdclusters", "etcdmembers", "pods", "secrets", "events"] {
        assert!(resources.contains(needed), "{needed} is not in {resources:?}");
    }
    for never in ["rolebindings", "clusterroles", "customresourcedefinitions"] {
        assert!(!resources.contains(never), "{never} belongs to the whole cluster");
    }
    let change = part("namespaced", "deployment.yaml");
    let port = change[2]["path"].as_str().unwrap();
    assert_eq!(change[2]["op"], "remove");
    let there = object("Deployment");
    assert_eq!(there.pointer(port).unwrap()["name"], names::WEBHOOK_PORT_NAME);
}

#[test]
fn the_network_policy_is_about_the_pods_and_the_ports_that_there_are() {
    let policy = part("network-policy", "network-policy.yaml");
    assert_eq!(policy["metadata"]["namespace"], names::NAMESPACE);
    let spec = &policy["spec"];
    assert_eq!(spec["podSelector"], object("Deployment")["spec"]["selector"]);
    assert_eq!(spec["policyTypes"], json!(["Ingress", "Egress"]));
    let tcp = |port: u16| json!({"port": port, "protocol": "TCP"});
    // From anywhere: neither the kubelet nor the API server is a pod that a selector could name.
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
fn own_certificates_go_into_what_the_api_server_reads() {
    let folder = root().join("webhook-certs/own");
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
    let whole: Value = serde_saphyr::from_str(&read("kustomization.yaml")).unwrap();
    assert_eq!(whole["resources"], json!(["../../deploy/base"]));
    assert_eq!(whole["components"], json!(["../../deploy/components/certificate-files"]));
    let mut trusting = BTreeSet::new();
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
                let there = base["webhooks"].as_array().unwrap().iter();
                let expected: Vec<Value> = there
                    .map(
                        |it| json!({"name": it["name"], "clientConfig": {"caBundle": "CA_BUNDLE"}}),
                    )
                    .collect();
                assert_eq!(*webhooks, expected, "{kind} {name}");
            }
        }
        trusting.insert((kind, name));
    }
    assert_eq!(trusting, must_trust());
}

#[test]
fn another_namespace_reaches_every_part() {
    let text =
        |path: &str| files_elsewhere().iter().find(|file| file.path == path).unwrap().text.clone();
    let certificates = text("components/cert-manager/certificates.yaml");
    assert!(certificates.contains("- quorate-webhook.elsewhere.svc\n"));
    let inject = text("components/cert-manager/inject.yaml");
    assert!(inject.contains("cert-manager.io/inject-ca-from: elsewhere/quorate-webhook\n"));
    let policy = text("components/network-policy/network-policy.yaml");
    assert!(policy.contains("namespace: elsewhere\n"));
}

/// The kinds of what `kubectl kustomize` makes of a folder, sorted; nothing if there is no kubectl
/// here.
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
fn kustomize_makes_of_every_overlay_what_it_promises() {
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
    // One role and its binding less.
    let own = built("webhook-certs/own").unwrap();
    assert_eq!(and(&own, &["ClusterRole", "ClusterRoleBinding"]), base);
    let cert_manager = built("deploy/overlays/cert-manager").unwrap();
    assert_eq!(cert_manager, and(&own, &["Certificate", "Certificate", "Issuer", "Issuer"]));
    let alone = [
        "Deployment",
        "Namespace",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    ];
    assert_eq!(built("deploy/overlays/namespaced").unwrap(), alone);
}
