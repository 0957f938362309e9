//! CRDs and stored objects: listed by page, rewritten without a change, and `storedVersions`
//! trimmed.
//!
//! Each call has a timeout. Nothing is retried here; a write is sent only while this replica leads.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    DeleteParams, GetParams, ListParams, ObjectList, PartialObjectMeta, Patch, PatchParams,
    PostParams, Preconditions,
};
use kube::core::Request;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::error::{ApiError, ErrorClass, Operation, none_if_not_found};
use super::kube::{BuiltRequest, request_text};
use super::leader_guard::LeaderGuard;
use super::notify::{self, ChangeStream};
use super::objects::{ObjectError, post_params};
use crate::api::crd::stored::StoredCrd;
use crate::api::kinds::Kind;
use crate::api::names;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Every object of a page that is stored in another version is converted.
const LIST_TIMEOUT: Duration = Duration::from_mins(1);
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";

/// A page of a list of metadata.
pub(crate) type Page = ObjectList<PartialObjectMeta>;

/// Why a page could not be listed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// The continue token has expired. The API server may send one for the list as it is now.
    #[error("the continue token has expired")]
    Expired(Option<String>),
    /// The call failed.
    #[error(transparent)]
    Call(ApiError),
}

/// The `StorageVersionMigration` of a kind.
#[derive(Debug)]
pub(crate) enum MigrationLookup {
    /// The API is not served.
    NotServed,
    /// The object does not exist.
    NotFound,
    Found(Value),
}

/// One object of a kind.
#[derive(Clone, Copy)]
pub(crate) struct ObjectRef<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// Client of CRDs, stored objects and `StorageVersionMigrations`.
#[derive(Clone)]
pub(crate) struct StorageVersionsClient {
    client: Client,
    leader_guard: LeaderGuard,
}

impl StorageVersionsClient {
    /// Writes are sent only while `leader_guard` allows.
    pub(crate) const fn new(client: Client, leader_guard: LeaderGuard) -> Self {
        Self { client, leader_guard }
    }

    /// The CRD of a kind, or none if it does not exist.
    pub(crate) async fn crd(&self, kind: &Kind) -> Result<Option<StoredCrd>, ApiError> {
        let name = kind.crd_name();
        let request = crds().get(&name, &GetParams::default());
        let what = format!("CRD {name}");
        let found: Option<Value> = none_if_not_found(
            operation("read", &what).response(request_text(&self.client, request)).await,
        )?;
        Ok(found.and_then(StoredCrd::read))
    }

    /// Notifications of changes to the CRDs of these kinds.
    pub(crate) fn changes<'k>(&self, kinds: impl Iterator<Item = &'k Kind>) -> ChangeStream {
        let on_change = |kind: &Kind| {
            let api = Api::<PartialObjectMeta<CustomResourceDefinition>>::all(self.client.clone());
            notify::on_change(api, &kind.crd_name())
        };
        notify::merge(kinds.map(on_change).collect::<Vec<_>>())
    }

    /// A page of a consistent list of all objects of a kind: their metadata, in the hub version.
    pub(crate) async fn page(
        &self,
        kind: &Kind,
        page_size: u32,
        token: Option<&str>,
    ) -> Result<Page, PageError> {
        let mut params = ListParams::default().limit(page_size);
        params.continue_token = token.map(ToOwned::to_owned);
        let request = objects(kind, kind.hub().name, None).list_metadata(&params);
        let what = format!("objects of {}", kind.crd_name());
        let operation = Operation { verb: "list", what: &what, timeout: LIST_TIMEOUT };
        operation.response(request_text(&self.client, request)).await.map_err(page_error)
    }

    /// The metadata of an object, or none if it does not exist.
    pub(crate) async fn metadata(
        &self,
        object: ObjectRef<'_>,
    ) -> Result<Option<PartialObjectMeta>, ApiError> {
        let request = object.request().get_metadata(object.name, &GetParams::default());
        none_if_not_found(
            operation("read", &object.describe())
                .response(request_text(&self.client, request))
                .await,
        )
    }

    /// A whole object in the hub version, or none if it does not exist.
    pub(crate) async fn object(&self, object: ObjectRef<'_>) -> Result<Option<Value>, ApiError> {
        let request = object.request().get(object.name, &GetParams::default());
        none_if_not_found(
            operation("read", &object.describe())
                .response(request_text(&self.client, request))
                .await,
        )
    }

    /// Merges a patch into an object, and returns its metadata. The patch contains the resource
    /// version that was read, so it applies to that version or fails.
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
        self.write("patch", &object.describe(), request).await
    }

    /// Dry-runs a write through this version. The API server converts the object to it and back.
    pub(crate) async fn dry_run(
        &self,
        object: ObjectRef<'_>,
        version: &str,
        patch: &Value,
    ) -> Result<(), ObjectError> {
        let request = objects(object.kind, version, Some(object.namespace));
        let request =
            request.patch_metadata(object.name, &patch_params(true), &Patch::Merge(patch));
        let patched: PartialObjectMeta =
            self.write("dry-run a patch of", &object.describe(), request).await?;
        drop(patched);
        Ok(())
    }

    /// Whether this process has the permission to write an object. A denial by a webhook looks like
    /// a missing permission, and only the API server can distinguish them.
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
        let what = format!("the permission to patch {}", object.describe());
        let review: Value =
            operation("check", &what).response(request_text(&self.client, request)).await?;
        Ok(review.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or(false))
    }

    /// Reduces `storedVersions` to the storage version, of exactly the CRD that was read.
    pub(crate) async fn trim(&self, crd: &StoredCrd) -> Result<(), ObjectError> {
        let patch = json!({
            "metadata": { "uid": crd.uid, "resourceVersion": crd.resource_version },
            "status": { "storedVersions": [crd.storage] },
        });
        let name = &crd.name;
        let request =
            crds().patch_subresource("status", name, &patch_params(false), &Patch::Merge(&patch));
        let what = format!("storedVersions of CRD {name}");
        self.write::<Value>("trim", &what, request).await.map(drop)
    }

    /// The `StorageVersionMigration` of a kind.
    pub(crate) async fn migration(&self, kind: &Kind) -> Result<MigrationLookup, ApiError> {
        let name = kind.migration_name();
        let request = Request::new(MIGRATIONS).get(&name, &GetParams::default());
        let what = format!("StorageVersionMigration {name}");
        match none_if_not_found(
            operation("read", &what).response(request_text(&self.client, request)).await,
        ) {
            Ok(Some(found)) => Ok(MigrationLookup::Found(found)),
            Ok(None) => Ok(MigrationLookup::NotFound),
            Err(error) if error.is_unknown_kind() => Ok(MigrationLookup::NotServed),
            Err(error) => Err(error),
        }
    }

    /// Creates the `StorageVersionMigration` of a kind, and returns it.
    pub(crate) async fn create_migration(&self, kind: &Kind) -> Result<Value, ObjectError> {
        let name = kind.migration_name();
        let body = json!({
            "apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
            "metadata": { "name": name },
            "spec": { "resource": { "group": kind.group, "resource": kind.plural() } },
        });
        let request =
            Request::new(MIGRATIONS).create(&post_params(), body.to_string().into_bytes());
        self.write("create", &format!("StorageVersionMigration {name}"), request).await
    }

    /// Deletes exactly this `StorageVersionMigration`. Success if it does not exist.
    pub(crate) async fn delete_migration(&self, kind: &Kind, uid: &str) -> Result<(), ObjectError> {
        let name = kind.migration_name();
        let preconditions = Preconditions { resource_version: None, uid: Some(uid.to_owned()) };
        let params = DeleteParams::default().preconditions(preconditions);
        let request = Request::new(MIGRATIONS).delete(&name, &params);
        let what = format!("StorageVersionMigration {name}");
        match self.write::<Value>("delete", &what, request).await {
            Ok(_) => Ok(()),
            Err(error) if error.class() == ErrorClass::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn write<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        what: &str,
        request: BuiltRequest,
    ) -> Result<T, ObjectError> {
        let operation = Operation { verb, what, timeout: REQUEST_TIMEOUT };
        match self
            .leader_guard
            .run(REQUEST_TIMEOUT, operation.response(request_text(&self.client, request)))
            .await
        {
            Ok(response) => response.map_err(ObjectError::Call),
            Err(source) => Err(ObjectError::NotLeading { verb, what: what.to_owned(), source }),
        }
    }
}

impl ObjectRef<'_> {
    fn request(&self) -> Request {
        objects(self.kind, self.kind.hub().name, Some(self.namespace))
    }

    fn describe(&self) -> String {
        format!("{} {}/{}", self.kind.name, self.namespace, self.name)
    }
}

fn crds() -> Request {
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

fn page_error(error: ApiError) -> PageError {
    if error.is_expired() {
        PageError::Expired(error.continue_token())
    } else {
        PageError::Call(error)
    }
}
