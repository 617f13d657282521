//! What TCP end points do beyond what all do: from the file's words to the simulator's.

use std::borrow::Cow;
use std::fmt;

use narrows_net::{MILLISECOND, Nanos};
use narrows_traffic::{Hides, LossDetection, Opener, ReceiverAcks, TcpConfig, Timestamps};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{Packets, Time};

/// Options of TCP, of one flow or of all.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TcpFile {
    /// ECN: true, false, or `"scalable"` for ECT(1) and marks that are echoed one by one. Default: `false`.
    ecn: Option<EcnFile>,
    /// Default: `false`.
    pacing: Option<bool>,
    /// Most packets that leave in one burst. Default: `"1 packet"`.
    tso: Option<Packets>,
    /// For how long a receiver gathers packets, at most 10 ms. Default: `"0 s"`.
    gro: Option<Time>,
    /// By time (RFC 8985), or by sequence as before Linux 4.15. Default: `"rack"`.
    pub loss_detection: Option<Detection>,
    /// When a full-sized packet with PSH is acknowledged: as soon as it is read, or as before.
    /// Default: `"linux-6.6"`.
    pub receiver_acks: Option<Acks>,
    /// A receiver that misbehaves hides what was lost, or ECN marks. Default: neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver_hides: Option<Hidden>,
    /// Clock of the timestamps. Default: `"ms"`.
    timestamps: Option<Clock>,
    /// By how many millionths the receiver's clock is faster than the sender's, at most 10000.
    /// Default: `0`.
    skew_ppm: Option<i32>,
    /// Who opens connections: an upload, or a download. Default: `"sender"`.
    opener: Option<End>,
}

impl TcpFile {
    /// The fields of `file`, with the defaults.
    pub fn whole(file: Option<&TcpFile>) -> TcpFile {
        let default = TcpConfig::default();
        let clock = match default.timestamps {
            Timestamps::Ms => Clock::Ms,
            Timestamps::Us => Clock::Us,
        };
        let acks = match default.receiver_acks {
            ReceiverAcks::Linux65 => Acks::Linux65,
            ReceiverAcks::Linux66 => Acks::Linux66,
            ReceiverAcks::EveryPacket => Acks::EveryPacket,
        };
        let detection = match default.loss_detection {
            LossDetection::Rack => Detection::Rack,
            LossDetection::Fack => Detection::Fack,
        };
        let opener = match default.opener {
            Opener::Sender => End::Sender,
            Opener::Receiver => End::Receiver,
        };
        let file = file.cloned().unwrap_or_default();
        TcpFile {
            ecn: file.ecn.or(Some(EcnFile::Classic(default.ecn))),
            pacing: file.pacing.or(Some(default.pacing)),
            tso: file.tso.or(Some(Packets(default.tso.into()))),
            gro: file.gro.or(Some(Time(default.gro))),
            loss_detection: file.loss_detection.or(Some(detection)),
            receiver_acks: file.receiver_acks.or(Some(acks)),
            receiver_hides: file.receiver_hides,
            timestamps: file.timestamps.or(Some(clock)),
            skew_ppm: file.skew_ppm.or(Some(default.skew_ppm)),
            opener: file.opener.or(Some(opener)),
        }
    }
}

/// What end points do about ECN.
#[derive(Clone, Copy, Debug, PartialEq)]
enum EcnFile {
    /// RFC 3168's, or none.
    Classic(bool),
    /// That of scalable senders.
    Scalable,
}

/// Its name.
const SCALABLE: &str = "scalable";

impl<'de> Deserialize<'de> for EcnFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = EcnFile;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                write!(f, "true, false or \"{SCALABLE}\"")
            }

            fn visit_bool<E: Error>(self, on: bool) -> Result<EcnFile, E> {
                Ok(EcnFile::Classic(on))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<EcnFile, E> {
                if name == SCALABLE {
                    return Ok(EcnFile::Scalable);
                }
                Err(E::invalid_value(Unexpected::Str(name), &self))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl Serialize for EcnFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            EcnFile::Classic(on) => serializer.serialize_bool(*on),
            EcnFile::Scalable => serializer.serialize_str(SCALABLE),
        }
    }
}

impl JsonSchema for EcnFile {
    fn schema_name() -> Cow<'static, str> {
        "Ecn".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "title": "true, false or scalable", "enum": [true, false, SCALABLE] })
    }
}

/// How the sender finds lost segments.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Detection {
    Rack,
    Fack,
}

/// The Linux whose rule the receiver follows, or no delay at all.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
pub enum Acks {
    #[serde(rename = "linux-6.5")]
    Linux65,
    #[serde(rename = "linux-6.6")]
    Linux66,
    #[serde(rename = "every-packet")]
    EveryPacket,
}

/// What a receiver hides.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum Hidden {
    Losses,
    Marks,
}

/// Clock of the timestamps.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum Clock {
    Ms,
    Us,
}

/// Who opens connections.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum End {
    Sender,
    Receiver,
}

/// Longest burst, segments: 64 kB of the smallest.
const MAX_TSO: f64 = 128.0;

/// Most that two clocks run apart: beyond any that a computer has.
const MAX_SKEW_PPM: i32 = 10_000;

/// Longest time a receiver gathers segments.
const MAX_GRO: Nanos = 10 * MILLISECOND;

/// `default` with the fields of `file`, or the wrong field.
pub fn config(
    file: &Option<TcpFile>,
    default: TcpConfig,
) -> Result<TcpConfig, (&'static str, String)> {
    let Some(file) = file else { return Ok(default) };
    let mut tcp = default;
    (tcp.ecn, tcp.scalable) = match file.ecn {
        None => (tcp.ecn, tcp.scalable),
        Some(EcnFile::Classic(on)) => (on, false),
        Some(EcnFile::Scalable) => (true, true),
    };
    tcp.pacing = file.pacing.unwrap_or(tcp.pacing);
    if let Some(Packets(packets)) = file.tso {
        if packets.fract() != 0.0 || !(1.0..=MAX_TSO).contains(&packets) {
            let message = format!("expected a whole number of 1 to {MAX_TSO} packets");
            return Err(("tso", message));
        }
        tcp.tso = packets as u32;
    }
    if let Some(Time(time)) = file.gro {
        if time > MAX_GRO {
            return Err(("gro", "expected at most 10 ms".into()));
        }
        tcp.gro = time;
    }
    if let Some(skew) = file.skew_ppm {
        if skew.unsigned_abs() > MAX_SKEW_PPM.unsigned_abs() {
            return Err(("skew_ppm", format!("expected -{MAX_SKEW_PPM} to {MAX_SKEW_PPM}")));
        }
        tcp.skew_ppm = skew;
    }
    tcp.loss_detection = match file.loss_detection {
        None => tcp.loss_detection,
        Some(Detection::Rack) => LossDetection::Rack,
        Some(Detection::Fack) => LossDetection::Fack,
    };
    tcp.receiver_acks = match file.receiver_acks {
        None => tcp.receiver_acks,
        Some(Acks::Linux65) => ReceiverAcks::Linux65,
        Some(Acks::Linux66) => ReceiverAcks::Linux66,
        Some(Acks::EveryPacket) => ReceiverAcks::EveryPacket,
    };
    tcp.receiver_hides = match file.receiver_hides {
        None => tcp.receiver_hides,
        Some(Hidden::Losses) => Some(Hides::Losses),
        Some(Hidden::Marks) => Some(Hides::Marks),
    };
    tcp.timestamps = match file.timestamps {
        None => tcp.timestamps,
        Some(Clock::Ms) => Timestamps::Ms,
        Some(Clock::Us) => Timestamps::Us,
    };
    tcp.opener = match file.opener {
        None => tcp.opener,
        Some(End::Sender) => Opener::Sender,
        Some(End::Receiver) => Opener::Receiver,
    };
    Ok(tcp)
}
