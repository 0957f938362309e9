//! Failed conversions, and output that must match byte for byte.

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

fn convert_list(objects: &str, convert: ConvertFn) -> Converted {
    convert_all(&conversion(&review(objects)).unwrap(), convert)
}

/// Panics on one object, as a bug would.
fn panic_on_trap(object: Value, desired: &str) -> Result<Value, ConvertError> {
    assert_ne!(object["metadata"]["name"], "trap", "on purpose");
    convert(object, desired)
}

#[test]
fn object_in_the_desired_version_is_returned_byte_for_byte() {
    let same = object("v1", "a");
    let objects = format!("[{},{same},{}]", object("v1beta1", "b"), object("v1alpha1", "c"));
    let Converted::All { list, objects: 3 } = convert_list(&objects, convert) else { panic!() };
    let list = String::from_utf8(list).unwrap();
    assert!(list.contains(&same), "{list}");
    let read: Vec<Value> = serde_json::from_str(&list).unwrap();
    let names: Vec<&str> = read.iter().map(|object| string_at(object, "/metadata/name")).collect();
    assert_eq!(names, ["b", "a", "c"]);
    let version = format!("{GROUP}/v1");
    assert!(read.iter().all(|object| string_at(object, "/apiVersion") == version));
}

#[test]
fn panic_on_one_object_is_reported_for_that_object() {
    let objects = format!("[{},{}]", object("v1beta1", "a"), object("v1beta1", "trap"));
    let Converted::Failed { message, bug: true } = convert_list(&objects, panic_on_trap) else {
        panic!()
    };
    assert_eq!(message, format!("objects[1] EtcdCluster trap: {INTERNAL_ERROR}"));
    assert!(matches!(convert_list(&objects, convert), Converted::All { list: _, objects: 2 }));
}

#[test]
fn all_failed_objects_are_named() {
    let objects = format!(
        "[{},{},{},{}]",
        object("v1beta1", "trap"),
        object("v1beta1", "fine"),
        object("v9", "odd"),
        object("v1", "trap"),
    );
    let Converted::Failed { message, bug: true } = convert_list(&objects, panic_on_trap) else {
        panic!()
    };
    let failed: Vec<&str> = message.split("; ").filter_map(|failure| failure.get(..10)).collect();
    assert_eq!(failed, ["objects[0]", "objects[2]", "objects[3]"], "{message}");
}

#[test]
fn objects_that_are_not_an_array_are_reported() {
    for (objects, count) in [("null", 0), ("[]", 0)] {
        assert_eq!(
            convert_list(objects, convert),
            Converted::All { list: b"[]".to_vec(), objects: count }
        );
    }
    let Converted::Failed { message, bug: false } = convert_list("7", convert) else { panic!() };
    assert!(
        message.starts_with("objects: invalid type: integer `7`, expected a list"),
        "{message}"
    );
}

#[test]
fn unparsable_object_is_named_as_far_as_possible() {
    let deep = "[".repeat(200) + &"]".repeat(200);
    let objects = format!(
        r#"[{{"kind":"EtcdCluster","metadata":{{"namespace":"n","name":"deep"}},"spec":{deep}}}]"#
    );
    let Converted::Failed { message, bug: false } = convert_list(&objects, convert) else {
        panic!()
    };
    let begins = "objects[0] EtcdCluster n/deep: cannot be read: recursion limit exceeded";
    assert!(message.starts_with(begins), "{message}");
}

#[test]
fn response_is_a_valid_review_with_any_content() {
    let uid = "a \"quoted\" uid";
    for converted in [
        Converted::All { list: br#"[{"a":1}]"#.to_vec(), objects: 1 },
        Converted::Failed { message: "with \"quotes\"\n".to_owned(), bug: false },
    ] {
        let review: Value =
            serde_json::from_slice(&encode_response(uid, &converted).unwrap()).unwrap();
        assert_eq!(review["apiVersion"], CONVERSION.version);
        assert_eq!(review["kind"], CONVERSION.kind);
        assert_eq!(review["response"]["uid"], uid);
        let (objects, result) = match converted {
            Converted::All { list: _, objects: _ } => {
                (json!([{"a": 1}]), json!({"status": "Success"}))
            }
            Converted::Failed { message, bug: _ } => {
                (json!([]), json!({"status": "Failure", "message": message}))
            }
        };
        assert_eq!(review["response"]["convertedObjects"], objects);
        assert_eq!(review["response"]["result"], result);
    }
}
