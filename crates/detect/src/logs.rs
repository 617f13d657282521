//! Logs of QUIC, a path of a connection as a flow. The files are read once; what they show of each path stands
//! in a temporary file a trace, in which it is measured.

use std::collections::BTreeSet;
use std::io::{BufReader, ErrorKind, Read as _};
use std::path::Path;

use crate::qlog::{TRACES, traces};
use crate::sizes::{leave_small, left_out};
use crate::trace::{Kind, Record, Trace};
use crate::{Error, Input, Limits, Observation, Traffic};

/// No clock of today shows less since 1970, ms: that of 2001 (10^12).
const DATED: f64 = 1e12;
/// Times that go back by more are told, ms.
const BACK: f64 = 1000.0;
/// Fewer round-trip times a second tell too little.
const RARE: f64 = 2.0;

/// What the files show.
#[derive(Debug)]
pub struct Survey {
    /// Names of the largest paths, and what they sent.
    pub flows: Vec<String>,
    pub traffic: Vec<Traffic>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// Seconds from the first event to the last.
    pub span_s: f64,
    traces: Vec<Measured>,
}

/// What was measured in a trace.
#[derive(Debug)]
struct Measured {
    /// Its records, one after the other.
    records: Input,
    /// Which flow each of its paths is, and the kinds of records that tell of it.
    flows: Vec<Option<usize>>,
    told: Vec<Kind>,
    /// Milliseconds of a unit of what is logged.
    unit: f64,
    /// When all begin, in the trace's time, ms.
    start: f64,
}

/// A trace that was read.
struct Read {
    /// What its paths are called, before their own names.
    name: String,
    trace: Trace,
}

impl Read {
    fn taken(&self, path: usize) -> u64 {
        let (count, _) = self.trace.samples(path);
        count
    }

    fn packets(&self, path: usize) -> u64 {
        match self.trace.paths[path].packets {
            0 => self.taken(path),
            packets => packets,
        }
    }

    /// What a path is called.
    fn path_name(&self, at: usize) -> String {
        let path = &self.trace.paths[at];
        let mut parts = vec![self.name.clone()];
        parts.extend(path.group.as_ref().map(|group| format!("connection {group}")));
        let alone = self.trace.paths.len() == 1 && !self.name.is_empty();
        parts.extend((!alone).then(|| format!("path {}", path.name)));
        parts.extend(path.ends.clone());
        parts.retain(|part| !part.is_empty());
        // It goes to terminals and into drawings as it is.
        let shown = |one: char| match one.is_control() {
            true => one.escape_default().to_string(),
            false => one.to_string(),
        };
        parts.join(" ").chars().map(shown).collect()
    }

    fn traffic(&self, at: usize) -> Traffic {
        let path = &self.trace.paths[at];
        let (_, min_rtt_ms) = self.trace.samples(at);
        let duration_s = path.span.map_or(0.0, |(first, last)| (last - first) / 1e3);
        Traffic { packets: self.packets(at), bytes: path.bytes, duration_s, min_rtt_ms }
    }

    /// What the user should know of it.
    fn notes(&self, file: &str) -> Vec<String> {
        let Trace { back, .. } = self.trace;
        let mut notes = Vec::new();
        if back >= BACK {
            notes.push(format!(
                "{file}: times go back by {:.3} s at most: what is older than the newest is taken for as new",
                back / 1e3
            ));
        }
        let taken = self.trace.taken();
        if taken == Kind::Acknowledged {
            let why = match self.trace.unplaced {
                0 => "no latest_rtt",
                _ => "its latest_rtt does not say of which path",
            };
            notes.push(format!(
                "{file}: {why}; round-trip times are from packets to their acknowledgements"
            ));
        } else if self.trace.unit() != 1.0 {
            let unit = if self.trace.unit() < 1.0 { "microseconds" } else { "seconds" };
            notes.push(format!(
                "{file}: its latest_rtt is taken for {unit}, as its first or the times of its packets show"
            ));
        }
        let silent = (0..self.trace.paths.len()).filter(|&path| self.taken(path) == 0).count();
        if silent > 0 {
            let paths = if silent == 1 { "1 path has" } else { &format!("{silent} paths have") };
            notes.push(format!("{file}: {paths} no round-trip times: left out"));
        }
        notes
    }
}

/// Reads the files, and chooses the largest paths.
///
/// # Errors
/// One cannot be read, is no qlog, or of another version; none shows round-trip times; or several are to be
/// compared of which it is not known when they began.
pub fn survey(inputs: &[Input], limits: Limits) -> Result<Survey, Error> {
    let mut read: Vec<(usize, Read)> = Vec::new();
    let (mut notes, mut events) = (Vec::new(), 0);
    let short = |of: &Input| {
        let name = Path::new(of.name()).file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    let names: BTreeSet<String> = inputs.iter().map(short).collect();
    for (file, input) in inputs.iter().enumerate() {
        let traces = traces(input)?;
        if read.len() + traces.len() > TRACES {
            let expected = format!("expected at most {TRACES} traces in all files, found more");
            return Err(Error::input(input.name(), expected));
        }
        let several = traces.len() > 1;
        for (number, trace) in traces.into_iter().enumerate() {
            // Files of one name are told apart by their folders.
            let alike = names.len() < inputs.len();
            let name = if alike { input.name().to_owned() } else { short(input) };
            let name = match (several, inputs.len()) {
                (true, 1) => format!("trace {}", number + 1),
                (true, _) => format!("{name} trace {}", number + 1),
                (false, 1) => String::new(),
                (false, _) => name,
            };
            events += trace.events;
            read.push((file, Read { name, trace }));
        }
    }
    let paths = |(at, (_, of)): (usize, &(usize, Read))| {
        (0..of.trace.paths.len()).map(|path| (at, path)).collect::<Vec<_>>()
    };
    let mut sized: Vec<(usize, usize)> = read.iter().enumerate().flat_map(paths).collect();
    sized.retain(|&(at, path)| read[at].1.taken(path) > 0);
    let name = inputs.first().map_or("qlog", Input::name);
    let more = if inputs.len() > 1 { " and the others" } else { "" };
    if sized.is_empty() {
        return Err(Error::input(
            name,
            format!(
                "expected events recovery:metrics_updated with latest_rtt, or packet_sent and the packet_received that \
                 acknowledge them; found none among the {events} events of it{more}"
            ),
        ));
    }
    for (file, of) in &read {
        notes.extend(of.notes(inputs[*file].name()));
    }
    let packets = |&(at, path): &(usize, usize)| read[at].1.packets(path);
    let sum = |of: &[(usize, usize)]| of.iter().map(packets).sum::<u64>();
    let all = sum(&sized);
    let share = |count: u64| 100.0 * count as f64 / all.max(1) as f64;
    sized.sort_by_key(|of| std::cmp::Reverse(packets(of)));
    let of = |sized: &[(usize, usize)]| share(sum(sized));
    let small = leave_small(&mut sized, limits.packets, packets, of, "packets");
    notes.extend(small.map_err(|message| Error::input(format!("{name}{more}"), message))?);
    let large = sum(&sized);
    let others = sized.len().saturating_sub(limits.flows);
    sized.truncate(limits.flows);
    if others > 0 {
        notes.push(left_out(sized.len(), others, 0, share(large - sum(&sized)), "packets"));
    }
    let mut chosen: Vec<usize> = sized.iter().map(|&(at, _)| at).collect();
    chosen.sort_unstable();
    chosen.dedup();
    let first = |at: usize| read[at].1.trace.first.unwrap_or_default();
    if let (true, Some(&at)) = (chosen.len() > 1, chosen.iter().find(|&&at| first(at) < DATED)) {
        let name = inputs[read[at].0].name();
        return Err(Error::input(
            name,
            "expected a reference_time with a date, to compare it with another trace, found none",
        ));
    }
    let start = chosen.iter().map(|&at| first(at)).fold(f64::INFINITY, f64::min);
    let end = chosen.iter().map(|&at| read[at].1.trace.newest).fold(start, f64::max);
    let together = chosen.iter().map(|&at| first(at)).fold(start, f64::max)
        < chosen.iter().map(|&at| read[at].1.trace.newest).fold(end, f64::min);
    if chosen.len() > 1 && !together {
        notes.push("not all logs are of the same time".into());
    }
    if sized.len() == 1 {
        notes.push(
            "one path: give the log of another connection beside it, or of one with several paths"
                .into(),
        );
    }
    let mut traffic: Vec<Traffic> =
        sized.iter().map(|&(at, path)| read[at].1.traffic(path)).collect();
    // Rates are of one kind.
    if traffic.iter().any(|of| of.bytes.is_none()) {
        traffic.iter_mut().for_each(|of| of.bytes = None);
    }
    let flows: Vec<String> = sized.iter().map(|&(at, path)| read[at].1.path_name(path)).collect();
    for ((name, traffic), &(at, path)) in flows.iter().zip(&traffic).zip(&sized) {
        let count = read[at].1.taken(path);
        if (count as f64) < RARE * traffic.duration_s {
            notes.push(format!(
                "{name} has {count} round-trip times in {:.1} s: who sends the data logs more",
                traffic.duration_s
            ));
        }
    }
    let mut traces = Vec::new();
    for (at, (file, Read { trace, .. })) in read.into_iter().enumerate() {
        if !chosen.contains(&at) {
            continue;
        }
        let flow = |path: usize| sized.iter().position(|of| *of == (at, path));
        let unit = trace.unit();
        let mut told = vec![Kind::Lost, trace.taken()];
        told.extend((trace.taken() == Kind::Logged && trace.repeats()).then_some(Kind::Repeated));
        let flows = (0..trace.paths.len()).map(flow).collect();
        let name = inputs[file].name();
        let records = trace.records.into_inner().map_err(|error| error.into_error());
        let records = Input::of(name, records.map_err(Error::io(name, "keep"))?);
        traces.push(Measured { records, flows, told, unit, start });
    }
    Ok(Survey { flows, traffic, notes, span_s: (end - start) / 1e3, traces })
}

/// Gives each observation of the chosen paths to `each`, in the order of time.
///
/// # Errors
/// What was kept of the files cannot be read, or `each` fails.
pub fn measure<E: From<Error>>(
    survey: &Survey,
    mut each: impl FnMut(Observation) -> Result<(), E>,
) -> Result<(), E> {
    let mut readings = Vec::new();
    for of in &survey.traces {
        let (from, _) = of.records.open()?;
        let mut reading = Reading { of, from: BufReader::new(from), next: None };
        reading.advance()?;
        readings.push(reading);
    }
    // Delays are relative to the first.
    let mut base: Vec<Option<f64>> = vec![None; survey.flows.len()];
    let time = |reading: &Reading| reading.next.map_or(f64::INFINITY, |(_, record)| record.t_ms);
    while let Some(reading) = readings.iter_mut().min_by(|a, b| time(a).total_cmp(&time(b))) {
        let Some((flow, record)) = reading.next else { break };
        let Record { t_ms, value, delivered, kind, .. } = record;
        let now_us = ((t_ms - reading.of.start) * 1e3).round() as u64;
        let observation = match kind {
            Kind::Lost => {
                Observation { flow, now_us, delay_us: None, delivered, lost: value as u32 }
            }
            Kind::Logged | Kind::Repeated | Kind::Acknowledged => {
                let unit = if kind == Kind::Acknowledged { 1.0 } else { reading.of.unit };
                let delay_us = (value - *base[flow].get_or_insert(value)) * unit * 1e3;
                let delay_us = Some(delay_us.round() as i32);
                Observation { flow, now_us, delay_us, delivered, lost: 0 }
            }
        };
        each(observation)?;
        reading.advance()?;
    }
    Ok(())
}

/// A trace, record by record.
struct Reading<'a> {
    of: &'a Measured,
    from: BufReader<crate::input::Reader>,
    next: Option<(usize, Record)>,
}

impl Reading<'_> {
    /// Goes to the next record that tells of a flow.
    fn advance(&mut self) -> Result<(), Error> {
        loop {
            let mut bytes = [0; Record::BYTES];
            match self.from.read_exact(&mut bytes) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    self.next = None;
                    return Ok(());
                }
                Err(error) => return Err(Error::io(self.of.records.name(), "read")(error)),
            }
            let record = Record::of(&bytes);
            let flow = self.of.flows.get(record.path as usize).copied().flatten();
            if let (Some(flow), true) = (flow, self.of.told.contains(&record.kind)) {
                self.next = Some((flow, record));
                return Ok(());
            }
        }
    }
}
