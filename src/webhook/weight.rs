//! What JSON weighs once it is a tree, told before the tree is made.
//! Comes in: bytes that claim to be JSON. Goes out: about how much memory they would take as a
//! `serde_json::Value`. May touch: nothing. Pure. A tree is much heavier than its text: `[0]` takes
//! forty times its length and `{"":0}` a hundred times, so the length of a body bounds nothing.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::mem::size_of;

use serde_json::Value;

/// An array starts with room for so many, and doubles.
const FIRST_ITEMS: usize = 4;
/// The entries of a map live in nodes for so many.
const NODE_ENTRIES: usize = 11;
/// Nodes that were filled in order are half empty.
const FILLED_ENTRIES: usize = 6;
/// A node, with its share of the nodes above it.
const NODE: usize = NODE_ENTRIES * (size_of::<String>() + size_of::<Value>()) + 48;
/// Every piece of memory is a little bigger than what was asked for.
const SPARE: usize = 16;
/// The reader goes no deeper than this, so nothing below becomes a part of a tree.
const DEPTH: usize = 128;

/// About how many bytes the tree of `json` takes. What is not JSON weighs something, too: a reader
/// has built a part of the tree before it sees that.
#[must_use]
pub fn weight(json: &[u8]) -> usize {
    let mut scales = Scales { total: size_of::<Value>(), open: Vec::with_capacity(DEPTH) };
    let mut rest = json.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => scales.string(&mut rest),
            b'{' => scales.opened(Holder::Map),
            b'[' => scales.opened(Holder::List),
            b'}' | b']' => scales.closed(),
            b',' => scales.another(),
            b' ' | b'\t' | b'\r' | b'\n' | b':' => {}
            _ => scales.something(),
        }
    }
    while !scales.open.is_empty() {
        scales.closed();
    }
    scales.total
}

#[derive(Clone, Copy)]
enum Holder {
    Map,
    List,
}

/// A map or a list that is not closed yet.
struct Open {
    holder: Holder,
    commas: usize,
    is_empty: bool,
}

struct Scales {
    total: usize,
    open: Vec<Open>,
}

impl Scales {
    /// Weighs a string whose first quote is gone, and takes it off `rest`.
    fn string(&mut self, rest: &mut std::slice::Iter<'_, u8>) {
        self.something();
        let mut length = 0_usize;
        while let Some(byte) = rest.next() {
            match byte {
                b'"' => break,
                b'\\' => {
                    rest.next();
                }
                _ => {}
            }
            length = length.saturating_add(1);
        }
        if length > 0 {
            self.add(length.saturating_add(SPARE));
        }
    }

    fn opened(&mut self, holder: Holder) {
        self.something();
        if self.open.len() < DEPTH {
            self.open.push(Open { holder, commas: 0, is_empty: true });
        }
    }

    fn closed(&mut self) {
        let Some(Open { holder, commas, is_empty }) = self.open.pop() else {
            return;
        };
        if is_empty {
            return;
        }
        let entries = commas.saturating_add(1);
        self.add(match holder {
            Holder::List => list(entries),
            Holder::Map => map(entries),
        });
    }

    fn another(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.commas = open.commas.saturating_add(1);
        }
    }

    fn something(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.is_empty = false;
        }
    }

    fn add(&mut self, bytes: usize) {
        self.total = self.total.saturating_add(bytes);
    }
}

fn list(items: usize) -> usize {
    let room = items.checked_next_power_of_two().unwrap_or(items).max(FIRST_ITEMS);
    room.saturating_mul(size_of::<Value>()).saturating_add(SPARE)
}

fn map(entries: usize) -> usize {
    let nodes = if entries <= NODE_ENTRIES {
        1
    } else {
        // One more for what is above them.
        entries.div_ceil(FILLED_ENTRIES).saturating_add(1)
    };
    nodes.saturating_mul(NODE.saturating_add(SPARE))
}

#[cfg(test)]
mod tests;
