//! Hostile reviews: JSON that is nested too deeply, needs too much memory or is invalid, and
//! inconsistent reviews.

use quorate::api::convert::PRESERVED_FIELDS_ANNOTATION;
use serde_json::{Value, json};

use super::bodies::{Expected, Request};
use super::rng::Rng;
use super::server_process::post;

const PATHS: [&str; 3] = ["/mutate", "/validate", "/convert"];
const MIB: usize = 1 << 20;

/// An admission review around an object, as text.
fn admission(uid: &str, object: &str) -> String {
    format!(
        "{{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{{\
         \"uid\":\"{uid}\",\"operation\":\"CREATE\",\"name\":\"a\",\"namespace\":\"b\",\
         \"kind\":{{\"group\":\"etcd.appdelivery.cncf.io\",\"version\":\"v1\",\"kind\":\"EtcdCluster\"}},\
         \"resource\":{{\"group\":\"etcd.appdelivery.cncf.io\",\"version\":\"v1\",\"resource\":\"etcdclusters\"}},\
         \"userInfo\":{{\"username\":\"c\"}},\"object\":{object}}}}}"
    )
}

/// A conversion review of objects, as text.
fn conversion(uid: &str, objects: &str) -> String {
    format!(
        "{{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"ConversionReview\",\"request\":{{\
         \"uid\":\"{uid}\",\"desiredAPIVersion\":\"etcd.appdelivery.cncf.io/v1\",\
         \"objects\":[{objects}]}}}}"
    )
}

/// An object with this `spec`.
fn cluster(version: &str, spec: &str) -> String {
    format!(
        "{{\"apiVersion\":\"etcd.appdelivery.cncf.io/{version}\",\"kind\":\"EtcdCluster\",\
         \"metadata\":{{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\"}},\"spec\":{spec}}}"
    )
}

/// A list or map of repeated elements.
fn repeated(open: &str, element: &str, close: &str, bytes: usize) -> String {
    format!("{open}{}{close}", element.repeat(bytes / element.len()))
}

fn keys(count: usize) -> String {
    let keys: Vec<String> = (0..count).map(|at| format!("\"k{at}\":0,")).collect();
    format!("{{{}\"z\":0}}", keys.concat())
}

/// Large requests, once each.
pub(crate) fn large() -> Vec<Request> {
    let bytes = 7 * MIB;
    let objects = [
        ("a list of seven million zeros", repeated("[", "0,", "0]", bytes)),
        ("a list of lists", repeated("[", "[0],", "0]", bytes)),
        ("a list of maps", repeated("[", "{\"\":0},", "0]", bytes)),
        ("maps in maps", repeated("{", "\"a\":{\"a\":{\"a\":{}}},", "\"b\":0}", bytes)),
        ("a hundred thousand opened lists", "[".repeat(100_000)),
        ("a hundred thousand opened maps", "{\"a\":".repeat(100_000)),
        ("many keys", keys(400_000)),
        ("the same key again", repeated("{", "\"a\":0,", "\"a\":0}", bytes)),
        ("a string of three megabytes", format!("\"{}\"", "a".repeat(3 * MIB))),
        ("a string of escapes", repeated("\"", "\\u0000", "\"", bytes)),
        ("a number of a megabyte", "9".repeat(MIB)),
    ];
    let mut requests = Vec::new();
    for (at, (name, object)) in objects.into_iter().enumerate() {
        let uid = format!("large-{at}");
        let spec = if at % 2 == 0 { object.clone() } else { cluster("v1", &object) };
        let (path, body) = match at % 3 {
            0 => ("/mutate", admission(&uid, &spec)),
            1 => ("/validate", admission(&uid, &cluster("v1", &object))),
            _ => ("/convert", conversion(&uid, &cluster("v1alpha1", &object))),
        };
        requests.push(Request {
            name,
            bytes: post(path, body.as_bytes()),
            expected: Expected::Review(Some(uid)),
        });
    }
    let one = format!("{},", cluster("v1alpha1", "{\"replicas\":3}"));
    let many = one.repeat(10_000);
    let body = conversion("many", many.trim_end_matches(','));
    let echoed = Expected::Review(Some("many".to_owned()));
    requests.push(Request {
        name: "ten thousand objects",
        bytes: post("/convert", body.as_bytes()),
        expected: echoed,
    });
    requests
}

/// A valid request with a response of three megabytes.
pub(crate) fn with_long_response() -> Vec<u8> {
    let object = cluster("v1", &format!("{{\"note\":\"{}\"}}", "a".repeat(50_000)));
    let objects = format!("{object},").repeat(60);
    post("/convert", conversion("long", objects.trim_end_matches(',')).as_bytes())
}

/// A random small request.
pub(crate) fn small(rng: &mut Rng) -> Request {
    let uid = format!("uid-{}", rng.next());
    match rng.below(4) {
        0 => text(rng),
        1 => review(rng, &uid),
        2 => object(rng, &uid),
        _ => disturbed(rng, &uid),
    }
}

const TEXTS: &[&[u8]] = &[
    b"null", b"true", b"0", b"-0", b"1e400", b"NaN", b"Infinity", b"\"\"", b"[]", b"{}", b"{", b"[",
    b"}", b"{}{}", b"{} x", b"\xef\xbb\xbf{}", b"\xff\xfe{\0}\0", b"\"\xff\"", b"\"\\ud800\"", b"\0",
    b"{\"apiVersion\":\"admission.k8s.io/v1\"}", b"{\"request\":null}", b"// {}", b"{'a':1}",
    b"{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{}}",
    b"{\"apiVersion\":\"admission.k8s.io/v1beta1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"a\"}}",
    b"{\"apiVersion\":\"apiextensions.k8s.io/v2\",\"kind\":\"ConversionReview\",\"request\":{\"uid\":\"a\"}}",
];

fn text(rng: &mut Rng) -> Request {
    let bytes = post(rng.pick(&PATHS), rng.pick(TEXTS));
    Request { name: "not a review", bytes, expected: Expected::Review(None) }
}

/// A value that is unexpected at most paths of a review.
fn odd(rng: &mut Rng) -> Value {
    match rng.below(14) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(u64::MAX),
        4 => json!(1e300),
        5 => json!(""),
        6 => json!("\u{0}"),
        7 => json!("a".repeat(10_000)),
        8 => json!([]),
        9 => json!({}),
        10 => json!([[[[{}]]]]),
        11 => json!({"__proto__": {"a": 1}, "": {"/~0~1": null}}),
        12 => json!("1e9999999"),
        _ => json!({"replicas": "3", "version": {"a": 1}, "storage": [], "backup": "* * * * *"}),
    }
}

fn review(rng: &mut Rng, uid: &str) -> Request {
    let is_conversion = rng.below(3) == 0;
    let path = if is_conversion { "/convert" } else { PATHS[rng.below(2)] };
    let body = if is_conversion {
        conversion(uid, &cluster("v1beta1", "{}"))
    } else {
        admission(uid, &cluster("v1", "{\"replicas\":3}"))
    };
    let mut body: Value = serde_json::from_str(&body).unwrap();
    let fields: &[&str] = &[
        "operation",
        "kind",
        "resource",
        "requestKind",
        "requestResource",
        "subResource",
        "name",
        "namespace",
        "object",
        "oldObject",
        "userInfo",
        "dryRun",
        "options",
        "objects",
        "desiredAPIVersion",
    ];
    for _ in 0..=rng.below(3) {
        let field = rng.pick(fields);
        let request = body["request"].as_object_mut().unwrap();
        if rng.below(3) == 0 {
            request.remove(field);
        } else {
            request.insert(field.to_owned(), odd(rng));
        }
    }
    if rng.below(4) == 0 {
        let operation = rng.pick(&["UPDATE", "DELETE", "CONNECT", "", "create"]);
        body["request"]["operation"] = json!(operation);
    }
    let bytes = post(path, body.to_string().as_bytes());
    Request {
        name: "an inconsistent review",
        bytes,
        expected: Expected::Review(Some(uid.to_owned())),
    }
}

fn object(rng: &mut Rng, uid: &str) -> Request {
    let version = rng.pick(&["v1", "v1beta1", "v1alpha1", "v2", ""]);
    let mut object: Value = serde_json::from_str(&cluster(version, "{\"replicas\":3}")).unwrap();
    for _ in 0..=rng.below(4) {
        let field = rng.pick(&[
            "replicas", "version", "size", "storage", "image", "backup", "template", "options",
            "env", "security", "schedule", "pod",
        ]);
        let part = rng.pick(&["spec", "spec", "metadata", "status"]);
        if !object[part].is_object() {
            object[part] = json!({});
        }
        object[part][field] = odd(rng);
        if rng.below(5) == 0 {
            if !object["metadata"].is_object() {
                object["metadata"] = json!({});
            }
            object["metadata"]["annotations"] =
                json!({ PRESERVED_FIELDS_ANNOTATION: odd(rng).to_string() });
        }
        if rng.below(9) == 0 {
            object[part] = odd(rng);
        }
    }
    let text = object.to_string();
    let (path, body) = match rng.below(3) {
        0 => ("/mutate", admission(uid, &text)),
        1 => ("/validate", admission(uid, &text)),
        _ => ("/convert", conversion(uid, &format!("{text},{}", cluster("v1alpha1", "{}")))),
    };
    let expected = Expected::Review(Some(uid.to_owned()));
    Request { name: "an inconsistent object", bytes: post(path, body.as_bytes()), expected }
}

fn disturbed(rng: &mut Rng, uid: &str) -> Request {
    let (path, body) = match rng.below(3) {
        0 => ("/mutate", admission(uid, &cluster("v1", "{\"replicas\":3}"))),
        1 => ("/validate", admission(uid, &cluster("v1", "{\"version\":\"3.6.10\"}"))),
        _ => ("/convert", conversion(uid, &cluster("v1beta1", "{\"replicas\":3}"))),
    };
    let mut body = body.into_bytes();
    rng.disturb(&mut body);
    Request {
        name: "a disturbed review",
        bytes: post(path, &body),
        expected: Expected::Review(None),
    }
}
