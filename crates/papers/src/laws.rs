//! Every law on the same networks.

use narrows_lab::Error;

use crate::figures::{spread, text};
use crate::{Ask, Grid, Paper, Runs, Table};

/// The table of docs/results/laws.md.
pub const PAPER: Paper = Paper {
    name: "laws",
    title: "every law on the same networks",
    document: "results/laws.md",
    tables: &[Table {
        name: "ratios",
        about: "goodput over that of the TCPs beside it, four networks",
        make: ratios,
    }],
};

const UNCOUPLED: [&str; 3] = ["reno", "cubic", "u-mpbbr"];
const COUPLED: [&str; 9] =
    ["ewtcp", "lia", "olia", "balia", "wvegas", "greno", "gcubic", "bbr", "bbr3"];
const DETECTED: [&str; 5] = ["lia+xcorr", "greno+xcorr", "gcubic+xcorr", "bbr+xcorr", "bbr3+xcorr"];
const NETWORKS: [(&str, &str); 4] = [
    ("sbd/nsb-2", "separate"),
    ("phone/wifi-lte", "separate"),
    ("sbd/sb-2", "shared"),
    ("sbd/sb-5", "shared, 5 paths"),
];

fn ratios(runs: &Runs) -> Result<Grid, Error> {
    let controls = [&UNCOUPLED[..], &COUPLED, &DETECTED].concat();
    let of = |(network, _): &(&str, &str)| {
        runs.get(&Ask::of(network, controls.clone()).seeds(runs.seeds(20, 3)).brief(runs.form()))
    };
    let found = NETWORKS.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    let heads = NETWORKS.map(|(network, what)| format!("{network}, {what}"));
    let mut grid = Grid::new(["control".to_owned()].into_iter().chain(heads));
    for control in controls {
        let ratio = |runs| spread(runs, |run: &crate::Kept| run.test().ratio_to_tcp);
        let cells = found.iter().map(|of| text(ratio(&of[control][..]), 2));
        grid.row([format!("`{control}`")].into_iter().chain(cells));
    }
    Ok(grid)
}
