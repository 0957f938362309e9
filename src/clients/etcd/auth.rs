//! Auth calls to a member: users, roles, and whether authentication is enabled.
//!
//! etcd reports by the gRPC code of its response what exists already and what does not.

use std::fmt;

use etcd_client::{Permission, UserAddOptions};
use tonic::Code;

use super::{EtcdError, MemberClient};

/// A password. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Password(pub(crate) String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// What somebody is response who gives a name and a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthCheck {
    /// They are known.
    Accepted,
    /// They are not.
    Rejected,
    /// Nobody is asked.
    Disabled,
}

/// What is there already is as good as made, and what is not there is nothing.
fn ignore_failed_precondition<T>(done: Result<T, EtcdError>) -> Result<Option<T>, EtcdError> {
    match done {
        Ok(it) => Ok(Some(it)),
        Err(error) if error.code() == Some(Code::FailedPrecondition) => Ok(None),
        Err(error) => Err(error),
    }
}

impl MemberClient {
    /// Whether etcd asks for users, and takes this one. It needs a quorum, and writes nothing unless the user is known.
    pub(crate) async fn authenticate(
        &self,
        user: &str,
        password: &Password,
    ) -> Result<AuthCheck, EtcdError> {
        let mut client = self.client.auth_client();
        let call = client.authenticate(user.to_owned(), password.0.clone());
        match self.within("ask whether users are asked for", call).await {
            Ok(_) => Ok(AuthCheck::Accepted),
            Err(error) => match error.code() {
                Some(Code::FailedPrecondition) => Ok(AuthCheck::Disabled),
                Some(Code::InvalidArgument) => Ok(AuthCheck::Rejected),
                Some(_) | None => Err(error),
            },
        }
    }

    /// The roles of a user; nothing if there is no such user.
    pub(crate) async fn user_roles(&self, user: &str) -> Result<Option<Vec<String>>, EtcdError> {
        let mut client = self.client.auth_client();
        let response = self.within("read a user", client.user_get(user)).await;
        Ok(ignore_failed_precondition(response)?.map(|it| it.roles().to_vec()))
    }

    /// Whether a role may do anything; nothing if there is no such role.
    pub(crate) async fn has_full_access(&self, role: &str) -> Result<Option<bool>, EtcdError> {
        let mut client = self.client.auth_client();
        let response = self.within("read a role", client.role_get(role)).await;
        Ok(ignore_failed_precondition(response)?.map(|it| !it.permissions().is_empty()))
    }

    /// Makes a user: one with a password, or one that is known by its certificate alone.
    pub(crate) async fn add_user(
        &self,
        user: &str,
        password: Option<&Password>,
    ) -> Result<(), EtcdError> {
        let mut client = self.client.auth_client();
        let (text, options) = match password {
            Some(password) => (password.0.clone(), None),
            None => (String::new(), Some(UserAddOptions::new().with_no_pwd())),
        };
        let call = client.user_add(user, text, options);
        ignore_failed_precondition(self.within("add a user", call).await).map(drop)
    }

    /// Gives a user another password.
    pub(crate) async fn set_password(
        &self,
        user: &str,
        password: &Password,
    ) -> Result<(), EtcdError> {
        let mut client = self.client.auth_client();
        let call = client.user_change_password(user, password.0.clone());
        self.within("change a password", call).await.map(drop)
    }

    /// Makes a role.
    pub(crate) async fn add_role(&self, role: &str) -> Result<(), EtcdError> {
        let mut client = self.client.auth_client();
        ignore_failed_precondition(self.within("add a role", client.role_add(role)).await).map(drop)
    }

    /// Lets a role read and write every key.
    pub(crate) async fn grant_full_access(&self, role: &str) -> Result<(), EtcdError> {
        let mut client = self.client.auth_client();
        // From the smallest key there is, and on.
        let all = Permission::read_write([0]).with_range_end([0]);
        let call = client.role_grant_permission(role, all);
        self.within("grant a permission", call).await.map(drop)
    }

    /// Gives a user a role.
    pub(crate) async fn grant_role(&self, user: &str, role: &str) -> Result<(), EtcdError> {
        let mut client = self.client.auth_client();
        self.within("grant a role", client.user_grant_role(user, role)).await.map(drop)
    }

    /// Asks for users from now on. etcd refuses if there is no root.
    pub(crate) async fn enable_auth(&self) -> Result<(), EtcdError> {
        let mut client = self.client.auth_client();
        self.within("ask for users", client.auth_enable()).await.map(drop)
    }

    /// Asks for no users any more.
    pub(crate) async fn disable_auth(&self) -> Result<(), EtcdError> {
        let mut client = self.client.auth_client();
        self.within("ask for no users", client.auth_disable()).await.map(drop)
    }
}
