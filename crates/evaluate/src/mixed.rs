//! RFC 9743, section 5.2: the law's flows beside those of other algorithms.

use narrows_papers::Form;

use crate::bed::{Bed, Link};
use crate::cell::{Beside, Cell, FEW, Metric, STANDARD, Who, completion, dropped, goodput, link};
use crate::single::{KBPS, RTT_MS, SIZES, judged, paths, routes, several, shorts};

/// What others lose where the law has so many paths over the link beside so many rivals: goodput, or `all` metrics.
fn beside(
    law: &str,
    kinds: &[&'static str],
    places: &[(usize, f64)],
    counts: &[usize],
    all: bool,
) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &kind in kinds {
        for &(rivals, bdp) in places {
            for &count in counts {
                let link = Link::new("l", KBPS, RTT_MS, bdp);
                let delay = Metric::Delay { base_ms: RTT_MS, full_ms: link.full_ms() };
                let metrics = [Metric::Goodput, Metric::Loss, delay];
                let bed = Bed::one(link, 15.0, 45.0);
                let bed = several(bed, count, RTT_MS).tcps(rivals, "rival", "l", kind);
                let place = format!("{} beside {rivals}, {bdp} BDP", paths(count));
                let beside = Beside::new(place, bed, routes(count), kind);
                cells.extend(beside.cells(law, &metrics[..if all { 3 } else { 1 }]));
            }
        }
    }
    cells
}

/// One rival and four, at short and long queues.
fn places(form: Form) -> &'static [(usize, f64)] {
    form.pick(
        &[(1, 1.0), (1, 4.0), (4, 0.5), (4, 1.0), (4, 4.0)],
        &[(1, 1.0), (4, 1.0)],
        &[(1, 1.0)],
    )
}

/// 5.2.1: beside Reno and CUBIC with one path.
pub fn one_path(law: &str, form: Form) -> Vec<Cell> {
    beside(law, form.pick(&STANDARD, &STANDARD, &STANDARD[..1]), places(form), &[1], true)
}

/// 5.2.1: the same with all of several paths through the link.
pub fn several_paths(law: &str, form: Form) -> Vec<Cell> {
    let counts = form.pick(&[2, 4][..], &[2][..], &[2][..]);
    beside(law, form.pick(&STANDARD, &STANDARD, &STANDARD[..1]), places(form), counts, true)
}

/// 5.2.1: beside BBR.
pub fn deployed(law: &str, form: Form) -> Vec<Cell> {
    let kinds = form.pick(&["bbr", "bbr3"][..], &["bbr", "bbr3"][..], &["bbr3"][..]);
    beside(law, kinds, form.pick(places(form), &[(1, 1.0)], &[(1, 1.0)]), &[1, 2], false)
}

/// 5.2: starvation: at short and long queues, and of rivals with five times the RTT.
pub fn starvation(law: &str, form: Form) -> Vec<Cell> {
    let queues = form.pick(&[0.25, 1.0, 10.0][..], &[0.25, 10.0][..], &[1.0][..]);
    let far = form.pick(&[1.0, 5.0][..], &[1.0, 5.0][..], &[5.0][..]);
    let mut cells = Vec::new();
    for kind in STANDARD {
        for &bdp in queues {
            for &far in far {
                for count in form.pick(&[1, 2, 4][..], &[1, 2][..], &[2][..]).iter().copied() {
                    let bed = Bed::one(Link::new("l", KBPS, RTT_MS, bdp), 15.0, 45.0);
                    let bed = several(bed, count, RTT_MS).route("far", "l", far * RTT_MS);
                    let bed = bed.tcps(1, "rival", "far", kind);
                    let place = format!("{}, {bdp} BDP, the rival's RTT {far} times", paths(count));
                    let beside = Beside::new(place, bed, routes(count), kind);
                    cells.extend(beside.cells(law, &[Metric::Goodput]));
                }
            }
        }
    }
    cells
}

/// 5.2.2: what a datagram source of 1 Mbit/s meets on the link: delay and drops.
pub fn constant_rate(law: &str, form: Form) -> Vec<Cell> {
    let queues = form.pick(&[0.5, 1.0, 4.0][..], &[1.0][..], &[1.0][..]);
    let mut cells = Vec::new();
    for &bdp in queues {
        for count in [1, 2] {
            let queue = Link::new("l", 6_000.0, RTT_MS, bdp);
            let full_ms = queue.full_ms();
            let bed = |who: Who| {
                let bed = Bed::one(queue.clone(), 10.0, 50.0).udp("media", "l", 1_000.0, 0.5);
                judged(bed, who, count, RTT_MS)
            };
            let place = |what: &str| format!("{what}, {bdp} BDP, {}", paths(count));
            let delay =
                Cell::most(place("delay"), law, bed, 1.0, |run| link(run, "l").p95_queue_ms);
            cells.push(delay.at_worst(full_ms));
            cells.push(Cell::most(place("drops"), law, bed, FEW, |run| dropped(run, "l", 6_000.0)));
        }
    }
    cells
}

/// 5.2.3: short flows of Reno and CUBIC beside a long one of the law, and long ones beside short ones of the law.
pub fn short_and_long(law: &str, _: Form) -> Vec<Cell> {
    let bed = || Bed::one(Link::new("l", KBPS, RTT_MS, 1.0), 4.0, 56.0);
    let mut cells = Vec::new();
    for kind in STANDARD {
        for count in [1, 2] {
            let long = |who: Who| judged(shorts(bed(), "short", kind), who, count, RTT_MS);
            let place = format!("completion of short {kind} beside a long one of {}", paths(count));
            cells.push(Cell::most(place, law, long, 0.0, |run| completion(run, "short")));
        }
        let short = |who: Who| {
            // The judged flow is one of the short ones.
            let file = format!("source.file = {{ size = \"{} B\" }}", SIZES[0]);
            shorts(bed(), "short", who.control())
                .tcps(1, "rival", "l", kind)
                .law_on("l", 5.0, &file)
        };
        let place = format!("goodput of a long {kind} beside short ones");
        cells.push(Cell::least(place, law, short, |run| goodput(run, "rival")));
    }
    cells
}
