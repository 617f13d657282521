//! Figures 11 to 14 are pictures; the text ranks the controls in them.

use narrows_lab::Error;

use super::{Rival, WINDOWS, against, benefit, fairness, rates, tcp};
use crate::figures::Interval;
use crate::verdict::{Side, above, inside, ranked, weakest};
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
        let found = against(runs, scenario, rival)?;
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
}

fn row(place: &str, claim: impl Into<String>, figure: &Figure, verdicts: &[Verdict]) -> Row {
    let (ours, verdict) = (figure.listed(), weakest(verdicts));
    Row { place: place.into(), claim: claim.into(), ours, verdict }
}

/// Figure 11: the benefit of aggregation, in a scenario with two faster paths and in that with a slow one.
fn benefits(runs: &Runs, rival: Rival, panels: [&str; 3]) -> Result<Vec<Row>, Error> {
    let vs = rival.name();
    let of = |scenario| Figure::of(runs, scenario, rival, |run| benefit(run, rates(scenario)));
    let mut rows = Vec::new();
    for (panel, number, scenario) in [(panels[0], 2, "two"), (panels[1], 3, "three")] {
        let found = of(scenario)?;
        let mut add = |what: &str, verdicts: &[Verdict]| {
            let claim = format!("scenario {number}, {vs}: {what}");
            rows.push(row(&format!("11({panel})"), claim, &found, verdicts));
        };
        add("BBR above the window laws", &found.above(&BBRS, &WINDOWS));
        add("Han and uncoupled above c-mpbbr", &found.above(&BBRS[1..], &[COUPLED]));
    }
    let (place, slow) = (format!("11({})", panels[2]), of("four")?);
    rows.push(row(&place, format!("scenario 4, {vs}: c-mpbbr best"), &slow, &slow.best()));
    let claim = format!("scenario 4, {vs}: window laws above Han and uncoupled");
    rows.push(row(&place, claim, &slow, &slow.above(&WINDOWS, &BBRS[1..])));
    Ok(rows)
}

/// Figure 12: what the rival has of its share.
fn rivals_share(runs: &Runs, rival: Rival) -> Result<Vec<Row>, Error> {
    let vs = rival.name();
    let of = |scenario, fair: f64| Figure::of(runs, scenario, rival, |run| tcp(run) / fair);
    let mut rows = Vec::new();
    for (place, number, scenario, fair) in
        [("12(a)", 2, "two", 5.0), ("12(b)", 3, "three", 10.0 / 3.0)]
    {
        let found = of(scenario, fair)?;
        let mut add = |what: &str, verdicts: &[Verdict]| {
            let claim = format!("rival's share, scenario {number}, {vs}: {what}");
            rows.push(row(place, claim, &found, verdicts));
        };
        let nearest = found.nearness().above(&[COUPLED], &BBRS[1..]);
        add("with c-mpbbr nearest to 1 of the BBRs", &nearest);
        add("more than 1 beside the window laws", &found.exceeds_one(&WINDOWS));
    }
    let found = of("four", 0.5)?;
    let mut verdicts = found.best();
    verdicts.push(inside(found.interval(COUPLED), 1.5, 2.5, Some(Side::More)));
    let claim = format!("rival's share, scenario 4, {vs}: highest with c-mpbbr, about 2");
    rows.push(row("12(c)", claim, &found, &verdicts));
    Ok(rows)
}

/// Figures 13 and 14: Jain's index, and five paths.
fn others(runs: &Runs, rival: Rival, panels: [&str; 2]) -> Result<Vec<Row>, Error> {
    let vs = rival.name();
    let mut rows = Vec::new();
    for (number, scenario) in [(2, "two"), (3, "three")] {
        let found = Figure::of(runs, scenario, rival, |run| fairness(run, scenario))?;
        let claim = format!("Jain, scenario {number}, {vs}: c-mpbbr best");
        rows.push(row(&format!("13({})", panels[0]), claim, &found, &found.best()));
    }
    let found = Figure::of(runs, "complex", rival, |run| benefit(run, rates("complex")))?;
    let claim = format!("Ag_bft, five paths, {vs}: c-mpbbr best");
    rows.push(row(&format!("14({})", panels[1]), claim, &found, &found.best()));
    Ok(rows)
}

pub fn rankings(runs: &Runs) -> Result<Grid, Error> {
    let alone = Figure::of(runs, "one", Rival::Nothing, |run| benefit(run, rates("one")))?;
    let claim = "Ag_bft in scenario 1: BBR above the window laws";
    let mut rows = vec![row("11(a)", claim, &alone, &alone.above(&BBRS, &WINDOWS))];
    for (rival, eleven, rest) in
        [(Rival::Own, ["b", "c", "d"], ["a", "b"]), (Rival::Cubic, ["f", "g", "h"], ["b", "c"])]
    {
        rows.extend(benefits(runs, rival, eleven)?);
        rows.extend(rivals_share(runs, rival)?);
        rows.extend(others(runs, rival, rest)?);
    }
    let mut grid = Grid::new(["figure", "claim", "ours", "verdict"]);
    for Row { place, claim, ours, verdict } in rows {
        grid.row([Cell::from(place), claim.into(), ours.into(), verdict.into()]);
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
    fn one_seed_ranks_nothing() {
        let found = Figure(CONTROLS.map(|law| (law, vec![Some(1.0)])).into());
        assert_eq!(weakest(&found.best()).verdict, Verdict::CannotBeTold);
        assert!(found.listed().starts_with("c-mpbbr 1.00, han-bbr 1.00"));
    }
}
