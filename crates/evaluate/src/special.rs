//! RFC 9743, section 7, but for its multipath: special cases.

use narrows_papers::{Ask, Form};

use crate::bed::{Bed, Link, Run};
use crate::cell::{
    Beside, Cell, FEW, Metric, STANDARD, Who, against, completion, dropped, each, goodput, link,
    longest, own, worst_loss,
};
use crate::rule::Better;
use crate::single::{KBPS, RTT_MS, judged, judged_with, paths, routes, several};

/// What a rival of each standard loses on a bed, the law with one path and with two.
fn harmed(
    law: &str,
    place: &str,
    kinds: &[&'static str],
    rtt_ms: f64,
    bed: impl Fn() -> Bed,
) -> Vec<Cell> {
    harmed_by(law, place, kinds, rtt_ms, (&[Metric::Goodput], false), bed)
}

/// The same of such metrics; `by_flow`, the law with two paths is judged against two flows.
fn harmed_by(
    law: &str,
    place: &str,
    kinds: &[&'static str],
    rtt_ms: f64,
    (metrics, by_flow): (&[Metric], bool),
    bed: impl Fn() -> Bed,
) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &kind in kinds {
        for count in [1, 2] {
            let bed = several(bed(), count, rtt_ms).tcps(1, "rival", "l", kind);
            let beside =
                Beside::new(format!("{place}, {}", paths(count)), bed, routes(count), kind);
            let beside = Beside { flows: if by_flow { count } else { 1 }, ..beside };
            cells.extend(beside.cells(law, metrics));
        }
    }
    cells
}

/// What the law has alone.
fn alone(law: &str, place: &str, bed: impl Fn() -> Bed) -> Cell {
    Cell::least(format!("{place}, alone"), law, |_: Who| bed().law_on("l", 1.0, ""), own)
}

/// 7.1: disciplines of one queue, dropping and marking.
pub fn aqm(law: &str, form: Form) -> Vec<Cell> {
    ["red", "codel", "pie"][form.pick(0, 0, 2)..]
        .iter()
        .flat_map(|discipline| disciplined(law, form, discipline, false))
        .collect()
}

/// 7.1: a queue for each flow: a path is a flow there.
pub fn by_flow(law: &str, form: Form) -> Vec<Cell> {
    disciplined(law, form, "fq-codel", true)
}

/// 6.2: the law and its rival in one tunnel, whose outer flow has one queue of FQ-CoDel. Its marks reach the ends, as by the normal
/// mode of RFC 6040; or it drops, though they use ECN: by the compatibility mode the outer flow does not.
pub fn tunnel(law: &str, form: Form) -> Vec<Cell> {
    let of = |&(mode, marks): &(&str, bool)| {
        let queue = format!("aqm = {{ fq-codel = {{ flows = 1 }} }}\necn = {marks}");
        let link = Link::new("l", KBPS, RTT_MS, 4.0).with(&queue);
        let metrics = Metric::all(&link);
        let bed = || Bed::one(link.clone(), 15.0, 45.0).ecn();
        let kinds = form.pick(&STANDARD[..], &STANDARD[..], &STANDARD[..1]);
        harmed_by(law, mode, kinds, RTT_MS, (&metrics, false), bed)
    };
    let modes = [("normal mode", true), ("compatibility mode", false)];
    modes[form.pick(0, 0, 1)..].iter().flat_map(of).collect()
}

fn disciplined(law: &str, form: Form, discipline: &str, by_flow: bool) -> Vec<Cell> {
    let of = |ecn: &bool| {
        let link =
            Link::new("l", KBPS, RTT_MS, 4.0).with(&format!("aqm = \"{discipline}\"\necn = {ecn}"));
        let metrics = Metric::all(&link);
        let bed = || {
            let bed = Bed::one(link.clone(), 15.0, 45.0);
            if *ecn { bed.ecn() } else { bed }
        };
        let place = format!("{discipline}{}", if *ecn { " with ECN" } else { "" });
        let kinds = form.pick(&STANDARD[..], &STANDARD[..], &STANDARD[..1]);
        harmed_by(law, &place, kinds, RTT_MS, (&metrics, by_flow), bed)
    };
    form.pick(&[false, true][..], &[false, true][..], &[true][..]).iter().flat_map(of).collect()
}

/// 7.1: marks alone, where nothing is dropped: the queue that the law keeps.
pub fn marks(law: &str, form: Form) -> Vec<Cell> {
    let cell = |discipline: &&str| {
        let bed = |_: Who| {
            let link = Link::new("l", KBPS, RTT_MS, 20.0)
                .with(&format!("aqm = \"{discipline}\"\necn = true"));
            Bed::one(link, 15.0, 45.0).ecn().law_on("l", 1.0, "")
        };
        Cell::most(format!("{discipline} marks"), law, bed, 1.0, |run| link(run, "l").mean_queue_ms)
    };
    // CoDel's queue shows best who ignores marks: the others drop before it is full.
    ["codel", "red", "dualpi2"][..form.pick(3, 3, 1)].iter().map(cell).collect()
}

/// 7.1: DualPI2 beside a scalable flow, DCTCP: what that loses more than beside Reno and CUBIC, the delay of its queue with it, and what
/// the law, a classic flow, lacks there. The law sends ECT(0) or without ECN, never ECT(1): that is the host's.
pub fn l4s(law: &str, form: Form) -> Vec<Cell> {
    const SCALABLE: &str = "dctcp";
    /// A quarter of the delay from which on DualPI2 marks: jitter alone is to cause no mark.
    const JITTER_MS: f64 = 0.2;
    let mut cells = Vec::new();
    for &ecn in form.pick(&[false, true][..], &[false, true][..], &[false][..]) {
        let link = Link::new("l", KBPS, RTT_MS, 4.0).with("aqm = \"dualpi2\"\necn = true");
        for count in [1, 2] {
            let bed = |who: Who| {
                let bed = Bed::one(link.clone(), 15.0, 45.0).steady(JITTER_MS);
                let bed = if ecn { bed.ecn() } else { bed };
                let bed = bed.tcp("rival1", "l", SCALABLE, 1.5, "tcp.ecn = \"scalable\"");
                judged(bed, who, count, RTT_MS)
            };
            let place = format!("{}{}", paths(count), if ecn { " with ECN" } else { "" });
            let metrics = Metric::all(&link);
            cells.extend(metrics.map(|metric| metric.cell(&place, SCALABLE, against(law, bed))));
            cells.push(Cell::least(format!("{place}, its own goodput"), law, bed, own));
        }
    }
    cells
}

/// 7.6: a receiver acknowledges lost data, hides marks, or acknowledges each packet: what a rival loses more than where a
/// standard's receiver does so. Windows are bounded by the receivers' buffers, of two pipes with full queues. No law sees a loss that
/// is hidden: there two paths are judged against two flows that have as much between them.
pub fn receivers(law: &str, form: Form) -> Vec<Cell> {
    let marks = Link::new("l", KBPS, RTT_MS, 4.0).with("aqm = \"red\"\necn = true");
    let lies = [
        ("hides losses", Link::new("l", KBPS, RTT_MS, 1.0), "tcp.receiver_hides = \"losses\""),
        ("hides marks", marks, "tcp.receiver_hides = \"marks\""),
        (
            "acknowledges each packet",
            Link::new("l", KBPS, RTT_MS, 1.0),
            "tcp.receiver_acks = \"every-packet\"",
        ),
    ];
    let mut cells = Vec::new();
    for (name, link, lie) in &lies {
        for &kind in form.pick(&STANDARD[..], &STANDARD[..], &STANDARD[..1]) {
            for count in [1, 2] {
                let bed = |who: Who| {
                    let bed = Bed::one(link.clone(), 15.0, 45.0).tcps(1, "rival", "l", kind);
                    let bed = if *name == "hides marks" { bed.ecn() } else { bed };
                    let buffer = |kb: u32| format!("{lie}, recv_buffer = \"{kb} kB\"");
                    match who {
                        Who::Standard(control) if *name == "hides losses" && count == 2 => {
                            let bed = bed.tcp("more1", "l", control, 1.0, &buffer(200));
                            judged_with(bed, who, count, RTT_MS, &buffer(200))
                        }
                        _ => judged_with(bed, who, count, RTT_MS, &buffer(400)),
                    }
                };
                let place = format!("{name}, {}", paths(count));
                cells.push(Metric::Goodput.cell(&place, kind, against(law, bed)));
            }
        }
    }
    cells
}

/// From when on a breaker sees drops, s: the fall itself is not the flows'.
const BREAKER_S: f64 = 25.0;
/// For how long it counts, s: several times longer than congestion controls need (RFC 8084, section 4).
const COUNTS_S: f64 = 5.0;

/// 7.2: four flows when their link falls to a tenth: the drops that a breaker sees, from five seconds later on, in all and where it sees
/// most.
pub fn breaker(law: &str, _: Form) -> Vec<Cell> {
    let bed = |who: Who| {
        let bed = Bed::one(Link::new("l", KBPS, RTT_MS, 1.0), BREAKER_S, 30.0);
        let bed = bed.event(BREAKER_S - 5.0, &["link = \"l\"", "rate = \"2 Mbit/s\""]);
        bed.tcps(3, "other", "l", who.control()).law_on("l", 1.0, "")
    };
    let all = Cell::most("a tenth of the rate", law, bed, FEW, |run| dropped(run, "l", 2_000.0));
    let worst = Cell::most("a tenth of the rate, its worst 5 s", law, bed, FEW, |run| {
        worst_loss(run, BREAKER_S, COUNTS_S)
    });
    [all, worst].map(Cell::with_series).into()
}

/// 7.3: the least delay changes each ten seconds.
pub fn varying_delay(law: &str, form: Form) -> Vec<Cell> {
    let more = form.pick(&[30.0, 100.0][..], &[100.0][..], &[30.0][..]);
    let mut cells = Vec::new();
    for &more in more {
        let bed = || {
            let delay = |ms: f64| format!("delay = \"{ms} ms\"");
            Bed::one(Link::new("l", KBPS, RTT_MS, 2.0), 10.0, 60.0)
                .event(15.0, &["every = \"20 s\"", "link = \"l\"", &delay(10.0 + more)])
                .event(25.0, &["every = \"20 s\"", "link = \"l\"", &delay(10.0)])
        };
        let place = format!("{more} ms more, and less");
        cells.push(alone(law, &place, bed));
        cells.extend(harmed(law, &place, &STANDARD, RTT_MS, bed));
    }
    cells
}

/// 7.4: 10 to 100 kbit/s, queues of four packets.
pub fn thin(law: &str, form: Form) -> Vec<Cell> {
    let rates = form.pick(&[10.0, 50.0, 100.0][..], &[10.0, 100.0][..], &[100.0][..]);
    let mut cells = Vec::new();
    for &kbps in rates {
        let bed = || Bed::one(Link::new("l", kbps, 200.0, 0.0), 60.0, 600.0);
        let place = format!("{kbps} kbit/s");
        cells.push(alone(law, &place, bed));
        let drops = |_: Who| bed().law_on("l", 1.0, "");
        cells.push(Cell::most(format!("{place}, drops"), law, drops, 0.01, move |run| {
            dropped(run, "l", kbps)
        }));
        cells.extend(harmed(law, &place, &STANDARD[..1], 200.0, bed));
    }
    cells
}

/// 7.5: a geostationary satellite: 600 ms.
pub fn high_delay(law: &str, form: Form) -> Vec<Cell> {
    let queues = form.pick(&[0.5, 1.0][..], &[1.0][..], &[1.0][..]);
    let mut cells = Vec::new();
    for &bdp in queues {
        let link = Link::new("l", 10_000.0, 600.0, bdp);
        let bed = || Bed::one(link.clone(), 60.0, 180.0).for_cycles_of(link.cycle_s(1, 600.0));
        let place = format!("600 ms, {bdp} BDP");
        cells.push(alone(law, &place, bed));
        cells.extend(harmed(law, &place, form.pick(&STANDARD, &STANDARD[..1], &[]), 600.0, bed));
    }
    cells
}

/// 7.7: shares of the packets are late and are overtaken.
pub fn reordering(law: &str, form: Form) -> Vec<Cell> {
    let kinds = form.pick(
        &[(1, 10), (5, 10), (5, 50), (30, 10), (30, 50)][..],
        &[(5, 10), (30, 50)][..],
        &[(5, 10)][..],
    );
    let cell = |(share, late): &(i32, i32)| {
        let bed = || {
            let reorder = format!("reorder = {{ share = \"{share} %\", delay = \"{late} ms\" }}");
            Bed::one(Link::new("l", KBPS, RTT_MS, 1.0).with(&reorder), 10.0, 40.0)
        };
        alone(law, &format!("{share} % by {late} ms"), bed)
    };
    kinds.iter().map(cell).collect()
}

/// 7.8: datagrams that take nine tenths for ten seconds; a link that is silent; one that pauses each ten seconds; hosts that move.
pub fn transient(law: &str, _: Form) -> Vec<Cell> {
    let onset = |warmup_s: f64, duration_s: f64| {
        move |_: Who| {
            Bed::one(Link::new("l", KBPS, RTT_MS, 1.0), warmup_s, duration_s)
                .udp("burst", "l", 0.9 * KBPS, 30.0)
                .event(40.0, &["flow = \"burst\"", "on = false"])
                .law_on("l", 1.0, "")
        }
    };
    let outage = || {
        Bed::one(Link::new("l", KBPS, RTT_MS, 1.0), 30.0, 30.0)
            .event(25.0, &["link = \"l\"", "up = false"])
            .event(30.0, &["link = \"l\"", "up = true"])
    };
    let pauses = || {
        Bed::one(Link::new("l", KBPS, RTT_MS, 4.0), 15.0, 50.0)
            .event(10.0, &["every = \"10 s\"", "link = \"l\"", "hold = \"1 s\""])
    };
    let moves = || {
        let other = ["link = \"l\"", "rate = \"5 Mbit/s\"", "delay = \"40 ms\""];
        Bed::one(Link::new("l", KBPS, RTT_MS, 1.0), 25.0, 35.0)
            .event(25.0, &["link = \"l\"", "up = false"])
            .event(25.5, &other)
            .event(26.0, &["link = \"l\"", "up = true"])
    };
    let of_phone = |_: Who| handover(true, AWAY_S[0], 40.0);
    // A standard is a flow that starts there then.
    let on_lte = |who: Who| {
        let moves = matches!(who, Who::Law(_));
        handover(moves, AWAY_S[0] + 2.0, AWAY_S[1] - AWAY_S[0] - 2.0)
    };
    vec![
        Cell::most("sudden onset, drops", law, onset(30.0, 10.0), FEW, |run| {
            dropped(run, "l", KBPS)
        }),
        Cell::least("after the onset", law, onset(40.0, 20.0), own),
        alone(law, "after 5 s of outage", outage),
        alone(law, "1 s of silence each 10 s", pauses),
        alone(law, "moves to a network of a quarter of the rate", moves),
        Cell::least("moves from Wi-Fi to LTE and back, 2 paths", law, of_phone, own),
        Cell::least("moves from Wi-Fi to LTE, 2 paths, a rival there", law, on_lte, |run| {
            goodput(run, "rival")
        }),
    ]
}

/// From when to when a phone is away from its Wi-Fi, s.
const AWAY_S: [f64; 2] = [20.0, 45.0];

/// The network of `phone/wifi-handover`: Wi-Fi falls silent, ten seconds later its address is given up, and later it is there
/// again; LTE, with a rival, is a backup until then. Without `paths` the judged flow is on LTE alone, while Wi-Fi is away.
fn handover(paths: bool, warmup_s: f64, duration_s: f64) -> Bed {
    let bed = Bed::new(warmup_s, duration_s)
        .link(Link::new("wifi", 30_000.0, 20.0, 2.0).with("wifi = {}"))
        .link(Link::new("lte", 12_000.0, 60.0, 2.5))
        .tcps(1, "rival", "lte", "cubic");
    if !paths {
        return bed.law_on("lte", AWAY_S[0], "");
    }
    bed.law_over(&["wifi".into(), "lte".into()], 1.0, "backup = [\"lte\"]")
        .event(AWAY_S[0], &["link = \"wifi\"", "up = false"])
        .event(AWAY_S[0] + 10.0, &["flow = \"law\"", "lose = \"wifi\""])
        .event(AWAY_S[1], &["link = \"wifi\"", "up = true"])
        .event(AWAY_S[1], &["flow = \"law\"", "add = \"wifi\""])
}

/// 7.9: rate and RTT change at once, and again each ten seconds.
pub fn sudden(law: &str, _: Form) -> Vec<Cell> {
    let change = |kbps: f64, what: &'static [&'static str]| {
        move || Bed::one(Link::new("l", kbps, RTT_MS, 1.0), 20.0, 20.0).event(20.0, what)
    };
    let less = change(KBPS, &["link = \"l\"", "rate = \"2 Mbit/s\""]);
    let more = change(2_000.0, &["link = \"l\"", "rate = \"20 Mbit/s\""]);
    let far = change(KBPS, &["link = \"l\"", "delay = \"170 ms\""]);
    let routes = || {
        let bed = Bed::one(Link::new("l", KBPS, RTT_MS, 2.0), 10.0, 60.0);
        let far = ["every = \"20 s\"", "link = \"l\"", "rate = \"5 Mbit/s\"", "delay = \"60 ms\""];
        let near =
            ["every = \"20 s\"", "link = \"l\"", "rate = \"20 Mbit/s\"", "delay = \"10 ms\""];
        bed.event(10.0, &far).event(20.0, &near)
    };
    let queue = |_: Who| less().law_on("l", 1.0, "");
    let mut cells = vec![
        alone(law, "a tenth of the rate", less),
        Cell::most("a tenth of the rate, queue", law, queue, 1.0, |run| {
            link(run, "l").mean_queue_ms
        })
        .at_worst(10.0 * Link::new("l", KBPS, RTT_MS, 1.0).full_ms()),
        alone(law, "ten times the rate", more),
        alone(law, "five times the RTT", far),
        alone(law, "another route each 10 s", routes),
    ];
    cells.extend(harmed(law, "a tenth of the rate", &STANDARD, RTT_MS, less));
    cells.extend(harmed(law, "another route each 10 s", &STANDARD, RTT_MS, routes));
    cells
}

/// 7.11: answers of many servers at once, all of the law.
pub fn data_center(law: &str, form: Form) -> Vec<Cell> {
    let servers = form.pick(&[8, 32, 64][..], &[8, 32][..], &[8][..]);
    let incast = |&servers: &usize| {
        let bed = |who: Who| {
            let file = "source.file = { size = \"64 kB\" }";
            let bed = Bed::one(Link::new("l", 1_000_000.0, 0.1, 5.0), 0.5, 3.0);
            let bed = (1..servers).fold(bed, |bed, number| {
                bed.tcp(&format!("answer{number}"), "l", who.control(), 1.0, file)
            });
            bed.law_on("l", 1.0, file)
        };
        Cell::most(format!("{servers} answers at once"), law, bed, 0.0, |run| completion(run, ""))
    };
    servers.iter().map(incast).collect()
}

/// 7.11: a file from each host of a fat tree to another one, all of the law: the mean of their completions, and the last of them.
/// Connections of several paths have a subflow on as many of the shortest paths, a standard's flow one, as a hash gives them.
pub fn fabric(law: &str, form: Form) -> Vec<Cell> {
    let counts = form.pick(&[1, 4, 8][..], &[1, 4][..], &[1, 4][..]);
    let mut cells = Vec::new();
    for draw in 1..=form.pick(4, 2, 1) {
        for &count in counts {
            let runs = || each(law, |who: Who| in_fat_tree(who, count, draw));
            let less = Better::Less { floor: 0.0 };
            let place = |what: &str| format!("{what}, {}, draw {draw}", paths(count));
            cells.push(Cell::new(place("mean"), runs(), less, |run| completion(run, "host")));
            cells.push(Cell::new(place("the last"), runs(), less, |run| longest(run, "host")));
        }
    }
    cells
}

/// Files in the fat tree of `lisa/fat-tree`, which is that of Barik et al. (ICC 2016), with a permutation of hosts that is drawn.
fn in_fat_tree(who: Who, count: usize, draw: u64) -> Run {
    let (control, paths) = (who.control(), who.paths(count));
    let toml = format!(
        r#"name = "bcp133"
title = "a fat tree of the evaluation"
source = "LISA (Barik et al., ICC 2016), Section IV-B; files and traffic are our choice"
warmup = "0 s"
duration = "10 s"
test = "host0"
tcp.receiver_acks = "linux-6.5"
[generator.fat-tree]
k = 4
rate = "1 Gbit/s"
delay = "416.667 us"
queue = "1000 packets"
core = {{ rate = "50 Mbit/s", queue = "25 packets" }}
source = {{ file = {{ size = "1 MB" }} }}
cc = "{control}"
subflows = {paths}
routing = "ecmp"
seed = {draw}
"#
    );
    Run { ask: Ask::made(toml, [control]), control: control.into(), paths }
}
