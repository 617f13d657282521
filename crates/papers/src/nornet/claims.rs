//! The claims of the text, each a range of a figure over cells: controls and first pairs.

use narrows_lab::Error;
use narrows_stats::mean;

use super::networks::{COUPLED, ERAS, FIBRE, Network, UNCOUPLED, published};
use crate::figures::{Interval, means, ratios};
use crate::verdict::{Side, inside};
use crate::{Cell, Grid, Judged, Runs, Verdict};
use Needed::{All, Most};

/// "Slightly", "about", "no difference".
const SLIGHTLY: f64 = 0.1;
const LEAST: f64 = 1.0 - SLIGHTLY;
const MOST: f64 = 1.0 + SLIGHTLY;

/// In how many cells a claim is to hold, as the text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needed {
    All,
    Most,
}

impl Needed {
    fn name(self) -> &'static str {
        match self {
            Needed::All => "all",
            Needed::Most => "most",
        }
    }
}

/// A claim of the text.
pub struct Claim {
    pub letter: &'static str,
    /// Its place and what it says.
    claim: &'static str,
    /// A figure by seed in each cell.
    cells: fn(&Network) -> Vec<Vec<f64>>,
    /// Where the figure is to be.
    range: (f64, f64),
    needed: Needed,
    /// Which side of the range is better: of a goodput and a gain over TCP more, of a comparison of controls or first
    /// pairs neither.
    side: Side,
}

const fn claim(
    letter: &'static str,
    claim: &'static str,
    cells: fn(&Network) -> Vec<Vec<f64>>,
    range: (f64, f64),
    needed: Needed,
) -> Claim {
    Claim { letter, claim, cells, range, needed, side: Side::More }
}

impl Claim {
    /// Off either way is worse.
    const fn exact(mut self) -> Claim {
        self.side = Side::Exact;
        self
    }
}

/// The text's claims, and one of ours, *c*.
pub static CLAIMS: [Claim; 11] = [
    claim(
        "a",
        "V-A: with one path all controls as Reno",
        |network| network.each(&published(), Network::to_reno),
        (LEAST, MOST),
        All,
    )
    .exact(),
    claim(
        "b",
        "V-B: uncoupled, 20 to 27 Mbit/s, whatever pair is first",
        |network| {
            network.each(&UNCOUPLED, |of, control, pair| of.first.by_seed(control, pair).into())
        },
        (20.0, 27.0),
        All,
    ),
    claim(
        "c",
        "ours: uncoupled, the sum of the links",
        |network| network.each(&UNCOUPLED, Network::of_sum),
        (LEAST, f64::INFINITY),
        All,
    ),
    claim(
        "d",
        "V-B: uncoupled, more than TCP over the best pair",
        |network| network.each(&UNCOUPLED, Network::aggregated),
        (1.0, f64::INFINITY),
        All,
    ),
    claim(
        "e",
        "V-B: uncoupled, ADSL first slightly less than fibre first",
        |network| UNCOUPLED.map(|control| network.adsl_first(control)).into(),
        (LEAST, 1.0),
        All,
    )
    .exact(),
    claim(
        "f",
        "V-B: uncoupled, no difference once all subflows are up",
        |network| network.over(&UNCOUPLED, &network.adsl, Network::once_up),
        (LEAST, MOST),
        All,
    )
    .exact(),
    claim(
        "g",
        "V-B: CUBIC slightly more than Reno",
        |network| network.each(&["cubic"], Network::to_reno_first),
        (1.0, MOST),
        Most,
    )
    .exact(),
    claim(
        "h",
        "abstract, VI: coupled, more than TCP over the best pair",
        |network| network.each(&COUPLED, Network::aggregated),
        (1.0, f64::INFINITY),
        All,
    ),
    claim(
        "i",
        "V-C: wVegas the lowest of the coupled",
        |network| network.each(&["wvegas"], Network::to_lowest),
        (0.0, 1.0),
        Most,
    )
    .exact(),
    claim(
        "j",
        "V-C: Balia, LIA, OLIA without a winner",
        |network| network.by_pair(Network::to_winner),
        (LEAST, MOST),
        All,
    )
    .exact(),
    claim(
        "k",
        "V-C: coupled slightly less than uncoupled",
        |network| network.by_pair(Network::coupled),
        (LEAST, 1.0),
        Most,
    )
    .exact(),
];

impl Claim {
    /// That of a letter.
    pub fn of(letter: &str) -> &'static Claim {
        CLAIMS.iter().find(|one| one.letter == letter).expect("a claim of the text")
    }

    /// Its means in a network, cell by cell.
    pub fn means(&self, network: &Network) -> Vec<f64> {
        (self.cells)(network).iter().map(|cell| mean(cell)).collect()
    }

    pub fn verdict(&self, network: &Network) -> Judged {
        judge(&(self.cells)(network), self.range, self.needed, self.side)
    }

    pub fn holds(&self, network: &Network) -> bool {
        self.verdict(network).verdict == Verdict::Reproduced
    }
}

/// Over cells, each with the values of its runs: reproduced if enough of them are in the range with their whole
/// interval; cannot be told if enough are there or reach into it; else by the side on which more of them are.
fn judge(cells: &[Vec<f64>], (least, most): (f64, f64), needed: Needed, side: Side) -> Judged {
    let verdicts = cells.iter().map(|cell| inside(Interval::of(cell), least, most, Some(side)));
    let verdicts: Vec<Verdict> = verdicts.collect();
    let count = |of| verdicts.iter().filter(|&&one| one == of).count();
    let (held, better, worse) =
        (count(Verdict::Reproduced), count(Verdict::Better), count(Verdict::Worse));
    let enough = match needed {
        Needed::All => cells.len(),
        Needed::Most => cells.len() / 2 + 1,
    };
    let verdict = if held >= enough {
        Verdict::Reproduced
    } else if cells.len() - better - worse >= enough {
        Verdict::CannotBeTold
    } else if better > worse {
        Verdict::Better
    } else {
        Verdict::Worse
    };
    Judged::new(verdict, format!("{held} of {}", cells.len()))
}

/// By seed, what `of` makes of these.
fn by_seed(lists: &[&[f64]], of: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let seeds = lists.iter().map(|list| list.len()).min().unwrap_or(0);
    (0..seeds).map(|seed| of(&lists.iter().map(|list| list[seed]).collect::<Vec<_>>())).collect()
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn smallest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Figures by seed, of the goodputs in a network.
impl Network {
    fn all_tcp(&self, control: &str, pairs: &[&str]) -> Vec<&[f64]> {
        pairs.iter().map(|pair| self.tcp.by_seed(control, pair)).collect()
    }

    fn to_reno(&self, control: &str, pair: &str) -> Vec<f64> {
        ratios(self.tcp.by_seed(control, pair), self.tcp.by_seed("reno", pair))
    }

    /// Over one TCP over the best pair.
    fn aggregated(&self, control: &str, pair: &str) -> Vec<f64> {
        let best = by_seed(&self.all_tcp(control, &FIBRE), largest);
        ratios(self.first.by_seed(control, pair), &best)
    }

    fn of_sum(&self, control: &str, pair: &str) -> Vec<f64> {
        // A line each: both pairs over it are the same to one TCP.
        let lines = self.all_tcp(control, &[FIBRE[0], FIBRE[1], "path2-2", "path3-2"]);
        ratios(self.first.by_seed(control, pair), &by_seed(&lines, |of| of.iter().sum()))
    }

    fn adsl_first(&self, control: &str) -> Vec<f64> {
        let over = |pairs: &[&str]| {
            let each: Vec<_> = pairs.iter().map(|pair| self.first.by_seed(control, pair)).collect();
            means(&each)
        };
        ratios(&over(&self.adsl), &over(&self.fibre))
    }

    fn once_up(&self, control: &str, pair: &str) -> Vec<f64> {
        let fibre: Vec<_> = self.fibre.iter().map(|one| self.later.by_seed(control, one)).collect();
        ratios(self.later.by_seed(control, pair), &means(&fibre))
    }

    fn each_first(&self, controls: &[&str], pair: &str) -> Vec<&[f64]> {
        controls.iter().map(|control| self.first.by_seed(control, pair)).collect()
    }

    fn to_reno_first(&self, control: &str, pair: &str) -> Vec<f64> {
        ratios(self.first.by_seed(control, pair), self.first.by_seed("reno", pair))
    }

    /// Over the lowest of Balia, LIA and OLIA.
    fn to_lowest(&self, control: &str, pair: &str) -> Vec<f64> {
        let lowest = by_seed(&self.each_first(&COUPLED[..3], pair), smallest);
        ratios(self.first.by_seed(control, pair), &lowest)
    }

    /// The least of Balia, LIA and OLIA over the most of them, by their means.
    fn to_winner(&self, pair: &str) -> Vec<f64> {
        let mut ordered = self.each_first(&COUPLED[..3], pair);
        ordered.sort_by(|one, other| mean(one).total_cmp(&mean(other)));
        ratios(ordered[0], ordered[2])
    }

    /// The coupled controls over the uncoupled ones.
    fn coupled(&self, pair: &str) -> Vec<f64> {
        let over = |controls: &[&str]| means(&self.each_first(controls, pair));
        ratios(&over(&COUPLED), &over(&UNCOUPLED))
    }

    fn over(&self, controls: &[&str], pairs: &[&str], of: Figure) -> Vec<Vec<f64>> {
        let cells = controls.iter().flat_map(|one| pairs.iter().map(move |pair| (one, pair)));
        cells.map(|(control, pair)| of(self, control, pair)).collect()
    }

    /// Over all first pairs.
    fn each(&self, controls: &[&str], of: Figure) -> Vec<Vec<f64>> {
        self.over(controls, &self.pairs(), of)
    }

    fn by_pair(&self, of: fn(&Network, &str) -> Vec<f64>) -> Vec<Vec<f64>> {
        self.pairs().iter().map(|pair| of(self, pair)).collect()
    }

    fn pairs(&self) -> Vec<&'static str> {
        [&self.adsl[..], &self.fibre].concat()
    }
}

/// A figure by seed, of a control and a pair.
type Figure = fn(&Network, &str, &str) -> Vec<f64>;

pub fn claims(runs: &Runs) -> Result<Grid, Error> {
    let of = |era| Network::of_era(runs, era);
    let networks = ERAS.iter().map(of).collect::<Result<Vec<_>, Error>>()?;
    Ok(table(&networks))
}

/// The claims by Linux.
fn table(networks: &[Network]) -> Grid {
    let heads = ["", "claim", "cells"].into_iter().chain(ERAS.iter().map(|era| era.name));
    let mut grid = Grid::new(heads);
    for one in &CLAIMS {
        let row: [Cell; 3] = [one.letter.into(), one.claim.into(), one.needed.name().into()];
        let verdicts = networks.iter().map(|network| one.verdict(network).into());
        grid.row(row.into_iter().chain(verdicts));
    }
    grid
}

#[cfg(test)]
pub mod tests {
    use super::super::networks::{ADSL, Goodputs, pairs};
    use super::*;

    fn judged(cells: &[f64], needed: Needed) -> String {
        on(cells, needed, Side::More)
    }

    fn on(cells: &[f64], needed: Needed, side: Side) -> String {
        let around = |&cell: &f64| vec![0.99 * cell, cell, 1.01 * cell];
        let cells: Vec<_> = cells.iter().map(around).collect();
        judge(&cells, (10.0, 20.0), needed, side).to_string()
    }

    #[test]
    fn enough_cells_must_be_inside() {
        assert_eq!(judged(&[12.0, 15.0, 18.0], Needed::All), "reproduced (3 of 3)");
        assert_eq!(judged(&[12.0, 15.0, 30.0], Needed::Most), "reproduced (2 of 3)");
        assert_eq!(judged(&[12.0, 30.0], Needed::Most), "better (1 of 2)");
    }

    #[test]
    fn others_are_above_or_below_or_reach_into_the_range() {
        assert_eq!(judged(&[12.0, 15.0, 30.0], Needed::All), "better (2 of 3)");
        assert_eq!(judged(&[12.0, 15.0, 5.0], Needed::All), "worse (2 of 3)");
        assert_eq!(judged(&[12.0, 5.0, 30.0], Needed::All), "worse (1 of 3)");
        assert_eq!(judged(&[12.0, 15.0, 20.0], Needed::All), "cannot be told (2 of 3)");
        assert_eq!(judged(&[12.0, 10.0, 20.0], Needed::Most), "cannot be told (1 of 3)");
        // Of a comparison neither side is better.
        assert_eq!(on(&[12.0, 30.0], Needed::Most, Side::Exact), "worse (1 of 2)");
        assert_eq!(on(&[12.0, 15.0, 5.0], Needed::Most, Side::Exact), "reproduced (2 of 3)");
    }

    #[test]
    fn one_seed_decides_nothing() {
        let found = judge(&[vec![15.0], vec![30.0]], (10.0, 20.0), Needed::All, Side::More);
        assert_eq!(found.to_string(), "cannot be told (0 of 2)");
    }

    /// The text's goodputs with a fibre pair first.
    pub const TEXT: [(&str, f64); 6] = [
        ("cubic", 24.0),
        ("reno", 23.5),
        ("balia", 22.0),
        ("lia", 22.0),
        ("olia", 22.0),
        ("wvegas", 21.0),
    ];

    fn goodputs(controls: &[(&str, f64)], factor: impl Fn(&str) -> f64) -> Goodputs {
        let by_seed = |value: f64| vec![0.999 * value, value, 1.001 * value];
        let mut found = Goodputs::default();
        for (control, value) in controls {
            for pair in pairs() {
                let key = (control.to_string(), pair.to_owned());
                found.0.insert(key, by_seed(factor(pair) * value));
            }
        }
        found
    }

    /// A network with the text's goodputs but for others; with an ADSL pair first they are `adsl` of them, and once all
    /// subflows are up `once_up`.
    pub fn network(adsl: f64, once_up: f64, others: &[(&str, f64)]) -> Network {
        let other = |name: &str| others.iter().find(|(of, _)| *of == name).map(|(_, value)| *value);
        let values = TEXT.map(|(name, value)| (name, other(name).unwrap_or(value)));
        let by = |of: f64| move |pair: &str| if ADSL.contains(&pair) { of } else { 1.0 };
        Network {
            tcp: goodputs(&TEXT.map(|(name, _)| (name, 12.0)), by(0.22 / 12.0)),
            first: goodputs(&values, by(adsl)),
            later: goodputs(&values, by(once_up)),
            adsl: ADSL.into(),
            fibre: FIBRE.into(),
        }
    }

    fn verdicts(network: &Network) -> Vec<(&'static str, Verdict)> {
        CLAIMS.iter().map(|one| (one.letter, one.verdict(network).verdict)).collect()
    }

    #[test]
    fn what_the_text_says_is_reproduced() {
        let found = verdicts(&network(0.97, 1.0, &[]));
        assert_eq!(found.len(), 11);
        assert!(found.iter().all(|(_, one)| *one == Verdict::Reproduced), "{found:?}");
    }

    #[test]
    fn the_contrary_is_not() {
        use Verdict::{Better, Worse};
        let goodputs = |others: &[(&str, f64)]| network(0.97, 1.0, others);
        let winners = |of| goodputs(&[("balia", of), ("lia", of), ("olia", of)]);
        for (network, letter, verdict) in [
            (goodputs(&[("cubic", 15.0), ("reno", 15.0)]), "b", Worse),
            (goodputs(&[("cubic", 30.0), ("reno", 30.0)]), "b", Better),
            (goodputs(&[("cubic", 15.0), ("reno", 15.0)]), "c", Worse),
            (goodputs(&[("cubic", 11.0), ("reno", 11.0)]), "d", Worse),
            (network(0.8, 1.0, &[]), "e", Worse),
            (network(1.1, 1.0, &[]), "e", Worse),
            (network(0.97, 0.8, &[]), "f", Worse),
            (network(0.97, 1.2, &[]), "f", Worse),
            (goodputs(&[("cubic", 23.0), ("reno", 24.0)]), "g", Worse),
            (goodputs(&[("cubic", 25.0), ("reno", 20.0)]), "g", Worse),
            (goodputs(&[("wvegas", 11.0)]), "h", Worse),
            (goodputs(&[("wvegas", 23.0)]), "i", Worse),
            (goodputs(&[("lia", 18.0)]), "j", Worse),
            (winners(18.0), "k", Worse),
            (winners(26.0), "k", Worse),
        ] {
            let found = verdicts(&network);
            assert!(found.contains(&(letter, verdict)), "{letter}: {found:?}");
        }
    }

    #[test]
    fn the_table_has_a_verdict_of_each_claim_and_linux() {
        let network = network(0.97, 1.0, &[]);
        let grid = table(&[network.clone(), network.clone(), network]);
        assert_eq!(grid.verdicts().count(), 33);
        assert!(grid.markdown().contains("| all | reproduced (36 of 36) |"), "{}", grid.markdown());
    }
}
