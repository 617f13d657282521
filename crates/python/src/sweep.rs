//! A comparison in tasks, which any worker can do: another process, another machine.
//!
//! The client has a [`Sweep`]: it makes the tasks one after the other and takes their results in any order, each
//! once. A task is some runs of one variant, which is a scenario under a control with a signal on a host, so
//! that a row is made, and its runs forgotten, once its last task is done. The rows are those that one machine
//! makes.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use narrows_cli::compare::{Inputs, Results};
use narrows_lab::{
    Edits, Finished, Host, HostId, Job, Made, Plan, Row, SeriesOf, Setup, Summary, host, program,
    rows, run as run_on, sha256, tables,
};
use narrows_laws::user;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::{Deserialize, Serialize};

use crate::compare::{Comparison, Named, runs};
use crate::error::Failure;
use crate::law;
use crate::wait::{at_once, wait};

/// How long a task takes on one core, about: long beside what it costs to hand it on, short beside a worker's
/// life.
const TASK_S: f64 = 2.0;

/// The file that says what a data set is of.
const IDENTITY: &str = "_narrows.json";

/// How the name of a file begins that is being written, and how old it is if its writer is gone.
const PART: &str = "_part-";
const STALE: Duration = Duration::from_secs(3600);

/// The column of a data set that holds a run whole.
const SUMMARY: &str = "summary";

/// What a worker is sent.
#[derive(Serialize, Deserialize)]
struct Task {
    /// The client's build.
    build: String,
    version: String,
    scenario: Made,
    control: String,
    signal: Option<String>,
    set: Vec<narrows_lab::Point>,
    host: HostId,
    first: u64,
    last: u64,
    /// The user's law: its header, and which version of it.
    law: Option<(PathBuf, String)>,
    /// The file that its results go to.
    file: Option<PathBuf>,
}

/// The part that the runs of a row have in common.
#[derive(Clone, Copy, PartialEq)]
struct Variant {
    case: usize,
    control: narrows_lab::Algorithm,
    signal: Option<usize>,
    host: HostId,
    /// Its first task, and runs in each.
    task: usize,
    each: u64,
}

/// The results of a variant's tasks, and the setup that they must have.
struct Open {
    setup: Setup,
    tasks: BTreeMap<usize, Vec<Summary>>,
}

/// What the tables of a comparison are made of, without the rest: the runs of a row wait for its last one.
/// The setup is that of all.
fn lean(mut run: Summary, test: usize) -> Summary {
    run.setup = None;
    run.links = Vec::new();
    run.connections.truncate(test + 1);
    run.connections.iter_mut().take(test).for_each(|other| other.paths = Vec::new());
    run.connections.shrink_to_fit();
    run
}

/// What has come back.
#[derive(Default)]
struct Taken {
    /// By variant, of those that are not complete: the results of its tasks.
    open: BTreeMap<usize, Open>,
    rows: BTreeMap<usize, Row>,
    runs: BTreeMap<usize, arrow_array::RecordBatch>,
    tasks: Vec<bool>,
    count: usize,
}

/// A comparison in tasks.
#[pyclass(frozen, module = "narrows._narrows")]
pub struct Sweep {
    inputs: Inputs,
    named: Named,
    variants: Vec<Variant>,
    tasks: usize,
    out: Option<PathBuf>,
    taken: Mutex<Taken>,
    /// The scenario of the variant whose task was made last, as the next task is most likely of it, too.
    last: Mutex<Option<(usize, Made)>>,
    /// The tasks of this process are to end.
    stop: AtomicBool,
}

impl Sweep {
    fn plan(&self) -> Plan<'_> {
        self.inputs.plan(self.named.seeds, 1, SeriesOf::None)
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The variant of a task, its index, and the seeds.
    fn seeds(&self, task: usize) -> (usize, Variant, u64, u64) {
        let at = self.variants.partition_point(|variant| variant.task <= task) - 1;
        let variant = self.variants[at];
        let seeds = self.named.seeds.all();
        let first = seeds.start() + (task - variant.task) as u64 * variant.each;
        (at, variant, first, seeds.end().min(&(first + variant.each - 1)).to_owned())
    }

    fn tasks_of(&self, variant: &Variant) -> usize {
        self.named.seeds.count().div_ceil(variant.each) as usize
    }

    fn file(&self, task: usize) -> Option<PathBuf> {
        Some(self.out.as_ref()?.join(format!("part-{task:06}.parquet")))
    }

    /// What the data set is of.
    fn identity(&self) -> Result<String, Failure> {
        #[derive(Serialize)]
        struct Identity {
            narrows: &'static str,
            build: String,
            plan: String,
            tasks: usize,
        }
        let plan = self.plan();
        let each: Vec<u64> = self.variants.iter().map(|variant| variant.each).collect();
        let plan = sha256(&(plan.identity(), plan.cases, each));
        let version = env!("CARGO_PKG_VERSION");
        let identity = Identity { narrows: version, build: program()?, plan, tasks: self.tasks };
        let json = serde_json::to_string_pretty(&identity);
        json.map_err(|error| Failure::of("out", error))
    }

    /// Makes the folder, or goes on with what is in it, until `stop` is set.
    fn open(&self, out: &Path, resume: bool, stop: &AtomicBool) -> Result<(), Failure> {
        let io =
            |error: std::io::Error| Failure::at(out, format!("cannot make this folder: {error}"));

        let identity = self.identity()?;
        let mark = out.join(IDENTITY);
        match fs::read_to_string(&mark) {
            Ok(there) if there.trim() != identity => {
                let message = "holds the results of another sweep or of another build of narrows; expected another folder";
                return Err(Failure::at(out, message));
            }
            Ok(_) if !resume => {
                return Err(Failure::at(
                    out,
                    "holds results already; expected resume=True or another folder",
                ));
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(out).map_err(io)?;
                for entry in fs::read_dir(out).map_err(io)? {
                    if !is_part(&entry.map_err(io)?) {
                        let message = "holds something else; expected an empty folder";
                        return Err(Failure::at(out, message));
                    }
                }
                write(&mark, |to| to.write_all(identity.as_bytes()))?;
            }
            Err(error) => return Err(Failure::at(&mark, format!("cannot read: {error}"))),
        }
        for entry in fs::read_dir(out).map_err(io)? {
            let entry = entry.map_err(io)?;
            if !is_part(&entry) {
                continue;
            }
            // It may be gone by now.
            let written = entry.metadata().and_then(|of| of.modified());
            if written.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > STALE)) {
                let _ = fs::remove_file(entry.path());
            }
        }
        // What is whole is not run again.
        for task in 0..self.tasks {
            if stop.load(Ordering::Relaxed) {
                return Err(Failure::Interrupted);
            }
            let Some(file) = self.file(task) else { continue };
            match File::open(&file) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(Failure::at(&file, format!("cannot read: {error}"))),
            }
            let Some(texts) = tables::read_text(&file, SUMMARY) else { continue };
            let summaries = texts.iter().map(|text| serde_json::from_str::<Summary>(text));
            if let Ok(summaries) = summaries.collect::<Result<Vec<_>, _>>() {
                // Of another run it is not taken, and its task is done again.
                let _ = self.take(task, summaries);
            }
        }
        Ok(())
    }

    /// Takes the results of a task; false if they were there.
    fn take(&self, task: usize, summaries: Vec<Summary>) -> Result<bool, Failure> {
        let (at, variant, first, last) = self.seeds(task);
        let plan = self.plan();
        let Variant { case, control, signal, .. } = variant;
        let test = plan.cases[case].scenario.test.unwrap_or_default();
        let name = control.to_string();
        let scenario = &plan.cases[case].scenario.name;
        let taken = &mut *self.lock();
        let open = match taken.open.remove(&at) {
            Some(open) => open,
            None => {
                let signal = signal.map(|signal| plan.signals[signal]);
                let setup =
                    Setup::of(&*plan.cases[case].scenario.under(control, signal)?, &[control]);
                Open { setup, tasks: BTreeMap::new() }
            }
        };
        let open = taken.open.entry(at).or_insert(open);
        let right = |(summary, seed): (&Summary, u64)| {
            summary.seed == seed
                && summary.host == variant.host
                && summary.cc.as_ref() == Some(&name)
                && summary.scenario == *scenario
                && summary.setup.as_ref() == Some(&open.setup)
        };
        let all = summaries.len() as u64 == last - first + 1;
        if !all || !summaries.iter().zip(first..=last).all(right) {
            let message = format!(
                "task {task} has the results of other runs; expected those of {scenario} under {name}"
            );
            return Err(Failure::of("sweep", message));
        }
        if std::mem::replace(&mut taken.tasks[task], true) {
            return Ok(false);
        }
        taken.count += 1;
        open.tasks.insert(task, summaries.into_iter().map(|run| lean(run, test)).collect());
        if open.tasks.len() == self.tasks_of(&variant) {
            let Some(Open { setup, mut tasks }) = taken.open.remove(&at) else { return Ok(true) };
            if let Some(first) = tasks.values_mut().flatten().next() {
                first.setup = Some(setup);
            }
            let (series, decisions) = (Vec::new(), Vec::new());
            let run = |summary| Finished {
                case,
                control,
                signal,
                summary,
                series: series.clone(),
                decisions: decisions.clone(),
            };
            let finished: Vec<Finished> = tasks.into_values().flatten().map(run).collect();
            let row = rows(&plan, &finished).into_iter().next();
            taken.rows.extend(row.map(|row| (at, row)));
            taken.runs.insert(at, runs(&plan, &finished)?);
        }
        Ok(true)
    }
}

#[pymethods]
impl Sweep {
    #[new]
    #[pyo3(signature = (scenarios, cc, seeds, sweep, signal, on, law, out, resume))]
    #[expect(clippy::too_many_arguments, reason = "those of narrows.sweep, which has them by name")]
    fn new(
        py: Python<'_>,
        scenarios: &Bound<'_, PyAny>,
        cc: &Bound<'_, PyAny>,
        seeds: &Bound<'_, PyAny>,
        sweep: Option<&Bound<'_, PyDict>>,
        signal: Option<&Bound<'_, PyAny>>,
        on: &Bound<'_, PyAny>,
        law: Option<PathBuf>,
        out: Option<PathBuf>,
        resume: bool,
    ) -> PyResult<Sweep> {
        let named = at_once(py, || Named::of(scenarios, cc, seeds, sweep, signal, on, law))?;
        let work = |stop: &Arc<AtomicBool>| {
            let inputs = named.inputs(stop)?;
            let plan = inputs.plan(named.seeds, 1, SeriesOf::None);
            let hosts =
                plan.hosts.iter().map(|id| host(id.as_str())).collect::<Result<Vec<_>, _>>()?;
            let mut variants: Vec<Variant> = Vec::new();
            let mut tasks = 0;
            for (case, of) in plan.cases.iter().enumerate() {
                if stop.load(Ordering::Relaxed) {
                    return Err(Failure::Interrupted);
                }
                if of.scenario.test.is_none() {
                    let message = "no flow is under test; expected a field test = \"FLOW\"";
                    return Err(Failure::of(&of.scenario.name, message));
                }
                for &control in plan.controls {
                    for host in &hosts {
                        let job = Job { control: Some(control), ..Job::new(&of.scenario, stop) };
                        host.check(&job)?;
                        if host.real_time() {
                            let message = format!(
                                "{} runs in real time on one machine; expected compare(), or sim",
                                host.id()
                            );
                            return Err(Failure::of("on", message));
                        }
                    }
                    for signal in plan.signals_of(control) {
                        of.scenario.under(control, signal.map(|signal| plan.signals[signal]))?;
                        for &host in &hosts {
                            let each = (TASK_S / host.seconds(&of.scenario).max(1e-3)).floor();
                            let each = (each as u64).clamp(1, plan.seeds.count());
                            let host = host.id();
                            variants.push(Variant {
                                case,
                                control,
                                signal,
                                host,
                                task: tasks,
                                each,
                            });
                            tasks += plan.seeds.count().div_ceil(each) as usize;
                        }
                    }
                }
            }
            let taken = Mutex::new(Taken { tasks: vec![false; tasks], ..Taken::default() });
            let sweep = Sweep {
                inputs,
                named,
                variants,
                tasks,
                out,
                taken,
                last: Mutex::default(),
                stop: AtomicBool::new(false),
            };
            if let Some(out) = &sweep.out {
                sweep.open(out, resume, stop)?;
            }
            Ok(sweep)
        };
        wait(py, work, |_| Ok(()))
    }

    /// The number of tasks.
    fn __len__(&self) -> usize {
        self.tasks
    }

    /// The number of runs.
    #[getter]
    fn runs(&self) -> u64 {
        self.variants.len() as u64 * self.named.seeds.count()
    }

    /// The number of tasks whose results are there.
    #[getter]
    fn taken(&self) -> usize {
        self.lock().count
    }

    /// Are the results of a task there?
    fn has(&self, task: usize) -> bool {
        self.lock().tasks.get(task).copied().unwrap_or(false)
    }

    /// What a worker is sent for a task.
    fn task(&self, py: Python<'_>, task: usize) -> PyResult<String> {
        at_once(py, || {
            if task >= self.tasks {
                return Err(Failure::of(
                    "task",
                    format!("expected one below {}, found {task}", self.tasks),
                ));
            }
            let (at, variant, first, last) = self.seeds(task);
            let plan = self.plan();
            let Variant { case, control, signal, host, .. } = variant;
            let signal = signal.map(|signal| plan.signals[signal]);
            let case = &plan.cases[case];
            let mut made = self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let scenario = match made.take().filter(|(of, _)| *of == at) {
                Some((_, scenario)) => scenario,
                None => Made::whole(&*case.scenario.under(control, signal)?),
            };
            *made = Some((at, scenario.clone()));
            let task = Task {
                build: program()?,
                version: env!("CARGO_PKG_VERSION").into(),
                scenario,
                control: control.to_string(),
                signal: signal.map(|signal| signal.name().into()),
                set: case.set.clone(),
                host,
                first,
                last,
                law: user::loaded()
                    .filter(|_| case.scenario.takes_user_law(&[control]))
                    .map(|law| (law.header().to_owned(), law.sha256().to_owned())),
                file: self.file(task),
            };
            serde_json::to_string(&task).map_err(|error| Failure::of("task", error))
        })
    }

    /// Takes the results of a task; false if they were there already.
    fn accept(&self, py: Python<'_>, task: usize, results: &str) -> PyResult<bool> {
        at_once(py, || {
            let summaries: Vec<Summary> = serde_json::from_str(results).map_err(|error| {
                Failure::of("sweep", format!("expected the results of task {task}: {error}"))
            })?;
            if task >= self.tasks {
                return Err(Failure::of(
                    "task",
                    format!("expected one below {}, found {task}", self.tasks),
                ));
            }
            self.take(task, summaries)
        })
    }

    /// Ends the tasks of this process.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The comparison, once all results are there.
    fn comparison(&self, py: Python<'_>) -> PyResult<Comparison> {
        at_once(py, || {
            let taken = self.lock();
            if taken.count != self.tasks {
                let message = format!("{} of {} tasks are done", taken.count, self.tasks);
                return Err(Failure::of("sweep", message));
            }
            let rows: Vec<Row> = taken.rows.values().cloned().collect();
            let runs = taken.runs.values().cloned().collect();
            Ok(Comparison::new(Results::of_rows(self.plan().cases, rows)?, runs))
        })
    }
}

/// Does a task; returns its results. A task of this process ends when its sweep does.
#[pyfunction]
#[pyo3(signature = (task, sweep=None))]
pub fn work(py: Python<'_>, task: &str, sweep: Option<Py<Sweep>>) -> PyResult<String> {
    let task: Task = at_once(py, || {
        #[derive(Deserialize)]
        struct Build {
            build: String,
            version: String,
        }
        let wrong = |error: serde_json::Error| {
            Failure::of("task", format!("expected a task of narrows: {error}"))
        };
        let Build { build, version } = serde_json::from_str(task).map_err(wrong)?;
        if build != program()? {
            let ours = env!("CARGO_PKG_VERSION");
            let other = if version == ours { "another build" } else { "another version" };
            let message = format!(
                "the client has narrows {version} and this worker {ours}, {other}; expected the same wheel on all"
            );
            return Err(Failure::of("narrows", message));
        }
        let task: Task = serde_json::from_str(task).map_err(wrong)?;
        if let Some((header, sha256)) = &task.law {
            if user::loaded().is_none() {
                law::load(Some(header))?;
            }
            let law = user::loaded().filter(|law| law.sha256() != sha256);
            if let Some(law) = law {
                let there = law.header().display();
                let message = format!(
                    "this worker has another law or version loaded, of {there}; expected the client's, in workers that were restarted since"
                );
                return Err(Failure::at(header, message));
            }
        }
        Ok(task)
    })?;
    let look = |_: Python<'_>| match &sweep {
        Some(sweep) if sweep.get().stop.load(Ordering::Relaxed) => {
            Err(PyKeyboardInterrupt::new_err(()))
        }
        _ => Ok(()),
    };
    wait(py, |stop| done(&task, stop), look)
}

fn done(task: &Task, stop: &AtomicBool) -> Result<String, Failure> {
    let host: &dyn Host = host(task.host.as_str())?;
    let scenario = task.scenario.load(&Edits::default())?;
    let control = task.control.parse().map_err(|error: String| Failure::of("cc", error))?;
    let setup = Setup::of(&scenario, &[control]);
    let mut summaries = Vec::new();
    for seed in task.first..=task.last {
        let job = Job { control: Some(control), seed, ..Job::new(&scenario, stop) };
        let mut run = run_on(host, job)?;
        run.summary.setup = Some(setup.clone());
        summaries.push(run.summary);
    }
    let json = |value: &Summary| serde_json::to_string(value);
    let texts: Vec<String> = summaries
        .iter()
        .map(json)
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::of("summary", error))?;
    if let Some(file) = &task.file {
        let of =
            |summary| tables::RunOf { set: &task.set, signal: task.signal.as_deref(), summary };
        let each: Vec<_> = summaries.iter().map(of).collect();
        let table = tables::with_text(&tables::runs(&each)?, SUMMARY, &texts)?;
        write(file, |to| tables::write_parquet(&table, to))?;
    }
    Ok(format!("[{}]", texts.join(",")))
}

/// Writes a file of the data set, whole or not at all.
fn write(
    file: &Path,
    content: impl FnOnce(&mut File) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let io = |error: std::io::Error| Failure::at(file, format!("cannot write: {error}"));
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut part = tempfile::Builder::new();
    // Others may read it as far as the umask lets them.
    part.prefix(PART).permissions(Permissions::from_mode(0o666));
    let mut part = part.tempfile_in(folder).map_err(io)?;
    content(part.as_file_mut()).map_err(io)?;
    part.persist(file).map_err(|error| io(error.error))?;
    Ok(())
}

/// Is a file one that is, or was, being written?
fn is_part(entry: &fs::DirEntry) -> bool {
    entry.file_name().to_string_lossy().starts_with(PART)
}
