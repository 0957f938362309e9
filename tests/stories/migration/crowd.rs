//! Five thousand objects, and everything that can go wrong meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use quorate_harness::{Disturbs, Story, audit, catalog, tell};
use serde_json::json;

use super::older::{self, Stage};
use super::{
    APPS, AT_ONCE, CLUSTERS, MANY_OF, bytes, deleted, many, named_are_there, once, one_of_many,
    record, stored_versions,
};
use crate::installed::{NAMESPACE, gone, leader, manifest, rolled_out, uninstalled};

const MANY: usize = 5_000;
const LONG: Duration = Duration::from_mins(25);
/// How long nobody converts.
const OUTAGE: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "many minutes; make stories-long tells it"]
async fn five_thousand_objects_are_carried_whatever_goes_wrong_and_none_is_written_twice()
-> Result<()> {
    tell("crowd", Disturbs::Everything, async |story| {
        gone(story).await?;
        story.image(catalog::QUORATE).await?;
        let told = carried(story).await;
        drop(story.admin.run(&["delete", "--ignore-not-found", "-f", &obstacles()?]).await);
        drop(story.admin.run(&["delete", "--ignore-not-found", "-f", &throttle()?]).await);
        story.admin.run(&["apply", "--filename", &manifest()?]).await?;
        rolled_out(story).await?;
        served(story, "quorate").await?;
        deleted(story).await?;
        let gone = uninstalled(story).await;
        told.and(gone)
    })
    .await
}

async fn carried(story: &Story) -> Result<()> {
    older::install(story, Stage::Alpha).await?;
    written(story, Stage::Alpha).await?;
    older::install(story, Stage::Beta).await?;
    written(story, Stage::Beta).await?;
    let before = kept(story).await?;
    ensure!(before.len() == MANY, "{} objects", before.len());
    story.admin.run(&["apply", "-f", &obstacles()?]).await?;
    let (begun, mark) = (Instant::now(), audit::mark(&story.places)?);
    story.admin.run(&["apply", "--filename", &manifest()?]).await?;
    rolled_out(story).await?;

    let mut troubles = Troubles::default();
    while !troubles.over(story).await? {
        ensure!(begun.elapsed() < LONG, "not done: {} {troubles:?}", record(story).await?[APPS]);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let after = kept(story).await?;
    let left: Vec<_> = after.iter().filter(|(_, version)| *version != "v1").collect();
    ensure!(left.is_empty(), "left: {left:?}");
    // Whatever was written later than this is stored in today's version, whoever wrote it.
    let fresh = record(story).await?[APPS]["threshold"].as_u64().unwrap_or_default();
    let carried = once(story, mark)?;
    let by_others = troubles.touched.len() + troubles.deleted.len();
    ensure!(carried.len() + by_others >= MANY, "only {} were carried", carried.len());
    let needless = carried.iter().filter(|it| **it > fresh).count();
    ensure!(needless == 0, "{needless} were carried that were fresh");
    let lost: Vec<&String> = before
        .keys()
        .filter(|it| !after.contains_key(*it) && !troubles.deleted.contains(*it))
        .collect();
    ensure!(lost.is_empty(), "lost: {lost:?}");
    println!(
        "{MANY} objects in {:.0?}: {} carried, the others written by somebody else; {} kills at {:?}, {} edits, {} deleted, {} \
         made; 0 lost, 0 left, 0 carried twice or needlessly",
        begun.elapsed(),
        carried.len(),
        troubles.kills,
        troubles.phases,
        troubles.touched.len(),
        troubles.deleted.len(),
        troubles.made,
    );
    Ok(())
}

/// What goes wrong, and what was done about it.
#[derive(Debug, Default)]
struct Troubles {
    looks: usize,
    kills: usize,
    made: usize,
    phases: BTreeSet<String>,
    touched: BTreeSet<String>,
    deleted: BTreeSet<String>,
    throttled: bool,
    silenced: bool,
    relented: bool,
}

impl Troubles {
    /// One look: makes some trouble, and answers whether all is done.
    async fn over(&mut self, story: &Story) -> Result<bool> {
        self.looks += 1;
        let named = stored_versions(story).await?;
        let record = record(story).await?;
        let phase = record[APPS]["phase"].as_str().unwrap_or("Nothing").to_owned();
        let looked = record[APPS]["counts"]["listed"].as_u64().unwrap_or_default();
        if self.phases.insert(phase.clone())
            || (self.looks.is_multiple_of(40) && phase == "Rewriting")
        {
            self.kill(story).await?;
            named_are_there(story, &named).await?;
        }
        self.meddle(story).await?;
        if phase == "Rewriting" && looked > 500 && !self.throttled {
            self.throttled = true;
            story.admin.run(&["apply", "-f", &throttle()?]).await?;
            tokio::time::sleep(Duration::from_secs(15)).await;
            story.admin.run(&["delete", "-f", &throttle()?]).await?;
        }
        if phase == "Rewriting" && looked > 1_500 && !self.silenced {
            self.silenced = true;
            served(story, "nobody").await?;
            tokio::time::sleep(OUTAGE).await;
            served(story, "quorate").await?;
        }
        if phase == "Blocked" && !self.relented {
            let failures = &record[APPS]["failures"];
            ensure!(failures.to_string().contains("one-refused"), "{failures}");
            self.relented = true;
            story.admin.run(&["delete", "-f", &obstacles()?]).await?;
        }
        let trimmed =
            [CLUSTERS, APPS].iter().all(|it| named.get(it).is_some_and(|it| *it == ["v1"]));
        Ok(trimmed && phase == "Complete" && self.relented)
    }

    /// The leader is killed as if its node had died.
    async fn kill(&mut self, story: &Story) -> Result<()> {
        let pod = leader(story).await?.name_any();
        let kill = ["delete", "pod", &pod, "--grace-period=0", "--force", "--wait=false"];
        story.admin.run(&[&["-n", NAMESPACE], &kill[..]].concat()).await?;
        self.kills += 1;
        Ok(())
    }

    /// Somebody edits one object, deletes another, and makes a third.
    async fn meddle(&mut self, story: &Story) -> Result<()> {
        let objects = many(story, "v1");
        let at = self.looks * 37 % MANY;
        let note =
            Patch::Merge(json!({"metadata": {"annotations": {"note": self.looks.to_string()}}}));
        let edited = objects.patch(&name(at), &PatchParams::default(), &note).await;
        self.touched.insert(name(at));
        drop(edited);
        if self.looks.is_multiple_of(5) {
            let gone = name(self.looks * 53 % MANY);
            if objects.delete(&gone, &DeleteParams::default()).await.is_ok() {
                self.deleted.insert(gone);
            }
            let object = one_of_many("v1", &format!("new-{}", self.looks))?;
            self.made += usize::from(objects.create(&PostParams::default(), &object).await.is_ok());
        }
        Ok(())
    }
}

fn name(number: usize) -> String {
    if number == MANY / 2 { "one-refused".to_owned() } else { format!("one-of-{number}") }
}

async fn written(story: &Story, stage: Stage) -> Result<()> {
    let objects = many(story, stage.stored());
    let half = match stage {
        Stage::Alpha => 0..MANY / 2,
        Stage::Beta => MANY / 2..MANY,
    };
    let make = |number| {
        let objects = objects.clone();
        async move {
            let object = one_of_many(stage.stored(), &name(number))?;
            objects.create(&PostParams::default(), &object).await?;
            anyhow::Ok(())
        }
    };
    stream::iter(half).map(make).buffer_unordered(AT_ONCE).try_collect::<()>().await
}

/// By name: the version in which it is stored.
async fn kept(story: &Story) -> Result<BTreeMap<String, String>> {
    let name = |key: String| key.split('/').next_back().unwrap_or_default().to_owned();
    Ok(bytes(story).await?.into_iter().map(|(key, version)| (name(key), version)).collect())
}

/// Leads the webhooks' Service to these pods.
async fn served(story: &Story, by: &str) -> Result<()> {
    let patch = json!({"spec": {"selector": {"app.kubernetes.io/name": by}}}).to_string();
    let patch = ["patch", "service", "quorate-webhook", "--type=merge", "--patch", &patch];
    story.admin.run(&[&["-n", NAMESPACE], &patch[..]].concat()).await.map(drop)
}

/// A policy that refuses one object.
fn obstacles() -> Result<String> {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "story-refuses-one"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [MANY_OF.0], "apiVersions": ["*"], "operations": ["UPDATE"],
                "resources": ["exampleapps"],
            }]},
            "validations": [{"expression": "object.metadata.name != 'one-refused'", "message": "not this one"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "story-refuses-one"},
        "spec": {"policyName": "story-refuses-one", "validationActions": ["Deny"]},
    });
    older::tempfile(
        "obstacles",
        &json!({"apiVersion": "v1", "kind": "List", "items": [policy, binding]}).to_string(),
    )
}

/// The API server lets nothing of the operator's writes through, and says 429.
fn throttle() -> Result<String> {
    let level = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": {"name": "story-throttle"},
        "spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        }},
    });
    let schema = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
        "metadata": {"name": "story-throttle"},
        "spec": {
            "priorityLevelConfiguration": {"name": "story-throttle"}, "matchingPrecedence": 2,
            "rules": [{
                "subjects": [{"kind": "ServiceAccount", "serviceAccount": {"name": "quorate", "namespace": NAMESPACE}}],
                "resourceRules": [{
                    "apiGroups": [MANY_OF.0], "resources": ["exampleapps"], "verbs": ["patch"], "namespaces": ["*"],
                }],
            }],
        },
    });
    older::tempfile(
        "throttle",
        &json!({"apiVersion": "v1", "kind": "List", "items": [level, schema]}).to_string(),
    )
}
