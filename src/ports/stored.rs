//! Definitions and the objects that are stored under them, at the API server: listed by page, written without a change,
//! and `storedVersions` with fewer versions; each call with a time limit.
//! Comes in: what to send. Goes out: the answer, or how the call ended. May touch: the API server. It chooses nothing
//! and repeats nothing; a write is made only while this replica leads.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    DeleteParams, GetParams, ListParams, ObjectList, PartialObjectMeta, Patch, PatchParams,
    PostParams, Preconditions,
};
use kube::core::{Request, Status};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::call::{About, CallError, Class, if_there};
use super::changes::{self, Changes};
use super::mandate::Mandate;
use super::objects::ObjectError;
use crate::api::crd::stored::Definition;
use crate::api::kinds::Kind;
use crate::api::names;

const LIMIT: Duration = Duration::from_secs(10);
/// Each object of a page that is stored in another version is converted for it.
const LIST_LIMIT: Duration = Duration::from_mins(1);
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";

type Asked = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

/// A page of a list.
pub(crate) type Page = ObjectList<PartialObjectMeta>;

/// How a list failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// The API server has forgotten the list. It may say how to go on with what is there now.
    #[error("the list is forgotten")]
    Expired(Option<String>),
    /// The call failed.
    #[error(transparent)]
    Call(CallError),
}

/// What Kubernetes' own migrator was asked to do.
#[derive(Debug)]
pub(crate) enum Migration {
    /// There is no such migrator.
    Unserved,
    /// Nothing.
    Absent,
    /// This.
    There(Value),
}

/// One object of a kind.
#[derive(Clone, Copy)]
pub(crate) struct Which<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// The way to what is stored.
#[derive(Clone)]
pub(crate) struct StoredPort {
    client: Client,
    mandate: Mandate,
}

impl StoredPort {
    /// What `client` can reach, written while `mandate` lasts.
    pub(crate) const fn new(client: Client, mandate: Mandate) -> Self {
        Self { client, mandate }
    }

    /// The definition of a kind, or none if the API server says that there is none.
    pub(crate) async fn definition(&self, kind: &Kind) -> Result<Option<Definition>, CallError> {
        let name = kind.definition_name();
        let asked = definitions().get(&name, &GetParams::default());
        let found: Option<Value> = if_there(
            about("read", &format!("the definition {name}")).answer(self.text(asked)).await,
        )?;
        Ok(found.and_then(Definition::read))
    }

    /// The news that one of these definitions has changed.
    pub(crate) fn changes<'k>(&self, kinds: impl Iterator<Item = &'k Kind>) -> Changes {
        let of = |kind: &Kind| {
            let api = Api::<PartialObjectMeta<CustomResourceDefinition>>::all(self.client.clone());
            changes::of(api, &kind.definition_name())
        };
        changes::all(kinds.map(of).collect::<Vec<_>>())
    }

    /// A page of a consistent list of all objects of a kind: their metadata, in the hub's version.
    pub(crate) async fn page(
        &self,
        kind: &Kind,
        most: u32,
        token: Option<&str>,
    ) -> Result<Page, PageError> {
        let mut params = ListParams::default().limit(most);
        params.continue_token = token.map(ToOwned::to_owned);
        let asked = objects(kind, kind.hub().name, None).list_metadata(&params);
        let what = format!("the objects of {}", kind.definition_name());
        let about = About { doing: "list", what: &what, limit: LIST_LIMIT };
        about.answer(self.text(asked)).await.map_err(expired)
    }

    /// The metadata of an object, or none if there is none.
    pub(crate) async fn metadata(
        &self,
        which: Which<'_>,
    ) -> Result<Option<PartialObjectMeta>, CallError> {
        let asked = which.request().get_metadata(which.name, &GetParams::default());
        if_there(about("read", &which.words()).answer(self.text(asked)).await)
    }

    /// A whole object in the hub's version, or none if there is none.
    pub(crate) async fn whole(&self, which: Which<'_>) -> Result<Option<Value>, CallError> {
        let asked = which.request().get(which.name, &GetParams::default());
        if_there(about("read", &which.words()).answer(self.text(asked)).await)
    }

    /// Merges a patch into an object, and answers with its metadata. The patch names the version that was read, so that
    /// it lands on this one or nowhere.
    pub(crate) async fn merge(
        &self,
        which: Which<'_>,
        patch: &Value,
    ) -> Result<PartialObjectMeta, ObjectError> {
        let asked =
            which.request().patch_metadata(which.name, &params(false), &Patch::Merge(patch));
        self.write("write", &which.words(), asked).await
    }

    /// Whether an object could be written through this version, without writing it. The API server converts it there
    /// and back for that.
    pub(crate) async fn rehearse(
        &self,
        which: Which<'_>,
        version: &str,
        patch: &Value,
    ) -> Result<(), ObjectError> {
        let request = objects(which.kind, version, Some(which.namespace));
        let asked = request.patch_metadata(which.name, &params(true), &Patch::Merge(patch));
        let tried: PartialObjectMeta = self.write("try", &which.words(), asked).await?;
        drop(tried);
        Ok(())
    }

    /// Whether the API server would let this process write an object. A webhook's refusal looks like a missing right, and
    /// only the API server can tell them apart.
    pub(crate) async fn may_write(&self, which: Which<'_>) -> Result<bool, CallError> {
        let body = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": {
                "verb": "patch", "group": which.kind.group, "resource": which.kind.plural(),
                "namespace": which.namespace, "name": which.name,
            } },
        });
        let asked =
            Request::new(REVIEWS).create(&PostParams::default(), body.to_string().into_bytes());
        let what = format!("for the right to write {}", which.words());
        let answer: Value = about("ask", &what).answer(self.text(asked)).await?;
        Ok(answer.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or(false))
    }

    /// Leaves the storage version alone in `storedVersions` of exactly the definition that was read.
    pub(crate) async fn trim(&self, definition: &Definition) -> Result<(), ObjectError> {
        let patch = json!({
            "metadata": { "uid": definition.uid, "resourceVersion": definition.read },
            "status": { "storedVersions": [definition.storage] },
        });
        let name = &definition.name;
        let asked =
            definitions().patch_subresource("status", name, &params(false), &Patch::Merge(&patch));
        let what = format!("the stored versions of the definition {name}");
        self.write::<Value>("trim", &what, asked).await.map(drop)
    }

    /// What Kubernetes' own migrator was asked to do.
    pub(crate) async fn migration(&self, kind: &Kind) -> Result<Migration, CallError> {
        let name = kind.errand_name();
        let asked = Request::new(MIGRATIONS).get(&name, &GetParams::default());
        let what = format!("the storageversionmigration {name}");
        match if_there(about("read", &what).answer(self.text(asked)).await) {
            Ok(Some(found)) => Ok(Migration::There(found)),
            Ok(None) => Ok(Migration::Absent),
            Err(error) if code(&error) == Some(404) => Ok(Migration::Unserved),
            Err(error) => Err(error),
        }
    }

    /// Asks Kubernetes' own migrator, and answers with what was made for it.
    pub(crate) async fn send(&self, kind: &Kind) -> Result<Value, ObjectError> {
        let name = kind.errand_name();
        let body = json!({
            "apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
            "metadata": { "name": name },
            "spec": { "resource": { "group": kind.group, "resource": kind.plural() } },
        });
        let params = PostParams { dry_run: false, field_manager: Some(names::OPERATOR.to_owned()) };
        let asked = Request::new(MIGRATIONS).create(&params, body.to_string().into_bytes());
        self.write("make", &format!("the storageversionmigration {name}"), asked).await
    }

    /// Takes back exactly what was asked by this object. One that is gone already is fine.
    pub(crate) async fn clear(&self, kind: &Kind, uid: &str) -> Result<(), ObjectError> {
        let name = kind.errand_name();
        let exactly = Preconditions { resource_version: None, uid: Some(uid.to_owned()) };
        let params = DeleteParams::default().preconditions(exactly);
        let asked = Request::new(MIGRATIONS).delete(&name, &params);
        let what = format!("the storageversionmigration {name}");
        match self.write::<Value>("delete", &what, asked).await {
            Ok(_) => Ok(()),
            Err(error) if error.class() == Class::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn text(&self, asked: Asked) -> kube::Result<String> {
        self.client.request_text(asked.map_err(kube::Error::BuildRequest)?).await
    }

    async fn write<T: DeserializeOwned>(
        &self,
        doing: &'static str,
        what: &str,
        asked: Asked,
    ) -> Result<T, ObjectError> {
        let about = About { doing, what, limit: LIMIT };
        match self.mandate.during(LIMIT, about.answer(self.text(asked))).await {
            Ok(answer) => answer.map_err(ObjectError::Call),
            Err(source) => Err(ObjectError::Unled { doing, what: what.to_owned(), source }),
        }
    }
}

impl Which<'_> {
    fn request(&self) -> Request {
        objects(self.kind, self.kind.hub().name, Some(self.namespace))
    }

    fn words(&self) -> String {
        format!("the {} {}/{}", self.kind.name, self.namespace, self.name)
    }
}

fn definitions() -> Request {
    Request::new(CustomResourceDefinition::url_path(&(), None))
}

fn objects(kind: &Kind, version: &str, namespace: Option<&str>) -> Request {
    let (group, plural) = (kind.group, kind.plural());
    Request::new(match namespace {
        Some(namespace) => format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}"),
        None => format!("/apis/{group}/{version}/{plural}"),
    })
}

fn params(dry_run: bool) -> PatchParams {
    PatchParams {
        dry_run,
        field_manager: Some(names::MIGRATION_FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

const fn about<'a>(doing: &'static str, what: &'a str) -> About<'a> {
    About { doing, what, limit: LIMIT }
}

/// Tells a list that was forgotten from other failures.
fn expired(error: CallError) -> PageError {
    match status(&error) {
        Some(status) if status.code == 410 => {
            let token = status.metadata.as_ref().and_then(|it| it.continue_.clone());
            PageError::Expired(token.filter(|it| !it.is_empty()))
        }
        Some(_) | None => PageError::Call(error),
    }
}

fn code(error: &CallError) -> Option<u16> {
    status(error).map(|status| status.code)
}

fn status(error: &CallError) -> Option<&Status> {
    let CallError::Call { source, .. } = error else { return None };
    let kube::Error::Api(status) = source.as_ref() else { return None };
    Some(status)
}
