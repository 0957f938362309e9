//! The cluster guards itself as a user's would: RBAC, Node authorizer, Pod Security admission, audit log.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use quorate_harness::{Disturbs, audit, catalog, pods, tell};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_wants_to_be_root_is_refused_in_a_restricted_namespace() -> Result<()> {
    tell("pod-security", Disturbs::Nothing, async |story| {
        let mut pod = pods::restricted("root", catalog::BUSYBOX, &["sh"]);
        pod["spec"]["securityContext"]["runAsNonRoot"] = json!(false);
        pod["spec"]["securityContext"]["runAsUser"] = json!(0);
        let error = format!("{:#}", story.create_pod(pod).await.expect_err("it was taken"));
        ensure!(error.contains("violates PodSecurity \"restricted"), "{error}");
        ensure!(error.contains("runAsUser=0"), "{error}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_reads_secrets_without_the_right_to() -> Result<()> {
    tell("rights", Disturbs::Nothing, async |story| {
        story
            .kubectl(&["create", "secret", "generic", "hidden", "--from-literal=word=sesame"])
            .await?;

        let account = format!("--as=system:serviceaccount:{}:default", story.namespace);
        let error =
            story.kubectl(&[&account, "get", "secrets"]).await.expect_err("RBAC let it pass");
        ensure!(format!("{error:#}").contains("Forbidden"), "{error:#}");

        // The node may read the Secrets of its own pods only, and no pod here uses this one.
        let node = "--as=system:node:quorate-local";
        let group = "--as-group=system:nodes";
        let error = story.kubectl(&[node, group, "get", "secret", "hidden"]).await;
        let error = format!("{:#}", error.expect_err("the Node authorizer let it pass"));
        ensure!(error.contains("no relationship found"), "{error}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_tells_who_wrote_what_and_keeps_secrets_out() -> Result<()> {
    tell("audit", Disturbs::Nothing, async |story| {
        let before = audit::mark(&story.places)?;
        let secret = format!("sesame-of-{}", story.namespace);
        let literal = format!("--from-literal=word={secret}");
        let note: ConfigMap = serde_json::from_value(
            json!({ "metadata": { "name": "note" }, "data": { "a": "b" } }),
        )?;
        story.api::<ConfigMap>().create(&PostParams::default(), &note).await?;
        story.kubectl(&["create", "secret", "generic", "hidden", &literal]).await?;
        story.kubectl(&["annotate", "serviceaccount", "default", "touched=yes"]).await?;

        let mut ours = audit::since(&story.places, before)?;
        ours.retain(|write| {
            write.object_ref.namespace == story.namespace && write.user.username == "admin"
        });
        let told: Vec<String> = ours
            .iter()
            .map(|write| format!("{} {}", write.verb, write.object_ref.resource))
            .collect();
        ensure!(
            told == ["create configmaps", "create secrets", "patch serviceaccounts"],
            "{told:?}"
        );
        ensure!(
            ours.iter().all(|write| (200..300).contains(&write.response_status.code)),
            "{ours:?}"
        );
        let log = std::fs::read_to_string(story.places.audit_log())?;
        ensure!(!log.contains(&secret), "the secret is in the audit log");
        ensure!(ours.iter().any(|write| write.request_object.is_some()), "no write has a body");
        Ok(())
    })
    .await
}
