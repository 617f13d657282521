//! `narrows.run` and `narrows.Run`.

use std::sync::{Arc, OnceLock};

use narrows_cli::COMMIT;
use narrows_cli::size::Size;
use narrows_lab::tables::{self, RunOf};
use narrows_lab::{
    Algorithm, Asked, CaptureRequest, Host, HostId, Job, Made, Output, Provenance, Setup, Summary,
    host, page, run as run_on, summary_table,
};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::law;
use crate::scenario::Scenario;
use crate::table::{Table, loads};
use crate::value::{self, JOBS, text, whole};
use crate::wait::{alone, at_once, wait};

/// A run and its results; made by :func:`narrows.run`. It can be pickled, and is then whole, with recorded traces.
#[pyclass(frozen, module = "narrows")]
pub struct Run {
    scenario: Arc<narrows_lab::Scenario>,
    control: Option<Algorithm>,
    host: &'static dyn Host,
    /// The command that runs the same, or what stands for one.
    words: Vec<String>,
    run: narrows_lab::Run,
    series: OnceLock<Py<Table>>,
    series_made: Option<arrow_array::RecordBatch>,
}

/// As it is pickled.
#[derive(Serialize, Deserialize)]
struct State {
    scenario: Made,
    control: Option<String>,
    words: Vec<String>,
    run: narrows_lab::Run,
}

impl Run {
    fn new(
        scenario: Arc<narrows_lab::Scenario>,
        control: Option<Algorithm>,
        words: Vec<String>,
        run: narrows_lab::Run,
    ) -> Result<Run, Failure> {
        let host = host(run.summary.host.as_str())?;
        let series_made = match run.series.is_empty() {
            true => None,
            false => Some(tables::series(&run.series)?),
        };
        Ok(Run { scenario, control, host, words, run, series: OnceLock::new(), series_made })
    }

    fn provenance(&self) -> Provenance {
        let real_time = self.host.real_time();
        Provenance::new("run", String::new(), real_time, COMMIT, &self.words)
    }

    fn page(&self) -> Result<narrows_report::Page, Failure> {
        if self.run.series.is_empty() {
            let message = "the page shows plots over time; expected run(..., series=True)";
            return Err(Failure::of("series", message));
        }
        Ok(page::run(&self.provenance(), &self.scenario, &self.run))
    }
}

#[pymethods]
impl Run {
    /// One row: what was run, and the metrics of the connection under test (``narrows.metrics()``, those of
    /// ``test``). The whole summary is :meth:`to_dict`.
    #[getter]
    fn summary(&self, py: Python<'_>) -> PyResult<Table> {
        at_once(py, || {
            let one = RunOf { set: &[], signal: None, summary: &self.run.summary };
            Ok(Table::new(tables::runs(&[one])?))
        })
    }

    /// The connections and flows, a row each, with their paths as a list of structs; names are categories.
    #[getter]
    fn connections(&self, py: Python<'_>) -> PyResult<Table> {
        at_once(py, || Ok(Table::new(tables::connections(&self.run.summary.connections)?)))
    }

    /// The links, a row each.
    #[getter]
    fn links(&self, py: Python<'_>) -> PyResult<Table> {
        at_once(py, || Ok(Table::new(tables::links(&self.run.summary.links)?)))
    }

    /// A row for each path of each connection every 100 ms: windows in packets, times in ms, rates in Mbit/s, and
    /// the names of connection and path as categories.
    ///
    /// Raises
    /// ------
    /// Error
    ///     The run was made without: ``run(..., series=True)``.
    #[getter]
    fn series(&self, py: Python<'_>) -> PyResult<Py<Table>> {
        if let Some(table) = self.series.get() {
            return Ok(table.clone_ref(py));
        }
        let table = at_once(py, || match &self.series_made {
            Some(batch) => Ok(Table::new(batch.clone())),
            None => Err(Failure::of("series", "none was kept; expected run(..., series=True)")),
        })?;
        let table = Py::new(py, table)?;
        Ok(self.series.get_or_init(|| table).clone_ref(py))
    }

    /// The decisions of the detector of the connection under test, a row each, with whether they were right.
    #[getter]
    fn decisions(&self, py: Python<'_>) -> PyResult<Table> {
        at_once(py, || Ok(Table::new(tables::decisions(&self.run.decisions)?)))
    }

    /// What changed in the network during the run, a row each.
    #[getter]
    fn events(&self, py: Python<'_>) -> PyResult<Table> {
        at_once(py, || Ok(Table::new(tables::events(&self.scenario)?)))
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.run.summary.seed
    }

    /// The congestion control of the connection under test, if there is one.
    #[getter]
    fn cc(&self) -> Option<&str> {
        self.run.summary.cc.as_deref()
    }

    /// What one should know of the run and no table holds, a line each.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.run.notes.clone()
    }

    /// All that ``summary.json`` of the command holds.
    ///
    /// Returns
    /// -------
    /// dict
    ///     What `summary.json` of the command has.
    fn to_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let json = at_once(py, || {
            serde_json::to_string(&self.run.summary).map_err(|error| Failure::of("summary", error))
        })?;
        loads(py, &json)
    }

    /// The summary as the command prints it.
    ///
    /// Returns
    /// -------
    /// str
    ///     What the command prints.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        at_once(py, || Ok(summary_table(&self.scenario, &self.run.summary)))
    }

    /// Writes the page of ``narrows run --report``.
    ///
    /// Parameters
    /// ----------
    /// path : str or path
    ///     A file, ``NAME.html``.
    ///
    /// Raises
    /// ------
    /// Error
    ///     The file cannot be written, or the run has no series.
    fn to_html(slf: Py<Self>, py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<()> {
        let path = at_once(py, || value::path(path, "path"))?;
        let page = alone(py, move || slf.get().page())?;
        at_once(py, || Ok(page::PageFile::new(&path)?.write(&page)?))
    }

    /// Runs it once more and writes down its packets, as pcapng.
    ///
    /// Parameters
    /// ----------
    /// path : str or path
    ///     A folder, which must have no other captures.
    /// capture : str or list of str, optional
    ///     Flows, at both hosts, and links; the connection under test if there are none.
    ///
    /// Returns
    /// -------
    /// list of str
    ///     The files.
    ///
    /// Raises
    /// ------
    /// Error
    ///     No such flow or link, or the folder cannot be written.
    /// KeyboardInterrupt
    ///     Ctrl-C; the folder has no captures then.
    #[pyo3(signature = (path, capture=None))]
    fn to_pcap(
        &self,
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        capture: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<String>> {
        let (path, names) = at_once(py, || {
            let names = capture.map(|names| value::names(names, "capture")).transpose()?;
            Ok((value::path(path, "path")?, names.unwrap_or_default()))
        })?;
        let work = |stop: &Arc<_>| {
            let mut output = Output::of(&path, &self.provenance())?;
            let request = CaptureRequest { names: &names, snaplen: None, output: &mut output };
            let job = Job {
                control: self.control,
                seed: self.run.summary.seed,
                capture: Some(request),
                ..Job::new(&self.scenario, stop)
            };
            run_on(self.host, job)?;
            let files = output.created().to_vec();
            output.commit()?;
            Ok(files.iter().map(|name| path.join(name).display().to_string()).collect())
        };
        wait(py, work, |_| Ok(()))
    }

    fn _repr_html_(slf: Py<Self>, py: Python<'_>) -> PyResult<String> {
        alone(py, move || {
            let Run { scenario, run, .. } = slf.get();
            match run.series.is_empty() {
                true => Ok(preformatted(&summary_table(scenario, &run.summary))),
                false => Ok(inline(&slf.get().page()?.html(), 900)),
            }
        })
    }

    fn __repr__(&self) -> String {
        let Summary { scenario, cc, host, seed, .. } = &self.run.summary;
        format!(
            "<narrows.Run {scenario} under {}, seed {seed} on {host}>",
            cc.as_deref().unwrap_or("-")
        )
    }

    fn __reduce__<'py>(slf: &Bound<'py, Run>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let ours = slf.clone().unbind();
        let json = alone(slf.py(), move || {
            let Run { scenario, control, words, run, .. } = ours.get();
            let state = State {
                scenario: Made::complete(scenario),
                control: control.map(|control| control.to_string()),
                words: words.clone(),
                run: run.clone(),
            };
            serde_json::to_string(&state).map_err(|error| Failure::of("run", error))
        })?;
        Ok((slf.get_type().getattr("_restore")?, (json,)))
    }

    #[staticmethod]
    fn _restore(py: Python<'_>, state: String) -> PyResult<Run> {
        alone(py, move || {
            let State { scenario, control, words, run } =
                serde_json::from_str(&state).map_err(|error| {
                    Failure::of("run", format!("expected what was pickled: {error}"))
                })?;
            let scenario = Arc::new(scenario.load(&narrows_lab::Edits::default())?);
            let control = control.map(|name| name.parse::<Algorithm>()).transpose();
            Run::new(scenario, control.map_err(|error| Failure::of("cc", error))?, words, run)
        })
    }
}

/// A page inside another.
pub fn inline(html: &str, height: u32) -> String {
    let escaped = html.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<iframe srcdoc=\"{escaped}\" style=\"width:100%;height:{height}px;border:0\"></iframe>"
    )
}

/// Text in columns.
pub fn preformatted(text: &str) -> String {
    format!("<pre>{}</pre>", text.replace('&', "&amp;").replace('<', "&lt;"))
}

/// Runs a scenario once.
#[pyfunction]
#[pyo3(signature = (scenario, cc, seed, series, signal, on, law, threads, force))]
#[expect(clippy::too_many_arguments, reason = "those of narrows.run, which has them by name")]
pub fn run(
    py: Python<'_>,
    scenario: &Bound<'_, PyAny>,
    cc: Option<&Bound<'_, PyAny>>,
    seed: &Bound<'_, PyAny>,
    series: bool,
    signal: Option<&Bound<'_, PyAny>>,
    on: &Bound<'_, PyAny>,
    law: Option<&Bound<'_, PyAny>>,
    threads: &Bound<'_, PyAny>,
    force: bool,
) -> PyResult<Run> {
    let said = |of: Option<&Bound<'_, PyAny>>, field: &str| {
        at_once(py, || of.map(|of| text(of, field)).transpose())
    };
    let (cc, signal, on) =
        (said(cc, "cc")?, said(signal, "signal")?, at_once(py, || text(on, "on"))?);
    let (cc, signal) = (cc.as_deref(), signal.as_deref());
    let (scenario, seed, threads) = at_once(py, || {
        law::load(law)?;
        let seed = whole(seed, "seed", 0..=u64::MAX)?;
        let threads = whole(threads, "threads", 1..=JOBS)? as usize;
        Ok((Scenario::named(scenario)?.again()?, seed, threads))
    })?;
    let work = |stop: &Arc<_>| {
        let host = host(&on)?;
        if threads > 1 && host.id() != HostId::SIM {
            let message = "only the simulator runs on several; expected on=\"sim\"";
            return Err(Failure::of("threads", message));
        }
        let named = scenario.words();
        let asked = Asked::of(scenario.loaded.as_ref().clone(), cc, signal)?;
        let Asked { scenario, control, .. } = asked;
        let job = Job { control, seed, series, threads, ..Job::new(&scenario, stop) };
        host.check(&job)?;
        host.ready(&job)?;
        Size::of([&scenario], &[host], 1, 1).check(force)?;
        let mut run = run_on(host, job)?;
        run.summary.setup = Some(Setup::of(&scenario, control.as_slice()));
        let words = named.map_or_else(
            || vec!["narrows.run(..) in Python".to_owned()],
            |(name, changes)| {
                let mut words = vec!["narrows".to_owned(), "run".into(), name];
                words.extend(law::option(&scenario, control.as_slice()));
                words.extend(cc.map(|cc| format!("--cc={cc}")));
                words.extend(signal.map(|signal| format!("--signal={signal}")));
                words.extend([format!("--seed={seed}"), format!("--on={on}")]);
                words.extend(changes);
                words
            },
        );
        Run::new(Arc::new(scenario), control, words, run)
    };
    wait(py, work, |_| Ok(()))
}
