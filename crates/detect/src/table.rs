//! Tables: CSV with a header that has `flow`, `t_s` and `owd_ms` or `rtt_ms`, in the order of time.

use std::io::{self, Read};

use csv::{ByteRecord, ReaderBuilder, Terminator};

use crate::input::Reader;
use crate::sizes::{COUNTED, Flows, forget_half, leave_small, left_out};
use crate::{Error, Input, Limits, Observation, Signal, Traffic};

/// Bytes of a line, and of a flow's name.
const LONGEST_LINE: usize = 1 << 16;
const LONGEST_NAME: usize = 200;
/// Times and delays beyond are mistakes, in s and ms.
const LARGEST: f64 = 1e12;

/// The columns that are read.
const COLUMNS: [&str; 6] = ["flow", "t_s", "owd_ms", "rtt_ms", "dwell_ms", "rtx"];

/// What the first pass found.
#[derive(Debug)]
pub struct Survey {
    pub signal: Signal,
    /// Names of the largest flows, and what they sent.
    pub flows: Vec<String>,
    pub traffic: Vec<Traffic>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// Time of the first row and of the last, of both tables, seconds.
    pub start: f64,
    pub end: f64,
}

/// One row.
#[derive(Clone, Copy, Debug)]
struct Row<'a> {
    flow: &'a str,
    t_s: f64,
    delay_ms: f64,
    again: bool,
}

/// The columns of use and their places.
#[derive(Clone, Debug, Default)]
struct Columns {
    flow: usize,
    t_s: usize,
    delay: Option<(Signal, usize)>,
    dwell: Option<usize>,
    again: Option<usize>,
}

/// A table being read.
struct Table<'a> {
    input: &'a Input,
    reader: csv::Reader<Lines>,
    columns: Columns,
    record: ByteRecord,
    newest: f64,
}

impl<'a> Table<'a> {
    /// Opens a table; with `delays` it must have a column of them.
    fn open(input: &'a Input, delays: bool) -> Result<Table<'a>, Error> {
        let (file, _) = input.open()?;
        // Without quotes a record is a line, and its memory bounded.
        let mut reader = ReaderBuilder::new()
            .has_headers(true)
            .quoting(false)
            .flexible(true)
            // So that lines are counted right; what else ends them is trimmed.
            .terminator(Terminator::Any(b'\n'))
            .trim(csv::Trim::All)
            .from_reader(Lines { from: file, line: 1, since: 0 });
        let header = reader.byte_headers().map_err(|error| unreadable(input, &error))?;
        let twice =
            |name: &&&str| header.iter().filter(|column| *column == name.as_bytes()).count() > 1;
        if let Some(name) = COLUMNS.iter().find(twice) {
            let place = format!("{} line 1", input.name());
            return Err(Error::input(place, format!("expected one column {name}")));
        }
        let place = |name: &str| header.iter().position(|column| column == name.as_bytes());
        // A table of losses may have other columns, of anything.
        let of_delays = |name: &str| place(name).filter(|_| delays);
        let delay = of_delays("owd_ms").map(|at| (Signal::Owd, at));
        let delay = delay.or(of_delays("rtt_ms").map(|at| (Signal::Rtt, at)));
        let (Some(flow), Some(t_s), true) =
            (place("flow"), place("t_s"), delay.is_some() || !delays)
        else {
            let what = if delays {
                "a capture (pcap, pcapng) or CSV with a header that has flow, t_s and owd_ms or rtt_ms"
            } else {
                "CSV with a header that has flow and t_s"
            };
            return Err(wrong(input, 1, what, &line(header)));
        };
        let columns =
            Columns { flow, t_s, delay, dwell: of_delays("dwell_ms"), again: of_delays("rtx") };
        Ok(Table { input, reader, columns, record: ByteRecord::new(), newest: f64::NEG_INFINITY })
    }

    /// The next row.
    fn next(&mut self) -> Result<Option<Row<'_>>, Error> {
        loop {
            let read = self.reader.read_byte_record(&mut self.record);
            if !read.map_err(|error| unreadable(self.input, &error))? {
                return Ok(None);
            }
            if self.record.len() != 1 || !self.record[0].is_empty() {
                break;
            }
        }
        // All lines end with their feed, so it is at the beginning of the next.
        let at_line = self.reader.position().line() - 1;
        let wrong = |expected: &str, found: &[u8]| wrong(self.input, at_line, expected, found);
        let field = |at: usize, name: &str| {
            let message = || wrong(&format!("a field {name}"), &line(&self.record));
            self.record.get(at).ok_or_else(message)
        };
        let number = |at: usize, name: &str, expected: &str| {
            let text = field(at, name)?;
            let value = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
            let value = value.filter(|value| value.abs() <= LARGEST);
            value.ok_or_else(|| wrong(&format!("{name}, {expected}"), text))
        };
        let Columns { flow, t_s, delay, dwell, again } = self.columns;
        let name = field(flow, "flow")?;
        let flow = std::str::from_utf8(name).ok();
        // It goes to terminals and into drawings as it is.
        let fit = |name: &&str| {
            (1..=LONGEST_NAME).contains(&name.len()) && !name.contains(char::is_control)
        };
        let expected = format!(
            "flow, a name of 1 to {LONGEST_NAME} bytes of UTF-8 without control characters"
        );
        let flow = flow.filter(fit).ok_or_else(|| wrong(&expected, name))?;
        let at = number(t_s, "t_s", "a number of seconds")?;
        if at < self.newest {
            let expected = format!("rows in the order of time, t_s at least {}", self.newest);
            return Err(wrong(&expected, field(t_s, "t_s")?));
        }
        self.newest = at;
        let mut delay_ms = 0.0;
        if let Some((signal, at)) = delay {
            delay_ms = number(at, signal.column(), "a number of milliseconds")?;
        }
        if let Some(at) = dwell {
            let dwell = number(at, "dwell_ms", "a number of milliseconds")?;
            if dwell < 0.0 {
                return Err(wrong("dwell_ms, at least 0", field(at, "dwell_ms")?));
            }
            delay_ms -= dwell;
        }
        let again = match again.map(|at| field(at, "rtx")).transpose()? {
            None | Some(b"0") => false,
            Some(b"1") => true,
            Some(found) => return Err(wrong("rtx, 0 or 1", found)),
        };
        Ok(Some(Row { flow, t_s: at, delay_ms, again }))
    }
}

/// A record as it stood in its line.
fn line(record: &ByteRecord) -> Vec<u8> {
    record.iter().collect::<Vec<_>>().join(&b',')
}

/// Something else than was expected in a line.
fn wrong(input: &Input, line: u64, expected: &str, found: &[u8]) -> Error {
    let found: String = String::from_utf8_lossy(found).chars().take(40).collect();
    let place = format!("{} line {line}", input.name());
    Error::input(place, format!("expected {expected}, found \"{}\"", found.escape_debug()))
}

fn unreadable(input: &Input, error: &csv::Error) -> Error {
    Error::input(input.name(), format!("cannot be read: {error}"))
}

/// Reads lines of a bounded length, and ends the last as all others.
struct Lines {
    from: Reader,
    /// The line that is read, and how much of it was.
    line: u64,
    since: usize,
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut read = self.from.read(buffer)?;
        if let (0, true, Some(end)) = (read, self.since > 0, buffer.first_mut()) {
            *end = b'\n';
            read = 1;
        }
        for line in buffer[..read].split_inclusive(|&byte| byte == b'\n') {
            self.since += line.len();
            if self.since > LONGEST_LINE {
                let message = format!("line {} has more than {LONGEST_LINE} bytes", self.line);
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            if line.ends_with(b"\n") {
                self.line += 1;
                self.since = 0;
            }
        }
        Ok(read)
    }
}

/// A flow being counted.
#[derive(Clone, Copy, Debug)]
struct Seen {
    rows: u64,
    /// Place of its first row.
    first: u64,
    from_s: f64,
    to_s: f64,
    least_ms: f64,
}

impl Seen {
    fn traffic(&self, signal: Signal) -> Traffic {
        Traffic {
            packets: self.rows,
            bytes: None,
            duration_s: self.to_s - self.from_s,
            min_rtt_ms: (signal == Signal::Rtt).then_some(self.least_ms),
        }
    }
}

/// Reads the table, and that of the losses, once, and chooses the flows with most rows.
///
/// # Errors
/// One cannot be read, or a row is not as it should be.
pub fn survey(input: &Input, losses: Option<&Input>, limits: Limits) -> Result<Survey, Error> {
    let mut table = Table::open(input, true)?;
    let signal = table.columns.delay.map_or(Signal::Owd, |(signal, _)| signal);
    let mut flows: Flows<String, Seen> = Flows::default();
    let (mut rows, mut forgotten) = (0, 0);
    let (mut start, mut end) = (f64::INFINITY, f64::NEG_INFINITY);
    while let Some(row) = table.next()? {
        rows += 1;
        (start, end) = (start.min(row.t_s), end.max(row.t_s));
        if let Some(flow) = flows.get_mut(row.flow) {
            flow.rows += 1;
            flow.to_s = row.t_s;
            flow.least_ms = flow.least_ms.min(row.delay_ms);
            continue;
        }
        if flows.len() >= COUNTED {
            forgotten += forget_half(&mut flows, |flow| flow.rows);
        }
        let (from_s, to_s, least_ms) = (row.t_s, row.t_s, row.delay_ms);
        flows.insert(row.flow.to_owned(), Seen { rows: 1, first: rows, from_s, to_s, least_ms });
    }
    if rows == 0 {
        return Err(Error::input(format!("{} line 2", input.name()), "expected rows, found none"));
    }
    let mut sized: Vec<_> = flows.into_iter().collect();
    sized.sort_by_key(|(_, flow)| (std::cmp::Reverse(flow.rows), flow.first));
    let of = |sized: &[(_, Seen)]| sized.iter().map(|(_, flow)| flow.rows).sum::<u64>();
    let share = |count: u64| 100.0 * count as f64 / rows as f64;
    let count = |(_, flow): &(_, Seen)| flow.rows;
    let mut notes = Vec::new();
    let small = leave_small(&mut sized, limits.packets, count, |all| share(of(all)), "rows");
    notes.extend(small.map_err(|message| Error::input(input.name(), message))?);
    let large = of(&sized);
    let others = sized.len().saturating_sub(limits.flows) + forgotten;
    sized.truncate(limits.flows);
    if others > 0 {
        notes.push(left_out(sized.len(), others, forgotten, share(large - of(&sized)), "rows"));
    }
    let traffic = sized.iter().map(|(_, flow)| flow.traffic(signal)).collect();
    let flows: Vec<String> = sized.into_iter().map(|(name, _)| name).collect();
    if let Some(losses) = losses {
        let (mut all, mut of_others) = (0, 0);
        let mut table = Table::open(losses, false)?;
        while let Some(row) = table.next()? {
            (start, end) = (start.min(row.t_s), end.max(row.t_s));
            all += 1;
            of_others += u64::from(!flows.iter().any(|name| name == row.flow));
        }
        if of_others > 0 {
            let name = losses.name();
            notes.push(format!(
                "{name}: {of_others} of {all} losses are of flows that are not analysed"
            ));
        }
    }
    Ok(Survey { signal, flows, traffic, notes, start, end })
}

/// Reads the tables again and gives each observation of the chosen flows to `each`, in the order of
/// time.
///
/// # Errors
/// One cannot be read, or `each` fails.
pub fn measure<E: From<Error>>(
    input: &Input,
    losses: Option<&Input>,
    survey: &Survey,
    mut each: impl FnMut(Observation) -> Result<(), E>,
) -> Result<(), E> {
    let names = survey.flows.iter().enumerate();
    let places: Flows<&str, usize> = names.map(|(at, name)| (name.as_str(), at)).collect();
    let us = |t_s: f64| ((t_s - survey.start) * 1e6).round() as u64;
    let mut losses = losses.map(|losses| Table::open(losses, false)).transpose()?;
    let mut lost = next_loss(&mut losses, &places)?;
    // Delays are relative: a clock's offset would not fit.
    let mut base: Vec<Option<f64>> = vec![None; survey.flows.len()];
    let mut table = Table::open(input, true)?;
    let loss =
        |t_s, flow| Observation { flow, now_us: us(t_s), delay_us: None, delivered: 0, lost: 1 };
    while let Some(row) = table.next()? {
        while let Some((t_s, flow)) = lost.filter(|&(t_s, _)| t_s <= row.t_s) {
            each(loss(t_s, flow))?;
            lost = next_loss(&mut losses, &places)?;
        }
        let Some(&flow) = places.get(row.flow) else { continue };
        let delay = (!row.again).then(|| row.delay_ms - *base[flow].get_or_insert(row.delay_ms));
        let delay_us = delay.map(|delay| (delay * 1e3).round() as i32);
        each(Observation { flow, now_us: us(row.t_s), delay_us, delivered: 1, lost: 0 })?;
    }
    while let Some((t_s, flow)) = lost {
        each(loss(t_s, flow))?;
        lost = next_loss(&mut losses, &places)?;
    }
    Ok(())
}

/// When and of which flow the next loss of a chosen flow is.
fn next_loss(
    losses: &mut Option<Table>,
    places: &Flows<&str, usize>,
) -> Result<Option<(f64, usize)>, Error> {
    let Some(losses) = losses else { return Ok(None) };
    while let Some(row) = losses.next()? {
        if let Some(&flow) = places.get(row.flow) {
            return Ok(Some((row.t_s, flow)));
        }
    }
    Ok(None)
}
