//! Resets the cluster without a restart: deletes every object that a fresh cluster does not have.
//!
//! `up` records the objects of a fresh cluster. `reset` lists all objects repeatedly and deletes
//! those that are not recorded, until none is left.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::{StreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, Preconditions,
};
use kube::discovery::{Discovery, verbs};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::kubectl::Kubectl;
use crate::paths::Paths;
use crate::progress::Step;
use crate::settings::Settings;
use crate::{files, kubeconfig, network, up, wait};

/// Kinds that the cluster manages itself and would only recreate.
const SYSTEM_MANAGED_KINDS: [&str; 12] = [
    "Event",
    "Node",
    "CSINode",
    "Endpoints",
    "EndpointSlice",
    "IPAddress",
    "ServiceCIDR",
    "FlowSchema",
    "PriorityLevelConfiguration",
    "ComponentStatus",
    "StorageVersion",
    "LeaseCandidate",
];
/// Kinds whose objects can block listing, changing or deleting others.
const BLOCKING_KINDS: [&str; 5] = [
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "MutatingAdmissionPolicyBinding",
];
/// Namespaces of the cluster itself.
const SYSTEM: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];
/// The label of each `APIService` that the API server manages.
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// Records the objects of a fresh cluster, once.
///
/// # Errors
/// If the API cannot be listed.
pub async fn record_baseline(client: &Client, paths: &Paths) -> Result<()> {
    if paths.baseline().exists() {
        return Ok(());
    }
    let known: BTreeSet<String> =
        list_objects(client, |_any| true).await?.iter().map(FoundObject::id).collect();
    files::write(&paths.baseline(), serde_json::to_vec_pretty(&known)?)
}

/// Deletes the objects that a fresh cluster does not have, and applies the base manifests again.
///
/// # Errors
/// If there is no cluster, or an object cannot be deleted.
pub async fn reset(settings: &Settings, paths: &Paths) -> Result<()> {
    let client = kubeconfig::client(paths, "admin").await?;
    let baseline = std::fs::read(paths.baseline())
        .context("the cluster is not complete: run `make cluster-up` first")?;
    let baseline: BTreeSet<String> = serde_json::from_slice(&baseline)?;
    let step = Step::begin("resetting the cluster");
    network::connect_all().await?;
    wait::until("the cluster to be empty", Duration::from_mins(2), async || {
        // Objects that can block the others are deleted first.
        let is_blocking = |kind: &str| BLOCKING_KINDS.contains(&kind);
        remove_all(&client, &list_objects(&client, is_blocking).await?, &baseline).await?;
        disable_conversion(&client, &baseline).await?;
        let mut extra = list_objects(&client, |_any| true).await?;
        extra.retain(|found| !baseline.contains(&found.id()));
        step.detail(format!("{} objects to delete", extra.len()));
        remove_all(&client, &extra, &baseline).await?;
        match extra.first() {
            Some(first) => bail!("{} objects remain, {} among them", extra.len(), first.id()),
            None => Ok(()),
        }
    })
    .await?;
    let kubectl = Kubectl::admin(&settings.kubernetes, paths).await?;
    kubectl.apply(&up::manifests(settings)).await.context("cannot apply the base manifests")?;
    step.done("");
    Ok(())
}

/// Deletes all objects, even if one fails, and returns the first error.
async fn remove_all(client: &Client, all: &[FoundObject], but: &BTreeSet<String>) -> Result<()> {
    let extra = all.iter().filter(|found| !but.contains(&found.id()));
    let removals = stream::iter(extra).map(|found| remove(client, found)).buffer_unordered(8);
    removals.collect::<Vec<Result<()>>>().await.into_iter().collect()
}

/// An object with its resource type.
struct FoundObject {
    resource: ApiResource,
    object: DynamicObject,
}

impl FoundObject {
    fn id(&self) -> String {
        let namespace = self.object.namespace().unwrap_or_default();
        let resource = &self.resource;
        format!("{}/{}/{namespace}/{}", resource.group, resource.kind, self.object.name_any())
    }

    fn api(&self, client: &Client) -> Api<DynamicObject> {
        match self.object.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &self.resource),
            None => Api::all_with(client.clone(), &self.resource),
        }
    }
}

/// All objects of these kinds that a user can have created.
async fn list_objects(client: &Client, include: impl Fn(&str) -> bool) -> Result<Vec<FoundObject>> {
    let discovery = Discovery::new(client.clone())
        .run_aggregated()
        .await
        .context("cannot discover the API resources")?;
    let mut found = Vec::new();
    for (resource, capabilities) in
        discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources)
    {
        let listable = capabilities.supports_operation(verbs::LIST);
        let deletable = capabilities.supports_operation(verbs::DELETE);
        let kept = SYSTEM_MANAGED_KINDS.contains(&resource.kind.as_str());
        if !listable || !deletable || kept || !include(&resource.kind) {
            continue;
        }
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
        let listed = match api.list(&ListParams::default()).await {
            Ok(listed) => listed,
            // The kind was deleted after the discovery.
            Err(kube::Error::Api(status)) if status.is_not_found() => continue,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot list {}", resource.plural));
            }
        };
        found.extend(
            listed
                .items
                .into_iter()
                .filter(is_user_object)
                .map(|object| FoundObject { resource: resource.clone(), object }),
        );
    }
    Ok(found)
}

fn is_user_object(object: &DynamicObject) -> bool {
    let in_system =
        object.namespace().is_some_and(|namespace| SYSTEM.contains(&namespace.as_str()));
    !in_system
        && !object.name_any().starts_with("system:")
        && !object.labels().contains_key(AUTOMANAGED)
}

/// A kind without its conversion webhook cannot be listed, so conversion is disabled.
async fn disable_conversion(client: &Client, baseline: &BTreeSet<String>) -> Result<()> {
    let kinds = Api::<CustomResourceDefinition>::all(client.clone());
    for kind in kinds.list(&ListParams::default()).await.context("cannot list kinds")? {
        let ours = baseline.contains(&format!(
            "apiextensions.k8s.io/CustomResourceDefinition//{}",
            kind.name_any()
        ));
        let converts =
            kind.spec.conversion.is_some_and(|conversion| conversion.strategy == "Webhook");
        if converts && !ours {
            let none = json!({ "spec": { "conversion": { "strategy": "None", "webhook": null } } });
            kinds
                .patch(
                    &kind.metadata.name.unwrap_or_default(),
                    &PatchParams::default(),
                    &Patch::Merge(none),
                )
                .await
                .context("cannot disable conversion")?;
        }
    }
    Ok(())
}

async fn remove(client: &Client, found: &FoundObject) -> Result<()> {
    let (api, name) = (found.api(client), found.object.name_any());
    let gone = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.is_not_found() || status.is_conflict());
    // The controller that removes a finalizer may not run any more. Finalizers of Kubernetes stay:
    // they protect volumes that are still in use.
    let kept: Vec<&String> =
        found.object.finalizers().iter().filter(|name| name.contains("kubernetes.io/")).collect();
    if kept.len() < found.object.finalizers().len() {
        let patch = json!({ "metadata": { "finalizers": kept } });
        match api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Err(error) if !gone(&error) => return Err(error).with_context(|| found.id()),
            Ok(_) | Err(_) => {}
        }
    }
    if found.object.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let only_this_uid = DeleteParams {
        preconditions: Some(Preconditions { uid: found.object.uid(), resource_version: None }),
        ..DeleteParams::background().grace_period(1)
    };
    match api.delete(&name, &only_this_uid).await {
        Err(error) if !gone(&error) => Err(error).with_context(|| found.id()),
        Ok(_) | Err(_) => Ok(()),
    }
}
