//! Quantities as scenarios write them: a number and its unit in one string, `"20 Mbit/s"`.
//!
//! There is no default unit: a bare number is refused, so nobody has to guess.

use std::borrow::Cow;

use narrows_net::{Limit, Nanos};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

/// A unit and how many base units it holds.
pub type Unit = (&'static str, f64);

const TIME: &[Unit] = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9)];
const BIT_RATE: &[Unit] =
    &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9), ("Tbit/s", 1e12)];
const BYTES: &[Unit] =
    &[("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("KiB", 1024.0), ("MiB", 1048576.0)];
const PACKETS: &[Unit] = &[("packets", 1.0), ("packet", 1.0)];
const PACKET_RATE: &[Unit] = &[("packets/s", 1.0)];
const SHARE: &[Unit] = &[("%", 0.01)];

/// Largest time: a week. More is taken for a mistake in units.
pub(crate) const MAX_TIME: f64 = 7.0 * 86_400e9;
/// Largest amount of data: 1 PB.
pub(crate) const MAX_BYTES: f64 = 1e15;

/// Reads `text` as a number and one of `units`; `what` names the quantity, with an example.
fn parse(text: &str, units: &[Unit], what: &str, max: f64) -> Result<f64, String> {
    let names = || units.iter().map(|unit| unit.0).collect::<Vec<_>>().join(", ");
    let text = text.trim();
    let end =
        text.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+' | '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim();
    let Ok(number) = number.replace('_', "").parse::<f64>() else {
        return Err(format!("expected {what}, found \"{text}\""));
    };
    let Some((_, factor)) = units.iter().find(|known| known.0 == unit) else {
        let found = if unit.is_empty() { "no unit".into() } else { format!("unit \"{unit}\"") };
        return Err(format!("expected {what} in one of {}; found {found} in \"{text}\"", names()));
    };
    let value = number * factor;
    if number.is_sign_negative() {
        return Err(format!("expected {what}, found \"{text}\", which is negative"));
    }
    if value > max {
        let most = max / factor;
        return Err(format!("expected {what}, at most {most} {unit}; found \"{text}\""));
    }
    Ok(value)
}

/// Defines a quantity that is read from a string by `$parse`, where `$what` is expected, and written by
/// `$write` as one that reads as the same.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident($inner:ty), $what:literal, $parse:expr, $write:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $name(pub $inner);

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "title": $what })
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let parse: fn(&str, &str) -> Result<$inner, String> = $parse;
                parse(text, $what).map($name)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let write: fn($inner) -> String = $write;
                serializer.serialize_str(&write(self.0))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($what)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }
    };
}

quantity!(
    /// A time or duration.
    Time(Nanos), "a time such as \"20 ms\"",
    |text, what| Ok(parse(text, TIME, what, MAX_TIME)?.round() as Nanos),
    |time| exact(time, &TIME[..4])
);
quantity!(
    /// A rate of a link, bit/s; never 0.
    BitRate(u64), "a rate such as \"20 Mbit/s\"",
    |text, what| match parse(text, BIT_RATE, what, 1e15)?.round() as u64 {
        0 => Err(format!("expected {what} above 0, found \"{text}\"")),
        rate => Ok(rate),
    },
    |rate| exact(rate, BIT_RATE)
);
quantity!(
    /// An amount of data, bytes.
    Bytes(u64), "a size such as \"64 kB\"",
    |text, what| Ok(parse(text, BYTES, what, MAX_BYTES)?.round() as u64),
    |bytes| exact(bytes, &BYTES[..4])
);
quantity!(
    /// A number of packets, not necessarily whole.
    Packets(f64), "a number of packets such as \"3 packets\"",
    |text, what| parse(text, PACKETS, what, 1e9),
    |packets| format!("{packets} packet{}", if packets == 1.0 { "" } else { "s" })
);
quantity!(
    /// A rate of packets or writes, 1/s; at least one in 1000 s.
    PacketRate(f64), "a packet rate such as \"150 packets/s\"",
    |text, what| match parse(text, PACKET_RATE, what, 1e7)? {
        rate if rate < 1e-3 => Err(format!("expected {what}, at least 0.001, found \"{text}\"")),
        rate => Ok(rate),
    },
    |rate| format!("{rate} packets/s")
);
quantity!(
    /// A share of a whole, as a fraction in 0..=1.
    Share(f64), "a share such as \"0.1 %\"",
    |text, what| parse(text, SHARE, what, 1.0),
    |share| {
        // The number whose hundredth is the share is one of those nearest to its hundredfold.
        let near = (share * 100.0).to_bits();
        let all = (near.saturating_sub(4)..=near + 4).map(f64::from_bits);
        let exact = std::iter::once(share * 100.0).chain(all).find(|&n| n * SHARE[0].1 == share);
        format!("{} %", exact.unwrap_or(share * 100.0))
    }
);
quantity!(
    /// What a droptail queue holds at most.
    Queue(Limit), "a queue such as \"35 packets\", \"64 kB\", \"50 ms\" or \"unlimited\"",
    |text, what| {
        if text.trim() == "unlimited" {
            return Ok(Limit::Unlimited);
        }
        let unit = text.trim().trim_start_matches(|c: char| !c.is_alphabetic());
        let has = |units: &[Unit]| units.iter().any(|known| known.0 == unit);
        let limit = if has(BYTES) {
            Limit::Bytes(parse(text, BYTES, what, MAX_BYTES)?.round() as u64)
        } else if has(TIME) {
            Limit::Time(parse(text, TIME, what, MAX_TIME)?.round() as Nanos)
        } else {
            let all = [PACKETS, BYTES, TIME].concat();
            let packets = parse(text, &all, what, f64::from(u32::MAX))?;
            if packets.fract() != 0.0 {
                return Err(format!("expected {what}, found part of a packet in \"{text}\""));
            }
            Limit::Packets(packets as u32)
        };
        match limit {
            Limit::Packets(0) | Limit::Bytes(0) | Limit::Time(0) => {
                Err(format!("expected {what} above 0, found \"{text}\""))
            }
            limit => Ok(limit),
        }
    },
    |limit| match limit {
        Limit::Unlimited => "unlimited".into(),
        Limit::Packets(packets) => format!("{packets} packets"),
        Limit::Bytes(bytes) => exact(bytes, &BYTES[..4]),
        Limit::Time(time) => exact(time, &TIME[..4]),
    }
);

/// Writes `value` in the largest of `units` that keeps it whole.
fn exact(value: u64, units: &[Unit]) -> String {
    let whole = |unit: &&Unit| value % unit.1 as u64 == 0;
    let unit = units.iter().rev().find(whole).unwrap_or(&units[0]);
    format!("{} {}", value / unit.1 as u64, unit.0)
}

/// Writes `value` in the largest of `units` that leaves at least 1, with up to 3 decimals.
fn show(value: f64, units: &[Unit]) -> String {
    let unit = units.iter().rev().find(|unit| value >= unit.1).unwrap_or(&units[0]);
    let number = format!("{:.3}", value / unit.1);
    let number = number.trim_end_matches('0').trim_end_matches('.');
    format!("{number} {}", unit.0)
}

/// A time for people: `20 ms`.
pub fn show_time(time: Nanos) -> String {
    show(time as f64, &TIME[..4])
}

/// A rate for people: `20 Mbit/s`.
pub fn show_rate(rate: u64) -> String {
    show(rate as f64, BIT_RATE)
}

/// An amount of data for people: `64 kB`.
pub fn show_bytes(bytes: u64) -> String {
    show(bytes as f64, &BYTES[..4])
}

/// A queue's limit for people: `35 packets`.
pub fn show_limit(limit: Limit) -> String {
    match limit {
        Limit::Unlimited => "unlimited".into(),
        Limit::Packets(packets) => format!("{packets} packets"),
        Limit::Bytes(bytes) => show_bytes(bytes),
        Limit::Time(time) => show_time(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!("20 ms".parse(), Ok(Time(20_000_000)));
        assert_eq!("0.5s".parse(), Ok(Time(500_000_000)));
        assert_eq!("20 Mbit/s".parse(), Ok(BitRate(20_000_000)));
        assert_eq!("1.5 kB".parse(), Ok(Bytes(1500)));
        assert_eq!("64 KiB".parse(), Ok(Bytes(65536)));
        assert_eq!("0.03 %".parse::<Share>().map(|s| (s.0 * 1e6).round()), Ok(300.0));
        assert_eq!("35 packets".parse(), Ok(Queue(Limit::Packets(35))));
        assert_eq!("1 packet".parse(), Ok(Queue(Limit::Packets(1))));
        assert_eq!("64 kB".parse(), Ok(Queue(Limit::Bytes(64_000))));
        assert_eq!("50 ms".parse(), Ok(Queue(Limit::Time(50_000_000))));
        assert_eq!("unlimited".parse(), Ok(Queue(Limit::Unlimited)));
    }

    #[test]
    fn a_quantity_is_written_as_it_reads() {
        fn round_trip<T: Serialize + std::str::FromStr<Err = String>>(text: &str) {
            let toml = toml::Value::try_from(text.parse::<T>().ok()).unwrap();
            assert_eq!(toml.as_str(), Some(text));
        }
        for time in ["0 s", "1 ns", "21800 us", "20 s", "604800 s", "604799999999999 ns"] {
            round_trip::<Time>(time);
        }
        for size in ["1500 B", "64 kB", "1000000 GB", "999999999999999 B"] {
            round_trip::<Bytes>(size);
        }
        for share in ["0 %", "0.1 %", "33.3 %", "0.29 %", "57 %", "100 %", "0.0007 %"] {
            let kept: Share = share.parse().unwrap();
            let toml = toml::Value::try_from(kept).unwrap();
            assert_eq!(toml.as_str().unwrap().parse(), Ok(kept), "{share}");
        }
        round_trip::<BitRate>("12500 kbit/s");
        round_trip::<Packets>("1.5 packets");
        round_trip::<Packets>("1 packet");
        round_trip::<PacketRate>("0.001 packets/s");
        for queue in ["unlimited", "35 packets", "50 ms", "64 kB"] {
            round_trip::<Queue>(queue);
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused_with_what_was_expected() {
        let time = |text: &str| text.parse::<Time>().unwrap_err();
        assert_eq!(
            time("20"),
            "expected a time such as \"20 ms\" in one of ns, us, ms, s, min; found no unit in \"20\""
        );
        assert!(time("20 Ms").ends_with("found unit \"Ms\" in \"20 Ms\""));
        assert!(time("-1 ms").ends_with("which is negative"));
        assert!(time("-0 ms").ends_with("which is negative"));
        assert!(time("1000000 min").ends_with(", at most 10080 min; found \"1000000 min\""));
        assert!(time("soon").ends_with("found \"soon\""));
        assert!(time("inf s").starts_with("expected a time"));
        assert!("0 Mbit/s".parse::<BitRate>().unwrap_err().contains("above 0"));
        assert!("1e9 packets/s".parse::<PacketRate>().is_err());
        assert!(
            "20000000 packets/s".parse::<PacketRate>().unwrap_err().contains("at most 10000000 p")
        );
        assert!("0.0001 packets/s".parse::<PacketRate>().unwrap_err().contains("at least 0.001"));
        assert!("120 %".parse::<Share>().unwrap_err().contains("at most 100 %; found \"120 %\""));
        assert!("0 packets".parse::<Queue>().unwrap_err().contains("above 0"));
        assert!("1.5 packets".parse::<Queue>().unwrap_err().contains("part of a packet"));
        assert!("35 pakets".parse::<Queue>().unwrap_err().contains("unit \"pakets\""));
    }

    #[test]
    fn quantities_are_shown_in_the_unit_that_fits() {
        assert_eq!(show_time(20_000_000), "20 ms");
        assert_eq!(show_time(1_500_000_000), "1.5 s");
        assert_eq!(show_time(0), "0 ns");
        assert_eq!(show_rate(20_000_000), "20 Mbit/s");
        assert_eq!(show_bytes(410_000), "410 kB");
        assert_eq!(show_limit(Limit::Packets(35)), "35 packets");
    }
}
