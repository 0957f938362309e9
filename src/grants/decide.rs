//! Where the operator's rights are missing, and where they are no longer needed.
//! Comes in: `Seen`. Goes out: a `Plan`: a few steps, each with its reason, and the bindings that
//! are in the way. May touch: nothing; pure. Rights are given where an object is known to be, and
//! taken only where every kind is known and none has one: what is not known never takes anything.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use super::memory::Who;
use super::seen::{Bond, Lives, Seen};
use super::shelf::Entry;
use crate::api::names;
use crate::api::namespace_access::NamespaceAccess;

/// One pass takes no more; the next one goes on.
pub(crate) const MOST_STEPS: usize = 20;

/// What to do about the bindings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    /// Namespaces with objects where a binding that is none of ours has the grant's name, each
    /// with that binding's uid.
    pub(crate) blocked: BTreeMap<String, String>,
    /// Whether there are more steps than one pass takes.
    pub(crate) more: bool,
}

/// One move in one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) namespace: String,
    pub(crate) act: Act,
    pub(crate) because: Because,
}

/// What to do in the namespace. Every write lands on exactly the binding that the decision was made
/// about, or nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Make the binding. If there is one by now the API server refuses, and nothing is lost.
    Grant,
    /// Bind the operator's account again, and only it. Repeating it changes nothing.
    Repair(Target),
    /// Delete the binding, after a last look at the namespace. If an object appears right then,
    /// the next pass grants again.
    Withdraw(Target),
}

/// A binding, as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) uid: String,
    pub(crate) version: String,
}

/// Why a step was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Because {
    /// An object is there, and no binding.
    ObjectAppeared,
    /// Someone changed whom our binding binds.
    SubjectsChanged,
    /// No object is there any more.
    LastObjectGone,
}

impl Because {
    /// The word for it, in logs and metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ObjectAppeared => "ObjectAppeared",
            Self::SubjectsChanged => "SubjectsChanged",
            Self::LastObjectGone => "LastObjectGone",
        }
    }
}

/// What to do now. As long as the bindings are not known, nothing.
pub(crate) fn decide(seen: &Seen<'_>) -> Plan {
    let mut plan = Plan::default();
    let Some(bindings) = seen.world.bindings.known() else { return plan };
    let all_rest = seen.memory.rests(&Who::Everyone, seen.now);
    for namespace in seen.world.namespaces() {
        let lives = seen.world.lives(namespace);
        let binding = bindings.get(namespace, names::NAMESPACE_ROLE_BINDING);
        if let Some(entry) = binding
            && is_in_the_way(lives, entry.what)
        {
            plan.blocked.insert(namespace.to_owned(), entry.uid.clone());
        }
        let rests = || seen.memory.rests(&Who::Namespace(namespace.to_owned()), seen.now);
        let Some((act, because)) = judge(seen.way, lives, binding) else { continue };
        if all_rest || rests() {
            continue;
        }
        if plan.steps.len() >= MOST_STEPS {
            plan.more = true;
            continue;
        }
        plan.steps.push(Step { namespace: namespace.to_owned(), act, because });
    }
    plan
}

/// What to do in one namespace.
fn judge(
    way: NamespaceAccess,
    lives: Lives,
    binding: Option<&Entry<Bond>>,
) -> Option<(Act, Because)> {
    match way {
        NamespaceAccess::Manual => return None,
        NamespaceAccess::Auto => {}
    }
    let Some(entry) = binding else {
        return match lives {
            Lives::Objects => Some((Act::Grant, Because::ObjectAppeared)),
            Lives::Nothing | Lives::Unsure => None,
        };
    };
    let Bond { ours, exact, gives: _, going } = entry.what;
    if !ours || going {
        return None;
    }
    let target = Target { uid: entry.uid.clone(), version: entry.version.clone() };
    match lives {
        _ if !exact => Some((Act::Repair(target), Because::SubjectsChanged)),
        Lives::Nothing => Some((Act::Withdraw(target), Because::LastObjectGone)),
        Lives::Objects | Lives::Unsure => None,
    }
}

/// Whether someone else's binding keeps objects waiting.
fn is_in_the_way(lives: Lives, bond: Bond) -> bool {
    lives == Lives::Objects && !bond.gives && !bond.ours
}

#[cfg(test)]
mod tests;
