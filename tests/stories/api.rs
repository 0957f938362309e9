//! The API on a real apiserver: the definitions are taken, explain themselves, and hold their
//! rules in every version, without a webhook.
#![expect(clippy::indexing_slicing, reason = "JSON that is not there reads as null")]

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams, ValidationDirective,
};
use kube::core::GroupVersionKind;
use quorate::api::crd;
use quorate_harness::{Disturbs, Story, tell};
use serde_json::{Value, json};

use super::rule_cases::{Case, cases};

/// The bytes that `kubectl apply` can keep of an object in its annotation.
const MOST_BYTES: usize = 262_144;

/// A definition is established before everything that people look at has heard of it.
const HEARD_OF: Duration = Duration::from_mins(1);

/// These are about the definitions alone: no operator may answer for them, or act on what they make.
async fn alone(name: &str, plot: impl AsyncFnOnce(&Story) -> Result<()>) -> Result<()> {
    tell(name, Disturbs::Everything, async |story| {
        super::installed::gone(story).await?;
        plot(story).await
    })
    .await
}

async fn established(story: &Story, name: &str) -> Result<()> {
    let definitions = Api::<CustomResourceDefinition>::all(story.client.clone());
    let served = async || {
        let live = definitions.get(name).await.map_err(|error| error.to_string())?;
        let conditions = live.status.and_then(|status| status.conditions).unwrap_or_default();
        let holds = conditions.iter().any(|it| it.type_ == "Established" && it.status == "True");
        if !holds {
            return Err(format!("its conditions are {conditions:?}"));
        }
        let listed = story.kubectl(&["get", name]).await;
        listed.map(|_| ()).map_err(|error| format!("{error:#}"))
    };
    story.wait_until(&format!("{name} to be established"), HEARD_OF, served).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_definitions_are_taken_by_plain_apply_and_explain_every_field() -> Result<()> {
    alone("api-definitions", async |story| {
        for definition in crd::all() {
            let path = format!("crds/{}", crd::file_name(&definition));
            let bytes = std::fs::metadata(&path).context(path.clone())?.len();
            ensure!(bytes < u64::try_from(MOST_BYTES)?, "{path} has {bytes} bytes");
            story.kubectl(&["apply", "-f", &path]).await?;
            let name = definition.metadata.name.clone().context("a definition has a name")?;
            established(story, &name).await?;
            let live: CustomResourceDefinition = Api::all(story.client.clone()).get(&name).await?;
            let applied = live.metadata.annotations.unwrap_or_default();
            ensure!(applied.values().all(|value| value.len() < MOST_BYTES));
            let status = live.status.context("an established definition has a status")?;
            for condition in status.conditions.unwrap_or_default() {
                ensure!(condition.type_ != "NonStructuralSchema", "{name}: {condition:?}");
            }
            for version in &definition.spec.versions {
                explained(story, &definition, &version.name).await?;
            }
        }
        let said = story.kubectl(&["api-resources", "--categories=quorate", "-o=name"]).await?;
        ensure!(said.lines().count() == 5, "{said}");
        Ok(())
    })
    .await
}

/// Every field that `kubectl explain` knows has words, in every version.
async fn explained(
    story: &Story,
    definition: &CustomResourceDefinition,
    version: &str,
) -> Result<()> {
    let (plural, group) = (&definition.spec.names.plural, &definition.spec.group);
    let api_version = format!("--api-version={group}/{version}");
    let tree = story
        .wait_until(&format!("an explanation of {plural} {version}"), HEARD_OF, async || {
            let tree = story.kubectl(&["explain", plural, &api_version, "--recursive"]).await;
            let tree = tree.map_err(|error| format!("{error:#}"))?;
            if tree.contains("  spec\t") { Ok(tree) } else { Err(tree) }
        })
        .await?;
    let described =
        story.kubectl(&["get", "--raw", &format!("/openapi/v3/apis/{group}/{version}")]).await?;
    let described: Value = serde_json::from_str(&described)?;
    let kind = &definition.spec.names.kind;
    let schemas = described["components"]["schemas"].as_object().context("there are schemas")?;
    let own = |schema: &&Value| {
        let kinds = &schema["x-kubernetes-group-version-kind"];
        kinds.as_array().into_iter().flatten().any(|it| it["kind"] == **kind)
    };
    let schema = schemas.values().find(own).context("the kind has a schema")?;
    let (mut silent, mut fields) = (Vec::new(), 0_usize);
    for part in ["spec", "status"] {
        undocumented(&schema["properties"][part], part, &mut fields, &mut silent);
    }
    ensure!(silent.is_empty(), "{kind} {version}: without words: {silent:?}");
    // The tree that people see has the same fields, and each a line of its own.
    let lines = tree.lines().filter(|line| line.contains('\t')).count();
    ensure!(lines >= fields, "{kind} {version}: explain shows {lines} of {fields} fields");
    Ok(())
}

fn undocumented(schema: &Value, at: &str, fields: &mut usize, silent: &mut Vec<String>) {
    *fields = fields.saturating_add(1);
    if schema["description"].as_str().is_none_or(str::is_empty) {
        silent.push(at.to_owned());
    }
    let below = schema.get("items").unwrap_or(schema);
    for (name, field) in below["properties"].as_object().into_iter().flatten() {
        undocumented(field, &format!("{at}.{name}"), fields, silent);
    }
}

/// One version of a kind as a definition of its own, in a group of the story's: its schema and
/// rules on a real apiserver, without a conversion that could hide or repair anything.
struct Alone {
    definition: CustomResourceDefinition,
    objects: Api<DynamicObject>,
}

impl Alone {
    async fn define(story: &Story, kind: &str, version: &str) -> Result<Self> {
        let mut definition =
            crd::all().into_iter().find(|it| it.spec.names.kind == kind).context("a kind")?;
        let group = format!("{version}.{}.{}", story.namespace, definition.spec.group);
        let plural = definition.spec.names.plural.clone();
        definition.metadata.name = Some(format!("{plural}.{group}"));
        definition.spec.group.clone_from(&group);
        definition.spec.conversion = None;
        definition.spec.names.short_names = None;
        definition.spec.names.categories = None;
        definition.spec.versions.retain(|it| it.name == version);
        for version in &mut definition.spec.versions {
            version.storage = true;
        }
        let all = Api::<CustomResourceDefinition>::all(story.client.clone());
        all.create(&PostParams::default(), &definition).await?;
        let name = definition.metadata.name.clone().unwrap_or_default();
        established(story, &name).await?;
        let resource = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk(&group, version, kind),
            &plural,
        );
        let objects = Api::namespaced_with(story.client.clone(), &story.namespace, &resource);
        Ok(Self { definition, objects })
    }

    fn object(&self, mut object: Value) -> Result<DynamicObject> {
        let spec = &self.definition.spec;
        let version = spec.versions.first().map(|it| it.name.clone()).unwrap_or_default();
        object["apiVersion"] = json!(format!("{}/{version}", spec.group));
        object["kind"] = json!(spec.names.kind);
        Ok(serde_json::from_value(object)?)
    }

    /// How it is named for kubectl.
    fn named(&self, name: &str) -> String {
        let spec = &self.definition.spec;
        let version = spec.versions.first().map(|it| it.name.clone()).unwrap_or_default();
        format!("{}.{version}.{}/{name}", spec.names.plural, spec.group)
    }

    /// What the apiserver says to an object: nothing, or why not. Tried and not kept.
    async fn says(&self, object: &Value, update: bool) -> Result<Option<String>> {
        let object = self.object(object.clone())?;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let name = object.metadata.name.clone().unwrap_or_default();
        let tried = if update {
            let live = self.objects.get(&name).await?;
            let mut object = object;
            object.metadata.resource_version = live.metadata.resource_version;
            self.objects.replace(&name, &dry, &object).await
        } else {
            self.objects.create(&dry, &object).await
        };
        match tried {
            Ok(_) => Ok(None),
            Err(kube::Error::Api(status)) => Ok(Some(status.message.clone())),
            Err(error) => bail!(error),
        }
    }

    async fn remove(self, story: &Story) -> Result<()> {
        let name = self.definition.metadata.name.clone().unwrap_or_default();
        story.kubectl(&["delete", "crd", &name, "--wait=false"]).await.map(|_| ())
    }
}

/// Tries one case as its file says, and by an update as well as by a creation where both can break
/// the rule.
async fn tried(alone: &Alone, case: &Case, name: &str) -> Result<()> {
    let update = case.was.is_some();
    if let Some(before) = case.before(name) {
        let made = alone.object(before)?;
        alone.objects.create(&PostParams::default(), &made).await?;
        if let Some(status) = &case.status {
            let patch = Patch::Merge(json!({ "status": status }));
            alone.objects.patch_status(name, &PatchParams::default(), &patch).await?;
        }
    }
    let accepted = alone.says(&case.object(name, true), update).await?;
    ensure!(accepted.is_none(), "refused what it should accept: {accepted:?}");
    let refused = alone.says(&case.object(name, false), update).await?;
    let refused = refused.context("accepted what it should refuse")?;
    ensure!(refused.contains(&case.says), "said something else: {refused}");
    if !update && case.names.is_none() {
        // The same by an update of an object that was good.
        let good = alone.object(case.object(name, true))?;
        alone.objects.create(&PostParams::default(), &good).await?;
        let refused = alone.says(&case.object(name, false), true).await?;
        let refused = refused.context("accepted by update what it refuses on creation")?;
        ensure!(refused.contains(&case.says), "an update said something else: {refused}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_rule_holds_on_a_real_apiserver_in_every_version() -> Result<()> {
    alone("api-rules", async |story| {
        let mut by_version: BTreeMap<(String, String), Vec<Case>> = BTreeMap::new();
        for case in cases() {
            by_version.entry((case.kind.clone(), case.version.clone())).or_default().push(case);
        }
        ensure!(by_version.len() == 9, "there are cases for {} versions", by_version.len());
        for ((kind, version), cases) in by_version {
            let alone = Alone::define(story, &kind, &version).await?;
            for (index, case) in cases.iter().enumerate() {
                tried(&alone, case, &format!("case-{index}"))
                    .await
                    .with_context(|| format!("{kind} {version} {}: {}", case.at, case.says))?;
            }
            alone.remove(story).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_scale_is_held_to_the_rules_in_every_version() -> Result<()> {
    alone("api-scale", async |story| {
        for (version, field) in [("v1", "replicas"), ("v1beta1", "size"), ("v1alpha1", "size")] {
            let alone = Alone::define(story, "EtcdCluster", version).await?;
            let plain = json!({ "metadata": { "name": "main" }, "spec": { "version": "3.6.16" } });
            alone.objects.create(&PostParams::default(), &alone.object(plain)?).await?;
            let main = alone.named("main");
            let live = alone.objects.get("main").await?;
            ensure!(
                live.data["spec"][field] == 3,
                "{version}: the default is missing: {:?}",
                live.data
            );
            let said = story.kubectl(&["scale", &main, "--replicas", "9"]).await;
            let said = format!("{:#}", said.err().context("9 members were taken")?);
            ensure!(said.contains(&format!("spec.{field}")), "{version}: {said}");
            ensure!(said.contains("should be less than or equal to 7"), "{version}: {said}");
            story.kubectl(&["scale", &main, "--replicas", "5"]).await?;
            ensure!(alone.objects.get("main").await?.data["spec"][field] == 5, "{version}");
            if version == "v1" {
                let spec = json!({ "version": "3.6.16", "storage": { "medium": "Memory" } });
                let memory = json!({ "metadata": { "name": "memory" }, "spec": spec });
                alone.objects.create(&PostParams::default(), &alone.object(memory)?).await?;
                let said =
                    story.kubectl(&["scale", &alone.named("memory"), "--replicas", "0"]).await;
                let said =
                    format!("{:#}", said.err().context("a cluster in memory was put to sleep")?);
                ensure!(said.contains("may not be 0 with `storage.medium` 'Memory'"), "{said}");
            }
            alone.remove(story).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_sample_is_taken_by_a_real_apiserver() -> Result<()> {
    alone("api-samples", async |story| {
        let mut alone: BTreeMap<(String, String), Alone> = BTreeMap::new();
        let mut samples = 0_usize;
        let folders = std::fs::read_dir("deploy/samples")?;
        let files = folders.filter_map(|folder| std::fs::read_dir(folder.ok()?.path()).ok());
        for file in files.flatten() {
            let path = file?.path();
            if path.extension().is_none_or(|it| it != "yaml") {
                continue;
            }
            let mut sample: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path)?)?;
            let kind = sample["kind"].as_str().context("a sample has a kind")?.to_owned();
            let version = sample["apiVersion"].as_str().and_then(|it| it.split_once('/'));
            let version = version.context("a sample has a version")?.1.to_owned();
            let key = (kind.clone(), version.clone());
            if !alone.contains_key(&key) {
                alone.insert(key.clone(), Alone::define(story, &kind, &version).await?);
            }
            let alone = alone.get(&key).context("it was just defined")?;
            sample["metadata"].as_object_mut().map(|metadata| metadata.remove("namespace"));
            let sample = alone.object(sample)?;
            let name = sample.metadata.name.clone().unwrap_or_default();
            // Strictly, as kubectl asks: an unknown field is a mistake.
            let strictly = PatchParams {
                dry_run: true,
                field_validation: Some(ValidationDirective::Strict),
                ..PatchParams::apply("story")
            };
            let taken = alone.objects.patch(&name, &strictly, &Patch::Apply(&sample)).await;
            taken.with_context(|| format!("{} was refused", path.display()))?;
            samples = samples.saturating_add(1);
        }
        ensure!(samples > 40, "only {samples} samples were found");
        for (_, alone) in alone {
            alone.remove(story).await?;
        }
        Ok(())
    })
    .await
}

/// What `quorate crds --check` says about the cluster, and whether it agrees to an upgrade.
fn checked(story: &Story) -> Result<(String, bool)> {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(["crds", "--check"])
        .env("KUBECONFIG", story.places.kubeconfig("admin"))
        .output()?;
    let said = String::from_utf8(output.stdout)?;
    ensure!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok((said, output.status.success()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_before_an_upgrade_refuses_what_would_strand_data() -> Result<()> {
    alone("api-check", async |story| {
        let clusters = "etcdclusters.etcd.appdelivery.cncf.io";
        story.kubectl(&["apply", "-f", "crds"]).await?;
        established(story, clusters).await?;
        let (said, agreed) = checked(story)?;
        ensure!(agreed && said.lines().count() == 5, "{said}");
        ensure!(said.lines().all(|line| line.starts_with("ok ")), "{said}");

        story.kubectl(&["delete", "crd", "etcdbackups.etcd.appdelivery.cncf.io"]).await?;
        let (said, agreed) = checked(story)?;
        ensure!(agreed, "a missing definition strands nothing: {said}");
        ensure!(said.contains("etcdbackups.etcd.appdelivery.cncf.io is not installed"), "{said}");

        let older = r#"{"status":{"storedVersions":["v1alpha0","v1"]}}"#;
        let patch = ["patch", "crd", clusters, "--subresource=status", "--type=merge", "-p", older];
        story.kubectl(&patch).await?;
        let (said, agreed) = checked(story)?;
        ensure!(!agreed && said.contains("REFUSED"), "{said}");
        ensure!(said.contains("objects may still be stored as v1alpha0"), "{said}");

        let today = r#"{"status":{"storedVersions":["v1"]}}"#;
        let patch = ["patch", "crd", clusters, "--subresource=status", "--type=merge", "-p", today];
        story.kubectl(&patch).await?;
        let none = r#"{"spec":{"conversion":{"strategy":"None","webhook":null}}}"#;
        story.kubectl(&["patch", "crd", clusters, "--type=merge", "-p", none]).await?;
        let (said, agreed) = checked(story)?;
        ensure!(!agreed && said.contains("no conversion by webhook"), "{said}");
        story.kubectl(&["apply", "-f", "crds"]).await?;
        let (said, agreed) = checked(story)?;
        ensure!(agreed, "applying the definitions did not mend it: {said}");
        Ok(())
    })
    .await
}
