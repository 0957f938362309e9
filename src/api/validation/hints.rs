//! What is wrong with a text that its schema refuses, in more words than a pattern has.
//! Comes in: the schema's title and the text. Goes out: what to write instead, if that is known.
//! May touch: the texts of `api` and what they mean. A text of ours that has a hint here is
//! explained alike in every kind and version.
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

/// The hints, by the titles of the schemas they explain.
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
        (title::<Schedule>(), run),
        (title::<Size>(), size),
        (title::<StoreName>(), in_lower_case),
        (title::<TimeZone>(), zone),
        (title::<VolumeSize>(), size),
    ];
    hints.into_iter().collect()
});

fn title<T: JsonSchema>() -> String {
    let schema = T::json_schema(&mut SchemaGenerator::default());
    schema.get("title").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// What is wrong with `text`, which a schema with this title refuses.
pub(super) fn hint(title: &str, text: &str) -> Option<String> {
    HINTS.get(title).and_then(|hint| hint(text))
}

fn etcd_version(text: &str) -> Option<String> {
    if let Some(release) = Release::parse(text) {
        return acceptable(release).err().map(|why| why.to_string());
    }
    let plain = without_v(text);
    let core = plain.split(['-', '+']).next().unwrap_or_default();
    if let Some(release) = Release::parse(core) {
        let refused = acceptable(release).err().map(|why| why.to_string());
        return Some(refused.unwrap_or_else(|| only_three_parts(release)));
    }
    let minor = Release::parse(&format!("{plain}.0")).map(Release::minor);
    if let Some(line) = minor.and_then(policy::line) {
        let (newest, minor) = (line.newest, line.minor());
        return Some(format!("must have three parts: write \"{newest}\", the newest of {minor}"));
    }
    let is_word = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_word.then(|| {
        let newest = policy::newest().newest;
        format!("must name one release, such as \"{newest}\": a word is another one tomorrow")
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
    format!("must be three numbers and nothing else: write \"{release}\"")
}

fn run(text: &str) -> Option<String> {
    schedule::parse(text, None).err().map(|problem| problem.to_string())
}

fn zone(text: &str) -> Option<String> {
    schedule::parse("@daily", Some(text)).err().map(|problem| problem.to_string())
}

/// What is wrong with the name of an object in the same namespace.
pub(crate) fn object_name(text: &str) -> Option<String> {
    if let Some(name) = second_of_a_pair(text) {
        return Some(format!(
            "must be a name alone, because a reference never leaves the namespace of its object: \
             write \"{name}\""
        ));
    }
    plain_name(text)
}

/// The name of `namespace/name`, however the two are set apart; in a URL a slash would be another.
fn second_of_a_pair(text: &str) -> Option<&str> {
    ["/", ":", "%2F", "%2f"].iter().find_map(|mark| Some(text.split_once(mark)?.1))
}

fn class_name(text: &str) -> Option<String> {
    if text.contains('/') {
        // Often the name of the provisioner, which `kubectl get` shows beside it.
        return Some(
            "must be the name of a StorageClass (a DNS subdomain: lower case letters, digits, dashes \
             and dots), and no name has a slash; choose one that `kubectl get storageclass` lists"
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

fn in_lower_case(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    (lower != text).then(|| format!("must be in lower case: write \"{lower}\""))
}

fn prefix(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("must not be empty; leave it out, and in a URL the last slash".to_owned());
    }
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
    let joined = parts.join("/");
    (joined != text).then(|| {
        format!("must have single slashes, and only between its parts: write \"{joined}\"")
    })
}

/// What is wrong with the URL of a place in a store.
pub(crate) fn location(text: &str) -> Option<String> {
    const SCHEMES: &str = "must begin with 's3://', 'gs://', 'azblob://' or 'volume://'";
    let Some((scheme, rest)) = text.split_once("://") else {
        let path = if text.starts_with('/') { "my-backups/main" } else { text };
        return Some(format!("{SCHEMES}: write 's3://{path}' for a bucket of S3"));
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
    let lacks = first.is_empty() || (scheme == "azblob" && !rest.contains('/'));
    if lacks {
        return Some(format!("must name {what} after '{scheme}://', such as '{example}'"));
    }
    text.contains(' ').then(|| "must not have spaces".to_owned())
}

fn size(text: &str) -> Option<String> {
    let write = nearest_size(text)
        .map_or_else(|| "such as \"10Gi\"".to_owned(), |meant| format!("write \"{meant}\""));
    bytes::parse(text).is_none().then(|| {
        format!(
            "must be a number and its unit without a space (Ki, Mi, Gi, Ti in steps of 1024; k, M, \
             G, T in steps of 1000): {write}"
        )
    })
}

/// The size that was probably meant by `10 GB`, `10gib` or `10K`.
fn nearest_size(text: &str) -> Option<String> {
    let letters: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    let begins = letters.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, unit) = letters.split_at_checked(begins)?;
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
    Some(format!("{number}{unit}")).filter(|meant| bytes::parse(meant).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_teacher_has_a_title_of_its_own() {
        assert!(!HINTS.contains_key(""));
        // The three kinds of sizes share one.
        assert_eq!(HINTS.len(), 15);
    }

    #[test]
    fn sizes_are_understood_well_enough_to_offer_one() {
        for (written, meant) in [
            ("10 GB", "10G"),
            ("10gib", "10Gi"),
            ("10K", "10k"),
            ("1.5gi", "1.5Gi"),
            ("8GI", "8Gi"),
        ] {
            assert_eq!(nearest_size(written).as_deref(), Some(meant), "{written}");
        }
        for written in ["", "ten", "-5Gi", "10 apples", "1,5Gi"] {
            assert_eq!(nearest_size(written), None, "{written}");
        }
    }

    #[test]
    fn what_would_not_be_taken_is_not_offered() {
        for text in ["Main!", "-Main", "a..B", "Main\u{e9}"] {
            assert_eq!(hint(&title::<ObjectName>(), text), None, "{text}");
            assert_eq!(hint(&title::<ClassName>(), text), None, "{text}");
        }
    }

    #[test]
    fn what_is_offered_would_be_taken() {
        for (title, text, offer) in [
            (title::<EtcdVersion>(), "v3.6.16", "\"3.6.16\""),
            (title::<EtcdVersion>(), "3.6", "\"3.6.16\""),
            (title::<AppVersion>(), "1.0", "\"1.0.0\""),
            (title::<ObjectName>(), "other/main", "\"main\""),
            (title::<ObjectName>(), "other:main", "\"main\""),
            (title::<ClassName>(), "Fast_Disks", "\"fast-disks\""),
            (title::<KeyPrefix>(), "/team//main/", "\"team/main\""),
        ] {
            let words = hint(&title, text).unwrap();
            assert!(words.ends_with(offer) || words.contains(&format!("write {offer}")), "{words}");
        }
    }
}
