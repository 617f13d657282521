//! How fast whole simulations run: `cargo bench -p narrows-sim [-- NAME]`.
//!
//! A packet-hop is one packet, data or ACK, that crosses one link. Between tools the number of data
//! packets delivered per second of wall time compares better. Every run has a process of its own,
//! so that its peak memory can be told; the quickest of several counts, as the others were
//! disturbed. Where ns-2 and ns-3 are installed, they run dumbbells in turn with us.
//!
//! `--alone NAME [MS [THREADS]]` runs a case once, for so many simulated milliseconds (`-`: all), on so many threads;
//! scripts/instructions counts what that executes.

mod connections;
mod dumbbell;
mod fat_tree;
mod memory;
mod peers;

use std::process::Command;
use std::time::Instant;

use narrows_net::{LinkConfig, LinkId, MILLISECOND, Nanos};
use narrows_sim::Sim;
use narrows_stats::{ci95, jain, mean};
use narrows_traffic::ConnId;
use peers::Peer;

/// As the command has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A simulation ready to run.
struct Built {
    sim: Sim,
    connections: Vec<ConnId>,
    /// Payload bytes of a full packet.
    mss: u64,
    until: Nanos,
}

struct Case {
    name: &'static str,
    rounds: usize,
    build: fn() -> Built,
    /// ns-2 and ns-3 with the same network.
    peers: [Option<Peer>; 2],
}

const fn tree(name: &'static str, rounds: usize, build: fn() -> Built) -> Case {
    Case { name, rounds, build, peers: [None; 2] }
}

const fn dumbbell(name: &'static str, build: fn() -> Built, peers: [Option<Peer>; 2]) -> Case {
    Case { name, rounds: 5, build, peers }
}

const CASES: [Case; 9] = [
    dumbbell(
        "A",
        || dumbbell::build(&dumbbell::A, "reno"),
        [Some(|| peers::ns2(&dumbbell::A)), Some(|| peers::ns3(&dumbbell::A))],
    ),
    // ns-3 would take minutes.
    dumbbell(
        "B",
        || dumbbell::build(&dumbbell::B, "reno"),
        [Some(|| peers::ns2(&dumbbell::B)), None],
    ),
    dumbbell("A-bbr", || dumbbell::build(&dumbbell::A, "bbr"), [None; 2]),
    dumbbell("B-bbr", || dumbbell::build(&dumbbell::B, "bbr"), [None; 2]),
    tree("k=4", 5, || fat_tree::build(4, 200)),
    tree("k=8", 3, || fat_tree::build(8, 200)),
    tree("k=16", 3, || fat_tree::build(16, 50)),
    tree("k=32", 1, || fat_tree::build(32, 10)),
    tree("connections", 3, connections::build),
];

/// What a run was worth.
#[derive(Clone, Copy)]
struct Outcome {
    wall_s: f64,
    hops: u64,
    packets: u64,
    /// Largest resident memory of the process, bytes; 0 if the system does not tell.
    peak: u64,
    /// Jain's index over the connections' goodputs.
    jain: f64,
    /// How much of the time as many threads as there were parts would have been busy; 1 if it was in one.
    busy: f64,
}

impl Outcome {
    fn packets_per_s(&self) -> f64 {
        self.packets as f64 / self.wall_s
    }

    fn ns_per_hop(&self) -> f64 {
        self.wall_s * 1e9 / self.hops as f64
    }
}

fn add(sim: &mut Sim, config: LinkConfig) -> LinkId {
    sim.add_link(config).expect("a valid link")
}

/// Runs a case in this process, or as much of it as is asked for.
fn run(case: &Case, only: Option<Nanos>, threads: usize) -> Outcome {
    let Built { mut sim, connections, mss, until } = (case.build)();
    sim.set_threads(threads);
    let start = Instant::now();
    sim.run_until(only.unwrap_or(until));
    let wall_s = start.elapsed().as_secs_f64();
    let network = sim.network();
    let hops = network.links().map(|link| network.counters(link).sent).sum();
    // What the subflows delivered, as the other tools count.
    let bytes: Vec<u64> = connections
        .iter()
        .map(|&id| sim.connection(id).paths.iter().map(|path| path.delivered_bytes).sum())
        .collect();
    let jain = jain(&bytes.iter().map(|&bytes| bytes as f64).collect::<Vec<_>>());
    let packets = bytes.iter().sum::<u64>() / mss;
    let busy = sim.busy().unwrap_or(1.0);
    Outcome { wall_s, hops, packets, peak: memory::peak(), jain, busy }
}

/// Marks the process that runs one case; its name follows, and perhaps the simulated milliseconds and the threads.
const ALONE: &str = "--alone";

/// Runs this program again for one case or measurement and returns the numbers it prints.
fn alone(name: &str, threads: usize) -> Vec<f64> {
    let program = std::env::current_exe().expect("this program has a path");
    let output = Command::new(program)
        .args([ALONE, name, "-", &threads.to_string()])
        .output()
        .expect("it runs again");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    text.split_whitespace().map(|number| number.parse().expect("a number")).collect()
}

fn run_alone(case: &Case, threads: usize) -> Outcome {
    match alone(case.name, threads)[..] {
        [wall_s, hops, packets, peak, jain, busy] => {
            let [hops, packets, peak] = [hops, packets, peak].map(|number| number as u64);
            Outcome { wall_s, hops, packets, peak, jain, busy }
        }
        _ => unreachable!("main prints six numbers"),
    }
}

/// The part of the program that [`alone`] starts.
fn main_alone(name: &str, milliseconds: Option<&String>, threads: Option<&String>) {
    if let Some(subflows) = name.strip_prefix(connections::IDLE) {
        println!("{}", connections::idle_bytes(subflows.parse().expect("a number")));
        return;
    }
    let case = CASES.iter().find(|case| case.name == name).expect("a case");
    let only = milliseconds.filter(|ms| *ms != "-");
    let only = only.map(|ms| ms.parse::<Nanos>().expect("a number") * MILLISECOND);
    let Outcome { wall_s, hops, packets, peak, jain, busy } =
        run(case, only, threads.map_or(1, |threads| threads.parse().expect("a number")));
    println!("{wall_s} {hops} {packets} {peak} {jain} {busy}");
}

/// Over a peer: the mean of the pairs with its 95 % interval, or the word why there are none.
fn over(peer: Option<Peer>, ratios: &[f64]) -> String {
    match (peer, ratios) {
        (None, _) => "-".into(),
        (Some(_), []) => "skipped".into(),
        (Some(_), ratios) => {
            let half = ci95(ratios).map_or(String::new(), |half| format!(" ±{half:.1}"));
            format!("{:.1}{half}", mean(ratios))
        }
    }
}

/// Runs all rounds of a case, in turn with its peers, and prints the line of the quickest. Returns its cost of a
/// packet-hop, ns.
fn measure(case: &Case) -> f64 {
    let mut ratios: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    let rounds = (0..case.rounds).map(|_| {
        let ours = run_alone(case, 1);
        for (peer, ratios) in case.peers.iter().zip(&mut ratios) {
            let theirs = peer.and_then(peers::packets_per_s);
            ratios.extend(theirs.map(|theirs| ours.packets_per_s() / theirs));
        }
        ours
    });
    let best = rounds.min_by(|a, b| a.wall_s.total_cmp(&b.wall_s)).expect("there are rounds");
    let [ns2, ns3] = [0, 1].map(|n| over(case.peers[n], &ratios[n]));
    println!(
        "{:12} {:8.3} {:10.2} {:14.3} {:8.0} {:10} {:10} {:6.3}",
        case.name,
        best.wall_s,
        best.hops as f64 / best.wall_s / 1e6,
        best.packets_per_s() / 1e6,
        best.peak as f64 / 1e6,
        ns2,
        ns3,
        best.jain,
    );
    best.ns_per_hop()
}

/// Prints how fast a dumbbell runs with BBR, over the same with Reno: the median of pairs of runs.
fn compare_bbr(bbr: &str, reno: &str) {
    let of = |name: &str| CASES.iter().find(|case| case.name == name).expect("a case");
    let (bbr, reno) = (of(bbr), of(reno));
    let speed = |case: &Case| run_alone(case, 1).packets_per_s();
    let mut ratios: Vec<f64> = (0..2 * bbr.rounds).map(|_| speed(bbr) / speed(reno)).collect();
    ratios.sort_by(f64::total_cmp);
    println!("packets delivered/s in {} over {}: {:.2}", bbr.name, reno.name, ratios[bbr.rounds]);
}

/// Prints how much faster a fat tree runs on all cores than on one: the median of pairs of runs. And by counting, what
/// more threads would gain at most: there need not be as many cores.
fn compare_threads(case: &Case) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut pairs: Vec<(f64, Outcome)> = (0..case.rounds)
        .map(|_| {
            let (one, all) = (run_alone(case, 1), run_alone(case, threads));
            assert_eq!((one.hops, one.packets), (all.hops, all.packets), "other results");
            (one.wall_s / all.wall_s, all)
        })
        .collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, all) = pairs[case.rounds / 2];
    let (hops, peak) = (all.hops as f64 / all.wall_s / 1e6, all.peak as f64 / 1e6);
    println!(
        "{} on {threads} threads: {ratio:.2} times as fast, {hops:.1} M hops/s, {peak:.0} MB",
        case.name
    );
    for threads in [2, 4, 8, 16] {
        let busy = run_alone(case, threads).busy;
        println!("  on {threads}, by counting: {busy:.2} of the time busy");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mark, name, rest @ ..] = &arguments[..] {
        if mark == ALONE {
            return main_alone(name, rest.first(), rest.get(1));
        }
    }
    // Cargo itself passes `--bench`.
    let only = arguments.iter().find(|argument| !argument.starts_with('-'));
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    println!(
        "{:12} {:>8} {:>10} {:>14} {:>8} {:10} {:10} {:>6}",
        "", "wall s", "M hops/s", "M delivered/s", "peak MB", "x ns-2", "x ns-3", "Jain"
    );
    let (mut small, mut large) = (None, None);
    for case in CASES.iter().filter(|case| wanted(case.name)) {
        let cost = Some(measure(case));
        match case.name {
            "k=4" => small = cost,
            "k=16" => large = cost,
            _ => {}
        }
    }
    if let (Some(small), Some(large)) = (small, large) {
        println!("cost of a packet-hop, k=16 over k=4: {:.2}", large / small);
    }
    for case in CASES.iter().filter(|case| ["k=4", "k=8", "k=16"].contains(&case.name)) {
        if wanted(case.name) || wanted("threads") {
            compare_threads(case);
        }
    }
    for (bbr, reno) in [("A-bbr", "A"), ("B-bbr", "B")] {
        if wanted(bbr) {
            compare_bbr(bbr, reno);
        }
    }
    if wanted("memory") {
        connections::print_memory();
    }
}
