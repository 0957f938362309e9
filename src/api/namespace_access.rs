//! How the operator gets its `RoleBinding` in the namespaces with its objects.
//!
//! The type is here because both the settings and the controller need it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

/// Mode of namespace access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamespaceAccess {
    /// The operator creates the binding with the first object and deletes it with the last.
    #[default]
    Auto,
    /// An administrator creates the binding. The operator writes none and needs no permission to;
    /// objects without access get a condition.
    Manual,
}
