//! A destination as one URL, the way v1beta1 writes it: `s3://bucket/prefix`,
//! `gs://bucket/prefix`, `azblob://account/container/prefix`, `volume://claim/prefix`.
//! Comes in: a URL or a block. Goes out: the other. May touch: the blocks of `destination`.
//! A text that is not such a URL to the letter stays a misfit, for the checks to name.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use serde_json::Value;

use super::{Azure, Destination, Gcs, S3, Volume};
use crate::api::field::Field;
use crate::api::pod::LocalRef;
use crate::api::texts::{KeyPrefix, Location};

/// The destination that a URL names.
pub(crate) fn read(url: &Location) -> Field<Destination> {
    match parse(url.as_str()) {
        // Only what can be written back as it was: a trailing slash is not ours to remove.
        Some(destination) if write(&destination).as_deref() == Some(url.as_str()) => {
            Field::Known(destination)
        }
        Some(_) | None => Field::Misfit(Value::String(url.as_str().to_owned())),
    }
}

/// The URL of a destination, if it has one. A text that is not one was written as it is, so it can
/// be written back; any other text would come back as a destination that nobody wrote.
pub(crate) fn written(destination: Field<Destination>) -> Field<Location> {
    match destination {
        Field::Misfit(Value::String(text)) => match read(&Location::from(text)) {
            Field::Misfit(Value::String(text)) => Field::Known(Location::from(text)),
            Field::Known(_) | Field::Absent | Field::Null | Field::Misfit(_) => Field::Absent,
        },
        Field::Known(_) | Field::Absent | Field::Null | Field::Misfit(_) => {
            destination.turned(|destination| write(&destination).map(Location::from).into())
        }
    }
}

/// The parts of a place: the scheme, what it is in, and what the keys begin with.
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

fn write(destination: &Destination) -> Option<String> {
    let Destination { s3, gcs, azure, volume } = destination;
    let with = |base: String, prefix: &Field<KeyPrefix>| match prefix {
        Field::Known(prefix) => format!("{base}/{prefix}"),
        Field::Absent | Field::Null | Field::Misfit(_) => base,
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
