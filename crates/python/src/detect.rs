//! `narrows.detect` and `narrows.Detection`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_cli::set;
use narrows_detect::{
    Decision, Detection as Detecting, Evidence, Input, Limits, MAX_FLOWS, Report, Source, Times,
    detectors, text as printed,
};
use narrows_lab::tables;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::{Deserialize, Serialize};

use crate::error::{Failure, Parts};
use crate::run::preformatted;
use crate::table::Table;
use crate::value::{path, setting, text, whole};
use crate::wait::{at_once, wait};

/// Which flows of a capture, or of a table of delays, share a bottleneck; made by :func:`narrows.detect`.
#[pyclass(frozen, module = "narrows")]
pub struct Detection {
    text: String,
    notes: Vec<String>,
    verdicts: arrow_array::RecordBatch,
    decisions: arrow_array::RecordBatch,
    flows: arrow_array::RecordBatch,
}

#[derive(Serialize, Deserialize)]
struct VerdictRow {
    a: String,
    b: String,
    verdict: String,
    why: Option<String>,
    since_s: Option<f64>,
    compared_s: Option<f64>,
    confidence: Option<f64>,
    concordance: Option<f64>,
    observations: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct DecisionRow {
    time_s: f64,
    groups: Vec<Vec<String>>,
    uncongested: Vec<String>,
    undecided: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct FlowRow {
    flow: String,
    packets: u64,
    min_rtt_ms: Option<f64>,
    lost: u64,
}

#[pymethods]
impl Detection {
    /// A row for each two flows ``a`` and ``b``: ``verdict`` is "shared", "separate", or "cannot tell" and ``why``; in
    /// force since ``since_s``, seconds in the time of the file; ``compared_s``: for how long there was enough of both to
    /// compare, seconds; ``confidence`` and ``concordance`` are from 0 to 1.
    #[getter]
    fn verdicts(&self) -> Table {
        Table::new(self.verdicts.clone())
    }

    /// A row for each decision: the groups of flows from then on.
    #[getter]
    fn decisions(&self) -> Table {
        Table::new(self.decisions.clone())
    }

    /// The flows, a row each, the largest first, with packets, losses, and the least RTT in ms where it can be seen.
    #[getter]
    fn flows(&self) -> Table {
        Table::new(self.flows.clone())
    }

    /// What one should know of the file: damage, what was skipped and left out.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// The findings as the command prints them.
    ///
    /// Returns
    /// -------
    /// str
    ///     What the command prints.
    fn report(&self) -> &str {
        &self.text
    }

    fn _repr_html_(&self) -> String {
        preformatted(&self.text)
    }

    fn __repr__(&self) -> String {
        let first = self.text.lines().next().unwrap_or_default();
        format!("<narrows.Detection: {first}>")
    }
}

/// Is this place a file, or a line of it?
fn is_at(place: &str, file: &str) -> bool {
    place.strip_prefix(file).is_some_and(|rest| rest.is_empty() || rest.starts_with(" line "))
}

/// What is wrong of parameters, by the name of the one that is wrong alone.
fn of_settings(settings: &[String], error: &narrows_cli::Error) -> Failure {
    let wrong = settings.iter().find(|one| set::params(std::slice::from_ref(*one)).is_err());
    let name = wrong.and_then(|one| one.split_once('=')).map_or("settings", |(name, _)| name);
    let line = error.to_string();
    Failure::named(name, line.strip_prefix("--set: ").unwrap_or(&line))
}

/// Finds shared bottlenecks in a file, or in bytes in its place.
#[pyfunction]
#[pyo3(signature = (file, bytes, detector, settings, flows, min_packets))]
pub fn detect(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    bytes: Option<Vec<u8>>,
    detector: &Bound<'_, PyAny>,
    settings: &Bound<'_, PyDict>,
    flows: &Bound<'_, PyAny>,
    min_packets: &Bound<'_, PyAny>,
) -> PyResult<Detection> {
    let (file, detector) = at_once(py, || Ok((path(file, "data")?, text(detector, "detector")?)))?;
    let (flows, packets, settings) = at_once(py, || {
        let wrong = |_| Failure::of("settings", "expected the names of parameters");
        let named = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let name: String = name.extract().map_err(wrong)?;
            let value = setting(&value, &name, None)?;
            Ok(format!("{name}={value}"))
        };
        let settings = settings.iter().map(named).collect::<Result<Vec<_>, Failure>>()?;
        let flows = whole(flows, "flows", 1..=MAX_FLOWS as u64)? as usize;
        Ok((flows, whole(min_packets, "min_packets", 0..=u64::MAX)?, settings))
    })?;
    let work = |stop: &Arc<AtomicBool>| {
        let detector =
            detectors([&*detector]).map_err(|message| Failure::of("detector", message))?[0];
        let params = set::params(&settings).map_err(|error| of_settings(&settings, &error))?;
        let (given, name) = (bytes.is_some(), file.display().to_string());
        let input = match bytes {
            Some(bytes) => Input::bytes("data", bytes),
            None => Input::file(&file),
        };
        let limits = Limits { flows, packets, at: None };
        let of_data = |error: narrows_detect::Error| match error {
            // Of the file or one of its lines; the rows have a name that is no file's.
            narrows_detect::Error::Input { place, message } if is_at(&place, &name) => {
                let line = format!("{place}: {message}");
                match given {
                    true => Failure::named("data", line),
                    false => {
                        let parts = Parts { file: Some(name.clone()), ..Parts::default() };
                        Failure::Placed(line, parts)
                    }
                }
            }
            error => error.into(),
        };
        let stopped = |error: narrows_detect::Error| match stop.load(Ordering::Relaxed) {
            true => Failure::Interrupted,
            false => of_data(error),
        };
        let source = Source::open(input.until(Arc::clone(stop)), None, limits).map_err(stopped)?;
        let recording = source.recording();
        let detecting = Detecting::new(&source, detector, &params)?;
        let mut times = Times::new(!detecting.compares_pairs());
        let mut decisions: Vec<DecisionRow> = Vec::new();
        let name = |flow: usize| recording.flows[flow].clone();
        let names = |flows: &[usize]| flows.iter().map(|&flow| name(flow)).collect::<Vec<_>>();
        let found =
            detecting.run(&mut [], |decision: &Decision| -> Result<(), narrows_detect::Error> {
                times.decided(decision);
                decisions.push(DecisionRow {
                    time_s: decision.t_s,
                    groups: decision.on.groups().iter().map(|group| names(&group.flows)).collect(),
                    uncongested: names(&decision.on.uncongested()),
                    undecided: names(&decision.on.undecided()),
                });
                Ok(())
            });
        let found = found.map_err(stopped)?;
        let verdict = |of: &narrows_detect::Verdict| {
            let (confidence, concordance, observations) = match of.evidence {
                Some(Evidence::Delays { confidence, concordance, observations }) => {
                    (Some(confidence), Some(concordance), Some(observations.into()))
                }
                Some(Evidence::Decisions { agree, all }) => {
                    (Some(agree as f64 / (all as f64).max(1.0)), None, Some(all))
                }
                None => (None, None, None),
            };
            VerdictRow {
                a: name(of.flows.0),
                b: name(of.flows.1),
                verdict: of.answer.name().into(),
                why: of.why.map(|why| why.name().into()),
                since_s: of.since_s,
                compared_s: of.compared_s,
                confidence,
                concordance,
                observations,
            }
        };
        let verdicts = tables::of(&found.verdicts.iter().map(verdict).collect::<Vec<_>>())?;
        let flow = |(flow, &lost): (usize, &u64)| {
            let traffic = recording.traffic[flow];
            FlowRow {
                flow: name(flow),
                packets: traffic.packets,
                min_rtt_ms: traffic.min_rtt_ms,
                lost,
            }
        };
        let flows = tables::of(&found.lost.iter().enumerate().map(flow).collect::<Vec<_>>())?;
        let decisions = tables::of(&decisions)?;
        let notes = recording.notes.clone();
        let report = Report::new(recording, detector, times, found);
        Ok(Detection { text: printed(recording, &[report]), notes, verdicts, decisions, flows })
    };
    wait(py, work, |_| Ok(()))
}
