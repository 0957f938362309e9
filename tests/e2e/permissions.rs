//! The operator's permissions: each is used, none is missing, and with the `strict` overlay an
//! administrator grants the access to a namespace.
#![expect(clippy::indexing_slicing, reason = "a missing JSON field reads as null")]

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role, RoleBinding};
use kube::Api;
use kube::api::{Patch, PatchParams};
use quorate::api::names;
use quorate_harness::{Isolation, TestContext, audit, run};
use serde_json::{Value, json};

use super::installation::{
    NAMESPACE, SERVICE_ACCOUNT, manifest, set_operator_args, wait_rollout, with_installation_from,
};
use super::webhook_availability::SHORT_LIFETIMES;

const STEP_TIMEOUT: Duration = Duration::from_mins(2);
const STRICT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/overlays/strict");
const NAMESPACED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/overlays/namespaced");
const SAMPLE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/samples/quickstart/etcdcluster.yaml");

#[tokio::test(flavor = "multi_thread")]
async fn granted_permissions_are_exactly_the_used_ones() -> Result<()> {
    run("permissions", Isolation::Serial, async |ctx| {
        let mark = audit::mark(&ctx.paths)?;
        with_installation_from(ctx, &["-k", STRICT], async || {
            let mut granted = permissions(ctx).await?;
            ctx.kubectl(&["apply", "-f", SAMPLE]).await?;
            wait_access_condition(ctx, true).await.context("without a RoleBinding")?;
            let bind = [
                "create",
                "rolebinding",
                names::NAMESPACE_ROLE_BINDING,
                "--clusterrole=quorate-namespace",
                "--serviceaccount=quorate-system:quorate",
            ];
            ctx.kubectl(&bind).await?;
            wait_access_condition(ctx, false).await.context("with a RoleBinding")?;
            ctx.kubectl(&["delete", "rolebinding", names::NAMESPACE_ROLE_BINDING]).await?;
            wait_access_condition(ctx, true).await.context("after its deletion")?;

            // The default mode: the operator creates the RoleBinding and removes the condition.
            ctx.admin.run(&["apply", "--filename", &manifest()?]).await?;
            wait_rollout(ctx).await?;
            set_operator_args(ctx, &SHORT_LIFETIMES).await?;
            wait_access_condition(ctx, false).await.context("with automatic access")?;
            granted.extend(permissions(ctx).await?);
            run_cluster(ctx).await?;
            use_cert_manager(ctx).await?;
            migrate_storage(ctx).await?;
            repair_and_delete_binding(ctx).await?;
            rotate_webhook_ca(ctx).await?;
            compare(ctx, mark, &granted)
        })
        .await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaced_operator_needs_only_a_role() -> Result<()> {
    run("namespaced", Isolation::Serial, async |ctx| {
        let mark = audit::mark(&ctx.paths)?;
        with_installation_from(ctx, &["-k", NAMESPACED], async || {
            super::installation::leader(ctx).await?;
            tokio::time::sleep(Duration::from_secs(10)).await;
            let roles = Api::<ClusterRole>::all(ctx.client.clone());
            ensure!(roles.get_opt(names::OPERATOR).await?.is_none(), "a ClusterRole exists");
            for call in operator_calls(ctx, mark)? {
                let (resource, code) = (&call.object_ref.resource, call.response_status.code);
                ensure!(code != 403, "{call:?}");
                ensure!(call.object_ref.namespace == NAMESPACE, "{resource}: {call:?}");
            }
            Ok(())
        })
        .await
    })
    .await
}

/// Waits until the object has, or does not have, the condition for missing namespace access.
async fn wait_access_condition(ctx: &TestContext, stalled: bool) -> Result<()> {
    let what = if stalled { "report missing access" } else { "have access" };
    ctx.wait_until(&format!("the object to {what}"), STEP_TIMEOUT, async || {
        let read = ctx.kubectl(&["get", "etcdclusters", "--output=json"]).await;
        let read: Value = serde_json::from_str(&read.map_err(|error| format!("{error:#}"))?)
            .map_err(|error| error.to_string())?;
        let conditions = read["items"][0]["status"]["conditions"].as_array().cloned();
        let conditions = conditions.unwrap_or_default();
        let stalled_condition = conditions.iter().find(|condition| condition["type"] == "Stalled");
        let command = format!("kubectl -n {} create rolebinding", ctx.namespace);
        let found = stalled_condition.is_some_and(|condition| {
            condition["status"] == "True"
                && condition["reason"] == "NamespaceNotGranted"
                && condition["message"].as_str().is_some_and(|message| message.contains(&command))
        });
        if found == stalled { Ok(()) } else { Err(format!("{conditions:?}")) }
    })
    .await
}

/// The permissions for a cluster's lifecycle: adding and removing members, expanding volumes.
async fn run_cluster(ctx: &TestContext) -> Result<()> {
    let ready = async |members: &str| {
        let wait = ["wait", "etcdcluster", "--all", "--timeout=180s"];
        let size = format!("--for=jsonpath={{.status.readyReplicas}}={members}");
        ctx.kubectl(&[&wait[..], &[&size]].concat()).await?;
        ctx.kubectl(&[&wait[..], &["--for=condition=Ready"]].concat()).await
    };
    ready("3").await?;
    // A user changes a Service, and the operator fixes the drift.
    let drift = json!({"spec": {"selector": {"app": "none"}}}).to_string();
    ctx.kubectl(&["patch", "service", "main-client", "--type=merge", "--patch", &drift]).await?;
    let services = ctx.api::<Service>();
    ctx.wait_until("the Service's drift to be fixed", STEP_TIMEOUT, async || {
        let found = services.get("main-client").await.map_err(|error| error.to_string())?;
        let selector = found.spec.and_then(|spec| spec.selector).unwrap_or_default();
        if selector.contains_key("app") { Err(format!("{selector:?}")) } else { Ok(()) }
    })
    .await?;
    let larger = json!({"spec": {"replicas": 1, "storage": {"size": "12Gi"}}}).to_string();
    ctx.kubectl(&["patch", "etcdcluster", "main", "--type=merge", "--patch", &larger]).await?;
    ready("1").await?;
    // The objects of removed members are deleted, possibly after the cluster is ready.
    ctx.wait_until("two EtcdMembers to be deleted", STEP_TIMEOUT, async || {
        let members = ctx.kubectl(&["get", "etcdmembers", "--output=name"]).await;
        let members = members.map_err(|error| format!("{error:#}"))?;
        if members.lines().count() == 1 { Ok(()) } else { Err(members) }
    })
    .await
}

/// Certificates are requested from cert-manager, of which only the CRD exists: the members keep
/// their certificates.
async fn use_cert_manager(ctx: &TestContext) -> Result<()> {
    const CRD: &str = "certificates.cert-manager.io";
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": CRD},
        "spec": {
            "group": "cert-manager.io", "scope": "Namespaced",
            "names": {"plural": "certificates", "singular": "certificate", "kind": "Certificate"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}],
        },
    });
    ctx.admin.apply(&crd.to_string()).await?;
    let established = ["wait", "crd", CRD, "--for=condition=Established", "--timeout=30s"];
    ctx.admin.run(&established).await?;
    let set_source = async |client: Value| {
        let patch = json!({"spec": {"tls": {"client": client}}}).to_string();
        ctx.kubectl(&["patch", "etcdcluster", "main", "--type=merge", "--patch", &patch]).await
    };
    set_source(json!({"source": "CertManager", "issuerRef": {"name": "missing"}})).await?;
    ctx.wait_until(
        "the object to report that it waits for cert-manager",
        STEP_TIMEOUT,
        async || {
            let path = r#"jsonpath={.status.conditions[?(@.type=="CertificatesValid")].reason}"#;
            let read = ["get", "etcdcluster", "main", "--output", path];
            let read = ctx.kubectl(&read).await.map_err(|error| format!("{error:#}"))?;
            if read == "WaitingForCertificate" { Ok(()) } else { Err(read) }
        },
    )
    .await?;
    set_source(json!({"source": "Managed", "issuerRef": null})).await?;
    ctx.admin.run(&["delete", "crd", CRD, "--timeout=60s"]).await.map(drop)
}

/// A CRD lists an older stored version: the objects are rewritten, and the version is trimmed.
async fn migrate_storage(ctx: &TestContext) -> Result<()> {
    const CLUSTERS_CRD: &str = "etcdclusters.etcd.appdelivery.cncf.io";
    let older = json!({"status": {"storedVersions": ["v1beta1", "v1"]}}).to_string();
    let patch =
        ["patch", "crd", CLUSTERS_CRD, "--subresource=status", "--type=merge", "--patch", &older];
    ctx.admin.run(&patch).await?;
    ctx.wait_until("the CRD to list one stored version", STEP_TIMEOUT, async || {
        let read = ["get", "crd", CLUSTERS_CRD, "--output=jsonpath={.status.storedVersions}"];
        let read = ctx.admin.run(&read).await.map_err(|error| format!("{error:#}"))?;
        if read == r#"["v1"]"# { Ok(()) } else { Err(read) }
    })
    .await
}

/// The `RoleBinding` is repaired after a change by a user, and deleted with the last object.
async fn repair_and_delete_binding(ctx: &TestContext) -> Result<()> {
    let bindings = ctx.api::<RoleBinding>();
    let wait_bound = async |bound: bool| {
        ctx.wait_until("the RoleBinding to be up to date", STEP_TIMEOUT, async || {
            let found = bindings.get_opt(names::NAMESPACE_ROLE_BINDING).await;
            let found = found.map_err(|error| error.to_string())?;
            let has_subject = found.as_ref().is_some_and(|binding| {
                binding.subjects.iter().flatten().any(|subject| subject.name == names::OPERATOR)
            });
            if has_subject == bound && (bound || found.is_none()) {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await
    };
    wait_bound(true).await?;
    let no_subjects = Patch::Merge(json!({"subjects": []}));
    bindings.patch(names::NAMESPACE_ROLE_BINDING, &PatchParams::default(), &no_subjects).await?;
    wait_bound(true).await?;
    ctx.kubectl(&["delete", "-f", SAMPLE]).await?;
    wait_bound(false).await
}

/// The webhook CA Secret is deleted: the CA is issued again, and rotated.
async fn rotate_webhook_ca(ctx: &TestContext) -> Result<()> {
    let secrets =
        Api::<k8s_openapi::api::core::v1::Secret>::namespaced(ctx.client.clone(), NAMESPACE);
    secrets.delete(names::WEBHOOK_CA_SECRET, &kube::api::DeleteParams::default()).await?;
    // First the Secret is created, and then changed: the new CA has a short lifetime, too.
    let mut first = None;
    ctx.wait_until("the CA Secret to be changed", Duration::from_mins(4), async || {
        let secret = secrets.get(names::WEBHOOK_CA_SECRET).await;
        let version = secret.map_err(|error| error.to_string())?.metadata.resource_version;
        if first.get_or_insert_with(|| version.clone()) == &version {
            return Err("the Secret is unchanged".to_owned());
        }
        Ok(())
    })
    .await
}

/// A verb, an API group and a resource.
type Permission = (String, String, String);

/// The permissions that the operator's roles grant.
async fn permissions(ctx: &TestContext) -> Result<BTreeSet<Permission>> {
    let mut rules: Vec<PolicyRule> = Vec::new();
    let own = Api::<Role>::namespaced(ctx.client.clone(), NAMESPACE);
    rules.extend(own.get(names::OPERATOR).await?.rules.unwrap_or_default());
    let cluster_roles = Api::<ClusterRole>::all(ctx.client.clone());
    for name in [names::OPERATOR, names::WEBHOOKS_ROLE, names::NAMESPACE_ROLE] {
        rules.extend(cluster_roles.get(name).await?.rules.unwrap_or_default());
    }
    let mut permissions = BTreeSet::new();
    for rule in rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    permissions.insert((verb.clone(), group.clone(), resource.clone()));
                }
            }
        }
    }
    Ok(permissions)
}

fn operator_calls(ctx: &TestContext, mark: audit::Mark) -> Result<Vec<audit::Call>> {
    let mut calls = audit::calls_since(&ctx.paths, mark)?;
    calls.retain(|call| call.user.username == SERVICE_ACCOUNT);
    ensure!(!calls.is_empty(), "no call of the operator in the audit log");
    Ok(calls)
}

fn compare(ctx: &TestContext, mark: audit::Mark, granted: &BTreeSet<Permission>) -> Result<()> {
    let mut used = BTreeSet::new();
    for call in operator_calls(ctx, mark)? {
        let target = &call.object_ref;
        let resource = match target.subresource.as_str() {
            "" => target.resource.clone(),
            sub => format!("{}/{sub}", target.resource),
        };
        // Every user may create these.
        if resource == "selfsubjectaccessreviews" {
            continue;
        }
        let permission = (call.verb.clone(), target.api_group.clone(), resource);
        // During the switch of modes the old replica may still use a permission that was just
        // revoked.
        ensure!(
            call.response_status.code != 403 || granted.contains(&permission),
            "forbidden: {call:?}"
        );
        used.insert(permission);
    }
    // The conditions of members, backups, restores and apps are not written by this test; and
    // `bind` is used by the creation of a RoleBinding, without a call of its own.
    let same_as_clusters = |(verb, group, resource): &Permission| {
        let (kind, sub) = resource.split_once('/').unwrap_or((resource, ""));
        let other = ["etcdmembers", "etcdbackups", "etcdrestores", "exampleapps"].contains(&kind);
        let of_clusters =
            if sub.is_empty() { "etcdclusters".to_owned() } else { format!("etcdclusters/{sub}") };
        let group = if kind == "exampleapps" { names::ETCD_GROUP } else { group };
        other
            && ["get", "patch"].contains(&verb.as_str())
            && used.contains(&(verb.clone(), group.to_owned(), of_clusters))
    };
    // An apply that creates an object needs the permission to create, and is logged as a patch.
    let is_applied = |(verb, group, resource): &Permission| {
        verb == "create" && used.contains(&("patch".to_owned(), group.clone(), resource.clone()))
    };
    let is_unused = |permission: &&Permission| {
        permission.0 != "bind"
            && !used.contains(*permission)
            && !same_as_clusters(permission)
            && !is_applied(permission)
    };
    let unused: Vec<&Permission> = granted.iter().filter(is_unused).collect();
    ensure!(unused.is_empty(), "granted and not used: {unused:?}");
    let missing: Vec<&Permission> = used.difference(granted).collect();
    ensure!(missing.is_empty(), "used and not granted: {missing:?}");
    println!("{} permissions, all used", granted.len());
    Ok(())
}
