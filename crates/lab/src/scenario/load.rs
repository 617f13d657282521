//! Loading a scenario: the file, its bases, the changes of the command line, and errors that name the
//! place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::document::Document;
use super::file::File;
use super::origin::Origin;
use super::resolve::resolve;
use super::trace::{self, Traces};
use super::{Scenario, generate};
use crate::Error;

/// What the command line changes in a scenario.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    /// `--set FIELD=VALUE`: fields by dotted name, and their values as TOML or plain text.
    pub set: Vec<(String, String)>,
    /// `--trace LINK=FILE`: links that replay a recorded trace.
    pub traces: Vec<(String, PathBuf)>,
}

/// Reads the scenario at a path, or the shipped one of that name, and makes the edits.
///
/// # Errors
/// One line with file, line and field, or with the option that is wrong.
pub fn load(name: &str, edits: &Edits) -> Result<Scenario, Error> {
    Made::named(name)?.load(edits)
}

/// What a scenario is made of, to make it with other changes, or in another process. Its files are read once, so that all
/// that is made of it is of the same text, however they change meanwhile.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Made {
    /// The name of its file, or of a shipped scenario.
    name: Option<String>,
    /// Its text and those of its bases.
    texts: Vec<(Origin, String)>,
    /// What had been set in the text.
    settings: BTreeMap<String, String>,
    /// Traces on disk, if they are kept.
    #[serde(default)]
    kept: Option<Traces>,
}

impl Made {
    fn of(name: Option<String>, origin: Origin, text: &str) -> Result<Made, Error> {
        let texts = Document::read(origin, text)?.texts();
        Ok(Made { name, texts, settings: BTreeMap::new(), kept: None })
    }

    /// The file at a path, or the shipped scenario of that name.
    ///
    /// # Errors
    /// There is none, or it or a base of it cannot be read.
    pub fn named(name: &str) -> Result<Made, Error> {
        let origin = Origin::named(name);
        let text = origin.text()?;
        Made::of(Some(name.into()), origin, &text)
    }

    /// TOML in no file.
    ///
    /// # Errors
    /// It is no TOML, or a base of it cannot be read.
    pub fn text(text: &str) -> Result<Made, Error> {
        Made::of(None, Origin::Memory, text)
    }

    /// A loaded scenario: what [`Scenario::text`] writes in this folder, and what was set in it.
    pub fn whole(scenario: &Scenario) -> Made {
        let texts = vec![(here(), scenario.text())];
        Made { name: None, texts, settings: scenario.settings.clone(), kept: None }
    }

    /// The same with the traces that the scenario keeps.
    pub fn complete(scenario: &Scenario) -> Made {
        Made { kept: Some(scenario.file.kept.clone()), ..Made::whole(scenario) }
    }

    /// The same, which is loaded as it is now wherever that is: files have absolute paths, and traces are
    /// kept once they are read.
    pub fn lasting(self) -> Made {
        let absolute = |(origin, text): (Origin, String)| (origin.absolute(), text);
        let is_file = self.is_file();
        // `-` is no file's name.
        let name = self.name.map(|name| match is_file && name != "-" {
            true => trace::absolute(Path::new(&name)).display().to_string(),
            false => name,
        });
        let texts = self.texts.into_iter().map(absolute).collect();
        Made { name, texts, kept: Some(Traces::default()), ..self }
    }

    /// The same with the traces that were kept as the scenario was loaded.
    pub fn with_traces_of(self, scenario: &Scenario) -> Made {
        let kept = self.kept.map(|_| scenario.file.kept.clone());
        Made { kept, ..self }
    }

    /// The same, which reads the trace at this path again.
    pub fn without_trace(mut self, path: &Path) -> Made {
        self.kept.iter_mut().for_each(|kept| kept.forget(path));
        self
    }

    /// The scenario with the edits made.
    ///
    /// # Errors
    /// As [`load`].
    pub fn load(&self, edits: &Edits) -> Result<Scenario, Error> {
        let mut scenario = build(Document::of(&self.texts), edits, self.kept.as_ref())?;
        let set = std::mem::replace(&mut scenario.settings, self.settings.clone());
        scenario.settings.extend(set);
        Ok(scenario)
    }

    /// The name of its file, or of a shipped scenario.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Is it a file on this machine?
    pub fn is_file(&self) -> bool {
        self.name.is_some() && matches!(self.texts[..], [(Origin::Disk(_), _), ..])
    }
}

/// Where a text stands that is whole, whose traces are named from this folder.
fn here() -> Origin {
    Origin::Disk(PathBuf::from("scenario"))
}

/// The scenario that `text` says, with the edits made. It is in no folder, so it names no trace but
/// shipped ones.
///
/// # Errors
/// As [`load`].
pub fn parse(text: &str, edits: &Edits) -> Result<Scenario, Error> {
    Made::text(text)?.load(edits)
}

/// The text of the file at a path, or of the shipped scenario of that name, as it stands there.
///
/// # Errors
/// There is no such file, or it holds no text.
pub fn source_text(name: &str) -> Result<String, Error> {
    Origin::named(name).text()
}

fn build(mut document: Document, edits: &Edits, kept: Option<&Traces>) -> Result<Scenario, Error> {
    edits.set.iter().for_each(|(field, value)| document.set(field, value));
    let mut file = document.file()?;
    // What was published holds for the scenario as it stands in its file.
    if !edits.set.is_empty() || !edits.traces.is_empty() {
        file.paper.clear();
    }
    let option = |(link, path): &(String, PathBuf)| format!("--trace {link}={}", path.display());
    for edit @ (link, path) in &edits.traces {
        let name = trace::on_disk(path);
        replay(&mut file, link, name).map_err(|message| Error::input(option(edit), message))?;
    }
    if let Some(kept) = kept {
        let mut used = Traces::default();
        let names = file.links.values_mut().flat_map(|link| link.traces());
        names.for_each(|name| used.keep(name, kept));
        file.kept = used;
    }
    let mut scenario = resolve(file).map_err(|fault| {
        let of_trace = |(link, _): &&(String, PathBuf)| fault.field == ["links", link, "trace"];
        match edits.traces.iter().find(of_trace) {
            Some(edit) => Error::input(option(edit), fault.message),
            None => document.error(&fault.field, &fault.message),
        }
    })?;
    scenario.settings.extend(edits.set.iter().cloned());
    let traces = edits.traces.iter();
    let trace = |(link, path): &(String, PathBuf)| {
        (format!("links.{link}.trace"), path.display().to_string())
    };
    scenario.settings.extend(traces.map(trace));
    // In the whole text its settings are there, and stand for themselves.
    let test = scenario.test.map(|test| &scenario.flows[test]);
    let system = test.and_then(|flow| Some((flow.name.clone(), flow.control?.system()?)));
    if let Some((flow, system)) = system {
        let place = format!("{}: flows.{flow}.cc", scenario.name);
        scenario.adopt(system, &place)?;
        let written = scenario.file.flows.get_mut(&flow).expect("it was resolved from this");
        written.cc = Some(system.control.into());
    }
    Ok(scenario)
}

/// Lets the link called `link`, listed or made by a generator, replay the trace `name`.
fn replay(file: &mut File, link: &str, name: String) -> Result<(), String> {
    let mut made = file.clone();
    generate::expand(&mut made).map_err(|fault| fault.message)?;
    if !made.links.contains_key(link) {
        return Err(super::unknown("link", link, made.links.keys().map(String::as_str)));
    }
    let link = file.links.entry(link.to_owned()).or_default();
    (link.rate, link.trace) = (None, Some(name));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values_do_not_stand_beside_a_changed_network() {
        let paper = |set: Vec<(String, String)>| {
            load("sbd/nsb-2", &Edits { set, ..Edits::default() }).unwrap().paper.len()
        };
        assert_eq!(paper(vec![]), 3);
        assert_eq!(paper(vec![("links.bottleneck1.rate".into(), "5 Mbit/s".into())]), 0);
    }
}
