//! Validates an object against the schema of a version, with helpful messages. The API server
//! checks the same schema, but only in the version of the request, and not the fields that
//! conversion restores from the annotation.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;
use serde_json::{Map, Value};

use super::path::{FieldPath, Segment};
use super::unknown_field::UnknownField;
use super::{ErrorType, Finding, MAX_FINDINGS, hints};
use crate::api::convert::Part;
use crate::api::crd;
use crate::api::kinds::{Kind, Version};
use crate::api::suggest;

/// Schemas of all kinds and versions.
static SCHEMAS: LazyLock<BTreeMap<(String, String), Value>> = LazyLock::new(|| {
    let mut schemas = BTreeMap::new();
    for crd in crd::with_titles() {
        for version in crd.spec.versions {
            let schema = version.schema.and_then(|schema| schema.open_api_v3_schema);
            let schema = serde_json::to_value(schema).unwrap_or_default();
            schemas.insert((crd.spec.names.kind.clone(), version.name), schema);
        }
    }
    schemas
});

/// The schema of a version of a kind.
pub(crate) fn schema_of(kind: &Kind, version: &Version) -> Option<&'static Value> {
    SCHEMAS.get(&(kind.name.to_owned(), version.name.to_owned()))
}

/// The schema at a path.
pub(super) fn at<'s>(schema: &'s Value, path: &FieldPath) -> Option<&'s Value> {
    path.0.iter().try_fold(schema, |here, segment| match segment {
        Segment::Field(field) => here.get("properties")?.get(field),
        Segment::Key(_) => here.get("additionalProperties"),
        Segment::Index(_) => here.get("items"),
    })
}

/// All schema errors of a spec.
pub(super) fn walk(kind: &Kind, version: &'static Version, object: &Value) -> Vec<Finding> {
    let path = FieldPath::from(Part::Spec.key());
    let mut walk = Walk { kind, version, findings: Vec::new() };
    let schema = schema_of(kind, version).and_then(|schema| at(schema, &path));
    match (schema, path.find_in(object).filter(|spec| !spec.is_null())) {
        (Some(schema), Some(spec)) => walk.value(schema, spec, &path),
        (Some(schema), None) => {
            walk.add(
                &path,
                ErrorType::Required,
                format!("must have at least {}", required(schema)),
            );
        }
        (None, _) => {}
    }
    walk.findings
}

struct Walk<'a> {
    kind: &'a Kind,
    version: &'static Version,
    findings: Vec<Finding>,
}

impl Walk<'_> {
    fn add(&mut self, path: &FieldPath, error_type: ErrorType, detail: String) {
        if self.findings.len() >= MAX_FINDINGS {
            return;
        }
        self.findings.push(Finding { path: path.clone(), error_type, detail });
    }

    fn value(&mut self, schema: &Value, value: &Value, at: &FieldPath) {
        // The API server drops a null that the schema does not allow.
        if value.is_null() {
            return;
        }
        if schema.get("x-kubernetes-int-or-string").is_some() {
            return self.quantity(schema, value, at);
        }
        match (schema.get("type").and_then(Value::as_str), value) {
            (Some("object"), Value::Object(object)) => self.object(schema, object, at),
            (Some("array"), Value::Array(items)) => self.list(schema, items, at),
            (Some("string"), Value::String(text)) => self.string(schema, text, at),
            (Some("integer"), Value::Number(number)) if is_whole(number) => {
                self.range(schema, number.as_f64().unwrap_or_default(), at);
            }
            (Some("boolean"), Value::Bool(_)) | (None, _) => {}
            (Some(expected), other) => match schema.get("enum").and_then(Value::as_array) {
                Some(supported) => {
                    self.add(at, ErrorType::Unsupported, supported_values(&strings_of(supported)));
                }
                None => self.add(at, ErrorType::Invalid, type_error(expected, schema, other)),
            },
        }
    }

    fn quantity(&mut self, schema: &Value, value: &Value, at: &FieldPath) {
        match value {
            Value::String(text) => self.string(schema, text, at),
            Value::Number(number) if is_whole(number) => {
                self.range(schema, number.as_f64().unwrap_or_default(), at);
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => {
                self.add(at, ErrorType::Invalid, format!("must be {}", expected(schema)));
            }
        }
    }

    fn object(&mut self, schema: &Value, object: &Map<String, Value>, at: &FieldPath) {
        let max = schema.get("maxProperties").and_then(Value::as_u64);
        if let Some(max) = max.filter(|max| count(object.len()) > *max) {
            let actual = object.len();
            self.add(
                at,
                ErrorType::Invalid,
                format!("must have at most {max} entries, and has {actual}"),
            );
        }
        if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object())
        {
            return object.iter().for_each(|(key, value)| self.value(values, value, &at.key(key)));
        }
        let empty = Map::new();
        let fields = fields(schema).unwrap_or(&empty);
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if object.get(name).is_none_or(Value::is_null) {
                let description = fields.get(name).map(first_sentence).unwrap_or_default();
                let path = at.child(Segment::Field(name.to_owned()));
                self.add(&path, ErrorType::Required, format!("must be set: {description}"));
            }
        }
        for (key, value) in object {
            let here = at.child(Segment::Field(key.clone()));
            if let Some(schema) = fields.get(key) {
                self.value(schema, value, &here);
            } else {
                let (kind, version) = (self.kind, self.version);
                let unknown = UnknownField { kind, version, parent: at, key, value, fields };
                self.add(&here, ErrorType::Forbidden, unknown.message());
            }
        }
    }

    fn list(&mut self, schema: &Value, items: &[Value], at: &FieldPath) {
        let max = schema.get("maxItems").and_then(Value::as_u64);
        if let Some(max) = max.filter(|max| count(items.len()) > *max) {
            let actual = items.len();
            self.add(
                at,
                ErrorType::Invalid,
                format!("must have at most {max} items, and has {actual}"),
            );
        }
        let Some(item_schema) = schema.get("items") else { return };
        for (index, item) in items.iter().enumerate() {
            self.value(item_schema, item, &at.child(Segment::Index(index)));
        }
    }

    fn range(&mut self, schema: &Value, number: f64, at: &FieldPath) {
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let (min, max) = (bound("minimum"), bound("maximum"));
        let outside = min.is_some_and(|min| number < min) || max.is_some_and(|max| number > max);
        if outside {
            let detail = match (min, max) {
                (Some(min), Some(max)) => format!("must be between {min} and {max}"),
                (Some(min), None) => format!("must be at least {min}"),
                (None, _) => format!("must be at most {}", max.unwrap_or_default()),
            };
            self.add(at, ErrorType::Invalid, detail);
        }
    }

    fn string(&mut self, schema: &Value, text: &str, at: &FieldPath) {
        let supported = schema.get("enum").and_then(Value::as_array);
        let pattern = pattern(schema);
        let plain =
            suggest::replace_typographic(text).filter(|_| supported.is_some() || pattern.is_some());
        let length = |key: &str| schema.get(key).and_then(Value::as_u64);
        let actual = count(text.chars().count());
        if let Some(plain) = plain {
            let error_type =
                if supported.is_some() { ErrorType::Unsupported } else { ErrorType::Invalid };
            self.add(
                at,
                error_type,
                format!("has typographic quotes, dashes or spaces; write {plain} or \"{plain}\""),
            );
        } else if let Some(supported) = supported {
            self.enum_value(supported, text, at);
        } else if let Some(max) = length("maxLength").filter(|max| actual > *max) {
            let detail = format!("must have at most {max} characters, and has {actual}");
            self.add(at, ErrorType::Invalid, detail);
        } else if length("minLength").is_some_and(|min| actual < min)
            || pattern.is_some_and(|pattern| !matches(pattern, text))
        {
            let title = schema.get("title").and_then(Value::as_str).unwrap_or_default();
            let detail = hints::hint(title, text);
            let detail = detail.unwrap_or_else(|| format!("must be {}", expected(schema)));
            self.add(at, ErrorType::Invalid, detail);
        }
    }

    fn enum_value(&mut self, supported: &[Value], text: &str, at: &FieldPath) {
        let values = strings_of(supported);
        if values.contains(&text) {
            return;
        }
        let hint = suggest::did_you_mean(text, values.iter().copied())
            .map(|value| format!(" (did you mean \"{value}\"?)"))
            .unwrap_or_default();
        self.add(at, ErrorType::Unsupported, format!("{}{hint}", supported_values(&values)));
    }
}

fn strings_of(values: &[Value]) -> Vec<&str> {
    values.iter().filter_map(Value::as_str).collect()
}

fn supported_values(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
    format!("supported values: {}", quoted.join(", "))
}

/// The pattern of a string: that of the schema, or that in its CEL rule.
fn pattern(schema: &Value) -> Option<&str> {
    let in_rule = || {
        let rule = schema.pointer("/x-kubernetes-validations/0/rule")?.as_str()?;
        rule.strip_prefix("self.matches('")?.strip_suffix("')")
    };
    schema.get("pattern").and_then(Value::as_str).or_else(in_rule)
}

fn matches(pattern: &str, text: &str) -> bool {
    static COMPILED: Mutex<BTreeMap<String, Option<Regex>>> = Mutex::new(BTreeMap::new());
    // Matched outside the lock: a regex is cheap to clone.
    let regex = {
        let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        compiled.entry(pattern.to_owned()).or_insert_with(|| Regex::new(pattern).ok()).clone()
    };
    regex.is_none_or(|regex| regex.is_match(text))
}

/// The expected value: title and example of the schema.
fn expected(schema: &Value) -> String {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    match (text("title"), text("example")) {
        (Some(title), Some(example)) => format!("{title}, such as \"{example}\""),
        (Some(title), None) => title.to_owned(),
        (None, _) => match pattern(schema) {
            Some(pattern) => format!("a string that matches '{pattern}'"),
            None => "a string".to_owned(),
        },
    }
}

/// The first sentence of a field's description.
fn first_sentence(schema: &Value) -> String {
    let whole = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let whole = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    whole.split(". ").next().unwrap_or_default().trim_end_matches('.').to_owned()
}

fn type_error(expected_type: &str, schema: &Value, other: &Value) -> String {
    match expected_type {
        "string" if other.is_number() || other.is_boolean() => {
            let read = if other.is_number() { "a number" } else { "a boolean" };
            format!("must be {}; YAML reads {other} as {read}, so quote it", expected(schema))
        }
        "string" => format!("must be {}", expected(schema)),
        "integer" if other.is_number() => "must be a whole number".to_owned(),
        "integer" => "must be a whole number, without quotes".to_owned(),
        "boolean" => "must be true or false, without quotes".to_owned(),
        "array" => "must be a list".to_owned(),
        _ => match (fields(schema), other.as_str()) {
            (Some(fields), Some(name)) if fields.contains_key("name") => {
                format!("must be an object: write {{name: {name}}}")
            }
            (Some(fields), _) => format!("must be an object with the fields {}", names(fields)),
            (None, _) => "must be an object of keys and values".to_owned(),
        },
    }
}

fn fields(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

fn names(fields: &Map<String, Value>) -> String {
    fields.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The required fields of an object.
fn required(schema: &Value) -> String {
    let fields = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let quoted: Vec<String> =
        fields.filter_map(Value::as_str).map(|field| format!("`{field}`")).collect();
    quoted.join(", ")
}

fn is_whole(number: &serde_json::Number) -> bool {
    number.is_i64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
