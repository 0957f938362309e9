//! The kinds of text that the API knows, each with its bounds, once for every kind and version.
//! Comes in: nothing. Goes out: types whose schema says what they may hold.
//! May touch: `shape`. Bounds hold even when the webhook is down; what needs more than a pattern is
//! said by `check`. Rules in CEL carry a sentence, patterns cannot, so CEL is used where people err.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::macros::string_type;
use crate::api::storage_limits;

string_type! {
    /// A release of etcd with its three parts, without a leading `v`.
    pub struct EtcdVersion;
    {
        "type": "string", "title": "a release of etcd 3.5, 3.6 or 3.7 with its three parts", "example": "3.6.16",
        "maxLength": 16,
        "x-kubernetes-validations": [{
            "rule": "self.matches('^3[.][567][.](0|[1-9][0-9]{0,2})$')",
            "message": "must be a release of etcd 3.5, 3.6 or 3.7 with its three parts, such as '3.6.16'",
        }],
    }
}

string_type! {
    /// A release of the example application with its three parts.
    pub struct AppVersion;
    {
        "type": "string", "title": "a release with its three parts", "example": "0.0.1",
        "maxLength": 16,
        "x-kubernetes-validations": [{
            "rule": "self.matches('^(0|[1-9][0-9]{0,3})([.](0|[1-9][0-9]{0,3})){2}$')",
            "message": "must be a release with its three parts, such as '0.0.1'",
        }],
    }
}

string_type! {
    /// A version as a program reports it; only ever in a status.
    pub struct ReportedVersion;
    { "type": "string", "maxLength": 64 }
}

string_type! {
    /// A number of bytes, such as `10Gi`.
    pub struct Size;
    {
        "type": "string", "title": "a number of bytes with a suffix", "example": "10Gi",
        "maxLength": 20,
        "pattern": "^([0-9]{1,15}|[0-9]{1,6}([.][0-9]{1,3})?(Ki|Mi|Gi|Ti|k|M|G|T))$",
    }
}

string_type! {
    /// A volume's size, with room for etcd's log. It may grow, and never shrink.
    pub struct VolumeSize;
    {
        "type": "string", "title": "a number of bytes with a suffix", "example": "10Gi",
        "maxLength": 20,
        "pattern": "^([0-9]{1,15}|[0-9]{1,6}([.][0-9]{1,3})?(Ki|Mi|Gi|Ti|k|M|G|T))$",
        "x-kubernetes-validations": storage_limits::volume_cel(),
    }
}

string_type! {
    /// How large the data of a cluster may grow.
    pub struct Quota;
    {
        "type": "string", "title": "a number of bytes with a suffix", "example": "10Gi",
        "maxLength": 20,
        "pattern": "^([0-9]{1,15}|[0-9]{1,6}([.][0-9]{1,3})?(Ki|Mi|Gi|Ti|k|M|G|T))$",
        "x-kubernetes-validations": storage_limits::quota_cel(),
    }
}

string_type! {
    /// A schedule with five fields (minute, hour, day, month, day of week), or `@daily` and the like.
    pub struct Schedule;
    {
        "type": "string", "title": "five fields (minute, hour, day, month, day of week) or a name such as @daily", "example": "0 3 * * *",
        "minLength": 1,
        "maxLength": 100,
        "x-kubernetes-validations": [{
            "rule": "self.matches('^(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|[^ ]+( +[^ ]+){4})$')",
            "message": "must have five fields (minute, hour, day, month, day of week), such as '0 3 * * *', or be a name such as '@daily'",
        }],
    }
}

string_type! {
    /// A time zone by its name, such as `Europe/Berlin`.
    pub struct TimeZone;
    {
        "type": "string", "title": "the name of a time zone", "example": "Europe/Berlin",
        "minLength": 1,
        "maxLength": 64,
        "pattern": "^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$",
    }
}

string_type! {
    /// A moment, as RFC 3339 writes it.
    pub struct Time;
    { "type": "string", "title": "a moment as RFC 3339 writes it", "example": "2026-01-31T03:00:00Z", "format": "date-time", "maxLength": 64 }
}

string_type! {
    /// The name of an object in the same namespace.
    pub struct ObjectName;
    {
        "type": "string", "title": "the name of an object in the same namespace: lower case letters, digits, dashes and dots", "example": "my-object",
        "minLength": 1,
        "maxLength": 253,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    }
}

string_type! {
    /// The name of a StorageClass, which is in no namespace.
    pub struct ClassName;
    {
        "type": "string", "title": "the name of a StorageClass: lower case letters, digits, dashes and dots", "example": "standard",
        "minLength": 1,
        "maxLength": 253,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    }
}

string_type! {
    /// The name of an EtcdCluster, short enough for what is named after it.
    pub struct ClusterName;
    {
        "type": "string", "title": "the name of an EtcdCluster: a letter, then lower case letters, digits and dashes", "example": "main",
        "minLength": 1,
        "maxLength": 52,
        "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$",
    }
}

string_type! {
    /// The name of a member, which is also its pod's and its host's.
    pub struct MemberName;
    {
        "type": "string", "title": "the name of a member: a letter, then lower case letters, digits and dashes", "example": "main-x7k2p",
        "minLength": 1,
        "maxLength": 63,
        "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$",
    }
}

string_type! {
    /// A host, and a port if need be.
    pub struct Host;
    {
        "type": "string", "title": "a host, with a port if need be", "example": "backup.example.com:9000",
        "minLength": 1,
        "maxLength": 253,
        "pattern": "^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$",
    }
}

string_type! {
    /// The URL of a server, with `http` or `https`.
    pub struct Endpoint;
    {
        "type": "string", "title": "a URL with http or https", "example": "https://s3.example.com:9000",
        "minLength": 1,
        "maxLength": 512,
        "pattern": "^https?://[^ ]+$",
    }
}

string_type! {
    /// A bucket or container of an object store.
    pub struct Bucket;
    {
        "type": "string", "title": "a bucket's name: 3 to 63 lower case letters, digits, dots and dashes", "example": "my-backups",
        "minLength": 3,
        "maxLength": 63,
        "pattern": "^[a-z0-9][a-z0-9._-]*[a-z0-9]$",
    }
}

string_type! {
    /// The part of an object's key that all objects of one owner share.
    pub struct KeyPrefix;
    {
        "type": "string", "title": "letters, digits and - _ . ! * ' ( ) with single slashes between", "example": "team/main",
        "minLength": 1,
        "maxLength": 512,
        "pattern": "^[A-Za-z0-9!_.*'()-]+(/[A-Za-z0-9!_.*'()-]+)*$",
    }
}

string_type! {
    /// The region of an object store.
    pub struct Region;
    { "type": "string", "title": "a region: letters, digits and dashes", "example": "eu-central-1", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9-]+$" }
}

string_type! {
    /// The name of a storage account.
    pub struct Account;
    { "type": "string", "title": "a storage account's name: 3 to 24 lower case letters and digits", "example": "mybackups", "minLength": 3, "maxLength": 24, "pattern": "^[a-z0-9]+$" }
}

string_type! {
    /// A place in a store, as one URL.
    pub struct Location;
    {
        "type": "string", "title": "a URL with s3, gs, azblob or volume", "example": "s3://my-backups/team/main",
        "minLength": 1,
        "maxLength": 1024,
        "pattern": "^(s3|gs|azblob|volume)://[^ ]+$",
    }
}

string_type! {
    /// The repository of an image, without a tag.
    pub struct Repository;
    {
        "type": "string", "title": "the repository of an image, in lower case and without a tag", "example": "gcr.io/etcd-development/etcd",
        "minLength": 1,
        "maxLength": 255,
        "pattern": "^[a-z0-9]([a-z0-9._-]*[a-z0-9])?(:[0-9]{1,5}/[a-z0-9._-]+)?(/[a-z0-9._-]+)*$",
    }
}

string_type! {
    /// The URL of a member.
    pub struct MemberUrl;
    { "type": "string", "title": "a URL with http or https", "example": "https://main-x7k2p.default.svc:2379", "minLength": 1, "maxLength": 512, "pattern": "^https?://[^ ]+$" }
}

string_type! {
    /// An ID of etcd's, in hexadecimal digits: 64 bits do not fit a JSON number.
    pub struct HexId;
    { "type": "string", "title": "1 to 16 hexadecimal digits", "example": "8e9e05c52164694d", "minLength": 1, "maxLength": 16, "pattern": "^[0-9a-f]+$" }
}

string_type! {
    /// A SHA-256 digest in hexadecimal digits.
    pub struct Sha256;
    { "type": "string", "title": "64 hexadecimal digits", "minLength": 64, "maxLength": 64, "pattern": "^[0-9a-f]+$" }
}

string_type! {
    /// The name of a feature, in lower camel case.
    pub struct FeatureName;
    {
        "type": "string", "title": "the name of a feature, in lower camel case", "example": "exampleFeature1",
        "minLength": 1,
        "maxLength": 63,
        "pattern": "^[a-z][A-Za-z0-9]*$",
    }
}

string_type! {
    /// One word of ours: a reason, a step, an option.
    pub struct Token;
    { "type": "string", "maxLength": 63 }
}

string_type! {
    /// A few words for a column.
    pub struct ShortString;
    { "type": "string", "maxLength": 256 }
}

string_type! {
    /// A sentence for a person.
    pub struct Message;
    { "type": "string", "maxLength": 1024 }
}

string_type! {
    /// Something that the operator keeps for itself; only ever in a status.
    pub struct OpaqueText;
    { "type": "string", "maxLength": 32_768 }
}

string_type! {
    /// A selector of labels, written as kubectl takes it.
    pub struct Selector;
    { "type": "string", "maxLength": 1024 }
}

string_type! {
    /// A URL for people.
    pub struct Url;
    { "type": "string", "maxLength": 1024 }
}

string_type! {
    /// The value of a label.
    pub struct LabelValue;
    {
        "type": "string", "title": "a label's value: at most 63 letters, digits, dashes, underscores and dots", "example": "team-a",
        "maxLength": 63,
        "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
    }
}

string_type! {
    /// The key of a label.
    pub struct LabelKey;
    {
        "type": "string", "title": "a label's key: a name, or a domain, a slash and a name", "example": "example.org/team",
        "minLength": 1,
        "maxLength": 317,
        "pattern": "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$",
    }
}

string_type! {
    /// The value of an annotation.
    pub struct AnnotationValue;
    { "type": "string", "maxLength": 8192 }
}

string_type! {
    /// A name in DNS, without a port.
    pub struct HostName;
    {
        "type": "string", "title": "the name of a host", "example": "app.example.com",
        "minLength": 1,
        "maxLength": 253,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    }
}

string_type! {
    /// A bucket, a container or a claim: what a store is called before it is said which kind it is.
    pub struct StoreName;
    {
        "type": "string", "title": "the name of a bucket, a container or a claim", "example": "my-backups",
        "minLength": 1,
        "maxLength": 253,
        "pattern": "^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$",
    }
}
