//! Pod fields as controllers read them after validation, in types of the core API.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Image, PullPolicy};
use crate::api::extract::{collection, required_ref_name, string};
use crate::api::field::Field;
use crate::api::validated::ReadError;

/// Container image. A kind without a default repository has `Option<String>`.
#[derive(Clone, Debug, PartialEq)]
pub struct ImagePull<Repository = String> {
    /// Image repository without a tag.
    pub repository: Repository,
    /// Pull policy; the default of Kubernetes if unset.
    pub policy: Option<PullPolicy>,
    /// Image pull Secrets.
    pub secrets: Vec<String>,
}

impl ImagePull<Option<String>> {
    /// Reads `spec.image` of any kind.
    pub(crate) fn read(image: Image) -> Result<Self, ReadError> {
        let Image { repository, pull_policy, pull_secrets } = image;
        let path = "spec.image.pullSecrets";
        let secrets = collection(&pull_secrets, path)?.unwrap_or_default().into_iter();
        Ok(Self {
            repository: string(&repository),
            policy: pull_policy.into_known(),
            secrets: secrets
                .map(|secret| required_ref_name(&Field::Known(secret), path))
                .collect::<Result<_, _>>()?,
        })
    }

    /// The same for a kind with a default repository.
    pub(crate) fn with_repository(self) -> Result<ImagePull, ReadError> {
        let Self { repository, policy, secrets } = self;
        let missing = ReadError { path: "spec.image.repository", expected: "a repository" };
        Ok(ImagePull { repository: repository.ok_or(missing)?, policy, secrets })
    }
}

/// Converts a value to its type in the core API. The JSON of both is the same.
pub(crate) fn to_core_type<T: Serialize + Clone, Own: DeserializeOwned>(
    field: &Field<T>,
    path: &'static str,
) -> Result<Option<Own>, ReadError> {
    let read = |block: T| serde_json::to_value(block).and_then(serde_json::from_value).ok();
    match collection(field, path)? {
        None => Ok(None),
        Some(block) => read(block).map(Some).ok_or(ReadError { path, expected: "valid in a Pod" }),
    }
}
