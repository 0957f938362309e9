//! Raw requests to the API server, with the status code, the body and the warnings of the response.

use anyhow::{Context, Result, ensure};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use quorate_harness::TestContext;
use serde_json::Value;

/// A response of the API server.
#[derive(Debug)]
pub(super) struct ApiResponse {
    pub(super) code: u16,
    pub(super) body: Value,
    pub(super) warnings: Vec<String>,
}

/// Sends a request and returns the response, whatever its status code.
pub(super) async fn call(
    client: &Client,
    method: &str,
    path: &str,
    media_type: &str,
    body: &Value,
) -> Result<ApiResponse> {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media_type)
        .body(Body::from(serde_json::to_vec(body)?))?;
    let response = client.send(request).await.with_context(|| format!("{method} {path}"))?;
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.filter_map(|value| value.to_str().ok()).map(warning_text).collect();
    let bytes = response.into_body().collect().await?.to_bytes();
    Ok(ApiResponse { code, body: serde_json::from_slice(&bytes).unwrap_or_default(), warnings })
}

/// The text of a Warning header: `299 - "text"`, with quotes and backslashes escaped.
fn warning_text(header: &str) -> String {
    let inner = header.split_once('"').map_or(header, |(_, rest)| rest);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    inner.replace("\\\"", "\"").replace("\\\\", "\\")
}

/// Creates an EtcdCluster in the version of its manifest, and returns it.
pub(super) async fn create_etcd_cluster(ctx: &TestContext, object: &Value) -> Result<Value> {
    let api_version = object["apiVersion"].as_str().context("no apiVersion")?;
    let path = format!("/apis/{api_version}/namespaces/{}/etcdclusters", ctx.namespace);
    let response = call(&ctx.client, "POST", &path, "application/json", object).await?;
    ensure!(response.code == 201, "{} {}", response.code, response.body);
    Ok(response.body)
}
