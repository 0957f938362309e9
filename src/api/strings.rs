//! String types of the API with their bounds, each defined once for all kinds and versions. The
//! bounds hold while the webhook is unavailable; `validation` checks what a pattern cannot express.
//! A CEL rule has a message and a pattern has none, so CEL is used where mistakes are common.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::api::macros::string_type;
use crate::api::storage_limits;

string_type! {
    /// An etcd release with three parts, without a leading `v`.
    pub struct EtcdVersion;
    {
        "type": "string", "title": "a release of etcd 3.5, 3.6 or 3.7 with three parts", "example": "3.6.16",
        "maxLength": 16,
        "x-kubernetes-validations": [{
            "rule": "self.matches('^3[.][567][.](0|[1-9][0-9]{0,2})$')",
            "message": "must be a release of etcd 3.5, 3.6 or 3.7 with three parts, such as '3.6.16'",
        }],
    }
}

string_type! {
    /// A release of the example application with three parts.
    pub struct AppVersion;
    {
        "type": "string", "title": "a release with three parts", "example": "0.0.1",
        "maxLength": 16,
        "x-kubernetes-validations": [{
            "rule": "self.matches('^(0|[1-9][0-9]{0,3})([.](0|[1-9][0-9]{0,3})){2}$')",
            "message": "must be a release with three parts, such as '0.0.1'",
        }],
    }
}

string_type! {
    /// A version as a program reports it; only in a status.
    pub struct ReportedVersion;
    { "type": "string", "maxLength": 64 }
}

string_type! {
    /// A size in bytes, such as `10Gi`.
    pub struct Size;
    {
        "type": "string", "title": "a size in bytes with a suffix", "example": "10Gi",
        "maxLength": 20,
        "pattern": "^([0-9]{1,15}|[0-9]{1,6}([.][0-9]{1,3})?(Ki|Mi|Gi|Ti|k|M|G|T))$",
    }
}

string_type! {
    /// Size of a volume, with space for the WAL. It never decreases.
    pub struct VolumeSize;
    {
        "type": "string", "title": "a size in bytes with a suffix", "example": "10Gi",
        "maxLength": 20,
        "pattern": "^([0-9]{1,15}|[0-9]{1,6}([.][0-9]{1,3})?(Ki|Mi|Gi|Ti|k|M|G|T))$",
        "x-kubernetes-validations": storage_limits::volume_cel(),
    }
}

string_type! {
    /// Backend quota of etcd.
    pub struct Quota;
    {
        "type": "string", "title": "a size in bytes with a suffix", "example": "10Gi",
        "maxLength": 20,
        "pattern": "^([0-9]{1,15}|[0-9]{1,6}([.][0-9]{1,3})?(Ki|Mi|Gi|Ti|k|M|G|T))$",
        "x-kubernetes-validations": storage_limits::quota_cel(),
    }
}

string_type! {
    /// A cron schedule with five fields (minute, hour, day, month, day of week), or a name such as
    /// `@daily`.
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
    /// A time zone, such as `Europe/Berlin`.
    pub struct TimeZone;
    {
        "type": "string", "title": "the name of a time zone", "example": "Europe/Berlin",
        "minLength": 1,
        "maxLength": 64,
        "pattern": "^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$",
    }
}

string_type! {
    /// A time in RFC 3339 format.
    pub struct Time;
    { "type": "string", "title": "a time in RFC 3339 format", "example": "2026-01-31T03:00:00Z", "format": "date-time", "maxLength": 64 }
}

string_type! {
    /// Name of an object in the same namespace.
    pub struct ObjectName;
    {
        "type": "string", "title": "the name of an object in the same namespace: lower case letters, digits, dashes and dots", "example": "my-object",
        "minLength": 1,
        "maxLength": 253,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    }
}

string_type! {
    /// Name of a StorageClass, which is cluster-scoped.
    pub struct ClassName;
    {
        "type": "string", "title": "the name of a StorageClass: lower case letters, digits, dashes and dots", "example": "standard",
        "minLength": 1,
        "maxLength": 253,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    }
}

string_type! {
    /// Name of an EtcdCluster, short enough for derived names.
    pub struct ClusterName;
    {
        "type": "string", "title": "the name of an EtcdCluster: a letter, then lower case letters, digits and dashes", "example": "main",
        "minLength": 1,
        "maxLength": 52,
        "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$",
    }
}

string_type! {
    /// Name of a member, which is also the name of its pod and its host name.
    pub struct MemberName;
    {
        "type": "string", "title": "the name of a member: a letter, then lower case letters, digits and dashes", "example": "main-x7k2p",
        "minLength": 1,
        "maxLength": 63,
        "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$",
    }
}

string_type! {
    /// A host with an optional port.
    pub struct Host;
    {
        "type": "string", "title": "a host with an optional port", "example": "backup.example.com:9000",
        "minLength": 1,
        "maxLength": 253,
        "pattern": "^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$",
    }
}

string_type! {
    /// URL of a server, `http` or `https`.
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
    /// Common prefix of object keys.
    pub struct KeyPrefix;
    {
        "type": "string", "title": "letters, digits and - _ . ! * ' ( ) with single slashes between", "example": "team/main",
        "minLength": 1,
        "maxLength": 512,
        "pattern": "^[A-Za-z0-9!_.*'()-]+(/[A-Za-z0-9!_.*'()-]+)*$",
    }
}

string_type! {
    /// Region of an object store.
    pub struct Region;
    { "type": "string", "title": "a region: letters, digits and dashes", "example": "eu-central-1", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9-]+$" }
}

string_type! {
    /// Name of a storage account.
    pub struct Account;
    { "type": "string", "title": "a storage account's name: 3 to 24 lower case letters and digits", "example": "mybackups", "minLength": 3, "maxLength": 24, "pattern": "^[a-z0-9]+$" }
}

string_type! {
    /// URL of an object store or volume.
    pub struct Location;
    {
        "type": "string", "title": "a URL with s3, gs, azblob or volume", "example": "s3://my-backups/team/main",
        "minLength": 1,
        "maxLength": 1024,
        "pattern": "^(s3|gs|azblob|volume)://[^ ]+$",
    }
}

string_type! {
    /// Image repository without a tag.
    pub struct Repository;
    {
        "type": "string", "title": "an image repository in lower case, without a tag", "example": "gcr.io/etcd-development/etcd",
        "minLength": 1,
        "maxLength": 255,
        "pattern": "^[a-z0-9]([a-z0-9._-]*[a-z0-9])?(:[0-9]{1,5}/[a-z0-9._-]+)?(/[a-z0-9._-]+)*$",
    }
}

string_type! {
    /// URL of a member.
    pub struct MemberUrl;
    { "type": "string", "title": "a URL with http or https", "example": "https://main-x7k2p.default.svc:2379", "minLength": 1, "maxLength": 512, "pattern": "^https?://[^ ]+$" }
}

string_type! {
    /// An etcd ID in hexadecimal: 64 bits do not fit a JSON number.
    pub struct HexId;
    { "type": "string", "title": "1 to 16 hexadecimal digits", "example": "8e9e05c52164694d", "minLength": 1, "maxLength": 16, "pattern": "^[0-9a-f]+$" }
}

string_type! {
    /// A SHA-256 digest in hexadecimal.
    pub struct Sha256;
    { "type": "string", "title": "64 hexadecimal digits", "minLength": 64, "maxLength": 64, "pattern": "^[0-9a-f]+$" }
}

string_type! {
    /// Name of a feature, in lower camel case.
    pub struct FeatureName;
    {
        "type": "string", "title": "the name of a feature, in lower camel case", "example": "exampleFeature1",
        "minLength": 1,
        "maxLength": 63,
        "pattern": "^[a-z][A-Za-z0-9]*$",
    }
}

string_type! {
    /// A short identifier: a reason, a step, an option.
    pub struct Token;
    { "type": "string", "maxLength": 63 }
}

string_type! {
    /// A short string for a printer column.
    pub struct ShortString;
    { "type": "string", "maxLength": 256 }
}

string_type! {
    /// A human-readable message.
    pub struct Message;
    { "type": "string", "maxLength": 1024 }
}

string_type! {
    /// A string that only the operator reads; only in a status.
    pub struct OpaqueText;
    { "type": "string", "maxLength": 32_768 }
}

string_type! {
    /// A label selector in string form.
    pub struct Selector;
    { "type": "string", "maxLength": 1024 }
}

string_type! {
    /// A URL for users.
    pub struct Url;
    { "type": "string", "maxLength": 1024 }
}

string_type! {
    /// Value of a label.
    pub struct LabelValue;
    {
        "type": "string", "title": "a label's value: at most 63 letters, digits, dashes, underscores and dots", "example": "team-a",
        "maxLength": 63,
        "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
    }
}

string_type! {
    /// Key of a label.
    pub struct LabelKey;
    {
        "type": "string", "title": "a label's key: a name, or a domain, a slash and a name", "example": "example.org/team",
        "minLength": 1,
        "maxLength": 317,
        "pattern": "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$",
    }
}

string_type! {
    /// Value of an annotation.
    pub struct AnnotationValue;
    { "type": "string", "maxLength": 8192 }
}

string_type! {
    /// A DNS name, without a port.
    pub struct HostName;
    {
        "type": "string", "title": "the name of a host", "example": "app.example.com",
        "minLength": 1,
        "maxLength": 253,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    }
}

string_type! {
    /// Name of a bucket, a container or a PersistentVolumeClaim, before the type of the store is
    /// known.
    pub struct StoreName;
    {
        "type": "string", "title": "the name of a bucket, a container or a claim", "example": "my-backups",
        "minLength": 1,
        "maxLength": 253,
        "pattern": "^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$",
    }
}
