//! Runs by what asks for them: each is run once, kept in a folder if there is one, and read again from there.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_lab::detection::Judged;
use narrows_lab::series::Sample;
use narrows_lab::{
    Algorithm, ConnectionSummary, Edits, Error, Estimate, Host, HostId, Job, Lock, Output,
    Scenario, Setup, Signal, Summary, TestSummary, host, load, parse, program, run, sha256,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::failures::Failures;
use crate::figures::median;
use crate::sequential::settled;
use crate::{Form, Verdict};

/// Runs that a table asks for: a network, what is set there, and the controls of the connection under test.
#[derive(Clone, Debug)]
pub struct Ask {
    network: Network,
    settings: Vec<String>,
    traces: Vec<(String, PathBuf)>,
    controls: Vec<String>,
    signal: Option<String>,
    host: String,
    seeds: RangeInclusive<u64>,
    series: bool,
    simulated: bool,
}

#[derive(Clone, Debug)]
enum Network {
    /// A shipped scenario.
    Shipped(String),
    /// A scenario as TOML.
    Made(String),
}

impl Ask {
    /// A shipped scenario under some controls, with seed 1 in the simulator.
    pub fn of<C: Into<String>>(scenario: &str, controls: impl IntoIterator<Item = C>) -> Ask {
        Ask::new(Network::Shipped(scenario.into()), controls)
    }

    /// The same of a scenario made as TOML.
    pub fn made<C: Into<String>>(toml: String, controls: impl IntoIterator<Item = C>) -> Ask {
        Ask::new(Network::Made(toml), controls)
    }

    fn new<C: Into<String>>(network: Network, controls: impl IntoIterator<Item = C>) -> Ask {
        let controls = controls.into_iter().map(Into::into).collect();
        let (settings, traces, signal, host) = (Vec::new(), Vec::new(), None, "sim".into());
        let (seeds, series, simulated) = (1..=1, false, false);
        Ask { network, settings, traces, controls, signal, host, seeds, series, simulated }
    }

    /// Sets fields: `links.l.rate=5 Mbit/s`, as `--set` does.
    pub fn set<S: Into<String>>(mut self, settings: impl IntoIterator<Item = S>) -> Ask {
        self.settings.extend(settings.into_iter().map(Into::into));
        self
    }

    /// Replays recordings on links.
    pub fn traces(mut self, traces: Vec<(String, PathBuf)>) -> Ask {
        self.traces.extend(traces);
        self
    }

    /// The delay signal of the detector.
    pub fn signal(mut self, signal: &str) -> Ask {
        self.signal = Some(signal.into());
        self
    }

    /// Another host than the simulator.
    pub fn on(mut self, host: &str) -> Ask {
        self.host = host.into();
        self
    }

    /// Seeds 1 to `last`.
    pub fn seeds(self, last: u64) -> Ask {
        self.from_to(1..=last)
    }

    /// These seeds.
    pub fn from_to(mut self, seeds: RangeInclusive<u64>) -> Ask {
        self.seeds = seeds;
        self
    }

    /// In the least form seconds, where a scenario has minutes.
    pub fn brief(self, form: Form) -> Ask {
        match form {
            Form::Least => self.set(["warmup=1 s", "duration=3 s"]),
            _ => self,
        }
    }

    /// Keeps the series, every 100 ms.
    pub fn series(mut self) -> Ask {
        self.series = true;
        self
    }

    /// In the simulator also where another host takes its place: to stand beside that.
    pub fn simulated(mut self) -> Ask {
        self.simulated = true;
        self
    }

    /// CPU time of all its runs, seconds, about: what they cost if every source sends what it can.
    ///
    /// # Errors
    /// The network is no scenario.
    pub fn seconds(&self) -> Result<f64, Error> {
        let once = Estimate::of(&self.scenario()?).seconds();
        Ok(once * (self.controls.len() * self.seeds.clone().count()) as f64)
    }

    pub(crate) fn scenario(&self) -> Result<Scenario, Error> {
        let set = self.settings.iter().map(|setting| {
            let (field, value) = setting.split_once('=').unwrap_or((setting, ""));
            (field.to_owned(), value.to_owned())
        });
        let edits = Edits { set: set.collect(), traces: self.traces.clone() };
        match &self.network {
            Network::Shipped(name) => load(name, &edits),
            Network::Made(toml) => parse(toml, &edits),
        }
    }
}

/// A run as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Its metrics.
    pub summary: Summary,
    /// The decisions of the detector under test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Judged>,
    /// Samples every 100 ms, if asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Sample>,
    /// With them, by flow and path: the packets sent again since the sample before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retransmits: Vec<Vec<Vec<u64>>>,
    /// Likewise a model law's estimates of the bandwidth, Mbit/s of payload; empty without such a law.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bandwidth_mbps: Vec<Vec<Vec<f64>>>,
}

impl Kept {
    /// The metrics of the connection under test.
    ///
    /// # Panics
    /// The scenario has none under test.
    pub fn test(&self) -> &TestSummary {
        self.summary.test.as_ref().expect("a connection under test")
    }

    /// When the detector under test was first right, seconds; infinite if never.
    ///
    /// # Panics
    /// The control has no detector.
    pub fn first_right_s(&self) -> f64 {
        self.summary.detection[0].first_correct_s.unwrap_or(f64::INFINITY)
    }

    /// A connection or flow.
    ///
    /// # Panics
    /// There is none of that name.
    pub fn connection(&self, name: &str) -> &ConnectionSummary {
        let found = self.summary.connections.iter().find(|one| one.name == name);
        found.unwrap_or_else(|| panic!("{} has no flow {name}", self.summary.scenario))
    }
}

/// When a detector was first right, median over runs: infinite if in more than half it never was.
pub(crate) fn first_right(runs: &[Kept]) -> f64 {
    median(&runs.iter().map(Kept::first_right_s).collect::<Vec<_>>())
}

/// The runs of each control, by seed.
#[derive(Clone, Debug)]
pub struct Controls(BTreeMap<String, Arc<Vec<Kept>>>);

impl Controls {
    /// Those of a control, to keep.
    ///
    /// # Panics
    /// It was not asked for.
    pub fn of(&self, control: &str) -> Arc<Vec<Kept>> {
        let found = self.0.get(control);
        Arc::clone(found.unwrap_or_else(|| panic!("{control} was not asked for")))
    }

    /// These and others, whose runs take the place of those of the same name.
    pub fn and(mut self, others: Controls) -> Controls {
        self.0.extend(others.0);
        self
    }
}

impl Controls {
    fn used(&self) -> Used {
        let runs = || {
            let all = self.0.values().flat_map(|runs| runs.iter());
            all.filter(|run| run.summary.host != HostId::SIM)
        };
        let unfit = |run: &&Kept| run.summary.fitness.as_ref().is_some_and(|fitness| !fitness.fit);
        Used { runs: runs().count(), unfit: runs().filter(unfit).count() }
    }
}

impl std::ops::Index<&str> for Controls {
    type Output = Vec<Kept>;

    fn index(&self, control: &str) -> &Vec<Kept> {
        self.0.get(control).unwrap_or_else(|| panic!("{control} was not asked for"))
    }
}

/// A folder of finished runs, so that an interrupted command can go on where it was.
pub struct Store {
    folder: PathBuf,
    /// Lines of one file are written one at a time.
    writing: Mutex<()>,
    /// Were runs kept, now or before?
    has: AtomicBool,
    _lock: Lock,
}

/// The file that says which program's runs a folder has.
const PROGRAM: &str = "program.sha256";

impl Store {
    /// A folder, made if it is not there. With `resume` it may have runs of this program.
    ///
    /// # Errors
    /// It has runs and `resume` is not set, or of another program, or files of something else, or it cannot be written,
    /// or another process writes there now.
    pub fn open(folder: &Path, resume: bool) -> Result<Store, Error> {
        let mark = folder.join(PROGRAM);
        let this = program()?;
        fs::create_dir_all(folder).map_err(Error::io(folder, "make this folder"))?;
        let lock = Lock::of(folder)?;
        match fs::read_to_string(&mark) {
            Ok(text) if text.trim() != this => {
                let message = "has runs of another build, which may simulate otherwise; expected another folder, or remove it";
                return Err(Error::input(folder.display().to_string(), message));
            }
            Ok(_) if !resume => {
                let message = "has results already; --resume goes on with them";
                return Err(Error::input(folder.display().to_string(), message));
            }
            Ok(_) => {}
            Err(_) => {
                let mut there = fs::read_dir(folder).map_err(Error::io(folder, "read"))?;
                if there.next().is_some() {
                    let message =
                        "has files of something else; expected an empty folder or a new one";
                    return Err(Error::input(folder.display().to_string(), message));
                }
                let mut output = Output::new(folder)?;
                output.write(PROGRAM, |to| writeln!(to, "{this}"))?;
                output.commit()?;
            }
        }
        let runs = folder.join("runs");
        fs::create_dir_all(&runs).map_err(Error::io(&runs, "make this folder"))?;
        let has = AtomicBool::new(false);
        Ok(Store { folder: folder.to_owned(), writing: Mutex::new(()), has, _lock: lock })
    }

    /// Of runs that the user interrupted: that finished ones are kept, if any are.
    fn interrupted(&self) -> Error {
        match self.has.load(Ordering::Relaxed) {
            true => Error::KeptIn { folder: self.folder.display().to_string() },
            false => Error::Interrupted,
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(&self, key: &str) -> PathBuf {
        self.folder.join("runs").join(format!("{key}.jsonl"))
    }

    /// The runs of a key, by seed; a line that a killed program left unfinished is none.
    fn read(&self, key: &str) -> Result<HashMap<u64, Kept>, Error> {
        let file = self.file(key);
        let bytes = match fs::read(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(HashMap::new()),
            read => read.map_err(Error::io(&file, "read"))?,
        };
        let lines = bytes.split(|byte| *byte == b'\n');
        let runs = lines.filter_map(|line| serde_json::from_slice::<Kept>(line).ok());
        let runs: HashMap<u64, Kept> = runs.map(|kept| (kept.summary.seed, kept)).collect();
        self.has.fetch_or(!runs.is_empty(), Ordering::Relaxed);
        Ok(runs)
    }

    fn keep(&self, key: &str, kept: &Kept) -> Result<(), Error> {
        let file = self.file(key);
        // With a new line before it: the one there may be unfinished.
        let text =
            format!("\n{}", serde_json::to_string(kept).map_err(|error| Error::input(key, error))?);
        let _one = self.writing.lock().unwrap_or_else(|error| error.into_inner());
        let open = fs::OpenOptions::new().create(true).append(true).open(&file);
        open.and_then(|mut to| to.write_all(text.as_bytes())).map_err(Error::io(&file, "write"))?;
        self.has.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// How far the runs are that a table asks for, as it asks for some after the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Told {
    /// So many begin, which cost so many seconds of a core together, about. What a folder has is not among them.
    Begun {
        /// How many.
        runs: usize,
        /// What they cost.
        cost_s: f64,
    },
    /// One of them is done.
    Ran {
        /// What it cost.
        cost_s: f64,
    },
}

/// What tables are made of.
pub struct Runs<'a> {
    form: Form,
    seeds: Option<u64>,
    store: Option<&'a Store>,
    stop: &'a AtomicBool,
    pool: rayon::ThreadPool,
    /// What was asked for before, as tables of a paper share networks.
    asked: RefCell<HashMap<String, Controls>>,
    told: &'a (dyn Fn(Told) + Sync),
    /// Claims stop where they are settled.
    adaptive: bool,
    /// A claim is made of so many seeds at most now.
    most: Cell<u64>,
    /// What runs in place of the simulator.
    on: Option<&'static dyn Host>,
    /// Why what a table asked for cannot run: the host lacks it, or this build the table's own.
    refused: RefCell<Option<String>>,
    /// By ask of the table that is made: its runs, and those that may not be read as the scenario's.
    used: RefCell<HashMap<String, Used>>,
}

/// Runs on another host than the simulator that a table is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// How many.
    pub runs: usize,
    /// How many of them the machine was too slow for.
    pub unfit: usize,
}

impl<'a> Runs<'a> {
    /// Runs `jobs` at a time, 0 for as many as cores; `told` is called before the first of those that a table
    /// asks for and after each, on any thread. With `seeds`
    /// every table has so many instead of its own.
    ///
    /// # Errors
    /// No threads.
    pub fn new(
        form: Form,
        seeds: Option<u64>,
        store: Option<&'a Store>,
        jobs: usize,
        stop: &'a AtomicBool,
        told: &'a (dyn Fn(Told) + Sync),
    ) -> Result<Runs<'a>, Error> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
        let pool = pool.map_err(|error| Error::input("--jobs", error))?;
        let (asked, refused, used) = Default::default();
        let (adaptive, most, on) = (false, Cell::new(u64::MAX), None);
        Ok(Runs { form, seeds, store, stop, pool, asked, told, adaptive, most, on, refused, used })
    }

    /// The same where claims that can stop before all seeds do so once they are settled. Runs are to be kept: they
    /// are added to.
    pub fn adaptive(self) -> Runs<'a> {
        Runs { adaptive: true, ..self }
    }

    /// Do claims stop once they are settled?
    pub(crate) fn is_adaptive(&self) -> bool {
        self.adaptive
    }

    /// What is made of the first of `all` seeds, as many as settle it, and of how many; none is said where all are asked
    /// for.
    pub(crate) fn settled<T>(
        &self,
        all: u64,
        make: impl Fn() -> Result<T, Error>,
        verdicts: impl Fn(&T) -> Vec<Verdict>,
    ) -> Result<(T, Option<u64>), Error> {
        if !self.adaptive {
            return Ok((make()?, None));
        }
        let of = |seeds| {
            self.most.set(seeds);
            let made = make();
            self.most.set(u64::MAX);
            made
        };
        let (made, seeds) = settled(all, of, verdicts)?;
        Ok((made, Some(seeds)))
    }

    /// The same on a host in place of the simulator, where a table does not ask for one of its own.
    pub fn on(self, host: &'static dyn Host) -> Runs<'a> {
        Runs { on: Some(host).filter(|host| host.id() != HostId::SIM), ..self }
    }

    /// What runs where a table asks for nothing else.
    pub fn host(&self) -> HostId {
        self.on.map_or(HostId::SIM, |host| host.id())
    }

    /// Another table, or criterion, begins: returns why the one before could not run here, and what that was made of.
    pub fn next(&self) -> (Option<String>, Used) {
        let add = |sum: Used, one: &Used| Used {
            runs: sum.runs + one.runs,
            unfit: sum.unfit + one.unfit,
        };
        let used = std::mem::take(&mut *self.used.borrow_mut());
        (self.refused.take(), used.values().fold(Used::default(), add))
    }

    /// How much is run.
    pub fn form(&self) -> Form {
        self.form
    }

    /// How many seeds a table has: of the whole form and the quick one; the least has one.
    pub fn seeds(&self, whole: u64, quick: u64) -> u64 {
        self.seeds.unwrap_or(self.form.pick(whole, quick, 1)).min(self.most.get())
    }

    /// Forgets what was asked for, but not what is in the folder.
    pub fn forget(&self) {
        self.asked.borrow_mut().clear();
    }

    /// The runs asked for, each run if it was not before.
    ///
    /// # Errors
    /// What is asked for does not fit, [`Error::Interrupted`], what a user's law did in a run, or an internal error in one: of
    /// several what the law did, else that of the first run, on any number of threads.
    pub fn get(&self, ask: &Ask) -> Result<Controls, Error> {
        Ok(self.all(std::slice::from_ref(ask))?.remove(0))
    }

    /// The runs of several asks; all that are missing are run together, so that no thread waits between asks.
    ///
    /// # Errors
    /// As of [`Runs::get`].
    pub fn all(&self, asks: &[Ask]) -> Result<Vec<Controls>, Error> {
        let names: Vec<String> = asks.iter().map(|ask| format!("{ask:?}")).collect();
        let mut found: HashMap<&str, Controls> = HashMap::new();
        let mut fresh: Vec<(&str, &Ask)> = Vec::new();
        for (name, ask) in names.iter().zip(asks) {
            if let Some(known) = self.asked.borrow().get(name) {
                found.insert(name, known.clone());
            } else if fresh.iter().all(|(other, _)| other != name) {
                fresh.push((name, ask));
            }
        }
        let rows = fresh.iter().map(|(_, ask)| self.rows(ask)).collect::<Result<Vec<_>, _>>()?;
        let mut rows: Vec<Row> = rows.into_iter().flatten().collect();
        self.run(&mut rows)?;
        let mut rows = rows.into_iter();
        for (name, ask) in fresh {
            let of = |row: Row| (row.name.to_owned(), Arc::new(row.by_seed()));
            let controls = Controls(rows.by_ref().take(ask.controls.len()).map(of).collect());
            // Series are large, and no two tables look at the same.
            if !ask.series {
                self.asked.borrow_mut().insert(name.to_owned(), controls.clone());
            }
            found.insert(name, controls);
        }
        for (name, controls) in &found {
            self.used.borrow_mut().insert((*name).to_owned(), controls.used());
        }
        Ok(names.iter().map(|name| found[name.as_str()].clone()).collect())
    }

    /// Each control of an ask, with the runs there are.
    fn rows<'r>(&self, ask: &'r Ask) -> Result<Vec<Row<'r>>, Error> {
        let host = match self.on.filter(|_| !ask.simulated) {
            Some(other) if ask.host == HostId::SIM.to_string() => other,
            Some(other) if ask.host != other.id().to_string() => {
                let why = format!("it is of {}, as its document says", ask.host);
                *self.refused.borrow_mut() = Some(why.clone());
                return Err(Error::input("--on", why));
            }
            _ => host(&ask.host).inspect_err(|error| {
                // Nobody gave the option that this names.
                let why = error.to_string();
                let why = why.strip_prefix("--on: ").unwrap_or(&why);
                *self.refused.borrow_mut() = Some(why.to_owned());
            })?,
        };
        let scenario = ask.scenario()?;
        let signal: Option<Signal> = ask
            .signal
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(|message: String| Error::input("signal", message))?;
        let row = |name: &'r String| {
            let control: Algorithm =
                name.parse().map_err(|message: String| Error::input(name, message))?;
            let scenario =
                scenario.under(control, signal.filter(|_| control.decides()))?.into_owned();
            let setup = Setup::of(&scenario, &[control]);
            let key = sha256(&(&setup, name, host.id(), ask.series));
            let job = Job { control: Some(control), ..Job::new(&scenario, self.stop) };
            host.check(&job).inspect_err(|error| {
                let why = self.on.map(|_| error.to_string());
                *self.refused.borrow_mut() = why;
            })?;
            host.ready(&job)?;
            let kept = self.store.map(|store| store.read(&key)).transpose()?.unwrap_or_default();
            Ok(Row { ask, host, name, control, scenario, setup, key, kept })
        };
        ask.controls.iter().map(row).collect()
    }

    /// Runs what is missing.
    fn run(&self, rows: &mut [Row]) -> Result<(), Error> {
        let missing: Vec<(usize, u64)> = rows
            .iter()
            .enumerate()
            .flat_map(|(at, row)| row.ask.seeds.clone().map(move |seed| (at, seed)))
            .filter(|(at, seed)| !rows[*at].kept.contains_key(seed))
            .collect();
        let (store, stop, told) = (self.store, self.stop, self.told);
        let cost = |row: &Row| row.host.seconds(&row.scenario);
        if !missing.is_empty() {
            let cost_s = missing.iter().map(|(at, _)| cost(&rows[*at])).sum();
            told(Told::Begun { runs: missing.len(), cost_s });
        }
        let one = |&(at, seed): &(usize, u64)| -> Result<Kept, Error> {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let Row { ask, host, control, scenario, setup, key, .. } = &rows[at];
            let job = Job {
                control: Some(*control),
                seed,
                series: ask.series,
                ..Job::new(scenario, stop)
            };
            let found = run(*host, job)?;
            let (counts, bandwidth_mbps) =
                (found.watched.retransmits, found.watched.bandwidth_mbps);
            let flows = counts.into_iter().filter(|_| ask.series);
            let retransmits =
                flows.map(|paths| paths.into_iter().map(|path| path.since).collect()).collect();
            let (summary, decisions, series) = (found.summary, found.decisions, found.series);
            let mut kept = Kept { summary, decisions, series, retransmits, bandwidth_mbps };
            kept.summary.setup = Some(setup.clone());
            store.map_or(Ok(()), |store| store.keep(key, &kept))?;
            told(Told::Ran { cost_s: cost(&rows[at]) });
            Ok(kept)
        };
        let failures = Failures::default();
        let unless_settled = |(place, of): (usize, &(usize, u64))| {
            if failures.are_settled(place, rows[of.0].may_end_by_law()) {
                return None;
            }
            let kept = one(of).map_err(|error| failures.add(place, error)).ok()?;
            Some((*of, kept))
        };
        // In their order, so that none begins which stands behind one that failed, and one at a time: they are long, and
        // all threads should end together.
        let run: Vec<_> = self.pool.install(|| {
            missing.iter().enumerate().par_bridge().filter_map(unless_settled).collect()
        });
        failures.end().map_err(|error| match (store, error) {
            (Some(store), Error::Interrupted) => store.interrupted(),
            (_, error) => error,
        })?;
        for ((at, seed), kept) in run {
            rows[at].kept.insert(seed, kept);
        }
        Ok(())
    }
}

/// A control of an ask, and its runs so far by seed.
struct Row<'r> {
    ask: &'r Ask,
    host: &'static dyn Host,
    name: &'r str,
    control: Algorithm,
    scenario: Scenario,
    setup: Setup,
    key: String,
    kept: HashMap<u64, Kept>,
}

impl Row<'_> {
    /// May its runs end with [`Error::Law`]? Those in virtual time under a user's law.
    fn may_end_by_law(&self) -> bool {
        !self.host.real_time() && self.scenario.takes_user_law(&[self.control])
    }

    fn by_seed(mut self) -> Vec<Kept> {
        self.ask.seeds.clone().filter_map(|seed| self.kept.remove(&seed)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::figures::spread;
    use crate::verdict::above;

    fn ask() -> Ask {
        Ask::of("sbd/sb-2", ["lia", "olia+ssc"]).set(["warmup=1 s", "duration=2 s"]).seeds(2)
    }

    #[test]
    fn a_run_is_run_once_and_is_the_same_when_it_is_read_again() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("out");
        let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
        let ran = |told| {
            if let Told::Ran { .. } = told {
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        let store = Store::open(&folder, false).unwrap();
        let runs = Runs::new(Form::Least, None, Some(&store), 0, &stop, &ran).unwrap();
        let first = runs.get(&ask()).unwrap();
        assert_eq!((first["lia"].len(), count.load(Ordering::Relaxed)), (2, 4));
        assert!(
            first["olia+ssc"][1].summary.seed == 2
                && first["olia+ssc"][1].test().goodput_mbps > 0.0
        );
        runs.get(&ask()).unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 4, "asked for before");

        // As a program that was killed in mid-line leaves it.
        let cut = fs::read_dir(folder.join("runs")).unwrap().next().unwrap().unwrap().path();
        let text = fs::read_to_string(&cut).unwrap();
        fs::write(&cut, &text[..text.len() - 10]).unwrap();
        let error = Store::open(&folder, false).err().unwrap().to_string();
        assert!(error.contains("--resume goes on"), "{error}");
        let store = Store::open(&folder, true).unwrap();
        let again = Runs::new(Form::Least, None, Some(&store), 1, &stop, &ran)
            .unwrap()
            .get(&ask())
            .unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 5, "the one that was cut off");
        for control in ["lia", "olia+ssc"] {
            assert_eq!(again[control], first[control]);
        }

        fs::write(folder.join(PROGRAM), "another").unwrap();
        let error = Store::open(&folder, true).err().unwrap().to_string();
        assert!(error.contains("another build"), "{error}");
    }

    #[test]
    fn estimates_of_the_bandwidth_stand_beside_the_series_of_a_model_law() {
        let stop = AtomicBool::new(false);
        let runs = Runs::new(Form::Least, None, None, 0, &stop, &|_| ()).unwrap();
        // Alone on 10 Mbit/s until the last 100 ms.
        let alone = ["duration=10 s", "flows.flow2.cc=reno", "flows.flow2.start=9.9 s"];
        let ask = |law: &str| Ask::of("cmpbbr/two-bbr", [law]).set(alone).series();
        let found = runs.get(&ask("bbr")).unwrap();
        let [flow] = &found["bbr"][0].bandwidth_mbps[..] else { panic!("of Reno there is none") };
        let [path] = &flow[..] else { panic!("one path") };
        let last = path[path.len() - 1];
        assert!((9.0..10.5).contains(&last), "{last}");
        assert!(runs.get(&ask("reno")).unwrap()["reno"][0].bandwidth_mbps.is_empty());
    }

    #[test]
    fn what_is_asked_for_together_is_what_each_alone_has() {
        let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
        let ran = |told| {
            if let Told::Ran { .. } = told {
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        let runs = Runs::new(Form::Least, None, None, 0, &stop, &ran).unwrap();
        let before = runs.get(&ask()).unwrap();
        let other = || ask().set(["jitter=1 packet"]);
        let found = runs.all(&[other(), ask(), other()]).unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 8, "one was there, and one is asked for twice");
        let alone = Runs::new(Form::Least, None, None, 1, &stop, &ran).unwrap();
        let alone = alone.get(&other()).unwrap();
        for control in ["lia", "olia+ssc"] {
            assert_eq!(found[1][control], before[control]);
            assert_eq!(
                (&found[0][control], &found[2][control]),
                (&alone[control], &alone[control])
            );
            assert_ne!(found[0][control], found[1][control]);
        }
    }

    #[test]
    fn a_claim_that_is_settled_takes_no_more_seeds() {
        let home = tempfile::tempdir().unwrap();
        let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
        let ran = |told| {
            if let Told::Ran { .. } = told {
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        for jobs in [1, 2] {
            let store = Store::open(&home.path().join(jobs.to_string()), false).unwrap();
            let runs = Runs::new(Form::Whole, None, Some(&store), jobs, &stop, &ran).unwrap();
            let claim = |runs: &Runs, bound: f64| {
                let asked = || {
                    let ask = Ask::of("sbd/sb-2", ["lia"]).set(["warmup=1 s", "duration=2 s"]);
                    let found = runs.get(&ask.seeds(runs.seeds(20, 3)))?;
                    let goodput = spread(&found["lia"], |run| Some(run.test().goodput_mbps));
                    Ok(above(goodput, bound))
                };
                runs.settled(20, asked, |one| vec![*one]).unwrap()
            };
            let runs = runs.adaptive();
            assert_eq!(claim(&runs, -100.0), (Verdict::Reproduced, Some(5)));
            assert_eq!(count.swap(0, Ordering::Relaxed), 5);
            assert_eq!(claim(&runs, f64::NAN), (Verdict::CannotBeTold, Some(20)));
            assert_eq!(count.swap(0, Ordering::Relaxed), 15, "those that were there are kept");
            let all = Runs { adaptive: false, ..runs };
            assert_eq!(claim(&all, -100.0), (Verdict::Reproduced, None));
        }
    }

    #[test]
    fn it_tells_what_begins_and_what_that_costs_but_not_what_was_there() {
        let home = tempfile::tempdir().unwrap();
        let (stop, said) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let told = |told| said.lock().unwrap().push(told);
        let store = Store::open(&home.path().join("out"), false).unwrap();
        let runs = || Runs::new(Form::Least, None, Some(&store), 1, &stop, &told).unwrap();
        runs().get(&ask().seeds(1)).unwrap();
        let all = std::mem::take(&mut *said.lock().unwrap());
        let [Told::Begun { runs: 2, cost_s }, Told::Ran { cost_s: one }, Told::Ran { cost_s: two }] =
            all[..]
        else {
            panic!("{all:?}")
        };
        assert!(one > 0.0 && (one + two - cost_s).abs() < 1e-9, "{all:?}");
        // Another program of the folder: two of four are there.
        runs().get(&ask()).unwrap();
        let all = std::mem::take(&mut *said.lock().unwrap());
        assert!(matches!(all[0], Told::Begun { runs: 2, .. }) && all.len() == 3, "{all:?}");
        runs().get(&ask()).unwrap();
        assert_eq!(*said.lock().unwrap(), [], "nothing begins");
    }

    #[test]
    fn what_does_not_fit_is_an_error_and_ctrl_c_ends_it() {
        let stop = AtomicBool::new(true);
        let runs = Runs::new(Form::Least, None, None, 0, &stop, &|_| ()).unwrap();
        assert!(matches!(runs.get(&ask()), Err(Error::Interrupted)));
        // With a folder it says whether finished runs are there.
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(&home.path().join("out"), false).unwrap();
        let stopped = AtomicBool::new(true);
        let of = |seeds, stop, told| {
            let runs = Runs::new(Form::Least, None, Some(&store), 1, stop, told).unwrap();
            runs.get(&ask().seeds(seeds)).map(drop)
        };
        assert!(matches!(of(1, &stopped, &|_| ()), Err(Error::Interrupted)));
        let stop_now = AtomicBool::new(false);
        let first = |told| stop_now.store(matches!(told, Told::Ran { .. }), Ordering::Relaxed);
        let error = of(2, &stop_now, &first).unwrap_err();
        assert_eq!(error.exit_code(), 130);
        let line = error.to_string();
        assert!(
            line.contains("finished runs are saved in")
                && line.ends_with("--resume goes on with them")
        );
        let wrong = Ask::of("sbd/sb-2", ["lia"]).set(["links.none.rate=1 Mbit/s"]);
        assert!(matches!(runs.get(&wrong), Err(Error::Input { .. })));
        assert!(matches!(runs.get(&Ask::of("sbd/sb-2", ["lya"])), Err(Error::Input { .. })));
        assert_eq!(runs.next().0, None, "a mistake is no reason to leave a table out");
        // As a host that this build lacks.
        assert!(runs.get(&ask().on("mars")).is_err());
        let why = runs.next().0.unwrap();
        assert!(why.starts_with("unknown host 'mars'"), "{why}");
    }

    #[test]
    fn seeds_are_those_of_the_form_unless_asked_for() {
        let stop = AtomicBool::new(false);
        let seeds =
            |form, asked| Runs::new(form, asked, None, 1, &stop, &|_| ()).unwrap().seeds(20, 3);
        assert_eq!(seeds(Form::Whole, None), 20);
        assert_eq!(seeds(Form::Quick, None), 3);
        assert_eq!(seeds(Form::Least, None), 1);
        assert_eq!(seeds(Form::Quick, Some(7)), 7);
    }

    #[test]
    fn the_least_form_is_brief() {
        let lasts = |form| Ask::of("sbd/sb-2", ["lia"]).brief(form).scenario().unwrap().duration;
        assert!(lasts(Form::Least) <= 4_000_000_000);
        assert!(lasts(Form::Quick) > 20_000_000_000);
    }
}
