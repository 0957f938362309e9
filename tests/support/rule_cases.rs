//! The cases of `tests/rules`, for the test in memory and the e2e test on a real API server.

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A rule at one path, with an accepted and a rejected spec.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) kind: String,
    pub(crate) version: String,
    /// Path in the schema; empty for the whole object.
    pub(crate) path: String,
    /// Message of the rule.
    pub(crate) message: String,
    /// Spec before an update.
    pub(crate) old: Option<Value>,
    /// Status before an update.
    pub(crate) status: Option<Value>,
    #[serde(default)]
    pub(crate) accepted: Value,
    #[serde(default)]
    pub(crate) rejected: Value,
    /// Names instead of specs, for a rule about the name.
    pub(crate) names: Option<Names>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Names {
    pub(crate) accepted: String,
    pub(crate) rejected: String,
}

impl Case {
    /// The object with the accepted or the rejected spec.
    pub(crate) fn object(&self, name: &str, accepted: bool) -> Value {
        match (&self.names, accepted) {
            (Some(names), true) => self.whole(&names.accepted, &Value::Null),
            (Some(names), false) => self.whole(&names.rejected, &Value::Null),
            (None, true) => self.whole(name, &self.accepted),
            (None, false) => self.whole(name, &self.rejected),
        }
    }

    /// The object before an update, if the rule is about updates.
    pub(crate) fn old_object(&self, name: &str) -> Option<Value> {
        self.old.as_ref().map(|old| self.whole(name, old))
    }

    fn whole(&self, name: &str, spec: &Value) -> Value {
        let mut whole = required(&self.kind, &self.version);
        for (key, value) in spec.as_object().into_iter().flatten() {
            whole.insert(key.clone(), value.clone());
        }
        whole.retain(|_, value| !value.is_null());
        let mut object = json!({ "metadata": { "name": name }, "spec": whole });
        if let Some(status) = &self.status {
            object["status"] = status.clone();
        }
        object
    }
}

/// Required fields of a spec.
fn required(kind: &str, version: &str) -> Map<String, Value> {
    let spec = match (kind, version) {
        ("EtcdCluster", _) => json!({ "version": "3.6.16" }),
        ("ExampleApp", "v1alpha1") => json!({ "appVersion": "0.0.1" }),
        ("ExampleApp", _) => json!({ "version": "0.0.1" }),
        ("EtcdMember", _) => json!({
            "clusterName": "main", "name": "main-a", "intent": "Join",
            "peerURL": "https://main-a.main.default.svc:2380",
        }),
        ("EtcdBackup", _) => json!({ "clusterRef": { "name": "main" } }),
        ("EtcdRestore", _) => json!({
            "clusterRef": { "name": "main" }, "from": { "backupRef": { "name": "monday" } },
        }),
        _ => json!({}),
    };
    spec.as_object().cloned().unwrap_or_default()
}

/// All cases.
pub(crate) fn cases() -> Vec<Case> {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules");
    let mut files: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| -> Vec<Case> {
        let text = std::fs::read_to_string(path).unwrap();
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    files.iter().flat_map(read).collect()
}
