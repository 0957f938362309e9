//! Where backups go, the way the older versions say it: a type of store, a host and a name.
//! Comes in: those words, or the hub's block. Goes out: the other.
//! May touch: `destination`. Only a type that is known selects a block of the hub. Without one,
//! nothing is guessed: the words are kept as they are, for the schema to name.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::Value;

use crate::api::destination::{Azure, Destination, Gcs, S3, Volume};
use crate::api::field::Field;
use crate::api::pod::LocalRef;
use crate::api::shape::choice;
use crate::api::texts::{Account, Bucket, Endpoint, Host, KeyPrefix, ObjectName, StoreName};

choice! {
    /// The types of stores. The words are those of the paper, and of its makers.
    pub enum StorageType {
        /// Amazon S3, or a server that speaks its language.
        S3 = "s3",
        /// Google Cloud Storage.
        Gcs = "gcs",
        /// Azure Blob Storage.
        Azure = "azure",
        /// A PersistentVolumeClaim.
        Volume = "volume",
    }
}

/// What the older versions can say of a destination.
#[derive(Default)]
pub(super) struct Place {
    pub(super) storage_type: Field<StorageType>,
    pub(super) host: Field<Host>,
    pub(super) bucket_name: Field<StoreName>,
    pub(super) prefix: Field<KeyPrefix>,
}

impl Place {
    /// The same in the hub's words.
    pub(super) fn up(self) -> Field<Destination> {
        let Self { storage_type, host, bucket_name, prefix } = self;
        let Some(storage_type) = storage_type.into_known() else { return Field::Absent };
        let mut destination = Destination::default();
        match storage_type {
            StorageType::S3 => {
                let (bucket, endpoint) =
                    (bucket_name.map(|name| bucket(&name)), host.turned(|host| endpoint(&host)));
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
                let claim_ref = Field::unless_empty(LocalRef { name });
                destination.volume = Field::Known(Volume { claim_ref, prefix });
            }
        }
        Field::Known(destination)
    }

    /// What the hub says, if it says exactly one block.
    pub(super) fn down(destination: Destination) -> Self {
        let Destination { s3, gcs, azure, volume } = destination;
        match (s3, gcs, azure, volume) {
            (Field::Known(s3), Field::Absent, Field::Absent, Field::Absent) => Self::of_s3(s3),
            (Field::Absent, Field::Known(gcs), Field::Absent, Field::Absent) => Self::of_gcs(gcs),
            (Field::Absent, Field::Absent, Field::Known(azure), Field::Absent) => {
                Self::of_azure(azure)
            }
            (Field::Absent, Field::Absent, Field::Absent, Field::Known(volume)) => {
                Self::of_volume(volume)
            }
            _ => Self::default(),
        }
    }

    fn of_s3(s3: S3) -> Self {
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
            host: endpoint.turned(|endpoint| host(&endpoint)),
            bucket_name: bucket.map(|bucket| store_name(&bucket)),
            prefix,
        }
    }

    fn of_gcs(gcs: Gcs) -> Self {
        let Gcs { bucket, prefix, credentials_secret_ref: _ } = gcs;
        Self {
            storage_type: Field::Known(StorageType::Gcs),
            host: Field::Absent,
            bucket_name: bucket.map(|bucket| store_name(&bucket)),
            prefix,
        }
    }

    fn of_azure(azure: Azure) -> Self {
        let Azure { account, container, prefix, credentials_secret_ref: _ } = azure;
        Self {
            storage_type: Field::Known(StorageType::Azure),
            host: account.map(|account| Host::from(account.as_str())),
            bucket_name: container.map(|container| store_name(&container)),
            prefix,
        }
    }

    fn of_volume(volume: Volume) -> Self {
        let Volume { claim_ref, prefix } = volume;
        let LocalRef { name } = claim_ref.or_empty();
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

/// The server on a host. A text that is no host is carried as it is, so that the checks can name
/// it; but not a whole URL, which the hub would take for what was meant.
fn endpoint(host: &Host) -> Field<Endpoint> {
    let text = host.as_str();
    if is_host(text) {
        Field::Known(Endpoint::from(format!("https://{text}")))
    } else if text.contains("://") {
        Field::Absent
    } else {
        Field::Misfit(Value::String(text.to_owned()))
    }
}

/// The host of a server. What stands around it in the URL is kept by the engine.
fn host(endpoint: &Endpoint) -> Field<Host> {
    let Some((_, rest)) = endpoint.as_str().split_once("://") else {
        return Field::Known(Host::from(endpoint.as_str()));
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    Some(authority).filter(|authority| is_host(authority)).map(Host::from).into()
}

/// Whether the schema of [`Host`] takes it.
fn is_host(text: &str) -> bool {
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    let ends_well = |it: Option<u8>| it.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    let is_port =
        |port: &str| (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit());
    text.len() <= 253
        && name.bytes().all(plain)
        && ends_well(name.bytes().next())
        && ends_well(name.bytes().next_back())
        && port.is_none_or(is_port)
}
