//! Difference between two JSON objects as JSON pointers, and its application.
//! Lists are compared as a whole: their items have no identity.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use serde_json::Value;

/// Changes by JSON pointer: a value to set, or `None` to remove the key.
pub(super) type Diff = BTreeMap<String, Option<Value>>;

/// The changes from `actual` to `desired`, with pointers that begin with `root`.
pub(super) fn diff(desired: &Value, actual: &Value, root: &str) -> Diff {
    let mut changes = Diff::new();
    collect(desired, actual, root.to_owned(), &mut changes);
    changes
}

fn collect(desired: &Value, actual: &Value, at: String, changes: &mut Diff) {
    let (Value::Object(desired_keys), Value::Object(actual_keys)) = (desired, actual) else {
        if desired != actual {
            changes.insert(at, Some(desired.clone()));
        }
        return;
    };
    for (key, desired) in desired_keys {
        let below = format!("{at}/{}", escape(key));
        match actual_keys.get(key) {
            Some(actual) => collect(desired, actual, below, changes),
            None => {
                changes.insert(below, Some(desired.clone()));
            }
        }
    }
    for key in actual_keys.keys().filter(|key| !desired_keys.contains_key(*key)) {
        changes.insert(format!("{at}/{}", escape(key)), None);
    }
}

/// Applies one change, if its parent object exists. If a user has removed the parent, a part of it
/// would be a setting that no user wrote.
pub(super) fn apply(target: &mut Value, pointer: &str, value: Option<&Value>) {
    let mut steps: Vec<String> = pointer.split('/').skip(1).map(unescape).collect();
    let Some(last) = steps.pop() else { return };
    let mut here = target;
    for step in steps {
        let Some(next) = here.get_mut(&step) else { return };
        here = next;
    }
    let Value::Object(object) = here else { return };
    match value {
        Some(value) => object.insert(last, value.clone()),
        None => object.remove(&last),
    };
}

/// All values except non-empty objects, by pointer.
pub(super) fn leaves(value: &Value) -> BTreeMap<String, &Value> {
    fn collect<'a>(value: &'a Value, at: String, found: &mut BTreeMap<String, &'a Value>) {
        match value.as_object().filter(|object| !object.is_empty()) {
            None => {
                found.insert(at, value);
            }
            Some(object) => {
                for (key, value) in object {
                    collect(value, format!("{at}/{}", escape(key)), found);
                }
            }
        }
    }
    let mut found = BTreeMap::new();
    collect(value, String::new(), &mut found);
    found
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn applied_diff_is_empty() {
        let desired = json!({"spec": {"a": 1, "b": {"c": null}, "d/e~": [1, 2], "h": {}}});
        let actual = json!({"spec": {"a": 2, "b": {"x": 0}, "g": true, "h": {"i": 1}}});
        let mut applied = actual.clone();
        for (pointer, value) in diff(&desired, &actual, "") {
            apply(&mut applied, &pointer, value.as_ref());
        }
        assert_eq!(applied, desired);
        assert!(diff(&desired, &applied, "").is_empty());
    }

    #[test]
    fn nothing_is_written_below_a_value_that_is_not_an_object() {
        let mut target = json!({"a": 5});
        apply(&mut target, "/a/b", Some(&json!(1)));
        apply(&mut target, "", Some(&json!(1)));
        apply(&mut target, "/x/y", None);
        apply(&mut target, "/x/y", Some(&json!(1)));
        assert_eq!(target, json!({"a": 5}));
    }
}
