//! RFC 9743, section 6: paths as most of the Internet has them.

use narrows_papers::Form;

use crate::bed::{Bed, Link};
use crate::cell::{Beside, Cell, Metric, STANDARD, Who, own};
use crate::rule::Better;
use crate::single::{KBPS, RTT_MS, paths, routes, several};

/// A point of the design: rate, RTT, queue.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    kbps: f64,
    rtt_ms: f64,
    bdp: f64,
    /// How long 20 loss cycles of a Reno flow with half of the link take, s.
    cycles_s: f64,
}

/// The number that places the design.
const SEED: f64 = 9743.0;
/// Rates, kbit/s; RTTs, ms; queues, BDP: spread evenly in their logarithms.
const RANGES: [(f64, f64); 3] = [(1_000.0, 10_000_000.0), (1.0, 600.0), (0.25, 10.0)];
/// Where a flow's share is less than so many packets, its queue is its law.
const LEAST_PRODUCT: f64 = 8.0;
/// Pipe and full queue are at most so many bytes: a host that moves real packets holds them in memory.
const MOST_BYTES: f64 = 2e9;
/// A run of more packets ends before 20 loss cycles, but no earlier than after a minute.
const MOST_PACKETS: f64 = 1e7;
const LEAST_LONG_S: f64 = 60.0;

/// The first points of an additive recurrence in three dimensions (the R sequence of M. Roberts, "The unreasonable
/// effectiveness of quasirandom sequences", 2018), placed by the seed; those left out in which a flow has few packets, or
/// whose pipe and queue do not fit, or whose run is more than so many packets.
fn design(points: usize, most_packets: f64) -> Vec<Point> {
    /// The root of x^4 = x + 1.
    const ROOT: f64 = 1.220_744_084_605_759_5;
    let point = |number: usize| {
        let at = |dimension: usize| {
            let step = libm::pow(ROOT, -(dimension as f64 + 1.0));
            let place = 0.5 + step * (SEED + number as f64);
            let (low, high) = RANGES[dimension];
            low * libm::pow(high / low, place - libm::floor(place))
        };
        // Three digits: a scenario's numbers are for people, too.
        let digits = |value: f64| {
            let scale = libm::pow(10.0, libm::floor(libm::log10(value)) - 2.0);
            libm::round(value / scale) * scale
        };
        let round = |value: f64| libm::round(digits(value) * 1e4) / 1e4;
        let [kbps, rtt_ms, bdp] = [0, 1, 2].map(|dimension| round(at(dimension)));
        let product = kbps * rtt_ms / 12_000.0;
        let full_s = rtt_ms / 1000.0 * (1.0 + bdp / 2.0);
        let window = product * (1.0 + bdp / 2.0) / 2.0;
        Point { kbps, rtt_ms, bdp, cycles_s: 20.0 * 2.0 / 3.0 * window * full_s }
    };
    let fits = |point: &Point| {
        let product = point.kbps * point.rtt_ms / 12_000.0;
        product >= LEAST_PRODUCT && point.bytes() <= MOST_BYTES && point.packets() <= most_packets
    };
    (0..100_000).map(point).filter(fits).take(points).collect()
}

impl Point {
    fn length_s(&self) -> f64 {
        let most_s = (12.0 * MOST_PACKETS / self.kbps).max(LEAST_LONG_S);
        libm::ceil(self.cycles_s.clamp(20.0, most_s))
    }

    /// Of a run.
    fn packets(&self) -> f64 {
        self.length_s() * self.kbps / 12.0
    }

    /// Of the pipe and the full queue.
    fn bytes(&self) -> f64 {
        self.kbps * self.rtt_ms / 8.0 * (1.0 + self.bdp)
    }
}

/// 6.1: a rival of Reno and of CUBIC in turns, the law with one path and with two in turns.
pub fn tail_drop(law: &str, form: Form) -> Vec<Cell> {
    let points = form.pick(design(48, f64::INFINITY), design(8, 2e5), design(1, 5e4));
    let mut cells = Vec::new();
    for (number, point) in points.into_iter().enumerate() {
        let Point { kbps, rtt_ms, bdp, .. } = point;
        let (kind, count) = (STANDARD[number % 2], 1 + number / 2 % 2);
        let length_s = point.length_s();
        let warmup_s = libm::ceil(length_s / 4.0).max(5.0);
        let link = Link::new("l", kbps, rtt_ms, bdp);
        let metrics = Metric::all(&link);
        let bed = several(Bed::one(link, warmup_s, length_s), count, rtt_ms);
        let place = format!("{} Mbit/s, {rtt_ms} ms, {bdp} BDP, {}", kbps / 1000.0, paths(count));
        let (bed, routes) = (bed.tcps(1, "rival", "l", kind), routes(count));
        let beside = Beside { start_s: 1.5, ..Beside::new(place.clone(), bed, routes, kind) };
        cells.extend(beside.cells(law, &metrics));
        // The same runs.
        let place = format!("{place}, its own goodput beside {kind}");
        cells.push(Cell::new(place, beside.runs(law), Better::More, own));
    }
    cells
}

/// 6.3: the law alone.
pub fn wired(law: &str, form: Form) -> Vec<Cell> {
    let rates = form.pick(&[10.0, 100.0, 1000.0][..], &[10.0, 50.0][..], &[10.0][..]);
    let mut cells = Vec::new();
    for &mbps in rates {
        let link = |name: &str| Link::new(name, 1000.0 * mbps, 20.0, 1.0);
        let bed = || Bed::one(link("l"), 10.0, 30.0).for_cycles_of(link("l").cycle_s(1, 20.0));
        let one = |_: Who| bed().law_on("l", 1.0, "");
        cells.push(Cell::least(format!("{mbps} Mbit/s, one path"), law, one, own));
        let two = |_: Who| bed().link(link("m")).law_over(&["l".into(), "m".into()], 1.0, "");
        cells.push(Cell::least(format!("two links of {mbps} Mbit/s"), law, two, own));
    }
    cells
}

/// A link that sends again what the medium lost: it delivers in order, so all wait behind that, and none is lost.
const RETRANSMITS: &str = "link-layer retransmission";
/// So often, and so long.
const HOLDS: [&str; 3] = ["every = \"200 ms\"", "link = \"l\"", "hold = \"30 ms\""];

/// 6.4: random loss, a rate that varies, the jitter of a medium, retransmission by the link: what the law has alone, and what a rival
/// loses.
pub fn wireless(law: &str, form: Form) -> Vec<Cell> {
    let base = || Link::new("l", KBPS, RTT_MS, 1.0);
    let kinds = [
        ("0.1 % lost", base().with("loss = \"0.1 %\"")),
        ("1 % lost", base().with("loss = \"1 %\"")),
        ("LTE", Link::new("l", 14_000.0, 60.0, 2.0).with("trace = \"phone/lte.trace\"")),
        ("Wi-Fi", Link::new("l", 30_000.0, 20.0, 2.0).with("wifi = {}")),
        (
            "jitter",
            base().with("jitter.normal = { max = \"30 ms\", mean = \"8 ms\", deviation = \"5 ms\", correlation = \"90 %\" }"),
        ),
        (RETRANSMITS, base()),
    ];
    let mut cells = Vec::new();
    for (name, link) in kinds.into_iter().skip(form.pick(0, 0, 4)) {
        let bed = || {
            let bed = Bed::one(link.clone(), 10.0, 50.0);
            if name == RETRANSMITS { bed.event(1.0, &HOLDS) } else { bed }
        };
        cells.push(Cell::least(
            format!("{name}, alone"),
            law,
            |_: Who| bed().law_on("l", 1.0, ""),
            own,
        ));
        for kind in STANDARD {
            for count in [1, 2] {
                let place = format!("{name}, {}", paths(count));
                let bed = several(bed(), count, link.rtt_ms).tcps(1, "rival", "l", kind);
                let beside = Beside::new(place, bed, routes(count), kind);
                cells.extend(beside.cells(law, &[Metric::Goodput]));
            }
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_design_spreads_over_its_ranges_and_each_form_has_its_points() {
        let points = design(48, f64::INFINITY);
        assert_eq!(points.len(), 48);
        assert_eq!(design(48, f64::INFINITY), points);
        for (of, [low, high]) in [
            (points.iter().map(|p| p.kbps).collect::<Vec<_>>(), [2_000.0, 8e6]),
            (points.iter().map(|p| p.rtt_ms).collect(), [2.0, 500.0]),
            (points.iter().map(|p| p.bdp).collect(), [0.3, 8.0]),
        ] {
            let least = of.iter().copied().fold(f64::INFINITY, f64::min);
            let most = of.iter().copied().fold(0.0, f64::max);
            assert!(least <= low && most >= high, "{least} to {most}");
        }
        assert_eq!((design(8, 2e5).len(), design(1, 5e4).len()), (8, 1));
        for point in design(8, 2e5) {
            assert_eq!(point.length_s(), libm::ceil(point.cycles_s.max(20.0)), "{point:?}");
        }
        let most_packets = MOST_PACKETS.max(LEAST_LONG_S * 10e6 / 12.0);
        assert!(points.iter().all(|point| point.packets() < most_packets + 1e6), "{points:?}");
        assert!(points.iter().all(|point| point.bytes() <= MOST_BYTES), "{points:?}");
        // It ends what would take days.
        let fast = |point: &&Point| point.kbps > 1e6;
        assert!(points.iter().filter(fast).any(|point| point.length_s() < point.cycles_s));
    }
}
