//! What is handed on to pods, as controllers see it.
//! Comes in: blocks that have passed the checks. Goes out: closed types, and Kubernetes' own.
//! May touch: the blocks of `pod`, and Kubernetes' own types for pods.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Image, PullPolicy};
use crate::api::checked::Unread;
use crate::api::field::Field;
use crate::api::plain::{all_of, some_name, text};

/// Where an image comes from. A kind without a repository of its own has `Option<String>`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pull<Repository = String> {
    /// The repository, without a tag.
    pub repository: Repository,
    /// When to pull; Kubernetes' own rule if nothing was said.
    pub policy: Option<PullPolicy>,
    /// Secrets for the registry.
    pub secrets: Vec<String>,
}

impl Pull<Option<String>> {
    /// What the block `spec.image` of any kind says.
    pub(crate) fn read(image: Image) -> Result<Self, Unread> {
        let Image { repository, pull_policy, pull_secrets } = image;
        let path = "spec.image.pullSecrets";
        let secrets = all_of(&pull_secrets, path)?.unwrap_or_default().into_iter();
        Ok(Self {
            repository: text(&repository),
            policy: pull_policy.into_known(),
            secrets: secrets
                .map(|secret| some_name(&Field::Known(secret), path))
                .collect::<Result<_, _>>()?,
        })
    }

    /// The same of a kind whose image has a repository without a word.
    pub(crate) fn named(self) -> Result<Pull, Unread> {
        let Self { repository, policy, secrets } = self;
        let missing = Unread { path: "spec.image.repository", wanted: "a repository" };
        Ok(Pull { repository: repository.ok_or(missing)?, policy, secrets })
    }
}

/// A block in Kubernetes' own types. Field for field it is the same JSON.
pub(crate) fn as_pods_have_it<T: Serialize + Clone, Own: DeserializeOwned>(
    field: &Field<T>,
    path: &'static str,
) -> Result<Option<Own>, Unread> {
    let read = |block: T| serde_json::to_value(block).and_then(serde_json::from_value).ok();
    match all_of(field, path)? {
        None => Ok(None),
        Some(block) => read(block).map(Some).ok_or(Unread { path, wanted: "as a Pod has it" }),
    }
}
