//! Storage version migration: rewrites stored objects in the current storage version, so that old
//! versions can be removed from the CRDs; and stops the controllers while objects may be stored in
//! a version that this release does not know. Only the leader runs it.
//!
//! ```text
//!   observe --ObservedState--> decide --Plan--> act --> transition --Record--> report
//! ```
//!
//! Guarantees: a version leaves `storedVersions` only after every object is verified to be stored
//! in another one.

mod act;
mod controller;
mod decide;
mod managed_fields;
#[cfg(test)]
mod model;
mod observe;
mod progress_cache;
mod record;
mod report;
mod state;
mod transition;
mod version_guard;

pub(crate) use controller::StorageMigrationController;
pub(crate) use observe::recorded;
pub(crate) use record::{Phase, Record};
pub(crate) use state::{MigrationMode, multi_version_kinds};
pub(crate) use version_guard::StoredVersionGuard;
