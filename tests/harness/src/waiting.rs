//! Waiting for an object to look as it should: with a deadline, and with what was seen when it expires.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Result, bail};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;
use quorate_cluster::wait;
use serde::de::DeserializeOwned;

use crate::diagnosis;
use crate::story::Story;

/// How long a step of a story may take, unless it says otherwise.
pub const PATIENCE: Duration = Duration::from_mins(1);

impl Story {
    /// Waits until an object is there and `look` finds nothing missing; `look` says what is.
    ///
    /// # Errors
    /// When the deadline passes: what was waited for, what was missing last, and the state of the namespace.
    pub async fn wait_for<K, T>(
        &self,
        name: &str,
        what: &str,
        deadline: Duration,
        mut look: impl FnMut(&K) -> Result<T, String>,
    ) -> Result<T>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let api = self.api::<K>();
        let kind = K::kind(&());
        self.wait_until(&format!("{kind} {name} {what}"), deadline, async || {
            match api.get_opt(name).await {
                Ok(Some(object)) => look(&object),
                Ok(None) => Err(format!("there is no {kind} {name}")),
                Err(error) => Err(format!("the API does not answer: {error}")),
            }
        })
        .await
    }

    /// Waits until `look` finds nothing missing; `look` says what is.
    ///
    /// # Errors
    /// As [`Story::wait_for`].
    pub async fn wait_until<T>(
        &self,
        what: &str,
        deadline: Duration,
        mut look: impl AsyncFnMut() -> Result<T, String>,
    ) -> Result<T> {
        let look = async || look().await.map_err(anyhow::Error::msg);
        match wait::until(what, deadline, look).await {
            Ok(found) => Ok(found),
            Err(error) => {
                let seen = diagnosis::of_namespace(&self.client, &self.namespace).await;
                Err(error.context(Expired(format!("in namespace {}:\n{seen}", self.namespace))))
            }
        }
    }

    /// Waits until a pod is Ready.
    ///
    /// # Errors
    /// As [`Story::wait_for`].
    pub async fn pod_is_ready(&self, name: &str) -> Result<Pod> {
        self.wait_for(name, "to be Ready", PATIENCE, |pod: &Pod| {
            let status = pod.status.as_ref();
            let conditions = status.and_then(|status| status.conditions.as_ref());
            let ready = conditions
                .into_iter()
                .flatten()
                .any(|it| it.type_ == "Ready" && it.status == "True");
            if ready { Ok(pod.clone()) } else { Err(format!("it is {}", phase(pod))) }
        })
        .await
    }

    /// Waits until a pod has run to its end with success.
    ///
    /// # Errors
    /// As [`Story::wait_for`]; at once if the pod failed.
    pub async fn pod_succeeds(&self, name: &str, deadline: Duration) -> Result<()> {
        let ended = self
            .wait_for(name, "to end", deadline, |pod: &Pod| match phase(pod) {
                "Succeeded" => Ok(Ok(())),
                "Failed" => Ok(Err(())),
                other => Err(format!("it is {other}")),
            })
            .await?;
        if ended.is_err() {
            bail!(
                "pod {name} failed:\n{}",
                diagnosis::of_namespace(&self.client, &self.namespace).await
            );
        }
        Ok(())
    }
}

/// In an error that has told already what there was to see.
#[derive(Debug)]
pub struct Expired(String);

impl std::fmt::Display for Expired {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// `Pending`, `Running` and so on.
#[must_use]
pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("without a phase")
}
