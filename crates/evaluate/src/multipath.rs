//! RFC 9743, section 7.10: multipath transport.

use narrows_papers::Form;

use crate::bed::{Bed, Link, Run};
use crate::cell::{Beside, Cell, Metric, STANDARD, Who, dropped, goodput, link, own};
use crate::rule::Better;
use crate::single::{KBPS, RTT_MS};

/// The link of a path alone.
fn apart(number: usize) -> String {
    format!("m{number}")
}

/// A connection whose paths are groups of so many: the first through the link `l`, each other one through a link of its own; a
/// rival on each link. And the routes of all paths.
fn pattern(groups: &[usize], kind: &str, warmup_s: f64, duration_s: f64) -> (Bed, Vec<String>) {
    let mut bed = Bed::new(warmup_s, duration_s);
    let mut routes = Vec::new();
    for (number, &sharing) in groups.iter().enumerate() {
        let (name, rival) = match number {
            0 => ("l".to_owned(), "rival".to_owned()),
            _ => (apart(number), format!("apart{number}-")),
        };
        bed = bed.link(Link::new(&name, KBPS, RTT_MS, 1.0)).tcps(1, &rival, &name, kind);
        routes.push(name.clone());
        for path in 2..=sharing {
            let route = format!("{name}-{path}");
            bed = bed.route(&route, &[name.as_str()], RTT_MS);
            routes.push(route);
        }
    }
    (bed, routes)
}

/// All ways in which up to five paths share links, two at least one of them, by the sizes of their groups. The rival of the first
/// is judged; where two groups of different sizes share, each is the first once.
const PATTERNS: [&[usize]; 14] = [
    &[2],
    &[2, 1],
    &[3],
    &[2, 1, 1],
    &[3, 1],
    &[4],
    &[2, 1, 1, 1],
    &[3, 1, 1],
    &[4, 1],
    &[5],
    &[2, 2],
    &[2, 2, 1],
    &[2, 3],
    &[3, 2],
];
/// Those of the quick form, in which all paths share, or the others are alone: what two groups do is two of these at once.
const QUICK: [&[usize]; 4] = [&[2], &[2, 1], &[3, 1], &[5]];
/// Those of the least form.
const LEAST: [&[usize]; 2] = [&[2], &[2, 2]];

/// Those in which another link has a path alone, and two paths share.
const ELSEWHERE: [&[usize]; 3] = [&[2, 1], &[2, 1, 1], &[2, 1, 1, 1]];

/// A pattern in words: `2 of 3 paths`, `2 and 3 of 5 paths`.
fn named(groups: &[usize]) -> String {
    let shared = groups.iter().filter(|&&sharing| sharing > 1).map(usize::to_string);
    let shared = shared.collect::<Vec<_>>().join(" and ");
    format!("{shared} of {} paths", groups.iter().sum::<usize>())
}

/// What the rival on the shared link loses in a time.
fn sharing(
    law: &str,
    form: Form,
    (warmup_s, duration_s): (f64, f64),
    metrics: &[Metric],
) -> Vec<Cell> {
    let patterns = form.pick(&PATTERNS[..], &QUICK[..], &LEAST[..]);
    let mut cells = Vec::new();
    for (turn, groups) in patterns.iter().enumerate() {
        // In the quick form the kinds of rivals take turns.
        let kinds = form.pick(&STANDARD[..], &STANDARD[turn % 2..=turn % 2], &STANDARD[..1]);
        for &kind in kinds {
            let (bed, routes) = pattern(groups, kind, warmup_s, duration_s);
            let beside = Beside::new(named(groups), bed, routes, kind);
            cells.extend(beside.cells(law, metrics));
        }
    }
    cells
}

/// Once a detector has had half a minute.
pub fn shared(law: &str, form: Form) -> Vec<Cell> {
    let metrics = Metric::all(&Link::new("l", KBPS, RTT_MS, 1.0));
    sharing(law, form, (32.0, 40.0), &metrics)
}

/// From the second second to the tenth, before a detector can know.
pub fn undecided(law: &str, form: Form) -> Vec<Cell> {
    sharing(law, form, (4.0, 8.0), &[Metric::Goodput])
}

/// Paths that share an overall limit which delays nothing: a policer over both.
pub fn coupled_limit(law: &str, form: Form) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &kind in form.pick(&STANDARD[..], &STANDARD[..], &STANDARD[..1]) {
        let policed = Link::new("l", 100_000.0, RTT_MS, 1.0)
            .with("policer = { rate = \"20 Mbit/s\", burst = \"100 kB\" }");
        let bed =
            Bed::one(policed, 32.0, 40.0).route("l2", &["l"], RTT_MS).tcps(1, "rival", "l", kind);
        let routes = vec!["l".into(), "l2".into()];
        let place = "a policer over both paths".into();
        let beside = Beside::new(place, bed, routes, kind);
        cells.extend(beside.cells(law, &[Metric::Goodput]));
    }
    cells
}

/// Independent congestion state: one path is congested, the other has one rival, who is not to gain or lose by it; the
/// connection has there what a TCP has.
pub fn independent(law: &str, form: Form) -> Vec<Cell> {
    let rivals = form.pick(&[1, 4, 8][..], &[1, 8][..], &[4][..]);
    let mut cells = Vec::new();
    for &kind in form.pick(&STANDARD[..], &STANDARD[..], &STANDARD[..1]) {
        for &rivals in rivals {
            let bed = || {
                let bed = Bed::one(Link::new("l", KBPS, RTT_MS, 1.0), 32.0, 40.0);
                let bed = bed.link(Link::new("m", KBPS, RTT_MS, 1.0));
                bed.tcps(rivals, "crowd", "m", kind).tcps(1, "rival", "l", kind)
            };
            let runs = vec![
                bed().law_over(&["l".into(), "m".into()], 2.0, "").run(law),
                bed().law_on("l", 2.0, "").run("reno"),
                bed().law_on("l", 2.0, "").run("cubic"),
            ];
            let place = format!("{rivals} of {kind} on the other path, what it has on this one");
            cells.push(Cell::new(place, runs, Better::More, |run| {
                let paths = run.connection(crate::bed::LAW).paths.iter();
                paths.filter(|path| path.name == "l").map(|path| path.goodput_mbps).sum()
            }));
        }
    }
    cells
}

/// From when to when the first path of a connection that fails over is silent, s.
const SILENT: [f64; 2] = [30.0, 50.0];

/// Two links with a rival each, the first silent for a while.
fn failing(kind: &str, rivals: usize, warmup_s: f64, duration_s: f64) -> Bed {
    let bed = Bed::one(Link::new("m", KBPS, RTT_MS, 1.0), warmup_s, duration_s);
    let bed = bed.link(Link::new("l", KBPS, RTT_MS, 1.0)).tcps(rivals, "rival", "l", kind);
    bed.event(SILENT[0], &["link = \"m\"", "up = false"])
        .event(SILENT[1], &["link = \"m\"", "up = true"])
}

/// A connection whose first path falls silent, beside a rival on the second, a backup or in use; and one more flow there
/// that starts then. Analysed from so many seconds after that on.
fn failed(law: &str, kind: &str, backup: bool, after_s: f64) -> Vec<Run> {
    let bed = || failing(kind, 1, SILENT[0] + after_s, SILENT[1] - SILENT[0] - after_s);
    let one_more = |control: &str| bed().law_on("l", SILENT[0], "").run(control);
    let with_law = bed().law_over(&["m".to_owned(), "l".to_owned()], 1.0, role(backup).1);
    [with_law.run(law)].into_iter().chain(STANDARD.map(one_more)).collect()
}

/// Of the second path: in words, and as a field.
fn role(backup: bool) -> (&'static str, &'static str) {
    if backup { ("backup", "backup = [\"l\"]") } else { ("both used", "") }
}

/// Fail-over: what the rival on the second path loses. Fail-back: what the connection has when the first is there again.
pub fn fail_over(law: &str, form: Form) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &kind in form.pick(&STANDARD[..], &STANDARD[..], &STANDARD[..1]) {
        for backup in [true, false] {
            let (how, fields) = role(backup);
            let place = format!("{how}: what the {kind} rival loses");
            let runs = failed(law, kind, backup, 2.0);
            cells.push(Cell::new(place, runs, Better::More, |run| goodput(run, "rival")));
            let back = |_: Who| {
                let bed = failing(kind, 1, SILENT[1] + 5.0, 20.0).tcps(1, "first", "m", kind);
                bed.law_over(&["m".to_owned(), "l".to_owned()], 1.0, fields)
            };
            let place = format!("{how}: what it has once the path is back, beside {kind}");
            cells.push(Cell::least(place, law, back, own));
        }
    }
    cells
}

/// Fail-over: what the connection itself delivers while the first path is silent, from its first moment on.
pub fn fail_over_own(law: &str, form: Form) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &kind in form.pick(&STANDARD[..], &STANDARD[..], &STANDARD[..1]) {
        for backup in [true, false] {
            let place = format!("{}: what it has beside {kind}", role(backup).0);
            cells.push(Cell::new(place, failed(law, kind, backup, 0.0), Better::More, own));
        }
    }
    cells
}

/// Synchronised fail-over of many connections at once: drops and the rivals' goodput on the other link, against as many TCP flows
/// there, which start then where it is a backup; and their way back, against the same connections under a standard.
pub fn together(law: &str, form: Form) -> Vec<Cell> {
    let counts = form.pick(&[10, 30, 100][..], &[10][..], &[4][..]);
    let mut cells = Vec::new();
    let paths = ["m".to_owned(), "l".to_owned()];
    for &count in counts {
        let kbps = 4_000.0 * count as f64;
        for (back, backup) in [(false, true), (false, false), (true, true), (true, false)] {
            // Timeouts, each twice the one before, find a link that is back some seconds later.
            let (to, since_s) = if back { ("m", SILENT[1] + 5.0) } else { ("l", SILENT[0]) };
            let (how, fields) = role(backup);
            let bed = |who: Who| {
                let bed = Bed::new(since_s, 20.0)
                    .link(Link::new("m", kbps, RTT_MS, 1.0))
                    .link(Link::new("l", kbps, RTT_MS, 1.0))
                    .event(SILENT[0], &["link = \"m\"", "up = false"])
                    .event(SILENT[1], &["link = \"m\"", "up = true"]);
                // Those of a link that was silent begin once it is back, or they would wait as long.
                let begin_s = if back { SILENT[1] } else { 0.5 };
                let bed = (1..=count / 2).fold(bed, |bed, number| {
                    let start_s = begin_s + number as f64 / count as f64;
                    bed.tcp(&format!("rival{number}"), to, "cubic", start_s, "")
                });
                let control = who.control();
                let others = (1..count).map(|number| format!("other{number}"));
                if let (Who::Standard(_), false) = (who, back) {
                    // A retransmission timeout later, as connections notice it.
                    let start_s = if backup { SILENT[0] + 0.3 } else { 1.0 };
                    let bed =
                        others.fold(bed, |bed, name| bed.tcp(&name, to, control, start_s, ""));
                    return bed.law_on(to, start_s, "");
                }
                let bed =
                    others.fold(bed, |bed, name| bed.mptcp(&name, &paths, control, 1.0, fields));
                bed.law_over(&paths, 1.0, fields)
            };
            let at_once = if back { "back at once" } else { "at once" };
            let place = |what: &str| format!("{count} {at_once}, {how}, {what}");
            cells.push(Cell::most(place("drops"), law, bed, 0.01, move |run| {
                dropped(run, to, kbps)
            }));
            let lose = place("what rivals lose");
            cells.push(Cell::least(lose, law, bed, |run| goodput(run, "rival")));
        }
    }
    cells
}

/// Synchronised control: many connections of two paths through one link: drops, use and shares against as many TCPs.
pub fn synchronised(law: &str, form: Form) -> Vec<Cell> {
    let counts = form.pick(&[4, 16, 64][..], &[8][..], &[4][..]);
    let paths = ["l".to_owned(), "l2".to_owned()];
    let mut cells = Vec::new();
    for &count in counts {
        let kbps = 4_000.0 * count as f64;
        let bed = |who: Who| {
            let bed =
                Bed::one(Link::new("l", kbps, RTT_MS, 1.0), 32.0, 30.0).route("l2", &["l"], RTT_MS);
            if let Who::Standard(control) = who {
                return bed.tcps(count - 1, "other", "l", control).law_on("l", 1.0, "");
            }
            let bed = (1..count).fold(bed, |bed, number| {
                bed.mptcp(
                    &format!("other{number}"),
                    &paths,
                    law,
                    0.5 + number as f64 / count as f64,
                    "",
                )
            });
            bed.law_over(&paths, 1.0, "")
        };
        let place = |what: &str| format!("{count} connections, {what}");
        cells.push(Cell::most(place("drops"), law, bed, 0.001, move |run| dropped(run, "l", kbps)));
        cells.push(Cell::least(place("use of the link"), law, bed, |run| {
            link(run, "l").utilization
        }));
        cells.push(Cell::least(place("Jain's index"), law, bed, |run| {
            crate::cell::jain(run, "other")
        }));
    }
    cells
}

/// What a rival on another link of the connection loses: nobody is to gain from a bottleneck elsewhere.
pub fn elsewhere(law: &str, form: Form) -> Vec<Cell> {
    let patterns = form.pick(&ELSEWHERE[..], &ELSEWHERE[..1], &ELSEWHERE[..1]);
    let mut cells = Vec::new();
    for groups in patterns {
        for kind in STANDARD {
            let bed = || pattern(groups, kind, 32.0, 40.0);
            let one_more = |control: &str| bed().0.law_on(&apart(1), 2.0, "").run(control);
            let (with_law, routes) = bed();
            let with_law = with_law.law_over(&routes, 2.0, "").run(law);
            let runs = [with_law].into_iter().chain(STANDARD.map(one_more)).collect();
            let place = format!("{} share, {kind} on another link", named(groups));
            cells.push(Cell::new(place, runs, Better::More, |run| goodput(run, "apart1-")));
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The sums of numbers up to `most` that are `left`, the greatest number first.
    fn sums(left: usize, most: usize) -> Vec<Vec<usize>> {
        if left == 0 {
            return vec![Vec::new()];
        }
        let from = |first: usize| {
            let rest = sums(left - first, first);
            rest.into_iter().map(move |rest| [vec![first], rest].concat())
        };
        (1..=most.min(left)).flat_map(from).collect()
    }

    #[test]
    fn patterns_are_all_ways_in_which_up_to_five_paths_share() {
        let ways = (2..=5).flat_map(|count| sums(count, count)).filter(|way| way[0] > 1);
        let sorted = PATTERNS.map(|groups| {
            let mut groups = groups.to_vec();
            groups.sort_unstable();
            groups.reverse();
            groups
        });
        assert_eq!(BTreeSet::from(sorted), ways.collect::<BTreeSet<_>>());
        // Each group of several paths is the first of a pattern.
        for groups in PATTERNS {
            for &sharing in groups.iter().filter(|&&sharing| sharing > 1) {
                let mut others = groups.to_vec();
                let at = others.iter().position(|one| *one == sharing).unwrap();
                others.remove(at);
                others.insert(0, sharing);
                assert!(PATTERNS.contains(&&others[..]), "{others:?}");
            }
        }
        assert!(QUICK.iter().chain(&LEAST).all(|groups| PATTERNS.contains(groups)));
    }

    #[test]
    fn a_group_has_a_link_with_a_rival() {
        let (_, routes) = pattern(&[2, 3, 1], "reno", 1.0, 1.0);
        assert_eq!(routes, ["l", "l-2", "m1", "m1-2", "m1-3", "m2"]);
        assert_eq!(named(&[2, 3, 1]), "2 and 3 of 6 paths");
        assert_eq!(named(&[2, 1]), "2 of 3 paths");
    }
}
