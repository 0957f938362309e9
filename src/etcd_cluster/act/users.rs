//! The steps about users: who is made known to etcd, and whether etcd asks who somebody is.
//! Comes in: the password in a Secret, which is read anew each time. Goes out: nothing, or why it was not done.
//! May touch: `ports`. Each call finds out what is there, so that whoever comes after a crash goes on.

use super::{Act, ActError};
use crate::api::names;
use crate::etcd_cluster::doorkeeper::{APPLICATIONS, ROOT, password};
use crate::etcd_cluster::seen::Name;
use crate::ports::etcd::users::Password;
use crate::ports::etcd::{EtcdError, Line};

impl Act<'_> {
    /// Makes everybody known who must be.
    pub(super) async fn make_users(&self) -> Result<(), ActError> {
        let password = self.password().await?;
        let application = names::client_secret(self.blueprint.name);
        self.change(async |line| {
            make_root(line, &password).await?;
            make_operator(line).await?;
            make_application(line, &application).await
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
        let gone = || ActError::Gone { doing: "read the password in", name: Name(secret.clone()) };
        found.map_err(ActError::Secret)?.ok_or_else(gone)
    }
}

async fn make_root(line: &Line, password: &Password) -> Result<(), EtcdError> {
    line.add_role(ROOT).await?;
    line.add_user(ROOT, Some(password)).await?;
    line.set_password(ROOT, password).await?;
    is_root(line, ROOT).await
}

/// etcd knows the operator by the name in its certificate. Only root may change who the members are.
async fn make_operator(line: &Line) -> Result<(), EtcdError> {
    line.add_user(names::OPERATOR, None).await?;
    is_root(line, names::OPERATOR).await
}

async fn is_root(line: &Line, user: &str) -> Result<(), EtcdError> {
    let roles = line.roles_of(user).await?.unwrap_or_default();
    if roles.iter().any(|it| it == ROOT) { Ok(()) } else { line.grant(user, ROOT).await }
}

/// What the applications may do is for others to say, as soon as there is anything: what is there is left alone.
async fn make_application(line: &Line, user: &str) -> Result<(), EtcdError> {
    if line.roles_of(user).await?.is_some_and(|it| !it.is_empty()) {
        return Ok(());
    }
    line.add_role(APPLICATIONS).await?;
    if line.may_anything(APPLICATIONS).await? != Some(true) {
        line.allow_all_keys(APPLICATIONS).await?;
    }
    line.add_user(user, None).await?;
    line.grant(user, APPLICATIONS).await
}
