//! Reading a scenario: the file, the changes of the command line, and errors that name the place.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use narrows_net::Trace;
use serde::Deserialize;
use toml::Value;

use super::file::File;
use super::resolve::resolve;
use super::{Fault, Scenario, generate, shipped};
use crate::Error;

/// What the command line changes in a scenario.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    /// `--set FIELD=VALUE`: fields by dotted name, and their values as TOML or plain text.
    pub set: Vec<(String, String)>,
    /// `--trace LINK=FILE`: links that replay a recorded trace.
    pub traces: Vec<(String, PathBuf)>,
}

/// Where the scenario's text came from.
enum Origin {
    /// A file on disk.
    Disk(PathBuf),
    /// Shipped, by name.
    Shipped(&'static str),
    /// Text that is in no file.
    Memory,
}

impl Origin {
    fn place(&self) -> String {
        match self {
            Origin::Disk(path) => path.display().to_string(),
            Origin::Shipped(name) => format!("{name}.toml"),
            Origin::Memory => "scenario".into(),
        }
    }
}

/// Reads the scenario at a path, or the shipped one of that name, and makes the edits.
///
/// # Errors
/// One line with file, line and field, or with the option that is wrong.
pub fn load(name: &str, edits: &Edits) -> Result<Scenario, Error> {
    let (origin, text) = read(name)?;
    build(&origin, &text, edits)
}

/// The scenario that `text` says, with the edits made. It is in no folder, so it names no trace.
///
/// # Errors
/// As [`load`].
pub fn parse(text: &str, edits: &Edits) -> Result<Scenario, Error> {
    build(&Origin::Memory, text, edits)
}

fn build(origin: &Origin, text: &str, edits: &Edits) -> Result<Scenario, Error> {
    let place = origin.place();
    let file = read_file(&place, text)?;
    let set = |fault: &Fault| edits.set.iter().find(|(field, _)| fault.within(field));
    let file =
        if edits.set.is_empty() && edits.traces.is_empty() { file } else { edit(text, edits)? };
    let find_trace = |trace: &str| find_trace(origin, trace, edits);
    let mut scenario = resolve(file, &find_trace).map_err(|fault| match set(&fault) {
        Some((field, value)) => Error::input(format!("--set {field}={value}"), fault.message),
        None => {
            let field = fault.field.join(".");
            let place = match line(text, &fault.field) {
                Some(line) => format!("{place}:{line}"),
                None => place.clone(),
            };
            Error::input(place, format!("{field}: {}", fault.message))
        }
    })?;
    // What was published holds for the scenario as it stands in its file.
    if !edits.set.is_empty() || !edits.traces.is_empty() {
        scenario.paper.clear();
    }
    Ok(scenario)
}

impl Fault {
    /// Is the field at fault the dotted `field`, or inside or around it?
    fn within(&self, field: &str) -> bool {
        let field: Vec<&str> = field.split('.').collect();
        self.field.iter().zip(&field).all(|(a, b)| a == b)
    }
}

fn read(name: &str) -> Result<(Origin, String), Error> {
    let path = Path::new(name);
    if path.is_file() || path.extension().is_some_and(|extension| extension == "toml") {
        let bytes = std::fs::read(path).map_err(Error::io(path, "read"))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::input(name, "not a text file; expected a scenario in TOML"))?;
        return Ok((Origin::Disk(path.to_owned()), text));
    }
    let all = shipped::shipped();
    match all.iter().find(|shipped| shipped.name == name) {
        Some(shipped) => Ok((Origin::Shipped(shipped.name), shipped.text.to_owned())),
        None => Err(Error::input(
            name,
            "no such file and no shipped scenario; `narrows list scenarios` shows those",
        )),
    }
}

/// Reads the file as it is, so that its mistakes are told with their lines.
fn read_file(place: &str, text: &str) -> Result<File, Error> {
    let at = |error: &toml::de::Error| match error.span() {
        Some(span) => format!("{place}:{}", 1 + newlines(&text[..span.start.min(text.len())])),
        None => place.to_owned(),
    };
    let deserializer = toml::Deserializer::parse(text)
        .map_err(|error| Error::input(at(&error), error.message()))?;
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let field = error.path().to_string();
        let inner = error.inner();
        let message = inner.message();
        // At the top of the file there is no path to speak of.
        let message = if field == "." { message.into() } else { format!("{field}: {message}") };
        Error::input(at(inner), message)
    })
}

/// Reads the file's text with the edits made.
fn edit(text: &str, edits: &Edits) -> Result<File, Error> {
    // read_file() has read this text before.
    let mut table: toml::Table =
        text.parse().map_err(|e: toml::de::Error| Error::input("scenario", e.message()))?;
    for (field, value) in &edits.set {
        let at = |message: String| Error::input(format!("--set {field}={value}"), message);
        set(&mut table, field, scalar(value)).map_err(at)?;
        check(&table).map_err(at)?;
    }
    for (link, path) in &edits.traces {
        let at =
            |message: String| Error::input(format!("--trace {link}={}", path.display()), message);
        // Links that a generator makes are as good as listed ones.
        let mut file = check(&table).map_err(at)?;
        generate::expand(&mut file).map_err(|fault| at(fault.message))?;
        if !file.links.contains_key(link) {
            return Err(at(format!("the scenario has no link \"{link}\"")));
        }
        let mut links = Value::Table(std::mem::take(&mut table));
        if let Value::Table(link) =
            step(step(&mut links, "links").map_err(at)?, link).map_err(at)?
        {
            link.remove("rate");
            link.insert("trace".into(), Value::String(path.display().to_string()));
        }
        if let Value::Table(changed) = links {
            table = changed;
        }
        check(&table).map_err(at)?;
    }
    check(&table).map_err(|message| Error::input("scenario", message))
}

fn check(table: &toml::Table) -> Result<File, String> {
    File::deserialize(table.clone()).map_err(|error| error.message().to_owned())
}

/// A value of the command line: TOML if it reads as TOML, a string otherwise, so that
/// `rate=10 Mbit/s` needs no second pair of quotes.
fn scalar(text: &str) -> Value {
    let table: Result<toml::Table, _> = format!("value = {text}").parse();
    match table.ok().and_then(|mut table| table.remove("value")) {
        Some(value) => value,
        None => Value::String(text.to_owned()),
    }
}

/// Sets the dotted `field`; numbers index arrays.
fn set(table: &mut toml::Table, field: &str, value: Value) -> Result<(), String> {
    let (parents, last) = match field.rsplit_once('.') {
        Some((parents, last)) => (parents.split('.').collect(), last),
        None => (Vec::new(), field),
    };
    let mut root = Value::Table(std::mem::take(table));
    let mut at = &mut root;
    for key in parents {
        at = step(at, key)?;
    }
    *step(at, last)? = value;
    if let Value::Table(changed) = root {
        *table = changed;
    }
    Ok(())
}

/// The value at `key`, made as a table if it is missing; the reading refuses unknown names.
fn step<'a>(value: &'a mut Value, key: &str) -> Result<&'a mut Value, String> {
    if key.is_empty() {
        return Err("expected a field such as links.bottleneck1.rate".into());
    }
    match value {
        Value::Table(table) => {
            Ok(table.entry(key).or_insert_with(|| Value::Table(toml::Table::new())))
        }
        Value::Array(array) => {
            let length = array.len();
            let index = key.parse().ok().filter(|&index: &usize| index < length);
            let index = index.ok_or(format!("expected an index below {length}, found {key}"))?;
            Ok(&mut array[index])
        }
        _ => Err(format!("unknown field: nothing called {key} is in there")),
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// The line of a field in a TOML text: that of the innermost key on the way to it that exists.
fn line(text: &str, field: &[String]) -> Option<usize> {
    use toml::de::{DeTable, DeValue};
    let root = DeTable::parse(text).ok()?;
    let mut value = DeValue::Table(root.into_inner());
    let mut start = None;
    for key in field {
        value = match value {
            DeValue::Table(mut table) => {
                let Some((found, inner)) = table.remove_entry(key.as_str()) else { break };
                start = Some(found.span().start);
                inner.into_inner()
            }
            DeValue::Array(array) => {
                let Some(item) = key.parse().ok().and_then(|i| array.into_iter().nth(i)) else {
                    break;
                };
                start = Some(item.span().start);
                item.into_inner()
            }
            _ => break,
        };
    }
    start.map(|start| 1 + newlines(&text[..start]))
}

/// The trace a link names: one of the command line, or a file beside the scenario.
fn find_trace(origin: &Origin, trace: &str, edits: &Edits) -> Result<Arc<Trace>, String> {
    let given = edits.traces.iter().any(|(_, path)| path.display().to_string() == trace);
    let bytes = match origin {
        Origin::Shipped(name) if !given => {
            let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
            shipped::file(&format!("{folder}/{trace}")).map(<[u8]>::to_vec)
        }
        Origin::Disk(path) if !given => {
            let path = path.parent().unwrap_or(Path::new("")).join(trace);
            return read_trace(&path);
        }
        Origin::Memory if !given => {
            return Err(format!("no file \"{trace}\": the scenario is in no folder"));
        }
        _ => return read_trace(Path::new(trace)),
    };
    let bytes = bytes.ok_or(format!("no trace \"{trace}\" is shipped"))?;
    parse_trace(bytes, trace)
}

fn read_trace(path: &Path) -> Result<Arc<Trace>, String> {
    let name = path.display().to_string();
    let bytes = std::fs::File::open(path).and_then(|file| bounded(file, MAX_TRACE));
    parse_trace(bytes.map_err(|error| format!("cannot read {name}: {error}"))?, &name)
}

/// Largest trace, unpacked: hours of a gigabit link. What is beyond would fill the memory.
const MAX_TRACE: u64 = 256 << 20;

/// Reads all there is, which must be at most `limit` bytes.
fn bounded(from: impl Read, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if from.take(limit + 1).read_to_end(&mut bytes)? as u64 > limit {
        let message = format!("more than {limit} bytes are absurdly long for a trace");
        return Err(std::io::Error::other(message));
    }
    Ok(bytes)
}

/// Parses a trace, plain or compressed by gzip.
fn parse_trace(bytes: Vec<u8>, name: &str) -> Result<Arc<Trace>, String> {
    let text = if bytes.starts_with(&[0x1f, 0x8b]) {
        bounded(flate2::read::MultiGzDecoder::new(&bytes[..]), MAX_TRACE)
            .map_err(|error| format!("{name}: cannot unpack: {error}"))?
    } else {
        bytes
    };
    Trace::parse(&text, name).map(Arc::new).map_err(|error| error.to_string())
}

/// `--sweep FIELD=A..B:N`: N evenly spaced values of a field from A to B, both included.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The field, dotted.
    pub field: String,
    /// Its values, as `--set` takes them.
    pub values: Vec<String>,
}

impl std::str::FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Sweep, String> {
        const EXPECTED: &str =
            "expected FIELD=A..B:N such as links.bottleneck1.rate=5..20 Mbit/s:4";
        let wrong = || format!("{EXPECTED}; found \"{text}\"");
        let (field, range) = text.split_once('=').ok_or_else(wrong)?;
        let (range, count) = range.rsplit_once(':').ok_or_else(wrong)?;
        let (low, high) = range.split_once("..").ok_or_else(wrong)?;
        let count: usize = count.trim().parse().map_err(|_| wrong())?;
        if field.is_empty() || !(2..=1000).contains(&count) {
            return Err(format!("{EXPECTED} with N in 2..=1000; found \"{text}\""));
        }
        let number = |text: &str| -> Result<(f64, String, usize), String> {
            let text = text.trim();
            let end =
                text.find(|c: char| !matches!(c, '0'..='9' | '.' | '-')).unwrap_or(text.len());
            let value: f64 = text[..end].parse().map_err(|_| wrong())?;
            let decimals = text[..end].split_once('.').map_or(0, |(_, decimals)| decimals.len());
            Ok((value, text[end..].trim().to_owned(), decimals))
        };
        let ((low, low_unit, a), (high, unit, b)) = (number(low)?, number(high)?);
        if !low_unit.is_empty() && low_unit != unit {
            return Err(format!("one unit for both ends, please; found \"{text}\""));
        }
        if low == high {
            return Err(format!("A and B are the same; found \"{text}\""));
        }
        let step = (high - low) / (count - 1) as f64;
        // Whole numbers stay whole if the steps are; else a step keeps four digits.
        let decimals = if a.max(b) == 0 && step.fract() == 0.0 {
            0
        } else {
            let digits = 3.0 - libm::floor(libm::log10(step.abs()));
            a.max(b).max(digits.clamp(3.0, 12.0) as usize)
        };
        let value = |i: usize| {
            let value = format!("{:.decimals$}", low + step * i as f64);
            let value = if decimals > 0 {
                value.trim_end_matches('0').trim_end_matches('.').to_owned()
            } else {
                value
            };
            if unit.is_empty() { value } else { format!("{value} {unit}") }
        };
        Ok(Sweep { field: field.to_owned(), values: (0..count).map(value).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(sweep: &str) -> Vec<String> {
        sweep.parse::<Sweep>().unwrap().values
    }

    #[test]
    fn a_sweep_is_evenly_spaced_however_small_its_steps() {
        assert_eq!(values("a=5..20 Mbit/s:4"), ["5 Mbit/s", "10 Mbit/s", "15 Mbit/s", "20 Mbit/s"]);
        assert_eq!(values("a=0..5:4"), ["0", "1.667", "3.333", "5"]);
        assert_eq!(
            values("a=0..0.001 %:5"),
            ["0 %", "0.00025 %", "0.0005 %", "0.00075 %", "0.001 %"]
        );
        assert!("a=5..5 s:3".parse::<Sweep>().unwrap_err().starts_with("A and B are the same"));
    }

    #[test]
    fn published_values_do_not_stand_beside_a_changed_network() {
        let paper = |set: Vec<(String, String)>| {
            load("sbd/nsb-2", &Edits { set, ..Edits::default() }).unwrap().paper.len()
        };
        assert_eq!(paper(vec![]), 2);
        assert_eq!(paper(vec![("links.bottleneck1.rate".into(), "5 Mbit/s".into())]), 0);
    }

    #[test]
    fn what_never_ends_is_not_read_to_its_end() {
        assert_eq!(bounded(&b"12"[..], 2).unwrap(), b"12");
        let error = bounded(std::io::repeat(b'1'), 2).unwrap_err().to_string();
        assert_eq!(error, "more than 2 bytes are absurdly long for a trace");
    }
}
