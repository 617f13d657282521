//! Fields that are written in one way in the plain case, and in another otherwise: a word or quantity
//! or a table, one table or a list of them, one of several kinds with its parameters or by its name
//! alone.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use narrows_laws::catalogue::Unknown;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeOwned, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Value;

/// A `W`, written as a string, or a `T`, written as a table.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Either<W, T> {
    /// The plain case.
    Word(W),
    /// The other.
    Table(T),
}

impl<W: Default, T> Default for Either<W, T> {
    fn default() -> Self {
        Either::Word(W::default())
    }
}

impl<'de, W, T> Deserialize<'de> for Either<W, T>
where
    W: FromStr<Err = String> + JsonSchema,
    T: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<W, T>(PhantomData<(W, T)>);
        impl<'de, W, T> Visitor<'de> for Read<W, T>
        where
            W: FromStr<Err = String> + JsonSchema,
            T: Deserialize<'de>,
        {
            type Value = Either<W, T>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                write!(f, "{}, or a table", what::<W>())
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse().map(Either::Word).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                match first(&mut map)? {
                    (table, None) => Ok(Either::Table(table)),
                    (_, Some(other)) => {
                        let message =
                            format!("expected one kind, found \"{other}\" besides another");
                        Err(A::Error::custom(message))
                    }
                }
            }
        }
        deserializer.deserialize_any(Read(PhantomData))
    }
}

/// The table, and a key that it left: a choice takes the first one alone.
fn first<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    map: &mut A,
) -> Result<(T, Option<String>), A::Error> {
    let table = T::deserialize(MapAccessDeserializer::new(&mut *map))?;
    Ok((table, map.next_key()?))
}

impl<W: JsonSchema, T: JsonSchema> JsonSchema for Either<W, T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}Or{}", W::schema_name(), T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [W::json_schema(generator), T::json_schema(generator)] })
    }
}

/// `T`s, written as one table or as a list of tables.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Tables<T> {
    /// The plain case.
    One(T),
    /// The other.
    List(Vec<T>),
}

impl<T: JsonSchema> JsonSchema for Tables<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = T::json_schema(generator);
        json_schema!({ "title": "a table or a list of tables", "anyOf": [one] })
    }
}

impl<T> Tables<T> {
    /// Each table with the keys that lead from the field to it.
    pub fn iter(&self) -> impl Iterator<Item = (Option<String>, &T)> {
        let (one, list) = match self {
            Tables::One(one) => (Some((None, one)), &[][..]),
            Tables::List(list) => (None, &list[..]),
        };
        let list = list.iter().enumerate().map(|(index, one)| (Some(index.to_string()), one));
        one.into_iter().chain(list)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Tables<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Read<T> {
            type Value = Tables<T>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a table or a list of tables")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Tables::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Tables::List)
            }
        }
        deserializer.deserialize_any(Read(PhantomData))
    }
}

/// A `T` of all things, or a list with one for each.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum OneOrEach<T> {
    /// The same of all.
    One(T),
    /// Of each.
    Each(Vec<T>),
}

impl<'de, T> Deserialize<'de> for OneOrEach<T>
where
    T: FromStr<Err = String> + Deserialize<'de> + JsonSchema,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);
        impl<'de, T> Visitor<'de> for Read<T>
        where
            T: FromStr<Err = String> + Deserialize<'de> + JsonSchema,
        {
            type Value = OneOrEach<T>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                write!(f, "{}, or a list with one for each", what::<T>())
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse().map(OneOrEach::One).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(OneOrEach::Each)
            }
        }
        deserializer.deserialize_any(Read(PhantomData))
    }
}

/// What a `T` is that is written as a string, as its schema says: `a share such as "0.1 %"`.
fn what<T: JsonSchema>() -> String {
    let schema = T::json_schema(&mut SchemaGenerator::default());
    let title = schema.get("title").and_then(|title| title.as_str());
    title.unwrap_or("a string").to_owned()
}

/// Things of several kinds, an enum whose variants have fields: `red = { min = "5 packets" }`.
pub trait Kinds: DeserializeOwned {
    /// What they are.
    const WHAT: &'static str;
    /// The kinds' names.
    const NAMES: &'static [&'static str];
}

/// A `T`, written as a table with one key, its kind, and in that its parameters, or as the name of its
/// kind where it needs none.
#[derive(Clone, Debug)]
pub struct OneOf<T>(pub T);

impl<T: JsonSchema> JsonSchema for OneOf<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<T: Serialize> Serialize for OneOf<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = Value::try_from(&self.0).map_err(serde::ser::Error::custom)?;
        match value.as_table().and_then(|table| table.iter().next()) {
            Some((name, Value::Table(none))) if none.is_empty() => serializer.serialize_str(name),
            _ => value.serialize(serializer),
        }
    }
}

impl<'de, T: Kinds> Deserialize<'de> for OneOf<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);
        impl<'de, T: Kinds> Visitor<'de> for Read<T> {
            type Value = OneOf<T>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                write!(f, "a {}: {}, by name or as a table", T::WHAT, T::NAMES.join(", "))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
                if !T::NAMES.contains(&name) {
                    return Err(E::custom(Unknown::new(T::WHAT, name, T::NAMES)));
                }
                let no_parameters = BTreeMap::<&str, &str>::new();
                let map = MapDeserializer::new(std::iter::once((name, no_parameters)));
                T::deserialize(MapAccessDeserializer::new(map)).map(OneOf)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let one_of = || format!("expected one of {}", T::NAMES.join(", "));
                if map.size_hint() == Some(0) {
                    return Err(A::Error::custom(one_of()));
                }
                match first(&mut map)? {
                    (one, None) => Ok(OneOf(one)),
                    (_, Some(name)) => {
                        let message =
                            format!("{}; found \"{name}\" together with another", one_of());
                        Err(A::Error::custom(message))
                    }
                }
            }
        }
        deserializer.deserialize_any(Read(PhantomData))
    }
}
