//! A qlog file (draft-ietf-quic-qlog-main-schema, from draft-00 on): its traces, read as they come.

use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use crate::event::{Field, Format, Object, Reads, Scalar};
use crate::json::Values;
use crate::reference::Reference;
use crate::trace::Trace;
use crate::{Error, Input};

/// Traces of a file.
pub const TRACES: usize = 256;

/// The traces of a file.
///
/// # Errors
/// It cannot be read, is no qlog, or of another version.
pub fn traces(input: &Input) -> Result<Vec<Trace>, Error> {
    Log::read(input).map(|log| log.traces)
}

/// A file while it is read.
struct Log {
    traces: Vec<Trace>,
    /// It says which version it has.
    known: bool,
}

impl Log {
    /// Reads a file.
    fn read(input: &Input) -> Result<Log, Error> {
        let mut log = Log { traces: Vec::new(), known: false };
        let mut values = Values::open(input)?;
        values.next(Head(&mut log))?;
        let line = values.line();
        let Some(trace) = log.traces.last_mut() else {
            let place = format!("{} line {}", input.name(), line.get());
            return Err(Error::input(place, "expected traces, or a trace and events, found none"));
        };
        let fields = trace.fields.clone();
        while let Some(event) = values.next(Reads(&fields))? {
            let Some(event) = event else { continue };
            let place =
                |message| Error::input(format!("{} line {}", input.name(), line.get()), message);
            trace.event(&event).map_err(place)?;
        }
        Ok(log)
    }

    /// One more trace.
    fn begin(&mut self) -> Result<(), String> {
        if self.traces.len() == TRACES {
            return Err(format!("expected at most {TRACES} traces, found another"));
        }
        let trace = Trace::new().map_err(|error| {
            format!("cannot keep what it shows in {}: {error}", std::env::temp_dir().display())
        })?;
        self.traces.push(trace);
        Ok(())
    }

    /// Is it of a version that is read?
    fn version(&mut self, name: &str) -> Result<(), String> {
        let drafts = ["draft-00", "draft-01", "draft-02"];
        let known = ["0.1", "0.2", "0.3", "0.4"].contains(&name)
            || drafts.iter().any(|draft| name.starts_with(draft))
            || name.starts_with("urn:ietf:params:qlog:file:");
        self.known |= known;
        if known { Ok(()) } else { Err(format!("{VERSIONS}, found {name:?}")) }
    }
}

const VERSIONS: &str = "expected qlog_version draft-00 to draft-02 or 0.1 to 0.4, \
                        or file_schema urn:ietf:params:qlog:file:..";

/// The object that a file is or begins with.
struct Head<'a>(&'a mut Log);

impl<'de> DeserializeSeed<'de> for Head<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Head<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object with qlog_version or file_schema")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Head(log) = self;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "qlog_version" | "file_schema" => {
                    let name = map.next_value::<Scalar>()?.text().unwrap_or_default();
                    log.version(&name).map_err(A::Error::custom)?;
                }
                "trace" => map.next_value_seed(InTrace(log))?,
                "traces" => map.next_value_seed(InTraces(log))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match log.known {
            true => Ok(()),
            false => Err(A::Error::custom(format!("{VERSIONS}, found neither"))),
        }
    }
}

/// The traces of a file that has them in an array.
struct InTraces<'a>(&'a mut Log);

impl<'de> DeserializeSeed<'de> for InTraces<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for InTraces<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array of traces")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(InTrace(self.0))?.is_some() {}
        Ok(())
    }
}

/// A trace.
struct InTrace<'a>(&'a mut Log);

impl<'de> DeserializeSeed<'de> for InTrace<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for InTrace<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a trace, an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.0.begin().map_err(A::Error::custom)?;
        let Some(trace) = self.0.traces.last_mut() else { return Ok(()) };
        while let Some(key) = map.next_key::<String>()? {
            let name = key.as_str();
            if ["common_fields", "configuration", "event_fields"].contains(&name)
                && trace.events > 0
            {
                return Err(A::Error::custom(format!("expected {name} before events")));
            }
            match name {
                "common_fields" => {
                    let Object(fields) = map.next_value::<Object<CommonFields>>()?;
                    let fields = fields.unwrap_or_default();
                    let format = fields.time_format.text();
                    let known = format.as_deref().map(Format::named);
                    trace.common.format = known.flatten();
                    if let (Some(name), Some(None)) = (format, known) {
                        let expected = "expected time_format relative_to_epoch, relative_to_previous_event, \
                                        relative, absolute or delta";
                        return Err(A::Error::custom(format!("{expected}, found {name:?}")));
                    }
                    trace.common.reference = fields.reference_time;
                    trace.common.group = fields.group_id.text();
                }
                "configuration" => {
                    let Object(fields) = map.next_value::<Object<Configuration>>()?;
                    let fields = fields.unwrap_or_default();
                    trace.common.unit = match fields.time_units.text().as_deref() {
                        Some("us") => Some(1e-3),
                        Some("s") => Some(1e3),
                        _ => None,
                    };
                    trace.common.offset = fields.time_offset.number().unwrap_or(0.0);
                }
                "event_fields" => {
                    let names = map.next_value::<Vec<Scalar>>()?;
                    let name = |of: &Scalar| of.text().unwrap_or_default().to_ascii_lowercase();
                    trace.fields = names.iter().map(|of| Field::named(&name(of))).collect();
                }
                "events" => map.next_value_seed(Events(trace))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The events of a trace that has them in an array.
struct Events<'a>(&'a mut Trace);

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Events(trace) = self;
        let fields = trace.fields.clone();
        while let Some(event) = seq.next_element_seed(Reads(&fields))? {
            if let Some(event) = event {
                trace.event(&event).map_err(A::Error::custom)?;
            }
        }
        Ok(())
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CommonFields {
    time_format: Scalar,
    reference_time: Reference,
    group_id: Scalar,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Configuration {
    time_units: Scalar,
    time_offset: Scalar,
}
