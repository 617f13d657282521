//! One bottleneck: Tables 3 and 4.

use narrows_lab::Error;
use narrows_stats::mean;

use super::networks::{experiment, experiments};
use super::{ROWS, Row, ask, fair, index, ratio, right, row, runs_of, seeds, shared_each};
use crate::figures::{percent, time};
use crate::runs::first_right;
use crate::{Cell, Grid, Runs, Verdict};

/// Tables 3 and 4: Jain's index and the ratio.
pub fn shared(runs: &Runs) -> Result<Grid, Error> {
    let heads = ["J (ratio)", "paper: ssc", "paper: tr"].map(String::from);
    let mut grid = Grid::new(heads.into_iter().chain(ROWS.map(Row::name)));
    for one in experiments(runs) {
        let mut cells = vec![one.name.clone()];
        cells.extend(one.jain.map(|published| format!("{published:.4}")));
        for row in ROWS {
            let [index, ratio] = [index, ratio].map(|figure| shared_each(runs, figure, row, &one));
            cells.push(format!("{:.3} ({:.2})", mean(&index?), mean(&ratio?)));
        }
        grid.row(cells);
    }
    Ok(grid)
}

/// How many there are of each verdict.
fn count(verdicts: &[Verdict]) -> String {
    let mut kinds = verdicts.to_vec();
    kinds.sort_by_key(Verdict::to_string);
    let each = kinds.chunk_by(|a, b| a == b).map(|same| format!("{} {}", same[0], same.len()));
    each.collect::<Vec<_>>().join(", ")
}

/// Each of Tables 3 and 4 against ours: `xcorr` against TR.
pub fn verdicts(runs: &Runs) -> Result<Grid, Error> {
    let of =
        |system: &'static str, place: usize| super::rows_of(system).map(move |row| (row, place));
    let ours = ROWS.into_iter().filter(|row| row.is_xcorr()).map(|row| (row, 1));
    let listed: Vec<(Row, usize)> = of("ssc", 0).chain(of("tr", 1)).chain(ours).collect();
    let mut grid =
        Grid::new([String::new()].into_iter().chain(listed.iter().map(|(row, _)| row.name())));
    let mut columns = vec![Vec::new(); listed.len()];
    for one in experiments(runs) {
        let mut cells = vec![Cell::from(one.name.as_str())];
        for ((row, place), column) in listed.iter().zip(&mut columns) {
            let verdict = fair(&shared_each(runs, index, *row, &one)?, one.jain[*place]);
            column.push(verdict);
            // Ours has nothing published: it is beside TR.
            cells.push(if row.is_xcorr() { verdict.to_string().into() } else { verdict.into() });
        }
        grid.row(cells);
    }
    grid.row(["**all**".to_owned()].into_iter().chain(columns.iter().map(|column| count(column))));
    Ok(grid)
}

/// What is worse on shared bottlenecks: the network, what runs there, and its queue in ms if it differs.
const CAUSES: [(&str, Row, Option<u32>); 8] = [
    ("T4-E4", row("lia", None, "cubic"), None),
    ("T4-E5", row("lia", None, "cubic"), None),
    ("T3-E1", row("ssc-lia", Some("srtt"), "reno"), Some(50)),
    ("T3-E1", row("ssc-lia", Some("srtt"), "reno"), Some(100)),
    ("T3-E2", row("ssc-lia", Some("srtt"), "reno"), Some(50)),
    ("T3-E2", row("ssc-lia", Some("srtt"), "reno"), Some(100)),
    ("T3-E2", row("ssc-lia", Some("rtt"), "reno"), Some(50)),
    ("T3-E2", row("ssc-lia", Some("rtt"), "reno"), Some(100)),
];

/// The same where one thing differs.
pub fn causes(runs: &Runs) -> Result<Grid, Error> {
    let heads = ["", "control", "what differs", "J (ratio)", "verdict", "first s", "right, %"];
    let mut grid = Grid::new(heads);
    for (name, row, queue_ms) in &CAUSES[..runs.form().pick(8, 8, 1)] {
        let one = experiment(name);
        let network = one.shared(row.rival, *queue_ms);
        let found = runs
            .get(&ask(runs, &network, [row.control], row.signal).seeds(seeds(runs)))?
            .of(row.control);
        let [ratios, indexes] = super::ratios(&network, &found);
        let [first, share] = match row.signal {
            Some(_) => [time(first_right(&found)), percent(right(&found))],
            None => [String::new(), String::new()],
        };
        let differs =
            queue_ms.map_or("no detector: always coupled".into(), |ms| format!("queue {ms} ms"));
        let published = one.jain[usize::from(row.control != "ssc-lia")];
        grid.row([
            Cell::from(*name),
            row.name().into(),
            differs.into(),
            format!("{:.3} ({:.2})", mean(&indexes), mean(&ratios)).into(),
            fair(&indexes, published).into(),
            first.into(),
            share.into(),
        ]);
    }
    Ok(grid)
}

/// When the shared bottleneck is first found.
pub fn firsts(runs: &Runs) -> Result<Grid, Error> {
    let listed = || ROWS.into_iter().filter(|row| row.decides());
    let mut grid =
        Grid::new(["first s (right, %)".to_owned()].into_iter().chain(listed().map(Row::name)));
    for one in experiments(runs) {
        let mut cells = vec![one.name.clone()];
        for row in listed() {
            let found = runs_of(runs, &one.shared(row.rival, None), row, seeds(runs))?;
            cells.push(format!("{} ({})", time(first_right(&found)), percent(right(&found))));
        }
        grid.row(cells);
    }
    Ok(grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_counted() {
        use Verdict::{Better, Worse};
        assert_eq!(count(&[Worse, Better, Worse]), "better 1, worse 2");
    }
}
