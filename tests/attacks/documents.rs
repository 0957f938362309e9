//! Hostile reviews: JSON that is too deep, too heavy or not JSON, and reviews that lie.

use quorate::api::convert::PRESERVED_FIELDS_ANNOTATION;
use serde_json::{Value, json};

use super::bodies::{May, Strike};
use super::dice::Dice;
use super::port::post;

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

/// An object with that `spec`.
fn cluster(version: &str, spec: &str) -> String {
    format!(
        "{{\"apiVersion\":\"etcd.appdelivery.cncf.io/{version}\",\"kind\":\"EtcdCluster\",\
         \"metadata\":{{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\"}},\"spec\":{spec}}}"
    )
}

/// A list or a map of `piece`s, as big as a body may be.
fn full(open: &str, piece: &str, close: &str, bytes: usize) -> String {
    format!("{open}{}{close}", piece.repeat(bytes / piece.len()))
}

fn keys(count: usize) -> String {
    let keys: Vec<String> = (0..count).map(|at| format!("\"k{at}\":0,")).collect();
    format!("{{{}\"z\":0}}", keys.concat())
}

/// Those that are big, once each.
pub(crate) fn big() -> Vec<Strike> {
    let bytes = 7 * MIB;
    let objects = [
        ("a list of seven million zeros", full("[", "0,", "0]", bytes)),
        ("a list of lists", full("[", "[0],", "0]", bytes)),
        ("a list of maps", full("[", "{\"\":0},", "0]", bytes)),
        ("maps in maps", full("{", "\"a\":{\"a\":{\"a\":{}}},", "\"b\":0}", bytes)),
        ("a hundred thousand opened lists", "[".repeat(100_000)),
        ("a hundred thousand opened maps", "{\"a\":".repeat(100_000)),
        ("many keys", keys(400_000)),
        ("the same key again", full("{", "\"a\":0,", "\"a\":0}", bytes)),
        ("a string of three megabytes", format!("\"{}\"", "a".repeat(3 * MIB))),
        ("a string of escapes", full("\"", "\\u0000", "\"", bytes)),
        ("a number of a megabyte", "9".repeat(MIB)),
    ];
    let mut strikes = Vec::new();
    for (at, (name, object)) in objects.into_iter().enumerate() {
        let uid = format!("big-{at}");
        let spec = if at % 2 == 0 { object.clone() } else { cluster("v1", &object) };
        let (path, body) = match at % 3 {
            0 => ("/mutate", admission(&uid, &spec)),
            1 => ("/validate", admission(&uid, &cluster("v1", &object))),
            _ => ("/convert", conversion(&uid, &cluster("v1alpha1", &object))),
        };
        strikes.push(Strike {
            name,
            bytes: post(path, body.as_bytes()),
            may: May::Review(Some(uid)),
        });
    }
    let one = format!("{},", cluster("v1alpha1", "{\"replicas\":3}"));
    let many = one.repeat(10_000);
    let body = conversion("many", many.trim_end_matches(','));
    let echoed = May::Review(Some("many".to_owned()));
    strikes.push(Strike {
        name: "ten thousand objects",
        bytes: post("/convert", body.as_bytes()),
        may: echoed,
    });
    strikes
}

/// An honest question whose answer is as long as itself: three megabytes.
pub(crate) fn long() -> Vec<u8> {
    let object = cluster("v1", &format!("{{\"note\":\"{}\"}}", "a".repeat(50_000)));
    let objects = format!("{object},").repeat(60);
    post("/convert", conversion("long", objects.trim_end_matches(',')).as_bytes())
}

/// Those that are small, in any number.
pub(crate) fn small(dice: &mut Dice) -> Strike {
    let uid = format!("uid-{}", dice.next());
    match dice.below(4) {
        0 => text(dice),
        1 => review(dice, &uid),
        2 => object(dice, &uid),
        _ => disturbed(dice, &uid),
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

fn text(dice: &mut Dice) -> Strike {
    let bytes = post(dice.one(&PATHS), dice.one(TEXTS));
    Strike { name: "no review", bytes, may: May::Review(None) }
}

/// A value that a review may have anywhere, though nobody expects it there.
fn odd(dice: &mut Dice) -> Value {
    match dice.below(14) {
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

fn review(dice: &mut Dice, uid: &str) -> Strike {
    let is_conversion = dice.below(3) == 0;
    let path = if is_conversion { "/convert" } else { PATHS[dice.below(2)] };
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
    for _ in 0..=dice.below(3) {
        let field = dice.one(fields);
        let request = body["request"].as_object_mut().unwrap();
        if dice.below(3) == 0 {
            request.remove(field);
        } else {
            request.insert(field.to_owned(), odd(dice));
        }
    }
    if dice.below(4) == 0 {
        let word = dice.one(&["UPDATE", "DELETE", "CONNECT", "", "create"]);
        body["request"]["operation"] = json!(word);
    }
    let bytes = post(path, body.to_string().as_bytes());
    Strike { name: "a review that lies", bytes, may: May::Review(Some(uid.to_owned())) }
}

fn object(dice: &mut Dice, uid: &str) -> Strike {
    let version = dice.one(&["v1", "v1beta1", "v1alpha1", "v2", ""]);
    let mut object: Value = serde_json::from_str(&cluster(version, "{\"replicas\":3}")).unwrap();
    for _ in 0..=dice.below(4) {
        let field = dice.one(&[
            "replicas", "version", "size", "storage", "image", "backup", "template", "options",
            "env", "security", "schedule", "pod",
        ]);
        let place = dice.one(&["spec", "spec", "metadata", "status"]);
        if !object[place].is_object() {
            object[place] = json!({});
        }
        object[place][field] = odd(dice);
        if dice.below(5) == 0 {
            if !object["metadata"].is_object() {
                object["metadata"] = json!({});
            }
            object["metadata"]["annotations"] =
                json!({ PRESERVED_FIELDS_ANNOTATION: odd(dice).to_string() });
        }
        if dice.below(9) == 0 {
            object[place] = odd(dice);
        }
    }
    let text = object.to_string();
    let (path, body) = match dice.below(3) {
        0 => ("/mutate", admission(uid, &text)),
        1 => ("/validate", admission(uid, &text)),
        _ => ("/convert", conversion(uid, &format!("{text},{}", cluster("v1alpha1", "{}")))),
    };
    let may = May::Review(Some(uid.to_owned()));
    Strike { name: "an object that lies", bytes: post(path, body.as_bytes()), may }
}

fn disturbed(dice: &mut Dice, uid: &str) -> Strike {
    let (path, body) = match dice.below(3) {
        0 => ("/mutate", admission(uid, &cluster("v1", "{\"replicas\":3}"))),
        1 => ("/validate", admission(uid, &cluster("v1", "{\"version\":\"3.6.10\"}"))),
        _ => ("/convert", conversion(uid, &cluster("v1beta1", "{\"replicas\":3}"))),
    };
    let mut body = body.into_bytes();
    dice.disturb(&mut body);
    Strike { name: "a disturbed review", bytes: post(path, &body), may: May::Review(None) }
}
