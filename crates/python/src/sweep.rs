//! A comparison in tasks, which any worker can do: another process, another machine.
//!
//! The client has a [`Sweep`]: it makes the tasks one after the other and takes their results in any order, each
//! once. A task is some runs of one variant, which is a scenario under a control with a signal on a host, so
//! that a row is made, and its runs forgotten, once its last task is done. The scenario of a point is made for its
//! tasks, for its results, and to check it before that; none is kept. The rows are those that one machine makes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use narrows_cli::compare::Choice;
use narrows_lab::{
    Algorithm, Case, Edits, Finished, Host, HostId, Job, Made, Point, Row, Scenario, SeriesOf,
    Setup, Summary, host, program, rows, run as run_on, sha256, tables,
};
use narrows_laws::user;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::{Deserialize, Serialize};

use crate::compare::{Comparison, Named, Swept, without_test};
use crate::error::Failure;
use crate::wait::{at_once, wait};
use crate::{law, value};

/// How long a task takes on one core, about: long beside what it costs to hand it on, short beside a worker's
/// life.
const TASK_S: f64 = 2.0;

/// The file that says what a data set is of.
const IDENTITY: &str = "_narrows.json";

/// How the name of a file begins that is being written, and how old it is if its writer is gone.
const PART: &str = "_part-";
const STALE: Duration = Duration::from_secs(3600);

/// How many points are checked before the first task is made, and how many more at a time: in some 40 ms.
const FIRST: usize = 1000;
const MORE: usize = 100;

/// How many runs a piece of the table of runs has at least.
const PIECE: u64 = 1024;

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
    set: Vec<Point>,
    host: HostId,
    first: u64,
    last: u64,
    /// The user's law: its header, and which version of it.
    law: Option<(PathBuf, String)>,
    /// The file that its results go to.
    file: Option<PathBuf>,
}

/// What runs a case, and how.
#[derive(Clone, Copy)]
struct Kind {
    control: Algorithm,
    signal: Option<usize>,
    host: &'static dyn Host,
}

/// The tasks of a variant: which is its first, and how many runs each has.
#[derive(Clone, Copy)]
struct Tasks {
    first: usize,
    each: u64,
}

/// The results of a variant's tasks, what they are of, and the setup that they must have.
struct Open {
    case: Arc<Case>,
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

/// The runs of a variant, without what the table of runs does not show.
struct Shown {
    set: Vec<Point>,
    signal: Option<&'static str>,
    runs: Vec<Summary>,
}

/// What has come back.
#[derive(Default)]
struct Taken {
    /// By variant, of those that are not complete: the results of its tasks.
    open: BTreeMap<usize, Open>,
    rows: BTreeMap<usize, Row>,
    /// By piece of the table of runs and variant, of pieces that are not complete.
    shown: BTreeMap<usize, BTreeMap<usize, Shown>>,
    runs: BTreeMap<usize, arrow_array::RecordBatch>,
    /// The first case of each scenario, by name, and its index: what a report says of its scenario is said of this.
    cases: BTreeMap<String, (usize, Arc<Case>)>,
    tasks: Vec<bool>,
    count: usize,
    /// All of it, once it is complete.
    whole: Option<Arc<Swept>>,
}

/// How far the points are checked.
#[derive(Default)]
struct Checked {
    /// Those before this one.
    to: usize,
    /// Hashes of what was checked before the first task.
    hashes: Vec<String>,
}

/// A comparison in tasks.
#[pyclass(frozen, module = "narrows._narrows")]
pub struct Sweep {
    choice: Choice,
    named: Named,
    kinds: Vec<Kind>,
    /// By variant; none where each has one task of one run.
    split: Vec<Tasks>,
    tasks: usize,
    out: Option<PathBuf>,
    checked: Mutex<Checked>,
    taken: Mutex<Taken>,
    /// The variant whose task was made last, as the next task is most likely of it, too.
    last: Mutex<Option<(usize, Arc<Case>, Made)>>,
    /// The tasks of this process are to end.
    stop: AtomicBool,
}

impl Sweep {
    fn lock(&self) -> MutexGuard<'_, Taken> {
        lock(&self.taken)
    }

    /// How many variants there are.
    fn variants(&self) -> usize {
        self.choice.count() * self.kinds.len()
    }

    /// The index of a variant's case, and how it is run.
    fn variant(&self, at: usize) -> (usize, Kind) {
        (at / self.kinds.len(), self.kinds[at % self.kinds.len()])
    }

    fn split(&self, at: usize) -> Tasks {
        self.split.get(at).copied().unwrap_or(Tasks { first: at, each: 1 })
    }

    /// The variant of a task, and the seeds.
    fn seeds(&self, task: usize) -> (usize, u64, u64) {
        let at = match self.split.is_empty() {
            true => task,
            false => self.split.partition_point(|tasks| tasks.first <= task) - 1,
        };
        let tasks = self.split(at);
        let seeds = self.named.seeds.all();
        let first = seeds.start() + (task - tasks.first) as u64 * tasks.each;
        (at, first, seeds.end().min(&(first + tasks.each - 1)).to_owned())
    }

    fn tasks_of(&self, at: usize) -> usize {
        self.named.seeds.count().div_ceil(self.split(at).each) as usize
    }

    fn signal(&self, kind: Kind) -> Option<&'static str> {
        kind.signal.map(|signal| self.choice.signals[signal].name())
    }

    /// A case that can be run as is asked.
    fn case(&self, index: usize) -> Result<Case, Failure> {
        let case = self.choice.case(index)?;
        if case.scenario.test.is_none() {
            return Err(without_test(&case.scenario));
        }
        for kind in &self.kinds {
            let job = Job { control: Some(kind.control), ..Job::new(&case.scenario, &self.stop) };
            kind.host.check(&job)?;
            self.under(&case, *kind)?;
        }
        Ok(case)
    }

    /// The scenario of a case under a control with a signal.
    fn under<'a>(&self, case: &'a Case, kind: Kind) -> Result<Cow<'a, Scenario>, Failure> {
        let signal = kind.signal.map(|signal| self.choice.signals[signal]);
        Ok(case.scenario.under(kind.control, signal)?)
    }

    /// Checks points before the first task is made, until `stop` is set: all of them where it depends on the point how
    /// many runs a task has.
    fn begin(&mut self, stop: &AtomicBool) -> Result<(), Failure> {
        let (count, seeds) = (self.choice.count(), self.named.seeds.count());
        let to = if seeds > 1 { count } else { count.min(FIRST) };
        let mut hashes = Vec::new();
        // The first point of each scenario is among them, as the data set is of what is hashed here.
        let firsts = (0..count).step_by(count / self.named.count());
        for index in (0..to).chain(firsts.filter(|&index| index >= to)) {
            if stop.load(Ordering::Relaxed) {
                return Err(Failure::Interrupted);
            }
            let case = self.case(index)?;
            if seeds > 1 {
                for kind in &self.kinds {
                    let each = (TASK_S / kind.host.seconds(&case.scenario).max(1e-3)).floor();
                    let each = (each as u64).clamp(1, seeds);
                    self.split.push(Tasks { first: self.tasks, each });
                    self.tasks += seeds.div_ceil(each) as usize;
                }
            }
            if self.out.is_some() {
                hashes.push(sha256(&(Setup::of(&case.scenario, &self.choice.controls), case)));
            }
        }
        if seeds == 1 {
            self.tasks = self.variants();
        }
        self.checked = Mutex::new(Checked { to, hashes });
        self.taken = Mutex::new(Taken { tasks: vec![false; self.tasks], ..Taken::default() });
        Ok(())
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
        let Choice { controls, signals, .. } = &self.choice;
        let hosts: Vec<HostId> = self.kinds.iter().map(|kind| kind.host.id()).collect();
        let each: Vec<u64> = self.split.iter().map(|tasks| tasks.each).collect();
        // Of the points of a long sweep that are not among them, results say what they are of.
        let points = (&lock(&self.checked).hashes, self.named.sweeps());
        let plan = sha256(&(points, controls, signals, hosts, self.named.seeds, each));
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
                write(&mark, identity.as_bytes())?;
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
            let bytes = match fs::read(&file) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(Failure::at(&file, format!("cannot read: {error}"))),
            };
            let Some(texts) = tables::read_text(&file, SUMMARY) else { continue };
            let summaries = texts.iter().map(|text| serde_json::from_str::<Summary>(text));
            if let Ok(summaries) = summaries.collect::<Result<Vec<_>, _>>() {
                let (index, kind) = self.variant(self.seeds(task).0);
                let set = self.choice.set(index);
                // Damaged, or of another run, it is not taken, and its task is done again.
                if part(&set, self.signal(kind), &summaries, &texts)? == bytes {
                    let _ = self.take(task, summaries);
                }
            }
        }
        Ok(())
    }

    /// Takes the results of a task; false if they were there.
    fn take(&self, task: usize, summaries: Vec<Summary>) -> Result<bool, Failure> {
        let (at, first, last) = self.seeds(task);
        let (index, kind) = self.variant(at);
        let Kind { control, signal, host } = kind;
        let name = control.to_string();
        let taken = &mut *self.lock();
        let mut open = match taken.open.remove(&at) {
            Some(open) => open,
            None => {
                let case = Arc::new(self.choice.case(index)?);
                let setup = Setup::of(&*self.under(&case, kind)?, &[control]);
                Open { case, setup, tasks: BTreeMap::new() }
            }
        };
        let scenario = &open.case.scenario.name;
        let right = |(summary, seed): (&Summary, u64)| {
            summary.seed == seed
                && summary.host == host.id()
                && summary.cc.as_ref() == Some(&name)
                && summary.scenario == *scenario
                && summary.setup.as_ref() == Some(&open.setup)
        };
        let all = summaries.len() as u64 == last - first + 1;
        let right = all && summaries.iter().zip(first..=last).all(right);
        let wrong = || {
            let message = format!(
                "task {task} has the results of other runs; expected those of {scenario} under {name}"
            );
            Failure::of("sweep", message)
        };
        let refused = (!right).then(wrong);
        let fresh = right && !std::mem::replace(&mut taken.tasks[task], true);
        if fresh {
            let test = open.case.scenario.test.unwrap_or_default();
            taken.count += 1;
            open.tasks.insert(task, summaries.into_iter().map(|run| lean(run, test)).collect());
        }
        if open.tasks.len() < self.tasks_of(at) {
            // What came twice, or is of other runs, opens none.
            if !open.tasks.is_empty() {
                taken.open.insert(at, open);
            }
            return refused.map_or(Ok(fresh), Err);
        }
        let Open { case, setup, mut tasks } = open;
        if let Some(first) = tasks.values_mut().flatten().next() {
            first.setup = Some(setup);
        }
        let (series, decisions) = (Vec::new(), Vec::new());
        let run = |summary| Finished {
            case: 0,
            control,
            signal,
            summary,
            series: series.clone(),
            decisions: decisions.clone(),
        };
        let finished: Vec<Finished> = tasks.into_values().flatten().map(run).collect();
        let seeds = self.named.seeds;
        let plan = self.choice.plan(std::slice::from_ref(&*case), seeds, 1, SeriesOf::None);
        let row = rows(&plan, &finished).into_iter().next();
        taken.rows.extend(row.map(|row| (at, Row { case: index, ..row })));
        let runs =
            finished.into_iter().map(|run| Summary { connections: Vec::new(), ..run.summary });
        let shown =
            Shown { set: case.set.clone(), signal: self.signal(kind), runs: runs.collect() };
        self.show(taken, at, shown)?;
        let name = case.scenario.name.clone();
        let there = taken.cases.entry(name).or_insert_with(|| (index, Arc::clone(&case)));
        if index < there.0 {
            *there = (index, case);
        }
        Ok(true)
    }

    /// Adds runs to the table of them, of which a piece is made once it is complete.
    fn show(&self, taken: &mut Taken, at: usize, shown: Shown) -> Result<(), Failure> {
        let each = PIECE.div_ceil(self.named.seeds.count()) as usize;
        let piece = at / each;
        let variants = taken.shown.entry(piece).or_default();
        variants.insert(at, shown);
        if variants.len() < each.min(self.variants() - piece * each) {
            return Ok(());
        }
        let all = taken.shown.remove(&piece).unwrap_or_default();
        let mut runs = Vec::new();
        for Shown { set, signal, runs: summaries } in all.values() {
            let one = |summary| tables::RunOf { set, signal: *signal, summary };
            runs.extend(summaries.iter().map(one));
        }
        taken.runs.insert(piece, tables::runs(&runs)?);
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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
        law: Option<&Bound<'_, PyAny>>,
        out: Option<&Bound<'_, PyAny>>,
        resume: bool,
    ) -> PyResult<Sweep> {
        let out = at_once(py, || {
            let out = value::out(out, resume)?;
            // Workers have current folders of their own.
            let absolute = |out: PathBuf| {
                std::path::absolute(&out).map_err(|error| {
                    Failure::at(&out, format!("cannot find the current folder: {error}"))
                })
            };
            out.map(absolute).transpose()
        })?;
        let named = at_once(py, || Named::of(scenarios, cc, seeds, sweep, signal, on, law))?;
        let work = |stop: &Arc<AtomicBool>| {
            let choice = named.choice()?;
            if let Some(host) = choice.hosts.iter().find(|host| host.real_time()) {
                let message = format!(
                    "{} runs in real time on one machine; expected compare(), or sim",
                    host.id()
                );
                return Err(Failure::of("on", message));
            }
            let plan = choice.plan(&[], named.seeds, 1, SeriesOf::None);
            let mut kinds = Vec::new();
            for &control in &choice.controls {
                for signal in plan.signals_of(control) {
                    kinds.extend(choice.hosts.iter().map(|&host| Kind { control, signal, host }));
                }
            }
            let mut sweep = Sweep {
                choice,
                named,
                kinds,
                split: Vec::new(),
                tasks: 0,
                out,
                checked: Mutex::default(),
                taken: Mutex::default(),
                last: Mutex::default(),
                stop: AtomicBool::new(false),
            };
            sweep.begin(stop)?;
            let out = sweep.out.clone();
            if let Some(out) = &out {
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
        self.variants() as u64 * self.named.seeds.count()
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

    /// Checks some of the points that were not checked; true if all are.
    fn check(&self, py: Python<'_>) -> PyResult<bool> {
        let work = |stop: &Arc<AtomicBool>| {
            let count = self.choice.count();
            let begin = lock(&self.checked).to.min(count);
            for index in begin..count.min(begin + MORE) {
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                self.case(index)?;
                let checked = &mut lock(&self.checked).to;
                *checked = (index + 1).max(*checked);
            }
            Ok(begin + MORE >= count)
        };
        wait(py, work, |_| Ok(()))
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
            let (at, first, last) = self.seeds(task);
            let (index, kind) = self.variant(at);
            let control = kind.control;
            let mut made = lock(&self.last);
            let (case, scenario) = match made.take() {
                Some((of, case, scenario)) if of == at => (case, scenario),
                other => {
                    let same = other.filter(|(of, ..)| self.variant(*of).0 == index);
                    let case = match same {
                        Some((_, case, _)) => case,
                        None => Arc::new(self.case(index)?),
                    };
                    let scenario = Made::whole(&*self.under(&case, kind)?);
                    (case, scenario)
                }
            };
            *made = Some((at, Arc::clone(&case), scenario.clone()));
            // Those before it had their tasks.
            let checked = &mut lock(&self.checked).to;
            *checked = (index + 1).max(*checked);
            let task = Task {
                build: program()?,
                version: env!("CARGO_PKG_VERSION").into(),
                scenario,
                control: control.to_string(),
                signal: self.signal(kind).map(Into::into),
                set: case.set.clone(),
                host: kind.host.id(),
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
            let taken = &mut *self.lock();
            if taken.count != self.tasks {
                let message = format!("{} of {} tasks are done", taken.count, self.tasks);
                return Err(Failure::of("sweep", message));
            }
            let rows = std::mem::take(&mut taken.rows);
            let cases = std::mem::take(&mut taken.cases);
            let runs = &taken.runs;
            let whole = taken.whole.get_or_insert_with(|| Arc::new(Swept::new(rows, cases, runs)));
            Ok(Comparison::of(Arc::clone(whole)))
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
                law::load_from(header)?;
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
        let bytes = part(&task.set, task.signal.as_deref(), &summaries, &texts)?;
        write(file, &bytes)?;
    }
    Ok(format!("[{}]", texts.join(",")))
}

/// A file of the data set: runs, each also whole as text.
fn part(
    set: &[Point],
    signal: Option<&str>,
    summaries: &[Summary],
    texts: &[String],
) -> Result<Vec<u8>, Failure> {
    let of = |summary| tables::RunOf { set, signal, summary };
    let each: Vec<_> = summaries.iter().map(of).collect();
    let table = tables::with_text(&tables::runs(&each)?, SUMMARY, texts)?;
    let mut bytes = Vec::new();
    let written = tables::write_parquet(&table, &mut bytes);
    written.map_err(|error| Failure::of("Parquet", error))?;
    Ok(bytes)
}

/// Writes a file of the data set, whole or not at all.
fn write(file: &Path, content: &[u8]) -> Result<(), Failure> {
    let io = |error: std::io::Error| Failure::at(file, format!("cannot write: {error}"));
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut part = tempfile::Builder::new();
    // Others may read it as far as the umask lets them.
    part.prefix(PART).permissions(Permissions::from_mode(0o666));
    let mut part = part.tempfile_in(folder).map_err(io)?;
    part.write_all(content).map_err(io)?;
    part.persist(file).map_err(|error| io(error.error))?;
    Ok(())
}

/// Is a file one that is, or was, being written?
fn is_part(entry: &fs::DirEntry) -> bool {
    entry.file_name().to_string_lossy().starts_with(PART)
}
