//! The CRDs on a real API server: they are accepted, document every field, and enforce their rules
//! in every version without a webhook.
#![expect(clippy::indexing_slicing, reason = "a missing JSON field reads as null")]

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams, ValidationDirective,
};
use kube::core::GroupVersionKind;
use quorate::api::crd;
use quorate_harness::{Isolation, TestContext, run};
use serde_json::{Value, json};

use super::rule_cases::{Case, cases};

/// The largest object that `kubectl apply` can store in its last-applied annotation.
const MAX_APPLY_BYTES: usize = 262_144;

/// An established CRD takes some time to appear in discovery and OpenAPI.
const DISCOVERY_TIMEOUT: Duration = Duration::from_mins(1);

/// Runs a test of the CRDs alone: no operator may validate or reconcile its objects.
async fn without_operator(
    name: &str,
    test: impl AsyncFnOnce(&TestContext) -> Result<()>,
) -> Result<()> {
    run(name, Isolation::Serial, async |ctx| {
        super::installation::uninstall_if_present(ctx).await?;
        test(ctx).await
    })
    .await
}

async fn wait_established(ctx: &TestContext, name: &str) -> Result<()> {
    let crds = Api::<CustomResourceDefinition>::all(ctx.client.clone());
    let served = async || {
        let live = crds.get(name).await.map_err(|error| error.to_string())?;
        let conditions = live.status.and_then(|status| status.conditions).unwrap_or_default();
        let is_established = conditions
            .iter()
            .any(|condition| condition.type_ == "Established" && condition.status == "True");
        if !is_established {
            return Err(format!("the conditions are {conditions:?}"));
        }
        let listed = ctx.kubectl(&["get", name]).await;
        listed.map(|_| ()).map_err(|error| format!("{error:#}"))
    };
    ctx.wait_until(&format!("{name} to be established"), DISCOVERY_TIMEOUT, served).await
}

#[tokio::test(flavor = "multi_thread")]
async fn crds_are_applied_by_kubectl_and_document_every_field() -> Result<()> {
    without_operator("api-crds", async |ctx| {
        for crd in crd::all() {
            let path = format!("crds/{}", crd::file_name(&crd));
            let bytes = std::fs::metadata(&path).context(path.clone())?.len();
            ensure!(bytes < u64::try_from(MAX_APPLY_BYTES)?, "{path} has {bytes} bytes");
            ctx.kubectl(&["apply", "-f", &path]).await?;
            let name = crd.metadata.name.clone().context("a CRD without a name")?;
            wait_established(ctx, &name).await?;
            let live: CustomResourceDefinition = Api::all(ctx.client.clone()).get(&name).await?;
            let applied = live.metadata.annotations.unwrap_or_default();
            ensure!(applied.values().all(|value| value.len() < MAX_APPLY_BYTES));
            let status = live.status.context("an established CRD without a status")?;
            for condition in status.conditions.unwrap_or_default() {
                ensure!(condition.type_ != "NonStructuralSchema", "{name}: {condition:?}");
            }
            for version in &crd.spec.versions {
                documents_every_field(ctx, &crd, &version.name).await?;
            }
        }
        let output = ctx.kubectl(&["api-resources", "--categories=quorate", "-o=name"]).await?;
        ensure!(output.lines().count() == 5, "{output}");
        Ok(())
    })
    .await
}

/// Every field that `kubectl explain` prints has a description, in every version.
async fn documents_every_field(
    ctx: &TestContext,
    crd: &CustomResourceDefinition,
    version: &str,
) -> Result<()> {
    let (plural, group) = (&crd.spec.names.plural, &crd.spec.group);
    let api_version = format!("--api-version={group}/{version}");
    let tree = ctx
        .wait_until(
            &format!("kubectl explain {plural} in {version}"),
            DISCOVERY_TIMEOUT,
            async || {
                let tree = ctx.kubectl(&["explain", plural, &api_version, "--recursive"]).await;
                let tree = tree.map_err(|error| format!("{error:#}"))?;
                if tree.contains("  spec\t") { Ok(tree) } else { Err(tree) }
            },
        )
        .await?;
    let described =
        ctx.kubectl(&["get", "--raw", &format!("/openapi/v3/apis/{group}/{version}")]).await?;
    let described: Value = serde_json::from_str(&described)?;
    let kind = &crd.spec.names.kind;
    let schemas = described["components"]["schemas"].as_object().context("no schemas")?;
    let own = |schema: &&Value| {
        let kinds = &schema["x-kubernetes-group-version-kind"];
        kinds.as_array().into_iter().flatten().any(|entry| entry["kind"] == **kind)
    };
    let schema = schemas.values().find(own).context("no schema of the kind")?;
    let (mut missing, mut fields) = (Vec::new(), 0_usize);
    for part in ["spec", "status"] {
        undocumented(&schema["properties"][part], part, &mut fields, &mut missing);
    }
    ensure!(missing.is_empty(), "{kind} {version}: without a description: {missing:?}");
    // The tree of kubectl explain has a line for each field.
    let lines = tree.lines().filter(|line| line.contains('\t')).count();
    ensure!(lines >= fields, "{kind} {version}: explain prints {lines} of {fields} fields");
    Ok(())
}

fn undocumented(schema: &Value, at: &str, fields: &mut usize, missing: &mut Vec<String>) {
    *fields = fields.saturating_add(1);
    if schema["description"].as_str().is_none_or(str::is_empty) {
        missing.push(at.to_owned());
    }
    let below = schema.get("items").unwrap_or(schema);
    for (name, field) in below["properties"].as_object().into_iter().flatten() {
        undocumented(field, &format!("{at}.{name}"), fields, missing);
    }
}

/// One version of a kind as a CRD of its own, in a group of the test's: its schema and rules on a
/// real API server, without a conversion that could hide or repair anything.
struct IsolatedVersion {
    crd: CustomResourceDefinition,
    objects: Api<DynamicObject>,
}

impl IsolatedVersion {
    async fn create(ctx: &TestContext, kind: &str, version: &str) -> Result<Self> {
        let mut crd =
            crd::all().into_iter().find(|crd| crd.spec.names.kind == kind).context("no kind")?;
        let group = format!("{version}.{}.{}", ctx.namespace, crd.spec.group);
        let plural = crd.spec.names.plural.clone();
        crd.metadata.name = Some(format!("{plural}.{group}"));
        crd.spec.group.clone_from(&group);
        crd.spec.conversion = None;
        crd.spec.names.short_names = None;
        crd.spec.names.categories = None;
        crd.spec.versions.retain(|entry| entry.name == version);
        for version in &mut crd.spec.versions {
            version.storage = true;
        }
        let all = Api::<CustomResourceDefinition>::all(ctx.client.clone());
        all.create(&PostParams::default(), &crd).await?;
        let name = crd.metadata.name.clone().unwrap_or_default();
        wait_established(ctx, &name).await?;
        let resource = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk(&group, version, kind),
            &plural,
        );
        let objects = Api::namespaced_with(ctx.client.clone(), &ctx.namespace, &resource);
        Ok(Self { crd, objects })
    }

    fn object(&self, mut object: Value) -> Result<DynamicObject> {
        let spec = &self.crd.spec;
        let version = spec.versions.first().map(|entry| entry.name.clone()).unwrap_or_default();
        object["apiVersion"] = json!(format!("{}/{version}", spec.group));
        object["kind"] = json!(spec.names.kind);
        Ok(serde_json::from_value(object)?)
    }

    /// The argument of kubectl for an object.
    fn named(&self, name: &str) -> String {
        let spec = &self.crd.spec;
        let version = spec.versions.first().map(|entry| entry.name.clone()).unwrap_or_default();
        format!("{}.{version}.{}/{name}", spec.names.plural, spec.group)
    }

    /// The error of the API server for an object, by a dry run.
    async fn dry_run(&self, object: &Value, update: bool) -> Result<Option<String>> {
        let object = self.object(object.clone())?;
        let params = PostParams { dry_run: true, ..PostParams::default() };
        let name = object.metadata.name.clone().unwrap_or_default();
        let result = if update {
            let live = self.objects.get(&name).await?;
            let mut object = object;
            object.metadata.resource_version = live.metadata.resource_version;
            self.objects.replace(&name, &params, &object).await
        } else {
            self.objects.create(&params, &object).await
        };
        match result {
            Ok(_) => Ok(None),
            Err(kube::Error::Api(status)) => Ok(Some(status.message.clone())),
            Err(error) => bail!(error),
        }
    }

    async fn delete(self, ctx: &TestContext) -> Result<()> {
        let name = self.crd.metadata.name.clone().unwrap_or_default();
        ctx.kubectl(&["delete", "crd", &name, "--wait=false"]).await.map(|_| ())
    }
}

/// Checks one case, by an update as well as by a creation where both can violate the rule.
async fn check_case(isolated: &IsolatedVersion, case: &Case, name: &str) -> Result<()> {
    let update = case.old.is_some();
    if let Some(before) = case.old_object(name) {
        let created = isolated.object(before)?;
        isolated.objects.create(&PostParams::default(), &created).await?;
        if let Some(status) = &case.status {
            let patch = Patch::Merge(json!({ "status": status }));
            isolated.objects.patch_status(name, &PatchParams::default(), &patch).await?;
        }
    }
    let accepted = isolated.dry_run(&case.object(name, true), update).await?;
    ensure!(accepted.is_none(), "a valid object was denied: {accepted:?}");
    let denied = isolated.dry_run(&case.object(name, false), update).await?;
    let denied = denied.context("an invalid object was accepted")?;
    ensure!(denied.contains(&case.message), "another message: {denied}");
    if !update && case.names.is_none() {
        // The same by an update of a valid object.
        let valid = isolated.object(case.object(name, true))?;
        isolated.objects.create(&PostParams::default(), &valid).await?;
        let denied = isolated.dry_run(&case.object(name, false), true).await?;
        let denied = denied.context("an update accepted what a creation denies")?;
        ensure!(denied.contains(&case.message), "another message of an update: {denied}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_rule_is_enforced_by_a_real_api_server_in_every_version() -> Result<()> {
    without_operator("api-rules", async |ctx| {
        let mut by_version: BTreeMap<(String, String), Vec<Case>> = BTreeMap::new();
        for case in cases() {
            by_version.entry((case.kind.clone(), case.version.clone())).or_default().push(case);
        }
        ensure!(by_version.len() == 9, "cases for {} versions", by_version.len());
        for ((kind, version), cases) in by_version {
            let isolated = IsolatedVersion::create(ctx, &kind, &version).await?;
            for (index, case) in cases.iter().enumerate() {
                check_case(&isolated, case, &format!("case-{index}"))
                    .await
                    .with_context(|| format!("{kind} {version} {}: {}", case.path, case.message))?;
            }
            isolated.delete(ctx).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_scale_is_validated_in_every_version() -> Result<()> {
    without_operator("api-scale", async |ctx| {
        for (version, field) in [("v1", "replicas"), ("v1beta1", "size"), ("v1alpha1", "size")] {
            let isolated = IsolatedVersion::create(ctx, "EtcdCluster", version).await?;
            let plain = json!({ "metadata": { "name": "main" }, "spec": { "version": "3.6.16" } });
            isolated.objects.create(&PostParams::default(), &isolated.object(plain)?).await?;
            let main = isolated.named("main");
            let live = isolated.objects.get("main").await?;
            ensure!(
                live.data["spec"][field] == 3,
                "{version}: the default is missing: {:?}",
                live.data
            );
            let denied = ctx.kubectl(&["scale", &main, "--replicas", "9"]).await;
            let denied = format!("{:#}", denied.err().context("9 members were accepted")?);
            ensure!(denied.contains(&format!("spec.{field}")), "{version}: {denied}");
            ensure!(denied.contains("should be less than or equal to 7"), "{version}: {denied}");
            ctx.kubectl(&["scale", &main, "--replicas", "5"]).await?;
            ensure!(isolated.objects.get("main").await?.data["spec"][field] == 5, "{version}");
            if version == "v1" {
                let spec = json!({ "version": "3.6.16", "storage": { "medium": "Memory" } });
                let memory = json!({ "metadata": { "name": "memory" }, "spec": spec });
                isolated.objects.create(&PostParams::default(), &isolated.object(memory)?).await?;
                let denied =
                    ctx.kubectl(&["scale", &isolated.named("memory"), "--replicas", "0"]).await;
                let denied =
                    format!("{:#}", denied.err().context("a cluster in memory was hibernated")?);
                ensure!(denied.contains("may not be 0 with `storage.medium` 'Memory'"), "{denied}");
            }
            isolated.delete(ctx).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_sample_is_accepted_by_a_real_api_server() -> Result<()> {
    without_operator("api-samples", async |ctx| {
        let mut versions: BTreeMap<(String, String), IsolatedVersion> = BTreeMap::new();
        let mut samples = 0_usize;
        let folders = std::fs::read_dir("deploy/samples")?;
        let files = folders.filter_map(|folder| std::fs::read_dir(folder.ok()?.path()).ok());
        for file in files.flatten() {
            let path = file?.path();
            if path.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            let mut sample: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path)?)?;
            let kind = sample["kind"].as_str().context("a sample without a kind")?.to_owned();
            let version =
                sample["apiVersion"].as_str().and_then(|api_version| api_version.split_once('/'));
            let version = version.context("a sample without a version")?.1.to_owned();
            let key = (kind.clone(), version.clone());
            if !versions.contains_key(&key) {
                versions.insert(key.clone(), IsolatedVersion::create(ctx, &kind, &version).await?);
            }
            let isolated = versions.get(&key).context("the version was just created")?;
            sample["metadata"].as_object_mut().map(|metadata| metadata.remove("namespace"));
            let sample = isolated.object(sample)?;
            let name = sample.metadata.name.clone().unwrap_or_default();
            // Strict, as kubectl requests: an unknown field is an error.
            let strict = PatchParams {
                dry_run: true,
                field_validation: Some(ValidationDirective::Strict),
                ..PatchParams::apply("e2e")
            };
            let applied = isolated.objects.patch(&name, &strict, &Patch::Apply(&sample)).await;
            applied.with_context(|| format!("{} was denied", path.display()))?;
            samples = samples.saturating_add(1);
        }
        ensure!(samples > 40, "only {samples} samples were found");
        for (_, isolated) in versions {
            isolated.delete(ctx).await?;
        }
        Ok(())
    })
    .await
}

/// The output of `quorate crds --check`, and whether it allows an upgrade.
fn crds_check(ctx: &TestContext) -> Result<(String, bool)> {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(["crds", "--check"])
        .env("KUBECONFIG", ctx.paths.kubeconfig("admin"))
        .output()?;
    let stdout = String::from_utf8(output.stdout)?;
    ensure!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok((stdout, output.status.success()))
}

#[tokio::test(flavor = "multi_thread")]
async fn crds_check_rejects_an_upgrade_that_would_lose_stored_versions() -> Result<()> {
    without_operator("api-check", async |ctx| {
        let clusters = "etcdclusters.etcd.appdelivery.cncf.io";
        ctx.kubectl(&["apply", "-f", "crds"]).await?;
        wait_established(ctx, clusters).await?;
        let (output, allowed) = crds_check(ctx)?;
        ensure!(allowed && output.lines().count() == 5, "{output}");
        ensure!(output.lines().all(|line| line.starts_with("ok ")), "{output}");

        ctx.kubectl(&["delete", "crd", "etcdbackups.etcd.appdelivery.cncf.io"]).await?;
        let (output, allowed) = crds_check(ctx)?;
        ensure!(allowed, "a missing CRD is no problem: {output}");
        ensure!(
            output.contains("etcdbackups.etcd.appdelivery.cncf.io is not installed"),
            "{output}"
        );

        let older = r#"{"status":{"storedVersions":["v1alpha0","v1"]}}"#;
        let patch = ["patch", "crd", clusters, "--subresource=status", "--type=merge", "-p", older];
        ctx.kubectl(&patch).await?;
        let (output, allowed) = crds_check(ctx)?;
        ensure!(!allowed && output.contains("REFUSED"), "{output}");
        ensure!(output.contains("objects may still be stored as v1alpha0"), "{output}");

        let today = r#"{"status":{"storedVersions":["v1"]}}"#;
        let patch = ["patch", "crd", clusters, "--subresource=status", "--type=merge", "-p", today];
        ctx.kubectl(&patch).await?;
        let none = r#"{"spec":{"conversion":{"strategy":"None","webhook":null}}}"#;
        ctx.kubectl(&["patch", "crd", clusters, "--type=merge", "-p", none]).await?;
        let (output, allowed) = crds_check(ctx)?;
        ensure!(!allowed && output.contains("no conversion webhook"), "{output}");
        ctx.kubectl(&["apply", "-f", "crds"]).await?;
        let (output, allowed) = crds_check(ctx)?;
        ensure!(allowed, "applying the CRDs did not fix it: {output}");
        Ok(())
    })
    .await
}
