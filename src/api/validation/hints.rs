//! Hints for strings that a schema rejects: the error and the correct value, if known. They are
//! found by the title of the schema, so that a string type has the same hint in every kind and
//! version.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

use crate::api::etcd_version::path::acceptable;
use crate::api::etcd_version::{Release, policy};
use crate::api::strings::{
    AppVersion, Bucket, ClassName, ClusterName, Endpoint, EtcdVersion, Host, KeyPrefix, Location,
    ObjectName, Quota, Repository, Schedule, Size, StoreName, TimeZone, VolumeSize,
};
use crate::api::{bytes, names, object_store, schedule};

type HintFn = fn(&str) -> Option<String>;

/// Hints by the title of their schema.
static HINTS: LazyLock<BTreeMap<String, HintFn>> = LazyLock::new(|| {
    let hints: [(String, HintFn); 17] = [
        (title::<AppVersion>(), app_version),
        (title::<Bucket>(), object_store::bucket_error),
        (title::<ClassName>(), class_name),
        (title::<ClusterName>(), object_name),
        (title::<Endpoint>(), object_store::endpoint_error),
        (title::<EtcdVersion>(), etcd_version),
        (title::<Host>(), object_store::host_error),
        (title::<KeyPrefix>(), prefix),
        (title::<Location>(), location),
        (title::<ObjectName>(), object_name),
        (title::<Quota>(), size),
        (title::<Repository>(), object_store::repository_error),
        (title::<Schedule>(), schedule_expression),
        (title::<Size>(), size),
        (title::<StoreName>(), lower_case),
        (title::<TimeZone>(), time_zone),
        (title::<VolumeSize>(), size),
    ];
    hints.into_iter().collect()
});

fn title<T: JsonSchema>() -> String {
    let schema = T::json_schema(&mut SchemaGenerator::default());
    schema.get("title").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Hint for a string that a schema with this title rejects.
pub(super) fn hint(title: &str, text: &str) -> Option<String> {
    HINTS.get(title).and_then(|hint| hint(text))
}

fn etcd_version(text: &str) -> Option<String> {
    if let Some(release) = Release::parse(text) {
        return acceptable(release).err().map(|reason| reason.to_string());
    }
    let plain = without_v(text);
    let core = plain.split(['-', '+']).next().unwrap_or_default();
    if let Some(release) = Release::parse(core) {
        let rejected = acceptable(release).err().map(|reason| reason.to_string());
        return Some(rejected.unwrap_or_else(|| only_three_parts(release)));
    }
    let minor = Release::parse(&format!("{plain}.0")).map(Release::minor);
    if let Some(line) = minor.and_then(policy::line) {
        let (newest, minor) = (line.newest, line.minor());
        return Some(format!("must have three parts: write \"{newest}\", the newest of {minor}"));
    }
    let is_word = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_word.then(|| {
        let newest = policy::newest().newest;
        format!("must be a release, such as \"{newest}\", and not a name that can change")
    })
}

fn app_version(text: &str) -> Option<String> {
    let plain = without_v(text);
    if let Some(release) = Release::parse(plain.split(['-', '+']).next().unwrap_or_default()) {
        return Some(only_three_parts(release));
    }
    let whole = Release::parse(&format!("{plain}.0"))?;
    Some(format!("must have three parts: write \"{whole}\""))
}

fn without_v(text: &str) -> &str {
    text.trim().trim_start_matches(['v', 'V'])
}

fn only_three_parts(release: Release) -> String {
    format!("must be three numbers separated by dots: write \"{release}\"")
}

fn schedule_expression(text: &str) -> Option<String> {
    schedule::parse(text, None).err().map(|error| error.to_string())
}

fn time_zone(text: &str) -> Option<String> {
    schedule::parse("@daily", Some(text)).err().map(|error| error.to_string())
}

/// Hint for the name of an object in the same namespace.
pub(crate) fn object_name(text: &str) -> Option<String> {
    if let Some(name) = without_namespace(text) {
        return Some(format!(
            "must be a name without a namespace, because a reference is always in the namespace of \
             its object: write \"{name}\""
        ));
    }
    plain_name(text)
}

/// The name in `namespace/name`, with any separator; in a URL a slash would separate the path.
fn without_namespace(text: &str) -> Option<&str> {
    ["/", ":", "%2F", "%2f"].iter().find_map(|separator| Some(text.split_once(separator)?.1))
}

fn class_name(text: &str) -> Option<String> {
    if text.contains('/') {
        // Often the name of the provisioner, which `kubectl get` prints beside it.
        return Some(
            "must be the name of a StorageClass (a DNS subdomain: lower case letters, digits, dashes \
             and dots) without a slash; `kubectl get storageclass` lists them"
                .to_owned(),
        );
    }
    plain_name(text)
}

fn plain_name(text: &str) -> Option<String> {
    let plain = text.to_ascii_lowercase().replace(['_', ' '], "-");
    (plain != text && names::is_dns_subdomain(&plain)).then(|| {
        format!("must have lower case letters, digits, dashes and dots only: write \"{plain}\"")
    })
}

fn lower_case(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    (lower != text).then(|| format!("must be in lower case: write \"{lower}\""))
}

fn prefix(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some(
            "must not be empty; remove the field, or the trailing slash of a URL".to_owned(),
        );
    }
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
    let joined = parts.join("/");
    (joined != text)
        .then(|| format!("must have single slashes, only between its parts: write \"{joined}\""))
}

/// Hint for the URL of an object store or volume.
pub(crate) fn location(text: &str) -> Option<String> {
    const SCHEMES: &str = "must begin with 's3://', 'gs://', 'azblob://' or 'volume://'";
    let Some((scheme, rest)) = text.split_once("://") else {
        let path = if text.starts_with('/') { "my-backups/main" } else { text };
        return Some(format!("{SCHEMES}: write 's3://{path}' for an S3 bucket"));
    };
    let first = rest.split('/').next().unwrap_or_default();
    let (what, example) = match scheme {
        "s3" => ("a bucket", "s3://my-backups/main"),
        "gs" => ("a bucket", "gs://my-backups/main"),
        "azblob" => ("an account and a container", "azblob://myaccount/my-backups/main"),
        "volume" => ("a PersistentVolumeClaim", "volume://my-claim/main"),
        _ => {
            return Some(format!(
                "{SCHEMES}, not with '{scheme}://', such as 's3://my-backups/main'"
            ));
        }
    };
    let incomplete = first.is_empty() || (scheme == "azblob" && !rest.contains('/'));
    if incomplete {
        return Some(format!("must name {what} after '{scheme}://', such as '{example}'"));
    }
    text.contains(' ').then(|| "must not have spaces".to_owned())
}

fn size(text: &str) -> Option<String> {
    let write = nearest_size(text)
        .map_or_else(|| "such as \"10Gi\"".to_owned(), |size| format!("write \"{size}\""));
    bytes::parse(text).is_none().then(|| {
        format!(
            "must be a number and a unit without a space (Ki, Mi, Gi, Ti in steps of 1024; k, M, \
             G, T in steps of 1000): {write}"
        )
    })
}

/// The valid size for `10 GB`, `10gib` or `10K`.
fn nearest_size(text: &str) -> Option<String> {
    let letters: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    let unit_start = letters.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, unit) = letters.split_at_checked(unit_start)?;
    let unit = unit.to_ascii_lowercase();
    let unit = match unit.trim_end_matches('b') {
        "" => "",
        "k" => "k",
        "m" => "M",
        "g" => "G",
        "t" => "T",
        "ki" => "Ki",
        "mi" => "Mi",
        "gi" => "Gi",
        "ti" => "Ti",
        _ => return None,
    };
    Some(format!("{number}{unit}")).filter(|size| bytes::parse(size).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_have_distinct_titles() {
        assert!(!HINTS.contains_key(""));
        // The three size types share one.
        assert_eq!(HINTS.len(), 15);
    }

    #[test]
    fn nearest_size_is_suggested() {
        for (written, suggestion) in [
            ("10 GB", "10G"),
            ("10gib", "10Gi"),
            ("10K", "10k"),
            ("1.5gi", "1.5Gi"),
            ("8GI", "8Gi"),
        ] {
            assert_eq!(nearest_size(written).as_deref(), Some(suggestion), "{written}");
        }
        for written in ["", "ten", "-5Gi", "10 apples", "1,5Gi"] {
            assert_eq!(nearest_size(written), None, "{written}");
        }
    }

    #[test]
    fn invalid_value_is_not_suggested() {
        for text in ["Main!", "-Main", "a..B", "Main\u{e9}"] {
            assert_eq!(hint(&title::<ObjectName>(), text), None, "{text}");
            assert_eq!(hint(&title::<ClassName>(), text), None, "{text}");
        }
    }

    #[test]
    fn suggested_value_is_valid() {
        for (title, text, suggestion) in [
            (title::<EtcdVersion>(), "v3.6.16", "\"3.6.16\""),
            (title::<EtcdVersion>(), "3.6", "\"3.6.16\""),
            (title::<AppVersion>(), "1.0", "\"1.0.0\""),
            (title::<ObjectName>(), "other/main", "\"main\""),
            (title::<ObjectName>(), "other:main", "\"main\""),
            (title::<ClassName>(), "Fast_Disks", "\"fast-disks\""),
            (title::<KeyPrefix>(), "/team//main/", "\"team/main\""),
        ] {
            let hint = hint(&title, text).unwrap();
            let suggested = hint.contains(&format!("write {suggestion}"));
            assert!(hint.ends_with(suggestion) || suggested, "{hint}");
        }
    }
}
