//! Estimates the size of a run: packet-hops, time and memory.

use narrows_net::{Limit, SECOND};
use narrows_traffic::Source;

use crate::scenario::{Flow, FlowKind, FlowPath, Link, Scenario};

/// Packet-hops that one core simulates in a second, about: docs/results/performance.md has what was
/// measured.
pub const HOPS_PER_SECOND: f64 = 3e6;

/// Memory of a connection and of each of its paths while nothing is under way, bytes, as measured
/// for docs/results/performance.md.
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
        let paths =
            scenario.flows.iter().flat_map(|flow| flow.paths.iter().map(move |p| (flow, p)));
        let paths: Vec<_> =
            paths.map(|(flow, path)| (flow, path, Load::of(scenario, flow, path))).collect();
        let mut offered = vec![0.0; scenario.links.len()];
        for (_, path, load) in &paths {
            path.links.iter().for_each(|&link| offered[link] += load.bits);
        }
        // What is left of a path's load where links are too slow for the sum.
        let share =
            |&link: &usize| (scenario.capacity(link, 0, scenario.end()) / offered[link]).min(1.0);
        let seconds = scenario.end() as f64 / SECOND as f64;
        let mut packet_hops = 0.0;
        let mut memory = PER_CONNECTION * scenario.flows.len() as f64;
        for (flow, path, load) in &paths {
            let packets =
                load.bits * path.links.iter().map(share).fold(1.0, f64::min) / load.packet;
            // The access link and the return link of a path count as hops too, and there is an
            // acknowledgement for every second segment (RFC 5681, section 4.2).
            let back = if flow.kind == FlowKind::Udp { 0.0 } else { path.back.len() as f64 + 1.0 };
            packet_hops += packets * (path.links.len() as f64 + 1.0 + back / 2.0);
            let samples = if flow.background { 0.0 } else { PER_PATH_SECOND * seconds };
            memory += PER_PATH + samples + PER_PACKET * load.in_flight / load.packet;
        }
        Estimate { packet_hops, memory }
    }

    /// Memory of the series of a run of `scenario`, bytes.
    pub fn series(scenario: &Scenario) -> f64 {
        let listed = |flow: &&Flow| !flow.background && flow.has_feedback();
        let paths: usize = scenario.flows.iter().filter(listed).map(|flow| flow.paths.len()).sum();
        PER_PATH_SECOND * paths as f64 * scenario.end() as f64 / SECOND as f64
    }

    /// Time of a run on one core, seconds.
    pub fn seconds(&self) -> f64 {
        self.packet_hops / HOPS_PER_SECOND
    }
}

/// What a flow gives to one of its paths, if it is alone there.
struct Load {
    /// Bits in the whole run.
    bits: f64,
    /// Size of a packet, bits.
    packet: f64,
    /// Bits on the path or in its queues at the same time, at most.
    in_flight: f64,
}

impl Load {
    fn of(scenario: &Scenario, flow: &Flow, path: &FlowPath) -> Load {
        /// Headers of IPv4 and TCP with timestamps.
        const HEADER: f64 = 52.0;
        let udp = flow.kind == FlowKind::Udp;
        let links = || path.links.iter().map(|&link| &scenario.links[link]);
        let rate = links().map(Link::mean_rate).min().unwrap_or(0) as f64;
        let mtu = f64::from(links().map(|link| link.config.mtu).min().unwrap_or(1500));
        let active =
            flow.active.iter().map(|&(start, stop)| stop.min(scenario.end()).saturating_sub(start));
        let active = active.sum::<u64>() as f64 / SECOND as f64;
        let size = |size: f64| if udp { size } else { (size + HEADER).min(mtu) };
        let (bytes, packet) = match flow.source {
            Source::Greedy => (f64::INFINITY, mtu),
            Source::File { bytes } => (bytes as f64 / flow.paths.len() as f64, mtu),
            Source::Rate { mean_pps, size: of } => (mean_pps * of.mean() * active, size(of.mean())),
            Source::OnOff { pps, size: of, on_mean_s, off_mean_s, .. } => {
                let on = active * on_mean_s / (on_mean_s + off_mean_s);
                (pps * of.mean() * on, size(of.mean()))
            }
            Source::Media { max_bps, bytes, .. } => {
                ((max_bps as f64).min(rate) / 8.0 * active, bytes.into())
            }
            Source::Messages { bytes, interval, .. } => {
                let bytes = f64::from(bytes);
                (bytes * active * SECOND as f64 / interval as f64, size(bytes))
            }
        };
        // A UDP source sends whether or not its packets pass, and what does not pass waits.
        let bits = if udp { 8.0 * bytes } else { (8.0 * bytes).min(rate * active) };
        let window = if udp { bits } else { 8.0 * flow.send_buffer.min(flow.recv_buffer) as f64 };
        let fits = rate * path.rtt as f64 / SECOND as f64 + links().map(queue_bits).sum::<f64>();
        Load { bits, packet: 8.0 * packet, in_flight: window.min(fits).min(bits) }
    }
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
