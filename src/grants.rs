//! The operator's rights in the namespaces where its objects are: a binding comes with the first
//! object and goes with the last, or, if an administrator binds, objects say what is missing.
//!
//! ```text
//!   look (clients::watch) --Seen--> decide, complain --> do (clients::rbac) --> tell (log, metrics)
//! ```
//!
//! Comes in: what watches tell of our kinds and of the bindings. Goes out: bindings, conditions.
//! May touch: `api`, `clients`, `telemetry`; only `steward` does. Only the leader runs it.

mod complain;
mod decide;
mod memory;
mod render;
mod seen;
mod shelf;
mod steward;
#[cfg(test)]
mod walk;

pub(crate) use steward::Steward;
