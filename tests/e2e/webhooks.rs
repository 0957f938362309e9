//! The webhooks from a user's side: `kubectl apply` that denies, defaults, warns and converts, in
//! every version.
#![expect(clippy::indexing_slicing, reason = "a missing JSON field reads as null")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use quorate::api::convert::convert;
use quorate::api::kinds::{self, Kind};
use quorate::api::validation::features::FeatureSet;
use quorate::api::validation::{ValidationContext, validate};
use quorate_harness::{Isolation, TestContext, run};
use serde_json::{Value, json};

use super::installation::with_installation;
use super::raw_api::{ApiResponse, call};

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_validate_default_convert_and_protect() -> Result<()> {
    run("webhooks", Isolation::Serial, async |ctx| {
        with_installation(ctx, async || {
            new_objects_get_the_expected_errors_and_warnings(ctx)
                .await
                .context("new objects get the expected errors and warnings")?;
            samples_are_accepted_or_denied_as_documented(ctx)
                .await
                .context("samples are accepted or denied as documented")?;
            two_field_managers_at_two_versions_keep_their_fields(ctx)
                .await
                .context("two field managers at two versions keep their fields")?;
            older_version_changes_only_the_fields_that_it_has(ctx)
                .await
                .context("older version changes only the fields that it has")?;
            scale_is_validated_and_deletion_protection_is_enforced(ctx)
                .await
                .context("scale is validated and deletion protection is enforced")?;
            Ok(())
        })
        .await
    })
    .await
}

async fn new_objects_get_the_expected_errors_and_warnings(ctx: &TestContext) -> Result<()> {
    let (mut tried, mut unknown, mut wrong) = (0_usize, 0_usize, Vec::new());
    for (file, case) in cases()? {
        let manifest = &case["manifest"];
        let kind = manifest["kind"].as_str().and_then(kinds::by_name).context("unknown kind")?;
        let expected = expected(kind, manifest)?;
        // As kubectl sends it.
        let response = create(ctx, kind, manifest, "dryRun=All&fieldValidation=Strict").await?;
        let message = response.body["message"].as_str().unwrap_or_default();
        tried = tried.saturating_add(1);
        // The API server rejects a field that the version does not have before it calls a webhook.
        if response.code == 400 && message.contains("unknown field") {
            unknown = unknown.saturating_add(1);
        } else if let Err(error) = matches_expected(&expected, &response) {
            wrong.push(format!("{file}: {}: {error:#}", case["case"]));
        }
    }
    println!("{tried} manifests tried, {unknown} of them with an unknown field");
    ensure!(tried > 150 && unknown < 50, "{tried} tried, {unknown} with an unknown field");
    ensure!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

/// Every case of the tables for a new object.
fn cases() -> Result<Vec<(String, Value)>> {
    let mut all = Vec::new();
    for folder in ["tests/denied", "tests/warnings"] {
        for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))? {
            let path = entry?.path();
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let cases: Vec<Value> = serde_saphyr::from_str(&std::fs::read_to_string(&path)?)?;
            all.extend(cases.into_iter().map(|case| (file.clone(), case)));
        }
    }
    // Manifests with a namespace cannot be created in the test's; and a number such as 1.0 is 1 to
    // the API server.
    let is_usable = |case: &Value| {
        let manifest = &case["manifest"];
        case["running"].is_null()
            && manifest["metadata"]["namespace"].is_null()
            && !manifest.to_string().contains(".0,")
            && !manifest.to_string().contains(".0}")
    };
    all.retain(|(_, case)| is_usable(case));
    Ok(all)
}

/// The expected response to a new object: causes by field, and warnings.
struct Expected {
    causes: Vec<(String, String)>,
    messages: Vec<String>,
    warnings: Vec<String>,
}

fn expected(kind: &Kind, manifest: &Value) -> Result<Expected> {
    let version =
        manifest["apiVersion"].as_str().and_then(|api_version| api_version.rsplit('/').next());
    let context = ValidationContext {
        now: Timestamp::now(),
        features: FeatureSet::CURRENT,
        request_version: version.context("no apiVersion")?,
    };
    let hub = convert(manifest.clone(), &kind.api_version(kind.hub()))?;
    let validation = validate(kind, None, &hub, &context);
    let cause = |violation: &quorate::api::validation::Violation| {
        (violation.path.clone(), violation.error_type.reason().to_owned())
    };
    Ok(Expected {
        causes: validation.violations.iter().map(cause).collect(),
        messages: validation.violations.iter().map(ToString::to_string).collect(),
        warnings: validation.warnings,
    })
}

fn matches_expected(expected: &Expected, response: &ApiResponse) -> Result<()> {
    if expected.causes.is_empty() {
        ensure!(response.code == 201, "{} {}", response.code, response.body);
        for warning in &expected.warnings {
            ensure!(
                response.warnings.contains(warning),
                "{warning:?} not in {:?}",
                response.warnings
            );
        }
        return Ok(());
    }
    ensure!(response.code == 422, "{} {}", response.code, response.body);
    let causes = response.body["details"]["causes"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let causes: Vec<(String, String)> =
        causes.iter().map(|cause| (text(&cause["field"]), text(&cause["reason"]))).collect();
    ensure!(causes == expected.causes, "{causes:?} instead of {:?}", expected.causes);
    let message = text(&response.body["message"]);
    for part in &expected.messages {
        ensure!(message.contains(part), "{part:?} is not in {message:?}");
    }
    Ok(())
}

/// Creates an object with exactly this body.
async fn create(
    ctx: &TestContext,
    kind: &Kind,
    object: &Value,
    query: &str,
) -> Result<ApiResponse> {
    let path = format!("{}?{query}", collection(ctx, kind, object)?);
    call(&ctx.client, "POST", &path, "application/json", object).await
}

fn collection(ctx: &TestContext, kind: &Kind, object: &Value) -> Result<String> {
    let api_version = object["apiVersion"].as_str().context("no apiVersion")?;
    Ok(format!("/apis/{api_version}/namespaces/{}/{}", ctx.namespace, kind.plural()))
}

async fn samples_are_accepted_or_denied_as_documented(ctx: &TestContext) -> Result<()> {
    for (file, stored) in samples()? {
        let path = format!("{}/deploy/samples/{file}", env!("CARGO_MANIFEST_DIR"));
        for flags in [&["--server-side"][..], &["--dry-run=server"], &[]] {
            let line = [&["apply", "-f", &path], flags].concat();
            match ctx.kubectl(&line).await {
                Ok(_) => ensure!(stored, "{file} was accepted by {line:?}"),
                Err(error) => {
                    let error = format!("{error:#}");
                    ensure!(!stored, "{file} was denied by {line:?}: {error}");
                    ensure!(error.contains("not supported in this release"), "{file}: {error}");
                }
            }
            if flags == ["--server-side"] && stored {
                ctx.kubectl(&["delete", "-f", &path]).await?;
            }
        }
        if stored {
            in_every_version(ctx, &path).await.context(file)?;
            ctx.kubectl(&["delete", "-f", &path]).await?;
        }
    }
    Ok(())
}

/// The samples, and whether this release stores them.
fn samples() -> Result<BTreeMap<String, bool>> {
    let page = std::fs::read_to_string("deploy/samples/README.md")?;
    let rows = page.lines().filter(|line| line.starts_with("| [`"));
    let sample = |line: &str| {
        let file = line.split('`').nth(1).unwrap_or_default().to_owned();
        (file, !line.trim_end().ends_with("| rejected |"))
    };
    let samples: BTreeMap<String, bool> = rows.map(sample).collect();
    ensure!(samples.len() > 20, "only {} samples", samples.len());
    Ok(samples)
}

/// An object can be read in every version of its kind, and each converts to the same v1 object.
async fn in_every_version(ctx: &TestContext, path: &str) -> Result<()> {
    let written: Value = serde_saphyr::from_str(&std::fs::read_to_string(path)?)?;
    let kind = written["kind"].as_str().and_then(kinds::by_name).context("unknown kind")?;
    let name = written["metadata"]["name"].as_str().context("no name")?;
    // The operator updates the status meanwhile; only reads of the same resource version can be
    // compared.
    let as_hub = ctx
        .wait_until("three reads of the same resource version", STABLE_TIMEOUT, async || {
            let read = read_in_every_version(ctx, kind, name).await;
            let read = read.map_err(|error| format!("{error:#}"))?;
            let versions: BTreeSet<String> = read
                .iter()
                .map(|object| object["metadata"]["resourceVersion"].to_string())
                .collect();
            if versions.len() == 1 { Ok(read) } else { Err(format!("it changes: {versions:?}")) }
        })
        .await?;
    for other in as_hub.iter().skip(1) {
        ensure!(
            other["spec"] == as_hub[0]["spec"],
            "{} is not {}",
            other["spec"],
            as_hub[0]["spec"]
        );
        ensure!(other["metadata"] == as_hub[0]["metadata"], "{}", other["metadata"]);
    }
    Ok(())
}

/// The object as read in each version, converted to the hub version.
async fn read_in_every_version(ctx: &TestContext, kind: &Kind, name: &str) -> Result<Vec<Value>> {
    let mut as_hub = Vec::new();
    for version in kind.versions() {
        let resource = format!("{}.{}.{}", kind.plural(), version.name, kind.group);
        let read = ctx.kubectl(&["get", &resource, name, "-o", "json"]).await?;
        let read: Value = serde_json::from_str(&read)?;
        ensure!(read["apiVersion"] == kind.api_version(version), "{}", read["apiVersion"]);
        as_hub.push(convert(read, &kind.api_version(kind.hub()))?);
    }
    Ok(as_hub)
}

/// How long an object may take until its status is not updated for a while.
const STABLE_TIMEOUT: Duration = Duration::from_mins(1);
const GROUP: &str = "etcd.appdelivery.cncf.io";

fn cluster(version: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/{version}"), "kind": "EtcdCluster",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// An EtcdCluster in v1.
async fn hub(ctx: &TestContext, name: &str) -> Result<Value> {
    let read = ["get", "etcdclusters.v1.etcd.appdelivery.cncf.io", name, "-o", "json"];
    let read = [&read[..], &["--show-managed-fields"]].concat();
    Ok(serde_json::from_str(&ctx.kubectl(&read).await?)?)
}

/// Applies an object by server-side apply, as this field manager.
async fn apply(ctx: &TestContext, manager: &str, object: &Value) -> Result<Value> {
    let name = object["metadata"]["name"].as_str().context("no name")?;
    let kind = kinds::by_name("EtcdCluster").context("unknown kind")?;
    let path = format!("{}/{name}?fieldManager={manager}", collection(ctx, kind, object)?);
    let response =
        call(&ctx.client, "PATCH", &path, "application/apply-patch+yaml", object).await?;
    ensure!(response.code < 300, "{manager}: {} {}", response.code, response.body);
    Ok(response.body)
}

/// Replaces an object in the version of its manifest.
async fn replace(ctx: &TestContext, object: &Value) -> Result<ApiResponse> {
    let name = object["metadata"]["name"].as_str().context("no name")?;
    let kind = kinds::by_name("EtcdCluster").context("unknown kind")?;
    let path = format!("{}/{name}", collection(ctx, kind, object)?);
    call(&ctx.client, "PUT", &path, "application/json", object).await
}

async fn two_field_managers_at_two_versions_keep_their_fields(ctx: &TestContext) -> Result<()> {
    let old = json!({"size": 3, "version": "3.6.16", "pod": {"labels": {"team": "a"}}});
    apply(ctx, "old", &cluster("v1alpha1", "shared", &old)).await?;
    let new = json!({
        "options": {"snapshotCount": 20000, "heartbeatMilliseconds": 200},
        "repair": {"replaceAfterSeconds": 900},
    });
    apply(ctx, "new", &cluster("v1", "shared", &new)).await?;
    let both = hub(ctx, "shared").await?;
    ensure!(both["spec"]["replicas"] == 3, "{both}");
    ensure!(both["spec"]["podMetadata"]["labels"]["team"] == "a", "{both}");
    ensure!(both["spec"]["options"]["snapshotCount"] == 20000, "{both}");

    // The old manager releases its label, in a version that does not have the options.
    let fewer = json!({"size": 3, "version": "3.6.16"});
    apply(ctx, "old", &cluster("v1alpha1", "shared", &fewer)).await?;
    let last = hub(ctx, "shared").await?;
    ensure!(last["spec"]["podMetadata"]["labels"].get("team").is_none(), "{last}");
    ensure!(last["spec"]["options"]["snapshotCount"] == 20000, "{last}");

    // The new manager releases fields that only its version has, beside a manager of an older
    // version: a field of an object, and then a whole object.
    let fewer = json!({
        "options": {"heartbeatMilliseconds": 200}, "repair": {"replaceAfterSeconds": 900},
    });
    let response = apply(ctx, "new", &cluster("v1", "shared", &fewer)).await?;
    ensure!(response["spec"]["options"] == json!({"heartbeatMilliseconds": 200}), "{response}");
    let none = json!({"repair": {"replaceAfterSeconds": 900}});
    apply(ctx, "new", &cluster("v1", "shared", &none)).await?;
    let last = hub(ctx, "shared").await?;
    ensure!(last["spec"].get("options").is_none(), "{last}");
    ensure!(last["spec"]["repair"]["replaceAfterSeconds"] == 900, "{last}");
    ensure!(last["spec"]["replicas"] == 3, "{last}");

    // Removing an entry from the managed fields releases no field.
    let entries = last["metadata"]["managedFields"].as_array().context("no managedFields")?;
    let index = entries
        .iter()
        .position(|entry| entry["manager"] == "new")
        .context("no entry of the manager")?;
    let remove = json!([{"op": "remove", "path": format!("/metadata/managedFields/{index}")}]);
    let remove = format!("--patch={remove}");
    ctx.kubectl(&["patch", "etcdcluster", "shared", "--type=json", "--field-manager=new", &remove])
        .await?;
    let after = hub(ctx, "shared").await?;
    ensure!(after["spec"] == last["spec"], "{after}");
    ensure!(!after.to_string().contains("\"new\""), "the entry still exists: {after}");
    Ok(())
}

async fn older_version_changes_only_the_fields_that_it_has(ctx: &TestContext) -> Result<()> {
    let spec = json!({
        "replicas": 3, "version": "3.6.16", "storage": {"size": "2Gi"},
        "options": {"snapshotCount": 20000}, "deletionPolicy": "Retain",
        "repair": {"replaceAfterSeconds": 900},
    });
    let kind = kinds::by_name("EtcdCluster").context("unknown kind")?;
    let created = create(ctx, kind, &cluster("v1", "one", &spec), "").await?;
    ensure!(created.code == 201, "{}", created.body);
    let before = hub(ctx, "one").await?;

    // A replacement by a client that does not know v1 and drops unknown fields.
    for version in ["v1alpha1", "v1beta1"] {
        replace_latest(ctx, cluster(version, "one", &json!({"size": 5, "version": "3.6.16"})))
            .await?;
        let after = hub(ctx, "one").await?;
        ensure!(after["spec"]["replicas"] == 5, "{version}: {after}");
        for field in ["options", "deletionPolicy", "repair"] {
            let (was, is) = (&before["spec"][field], &after["spec"][field]);
            ensure!(was == is, "{version}: {field} was {was} and is {is}");
        }
    }

    // The preserved-fields annotation cannot be used to set fields.
    forged_annotation_is_ignored(ctx).await
}

/// Replaces an object at its latest resource version. The operator updates the status meanwhile, so
/// a conflict is retried.
async fn replace_latest(ctx: &TestContext, mut object: Value) -> Result<()> {
    let mut conflict = String::new();
    for _ in 0..20 {
        let now = hub(ctx, "one").await?;
        object["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
        let response = replace(ctx, &object).await?;
        if response.code == 200 {
            return Ok(());
        }
        conflict = format!("{} {}", response.code, response.body);
        ensure!(response.code == 409, "{conflict}");
    }
    bail!("{conflict}")
}

/// An annotation that a user writes in an old version changes neither spec nor status.
async fn forged_annotation_is_ignored(ctx: &TestContext) -> Result<()> {
    let before = hub(ctx, "one").await?;
    let preserved = json!({"v1": {
        "/spec/options": [{"snapshotCount": 99_999}],
        "/spec/deletionPolicy": ["Delete"],
        "/status": [{"clusterID": "beef"}],
        "/status/clusterID": ["beef"],
    }});
    for version in ["v1alpha1", "v1beta1"] {
        let resource = format!("etcdclusters.{version}.{GROUP}");
        let annotation =
            format!("{}={preserved}", quorate::api::convert::PRESERVED_FIELDS_ANNOTATION);
        let line = ["annotate", "--overwrite", &resource, "one", &annotation];
        ctx.kubectl(&line).await?;
        let after = hub(ctx, "one").await?;
        ensure!(after["spec"] == before["spec"], "{version}: {}", after["spec"]);
        ensure!(after["status"]["clusterID"] != "beef", "{version}: {}", after["status"]);
    }
    // A new object gets no status, either.
    let mut object = cluster("v1alpha1", "forged", &json!({"size": 3, "version": "3.6.16"}));
    object["metadata"]["annotations"] =
        json!({quorate::api::convert::PRESERVED_FIELDS_ANNOTATION: preserved.to_string()});
    let kind = kinds::by_name("EtcdCluster").context("unknown kind")?;
    let response = create(ctx, kind, &object, "").await?;
    ensure!(response.code == 201, "{}", response.body);
    let created = hub(ctx, "forged").await?;
    ensure!(created["status"]["clusterID"] != "beef", "{}", created["status"]);
    Ok(())
}

async fn scale_is_validated_and_deletion_protection_is_enforced(ctx: &TestContext) -> Result<()> {
    let kind = kinds::by_name("EtcdCluster").context("unknown kind")?;
    let spec = json!({"replicas": 3, "version": "3.6.16"});
    create(ctx, kind, &cluster("v1", "main", &spec), "").await?;
    let scale = async |version: &str, replicas: &str| {
        let resource = format!("etcdclusters.{version}.{GROUP}/main");
        let replicas = format!("--replicas={replicas}");
        let mut kubectl = ctx.kubectl_command();
        kubectl.args(["scale", &resource, &replicas]);
        let output = kubectl.output().await?;
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        anyhow::Ok((output.status.success(), message))
    };
    for version in ["v1", "v1beta1", "v1alpha1"] {
        let (done, message) = scale(version, "4").await?;
        ensure!(done && message.contains("tolerates 1 failure"), "{version}: {message}");
        scale(version, "3").await?;
        let (done, message) = scale(version, "9").await?;
        ensure!(!done && message.contains("use 3 or 5"), "{version}: {message}");
    }
    let (done, message) = scale("v1beta1", "0").await?;
    ensure!(!done && message.contains("v1"), "{message}");
    let (done, message) = scale("v1", "0").await?;
    ensure!(done, "{message}");
    ensure!(hub(ctx, "main").await?["spec"]["replicas"] == 0);

    let protect = format!("{}=true", quorate::api::names::DELETION_PROTECTION_ANNOTATION);
    ctx.kubectl(&["annotate", "etcdcluster", "main", &protect]).await?;
    let Err(denied) = ctx.kubectl(&["delete", "etcdcluster", "main"]).await else {
        bail!("a protected cluster was deleted");
    };
    let denied = format!("{denied:#}");
    ensure!(denied.contains("kubectl annotate"), "{denied}");
    let unprotect = format!("{}-", quorate::api::names::DELETION_PROTECTION_ANNOTATION);
    ctx.kubectl(&["annotate", "etcdcluster", "main", &unprotect]).await?;
    ctx.kubectl(&["delete", "etcdcluster", "main"]).await?;
    Ok(())
}
