//! The steps of authentication: users, roles, and whether etcd authenticates.
//!
//! Crash safety: each call reads what exists, so the next reconciliation continues after a crash.

use super::{ActError, Executor};
use crate::api::names;
use crate::clients::etcd::auth::Password;
use crate::clients::etcd::{EtcdError, MemberClient};
use crate::etcd_cluster::observe::auth::{APPLICATIONS, ROOT, password};
use crate::etcd_cluster::state::MemberName;

impl Executor<'_> {
    /// Creates the users root, operator and applications with their roles.
    pub(super) async fn ensure_users(&self) -> Result<(), ActError> {
        let password = self.password().await?;
        let application = names::client_secret(self.blueprint.name);
        self.change(async |client| {
            ensure_root(client, &password).await?;
            ensure_operator(client).await?;
            ensure_application(client, &application).await
        })
        .await
    }

    /// Enables authentication. Before that etcd cannot check a password, so the password is set
    /// again.
    pub(super) async fn enable_auth(&self) -> Result<(), ActError> {
        let password = self.password().await?;
        self.change(async |client| {
            client.set_password(ROOT, &password).await?;
            client.enable_auth().await
        })
        .await
    }

    async fn password(&self) -> Result<Password, ActError> {
        let secret = self.blueprint.spec.root_secret.clone().unwrap_or_default();
        let found = password(self.objects, self.blueprint.namespace, &secret).await;
        let not_found = || ActError::NotFound {
            action: "read the root password in Secret",
            name: MemberName(secret.clone()),
        };
        found.map_err(ActError::Secret)?.ok_or_else(not_found)
    }
}

async fn ensure_root(client: &MemberClient, password: &Password) -> Result<(), EtcdError> {
    client.add_role(ROOT).await?;
    client.add_user(ROOT, Some(password)).await?;
    client.set_password(ROOT, password).await?;
    grant_root(client, ROOT).await
}

/// etcd identifies the operator by the common name of its certificate. Only root may change
/// members.
async fn ensure_operator(client: &MemberClient) -> Result<(), EtcdError> {
    client.add_user(names::OPERATOR, None).await?;
    grant_root(client, names::OPERATOR).await
}

async fn grant_root(client: &MemberClient, user: &str) -> Result<(), EtcdError> {
    let roles = client.user_roles(user).await?.unwrap_or_default();
    if roles.iter().any(|role| role == ROOT) { Ok(()) } else { client.grant_role(user, ROOT).await }
}

/// A user of the applications that has a role is not changed: administrators may restrict it.
async fn ensure_application(client: &MemberClient, user: &str) -> Result<(), EtcdError> {
    if client.user_roles(user).await?.is_some_and(|roles| !roles.is_empty()) {
        return Ok(());
    }
    client.add_role(APPLICATIONS).await?;
    if client.has_full_access(APPLICATIONS).await? != Some(true) {
        client.grant_full_access(APPLICATIONS).await?;
    }
    client.add_user(user, None).await?;
    client.grant_role(user, APPLICATIONS).await
}
