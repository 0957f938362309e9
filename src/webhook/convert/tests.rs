//! Conversions that do not go well, and what goes out byte for byte.

use serde_json::json;

use super::*;
use crate::api::convert::convert;
use crate::webhook::review::conversion;

const GROUP: &str = "etcd.appdelivery.cncf.io";

fn review(objects: &str) -> Vec<u8> {
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{{
        "uid":"7","desiredAPIVersion":"{GROUP}/v1","objects":{objects}}}}}"#
    )
    .into_bytes()
}

fn object(version: &str, name: &str) -> String {
    format!(
        r#"{{ "kind":"EtcdCluster", "apiVersion":"{GROUP}/{version}","metadata":{{"name":"{name}"}},
        "spec":{{"version":"3.6.16"}} }}"#
    )
}

fn tried(objects: &str, turn: Turn) -> Turned {
    turned(&conversion(&review(objects)).unwrap(), turn)
}

/// Falls over one object, as a bug would.
fn trips(object: Value, wanted: &str) -> Result<Value, Unconvertible> {
    assert_ne!(object["metadata"]["name"], "trap", "on purpose");
    convert(object, wanted)
}

#[test]
fn an_object_in_the_wanted_version_goes_out_byte_for_byte() {
    let same = object("v1", "a");
    let objects = format!("[{},{same},{}]", object("v1beta1", "b"), object("v1alpha1", "c"));
    let Turned::All { list, objects: 3 } = tried(&objects, convert) else { panic!() };
    let list = String::from_utf8(list).unwrap();
    assert!(list.contains(&same), "{list}");
    let read: Vec<Value> = serde_json::from_str(&list).unwrap();
    let names: Vec<&str> = read.iter().map(|it| text_at(it, "/metadata/name")).collect();
    assert_eq!(names, ["b", "a", "c"]);
    let version = format!("{GROUP}/v1");
    assert!(read.iter().all(|it| text_at(it, "/apiVersion") == version));
}

#[test]
fn a_panic_over_one_object_is_that_objects_failure() {
    let objects = format!("[{},{}]", object("v1beta1", "a"), object("v1beta1", "trap"));
    let Turned::Failed { message, bug: true } = tried(&objects, trips) else { panic!() };
    assert_eq!(message, format!("objects[1] EtcdCluster trap: {BUG}"));
    assert!(matches!(tried(&objects, convert), Turned::All { list: _, objects: 2 }));
}

#[test]
fn all_that_fail_are_named_and_those_after_the_first_are_tried_as_well() {
    let objects = format!(
        "[{},{},{},{}]",
        object("v1beta1", "trap"),
        object("v1beta1", "fine"),
        object("v9", "odd"),
        object("v1", "trap"),
    );
    let Turned::Failed { message, bug: true } = tried(&objects, trips) else { panic!() };
    let places: Vec<&str> = message.split("; ").filter_map(|it| it.get(..10)).collect();
    assert_eq!(places, ["objects[0]", "objects[2]", "objects[3]"], "{message}");
}

#[test]
fn objects_that_are_not_a_list_are_named() {
    for (objects, count) in [("null", 0), ("[]", 0)] {
        assert_eq!(tried(objects, convert), Turned::All { list: b"[]".to_vec(), objects: count });
    }
    let Turned::Failed { message, bug: false } = tried("7", convert) else { panic!() };
    assert!(
        message.starts_with("objects: invalid type: integer `7`, expected a list"),
        "{message}"
    );
}

#[test]
fn an_object_that_cannot_be_read_is_named_as_far_as_it_can_be() {
    let deep = "[".repeat(200) + &"]".repeat(200);
    let objects = format!(
        r#"[{{"kind":"EtcdCluster","metadata":{{"namespace":"n","name":"deep"}},"spec":{deep}}}]"#
    );
    let Turned::Failed { message, bug: false } = tried(&objects, convert) else { panic!() };
    let begins = "objects[0] EtcdCluster n/deep: cannot be read: recursion limit exceeded";
    assert!(message.starts_with(begins), "{message}");
}

#[test]
fn the_answer_is_a_review_whatever_is_in_it() {
    let uid = "a \"quoted\" uid";
    for turned in [
        Turned::All { list: br#"[{"a":1}]"#.to_vec(), objects: 1 },
        Turned::Failed { message: "with \"quotes\"\n".to_owned(), bug: false },
    ] {
        let review: Value = serde_json::from_slice(&written(uid, &turned).unwrap()).unwrap();
        assert_eq!(review["apiVersion"], CONVERSION.version);
        assert_eq!(review["kind"], CONVERSION.kind);
        assert_eq!(review["response"]["uid"], uid);
        let (objects, result) = match turned {
            Turned::All { list: _, objects: _ } => {
                (json!([{"a": 1}]), json!({"status": "Success"}))
            }
            Turned::Failed { message, bug: _ } => {
                (json!([]), json!({"status": "Failure", "message": message}))
            }
        };
        assert_eq!(review["response"]["convertedObjects"], objects);
        assert_eq!(review["response"]["result"], result);
    }
}
