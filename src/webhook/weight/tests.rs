//! The scales against real trees. The memory of strings and arrays is what they say themselves;
//! the nodes of maps cannot be asked, so their number is the fewest that the entries fit into.
#![allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// The heap that a tree takes at the least.
fn heap(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.capacity(),
        Value::Array(items) => {
            items.capacity() * size_of::<Value>() + items.iter().map(heap).sum::<usize>()
        }
        Value::Object(map) => {
            let keys: usize = map.keys().map(String::capacity).sum();
            let entry = size_of::<String>() + size_of::<Value>();
            let nodes = map.len().div_ceil(NODE_ENTRIES);
            nodes * NODE_ENTRIES * entry + keys + map.values().map(heap).sum::<usize>()
        }
    }
}

fn trees() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
        "[\"\\\\\u{1}{}\\[\\],:]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 400, 30, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..30).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,8}", inner, 0..30)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_tree_weighs_twice_what_the_scales_say(tree in trees(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_vec_pretty(&tree) } else { serde_json::to_vec(&tree) };
        let text = text.unwrap();
        let read: Value = serde_json::from_slice(&text).unwrap();
        let (said, taken) = (weight(&text), heap(&read));
        prop_assert!(said >= taken / 2, "{said} for a tree of {taken}");
        // And what is let in is not refused for nothing.
        prop_assert!(said <= 3 * taken + 8 * text.len() + 64, "{said} for a tree of {taken}");
    }

    #[test]
    fn any_bytes_can_be_weighed(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(weight(&bytes) >= size_of::<Value>());
    }
}

#[test]
fn hostile_shapes_are_as_heavy_as_they_are() {
    let many = 20_000;
    for (name, text) in [
        ("numbers", format!("[{}0]", "0,".repeat(many))),
        ("lists of one", format!("[{}0]", "[0],".repeat(many))),
        ("maps of one", format!("[{}0]", "{\"\":0},".repeat(many))),
        ("empty maps", format!("[{}0]", "{},".repeat(many))),
        ("empty strings", format!("[{}0]", "\"\",".repeat(many))),
        ("one big map", format!("{{{}\"z\":0}}", keys(many))),
        ("escapes", format!("[{}0]", "\"\\\"\",".repeat(many))),
    ] {
        let read: Value = serde_json::from_str(&text).unwrap();
        let (said, taken) = (weight(text.as_bytes()), heap(&read));
        assert!(said >= taken, "{name}: {said} for a tree of {taken}");
        assert!(said <= 4 * taken, "{name}: {said} for a tree of {taken}");
    }
}

fn keys(count: usize) -> String {
    let keys: Vec<String> = (0..count).map(|at| format!("\"k{at:06}\":0,")).collect();
    keys.concat()
}

#[test]
fn what_ends_in_the_middle_weighs_what_was_there() {
    let open = "[0,".repeat(100);
    assert!(weight(open.as_bytes()) >= 100 * FIRST_ITEMS * size_of::<Value>());
    assert!(weight(b"\"never closed \\") > size_of::<Value>());
    // Nothing is built below the reader's depth.
    assert!(weight("[".repeat(1_000_000).as_bytes()) < 100_000);
}
