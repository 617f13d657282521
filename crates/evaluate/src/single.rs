//! RFC 9743, section 5.1: flows of the one algorithm alone.

use narrows_papers::Form;

use crate::bed::{Bed, Link};
use crate::cell::{
    Cell, FEW, STANDARD, Who, completion, dropped, goodput, jain, link, offered, own,
};
use crate::rule::Better;

/// The link of most criteria: 20 Mbit/s, 40 ms.
pub const KBPS: f64 = 20_000.0;
/// Its base RTT, ms.
pub const RTT_MS: f64 = 40.0;

/// Packets into nothing that do not count: RFC 6298's timeouts, doubled from 200 ms on, send eight in a minute.
const BACKED_OFF: f64 = 8.0;

/// Sizes of files on web servers, bytes: the quantiles (i + 0.5) / 20 of Barford and Crovella, SIGMETRICS 1998, table 1: 93 % lognormal
/// (9.357, 1.318), the rest Pareto from 133 kB with 1.1. In an order that mixes them.
pub const SIZES: [u32; 20] = [
    3_608, 14_344, 90_741, 4_602, 17_217, 333_947, 5_707, 20_832, 339_124, 6_955, 25_541, 911,
    8_384, 31_979, 1_828, 10_043, 41_442, 2_696, 11_998, 57_148,
];

/// Routes `l`, `l2`, .. over the link `l`.
pub fn routes(paths: usize) -> Vec<String> {
    (1..=paths).map(|path| if path == 1 { "l".into() } else { format!("l{path}") }).collect()
}

/// A bed with so many routes over its link `l`.
pub fn several(bed: Bed, paths: usize, rtt_ms: f64) -> Bed {
    routes(paths).iter().skip(1).fold(bed, |bed, route| bed.route(route, &["l"], rtt_ms))
}

/// How many paths, in words.
pub fn paths(count: usize) -> String {
    if count == 1 { "one path".into() } else { format!("{count} paths") }
}

/// The judged flow over so many paths of the link `l`; under a standard it is one flow.
pub fn judged(bed: Bed, who: Who, count: usize, rtt_ms: f64) -> Bed {
    judged_with(bed, who, count, rtt_ms, "")
}

/// The same with more fields.
pub fn judged_with(bed: Bed, who: Who, count: usize, rtt_ms: f64, more: &str) -> Bed {
    let count = who.paths(count);
    if count == 1 {
        return bed.law_on("l", 1.0, more);
    }
    several(bed, count, rtt_ms).law_over(&routes(count), 1.0, more)
}

/// 5.1.1: random loss of up to a half.
pub fn loss(law: &str, form: Form) -> Vec<Cell> {
    let shares = form.pick(&[10, 20, 30, 40, 50][..], &[10, 30, 50][..], &[50][..]);
    let cell = |share: &i32| {
        let lossy = Link::new("l", 10_000.0, RTT_MS, 1.0).with(&format!("loss = \"{share} %\""));
        let bed = move |_: Who| Bed::one(lossy.clone(), 5.0, 60.0).law_on("l", 1.0, "");
        Cell::most(format!("{share} % lost"), law, bed, 0.0, |run| offered(run, "l", 10_000.0))
    };
    shares.iter().map(cell).collect()
}

/// 5.1.1 and 5.2: from 20 s on nothing passes, or nothing returns; counted from a second later on, for a minute.
fn silent(law: &str, name: &str, count: usize, event: &str) -> Cell {
    let bed = |who: Who| {
        let count = who.paths(count);
        let links: Vec<String> = (1..=count).map(|path| format!("l{path}")).collect();
        let mut bed = Bed::new(21.0, 60.0);
        for name in &links {
            bed = bed.link(Link::new(name, 10_000.0, RTT_MS, 1.0).back());
            let link = format!("link = \"{name}{event}\"");
            bed = bed.event(20.0, &[&link, "up = false"]);
        }
        if count == 1 { bed.law_on("l1", 1.0, "") } else { bed.law_over(&links, 1.0, "") }
    };
    Cell::most(format!("{name}, {}", paths(count)), law, bed, BACKED_OFF, |run| {
        let links = run.summary.links.iter().filter(|link| !link.name.ends_with("-back"));
        let each: Vec<f64> = links.map(|link| offered(run, &link.name, 10_000.0)).collect();
        narrows_stats::mean(&each)
    })
}

/// 5.1.1: a link that loses all.
pub fn blackout(law: &str, _: Form) -> Vec<Cell> {
    [1, 2].map(|count| silent(law, "nothing passes", count, "")).into()
}

/// 5.2: all feedback is lost.
pub fn feedback(law: &str, _: Form) -> Vec<Cell> {
    [1, 2].map(|count| silent(law, "nothing returns", count, "-back")).into()
}

/// So many flows of one control: the judged one, from `start_s` on, and `other..`; connections of several paths under the law.
fn crowd(bed: Bed, who: Who, flows: usize, count: usize, rtt_ms: f64, start_s: f64) -> Bed {
    let (count, control) = (who.paths(count), who.control());
    if count == 1 {
        return bed.tcps(flows - 1, "other", "l", control).law_on("l", start_s, "");
    }
    let bed = several(bed, count, rtt_ms).law_over(&routes(count), start_s, "");
    (1..flows).fold(bed, |bed, number| {
        let start_s = 0.5 + number as f64 / flows as f64;
        bed.mptcp(&format!("other{number}"), &routes(count), control, start_s, "")
    })
}

/// 5.1.1: many flows on a thin link, each with less than a packet for a round trip.
pub fn thin_crowd(law: &str, form: Form) -> Vec<Cell> {
    let flows = form.pick(&[10, 30, 60][..], &[10, 30][..], &[10][..]);
    let cell = |&flows: &usize| {
        let bed = |who: Who| {
            let bed = Bed::one(Link::new("l", 1_000.0, 100.0, 1.0), 10.0, 60.0);
            crowd(bed, who, flows, 1, 100.0, 1.0)
        };
        let place = format!("{flows} flows on 1 Mbit/s");
        Cell::most(place, law, bed, FEW, |run| dropped(run, "l", 1_000.0))
    };
    flows.iter().map(cell).collect()
}

/// 5.1.2: the mean queue.
pub fn bufferbloat(law: &str, form: Form) -> Vec<Cell> {
    let queues = form.pick(
        &[0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0][..],
        &[0.25, 0.5, 2.0, 20.0][..],
        &[1.0][..],
    );
    let mut cells = Vec::new();
    for &bdp in queues {
        let queue = Link::new("l", 10_000.0, RTT_MS, bdp);
        for count in [1, 2] {
            let bed = |who: Who| {
                let bed = Bed::one(queue.clone(), 20.0, 60.0);
                judged(bed.for_cycles_of(queue.cycle_s(1, RTT_MS)), who, count, RTT_MS)
            };
            let place = format!("{bdp} BDP, {}", paths(count));
            let cell = Cell::most(place, law, bed, 1.0, |run| link(run, "l").mean_queue_ms);
            cells.push(cell.at_worst(queue.full_ms()));
        }
    }
    cells
}

/// 5.1.3: the share dropped at short queues.
pub fn shallow(law: &str, form: Form) -> Vec<Cell> {
    let queues = form.pick(&[0.1, 0.25, 0.5, 1.0, 1.5][..], &[0.1, 0.5, 1.5][..], &[0.5][..]);
    let flows = form.pick(&[1, 4, 16][..], &[4][..], &[4][..]);
    let mut cells = Vec::new();
    for &bdp in queues {
        for &flows in flows {
            for count in [1, 2] {
                let bed = |who: Who| {
                    let bed = Bed::one(Link::new("l", KBPS, RTT_MS, bdp), 10.0, 40.0);
                    crowd(bed, who, flows, count, RTT_MS, 1.0)
                };
                let place = format!("{bdp} BDP, {flows} flows of {}", paths(count));
                cells.push(Cell::most(place, law, bed, FEW, |run| dropped(run, "l", KBPS)));
            }
        }
    }
    cells
}

/// Of how many paths the connections of 5.1.4 are that share with their like.
fn alike(form: Form) -> &'static [usize] {
    form.pick(&[1, 2, 8], &[1, 2], &[1, 2])
}

/// 5.1.4: Jain's index of flows with one RTT, and of two with others.
pub fn fairness(law: &str, form: Form) -> Vec<Cell> {
    let flows = form.pick(&[2, 8, 32, 100][..], &[2, 16][..], &[2][..]);
    let factors = form.pick(&[2.0, 5.0, 10.0][..], &[2.0, 10.0][..], &[][..]);
    let mut cells = Vec::new();
    for &count in alike(form) {
        for &flows in flows {
            let bed = |who: Who| {
                let bed = Bed::one(Link::new("l", 2_000.0 * flows as f64, RTT_MS, 1.0), 20.0, 60.0);
                crowd(bed, who, flows, count, RTT_MS, 1.0)
            };
            let place = format!("{flows} flows of {}", paths(count));
            let cell = Cell::least(place, law, bed, |run| jain(run, "other"));
            cells.push(cell.at_worst(1.0 / flows as f64));
        }
        for &factor in factors {
            let bed = |who: Who| {
                let bed = Bed::one(Link::new("l", KBPS, RTT_MS, 1.0), 20.0, 60.0);
                judged(another(bed, who, count, factor * RTT_MS), who, count, RTT_MS)
            };
            let place = format!("RTTs 1 to {factor}, {}", paths(count));
            cells.push(Cell::least(place, law, bed, |run| jain(run, "other")).at_worst(0.5));
        }
    }
    cells
}

/// A flow `other1` of the same control over routes of its own, with another RTT; a connection of several paths under the law.
fn another(bed: Bed, who: Who, count: usize, rtt_ms: f64) -> Bed {
    let far: Vec<String> = (1..=who.paths(count)).map(|path| format!("far{path}")).collect();
    let bed = far.iter().fold(bed, |bed, route| bed.route(route, &["l"], rtt_ms));
    match far.as_slice() {
        [route] => bed.tcp("other1", route, who.control(), 1.5, ""),
        far => bed.mptcp("other1", far, who.control(), 1.5, ""),
    }
}

/// 5.1.4: a flow that comes 30 s later: its share from 45 to 65 s.
pub fn late(law: &str, form: Form) -> Vec<Cell> {
    let queues = form.pick(&[0.5, 1.0, 5.0][..], &[1.0, 5.0][..], &[1.0][..]);
    let mut cells = Vec::new();
    for &count in alike(form) {
        for &bdp in queues {
            let bed = |who: Who| {
                let bed = Bed::one(Link::new("l", KBPS, RTT_MS, bdp), 45.0, 20.0);
                crowd(bed, who, 2, count, RTT_MS, 30.0)
            };
            cells.push(Cell::least(format!("{bdp} BDP, {}", paths(count)), law, bed, |run| {
                let all = own(run) + goodput(run, "other");
                if all > 0.0 { own(run) / all } else { 0.0 }
            }));
        }
    }
    cells
}

/// 5.1.4: a connection of several paths beside a flow of its own law, against two such flows; and what it
/// lacks, against two flows of a standard.
pub fn of_paths(law: &str, form: Form) -> Vec<Cell> {
    let counts = form.pick(&[2, 3, 5, 8][..], &[2, 8][..], &[2][..]);
    let mut cells = Vec::new();
    for &count in counts {
        let bed = |who: Who| {
            let bed = Bed::one(Link::new("l", KBPS, RTT_MS, 1.0), 20.0, 60.0);
            judged(bed.tcps(1, "other", "l", who.control()), who, count, RTT_MS)
        };
        let runs = |others: &[&str]| {
            let run = |who: Who| bed(who).run(who.control());
            let others = others.iter().map(|control| Who::Standard(control));
            [Who::Law(law)].into_iter().chain(others).map(run).collect::<Vec<_>>()
        };
        let place = format!("{count} paths, what the flow loses");
        cells.push(Cell::new(place, runs(&[law]), Better::More, |run| goodput(run, "other")));
        let place = format!("{count} paths, what they lack");
        cells.push(Cell::new(place, runs(&STANDARD), Better::More, own));
    }
    cells
}

/// Of the link of short flows, kbit/s: it is thin, so that they are not thousands.
const THIN_KBPS: f64 = 10_000.0;
/// For how long short flows come, s: from the fifth second on.
const SHORTS_S: f64 = 30.0;

/// What short flows offer, as shares of their link.
pub fn loads(form: Form) -> &'static [f64] {
    form.pick(&[0.2, 0.5], &[0.2, 0.5], &[0.2])
}

/// A link with short flows for half a minute, as many as are such a share of it, of sizes as on web servers. Five more seconds are
/// for the last of them.
pub fn shorts(name: &str, control: &str, load: f64) -> Bed {
    let bits = 8.0 * SIZES.iter().map(|&size| f64::from(size)).sum::<f64>();
    let each_s = bits / SIZES.len() as f64 / (load * THIN_KBPS * 1000.0);
    let bed = Bed::one(Link::new("l", THIN_KBPS, RTT_MS, 1.0), 5.0, SHORTS_S + 5.0);
    let count = (SHORTS_S / each_s) as usize;
    SIZES.iter().cycle().take(count).enumerate().fold(bed, |bed, (number, size)| {
        let start_s = 5.0 + libm::round(1000.0 * each_s * number as f64) / 1000.0;
        let file = format!("source.file = {{ size = \"{size} B\" }}");
        bed.tcp(&format!("{name}{number}"), "l", control, start_s, &file)
    })
}

/// 5.1.5: short flows beside a long one, and the long one beside them, all of the law.
pub fn short(law: &str, form: Form) -> Vec<Cell> {
    let counts = form.pick(&[1, 2][..], &[1, 2][..], &[1][..]);
    let mut cells = Vec::new();
    for &load in loads(form) {
        for &count in counts {
            let bed = |who: Who| judged(shorts("short", who.control(), load), who, count, RTT_MS);
            let place = |what: &str| {
                format!("{what}, {:.0} % load, the long one of {}", 100.0 * load, paths(count))
            };
            let short = place("completion of the short");
            cells.push(Cell::most(short, law, bed, 0.0, |run| completion(run, "short")));
            cells.push(Cell::least(place("goodput of the long"), law, bed, own));
        }
    }
    cells
}
