//! The diff between two JSON objects, and how it is made good.
//! Comes in: two values. Goes out: which keys to set and which to unset, as JSON pointers.
//! May touch: `serde_json`. Lists are compared whole: their items have no names to follow.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use serde_json::Value;

/// What must change, by pointer: a value to set, or nothing to unset the key.
pub(super) type Diff = BTreeMap<String, Option<Value>>;

/// What turns `have` into `want`, with pointers that begin with `root`.
pub(super) fn diff(want: &Value, have: &Value, root: &str) -> Diff {
    let mut changes = Diff::new();
    collect(want, have, root.to_owned(), &mut changes);
    changes
}

fn collect(want: &Value, have: &Value, at: String, changes: &mut Diff) {
    let (Value::Object(wanted), Value::Object(there)) = (want, have) else {
        if want != have {
            changes.insert(at, Some(want.clone()));
        }
        return;
    };
    for (key, want) in wanted {
        let below = format!("{at}/{}", escape(key));
        match there.get(key) {
            Some(have) => collect(want, have, below, changes),
            None => {
                changes.insert(below, Some(want.clone()));
            }
        }
    }
    for key in there.keys().filter(|key| !wanted.contains_key(*key)) {
        changes.insert(format!("{at}/{}", escape(key)), None);
    }
}

/// Makes one change, if the block that it is in is there. A block that is gone was removed by
/// somebody since, and a part of it would be a setting that nobody made.
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

/// Every value that is not an object with keys, by pointer.
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
    fn a_difference_that_is_applied_is_gone() {
        let want = json!({"spec": {"a": 1, "b": {"c": null}, "d/e~": [1, 2], "h": {}}});
        let have = json!({"spec": {"a": 2, "b": {"x": 0}, "g": true, "h": {"i": 1}}});
        let mut made = have.clone();
        for (pointer, value) in diff(&want, &have, "") {
            apply(&mut made, &pointer, value.as_ref());
        }
        assert_eq!(made, want);
        assert!(diff(&want, &made, "").is_empty());
    }

    #[test]
    fn nothing_is_written_through_what_is_not_an_object() {
        let mut target = json!({"a": 5});
        apply(&mut target, "/a/b", Some(&json!(1)));
        apply(&mut target, "", Some(&json!(1)));
        apply(&mut target, "/x/y", None);
        apply(&mut target, "/x/y", Some(&json!(1)));
        assert_eq!(target, json!({"a": 5}));
    }
}
