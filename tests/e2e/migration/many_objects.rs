//! Migration of five thousand objects under faults.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use quorate_harness::{Isolation, TestContext, audit, catalog, run};
use serde_json::json;

use super::previous_release::{self, Release};
use super::{
    APPS_CRD, BULK_KIND, CLUSTERS_CRD, CONCURRENCY, bulk_api, bulk_object, delete_all, record,
    rewritten_once, stored_objects, stored_versions, stored_versions_are_listed,
};
use crate::installation::{
    NAMESPACE, leader, manifest, uninstall, uninstall_if_present, wait_rollout,
};

const OBJECTS: usize = 5_000;
const MIGRATION_TIMEOUT: Duration = Duration::from_mins(25);
/// How long the conversion webhook is unreachable.
const OUTAGE_DELAY: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by make e2e-long"]
async fn five_thousand_objects_are_migrated_under_faults_and_none_is_rewritten_twice() -> Result<()>
{
    run("migration-faults", Isolation::Serial, async |ctx| {
        uninstall_if_present(ctx).await?;
        ctx.image(catalog::QUORATE).await?;
        let result = migrate(ctx).await;
        drop(ctx.admin.run(&["delete", "--ignore-not-found", "-f", &deny_policy()?]).await);
        drop(ctx.admin.run(&["delete", "--ignore-not-found", "-f", &throttle()?]).await);
        ctx.admin.run(&["apply", "--filename", &manifest()?]).await?;
        wait_rollout(ctx).await?;
        set_webhook_selector(ctx, "quorate").await?;
        delete_all(ctx).await?;
        let uninstalled = uninstall(ctx).await;
        result.and(uninstalled)
    })
    .await
}

async fn migrate(ctx: &TestContext) -> Result<()> {
    previous_release::install(ctx, Release::Alpha).await?;
    write_objects(ctx, Release::Alpha).await?;
    previous_release::install(ctx, Release::Beta).await?;
    write_objects(ctx, Release::Beta).await?;
    let before = stored_versions_by_name(ctx).await?;
    ensure!(before.len() == OBJECTS, "{} objects", before.len());
    ctx.admin.run(&["apply", "-f", &deny_policy()?]).await?;
    let (started, mark) = (Instant::now(), audit::mark(&ctx.paths)?);
    ctx.admin.run(&["apply", "--filename", &manifest()?]).await?;
    wait_rollout(ctx).await?;

    let mut faults = Faults::default();
    while !faults.inject(ctx).await? {
        let record = &record(ctx).await?[APPS_CRD];
        ensure!(started.elapsed() < MIGRATION_TIMEOUT, "not complete: {record} {faults:?}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let after = stored_versions_by_name(ctx).await?;
    let left: Vec<_> = after.iter().filter(|(_, version)| *version != "v1").collect();
    ensure!(left.is_empty(), "left: {left:?}");
    // An object that was written after this revision is stored in the storage version.
    let threshold = record(ctx).await?[APPS_CRD]["threshold"].as_u64().unwrap_or_default();
    let rewritten = rewritten_once(ctx, mark)?;
    let by_others = faults.edited.len() + faults.deleted.len();
    ensure!(rewritten.len() + by_others >= OBJECTS, "only {} were rewritten", rewritten.len());
    let needless = rewritten.iter().filter(|revision| **revision > threshold).count();
    ensure!(needless == 0, "{needless} were rewritten needlessly");
    let lost: Vec<&String> = before
        .keys()
        .filter(|name| !after.contains_key(*name) && !faults.deleted.contains(*name))
        .collect();
    ensure!(lost.is_empty(), "lost: {lost:?}");
    println!(
        "{OBJECTS} objects in {:.0?}: {} rewritten, the others written by another client; {} kills at {:?}, {} edits, {} \
         deleted, {} created; 0 lost, 0 left, 0 rewritten twice or needlessly",
        started.elapsed(),
        rewritten.len(),
        faults.kills,
        faults.phases,
        faults.edited.len(),
        faults.deleted.len(),
        faults.created,
    );
    Ok(())
}

/// The faults injected so far.
#[derive(Debug, Default)]
struct Faults {
    rounds: usize,
    kills: usize,
    created: usize,
    phases: BTreeSet<String>,
    edited: BTreeSet<String>,
    deleted: BTreeSet<String>,
    throttled: bool,
    webhook_outage: bool,
    policy_removed: bool,
}

impl Faults {
    /// Injects the faults of one round, and returns whether the migration is complete.
    async fn inject(&mut self, ctx: &TestContext) -> Result<bool> {
        self.rounds += 1;
        let listed = stored_versions(ctx).await?;
        let record = record(ctx).await?;
        let phase = record[APPS_CRD]["phase"].as_str().unwrap_or("None").to_owned();
        let listed_objects = record[APPS_CRD]["counts"]["listed"].as_u64().unwrap_or_default();
        if self.phases.insert(phase.clone())
            || (self.rounds.is_multiple_of(40) && phase == "Rewriting")
        {
            self.kill(ctx).await?;
            stored_versions_are_listed(ctx, &listed).await?;
        }
        self.edit_objects(ctx).await?;
        if phase == "Rewriting" && listed_objects > 500 && !self.throttled {
            self.throttled = true;
            ctx.admin.run(&["apply", "-f", &throttle()?]).await?;
            tokio::time::sleep(Duration::from_secs(15)).await;
            ctx.admin.run(&["delete", "-f", &throttle()?]).await?;
        }
        if phase == "Rewriting" && listed_objects > 1_500 && !self.webhook_outage {
            self.webhook_outage = true;
            set_webhook_selector(ctx, "none").await?;
            tokio::time::sleep(OUTAGE_DELAY).await;
            set_webhook_selector(ctx, "quorate").await?;
        }
        if phase == "Blocked" && !self.policy_removed {
            let failures = &record[APPS_CRD]["failures"];
            ensure!(failures.to_string().contains("one-denied"), "{failures}");
            self.policy_removed = true;
            ctx.admin.run(&["delete", "-f", &deny_policy()?]).await?;
        }
        let trimmed = [CLUSTERS_CRD, APPS_CRD]
            .iter()
            .all(|crd| listed.get(crd).is_some_and(|versions| *versions == ["v1"]));
        Ok(trimmed && phase == "Complete" && self.policy_removed)
    }

    /// Kills the leader as if its node had failed.
    async fn kill(&mut self, ctx: &TestContext) -> Result<()> {
        let pod = leader(ctx).await?.name_any();
        let kill = ["delete", "pod", &pod, "--grace-period=0", "--force", "--wait=false"];
        ctx.admin.run(&[&["-n", NAMESPACE], &kill[..]].concat()).await?;
        self.kills += 1;
        Ok(())
    }

    /// Another client edits one object, deletes another, and creates a third.
    async fn edit_objects(&mut self, ctx: &TestContext) -> Result<()> {
        let objects = bulk_api(ctx, "v1");
        let at = self.rounds * 37 % OBJECTS;
        let note =
            Patch::Merge(json!({"metadata": {"annotations": {"note": self.rounds.to_string()}}}));
        let edited = objects.patch(&name(at), &PatchParams::default(), &note).await;
        self.edited.insert(name(at));
        drop(edited);
        if self.rounds.is_multiple_of(5) {
            let deleted = name(self.rounds * 53 % OBJECTS);
            if objects.delete(&deleted, &DeleteParams::default()).await.is_ok() {
                self.deleted.insert(deleted);
            }
            let object = bulk_object("v1", &format!("new-{}", self.rounds))?;
            self.created +=
                usize::from(objects.create(&PostParams::default(), &object).await.is_ok());
        }
        Ok(())
    }
}

fn name(number: usize) -> String {
    if number == OBJECTS / 2 { "one-denied".to_owned() } else { format!("one-of-{number}") }
}

async fn write_objects(ctx: &TestContext, release: Release) -> Result<()> {
    let objects = bulk_api(ctx, release.stored());
    let half = match release {
        Release::Alpha => 0..OBJECTS / 2,
        Release::Beta => OBJECTS / 2..OBJECTS,
    };
    let create = |number| {
        let objects = objects.clone();
        async move {
            let object = bulk_object(release.stored(), &name(number))?;
            objects.create(&PostParams::default(), &object).await?;
            anyhow::Ok(())
        }
    };
    stream::iter(half).map(create).buffer_unordered(CONCURRENCY).try_collect::<()>().await
}

/// The stored version of each object, by name.
async fn stored_versions_by_name(ctx: &TestContext) -> Result<BTreeMap<String, String>> {
    let name = |key: String| key.split('/').next_back().unwrap_or_default().to_owned();
    Ok(stored_objects(ctx).await?.into_iter().map(|(key, version)| (name(key), version)).collect())
}

/// Sets the selector of the webhooks' Service.
async fn set_webhook_selector(ctx: &TestContext, app: &str) -> Result<()> {
    let patch = json!({"spec": {"selector": {"app.kubernetes.io/name": app}}}).to_string();
    let patch = ["patch", "service", "quorate-webhook", "--type=merge", "--patch", &patch];
    ctx.admin.run(&[&["-n", NAMESPACE], &patch[..]].concat()).await.map(drop)
}

/// A policy that denies updates of one object.
fn deny_policy() -> Result<String> {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "e2e-deny-one"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [BULK_KIND.0], "apiVersions": ["*"], "operations": ["UPDATE"],
                "resources": ["exampleapps"],
            }]},
            "validations": [{"expression": "object.metadata.name != 'one-denied'", "message": "not this one"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "e2e-deny-one"},
        "spec": {"policyName": "e2e-deny-one", "validationActions": ["Deny"]},
    });
    previous_release::tempfile(
        "deny-policy",
        &json!({"apiVersion": "v1", "kind": "List", "items": [policy, binding]}).to_string(),
    )
}

/// The API server rejects the operator's writes with status 429.
fn throttle() -> Result<String> {
    let level = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": {"name": "e2e-throttle"},
        "spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        }},
    });
    let schema = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
        "metadata": {"name": "e2e-throttle"},
        "spec": {
            "priorityLevelConfiguration": {"name": "e2e-throttle"}, "matchingPrecedence": 2,
            "rules": [{
                "subjects": [{"kind": "ServiceAccount", "serviceAccount": {"name": "quorate", "namespace": NAMESPACE}}],
                "resourceRules": [{
                    "apiGroups": [BULK_KIND.0], "resources": ["exampleapps"], "verbs": ["patch"], "namespaces": ["*"],
                }],
            }],
        },
    });
    previous_release::tempfile(
        "throttle",
        &json!({"apiVersion": "v1", "kind": "List", "items": [level, schema]}).to_string(),
    )
}
