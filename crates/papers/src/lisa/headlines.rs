//! What the abstract and the text stress: published, ours with the paper's kernel and with what we recommend, and why.

use narrows_lab::Error;

use super::networks::{Column, Era, Network, Points, from_8, slow_start_retransmits};
use super::phone::{self, Place};
use super::{claims, later, rules};
use crate::figures::{Interval, text};
use crate::verdict::{above, near};
use crate::{Cell, Grid, Judged, Runs, Verdict};

/// The paper's kernel and first law, and today's with the law that Narrows recommends.
const SHOWN: [Column; 2] =
    [Column { era: Era::Paper, law: "lia" }, Column { era: Era::Today, law: "gcubic" }];

/// The table.
pub fn headlines(runs: &Runs) -> Result<Grid, Error> {
    let [paper, today] = SHOWN.map(Column::head);
    let heads = ["claim", "published", &paper, "verdict", &today, "verdict", "decided by"];
    let mut grid = Grid::new(heads);
    let gains = |column, chosen: fn(u64) -> bool| {
        claims::gains(runs, "lisa/shared", &runs.form().three(), column, chosen)
    };
    let mut row = |claim: &str,
                   published: &str,
                   ours: &dyn Fn(Column) -> Result<(String, Judged), Error>,
                   why: &str| {
        let mut cells = vec![Cell::from(claim), Cell::from(published)];
        for column in SHOWN {
            let (found, judged) = ours(column)?;
            cells.extend([Cell::from(found), Cell::Verdict(judged)]);
        }
        cells.push(Cell::from(why));
        grid.row(cells);
        Ok::<(), Error>(())
    };
    row(
        "less time, one bottleneck, at most, %",
        "17 (300 kB)",
        &|column| {
            let found = gains(column, |_| true)?;
            Ok((at(rules::most(&found), 1, "kB"), rules::at_most(&found, 17.0)))
        },
        "[the hosts' timing and acknowledgements](#figure-6-one-bottleneck-5-mbits-40-ms)",
    )?;
    row(
        "the same from 250 to 500 kB, %",
        "more than 10",
        &|column| {
            let found = gains(column, claims::middle)?;
            Ok((range(&found), rules::all_above(&claims::plain(found), 10.0)))
        },
        "lia, 3.14, up to 300 kB: the same; else not known",
    )?;
    row(
        "the same up to 200 kB, %",
        "0",
        &|column| {
            let found = gains(column, |size| size <= 200)?;
            Ok((range(&found), rules::no_change(&claims::plain(found)).into()))
        },
        "[when the second subflow joins](#figure-6-one-bottleneck-5-mbits-40-ms)",
    )?;
    row(
        "retransmissions in slow start, from 8 packets on",
        "fewer at all",
        &|column| {
            let found = claims::fewer(runs, "lisa/shared", column, slow_start_retransmits)?;
            let fewer = found.iter().filter(|one| above(**one, 0.0) == Verdict::Reproduced);
            let text = format!("fewer at {} of {} queues", fewer.count(), found.len());
            Ok((text, rules::all_above(&found, 0.0)))
        },
        "8 packets: LISA does nothing here; the others: not known",
    )?;
    for (place, published) in [(Place::Shared, 10.0), (Place::Apart, 20.0)] {
        row(
            &format!("3G and WLAN, {}, 100 kB: less time, %", place.name()),
            &published.to_string(),
            &|column| {
                let found = phone::gain(runs, place, 100, column)?;
                Ok((text(found, 1), near(found, published).into()))
            },
            "today's sign: [the scheduler](#figures-11-to-13-3g-and-wlan); the rest: not known, the paper gives no rates, delays or queues",
        )?;
    }
    row(
        "200 and 20 ms, a bottleneck each: later at most, ms",
        "less than 50",
        &|column| {
            let of = |packets| {
                Ok((packets, later(runs, Network::of("lisa/apart-rtt"), packets, column)?))
            };
            let queues = from_8(runs.form().rtt_queues()).into_iter();
            let found = queues.map(of).collect::<Result<Vec<_>, Error>>()?;
            let earlier = found.iter().map(|(_, one)| one.map(|found| found.times(-1.0)));
            let judged = rules::all_above(&earlier.collect::<Vec<_>>(), -50.0);
            Ok((at(rules::most(&found), 0, "packets"), judged))
        },
        "[scheduler and loss detection](#why-200-and-20-ms-differ-scheduler-and-loss-detection)",
    )?;
    Ok(grid)
}

/// `6.5 ±5.7 at 250 kB`.
fn at(most: Option<(u64, Interval)>, digits: usize, unit: &str) -> String {
    most.map_or_else(
        || "-".into(),
        |(at, found)| format!("{} at {at} {unit}", text(Some(found), digits)),
    )
}

/// The least and the largest mean: `1.6 to 6.5`.
fn range(by_size: &[(u64, Option<Interval>)]) -> String {
    let means = by_size.iter().filter_map(|(_, found)| found.map(|found| found.mean));
    let means: Vec<f64> = means.collect();
    let Some(least) = means.iter().copied().reduce(f64::min) else { return "-".into() };
    let most = means.iter().copied().fold(least, f64::max);
    format!("{least:.1} to {most:.1}")
}
