//! Estimates how much memory JSON needs as a `serde_json::Value`, before it is parsed.
//!
//! A parsed value needs far more memory than its text: `[0]` forty times its length and `{"":0}` a
//! hundred times, so the length of a body alone bounds nothing.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::mem::size_of;

use serde_json::Value;

/// The first allocation of an array has this capacity; from then on it doubles.
const MIN_ARRAY_CAPACITY: usize = 4;
/// The capacity of a B-tree node.
const NODE_CAPACITY: usize = 11;
/// Nodes that were filled in order are half empty.
const MIN_NODE_ENTRIES: usize = 6;
/// The size of a node, with its share of the parent nodes.
const NODE_BYTES: usize = NODE_CAPACITY * (size_of::<String>() + size_of::<Value>()) + 48;
/// The overhead of the allocator for each allocation.
const ALLOCATION_OVERHEAD: usize = 16;
/// The recursion limit of the parser; nothing nested deeper is ever built.
const MAX_DEPTH: usize = 128;

/// The estimated memory of `json` as a `Value`, in bytes. Invalid JSON counts as well: the parser
/// builds a part of the value before it finds the error.
#[must_use]
pub fn estimate(json: &[u8]) -> usize {
    let mut estimator =
        MemoryEstimator { total: size_of::<Value>(), stack: Vec::with_capacity(MAX_DEPTH) };
    let mut rest = json.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => estimator.string(&mut rest),
            b'{' => estimator.open(Container::Map),
            b'[' => estimator.open(Container::List),
            b'}' | b']' => estimator.close(),
            b',' => estimator.comma(),
            b' ' | b'\t' | b'\r' | b'\n' | b':' => {}
            _ => estimator.mark_non_empty(),
        }
    }
    while !estimator.stack.is_empty() {
        estimator.close();
    }
    estimator.total
}

#[derive(Clone, Copy)]
enum Container {
    Map,
    List,
}

/// An object or array that is not closed yet.
struct OpenContainer {
    container: Container,
    commas: usize,
    is_empty: bool,
}

struct MemoryEstimator {
    total: usize,
    stack: Vec<OpenContainer>,
}

impl MemoryEstimator {
    /// Counts a string whose opening quote has been read, and consumes it from `rest`.
    fn string(&mut self, rest: &mut std::slice::Iter<'_, u8>) {
        self.mark_non_empty();
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
            self.add(length.saturating_add(ALLOCATION_OVERHEAD));
        }
    }

    fn open(&mut self, container: Container) {
        self.mark_non_empty();
        if self.stack.len() < MAX_DEPTH {
            self.stack.push(OpenContainer { container, commas: 0, is_empty: true });
        }
    }

    fn close(&mut self) {
        let Some(OpenContainer { container, commas, is_empty }) = self.stack.pop() else {
            return;
        };
        if is_empty {
            return;
        }
        let entries = commas.saturating_add(1);
        self.add(match container {
            Container::List => array_bytes(entries),
            Container::Map => map_bytes(entries),
        });
    }

    fn comma(&mut self) {
        if let Some(open) = self.stack.last_mut() {
            open.commas = open.commas.saturating_add(1);
        }
    }

    fn mark_non_empty(&mut self) {
        if let Some(open) = self.stack.last_mut() {
            open.is_empty = false;
        }
    }

    fn add(&mut self, bytes: usize) {
        self.total = self.total.saturating_add(bytes);
    }
}

fn array_bytes(items: usize) -> usize {
    let capacity = items.checked_next_power_of_two().unwrap_or(items).max(MIN_ARRAY_CAPACITY);
    capacity.saturating_mul(size_of::<Value>()).saturating_add(ALLOCATION_OVERHEAD)
}

fn map_bytes(entries: usize) -> usize {
    let nodes = if entries <= NODE_CAPACITY {
        1
    } else {
        // One more for the parent nodes.
        entries.div_ceil(MIN_NODE_ENTRIES).saturating_add(1)
    };
    nodes.saturating_mul(NODE_BYTES.saturating_add(ALLOCATION_OVERHEAD))
}

#[cfg(test)]
mod tests;
