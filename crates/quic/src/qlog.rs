//! The events of a connection as a qlog file: JSON text sequences (RFC 7464), windows as the events that
//! a version of qlog has for them. noq takes no events of others, so this is a file beside its own.

use crate::snapshot::{PairState, PathState};
use narrows_laws::{MAX_PATHS, Place};
use std::fmt::{self, Display};
use std::io::{self, Write};

/// What a qlog file follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QlogVersion {
    /// draft-ietf-quic-qlog-main-schema-13 and draft-ietf-quic-qlog-quic-events-12, as noq's own logs. The
    /// path of an event is its `tuple`.
    #[default]
    Draft13,
    /// qlog 0.3, draft-ietf-quic-qlog-main-schema-02 and those after it: the newest that qvis loads. Each path
    /// is a connection there, by `group_id`.
    V03,
}

/// The URIs of the events' schemas: the draft's, and a private one, whose events the README describes.
const SCHEMAS: [&str; 2] =
    ["urn:ietf:params:qlog:events:quic-12", "urn:narrows:qlog:events:narrows"];

/// An event.
pub(crate) enum Event<'a> {
    /// A path has sent its first packet.
    PathJoined { slot: usize },
    /// A path is gone.
    PathLeft { slot: usize },
    /// One more path runs its law alone: how many.
    PathAlone { count: u64 },
    /// Which paths are coupled: the slots of each group, as bits.
    GroupsUpdated { groups: Vec<u8> },
    /// The detector has decided: its places by slot, and the pairs that it compares.
    DetectorDecided { number: u32, places: &'a [(usize, Place)], pairs: &'a [PairState] },
    /// The window or the threshold of a path has changed.
    MetricsUpdated(&'a PathState),
    /// A path is in another state of congestion control: which it was in, and which it is in.
    StateUpdated { slot: usize, old: Option<&'static str>, new: &'static str },
}

/// In which state of RFC 9002, section 7.3, a path is.
fn state(path: &PathState) -> &'static str {
    match path.ssthresh {
        _ if path.recovering => "recovery",
        Some(ssthresh) if path.cwnd >= ssthresh => "congestion_avoidance",
        _ => "slow_start",
    }
}

/// A log.
pub(crate) struct Qlog {
    version: QlogVersion,
    /// None after an error.
    writer: Option<Box<dyn Write + Send>>,
    /// Window and threshold by slot, as last written.
    windows: [Option<(u64, Option<u64>)>; MAX_PATHS],
    /// State by slot, as last written.
    states: [Option<&'static str>; MAX_PATHS],
    /// As last written.
    groups: Vec<u8>,
    /// Number of the last decision.
    decision: u32,
}

impl fmt::Debug for Qlog {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Qlog").finish_non_exhaustive()
    }
}

impl Qlog {
    /// Begins the log of a connection under the control called `control`.
    pub fn new(
        version: QlogVersion,
        mut writer: Box<dyn Write + Send>,
        control: &str,
    ) -> io::Result<Qlog> {
        let (format, trace) = match version {
            QlogVersion::Draft13 => (
                "\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\
                 \"serialization_format\":\"application/qlog+json-seq\"",
                format!(
                    "{{\"common_fields\":{{\"time_format\":\"relative_to_epoch\",\
                     \"reference_time\":{{\"clock_type\":\"monotonic\",\"epoch\":\"unknown\"}}}},\
                     \"event_schemas\":{SCHEMAS:?}}}"
                ),
            ),
            QlogVersion::V03 => (
                "\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\"",
                "{\"common_fields\":{\"time_format\":\"relative\",\"reference_time\":0}}"
                    .to_owned(),
            ),
        };
        // Names of controls need no escapes.
        writeln!(
            writer,
            "\x1e{{{format},\"title\":\"narrows-quic: {control}\",\"trace\":{trace}}}"
        )?;
        Ok(Qlog {
            version,
            writer: Some(writer),
            windows: [None; MAX_PATHS],
            states: [None; MAX_PATHS],
            groups: Vec::new(),
            decision: 0,
        })
    }

    /// Writes an event of the time `ms`, unless nothing has changed. After an error the log ends.
    pub fn write(&mut self, ms: f64, event: &Event) {
        match event {
            Event::MetricsUpdated(path) => {
                let (slot, new) = (path.slot, state(path));
                let old = self.states[slot].replace(new);
                if old != Some(new) {
                    self.write(ms, &Event::StateUpdated { slot, old, new });
                }
                let window = Some((path.cwnd, path.ssthresh));
                if std::mem::replace(&mut self.windows[path.slot], window) == window {
                    return;
                }
            }
            Event::GroupsUpdated { groups } if *groups == self.groups => return,
            Event::GroupsUpdated { groups } => self.groups.clone_from(groups),
            Event::DetectorDecided { number, .. } => {
                if std::mem::replace(&mut self.decision, *number) == *number {
                    return;
                }
            }
            Event::PathLeft { slot } => {
                (self.windows[*slot], self.states[*slot]) = (None, None);
            }
            Event::PathJoined { .. } | Event::PathAlone { .. } | Event::StateUpdated { .. } => {}
        }
        let Some(writer) = &mut self.writer else { return };
        let name = event.name(self.version);
        let path = match (self.version, event.path()) {
            (QlogVersion::Draft13, Some(slot)) => format!("\"tuple\":\"{slot}\","),
            (QlogVersion::Draft13, None) => String::new(),
            (QlogVersion::V03, Some(slot)) => format!("\"group_id\":\"path {slot}\","),
            // qvis wants a group of all events or of none.
            (QlogVersion::V03, None) => "\"group_id\":\"coupling\",".to_owned(),
        };
        let record =
            format!("\x1e{{\"time\":{ms:.3},\"name\":\"{name}\",{path}\"data\":{event}}}\n");
        if let Err(error) = writer.write_all(record.as_bytes()) {
            tracing::warn!(%error, "the qlog file ends here");
            self.writer = None;
        }
    }
}

impl Event<'_> {
    fn name(&self, version: QlogVersion) -> &'static str {
        match self {
            Event::PathJoined { .. } => "narrows:path_joined",
            Event::PathLeft { .. } => "narrows:path_left",
            Event::PathAlone { .. } => "narrows:path_alone",
            Event::GroupsUpdated { .. } => "narrows:groups_updated",
            Event::DetectorDecided { .. } => "narrows:detector_decided",
            Event::MetricsUpdated(_) if version == QlogVersion::V03 => "recovery:metrics_updated",
            Event::MetricsUpdated(_) => "quic:recovery_metrics_updated",
            Event::StateUpdated { .. } if version == QlogVersion::V03 => {
                "recovery:congestion_state_updated"
            }
            Event::StateUpdated { .. } => "quic:congestion_state_updated",
        }
    }

    /// The slot of the path of an event that is not of ours.
    fn path(&self) -> Option<usize> {
        match self {
            Event::MetricsUpdated(PathState { slot, .. }) | Event::StateUpdated { slot, .. } => {
                Some(*slot)
            }
            _ => None,
        }
    }
}

/// The data, as JSON.
impl Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Event::PathJoined { slot } | Event::PathLeft { slot } => {
                write!(f, "{{\"slot\":{slot}}}")
            }
            Event::PathAlone { count } => write!(f, "{{\"count\":{count}}}"),
            Event::GroupsUpdated { groups } => {
                f.write_str("{\"groups\":[")?;
                list(f, groups, |f, group| {
                    let slots = (0..MAX_PATHS).filter(|slot| group >> slot & 1 != 0);
                    // As Rust shows numbers, JSON has them.
                    write!(f, "{:?}", slots.collect::<Vec<_>>())
                })?;
                f.write_str("]}")
            }
            Event::DetectorDecided { number, places, pairs } => {
                write!(f, "{{\"decision\":{number},\"places\":[")?;
                list(f, places, |f, (slot, place)| match place {
                    Place::Group(group) => {
                        write!(f, "{{\"slot\":{slot},\"place\":\"group\",\"group\":{group}}}")
                    }
                    Place::Clear => write!(f, "{{\"slot\":{slot},\"place\":\"clear\"}}"),
                    Place::Undecided => write!(f, "{{\"slot\":{slot},\"place\":\"undecided\"}}"),
                })?;
                f.write_str("],\"pairs\":[")?;
                list(f, pairs, |f, PairState { slots: (i, j), shared, confidence }| {
                    write!(
                        f,
                        "{{\"slots\":[{i},{j}],\"shared\":{shared},\"confidence\":{confidence:.3}}}"
                    )
                })?;
                f.write_str("]}")
            }
            Event::StateUpdated { old, new, .. } => {
                let old = old.map(|old| format!("\"old\":\"{old}\",")).unwrap_or_default();
                write!(f, "{{{old}\"new\":\"{new}\"}}")
            }
            Event::MetricsUpdated(PathState { cwnd, inflight, ssthresh, srtt, .. }) => {
                write!(f, "{{\"congestion_window\":{cwnd},\"bytes_in_flight\":{inflight}")?;
                if let Some(ssthresh) = ssthresh {
                    write!(f, ",\"ssthresh\":{ssthresh}")?;
                }
                if let Some(srtt) = srtt {
                    write!(f, ",\"smoothed_rtt\":{:.3}", srtt.as_secs_f64() * 1e3)?;
                }
                f.write_str("}")
            }
        }
    }
}

/// The items of a list of JSON, each as `item` writes it.
fn list<T>(
    f: &mut fmt::Formatter,
    items: &[T],
    item: impl Fn(&mut fmt::Formatter, &T) -> fmt::Result,
) -> fmt::Result {
    for (n, one) in items.iter().enumerate() {
        f.write_str(if n > 0 { "," } else { "" })?;
        item(f, one)?;
    }
    Ok(())
}
