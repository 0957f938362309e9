//! Looks: at a definition, at what was written down, and at who else runs.
//! Comes in: the ports. Goes out: readings; what could not be read is unknown, with the reason in the log.
//! May touch: `clients`. Nothing is taken from a cache.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use serde_json::Value;

use super::decide;
use super::record::{Phase, Record};
use super::seen::{End, Errand, Reading, Way};
use crate::api::crd::stored::StoredCrd;
use crate::api::kinds::Kind;
use crate::api::names;
use crate::clients::error::ApiError;
use crate::clients::objects::Objects;
use crate::clients::storage_versions::{MigrationLookup, StorageVersionsClient};
use crate::telemetry::error_chain;

/// What one look has found.
pub(super) struct Looked {
    pub(super) definition: Reading<Option<StoredCrd>>,
    /// The object in which records are kept, as it is.
    pub(super) book: Option<ConfigMap>,
    pub(super) record: Reading<Option<Record>>,
    pub(super) asked: Option<String>,
    pub(super) others: Reading<bool>,
    pub(super) errand: Reading<Errand>,
}

/// Where to look.
pub(super) struct Outlook {
    pub(super) port: StorageVersionsClient,
    pub(super) objects: Objects,
    /// The operator's own namespace.
    pub(super) namespace: String,
    pub(super) way: Way,
}

impl Outlook {
    /// Looks at one kind. Who else runs is asked only if there is anything to do.
    pub(super) async fn look(&self, kind: &'static Kind) -> Looked {
        let definition = read(self.port.definition(kind).await);
        let book =
            read(self.objects.get::<ConfigMap>(&self.namespace, names::MIGRATION_RECORD).await);
        let (record, book) = match book {
            Reading::Known(book) => (Reading::Known(recorded(kind, book.as_ref())), book),
            Reading::Unknown => (Reading::Unknown, None),
        };
        let asked = book
            .as_ref()
            .and_then(|it| it.annotations().get(names::MIGRATION_RETRY_ANNOTATION).cloned());
        let mut looked = Looked {
            definition,
            book,
            record,
            asked,
            others: Reading::Known(false),
            errand: Reading::Known(Errand::Absent),
        };
        if let (Reading::Known(Some(definition)), Reading::Known(record)) =
            (&looked.definition, &looked.record)
            && decide::is_work(definition, record.as_ref())
        {
            looked.others = self.others().await;
            if record.as_ref().is_some_and(|it| it.phase == Phase::Delegated) {
                looked.errand = self.errand(kind).await;
            }
        }
        looked
    }

    /// Whether a replica of another release is there; also one that is on its way out still converts.
    async fn others(&self) -> Reading<bool> {
        let ours = format!("{}={}", names::NAME_LABEL, names::OPERATOR);
        match read(self.objects.list::<Pod>(&self.namespace, &ours).await) {
            Reading::Known(pods) => Reading::Known(pods.iter().any(is_of_another_release)),
            Reading::Unknown => Reading::Unknown,
        }
    }

    async fn errand(&self, kind: &'static Kind) -> Reading<Errand> {
        if self.way != Way::Kubernetes {
            return Reading::Known(Errand::Unserved);
        }
        match read(self.port.migration(kind).await) {
            Reading::Known(MigrationLookup::NotServed) => Reading::Known(Errand::Unserved),
            Reading::Known(MigrationLookup::NotFound) => Reading::Known(Errand::Absent),
            Reading::Known(MigrationLookup::Found(found)) => Reading::Known(errand(&found)),
            Reading::Unknown => Reading::Unknown,
        }
    }
}

/// One that has ended for good serves nobody; one without the label is somebody else's.
fn is_of_another_release(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref()).unwrap_or_default();
    let version = pod.labels().get(names::VERSION_LABEL);
    !["Succeeded", "Failed"].contains(&phase) && version.is_some_and(|it| it != names::VERSION)
}

fn errand(found: &Value) -> Errand {
    let text = |pointer: &str| {
        found.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let conditions = found.pointer("/status/conditions").and_then(Value::as_array);
    let holds = |name: &str| {
        let is_it = |it: &Value| {
            it.get("type").is_some_and(|it| it == name)
                && it.get("status").is_some_and(|it| it == "True")
        };
        conditions.is_some_and(|all| all.iter().any(is_it))
    };
    let end = if holds("Failed") {
        Some(End::Failed)
    } else {
        holds("Succeeded").then_some(End::Succeeded)
    };
    Errand::There { uid: text("/metadata/uid"), end }
}

/// What was written down of a kind. What cannot be read is as good as nothing: everything is looked at once more.
pub(crate) fn recorded(kind: &Kind, book: Option<&ConfigMap>) -> Option<Record> {
    let text = book?.data.as_ref()?.get(&kind.crd_name())?;
    serde_json::from_str(text).ok()
}

fn read<T>(answer: Result<T, ApiError>) -> Reading<T> {
    match answer {
        Ok(found) => Reading::Known(found),
        Err(error) => {
            tracing::debug!(error = error_chain(&error), "what is stored could not be looked at");
            Reading::Unknown
        }
    }
}
