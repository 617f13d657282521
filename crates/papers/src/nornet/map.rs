//! What decides the claims: buffer, ADSL's queue, and loss; and the headline, which counts where they hold.

use narrows_lab::Error;
use narrows_stats::mean;

use super::claims::{CLAIMS, Claim};
use super::networks::{
    ADSL, COUPLED, Cell as At, ERAS, FIBRE, Goodputs, Network, UNCOUPLED, published,
};
use crate::{Cell, Form, Grid, Runs};

const BUFFERS: [&str; 5] = ["800 KiB", "1600 KiB", "3200 KiB", "6400 KiB", "16 MiB"];
/// Queues of ADSL, and loss to Bergen.
const ROWS: [(&str, Option<&str>); 7] = [
    ("100 ms", None),
    ("200 ms", None),
    ("500 ms", None),
    ("2600 ms", None),
    ("200 ms", Some("0.01 %")),
    ("200 ms", Some("0.03 %")),
    ("200 ms", Some("0.1 %")),
];

/// The buffers of the map; in the quick form two that differ much, in the least one.
fn columns(form: Form) -> Vec<&'static str> {
    let chosen: &[usize] = form.pick(&[0, 1, 2, 3, 4], &[1, 4], &[1]);
    chosen.iter().map(|&at| BUFFERS[at]).collect()
}

/// Its rows: in the quick form the ends of the queue and a loss.
fn rows(form: Form) -> Vec<(&'static str, Option<&'static str>)> {
    let chosen: &[usize] = form.pick(&[0, 1, 2, 3, 4, 5, 6], &[0, 3, 5], &[4]);
    chosen.iter().map(|&at| ROWS[at]).collect()
}

/// The networks of a row of the map, by buffer.
type Row = Vec<Network>;

fn networks(runs: &Runs) -> Result<Vec<Row>, Error> {
    let row = |(queue, loss)| {
        let of = |buffer| Network::of_cell(runs, At { buffer, queue, loss });
        columns(runs.form()).into_iter().map(of).collect()
    };
    rows(runs.form()).into_iter().map(row).collect()
}

/// A table of queues and losses by buffers.
fn by_cell(runs: &Runs, of: impl Fn(&Network) -> String) -> Result<Grid, Error> {
    let mut grid = Grid::new([""].into_iter().chain(columns(runs.form())));
    for ((queue, loss), row) in rows(runs.form()).iter().zip(networks(runs)?) {
        let loss = loss.map_or_else(String::new, |loss| format!(", {loss} of loss"));
        grid.row([format!("ADSL {queue}{loss}")].into_iter().chain(row.iter().map(&of)));
    }
    Ok(grid)
}

/// Which claims are reproduced in a cell; not a, which is of one TCP.
pub fn holds(runs: &Runs) -> Result<Grid, Error> {
    by_cell(runs, held)
}

fn held(network: &Network) -> String {
    let letters = CLAIMS.iter().filter(|one| one.letter != "a" && one.holds(network));
    letters.map(|one| one.letter).collect::<Vec<_>>().join(" ")
}

/// Goodput in a cell, Mbit/s.
pub fn goodput(runs: &Runs) -> Result<Grid, Error> {
    by_cell(runs, spans)
}

/// Of uncoupled and coupled controls, from the least to the most of the means over first pairs.
fn spans(network: &Network) -> String {
    let pairs = [network.adsl[0], network.fibre[0]];
    let of = |controls: &[&str]| span_of(&network.first, controls, &pairs, 1);
    format!("{}; {}", of(&UNCOUPLED), of(&COUPLED))
}

fn span_of(goodputs: &Goodputs, controls: &[&str], pairs: &[&str], digits: usize) -> String {
    let cells = controls.iter().flat_map(|one| pairs.iter().map(move |pair| (one, pair)));
    let means = cells.map(|(control, pair)| mean(goodputs.by_seed(control, pair)));
    span(&means.collect::<Vec<_>>(), digits)
}

/// `0.62 to 0.71`, or one of them if they are written alike.
fn span(values: &[f64], digits: usize) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (least, most) = (format!("{least:.digits$}"), format!("{most:.digits$}"));
    if least == most { least } else { format!("{least} to {most}") }
}

/// A claim of the abstract or the conclusion, as published, with what the map and the table below it show to decide it.
struct Headline {
    letter: &'static str,
    claim: &'static str,
    published: &'static str,
    decides: &'static str,
}

const QUEUE: &str = "the buffer, and ADSL's queue";
const ORDER: &str = "the order of the subflows, and the buffer";
const LOSS: &str = "loss to UiB, and the buffer";
const MORE_LOSS: &str = "the buffer, and loss to UiB";

const HEADLINES: [Headline; 9] = [
    line("b", "uncoupled over 3 by 2 providers, Mbit/s", "20 to 27", QUEUE),
    line("d", "uncoupled, over TCP's best pair", "more", QUEUE),
    line("e", "uncoupled, ADSL over fibre first", "slightly less", ORDER),
    line("f", "the same once all subflows are up", "as much", ORDER),
    line("g", "CUBIC over Reno", "slightly more", LOSS),
    line("h", "coupled, over TCP's best pair", "more", MORE_LOSS),
    line("i", "wVegas over the least other coupled", "lowest in most", QUEUE),
    line("j", "least over most of Balia, LIA, OLIA", "no winner", MORE_LOSS),
    line("k", "coupled over uncoupled", "slightly less", LOSS),
];

const fn line(
    letter: &'static str,
    claim: &'static str,
    published: &'static str,
    decides: &'static str,
) -> Headline {
    Headline { letter, claim, published, decides }
}

/// What the paper's abstract and conclusion rest on, on Linux of its time, and in how many cells of the map, by buffer, it holds.
pub fn headline(runs: &Runs) -> Result<Grid, Error> {
    let network = Network::of_era(runs, &ERAS[1])?;
    let map = networks(runs)?;
    let heads = ["", "claim", "published", "ours", "verdict", "what decides it"].map(String::from);
    let sizes = columns(runs.form()).into_iter().map(|size| format!("{size}: of {}", map.len()));
    let mut grid = Grid::new(heads.into_iter().chain(sizes));
    let one = |pairs: &[&str], digits| span_of(&network.tcp, &published(), pairs, digits);
    let tcp = format!("{}; {}", one(&FIBRE, 1), one(&ADSL, 2));
    let row = ["", "one TCP over fibre; ADSL, Mbit/s", "12; 0.22", &tcp, "set by it", ""];
    grid.row(row.into_iter().chain(columns(runs.form()).iter().map(|_| "")));
    for Headline { letter, claim, published, decides } in HEADLINES {
        let of = Claim::of(letter);
        let ours = span(&of.means(&network), if letter == "b" { 1 } else { 2 });
        let row: [Cell; 6] = [
            letter.into(),
            claim.into(),
            published.into(),
            ours.into(),
            of.verdict(&network).into(),
            decides.into(),
        ];
        let held = (0..columns(runs.form()).len()).map(|column| {
            let cells = map.iter().filter(|row| of.holds(&row[column]));
            Cell::from(cells.count().to_string())
        });
        grid.row(row.into_iter().chain(held));
    }
    Ok(grid)
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::{TEXT, network};
    use super::*;

    #[test]
    fn the_map_names_the_claims_that_hold_in_a_cell() {
        assert_eq!(held(&network(0.97, 1.0, &[])), "b c d e f g h i j k");
        let low = TEXT.map(|(name, _)| (name, 10.0));
        assert_eq!(held(&network(0.97, 1.0, &low)), "e f g i j k");
        assert_eq!(spans(&network(0.97, 1.0, &[])), "22.8 to 24.0; 20.4 to 22.0");
    }

    #[test]
    fn a_span_of_one_value_is_a_value() {
        assert_eq!(span(&[0.221, 0.219], 2), "0.22");
        assert_eq!(span(&[0.73, 0.97], 2), "0.73 to 0.97");
    }
}
