//! `narrows list`.

use std::fmt::Write;

use narrows_lab::{Edits, Error, catalogue, load, shipped};

use crate::args::What;
use crate::print;

/// Lists what there is of `what`, or of everything.
pub fn list(what: Option<What>) -> Result<(), Error> {
    let mut text = String::new();
    let shows = |part| what.is_none() || what == Some(part);
    let mut section = |title: &str, entries: &[[String; 3]]| {
        if what.is_none() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}{title}", if text.is_empty() { "" } else { "\n" });
        }
        let width = entries.iter().map(|entry| entry[0].len()).max().unwrap_or(0);
        for [name, about, source] in entries {
            let _ = writeln!(text, "  {name:width$}  {about}");
            let _ = writeln!(text, "  {:width$}  {source}", "");
        }
    };
    if shows(What::Laws) {
        let entries =
            catalogue::LAWS.map(|law| [law.name, law.about, law.source].map(String::from));
        section("laws", &entries);
    }
    if shows(What::Detectors) {
        let entries = catalogue::DETECTORS.map(|d| [d.name, d.about, d.source].map(String::from));
        section("detectors (written LAW+DETECTOR)", &entries);
    }
    if shows(What::Starts) {
        let entries = catalogue::STARTS.map(|s| [s.name, s.about, s.source].map(String::from));
        section("slow starts (written LAW+START)", &entries);
    }
    if shows(What::Scenarios) {
        let mut entries = Vec::new();
        for shipped in shipped() {
            let scenario = load(shipped.name, &Edits::default())?;
            entries.push([shipped.name.to_owned(), scenario.title, scenario.source]);
        }
        section("scenarios", &entries);
    }
    print(&text)
}
