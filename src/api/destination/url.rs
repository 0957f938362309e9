//! A destination as one URL, as v1beta1 writes it: `s3://bucket/prefix`,
//! `gs://bucket/prefix`, `azblob://account/container/prefix`, `volume://claim/prefix`.
//! A string that is not exactly such a URL stays an invalid value, and validation reports it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::Value;

use super::{Azure, Destination, Gcs, S3, Volume};
use crate::api::field::Field;
use crate::api::pod::LocalRef;
use crate::api::strings::{KeyPrefix, Location};

/// The destination of a URL.
pub(crate) fn from_url(url: &Location) -> Field<Destination> {
    match parse(url.as_str()) {
        // Only a URL that round-trips exactly: for example a trailing slash must be kept.
        Some(destination) if format(&destination).as_deref() == Some(url.as_str()) => {
            Field::Known(destination)
        }
        Some(_) | None => Field::Invalid(Value::String(url.as_str().to_owned())),
    }
}

/// The URL of a destination, if it has one. A string that is not a valid URL was passed on as it is
/// and is returned as it is; any other string would become a destination that no user wrote.
pub(crate) fn to_url(destination: Field<Destination>) -> Field<Location> {
    match destination {
        Field::Invalid(Value::String(text)) => match from_url(&Location::from(text)) {
            Field::Invalid(Value::String(text)) => Field::Known(Location::from(text)),
            Field::Known(_) | Field::Absent | Field::Null | Field::Invalid(_) => Field::Absent,
        },
        Field::Known(_) | Field::Absent | Field::Null | Field::Invalid(_) => {
            destination.convert(|destination| format(&destination).map(Location::from).into())
        }
    }
}

/// Parses scheme, bucket (or container, claim) and prefix.
pub(crate) fn parse(url: &str) -> Option<Destination> {
    let (scheme, rest) = url.split_once("://")?;
    let (first, below) = match rest.split_once('/') {
        Some((first, below)) => (first, Some(below)),
        None => (rest, None),
    };
    let prefix = |below: Option<&str>| Field::from(below.map(KeyPrefix::from));
    let mut destination = Destination::default();
    match scheme {
        "s3" => {
            let (bucket, prefix) = (Field::Known(first.into()), prefix(below));
            destination.s3 = Field::Known(S3 { bucket, prefix, ..S3::default() });
        }
        "gs" => {
            let (bucket, prefix) = (Field::Known(first.into()), prefix(below));
            destination.gcs = Field::Known(Gcs { bucket, prefix, ..Gcs::default() });
        }
        "azblob" => {
            let (container, below) = match below?.split_once('/') {
                Some((container, below)) => (container, Some(below)),
                None => (below?, None),
            };
            destination.azure = Field::Known(Azure {
                account: Field::Known(first.into()),
                container: Field::Known(container.into()),
                prefix: prefix(below),
                ..Azure::default()
            });
        }
        "volume" => {
            let claim_ref = Field::Known(LocalRef::to(first));
            destination.volume = Field::Known(Volume { claim_ref, prefix: prefix(below) });
        }
        _ => return None,
    }
    Some(destination)
}

fn format(destination: &Destination) -> Option<String> {
    let Destination { s3, gcs, azure, volume } = destination;
    let with = |base: String, prefix: &Field<KeyPrefix>| match prefix {
        Field::Known(prefix) => format!("{base}/{prefix}"),
        Field::Absent | Field::Null | Field::Invalid(_) => base,
    };
    match (s3, gcs, azure, volume) {
        (Field::Known(s3), Field::Absent, Field::Absent, Field::Absent) => {
            Some(with(format!("s3://{}", s3.bucket.known()?), &s3.prefix))
        }
        (Field::Absent, Field::Known(gcs), Field::Absent, Field::Absent) => {
            Some(with(format!("gs://{}", gcs.bucket.known()?), &gcs.prefix))
        }
        (Field::Absent, Field::Absent, Field::Known(azure), Field::Absent) => {
            let base = format!("azblob://{}/{}", azure.account.known()?, azure.container.known()?);
            Some(with(base, &azure.prefix))
        }
        (Field::Absent, Field::Absent, Field::Absent, Field::Known(volume)) => {
            let claim = volume.claim_ref.known()?.name.known()?;
            Some(with(format!("volume://{claim}"), &volume.prefix))
        }
        _ => None,
    }
}
