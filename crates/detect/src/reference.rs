//! Which time the times of a trace are relative to.

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::event::{Scalar, skips};

/// Which time a trace's time 0 is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Reference {
    #[default]
    None,
    /// In the trace's unit.
    Time(f64),
    /// Milliseconds since 1970.
    Date(f64),
}

impl Reference {
    /// Its time 0, ms since 1970; `unit` is the trace's, ms.
    pub fn ms(self, unit: f64) -> f64 {
        match self {
            Reference::None => 0.0,
            Reference::Time(time) => time * unit,
            Reference::Date(ms) => ms,
        }
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Reference, D::Error> {
        struct Reads;
        impl<'de> Visitor<'de> for Reads {
            type Value = Reference;
            skips!(expects "a time");
            skips!(visit_bool: bool);
            skips!(unit);
            skips!(seq);
            fn visit_u64<E>(self, time: u64) -> Result<Reference, E> {
                Ok(Reference::Time(time as f64))
            }
            fn visit_i64<E>(self, time: i64) -> Result<Reference, E> {
                Ok(Reference::Time(time as f64))
            }
            fn visit_f64<E>(self, time: f64) -> Result<Reference, E> {
                Ok(Reference::Time(time))
            }
            fn visit_str<E>(self, text: &str) -> Result<Reference, E> {
                let time = text.parse().ok().filter(|time: &f64| time.is_finite());
                Ok(time.map(Reference::Time).or(date(text)).unwrap_or_default())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Reference, A::Error> {
                let clock = Clock::deserialize(MapAccessDeserializer::new(map))?;
                let of = |scalar: Scalar| date(&scalar.text()?);
                Ok(of(clock.epoch).or(of(clock.wall_clock_time)).unwrap_or_default())
            }
        }
        from.deserialize_any(Reads)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Clock {
    epoch: Scalar,
    wall_clock_time: Scalar,
}

/// A date and time of RFC 3339.
fn date(text: &str) -> Option<Reference> {
    let date = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    Some(Reference::Date(date.unix_timestamp_nanos() as f64 / 1e6))
}
