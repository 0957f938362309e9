//! The audit log: who wrote what to the API, and when; of the operator also what it read.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};

use anyhow::{Context, Result, ensure};
use quorate_cluster::paths::Paths as Places;
use serde::Deserialize;

/// A place in the log: everything after it happened later.
#[derive(Clone, Copy, Debug)]
pub struct Mark(u64);

/// One call.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// `create`, `update`, `patch`, `delete` or `deletecollection`; of the operator also `get`, `list`, `watch`.
    pub verb: String,
    /// Who did it.
    pub user: User,
    /// To what. Absent for requests that are about no object.
    #[serde(default)]
    pub object_ref: Target,
    /// The answer.
    #[serde(default)]
    pub response_status: Answer,
    /// What was sent, unless it could hold a secret.
    pub request_object: Option<serde_json::Value>,
    /// When it came, in RFC 3339.
    pub request_received_timestamp: String,
}

/// Who.
#[derive(Clone, Debug, Deserialize)]
pub struct User {
    /// The name, such as `system:serviceaccount:quorate-system:quorate`.
    #[serde(default)]
    pub username: String,
    /// What else is known of it, such as the pod that holds the token.
    #[serde(default)]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The pod in which the call was made, if it was made with a pod's token.
    #[must_use]
    pub fn pod(&self) -> Option<&str> {
        let names = self.extra.get("authentication.kubernetes.io/pod-name")?;
        names.first().map(String::as_str)
    }
}

/// What.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Target {
    /// The API group; empty is the core.
    pub api_group: String,
    /// The kind in plural, as in URLs.
    pub resource: String,
    /// `status`, `scale` and so on.
    pub subresource: String,
    /// The namespace; empty for cluster-wide kinds.
    pub namespace: String,
    /// The name; empty when the server chose it.
    pub name: String,
}

/// How it ended.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
}

/// The present end of the log.
///
/// # Errors
/// If there is no log.
pub fn mark(places: &Places) -> Result<Mark> {
    let text = std::fs::read(places.audit_log()).context("there is no audit log")?;
    // The last line may be under way.
    let complete =
        text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end.saturating_add(1));
    Ok(Mark(u64::try_from(complete)?))
}

impl Call {
    /// Whether it could change anything.
    #[must_use]
    pub fn writes(&self) -> bool {
        !["get", "list", "watch"].contains(&self.verb.as_str())
    }
}

/// The writes since a mark, in order. The apiserver writes the log before it answers, so what a story has
/// seen happen is in it.
///
/// # Errors
/// If the log cannot be read.
pub fn since(places: &Places, mark: Mark) -> Result<Vec<Call>> {
    let mut calls = calls_since(places, mark)?;
    calls.retain(Call::writes);
    Ok(calls)
}

/// The same with the reads that are logged.
///
/// # Errors
/// As [`since`].
pub fn calls_since(places: &Places, mark: Mark) -> Result<Vec<Call>> {
    let mut file = std::fs::File::open(places.audit_log()).context("there is no audit log")?;
    // The apiserver begins a new file when this one is full.
    ensure!(file.metadata()?.len() >= mark.0, "the audit log was begun anew since the mark");
    file.seek(SeekFrom::Start(mark.0))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    // The last line may be under way.
    let complete = text.rfind('\n').map_or("", |end| text.get(..end).unwrap_or_default());
    complete
        .lines()
        .map(|line| {
            serde_json::from_str(line).with_context(|| format!("not an audit entry: {line}"))
        })
        .collect()
}
