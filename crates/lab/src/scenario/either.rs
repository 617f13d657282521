//! Fields that are written as one word or quantity in the plain case, and as a table otherwise.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A `W`, written as a string, or a `T`, written as a table.
#[derive(Clone, Debug)]
pub enum Either<W, T> {
    /// The plain case.
    Word(W),
    /// The other.
    Table(T),
}

impl<'de, W: FromStr<Err = String>, T: Deserialize<'de>> Deserialize<'de> for Either<W, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<W, T>(PhantomData<(W, T)>);
        impl<'de, W: FromStr<Err = String>, T: Deserialize<'de>> Visitor<'de> for Read<W, T> {
            type Value = Either<W, T>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a string or a table")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse().map(Either::Word).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Either::Table)
            }
        }
        deserializer.deserialize_any(Read(PhantomData))
    }
}
