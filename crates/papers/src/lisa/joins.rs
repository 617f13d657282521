//! When the second subflow joins, and what a later join changes.

use narrows_lab::Error;

use super::gain;
use super::networks::{Column, Era, Network, Points, columns, done};
use crate::figures::{Interval, text};
use crate::{Grid, Runs};

/// "Grid lines are spaced at 70 ms, the base RTT".
pub const FIGURE_1_RTT_S: f64 = 0.07;

/// The RTT of Figure 6.
const FIGURE_6_RTT_S: f64 = 0.04;

/// How long after the first SYN, at 1 s, the address of the second subflow is there, ms; else from the start on.
const LATER_MS: [u32; 4] = [100, 120, 152, 252];

/// The setting for it.
fn added(after_ms: u32) -> String {
    let at = 1000 + after_ms;
    format!(
        r#"events=[{{at="0 s", flow="mptcp", lose="path2"}}, {{at="{at} ms", flow="mptcp", add="path2"}}]"#
    )
}

/// How long after the data of the first subflow the second joins, in base RTTs, and the window of the first then.
pub fn spreads(joins: &[(f64, f64)]) -> [Option<Interval>; 2] {
    let of =
        |side: fn(&(f64, f64)) -> f64| Interval::of(&joins.iter().map(side).collect::<Vec<_>>());
    [of(|join| join.0), of(|join| join.1)]
}

/// When it joins, with the queue of the bottleneck and without one.
pub fn join(runs: &Runs) -> Result<Grid, Error> {
    let heads = Era::ALL
        .into_iter()
        .flat_map(|era| [format!("base RTTs after data, {}", era.name()), "at packets".into()]);
    let mut grid = Grid::new(["network".to_owned()].into_iter().chain(heads));
    let (two, shared) = (Network::of("lisa/two"), Network::of("lisa/shared"));
    // A hundred times the rate and the queue: data waits nowhere.
    let wide = ["generator.dumbbell.rate=250 Mbit/s", "generator.dumbbell.queue=1500 packets"];
    let rows = [
        ("Figure 1, 1 BDP".to_owned(), two.clone(), FIGURE_1_RTT_S),
        ("the same at 250 Mbit/s".to_owned(), two.set(wide), FIGURE_1_RTT_S),
        ("Figure 6, 17 packets".to_owned(), shared, FIGURE_6_RTT_S),
    ];
    for (name, network, rtt_s) in rows {
        let mut row = vec![name];
        for era in Era::ALL {
            let joins = network.clone().joins(runs, Column { era, law: "lia" }, rtt_s)?;
            let [after, window] = spreads(&joins);
            row.extend([text(after, 1), text(window, 0)]);
        }
        grid.row(row);
    }
    Ok(grid)
}

/// Figure 6(c) by when the second address is there.
pub fn later(runs: &Runs) -> Result<Grid, Error> {
    let sizes = runs.form().pick(vec![150, 300, 500], vec![150, 300, 500], vec![300]);
    let times = [None].into_iter().chain(LATER_MS.map(Some));
    let times: Vec<Option<u32>> = times.take(runs.form().pick(5, 5, 2)).collect();
    let heads = columns().into_iter().map(Column::head);
    let mut grid = Grid::new(["kB, second path".to_owned()].into_iter().chain(heads));
    for size in sizes {
        for &after in &times {
            let name = after.map_or_else(|| "at once".into(), |ms| format!("after {ms} ms"));
            let mut row = vec![format!("{size}, {name}")];
            for column in columns() {
                let network = Network::of("lisa/shared").set(after.map(added));
                let pair = gain(runs, network, &runs.form().three(), size, column, done)?;
                row.push(text(pair.less_percent(), 1));
            }
            grid.row(row);
        }
    }
    Ok(grid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ask;

    /// Of which the scenario has no other: the flow begins at 1 s, and its second route is named so.
    #[test]
    fn a_later_address_is_one_that_is_lost_before_and_added_then() {
        let scenario = Ask::of("lisa/shared", ["lia"]).set([added(152)]).scenario().unwrap();
        assert_eq!(scenario.flows[0].active[0].0, 1_000_000_000);
        assert_eq!(
            scenario.events.iter().map(|event| event.at).collect::<Vec<_>>(),
            [0, 1_152_000_000]
        );
    }
}
