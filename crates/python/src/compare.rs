//! `narrows.compare` and `narrows.Comparison`.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use narrows_cli::compare::{Asked, Choice, Compared, Inputs, Results, Shown, Wanted, make, twice};
use narrows_lab::tables::{self, RunOf};
use narrows_lab::{
    Case, Edits, Finished, Made, Plan, Provenance, Row, Seeds, SeriesOf, Sweep, page, report,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::error::Failure;
use crate::law;
use crate::run::{inline, preformatted};
use crate::scenario::Scenario;
use crate::table::{Table, loads};
use crate::trace::rooted;
use crate::value::{self, JOBS, as_text, attribute, items, names, number, text, toml, whole};
use crate::wait::{alone, at_once, wait};

/// What the arguments of a comparison name.
pub struct Named {
    scenarios: Vec<Scenario>,
    cc: Vec<String>,
    signals: Vec<String>,
    on: Vec<String>,
    sweeps: Vec<Sweep>,
    pub seeds: Seeds,
}

impl Named {
    /// Reads them.
    ///
    /// # Errors
    /// What is wrong of them.
    pub fn of(
        scenarios: &Bound<'_, PyAny>,
        cc: &Bound<'_, PyAny>,
        seeds: &Bound<'_, PyAny>,
        sweep: Option<&Bound<'_, PyDict>>,
        signal: Option<&Bound<'_, PyAny>>,
        on: &Bound<'_, PyAny>,
        law: Option<&Bound<'_, PyAny>>,
    ) -> Result<Named, Failure> {
        law::load(law)?;
        let one = Scenario::named(scenarios);
        let several = match one {
            Err(Failure::Raised(_)) | Ok(_) => None,
            Err(_) if scenarios.is_instance_of::<PyString>() => None,
            Err(_) => items(scenarios)?,
        };
        let scenarios = match several {
            Some(all) => all.map(|item| Scenario::named(&item?)).collect::<Result<Vec<_>, _>>()?,
            None => vec![one?],
        };
        if scenarios.is_empty() {
            return Err(Failure::of("scenarios", "expected at least one"));
        }
        let mut seen = HashSet::new();
        let mut called = scenarios.iter().map(|scenario| &scenario.loaded.name);
        if let Some(name) = called.find(|name| !seen.insert(*name)) {
            return Err(Failure::named("scenarios", twice(name)));
        }
        let cc = names(cc, "cc")?;
        if cc.is_empty() {
            return Err(Failure::of("cc", "expected at least one congestion control"));
        }
        if let Some(several) = cc.iter().find(|name| name.contains(',')) {
            let message = format!("found {several:?}; expected one in text, or a list of them");
            return Err(Failure::of("cc", message));
        }
        let signals = signal.map_or(Ok(Vec::new()), |signal| names(signal, "signal"))?;
        let on = names(on, "on")?;
        let mut sweeps = Vec::new();
        for (field, values) in sweep.into_iter().flat_map(|sweep| sweep.iter()) {
            let field: String = field
                .extract()
                .map_err(|_| Failure::of("sweep", "expected the names of fields"))?;
            sweeps.push(axis(&field, &values)?);
        }
        let tested = |scenario: &&Scenario| scenario.loaded.test.is_some();
        let set = sweeps.iter().any(|axis| axis.field == "test");
        if let Some(scenario) = scenarios.iter().find(|of| !set && !tested(of)) {
            return Err(without_test(&scenario.loaded));
        }
        Ok(Named { scenarios, cc, signals, on, sweeps, seeds: seeds_of(seeds)? })
    }

    /// What is to be compared.
    ///
    /// # Errors
    /// What is wrong of the scenarios and names; `stop` was set.
    pub fn inputs(&self, stop: &AtomicBool) -> Result<Inputs, Failure> {
        let scenarios = self.sources();
        Ok(Inputs::new(&self.asked(&scenarios), stop)?)
    }

    /// The same, whose scenarios are made one at a time.
    ///
    /// # Errors
    /// What is wrong of the names.
    pub fn choice(&self) -> Result<Choice, Failure> {
        let scenarios = self.sources();
        Ok(Choice::of(&self.asked(&scenarios))?)
    }

    fn sources(&self) -> Vec<(Made, Edits)> {
        self.scenarios.iter().map(Scenario::source).collect()
    }

    fn asked<'a>(&'a self, scenarios: &'a [(Made, Edits)]) -> Asked<'a> {
        let Named { cc, signals, on, sweeps, .. } = self;
        Asked { scenarios, sweeps, cc, signals, on }
    }

    /// How many scenarios there are.
    pub fn count(&self) -> usize {
        self.scenarios.len()
    }

    /// Fields with several values.
    pub fn sweeps(&self) -> &[Sweep] {
        &self.sweeps
    }

    /// The command of the same, or one word that is none, where no command can say it.
    fn words(&self, plan: &Plan) -> Vec<String> {
        self.command(plan).unwrap_or_else(|| vec!["narrows.compare(..) in Python".into()])
    }

    /// The command of the same. Its changes are of all its scenarios, and a comma parts the values of a field.
    fn command(&self, plan: &Plan) -> Option<Vec<String>> {
        let mut words = vec!["narrows".to_owned(), "compare".into()];
        let named = self.scenarios.iter().map(Scenario::words).collect::<Option<Vec<_>>>()?;
        let (_, options) = named.first()?;
        let same = named.iter().all(|(_, changes)| changes == options);
        let axis = |axis: &Sweep| format!("{}={}", axis.field, axis.values.join(","));
        let says =
            |of: &Sweep| axis(of).parse::<Sweep>().is_ok_and(|read| read.values == of.values);
        if !same || !self.sweeps.iter().all(says) {
            return None;
        }
        words.extend(named.iter().map(|(name, _)| name.clone()));
        let law = |case: &Case| law::option(&case.scenario, plan.controls);
        words.extend(plan.cases.iter().find_map(law));
        words.push(format!("--cc={}", self.cc.join(",")));
        if !self.signals.is_empty() {
            words.push(format!("--signal={}", self.signals.join(",")));
        }
        words.push(format!("--on={}", self.on.join(",")));
        words.extend(self.sweeps.iter().map(|of| format!("--sweep={}", axis(of))));
        words.push(format!("--seeds={}", self.seeds));
        words.extend(options.iter().cloned());
        Some(words)
    }
}

/// Nothing of it is to be compared.
pub fn without_test(scenario: &narrows_lab::Scenario) -> Failure {
    let message = "no flow is under test; expected a field test = \"FLOW\"";
    Failure::named("test", format!("{}: {message}", scenario.name))
}

/// The values of a field: a list, one of numbers with their unit, or text as `--sweep` has it, `"1..100 Mbit/s:5:log"`.
fn axis(field: &str, values: &Bound<'_, PyAny>) -> Result<Sweep, Failure> {
    let pair = values.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
    if let Some((numbers, unit)) = pair
        .map(|pair| pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyString>)>())
        .and_then(Result::ok)
    {
        if !numbers.is_instance_of::<PyString>() && numbers.hasattr("__iter__")? {
            return listed(field, &numbers, Some(&text(&unit, "sweep")?));
        }
    }
    if let Ok(text) = values.extract::<String>() {
        return format!("{field}={text}").parse().map_err(|message| Failure::of("sweep", message));
    }
    listed(field, values, None)
}

fn listed(field: &str, values: &Bound<'_, PyAny>, unit: Option<&str>) -> Result<Sweep, Failure> {
    let wrong = || Failure::of("sweep", format!("{field}: expected a list of values, or A..B:N"));
    let items = items(values)?.ok_or_else(wrong)?;
    let value = |item: PyResult<_>| Ok(as_text(rooted(field, toml(&item?, field)?), unit));
    let values = items.map(value).collect::<Result<Vec<_>, Failure>>()?;
    let mut seen = HashSet::new();
    match values.iter().find(|value| !seen.insert(*value)) {
        Some(value) => Err(Failure::of("sweep", format!("{field}: found {value} twice"))),
        None if values.is_empty() => Err(wrong()),
        None => Ok(Sweep { field: field.into(), values }),
    }
}

/// `30`, `(31, 60)`, `range(31, 61)` or `"31..60"`.
fn seeds_of(value: &Bound<'_, PyAny>) -> Result<Seeds, Failure> {
    let part = |name: &str| match attribute(value, name)? {
        Some(part) => number::<i64>(&part),
        None => Ok(None),
    };
    let pair = match value.cast::<PyTuple>() {
        Ok(pair) if pair.len() == 2 => {
            number::<i64>(&pair.get_item(0)?)?.zip(number::<i64>(&pair.get_item(1)?)?)
        }
        _ => None,
    };
    let text = match (part("start")?, part("stop")?, part("step")?, pair) {
        (Some(start), Some(stop), Some(1), _) => format!("{start}..{}", stop.saturating_sub(1)),
        (.., Some((first, last))) => format!("{first}..{last}"),
        _ => value.str()?.to_string(),
    };
    text.parse().map_err(|message: String| {
        Failure::of("seeds", format!("{message}, (31, 60) or range(31, 61); found {text}"))
    })
}

/// The runs of a comparison as a table.
///
/// # Errors
/// None in practice.
fn runs(plan: &Plan, finished: &[Finished]) -> Result<arrow_array::RecordBatch, Failure> {
    let of = |run: &'_ Finished| run.signal.map(|signal| plan.signals[signal].name());
    let each: Vec<RunOf> = finished
        .iter()
        .map(|run| RunOf { set: &plan.cases[run.case].set, signal: of(run), summary: &run.summary })
        .collect();
    Ok(tables::runs(&each)?)
}

/// A comparison and its results; made by :func:`narrows.compare` and :func:`narrows.sweep`.
#[pyclass(frozen, module = "narrows")]
pub struct Comparison(Of);

enum Of {
    Compared(Box<Whole>),
    /// Of a sweep, which may be of a hundred thousand rows: its forms are made when they are asked for.
    Swept(Arc<Swept>),
}

/// All of a comparison, also what its page is made of.
struct Whole {
    results: Results,
    runs: arrow_array::RecordBatch,
    inputs: Inputs,
    seeds: Seeds,
    provenance: Provenance,
    finished: Vec<Finished>,
}

/// The rows of a sweep, and the runs that they are of.
pub struct Swept {
    rows: Vec<Row>,
    /// A case of each scenario.
    cases: Vec<Case>,
    runs: Vec<arrow_array::RecordBatch>,
}

impl Swept {
    /// In order; `cases` has the first of each scenario, by name, with its index.
    pub fn new(
        rows: BTreeMap<usize, Row>,
        cases: BTreeMap<String, (usize, Arc<Case>)>,
        runs: &BTreeMap<usize, arrow_array::RecordBatch>,
    ) -> Swept {
        let at = |row: &Row| cases.keys().position(|name| *name == row.scenario);
        let row = |row: Row| Row { case: at(&row).unwrap_or_default(), ..row };
        let rows = rows.into_values().map(row).collect();
        let cases = cases.into_values().map(|(_, case)| Arc::unwrap_or_clone(case)).collect();
        Swept { rows, cases, runs: runs.values().cloned().collect() }
    }
}

impl Comparison {
    /// That of a sweep.
    pub fn of(swept: Arc<Swept>) -> Comparison {
        Comparison(Of::Swept(swept))
    }

    fn made(&self) -> &[Row] {
        match &self.0 {
            Of::Compared(whole) => &whole.results.rows,
            Of::Swept(swept) => &swept.rows,
        }
    }

    fn text(&self) -> Cow<'_, str> {
        match &self.0 {
            Of::Compared(whole) => Cow::from(&whole.results.report),
            Of::Swept(swept) => Cow::from(report(&swept.cases, &swept.rows)),
        }
    }
}

#[pymethods]
impl Comparison {
    /// A row for each scenario, point of the sweep, congestion control, signal and host: each metric with its mean
    /// over the seeds, half its 95 % interval (Student's t), median and quartiles.
    #[getter]
    fn rows(slf: Py<Self>, py: Python<'_>) -> PyResult<Table> {
        alone(py, move || Ok(Table::new(tables::rows(slf.get().made())?)))
    }

    /// The same of each path of the connection under test, a row each.
    #[getter]
    fn paths(slf: Py<Self>, py: Python<'_>) -> PyResult<Table> {
        alone(py, move || Ok(Table::new(tables::paths(slf.get().made())?)))
    }

    /// A row for each run: what was run, and the metrics of the connection under test.
    #[getter]
    fn runs(&self) -> Table {
        match &self.0 {
            Of::Compared(whole) => Table::new(whole.runs.clone()),
            Of::Swept(swept) => Table::of(swept.runs.clone()),
        }
    }

    /// The rows as ``rows.json`` of the command has them.
    ///
    /// Returns
    /// -------
    /// dict
    ///     ``rows``, a list of dicts; the names in them carry the units.
    fn to_dict(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let json = alone(py, move || match &slf.get().0 {
            Of::Compared(whole) => Ok(whole.results.json.clone()),
            Of::Swept(swept) => Ok(Results::json_of(&swept.rows)),
        })?;
        loads(py, &json)
    }

    /// The rows as ``rows.csv`` of the command, byte for byte.
    ///
    /// Returns
    /// -------
    /// str
    ///     A line for each row, after one of the columns' names, which carry the units.
    fn to_csv(slf: Py<Self>, py: Python<'_>) -> PyResult<String> {
        alone(py, move || match &slf.get().0 {
            Of::Compared(whole) => Ok(String::from_utf8_lossy(&whole.results.csv).into_owned()),
            Of::Swept(swept) => {
                Ok(String::from_utf8_lossy(&Results::csv_of(&swept.rows)?).into_owned())
            }
        })
    }

    /// The tables as the command prints them.
    ///
    /// Returns
    /// -------
    /// str
    ///     The tables that the command prints.
    fn report(slf: Py<Self>, py: Python<'_>) -> PyResult<String> {
        alone(py, move || Ok(slf.get().text().into_owned()))
    }

    fn _repr_html_(slf: Py<Self>, py: Python<'_>) -> PyResult<String> {
        alone(py, move || match &slf.get().0 {
            Of::Swept(_) => Ok(preformatted(&slf.get().text())),
            Of::Compared(whole) => {
                let plan = whole.inputs.plan(whole.seeds, 0, SeriesOf::None);
                let rows = &whole.results.rows;
                let page = page::compare(&whole.provenance, &plan, rows, &whole.finished);
                Ok(inline(&page.html(), 900))
            }
        })
    }

    fn __repr__(&self) -> String {
        let runs: usize = match &self.0 {
            Of::Compared(whole) => whole.runs.num_rows(),
            Of::Swept(swept) => swept.runs.iter().map(|batch| batch.num_rows()).sum(),
        };
        format!("<narrows.Comparison: {} rows of {runs} runs>", self.made().len())
    }
}

/// Runs scenarios under several congestion controls with many seeds.
#[pyfunction]
#[pyo3(signature = (scenarios, cc, seeds, sweep, signal, on, law, jobs, out, resume, force, shown, done))]
#[expect(clippy::too_many_arguments, reason = "those of narrows.compare, which has them by name")]
pub fn compare(
    py: Python<'_>,
    scenarios: &Bound<'_, PyAny>,
    cc: &Bound<'_, PyAny>,
    seeds: &Bound<'_, PyAny>,
    sweep: Option<&Bound<'_, PyDict>>,
    signal: Option<&Bound<'_, PyAny>>,
    on: &Bound<'_, PyAny>,
    law: Option<&Bound<'_, PyAny>>,
    jobs: &Bound<'_, PyAny>,
    out: Option<&Bound<'_, PyAny>>,
    resume: bool,
    force: bool,
    shown: bool,
    done: Option<Py<PyAny>>,
) -> PyResult<Comparison> {
    let named = at_once(py, || Named::of(scenarios, cc, seeds, sweep, signal, on, law))?;
    let jobs = at_once(py, || whole(jobs, "jobs", 0..=JOBS))? as usize;
    let out = at_once(py, || value::out(out, resume))?;
    let (count, all) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = |stop: &Arc<AtomicBool>| {
        let inputs = named.inputs(stop)?;
        let series = if out.is_some() { SeriesOf::First } else { SeriesOf::None };
        let plan = inputs.plan(named.seeds, jobs, series);
        all.store(plan.tasks().len() as u64, Ordering::Relaxed);
        let provenance = inputs.provenance(&plan, &named.words(&plan))?;
        let shown = if shown { Shown::Progress } else { Shown::Nothing };
        let wanted =
            Wanted { out: out.as_deref(), resume, report: None, plots: None, force, shown };
        let stop = || Ok(Arc::clone(stop));
        let ran = |_: &Finished| {
            count.fetch_add(1, Ordering::Relaxed);
        };
        let Compared { finished, results, .. } =
            make(&inputs, plan, &provenance, wanted, &stop, &ran)?;
        let runs = runs(&plan, &finished)?;
        let whole = Whole { results, runs, inputs, seeds: named.seeds, provenance, finished };
        Ok(Comparison(Of::Compared(Box::new(whole))))
    };
    let mut told = 0;
    let look = |py: Python<'_>| {
        let now = count.load(Ordering::Relaxed);
        if let Some(done) = done.as_ref().filter(|_| now > told) {
            told = now;
            done.call1(py, (now, all.load(Ordering::Relaxed)))?;
        }
        Ok(())
    };
    wait(py, work, look)
}
