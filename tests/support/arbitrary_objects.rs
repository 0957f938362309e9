//! Arbitrary objects for property tests, generated from the schemas of the CRDs, with shrinking.
//! They are valid, or valid objects with random disturbances.

use std::collections::BTreeMap;
use std::sync::Mutex;

use proptest::prelude::*;
use proptest::strategy::{NewTree, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value, json};

/// Default of `QUORATE_CASES`: number of objects per property and pair of versions.
const CASES: u64 = 100_000;

fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// A runner for this percentage of the cases. The cases are the same in every run, unless
/// `QUORATE_SEED` is set.
pub(crate) fn runner(percent: u64) -> TestRunner {
    let cases = env_number("QUORATE_CASES").unwrap_or(CASES) * percent / 100;
    let cases = u32::try_from(cases).unwrap().max(1);
    // A property about some objects may skip the others.
    let max_global_rejects = cases.saturating_mul(20).max(10_000);
    let config =
        Config { cases, max_global_rejects, failure_persistence: None, ..Config::default() };
    let mut seed = [7; 16];
    seed[..8].copy_from_slice(&env_number("QUORATE_SEED").unwrap_or_default().to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::XorShift, &seed))
}

/// How objects are generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// Every key is set, and no value is its default.
    Full,
    /// Some keys are set; every value is valid.
    Valid,
    /// Keys are missing, null, unknown, or have invalid values.
    Disturbed,
}

/// Objects of one version of a kind.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// The schema of the whole object.
    pub(crate) schema: Value,
    pub(crate) fill: Fill,
    /// Key of the preserved-fields annotation, which any client may write.
    pub(crate) annotation: String,
}

impl Strategy for Objects {
    type Tree = Shrinking;
    type Value = Value;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let mut generator = Generator { rng: runner.rng(), full: self.fill == Fill::Full };
        let mut object = json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": generator.metadata(&self.annotation),
        });
        for part in ["spec", "status"] {
            let schema = &self.schema["properties"][part];
            if part == "spec" || generator.chance(50) || generator.full {
                object[part] = generator.value(schema, part);
            }
        }
        if self.fill == Fill::Disturbed {
            for _ in 0..generator.below(6) {
                for part in ["spec", "status"] {
                    generator.disturb(&mut object[part]);
                }
            }
            if object["status"].is_null() {
                object.as_object_mut().unwrap().remove("status");
            }
        }
        Ok(Shrinking::new(object))
    }
}

struct Generator<'a> {
    rng: &'a mut TestRng,
    full: bool,
}

impl Generator<'_> {
    fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.rng.next_u64() % end }
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<'v, T>(&mut self, from: &'v [T]) -> &'v T {
        &from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }

    /// Metadata as any client may write it, without an annotation that conversion could have
    /// written.
    fn metadata(&mut self, annotation: &str) -> Value {
        let mut metadata = json!({ "name": "a", "uid": "u" });
        let garbage = self
            .pick(&[json!("]["), json!(""), json!("{}"), json!("[]"), json!("null"), json!(7)])
            .clone();
        let annotations = [
            None,
            Some(json!({})),
            Some(json!(null)),
            Some(json!({ "note": "mine" })),
            Some(json!({ "note": "", "example.org/til~de": "{\"v1\":{}}" })),
            Some(json!({ annotation: garbage })),
            Some(json!({ annotation: garbage, "note": "mine" })),
        ];
        if let Some(annotations) = self.pick(&annotations).clone() {
            metadata["annotations"] = annotations;
        }
        for (key, value) in [
            ("namespace", json!("shop")),
            ("labels", json!({ "team": "a", annotation: "" })),
            ("finalizers", json!([])),
            ("generation", json!(3)),
            ("ownerReferences", json!([{ "name": "a", "annotations": null }])),
        ] {
            if self.chance(30) {
                metadata[key] = value;
            }
        }
        metadata
    }

    fn value(&mut self, schema: &Value, name: &str) -> Value {
        if schema.get("x-kubernetes-int-or-string").is_some() {
            return if self.chance(50) { json!(self.below(9)) } else { json!("500m") };
        }
        match schema["type"].as_str() {
            Some("object") => self.object(schema),
            Some("array") => {
                // One item is often enough: a list is converted as a whole, and terms nest four
                // deep.
                let items = u64::from(self.full)
                    + u64::from(self.chance(40))
                    + self.below(2) * self.below(2);
                (0..items).map(|_| self.value(&schema["items"], name)).collect()
            }
            Some("string") => self.string(schema, name),
            Some("integer") => self.integer(schema),
            Some("boolean") => json!(self.full || self.chance(50)),
            other => panic!("{name}: unsupported type in the schema: {other:?}"),
        }
    }

    fn integer(&mut self, schema: &Value) -> Value {
        let bound = |key: &str| schema[key].as_f64().unwrap() as i64;
        let (min, max) = (bound("minimum"), bound("maximum"));
        let number = min + i64::try_from(self.below((max - min) as u64 + 1)).unwrap();
        let default = schema["default"].as_i64();
        json!(if default == Some(number) { min } else { number })
    }

    fn object(&mut self, schema: &Value) -> Value {
        let mut object = Map::new();
        if let Some(values) = schema.get("additionalProperties") {
            let keys = ["app", "example.org/part", "til~de", "exampleFeature1", "x"];
            for key in keys {
                if self.chance(40) || (self.full && key == "app") {
                    object.insert(key.to_owned(), self.value(values, key));
                }
            }
        }
        let properties = schema["properties"].as_object();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let selected = self.union(schema);
        for (key, schema) in properties.into_iter().flatten() {
            let set = match &selected {
                Some((members, selected)) if members.contains(&key.as_str()) => selected == key,
                _ => self.full || required.contains(&json!(key)) || self.chance(60),
            };
            if set {
                object.insert(key.clone(), self.value(schema, key));
            }
        }
        Value::Object(object)
    }

    /// The selected member of a union.
    fn union(&mut self, schema: &Value) -> Option<(Vec<&'static str>, String)> {
        const UNIONS: &[&[&str]] = &[
            &["s3", "gcs", "azure", "volume"],
            &["backupRef", "location"],
            &["clusterRef", "managed"],
        ];
        let has = |key: &&str| schema["properties"].get(*key).is_some();
        let members = UNIONS.iter().find(|members| members.iter().all(has))?;
        let selected = self.pick(members);
        Some((members.to_vec(), (*selected).to_owned()))
    }

    fn string(&mut self, schema: &Value, name: &str) -> Value {
        if let Some(values) = schema["enum"].as_array() {
            return self.pick(values).clone();
        }
        if schema["format"] == "date-time" {
            return self
                .pick(&[json!("2026-11-16T06:00:00Z"), json!("1999-01-31T23:59:59Z")])
                .clone();
        }
        let max_length =
            schema["maxLength"].as_u64().unwrap_or_else(|| panic!("{name} has no maxLength"));
        let rule = schema["x-kubernetes-validations"][0]["rule"].as_str().unwrap_or_default();
        let in_rule = rule.strip_prefix("self.matches('").and_then(|rest| rest.split('\'').next());
        let pattern = schema["pattern"].as_str().or(in_rule).unwrap_or("[ -~äß“é\\\\\"/]{0,12}");
        let known =
            ["s3://bucket/a/b", "gs://bucket", "azblob://account/container/a", "volume://claim"];
        if pattern.starts_with("^(s3|gs") && self.chance(70) {
            return json!(self.pick(&known));
        }
        let pool = pool(pattern);
        let text = self.pick(pool);
        json!(text.chars().take(max_length.try_into().unwrap()).collect::<String>())
    }

    /// Disturbs one field somewhere below `value`.
    fn disturb(&mut self, value: &mut Value) {
        let odd = [
            json!(null),
            json!(7),
            json!(1.5),
            json!("odd"),
            json!([]),
            json!([{"a": null}]),
            json!({}),
            json!({"unknown": {"deep": [1]}}),
            json!(true),
            json!("“s3”"),
        ];
        let Value::Object(object) = value else { return };
        let keys: Vec<String> = object.keys().cloned().collect();
        if keys.is_empty() || self.chance(15) {
            let (key, odd) =
                (["unknownKey", "replicas", "pod", "backup", "features"], self.pick(&odd).clone());
            let key = *self.pick(&key);
            object.entry(key).or_insert(odd);
            return;
        }
        let key = self.pick(&keys).clone();
        if object[&key].is_object() && self.chance(60) {
            return self.disturb(object.get_mut(&key).unwrap());
        }
        if self.chance(30) {
            object.remove(&key);
        } else {
            object.insert(key, self.pick(&odd).clone());
        }
    }
}

/// The object with the longest values that its schema allows, in every field and list.
pub(crate) fn longest(objects: &Objects, letter: &str) -> Value {
    let mut object = json!({
        "apiVersion": objects.api_version,
        "kind": objects.kind,
        "metadata": { "name": "a" },
    });
    for part in ["spec", "status"] {
        object[part] = longest_value(&objects.schema["properties"][part], letter);
    }
    object
}

fn longest_value(schema: &Value, letter: &str) -> Value {
    let limit = |key: &str| usize::try_from(schema[key].as_u64().unwrap()).unwrap();
    if schema.get("x-kubernetes-int-or-string").is_some() {
        return json!("9".repeat(limit("maxLength")));
    }
    match schema["type"].as_str().unwrap() {
        "object" => {
            let mut object = Map::new();
            for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
                object.insert(key.clone(), longest_value(schema, letter));
            }
            if let Some(values) = schema.get("additionalProperties") {
                for index in 0..limit("maxProperties") {
                    object.insert(format!("key-{index:0>60}"), longest_value(values, letter));
                }
            }
            Value::Object(object)
        }
        "array" => {
            (0..limit("maxItems")).map(|_| longest_value(&schema["items"], letter)).collect()
        }
        "string" => match schema["enum"].as_array() {
            Some(values) => {
                values.iter().max_by_key(|value| value.as_str().unwrap().len()).unwrap().clone()
            }
            None => json!(letter.repeat(limit("maxLength"))),
        },
        "integer" => json!(schema["maximum"].as_f64().unwrap() as i64),
        _ => json!(false),
    }
}

/// Strings that match a pattern, generated once because that is slow.
fn pool(pattern: &str) -> &'static [String] {
    static POOLS: Mutex<BTreeMap<String, &'static [String]>> = Mutex::new(BTreeMap::new());
    let mut pools = POOLS.lock().unwrap();
    if let Some(texts) = pools.get(pattern) {
        return texts;
    }
    pools.entry(pattern.to_owned()).or_insert_with(|| {
        let seed = TestRng::from_seed(RngAlgorithm::XorShift, &[3; 16]);
        let mut runner = TestRunner::new_with_rng(Config::default(), seed);
        // An unbounded `*` gives strings that exceed every `maxLength`.
        let bounded =
            pattern.replace("]*", "]{0,6}").replace("]+", "]{1,6}").replace(")*$", "){0,2}$");
        let plain = bounded.trim_start_matches('^').trim_end_matches('$');
        let strategy = proptest::string::string_regex(plain).unwrap();
        let texts: Vec<String> =
            (0..24).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect();
        Vec::leak(texts)
    })
}

/// An object that shrinks by removing keys, one at a time.
pub(crate) struct Shrinking {
    current: Value,
    before: Option<Value>,
    candidates: Vec<String>,
}

impl Shrinking {
    fn new(current: Value) -> Self {
        Self { candidates: Vec::new(), before: None, current }
    }
}

impl ValueTree for Shrinking {
    type Value = Value;

    fn current(&self) -> Value {
        self.current.clone()
    }

    fn simplify(&mut self) -> bool {
        if self.candidates.is_empty() && self.before.is_none() {
            paths(&self.current, "", &mut self.candidates);
        }
        self.remove_next()
    }

    fn complicate(&mut self) -> bool {
        let Some(before) = self.before.take() else { return false };
        self.current = before;
        self.remove_next()
    }
}

impl Shrinking {
    /// Removes the next existing key.
    fn remove_next(&mut self) -> bool {
        self.before = Some(self.current.clone());
        while let Some(path) = self.candidates.pop() {
            if remove(&mut self.current, &path) {
                return true;
            }
        }
        false
    }
}

/// JSON pointers of all keys below `value`, innermost first.
pub(crate) fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
    let Value::Object(object) = value else { return };
    for (key, value) in object {
        let here = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        paths(value, &here, found);
        let required = ["/apiVersion", "/kind", "/metadata"];
        if !required.contains(&here.as_str()) {
            found.push(here);
        }
    }
}

/// Removes the value at a pointer.
pub(crate) fn remove(value: &mut Value, path: &str) -> bool {
    let Some((parent, key)) = path.rsplit_once('/') else { return false };
    let key = key.replace("~1", "/").replace("~0", "~");
    let parent = value.pointer_mut(parent).and_then(Value::as_object_mut);
    parent.is_some_and(|parent| parent.remove(&key).is_some())
}

/// Entries of an annotation that claims the spec and status of another object as preserved fields.
/// It has at most 60 of them, because an annotation with too many entries is ignored.
pub(crate) fn claimed(source: &Value, how: u8) -> Map<String, Value> {
    let mut found = Vec::new();
    paths(source, "", &mut found);
    let inside = |path: &String| path.starts_with("/spec/") || path.starts_with("/status/");
    let inside: Vec<String> = found.into_iter().filter(inside).collect();
    let skip = usize::from(how) * inside.len() / 256;
    let entry = |path: String| {
        let value = source.pointer(&path).cloned();
        (path, if how.is_multiple_of(8) { json!([]) } else { json!([value]) })
    };
    inside.into_iter().skip(skip).take(60).map(entry).collect()
}
