//! RFC 9743, section 5.2: the law's flows beside those of other algorithms.

use narrows_papers::{Form, Kept};

use crate::bed::{Bed, Link};
use crate::cell::{Beside, Cell, FEW, Metric, STANDARD, Who, completion, goodput, link, measured};
use crate::single::{
    KBPS, RTT_MS, SIZES, judged, judged_with, loads, paths, routes, several, shorts,
};

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
                let metrics = Metric::all(&link);
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

/// A rival that loses more than this is starved.
pub const STARVED: f64 = 0.8;
/// A rival with less than this part of a fair share is starved, whatever a standard leaves it.
const LEAST_SHARE: f64 = 0.05;

/// 5.2: starvation: at short and long queues, and of rivals with five times the RTT.
pub fn starvation(law: &str, form: Form) -> Vec<Cell> {
    let queues = form.pick(&[0.25, 1.0, 10.0][..], &[0.25, 10.0][..], &[1.0][..]);
    let far = form.pick(&[1.0, 5.0][..], &[1.0, 5.0][..], &[5.0][..]);
    let mut cells = Vec::new();
    for kind in STANDARD {
        for &bdp in queues {
            for &far in far {
                for count in form.pick(&[1, 2, 4][..], &[1, 2][..], &[2][..]).iter().copied() {
                    let link = Link::new("l", KBPS, RTT_MS, bdp);
                    let cycle_s = link.cycle_s(2, far * RTT_MS);
                    let bed = Bed::one(link, 15.0, 45.0).for_cycles_of(cycle_s);
                    let bed = several(bed, count, RTT_MS).route("far", &["l"], far * RTT_MS);
                    let bed = bed.tcps(1, "rival", "far", kind);
                    let place = format!("{}, {bdp} BDP, the rival's RTT {far} times", paths(count));
                    let beside = Beside::new(place.clone(), bed, routes(count), kind);
                    cells.extend(beside.cells(law, &[Metric::Goodput]));
                    // So that the limit is LEAST_SHARE of half of the link.
                    let given = LEAST_SHARE / (1.0 - STARVED) * KBPS / 1000.0 / 2.0;
                    cells.push(Cell::against(
                        format!("{place}, {kind} against a part of a fair share"),
                        beside.with_law(law),
                        ("a fair share", given),
                        |run| goodput(run, "rival"),
                    ));
                }
            }
        }
    }
    cells
}

/// Rate of the media, kbit/s.
const MEDIA_KBPS: f64 = 1_000.0;
/// Rate of the link that only the media cross, before the one that they share.
const TAP_KBPS: f64 = 10_000.0;

/// 5.2.2: what datagrams at a mean of 1 Mbit/s meet on the link, and how many of them it drops.
pub fn constant_rate(law: &str, form: Form) -> Vec<Cell> {
    let queues = form.pick(&[0.5, 1.0, 4.0][..], &[1.0][..], &[1.0][..]);
    let mut cells = Vec::new();
    for &bdp in queues {
        for count in [1, 2] {
            let queue = Link::new("l", 6_000.0, RTT_MS, bdp);
            let full_ms = queue.full_ms();
            let bed = |who: Who| {
                let bed = Bed::one(queue.clone(), WARMUP_S, 100.0);
                let bed = bed.link(Link::new("tap", TAP_KBPS, RTT_MS, 1.0));
                let bed = bed.route("media", &["tap", "l"], 2.0 * RTT_MS);
                judged(bed.udp("media", "media", MEDIA_KBPS, 0.5), who, count, RTT_MS)
            };
            let place = |what: &str| format!("{what}, {bdp} BDP, {}", paths(count));
            // Datagrams come at any time: what they meet is what samples in time find.
            let delay = Cell::most(place("delay"), law, bed, 1.0, |run| {
                let met = run.series.iter().filter(|at| at.path == "l" && at.time_s > WARMUP_S);
                let mut met: Vec<f64> = met.map(|at| at.queue_ms).collect();
                met.sort_by(f64::total_cmp);
                // Of no samples there is none.
                if met.is_empty() { f64::NAN } else { narrows_stats::quantile(&met, 0.95) }
            });
            cells.push(delay.with_series().at_worst(full_ms));
            let lost = |run: &Kept| {
                let sent = link(run, "tap").utilization * TAP_KBPS / 1000.0;
                if sent > 0.0 { (1.0 - goodput(run, "media") / sent).max(0.0) } else { 1.0 }
            };
            cells.push(Cell::most(place("drops"), law, bed, FEW, lost).with_series());
        }
    }
    cells
}

/// Before what is analysed of media, s.
const WARMUP_S: f64 = 10.0;

/// Base RTT of media, ms.
const MEDIA_RTT_MS: f64 = 100.0;

/// Media and the paths of the judged beside it.
const MEDIA: [(&str, usize); 4] = [("nada", 1), ("nada", 2), ("scream", 1), ("scream", 2)];

/// The link of RFC 8867, sections 5.6 and 5.7: 2 Mbit/s, 50 ms one way.
fn media_link(bdp: f64) -> Link {
    Link::new("l", 2_000.0, MEDIA_RTT_MS, bdp)
}

/// 5.2.2: media under NADA and under SCReAM on that link, a long flow and 5 s later the media: 300 ms and 1 s of queue, where CUBIC's
/// delay is near the worst, and CoDel, where none is; and short flows.
pub fn adaptive(law: &str, form: Form) -> Vec<Cell> {
    let queues = form.pick(&[3.0, 10.0][..], &[3.0][..], &[3.0][..]).iter().map(|&bdp| {
        let link = media_link(bdp);
        (format!("{} ms of queue", link.full_ms()), link)
    });
    let codel = ("CoDel".to_owned(), media_link(3.0).with("aqm = \"codel\""));
    let mut cells = Vec::new();
    for (name, queue) in queues.chain([codel]) {
        for (source, count) in MEDIA {
            let cycle_s = queue.cycle_s(2, MEDIA_RTT_MS);
            let bed = |who: Who| {
                let bed = Bed::one(queue.clone(), 20.0, 100.0).for_cycles_of(cycle_s);
                judged(bed.media("media", "l", source, 6.0), who, count, MEDIA_RTT_MS)
            };
            let place = format!("{name}, {}", paths(count));
            cells.extend(of_media(law, source, &place, &queue, bed));
        }
    }
    for (source, count) in MEDIA {
        let queue = media_link(3.0);
        let bed = |who: Who| {
            let bed = Bed::one(queue.clone(), 20.0, 100.0);
            files(bed.media("media", "l", source, 5.0), who, count)
        };
        let place = format!("short flows of {}", paths(count));
        cells.extend(of_media(law, source, &place, &queue, bed));
    }
    cells
}

/// What media lose of their rate, and what they meet of delay, in a queue.
fn of_media(
    law: &str,
    source: &str,
    place: &str,
    queue: &Link,
    bed: impl Fn(Who) -> Bed,
) -> [Cell; 2] {
    let place = |what: &str| format!("{what} of {source}, {place}");
    let rate = Cell::least(place("rate"), law, &bed, |run| goodput(run, "media"));
    let delay = Cell::most(place("delay"), law, &bed, 1.0, |run| {
        let media = run.connection("media").paths.iter();
        media.map(|path| measured(path.p95_srtt_ms) - MEDIA_RTT_MS).sum()
    });
    [rate, delay.at_worst(queue.full_ms())]
}

/// Files of RFC 8868's short TCP flows, kB: uniform from 30 to 50, the quantiles (i + 0.5) / 10 in an order that mixes them.
const FILES_KB: [u32; 10] = [41, 33, 47, 35, 43, 31, 45, 37, 49, 39];
/// From one to the next, ms: ten sources as in RFC 8867, section 5.7, idle for 10 s on average, exponentially distributed, are together
/// as one that is for a second; the quantiles likewise.
const GAPS_MS: [u32; 10] = [598, 51, 1_386, 288, 2_996, 163, 1_050, 431, 1_897, 799];
/// As many as two minutes take.
const FILES: usize = 120;

/// The judged flow is a file like all others, which follow it; of connections of several paths under the law.
fn files(bed: Bed, who: Who, count: usize) -> Bed {
    let file = |number: usize| {
        format!("source.file = {{ size = \"{} kB\" }}", FILES_KB[number % FILES_KB.len()])
    };
    let over = routes(who.paths(count));
    let mut bed = judged_with(bed, who, count, MEDIA_RTT_MS, &file(0));
    let mut start_ms = 1_000;
    for number in 1..FILES {
        start_ms += GAPS_MS[number % GAPS_MS.len()];
        let (name, start_s) = (format!("file{number}"), f64::from(start_ms) / 1000.0);
        bed = match over.as_slice() {
            [route] => bed.tcp(&name, route, who.control(), start_s, &file(number)),
            all => bed.mptcp(&name, all, who.control(), start_s, &file(number)),
        };
    }
    bed
}

/// 5.2.3: short flows of Reno and CUBIC beside a long one of the law, and long ones beside short ones of the law.
pub fn short_and_long(law: &str, form: Form) -> Vec<Cell> {
    let mut cells = Vec::new();
    for kind in STANDARD {
        for &load in loads(form) {
            let of = |what: &str| format!("{what}, {:.0} % load", 100.0 * load);
            for count in [1, 2] {
                let bed = |who: Who| judged(shorts("short", kind, load), who, count, RTT_MS);
                let place =
                    format!("completion of short {kind} beside a long one of {}", paths(count));
                cells.push(Cell::most(of(&place), law, bed, 0.0, |run| completion(run, "short")));
            }
            // All short ones are the law's; the judged one is a file like them.
            let bed = |who: Who| {
                let file = format!("source.file = {{ size = \"{} B\" }}", SIZES[0]);
                let bed = shorts("short", who.control(), load);
                bed.tcps(1, "rival", "l", kind).law_on("l", 4.9, &file)
            };
            let place = format!("goodput of a long {kind} beside short ones");
            cells.push(Cell::least(of(&place), law, bed, |run| goodput(run, "rival")));
        }
    }
    cells
}
