//! Traces of rates and of delays that links replay: files on disk, plain or compressed, and shipped ones.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use narrows_net::{Delays, MILLISECOND, Nanos, SECOND, Trace};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::shipped;
use crate::units::Unit;

/// The name of a trace on disk: a path that is absolute or begins with `./`, where one from the folder of
/// shipped scenarios does neither.
pub fn on_disk(path: &Path) -> String {
    Path::new(".").join(path.strip_prefix(".").unwrap_or(path)).display().to_string()
}

/// The trace of that name, on disk or shipped.
///
/// # Errors
/// It cannot be read or is no trace of this format.
pub fn find(
    name: &str,
    format: TraceFormat,
    step: Nanos,
    kept: &Traces,
) -> Result<Arc<Trace>, String> {
    let (text, name) = contents(name, kept)?;
    read(&text, name, format, step).map(Arc::new)
}

/// Likewise of a trace of delays.
///
/// # Errors
/// Likewise.
pub fn find_delays(name: &str, format: DelayFormat, kept: &Traces) -> Result<Arc<Delays>, String> {
    let (text, name) = contents(name, kept)?;
    read_delays(&text, name, format).map(Arc::new)
}

/// What is in it, and its name for people.
fn contents<'a>(name: &'a str, kept: &'a Traces) -> Result<(Cow<'a, [u8]>, &'a str), String> {
    if let Some(Text(text)) = kept.0.get(name) {
        return Ok((text.as_bytes().into(), name));
    }
    let path = Path::new(name);
    let (bytes, name) = if is_on_disk(name) {
        let name = name.strip_prefix("./").filter(|name| !name.is_empty()).unwrap_or(name);
        let bytes = std::fs::File::open(path).and_then(|file| bounded(file, MAX_TRACE));
        (bytes.map_err(|error| format!("cannot read {name}: {error}"))?, name)
    } else {
        let bytes = shipped::file(name).ok_or_else(|| match path.is_file() {
            true => format!("no trace \"{name}\" is shipped; ./{name} is the file"),
            false => format!("no trace \"{name}\" is shipped"),
        })?;
        (bytes.to_vec(), name)
    };
    let text = if bytes.starts_with(&[0x1f, 0x8b]) {
        bounded(flate2::read::MultiGzDecoder::new(&bytes[..]), MAX_TRACE)
            .map_err(|error| format!("{name}: cannot unpack: {error}"))?
    } else {
        bytes
    };
    Ok((text.into(), name))
}

/// Is it the name of a trace on disk, not of a shipped one?
fn is_on_disk(name: &str) -> bool {
    Path::new(name).is_absolute() || Path::new(name).starts_with(".")
}

/// Traces on disk as they were read, by their absolute paths: the files may be others, or gone, later.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Traces(BTreeMap<String, Text>);

/// Unpacked.
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
struct Text(Arc<str>);

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(text.into())
    }
}

impl From<Text> for String {
    fn from(text: Text) -> String {
        text.0.as_ref().into()
    }
}

/// What is in them the links say.
impl fmt::Debug for Traces {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Traces {
    /// Names the trace by its absolute path, and keeps it, as it was kept in `before` or is on disk; a shipped one, and
    /// one that cannot be read, is left as it is.
    pub fn keep(&mut self, name: &mut String, before: &Traces) {
        if !is_on_disk(name) {
            return;
        }
        *name = absolute(Path::new(name)).display().to_string();
        let text = before.0.get(name).cloned().or_else(|| {
            let none = Traces::default();
            let (bytes, _) = contents(name, &none).ok()?;
            Some(String::from_utf8(bytes.into_owned()).ok()?.into())
        });
        self.0.extend(text.map(|text| (name.clone(), text)));
    }

    /// Keeps the trace at a path no longer: it is to be read again.
    pub fn forget(&mut self, path: &Path) {
        self.0.remove(&path.display().to_string());
    }
}

/// The path from the root; as it is where there is no current folder.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A format that files have as the text that it reads and prints, with a title for what that is.
macro_rules! written_as_text {
    ($name:ident, $title:literal) => {
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "title": $title })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

/// The unit of that name.
fn unit(of: &[Unit], name: &str) -> Option<Unit> {
    of.iter().find(|unit| unit.0 == name).copied()
}

/// The columns of a trace, by their units: see [`super::file::Link`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TraceFormat {
    /// The time of each opportunity.
    Times(Unit),
    /// A time, and the rate from then on.
    TimesRates(Unit, Unit),
    /// A rate for each step.
    Rates(Unit),
}

const TIMES: [Unit; 3] = [("s", 1e9), ("ms", 1e6), ("us", 1e3)];
const RATES: [Unit; 4] = [("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)];

impl Default for TraceFormat {
    fn default() -> TraceFormat {
        TraceFormat::Times(TIMES[1])
    }
}

impl FromStr for TraceFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<TraceFormat, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (times, rates) = (|word| unit(&TIMES, word), |word| unit(&RATES, word));
        let format = match words[..] {
            [one] => {
                times(one).map(TraceFormat::Times).or_else(|| rates(one).map(TraceFormat::Rates))
            }
            [time, rate] => {
                times(time).zip(rates(rate)).map(|(time, rate)| TraceFormat::TimesRates(time, rate))
            }
            _ => None,
        };
        let expected = "expected the units of its columns such as \"ms\" (or s, us), \"s Mbit/s\" or \
                        \"Mbit/s\" (or bit/s, kbit/s, Gbit/s)";
        format.ok_or_else(|| format!("{expected}, found \"{text}\""))
    }
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceFormat::Times((unit, _)) | TraceFormat::Rates((unit, _)) => f.write_str(unit),
            TraceFormat::TimesRates((time, _), (rate, _)) => write!(f, "{time} {rate}"),
        }
    }
}

written_as_text!(TraceFormat, "units of columns such as \"s Mbit/s\"");

/// The columns of a trace of delays: see [`super::link::RecordedFile`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DelayFormat {
    /// A time, and the delay then.
    Columns(Unit, Unit),
    /// What `ping -D` prints.
    Ping,
}

impl Default for DelayFormat {
    fn default() -> DelayFormat {
        DelayFormat::Columns(TIMES[0], TIMES[1])
    }
}

impl FromStr for DelayFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<DelayFormat, String> {
        let find = |word| unit(&TIMES, word);
        let words: Vec<&str> = text.split_whitespace().collect();
        let format = match words[..] {
            ["ping"] => Some(DelayFormat::Ping),
            [time, delay] => {
                find(time).zip(find(delay)).map(|(time, delay)| DelayFormat::Columns(time, delay))
            }
            _ => None,
        };
        let expected = "expected the units of time and delay such as \"s ms\" (or us), or \"ping\"";
        format.ok_or_else(|| format!("{expected}, found \"{text}\""))
    }
}

impl fmt::Display for DelayFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DelayFormat::Columns((time, _), (delay, _)) => write!(f, "{time} {delay}"),
            DelayFormat::Ping => f.write_str("ping"),
        }
    }
}

written_as_text!(DelayFormat, "units of columns such as \"s ms\", or \"ping\"");

/// Reads a trace of delays.
fn read_delays(text: &[u8], name: &str, format: DelayFormat) -> Result<Delays, String> {
    let text = std::str::from_utf8(text).map_err(|_| format!("{name}: not a text file"))?;
    let (lines, units) = match format {
        DelayFormat::Columns(time, delay) => (numbers(text, name, 2, &format)?, [time, delay]),
        DelayFormat::Ping => (text.lines().filter_map(answer).collect(), [TIMES[0], TIMES[1]]),
    };
    if format == DelayFormat::Ping && lines.len() < 2 {
        // Most of its lines may be others.
        let expected = "expected two answers or more of `ping -D`, [TIME] ... time=23.4 ms";
        return Err(format!("{name}: {expected}"));
    }
    if lines.len() > MAX_DELAYS {
        return Err(format!("{name}: expected at most {MAX_DELAYS} delays, found {}", lines.len()));
    }
    let mut points = Vec::with_capacity(lines.len());
    for (index, line) in lines.into_iter().enumerate() {
        let [time, delay] = [0, 1].map(|column| line[column] * units[column].1);
        if time.max(delay) > MAX_STAMP {
            let found = format!("{} {}", line[0], line[1]);
            return Err(format!(
                "{name}:{}: {found} is longer than 100 years of {format}",
                index + 1
            ));
        }
        // A ping stands there with the time at which its answer came.
        let sent = if format == DelayFormat::Ping { (time - delay).max(0.0) } else { time };
        points.push((sent.round() as Nanos, delay.round() as Nanos));
    }
    if format == DelayFormat::Ping {
        points.sort_by_key(|point| point.0);
    }
    Delays::new(points, name).map_err(|error| error.to_string())
}

/// Days at a probe each 10 ms.
const MAX_DELAYS: usize = 1 << 26;

/// 100 years, ns: above any clock's time.
const MAX_STAMP: f64 = 100.0 * 366.0 * 86_400e9;

/// Time and delay of a line `[1700000000.123456] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=55 time=23.4 ms`.
fn answer(line: &str) -> Option<[f64; 2]> {
    let (time, rest) = line.strip_prefix('[')?.split_once(']')?;
    let (delay, unit) = rest.split_once(" time=")?.1.split_once(' ')?;
    let read = |word: &str| word.parse().ok().filter(|n| (0.0..1e15).contains(n));
    (unit.trim_end() == "ms").then_some([read(time)?, read(delay)?])
}

/// The numbers of each line, of one or two columns of this format.
fn numbers(
    text: &str,
    name: &str,
    columns: usize,
    format: &dyn fmt::Display,
) -> Result<Vec<[f64; 2]>, String> {
    let words = if columns == 2 { "two numbers" } else { "a number" };
    let read = |line: &str| {
        let mut words = line.split([' ', '\t', ',', ';']).filter(|word| !word.is_empty());
        let mut numbers = [0.0; 2];
        for number in &mut numbers[..columns] {
            *number = words.next()?.parse().ok().filter(|n| (0.0..1e15).contains(n))?;
        }
        words.next().is_none().then_some(numbers)
    };
    let of_line = |(index, line): (usize, &str)| {
        read(line).ok_or_else(|| {
            format!("{name}:{}: expected {words} of {format}, found \"{line}\"", index + 1)
        })
    };
    text.lines().enumerate().map(of_line).collect()
}

/// Reads a trace; each step of one of rates alone lasts `step`.
fn read(text: &[u8], name: &str, format: TraceFormat, step: Nanos) -> Result<Trace, String> {
    if format == TraceFormat::default() {
        return Trace::parse(text, name).map_err(|error| error.to_string());
    }
    let text = std::str::from_utf8(text).map_err(|_| format!("{name}: not a text file"))?;
    let columns = if matches!(format, TraceFormat::TimesRates(..)) { 2 } else { 1 };
    let lines = numbers(text, name, columns, &format)?;
    let unordered = |index: usize| format!("{name}:{}: the times must not decrease", index + 1);
    let at = |line: &[f64], unit: Unit| (line[0] * unit.1).round() as Nanos;
    let rate = |number: f64, unit: Unit| (number * unit.1).round() as u64;
    let trace = match format {
        TraceFormat::Times(unit) => {
            let ms = |line: &[f64; 2]| at(line, unit).div_ceil(MILLISECOND).try_into();
            let times: Result<Vec<u32>, _> = lines.iter().map(ms).collect();
            let times = times.map_err(|_| format!("{name}: more than 2^32 ms"))?;
            Trace::of_times(times, name)
        }
        TraceFormat::Rates(unit) => {
            Trace::of_rates(lines.iter().map(|line| (step, rate(line[0], unit))), name)
        }
        TraceFormat::TimesRates(time, unit) => {
            let times: Vec<Nanos> = lines.iter().map(|line| at(line, time)).collect();
            let gap = |pair: &[Nanos]| pair[1].checked_sub(pair[0]);
            let gaps: Vec<Option<Nanos>> = times.windows(2).map(gap).collect();
            if let Some(index) = gaps.iter().position(Option::is_none) {
                return Err(unordered(index + 1));
            }
            // The last rate holds for as long as the one before.
            let Some(&last) = gaps.last() else {
                return Err(format!("{name}: expected two lines or more"));
            };
            let gaps = gaps.into_iter().chain([last]).flatten();
            Trace::of_rates(gaps.zip(&lines).map(|(gap, line)| (gap, rate(line[1], unit))), name)
        }
    };
    trace.map_err(|error| error.to_string())
}

/// Delays that are more likely a mistake in the format than a network: of 10 s and more, or less than one
/// in a minute.
pub fn is_absurd_delay(delays: &Delays) -> bool {
    delays.max() > 10 * SECOND || delays.period() / delays.points().len() as u64 > 60 * SECOND
}

/// A mean rate that is more likely a mistake in the format than a network, bit/s: too low or too high.
pub fn is_absurd(mean: u64) -> bool {
    !(100_000..=10_000_000_000).contains(&mean)
}

/// Largest trace, unpacked: hours of a gigabit link. What is beyond would fill the memory.
const MAX_TRACE: u64 = 256 << 20;

/// Reads all there is, which must be at most `limit` bytes.
fn bounded(from: impl Read, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if from.take(limit + 1).read_to_end(&mut bytes)? as u64 > limit {
        let message = format!("more than {limit} bytes are too long for a trace");
        return Err(std::io::Error::other(message));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of opportunities, and the period.
    fn trace(text: &str, format: &str) -> (Vec<u32>, Nanos) {
        let trace = read(text.as_bytes(), "t", format.parse().unwrap(), 10 * MILLISECOND).unwrap();
        (trace.times().to_vec(), trace.period() / MILLISECOND)
    }

    #[test]
    fn each_format_is_read_by_the_units_of_its_columns() {
        assert_eq!(trace("1\n3\n", "ms"), (vec![1, 3], 3));
        assert_eq!(trace("900\n2001\n3000\n", "us"), (vec![1, 3, 3], 3));
        assert_eq!(trace("0.0005\n0.003\n", "s"), (vec![1, 3], 3));
        // Two packets of 1504 B in 10 ms, then none, then one.
        assert_eq!(trace("2.4064\n0\n1.2032\n", "Mbit/s"), (vec![5, 10, 30], 30));
        assert_eq!(trace("2406.4\n0\n1203.2", "kbit/s"), (vec![5, 10, 30], 30));
        // Time counts from the first line, as where it was recorded by the clock.
        for text in ["7.00 2.4064\n7.01 0\n7.02 1.2032\n", "7,2.4064\r\n7.01, 0\r\n7.02;\t1.2032"] {
            assert_eq!(trace(text, "s Mbit/s"), (vec![5, 10, 30], 30), "{text}");
        }
        assert_eq!(trace("0 2406400\n10000 0\n30000 0", "us bit/s"), (vec![5, 10], 50));
        for format in ["", "min", "Mbit/s s", "ms Mbit", "s Mbit/s ms", "s  s"] {
            let message = format.parse::<TraceFormat>().unwrap_err();
            assert!(message.starts_with("expected the units of its columns such as"), "{message}");
        }
    }

    #[test]
    fn a_trace_of_another_format_is_refused_with_its_line() {
        let wrong = |text: &str, format: &str| {
            read(text.as_bytes(), "t", format.parse().unwrap(), MILLISECOND).unwrap_err()
        };
        for (text, format, at, n) in [
            ("1 2\n3\n", "s Mbit/s", 2, 2),
            ("time rate\n", "s Mbit/s", 1, 2),
            ("1\n2 3\n", "Mbit/s", 2, 1),
            ("1\n\n", "Mbit/s", 2, 1),
            ("1\n-2\n", "Mbit/s", 2, 1),
            ("1\nNaN\n", "Mbit/s", 2, 1),
            ("inf\n", "us", 1, 1),
            ("1e15\n", "us", 1, 1),
        ] {
            let message = wrong(text, format);
            let numbers = ["a number", "two numbers"][n - 1];
            let expected = format!("t:{at}: expected {numbers} of {format}, found ");
            assert!(message.starts_with(&expected), "{message}");
        }
        assert_eq!(wrong("1 2\n0 2\n", "s Mbit/s"), "t:2: the times must not decrease");
        assert_eq!(wrong("1 2\n", "s Mbit/s"), "t: expected two lines or more");
        assert_eq!(wrong("0\n0\n", "Mbit/s"), "t:2: the trace carries less than a packet");
        assert_eq!(wrong("5000\n3\n", "us"), "t:2: timestamps must not decrease");
    }

    #[test]
    fn delays_are_read_by_the_units_of_their_columns_or_as_ping_prints_them() {
        let delays = |text: &str, format: &str| {
            let read = read_delays(text.as_bytes(), "t", format.parse().unwrap()).unwrap();
            let us = |time: Nanos| time / 1000;
            read.points().iter().map(|&(at, delay)| (us(at), us(delay))).collect::<Vec<_>>()
        };
        assert_eq!(delays("7.5 20\n7.6 23.25\n", "s ms"), [(0, 0), (100_000, 3250)]);
        assert_eq!(delays("7,0.020\r\n12,0.019", "ms s"), [(0, 1000), (5000, 0)]);
        let ping = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n\
            [1700000000.5] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=55 time=23.4 ms\n\
            [1700000000.52] no answer yet for icmp_seq=2\n\
            [1700000000.54] 64 bytes from 192.0.2.1: icmp_seq=3 ttl=55 time=31 ms\n\n\
            --- 192.0.2.1 ping statistics ---\n3 packets transmitted, 2 received\n";
        let [first, second] = delays(ping, "ping")[..] else { panic!("two answers") };
        // From when the first was sent until the second was, 7.6 ms more than its answer came before; a
        // double has such a time by a fraction of a microsecond.
        assert_eq!((first, second.1, second.0.abs_diff(32_400) < 2), ((0, 0), 7600, true));

        let wrong = |text: &str, format: &str| {
            read_delays(text.as_bytes(), "t", format.parse().unwrap()).unwrap_err()
        };
        assert_eq!(wrong("1 2\n3\n", "s ms"), "t:2: expected two numbers of s ms, found \"3\"");
        assert_eq!(wrong("2 2\n1 2\n", "s ms"), "t:2: timestamps must not decrease");
        assert!(wrong(ping, "s ms").starts_with("t:1: expected two numbers of s ms, found \"PING"));
        assert!(wrong("1 2\n3 4\n", "ping").starts_with("t: expected two answers or more of"));
        assert!(
            wrong("1 2\n1.7e12 4\n", "s ms").starts_with("t:2: 1700000000000 4 is longer than")
        );
        for format in ["", "s", "ms Mbit/s", "s ms ms", "pong"] {
            let message = format.parse::<DelayFormat>().unwrap_err();
            assert!(
                message.starts_with("expected the units of time and delay such as"),
                "{message}"
            );
        }
    }

    #[test]
    fn what_never_ends_is_not_read_to_its_end() {
        assert_eq!(bounded(&b"12"[..], 2).unwrap(), b"12");
        let error = bounded(std::io::repeat(b'1'), 2).unwrap_err().to_string();
        assert_eq!(error, "more than 2 bytes are too long for a trace");
    }
}
