//! Who gives the operator its rights in the namespaces where its objects are.
//! Comes in: nothing. Goes out: the two ways. May touch: nothing. The wing `grants` acts on it; the
//! type stands here because the settings know it, too.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

/// Who binds the operator's account to its role in a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamespaceAccess {
    /// The operator does, where one of its objects appears, and takes it back with the last.
    #[default]
    Auto,
    /// An administrator does. The operator writes no binding and needs no right to; its objects say
    /// what is missing.
    Manual,
}
