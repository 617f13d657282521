//! `narrows.Scenario`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use narrows_lab::{Edits, Made, describe, host};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::{Deserialize, Serialize};

use crate::error::{Failure, Parts};
use crate::trace::{is_trace, rooted};
use crate::value::{self, as_text, path, text, toml};
use crate::wait::at_once;

/// A network, what runs over it, and what is right there.
///
/// Made by :meth:`load`, :meth:`from_file` or :meth:`from_dict`; it does not change: :meth:`set` returns another.
/// It can be pickled, and is then whole, with its recorded traces: where it is read no file of it is needed.
#[pyclass(frozen, module = "narrows", from_py_object)]
#[derive(Clone)]
pub struct Scenario {
    made: Made,
    edits: Edits,
    pub loaded: Arc<narrows_lab::Scenario>,
}

/// As it is pickled.
#[derive(Serialize, Deserialize)]
struct State {
    made: Made,
    set: Vec<(String, String)>,
    traces: Vec<(String, PathBuf)>,
}

impl Scenario {
    /// Loads it.
    ///
    /// # Errors
    /// What is wrong of it.
    pub fn new(made: Made, edits: Edits) -> Result<Scenario, Failure> {
        let loaded = Arc::new(made.load(&edits)?);
        Ok(Scenario { made: made.with_traces_of(&loaded), edits, loaded })
    }

    /// The same, which stays what it is, whatever the current folder is later, and what is in its files.
    fn lasting(made: Made) -> Result<Scenario, Failure> {
        let lasting = Scenario::new(made.clone().lasting(), Edits::default());
        // An error names the file as it was named.
        lasting.or_else(|_| Scenario::new(made, Edits::default()))
    }

    /// Loads the one of a name.
    fn of(name: &Path) -> Result<Scenario, Failure> {
        let name = name.to_string_lossy().into_owned();
        let made = Made::named(&name).map_err(|error| match error {
            // Of a name that is no file's.
            narrows_lab::Error::Input { place, message }
                if place == name && !Path::new(&name).exists() =>
            {
                let parts = Parts {
                    field: Some("scenario".into()),
                    expected: Some("a shipped scenario, or a file in TOML".into()),
                    file: None,
                };
                Failure::Placed(format!("{place}: {message}"), parts)
            }
            error => error.into(),
        })?;
        Scenario::lasting(made)
    }

    /// What it is made of.
    pub fn source(&self) -> (Made, Edits) {
        (self.made.clone(), self.edits.clone())
    }

    /// What an argument names: a scenario, or one by its name or file.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn named(value: &Bound<'_, PyAny>) -> Result<Scenario, Failure> {
        if let Ok(scenario) = value.extract::<Scenario>() {
            return Ok(scenario);
        }
        Scenario::of(&path(value, "scenario").map_err(|failure| match failure {
            Failure::Field(field, _) => {
                let message = "expected a Scenario, or the name of a shipped one or of a file";
                Failure::Field(field, message.into())
            }
            other => other,
        })?)
    }

    /// The scenario with the parameters of the user's law, if one is loaded: it may not have been there before.
    ///
    /// # Errors
    /// As of [`Scenario::new`].
    pub fn again(self) -> Result<Scenario, Failure> {
        match narrows_laws::user::loaded() {
            Some(_) => Scenario::new(self.made, self.edits),
            None => Ok(self),
        }
    }

    /// What the command calls it: its name and its changes; none of a scenario that no file holds.
    pub fn words(&self) -> Option<(String, Vec<String>)> {
        let name = self.made.name()?;
        let set = self.edits.set.iter().map(|(field, value)| format!("--set={field}={value}"));
        let traces = self.edits.traces.iter();
        let trace = traces.map(|(link, file)| format!("--trace={link}={}", file.display()));
        Some((name.to_owned(), set.chain(trace).collect()))
    }
}

#[pymethods]
impl Scenario {
    /// A shipped scenario, or a file.
    ///
    /// Parameters
    /// ----------
    /// name : str or path
    ///     A name of ``narrows.scenarios()``, such as ``"sbd/nsb-2"``, or a file in TOML.
    ///
    /// Returns
    /// -------
    /// Scenario
    ///     As it is shipped.
    ///
    /// Raises
    /// ------
    /// Error
    ///     There is none of that name, with what was probably meant; or file, line and field of what is wrong in it.
    #[staticmethod]
    fn load(py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<Scenario> {
        at_once(py, || Scenario::of(&path(name, "name")?))
    }

    /// A file in TOML.
    ///
    /// Parameters
    /// ----------
    /// path : str or path
    ///     The file; bases and traces that it names are found beside it.
    ///
    /// Returns
    /// -------
    /// Scenario
    ///     As the file has it.
    ///
    /// Raises
    /// ------
    /// Error
    ///     The file cannot be read, or what is wrong in it, with line and field.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<Scenario> {
        at_once(py, || {
            let file = value::path(path, "path")?;
            if !file.is_file() {
                return Err(Failure::at(&file, "cannot read: expected a file in TOML"));
            }
            Scenario::of(&file)
        })
    }

    /// A scenario of dicts, lists, text and numbers, with the fields that a file has.
    ///
    /// Parameters
    /// ----------
    /// fields : dict
    ///     As a file in TOML has them, in tables by name: ``links``, ``routes``, ``flows``. ``base`` names a shipped
    ///     scenario whose fields hold where none is given here. Quantities are text with a unit: ``"20 Mbit/s"``. A
    ///     recorded trace is named by its absolute path.
    ///
    /// Returns
    /// -------
    /// Scenario
    ///     Of these fields.
    ///
    /// Raises
    /// ------
    /// Error
    ///     The field that is unknown or wrong, with what was expected; a number that is not finite.
    #[staticmethod]
    fn from_dict(py: Python<'_>, fields: &Bound<'_, PyDict>) -> PyResult<Scenario> {
        at_once(py, || {
            let mut table = match toml(fields, "")? {
                toml::Value::Table(table) => table,
                _ => return Err(Failure::of("scenario", "expected a dict")),
            };
            for (name, text) in [("title", ""), ("source", "Python")] {
                table.entry(name).or_insert_with(|| toml::Value::String(text.into()));
            }
            Scenario::lasting(Made::text(&table.to_string())?)
        })
    }

    /// The scenario with another value of a field.
    ///
    /// Parameters
    /// ----------
    /// field : str
    ///     Its dotted name, ``"links.l.rate"``; a law's or detector's parameter, ``"ssc.p_s"``.
    /// value : str, int, float, bool, list or dict
    ///     Text with its unit, ``"20 Mbit/s"``; a number where the field is one.
    /// unit : str, optional
    ///     The unit of a number: ``set("links.l.rate", 20, "Mbit/s")``.
    ///
    /// Returns
    /// -------
    /// Scenario
    ///     Another one with this change.
    ///
    /// Raises
    /// ------
    /// Error
    ///     No such field, or not a value of it; ``.field`` and ``.expected`` say which.
    #[pyo3(signature = (field, value, unit=None))]
    fn set(
        &self,
        py: Python<'_>,
        field: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        unit: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Scenario> {
        at_once(py, || {
            let field = text(field, "field")?;
            let unit = unit.map(|unit| text(unit, "unit")).transpose()?;
            let value = rooted(&field, toml(value, &field)?);
            let made = match &value {
                toml::Value::String(name) if is_trace(&field) => {
                    self.made.clone().without_trace(Path::new(name))
                }
                _ => self.made.clone(),
            };
            let mut edits = self.edits.clone();
            edits.set.push((field, as_text(value, unit.as_deref())));
            Scenario::new(made, edits)
        })
    }

    /// The scenario with a recorded trace on a link.
    ///
    /// Parameters
    /// ----------
    /// link : str
    ///     Name of the link.
    /// path : str or path
    ///     A trace in Mahimahi's format, plain or ``.gz``: a line in ms for each packet of 1500 B.
    ///
    /// Returns
    /// -------
    /// Scenario
    ///     Another one in which the link replays the trace.
    ///
    /// Raises
    /// ------
    /// Error
    ///     No such link, or not a trace.
    fn replay(
        &self,
        py: Python<'_>,
        link: &Bound<'_, PyAny>,
        path: &Bound<'_, PyAny>,
    ) -> PyResult<Scenario> {
        at_once(py, || {
            let path = value::path(path, "path")?;
            let path = std::path::absolute(&path).unwrap_or(path);
            let made = self.made.clone().without_trace(&path);
            let mut edits = self.edits.clone();
            edits.traces.push((text(link, "link")?, path));
            Scenario::new(made, edits)
        })
    }

    /// Links, flows, rivals, and what a run costs, as text.
    ///
    /// Returns
    /// -------
    /// str
    ///     What ``--dry-run`` of the command prints.
    fn describe(&self, py: Python<'_>) -> PyResult<String> {
        at_once(py, || Ok(describe(&self.loaded, host("sim")?, None)))
    }

    /// The scenario whole, as TOML: bases merged, generators expanded, all defaults.
    ///
    /// Returns
    /// -------
    /// str
    ///     The text of a file that gives this scenario.
    fn to_toml(&self, py: Python<'_>) -> PyResult<String> {
        at_once(py, || Ok(self.loaded.text()))
    }

    /// Its name, as results show it.
    #[getter]
    fn name(&self) -> &str {
        &self.loaded.name
    }

    /// One line about it.
    #[getter]
    fn title(&self) -> &str {
        &self.loaded.title
    }

    /// Time from the start that no metric counts, s.
    #[getter]
    fn warmup_s(&self) -> f64 {
        self.loaded.warmup as f64 / 1e9
    }

    /// Time after the warm-up that is analysed, s.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.loaded.duration as f64 / 1e9
    }

    /// The names of its links.
    #[getter]
    fn links(&self) -> Vec<String> {
        self.loaded.links.iter().map(|link| link.config.name.clone()).collect()
    }

    /// The names of its flows, without those of the background.
    #[getter]
    fn flows(&self) -> Vec<String> {
        let listed = self.loaded.flows.iter().filter(|flow| !flow.background);
        listed.map(|flow| flow.name.clone()).collect()
    }

    /// What was set in it, by field.
    #[getter]
    fn settings(&self) -> BTreeMap<String, String> {
        self.loaded.settings.clone()
    }

    fn __repr__(&self) -> String {
        let set = self.loaded.settings.iter().map(|(field, value)| format!(", {field}={value:?}"));
        format!("<narrows.Scenario {}{}>", self.loaded.name, set.collect::<String>())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Scenario>().is_ok_and(|other| {
            let other = other.get();
            self.loaded.text() == other.loaded.text()
                && self.loaded.settings == other.loaded.settings
        })
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.loaded.text().hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Scenario>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let py = slf.py();
        let json = at_once(py, || {
            let Scenario { made, edits, loaded } = slf.get();
            let (made, edits) = match made.is_file() {
                true => (Made::complete(loaded), Edits::default()),
                false => (made.clone(), edits.clone()),
            };
            let state = State { made, set: edits.set, traces: edits.traces };
            serde_json::to_string(&state).map_err(|error| Failure::of("scenario", error))
        })?;
        Ok((slf.get_type().getattr("_restore")?, (json,)))
    }

    #[staticmethod]
    fn _restore(py: Python<'_>, state: &str) -> PyResult<Scenario> {
        at_once(py, || {
            let state: State = serde_json::from_str(state).map_err(|error| {
                Failure::of("scenario", format!("expected what was pickled: {error}"))
            })?;
            Scenario::new(state.made, Edits { set: state.set, traces: state.traces })
        })
    }
}
