//! Backup destination in the fields of the older versions: storage type, host and bucket name.
//! Only a known storage type selects an object of the hub. Without one nothing is guessed: the
//! fields are preserved as they are, and the schema reports them.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::Value;

use crate::api::destination::{Azure, Destination, Gcs, S3, Volume};
use crate::api::field::Field;
use crate::api::macros::string_enum;
use crate::api::pod::LocalRef;
use crate::api::strings::{Account, Bucket, Endpoint, Host, KeyPrefix, ObjectName, StoreName};

string_enum! {
    /// Type of the store, with the values of the white paper.
    pub enum StorageType {
        /// Amazon S3 or an S3-compatible server.
        S3 = "s3",
        /// Google Cloud Storage.
        Gcs = "gcs",
        /// Azure Blob Storage.
        Azure = "azure",
        /// A PersistentVolumeClaim.
        Volume = "volume",
    }
}

/// The destination fields of the older versions.
#[derive(Default)]
pub(super) struct BackupStore {
    pub(super) storage_type: Field<StorageType>,
    pub(super) host: Field<Host>,
    pub(super) bucket_name: Field<StoreName>,
    pub(super) prefix: Field<KeyPrefix>,
}

impl BackupStore {
    /// The destination in the hub version.
    pub(super) fn into_destination(self) -> Field<Destination> {
        let Self { storage_type, host, bucket_name, prefix } = self;
        let Some(storage_type) = storage_type.into_known() else { return Field::Absent };
        let mut destination = Destination::default();
        match storage_type {
            StorageType::S3 => {
                let (bucket, endpoint) =
                    (bucket_name.map(|name| bucket(&name)), host.convert(|host| endpoint(&host)));
                let s3 = S3 { bucket, prefix, endpoint, ..S3::default() };
                destination.s3 = Field::Known(s3);
            }
            StorageType::Gcs => {
                let gcs =
                    Gcs { bucket: bucket_name.map(|name| bucket(&name)), prefix, ..Gcs::default() };
                destination.gcs = Field::Known(gcs);
            }
            StorageType::Azure => {
                let account = host.map(|host| Account::from(host.as_str()));
                let container = bucket_name.map(|name| bucket(&name));
                let azure = Azure { account, container, prefix, ..Azure::default() };
                destination.azure = Field::Known(azure);
            }
            StorageType::Volume => {
                let name = bucket_name.map(|name| ObjectName::from(name.as_str()));
                let claim_ref = Field::non_default(LocalRef { name });
                destination.volume = Field::Known(Volume { claim_ref, prefix });
            }
        }
        Field::Known(destination)
    }

    /// The fields of the hub's destination, if exactly one store is set.
    pub(super) fn from_destination(destination: Destination) -> Self {
        let Destination { s3, gcs, azure, volume } = destination;
        match (s3, gcs, azure, volume) {
            (Field::Known(s3), Field::Absent, Field::Absent, Field::Absent) => Self::from_s3(s3),
            (Field::Absent, Field::Known(gcs), Field::Absent, Field::Absent) => Self::from_gcs(gcs),
            (Field::Absent, Field::Absent, Field::Known(azure), Field::Absent) => {
                Self::from_azure(azure)
            }
            (Field::Absent, Field::Absent, Field::Absent, Field::Known(volume)) => {
                Self::from_volume(volume)
            }
            _ => Self::default(),
        }
    }

    fn from_s3(s3: S3) -> Self {
        let S3 {
            bucket,
            prefix,
            endpoint,
            region: _,
            path_style: _,
            credentials_secret_ref: _,
            ca_secret_ref: _,
        } = s3;
        Self {
            storage_type: Field::Known(StorageType::S3),
            host: endpoint.convert(|endpoint| host(&endpoint)),
            bucket_name: bucket.map(|bucket| store_name(&bucket)),
            prefix,
        }
    }

    fn from_gcs(gcs: Gcs) -> Self {
        let Gcs { bucket, prefix, credentials_secret_ref: _ } = gcs;
        Self {
            storage_type: Field::Known(StorageType::Gcs),
            host: Field::Absent,
            bucket_name: bucket.map(|bucket| store_name(&bucket)),
            prefix,
        }
    }

    fn from_azure(azure: Azure) -> Self {
        let Azure { account, container, prefix, credentials_secret_ref: _ } = azure;
        Self {
            storage_type: Field::Known(StorageType::Azure),
            host: account.map(|account| Host::from(account.as_str())),
            bucket_name: container.map(|container| store_name(&container)),
            prefix,
        }
    }

    fn from_volume(volume: Volume) -> Self {
        let Volume { claim_ref, prefix } = volume;
        let LocalRef { name } = claim_ref.or_default();
        Self {
            storage_type: Field::Known(StorageType::Volume),
            host: Field::Absent,
            bucket_name: name.map(|name| StoreName::from(name.as_str())),
            prefix,
        }
    }
}

fn bucket(name: &StoreName) -> Bucket {
    Bucket::from(name.as_str())
}

fn store_name(bucket: &Bucket) -> StoreName {
    StoreName::from(bucket.as_str())
}

/// The endpoint of a host. A string that is not a host is passed on as it is, so that validation
/// reports it; but not a URL, which would be a valid endpoint in the hub.
fn endpoint(host: &Host) -> Field<Endpoint> {
    let text = host.as_str();
    if is_host(text) {
        Field::Known(Endpoint::from(format!("https://{text}")))
    } else if text.contains("://") {
        Field::Absent
    } else {
        Field::Invalid(Value::String(text.to_owned()))
    }
}

/// The host of an endpoint. The rest of the URL is preserved by the conversion engine.
fn host(endpoint: &Endpoint) -> Field<Host> {
    let Some((_, rest)) = endpoint.as_str().split_once("://") else {
        return Field::Known(Host::from(endpoint.as_str()));
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    Some(authority).filter(|authority| is_host(authority)).map(Host::from).into()
}

/// Whether the schema of [`Host`] accepts the string.
fn is_host(text: &str) -> bool {
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    let is_alphanumeric = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    let is_port =
        |port: &str| (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit());
    text.len() <= 253
        && name.bytes().all(plain)
        && is_alphanumeric(name.bytes().next())
        && is_alphanumeric(name.bytes().next_back())
        && port.is_none_or(is_port)
}
