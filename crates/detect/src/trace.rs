//! What a trace of a qlog shows of each path: what it sends, its round-trip times and losses, as records in a
//! temporary file.
//!
//! Round-trip times are those that the sender logs (`latest_rtt`); if it logs none, or not of which path, the
//! times from packets to the acknowledgements that have them as the largest.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use crate::event::{End, Event, Field, Format, Object};
use crate::reference::Reference;
use crate::sizes::Flows;

/// Paths of a trace.
const PATHS: usize = 1024;
/// Packets of a path whose time of sending is known.
const REMEMBERED: usize = 1 << 14;
/// What stands for a round-trip time before there is one (RFC 9002, 6.2.2), ms.
const INITIAL_RTT: f64 = 333.0;
/// Larger times and delays are mistakes, ms.
const LARGEST: f64 = 1e14;

/// What a record tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A round-trip time that was logged, and one from a packet to its acknowledgement.
    Logged,
    Acknowledged,
    /// One that was logged before, without an acknowledgement since.
    Repeated,
    Lost,
}

/// What is known of a path at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    pub t_ms: f64,
    /// Round-trip time, ms, or packets that were lost.
    pub value: f64,
    pub path: u32,
    pub delivered: u32,
    pub kind: Kind,
}

impl Record {
    pub const BYTES: usize = 25;

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Record::BYTES);
        bytes.extend(self.t_ms.to_le_bytes());
        bytes.extend(self.value.to_le_bytes());
        bytes.extend(self.path.to_le_bytes());
        bytes.extend(self.delivered.to_le_bytes());
        bytes.push(self.kind as u8);
        bytes
    }

    pub fn of(bytes: &[u8; Record::BYTES]) -> Record {
        let eight = |at: usize| bytes[at..at + 8].try_into().unwrap_or_default();
        let four = |at: usize| bytes[at..at + 4].try_into().unwrap_or_default();
        let kinds = [Kind::Logged, Kind::Acknowledged, Kind::Repeated, Kind::Lost];
        Record {
            t_ms: f64::from_le_bytes(eight(0)),
            value: f64::from_le_bytes(eight(8)),
            path: u32::from_le_bytes(four(16)),
            delivered: u32::from_le_bytes(four(20)),
            kind: kinds[usize::from(bytes[24]).min(3)],
        }
    }
}

/// A path while it is read.
#[derive(Debug, Default)]
pub struct Path {
    /// What the log calls it, and its connection.
    pub name: String,
    pub group: Option<String>,
    /// Its addresses.
    pub ends: Option<String>,
    pub packets: u64,
    /// Bytes of these, if all are known.
    pub bytes: Option<u64>,
    /// Numbers of packets, and when they were sent.
    pub sent: VecDeque<(u64, f64)>,
    /// When the first and the last event of its data or delays was.
    pub span: Option<(f64, f64)>,
    /// The newest that was logged, and the largest packet that is acknowledged.
    pub latest: Option<f64>,
    pub acked: Option<u64>,
    /// Packets acknowledged since the last record.
    pub delivered: u64,
    /// Round-trip times of each kind, and the least.
    pub samples: [u64; 3],
    pub least: [Option<f64>; 3],
}

/// A trace while it is read.
pub struct Trace {
    pub common: Common,
    pub fields: Vec<Field>,
    pub paths: Vec<Path>,
    pub places: Flows<(Option<String>, String), usize>,
    /// Addresses by their names.
    pub tuples: Flows<String, Option<String>>,
    pub records: BufWriter<File>,
    /// Of the event before, and the newest; by how much times go back; the first.
    pub previous: Option<f64>,
    pub newest: f64,
    pub back: f64,
    pub first: Option<f64>,
    pub events: u64,
    /// Round-trip times that are logged without a path.
    pub unplaced: u64,
    /// How many of what is logged are right as microseconds, milliseconds and seconds, by packets.
    pub units: [u64; 3],
}

/// What all events of a trace have in common.
#[derive(Clone, Debug, Default)]
pub struct Common {
    pub format: Option<Format>,
    pub reference: Reference,
    /// Milliseconds of a unit of time.
    pub unit: Option<f64>,
    /// In this unit.
    pub offset: f64,
    pub group: Option<String>,
}

/// Milliseconds of units of round-trip times: us, ms, s.
const UNITS: [f64; 3] = [1e-3, 1.0, 1e3];

impl Trace {
    pub fn new() -> io::Result<Trace> {
        Ok(Trace {
            common: Common::default(),
            fields: Vec::new(),
            paths: Vec::new(),
            places: Flows::default(),
            tuples: Flows::default(),
            records: BufWriter::new(tempfile::tempfile()?),
            previous: None,
            newest: f64::NEG_INFINITY,
            back: 0.0,
            first: None,
            events: 0,
            unplaced: 0,
            units: [0; 3],
        })
    }

    /// An event.
    pub fn event(&mut self, event: &Event) -> Result<(), String> {
        let t_ms = self.time(event)?;
        self.events += 1;
        self.first = self.first.or(Some(t_ms));
        let data = &event.data;
        match event.kind.as_str() {
            "metrics_updated" | "metric_update" | "recovery_metrics_updated" => {
                self.logged(t_ms, event)?;
                match data.lost_since() {
                    0 => {}
                    count => self.lost(t_ms, event, count)?,
                }
            }
            "packet_sent" if !data.is_of_handshake() => {
                let at = self.path(event, event.path())?;
                self.tuple_of(event, at);
                let path = &mut self.paths[at];
                path.see(t_ms);
                path.packets += 1;
                let length = data.length();
                path.bytes = match (path.packets, path.bytes) {
                    (1, _) => length,
                    (_, bytes) => bytes.zip(length).map(|(bytes, more)| bytes.saturating_add(more)),
                };
                let number = data.packet_number();
                let newest = path.sent.back().map(|&(newest, _)| newest);
                if let Some(number) = number.filter(|&number| newest.is_none_or(|of| number > of)) {
                    if path.sent.len() == REMEMBERED {
                        path.sent.pop_front();
                    }
                    path.sent.push_back((number, t_ms));
                }
            }
            "packet_received" if !data.is_of_handshake() => {
                for (path, largest) in &data.frames.0 {
                    self.acked(t_ms, event, path.clone(), *largest)?;
                }
            }
            "packets_acked" if !data.is_of_handshake() => {
                if let Some(largest) = data.packet_numbers.0 {
                    self.acked(t_ms, event, event.path(), largest)?;
                }
            }
            "packet_lost" | "packets_lost" if !data.is_of_handshake() => {
                self.lost(t_ms, event, data.lost())?;
            }
            "tuple_assigned" | "path_assigned" => self.assigned(event),
            _ => {}
        }
        Ok(())
    }

    /// When an event was, ms since 1970 or the beginning of the trace's clock; never before another.
    fn time(&mut self, event: &Event) -> Result<f64, String> {
        let unit = self.common.unit.unwrap_or(1.0);
        let time = event.time.ok_or("expected an event with a time, a number")? * unit;
        let zero = self.common.reference.ms(unit) + self.common.offset * unit;
        let format = event.format.or(self.common.format).unwrap_or(Format::Epoch);
        let t_ms = match (format, self.previous) {
            (Format::Absolute, _) => time,
            (Format::Previous, Some(previous)) => previous + time,
            (Format::Epoch, _) | (Format::Previous, None) => zero + time,
        };
        if t_ms.abs() > LARGEST {
            return Err(format!("expected a time of at most {LARGEST:e} ms, found {t_ms:e}"));
        }
        self.previous = Some(t_ms);
        self.back = self.back.max(self.newest - t_ms);
        self.newest = self.newest.max(t_ms);
        Ok(self.newest)
    }

    /// The path of this name, or the first.
    fn path(&mut self, event: &Event, name: Option<String>) -> Result<usize, String> {
        let name = name.unwrap_or_else(|| "0".to_owned());
        let group = event.group.clone().filter(|group| self.common.group.as_ref() != Some(group));
        if let Some(&at) = self.places.get(&(group.clone(), name.clone())) {
            return Ok(at);
        }
        if self.paths.len() == PATHS {
            return Err(format!("expected at most {PATHS} paths in a trace, found another"));
        }
        self.paths.push(Path { name: name.clone(), group: group.clone(), ..Path::default() });
        self.places.insert((group, name), self.paths.len() - 1);
        Ok(self.paths.len() - 1)
    }

    /// The sender logs its metrics.
    fn logged(&mut self, t_ms: f64, event: &Event) -> Result<(), String> {
        let rtt = event.data.latest_rtt.number();
        // 0 is logged of a path before it has one (picoquic).
        let Some(rtt) = rtt.filter(|&rtt| rtt > 0.0 && rtt < LARGEST) else { return Ok(()) };
        let rtt = rtt * self.common.unit.unwrap_or(1.0);
        let name = event.path();
        self.unplaced += u64::from(name.is_none());
        let at = self.path(event, name)?;
        let path = &mut self.paths[at];
        let before = path.latest.replace(rtt);
        let near = |other: f64| (rtt - other).abs() < 1e-6 * other;
        if before.is_none() && (near(INITIAL_RTT) || near(INITIAL_RTT / 1e3)) {
            self.units[2] += u64::from(near(INITIAL_RTT / 1e3));
            return Ok(());
        }
        let delivered = std::mem::take(&mut path.delivered);
        let again = before == Some(rtt) && delivered == 0;
        let kind = if again { Kind::Repeated } else { Kind::Logged };
        self.sample(t_ms, at, kind, rtt, delivered)
    }

    /// Packets of a path up to a number are acknowledged.
    fn acked(
        &mut self,
        t_ms: f64,
        event: &Event,
        name: Option<String>,
        largest: u64,
    ) -> Result<(), String> {
        let at = self.path(event, name)?;
        let path = &mut self.paths[at];
        if path.acked.is_some_and(|acked| acked >= largest) {
            return Ok(());
        }
        let news = path.acked.map_or(1, |acked| largest - acked);
        path.delivered = path.delivered.saturating_add(news);
        path.acked = Some(largest);
        let Some(sent_ms) = path.sent_at(largest) else { return Ok(()) };
        let rtt = t_ms - sent_ms;
        if let Some(latest) = path.latest.filter(|&latest| latest > 0.0) {
            let factor = rtt / latest;
            let right = UNITS.iter().position(|unit| (unit / 3.0..unit * 3.0).contains(&factor));
            right.into_iter().for_each(|unit| self.units[unit] += 1);
        }
        self.sample(t_ms, at, Kind::Acknowledged, rtt, news)
    }

    /// A round-trip time, and how many packets were acknowledged since the one before; 0: it is not known.
    fn sample(
        &mut self,
        t_ms: f64,
        at: usize,
        kind: Kind,
        rtt: f64,
        delivered: u64,
    ) -> Result<(), String> {
        let path = &mut self.paths[at];
        path.see(t_ms);
        path.samples[kind as usize] += 1;
        let least = &mut path.least[kind as usize];
        *least = Some(least.map_or(rtt, |least| least.min(rtt)));
        let delivered = u32::try_from(delivered.max(1)).unwrap_or(u32::MAX);
        self.write(&Record { t_ms, value: rtt, path: at as u32, delivered, kind })
    }

    /// A packet is lost, or several are. Where the log does not say of which path it is of the one that has
    /// sent this number last.
    fn lost(&mut self, t_ms: f64, event: &Event, count: u64) -> Result<(), String> {
        let at = match (event.path(), event.data.packet_number()) {
            (None, Some(number)) if self.paths.len() > 1 => {
                let sent = |path: &Path| path.sent_at(number);
                let sent =
                    self.paths.iter().enumerate().filter_map(|(at, of)| Some((at, sent(of)?)));
                let last = sent.max_by(|(_, a), (_, b)| a.total_cmp(b));
                let Some((at, _)) = last else { return Ok(()) };
                at
            }
            (name, _) => self.path(event, name)?,
        };
        let value = count.min(u32::MAX.into()) as f64;
        self.write(&Record { t_ms, value, path: at as u32, delivered: 0, kind: Kind::Lost })
    }

    fn write(&mut self, record: &Record) -> Result<(), String> {
        let written = self.records.write_all(&record.bytes());
        written.map_err(|error| format!("cannot keep what it shows: {error}"))
    }

    /// Addresses get a name.
    fn assigned(&mut self, event: &Event) {
        let data = &event.data;
        let name = data.tuple_id.text().or_else(|| data.path_id.text());
        let end = |of: &Object<End>| of.0.as_ref().and_then(|end| end.name());
        let ends = match (end(&data.tuple_local), end(&data.tuple_remote)) {
            (Some(local), Some(remote)) => Some(format!("{local} > {remote}")),
            (None, Some(remote)) => Some(remote),
            (_, None) => None,
        };
        if self.tuples.len() < PATHS {
            self.tuples.insert(name.unwrap_or_default(), ends);
        }
    }

    /// The addresses of a path, by the packet that it sends first.
    fn tuple_of(&mut self, event: &Event, at: usize) {
        let path = &mut self.paths[at];
        if path.packets > 0 {
            return;
        }
        let name = event.tuple().unwrap_or(&path.name);
        path.ends = self.tuples.get(name).cloned().flatten();
    }

    /// Does a value that is logged once more count? Some log all metrics when one changes: then it was measured
    /// if there was an acknowledgement, and else is only said again. Where no acknowledgement is logged, that is
    /// unknown.
    pub fn repeats(&self) -> bool {
        self.paths.iter().all(|path| path.acked.is_none())
    }

    /// Round-trip times of a path that are taken, and the least, ms.
    pub fn samples(&self, path: usize) -> (u64, Option<f64>) {
        let Path { samples, least, .. } = self.paths[path];
        let [logged, acknowledged, repeated] = samples;
        let [least, least_acknowledged, _] = least;
        match self.taken() {
            Kind::Acknowledged => (acknowledged, least_acknowledged),
            _ => {
                let again = if self.repeats() { repeated } else { 0 };
                (logged + again, least.map(|least| least * self.unit()))
            }
        }
    }

    /// Which kind of round-trip times is taken: what is logged, unless several paths send and it is not said
    /// of which path it is.
    pub fn taken(&self) -> Kind {
        let count = |kind: Kind| self.paths.iter().map(|of| of.samples[kind as usize]).sum::<u64>();
        let logged = count(Kind::Logged);
        let senders = self.paths.iter().filter(|path| path.packets > 0).count();
        let unplaced = senders > 1 && 2 * self.unplaced > logged;
        match logged {
            0 => Kind::Acknowledged,
            _ if unplaced && count(Kind::Acknowledged) > 0 => Kind::Acknowledged,
            _ => Kind::Logged,
        }
    }

    /// Milliseconds of a unit of what is logged.
    pub fn unit(&self) -> f64 {
        let [us, ms, s] = self.units;
        if us > ms.max(s) {
            UNITS[0]
        } else if s > ms {
            UNITS[2]
        } else {
            UNITS[1]
        }
    }
}

impl Path {
    fn see(&mut self, t_ms: f64) {
        let (first, _) = self.span.unwrap_or((t_ms, t_ms));
        self.span = Some((first, t_ms));
    }

    /// When a packet was sent.
    fn sent_at(&self, number: u64) -> Option<f64> {
        let at = self.sent.binary_search_by_key(&number, |&(number, _)| number).ok()?;
        Some(self.sent[at].1)
    }
}
