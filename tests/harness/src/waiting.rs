//! Waiting for a state, with a timeout that reports the last observation and the state of the
//! namespace.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Result, bail};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;
use quorate_cluster::wait;
use serde::de::DeserializeOwned;

use crate::context::TestContext;
use crate::diagnosis;

/// The timeout of one step of a test, unless the test sets another.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

impl TestContext {
    /// Waits until an object exists and `check` accepts it; `check` returns what is missing.
    ///
    /// # Errors
    /// After the timeout: what was waited for, what was missing last, and the state of the
    /// namespace.
    pub async fn wait_for<K, T>(
        &self,
        name: &str,
        what: &str,
        timeout: Duration,
        mut check: impl FnMut(&K) -> Result<T, String>,
    ) -> Result<T>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let api = self.api::<K>();
        let kind = K::kind(&());
        self.wait_until(&format!("{kind} {name} {what}"), timeout, async || {
            match api.get_opt(name).await {
                Ok(Some(object)) => check(&object),
                Ok(None) => Err(format!("{kind} {name} does not exist")),
                Err(error) => Err(format!("the API request failed: {error}")),
            }
        })
        .await
    }

    /// Waits until `check` succeeds; `check` returns what is missing.
    ///
    /// # Errors
    /// As [`TestContext::wait_for`].
    pub async fn wait_until<T>(
        &self,
        what: &str,
        timeout: Duration,
        mut check: impl AsyncFnMut() -> Result<T, String>,
    ) -> Result<T> {
        let check = async || check().await.map_err(anyhow::Error::msg);
        match wait::until(what, timeout, check).await {
            Ok(found) => Ok(found),
            Err(error) => {
                let state = diagnosis::describe_namespace(&self.client, &self.namespace).await;
                let state = format!("in namespace {}:\n{state}", self.namespace);
                Err(error.context(DeadlineExceeded(state)))
            }
        }
    }

    /// Waits until a pod is Ready.
    ///
    /// # Errors
    /// As [`TestContext::wait_for`].
    pub async fn wait_pod_ready(&self, name: &str) -> Result<Pod> {
        self.wait_for(name, "to be Ready", DEFAULT_TIMEOUT, |pod: &Pod| {
            let status = pod.status.as_ref();
            let conditions = status.and_then(|status| status.conditions.as_ref());
            let ready = conditions
                .into_iter()
                .flatten()
                .any(|condition| condition.type_ == "Ready" && condition.status == "True");
            if ready { Ok(pod.clone()) } else { Err(format!("the phase is {}", phase(pod))) }
        })
        .await
    }

    /// Waits until a pod has succeeded.
    ///
    /// # Errors
    /// As [`TestContext::wait_for`]; at once if the pod fails.
    pub async fn wait_pod_succeeded(&self, name: &str, timeout: Duration) -> Result<()> {
        let finished = self
            .wait_for(name, "to finish", timeout, |pod: &Pod| match phase(pod) {
                "Succeeded" => Ok(Ok(())),
                "Failed" => Ok(Err(())),
                other => Err(format!("the phase is {other}")),
            })
            .await?;
        if finished.is_err() {
            bail!(
                "pod {name} failed:\n{}",
                diagnosis::describe_namespace(&self.client, &self.namespace).await
            );
        }
        Ok(())
    }
}

/// The context of a timeout error, which already contains the state of the namespace.
#[derive(Debug)]
pub struct DeadlineExceeded(String);

impl std::fmt::Display for DeadlineExceeded {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// `Pending`, `Running` and so on.
#[must_use]
pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("without a phase")
}
