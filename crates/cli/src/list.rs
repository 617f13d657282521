//! `narrows list`.

use std::fmt::Write;

#[cfg(feature = "lab")]
use narrows_lab::{Edits, Field, Table, fold, load, metrics, reference, shipped};
#[cfg(feature = "lab")]
use narrows_laws::catalogue::Unknown;
use narrows_laws::{Control, Detector, Law, Params, SlowStart, catalogue, params};

use crate::args::What;
use crate::error::Error;
use crate::print;

/// Lists `what`, or everything but the fields of scenarios, of which `table` names a table.
pub fn list(what: Option<What>, table: Option<&str>) -> Result<(), Error> {
    #[cfg(feature = "lab")]
    if what == Some(What::Fields) {
        return fields(table);
    }
    if let Some(table) = table {
        return Err(Error::input(table, "only fields have tables: `narrows list fields TABLE`"));
    }
    let mut text = String::new();
    let shows = |part| what.is_none() || what == Some(part);
    let mut section = |title: &str, entries: &[Vec<String>]| {
        if what.is_none() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}{title}", if text.is_empty() { "" } else { "\n" });
        }
        let width = entries.iter().map(|entry| entry[0].len()).max().unwrap_or(0);
        for entry in entries {
            let names = std::iter::once(entry[0].as_str()).chain(std::iter::repeat(""));
            for (name, about) in names.zip(&entry[1..]) {
                text += &folded(&format!("  {name:width$}  {about}"), width + 4);
            }
        }
    };
    let entry = |of: [&str; 3]| of.map(String::from).to_vec();
    if shows(What::Laws) {
        let entries = Law::all().map(|law| entry([law.name(), law.about(), law.source()]));
        section("laws", &entries.collect::<Vec<_>>());
    }
    if shows(What::Detectors) {
        let entries = Detector::all().map(|of| entry([of.name(), of.about(), of.source()]));
        section("detectors (written LAW+DETECTOR)", &entries.collect::<Vec<_>>());
    }
    if shows(What::Starts) {
        let entries = SlowStart::all().map(|of| entry([of.name(), of.about(), of.source()]));
        section("slow starts (written LAW+START)", &entries.collect::<Vec<_>>());
    }
    if shows(What::Params) {
        section("parameters (set by --set NAME=VALUE)", &parameters());
    }
    if shows(What::Controls) {
        section("controls, and their names in the kernel", &controls());
    }
    #[cfg(feature = "lab")]
    if shows(What::Scenarios) {
        section("scenarios", &scenarios()?);
    }
    #[cfg(feature = "lab")]
    if shows(What::Metrics) {
        let title = "metrics (keys of summary.json; those of test are in tables and rows)";
        section(title, &keys());
    }
    print(&text)
}

/// An entry: a name, and lines about it.
type Entry = Vec<String>;

fn parameters() -> Vec<Entry> {
    let defaults = Params::default();
    let param = |param: &params::Param| {
        let value = format!("{}: {}", param.value(&defaults), param.about);
        vec![param.name.clone(), value, format!("{}; {}", param.takes(), param.source)]
    };
    let mut entries: Vec<Entry> = params::all().map(param).collect();
    for detector in Detector::all().filter(|detector| !params::presets(*detector).is_empty()) {
        let presets = params::presets(detector);
        entries.push(vec![
            format!("{}.preset", detector.name()),
            format!("{}: all of {} at once", presets[0], detector.name()),
            format!("one of {}", presets.join(", ")),
        ]);
    }
    entries
}

fn controls() -> Vec<Entry> {
    let names = |control: Control| {
        let in_kernel = match control.detector.is_for_kernel() {
            false => "(not in the kernel)".to_owned(),
            true => catalogue::kernel_name(control),
        };
        vec![control.to_string(), in_kernel]
    };
    let named = |named: &catalogue::Named| {
        let set = named.settings().map(|(field, value)| format!(" --set {field}={value}"));
        let is = format!("{}{}", named.control, set.collect::<String>());
        vec![named.name.to_owned(), is, named.source.to_owned()]
    };
    let mut entries: Vec<Entry> = catalogue::all().map(names).collect();
    entries.extend(catalogue::NAMES.iter().map(named));
    if cfg!(feature = "lab") {
        let about = "the kernel's own NAME, such as kernel:cubic, in scenarios --on kernel";
        entries.push(vec!["kernel:NAME".into(), about.into()]);
    }
    entries
}

#[cfg(feature = "lab")]
fn scenarios() -> Result<Vec<Entry>, Error> {
    let entry = |name: &'static str| {
        let scenario = load(name, &Edits::default())?;
        Ok(vec![name.to_owned(), scenario.title, scenario.source])
    };
    shipped().into_iter().map(entry).collect()
}

#[cfg(feature = "lab")]
fn keys() -> Vec<Entry> {
    let metric = |of: &str, [name, unit, about]: [&str; 3]| {
        let unit = match unit {
            "" | "1" | "packets" | "segments" => String::new(),
            unit => format!(", {unit}"),
        };
        vec![format!("{of}.{name}"), format!("{about}{unit}")]
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

/// Lists the fields of a scenario's file, or of the tables whose name begins with that of `table`.
#[cfg(feature = "lab")]
fn fields(table: Option<&str>) -> Result<(), Error> {
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
        let name = |table: &Table| table.name.split('.').next().unwrap_or_default().to_owned();
        let mut names: Vec<String> = tables.iter().map(name).collect();
        names.dedup();
        let within = |name: &str| {
            name.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        tables.retain(|table| within(&table.name));
        if tables.is_empty() {
            let known: Vec<&str> =
                names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
            return Err(Error::input("list fields", Unknown::new("table", table, &known)));
        }
    }
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
    print(text.trim_start_matches('\n'))
}
