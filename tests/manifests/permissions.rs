//! The permissions of the operator and of users: exactly the expected rules, and none that is
//! forbidden.

use std::collections::BTreeSet;
use std::fs;

use quorate::api::names;
use quorate::manifests::rbac::{Permission, Scope, permissions};
use serde_json::{Value, json};

use super::tables::{code, rows_below};
use super::{named, object, objects, root};

/// The roles for users.
const USER_ROLES: [&str; 2] = [names::VIEW_ROLE, names::EDIT_ROLE];

/// The rules of the operator's roles, each with its role.
fn rules() -> Vec<(&'static Value, &'static Value)> {
    let is_user_role =
        |role: &Value| USER_ROLES.iter().any(|name| role["metadata"]["name"] == *name);
    let is_role = |object: &&Value| {
        (object["kind"] == "Role" || object["kind"] == "ClusterRole") && !is_user_role(object)
    };
    let rules_of = |role: &'static Value| {
        let list = role["rules"].as_array().unwrap();
        list.iter().map(move |rule| (role, rule))
    };
    objects().iter().filter(is_role).flat_map(rules_of).collect()
}

fn rule(group: &str, resources: &[&str], named: &[&str], verbs: &[&str]) -> Value {
    let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    if !named.is_empty() {
        rule["resourceNames"] = json!(named);
    }
    rule
}

fn as_strs(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

const ETCD: [&str; 4] = ["etcdclusters", "etcdmembers", "etcdbackups", "etcdrestores"];

#[test]
fn operator_permissions_in_its_namespace() {
    let own = json!([
        rule("coordination.k8s.io", &["leases"], &[], &["create"]),
        rule("coordination.k8s.io", &["leases"], &["quorate"], &["get", "update"]),
        rule("", &["secrets"], &[], &["create"]),
        rule("", &["secrets"], &["quorate-webhook-ca"], &["get", "list", "watch", "update"]),
        rule("", &["configmaps"], &[], &["create"]),
        rule("", &["configmaps"], &["quorate-storage-migration"], &["get", "patch"]),
    ]);
    assert_eq!(named("Role", "quorate")["rules"], own);
}

#[test]
fn operator_permissions_in_the_cluster() {
    const READ: &[&str] = &["get", "list", "watch"];
    const PATCH: &[&str] = &["get", "list", "watch", "patch"];
    let rbac = "rbac.authorization.k8s.io";
    let binding = ["quorate-namespace"];
    let crds = "apiextensions.k8s.io";
    let definitions =
        ["etcdclusters.etcd.appdelivery.cncf.io", "exampleapps.example-app.appdelivery.cncf.io"];
    let known = [
        "etcdclusters.etcd.appdelivery.cncf.io",
        "etcdmembers.etcd.appdelivery.cncf.io",
        "etcdbackups.etcd.appdelivery.cncf.io",
        "etcdrestores.etcd.appdelivery.cncf.io",
        "exampleapps.example-app.appdelivery.cncf.io",
    ];
    let cluster = json!([
        rule(names::ETCD_GROUP, &ETCD, &[], READ),
        rule(names::APP_GROUP, &["exampleapps"], &[], READ),
        rule("", &["pods", "persistentvolumeclaims", "services"], &[], &["list", "watch"]),
        rule("policy", &["poddisruptionbudgets"], &[], &["list", "watch"]),
        rule(rbac, &["rolebindings"], &[], &["create"]),
        rule(rbac, &["rolebindings"], &binding, &["list", "watch", "patch", "delete"]),
        rule(rbac, &["clusterroles"], &binding, &["bind"]),
        rule(crds, &["customresourcedefinitions"], &known, READ),
        rule(crds, &["customresourcedefinitions/status"], &definitions, &["patch"]),
        rule("events.k8s.io", &["events"], &[], &["create", "patch"]),
    ]);
    assert_eq!(named("ClusterRole", "quorate")["rules"], cluster);
    let configurations = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
    let webhooks = json!([
        rule(crds, &["customresourcedefinitions"], &definitions, PATCH),
        rule("admissionregistration.k8s.io", &configurations, &["quorate"], PATCH),
    ]);
    assert_eq!(named("ClusterRole", "quorate-webhooks")["rules"], webhooks);
}

#[test]
fn operator_permissions_in_namespaces_with_access() {
    const MANAGE: &[&str] = &["create", "patch", "delete"];
    let statuses = ETCD.map(|plural| format!("{plural}/status"));
    let namespace = json!([
        rule(names::ETCD_GROUP, &as_strs(&statuses), &[], &["patch"]),
        rule(names::APP_GROUP, &["exampleapps/status"], &[], &["patch"]),
        rule(names::ETCD_GROUP, &["etcdmembers"], &[], MANAGE),
        rule("", &["pods"], &[], MANAGE),
        rule("", &["persistentvolumeclaims"], &[], MANAGE),
        rule("", &["services"], &[], &["create", "patch"]),
        rule("", &["secrets"], &[], &["get", "create", "patch"]),
        rule("cert-manager.io", &["certificates"], &[], &["get", "create", "patch"]),
        rule("policy", &["poddisruptionbudgets"], &[], &["create", "patch"]),
        rule("events.k8s.io", &["events"], &[], &["create", "patch"]),
        rule(names::ETCD_GROUP, &["etcdclusters"], &[], &["patch"]),
        rule(names::APP_GROUP, &["exampleapps"], &[], &["patch"]),
    ]);
    assert_eq!(named("ClusterRole", "quorate-namespace")["rules"], namespace);
}

#[test]
fn user_roles_are_aggregated_to_view_edit_and_admin() {
    let is_aggregated = |role: &str, targets: &[&str]| {
        let labels = named("ClusterRole", role)["metadata"]["labels"].to_string();
        for target in ["view", "edit", "admin"] {
            let label = format!("\"rbac.authorization.k8s.io/aggregate-to-{target}\":\"true\"");
            assert_eq!(labels.contains(&label), targets.contains(&target), "{role} {target}");
        }
    };
    is_aggregated(names::VIEW_ROLE, &["view"]);
    is_aggregated(names::EDIT_ROLE, &["edit", "admin"]);
    let read = ["get", "list", "watch"];
    let view = json!([
        rule(names::ETCD_GROUP, &ETCD, &[], &read),
        rule(names::APP_GROUP, &["exampleapps"], &[], &read),
    ]);
    assert_eq!(named("ClusterRole", names::VIEW_ROLE)["rules"], view);
    let write = ["create", "update", "patch", "delete", "deletecollection"];
    let scale = ["get", "update", "patch"];
    let edit = json!([
        rule(names::ETCD_GROUP, &["etcdclusters", "etcdbackups", "etcdrestores"], &[], &write),
        rule(names::APP_GROUP, &["exampleapps"], &[], &write),
        rule(names::ETCD_GROUP, &["etcdclusters/scale"], &[], &scale),
        rule(names::APP_GROUP, &["exampleapps/scale"], &[], &scale),
    ]);
    assert_eq!(named("ClusterRole", names::EDIT_ROLE)["rules"], edit);
    // Not bound here: Kubernetes aggregates them to roles that are bound.
    let bindings = objects().iter().filter(|object| object["kind"] == "ClusterRoleBinding");
    for binding in bindings {
        assert!(!USER_ROLES.iter().any(|role| binding["roleRef"]["name"] == *role), "{binding}");
    }
}

#[test]
fn permission_list_matches_the_roles() {
    let role_of = |scope: Scope| match scope {
        Scope::OwnNamespace => ("Role", names::OPERATOR),
        Scope::Cluster => ("ClusterRole", names::OPERATOR),
        Scope::Webhooks => ("ClusterRole", names::WEBHOOKS_ROLE),
        Scope::GrantedNamespace => ("ClusterRole", names::NAMESPACE_ROLE),
    };
    let listed: Vec<Value> = permissions()
        .into_iter()
        .map(|Permission { scope, group, resources, names, verbs, reason }| {
            assert!(reason.len() > 10, "{group} {resources:?} has no reason");
            let (kind, name) = role_of(scope);
            json!([kind, name, rule(group, &as_strs(&resources), &as_strs(&names), verbs)])
        })
        .collect();
    let roles: Vec<Value> = rules()
        .into_iter()
        .map(|(role, rule)| json!([role["kind"], role["metadata"]["name"], rule]))
        .collect();
    assert_eq!(listed, roles);
}

#[test]
fn no_permission_has_a_wildcard_or_cluster_wide_secrets() {
    for (role, rule) in rules() {
        let name = &role["metadata"]["name"];
        assert!(!rule.to_string().contains('*'), "{name}: {rule}");
        assert_eq!(rule["nonResourceURLs"], Value::Null, "{name}: {rule}");
        for verb in ["escalate", "impersonate", "deletecollection"] {
            assert!(!rule["verbs"].to_string().contains(verb), "{name}: {rule}");
        }
        for resource in rule["resources"].as_array().unwrap() {
            let resource = resource.as_str().unwrap();
            // The only ClusterRole with Secrets is bound by RoleBindings, never cluster-wide.
            if resource == "secrets" && *name != names::NAMESPACE_ROLE {
                assert_eq!(role["kind"], "Role", "{name}: {rule}");
            }
            for never in ["pods/exec", "nodes/proxy", "serviceaccounts/token"] {
                assert_ne!(resource, never, "{name}");
            }
        }
        let has_names = rule["resourceNames"].is_array();
        let binds = rule["verbs"].to_string().contains("bind");
        let reads_secrets = rule["resources"] == json!(["secrets"])
            && rule["verbs"] != json!(["create"])
            && *name != names::NAMESPACE_ROLE;
        assert!(has_names || !(binds || reads_secrets), "{name}: {rule} has no resourceNames");
    }
}

#[test]
fn operator_cannot_delete_its_own_role_binding() {
    // RoleBindings with this name can be deleted in every namespace.
    let own = object("RoleBinding");
    assert_ne!(own["metadata"]["name"], names::NAMESPACE_ROLE_BINDING);
}

#[test]
fn only_the_service_account_has_the_roles() {
    let account =
        json!([{"kind": "ServiceAccount", "name": "quorate", "namespace": names::NAMESPACE}]);
    let mut bound = Vec::new();
    for binding in objects() {
        if !["RoleBinding", "ClusterRoleBinding"].contains(&binding["kind"].as_str().unwrap()) {
            continue;
        }
        assert_eq!(binding["subjects"], account);
        assert_eq!(binding["roleRef"]["apiGroup"], "rbac.authorization.k8s.io");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        bound.push((text(&binding["roleRef"]["kind"]), text(&binding["roleRef"]["name"])));
    }
    let expected =
        [("Role", "quorate"), ("ClusterRole", "quorate"), ("ClusterRole", "quorate-webhooks")];
    assert_eq!(bound, expected.map(|(kind, name)| (kind.to_owned(), name.to_owned())));
    assert_eq!(object("ServiceAccount")["automountServiceAccountToken"], json!(false));
}

#[test]
fn documented_permissions_match_the_roles() {
    let page = fs::read_to_string(root().join("docs/install.md")).unwrap();
    let documented: BTreeSet<Vec<Vec<String>>> = rows_below(&page, "## Permissions")
        .iter()
        .map(|row| row.iter().take(4).map(|cell| code(cell)).collect())
        .collect();
    let mut expected = BTreeSet::new();
    for (role, rule) in rules() {
        let texts = |list: &Value| -> Vec<String> {
            let list = list.as_array().into_iter().flatten();
            list.map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let role = format!("{} {}", role["kind"], role["metadata"]["name"]).replace('"', "");
        expected.insert(vec![
            vec![role],
            texts(&rule["verbs"]),
            texts(&rule["resources"]),
            texts(&rule["resourceNames"]),
        ]);
    }
    assert_eq!(documented, expected, "docs/install.md, ## Permissions");
}
