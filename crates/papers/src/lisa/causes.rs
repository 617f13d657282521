//! What decides between today's Linux and the paper's: one rule of it at a time.

use narrows_lab::Error;

use super::networks::{
    Column, Era, Figure, LEAST_QUEUE, LONG_KB, Network, Pair, Points, done, retransmits,
    slow_start_cwnd, slow_start_retransmits,
};
use super::phone::{self, Place};
use super::tree::{self, Tree};
use super::{BDPS, FACK, Told};
use crate::figures::{Interval, text};
use crate::{Grid, Runs};

/// A column: its head, the era, and what is set besides.
type Rule = (&'static str, Era, &'static [&'static str]);

/// Today's Linux, each rule of the paper's alone, and all. The scheduler is what is left of the era: of the flows of a
/// fat tree it has no field.
const RULES: [Rule; 7] = [
    ("today", Era::Today, &[]),
    ("FACK", Era::Today, &[FACK]),
    ("receivers' ACKs", Era::Today, &["tcp.receiver_acks=linux-6.5"]),
    ("slow start at ssthresh", Era::Today, &["window.slow_start_at_ssthresh=on"]),
    ("growth counts ACKs", Era::Today, &["window.count_acks=on"]),
    (
        "min-rtt",
        Era::Paper,
        &[
            "tcp.loss_detection=rack",
            "tcp.receiver_acks=linux-6.6",
            "window.slow_start_at_ssthresh=off",
            "window.count_acks=off",
        ],
    ),
    ("3.14", Era::Paper, &[]),
];

/// A row: how a figure differs with LISA under a law, by rule.
fn row(
    rules: &[Rule],
    (name, law): (String, &'static str),
    (told, digits): (Told, usize),
    pair: impl Fn(Column, &[&str]) -> Result<Pair, Error>,
) -> Result<Vec<String>, Error> {
    let mut row = vec![format!("{name}, {law}")];
    for &(_, era, settings) in rules {
        row.push(text(told(&pair(Column { era, law }, settings)?), digits));
    }
    Ok(row)
}

/// How many ms less.
fn less_ms(pair: &Pair) -> Option<Interval> {
    pair.less().map(|found| found.times(1000.0))
}

/// The same of shares, percentage points.
fn less_points(pair: &Pair) -> Option<Interval> {
    pair.less().map(|found| found.times(100.0))
}

/// The laws of most rows.
const LAWS: [&str; 2] = ["lia", "gcubic"];

/// The table.
pub fn causes(runs: &Runs) -> Result<Grid, Error> {
    let form = runs.form();
    let rules = form.pick(RULES.to_vec(), RULES.to_vec(), RULES[..2].to_vec());
    let mut grid = Grid::new(["less with LISA"].into_iter().chain(rules.iter().map(|rule| rule.0)));
    networks(runs, &rules, &mut grid)?;
    fat_tree(runs, &rules, &mut grid)?;
    phones(runs, &rules, &mut grid)?;
    Ok(grid)
}

/// Figures 11 and 12.
fn phones(runs: &Runs, rules: &[Rule], grid: &mut Grid) -> Result<(), Error> {
    for place in Place::ALL {
        let figures: [(&str, u64, Figure, Told); 3] = [
            ("11, time, %", 100, done, Pair::less_percent),
            ("12, retransmissions", 900, retransmits, Pair::less),
            ("transfers with a loss, points", 900, phone::has_loss, less_points),
        ];
        for (figure, size, of, told) in figures {
            let name = format!("{figure}: {}, {size} kB", place.name());
            grid.row(row(rules, (name, "lia"), (told, 1), |column, settings| {
                place.network().set(settings.iter().copied()).file(size).pair(runs, column, of)
            })?);
        }
    }
    Ok(())
}

/// Figures 1, 6 and 8.
fn networks(runs: &Runs, rules: &[Rule], grid: &mut Grid) -> Result<(), Error> {
    let three = runs.form().three();
    let at = |scenario, settings: &[&str]| Network::of(scenario).set(settings.iter().copied());
    for (packets, bdp) in BDPS.into_iter().filter(|(packets, _)| *packets >= LEAST_QUEUE) {
        for law in LAWS {
            let name = format!("Figure 1, time, ms: {bdp} BDP");
            grid.row(row(rules, (name, law), (less_ms, 0), |column, settings| {
                at("lisa/two", settings).queue(packets).pair(runs, column, done)
            })?);
        }
    }
    for size in [300, 500] {
        for law in LAWS {
            let name = format!("6(c), time, %: {size} kB");
            grid.row(row(rules, (name, law), (Pair::less_percent, 1), |column, settings| {
                at("lisa/shared", settings).file(size).over(&three, runs, column, done)
            })?);
        }
    }
    let figures: [(&str, &str, &'static str, Figure); 4] = [
        ("6(b), sum of windows", "lisa/shared", "lia", slow_start_cwnd),
        ("6(b), sum of windows", "lisa/shared", "gcubic", slow_start_cwnd),
        ("8(a), retransmissions", "lisa/apart", "lia", slow_start_retransmits),
        ("8(b), sum of windows", "lisa/apart", "lia", slow_start_cwnd),
    ];
    for (name, scenario, law, of) in figures {
        grid.row(row(rules, (name.to_owned(), law), (Pair::less, 1), |column, settings| {
            at(scenario, settings).file(LONG_KB).over(&three, runs, column, of)
        })?);
    }
    for (queues, size, queue) in [(&three[..], 500, ""), (&[20][..], 400, ", queue 20")] {
        let name = format!("8(c), time, %: {size} kB{queue}");
        grid.row(row(rules, (name, "lia"), (Pair::less_percent, 1), |column, settings| {
            at("lisa/apart", settings).file(size).over(queues, runs, column, done)
        })?);
    }
    Ok(())
}

/// Figure 9.
fn fat_tree(runs: &Runs, rules: &[Rule], grid: &mut Grid) -> Result<(), Error> {
    let (form, tree) = (runs.form(), Tree::new(runs)?);
    let largest = tree::queues(form).into_iter().max().expect("a queue");
    for law in LAWS {
        let name = format!("9(b), sum of windows: queue {largest}");
        grid.row(row(rules, (name, law), (Pair::less, 1), |column, settings| {
            tree.set(settings).slow_start(largest, column, tree::slow_start_cwnd)
        })?);
    }
    for size in form.pick(vec![100, 300, 900], vec![100, 300, 900], vec![100]) {
        for law in LAWS {
            let name = format!("9(c), time, %: {size} kB");
            grid.row(row(rules, (name, law), (Pair::less_percent, 1), |column, settings| {
                tree.set(settings).file(size, column, tree::done)
            })?);
        }
        let name = format!("9(d), retransmissions: {size} kB");
        grid.row(row(rules, (name, "lia"), (Pair::less, 1), |column, settings| {
            tree.set(settings).file(size, column, tree::retransmits)
        })?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ask;
    use crate::lisa::MIN_RTT;

    fn resolved(era: Era, settings: &[&str]) -> String {
        let ask = Ask::of("lisa/shared", ["lia"]).set(settings.iter().copied());
        ask.set(era.settings().iter().copied()).scenario().unwrap().text()
    }

    #[test]
    fn the_rules_are_all_of_the_era() {
        let all: Vec<&str> =
            RULES[1..5].iter().flat_map(|rule| rule.2.iter().copied()).chain([MIN_RTT]).collect();
        assert_eq!(resolved(Era::Today, &all), resolved(Era::Paper, &[]));
        let (_, era, rest) = RULES[5];
        // What stands for the scheduler names today's other fields.
        let today = [&[MIN_RTT][..], rest].concat();
        assert_eq!(resolved(era, rest), resolved(Era::Today, &today));
    }
}
