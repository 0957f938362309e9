//! The API server's audit log: all writes, and the reads of the operator.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};

use anyhow::{Context, Result, ensure};
use quorate_cluster::paths::Paths;
use serde::Deserialize;

/// A position in the log: later calls are behind it.
#[derive(Clone, Copy, Debug)]
pub struct Mark(u64);

/// One call.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// `create`, `update`, `patch`, `delete` or `deletecollection`; of the operator also `get`,
    /// `list`, `watch`.
    pub verb: String,
    /// The authenticated user.
    pub user: User,
    /// The object. Absent for requests without one.
    #[serde(default)]
    pub object_ref: Target,
    /// The response.
    #[serde(default)]
    pub response_status: ResponseStatus,
    /// The request body, unless it may contain a secret.
    pub request_object: Option<serde_json::Value>,
    /// When the request was received, in RFC 3339.
    pub request_received_timestamp: String,
}

/// The user of a call.
#[derive(Clone, Debug, Deserialize)]
pub struct User {
    /// The name, such as `system:serviceaccount:quorate-system:quorate`.
    #[serde(default)]
    pub username: String,
    /// Further attributes, such as the pod of the token.
    #[serde(default)]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The pod that made the call, if it used a pod's token.
    #[must_use]
    pub fn pod(&self) -> Option<&str> {
        let names = self.extra.get("authentication.kubernetes.io/pod-name")?;
        names.first().map(String::as_str)
    }
}

/// The object of a call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Target {
    /// The API group; empty for the core group.
    pub api_group: String,
    /// The plural resource name, as in URLs.
    pub resource: String,
    /// `status`, `scale` and so on.
    pub subresource: String,
    /// The namespace; empty for cluster-scoped resources.
    pub namespace: String,
    /// The name; empty if the server generated it.
    pub name: String,
}

/// The response of a call.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResponseStatus {
    /// The HTTP status.
    pub code: u16,
}

/// The present end of the log.
///
/// # Errors
/// If the log does not exist.
pub fn mark(paths: &Paths) -> Result<Mark> {
    let text = std::fs::read(paths.audit_log()).context("the audit log does not exist")?;
    // The last line may be incomplete.
    let complete =
        text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end.saturating_add(1));
    Ok(Mark(u64::try_from(complete)?))
}

impl Call {
    /// Whether the verb is a write.
    #[must_use]
    pub fn writes(&self) -> bool {
        !["get", "list", "watch"].contains(&self.verb.as_str())
    }
}

/// The writes since a mark, in order. The API server writes the log before it responds, so the log
/// contains every call whose effect a test has observed.
///
/// # Errors
/// If the log cannot be read.
pub fn writes_since(paths: &Paths, mark: Mark) -> Result<Vec<Call>> {
    let mut calls = calls_since(paths, mark)?;
    calls.retain(Call::writes);
    Ok(calls)
}

/// The same with the logged reads.
///
/// # Errors
/// As [`writes_since`].
pub fn calls_since(paths: &Paths, mark: Mark) -> Result<Vec<Call>> {
    let mut file =
        std::fs::File::open(paths.audit_log()).context("the audit log does not exist")?;
    // The API server rotates a full log.
    ensure!(file.metadata()?.len() >= mark.0, "the audit log was rotated since the mark");
    file.seek(SeekFrom::Start(mark.0))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    // The last line may be incomplete.
    let complete = text.rfind('\n').map_or("", |end| text.get(..end).unwrap_or_default());
    complete
        .lines()
        .map(|line| {
            serde_json::from_str(line).with_context(|| format!("not an audit entry: {line}"))
        })
        .collect()
}
