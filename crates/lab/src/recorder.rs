//! From what a host counts to the results of a run: marks at the end of the warm-up and at the end,
//! samples between, and the same metrics of them whatever the host.

use std::mem::replace;

use narrows_net::{Histogram, Nanos, SECOND};
use serde::{Deserialize, Serialize};

use crate::detection::Judged;
use crate::host_id::HostId;
use crate::measured::{FlowState, Observed, PathSamples, PathState};
use crate::scenario::{Flow, FlowKind, Scenario};
use crate::series::Sample;
use crate::summary::{
    ConnectionSummary, Fairness, HeadOfLineSummary, LinkSummary, PathSummary, Summary,
};
use narrows_stats::{jain, mean, quantile, round};

/// A run and its results.
#[derive(Clone, Debug)]
pub struct Run {
    /// What `summary.json` holds.
    pub summary: Summary,
    /// What tables show besides.
    pub detail: Detail,
    /// Samples of the listed connections, if asked for.
    pub series: Vec<Sample>,
    /// What the listening detector of the connection under test decided.
    pub decisions: Vec<Judged>,
    /// What people should know of this run and no result holds, a line each.
    pub notes: Vec<String>,
}

/// Metrics of the connection under test that tables show besides those of the summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// Queueing delay in ms: mean over the packets, mean over the bottlenecks it crosses.
    pub mean_queue_ms: f64,
    /// The same, median over the packets.
    pub p50_queue_ms: f64,
    /// The same, 95 % quantile.
    pub p95_queue_ms: f64,
    /// Smoothed RTT in ms, median over the samples of all paths.
    pub p50_rtt_ms: f64,
    /// Smoothed RTT in ms, 95 % quantile over the samples of all paths.
    pub p95_rtt_ms: f64,
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
    rows: Vec<Sample>,
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
            rows: Vec::new(),
        }
    }

    /// The warm-up ends now.
    pub fn begin(&mut self, now: Nanos, host: &impl Observed) {
        self.began = Some(now);
        self.begin = flows(self.scenario, host);
    }

    /// Takes a sample of all listed flows.
    pub fn sample(&mut self, now: Nanos, host: &impl Observed) {
        let elapsed = now - replace(&mut self.now, now);
        let analysed = self.began.is_some_and(|began| now > began);
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            if flow.background || flow.kind == FlowKind::Udp {
                continue;
            }
            for (path, state) in host.flow(index).paths.iter().enumerate() {
                // Before its first measurement a path has no RTT and no window to speak of.
                if analysed && state.srtt > 0 {
                    let samples = &mut self.samples[index][path];
                    samples.cwnd.push(f64::from(state.cwnd));
                    samples.srtt_ms.push(ms(state.srtt));
                }
                let before = replace(&mut self.last[index][path], state.delivered);
                if self.series {
                    let shared = &flow.paths[path].links;
                    let queue = shared.iter().map(|&link| host.queue_delay(link)).sum();
                    self.rows.push(Sample {
                        time_s: seconds(now),
                        connection: flow.name.clone(),
                        path: flow.paths[path].name.clone(),
                        cwnd_packets: state.cwnd,
                        ssthresh_packets: state.ssthresh,
                        srtt_ms: round(ms(state.srtt)),
                        inflight_packets: state.inflight,
                        goodput_mbps: round(mbps(state.delivered - before, elapsed)),
                        queue_ms: round(ms(queue)),
                    });
                }
            }
        }
    }

    /// The run ends now: its results.
    pub fn finish(
        self,
        now: Nanos,
        host: &impl Observed,
        by: HostId,
        seed: u64,
        cc: impl Fn(usize) -> Option<String>,
    ) -> Run {
        let Recorder { scenario, begin, samples, rows, .. } = self;
        let end = flows(scenario, host);
        let duration = now - self.began.unwrap_or(0);
        let share = duration as f64 / scenario.duration as f64;
        let goodput: Vec<f64> = begin
            .iter()
            .zip(&end)
            .map(|(begin, end)| mbps(end.delivered - begin.delivered, duration))
            .collect();
        let path_goodput = |flow: usize, path: usize| {
            mbps(end[flow].paths[path].delivered - begin[flow].paths[path].delivered, duration)
        };

        let connections = scenario.flows.iter().enumerate().map(|(index, flow)| {
            let multipath = flow.kind == FlowKind::Mptcp || scenario.test == Some(index);
            let ratio = |own: f64, path: Option<usize>| {
                let rivals: Vec<f64> =
                    scenario.rivals_of(flow, path).map(|rival| goodput[rival.flow]).collect();
                let sum: f64 = rivals.iter().sum();
                (multipath && sum > 0.0).then(|| round(own / sum))
            };
            let (state, before) = (&end[index], &begin[index]);
            let path = |(path, taken): (usize, &PathSamples)| {
                let mut srtt = taken.srtt_ms.clone();
                srtt.sort_by(f64::total_cmp);
                let own = path_goodput(index, path);
                PathSummary {
                    name: flow.paths[path].name.clone(),
                    goodput_mbps: round(own),
                    ratio_to_tcp: ratio(own, Some(path)),
                    retransmits: state.paths[path].retransmits - before.paths[path].retransmits,
                    mean_cwnd_packets: round(mean(&taken.cwnd)),
                    mean_srtt_ms: round(mean(&taken.srtt_ms)),
                    p95_srtt_ms: round(quantile(&srtt, 0.95)),
                }
            };
            let paths = match flow.kind {
                FlowKind::Udp => Vec::new(),
                _ => samples[index].iter().enumerate().map(path).collect(),
            };
            let head_of_line = state.head_of_line.filter(|_| flow.kind == FlowKind::Mptcp);
            let head_of_line = head_of_line.map(|waits| HeadOfLineSummary {
                mean_ms: round(ms(waits.mean)),
                p95_ms: round(ms(waits.p95)),
                max_ms: round(ms(waits.max)),
            });
            let start = flow.active.first().map_or(0, |period| period.0);
            ConnectionSummary {
                name: flow.name.clone(),
                kind: flow.kind,
                cc: cc(index),
                goodput_mbps: round(goodput[index]),
                reinjections: state.reinjections - before.reinjections,
                fallback: state.fallback,
                head_of_line,
                completion_s: state
                    .completed
                    .map(|time| round(seconds(time.saturating_sub(start)))),
                retransmits: state.retransmits - before.retransmits,
                ratio_to_tcp: ratio(goodput[index], None),
                paths,
            }
        });
        let summary = Summary {
            scenario: scenario.name.clone(),
            cc: scenario.test.and_then(&cc),
            host: by,
            seed,
            duration_s: round(seconds(scenario.duration)),
            connections: connections.collect(),
            links: (0..scenario.links.len())
                .map(|link| link_summary(scenario, link, share, host))
                .collect(),
            fairness: Fairness { jain: round(fairness(scenario, &goodput, &path_goodput)) },
            fitness: None,
            detection: Vec::new(),
        };
        let detail = scenario.test.map(|test| detail(scenario, host, test, &samples[test]));
        Run {
            summary,
            detail: detail.unwrap_or_default(),
            series: rows,
            decisions: Vec::new(),
            notes: Vec::new(),
        }
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

/// What a link did in a `share` of the time that is to be analysed.
fn link_summary(scenario: &Scenario, link: usize, share: f64, host: &impl Observed) -> LinkSummary {
    let counters = host.link(link);
    // A link that is down all the time sends nothing of nothing.
    let capacity = (scenario.capacity(link, scenario.warmup) * share).max(1.0);
    LinkSummary {
        name: scenario.links[link].config.name.clone(),
        utilization: round(counters.bytes_sent as f64 * 8.0 / capacity),
        drops: counters.dropped(),
        aqm_drops: counters.dropped_aqm,
        marks: counters.marked,
        mean_queue_ms: round(ms(counters.queue_delay.mean())),
        p95_queue_ms: round(ms(counters.queue_delay.quantile(0.95))),
    }
}

/// Jain's index, see [`Fairness`].
fn fairness(
    scenario: &Scenario,
    goodput: &[f64],
    path_goodput: &dyn Fn(usize, usize) -> f64,
) -> f64 {
    let mut shares = Vec::new();
    if let Some(test) = scenario.test {
        for rival in scenario.rivals_of(&scenario.flows[test], None) {
            let through = scenario.flows[test].paths.iter().enumerate();
            let through = through.filter(|(_, path)| path.links.contains(&rival.link));
            shares.push(through.map(|(path, _)| path_goodput(test, path)).sum());
            shares.push(goodput[rival.flow]);
        }
    }
    if shares.is_empty() {
        let listed = scenario.flows.iter().zip(goodput);
        let listed = listed.filter(|(flow, _)| !flow.background && flow.kind != FlowKind::Udp);
        shares.extend(listed.map(|(_, goodput)| *goodput));
    }
    jain(&shares)
}

fn detail(
    scenario: &Scenario,
    host: &impl Observed,
    test: usize,
    samples: &[PathSamples],
) -> Detail {
    let flow = &scenario.flows[test];
    // Without rivals nobody says which links are the bottlenecks: all that the connection crosses.
    let mut crossed: Vec<usize> = scenario.rivals_of(flow, None).map(|rival| rival.link).collect();
    if crossed.is_empty() {
        crossed = flow.paths.iter().flat_map(|path| path.links.clone()).collect();
        crossed.sort_unstable();
        crossed.dedup();
    }
    let over = |get: &dyn Fn(&Histogram) -> Nanos| {
        let counters = crossed.iter().map(|&link| host.link(link));
        round(mean(&counters.map(|counters| ms(get(&counters.queue_delay))).collect::<Vec<_>>()))
    };
    let mut srtt: Vec<f64> = samples.iter().flat_map(|path| path.srtt_ms.clone()).collect();
    srtt.sort_by(f64::total_cmp);
    Detail {
        mean_queue_ms: over(&|delay| delay.mean()),
        p50_queue_ms: over(&|delay| delay.quantile(0.5)),
        p95_queue_ms: over(&|delay| delay.quantile(0.95)),
        p50_rtt_ms: round(quantile(&srtt, 0.5)),
        p95_rtt_ms: round(quantile(&srtt, 0.95)),
    }
}

fn seconds(time: Nanos) -> f64 {
    time as f64 / SECOND as f64
}

fn ms(time: Nanos) -> f64 {
    time as f64 / 1e6
}

fn mbps(bytes: u64, time: Nanos) -> f64 {
    bytes as f64 * 8.0 * 1e3 / time as f64
}

#[cfg(test)]
mod tests {
    use narrows_net::{Counters, MILLISECOND};

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
        let run = recorder.finish(end, &host, HostId::new("kernel"), 1, |_| None);
        let test = &run.summary.connections[scenario.test.unwrap()];
        assert_eq!(test.goodput_mbps, 8.0);
        assert_eq!(test.ratio_to_tcp, Some(0.5), "against two rivals of the same goodput");
        assert!(test.paths.iter().all(|path| path.goodput_mbps == 4.0), "{:?}", test.paths);
        assert!(run.series.iter().all(|sample| [4.0, 8.0].contains(&sample.goodput_mbps)));
        assert!(run.summary.links.iter().all(|link| (link.utilization - 1.0).abs() < 1e-6));
    }
}
