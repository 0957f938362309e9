//! The door as users meet it: `kubectl apply` that refuses, defaults, warns and converts, in every version.
#![expect(clippy::indexing_slicing, reason = "JSON that is not there reads as null")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use quorate::api::convert::convert;
use quorate::api::kinds::{self, Kind};
use quorate::api::validation::features::FeatureSet;
use quorate::api::validation::{ValidationContext, validate};
use quorate_harness::{Disturbs, Story, tell};
use serde_json::{Value, json};

use super::installed::installed;
use super::wire::{Answer, call};

#[tokio::test(flavor = "multi_thread")]
async fn users_meet_a_door_that_teaches_converts_and_protects() -> Result<()> {
    tell("door", Disturbs::Everything, async |story| {
        installed(story, async || {
            every_refusal_reaches_its_user_as_the_tables_say(story)
                .await
                .context("every refusal reaches its user as the tables say")?;
            every_sample_is_taken_or_refused_by_kubectl_as_their_table_says(story)
                .await
                .context("every sample is taken or refused by kubectl as their table says")?;
            two_managers_at_two_versions_keep_what_is_theirs(story)
                .await
                .context("two managers at two versions keep what is theirs")?;
            an_older_version_changes_what_it_can_say_and_nothing_else(story)
                .await
                .context("an older version changes what it can say and nothing else")?;
            scaling_is_judged_with_the_same_words_and_protection_is_for_those_who_ask(story)
                .await
                .context(
                    "scaling is judged with the same words and protection is for those who ask",
                )?;
            Ok(())
        })
        .await
    })
    .await
}

async fn every_refusal_reaches_its_user_as_the_tables_say(story: &Story) -> Result<()> {
    let (mut tried, mut unknown, mut wrong) = (0_usize, 0_usize, Vec::new());
    for (file, case) in cases()? {
        let manifest = &case["manifest"];
        let kind = manifest["kind"].as_str().and_then(kinds::by_name).context("a kind")?;
        let expected = expected(kind, manifest)?;
        // As kubectl sends it.
        let answer = create(story, kind, manifest, "dryRun=All&fieldValidation=Strict").await?;
        let told = answer.body["message"].as_str().unwrap_or_default();
        tried = tried.saturating_add(1);
        // A field that the version does not have is refused by the apiserver before anybody is asked.
        if answer.code == 400 && told.contains("unknown field") {
            unknown = unknown.saturating_add(1);
        } else if let Err(error) = same(&expected, &answer) {
            wrong.push(format!("{file}: {}: {error:#}", case["case"]));
        }
    }
    println!("{tried} manifests tried, {unknown} of them with a field that is unknown");
    ensure!(tried > 150 && unknown < 50, "{tried} were tried, {unknown} are unknown");
    ensure!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

/// Every case of the tables that is about a new object.
fn cases() -> Result<Vec<(String, Value)>> {
    let mut all = Vec::new();
    for folder in ["tests/refused", "tests/warned"] {
        for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))? {
            let path = entry?.path();
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let cases: Vec<Value> = serde_saphyr::from_str(&std::fs::read_to_string(&path)?)?;
            all.extend(cases.into_iter().map(|case| (file.clone(), case)));
        }
    }
    // What has a namespace of its own is for that namespace; and a number such as 1.0 is 1 to the apiserver.
    let fits = |case: &Value| {
        let manifest = &case["manifest"];
        case["running"].is_null()
            && manifest["metadata"]["namespace"].is_null()
            && !manifest.to_string().contains(".0,")
            && !manifest.to_string().contains(".0}")
    };
    all.retain(|(_, case)| fits(case));
    Ok(all)
}

/// What this release says to a new object: causes by field, and warnings.
struct Expected {
    causes: Vec<(String, String)>,
    sentences: Vec<String>,
    warnings: Vec<String>,
}

fn expected(kind: &Kind, manifest: &Value) -> Result<Expected> {
    let version = manifest["apiVersion"].as_str().and_then(|it| it.rsplit('/').next());
    let facts = ValidationContext {
        now: Timestamp::now(),
        features: FeatureSet::CURRENT,
        request_version: version.context("an apiVersion")?,
    };
    let hub = convert(manifest.clone(), &kind.api_version(kind.hub()))?;
    let verdict = validate(kind, None, &hub, &facts);
    let cause = |it: &quorate::api::validation::Violation| {
        (it.path.clone(), it.error_type.reason().to_owned())
    };
    Ok(Expected {
        causes: verdict.violations.iter().map(cause).collect(),
        sentences: verdict.violations.iter().map(ToString::to_string).collect(),
        warnings: verdict.warnings,
    })
}

fn same(expected: &Expected, answer: &Answer) -> Result<()> {
    if expected.causes.is_empty() {
        ensure!(answer.code == 201, "{} {}", answer.code, answer.body);
        for warning in &expected.warnings {
            ensure!(answer.warnings.contains(warning), "{warning:?} not in {:?}", answer.warnings);
        }
        return Ok(());
    }
    ensure!(answer.code == 422, "{} {}", answer.code, answer.body);
    let causes = answer.body["details"]["causes"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let causes: Vec<(String, String)> =
        causes.iter().map(|cause| (text(&cause["field"]), text(&cause["reason"]))).collect();
    ensure!(causes == expected.causes, "{causes:?} instead of {:?}", expected.causes);
    let message = text(&answer.body["message"]);
    for sentence in &expected.sentences {
        ensure!(message.contains(sentence), "{sentence:?} is not in {message:?}");
    }
    Ok(())
}

/// Creates an object as a client does that sends what it was given.
async fn create(story: &Story, kind: &Kind, object: &Value, query: &str) -> Result<Answer> {
    let path = format!("{}?{query}", collection(story, kind, object)?);
    call(&story.client, "POST", &path, "application/json", object).await
}

fn collection(story: &Story, kind: &Kind, object: &Value) -> Result<String> {
    let api_version = object["apiVersion"].as_str().context("an apiVersion")?;
    Ok(format!("/apis/{api_version}/namespaces/{}/{}", story.namespace, kind.plural()))
}

async fn every_sample_is_taken_or_refused_by_kubectl_as_their_table_says(
    story: &Story,
) -> Result<()> {
    for (file, stored) in samples()? {
        let path = format!("{}/deploy/samples/{file}", env!("CARGO_MANIFEST_DIR"));
        for way in [&["--server-side"][..], &["--dry-run=server"], &[]] {
            let line = [&["apply", "-f", &path], way].concat();
            let said = story.kubectl(&line).await;
            match said {
                Ok(_) => ensure!(stored, "{file} was taken by {line:?}"),
                Err(error) => {
                    let error = format!("{error:#}");
                    ensure!(!stored, "{file} was refused by {line:?}: {error}");
                    ensure!(error.contains("not in this release: "), "{file}: {error}");
                }
            }
            if way == ["--server-side"] && stored {
                story.kubectl(&["delete", "-f", &path]).await?;
            }
        }
        if stored {
            in_every_version(story, &path).await.context(file)?;
            story.kubectl(&["delete", "-f", &path]).await?;
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

/// An object can be read in every version of its kind, and each says the same in v1.
async fn in_every_version(story: &Story, path: &str) -> Result<()> {
    let written: Value = serde_saphyr::from_str(&std::fs::read_to_string(path)?)?;
    let kind = written["kind"].as_str().and_then(kinds::by_name).context("a kind")?;
    let name = written["metadata"]["name"].as_str().context("a name")?;
    // The operator tells of it meanwhile; only what was read of one state can be compared.
    let as_hub = story
        .wait_until("it to stand still for three looks", STILL, async || {
            let read = read_in_every_version(story, kind, name).await;
            let read = read.map_err(|error| format!("{error:#}"))?;
            let states: BTreeSet<String> =
                read.iter().map(|it| it["metadata"]["resourceVersion"].to_string()).collect();
            if states.len() == 1 { Ok(read) } else { Err(format!("it moves: {states:?}")) }
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

/// An object in the hub's words, as each version was read.
async fn read_in_every_version(story: &Story, kind: &Kind, name: &str) -> Result<Vec<Value>> {
    let mut as_hub = Vec::new();
    for version in kind.versions() {
        let resource = format!("{}.{}.{}", kind.plural(), version.name, kind.group);
        let read = story.kubectl(&["get", &resource, name, "-o", "json"]).await?;
        let read: Value = serde_json::from_str(&read)?;
        ensure!(read["apiVersion"] == kind.api_version(version), "{}", read["apiVersion"]);
        as_hub.push(convert(read, &kind.api_version(kind.hub()))?);
    }
    Ok(as_hub)
}

/// How long an object may take until nobody writes to it for a moment.
const STILL: Duration = Duration::from_mins(1);
const GROUP: &str = "etcd.appdelivery.cncf.io";

fn cluster(version: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/{version}"), "kind": "EtcdCluster",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// An EtcdCluster as it is in v1.
async fn hub(story: &Story, name: &str) -> Result<Value> {
    let read = ["get", "etcdclusters.v1.etcd.appdelivery.cncf.io", name, "-o", "json"];
    let read = [&read[..], &["--show-managed-fields"]].concat();
    Ok(serde_json::from_str(&story.kubectl(&read).await?)?)
}

/// Sends an object by server-side apply, as a manager of its own.
async fn apply(story: &Story, manager: &str, object: &Value) -> Result<Value> {
    let name = object["metadata"]["name"].as_str().context("a name")?;
    let kind = kinds::by_name("EtcdCluster").context("a kind of ours")?;
    let path = format!("{}/{name}?fieldManager={manager}", collection(story, kind, object)?);
    let answer =
        call(&story.client, "PATCH", &path, "application/apply-patch+yaml", object).await?;
    ensure!(answer.code < 300, "{manager}: {} {}", answer.code, answer.body);
    Ok(answer.body)
}

/// Replaces an object through the version that it is written in.
async fn replace(story: &Story, object: &Value) -> Result<Answer> {
    let name = object["metadata"]["name"].as_str().context("a name")?;
    let kind = kinds::by_name("EtcdCluster").context("a kind of ours")?;
    let path = format!("{}/{name}", collection(story, kind, object)?);
    call(&story.client, "PUT", &path, "application/json", object).await
}

async fn two_managers_at_two_versions_keep_what_is_theirs(story: &Story) -> Result<()> {
    let old = json!({"size": 3, "version": "3.6.16", "pod": {"labels": {"team": "a"}}});
    apply(story, "old", &cluster("v1alpha1", "shared", &old)).await?;
    let new = json!({
        "options": {"snapshotCount": 20000, "heartbeatMilliseconds": 200},
        "repair": {"replaceAfterSeconds": 900},
    });
    apply(story, "new", &cluster("v1", "shared", &new)).await?;
    let both = hub(story, "shared").await?;
    ensure!(both["spec"]["replicas"] == 3, "{both}");
    ensure!(both["spec"]["podMetadata"]["labels"]["team"] == "a", "{both}");
    ensure!(both["spec"]["options"]["snapshotCount"] == 20000, "{both}");

    // The old manager drops its label, through a version that has no word for the options.
    let fewer = json!({"size": 3, "version": "3.6.16"});
    apply(story, "old", &cluster("v1alpha1", "shared", &fewer)).await?;
    let last = hub(story, "shared").await?;
    ensure!(last["spec"]["podMetadata"]["labels"].get("team").is_none(), "{last}");
    ensure!(last["spec"]["options"]["snapshotCount"] == 20000, "{last}");

    // The new manager drops what only its version can say, beside one that has no word for it: a field of a block, and
    // then a whole block.
    let fewer = json!({
        "options": {"heartbeatMilliseconds": 200}, "repair": {"replaceAfterSeconds": 900},
    });
    let answer = apply(story, "new", &cluster("v1", "shared", &fewer)).await?;
    ensure!(answer["spec"]["options"] == json!({"heartbeatMilliseconds": 200}), "{answer}");
    let none = json!({"repair": {"replaceAfterSeconds": 900}});
    apply(story, "new", &cluster("v1", "shared", &none)).await?;
    let last = hub(story, "shared").await?;
    ensure!(last["spec"].get("options").is_none(), "{last}");
    ensure!(last["spec"]["repair"]["replaceAfterSeconds"] == 900, "{last}");
    ensure!(last["spec"]["replicas"] == 3, "{last}");

    // Who is only struck from the list of owners has withdrawn nothing.
    let owners = last["metadata"]["managedFields"].as_array().context("owners")?;
    let mine = owners.iter().position(|it| it["manager"] == "new").context("an entry")?;
    let strike = json!([{"op": "remove", "path": format!("/metadata/managedFields/{mine}")}]);
    let strike = format!("--patch={strike}");
    story
        .kubectl(&["patch", "etcdcluster", "shared", "--type=json", "--field-manager=new", &strike])
        .await?;
    let after = hub(story, "shared").await?;
    ensure!(after["spec"] == last["spec"], "{after}");
    ensure!(!after.to_string().contains("\"new\""), "the entry is still there: {after}");
    Ok(())
}

async fn an_older_version_changes_what_it_can_say_and_nothing_else(story: &Story) -> Result<()> {
    let spec = json!({
        "replicas": 3, "version": "3.6.16", "storage": {"size": "2Gi"},
        "options": {"snapshotCount": 20000}, "deletionPolicy": "Retain",
        "repair": {"replaceAfterSeconds": 900},
    });
    let kind = kinds::by_name("EtcdCluster").context("a kind of ours")?;
    let made = create(story, kind, &cluster("v1", "one", &spec), "").await?;
    ensure!(made.code == 201, "{}", made.body);
    let before = hub(story, "one").await?;

    // A whole replacement by somebody who knows nothing of v1 and drops what they do not know.
    for version in ["v1alpha1", "v1beta1"] {
        replaced(story, cluster(version, "one", &json!({"size": 5, "version": "3.6.16"}))).await?;
        let after = hub(story, "one").await?;
        ensure!(after["spec"]["replicas"] == 5, "{version}: {after}");
        for field in ["options", "deletionPolicy", "repair"] {
            let (was, is) = (&before["spec"][field], &after["spec"][field]);
            ensure!(was == is, "{version}: {field} was {was} and is {is}");
        }
    }

    // What was kept for the way back is not a way in.
    forged(story).await
}

/// Replaces an object as it is now. The operator reports on it meanwhile, so it may have to be read again.
async fn replaced(story: &Story, mut object: Value) -> Result<()> {
    let mut said = String::new();
    for _ in 0..20 {
        let now = hub(story, "one").await?;
        object["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
        let answer = replace(story, &object).await?;
        if answer.code == 200 {
            return Ok(());
        }
        said = format!("{} {}", answer.code, answer.body);
        ensure!(answer.code == 409, "{said}");
    }
    bail!("{said}")
}

/// An annotation that somebody writes through an old version changes neither spec nor status.
async fn forged(story: &Story) -> Result<()> {
    let before = hub(story, "one").await?;
    let kept = json!({"v1": {
        "/spec/options": [{"snapshotCount": 99_999}],
        "/spec/deletionPolicy": ["Delete"],
        "/status": [{"clusterID": "beef"}],
        "/status/clusterID": ["beef"],
    }});
    for version in ["v1alpha1", "v1beta1"] {
        let resource = format!("etcdclusters.{version}.{GROUP}");
        let annotation = format!("{}={kept}", quorate::api::convert::PRESERVED_FIELDS_ANNOTATION);
        let line = ["annotate", "--overwrite", &resource, "one", &annotation];
        story.kubectl(&line).await?;
        let after = hub(story, "one").await?;
        ensure!(after["spec"] == before["spec"], "{version}: {}", after["spec"]);
        ensure!(after["status"]["clusterID"] != "beef", "{version}: {}", after["status"]);
    }
    // A new object gets no status either.
    let mut made = cluster("v1alpha1", "forged", &json!({"size": 3, "version": "3.6.16"}));
    made["metadata"]["annotations"] =
        json!({quorate::api::convert::PRESERVED_FIELDS_ANNOTATION: kept.to_string()});
    let kind = kinds::by_name("EtcdCluster").context("a kind of ours")?;
    let answer = create(story, kind, &made, "").await?;
    ensure!(answer.code == 201, "{}", answer.body);
    let made = hub(story, "forged").await?;
    ensure!(made["status"]["clusterID"] != "beef", "{}", made["status"]);
    Ok(())
}

async fn scaling_is_judged_with_the_same_words_and_protection_is_for_those_who_ask(
    story: &Story,
) -> Result<()> {
    let kind = kinds::by_name("EtcdCluster").context("a kind of ours")?;
    let spec = json!({"replicas": 3, "version": "3.6.16"});
    create(story, kind, &cluster("v1", "main", &spec), "").await?;
    let scale = async |version: &str, replicas: &str| {
        let resource = format!("etcdclusters.{version}.{GROUP}/main");
        let replicas = format!("--replicas={replicas}");
        let mut kubectl = story.kubectl_command();
        kubectl.args(["scale", &resource, &replicas]);
        let output = kubectl.output().await?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        anyhow::Ok((output.status.success(), said))
    };
    for version in ["v1", "v1beta1", "v1alpha1"] {
        let (done, said) = scale(version, "4").await?;
        ensure!(done && said.contains("tolerates 1 failure"), "{version}: {said}");
        scale(version, "3").await?;
        let (done, said) = scale(version, "9").await?;
        ensure!(!done && said.contains("use 3 or 5"), "{version}: {said}");
    }
    let (done, said) = scale("v1beta1", "0").await?;
    ensure!(!done && said.contains("v1"), "{said}");
    let (done, said) = scale("v1", "0").await?;
    ensure!(done, "{said}");
    ensure!(hub(story, "main").await?["spec"]["replicas"] == 0);

    let protect = format!("{}=true", quorate::api::names::DELETION_PROTECTION_ANNOTATION);
    story.kubectl(&["annotate", "etcdcluster", "main", &protect]).await?;
    let Err(refused) = story.kubectl(&["delete", "etcdcluster", "main"]).await else {
        bail!("a protected cluster was deleted");
    };
    let refused = format!("{refused:#}");
    ensure!(refused.contains("kubectl annotate"), "{refused}");
    let remove_field = format!("{}-", quorate::api::names::DELETION_PROTECTION_ANNOTATION);
    story.kubectl(&["annotate", "etcdcluster", "main", &remove_field]).await?;
    story.kubectl(&["delete", "etcdcluster", "main"]).await?;
    Ok(())
}
