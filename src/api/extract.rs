//! Plain values out of the lenient fields of an object that has passed the checks.
//! Comes in: fields, and where they stand. Goes out: texts, numbers, sizes and releases, or what is
//! still in the way.
//! May touch: `field` and the vocabulary of `api`. It is beside `checked` and not in there: a room
//! inside could make a `Checked` of anything.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use crate::api::bytes;
use crate::api::etcd_version::Release;
use crate::api::field::Field;
use crate::api::pod::LocalRef;
use crate::api::strings::EtcdVersion;
use crate::api::validated::ReadError;

/// Whether value says true.
pub(crate) fn is_true(field: &Field<bool>) -> bool {
    field.known() == Some(&true)
}

/// A text, if there is one.
pub(crate) fn string<T: ToString>(field: &Field<T>) -> Option<String> {
    field.known().map(ToString::to_string)
}

/// A text that must be there.
pub(crate) fn required_string<T: ToString>(
    field: &Field<T>,
    path: &'static str,
) -> Result<String, ReadError> {
    string(field).ok_or(ReadError { path, expected: "a text" })
}

/// The name of what is referred to, if anything is.
pub(crate) fn ref_name(reference: &Field<LocalRef>) -> Option<String> {
    reference.known().and_then(|value| string(&value.name))
}

/// The name of what must be referred to.
pub(crate) fn required_ref_name(
    reference: &Field<LocalRef>,
    path: &'static str,
) -> Result<String, ReadError> {
    ref_name(reference).ok_or(ReadError { path, expected: "the name of an object" })
}

/// A list or a map, if there is one. The checks take a null for something left out, and so is one in
/// a list or a map; but then the whole is none, and must not get lost without a word.
pub(crate) fn collection<T: Clone>(
    field: &Field<T>,
    path: &'static str,
) -> Result<Option<T>, ReadError> {
    match field {
        Field::Absent | Field::Null => Ok(None),
        Field::Known(all) => Ok(Some(all.clone())),
        Field::Invalid(_) => Err(ReadError { path, expected: "without a null in value" }),
    }
}

/// A map with plain texts.
pub(crate) fn string_map<T: ToString + Clone>(
    map: &Field<BTreeMap<String, T>>,
    path: &'static str,
) -> Result<BTreeMap<String, String>, ReadError> {
    let entries = collection(map, path)?.unwrap_or_default().into_iter();
    Ok(entries.map(|(key, value)| (key, value.to_string())).collect())
}

/// A number that must be there.
pub(crate) fn number<N: Copy, T: TryFrom<N>>(
    field: &Field<N>,
    path: &'static str,
) -> Result<T, ReadError> {
    let number = field.known().and_then(|number| T::try_from(*number).ok());
    number.ok_or(ReadError { path, expected: "a number that is not negative" })
}

/// A number, if there is one.
pub(crate) fn optional_number<N: Copy, T: TryFrom<N>>(
    field: &Field<N>,
    path: &'static str,
) -> Result<Option<T>, ReadError> {
    field.known().map(|_| number(field, path)).transpose()
}

/// A size in bytes that must be there.
pub(crate) fn size<T: ToString>(field: &Field<T>, path: &'static str) -> Result<u64, ReadError> {
    let bytes = string(field).and_then(|value| bytes::parse(&value));
    bytes.ok_or(ReadError { path, expected: "a number of bytes that Kubernetes can count" })
}

/// A size in bytes, if there is one.
pub(crate) fn optional_size<T: ToString>(
    field: &Field<T>,
    path: &'static str,
) -> Result<Option<u64>, ReadError> {
    field.known().map(|_| size(field, path)).transpose()
}

/// A release of etcd that must be there.
pub(crate) fn release(
    field: &Field<EtcdVersion>,
    path: &'static str,
) -> Result<Release, ReadError> {
    let release = field.known().and_then(|value| Release::parse(value.as_str()));
    release.ok_or(ReadError { path, expected: "a release of etcd" })
}
