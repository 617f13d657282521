//! Beside one BBR flow.

use std::sync::Arc;

use narrows_lab::Error;
use narrows_stats::mean;

use super::ask;
use super::networks::{BBR_QUEUES_MS, beside_bbr};
use crate::figures::percent;
use crate::goodput::{goodput, mptcp};
use crate::{Cell, Grid, Judged, Kept, Runs, Verdict};

const CONTROLS: [&str; 9] = [
    "lia",
    "tr-lia",
    "ssc-lia",
    "reno",
    "cubic",
    "greno+xcorr",
    "gcubic+xcorr",
    "bbr",
    "bbr+xcorr",
];
/// Of one path, too.
const SINGLE: [&str; 3] = ["reno", "cubic", "bbr"];

/// The control of one path with a control's law.
fn single(control: &str) -> &'static str {
    SINGLE[1..].iter().find(|law| control.contains(**law)).unwrap_or(&SINGLE[0])
}

fn queues(runs: &Runs) -> &'static [u32] {
    &BBR_QUEUES_MS[..runs.form().pick(4, 4, 1)]
}

fn found(
    runs: &Runs,
    control: &str,
    queue: u32,
    paths: usize,
    file: bool,
) -> Result<Arc<Vec<Kept>>, Error> {
    let controls = if paths == 2 { &CONTROLS[..] } else { &SINGLE };
    let ask = ask(runs, &beside_bbr(queue, paths, file), controls.iter().copied(), None);
    Ok(runs.get(&ask)?.of(control))
}

/// Seconds until a file was there, mean over runs; infinite if one was not.
fn done(runs: &[Kept], name: &str) -> f64 {
    let of = |run: &Kept| run.connection(name).completion_s.unwrap_or(f64::INFINITY);
    mean(&runs.iter().map(of).collect::<Vec<_>>())
}

/// The connection's share of the link.
fn share(runs: &[Kept]) -> f64 {
    let of = |run: &Kept| mptcp(run) / (mptcp(run) + goodput(run, "tcp1"));
    mean(&runs.iter().map(of).collect::<Vec<_>>())
}

/// Files of equal size, and the share of the link.
pub fn bbr(runs: &Runs) -> Result<Grid, Error> {
    let heads = queues(runs).iter().map(|queue| format!("queue {queue} ms"));
    let mut grid = Grid::new(["s / BBR's s, share in %".to_owned()].into_iter().chain(heads));
    for control in CONTROLS {
        let paths = if SINGLE.contains(&control) { &[2, 1][..] } else { &[2] };
        for &paths in paths {
            let mut cells =
                vec![format!("{control}, {}", if paths == 2 { "two paths" } else { "one path" })];
            for &queue in queues(runs) {
                let files = found(runs, control, queue, paths, true)?;
                let share = share(&found(runs, control, queue, paths, false)?);
                let [own, bbr] = ["mptcp", "tcp1"].map(|name| format!("{:.0}", done(&files, name)));
                cells.push(format!("{own} / {bbr}, {}", percent(Some(share))));
            }
            grid.row(cells);
        }
    }
    Ok(grid)
}

/// The paper: a multipath connection is done after one TCP in its place, and "nearly starves". Reproduced in more than
/// half of the queues.
pub fn claims(runs: &Runs) -> Result<Grid, Error> {
    let mut grid =
        Grid::new(["", "done after one path of its law", "less than a tenth of the link"]);
    for control in CONTROLS.into_iter().filter(|control| !SINGLE.contains(control)) {
        let (mut later, mut starved) = (0, 0);
        for &queue in queues(runs) {
            let own = done(&found(runs, control, queue, 2, true)?, "mptcp");
            later +=
                usize::from(own > done(&found(runs, single(control), queue, 1, true)?, "mptcp"));
            starved += usize::from(share(&found(runs, control, queue, 2, false)?) < 0.1);
        }
        let judged = [later, starved].map(|count| most(count, queues(runs).len(), Verdict::Better));
        grid.row([Cell::from(control)].into_iter().chain(judged.map(Cell::from)));
    }
    Ok(grid)
}

/// A claim of several networks without a number: reproduced in more than half of them, else `otherwise`.
pub fn most(count: usize, of: usize, otherwise: Verdict) -> Judged {
    let verdict = if 2 * count > of { Verdict::Reproduced } else { otherwise };
    Judged::new(verdict, format!("{count} of {of}"))
}

/// A claim with one: reproduced in as large a share of them, worse if it would be a smaller one even with all those
/// that cannot be told.
pub fn as_many(verdicts: &[Verdict], published: [usize; 2]) -> Judged {
    let count = |wanted| verdicts.iter().filter(|&&one| one == wanted).count();
    let (holds, open) = (count(Verdict::Reproduced), count(Verdict::CannotBeTold));
    let of = verdicts.len();
    let enough = |count: usize| count * published[1] >= published[0] * of;
    let verdict = match (enough(holds), enough(holds + open)) {
        (true, _) => Verdict::Reproduced,
        (false, true) => Verdict::CannotBeTold,
        (false, false) => Verdict::Worse,
    };
    let and = if open == 0 { String::new() } else { format!(", {open} cannot be told") };
    Judged::new(verdict, format!("{holds} of {of}{and}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_path_has_the_law_of_the_control() {
        let of = ["lia", "tr-lia", "greno+xcorr", "gcubic+xcorr", "bbr+xcorr"].map(single);
        assert_eq!(of, ["reno", "reno", "reno", "cubic", "bbr"]);
    }

    #[test]
    fn a_claim_holds_in_more_than_half() {
        assert_eq!(most(5, 9, Verdict::Worse).to_string(), "reproduced (5 of 9)");
        assert_eq!(most(2, 4, Verdict::Worse).to_string(), "worse (2 of 4)");
        let judged = |holds: usize, open: usize| {
            let of = |at: usize| match at {
                _ if at < holds => Verdict::Reproduced,
                _ if at < holds + open => Verdict::CannotBeTold,
                _ => Verdict::Worse,
            };
            as_many(&(0..20).map(of).collect::<Vec<_>>(), [13, 16]).to_string()
        };
        assert_eq!(judged(16, 0), "worse (16 of 20)");
        assert_eq!(judged(17, 2), "reproduced (17 of 20, 2 cannot be told)");
        assert_eq!(judged(16, 1), "cannot be told (16 of 20, 1 cannot be told)");
    }
}
