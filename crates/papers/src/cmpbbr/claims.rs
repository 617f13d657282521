//! The claims of the paper's text that have a number: ratios of goodputs, as its flows use less of their links
//! than ours do.

use narrows_lab::Error;

use super::Rival::{Nothing, Own};
use super::{MODELS, Rival, SMALL, against, first, gain, get, goodput, mptcp, over, seeds, tcp};
use crate::figures::{Interval, text};
use crate::verdict::{Side, inside};
use crate::{Cell, Grid, Judged, Kept, Runs, Verdict};

type Found = Result<Option<Interval>, Error>;

/// A ratio of the text.
struct Claim {
    /// Its scenario or figure.
    place: &'static str,
    what: &'static str,
    published: f64,
    ours: fn(&Runs) -> Found,
    /// Which side of it is better, if one is.
    better: Option<Side>,
    /// What decides it, as far as seen.
    decides: &'static str,
}

impl Claim {
    const fn of(
        place: &'static str,
        what: &'static str,
        published: f64,
        ours: fn(&Runs) -> Found,
        decides: &'static str,
    ) -> Claim {
        // A gain over another control, a part of a link, what is left to the rival, and what a connection that has
        // less than its rival has of that: all are better if they are more.
        Claim { place, what, published, ours, better: Some(Side::More), decides }
    }

    /// More than a rival's share is not better, nor is less of it.
    const fn unfair(mut self) -> Claim {
        self.better = None;
        self
    }
}

/// The fair share of the rival in scenario 4, Mbit/s.
const SHARE: f64 = 0.5;

const CLAIMS: [Claim; 24] = [
    Claim::of(
        "Figure 1",
        "two bbr / their link",
        (3.6 + 3.62) / 10.0,
        link_used,
        "not known: theirs lose a third",
    ),
    Claim::of(
        "1",
        "c-mpbbr / lia",
        11.7 / 8.8,
        |runs| between(runs, "one", Nothing, "c-mpbbr", "lia"),
        "how much is lost",
    ),
    Claim::of(
        "2",
        "c-mpbbr: first subflow / rival",
        3.7 / 4.1,
        |runs| beside(runs, "two", "c-mpbbr", first),
        "how far estimates exceed rates",
    ),
    Claim::of(
        "2",
        "lia: first subflow / rival",
        1.4 / 7.4,
        |runs| beside(runs, "two", "lia", first),
        "not known",
    ),
    Claim::of(
        "2",
        "c-mpbbr / lia",
        7.5 / 4.9,
        |runs| between(runs, "two", Own, "c-mpbbr", "lia"),
        "both rows above",
    ),
    Claim::of(
        "3",
        "c-mpbbr / rival",
        4.3 / 3.8,
        |runs| beside(runs, "three", "c-mpbbr", mptcp),
        "the division",
    ),
    Claim::of(
        "3",
        "han-bbr / rival",
        6.1 / 2.5,
        |runs| beside(runs, "three", "han-bbr", mptcp),
        "which formula they ran",
    )
    .unfair(),
    Claim::of(
        "3",
        "u-mpbbr / rival",
        5.7 / 2.6,
        |runs| beside(runs, "three", "u-mpbbr", mptcp),
        "two flows to one",
    )
    .unfair(),
    Claim::of(
        "3",
        "lia / rival",
        2.8 / 5.4,
        |runs| beside(runs, "three", "lia", mptcp),
        "not known",
    ),
    Claim::of(
        "4",
        "c-mpbbr / u-mpbbr",
        36.0 / 16.5,
        |runs| between(runs, "four", Own, "c-mpbbr", "u-mpbbr"),
        "buffers: 6 MB, nothing held up",
    ),
    Claim::of(
        "4",
        "c-mpbbr / u-mpbbr, 1 MB",
        36.0 / 16.5,
        |runs| with_small(runs, "c-mpbbr", "u-mpbbr"),
        "how soon it is closed, how much is held up",
    ),
    Claim::of(
        "4",
        "c-mpbbr / han-bbr, 1 MB",
        36.0 / 15.4,
        |runs| with_small(runs, "c-mpbbr", "han-bbr"),
        "the same",
    ),
    Claim::of(
        "4",
        "c-mpbbr / lia, 1 MB",
        36.0 / 24.3,
        |runs| with_small(runs, "c-mpbbr", "lia"),
        "the same",
    ),
    Claim::of(
        "4",
        "lia / u-mpbbr, 1 MB",
        24.3 / 16.5,
        |runs| with_small(runs, "lia", "u-mpbbr"),
        "LIA's window on the slow path",
    ),
    Claim::of(
        "4",
        "c-mpbbr: rival / its share",
        0.86 / SHARE,
        |runs| Ok(left(&against(runs, "four", Own)?["c-mpbbr"])),
        "whether the path is closed",
    ),
    Claim::of(
        "4",
        "c-mpbbr: rival / its share, 1 MB",
        0.86 / SHARE,
        |runs| Ok(left(&small(runs, "c-mpbbr")?)),
        "the same",
    ),
    Claim::of(
        "4",
        "han-bbr: rival / its share, 1 MB",
        0.47 / SHARE,
        |runs| Ok(left(&small(runs, "han-bbr")?)),
        "how seldom the path may send",
    ),
    Claim::of(
        "4",
        "u-mpbbr: rival / its share, 1 MB",
        0.4 / SHARE,
        |runs| Ok(left(&small(runs, "u-mpbbr")?)),
        "the same",
    ),
    Claim::of(
        "4",
        "lia: rival / its share, 1 MB",
        0.8 / SHARE,
        |runs| Ok(left(&small(runs, "lia")?)),
        "LIA's window on the slow path",
    ),
    Claim::of(
        "5",
        "c-mpbbr / u-mpbbr",
        14.5 / 15.5,
        |runs| between(runs, "five", Nothing, "c-mpbbr", "u-mpbbr"),
        "window divided, too",
    ),
    Claim::of(
        "5",
        "han-bbr / u-mpbbr",
        13.0 / 15.5,
        |runs| between(runs, "five", Nothing, "han-bbr", "u-mpbbr"),
        "the formula",
    ),
    Claim::of(
        "5",
        "lia / u-mpbbr",
        10.5 / 15.5,
        |runs| between(runs, "five", Nothing, "lia", "u-mpbbr"),
        "losses, which ours do not have",
    ),
    Claim::of(
        "5",
        "olia / u-mpbbr",
        11.4 / 15.5,
        |runs| between(runs, "five", Nothing, "olia", "u-mpbbr"),
        "the same",
    ),
    Claim::of(
        "5",
        "balia / u-mpbbr",
        12.0 / 15.5,
        |runs| between(runs, "five", Nothing, "balia", "u-mpbbr"),
        "the same",
    ),
];

/// Both flows of Figure 1 over their link of 10 Mbit/s.
fn link_used(runs: &Runs) -> Found {
    let found = get(runs, "cmpbbr/two-bbr", &["bbr"], [""; 0], seeds(runs))?;
    Ok(over(&found["bbr"], |run| (goodput(run, "flow1") + goodput(run, "flow2")) / 10.0))
}

/// The connection under one control over that under another.
fn between(runs: &Runs, scenario: &str, rival: Rival, one: &str, other: &str) -> Found {
    let found = against(runs, scenario, rival)?;
    Ok(gain(&found[one], &found[other]))
}

/// A goodput under a control over that of its own rival.
fn beside(runs: &Runs, scenario: &str, control: &str, of: fn(&Kept) -> f64) -> Found {
    let found = against(runs, scenario, Own)?;
    Ok(over(&found[control], |run| of(run) / tcp(run)))
}

/// Scenario 4 with buffers of 1 MB, beside the control's own rival.
fn small(runs: &Runs, control: &str) -> Result<Vec<Kept>, Error> {
    let (together, rival): (&[&str], _) = if MODELS.contains(&control) {
        (&["c-mpbbr", "u-mpbbr", "han-bbr"], "bbr")
    } else {
        (&["lia"], "reno")
    };
    let settings = [&format!("flows.tcp1.cc={rival}"), SMALL[0], SMALL[1]];
    Ok(get(runs, "cmpbbr/four", together, settings, seeds(runs))?[control].clone())
}

fn with_small(runs: &Runs, one: &str, other: &str) -> Found {
    Ok(gain(&small(runs, one)?, &small(runs, other)?))
}

/// What the rival keeps, over its fair share of scenario 4.
fn left(runs: &[Kept]) -> Option<Interval> {
    over(runs, |run| tcp(run) / SHARE)
}

/// A published ratio: reproduced if our whole interval is within a quarter of it, unless some of that is nearer to no
/// effect, 1; then, or if the interval is there only in part, it cannot be told.
fn near(found: Option<Interval>, published: f64, better: Option<Side>) -> Judged {
    let quarter = published / 4.0;
    let (least, most) = (published - quarter, published + quarter);
    let verdict = inside(found, least, most, better);
    let Some((middle, half)) = found.and_then(Interval::bounds) else { return verdict.into() };
    // The least effect of the interval, seen from 1.
    let effect = (published - 1.0).signum() * (middle - 1.0) - half;
    match verdict {
        Verdict::Reproduced if effect < (published - 1.0).abs() / 2.0 => {
            Judged::new(Verdict::CannotBeTold, "nearer to no effect")
        }
        Verdict::CannotBeTold if better.is_none() && !(least..=most).contains(&middle) => {
            Judged::new(Verdict::CannotBeTold, "neither side is better")
        }
        other => other.into(),
    }
}

pub fn claims(runs: &Runs) -> Result<Grid, Error> {
    let mut grid = Grid::new([
        "scenario",
        "ratio of goodputs",
        "paper",
        "ours",
        "verdict",
        "what decides it, as far as seen",
    ]);
    for claim in &CLAIMS {
        let found = (claim.ours)(runs)?;
        grid.row([
            Cell::from(claim.place),
            claim.what.into(),
            format!("{:.2}", claim.published).into(),
            text(found, 2).into(),
            near(found, claim.published, claim.better).into(),
            claim.decides.into(),
        ]);
    }
    Ok(grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(mean: f64, half: f64, published: f64, better: Option<Side>) -> String {
        near(Some(Interval { mean, half: Some(half) }), published, better).to_string()
    }

    #[test]
    fn a_ratio_is_reproduced_within_a_quarter_unless_it_is_nearer_to_no_effect() {
        let of = |mean, half, published| judged(mean, half, published, Some(Side::More));
        assert_eq!(of(2.19, 0.06, 2.18), "reproduced");
        assert_eq!(of(0.68, 0.02, 0.68), "reproduced");
        assert_eq!(of(1.10, 0.01, 1.33), "cannot be told (nearer to no effect)");
        assert_eq!(of(0.94, 0.00, 0.84), "cannot be told (nearer to no effect)");
        // The mean is nearer to the published ratio, a part of the interval is not.
        assert_eq!(of(1.20, 0.05, 1.33), "cannot be told (nearer to no effect)");
        assert_eq!(of(1.20, 0.01, 1.33), "reproduced");
    }

    #[test]
    fn beyond_a_quarter_it_is_as_the_side_says() {
        assert_eq!(judged(1.00, 0.01, 2.18, Some(Side::More)), "worse");
        assert_eq!(judged(2.85, 0.06, 1.48, Some(Side::More)), "better");
        assert_eq!(judged(2.7, 0.2, 2.18, Some(Side::More)), "cannot be told");
        assert_eq!(judged(0.64, 0.02, 2.44, None), "cannot be told (neither side is better)");
        assert_eq!(judged(1.98, 0.08, 2.19, None), "reproduced");
        assert_eq!(near(None, 2.0, None).to_string(), "cannot be told");
    }
}
