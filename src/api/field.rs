//! A field of an object as received: absent, null, valid or invalid.
//!
//! Guarantees: reading never fails and writing returns the same value. The API server converts
//! objects before it validates them, so an invalid value must be passed on until the schema can
//! reject it.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The largest integer that is exact in every JSON implementation, 2^53 - 1.
pub const MAX_SAFE_INTEGER: i64 = 9_007_199_254_740_991;

/// A field of an API type. Its schema is that of `T`; its Rust type accepts any value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Field<T> {
    /// The key is missing.
    #[default]
    Absent,
    /// The value is null.
    Null,
    /// A value of the expected type.
    Known(T),
    /// A value that the schema rejects, unchanged.
    Invalid(Value),
}

impl<T> Field<T> {
    /// Reads the value of a key, if it exists.
    #[must_use]
    pub fn from_json(json: Option<&Value>) -> Self
    where
        T: FromJson,
    {
        match json {
            None => Self::Absent,
            Some(Value::Null) => Self::Null,
            Some(json) => T::read(json).map_or_else(|| Self::Invalid(json.clone()), Self::Known),
        }
    }

    /// Whether the key is missing. Such a field is not serialized.
    #[must_use]
    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Whether the field is set. Null is not: the API server drops it.
    #[must_use]
    pub const fn is_set(&self) -> bool {
        !matches!(self, Self::Absent | Self::Null)
    }

    /// The value, if valid.
    #[must_use]
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Null | Self::Invalid(_) => None,
        }
    }

    /// The value, if valid.
    #[must_use]
    pub fn into_known(self) -> Option<T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Null | Self::Invalid(_) => None,
        }
    }

    /// Maps a valid value; null and invalid values are kept.
    #[must_use]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Field<U> {
        match self {
            Self::Known(value) => Field::Known(change(value)),
            Self::Absent => Field::Absent,
            Self::Null => Field::Null,
            Self::Invalid(value) => Field::Invalid(value),
        }
    }

    /// Converts the field to another version, which may not be able to express its value. Null and
    /// invalid values are kept; but an invalid value that is valid in the other version is dropped,
    /// because it would come back as a value that no user wrote and no schema rejects.
    #[must_use]
    pub fn convert<U: FromJson>(self, convert: impl FnOnce(T) -> Field<U>) -> Field<U> {
        match self {
            Self::Known(value) => convert(value),
            Self::Absent => Field::Absent,
            Self::Null => Field::Null,
            Self::Invalid(value) if U::read(&value).is_some() => Field::Absent,
            Self::Invalid(value) => Field::Invalid(value),
        }
    }

    /// Sets `value` if the field is not set. Null requests the default, as in Kubernetes.
    pub fn set_default(&mut self, value: T) {
        if !self.is_set() {
            *self = Self::Known(value);
        }
    }
}

impl<T: Default> Field<T> {
    /// The value, or the default if it is unset or invalid.
    #[must_use]
    pub fn or_default(self) -> T {
        self.into_known().unwrap_or_default()
    }

    /// The value to set defaults in, created if unset; `None` if it is invalid.
    pub fn get_or_default(&mut self) -> Option<&mut T> {
        self.set_default(T::default());
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Null | Self::Invalid(_) => None,
        }
    }
}

impl<T: Default + PartialEq> Field<T> {
    /// The value; absent if it equals the default, so that conversion invents no keys.
    #[must_use]
    pub fn non_default(value: T) -> Self {
        if value == T::default() { Self::Absent } else { Self::Known(value) }
    }
}

impl<T> From<Option<T>> for Field<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::Known)
    }
}

/// A type that is read from JSON.
pub trait FromJson: Sized {
    /// The value, if `json` has the expected type; otherwise the field is [`Field::Invalid`].
    fn read(json: &Value) -> Option<Self>;
}

impl FromJson for bool {
    fn read(json: &Value) -> Option<Self> {
        json.as_bool()
    }
}

impl FromJson for i64 {
    /// The API server accepts 3.0 as an integer.
    fn read(json: &Value) -> Option<Self> {
        json.as_i64().or_else(|| json.as_f64().and_then(whole))
    }
}

impl FromJson for i32 {
    fn read(json: &Value) -> Option<Self> {
        i64::read(json).and_then(|number| Self::try_from(number).ok())
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    fn read(json: &Value) -> Option<Self> {
        json.as_array()?.iter().map(T::read).collect()
    }
}

impl<T: FromJson> FromJson for BTreeMap<String, T> {
    fn read(json: &Value) -> Option<Self> {
        let entry = |(key, value): (&String, &Value)| Some((key.clone(), T::read(value)?));
        json.as_object()?.iter().map(entry).collect()
    }
}

/// The integer value of a float, if it is exact.
fn whole(number: f64) -> Option<i64> {
    let exact = number.fract() == 0.0 && number.abs() < 9.0e15;
    exact.then(|| format!("{number:.0}").parse().ok()).flatten()
}

impl<T: Serialize> Serialize for Field<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent | Self::Null => serializer.serialize_unit(),
            Self::Known(value) => value.serialize(serializer),
            Self::Invalid(value) => value.serialize(serializer),
        }
    }
}

impl<T: JsonSchema> JsonSchema for Field<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read<T: FromJson>(json: &Value) -> Field<T> {
        Field::from_json(Some(json))
    }

    #[test]
    fn any_value_round_trips() {
        for json in [json!(null), json!(3), json!("three"), json!([1, {}]), json!({"a": null})] {
            assert_eq!(serde_json::to_value(read::<i64>(&json)).unwrap(), json);
            assert_eq!(serde_json::to_value(read::<bool>(&json)).unwrap(), json);
        }
    }

    #[test]
    fn integral_float_is_an_integer_and_any_other_is_invalid() {
        assert_eq!(read::<i32>(&json!(3.0)), Field::Known(3));
        assert_eq!(read::<i64>(&json!(-0.0)), Field::Known(0));
        for odd in [json!(3.5), json!(1e300), json!(4_294_967_296_i64), json!("3"), json!(true)] {
            assert!(matches!(read::<i32>(&odd), Field::Invalid(_)), "{odd} was accepted");
        }
    }

    #[test]
    fn list_with_one_invalid_item_is_invalid() {
        assert_eq!(read::<Vec<bool>>(&json!([true])), Field::Known(vec![true]));
        assert_eq!(read::<Vec<bool>>(&json!([true, 1])), Field::Invalid(json!([true, 1])));
    }

    #[test]
    fn defaults_are_set_only_in_unset_fields() {
        let mut fields = [Field::Absent, Field::Null, Field::Known(1), Field::Invalid(json!("x"))];
        for field in &mut fields {
            field.set_default(3);
        }
        let expected =
            [Field::Known(3), Field::Known(3), Field::Known(1), Field::Invalid(json!("x"))];
        assert_eq!(fields, expected);
    }
}
