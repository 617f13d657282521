//! How large a run will be, before it starts: packet-hops, time and memory.

use narrows_net::{Limit, SECOND};
use narrows_traffic::Source;

use crate::scenario::{Flow, FlowKind, FlowPath, Link, Scenario};

/// Packet-hops that one core simulates in a second, about: docs/performance.md has what was measured.
pub const HOPS_PER_SECOND: f64 = 3e6;

/// Memory of a connection and of each of its paths while nothing is under way, bytes, as measured for
/// docs/performance.md.
const PER_CONNECTION: f64 = 6.5e3;
const PER_PATH: f64 = 1.3e3;
/// Memory of a packet under way, and of a TCP segment that waits for its acknowledgement, bytes.
const PER_PACKET: f64 = 200.0;
/// Memory of the samples of a path, for the summary and the series, bytes per second of the run.
const PER_PATH_SECOND: f64 = 10.0 * 150.0;

/// The size of one run, estimated from rates, durations, sources, queues and buffers. Both numbers
/// are what a run can reach if all sources send what they can; most runs stay below.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Transmissions of packets over links, of data and of acknowledgements.
    pub packet_hops: f64,
    /// Peak memory, bytes.
    pub memory: f64,
}

impl Estimate {
    /// The size of a run of `scenario`.
    pub fn of(scenario: &Scenario) -> Estimate {
        let seconds = scenario.end() as f64 / SECOND as f64;
        // What each path would carry alone, then what is left of it where links are too slow for
        // the sum.
        let mut load = vec![0.0; scenario.links.len()];
        for (flow, path) in paths(scenario) {
            let bits = bits(scenario, flow, path);
            path.links.iter().for_each(|&link| load[link] += bits);
        }
        let share = |link: usize| {
            let capacity = scenario.capacity(link, 0);
            if load[link] > capacity { capacity / load[link] } else { 1.0 }
        };
        let mut packet_hops = 0.0;
        let mut memory = 0.0;
        for (flow, path) in paths(scenario) {
            let share = path.links.iter().map(|&link| share(link)).fold(1.0, f64::min);
            let packets = bits(scenario, flow, path) * share / packet_bits(scenario, flow, path);
            // The access link and the return link of a path count as hops too.
            let there = path.links.len() as f64 + 1.0;
            // An acknowledgement for every second segment (RFC 5681, section 4.2).
            let back = if flow.kind == FlowKind::Udp { 0.0 } else { path.back.len() as f64 + 1.0 };
            packet_hops += packets * (there + back / 2.0);
            memory += PER_PATH + PER_PACKET * under_way(scenario, flow, path);
            if !flow.background {
                memory += PER_PATH_SECOND * seconds;
            }
        }
        memory += PER_CONNECTION * scenario.flows.len() as f64;
        Estimate { packet_hops, memory }
    }

    /// Time of a run on one core, seconds.
    pub fn seconds(&self) -> f64 {
        self.packet_hops / HOPS_PER_SECOND
    }
}

fn paths(scenario: &Scenario) -> impl Iterator<Item = (&Flow, &FlowPath)> {
    scenario.flows.iter().flat_map(|flow| flow.paths.iter().map(move |path| (flow, path)))
}

/// The slowest link of a path.
fn slowest<'a>(scenario: &'a Scenario, path: &FlowPath) -> Option<&'a Link> {
    path.links.iter().map(|&link| &scenario.links[link]).min_by_key(|link| link.mean_rate())
}

/// Size of a path's packets, bits.
fn packet_bits(scenario: &Scenario, flow: &Flow, path: &FlowPath) -> f64 {
    /// Headers of IPv4 and TCP with timestamps.
    const HEADER: f64 = 52.0;
    let mtu = path.links.iter().map(|&link| scenario.links[link].config.mtu).min();
    let mtu = f64::from(mtu.unwrap_or(1500));
    8.0 * match (flow.source, flow.kind) {
        (Source::Greedy | Source::File { .. }, _) => mtu,
        (Source::Rate { size, .. } | Source::OnOff { size, .. }, FlowKind::Udp) => size.mean(),
        (Source::Rate { size, .. } | Source::OnOff { size, .. }, _) => {
            (size.mean() + HEADER).min(mtu)
        }
    }
}

/// Seconds in which a flow may send.
fn active_seconds(scenario: &Scenario, flow: &Flow) -> f64 {
    let end = scenario.end();
    let active = flow.active.iter().map(|&(start, stop)| stop.min(end).saturating_sub(start));
    active.sum::<u64>() as f64 / SECOND as f64
}

/// Bits that a flow's source gives to a path, at most what the path carries if it is alone.
fn bits(scenario: &Scenario, flow: &Flow, path: &FlowPath) -> f64 {
    let active = active_seconds(scenario, flow);
    let rate = slowest(scenario, path).map_or(0.0, |link| link.mean_rate() as f64);
    let source = match flow.source {
        Source::Greedy => f64::INFINITY,
        Source::File { bytes } => bytes as f64 * 8.0 / flow.paths.len() as f64,
        Source::Rate { mean_pps, size } => mean_pps * size.mean() * 8.0 * active,
        Source::OnOff { pps, size, on_mean_s, off_mean_s, .. } => {
            pps * size.mean() * 8.0 * active * on_mean_s / (on_mean_s + off_mean_s)
        }
    };
    // A UDP source sends whether or not its packets pass.
    if flow.kind == FlowKind::Udp { source } else { source.min(rate * active) }
}

/// Packets of a flow that are on a path or in its queues at the same time, at most.
fn under_way(scenario: &Scenario, flow: &Flow, path: &FlowPath) -> f64 {
    let Some(slowest) = slowest(scenario, path) else { return 0.0 };
    let packet = packet_bits(scenario, flow, path);
    let rate = slowest.mean_rate() as f64;
    let queued: f64 = path.links.iter().map(|&link| queue_bits(&scenario.links[link])).sum();
    let fits = rate * path.rtt as f64 / SECOND as f64 + queued;
    let sent = match flow.kind {
        // What does not pass waits, all the time.
        FlowKind::Udp => bits(scenario, flow, path),
        _ => flow.send_buffer.min(flow.recv_buffer) as f64 * 8.0,
    };
    sent.min(fits).min(bits(scenario, flow, path)) / packet
}

/// What a link's queue holds at most, bits; infinite if it has no limit.
fn queue_bits(link: &Link) -> f64 {
    match link.config.limit {
        Limit::Unlimited => f64::INFINITY,
        Limit::Packets(packets) => f64::from(packets) * f64::from(link.config.mtu) * 8.0,
        Limit::Bytes(bytes) => bytes as f64 * 8.0,
        Limit::Time(time) => link.mean_rate() as f64 * time as f64 / SECOND as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edits, parse};

    /// A link of 12 Mbit/s, which is a packet of 1500 B per ms, for 10 s; `flows` run over it.
    fn of(queue: &str, flows: &str) -> Estimate {
        let text = format!(
            "name = \"n\"\ntitle = \"\"\nsource = \"\"\nwarmup = \"0 s\"\nduration = \"10 s\"\n\
             links.l = {{ rate = \"12 Mbit/s\", queue = \"{queue}\" }}\n\
             routes.r = {{ links = [\"l\"], rtt = \"20 ms\" }}\n{flows}"
        );
        Estimate::of(&parse(&text, &Edits::default()).unwrap())
    }

    const GREEDY: &str = "flows.a = { kind = \"tcp\", routes = [\"r\"], cc = \"reno\" }\n";

    #[test]
    fn a_link_carries_what_it_can_whoever_sends() {
        // Access and link for data, the way back for every second acknowledgement.
        let one = of("20 packets", GREEDY);
        assert_eq!(one.packet_hops.round(), 10_000.0 * 2.5);
        let two = format!("{GREEDY}{}", GREEDY.replace("flows.a", "flows.b"));
        assert_eq!(of("20 packets", &two).packet_hops.round(), 10_000.0 * 2.5);
        let late = GREEDY.replace("\"reno\"", "\"reno\", start = \"5 s\"");
        assert_eq!(of("20 packets", &late).packet_hops.round(), 5_000.0 * 2.5);
        let file = GREEDY.replace("\"reno\"", "\"reno\", source.file.size = \"150 kB\"");
        assert_eq!(of("20 packets", &file).packet_hops.round(), 100.0 * 2.5);
    }

    #[test]
    fn memory_is_that_of_queues_and_windows() {
        // 20 packets per RTT, 20 in the queue; then 2 s of what an unlimited queue lets in.
        let idle = |packets: f64| {
            PER_CONNECTION + PER_PATH + 10.0 * PER_PATH_SECOND + packets * PER_PACKET
        };
        assert_eq!(of("20 packets", GREEDY).memory, idle(40.0));
        let buffers = "\"reno\", send_buffer = \"3 MB\", recv_buffer = \"3 MB\"";
        let deep = of("unlimited", &GREEDY.replace("\"reno\"", buffers));
        assert_eq!(deep.memory, idle(2000.0));
    }
}
