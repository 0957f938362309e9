//! The operator's `RoleBinding` in each namespace that has its objects.
//!
//! In mode auto the binding is created with the first object and deleted with the last; in mode
//! manual an administrator creates it, and objects without access get a condition.
//!
//! ```text
//!   watch (clients::watch) --ObservedState--> decide, conditions --> act (clients::rbac), report
//! ```
//!
//! Guarantees: only bindings with the operator's label and role are written; a binding is deleted
//! only after a live list of every kind finds the namespace empty. Only the leader runs it.

mod backoff;
mod conditions;
mod controller;
mod decide;
#[cfg(test)]
mod model;
mod render;
mod state;
mod store;

pub(crate) use controller::NamespaceAccessController;
