//! CRDs and stored objects: listed by page, rewritten without a change, and `storedVersions` trimmed.
//!
//! Each call has a timeout. Nothing is retried here; a write is sent only while this replica leads.

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

use super::error::{ApiError, ErrorClass, Operation, none_if_not_found};
use super::leader_guard::LeaderGuard;
use super::notify::{self, ChangeStream};
use super::objects::ObjectError;
use crate::api::crd::stored::StoredCrd;
use crate::api::kinds::Kind;
use crate::api::names;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Each object of a page that is stored in another version is converted for it.
const LIST_TIMEOUT: Duration = Duration::from_mins(1);
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";

type BuiltRequest = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

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
    Call(ApiError),
}

/// What Kubernetes' own migrator was request to do.
#[derive(Debug)]
pub(crate) enum MigrationLookup {
    /// There is no such migrator.
    NotServed,
    /// Nothing.
    NotFound,
    /// This.
    Found(Value),
}

/// One object of a kind.
#[derive(Clone, Copy)]
pub(crate) struct ObjectRef<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// The way to what is stored.
#[derive(Clone)]
pub(crate) struct StorageVersionsClient {
    client: Client,
    leader_guard: LeaderGuard,
}

impl StorageVersionsClient {
    /// What `client` can reach, written while `leader_guard` lasts.
    pub(crate) const fn new(client: Client, leader_guard: LeaderGuard) -> Self {
        Self { client, leader_guard }
    }

    /// The definition of a kind, or none if the API server says that there is none.
    pub(crate) async fn crd(&self, kind: &Kind) -> Result<Option<StoredCrd>, ApiError> {
        let name = kind.crd_name();
        let request = definitions().get(&name, &GetParams::default());
        let found: Option<Value> = none_if_not_found(
            operation("read", &format!("the definition {name}")).answer(self.text(request)).await,
        )?;
        Ok(found.and_then(StoredCrd::read))
    }

    /// The news that one of these definitions has changed.
    pub(crate) fn changes<'k>(&self, kinds: impl Iterator<Item = &'k Kind>) -> ChangeStream {
        let of = |kind: &Kind| {
            let api = Api::<PartialObjectMeta<CustomResourceDefinition>>::all(self.client.clone());
            notify::on_change(api, &kind.crd_name())
        };
        notify::merge(kinds.map(of).collect::<Vec<_>>())
    }

    /// A page of a consistent list of all objects of a kind: their metadata, in the hub's version.
    pub(crate) async fn page(
        &self,
        kind: &Kind,
        page_size: u32,
        token: Option<&str>,
    ) -> Result<Page, PageError> {
        let mut params = ListParams::default().limit(page_size);
        params.continue_token = token.map(ToOwned::to_owned);
        let request = objects(kind, kind.hub().name, None).list_metadata(&params);
        let what = format!("the objects of {}", kind.crd_name());
        let operation = Operation { verb: "list", what: &what, timeout: LIST_TIMEOUT };
        operation.answer(self.text(request)).await.map_err(page_error)
    }

    /// The metadata of an object, or none if there is none.
    pub(crate) async fn metadata(
        &self,
        object: ObjectRef<'_>,
    ) -> Result<Option<PartialObjectMeta>, ApiError> {
        let request = object.request().get_metadata(object.name, &GetParams::default());
        none_if_not_found(operation("read", &object.describe()).answer(self.text(request)).await)
    }

    /// A whole object in the hub's version, or none if there is none.
    pub(crate) async fn object(&self, object: ObjectRef<'_>) -> Result<Option<Value>, ApiError> {
        let request = object.request().get(object.name, &GetParams::default());
        none_if_not_found(operation("read", &object.describe()).answer(self.text(request)).await)
    }

    /// Merges a patch into an object, and answers with its metadata. The patch names the version that was read, so that
    /// it lands on this one or nowhere.
    pub(crate) async fn merge(
        &self,
        object: ObjectRef<'_>,
        patch: &Value,
    ) -> Result<PartialObjectMeta, ObjectError> {
        let request = object.request().patch_metadata(
            object.name,
            &patch_params(false),
            &Patch::Merge(patch),
        );
        self.write("write", &object.describe(), request).await
    }

    /// Whether an object could be written through this version, without writing it. The API server converts it there
    /// and back for that.
    pub(crate) async fn dry_run(
        &self,
        object: ObjectRef<'_>,
        version: &str,
        patch: &Value,
    ) -> Result<(), ObjectError> {
        let request = objects(object.kind, version, Some(object.namespace));
        let request =
            request.patch_metadata(object.name, &patch_params(true), &Patch::Merge(patch));
        let tried: PartialObjectMeta = self.write("try", &object.describe(), request).await?;
        drop(tried);
        Ok(())
    }

    /// Whether the API server would let this process write an object. A webhook's refusal looks like a missing right, and
    /// only the API server can tell them apart.
    pub(crate) async fn can_write(&self, object: ObjectRef<'_>) -> Result<bool, ApiError> {
        let body = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": {
                "verb": "patch", "group": object.kind.group, "resource": object.kind.plural(),
                "namespace": object.namespace, "name": object.name,
            } },
        });
        let request =
            Request::new(REVIEWS).create(&PostParams::default(), body.to_string().into_bytes());
        let what = format!("for the right to write {}", object.describe());
        let answer: Value = operation("ask", &what).answer(self.text(request)).await?;
        Ok(answer.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or(false))
    }

    /// Leaves the storage version alone in `storedVersions` of exactly the definition that was read.
    pub(crate) async fn trim(&self, definition: &StoredCrd) -> Result<(), ObjectError> {
        let patch = json!({
            "metadata": { "uid": definition.uid, "resourceVersion": definition.resource_version },
            "status": { "storedVersions": [definition.storage] },
        });
        let name = &definition.name;
        let request = definitions().patch_subresource(
            "status",
            name,
            &patch_params(false),
            &Patch::Merge(&patch),
        );
        let what = format!("the stored versions of the definition {name}");
        self.write::<Value>("trim", &what, request).await.map(drop)
    }

    /// What Kubernetes' own migrator was request to do.
    pub(crate) async fn migration(&self, kind: &Kind) -> Result<MigrationLookup, ApiError> {
        let name = kind.migration_name();
        let request = Request::new(MIGRATIONS).get(&name, &GetParams::default());
        let what = format!("the storageversionmigration {name}");
        match none_if_not_found(operation("read", &what).answer(self.text(request)).await) {
            Ok(Some(found)) => Ok(MigrationLookup::Found(found)),
            Ok(None) => Ok(MigrationLookup::NotFound),
            Err(error) if code(&error) == Some(404) => Ok(MigrationLookup::NotServed),
            Err(error) => Err(error),
        }
    }

    /// Asks Kubernetes' own migrator, and answers with what was made for it.
    pub(crate) async fn create_migration(&self, kind: &Kind) -> Result<Value, ObjectError> {
        let name = kind.migration_name();
        let body = json!({
            "apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
            "metadata": { "name": name },
            "spec": { "resource": { "group": kind.group, "resource": kind.plural() } },
        });
        let params = PostParams { dry_run: false, field_manager: Some(names::OPERATOR.to_owned()) };
        let request = Request::new(MIGRATIONS).create(&params, body.to_string().into_bytes());
        self.write("make", &format!("the storageversionmigration {name}"), request).await
    }

    /// Takes back exactly what was request by this object. One that is gone already is fine.
    pub(crate) async fn delete_migration(&self, kind: &Kind, uid: &str) -> Result<(), ObjectError> {
        let name = kind.migration_name();
        let exactly = Preconditions { resource_version: None, uid: Some(uid.to_owned()) };
        let params = DeleteParams::default().preconditions(exactly);
        let request = Request::new(MIGRATIONS).delete(&name, &params);
        let what = format!("the storageversionmigration {name}");
        match self.write::<Value>("delete", &what, request).await {
            Ok(_) => Ok(()),
            Err(error) if error.class() == ErrorClass::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn text(&self, request: BuiltRequest) -> kube::Result<String> {
        self.client.request_text(request.map_err(kube::Error::BuildRequest)?).await
    }

    async fn write<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        what: &str,
        request: BuiltRequest,
    ) -> Result<T, ObjectError> {
        let operation = Operation { verb, what, timeout: REQUEST_TIMEOUT };
        match self.leader_guard.run(REQUEST_TIMEOUT, operation.answer(self.text(request))).await {
            Ok(answer) => answer.map_err(ObjectError::Call),
            Err(source) => Err(ObjectError::NotLeading { verb, what: what.to_owned(), source }),
        }
    }
}

impl ObjectRef<'_> {
    fn request(&self) -> Request {
        objects(self.kind, self.kind.hub().name, Some(self.namespace))
    }

    fn describe(&self) -> String {
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

fn patch_params(dry_run: bool) -> PatchParams {
    PatchParams {
        dry_run,
        field_manager: Some(names::MIGRATION_FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

const fn operation<'a>(verb: &'static str, what: &'a str) -> Operation<'a> {
    Operation { verb, what, timeout: REQUEST_TIMEOUT }
}

/// Tells a list that was forgotten from other failures.
fn page_error(error: ApiError) -> PageError {
    match status(&error) {
        Some(status) if status.code == 410 => {
            let token = status.metadata.as_ref().and_then(|it| it.continue_.clone());
            PageError::Expired(token.filter(|it| !it.is_empty()))
        }
        Some(_) | None => PageError::Call(error),
    }
}

fn code(error: &ApiError) -> Option<u16> {
    status(error).map(|status| status.code)
}

fn status(error: &ApiError) -> Option<&Status> {
    let ApiError::Call { source, .. } = error else { return None };
    let kube::Error::Api(status) = source.as_ref() else { return None };
    Some(status)
}
