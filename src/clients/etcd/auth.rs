//! Auth calls to a member: users, roles, and whether authentication is enabled.
//!
//! etcd reports by the gRPC code of its response what exists already and what does not.

use std::fmt;

use etcd_client::{Permission, UserAddOptions};
use tonic::Code;

use super::{EtcdError, MemberClient};

/// A password. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Password(pub(crate) String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// The response to a name and password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthCheck {
    /// The user exists and the password is correct.
    Accepted,
    /// The user does not exist, or the password is wrong.
    Rejected,
    /// Authentication is not enabled.
    Disabled,
}

/// None for `FailedPrecondition`: the object to create exists, or the object to read does not.
fn ignore_failed_precondition<T>(response: Result<T, EtcdError>) -> Result<Option<T>, EtcdError> {
    match response {
        Ok(response) => Ok(Some(response)),
        Err(error) if error.code() == Some(Code::FailedPrecondition) => Ok(None),
        Err(error) => Err(error),
    }
}

impl MemberClient {
    /// Whether authentication is enabled and accepts this user. Needs a quorum, and writes nothing
    /// unless the user is accepted.
    pub(crate) async fn authenticate(
        &self,
        user: &str,
        password: &Password,
    ) -> Result<AuthCheck, EtcdError> {
        let mut client = self.client.auth_client();
        let call = client.authenticate(user.to_owned(), password.0.clone());
        match self.within("authenticate", call).await {
            Ok(_) => Ok(AuthCheck::Accepted),
            Err(error) => match error.code() {
                Some(Code::FailedPrecondition) => Ok(AuthCheck::Disabled),
                Some(Code::InvalidArgument) => Ok(AuthCheck::Rejected),
                Some(_) | None => Err(error),
            },
        }
    }

    /// The roles of a user; none if the user does not exist.
    pub(crate) async fn user_roles(&self, user: &str) -> Result<Option<Vec<String>>, EtcdError> {
        let mut client = self.client.auth_client();
        let response = self.within("read a user", client.user_get(user)).await;
        Ok(ignore_failed_precondition(response)?.map(|user| user.roles().to_vec()))
    }

    /// Whether a role has any permission; none if the role does not exist.
    pub(crate) async fn has_full_access(&self, role: &str) -> Result<Option<bool>, EtcdError> {
        let mut client = self.client.auth_client();
        let response = self.within("read a role", client.role_get(role)).await;
        Ok(ignore_failed_precondition(response)?.map(|role| !role.permissions().is_empty()))
    }

    /// Creates a user, with a password or for client certificates only.
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

    /// Changes the password of a user.
    pub(crate) async fn set_password(
        &self,
        user: &str,
        password: &Password,
    ) -> Result<(), EtcdError> {
        let mut client = self.client.auth_client();
        let call = client.user_change_password(user, password.0.clone());
        self.within("change a password", call).await.map(drop)
    }

    /// Creates a role.
    pub(crate) async fn add_role(&self, role: &str) -> Result<(), EtcdError> {
        let mut client = self.client.auth_client();
        ignore_failed_precondition(self.within("add a role", client.role_add(role)).await).map(drop)
    }

    /// Grants a role read and write access to every key.
    pub(crate) async fn grant_full_access(&self, role: &str) -> Result<(), EtcdError> {
        let mut client = self.client.auth_client();
        // From the smallest key, without an end.
        let all = Permission::read_write([0]).with_range_end([0]);
        let call = client.role_grant_permission(role, all);
        self.within("grant a permission", call).await.map(drop)
    }

    /// Grants a role to a user.
    pub(crate) async fn grant_role(&self, user: &str, role: &str) -> Result<(), EtcdError> {
        let mut client = self.client.auth_client();
        self.within("grant a role", client.user_grant_role(user, role)).await.map(drop)
    }

    /// Enables authentication. etcd rejects the call without a root user.
    pub(crate) async fn enable_auth(&self) -> Result<(), EtcdError> {
        let mut client = self.client.auth_client();
        self.within("enable authentication", client.auth_enable()).await.map(drop)
    }

    /// Disables authentication.
    pub(crate) async fn disable_auth(&self) -> Result<(), EtcdError> {
        let mut client = self.client.auth_client();
        self.within("disable authentication", client.auth_disable()).await.map(drop)
    }
}
