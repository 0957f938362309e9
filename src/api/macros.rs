//! Macros that declare API types: objects, string enums and bounded strings, each with its schema
//! and its reader. One way to declare a field makes every field lenient in Rust and strict in the
//! schema.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

/// Declares an object. Each field becomes a `Field<T>`; absent ones are not serialized. Its name on
/// the wire is the field name in camel case, or the name after `as`.
macro_rules! object {
    (
        $(#[$about:meta])*
        pub struct $Name:ident {
            $( $(#[$doc:meta])* $field:ident $(as $wire:literal)?: $Type:ty, )*
        }
    ) => {
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, schemars::JsonSchema)]
        #[serde(default, rename_all = "camelCase")]
        $(#[$about])*
        pub struct $Name {
            $(
                $(#[$doc])*
                $(#[serde(rename = $wire)])?
                #[serde(skip_serializing_if = "crate::api::field::Field::is_absent")]
                pub $field: crate::api::field::Field<$Type>,
            )*
        }

        impl crate::api::field::FromJson for $Name {
            fn read(json: &serde_json::Value) -> Option<Self> {
                static NAMES: std::sync::LazyLock<Vec<String>> = std::sync::LazyLock::new(|| {
                    vec![$( crate::api::macros::wire_name(stringify!($field), &[$($wire)?]) ),*]
                });
                let object = json.as_object()?;
                // Fields are read in the order of `NAMES`.
                let mut values = NAMES.iter().map(|name| object.get(name));
                Some(Self { $( $field: crate::api::field::Field::from_json(values.next().flatten()), )* })
            }
        }

        impl<'de> serde::Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let json = serde_json::Value::deserialize(deserializer)?;
                let read = <Self as crate::api::field::FromJson>::read(&json);
                read.ok_or_else(|| serde::de::Error::custom("must be an object"))
            }
        }
    };
}

/// Name of a field on the wire: the explicit one, or the field name in camel case.
pub(crate) fn wire_name(field: &str, explicit: &[&str]) -> String {
    if let Some(name) = explicit.first() {
        return (*name).to_owned();
    }
    let mut words = field.split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

/// Declares a string enum, closed in Rust and in the schema. Any other string is an invalid value.
macro_rules! string_enum {
    (
        $(#[$about:meta])*
        pub enum $Name:ident { $( $(#[$doc:meta])* $Variant:ident = $value:literal, )* }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Name { $( $(#[$doc])* $Variant, )* }

        impl $Name {
            /// Every value, in the order in which the schema lists them.
            pub const ALL: &[Self] = &[$(Self::$Variant),*];

            /// The string on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$Variant => $value,)* }
            }

            /// The value of a string, which must match exactly.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == name)
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl crate::api::field::FromJson for $Name {
            fn read(json: &serde_json::Value) -> Option<Self> {
                json.as_str().and_then(Self::from_name)
            }
        }

        impl schemars::JsonSchema for $Name {
            fn inline_schema() -> bool { true }
            fn schema_name() -> std::borrow::Cow<'static, str> { stringify!($Name).into() }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($value),*] })
            }
        }
    };
}

/// Declares a string type, unbounded in Rust and bounded by the given schema.
macro_rules! string_type {
    ($(#[$about:meta])* pub struct $Name:ident; $($schema:tt)*) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[serde(transparent)]
        pub struct $Name(String);

        impl $Name {
            /// The string.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<T: Into<String>> From<T> for $Name {
            fn from(text: T) -> Self {
                Self(text.into())
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl crate::api::field::FromJson for $Name {
            fn read(json: &serde_json::Value) -> Option<Self> {
                json.as_str().map(Self::from)
            }
        }

        impl schemars::JsonSchema for $Name {
            fn inline_schema() -> bool { true }
            fn schema_name() -> std::borrow::Cow<'static, str> { stringify!($Name).into() }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($($schema)*)
            }
        }
    };
}

pub(crate) use {object, string_enum, string_type};
