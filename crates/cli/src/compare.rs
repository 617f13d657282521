//! `narrows compare`.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use narrows_lab::page::PageFile;
use narrows_lab::{
    Algorithm, Case, Comparison, Edits, Finished, Host, HostId, Journal, Made, Output, Plan, Point,
    Provenance, Row, Seeds, SeriesOf, Signal, Summary, Sweep, Task, compare as run_all, control,
    detection, json, page, report, rows, series, signals, write_csv,
};

use crate::args::lab::{CompareArgs, hosts};
use crate::error::Error;
use crate::live::{OfComparison, shown};
use crate::progress::{Begun, Progress};
use crate::run::warn;
use crate::size::Size;
use crate::terminal::Screen;
use crate::{COMMIT, pages, print, quoted, stop, words};

/// The rows as `--json` shows them.
#[derive(serde::Serialize)]
struct Rows<'a> {
    rows: &'a [Row],
}

/// Most runs of a comparison: their summaries are kept until the end, about 10 kB each.
const MAX_RUNS: u64 = 200_000;

/// Longest name of a folder of runs, bytes: file systems allow 255.
const LONGEST: usize = 240;

/// What a comparison is asked to be of, by names.
pub struct Asked<'a> {
    /// The scenarios, each with its changes.
    pub scenarios: &'a [(Made, Edits)],
    /// Fields with several values.
    pub sweeps: &'a [Sweep],
    /// Congestion controls of the connection under test.
    pub cc: &'a [String],
    /// Delay signals.
    pub signals: &'a [String],
    /// Hosts.
    pub on: &'a [String],
}

/// What is asked for, by what the names mean. Its scenarios, once per point of its sweep, are made one at a time: of
/// a long sweep they are more than fit into memory.
pub struct Choice {
    /// What runs them.
    pub hosts: Vec<&'static dyn Host>,
    ids: Vec<HostId>,
    /// Congestion controls of the connection under test.
    pub controls: Vec<Algorithm>,
    /// Delay signals.
    pub signals: Vec<Signal>,
    scenarios: Vec<(Made, Edits)>,
    sweeps: Vec<Sweep>,
    /// Points of the sweep; one without.
    points: usize,
}

impl Choice {
    /// Reads the names.
    ///
    /// # Errors
    /// What is wrong of them, but for what is wrong of a scenario.
    pub fn of(asked: &Asked) -> Result<Choice, Error> {
        let hosts = hosts(asked.on)?;
        let controls = controls(asked.cc)?;
        let signals = signals(asked.signals, &controls)?;
        let points = points(asked.scenarios, asked.sweeps)?;
        let ids = hosts.iter().map(|host| host.id()).collect();
        let (scenarios, sweeps) = (asked.scenarios.to_vec(), asked.sweeps.to_vec());
        Ok(Choice { hosts, ids, controls, signals, scenarios, sweeps, points })
    }

    /// How many cases there are.
    pub fn count(&self) -> usize {
        self.scenarios.len() * self.points
    }

    /// A case by its index: all points of the first scenario, then those of the next; the last axis is the fastest.
    ///
    /// # Errors
    /// What is wrong of the scenario at this point.
    pub fn case(&self, index: usize) -> Result<Case, Error> {
        let (made, edits) = &self.scenarios[index / self.points];
        let set = self.set(index);
        let mut edits = edits.clone();
        edits.set.extend(set.iter().map(|point| (point.field.clone(), point.value.clone())));
        let without = || {
            let scenario = made.load(&self.scenarios[index / self.points].1)?;
            scenario.check_law_settings(&self.controls)
        };
        let of = |error| of_sweep(error, &set, || without().is_ok());
        let scenario = made.load(&edits).map_err(of)?;
        scenario.check_law_settings(&self.controls).map_err(of)?;
        Ok(Case { scenario, set })
    }

    /// What a case sets by the sweep.
    pub fn set(&self, index: usize) -> Vec<Point> {
        let mut left = index % self.points;
        let mut set = Vec::new();
        for Sweep { field, values } in self.sweeps.iter().rev() {
            set.push(Point::new(field, &values[left % values.len()]));
            left /= values.len();
        }
        set.reverse();
        set
    }

    /// What to run of some cases with these seeds, so many runs at a time, and whose series to keep.
    pub fn plan<'a>(
        &'a self,
        cases: &'a [Case],
        seeds: Seeds,
        jobs: usize,
        series: SeriesOf,
    ) -> Plan<'a> {
        let Choice { ids: hosts, controls, signals, .. } = self;
        Plan { cases, controls, signals, hosts, seeds, jobs, series }
    }
}

/// What a comparison is of.
pub struct Inputs {
    choice: Choice,
    cases: Vec<Case>,
}

impl Inputs {
    /// Reads the scenarios and names of the command line.
    ///
    /// # Errors
    /// What is wrong of them.
    pub(crate) fn of(args: &CompareArgs) -> Result<Inputs, Error> {
        args.edit.load_law()?;
        let axes = args.sweep.iter().map(|axis| axis.parse::<Sweep>());
        let axes: Vec<Sweep> =
            axes.collect::<Result<_, _>>().map_err(|message| Error::input("--sweep", message))?;
        let edits = args.edit.edits()?;
        let with = |name: &String| Ok((Made::named(name)?, edits.clone()));
        let scenarios = args.scenarios.iter().map(with).collect::<Result<Vec<_>, Error>>()?;
        let CompareArgs { cc, signal: signals, on, .. } = args;
        let asked = Asked { scenarios: &scenarios, sweeps: &axes, cc, signals, on };
        // Ctrl-C ends a command that has not begun to write.
        Inputs::new(&asked, &AtomicBool::new(false))
    }

    /// Reads the scenarios and names, until `stop` is set.
    ///
    /// # Errors
    /// What is wrong of them; it was stopped.
    pub fn new(asked: &Asked, stop: &AtomicBool) -> Result<Inputs, Error> {
        let choice = Choice::of(asked)?;
        let cases = cases(&choice, stop)?;
        Ok(Inputs { choice, cases })
    }

    /// What to run with these seeds, so many runs at a time, and whose series to keep.
    pub fn plan(&self, seeds: Seeds, jobs: usize, series: SeriesOf) -> Plan<'_> {
        self.choice.plan(&self.cases, seeds, jobs, series)
    }

    /// Where the results of the plan come from, made by `command`.
    ///
    /// # Errors
    /// This program cannot be read.
    pub fn provenance(&self, plan: &Plan, command: &[String]) -> Result<Provenance, Error> {
        let real_time = self.choice.hosts.iter().any(|host| host.real_time());
        let provenance = Provenance::new("compare", plan.identity(), real_time, COMMIT, command);
        Ok(provenance.of_comparison(Comparison::of(plan)?))
    }
}

/// What is to become of a comparison.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The folder of its results.
    pub out: Option<&'a Path>,
    /// What is there already is gone on with.
    pub resume: bool,
    /// A page for a browser.
    pub report: Option<&'a Path>,
    /// The folder of its plots for a paper.
    pub plots: Option<&'a Path>,
    /// However much memory and time it takes.
    pub force: bool,
    /// What a terminal shows while it runs.
    pub shown: Shown,
}

/// What a terminal shows of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Nothing.
    Nothing,
    /// A line: how far they are.
    Progress,
    /// On all of it, what they have shown so far.
    Live,
}

/// What has become of it.
pub struct Compared {
    /// All runs.
    pub finished: Vec<Finished>,
    /// Their results.
    pub results: Results,
    /// The files that were written, for people.
    files: String,
}

/// The plan of the arguments.
pub(crate) fn plan_of<'a>(inputs: &'a Inputs, args: &CompareArgs) -> Result<Plan<'a>, Error> {
    let series = if args.out.is_some() { args.series_of } else { SeriesOf::None };
    Ok(inputs.plan(args.seeds()?, args.jobs, series))
}

/// Runs all and shows the table.
pub(crate) fn compare(args: &CompareArgs) -> Result<(), Error> {
    if args.live {
        Screen::check()?;
    }
    let inputs = Inputs::of(args)?;
    let plan = plan_of(&inputs, args)?;
    let provenance = inputs.provenance(&plan, words())?;
    let wanted = Wanted {
        out: args.out.as_deref(),
        resume: args.resume,
        report: args.report.as_deref(),
        plots: args.plots.as_deref(),
        force: args.force,
        shown: if args.live { Shown::Live } else { Shown::Progress },
    };
    let made = make(&inputs, plan, &provenance, wanted, &stop::on_signal, &|_| ())?;
    made.results.show(args, &made.files)
}

/// Runs all of the plan, `done` each, and writes what is wanted.
///
/// # Errors
/// What is wrong of the plan, in a run, or with a file; [`narrows_lab::Error::Interrupted`] once the flag of
/// `stop` is set, which is asked for before the first file is made.
pub fn make(
    inputs: &Inputs,
    plan: Plan,
    provenance: &Provenance,
    wanted: Wanted,
    stop: &dyn Fn() -> Result<Arc<AtomicBool>, Error>,
    done: &(dyn Fn(&Finished) + Sync),
) -> Result<Compared, Error> {
    let Inputs { choice: Choice { hosts, .. }, cases } = inputs;
    let rows_each: usize = plan.controls.iter().map(|&of| plan.signals_of(of).count()).sum();
    let times = rows_each as u64 * plan.seeds.count();
    let runs = cases.len() as u64 * hosts.len() as u64 * times;
    if runs > MAX_RUNS {
        let message = format!("{runs} runs are too many at once; expected at most {MAX_RUNS}");
        return Err(Error::input("compare", message));
    }
    let mut stems = HashSet::new();
    let first = plan.tasks().into_iter().filter(|task| task.seed == plan.seeds.first());
    for stem in first.map(|task| stem(&plan, &task)) {
        let long = stem.split('/').find(|part| part.len() > LONGEST);
        if let (Some(long), true) = (long, wanted.out.is_some()) {
            let start: String = long.chars().take(20).collect();
            let message = format!(
                "{start}..: too long for the name of a folder; expected at most {LONGEST} bytes"
            );
            return Err(Error::input("--out", message));
        }
        if !stems.insert(stem.clone()) {
            let message = format!("two of its values have the same name of files, {stem}");
            return Err(Error::input("--sweep", message));
        }
    }
    let finished = match wanted.out {
        Some(folder) if wanted.resume => provenance.finished(folder)?,
        _ => None,
    };
    let left = plan.seeds.count() - finished.map_or(0, Seeds::count);
    let scenarios = || cases.iter().map(|case| &case.scenario);
    let size = Size::of(scenarios(), hosts, rows_each as u64 * left, plan.jobs);
    let kept = match plan.series {
        SeriesOf::All => left,
        SeriesOf::First => 1,
        SeriesOf::None => 0,
    };
    let kept = rows_each as u64 * hosts.len() as u64 * kept;
    size.with_series(scenarios(), kept).check(wanted.force)?;
    for one in cases.chunk_by(|a, b| a.scenario.name == b.scenario.name) {
        warn(&one[0].scenario);
    }
    // Before the folder is created, which Ctrl-C removes again.
    let stop = stop()?;
    let mut before = Vec::new();
    let open = |folder: &Path| -> Result<Output, Error> {
        match finished {
            Some(seeds) => before = finished_in(folder, &plan, seeds)?,
            None if wanted.resume => {}
            None => return Ok(Output::of(folder, provenance)?),
        }
        Ok(Output::onto(folder, provenance)?)
    };
    let output = wanted.out.map(open).transpose()?;
    let page_file = wanted.report.map(PageFile::new).transpose()?;
    let folder = |folder: &Path| match wanted.resume {
        // Of fewer seeds, too.
        true => provenance.finished(folder).and_then(|_| Output::onto(folder, provenance)),
        false => Output::of(folder, provenance),
    };
    let plots = wanted.plots.map(folder).transpose()?;
    let journal = |output: &Output| Journal::open(output.target(), &plan, wanted.resume);
    let mut journal = output.as_ref().map(journal).transpose()?;
    let there: HashSet<Task> = before.iter().map(Finished::task).collect();
    journal.iter_mut().for_each(|journal| journal.also(std::mem::take(&mut before)));
    let run = |progress: &Progress, done: &(dyn Fn(&Finished) + Sync)| {
        run_all_of(plan, hosts, times, journal.as_ref(), &stop, progress, done)
    };
    let finished = match wanted.shown {
        Shown::Nothing => run(&Progress::hidden(plan.jobs), done),
        Shown::Progress => run(&Progress::new("{wide_bar} {msg}{left}", "", plan.jobs), done),
        Shown::Live => {
            let view = OfComparison::new(&plan);
            let also = |run: &Finished| {
                view.see(run);
                done(run);
            };
            shown(&view, &stop, || run(&view.progress, &also))?
        }
    }?;
    let results = Results::of(&plan, &finished)?;
    let report = page_file.zip(wanted.report);
    let mut files = results.pages(&plan, &finished, provenance, report, plots)?;
    let Some(mut output) = output else { return Ok(Compared { finished, results, files }) };
    results.write(&mut output)?;
    for run in finished.iter().filter(|run| !there.contains(&run.task())) {
        write_run(&mut output, &stem(&plan, &run.task()), run)?;
    }
    // Another seed is the first now.
    for task in there.iter().filter(|task| !plan.series.keeps(task.seed, plan.seeds)) {
        output.remove(&format!("{}.csv", stem(&plan, task)));
    }
    files = written(&plan, &output, &finished) + &files;
    output.commit()?;
    journal.map_or(Ok(()), Journal::remove)?;
    Ok(Compared { finished, results, files })
}

/// The results of a comparison, in each of their forms.
pub struct Results {
    /// The rows.
    pub rows: Vec<Row>,
    /// For people.
    pub report: String,
    /// `rows.json`.
    pub json: String,
    /// `rows.csv`.
    pub csv: Vec<u8>,
}

impl Results {
    /// Those of all runs of a plan.
    ///
    /// # Errors
    /// None in practice: they are written to memory.
    pub fn of(plan: &Plan, finished: &[Finished]) -> Result<Results, Error> {
        Results::of_rows(plan.cases, rows(plan, finished))
    }

    /// The same of rows that are made.
    ///
    /// # Errors
    /// As of [`Results::of`].
    pub fn of_rows(cases: &[Case], rows: Vec<Row>) -> Result<Results, Error> {
        let (json, csv) = (Results::json_of(&rows), Results::csv_of(&rows)?);
        Ok(Results { report: report(cases, &rows), json, csv, rows })
    }

    /// `rows.json` of some rows.
    pub fn json_of(rows: &[Row]) -> String {
        json(&Rows { rows })
    }

    /// `rows.csv` of some rows.
    ///
    /// # Errors
    /// As of [`Results::of`].
    pub fn csv_of(rows: &[Row]) -> Result<Vec<u8>, Error> {
        let mut csv = Vec::new();
        write_csv(rows, &mut csv).map_err(narrows_lab::Error::io("rows.csv".as_ref(), "write"))?;
        Ok(csv)
    }

    /// Writes all forms.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write(&self, output: &mut Output) -> Result<(), narrows_lab::Error> {
        output.write("report.txt", |to| to.write_all(self.report.as_bytes()))?;
        output.write("rows.json", |to| to.write_all(self.json.as_bytes()))?;
        output.write("rows.csv", |to| to.write_all(&self.csv))
    }

    /// Prints the form that the arguments ask for; the report with `files` and what to do next.
    fn show(&self, args: &CompareArgs, files: &str) -> Result<(), Error> {
        if args.json {
            return print(&self.json);
        }
        if args.csv {
            return print(&String::from_utf8_lossy(&self.csv));
        }
        let last = self.rows.last().map_or(&[][..], |row| &row.set);
        print(&format!("{}{files}{}", self.report, next_steps(args, last)))
    }

    /// Writes the page and the plots that are wanted; returns what to say of them.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn pages(
        &self,
        plan: &Plan,
        finished: &[Finished],
        provenance: &Provenance,
        report: Option<(PageFile, &Path)>,
        plots: Option<Output>,
    ) -> Result<String, Error> {
        if report.is_none() && plots.is_none() {
            return Ok(String::new());
        }
        pages::written(report, plots, &page::compare(provenance, plan, &self.rows, finished))
    }
}

/// The runs of a plan with these seeds whose results stand in `folder`, without their series and decisions,
/// which are in files of their own. One that lacks a file runs again.
///
/// # Errors
/// A file is there and cannot be read.
pub(crate) fn finished_in(
    folder: &Path,
    plan: &Plan,
    seeds: Seeds,
) -> Result<Vec<Finished>, Error> {
    let mut all = Vec::new();
    let written = Provenance::read(folder);
    let had = |name: &str| written.as_ref().is_some_and(|written| written.has(name));
    for task in plan.tasks() {
        let stem = stem(plan, &task);
        let path = |extension| folder.join(format!("{stem}.{extension}"));
        let lacks_series = plan.series.keeps(task.seed, plan.seeds) && !path("csv").exists();
        let lacks_decisions =
            had(&format!("{stem}.decisions.csv")) && !path("decisions.csv").exists();
        let lacks = lacks_series || lacks_decisions || !path("json").exists();
        if !seeds.all().contains(&task.seed) || lacks {
            continue;
        }
        let read = |extension| -> Result<Vec<u8>, Error> {
            let (path, name) = (path(extension), format!("{stem}.{extension}"));
            let bytes = std::fs::read(&path).map_err(narrows_lab::Error::io(&path, "read"))?;
            if let Some(written) = written.as_ref().filter(|_| had(&name)) {
                written.check_file(folder, &name, &bytes)?;
            }
            Ok(bytes)
        };
        for extension in ["csv", "decisions.csv"] {
            if had(&format!("{stem}.{extension}")) && path(extension).exists() {
                read(extension)?;
            }
        }
        let (path, text) = (path("json"), read("json")?);
        let wrong = |message: String| Error::input(path.display().to_string(), message);
        let summary: Summary =
            serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        let Task { case, control, signal, .. } = task;
        let (series, decisions) = (Vec::new(), Vec::new());
        let run = Finished { case, control, signal, summary, series, decisions };
        let Summary { scenario, cc, host, seed, .. } = &run.summary;
        let (of, by) = (&plan.cases[case].scenario.name, control.to_string());
        if run.task() != task || scenario != of || cc.as_ref() != Some(&by) {
            let by = cc.as_deref().unwrap_or("-");
            return Err(wrong(format!("is of {scenario} under {by}, seed {seed} on {host}")));
        }
        all.push(run);
    }
    Ok(all)
}

/// Each once.
pub(crate) fn controls(names: &[String]) -> Result<Vec<Algorithm>, Error> {
    let mut controls = Vec::new();
    for name in names {
        let control = control(name)?;
        if controls.contains(&control) {
            return Err(Error::input("--cc", format!("{} is named twice", name.trim())));
        }
        controls.push(control);
    }
    Ok(controls)
}

/// Runs all, `times` each case on each host, and says how far it is.
fn run_all_of(
    plan: Plan,
    hosts: &[&dyn Host],
    times: u64,
    journal: Option<&Journal>,
    stop: &AtomicBool,
    progress: &Progress,
    also: &(dyn Fn(&Finished) + Sync),
) -> Result<Vec<Finished>, narrows_lab::Error> {
    let runs = plan.cases.len() as u64 * hosts.len() as u64 * times;
    let host = |task: &Task| hosts.iter().find(|host| host.id() == task.host);
    let real_time = |task: &Task| host(task).is_some_and(|host| host.real_time());
    // A run of nothing costs something, too.
    let cost = |task: &Task| {
        1e-3 + host(task).map_or(0.0, |host| host.seconds(&plan.cases[task.case].scenario))
    };
    let there = journal.map_or(&[][..], Journal::earlier).iter().map(Finished::task);
    let there: HashSet<Task> = there.collect();
    let sum = |tasks: &[Task]| tasks.iter().map(cost).sum::<f64>();
    let (real, simulated): (Vec<Task>, Vec<Task>) = plan.tasks().into_iter().partition(real_time);
    let fresh: Vec<Task> = real.iter().filter(|task| !there.contains(task)).copied().collect();
    // In real time it is known how long a run takes; those come after the simulator's.
    let each = 1.0 / plan.jobs.max(1) as f64;
    let in_real_time = Begun { cost_s: sum(&real), each: Some(each), after_s: 0.0 };
    let after_s = each * sum(&fresh);
    progress.say(&format!("0/{runs} runs"));
    match simulated[..] {
        [] => progress.begin(in_real_time),
        _ => progress.begin(Begun { cost_s: sum(&simulated), each: None, after_s }),
    }
    let (count, all_simulated) = (AtomicU64::new(0), simulated.len() as u64);
    let done = |run: &Finished| {
        let count = 1 + count.fetch_add(1, Ordering::Relaxed);
        progress.say(&format!("{count}/{runs} runs"));
        let task = run.task();
        match there.contains(&task) {
            true => progress.there(cost(&task)),
            false => progress.ran(cost(&task)),
        }
        if count == all_simulated && !real.is_empty() {
            progress.begin(in_real_time);
        }
        also(run);
    };
    let finished = run_all(plan, journal, stop, &done);
    progress.end();
    finished.map_err(|error| match journal {
        Some(journal) => journal.interrupted(error, runs),
        None => error,
    })
}

/// The scenarios, in a sweep once per point.
fn cases(choice: &Choice, stop: &AtomicBool) -> Result<Vec<Case>, Error> {
    let mut cases: Vec<Case> = Vec::new();
    let mut seen = HashSet::new();
    for index in 0..choice.count() {
        if stop.load(Ordering::Relaxed) {
            return Err(narrows_lab::Error::Interrupted.into());
        }
        let case = choice.case(index)?;
        if !seen.insert((case.scenario.name.clone(), index % choice.points)) {
            return Err(twice(&case.scenario.name));
        }
        cases.push(case);
    }
    Ok(cases)
}

/// Two scenarios have one name.
pub fn twice(name: &str) -> Error {
    Error::input(name, "two scenarios of this name; their results would be merged")
}

/// How many points the sweep of some scenarios has; one without axes.
fn points(scenarios: &[(Made, Edits)], axes: &[Sweep]) -> Result<usize, Error> {
    for (index, axis) in axes.iter().enumerate() {
        if axes[..index].iter().any(|other| other.field == axis.field) {
            let message = "is swept twice; one --sweep has all values of a field";
            return Err(Error::input(format!("--sweep {}", axis.field), message));
        }
    }
    let sizes = axes.iter().map(|axis| axis.values.len() as u64);
    let count = sizes.fold(scenarios.len() as u64, u64::saturating_mul);
    if count > MAX_RUNS {
        let message = format!("{count} points are too many; expected at most {MAX_RUNS}");
        return Err(Error::input("--sweep", message));
    }
    let set =
        |field: &String| scenarios.iter().flat_map(|(_, of)| &of.set).any(|(of, _)| of == field);
    if let Some(axis) = axes.iter().find(|axis| set(&axis.field)) {
        let message = "is swept, too; expected one of --set and --sweep for a field";
        return Err(Error::input(format!("--set {}", axis.field), message));
    }
    Ok(axes.iter().map(|axis| axis.values.len()).product())
}

/// What is wrong with a value of a sweep, which is set as `--set` sets it; `fits`: without it nothing is.
fn of_sweep(
    error: narrows_lab::Error,
    set: &[Point],
    fits: impl Fn() -> bool,
) -> narrows_lab::Error {
    use narrows_lab::Error::Input;
    let swept = |place: &str| {
        let of = |point: &Point| place.strip_prefix("--set ")?.strip_prefix(&point.field[..]);
        set.iter().filter_map(of).any(|rest| rest.is_empty() || rest.starts_with('='))
    };
    match error {
        Input { place, message } if swept(&place) => {
            Input { place: place.replacen("--set", "--sweep", 1), message }
        }
        // At another field, which does not go with it.
        Input { place, message } if !set.is_empty() && fits() => {
            let point = |of: &Point| format!("{}={}", of.field, of.value);
            let points: Vec<String> = set.iter().map(point).collect();
            Input {
                place: format!("--sweep {}", points.join(" ")),
                message: format!("{place}: {message}"),
            }
        }
        other => other,
    }
}

fn write_run(output: &mut Output, stem: &str, run: &Finished) -> Result<(), narrows_lab::Error> {
    output.write(&format!("{stem}.json"), |to| to.write_all(json(&run.summary).as_bytes()))?;
    if !run.decisions.is_empty() {
        let name = format!("{stem}.decisions.csv");
        output.write(&name, |to| detection::write_csv(&run.decisions, to))?;
    }
    if run.series.is_empty() {
        return Ok(());
    }
    output.write(&format!("{stem}.csv"), |to| series::write_csv(&run.series, to))
}

/// The path of a run's files without extension, unique in a comparison.
pub(crate) fn stem(plan: &Plan, task: &Task) -> String {
    let case = &plan.cases[task.case];
    let mut stem = format!("runs/{}", case.scenario.name);
    for point in &case.set {
        let value: String = point
            .value
            .chars()
            .map(|c| if c.is_alphanumeric() || c == '.' { c } else { '_' })
            .collect();
        let _ = write!(stem, "/{}={value}", point.field);
    }
    if plan.hosts != [HostId::SIM] {
        let _ = write!(stem, "/{}", task.host);
    }
    // A colon has a meaning for rsync and make.
    let cc = task.control.to_string().replace(':', "-");
    let _ = write!(stem, "/{cc}");
    if let Some(signal) = task.signal {
        let _ = write!(stem, "/{}", plan.signals[signal].name());
    }
    let _ = write!(stem, "/seed-{}", task.seed);
    stem
}

/// What is in the folder of results.
fn written(plan: &Plan, output: &Output, finished: &[Finished]) -> String {
    let part = |there: bool, name: &'static str| if there { name } else { "" };
    let below = [
        "/FIELD=VALUE".repeat(plan.cases[0].set.len()),
        part(plan.hosts != [HostId::SIM], "/HOST").into(),
        "/CC".into(),
        part(!plan.signals.is_empty(), "/SIGNAL").into(),
    ];
    let decided = finished.iter().any(|run| !run.decisions.is_empty());
    let decisions =
        part(decided, "    seed-N.decisions.csv             its detector's decisions\n");
    let seed = plan.seeds.first();
    let series = match plan.series {
        SeriesOf::All => "    seed-N.csv                       its series, every 100 ms\n".into(),
        SeriesOf::First => {
            let name = format!("seed-{seed}.csv");
            format!("    {name:<32} the series of this seed, every 100 ms\n")
        }
        SeriesOf::None => String::new(),
    };
    format!(
        "\nFiles in {}:\n  \
         report.txt                         the tables above\n  \
         rows.csv, rows.json                all metrics of each row\n  \
         provenance.json                    command, version, start\n  \
         runs/SCENARIO{}/\n    \
         seed-N.json                      the summary of a run\n\
         {decisions}{series}",
        output.target().display(),
        below.concat(),
    )
}

/// Three suggested commands; the first at this point of a sweep.
fn next_steps(args: &CompareArgs, point: &[Point]) -> String {
    let narrows = quoted(words().first().map_or("narrows", String::as_str));
    let (scenario, cc) = (quoted(&args.scenarios[0]), args.cc[args.cc.len() - 1].trim());
    let other = args.on.iter().map(|host| host.trim()).rfind(|&host| host != "sim");
    let mut options = other.map_or_else(String::new, |host| format!(" --on {host}"));
    let mut with = |option: &str, value: &str| {
        let _ = write!(options, " --{option} {}", quoted(value));
    };
    args.edit.set.iter().for_each(|set| with("set", set));
    point.iter().for_each(|of| with("set", &format!("{}={}", of.field, of.value)));
    args.edit.trace.iter().for_each(|trace| with("trace", trace));
    args.edit.law.iter().for_each(|law| with("law", &law.display().to_string()));
    if let Some(signal) = args.signal.first() {
        let _ = write!(options, " --signal {}", signal.trim());
    }
    format!(
        "\nNext:\n  \
         {narrows} run {scenario} --cc {cc}{options} --out out/one    # one run and its series\n  \
         {narrows} compare sbd/nsb-5 sbd/sb-5 --cc reno,lia,olia,balia    # five paths\n  \
         {narrows} list    # all laws, detectors and scenarios\n"
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use narrows_lab::{Edits, Job, Run, host, load, run};

    use super::*;

    #[test]
    fn what_two_hosts_say_goes_to_two_places() {
        let second = ("duration".into(), "2 s".into());
        let edits = Edits { set: vec![("warmup".into(), "1 s".into()), second], traces: vec![] };
        let scenario = load("sbd/sb-2", &edits).unwrap();
        let control = "olia+ssc".parse().unwrap();
        let stop = AtomicBool::new(false);
        let job = Job { control: Some(control), seed: 3, ..Job::new(&scenario, &stop) };
        let kernel = HostId::new("kernel");
        let Run { summary, series, decisions, .. } = run(host("sim").unwrap(), job).unwrap();
        let mut cases = [Case { scenario, set: Vec::new() }];
        let mut run = Finished { case: 0, control, signal: None, summary, series, decisions };
        let stem = |cases: &[Case], run: &Finished, hosts: &[HostId]| {
            let signals = &[Signal::SenderUs];
            let (controls, seeds, jobs, series) = (&[control], Seeds::up_to(3), 1, SeriesOf::None);
            stem(&Plan { cases, controls, signals, hosts, seeds, jobs, series }, &run.task())
        };
        assert_eq!(stem(&cases, &run, &[HostId::SIM]), "runs/sbd/sb-2/olia+ssc/seed-3");
        assert_eq!(stem(&cases, &run, &[HostId::SIM, kernel]), "runs/sbd/sb-2/sim/olia+ssc/seed-3");
        run.signal = Some(0);
        assert_eq!(stem(&cases, &run, &[HostId::SIM]), "runs/sbd/sb-2/olia+ssc/sender-us/seed-3");
        (run.signal, run.control) = (None, "kernel:bbr".parse().unwrap());
        run.summary.host = kernel;
        cases[0].set = vec![Point::new("links.l.rate", "5 Mbit/s")];
        let there = "runs/sbd/sb-2/links.l.rate=5_Mbit_s/kernel/kernel-bbr/seed-3";
        assert_eq!(stem(&cases, &run, &[kernel]), there);
    }

    /// The words of a line as a shell has them, with single quotes alone.
    #[cfg(feature = "kernel")]
    fn words(line: &str) -> Vec<String> {
        let mut quoted = false;
        let words = line.split(|c| {
            quoted ^= c == '\'';
            c == ' ' && !quoted
        });
        words.filter(|word| !word.is_empty()).map(|word| word.replace('\'', "")).collect()
    }

    #[cfg(feature = "kernel")]
    #[test]
    fn the_hosts_have_what_the_comparisons_in_the_readme_ask_for() {
        use clap::Parser;

        use crate::args::{Args, Command};

        let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
        let readme = std::fs::read_to_string(readme).unwrap();
        let mut used = Vec::new();
        for line in readme.lines() {
            let line = line.trim_start().trim_start_matches("sudo ");
            if !line.starts_with("narrows compare ") {
                continue;
            }
            let line = line.split(" #").next().unwrap();
            let Ok(Args { command: Command::Compare(args) }) = Args::try_parse_from(words(line))
            else {
                panic!("{line}")
            };
            let hosts = hosts(&args.on).unwrap();
            for case in Inputs::of(&args).unwrap().cases {
                for (host, cc) in
                    hosts.iter().flat_map(|host| args.cc.iter().map(move |cc| (host, cc)))
                {
                    let stop = AtomicBool::new(false);
                    let control = Some(control(cc).unwrap());
                    let checked = host.check(&Job { control, ..Job::new(&case.scenario, &stop) });
                    checked.unwrap_or_else(|error| panic!("{line}: {error}"));
                }
            }
            used.extend(hosts.iter().map(|host| host.id()));
        }
        assert!(used.contains(&HostId::SIM) && used.contains(&HostId::new("kernel")), "{used:?}");
    }
}
