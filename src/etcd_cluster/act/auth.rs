//! The steps about users: who is made known to etcd, and whether etcd asks who somebody is.
//! Comes in: the password in a Secret, which is read anew each time. Goes out: nothing, or why it was not done.
//! May touch: `clients`. Each call finds out what is there, so that whoever comes after a crash goes on.

use super::{ActError, Executor};
use crate::api::names;
use crate::clients::etcd::auth::Password;
use crate::clients::etcd::{EtcdError, MemberClient};
use crate::etcd_cluster::observe::auth::{APPLICATIONS, ROOT, password};
use crate::etcd_cluster::state::MemberName;

impl Executor<'_> {
    /// Makes everybody known who must be.
    pub(super) async fn ensure_users(&self) -> Result<(), ActError> {
        let password = self.password().await?;
        let application = names::client_secret(self.blueprint.name);
        self.change(async |line| {
            ensure_root(line, &password).await?;
            ensure_operator(line).await?;
            ensure_application(line, &application).await
        })
        .await
    }

    /// Asks for users from now on. Nobody can say whether a password is right before that, so it is set once more.
    pub(super) async fn enable_auth(&self) -> Result<(), ActError> {
        let password = self.password().await?;
        self.change(async |line| {
            line.set_password(ROOT, &password).await?;
            line.enable_auth().await
        })
        .await
    }

    async fn password(&self) -> Result<Password, ActError> {
        let secret = self.blueprint.spec.root_secret.clone().unwrap_or_default();
        let found = password(self.objects, self.blueprint.namespace, &secret).await;
        let not_found = || ActError::NotFound {
            action: "read the password in",
            name: MemberName(secret.clone()),
        };
        found.map_err(ActError::Secret)?.ok_or_else(not_found)
    }
}

async fn ensure_root(line: &MemberClient, password: &Password) -> Result<(), EtcdError> {
    line.add_role(ROOT).await?;
    line.add_user(ROOT, Some(password)).await?;
    line.set_password(ROOT, password).await?;
    grant_root(line, ROOT).await
}

/// etcd knows the operator by the name in its certificate. Only root may change who the members are.
async fn ensure_operator(line: &MemberClient) -> Result<(), EtcdError> {
    line.add_user(names::OPERATOR, None).await?;
    grant_root(line, names::OPERATOR).await
}

async fn grant_root(line: &MemberClient, user: &str) -> Result<(), EtcdError> {
    let roles = line.user_roles(user).await?.unwrap_or_default();
    if roles.iter().any(|it| it == ROOT) { Ok(()) } else { line.grant_role(user, ROOT).await }
}

/// What the applications may do is for others to say, as soon as there is anything: what is there is left alone.
async fn ensure_application(line: &MemberClient, user: &str) -> Result<(), EtcdError> {
    if line.user_roles(user).await?.is_some_and(|it| !it.is_empty()) {
        return Ok(());
    }
    line.add_role(APPLICATIONS).await?;
    if line.has_full_access(APPLICATIONS).await? != Some(true) {
        line.grant_full_access(APPLICATIONS).await?;
    }
    line.add_user(user, None).await?;
    line.grant_role(user, APPLICATIONS).await
}
