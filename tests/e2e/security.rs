//! Security of the local cluster: RBAC, Node authorizer, Pod Security admission, audit log.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use quorate_harness::{Isolation, audit, catalog, pods, run};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn root_pod_is_rejected_in_a_restricted_namespace() -> Result<()> {
    run("pod-security", Isolation::Parallel, async |ctx| {
        let mut pod = pods::restricted("root", catalog::BUSYBOX, &["sh"]);
        pod["spec"]["securityContext"]["runAsNonRoot"] = json!(false);
        pod["spec"]["securityContext"]["runAsUser"] = json!(0);
        let error = format!("{:#}", ctx.create_pod(pod).await.expect_err("the pod was admitted"));
        ensure!(error.contains("violates PodSecurity \"restricted"), "{error}");
        ensure!(error.contains("runAsUser=0"), "{error}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_not_readable_without_permission() -> Result<()> {
    run("secret-access", Isolation::Parallel, async |ctx| {
        ctx.kubectl(&["create", "secret", "generic", "hidden", "--from-literal=word=sesame"])
            .await?;

        let account = format!("--as=system:serviceaccount:{}:default", ctx.namespace);
        let error = ctx.kubectl(&[&account, "get", "secrets"]).await.expect_err("RBAC allowed it");
        ensure!(format!("{error:#}").contains("Forbidden"), "{error:#}");

        // The node may only read the Secrets of its own pods, and no pod uses this one.
        let node = "--as=system:node:quorate-local";
        let group = "--as-group=system:nodes";
        let error = ctx.kubectl(&[node, group, "get", "secret", "hidden"]).await;
        let error = format!("{:#}", error.expect_err("the Node authorizer allowed it"));
        ensure!(error.contains("no relationship found"), "{error}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_log_records_writes_without_secret_data() -> Result<()> {
    run("audit", Isolation::Parallel, async |ctx| {
        let before = audit::mark(&ctx.paths)?;
        let secret = format!("sesame-of-{}", ctx.namespace);
        let literal = format!("--from-literal=word={secret}");
        let note: ConfigMap = serde_json::from_value(
            json!({ "metadata": { "name": "note" }, "data": { "a": "b" } }),
        )?;
        ctx.api::<ConfigMap>().create(&PostParams::default(), &note).await?;
        ctx.kubectl(&["create", "secret", "generic", "hidden", &literal]).await?;
        ctx.kubectl(&["annotate", "serviceaccount", "default", "touched=yes"]).await?;

        let mut calls = audit::writes_since(&ctx.paths, before)?;
        calls.retain(|write| {
            write.object_ref.namespace == ctx.namespace && write.user.username == "admin"
        });
        let writes: Vec<String> = calls
            .iter()
            .map(|write| format!("{} {}", write.verb, write.object_ref.resource))
            .collect();
        ensure!(
            writes == ["create configmaps", "create secrets", "patch serviceaccounts"],
            "{writes:?}"
        );
        ensure!(
            calls.iter().all(|write| (200..300).contains(&write.response_status.code)),
            "{calls:?}"
        );
        let log = std::fs::read_to_string(ctx.paths.audit_log())?;
        ensure!(!log.contains(&secret), "the secret is in the audit log");
        ensure!(calls.iter().any(|write| write.request_object.is_some()), "no write has a body");
        Ok(())
    })
    .await
}
