//! Many runs: every scenario under every congestion control with every seed, on all cores.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::host::Host;
use crate::journal::Journal;
use crate::metrics::Detail;
use crate::run::run;
use crate::scenario::Scenario;
use crate::series::Sample;
use crate::stats::{Spread, mean};
use crate::summary::Summary;
use crate::{Error, Run};

/// A scenario of a comparison; in a sweep with the point of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The scenario.
    pub scenario: Scenario,
    /// The point of the sweep.
    pub set: Option<Point>,
}

/// A point of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Point {
    /// The field that was set, dotted.
    pub field: String,
    /// Its value.
    pub value: String,
}

/// What is told about one scenario under one congestion control, over all seeds: the metrics of
/// the connection under test.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the scenario.
    pub scenario: String,
    /// The point of the sweep; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<Point>,
    /// Congestion control of the connection under test.
    pub cc: String,
    /// Number of seeds.
    pub seeds: usize,
    /// Goodput, Mbit/s.
    pub goodput_mbps: Option<Spread>,
    /// Goodput over the sum of the rivals'; none without rivals.
    pub ratio_to_tcp: Option<Spread>,
    /// Jain's index at the bottlenecks, see [`crate::Fairness`].
    pub jain: Option<Spread>,
    /// Segments sent again.
    pub retransmits: Option<Spread>,
    /// Mean queueing delay at the bottlenecks, ms.
    pub queue_ms: Option<Spread>,
    /// Means over the seeds of what tables show besides.
    #[serde(skip)]
    pub detail: Detail,
    /// The congestion control.
    #[serde(skip)]
    pub control: Algorithm,
    /// Index of the case.
    #[serde(skip)]
    pub case: usize,
}

/// A finished run of a comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finished {
    /// Index of the case.
    pub case: usize,
    /// The congestion control.
    pub control: Algorithm,
    /// The run's summary.
    pub summary: Summary,
    /// What tables show besides.
    pub detail: Detail,
    /// The series of the first seed, if asked for.
    pub series: Vec<Sample>,
}

/// How a comparison runs.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Scenarios.
    pub cases: &'a [Case],
    /// Congestion controls of the connection under test.
    pub controls: &'a [Algorithm],
    /// Seeds are 1 to this.
    pub seeds: u64,
    /// Threads; 0 for all cores.
    pub jobs: usize,
    /// Keep the series of the first seed.
    pub series: bool,
}

/// Runs the plan, except what `journal` has kept of it, where each run that finishes is kept too;
/// `done` is called after each run, on any thread. The order of the result is that of cases,
/// controls and seeds, whatever the number of threads and whatever was kept.
///
/// # Errors
/// A case without a connection under test, a congestion control that its host has not,
/// [`Error::Interrupted`], an impossible network, or a
/// fault of the program in one of the runs. Runs that were under way then are finished and kept.
pub fn compare(
    plan: Plan,
    journal: Option<&Journal>,
    stop: &AtomicBool,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<Finished>, Error> {
    if let Some(case) = plan.cases.iter().find(|case| case.scenario.test.is_none()) {
        let message = "no flow is under test; expected a field test = \"FLOW\"";
        return Err(Error::input(&case.scenario.name, message));
    }
    let mut tasks = Vec::new();
    for (case, of) in plan.cases.iter().enumerate() {
        for &control in plan.controls {
            Host::Sim.check(&of.scenario, Some(control))?;
            tasks.extend((1..=plan.seeds).map(|seed| (case, control, seed)));
        }
    }
    let earlier = journal.map_or(&[][..], Journal::earlier).iter();
    let earlier: HashMap<_, &Finished> =
        earlier.map(|run| ((run.case, run.control, run.summary.seed), run)).collect();
    let task = |&(case, control, seed): &(usize, Algorithm, u64)| {
        if let Some(&run) = earlier.get(&(case, control, seed)) {
            done();
            return Ok(run.clone());
        }
        let scenario: &Scenario = &plan.cases[case].scenario;
        let series = plan.series && seed == 1;
        let Run { summary, detail, series } =
            run(scenario, Some(control), seed, series, None, stop)?;
        let finished = Finished { case, control, summary, detail, series };
        journal.map_or(Ok(()), |journal| journal.keep(&finished))?;
        done();
        Ok(finished)
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(plan.jobs).build();
    let pool = pool.map_err(|error| Error::input("--jobs", error))?;
    // One task at a time: they are long, and all threads should end together.
    pool.install(|| tasks.par_iter().with_max_len(1).map(task).collect())
}

/// One row per case and control, in the order of `finished`.
pub fn rows(cases: &[Case], finished: &[Finished]) -> Vec<Row> {
    let same = |a: &Finished, b: &Finished| a.case == b.case && a.control == b.control;
    finished.chunk_by(same).filter_map(|runs| row(&cases[runs[0].case], runs)).collect()
}

fn row(case: &Case, runs: &[Finished]) -> Option<Row> {
    let (first, test) = (runs.first()?, case.scenario.test?);
    let over = |get: &dyn Fn(&Finished) -> Option<f64>| {
        let values: Option<Vec<f64>> = runs.iter().map(get).collect();
        values.and_then(|values| Spread::of(&values))
    };
    let detail = |get: fn(&Detail) -> f64| {
        mean(&runs.iter().map(|run| get(&run.detail)).collect::<Vec<_>>())
    };
    Some(Row {
        scenario: case.scenario.name.clone(),
        set: case.set.clone(),
        cc: first.control.to_string(),
        seeds: runs.len(),
        goodput_mbps: over(&|run| Some(run.summary.connections[test].goodput_mbps)),
        ratio_to_tcp: over(&|run| run.summary.connections[test].ratio_to_tcp),
        jain: over(&|run| Some(run.summary.fairness.jain)),
        retransmits: over(&|run| Some(run.summary.connections[test].retransmits as f64)),
        queue_ms: over(&|run| Some(run.detail.mean_queue_ms)),
        detail: Detail {
            mean_queue_ms: detail(|detail| detail.mean_queue_ms),
            p50_queue_ms: detail(|detail| detail.p50_queue_ms),
            p95_queue_ms: detail(|detail| detail.p95_queue_ms),
            p50_rtt_ms: detail(|detail| detail.p50_rtt_ms),
            p95_rtt_ms: detail(|detail| detail.p95_rtt_ms),
        },
        control: first.control,
        case: first.case,
    })
}

/// Writes the rows as CSV, with a line of names: each metric with its mean, ci95, median, q1, q3.
pub fn write_csv(rows: &[Row], to: impl std::io::Write) -> std::io::Result<()> {
    const METRICS: [&str; 5] = ["goodput_mbps", "ratio_to_tcp", "jain", "retransmits", "queue_ms"];
    const PARTS: [&str; 5] = ["mean", "ci95", "median", "q1", "q3"];
    let mut writer = csv::Writer::from_writer(to);
    let mut names: Vec<String> =
        ["scenario", "set_field", "set_value", "cc", "seeds"].map(String::from).to_vec();
    for metric in METRICS {
        names.extend(PARTS.map(|part| format!("{metric}_{part}")));
    }
    writer.write_record(&names)?;
    for row in rows {
        let point = row.set.clone();
        let (field, value) = point.map(|point| (point.field, point.value)).unwrap_or_default();
        let seeds = row.seeds.to_string();
        let mut record = vec![row.scenario.clone(), field, value, row.cc.clone(), seeds];
        for spread in [row.goodput_mbps, row.ratio_to_tcp, row.jain, row.retransmits, row.queue_ms]
        {
            match spread {
                Some(Spread { mean, ci95, median, q1, q3 }) => {
                    let parts = [Some(mean), ci95, Some(median), Some(q1), Some(q3)];
                    let text = |value: f64| value.to_string();
                    record.extend(parts.map(|part| part.map_or_else(String::new, text)));
                }
                None => record.extend(PARTS.map(|_| String::new())),
            }
        }
        writer.write_record(&record)?;
    }
    writer.flush()
}
