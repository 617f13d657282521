//! Fields that are written in one way in the plain case, and in another otherwise: a word or quantity
//! or a table, one table or a list of them.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
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

/// `T`s, written as one table or as a list of tables.
#[derive(Clone, Debug)]
pub enum Tables<T> {
    /// The plain case.
    One(T),
    /// The other.
    List(Vec<T>),
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
