//! Calls to the apiserver as they are on the wire: what was sent, the code, the body, the warnings.

use anyhow::{Context, Result, ensure};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use quorate_harness::Story;
use serde_json::Value;

/// An answer of the apiserver.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) body: Value,
    pub(super) warnings: Vec<String>,
}

/// Sends `body` and takes whatever the answer is.
pub(super) async fn call(
    client: &Client,
    method: &str,
    path: &str,
    media_type: &str,
    body: &Value,
) -> Result<Answer> {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media_type)
        .body(Body::from(serde_json::to_vec(body)?))?;
    let answer = client.send(request).await.with_context(|| format!("{method} {path}"))?;
    let code = answer.status().as_u16();
    let warnings = answer.headers().get_all("warning").iter();
    let warnings = warnings.filter_map(|it| it.to_str().ok()).map(words).collect();
    let bytes = answer.into_body().collect().await?.to_bytes();
    Ok(Answer { code, body: serde_json::from_slice(&bytes).unwrap_or_default(), warnings })
}

/// The words of a Warning header: `299 - "words"`, with quotes and backslashes escaped.
fn words(header: &str) -> String {
    let inner = header.split_once('"').map_or(header, |(_, rest)| rest);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    inner.replace("\\\"", "\"").replace("\\\\", "\\")
}

/// Creates an EtcdCluster through the version that it is written in, and answers with it.
pub(super) async fn created(story: &Story, object: &Value) -> Result<Value> {
    let api_version = object["apiVersion"].as_str().context("an apiVersion")?;
    let path = format!("/apis/{api_version}/namespaces/{}/etcdclusters", story.namespace);
    let answer = call(&story.client, "POST", &path, "application/json", object).await?;
    ensure!(answer.code == 201, "{} {}", answer.code, answer.body);
    Ok(answer.body)
}
