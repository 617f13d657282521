//! Many runs: every scenario under every congestion control on every host with every seed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use indexmap::IndexMap;
use rayon::prelude::*;
use serde::Serialize;

use crate::algorithm::Algorithm;
use crate::host_id::HostId;
use crate::hosts::{self, Host, Job};
use crate::journal::Journal;
use crate::metrics::{Metric, PASSIVE, PATH, PassiveSummary, TEST};
use crate::plan::{Finished, Plan, Point, Task};
use crate::scenario::FlowPath;
use crate::setup::Setup;
use crate::{Error, Run};
use narrows_stats::Spread;

/// One scenario under one congestion control on one host: the metrics of the connection under test,
/// over the seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the scenario.
    pub scenario: String,
    /// The point of the sweep, a value on each axis; left out without one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<Point>,
    /// Congestion control of the connection under test.
    pub cc: String,
    /// Delay signal of its detector, where the plan names signals; left out otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<&'static str>,
    /// The host.
    pub host: HostId,
    /// Number of seeds.
    pub seeds: usize,
    /// Runs that missed real time; excluded from all metrics.
    pub unfit: usize,
    /// The scenario as it was resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// Metrics by name, see [`TEST`].
    #[serde(flatten)]
    pub metrics: Spreads,
    /// The paths of the connection under test.
    pub paths: Vec<PathRow>,
    /// The passive detectors; left out without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passive: Vec<PassiveRow>,
    /// Why the first of them did.
    #[serde(skip)]
    pub why: Option<String>,
    /// The congestion control.
    #[serde(skip)]
    pub control: Algorithm,
    /// Index of the case.
    #[serde(skip)]
    pub case: usize,
}

/// Metrics by name, over the seeds.
pub type Spreads = IndexMap<&'static str, Option<Spread>>;

/// A path of the connection under test.
#[derive(Clone, Debug, Serialize)]
pub struct PathRow {
    /// Name of the route.
    pub name: String,
    /// Metrics by name, see [`PATH`].
    #[serde(flatten)]
    pub metrics: Spreads,
}

/// A passive detector of the connection under test.
#[derive(Clone, Debug, Serialize)]
pub struct PassiveRow {
    /// The detector.
    pub detector: String,
    /// What it sampled.
    pub signal: String,
    /// Metrics by name, see [`PASSIVE`].
    #[serde(flatten)]
    pub metrics: Spreads,
}

/// Runs the plan, except the runs in `journal`, which also records each finished run; `done` is
/// called with each finished run, on any thread. The result is in the order of cases, controls,
/// hosts and seeds, for any number of threads and recorded runs.
///
/// # Errors
/// A case without a connection under test, a congestion control that its host does not have,
/// [`Error::Interrupted`], an impossible network, or an internal error in a run. Runs in progress are
/// then finished and recorded.
pub fn compare(
    plan: Plan,
    journal: Option<&Journal>,
    stop: &AtomicBool,
    done: &(dyn Fn(&Finished) + Sync),
) -> Result<Vec<Finished>, Error> {
    for case in plan.cases {
        if case.scenario.test.is_none() {
            let message = "no flow is under test; expected a field test = \"FLOW\"";
            return Err(Error::input(&case.scenario.name, message));
        }
    }
    let hosts: Vec<&dyn Host> =
        plan.hosts.iter().map(|id| hosts::host(id.as_str())).collect::<Result<_, _>>()?;
    // What this machine lacks is reported before the first run, not by the first that needs it, and
    // after what no machine can run.
    for look in [<dyn Host>::check, <dyn Host>::ready] {
        for case in plan.cases {
            let job = |&control| Job { control: Some(control), ..Job::new(&case.scenario, stop) };
            for host in &hosts {
                plan.controls.iter().try_for_each(|control| look(*host, &job(control)))?;
            }
        }
    }
    let variants = plan.variants()?;
    let host = |id: HostId| *hosts.iter().find(|host| host.id() == id).expect("one of the plan's");
    each(plan, &|id| host(id).real_time(), journal, done, &|task, threads| {
        let (scenario, setup) = &variants[&(task.case, task.control, task.signal)];
        let job = Job {
            control: Some(task.control),
            seed: task.seed,
            series: plan.series.keeps(task.seed, plan.seeds),
            threads,
            ..Job::new(scenario, stop)
        };
        let mut run = hosts::run(host(task.host), job)?;
        run.summary.setup = Some(setup.clone());
        Ok(run)
    })
}

/// Does every run of the plan that is not kept by `run`, on so many threads: the simulator's on all cores, a run on
/// each while there are enough, then those in real time, from which they would take the cores.
fn each(
    plan: Plan,
    real_time: &(dyn Fn(HostId) -> bool + Sync),
    journal: Option<&Journal>,
    done: &(dyn Fn(&Finished) + Sync),
    run: &(dyn Fn(Task, usize) -> Result<Run, Error> + Sync),
) -> Result<Vec<Finished>, Error> {
    let earlier = journal.map_or(&[][..], Journal::earlier).iter();
    let earlier: HashMap<Task, &Finished> = earlier.map(|run| (run.task(), run)).collect();
    let one = |task: Task, threads: usize| {
        let finished = match earlier.get(&task) {
            Some(&finished) => finished.clone(),
            None => {
                let Run { summary, series, decisions, .. } = run(task, threads)?;
                let Task { case, control, signal, .. } = task;
                let finished = Finished { case, control, signal, summary, series, decisions };
                journal.map_or(Ok(()), |journal| journal.keep(&finished))?;
                finished
            }
        };
        done(&finished);
        Ok(finished)
    };
    let all = plan.tasks();
    let mut finished = HashMap::new();
    let mut hosts = plan.hosts.to_vec();
    hosts.sort_by_key(|&host| real_time(host));
    for host in hosts {
        let tasks: Vec<Task> = all.iter().copied().filter(|task| task.host == host).collect();
        let threads = if real_time(host) { plan.jobs.max(1) } else { plan.jobs };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| Error::input("--jobs", error))?;
        // One task at a time: they are long, and all threads should end together.
        let unfinished = AtomicUsize::new(tasks.len());
        let with_its_share = |&task: &Task| {
            let threads = pool.current_num_threads() / unfinished.load(Ordering::Relaxed);
            let finished = one(task, threads.max(1));
            unfinished.fetch_sub(1, Ordering::Relaxed);
            finished
        };
        let runs: Result<Vec<Finished>, Error> =
            pool.install(|| tasks.par_iter().with_max_len(1).map(with_its_share).collect());
        finished.extend(tasks.into_iter().zip(runs?));
    }
    Ok(all.iter().filter_map(|task| finished.remove(task)).collect())
}

/// One row per case, control, signal and host, in the order of `finished`.
pub fn rows(plan: &Plan, finished: &[Finished]) -> Vec<Row> {
    let of = |run: &Finished| Task { seed: 0, ..run.task() };
    let same = |a: &Finished, b: &Finished| of(a) == of(b);
    finished.chunk_by(same).map(|runs| row(plan, runs)).collect()
}

fn row(plan: &Plan, all: &[Finished]) -> Row {
    let first = &all[0];
    let case = &plan.cases[first.case];
    let fitness = |run: &Finished| run.summary.fitness.clone().filter(|fitness| !fitness.fit);
    let fit: Vec<_> = all.iter().filter(|run| fitness(run).is_none()).collect();
    let tested = fit.iter().map(|run| run.summary.test.as_ref());
    let test = case.scenario.test.unwrap_or_default();
    let path = |(index, path): (usize, &FlowPath)| {
        let runs = fit.iter().map(|run| run.summary.connections.get(test)?.paths.get(index));
        PathRow { name: path.name.clone(), metrics: spreads(PATH, runs) }
    };
    let passive = |(index, of): (usize, &PassiveSummary)| {
        let runs = fit.iter().map(|run| run.summary.passive.get(index));
        let (detector, signal) = (of.detector.clone(), of.signal.clone());
        PassiveRow { detector, signal, metrics: spreads(PASSIVE, runs) }
    };
    Row {
        scenario: case.scenario.name.clone(),
        set: case.set.clone(),
        cc: first.control.to_string(),
        signal: first.signal.map(|signal| plan.signals[signal].name()),
        host: first.summary.host,
        seeds: all.len(),
        unfit: all.len() - fit.len(),
        setup: first.summary.setup.clone(),
        metrics: spreads(TEST, tested),
        paths: case.scenario.flows[test].paths.iter().enumerate().map(path).collect(),
        passive: first.summary.passive.iter().enumerate().map(passive).collect(),
        why: all.iter().find_map(fitness).and_then(|fitness| fitness.why),
        control: first.control,
        case: first.case,
    }
}

/// The metrics of a part of the fit runs' summaries.
fn spreads<'a, T: 'a>(
    table: &'static [Metric<T>],
    runs: impl Iterator<Item = Option<&'a T>>,
) -> Spreads {
    let runs: Vec<Option<&T>> = runs.collect();
    let spread = |metric: &Metric<T>| {
        let values: Vec<f64> = runs.iter().filter_map(|part| (metric.get)((*part)?)).collect();
        (metric.sparse || values.len() == runs.len()).then(|| Spread::of(&values)).flatten()
    };
    table.iter().map(|metric| (metric.name, spread(metric))).collect()
}

/// The columns of metrics in CSV.
fn heads<T>(prefix: &str, table: &[Metric<T>]) -> Vec<String> {
    const PARTS: [&str; 5] = ["mean", "ci95", "median", "q1", "q3"];
    let parts = |metric: &Metric<T>| PARTS.map(|part| format!("{prefix}{}_{part}", metric.name));
    table.iter().flat_map(parts).collect()
}

/// Their values.
fn values(metrics: &Spreads) -> impl Iterator<Item = String> {
    let parts = |spread: &Option<Spread>| {
        let parts = spread.map_or([None; 5], |Spread { mean, ci95, median, q1, q3 }| {
            [Some(mean), ci95, Some(median), Some(q1), Some(q3)]
        });
        parts.map(|part| part.map_or_else(String::new, |part| part.to_string()))
    };
    metrics.values().flat_map(parts)
}

/// The columns of an axis of a sweep in CSV; of the first `set_field`.
const AXIS: [&str; 4] = ["field", "value", "number", "unit"];

/// Writes the rows as CSV, with a line of names: each metric with its mean, ci95, median, q1, q3, at the
/// end those of as many paths as any row has.
pub fn write_csv(rows: &[Row], to: impl std::io::Write) -> std::io::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    let axes = rows.iter().map(|row| row.set.len()).max().unwrap_or(0);
    // Without a sweep the first two stand empty.
    let columns = if axes == 0 { 2 } else { AXIS.len() * axes };
    let mut names = vec!["scenario".to_owned()];
    let axis = |axis: usize| if axis == 0 { "set".into() } else { format!("set{}", axis + 1) };
    let column =
        |column: usize| format!("{}_{}", axis(column / AXIS.len()), AXIS[column % AXIS.len()]);
    names.extend((0..columns).map(column));
    names.extend(["cc", "signal", "host", "seeds", "unfit"].map(String::from));
    names.extend(heads("", TEST));
    names.extend(["settings", "scenario_sha256"].map(String::from));
    for path in 1..=rows.iter().map(|row| row.paths.len()).max().unwrap_or(0) {
        names.push(format!("path{path}"));
        names.extend(heads(&format!("path{path}_"), PATH));
    }
    writer.write_record(&names)?;
    for row in rows {
        let mut record = vec![row.scenario.clone()];
        for Point { field, value, number, unit } in &row.set {
            let number = number.map(|number| number.to_string());
            record.extend([field.clone(), value.clone()]);
            record.extend([number, unit.clone()].map(Option::unwrap_or_default));
        }
        record.resize(1 + columns, String::new());
        record.extend([&row.cc, row.signal.unwrap_or_default()].map(String::from));
        record.extend([row.host.to_string(), row.seeds.to_string(), row.unfit.to_string()]);
        record.extend(values(&row.metrics));
        let setup = row.setup.as_ref();
        let hash = setup.map(|setup| setup.scenario_sha256.clone());
        record.extend([setup.map(Setup::show), hash].map(Option::unwrap_or_default));
        for path in &row.paths {
            record.push(path.name.clone());
            record.extend(values(&path.metrics));
        }
        record.resize(names.len(), String::new());
        writer.write_record(&record)?;
    }
    writer.flush()
}

#[cfg(test)]
pub mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::metrics::TestSummary;
    use crate::plan::{Seeds, SeriesOf};
    use crate::summary::{Fairness, Fitness, Summary};
    use crate::{Case, Edits, load};

    /// A comparison's case, of which only the connection under test matters.
    pub fn case() -> Case {
        Case { scenario: load("sbd/nsb-2", &Edits::default()).unwrap(), set: Vec::new() }
    }

    /// A run with so much goodput, half of it the rivals'; `why` it missed real time, if it did.
    pub fn finished(
        cc: &str,
        host: HostId,
        seed: u64,
        goodput: f64,
        why: Option<&str>,
    ) -> Finished {
        let fitness = Fitness {
            lateness_p50_ms: 0.0,
            lateness_p99_ms: 0.0,
            lateness_max_ms: 0.0,
            worst_second: 0.0,
            fit: why.is_none(),
            why: why.map(String::from),
        };
        let summary = Summary {
            scenario: "sbd/nsb-2".into(),
            cc: Some(cc.into()),
            host,
            seed,
            duration_s: 1.0,
            connections: Vec::new(),
            links: Vec::new(),
            fairness: Fairness { jain: 0.9 },
            passive: Vec::new(),
            fitness: (host == HostId::new("kernel")).then_some(fitness),
            detection: Vec::new(),
            setup: None,
            test: Some(TestSummary {
                goodput_mbps: goodput,
                ratio_to_tcp: Some(goodput / 10.0),
                ratio_to_best: Some(goodput / 5.0),
                jain: 0.9,
                jain_mean: Some(0.8),
                retransmits: 7,
                acknowledged_s: None,
                first_loss_s: None,
                slow_start_retransmits: None,
                slow_start_cwnd_packets: None,
                silence_s: None,
                queue_ms: 0.0,
                accuracy: None,
                p50_queue_ms: 12.0,
                p95_queue_ms: 20.0,
                p50_rtt_ms: 0.0,
                p95_rtt_ms: 0.0,
                p50_message_ms: None,
                p95_message_ms: None,
                p99_message_ms: None,
                messages: None,
                undelivered_messages: None,
            }),
        };
        Finished {
            case: 0,
            control: cc.parse().unwrap(),
            signal: None,
            summary,
            series: Vec::new(),
            decisions: Vec::new(),
        }
    }

    /// The same, changed as `change` says.
    pub fn with(mut run: Finished, change: impl Fn(&mut TestSummary)) -> Finished {
        run.summary.test.iter_mut().for_each(change);
        run
    }

    /// What a host returns of a task.
    fn run_of(task: Task) -> Run {
        let cc = task.control.to_string();
        let Finished { summary, series, .. } = finished(&cc, task.host, task.seed, 1.0, None);
        let watched = crate::watched::Watched::default();
        Run { summary, series, watched, decisions: Vec::new(), notes: Vec::new() }
    }

    /// A plan of which only the cases matter.
    pub fn plan(cases: &[Case]) -> Plan<'_> {
        let hosts = &[HostId::SIM];
        Plan {
            cases,
            controls: &[],
            signals: &[],
            hosts,
            seeds: Seeds::up_to(1),
            jobs: 1,
            series: SeriesOf::None,
        }
    }

    #[test]
    fn runs_in_real_time_come_last_and_one_after_the_other_unless_asked_otherwise() {
        let cases = [case()];
        let controls = ["olia", "kernel:bbr"].map(|cc| cc.parse().unwrap());
        let hosts = [HostId::new("kernel"), HostId::SIM];
        let most = |jobs: usize| {
            let plan = Plan {
                cases: &cases,
                controls: &controls,
                signals: &[],
                hosts: &hosts,
                seeds: Seeds::up_to(4),
                jobs,
                series: SeriesOf::None,
            };
            let (simulated, now, most) =
                (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
            let run = |task: Task, _: usize| {
                if task.host == HostId::SIM {
                    simulated.fetch_add(1, Ordering::SeqCst);
                } else {
                    assert_eq!(simulated.load(Ordering::SeqCst), 8, "beside one in real time");
                    most.fetch_max(1 + now.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(30));
                    now.fetch_sub(1, Ordering::SeqCst);
                }
                Ok(run_of(task))
            };
            let done = AtomicUsize::new(0);
            let count = |_: &Finished| {
                done.fetch_add(1, Ordering::SeqCst);
            };
            let all = each(plan, &|host| host != HostId::SIM, None, &count, &run).unwrap();
            assert_eq!(done.into_inner(), 16);
            let order: Vec<Task> = all.iter().map(Finished::task).collect();
            let mut expected = Vec::new();
            for control in controls {
                for host in hosts {
                    let task = |seed| Task { case: 0, control, signal: None, host, seed };
                    expected.extend((1..=4).map(task));
                }
            }
            assert_eq!(order, expected);
            most.into_inner()
        };
        assert_eq!(most(0), 1);
        assert_eq!(most(1), 1);
        assert_eq!(most(3), 3);
    }

    /// While there are enough, each has one; of three on eight the last has all that nobody else uses.
    #[test]
    fn the_threads_that_no_run_needs_are_given_to_those_that_are_left() {
        let cases = [case()];
        let controls = ["olia".parse().unwrap()];
        let threads = |seeds, jobs| {
            let seeds = Seeds::up_to(seeds);
            let plan = Plan { controls: &controls, seeds, jobs, ..plan(&cases) };
            let had = std::sync::Mutex::new(Vec::new());
            let run = |task: Task, threads: usize| {
                had.lock().unwrap().push(threads);
                Ok(run_of(task))
            };
            each(plan, &|_| false, None, &|_| (), &run).unwrap();
            had.into_inner().unwrap()
        };
        assert_eq!(threads(1, 4), [4]);
        assert_eq!(threads(3, 1), [1, 1, 1]);
        let few = threads(3, 8);
        assert!(few.iter().all(|threads| [2, 4, 8].contains(threads)), "{few:?}");
        assert!(threads(9, 2)[..7].iter().all(|&threads| threads == 1));
    }

    #[test]
    fn what_is_not_fit_is_counted_and_in_no_mean() {
        let late = Some("late");
        let all = [
            finished("lia", HostId::SIM, 1, 10.0, None),
            finished("lia", HostId::SIM, 2, 12.0, None),
            finished("lia", HostId::new("kernel"), 1, 90.0, late),
            finished("lia", HostId::new("kernel"), 2, 14.0, None),
            finished("olia", HostId::new("kernel"), 1, 90.0, late),
            finished("olia", HostId::new("kernel"), 2, 90.0, Some("rate")),
        ];
        let rows = rows(&plan(&[case()]), &all);
        let reported: Vec<_> = rows
            .iter()
            .map(|row| {
                let mean = |name: &str| row.metrics[name].map(|spread| spread.mean);
                let means = (mean("goodput_mbps"), mean("ratio_to_tcp"));
                (row.cc.as_str(), row.host, row.seeds, row.unfit, means)
            })
            .collect();
        assert_eq!(
            reported,
            [
                ("lia", HostId::SIM, 2, 0, (Some(11.0), Some(1.1))),
                ("lia", HostId::new("kernel"), 2, 1, (Some(14.0), Some(1.4))),
                ("olia", HostId::new("kernel"), 2, 2, (None, None)),
            ]
        );
        assert_eq!(rows[2].why.as_deref(), Some("late"));

        let mut csv = Vec::new();
        write_csv(&rows, &mut csv).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let lines: Vec<&str> = csv.lines().collect();
        assert!(lines[2].starts_with("sbd/nsb-2,,,lia,,kernel,2,1,14,,14,14,14,1.4,"), "{csv}");
        let (test, path) = (",".repeat(5 * TEST.len() + 2), ",".repeat(5 * PATH.len()));
        let expected = format!("sbd/nsb-2,,,olia,,kernel,2,2{test},path1{path},path2{path}");
        assert_eq!(lines[3], expected);
    }

    /// A run may end before its detector decides.
    #[test]
    fn accuracy_is_the_mean_of_what_is_fit_and_came_to_a_decision() {
        let run = |host, seed, why| finished("olia+ssc", host, seed, 10.0, why);
        let judged = |run, accuracy| with(run, |test| test.accuracy = accuracy);
        let all = [
            judged(run(HostId::SIM, 1, None), Some(0.5)),
            judged(run(HostId::SIM, 2, None), Some(1.0)),
            judged(run(HostId::SIM, 3, None), None),
            judged(run(HostId::new("kernel"), 1, Some("late")), Some(0.1)),
            judged(run(HostId::new("kernel"), 2, None), Some(0.9)),
        ];
        let rows = rows(&plan(&[case()]), &all);
        let reported: Vec<_> =
            rows.iter().map(|row| row.metrics["accuracy"].map(|all| all.mean)).collect();
        assert_eq!(reported, [Some(0.75), Some(0.9)]);

        let mut csv = Vec::new();
        write_csv(&rows, &mut csv).unwrap();
        let mut csv = csv::Reader::from_reader(&csv[..]);
        let names = csv.headers().unwrap().clone();
        let first = csv.records().next().unwrap().unwrap();
        let of = |name| names.iter().position(|other| other == name).map(|place| &first[place]);
        assert_eq!((of("accuracy_mean"), of("queue_ms_mean")), (Some("0.75"), Some("0")));
    }

    #[test]
    fn a_run_is_read_again_as_it_was_written() {
        let run = finished("kernel:bbr", HostId::new("kernel"), 2, 14.0, Some("late"));
        let json = serde_json::to_string(&run).unwrap();
        let read: Finished = serde_json::from_str(&json).unwrap();
        assert_eq!((read.task(), read.summary), (run.task(), run.summary));
        let json =
            serde_json::to_value(finished("lia", HostId::SIM, 1, 1.0, None).summary).unwrap();
        assert_eq!(json.get("fitness"), None, "of the simulator there is none");
    }
}
