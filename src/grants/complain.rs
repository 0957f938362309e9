//! Which objects must say that their namespace is not granted, and which must not say so any more.
//! Comes in: `Seen`. Goes out: words to speak, a few at a time. May touch: nothing; pure. An object
//! is looked at when it has changed since it was last spoken to, and when its namespace has.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use super::memory::Who;
use super::seen::{Bond, Seen, Thing, Which};
use super::shelf::{Entry, Known};
use crate::api::names;
use crate::api::namespace_access::NamespaceAccess;

/// One pass speaks to no more objects; the next one goes on.
pub(crate) const MOST_WORDS: usize = 50;

/// What an object shall say about its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// The operator may not work here.
    NotGranted(Lack),
    /// Nothing: all is well.
    Nothing,
}

/// What is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// There is no binding.
    NoBinding,
    /// There is a binding with the grant's name, but it does not grant.
    OtherBinding,
}

/// An object and what it shall say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) which: Which,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) version: String,
    pub(crate) says: Says,
}

/// What to speak now, and whether there is more than one pass speaks.
pub(crate) fn complain(seen: &Seen<'_>) -> (Vec<Word>, bool) {
    let mut words = Vec::new();
    let Some(bindings) = seen.world.bindings.known() else { return (words, false) };
    if seen.memory.rests(&Who::Everyone, seen.now) {
        return (words, false);
    }
    for (which, known) in seen.world.known() {
        for entry in known.entries() {
            let Some(says) = shall_say(seen.way, &bindings, entry) else { continue };
            if was_told(seen, entry, says) || rests(seen, &entry.uid) {
                continue;
            }
            if words.len() >= MOST_WORDS {
                return (words, true);
            }
            words.push(word(which, entry, says));
        }
    }
    (words, false)
}

/// What an object shall say; nothing, if it need not be spoken to.
fn shall_say(
    way: NamespaceAccess,
    bindings: &Known<'_, Bond>,
    entry: &Entry<Thing>,
) -> Option<Says> {
    let lack = match bindings.get(&entry.namespace, names::NAMESPACE_ROLE_BINDING) {
        Some(binding) if binding.what.gives => {
            // The mark of another way or of another leader goes, too.
            return entry.what.marked.then_some(Says::Nothing);
        }
        Some(_) => Lack::OtherBinding,
        None => Lack::NoBinding,
    };
    match way {
        NamespaceAccess::Manual => Some(Says::NotGranted(lack)),
        // The binding comes; and without it there is no right to write to the object.
        NamespaceAccess::Auto => None,
    }
}

/// Whether it says so already. The version after our own write comes with the watch, a little late.
fn was_told(seen: &Seen<'_>, entry: &Entry<Thing>, says: Says) -> bool {
    seen.memory.told(&entry.uid).is_some_and(|told| {
        told.says == says && [&told.before, &told.after].contains(&&entry.version)
    })
}

fn rests(seen: &Seen<'_>, uid: &str) -> bool {
    seen.memory.rests(&Who::Object(uid.to_owned()), seen.now)
}

fn word(which: Which, entry: &Entry<Thing>, says: Says) -> Word {
    let Entry { namespace, name, uid, version, what: _ } = entry.clone();
    Word { which, namespace, name, uid, version, says }
}

#[cfg(test)]
mod tests;
