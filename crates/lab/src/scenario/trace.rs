//! Traces that links replay: files on disk, plain or compressed, and shipped ones.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use narrows_net::{MILLISECOND, Nanos, Trace};
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
pub fn find(name: &str, format: TraceFormat, step: Nanos) -> Result<Arc<Trace>, String> {
    let path = Path::new(name);
    let (bytes, name) = if path.is_absolute() || path.starts_with(".") {
        let name = name.strip_prefix("./").filter(|name| !name.is_empty()).unwrap_or(name);
        let bytes = std::fs::File::open(path).and_then(|file| bounded(file, MAX_TRACE));
        (bytes.map_err(|error| format!("cannot read {name}: {error}"))?, name)
    } else {
        let bytes = shipped::file(name).ok_or(format!("no trace \"{name}\" is shipped"))?;
        (bytes.to_vec(), name)
    };
    let text = if bytes.starts_with(&[0x1f, 0x8b]) {
        bounded(flate2::read::MultiGzDecoder::new(&bytes[..]), MAX_TRACE)
            .map_err(|error| format!("{name}: cannot unpack: {error}"))?
    } else {
        bytes
    };
    read(&text, name, format, step).map(Arc::new)
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
        let find = |units: &[Unit], word: &str| units.iter().find(|unit| unit.0 == word).copied();
        let words: Vec<&str> = text.split_whitespace().collect();
        let (times, rates) = (|word| find(&TIMES, word), |word| find(&RATES, word));
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

impl JsonSchema for TraceFormat {
    fn schema_name() -> Cow<'static, str> {
        "TraceFormat".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "title": "units of columns such as \"s Mbit/s\"" })
    }
}

impl Serialize for TraceFormat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Reads a trace; each step of one of rates alone lasts `step`.
fn read(text: &[u8], name: &str, format: TraceFormat, step: Nanos) -> Result<Trace, String> {
    if format == TraceFormat::default() {
        return Trace::parse(text, name).map_err(|error| error.to_string());
    }
    let text = std::str::from_utf8(text).map_err(|_| format!("{name}: not a text file"))?;
    let two = matches!(format, TraceFormat::TimesRates(..));
    let (columns, words) = if two { (2, "two numbers") } else { (1, "a number") };
    let wrong = |line: usize, found: &str| {
        format!("{name}:{}: expected {words} of {format}, found \"{found}\"", line + 1)
    };
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let numbers = line.split([' ', '\t', ',', ';']).filter(|word| !word.is_empty());
        let numbers: Option<Vec<f64>> =
            numbers.map(|word| word.parse().ok().filter(|n| (0.0..1e15).contains(n))).collect();
        let numbers = numbers.filter(|numbers| numbers.len() == columns);
        lines.push(numbers.ok_or_else(|| wrong(index, line))?);
    }
    let unordered = |index: usize| format!("{name}:{}: the times must not decrease", index + 1);
    let at = |line: &[f64], unit: Unit| (line[0] * unit.1).round() as Nanos;
    let rate = |number: f64, unit: Unit| (number * unit.1).round() as u64;
    let trace = match format {
        TraceFormat::Times(unit) => {
            let ms = |line: &Vec<f64>| at(line, unit).div_ceil(MILLISECOND).try_into();
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

/// A mean rate that is more likely a mistake in the format than a network, bit/s: too low or too high.
pub fn is_absurd(mean: u64) -> bool {
    !(100_000..=100_000_000_000).contains(&mean)
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
    fn what_never_ends_is_not_read_to_its_end() {
        assert_eq!(bounded(&b"12"[..], 2).unwrap(), b"12");
        let error = bounded(std::io::repeat(b'1'), 2).unwrap_err().to_string();
        assert_eq!(error, "more than 2 bytes are too long for a trace");
    }
}
