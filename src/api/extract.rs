//! Extracts plain values from the lenient fields of an object that passed validation. It is beside
//! `validated` and not below it: a submodule could construct a `Validated` of anything.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use crate::api::bytes;
use crate::api::etcd_version::Release;
use crate::api::field::Field;
use crate::api::pod::LocalRef;
use crate::api::strings::EtcdVersion;
use crate::api::validated::ReadError;

/// Whether the field is true.
pub(crate) fn is_true(field: &Field<bool>) -> bool {
    field.known() == Some(&true)
}

/// The string, if set.
pub(crate) fn string<T: ToString>(field: &Field<T>) -> Option<String> {
    field.known().map(ToString::to_string)
}

/// A required string.
pub(crate) fn required_string<T: ToString>(
    field: &Field<T>,
    path: &'static str,
) -> Result<String, ReadError> {
    string(field).ok_or(ReadError { path, expected: "a string" })
}

/// The name in a reference, if set.
pub(crate) fn ref_name(reference: &Field<LocalRef>) -> Option<String> {
    reference.known().and_then(|value| string(&value.name))
}

/// The name in a required reference.
pub(crate) fn required_ref_name(
    reference: &Field<LocalRef>,
    path: &'static str,
) -> Result<String, ReadError> {
    ref_name(reference).ok_or(ReadError { path, expected: "the name of an object" })
}

/// A list or map, if set. Validation treats a null inside it as unset, which makes the whole value
/// invalid here: it must not get lost silently.
pub(crate) fn collection<T: Clone>(
    field: &Field<T>,
    path: &'static str,
) -> Result<Option<T>, ReadError> {
    match field {
        Field::Absent | Field::Null => Ok(None),
        Field::Known(entries) => Ok(Some(entries.clone())),
        Field::Invalid(_) => Err(ReadError { path, expected: "without null values" }),
    }
}

/// A map of strings.
pub(crate) fn string_map<T: ToString + Clone>(
    map: &Field<BTreeMap<String, T>>,
    path: &'static str,
) -> Result<BTreeMap<String, String>, ReadError> {
    let entries = collection(map, path)?.unwrap_or_default().into_iter();
    Ok(entries.map(|(key, value)| (key, value.to_string())).collect())
}

/// A required number.
pub(crate) fn number<N: Copy, T: TryFrom<N>>(
    field: &Field<N>,
    path: &'static str,
) -> Result<T, ReadError> {
    let number = field.known().and_then(|number| T::try_from(*number).ok());
    number.ok_or(ReadError { path, expected: "a non-negative number in range" })
}

/// A number, if set.
pub(crate) fn optional_number<N: Copy, T: TryFrom<N>>(
    field: &Field<N>,
    path: &'static str,
) -> Result<Option<T>, ReadError> {
    field.known().map(|_| number(field, path)).transpose()
}

/// A required size in bytes.
pub(crate) fn size<T: ToString>(field: &Field<T>, path: &'static str) -> Result<u64, ReadError> {
    let bytes = string(field).and_then(|value| bytes::parse(&value));
    bytes.ok_or(ReadError { path, expected: "a size in bytes that fits into 64 bits" })
}

/// A size in bytes, if set.
pub(crate) fn optional_size<T: ToString>(
    field: &Field<T>,
    path: &'static str,
) -> Result<Option<u64>, ReadError> {
    field.known().map(|_| size(field, path)).transpose()
}

/// A required etcd release.
pub(crate) fn release(
    field: &Field<EtcdVersion>,
    path: &'static str,
) -> Result<Release, ReadError> {
    let release = field.known().and_then(|value| Release::parse(value.as_str()));
    release.ok_or(ReadError { path, expected: "an etcd release" })
}
