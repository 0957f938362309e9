//! Observes authentication: whether it is enabled, which users exist, and whether the root password
//! is that of the Secret. A cluster that is in sync is cached for a while: the Secret is not
//! watched, because that would need permission to read all Secrets. No password is cached, logged
//! or reported.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;

use crate::api::names;
use crate::clients::error::ApiError;
use crate::clients::etcd::auth::{AuthCheck, Password};
use crate::clients::etcd::{EtcdError, MemberClient};
use crate::clients::objects::Objects;
use crate::etcd_cluster::observe::MemberClients;
use crate::etcd_cluster::observe::etcd::EtcdProbe;
use crate::etcd_cluster::render::Blueprint;
use crate::etcd_cluster::state::{AuthState, Reading};
use crate::etcd_cluster::transport::{ClientListeners, Scheme};
use crate::telemetry::error_chain;

/// Between two checks for a changed root password or authentication that was switched by hand.
const AUTH_CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The same while authentication is disabled and should be.
const AUTH_DISABLED_INTERVAL: Duration = Duration::from_mins(10);
/// The user and the role of etcd with all permissions.
pub(crate) const ROOT: &str = "root";
/// The role that may read and write every key.
pub(crate) const APPLICATIONS: &str = "quorate-applications";
/// The key of the password in a Secret.
const KEY: &str = "password";
/// A user that does not exist: whether it is rejected shows whether authentication is enabled.
const PROBE_USER: &str = "quorate-auth-probe";

/// Why the state of authentication is unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthError {
    /// The Secret could not be read.
    #[error(transparent)]
    Secret(ApiError),
    /// A call to etcd failed.
    #[error(transparent)]
    Etcd(EtcdError),
}

/// A cluster that was in sync: the Secret of the root password, and how long that counts.
type CachedAuth = (Option<String>, Timestamp);

/// Observes authentication. Caches clusters that are in sync, by the uid of the EtcdCluster.
#[derive(Default)]
pub(crate) struct AuthObserver {
    cache: Mutex<BTreeMap<String, CachedAuth>>,
}

impl AuthObserver {
    /// Compares the authentication of a cluster with its spec.
    pub(crate) async fn observe(
        &self,
        objects: &Objects,
        blueprint: &Blueprint<'_>,
        observed: (&EtcdProbe, &MemberClients, bool),
        now: Timestamp,
    ) -> AuthState {
        let (probe, clients, is_recognized) = observed;
        let Reading::Known(quorum) = &probe.quorum else { return AuthState::Unknown };
        // With a certificate of another common name the operator would lock itself out.
        let requested = root_secret(blueprint);
        let desired = requested.filter(|_| is_recognized);
        let in_sync =
            if desired == requested { AuthState::InSync } else { AuthState::OperatorNotRecognized };
        if self.is_cached(blueprint.uid, desired, now) {
            return in_sync;
        }
        let Some(client) = clients.to(&quorum.queried_member) else { return AuthState::Unknown };
        match compare(objects, blueprint, desired, client).await {
            Ok(AuthState::InSync) => {
                self.store(blueprint.uid, desired, now);
                in_sync
            }
            Ok(auth) => auth,
            Err(error) => {
                let (namespace, cluster) = (blueprint.namespace, blueprint.name);
                let error = error_chain(&error);
                tracing::debug!(namespace, cluster, error, "failed to observe authentication");
                AuthState::Unknown
            }
        }
    }

    /// Whether authentication was disabled, and should be, when it was last observed.
    pub(crate) fn is_auth_disabled(&self, uid: &str, now: Timestamp) -> bool {
        self.is_cached(uid, None, now)
    }

    /// Evicts a cluster that was deleted or changed.
    pub(crate) fn evict(&self, uid: &str) {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    fn is_cached(&self, uid: &str, desired: Option<&str>, now: Timestamp) -> bool {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.get(uid).is_some_and(|(secret, until)| secret.as_deref() == desired && now < *until)
    }

    fn store(&self, uid: &str, desired: Option<&str>, now: Timestamp) {
        let interval = if desired.is_some() { AUTH_CHECK_INTERVAL } else { AUTH_DISABLED_INTERVAL };
        let interval = SignedDuration::try_from(interval).unwrap_or(SignedDuration::ZERO);
        let until = now.saturating_add(interval).unwrap_or(now);
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.insert(uid.to_owned(), (desired.map(str::to_owned), until));
    }
}

/// The Secret of the root password if authentication is requested. While plaintext connections are
/// accepted, certificates cannot identify clients, so authentication stays disabled.
fn root_secret<'a>(blueprint: &Blueprint<'a>) -> Option<&'a str> {
    let is_tls_only = blueprint.client_listeners() == ClientListeners::Only(Scheme::Https);
    blueprint.spec.root_secret.as_deref().filter(|_| is_tls_only)
}

async fn compare(
    objects: &Objects,
    blueprint: &Blueprint<'_>,
    desired: Option<&str>,
    client: &MemberClient,
) -> Result<AuthState, AuthError> {
    let Some(secret) = desired else {
        let empty = Password(String::new());
        return match client.authenticate(PROBE_USER, &empty).await.map_err(AuthError::Etcd)? {
            AuthCheck::Disabled => Ok(AuthState::InSync),
            AuthCheck::Accepted | AuthCheck::Rejected => Ok(AuthState::EnabledUnexpectedly),
        };
    };
    let found = password(objects, blueprint.namespace, secret).await.map_err(AuthError::Secret)?;
    let Some(password) = found else { return Ok(AuthState::RootPasswordMissing) };
    match client.authenticate(ROOT, &password).await.map_err(AuthError::Etcd)? {
        AuthCheck::Accepted => Ok(AuthState::InSync),
        AuthCheck::Rejected => Ok(AuthState::RootPasswordMismatch),
        AuthCheck::Disabled
            if users_ready(client, blueprint.name).await.map_err(AuthError::Etcd)? =>
        {
            Ok(AuthState::UsersReady)
        }
        AuthCheck::Disabled => Ok(AuthState::UsersMissing),
    }
}

/// Whether all users exist: root, the operator and the applications.
async fn users_ready(client: &MemberClient, cluster: &str) -> Result<bool, EtcdError> {
    for user in [ROOT, names::OPERATOR] {
        let roles = client.user_roles(user).await?.unwrap_or_default();
        if !roles.iter().any(|role| role == ROOT) {
            return Ok(false);
        }
    }
    let roles = client.user_roles(&names::client_secret(cluster)).await?;
    Ok(roles.is_some_and(|roles| !roles.is_empty()))
}

/// The password in a Secret; none if the Secret or the key does not exist.
pub(crate) async fn password(
    objects: &Objects,
    namespace: &str,
    secret: &str,
) -> Result<Option<Password>, ApiError> {
    let found = objects.get::<Secret>(namespace, secret).await?;
    let bytes = found.and_then(|secret| secret.data?.remove(KEY)).map(|bytes| bytes.0);
    let password = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    Ok(password.filter(|password| !password.is_empty()).map(Password))
}
