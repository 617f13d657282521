//! One run of a scenario on the simulator.

use std::sync::atomic::{AtomicBool, Ordering};

use narrows_laws::Control;
use narrows_laws::raw::SSTHRESH_MAX;
use narrows_net::{ConfigError, LinkId, Nanos, SECOND};
use narrows_sim::capture::Flow as Handle;
use narrows_sim::{PathConfig, Sim};
use serde::{Deserialize, Serialize};

use crate::build::Build;
use crate::caught::caught;
use crate::scenario::{FlowKind, Happening, Scenario};
use crate::series::{INTERVAL, Sample};
use crate::stats::{jain, mean, quantile, round};
use crate::summary::{
    ConnectionSummary, Fairness, HeadOfLineSummary, Host, LinkSummary, PathSummary, Summary,
};
use crate::{Capture, Error};

/// A run and its results.
#[derive(Clone, Debug)]
pub struct Run {
    /// What `summary.json` holds.
    pub summary: Summary,
    /// What tables show besides.
    pub detail: Detail,
    /// Samples of the listed connections, if asked for.
    pub series: Vec<Sample>,
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

/// Counters of a flow and its paths at one time.
#[derive(Clone, Debug, Default)]
struct Mark {
    delivered: u64,
    retransmits: u64,
    reinjections: u64,
    paths: Vec<(u64, u64)>,
}

/// The samples of a path in the analysed time.
#[derive(Clone, Debug, Default)]
struct PathSamples {
    cwnd: Vec<f64>,
    srtt_ms: Vec<f64>,
}

/// Runs `scenario` with `seed`; `control` replaces the law of the connection under test. Samples
/// for a series are kept if `series` is set; packets are written down if there is a `capture`.
///
/// # Errors
/// [`Error::Interrupted`] once `stop` is set, what the network says to an impossible link, a capture
/// that cannot be written, or [`Error::Fault`].
pub fn run(
    scenario: &Scenario,
    control: Option<Control>,
    seed: u64,
    series: bool,
    capture: Option<&mut Capture>,
    stop: &AtomicBool,
) -> Result<Run, Error> {
    caught(|| simulate(scenario, control, seed, series, capture, stop)).unwrap_or_else(|message| {
        let control = control.or(scenario.test.and_then(|test| scenario.flows[test].control));
        let cc = control.map_or("-".into(), |control| control.to_string());
        Err(Error::Fault { scenario: scenario.name.clone(), cc, seed, message })
    })
}

fn simulate(
    scenario: &Scenario,
    control: Option<Control>,
    seed: u64,
    series: bool,
    mut capture: Option<&mut Capture>,
    stop: &AtomicBool,
) -> Result<Run, Error> {
    let control_of = |index: usize| match control {
        Some(control) if scenario.test == Some(index) => Some(control),
        _ => scenario.flows[index].control,
    };
    let mut build = Build::new(scenario, seed)?;
    for (index, flow) in scenario.flows.iter().enumerate() {
        build.flow(flow, control_of(index))?;
    }
    let Build { mut sim, links, handles, paths, .. } = build;
    let mut events = scenario.events.iter().peekable();
    if let Some(capture) = &mut capture {
        capture.begin(&mut sim, &handles, &links);
    }

    let mut rows = Vec::new();
    let mut samples: Vec<Vec<PathSamples>> =
        scenario.flows.iter().map(|flow| vec![PathSamples::default(); flow.paths.len()]).collect();
    let mut last: Vec<Mark> = handles.iter().map(|handle| mark(&sim, handle)).collect();
    let mut begin = last.clone();
    let mut now = 0;
    // What is captured waits in memory until its slice ends.
    let slice = (slice(scenario) / if capture.is_some() { 16 } else { 1 }).max(1);
    while now < scenario.end() {
        if now == scenario.warmup {
            begin = handles.iter().map(|handle| mark(&sim, handle)).collect();
            sim.reset_link_counters();
        }
        let next = (now + INTERVAL).min(scenario.end());
        // The analysis begins exactly at the end of the warm-up.
        let next = if now < scenario.warmup { next.min(scenario.warmup) } else { next };
        let mut run_until = |sim: &mut Sim, time: Nanos| {
            while sim.now() < time {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                sim.run_until((sim.now() + slice).min(time));
                if let Some(capture) = &mut capture {
                    capture.write(sim)?;
                }
            }
            Ok(())
        };
        while let Some(event) = events.next_if(|event| event.at < next) {
            run_until(&mut sim, event.at)?;
            happen(&mut sim, &event.what, &links, &handles, &paths)
                .map_err(|error| Error::input(&scenario.name, error))?;
        }
        run_until(&mut sim, next)?;
        let elapsed = next - now;
        now = next;
        for (index, flow) in scenario.flows.iter().enumerate() {
            let Handle::Connection(id) = handles[index] else { continue };
            if flow.background {
                continue;
            }
            let stats = sim.connection(id);
            for (path, state) in stats.paths.iter().enumerate() {
                // Before its first measurement a path has no RTT and no window to speak of.
                if now > scenario.warmup && state.srtt > 0 {
                    samples[index][path].cwnd.push(f64::from(state.cwnd));
                    samples[index][path].srtt_ms.push(ms(state.srtt));
                }
                if series {
                    let shared = &flow.paths[path].links;
                    let queue = shared.iter().map(|&link| sim.queue_delay(links[link])).sum();
                    let before = last[index].paths.get(path).map_or(0, |counted| counted.0);
                    rows.push(Sample {
                        time_s: seconds(now),
                        connection: flow.name.clone(),
                        path: flow.paths[path].name.clone(),
                        cwnd_packets: state.cwnd,
                        ssthresh_packets: (state.ssthresh < SSTHRESH_MAX).then_some(state.ssthresh),
                        srtt_ms: round(ms(state.srtt)),
                        inflight_packets: state.inflight,
                        goodput_mbps: round(mbps(state.delivered_bytes - before, elapsed)),
                        queue_ms: round(ms(queue)),
                    });
                }
            }
            last[index] = mark(&sim, &handles[index]);
        }
    }

    if let Some(capture) = capture {
        capture.finish()?;
    }

    let end: Vec<Mark> = handles.iter().map(|handle| mark(&sim, handle)).collect();
    let goodput: Vec<f64> = begin
        .iter()
        .zip(&end)
        .map(|(begin, end)| mbps(end.delivered - begin.delivered, scenario.duration))
        .collect();
    let path_goodput = |flow: usize, path: usize| {
        mbps(end[flow].paths[path].0 - begin[flow].paths[path].0, scenario.duration)
    };

    let connections = scenario.flows.iter().enumerate().map(|(index, flow)| {
        let multipath = flow.kind == FlowKind::Mptcp || scenario.test == Some(index);
        let ratio = |own: f64, path: Option<usize>| {
            let rivals: Vec<f64> =
                scenario.rivals_of(flow, path).map(|rival| goodput[rival.flow]).collect();
            let sum: f64 = rivals.iter().sum();
            (multipath && sum > 0.0).then(|| round(own / sum))
        };
        let paths = match handles[index] {
            Handle::Udp(_) => Vec::new(),
            Handle::Connection(_) => (0..flow.paths.len())
                .map(|path| {
                    let taken = &samples[index][path];
                    let mut srtt = taken.srtt_ms.clone();
                    srtt.sort_by(f64::total_cmp);
                    PathSummary {
                        name: flow.paths[path].name.clone(),
                        goodput_mbps: round(path_goodput(index, path)),
                        ratio_to_tcp: ratio(path_goodput(index, path), Some(path)),
                        retransmits: end[index].paths[path].1 - begin[index].paths[path].1,
                        mean_cwnd_packets: round(mean(&taken.cwnd)),
                        mean_srtt_ms: round(mean(&taken.srtt_ms)),
                        p95_srtt_ms: round(quantile(&srtt, 0.95)),
                    }
                })
                .collect(),
        };
        let state = match handles[index] {
            Handle::Connection(id) => Some(sim.connection(id)),
            Handle::Udp(_) => None,
        };
        let completed = state.as_ref().and_then(|state| state.completed);
        let head_of_line = state.as_ref().filter(|_| flow.kind == FlowKind::Mptcp);
        let head_of_line = head_of_line.map(|state| HeadOfLineSummary {
            mean_ms: round(ms(state.head_of_line.mean)),
            p95_ms: round(ms(state.head_of_line.p95)),
            max_ms: round(ms(state.head_of_line.max)),
        });
        let start = flow.active.first().map_or(0, |period| period.0);
        ConnectionSummary {
            name: flow.name.clone(),
            kind: flow.kind,
            cc: control_of(index).map(|control| control.to_string()),
            goodput_mbps: round(goodput[index]),
            reinjections: end[index].reinjections - begin[index].reinjections,
            fallback: state.as_ref().is_some_and(|state| state.fallback),
            head_of_line,
            completion_s: completed.map(|time| round(seconds(time.saturating_sub(start)))),
            retransmits: end[index].retransmits - begin[index].retransmits,
            ratio_to_tcp: ratio(goodput[index], None),
            paths,
        }
    });
    let summary = Summary {
        scenario: scenario.name.clone(),
        cc: scenario.test.and_then(control_of).map(|control| control.to_string()),
        host: Host::Sim,
        seed,
        duration_s: round(seconds(scenario.duration)),
        connections: connections.collect(),
        links: scenario
            .links
            .iter()
            .zip(&links)
            .enumerate()
            .map(|(index, (link, id))| {
                let counters = sim.network().counters(*id);
                // A link that is down all the time sends nothing of nothing.
                let capacity = scenario.capacity(index, scenario.warmup).max(1.0);
                LinkSummary {
                    name: link.config.name.clone(),
                    utilization: round(counters.bytes_sent as f64 * 8.0 / capacity),
                    drops: counters.dropped(),
                    aqm_drops: counters.dropped_aqm,
                    marks: counters.marked,
                    mean_queue_ms: round(ms(counters.queue_delay.mean())),
                    p95_queue_ms: round(ms(counters.queue_delay.quantile(0.95))),
                }
            })
            .collect(),
        fairness: Fairness { jain: round(fairness(scenario, &goodput, &path_goodput)) },
    };
    let detail = scenario.test.map(|test| detail(scenario, &sim, &links, test, &samples[test]));
    Ok(Run { summary, detail: detail.unwrap_or_default(), series: rows })
}

/// Lets something happen at this moment of the run.
fn happen(
    sim: &mut Sim,
    what: &Happening,
    links: &[LinkId],
    handles: &[Handle],
    paths: &[Vec<PathConfig>],
) -> Result<(), ConfigError> {
    match what {
        Happening::LinkUp(link, up) => sim.set_link_up(links[*link], *up),
        Happening::LinkRate(link, rate) => sim.set_link_rate(links[*link], rate.clone())?,
        Happening::LinkDelay(link, delay) => sim.set_link_delay(links[*link], *delay)?,
        Happening::PathLost(flow, path) => {
            if let Handle::Connection(id) = handles[*flow] {
                sim.remove_path(id, *path);
            }
        }
        Happening::PathAdded(flow, path) => {
            if let Handle::Connection(id) = handles[*flow] {
                sim.add_path(id, &paths[*flow][*path]);
            }
        }
    }
    Ok(())
}

/// Simulated time between two looks at `stop`: that of a sample, or less if links are so fast that
/// it would be more than a million packets.
fn slice(scenario: &Scenario) -> Nanos {
    const BITS: u128 = 8 * 1500 * 1_000_000;
    let rate: u128 = scenario.links.iter().map(|link| u128::from(link.mean_rate())).sum();
    let bits = rate * u128::from(INTERVAL) / u128::from(SECOND);
    (u128::from(INTERVAL) / (1 + bits / BITS)).max(1) as Nanos
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

fn mark(sim: &Sim, handle: &Handle) -> Mark {
    match *handle {
        Handle::Udp(id) => Mark { delivered: sim.udp(id).received_bytes, ..Mark::default() },
        Handle::Connection(id) => {
            let stats = sim.connection(id);
            let paths = stats.paths.iter().map(|path| (path.delivered_bytes, path.retransmits));
            Mark {
                delivered: stats.delivered_bytes,
                retransmits: stats.retransmits,
                reinjections: stats.reinjections,
                paths: paths.collect(),
            }
        }
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
    sim: &Sim,
    links: &[LinkId],
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
    let over = |get: &dyn Fn(&narrows_net::Histogram) -> Nanos| {
        let counters = crossed.iter().map(|&link| sim.network().counters(links[link]));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edits, load};

    #[test]
    fn fast_links_are_interrupted_as_soon_as_slow_ones() {
        let with = |rate: &str| {
            let set = vec![("links.wifi.rate".into(), rate.into())];
            slice(&load("phone/wifi-lte", &Edits { set, ..Edits::default() }).unwrap())
        };
        assert_eq!(with("30 Mbit/s"), INTERVAL);
        // 16.7 million packets in 100 ms.
        assert_eq!(with("2 Tbit/s"), INTERVAL / 17);
    }
}
