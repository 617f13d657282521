//! Nanoseconds an acknowledgement costs, for each law and number of paths; what a detector that decides
//! costs besides; and SSC against TR, of which arXiv:1812.05816, section 5.1, says that SSC costs more.
//!
//! `cargo bench -p narrows-laws`

use narrows_laws::{
    Conn, Control, Detector, Event, EventKind, Law, MAX_PATHS, Params, Private, State, flag,
};
use std::hint::black_box;
use std::time::Instant;

const ACKS: u32 = 20_000;
const ROUNDS: usize = 200;

/// One run over paths in congestion avoidance at 1000 packets, an ACK for 2 packets on each in turn.
fn run(control: Control, paths: usize) -> f64 {
    let mut conn = Conn::new(control);
    let mut private = [Private::default(); MAX_PATHS];
    let mut event = Event {
        now_us: 1_000_000,
        kind: EventKind::Joined as u32,
        state: State::Active as u32,
        mss: 1448,
        ..Event::default()
    };
    for (path, private) in private.iter_mut().enumerate().take(paths) {
        event.srtt8_us = 8 * (20_000 + 1_000 * path as u32);
        for (kind, cwnd) in [
            (EventKind::Joined, 0),
            (EventKind::Acked, 4),
            (EventKind::Recovery, 4),
            (EventKind::Recovered, 2),
        ] {
            conn.event(path, private, &Event { kind: kind as u32, cwnd, ..event });
        }
        conn.event(path, private, &Event { kind: EventKind::Acked as u32, cwnd: 1_000, ..event });
    }
    event.kind = EventKind::Acked as u32;
    event.flags = flag::CWND_LIMITED;
    event.delivered = 2;
    let start = Instant::now();
    for number in 0..ACKS {
        let path = number as usize % paths;
        event.now_us += 10;
        event.srtt8_us = 8 * (20_000 + 1_000 * path as u32);
        event.cwnd = conn.path(path).cwnd;
        black_box(conn.event(path, &mut private[path], black_box(&event)));
    }
    start.elapsed().as_nanos() as f64 / f64::from(ACKS)
}

/// A detector without a law.
struct DetectorAlone {
    conn: Conn,
    event: Event,
    paths: usize,
    noise: u32,
}

impl DetectorAlone {
    fn new(control: Control, params: &Params, paths: usize) -> DetectorAlone {
        let mut conn = Conn::with_params(control, params);
        let event = Event { state: State::Active as u32, delivered: 2, ..Event::default() };
        for path in 0..paths {
            conn.detect(path, &Event { kind: EventKind::Joined as u32, ..event });
        }
        DetectorAlone {
            conn,
            event: Event { kind: EventKind::Acked as u32, ..event },
            paths,
            noise: 1,
        }
    }

    /// So many ACKs `apart_us`, of delays that rise and fall with noise; ns each.
    fn take(&mut self, acks: u32, apart_us: u64) -> f64 {
        let start = Instant::now();
        for number in 0..acks {
            self.noise = self.noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            self.event.now_us += apart_us;
            self.event.rtt_us = 20_000 + 20 * (number % 1_500) + (self.noise >> 22);
            self.conn.detect(number as usize % self.paths, black_box(&self.event));
        }
        start.elapsed().as_nanos() as f64 / f64::from(acks)
    }
}

/// The detector's part alone: ACKs 1 ms apart, so that a run is 20 s of a connection with all its
/// decisions.
fn detect(control: Control, paths: usize) -> f64 {
    DetectorAlone::new(control, &Params::default(), paths).take(ACKS, 1_000)
}

/// What a detector costs, ns.
#[derive(Clone, Copy)]
struct Cost {
    /// An ACK that ends no interval.
    sample: f64,
    /// A decision, with the observations before it and the ends of their intervals.
    decision: f64,
    /// A second in which 100 ACKs come.
    second_of_100: f64,
    /// A second in which 1000 ACKs come.
    second_of_1000: f64,
}

/// After 42 s, when SSC trusts what it knows: 17 500 ACKs 10 us apart, within one interval, and as many
/// 40 ms apart, in 700 s: 200 decisions of SSC, each on 10 intervals, and 140 of TR. The difference is
/// what they cost.
fn cost(detector: Detector, paths: usize) -> Cost {
    const TAKEN: u32 = 17_500;
    let params = Params::default().with(&[("ssc.preset", "mptcp-sbd")]);
    let per_ack = |apart_us: u64, intervals: u32| {
        let mut alone = DetectorAlone::new(Control { detector, ..Control::LIA }, &params, paths);
        alone.take(42_001, 1_000);
        let number = |alone: &DetectorAlone| alone.conn.decision().map_or(0, |last| last.number);
        let before = number(&alone);
        let ns = alone.take(TAKEN, apart_us);
        assert_eq!(number(&alone) - before, intervals);
        ns
    };
    let ssc = detector == Detector::SSC;
    let (sample, sparse) = (per_ack(10, 0), per_ack(40_000, if ssc { 2_000 } else { 140 }));
    let decisions = if ssc { 200.0 } else { 140.0 };
    Cost {
        sample,
        decision: (sparse - sample) * f64::from(TAKEN) / decisions,
        second_of_100: 100.0 * per_ack(10_000, if ssc { 500 } else { 35 }),
        second_of_1000: 1000.0 * per_ack(1_000, if ssc { 50 } else { 3 }),
    }
}

/// Runs of the two in turn: the medians of each cost, and of the ratio within a turn.
fn ssc_against_tr(paths: usize) {
    let turn = |_| [Detector::SSC, Detector::TR].map(|detector| cost(detector, paths));
    let turns: Vec<[Cost; 2]> = (0..ROUNDS).map(turn).collect();
    let median = |value: &dyn Fn(&[Cost; 2]) -> f64| {
        let mut values: Vec<f64> = turns.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    type Of = fn(&Cost) -> f64;
    let costs: [(&str, Of); 4] = [
        ("a sample", |cost| cost.sample),
        ("a decision", |cost| cost.decision),
        ("a second of 100 ACKs", |cost| cost.second_of_100),
        ("a second of 1000 ACKs", |cost| cost.second_of_1000),
    ];
    for (name, cost) in costs {
        let [ssc, tr] = [0, 1].map(|detector| median(&|turn| cost(&turn[detector])));
        let ratio = median(&|[ssc, tr]| cost(ssc) / cost(tr));
        println!("{name:<25}{paths:>6}{ssc:>12.1}{tr:>12.1}{ratio:>12.2}");
    }
}

fn main() {
    println!("ns per ACK, best of {ROUNDS} runs of {ACKS}; paths:   1     2     4     8");
    for law in Law::all() {
        print(law.name(), |paths| run(Control::of(law), paths));
    }
    for detector in Detector::all().filter(|detector| detector.decides()) {
        let control = Control { detector, ..Control::LIA };
        print(&format!("+{}", detector.name()), |paths| detect(control, paths));
    }
    println!("\nns, medians of {ROUNDS} turns   paths         ssc          tr   ssc to tr");
    for paths in [2, 8] {
        ssc_against_tr(paths);
    }
}

fn print(name: &str, run: impl Fn(usize) -> f64) {
    let best =
        [1, 2, 4, 8].map(|paths| (0..ROUNDS).map(|_| run(paths)).fold(f64::INFINITY, f64::min));
    let [one, two, four, eight] = best;
    println!("{name:<48}{one:>6.1}{two:>6.1}{four:>6.1}{eight:>6.1}");
}
