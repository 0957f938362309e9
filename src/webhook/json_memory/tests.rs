//! The estimate against parsed values. Strings and arrays report their capacity; the nodes of maps
//! cannot be inspected, so their number is the minimum for the entries.
#![allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// The minimum heap memory of a value.
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
            let nodes = map.len().div_ceil(NODE_CAPACITY);
            nodes * NODE_CAPACITY * entry + keys + map.values().map(heap).sum::<usize>()
        }
    }
}

fn values() -> impl Strategy<Value = Value> {
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
    fn no_value_needs_twice_the_estimate(value in values(), pretty in any::<bool>()) {
        let encode = if pretty { serde_json::to_vec_pretty } else { serde_json::to_vec };
        let text = encode(&value).unwrap();
        let read: Value = serde_json::from_slice(&text).unwrap();
        let (estimated, actual) = (estimate(&text), heap(&read));
        prop_assert!(estimated >= actual / 2, "{estimated} bytes estimated, {actual} bytes used");
        // The estimate is not so high that legitimate objects are rejected.
        let max = 3 * actual + 8 * text.len() + 64;
        prop_assert!(estimated <= max, "{estimated} bytes estimated, {actual} bytes used");
    }

    #[test]
    fn any_bytes_have_an_estimate(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(estimate(&bytes) >= size_of::<Value>());
    }
}

#[test]
fn hostile_documents_are_estimated_within_bounds() {
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
        let (estimated, actual) = (estimate(text.as_bytes()), heap(&read));
        assert!(estimated >= actual, "{name}: {estimated} bytes estimated, {actual} bytes used");
        assert!(
            estimated <= 4 * actual,
            "{name}: {estimated} bytes estimated, {actual} bytes used"
        );
    }
}

fn keys(count: usize) -> String {
    let keys: Vec<String> = (0..count).map(|at| format!("\"k{at:06}\":0,")).collect();
    keys.concat()
}

#[test]
fn truncated_json_counts_what_was_read() {
    let open = "[0,".repeat(100);
    assert!(estimate(open.as_bytes()) >= 100 * MIN_ARRAY_CAPACITY * size_of::<Value>());
    assert!(estimate(b"\"never closed \\") > size_of::<Value>());
    // Nothing is built beyond the recursion limit of the parser.
    assert!(estimate("[".repeat(1_000_000).as_bytes()) < 100_000);
}
