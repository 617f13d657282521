//! Figures 11 to 14 are pictures; the text ranks the controls in them.

use narrows_lab::Error;

use super::{
    Rival, SMALL, WINDOWS, against_with, benefit, even, fairness, fairness_of_five, rates, seeds,
    tcp, twice,
};
use crate::figures::{Interval, ratios};
use crate::verdict::{Side, about, above, inside, ranked, weakest};
use crate::{Cell, Grid, Judged, Kept, Runs, Verdict};

/// Controls of the paper.
const CONTROLS: [&str; 6] = [BBRS[0], BBRS[1], BBRS[2], WINDOWS[0], WINDOWS[1], WINDOWS[2]];
const BBRS: [&str; 3] = [COUPLED, "han-bbr", "u-mpbbr"];
const COUPLED: &str = "c-mpbbr";

/// A figure of each control, by seed.
struct Figure(Vec<(&'static str, Vec<Option<f64>>)>);

impl Figure {
    fn of(
        runs: &Runs,
        scenario: &str,
        rival: Rival,
        figure: impl Fn(&Kept) -> f64,
    ) -> Result<Figure, Error> {
        Figure::with(runs, scenario, rival, &[], figure)
    }

    /// The same in a network that differs.
    fn with(
        runs: &Runs,
        scenario: &str,
        rival: Rival,
        more: &[&str],
        figure: impl Fn(&Kept) -> f64,
    ) -> Result<Figure, Error> {
        let found = against_with(runs, scenario, rival, more)?;
        let by_seed = |law| found[law].iter().map(|run| Some(figure(run))).collect();
        Ok(Figure(CONTROLS.map(|law| (law, by_seed(law))).into()))
    }

    fn by_seed(&self, law: &str) -> &[Option<f64>] {
        let found = self.0.iter().find(|(name, _)| *name == law);
        &found.expect("a control of the paper").1
    }

    fn interval(&self, law: &str) -> Option<Interval> {
        Interval::of(&self.by_seed(law).iter().copied().collect::<Option<Vec<_>>>()?)
    }

    /// The means, the largest first.
    fn listed(&self) -> String {
        let mean = |law| self.interval(law).map_or(f64::NAN, |found| found.mean);
        let mut ordered = CONTROLS.map(|law| (law, mean(law)));
        ordered.sort_by(|one, other| other.1.total_cmp(&one.1));
        ordered.map(|(law, mean)| format!("{law} {mean:.2}")).join(", ")
    }

    /// Each of these above each of those.
    fn above(&self, these: &[&str], those: &[&str]) -> Vec<Verdict> {
        let pairs = these.iter().flat_map(|one| those.iter().map(move |other| (one, other)));
        ranked(pairs.map(|(one, other)| (self.by_seed(one), self.by_seed(other))))
    }

    /// C-MPBBR above all others.
    fn best(&self) -> Vec<Verdict> {
        self.above(&[COUPLED], &CONTROLS[1..])
    }

    /// Each of these within 10 % of C-MPBBR.
    fn equal(&self, these: &[&str]) -> Vec<Verdict> {
        let values = |law| self.by_seed(law).iter().copied().collect::<Option<Vec<f64>>>();
        let ratio = |law| Some(ratios(&values(law)?, &values(COUPLED)?));
        let found = |law| ratio(law).and_then(|by_seed| Interval::of(&by_seed));
        these.iter().map(|law| about(found(law), 1.0, 0.1, Side::Exact)).collect()
    }

    /// The same where C-MPBBR has these values.
    fn with_coupled(mut self, values: Vec<Option<f64>>) -> Figure {
        let own = self.0.iter_mut().find(|(law, _)| *law == COUPLED);
        own.expect("a control of the paper").1 = values;
        self
    }

    /// How far each is from 1, by seed; nearer is more.
    fn nearness(&self) -> Figure {
        let near = |value: &Option<f64>| value.map(|value| -(value - 1.0).abs());
        Figure(self.0.iter().map(|(law, of)| (*law, of.iter().map(near).collect())).collect())
    }

    /// Beside each of these it is more than 1.
    fn exceeds_one(&self, these: &[&str]) -> Vec<Verdict> {
        these.iter().map(|law| above(self.interval(law), 1.0)).collect()
    }
}

/// A claim of the text on a figure, at as many pairs or points as there are verdicts.
struct Row {
    place: String,
    claim: String,
    ours: String,
    verdict: Judged,
    /// What decides it, as far as seen.
    decides: &'static str,
}

fn row(
    place: impl Into<String>,
    claim: impl Into<String>,
    figure: &Figure,
    verdicts: &[Verdict],
    decides: &'static str,
) -> Row {
    let (ours, verdict) = (figure.listed(), weakest(verdicts));
    Row { place: place.into(), claim: claim.into(), ours, verdict, decides }
}

const FORMULA: &str = "Han's formula";
const DIVISION: &str = "the division";
const BOTH: &str = "the division, and Han's formula";
const MISTAKE: &str = "coupled by mistake";
const UNCOUPLED: &str = "not coupled there";
const BUFFERS: &str = "buffers: nothing held up";
const FULL: &str = "what the scheduler does when the buffer is full";
const FIVE: &str = "the division, and that uncoupled takes two shares of the pair's link";
const NOT_HAN: &str = "not coupled there, and Han's formula";
const THIRD: &str = "the share is of three flows, 3.3 Mbit/s; over 5 it is nearest";

/// Buffers of scenario 4, as the claims say them.
const SIZES: [(&str, &[&str]); 2] = [("", &[]), (", 1 MB", &SMALL)];

/// One of these beside BBR or Reno, the other beside CUBIC.
fn by(rival: Rival, own: &'static str, cubic: &'static str) -> &'static str {
    if rival == Rival::Cubic { cubic } else { own }
}

/// Figure 11: the benefit of aggregation, where nothing is beside the connection.
fn alone(runs: &Runs) -> Result<Vec<Row>, Error> {
    let of =
        |scenario| Figure::of(runs, scenario, Rival::Nothing, |run| benefit(run, rates(scenario)));
    let (one, five) = (of("one")?, of("five")?);
    let above = |of: &Figure| of.above(&BBRS, &WINDOWS);
    let claim = |number| format!("Ag_bft in scenario {number}: BBR above the window laws");
    Ok(vec![
        row("11(a)", claim(1), &one, &above(&one), ""),
        row("11(a)", "the same: of all BBR almost equal", &one, &one.equal(&BBRS[1..]), FORMULA),
        row("11(e)", claim(5), &five, &above(&five), "how much is lost, and the division"),
    ])
}

/// Figure 11: the benefit of aggregation, in a scenario with two faster paths and in that with a slow one.
fn benefits(runs: &Runs, rival: Rival, panels: [&str; 3]) -> Result<Vec<Row>, Error> {
    let vs = rival.name();
    let mut rows = Vec::new();
    for (panel, number, scenario) in [(panels[0], 2, "two"), (panels[1], 3, "three")] {
        let found = Figure::of(runs, scenario, rival, |run| benefit(run, rates(scenario)))?;
        let mut add = |what: &str, verdicts: &[Verdict], decides| {
            let claim = format!("scenario {number}, {vs}: {what}");
            rows.push(row(format!("11({panel})"), claim, &found, verdicts, decides));
        };
        let below = if number == 2 { FORMULA } else { by(rival, BOTH, DIVISION) };
        add("BBR above the window laws", &found.above(&BBRS, &WINDOWS), below);
        let greedy = by(rival, FORMULA, NOT_HAN);
        add("Han and uncoupled above c-mpbbr", &found.above(&BBRS[1..], &[COUPLED]), greedy);
    }
    for (size, buffers) in SIZES {
        let slow = Figure::with(runs, "four", rival, buffers, |run| benefit(run, rates("four")))?;
        let mut add = |what: &str, verdicts: &[Verdict], decides| {
            let claim = format!("scenario 4{size}, {vs}: {what}");
            rows.push(row(format!("11({})", panels[2]), claim, &slow, verdicts, decides));
        };
        add("c-mpbbr best", &slow.best(), BUFFERS);
        add("window laws above Han and uncoupled", &slow.above(&WINDOWS, &BBRS[1..]), FULL);
    }
    Ok(rows)
}

/// Figure 12: what the rival has of its share.
fn rivals_share(runs: &Runs, rival: Rival) -> Result<Vec<Row>, Error> {
    let vs = rival.name();
    let mut rows = Vec::new();
    for (place, number, scenario, fair) in
        [("12(a)", 2, "two", 5.0), ("12(b)", 3, "three", 10.0 / 3.0)]
    {
        let found = Figure::of(runs, scenario, rival, |run| tcp(run) / fair)?;
        let mut add = |what: &str, verdicts: &[Verdict], decides| {
            let claim = format!("rival's share, scenario {number}, {vs}: {what}");
            rows.push(row(place, claim, &found, verdicts, decides));
        };
        let nearest = found.nearness().above(&[COUPLED], &BBRS[1..]);
        let decides = if number == 2 { by(rival, MISTAKE, UNCOUPLED) } else { THIRD };
        add("with c-mpbbr nearest to 1 of the BBRs", &nearest, decides);
        add("more than 1 beside the window laws", &found.exceeds_one(&WINDOWS), "");
    }
    for (size, buffers) in SIZES {
        let found = Figure::with(runs, "four", rival, buffers, |run| tcp(run) / 0.5)?;
        let mut verdicts = found.best();
        verdicts.push(inside(found.interval(COUPLED), 1.5, 2.5, Some(Side::More)));
        let claim = format!("rival's share, scenario 4{size}, {vs}: highest with c-mpbbr, about 2");
        rows.push(row(
            "12(c)",
            claim,
            &found,
            &verdicts,
            if size.is_empty() { BUFFERS } else { FULL },
        ));
    }
    Ok(rows)
}

/// Figures 13 and 14: Jain's index, and five paths. C-MPBBR beside itself is set against the others beside their rival.
fn others(runs: &Runs, rival: Rival, panels: [&str; 2]) -> Result<Vec<Row>, Error> {
    const ITSELF: &str = "c-mpbbr beside itself above the others";
    let vs = rival.name();
    let itself = |scenario, of: Figure| -> Result<Option<Figure>, Error> {
        if rival != Rival::Own {
            return Ok(None);
        }
        let both = twice(runs, scenario, COUPLED, seeds(runs))?;
        Ok(Some(of.with_coupled(both.iter().map(|run| Some(even(run))).collect())))
    };
    let mut rows = Vec::new();
    for (number, scenario) in [(2, "two"), (3, "three")] {
        let place = format!("13({})", panels[0]);
        let found = Figure::of(runs, scenario, rival, |run| fairness(run, scenario))?;
        let claim = |what| format!("Jain, scenario {number}, {vs}: {what}");
        let decides = if number == 2 { by(rival, MISTAKE, UNCOUPLED) } else { DIVISION };
        rows.push(row(&place, claim("c-mpbbr best"), &found, &found.best(), decides));
        if let Some(found) = itself(scenario, found)? {
            rows.push(row(&place, claim(ITSELF), &found, &found.best(), "others are near 1, too"));
        }
    }
    let found = Figure::of(runs, "complex", rival, |run| benefit(run, rates("complex")))?;
    let claim = format!("Ag_bft, five paths, {vs}: c-mpbbr best");
    rows.push(row(format!("14({})", panels[1]), claim, &found, &found.best(), FIVE));
    let found = Figure::of(runs, "complex", rival, fairness_of_five)?;
    let claim = |what| format!("Jain, five paths, {vs}: {what}");
    rows.push(row("14(d)", claim("c-mpbbr best"), &found, &found.best(), DIVISION));
    if let Some(found) = itself("complex", found)? {
        rows.push(row("14(d)", claim(ITSELF), &found, &found.best(), ""));
    }
    Ok(rows)
}

pub fn rankings(runs: &Runs) -> Result<Grid, Error> {
    let mut rows = alone(runs)?;
    for (rival, eleven, rest) in
        [(Rival::Own, ["b", "c", "d"], ["a", "b"]), (Rival::Cubic, ["f", "g", "h"], ["b", "c"])]
    {
        rows.extend(benefits(runs, rival, eleven)?);
        rows.extend(rivals_share(runs, rival)?);
        rows.extend(others(runs, rival, rest)?);
    }
    let mut grid =
        Grid::new(["figure", "claim", "ours", "verdict", "what decides it, as far as seen"]);
    for Row { place, claim, ours, verdict, decides } in rows {
        let decides = if verdict.verdict == Verdict::Reproduced { "" } else { decides };
        grid.row([Cell::from(place), claim.into(), ours.into(), verdict.into(), decides.into()]);
    }
    Ok(grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure with these values of the six controls, and seeds that differ by much more.
    fn figure(values: [f64; 6]) -> Figure {
        let by_seed = |value: f64| [0.0, 5.0, 11.0].map(|seed| Some(value + seed)).to_vec();
        Figure(CONTROLS.into_iter().zip(values.map(by_seed)).collect())
    }

    #[test]
    fn a_ranking_is_judged_by_pairs_of_seeds_and_not_by_means() {
        let found = figure([0.6, 0.5, 0.4, 0.3, 0.2, 0.1]);
        assert_eq!(weakest(&found.best()), Verdict::Reproduced.into());
        assert_eq!(weakest(&found.above(&BBRS, &WINDOWS)), Verdict::Reproduced.into());
        // Of the two, uncoupled is below.
        let judged = weakest(&found.above(&["u-mpbbr", COUPLED], &["han-bbr"]));
        assert_eq!(judged.to_string(), "worse (1 of 2 reproduced)");
        let mut unsure = found;
        // Far above on the mean, but not on all seeds.
        unsure.0[0].1 = vec![Some(0.5), Some(5.5), Some(99.0)];
        assert_eq!(weakest(&unsure.best()).to_string(), "cannot be told (0 of 5 reproduced)");
    }

    #[test]
    fn the_text_s_means_are_listed_the_largest_first() {
        let found = figure([0.1, 0.6, 0.2, 0.3, 0.4, 0.5]);
        let expected = "han-bbr 5.93, balia 5.83, olia 5.73, lia 5.63, u-mpbbr 5.53, c-mpbbr 5.43";
        assert_eq!(found.listed(), expected);
    }

    #[test]
    fn nearest_to_1_is_from_either_side() {
        let of = |value: f64| [value - 0.01, value, value + 0.01].map(Some).to_vec();
        let shares = [0.9, 1.2, 0.7, 1.5, 1.6, 0.99];
        let found = Figure(CONTROLS.into_iter().zip(shares.map(of)).collect());
        assert_eq!(
            found.nearness().above(&[COUPLED], &BBRS[1..]),
            [Verdict::Reproduced, Verdict::Reproduced]
        );
        let more = found.exceeds_one(&WINDOWS);
        assert_eq!(more, [Verdict::Reproduced, Verdict::Reproduced, Verdict::CannotBeTold]);
    }

    #[test]
    fn almost_equal_is_within_10_percent_of_c_mpbbr() {
        let of = |value: f64| [0.999 * value, value, 1.001 * value].map(Some).to_vec();
        let values = [0.8, 0.6, 0.82, 0.5, 0.4, 0.4];
        let found = Figure(CONTROLS.into_iter().zip(values.map(of)).collect());
        assert_eq!(found.equal(&BBRS[1..]), [Verdict::Worse, Verdict::Reproduced]);
        // Beside itself it is another.
        let itself = found.with_coupled(of(0.81));
        assert_eq!(itself.best()[1], Verdict::Worse);
    }

    #[test]
    fn one_seed_ranks_nothing() {
        let found = Figure(CONTROLS.map(|law| (law, vec![Some(1.0)])).into());
        assert_eq!(weakest(&found.best()).verdict, Verdict::CannotBeTold);
        assert!(found.listed().starts_with("c-mpbbr 1.00, han-bbr 1.00"));
    }
}
