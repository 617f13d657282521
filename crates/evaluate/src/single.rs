//! RFC 9743, section 5.1: flows of the one algorithm alone.

use narrows_papers::Form;

use crate::bed::{Bed, Link};
use crate::cell::{Cell, FEW, completion, dropped, goodput, jain, link, offered, own};
use crate::rule::less;

/// The link of most criteria: 20 Mbit/s, 40 ms.
pub const KBPS: f64 = 20_000.0;
/// Its base RTT, ms.
pub const RTT_MS: f64 = 40.0;

/// A file's worth of packets into nothing: RFC 6298's timeouts, doubled from 200 ms on, send eight in a minute.
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
    routes(paths).iter().skip(1).fold(bed, |bed, route| bed.route(route, "l", rtt_ms))
}

/// How many paths, in words.
pub fn paths(count: usize) -> String {
    if count == 1 { "one path".into() } else { format!("{count} paths") }
}

/// The judged flow over so many paths of the link `l`; under a standard it is one flow.
fn judged(bed: Bed, control: &str, law: &str, count: usize, rtt_ms: f64) -> Bed {
    if count == 1 || control != law {
        return bed.law_on("l", 1.0, "");
    }
    several(bed, count, rtt_ms).law_over(&routes(count), 1.0, "")
}

/// 5.1.1: random loss of up to a half.
pub fn loss(law: &str, form: Form) -> Vec<Cell> {
    let shares = form.pick(&[10, 20, 30, 40, 50][..], &[10, 30, 50][..], &[50][..]);
    let cell = |share: &i32| {
        let lossy = Link::new("l", 10_000.0, RTT_MS, 1.0).with(&format!("loss = \"{share} %\""));
        let bed = move |_: &str| Bed::one(lossy.clone(), 5.0, 60.0).law_on("l", 1.0, "");
        Cell::most(format!("{share} % lost"), law, bed, 0.0, |run| offered(run, "l", 10_000.0))
    };
    shares.iter().map(cell).collect()
}

/// 5.1.1 and 5.2: from 20 s on nothing passes, or nothing returns; counted from a second later on, for a minute.
fn silent(law: &str, name: &str, count: usize, event: &str) -> Cell {
    let bed = |control: &str| {
        let count = if control == law { count } else { 1 };
        let links: Vec<String> = (1..=count).map(|path| format!("l{path}")).collect();
        let mut bed = Bed::new(21.0, 60.0);
        for name in &links {
            bed = bed.link(Link::new(name, 10_000.0, RTT_MS, 1.0).back());
            let link = format!("link = \"{name}{event}\"");
            bed = bed.event(20.0, &[&link, "up = false"]);
        }
        if count == 1 { bed.law_on("l1", 1.0, "") } else { bed.law_over(&links, 1.0, "") }
    };
    let place = format!("{name}, {}", paths(count));
    let runs = crate::cell::against(law, bed);
    Cell::new(place, runs, move |runs| {
        let each = |run: &narrows_papers::Kept, links: usize| {
            let all = (1..=links).map(|path| offered(run, &format!("l{path}"), 10_000.0));
            all.sum::<f64>() / links as f64
        };
        let standard = runs[1..].iter().map(|run| each(run, 1)).fold(0.0, f64::max);
        crate::rule::more(each(runs[0], count), standard, BACKED_OFF)
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

/// So many flows of one control: the judged one and `other..`; connections of several paths under the law.
fn crowd(bed: Bed, control: &str, law: &str, flows: usize, count: usize, rtt_ms: f64) -> Bed {
    if count == 1 || control != law {
        return bed.tcps(flows - 1, "other", "l", control).law_on("l", 1.0, "");
    }
    let bed = several(bed, count, rtt_ms).law_over(&routes(count), 1.0, "");
    (1..flows).fold(bed, |bed, number| {
        let start_s = 0.5 + number as f64 / flows as f64;
        bed.mptcp(&format!("other{number}"), &routes(count), control, start_s, "")
    })
}

/// 5.1.1: many flows on a thin link, each with less than a packet for a round trip.
pub fn thin_crowd(law: &str, form: Form) -> Vec<Cell> {
    let flows = form.pick(&[10, 30, 60][..], &[10, 30][..], &[10][..]);
    let cell = |&flows: &usize| {
        let bed = |control: &str| {
            let bed = Bed::one(Link::new("l", 1_000.0, 100.0, 1.0), 10.0, 60.0);
            crowd(bed, control, law, flows, 1, 100.0)
        };
        let place = format!("{flows} flows on 1 Mbit/s");
        Cell::most(place, law, bed, FEW, |run| dropped(run, "l", 1_000.0))
    };
    flows.iter().map(cell).collect()
}

/// 5.1.2: the mean queue.
pub fn bufferbloat(law: &str, form: Form) -> Vec<Cell> {
    let queues =
        form.pick(&[0.5, 1.0, 2.0, 5.0, 10.0, 20.0][..], &[0.5, 2.0, 20.0][..], &[1.0][..]);
    let mut cells = Vec::new();
    for &bdp in queues {
        for count in [1, 2] {
            let bed = |control: &str| {
                let bed = Bed::one(Link::new("l", 10_000.0, RTT_MS, bdp), 20.0, 60.0);
                judged(bed, control, law, count, RTT_MS)
            };
            let place = format!("{bdp} BDP, {}", paths(count));
            cells.push(Cell::most(place, law, bed, 1.0, |run| link(run, "l").mean_queue_ms));
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
                let bed = |control: &str| {
                    let bed = Bed::one(Link::new("l", KBPS, RTT_MS, bdp), 10.0, 40.0);
                    crowd(bed, control, law, flows, count, RTT_MS)
                };
                let place = format!("{bdp} BDP, {flows} flows of {}", paths(count));
                cells.push(Cell::most(place, law, bed, FEW, |run| dropped(run, "l", KBPS)));
            }
        }
    }
    cells
}

/// 5.1.4: Jain's index of flows with one RTT, and of two with others.
pub fn fairness(law: &str, form: Form) -> Vec<Cell> {
    let flows = form.pick(&[2, 8, 32, 100][..], &[2, 16][..], &[2][..]);
    let many = |&flows: &usize| {
        let bed = |control: &str| {
            let bed = Bed::one(Link::new("l", 2_000.0 * flows as f64, RTT_MS, 1.0), 20.0, 60.0);
            crowd(bed, control, law, flows, 1, RTT_MS)
        };
        Cell::least(format!("{flows} flows"), law, bed, |run| jain(run, "other"))
    };
    let factors = form.pick(&[2.0, 5.0, 10.0][..], &[2.0, 10.0][..], &[][..]);
    let rtts = |&factor: &f64| {
        let bed = |control: &str| {
            let bed = Bed::one(Link::new("l", KBPS, RTT_MS, 1.0), 20.0, 60.0);
            let bed = bed.route("far", "l", factor * RTT_MS).tcps(1, "other", "far", control);
            bed.law_on("l", 1.0, "")
        };
        Cell::least(format!("RTTs 1 to {factor}"), law, bed, |run| jain(run, "other"))
    };
    flows.iter().map(many).chain(factors.iter().map(rtts)).collect()
}

/// 5.1.4: a flow that comes 30 s later: its share from 45 to 65 s.
pub fn late(law: &str, form: Form) -> Vec<Cell> {
    let queues = form.pick(&[0.5, 1.0, 5.0][..], &[1.0, 5.0][..], &[1.0][..]);
    let cell = |&bdp: &f64| {
        let bed = |control: &str| {
            let bed = Bed::one(Link::new("l", KBPS, RTT_MS, bdp), 45.0, 20.0);
            bed.tcps(1, "other", "l", control).law_on("l", 30.0, "")
        };
        Cell::least(format!("{bdp} BDP"), law, bed, |run| {
            own(run) / (own(run) + goodput(run, "other"))
        })
    };
    queues.iter().map(cell).collect()
}

/// 5.1.4: a connection of several paths beside a flow of its own law, against two such flows.
pub fn of_paths(law: &str, form: Form) -> Vec<Cell> {
    let counts = form.pick(&[2, 3, 4, 5][..], &[2, 5][..], &[2][..]);
    let mut cells = Vec::new();
    for &count in counts {
        let runs = || {
            let bed = || {
                Bed::one(Link::new("l", KBPS, RTT_MS, 1.0), 20.0, 60.0).tcps(1, "other", "l", law)
            };
            let of = |count| (judged(bed(), law, law, count, RTT_MS).ask(law), law.to_owned());
            vec![of(count), of(1)]
        };
        cells.push(Cell::new(format!("{count} paths, what the flow loses"), runs(), |runs| {
            less(goodput(runs[0], "other"), goodput(runs[1], "other"))
        }));
        cells.push(Cell::new(format!("{count} paths, what they lack"), runs(), |runs| {
            less(own(runs[0]), own(runs[1]))
        }));
    }
    cells
}

/// Short flows each two seconds from the fifth on, of sizes as on web servers.
pub fn shorts(bed: Bed, name: &str, control: &str) -> Bed {
    SIZES.iter().enumerate().fold(bed, |bed, (number, size)| {
        let start_s = 5.0 + 2.0 * number as f64;
        let file = format!("source.file = {{ size = \"{size} B\" }}");
        bed.tcp(&format!("{name}{number}"), "l", control, start_s, &file)
    })
}

/// 5.1.5: short flows beside a long one, and the long one beside them, all of the law.
pub fn short(law: &str, form: Form) -> Vec<Cell> {
    let counts = form.pick(&[1, 2][..], &[1, 2][..], &[1][..]);
    let mut cells = Vec::new();
    for &count in counts {
        let bed = |control: &str| {
            let bed = Bed::one(Link::new("l", KBPS, RTT_MS, 1.0), 4.0, 56.0);
            judged(shorts(bed, "short", control), control, law, count, RTT_MS)
        };
        let place = |what: &str| format!("{what}, the long one of {}", paths(count));
        cells.push(Cell::most(place("completion of the short"), law, bed, 0.0, |run| {
            completion(run, "short")
        }));
        cells.push(Cell::least(place("goodput of the long"), law, bed, own));
    }
    cells
}
