//! The operator's rights: each is used, none is missing, and in `strict` an administrator gives them.
#![expect(clippy::indexing_slicing, reason = "JSON that is not there reads as null")]

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role, RoleBinding};
use kube::Api;
use kube::api::{Patch, PatchParams};
use quorate::api::names;
use quorate_harness::{Disturbs, Story, audit, tell};
use serde_json::{Value, json};

use super::endurance::QUICK;
use super::installed::{ACCOUNT, NAMESPACE, installed_from, manifest, rolled_out, told};

const SOON: Duration = Duration::from_mins(2);
const STRICT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/overlays/strict");
const NAMESPACED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/overlays/namespaced");
const PLAIN: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/samples/quickstart/etcdcluster.yaml");

#[tokio::test(flavor = "multi_thread")]
async fn every_right_is_used_and_every_one_that_is_used_is_granted() -> Result<()> {
    tell("rights", Disturbs::Everything, async |story| {
        let mark = audit::mark(&story.places)?;
        installed_from(story, &["-k", STRICT], async || {
            let mut granted = rights(story).await?;
            story.kubectl(&["apply", "-f", PLAIN]).await?;
            says(story, true).await.context("in a namespace that is not granted")?;
            let bind = [
                "create",
                "rolebinding",
                names::NAMESPACE_ROLE_BINDING,
                "--clusterrole=quorate-namespace",
                "--serviceaccount=quorate-system:quorate",
            ];
            story.kubectl(&bind).await?;
            says(story, false).await.context("once it is granted")?;
            story.kubectl(&["delete", "rolebinding", names::NAMESPACE_ROLE_BINDING]).await?;
            says(story, true).await.context("once the grant is gone")?;

            // The other way: the operator grants itself what it needs, and takes its words back.
            story.admin.run(&["apply", "--filename", &manifest()?]).await?;
            rolled_out(story).await?;
            told(story, &QUICK).await?;
            says(story, false).await.context("once the operator grants by itself")?;
            granted.extend(rights(story).await?);
            used_by_a_cluster(story).await?;
            asked_of_cert_manager(story).await?;
            stored_anew(story).await?;
            mended_and_withdrawn(story).await?;
            rotated(story).await?;
            compare(story, mark, &granted)
        })
        .await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn in_one_namespace_a_role_is_enough_and_nothing_else_is_touched() -> Result<()> {
    tell("namespaced", Disturbs::Everything, async |story| {
        let mark = audit::mark(&story.places)?;
        installed_from(story, &["-k", NAMESPACED], async || {
            super::installed::leader(story).await?;
            tokio::time::sleep(Duration::from_secs(10)).await;
            let roles = Api::<ClusterRole>::all(story.client.clone());
            ensure!(roles.get_opt(names::OPERATOR).await?.is_none(), "there is a ClusterRole");
            for call in operators(story, mark)? {
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

/// Waits until the object says, or does not say, that its namespace is not granted.
async fn says(story: &Story, stalled: bool) -> Result<()> {
    let what = if stalled { "say that it waits" } else { "say nothing any more" };
    story
        .wait_until(&format!("the object to {what}"), SOON, async || {
            let read = story.kubectl(&["get", "etcdclusters", "--output=json"]).await;
            let read: Value = serde_json::from_str(&read.map_err(|error| format!("{error:#}"))?)
                .map_err(|error| error.to_string())?;
            let conditions = read["items"][0]["status"]["conditions"].as_array().cloned();
            let conditions = conditions.unwrap_or_default();
            let waits = conditions.iter().find(|it| it["type"] == "Stalled");
            let command = format!("kubectl -n {} create rolebinding", story.namespace);
            let found = waits.is_some_and(|it| {
                it["status"] == "True"
                    && it["reason"] == "NamespaceNotGranted"
                    && it["message"].as_str().is_some_and(|words| words.contains(&command))
            });
            if found == stalled { Ok(()) } else { Err(format!("{conditions:?}")) }
        })
        .await
}

/// What a cluster needs in its life: members that come and go, volumes that grow.
async fn used_by_a_cluster(story: &Story) -> Result<()> {
    let ready = async |members: &str| {
        let wait = ["wait", "etcdcluster", "--all", "--timeout=180s"];
        let size = format!("--for=jsonpath={{.status.readyReplicas}}={members}");
        story.kubectl(&[&wait[..], &[&size]].concat()).await?;
        story.kubectl(&[&wait[..], &["--for=condition=Ready"]].concat()).await
    };
    ready("3").await?;
    // Somebody meddles with a Service, and it is put right.
    let meddled = json!({"spec": {"selector": {"app": "nobody"}}}).to_string();
    story
        .kubectl(&["patch", "service", "main-client", "--type=merge", "--patch", &meddled])
        .await?;
    let services = story.api::<Service>();
    story
        .wait_until("the Service to be put right", SOON, async || {
            let found = services.get("main-client").await.map_err(|error| error.to_string())?;
            let selector = found.spec.and_then(|it| it.selector).unwrap_or_default();
            if selector.contains_key("app") { Err(format!("{selector:?}")) } else { Ok(()) }
        })
        .await?;
    let larger = json!({"spec": {"replicas": 1, "storage": {"size": "12Gi"}}}).to_string();
    story.kubectl(&["patch", "etcdcluster", "main", "--type=merge", "--patch", &larger]).await?;
    ready("1").await?;
    // Those who go leave nothing behind; that may take longer than it takes the others to be well.
    story
        .wait_until("two members to be forgotten", SOON, async || {
            let members = story.kubectl(&["get", "etcdmembers", "--output=name"]).await;
            let members = members.map_err(|error| format!("{error:#}"))?;
            if members.lines().count() == 1 { Ok(()) } else { Err(members) }
        })
        .await
}

/// Certificates are asked for where somebody knows what they are. Nobody signs, so the members go on as they are.
async fn asked_of_cert_manager(story: &Story) -> Result<()> {
    const DEFINITION: &str = "certificates.cert-manager.io";
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": "cert-manager.io", "scope": "Namespaced",
            "names": {"plural": "certificates", "singular": "certificate", "kind": "Certificate"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}],
        },
    });
    story.admin.apply(&definition.to_string()).await?;
    let served = ["wait", "crd", DEFINITION, "--for=condition=Established", "--timeout=30s"];
    story.admin.run(&served).await?;
    let from = async |client: Value| {
        let patch = json!({"spec": {"tls": {"client": client}}}).to_string();
        story.kubectl(&["patch", "etcdcluster", "main", "--type=merge", "--patch", &patch]).await
    };
    from(json!({"source": "CertManager", "issuerRef": {"name": "nobody"}})).await?;
    story
        .wait_until("the object to say that it waits for cert-manager", SOON, async || {
            let path = r#"jsonpath={.status.conditions[?(@.type=="CertificatesValid")].reason}"#;
            let read = ["get", "etcdcluster", "main", "--output", path];
            let read = story.kubectl(&read).await.map_err(|error| format!("{error:#}"))?;
            if read == "WaitingForCertificate" { Ok(()) } else { Err(read) }
        })
        .await?;
    from(json!({"source": "Managed", "issuerRef": null})).await?;
    story.admin.run(&["delete", "crd", DEFINITION, "--timeout=60s"]).await.map(drop)
}

/// A definition says that objects may be stored in an older version: they are written, and it says so no longer.
async fn stored_anew(story: &Story) -> Result<()> {
    const CLUSTERS: &str = "etcdclusters.etcd.appdelivery.cncf.io";
    let stale = json!({"status": {"storedVersions": ["v1beta1", "v1"]}}).to_string();
    let patch =
        ["patch", "crd", CLUSTERS, "--subresource=status", "--type=merge", "--patch", &stale];
    story.admin.run(&patch).await?;
    story
        .wait_until("the definition to name one version", SOON, async || {
            let read = ["get", "crd", CLUSTERS, "--output=jsonpath={.status.storedVersions}"];
            let read = story.admin.run(&read).await.map_err(|error| format!("{error:#}"))?;
            if read == r#"["v1"]"# { Ok(()) } else { Err(read) }
        })
        .await
}

/// The grant is mended when somebody meddles with it, and goes with the last object.
async fn mended_and_withdrawn(story: &Story) -> Result<()> {
    let bindings = story.api::<RoleBinding>();
    let bound = async |account: bool| {
        story
            .wait_until("the grant to be as it should be", SOON, async || {
                let found = bindings.get_opt(names::NAMESPACE_ROLE_BINDING).await;
                let found = found.map_err(|error| error.to_string())?;
                let right = found.as_ref().is_some_and(|it| {
                    it.subjects.iter().flatten().any(|subject| subject.name == names::OPERATOR)
                });
                if right == account && (account || found.is_none()) {
                    Ok(())
                } else {
                    Err(format!("{found:?}"))
                }
            })
            .await
    };
    bound(true).await?;
    let nobody = Patch::Merge(json!({"subjects": []}));
    bindings.patch(names::NAMESPACE_ROLE_BINDING, &PatchParams::default(), &nobody).await?;
    bound(true).await?;
    story.kubectl(&["delete", "-f", PLAIN]).await?;
    bound(false).await
}

/// The authorities are lost, and renewed without a moment in which nobody is trusted.
async fn rotated(story: &Story) -> Result<()> {
    let secrets =
        Api::<k8s_openapi::api::core::v1::Secret>::namespaced(story.client.clone(), NAMESPACE);
    let gone = kube::api::DeleteParams::default();
    secrets.delete(names::WEBHOOK_CA_SECRET, &gone).await?;
    // First it is made anew, and then it is changed: the new authority is soon old, too.
    let mut first = None;
    story
        .wait_until("the authorities to be changed", Duration::from_mins(4), async || {
            let secret = secrets.get(names::WEBHOOK_CA_SECRET).await;
            let version = secret.map_err(|error| error.to_string())?.metadata.resource_version;
            if first.get_or_insert_with(|| version.clone()) == &version {
                return Err("they are as they were made".to_owned());
            }
            Ok(())
        })
        .await
}

/// A verb on a resource of a group.
type Right = (String, String, String);

/// What the roles of the operator grant now.
async fn rights(story: &Story) -> Result<BTreeSet<Right>> {
    let mut rules: Vec<PolicyRule> = Vec::new();
    let own = Api::<Role>::namespaced(story.client.clone(), NAMESPACE);
    rules.extend(own.get(names::OPERATOR).await?.rules.unwrap_or_default());
    let wide = Api::<ClusterRole>::all(story.client.clone());
    for name in [names::OPERATOR, names::WEBHOOKS_ROLE, names::NAMESPACE_ROLE] {
        rules.extend(wide.get(name).await?.rules.unwrap_or_default());
    }
    let mut rights = BTreeSet::new();
    for rule in rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    rights.insert((verb.clone(), group.clone(), resource.clone()));
                }
            }
        }
    }
    Ok(rights)
}

fn operators(story: &Story, mark: audit::Mark) -> Result<Vec<audit::Call>> {
    let mut calls = audit::calls_since(&story.places, mark)?;
    calls.retain(|call| call.user.username == ACCOUNT);
    ensure!(!calls.is_empty(), "the audit log knows nothing of the operator");
    Ok(calls)
}

fn compare(story: &Story, mark: audit::Mark, granted: &BTreeSet<Right>) -> Result<()> {
    let mut used = BTreeSet::new();
    for call in operators(story, mark)? {
        let target = &call.object_ref;
        let resource = match target.subresource.as_str() {
            "" => target.resource.clone(),
            sub => format!("{}/{sub}", target.resource),
        };
        // Everybody may ask what they may do.
        if resource == "selfsubjectaccessreviews" {
            continue;
        }
        let right = (call.verb.clone(), target.api_group.clone(), resource);
        // Between two ways the old replica may still try what it was just denied.
        ensure!(
            call.response_status.code != 403 || granted.contains(&right),
            "forbidden: {call:?}"
        );
        used.insert(right);
    }
    // Members, backups and restores are seen, and nothing was said in one of them here; the right to bind
    // is used by making a binding, and leaves no call of its own.
    let same_as_clusters = |(verb, group, resource): &Right| {
        let (kind, sub) = resource.split_once('/').unwrap_or((resource, ""));
        let other = ["etcdmembers", "etcdbackups", "etcdrestores", "exampleapps"].contains(&kind);
        let of_clusters =
            if sub.is_empty() { "etcdclusters".to_owned() } else { format!("etcdclusters/{sub}") };
        let group = if kind == "exampleapps" { names::ETCD_GROUP } else { group };
        other
            && ["get", "patch"].contains(&verb.as_str())
            && used.contains(&(verb.clone(), group.to_owned(), of_clusters))
    };
    // An apply that makes an object needs the right to create it, and is logged as a patch.
    let is_applied = |(verb, group, resource): &Right| {
        verb == "create" && used.contains(&("patch".to_owned(), group.clone(), resource.clone()))
    };
    let is_idle = |right: &&Right| {
        right.0 != "bind"
            && !used.contains(*right)
            && !same_as_clusters(right)
            && !is_applied(right)
    };
    let idle: Vec<&Right> = granted.iter().filter(is_idle).collect();
    ensure!(idle.is_empty(), "granted and not used: {idle:?}");
    let missing: Vec<&Right> = used.difference(granted).collect();
    ensure!(missing.is_empty(), "used and not granted: {missing:?}");
    println!("{} rights, all used", granted.len());
    Ok(())
}
