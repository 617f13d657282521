//! An event of a qlog file, of any of its versions: an object, or an array whose fields the trace names. What
//! is not asked for is skipped, whatever it is.

use std::fmt;
use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Bytes of a name.
const LONGEST_NAME: usize = 200;
/// Paths that a packet acknowledges packets of.
const ACKNOWLEDGED: usize = 8;

/// What a time is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The trace's reference time.
    Epoch,
    /// 1970.
    Absolute,
    /// The event before.
    Previous,
}

impl Format {
    /// By its name in `time_format`.
    pub fn named(name: &str) -> Option<Format> {
        match name {
            "relative_to_epoch" | "relative" => Some(Format::Epoch),
            "absolute" => Some(Format::Absolute),
            "relative_to_previous_event" | "delta" => Some(Format::Previous),
            _ => None,
        }
    }
}

/// A field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Its time, and what that is relative to, if its name says so (draft-00 to draft-01).
    Time(Option<Format>),
    TimeFormat,
    /// The name, or what is before its colon, or behind it.
    Name,
    Category,
    Kind,
    /// The path: a number, or a name of its addresses.
    Path,
    Tuple,
    Group,
    Data,
    Other,
}

impl Field {
    /// By its name in small letters.
    pub fn named(name: &str) -> Field {
        match name {
            "time" => Field::Time(None),
            "relative_time" => Field::Time(Some(Format::Epoch)),
            "delta_time" => Field::Time(Some(Format::Previous)),
            "time_format" => Field::TimeFormat,
            "name" => Field::Name,
            "category" => Field::Category,
            "event" | "event_type" => Field::Kind,
            "path_id" => Field::Path,
            "tuple" | "path" => Field::Tuple,
            "group_id" => Field::Group,
            "data" => Field::Data,
            _ => Field::Other,
        }
    }
}

/// Implements the visits of what is skipped.
macro_rules! skips {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E>(self, _: $type) -> Result<Self::Value, E> { Ok(Self::Value::default()) })*
    };
    (scalars) => {
        skips!(visit_bool: bool, visit_u64: u64, visit_i64: i64, visit_f64: f64, visit_str: &str);
        skips!(unit);
    };
    (unit) => {
        fn visit_unit<E>(self) -> Result<Self::Value, E> { Ok(Self::Value::default()) }
    };
    (map) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
    (seq) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
    (expects $what:literal) => {
        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result { f.write_str($what) }
    };
}

pub(crate) use skips;

/// A number or a short text; others write numbers as text.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Scalar {
    #[default]
    None,
    Number(f64),
    Text(String),
}

impl Scalar {
    /// As a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Scalar::None => None,
            Scalar::Number(number) => Some(*number),
            Scalar::Text(text) => text.parse().ok(),
        }
        .filter(|number: &f64| number.is_finite())
    }

    /// As a whole number.
    pub fn whole(&self) -> Option<u64> {
        self.number().filter(|number| (0.0..1e15).contains(number)).map(|number| number as u64)
    }

    /// As text.
    pub fn text(&self) -> Option<String> {
        match self {
            Scalar::None => None,
            Scalar::Number(number) => Some(number.to_string()),
            Scalar::Text(text) => Some(text.clone()),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Scalar, D::Error> {
        struct Reads;
        impl<'de> Visitor<'de> for Reads {
            type Value = Scalar;
            skips!(expects "a value");
            skips!(visit_bool: bool);
            skips!(unit);
            skips!(map);
            skips!(seq);
            fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar::Number(number as f64))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar::Number(number as f64))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
                Ok(Scalar::Number(number))
            }
            fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
                let fits = text.len() <= LONGEST_NAME;
                Ok(if fits { Scalar::Text(text.to_owned()) } else { Scalar::None })
            }
        }
        from.deserialize_any(Reads)
    }
}

/// An object, or nothing where there is something else.
#[derive(Clone, Debug)]
pub struct Object<T>(pub Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Object(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reads<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reads<T> {
            type Value = Object<T>;
            skips!(expects "a value");
            skips!(scalars);
            skips!(seq);
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|value| Object(Some(value)))
            }
        }
        from.deserialize_any(Reads(PhantomData))
    }
}

/// Numbers, or ranges of them, of which the largest is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Largest(pub Option<u64>);

impl<'de> Deserialize<'de> for Largest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Largest, D::Error> {
        struct Reads;
        impl<'de> Visitor<'de> for Reads {
            type Value = Largest;
            skips!(expects "a value");
            skips!(visit_bool: bool, visit_i64: i64);
            skips!(unit);
            skips!(map);
            fn visit_u64<E>(self, number: u64) -> Result<Largest, E> {
                Ok(Largest(Some(number)))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Largest, E> {
                Ok(Largest(Scalar::Number(number).whole()))
            }
            fn visit_str<E>(self, text: &str) -> Result<Largest, E> {
                Ok(Largest(text.parse().ok()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Largest, A::Error> {
                let mut largest = None;
                while let Some(Largest(next)) = seq.next_element()? {
                    largest = largest.max(next);
                }
                Ok(Largest(largest))
            }
        }
        from.deserialize_any(Reads)
    }
}

/// Of the frames of a packet, the largest packet that is acknowledged of each path.
#[derive(Clone, Debug, Default)]
pub struct Acks(pub Vec<(Option<String>, u64)>);

#[derive(Deserialize, Default)]
#[serde(default)]
struct Frame {
    path_id: Scalar,
    acked_ranges: Largest,
}

impl<'de> Deserialize<'de> for Acks {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Acks, D::Error> {
        struct Reads;
        impl<'de> Visitor<'de> for Reads {
            type Value = Acks;
            skips!(expects "a value");
            skips!(scalars);
            skips!(map);
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Acks, A::Error> {
                let mut acks = Vec::new();
                while let Some(Object(frame)) = seq.next_element::<Object<Frame>>()? {
                    let ack = frame.and_then(|of| Some((of.path_id.text(), of.acked_ranges.0?)));
                    acks.extend(ack.filter(|_| acks.len() < ACKNOWLEDGED));
                }
                Ok(Acks(acks))
            }
        }
        from.deserialize_any(Reads)
    }
}

/// The header of a packet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Header {
    pub packet_type: Scalar,
    pub packet_number: Scalar,
    pub path_id: Scalar,
    packet_size: Scalar,
    length: Scalar,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Raw {
    length: Scalar,
}

/// What a counter grew by.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Counter {
    delta: Scalar,
}

/// An end of a path.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct End {
    ip_v4: Scalar,
    port_v4: Scalar,
    ip_v6: Scalar,
    port_v6: Scalar,
}

impl End {
    /// Its address, with the port if that is known.
    pub fn name(&self) -> Option<String> {
        let of = |ip: &Scalar, port: &Scalar| {
            let ip: IpAddr = ip.text()?.parse().ok()?;
            let port = port.whole().and_then(|port| u16::try_from(port).ok());
            Some(port.map_or(ip.to_string(), |port| SocketAddr::new(ip, port).to_string()))
        };
        of(&self.ip_v4, &self.port_v4).or_else(|| of(&self.ip_v6, &self.port_v6))
    }
}

/// What may be of use of an event's data.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Data {
    pub latest_rtt: Scalar,
    pub path_id: Scalar,
    packet_number_space: Scalar,
    packet_type: Scalar,
    packet_number: Scalar,
    packet_size: Scalar,
    header: Object<Header>,
    raw: Object<Raw>,
    /// What a packet that was received acknowledges.
    pub frames: Acks,
    /// Of `packets_acked`.
    pub packet_numbers: Largest,
    /// Of `packets_lost` (mvfst).
    lost_packets: Scalar,
    /// Of metrics (quiche).
    cf_lost_packets: Object<Counter>,
    pub tuple_id: Scalar,
    #[serde(alias = "path_local")]
    pub tuple_local: Object<End>,
    #[serde(alias = "path_remote")]
    pub tuple_remote: Object<End>,
}

impl Data {
    /// The packet that it is about.
    pub fn packet_number(&self) -> Option<u64> {
        let header = self.header.0.as_ref();
        self.packet_number.whole().or(header.and_then(|header| header.packet_number.whole()))
    }

    /// Is that of the handshake, whose numbers are others?
    pub fn is_of_handshake(&self) -> bool {
        let header = self.header.0.as_ref();
        let of = |scalar: &Scalar| scalar.text().map(|name| name.to_ascii_lowercase());
        let kind = header.and_then(|header| of(&header.packet_type)).or(of(&self.packet_type));
        let kind = kind.or(of(&self.packet_number_space));
        let others = ["initial", "handshake", "0rtt", "retry", "version_negotiation"];
        kind.is_some_and(|kind| others.contains(&&*kind))
    }

    /// Packets that an event of a loss is about.
    pub fn lost(&self) -> u64 {
        self.lost_packets.whole().unwrap_or(1)
    }

    /// Packets that were lost since the metrics before, of who logs no such events.
    pub fn lost_since(&self) -> u64 {
        let counter = self.cf_lost_packets.0.as_ref();
        counter.and_then(|counter| counter.delta.whole()).unwrap_or(0)
    }

    /// Bytes of the packet.
    pub fn length(&self) -> Option<u64> {
        let raw = self.raw.0.as_ref().and_then(|raw| raw.length.whole());
        let header = self.header.0.as_ref();
        let header = header.and_then(|of| of.packet_size.whole().or(of.length.whole()));
        raw.or(header).or(self.packet_size.whole())
    }
}

/// An event.
#[derive(Clone, Debug, Default)]
pub struct Event {
    /// In the trace's unit, and what it is relative to, if the event says so itself.
    pub time: Option<f64>,
    pub format: Option<Format>,
    /// The name without its category, in small letters.
    pub kind: String,
    pub group: Option<String>,
    path: Option<String>,
    tuple: Option<String>,
    pub data: Data,
}

impl Event {
    /// The path that it is on, if it says so: its number before a name of its addresses.
    pub fn path(&self) -> Option<String> {
        let header = self.data.header.0.as_ref();
        let number = self.data.path_id.text().or_else(|| self.path.clone());
        let number = number.or_else(|| header.and_then(|header| header.path_id.text()));
        number.or_else(|| self.tuple().map(str::to_owned))
    }

    /// The name of its addresses; that of the first is often empty.
    pub fn tuple(&self) -> Option<&str> {
        self.tuple.as_deref().filter(|name| !name.is_empty())
    }

    fn set<'de, A: Next<'de>>(&mut self, field: Field, from: &mut A) -> Result<bool, A::Error> {
        if field == Field::Data {
            let data = from.value::<Object<Data>>()?;
            let some = data.is_some();
            self.data = data.and_then(|data| data.0).unwrap_or_default();
            return Ok(some);
        }
        if field == Field::Other {
            return Ok(from.value::<IgnoredAny>()?.is_some());
        }
        let Some(scalar) = from.value::<Scalar>()? else { return Ok(false) };
        match field {
            Field::Time(format) => {
                self.time = scalar.number();
                self.format = format.or(self.format);
            }
            Field::TimeFormat => {
                self.format = scalar.text().and_then(|name| Format::named(&name));
            }
            Field::Name | Field::Kind => {
                let name = scalar.text().unwrap_or_default().to_ascii_lowercase();
                self.kind = name.rsplit(':').next().unwrap_or_default().to_owned();
            }
            Field::Path => self.path = scalar.text(),
            Field::Tuple => self.tuple = scalar.text(),
            Field::Group => self.group = scalar.text(),
            Field::Category | Field::Data | Field::Other => {}
        }
        Ok(true)
    }
}

/// The next value of an object or of an array.
trait Next<'de> {
    type Error;
    fn value<T: Deserialize<'de>>(&mut self) -> Result<Option<T>, Self::Error>;
}

struct InMap<A>(A);
struct InSeq<A>(A);

impl<'de, A: MapAccess<'de>> Next<'de> for InMap<A> {
    type Error = A::Error;
    fn value<T: Deserialize<'de>>(&mut self) -> Result<Option<T>, A::Error> {
        self.0.next_value().map(Some)
    }
}

impl<'de, A: SeqAccess<'de>> Next<'de> for InSeq<A> {
    type Error = A::Error;
    fn value<T: Deserialize<'de>>(&mut self) -> Result<Option<T>, A::Error> {
        self.0.next_element()
    }
}

/// Reads an event; an array has these fields. Of an empty one, which some write as the last, none.
#[derive(Clone, Copy)]
pub struct Reads<'a>(pub &'a [Field]);

impl<'de> DeserializeSeed<'de> for Reads<'_> {
    type Value = Option<Event>;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<Event>, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reads<'_> {
    type Value = Option<Event>;
    skips!(expects "an event, an object or an array");

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Option<Event>, A::Error> {
        let (mut event, mut map) = (Event::default(), InMap(map));
        while let Some(field) = map.0.next_key::<Field>()? {
            event.set(field, &mut map)?;
        }
        Ok(Some(event))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Option<Event>, A::Error> {
        let (mut event, mut seq) = (Event::default(), InSeq(seq));
        let mut fields = self.0.iter().enumerate();
        let ended = fields.find_map(|(at, &field)| match event.set(field, &mut seq) {
            Ok(true) => None,
            Ok(false) => Some(Ok(at)),
            Err(error) => Some(Err(error)),
        });
        match ended.transpose()? {
            Some(0) => return Ok(None),
            Some(_) => {}
            None => while seq.0.next_element::<IgnoredAny>()?.is_some() {},
        }
        Ok(Some(event))
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Field, D::Error> {
        struct Reads;
        impl Visitor<'_> for Reads {
            type Value = Field;
            skips!(expects "the name of a field");
            fn visit_str<E>(self, name: &str) -> Result<Field, E> {
                Ok(Field::named(name))
            }
        }
        from.deserialize_str(Reads)
    }
}
