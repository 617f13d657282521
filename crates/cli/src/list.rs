//! `narrows list`.

use std::fmt::Write;

use clap::ValueEnum;
#[cfg(feature = "lab")]
use narrows_lab::{Edits, Field, Table, fold, load, metrics, reference, shipped};
#[cfg(feature = "lab")]
use narrows_laws::catalogue::Unknown;
use narrows_laws::{Control, Detector, Law, Params, SlowStart, catalogue, params};
use serde_json::{Map, Value, json};

use crate::args::What;
use crate::error::Error;
use crate::print;

/// Lists `what`, or everything but the fields of scenarios, of which `table` names a table; as JSON if `json`
/// is set.
pub(crate) fn list(what: Option<What>, table: Option<&str>, json: bool) -> Result<(), Error> {
    #[cfg(feature = "lab")]
    if what == Some(What::Fields) {
        let tables = tables(table)?;
        return match json {
            true => print_json(&json!({ "fields": tables })),
            false => print(&fields(tables)),
        };
    }
    if let Some(table) = table {
        return Err(Error::input(table, "only fields have tables: `narrows list fields TABLE`"));
    }
    let (text, all) = listed(what)?;
    if json { print_json(&Value::Object(all)) } else { print(&text) }
}

/// What there is of `what`, or of everything but the fields of scenarios: for people, and by its name a list of
/// objects.
///
/// # Errors
/// None in practice: shipped scenarios can be read.
pub fn listed(what: Option<What>) -> Result<(String, Map<String, Value>), Error> {
    let mut text = String::new();
    let mut all = Map::new();
    let shows = |part| what.is_none() || what == Some(part);
    let mut section = |part: What, title: &str, entries: &[Entry]| {
        let name = part.to_possible_value().map(|value| value.get_name().to_owned());
        all.insert(name.unwrap_or_default(), entries.iter().map(|entry| entry.1.clone()).collect());
        if what.is_none() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}{title}", if text.is_empty() { "" } else { "\n" });
        }
        let width = entries.iter().map(|(lines, _)| lines[0].len()).max().unwrap_or(0);
        for (lines, _) in entries {
            let names = std::iter::once(lines[0].as_str()).chain(std::iter::repeat(""));
            for (name, about) in names.zip(&lines[1..]) {
                text += &folded(&format!("  {name:width$}  {about}"), width + 4);
            }
        }
    };
    if shows(What::Laws) {
        let entries = Law::all().map(|law| entry([law.name(), law.about(), law.source()]));
        section(What::Laws, "laws", &entries.collect::<Vec<_>>());
    }
    if shows(What::Detectors) {
        let entries = Detector::all().map(|of| entry([of.name(), of.about(), of.source()]));
        section(What::Detectors, "detectors (written LAW+DETECTOR)", &entries.collect::<Vec<_>>());
    }
    if shows(What::Starts) {
        let entries = SlowStart::all().map(|of| entry([of.name(), of.about(), of.source()]));
        section(What::Starts, "slow starts (written LAW+START)", &entries.collect::<Vec<_>>());
    }
    if shows(What::Params) {
        section(What::Params, "parameters (set by --set NAME=VALUE)", &parameters());
    }
    if shows(What::Controls) {
        section(What::Controls, "controls, and their names in the kernel", &controls());
    }
    #[cfg(feature = "lab")]
    if shows(What::Scenarios) {
        section(What::Scenarios, "scenarios", &scenarios()?);
    }
    #[cfg(feature = "lab")]
    if shows(What::Metrics) {
        let title = "metrics (keys of summary.json; those of test are in tables and rows)";
        section(What::Metrics, title, &keys());
    }
    Ok((text, all))
}

/// A name and lines about it, and the same as JSON.
type Entry = (Vec<String>, Value);

/// What has a name, a line about it and a source.
fn entry([name, about, source]: [&str; 3]) -> Entry {
    let value = json!({ "name": name, "about": about, "source": source });
    ([name, about, source].map(String::from).to_vec(), value)
}

fn print_json(value: &Value) -> Result<(), Error> {
    print(&format!("{value:#}\n"))
}

fn parameters() -> Vec<Entry> {
    let defaults = Params::default();
    let param = |param: &params::Param| {
        let value = format!("{}: {}", param.value(&defaults), param.about);
        let lines = vec![param.name.clone(), value, format!("{}; {}", param.takes(), param.source)];
        let json = json!({
            "name": param.name,
            "default": param.value(&defaults),
            "takes": param.takes(),
            "about": param.about,
            "source": param.source,
        });
        (lines, json)
    };
    let mut entries: Vec<Entry> = params::all().map(param).collect();
    for detector in Detector::all().filter(|detector| !params::presets(*detector).is_empty()) {
        let presets = params::presets(detector);
        let (name, about) =
            (format!("{}.preset", detector.name()), format!("all of {} at once", detector.name()));
        let takes = format!("one of {}", presets.join(", "));
        let json = json!({ "name": name, "default": presets[0], "takes": takes, "about": about });
        entries.push((vec![name, format!("{}: {about}", presets[0]), takes], json));
    }
    entries
}

fn controls() -> Vec<Entry> {
    let names = |control: Control| {
        let name = control.detector.is_for_kernel().then(|| catalogue::kernel_name(control));
        let json = json!({ "name": control.to_string(), "kernel": name });
        (vec![control.to_string(), name.unwrap_or("(not in the kernel)".into())], json)
    };
    let named = |named: &catalogue::Named| {
        let set = named.settings().map(|(field, value)| format!(" --set {field}={value}"));
        let is = format!("{}{}", named.control, set.collect::<String>());
        let json = json!({ "name": named.name, "is": is, "source": named.source });
        (vec![named.name.to_owned(), is, named.source.to_owned()], json)
    };
    let mut entries: Vec<Entry> = catalogue::all().map(names).collect();
    entries.extend(catalogue::NAMES.iter().map(named));
    if cfg!(feature = "lab") {
        let about = "the kernel's own NAME, such as kernel:cubic, in scenarios --on kernel";
        let json = json!({ "name": "kernel:NAME", "about": about });
        entries.push((vec!["kernel:NAME".into(), about.into()], json));
    }
    entries
}

#[cfg(feature = "lab")]
fn scenarios() -> Result<Vec<Entry>, Error> {
    let entry = |name: &'static str| {
        let scenario = load(name, &Edits::default())?;
        let json = json!({ "name": name, "title": scenario.title, "source": scenario.source });
        Ok((vec![name.to_owned(), scenario.title, scenario.source], json))
    };
    shipped().into_iter().map(entry).collect()
}

#[cfg(feature = "lab")]
fn keys() -> Vec<Entry> {
    let metric = |of: &str, [name, unit, about]: [&str; 3]| {
        let json = json!({ "of": of, "name": name, "unit": unit, "about": about });
        let unit = match unit {
            "" | "1" | "packets" | "segments" => String::new(),
            unit => format!(", {unit}"),
        };
        (vec![format!("{of}.{name}"), format!("{about}{unit}")], json)
    };
    let listed = metrics::listed().into_iter();
    listed.flat_map(|(of, all)| all.into_iter().map(move |one| metric(of, one))).collect()
}

/// A line, at most 80 columns wide where the lab has what folds it.
fn folded(line: &str, indent: usize) -> String {
    #[cfg(feature = "lab")]
    return fold(line, indent);
    #[cfg(not(feature = "lab"))]
    {
        let _ = indent;
        format!("{line}\n")
    }
}

/// The tables of a scenario's file with their fields, or those whose name begins with that of `table`.
#[cfg(feature = "lab")]
fn tables(table: Option<&str>) -> Result<Vec<Table>, Error> {
    let mut tables = reference();
    for group in params::groups() {
        let fields = params::all().filter(|param| param.group() == group);
        let defaults = Params::default();
        let field = |param: &params::Param| Field {
            name: param.field().into(),
            takes: param.takes(),
            default: Some(param.value(&defaults)),
            about: param.about.into(),
            required: false,
        };
        let about = "Parameters (`narrows list params` has their sources).".into();
        tables.push(Table { name: group.into(), about, fields: fields.map(field).collect() });
    }
    if let Some(table) = table {
        // `links.aqm` is [links.NAME.aqm].
        let plain = |name: &str| name.replace(".NAME", "");
        let name = |table: &Table| table.name.split('.').next().unwrap_or_default().to_owned();
        let mut names: Vec<String> = tables.iter().map(name).collect();
        names.dedup();
        let within = |name: &str| {
            name.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        tables.retain(|table| within(&table.name) || within(&plain(&table.name)));
        if tables.is_empty() {
            let known: Vec<&str> =
                names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
            return Err(Error::input("list fields", Unknown::new("table", table, &known)));
        }
    }
    Ok(tables)
}

/// The same for people.
#[cfg(feature = "lab")]
fn fields(tables: Vec<Table>) -> String {
    let mut text = String::new();
    for Table { name, about, fields } in tables {
        // Writing to a string cannot fail.
        let _ = match name.as_str() {
            "" => writeln!(text, "At the top of the file"),
            name => write!(text, "\n[{name}]\n{}", fold(&about, 0)),
        };
        for field in fields {
            let state = match (&field.default, field.required) {
                (Some(default), _) => format!(", default {default}"),
                (None, true) => ", needed".into(),
                (None, false) => String::new(),
            };
            let takes = fold(&format!("  {:<15} {}{state}", field.name, field.takes), 18);
            let about = fold(&format!("{:18}{}", "", field.about), 18);
            text = text + &takes + about.trim_end_matches(' ');
        }
    }
    text.trim_start_matches('\n').to_owned()
}
