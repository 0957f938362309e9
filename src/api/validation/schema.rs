//! What a schema of ours `first_sentence` about a value, in sentences.
//! Comes in: a definition's schema and an object. Goes out: everything in it that does not fit.
//! May touch: `crd`, `spelling`, `hints`, `unknown`. The apiserver checks the same, but only in the version of the
//! request, and not what conversion put back from an annotation.
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

/// The schemas of every kind and version.
static SCHEMAS: LazyLock<BTreeMap<(String, String), Value>> = LazyLock::new(|| {
    let mut schemas = BTreeMap::new();
    for definition in crd::with_titles() {
        for version in definition.spec.versions {
            let schema = version.schema.and_then(|schema| schema.open_api_v3_schema);
            let schema = serde_json::to_value(schema).unwrap_or_default();
            schemas.insert((definition.spec.names.kind.clone(), version.name), schema);
        }
    }
    schemas
});

/// The schema of one version of a kind, as in its definition.
pub(crate) fn schema_of(kind: &Kind, version: &Version) -> Option<&'static Value> {
    SCHEMAS.get(&(kind.name.to_owned(), version.name.to_owned()))
}

/// What a schema `first_sentence` about a path.
pub(super) fn at<'s>(schema: &'s Value, path: &FieldPath) -> Option<&'s Value> {
    path.0.iter().try_fold(schema, |here, step| match step {
        Segment::Field(field) => here.get("properties")?.get(field),
        Segment::Key(_) => here.get("additionalProperties"),
        Segment::Index(_) => here.get("items"),
    })
}

/// Everything in the spec that the version's schema refuses.
pub(super) fn walk(kind: &Kind, version: &'static Version, object: &Value) -> Vec<Finding> {
    let path = FieldPath::from(Part::Spec.key());
    let mut walk = Walk { kind, version, findings: Vec::new() };
    let schema = schema_of(kind, version).and_then(|schema| at(schema, &path));
    match (schema, path.find_in(object).filter(|spec| !spec.is_null())) {
        (Some(schema), Some(spec)) => walk.value(schema, spec, &path),
        (Some(schema), None) => {
            walk.add(&path, ErrorType::Required, format!("say at least {}", required(schema)));
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
        // The apiserver drops a null where none may be.
        if value.is_null() {
            return;
        }
        if schema.get("x-kubernetes-int-or-string").is_some() {
            return self.amount(schema, value, at);
        }
        match (schema.get("type").and_then(Value::as_str), value) {
            (Some("object"), Value::Object(block)) => self.block(schema, block, at),
            (Some("array"), Value::Array(items)) => self.list(schema, items, at),
            (Some("string"), Value::String(text)) => self.text(schema, text, at),
            (Some("integer"), Value::Number(number)) if is_whole(number) => {
                self.range(schema, number.as_f64().unwrap_or_default(), at);
            }
            (Some("boolean"), Value::Bool(_)) | (None, _) => {}
            (Some(wanted), other) => match schema.get("enum").and_then(Value::as_array) {
                Some(choices) => {
                    self.add(at, ErrorType::Unsupported, supported_values(&strings_of(choices)));
                }
                None => self.add(at, ErrorType::Invalid, type_error(wanted, schema, other)),
            },
        }
    }

    fn amount(&mut self, schema: &Value, value: &Value, at: &FieldPath) {
        match value {
            Value::String(text) => self.text(schema, text, at),
            Value::Number(number) if is_whole(number) => {
                self.range(schema, number.as_f64().unwrap_or_default(), at);
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => {
                self.add(at, ErrorType::Invalid, format!("must be {}", meaning(schema)));
            }
        }
    }

    fn block(&mut self, schema: &Value, block: &Map<String, Value>, at: &FieldPath) {
        let most = schema.get("maxProperties").and_then(Value::as_u64);
        if let Some(most) = most.filter(|most| count(block.len()) > *most) {
            let have = block.len();
            self.add(
                at,
                ErrorType::Invalid,
                format!("must have at most {most} entries, and has {have}"),
            );
        }
        if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object())
        {
            return block.iter().for_each(|(key, value)| self.value(values, value, &at.key(key)));
        }
        let empty = Map::new();
        let fields = fields(schema).unwrap_or(&empty);
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if block.get(name).is_none_or(Value::is_null) {
                let words = fields.get(name).map(first_sentence).unwrap_or_default();
                self.add(&at.child(Segment::Field(name.to_owned())), ErrorType::Required, words);
            }
        }
        for (key, value) in block {
            let here = at.child(Segment::Field(key.clone()));
            if let Some(schema) = fields.get(key) {
                self.value(schema, value, &here);
            } else {
                let (kind, version) = (self.kind, self.version);
                let unknown = UnknownField { kind, version, block: at, key, value, fields };
                self.add(&here, ErrorType::Forbidden, unknown.words());
            }
        }
    }

    fn list(&mut self, schema: &Value, items: &[Value], at: &FieldPath) {
        let most = schema.get("maxItems").and_then(Value::as_u64);
        if let Some(most) = most.filter(|most| count(items.len()) > *most) {
            let have = items.len();
            self.add(
                at,
                ErrorType::Invalid,
                format!("must have at most {most} items, and has {have}"),
            );
        }
        let Some(wanted) = schema.get("items") else { return };
        for (index, item) in items.iter().enumerate() {
            self.value(wanted, item, &at.child(Segment::Index(index)));
        }
    }

    fn range(&mut self, schema: &Value, number: f64, at: &FieldPath) {
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let (least, most) = (bound("minimum"), bound("maximum"));
        let outside =
            least.is_some_and(|least| number < least) || most.is_some_and(|most| number > most);
        if outside {
            let detail = match (least, most) {
                (Some(least), Some(most)) => format!("must be between {least} and {most}"),
                (Some(least), None) => format!("must be at least {least}"),
                (None, _) => format!("must be at most {}", most.unwrap_or_default()),
            };
            self.add(at, ErrorType::Invalid, detail);
        }
    }

    fn text(&mut self, schema: &Value, text: &str, at: &FieldPath) {
        let choices = schema.get("enum").and_then(Value::as_array);
        let pattern = pattern(schema);
        let meant =
            suggest::replace_typographic(text).filter(|_| choices.is_some() || pattern.is_some());
        let length = |key: &str| schema.get(key).and_then(Value::as_u64);
        let have = count(text.chars().count());
        if let Some(meant) = meant {
            let error_type =
                if choices.is_some() { ErrorType::Unsupported } else { ErrorType::Invalid };
            self.add(
                at,
                error_type,
                format!(
                    "has typographic quotes, dashes or spaces in it; write {meant} or \"{meant}\""
                ),
            );
        } else if let Some(choices) = choices {
            self.choice(choices, text, at);
        } else if let Some(most) = length("maxLength").filter(|most| have > *most) {
            let detail = format!("must have at most {most} characters, and has {have}");
            self.add(at, ErrorType::Invalid, detail);
        } else if length("minLength").is_some_and(|least| have < least)
            || pattern.is_some_and(|pattern| !matches(pattern, text))
        {
            let title = schema.get("title").and_then(Value::as_str).unwrap_or_default();
            let detail = hints::hint(title, text);
            let detail = detail.unwrap_or_else(|| format!("must be {}", meaning(schema)));
            self.add(at, ErrorType::Invalid, detail);
        }
    }

    fn choice(&mut self, choices: &[Value], text: &str, at: &FieldPath) {
        let words = strings_of(choices);
        if words.contains(&text) {
            return;
        }
        let hint = suggest::did_you_mean(text, words.iter().copied())
            .map(|word| format!(" (did you mean \"{word}\"?)"))
            .unwrap_or_default();
        self.add(at, ErrorType::Unsupported, format!("{}{hint}", supported_values(&words)));
    }
}

fn strings_of(choices: &[Value]) -> Vec<&str> {
    choices.iter().filter_map(Value::as_str).collect()
}

fn supported_values(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!("supported values: {}", quoted.join(", "))
}

/// What a text must match: its pattern, or the pattern in its rule.
fn pattern(schema: &Value) -> Option<&str> {
    let in_rule = || {
        let rule = schema.pointer("/x-kubernetes-validations/0/rule")?.as_str()?;
        rule.strip_prefix("self.matches('")?.strip_suffix("')")
    };
    schema.get("pattern").and_then(Value::as_str).or_else(in_rule)
}

fn matches(pattern: &str, text: &str) -> bool {
    static READ: Mutex<BTreeMap<String, Option<Regex>>> = Mutex::new(BTreeMap::new());
    // Matched outside of the lock: a regex is cheap to share.
    let regex = {
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        read.entry(pattern.to_owned()).or_insert_with(|| Regex::new(pattern).ok()).clone()
    };
    regex.is_none_or(|regex| regex.is_match(text))
}

/// What a value must be: the schema's title and example.
fn meaning(schema: &Value) -> String {
    let word = |key: &str| schema.get(key).and_then(Value::as_str);
    match (word("title"), word("example")) {
        (Some(title), Some(example)) => format!("{title}, such as \"{example}\""),
        (Some(title), None) => title.to_owned(),
        (None, _) => match pattern(schema) {
            Some(pattern) => format!("a text that matches '{pattern}'"),
            None => "a text".to_owned(),
        },
    }
}

/// The first sentence of a field's description.
fn first_sentence(schema: &Value) -> String {
    let whole = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let whole = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = whole.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let mut letters = sentence.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string()).unwrap_or_default();
    format!("say {first}{}", letters.as_str())
}

fn type_error(wanted: &str, schema: &Value, other: &Value) -> String {
    match wanted {
        "string" if other.is_number() || other.is_boolean() => {
            let read = if other.is_number() { "a number" } else { "a boolean" };
            format!("must be {}; YAML reads {other} as {read}, so quote it", meaning(schema))
        }
        "string" => format!("must be {}", meaning(schema)),
        "integer" if other.is_number() => "must be a whole number".to_owned(),
        "integer" => "must be a whole number, without quotes".to_owned(),
        "boolean" => "must be true or false, without quotes".to_owned(),
        "array" => "must be a list".to_owned(),
        _ => match (fields(schema), other.as_str()) {
            (Some(fields), Some(name)) if fields.contains_key("name") => {
                format!("must be a block: write {{name: {name}}}")
            }
            (Some(fields), _) => format!("must be a block of fields: {}", names(fields)),
            (None, _) => "must be a block of keys and values".to_owned(),
        },
    }
}

fn fields(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

fn names(fields: &Map<String, Value>) -> String {
    fields.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The fields that a block must have.
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
