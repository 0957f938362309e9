//! One field of an object as it arrived: absent, null, what was meant, or something else.
//! Comes in: any JSON value. Goes out: the same value, whatever it was.
//! May touch: serde and schemars. The apiserver converts objects before it validates them, so what
//! does not fit must be carried on until the schema can name it; nothing here fails.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The greatest integer that every reader of JSON tells apart from its neighbours.
pub const MAX_SAFE_INTEGER: i64 = 9_007_199_254_740_991;

/// A field of an API type. Its schema is that of `T`; its Rust type takes whatever arrives.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Field<T> {
    /// The key is not there.
    #[default]
    Absent,
    /// The key is there and says null.
    Null,
    /// What the schema asks for.
    Known(T),
    /// What the schema would refuse, kept as it came.
    Invalid(Value),
}

impl<T> Field<T> {
    /// The field whose key holds `json`, or is not there.
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

    /// Whether the key is not there; such a field is not written either.
    #[must_use]
    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Whether it says anything. Null does not: the apiserver drops it.
    #[must_use]
    pub const fn is_set(&self) -> bool {
        !matches!(self, Self::Absent | Self::Null)
    }

    /// The value, if it is one.
    #[must_use]
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Null | Self::Invalid(_) => None,
        }
    }

    /// The value itself, if it is one.
    #[must_use]
    pub fn into_known(self) -> Option<T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Null | Self::Invalid(_) => None,
        }
    }

    /// The same field with another type of value; null and misfits stay what they are.
    #[must_use]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Field<U> {
        match self {
            Self::Known(value) => Field::Known(change(value)),
            Self::Absent => Field::Absent,
            Self::Null => Field::Null,
            Self::Invalid(value) => Field::Invalid(value),
        }
    }

    /// The field in another version, where its value may have no words. Null and misfits stay what
    /// they are; but a misfit that the other version would take for what was meant stays behind,
    /// because it would come back as something that nobody wrote, and that no schema refuses.
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

    /// Says `value` where nothing was said. Null says nothing: it is how a key is left to the
    /// defaults.
    pub fn set_default(&mut self, value: T) {
        if !self.is_set() {
            *self = Self::Known(value);
        }
    }
}

impl<T: Default> Field<T> {
    /// The block, or an empty one: what does not fit says nothing that could be taken apart.
    #[must_use]
    pub fn or_default(self) -> T {
        self.into_known().unwrap_or_default()
    }

    /// The block to fill in, made if nothing was said. A misfit is nobody's to fill.
    pub fn get_or_default(&mut self) -> Option<&mut T> {
        self.set_default(T::default());
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Null | Self::Invalid(_) => None,
        }
    }
}

impl<T: Default + PartialEq> Field<T> {
    /// A block, or nothing if the block would be empty: conversion invents no keys.
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

/// What can be read from a JSON value of the right kind.
pub trait FromJson: Sized {
    /// The value, if `json` is one. Never an error: what does not fit is a [`Field::Invalid`].
    fn read(json: &Value) -> Option<Self>;
}

impl FromJson for bool {
    fn read(json: &Value) -> Option<Self> {
        json.as_bool()
    }
}

impl FromJson for i64 {
    /// The apiserver takes 3.0 for an integer, so this does, too.
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

/// The integer that a float is, if it is one that floats can tell apart from its neighbours.
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
    fn whatever_arrives_leaves_as_it_came() {
        for json in [json!(null), json!(3), json!("three"), json!([1, {}]), json!({"a": null})] {
            assert_eq!(serde_json::to_value(read::<i64>(&json)).unwrap(), json);
            assert_eq!(serde_json::to_value(read::<bool>(&json)).unwrap(), json);
        }
    }

    #[test]
    fn an_integral_float_is_an_integer_and_any_other_is_a_misfit() {
        assert_eq!(read::<i32>(&json!(3.0)), Field::Known(3));
        assert_eq!(read::<i64>(&json!(-0.0)), Field::Known(0));
        for odd in [json!(3.5), json!(1e300), json!(4_294_967_296_i64), json!("3"), json!(true)] {
            assert!(matches!(read::<i32>(&odd), Field::Invalid(_)), "{odd} was taken");
        }
    }

    #[test]
    fn a_list_with_one_misfit_is_one() {
        assert_eq!(read::<Vec<bool>>(&json!([true])), Field::Known(vec![true]));
        assert_eq!(read::<Vec<bool>>(&json!([true, 1])), Field::Invalid(json!([true, 1])));
    }

    #[test]
    fn defaults_fill_what_is_not_said_and_nothing_else() {
        let mut fields = [Field::Absent, Field::Null, Field::Known(1), Field::Invalid(json!("x"))];
        for field in &mut fields {
            field.set_default(3);
        }
        let filled =
            [Field::Known(3), Field::Known(3), Field::Known(1), Field::Invalid(json!("x"))];
        assert_eq!(fields, filled);
    }
}
