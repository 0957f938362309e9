//! Back to a fresh cluster without restarting it: whatever was not there at the start is deleted.
//!
//! `up` writes down which objects a fresh cluster holds. `reset` lists everything, again and again, and
//! deletes what is not on that list, until there is nothing of it left.

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
use crate::places::Places;
use crate::progress::Step;
use crate::settings::Settings;
use crate::{files, kubeconfig, network, up, wait};

/// Kept by the cluster itself; deleting them would only make it write them again.
const SELF_KEPT: [&str; 12] = [
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
/// Kinds whose objects can keep others from being listed, changed or deleted.
const GATEKEEPERS: [&str; 5] = [
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "MutatingAdmissionPolicyBinding",
];
/// Namespaces of the cluster itself.
const SYSTEM: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];
/// The API server keeps an APIService for each group by itself, and marks it so.
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// Writes down what a fresh cluster holds, once.
///
/// # Errors
/// If the API cannot be listed.
pub async fn remember_baseline(client: &Client, places: &Places) -> Result<()> {
    if places.baseline().exists() {
        return Ok(());
    }
    let known: BTreeSet<String> =
        everything(client, |_any| true).await?.iter().map(Found::id).collect();
    files::write(&places.baseline(), serde_json::to_vec_pretty(&known)?)
}

/// Deletes what was not there at the start, and puts back what was.
///
/// # Errors
/// If there is no cluster, or something does not go.
pub async fn reset(settings: &Settings, places: &Places) -> Result<()> {
    let client = kubeconfig::client(places, "admin").await?;
    let baseline = std::fs::read(places.baseline())
        .context("the cluster never came up completely: run `make cluster-up` first")?;
    let baseline: BTreeSet<String> = serde_json::from_slice(&baseline)?;
    let step = Step::begin("resetting the cluster");
    network::connect_all().await?;
    wait::until("the cluster to be empty", Duration::from_mins(2), async || {
        // Who could keep the others from being listed or deleted goes first.
        let is_gatekeeper = |kind: &str| GATEKEEPERS.contains(&kind);
        remove_all(&client, &everything(&client, is_gatekeeper).await?, &baseline).await?;
        make_readable(&client, &baseline).await?;
        let mut extra = everything(&client, |_any| true).await?;
        extra.retain(|found| !baseline.contains(&found.id()));
        step.detail(format!("{} objects to go", extra.len()));
        remove_all(&client, &extra, &baseline).await?;
        match extra.first() {
            Some(first) => bail!("{} objects are left, {} among them", extra.len(), first.id()),
            None => Ok(()),
        }
    })
    .await?;
    let kubectl = Kubectl::admin(&settings.kubernetes, places).await?;
    kubectl.apply(&up::manifests(settings)).await.context("cannot apply the base manifests")?;
    step.done("");
    Ok(())
}

/// Tries all of them, whatever happens to one, and tells the first trouble.
async fn remove_all(client: &Client, all: &[Found], but: &BTreeSet<String>) -> Result<()> {
    let extra = all.iter().filter(|found| !but.contains(&found.id()));
    let removals = stream::iter(extra).map(|found| remove(client, found)).buffer_unordered(8);
    removals.collect::<Vec<Result<()>>>().await.into_iter().collect()
}

/// An object and how to reach it.
struct Found {
    resource: ApiResource,
    object: DynamicObject,
}

impl Found {
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

/// Every object of these kinds that a person could have made.
async fn everything(client: &Client, wanted: impl Fn(&str) -> bool) -> Result<Vec<Found>> {
    let discovery = Discovery::new(client.clone())
        .run_aggregated()
        .await
        .context("cannot ask what kinds there are")?;
    let mut found = Vec::new();
    for (resource, capabilities) in
        discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources)
    {
        let listable = capabilities.supports_operation(verbs::LIST);
        let deletable = capabilities.supports_operation(verbs::DELETE);
        let kept = SELF_KEPT.contains(&resource.kind.as_str());
        if !listable || !deletable || kept || !wanted(&resource.kind) {
            continue;
        }
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
        let listed = match api.list(&ListParams::default()).await {
            Ok(listed) => listed,
            // The kind was deleted between the two questions.
            Err(kube::Error::Api(status)) if status.is_not_found() => continue,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot list {}", resource.plural));
            }
        };
        found.extend(
            listed
                .items
                .into_iter()
                .filter(is_of_people)
                .map(|object| Found { resource: resource.clone(), object }),
        );
    }
    Ok(found)
}

fn is_of_people(object: &DynamicObject) -> bool {
    let in_system =
        object.namespace().is_some_and(|namespace| SYSTEM.contains(&namespace.as_str()));
    !in_system
        && !object.name_any().starts_with("system:")
        && !object.labels().contains_key(AUTOMANAGED)
}

/// A kind whose conversion webhook is gone cannot be listed: without conversion it can.
async fn make_readable(client: &Client, baseline: &BTreeSet<String>) -> Result<()> {
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
                .context("cannot switch conversion off")?;
        }
    }
    Ok(())
}

async fn remove(client: &Client, found: &Found) -> Result<()> {
    let (api, name) = (found.api(client), found.object.name_any());
    let gone = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.is_not_found() || status.is_conflict());
    // Whoever should have taken its finalizer off may be gone. Those of Kubernetes itself are left: they
    // guard volumes that are still in use.
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
    let exactly_this = DeleteParams {
        preconditions: Some(Preconditions { uid: found.object.uid(), resource_version: None }),
        ..DeleteParams::background().grace_period(1)
    };
    match api.delete(&name, &exactly_this).await {
        Err(error) if !gone(&error) => Err(error).with_context(|| found.id()),
        Ok(_) | Err(_) => Ok(()),
    }
}
