//! From what a host counts to the results of a run: marks at the end of the warm-up and at the end,
//! samples between, and the same metrics of them whatever the host.

use std::mem::replace;

use narrows_net::Nanos;

use crate::detection::{Judged, Trial};
use crate::host_id::HostId;
use crate::measured::{
    FlowState, Measured, Observed, OfFlow, OfLink, PathSamples, PathState, mbps, ms, seconds,
};
use crate::metrics::{ConnectionSummary, LinkSummary, TestSummary};
use crate::scenario::{Flow, FlowKind, Scenario};
use crate::series::Sample;
use crate::silence::Silence;
use crate::summary::{Fairness, Summary};
use crate::watched::Watched;
use narrows_stats::round;
use serde::{Deserialize, Serialize};

/// A run and its results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// What `summary.json` holds.
    pub summary: Summary,
    /// Samples of the listed connections, if asked for.
    pub series: Vec<Sample>,
    /// What else a page shows, of a run with a series.
    #[serde(default)]
    pub watched: Watched,
    /// The decisions of the detector of the connection under test.
    pub decisions: Vec<Judged>,
    /// What people should know of this run and no result holds, a line each.
    pub notes: Vec<String>,
}

/// Looks at a run and keeps what its results are made of.
pub struct Recorder<'a> {
    scenario: &'a Scenario,
    series: bool,
    /// Time of the last sample.
    now: Nanos,
    /// Payload acknowledged on each path of each flow at the last sample.
    last: Vec<Vec<u64>>,
    /// When the warm-up ended; none: it has not.
    began: Option<Nanos>,
    /// The flows then.
    begin: Vec<FlowState>,
    samples: Vec<Vec<PathSamples>>,
    silences: Vec<Silence>,
    rows: Vec<Sample>,
    watched: Watched,
}

impl<'a> Recorder<'a> {
    /// For a run that starts now. The samples are kept for a series if `series` is set.
    pub fn new(scenario: &'a Scenario, series: bool) -> Recorder<'a> {
        let flows = || scenario.flows.iter();
        Recorder {
            scenario,
            series,
            now: 0,
            last: flows().map(|flow| vec![0; flow.paths.len()]).collect(),
            began: None,
            begin: flows().map(silent).collect(),
            samples: flows().map(|flow| vec![PathSamples::default(); flow.paths.len()]).collect(),
            silences: vec![Silence::default(); scenario.flows.len()],
            rows: Vec::new(),
            watched: Watched::new(scenario),
        }
    }

    /// The warm-up ends now.
    pub fn begin(&mut self, now: Nanos, host: &impl Observed) {
        self.began = Some(now);
        self.begin = flows(self.scenario, host);
        self.watched.begin();
    }

    /// Takes a sample of all listed flows.
    pub fn sample(&mut self, now: Nanos, host: &impl Observed) {
        let before = replace(&mut self.now, now);
        let elapsed = now - before;
        let analysed = self.began.is_some_and(|began| now > began);
        if self.series {
            self.watched.see_links(now, host);
        }
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            if flow.background || !flow.has_feedback() {
                continue;
            }
            let flow_now = host.flow(index);
            self.silences[index].sample(self.scenario, index, [before, now], &flow_now, analysed);
            for (path, state) in flow_now.paths.iter().enumerate() {
                // Before its first measurement a path has no RTT and no window to speak of.
                if analysed && state.srtt > 0 {
                    let samples = &mut self.samples[index][path];
                    samples.cwnd.push(f64::from(state.cwnd));
                    samples.srtt_ms.push(ms(state.srtt));
                }
                let before = replace(&mut self.last[index][path], state.delivered);
                if self.series {
                    self.watched.see_path(index, path, state);
                    let shared = &flow.paths[path].links;
                    let started = flow.active.first().is_some_and(|period| now > period.0);
                    // A subflow that has not joined has no window.
                    let there = started && state.cwnd > 0;
                    let queue = shared.iter().map(|&link| host.queue_delay(link)).sum();
                    self.rows.push(Sample {
                        time_s: seconds(now),
                        connection: flow.name.clone(),
                        path: flow.paths[path].name.clone(),
                        cwnd_packets: there.then_some(state.cwnd),
                        ssthresh_packets: state.ssthresh.filter(|_| there),
                        srtt_ms: (state.srtt > 0).then(|| round(ms(state.srtt))),
                        inflight_packets: there.then_some(state.inflight),
                        goodput_mbps: started
                            .then(|| round(mbps(state.delivered - before, elapsed))),
                        queue_ms: round(ms(queue)),
                    });
                }
            }
        }
    }

    /// The samples of the last time, of a series.
    pub fn latest(&self) -> &[Sample] {
        let last = self.rows.last().map(|sample| sample.time_s);
        let before = self.rows.iter().rposition(|sample| Some(sample.time_s) != last);
        &self.rows[before.map_or(0, |before| before + 1)..]
    }

    /// The run ends now: its results. `cc` is the congestion control of a flow, and `trial` what the
    /// detector of the connection under test sampled and decided.
    pub fn finish(
        self,
        now: Nanos,
        host: &impl Observed,
        by: HostId,
        seed: u64,
        cc: impl Fn(usize) -> Option<String>,
        trial: Option<Trial>,
    ) -> Run {
        let detection = trial.map_or_else(Vec::new, |trial| trial.by_phase());
        let Recorder { scenario, begin, samples, silences, rows, watched, .. } = self;
        let listed = |flow: &Flow| !flow.background && flow.kind != FlowKind::Udp;
        let longest =
            |(flow, silence): (&Flow, &Silence)| silence.longest(flow).filter(|_| listed(flow));
        let run = Measured {
            scenario,
            host,
            cc: &cc,
            begin,
            end: flows(scenario, host),
            samples,
            silences: scenario.flows.iter().zip(&silences).map(longest).collect(),
            duration: now - self.began.unwrap_or(0),
            detection: &detection,
        };
        let flow = |flow| OfFlow { run: &run, flow };
        let connections = (0..scenario.flows.len()).map(flow);
        let links = (0..scenario.links.len()).map(|link| OfLink { run: &run, link });
        let summary = Summary {
            scenario: scenario.name.clone(),
            cc: scenario.test.and_then(&cc),
            host: by,
            seed,
            duration_s: round(seconds(scenario.duration)),
            connections: connections.map(|of| ConnectionSummary::read(&of)).collect(),
            links: links.map(|of| LinkSummary::read(&of)).collect(),
            fairness: Fairness { jain: round(run.jain()) },
            fitness: None,
            setup: None,
            test: scenario.test.map(|test| TestSummary::read(&flow(test))),
            detection,
            passive: Vec::new(),
        };
        let decisions = trial.map_or_else(Vec::new, |trial| trial.decisions());
        Run { summary, series: rows, watched, decisions, notes: Vec::new() }
    }
}

/// Nothing counted yet.
fn silent(flow: &Flow) -> FlowState {
    FlowState { paths: vec![PathState::default(); flow.paths.len()], ..FlowState::default() }
}

/// All flows as they are now.
fn flows(scenario: &Scenario, host: &impl Observed) -> Vec<FlowState> {
    (0..scenario.flows.len()).map(|flow| host.flow(flow)).collect()
}

#[cfg(test)]
mod tests {
    use narrows_net::{Counters, MILLISECOND, SECOND};
    use narrows_traffic::Message;

    use super::*;
    use crate::{Edits, load};

    /// All flows deliver 1 MB in a second, on their paths in equal parts; links carry what they can.
    struct Steady {
        paths: Vec<usize>,
        counters: Vec<Counters>,
        now: Nanos,
    }

    impl Observed for Steady {
        fn flow(&self, flow: usize) -> FlowState {
            let delivered = self.now / 1000;
            let paths = self.paths[flow] as u64;
            let path = PathState { delivered: delivered / paths, ..PathState::default() };
            FlowState { delivered, paths: vec![path; self.paths[flow]], ..FlowState::default() }
        }

        fn queue_delay(&self, _: usize) -> Nanos {
            0
        }

        fn link(&self, link: usize) -> &Counters {
            &self.counters[link]
        }

        fn messages(&self, _: usize) -> Vec<Message> {
            Vec::new()
        }
    }

    #[test]
    fn rates_are_over_the_time_that_was_even_where_the_clock_was_late() {
        let mut scenario = load("sbd/nsb-2", &Edits::default()).unwrap();
        (scenario.warmup, scenario.duration) = (SECOND, 2 * SECOND);
        // It begins 30 ms late, and is 100 ms late at its end.
        let (begin, end) = (1030 * MILLISECOND, 3100 * MILLISECOND);
        let bytes = |rate: u64| rate / 8 * (end - begin) / SECOND;
        let counters = scenario
            .links
            .iter()
            .map(|link| Counters { bytes_sent: bytes(link.mean_rate()), ..Counters::default() });
        let mut host = Steady {
            paths: scenario.flows.iter().map(|flow| flow.paths.len()).collect(),
            counters: counters.collect(),
            now: begin,
        };
        let mut recorder = Recorder::new(&scenario, true);
        recorder.sample(begin, &host);
        recorder.begin(begin, &host);
        host.now = end;
        recorder.sample(end, &host);
        let run = recorder.finish(end, &host, HostId::new("kernel"), 1, |_| None, None);
        let test = &run.summary.connections[scenario.test.unwrap()];
        assert_eq!(test.goodput_mbps, 8.0);
        assert_eq!(test.ratio_to_tcp, Some(0.5), "against two rivals of the same goodput");
        assert!(test.paths.iter().all(|path| path.goodput_mbps == 4.0), "{:?}", test.paths);
        assert!(
            run.series
                .iter()
                .all(|of| of.goodput_mbps.is_none_or(|rate| [4.0, 8.0].contains(&rate)))
        );
        assert!(run.summary.links.iter().all(|link| (link.utilization - 1.0).abs() < 1e-6));
    }
}
