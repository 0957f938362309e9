//! Whether etcd asks for users, whom it knows, and whether root's password is the one in the Secret.
//! Comes in: a cluster, and lines to its members. Goes out: `Auth`. May touch: `clients`. It chooses nothing. What is as it is
//! wanted is remembered for a while: the Secret of root's password is not watched, because that would need a right to all.
//! No password is kept, written down or told.

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

/// So soon it is seen that root's password was changed in its Secret, or that somebody has switched etcd by hand.
const AUTH_CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The same where no users are asked for, and shall not be.
const AUTH_DISABLED_INTERVAL: Duration = Duration::from_mins(10);
/// etcd's own words for who may do everything, as a user and as a role.
pub(crate) const ROOT: &str = "root";
/// The role that may read and write every key.
pub(crate) const APPLICATIONS: &str = "quorate-applications";
/// The key of a Secret under which a password is.
const KEY: &str = "password";
/// A user that nobody has, to find out whether anybody is asked.
const UNKNOWN_USER: &str = "quorate-nobody";

/// Why nobody knows.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthError {
    /// The Secret could not be read.
    #[error(transparent)]
    Secret(ApiError),
    /// etcd did not answer.
    #[error(transparent)]
    Etcd(EtcdError),
}

/// What is remembered of a cluster that is as it is wanted: the Secret that was wanted, and how long it may be so.
type CachedAuth = (Option<String>, Timestamp);

/// What is remembered of every cluster, by the uid of its EtcdCluster.
#[derive(Default)]
pub(crate) struct AuthObserver {
    known: Mutex<BTreeMap<String, CachedAuth>>,
}

impl AuthObserver {
    /// Whether a cluster asks for users as it should.
    pub(crate) async fn ask(
        &self,
        objects: &Objects,
        blueprint: &Blueprint<'_>,
        asked: (&EtcdProbe, &MemberClients, bool),
        now: Timestamp,
    ) -> AuthState {
        let (heard, lines, is_known) = asked;
        let Reading::Known(council) = &heard.quorum else { return AuthState::Unknown };
        // As long as the operator shows another name than its own it would lock itself out.
        let asked_for = wanted(blueprint);
        let wanted = asked_for.filter(|_| is_known);
        let is_right =
            if wanted == asked_for { AuthState::InSync } else { AuthState::OperatorNotRecognized };
        if self.is_cached(blueprint.uid, wanted, now) {
            return is_right;
        }
        let Some(line) = lines.to(&council.queried_member) else { return AuthState::Unknown };
        match look(objects, blueprint, wanted, line).await {
            Ok(AuthState::InSync) => {
                self.store(blueprint.uid, wanted, now);
                is_right
            }
            Ok(auth) => auth,
            Err(error) => {
                let (namespace, cluster) = (blueprint.namespace, blueprint.name);
                let error = error_chain(&error);
                tracing::debug!(namespace, cluster, error, "not known whether users are asked for");
                AuthState::Unknown
            }
        }
    }

    /// Whether a cluster was seen a short while ago to ask nobody who they are.
    pub(crate) fn is_auth_disabled(&self, uid: &str, now: Timestamp) -> bool {
        self.is_cached(uid, None, now)
    }

    /// Forgets a cluster that is gone, or in which something was changed.
    pub(crate) fn forget(&self, uid: &str) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    fn is_cached(&self, uid: &str, wanted: Option<&str>, now: Timestamp) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(uid).is_some_and(|(secret, until)| secret.as_deref() == wanted && now < *until)
    }

    fn store(&self, uid: &str, wanted: Option<&str>, now: Timestamp) {
        let lasts = if wanted.is_some() { AUTH_CHECK_INTERVAL } else { AUTH_DISABLED_INTERVAL };
        let lasts = SignedDuration::try_from(lasts).unwrap_or(SignedDuration::ZERO);
        let until = now.saturating_add(lasts).unwrap_or(now);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(uid.to_owned(), (wanted.map(str::to_owned), until));
    }
}

/// The Secret of root's password, if users shall be asked for. As long as anybody is taken in the clear nobody could be known
/// there.
fn wanted<'a>(blueprint: &Blueprint<'a>) -> Option<&'a str> {
    let is_closed = blueprint.client_listeners() == ClientListeners::Only(Scheme::Https);
    blueprint.spec.root_secret.as_deref().filter(|_| is_closed)
}

async fn look(
    objects: &Objects,
    blueprint: &Blueprint<'_>,
    wanted: Option<&str>,
    line: &MemberClient,
) -> Result<AuthState, AuthError> {
    let Some(secret) = wanted else {
        let nothing = Password(String::new());
        return match line.authenticate(UNKNOWN_USER, &nothing).await.map_err(AuthError::Etcd)? {
            AuthCheck::Disabled => Ok(AuthState::InSync),
            AuthCheck::Accepted | AuthCheck::Rejected => Ok(AuthState::EnabledUnexpectedly),
        };
    };
    let found = password(objects, blueprint.namespace, secret).await.map_err(AuthError::Secret)?;
    let Some(password) = found else { return Ok(AuthState::RootPasswordMissing) };
    match line.authenticate(ROOT, &password).await.map_err(AuthError::Etcd)? {
        AuthCheck::Accepted => Ok(AuthState::InSync),
        AuthCheck::Rejected => Ok(AuthState::RootPasswordMismatch),
        AuthCheck::Disabled
            if users_ready(line, blueprint.name).await.map_err(AuthError::Etcd)? =>
        {
            Ok(AuthState::UsersReady)
        }
        AuthCheck::Disabled => Ok(AuthState::UsersMissing),
    }
}

/// Whether everybody is there who must be known: root, the operator itself, and the applications.
async fn users_ready(line: &MemberClient, cluster: &str) -> Result<bool, EtcdError> {
    for user in [ROOT, names::OPERATOR] {
        let roles = line.user_roles(user).await?.unwrap_or_default();
        if !roles.iter().any(|it| it == ROOT) {
            return Ok(false);
        }
    }
    let roles = line.user_roles(&names::client_secret(cluster)).await?;
    Ok(roles.is_some_and(|it| !it.is_empty()))
}

/// The password in a Secret; nothing if there is no such Secret, or none in it.
pub(crate) async fn password(
    objects: &Objects,
    namespace: &str,
    secret: &str,
) -> Result<Option<Password>, ApiError> {
    let found = objects.get::<Secret>(namespace, secret).await?;
    let bytes = found.and_then(|it| it.data?.remove(KEY)).map(|it| it.0);
    let text = bytes.and_then(|it| String::from_utf8(it).ok()).filter(|it| !it.is_empty());
    Ok(text.map(Password))
}
