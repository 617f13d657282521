//! The claims of the paper's text that have a number: ratios of goodputs, as its flows use less of their links
//! than ours do.

use narrows_lab::Error;

use super::Rival::{Nothing, Own};
use super::{
    ANSWER, Rival, SMALL, against, against_with, estimate, estimated, first, gain, get, over,
    seeds, tcp,
};
use crate::figures::{Interval, spread, text};
use crate::goodput::{goodput, mptcp};
use crate::verdict::{Side, about, ratio};
use crate::{Cell, Grid, Judged, Kept, Runs};

type Found = Result<Option<Interval>, Error>;

/// A ratio of the text.
struct Claim {
    /// Its scenario or figure.
    place: &'static str,
    what: &'static str,
    published: f64,
    ours: fn(&Runs) -> Found,
    rule: Rule,
    /// What decides it, as far as seen.
    decides: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// A published ratio, and which side of it is better.
    Ratio(Side),
    /// "Almost equal": within 10 % of 1.
    Equal,
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
        Claim { place, what, published, ours, rule: Rule::Ratio(Side::More), decides }
    }

    /// A share beside a rival in one bottleneck, an estimate: off either way is worse.
    const fn exact(mut self) -> Claim {
        self.rule = Rule::Ratio(Side::Exact);
        self
    }

    const fn equal(mut self) -> Claim {
        self.rule = Rule::Equal;
        self
    }

    fn judge(&self, found: Option<Interval>) -> Judged {
        match self.rule {
            Rule::Ratio(better) => ratio(found, self.published, better),
            Rule::Equal => about(found, self.published, 0.1, Side::Exact).into(),
        }
    }
}

/// The fair share of the rival in scenario 4, Mbit/s.
const SHARE: f64 = 0.5;

const LARGEST: &str = "not known: their estimates add up to 1.4 times the link, ours to 1.06";
const DIVISION: &str = "the division: `bbr+btlbw` loses nothing";
const COUPLED: &str = "whether the two paths are coupled";
const FULL: &str = "what the scheduler does when the buffer is full";
const NEITHER: &str = "not known: neither scheduler has it";
const SOON: &str = "how soon it is closed, how much is held up";

static CLAIMS: [Claim; 43] = [
    Claim::of(
        "Figure 1",
        "two bbr / their link",
        (3.6 + 3.62) / 10.0,
        link_used,
        "not known: theirs leave more than a quarter",
    ),
    Claim::of("Figure 1", "bbr: window of one / of the other", 1.0, windows, "the same estimate")
        .equal(),
    Claim::of(
        "Figure 1",
        "bbr: estimate of one / of the other",
        6.93 / 7.23,
        |runs| Ok(spread(&estimated(runs)?["bbr"], estimates)),
        "the same flows",
    )
    .equal(),
    Claim::of(
        "Figure 1",
        "bbr: estimate / throughput, the first",
        6.93 / 3.6,
        |runs| Ok(spread(&estimated(runs)?["bbr"], |run| over_throughput(run, "flow1"))),
        LARGEST,
    )
    .exact(),
    Claim::of(
        "Figure 1",
        "bbr: estimate / throughput, the second",
        7.23 / 3.62,
        |runs| Ok(spread(&estimated(runs)?["bbr"], |run| over_throughput(run, "flow2"))),
        LARGEST,
    )
    .exact(),
    Claim::of(
        "1",
        "c-mpbbr / lia",
        11.7 / 8.8,
        |runs| between(runs, "one", Nothing, "c-mpbbr", "lia"),
        "how much is lost: 0.1 % is our rule",
    ),
    Claim::of(
        "1",
        "c-mpbbr / lia, 0.2 % of loss",
        11.7 / 8.8,
        |runs| with_loss(runs, "one", "0.2 %", "c-mpbbr", "lia"),
        "the same",
    ),
    Claim::of(
        "2",
        "c-mpbbr: first subflow / rival",
        3.7 / 4.1,
        |runs| beside(runs, "two", "c-mpbbr", first),
        COUPLED,
    ),
    Claim::of(
        "2",
        "the same, `btlbw.cycles=1`, the nearest to the published code",
        3.7 / 4.1,
        |runs| first_with(runs, "btlbw.cycles=1"),
        COUPLED,
    ),
    Claim::of(
        "2",
        "the same, `btlbw.alpha=0.05`",
        3.7 / 4.1,
        |runs| first_with(runs, "btlbw.alpha=0.05"),
        COUPLED,
    ),
    Claim::of(
        "2",
        "the same, `btlbw.alpha=0.02`",
        3.7 / 4.1,
        |runs| first_with(runs, "btlbw.alpha=0.02"),
        COUPLED,
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
        "coupling, and more on the first path under lia",
    ),
    Claim::of(
        "3",
        "c-mpbbr / rival",
        4.3 / 3.8,
        |runs| beside(runs, "three", "c-mpbbr", mptcp),
        "the division",
    )
    .exact(),
    Claim::of(
        "3",
        "han-bbr / rival",
        6.1 / 2.5,
        |runs| beside(runs, "three", "han-bbr", mptcp),
        "not known: they may have run another formula",
    )
    .exact(),
    Claim::of(
        "3",
        "u-mpbbr / rival",
        5.7 / 2.6,
        |runs| beside(runs, "three", "u-mpbbr", mptcp),
        "two flows to one",
    )
    .exact(),
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
        "c-mpbbr: rival / its share",
        0.86 / SHARE,
        |runs| Ok(left(&against(runs, "four", Own)?["c-mpbbr"])),
        "whether the path is closed",
    ),
    Claim::of(
        "4",
        "c-mpbbr / u-mpbbr, 1 MB",
        36.0 / 16.5,
        |runs| of_small(runs, "c-mpbbr", "u-mpbbr"),
        SOON,
    ),
    Claim::of(
        "4",
        "c-mpbbr / han-bbr, 1 MB",
        36.0 / 15.4,
        |runs| of_small(runs, "c-mpbbr", "han-bbr"),
        SOON,
    ),
    Claim::of(
        "4",
        "c-mpbbr / lia, 1 MB",
        36.0 / 24.3,
        |runs| of_small(runs, "c-mpbbr", "lia"),
        FULL,
    ),
    Claim::of(
        "4",
        "lia / u-mpbbr, 1 MB",
        24.3 / 16.5,
        |runs| of_small(runs, "lia", "u-mpbbr"),
        NEITHER,
    ),
    Claim::of(
        "4",
        "c-mpbbr: rival / its share, 1 MB",
        0.86 / SHARE,
        |runs| Ok(left(&small(runs, "c-mpbbr")?)),
        "how rarely the path may send",
    ),
    Claim::of(
        "4",
        "han-bbr: rival / its share, 1 MB",
        0.47 / SHARE,
        |runs| Ok(left(&small(runs, "han-bbr")?)),
        "how rarely the path may send",
    ),
    Claim::of(
        "4",
        "u-mpbbr: rival / its share, 1 MB",
        0.4 / SHARE,
        |runs| Ok(left(&small(runs, "u-mpbbr")?)),
        "how rarely the path may send",
    ),
    Claim::of(
        "4",
        "lia: rival / its share, 1 MB",
        0.8 / SHARE,
        |runs| Ok(left(&small(runs, "lia")?)),
        FULL,
    ),
    Claim::of(
        "4",
        "c-mpbbr / u-mpbbr, 1 MB, v0.89",
        36.0 / 16.5,
        |runs| of_answer(runs, "c-mpbbr", "u-mpbbr"),
        FULL,
    ),
    Claim::of(
        "4",
        "c-mpbbr / han-bbr, 1 MB, v0.89",
        36.0 / 15.4,
        |runs| of_answer(runs, "c-mpbbr", "han-bbr"),
        FULL,
    ),
    Claim::of(
        "4",
        "c-mpbbr / lia, 1 MB, v0.89",
        36.0 / 24.3,
        |runs| of_answer(runs, "c-mpbbr", "lia"),
        FULL,
    ),
    Claim::of(
        "4",
        "lia / u-mpbbr, 1 MB, v0.89",
        24.3 / 16.5,
        |runs| of_answer(runs, "lia", "u-mpbbr"),
        NEITHER,
    ),
    Claim::of(
        "4",
        "c-mpbbr: rival / its share, 1 MB, v0.89",
        0.86 / SHARE,
        |runs| Ok(left(&answer(runs, "c-mpbbr")?)),
        "how rarely the path may send",
    ),
    Claim::of(
        "4",
        "han-bbr: rival / its share, 1 MB, v0.89",
        0.47 / SHARE,
        |runs| Ok(left(&answer(runs, "han-bbr")?)),
        "how rarely the path may send",
    ),
    Claim::of(
        "4",
        "u-mpbbr: rival / its share, 1 MB, v0.89",
        0.4 / SHARE,
        |runs| Ok(left(&answer(runs, "u-mpbbr")?)),
        "how rarely the path may send",
    ),
    Claim::of(
        "4",
        "lia: rival / its share, 1 MB, v0.89",
        0.8 / SHARE,
        |runs| Ok(left(&answer(runs, "lia")?)),
        FULL,
    ),
    Claim::of(
        "5",
        "c-mpbbr / u-mpbbr",
        14.5 / 15.5,
        |runs| between(runs, "five", Nothing, "c-mpbbr", "u-mpbbr"),
        DIVISION,
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
        "c-mpbbr / lia",
        14.5 / 10.5,
        |runs| between(runs, "five", Nothing, "c-mpbbr", "lia"),
        "the division, and how much is lost",
    ),
    Claim::of(
        "5",
        "c-mpbbr / olia",
        14.5 / 11.4,
        |runs| between(runs, "five", Nothing, "c-mpbbr", "olia"),
        "the division, and how much is lost",
    ),
    Claim::of(
        "5",
        "c-mpbbr / balia",
        14.5 / 12.0,
        |runs| between(runs, "five", Nothing, "c-mpbbr", "balia"),
        "the division, and how much is lost",
    ),
    Claim::of(
        "5",
        "c-mpbbr / lia, 0.1 % of loss",
        14.5 / 10.5,
        |runs| with_loss(runs, "five", "0.1 %", "c-mpbbr", "lia"),
        "the same",
    ),
    Claim::of(
        "5",
        "c-mpbbr / lia, 0.3 % of loss",
        14.5 / 10.5,
        |runs| with_loss(runs, "five", "0.3 %", "c-mpbbr", "lia"),
        "how much is lost",
    ),
    Claim::of(
        "5",
        "bbr+btlbw, its division is ours / lia, 0.1 % of loss",
        14.5 / 10.5,
        |runs| with_loss(runs, "five", "0.1 %", "bbr+btlbw", "lia"),
        "the division",
    ),
];

/// Both flows of Figure 1 over their link of 10 Mbit/s.
fn link_used(runs: &Runs) -> Found {
    let found = get(runs, "cmpbbr/two-bbr", &["bbr"], [""; 0], seeds(runs))?;
    Ok(over(&found["bbr"], |run| (goodput(run, "flow1") + goodput(run, "flow2")) / 10.0))
}

/// The window of one flow of Figure 1 over that of the other, which follow their estimates.
fn windows(runs: &Runs) -> Found {
    let found = get(runs, "cmpbbr/two-bbr", &["bbr"], [""; 0], seeds(runs))?;
    let window = |run: &Kept, flow| run.connection(flow).paths[0].mean_cwnd_packets;
    Ok(over(&found["bbr"], |run| window(run, "flow1") / window(run, "flow2")))
}

/// What one flow of Figure 1 estimates over what the other does.
fn estimates(run: &Kept) -> Option<f64> {
    Some(estimate(run, "flow1")? / estimate(run, "flow2")?)
}

/// What a flow of Figure 1 estimates over what it has.
fn over_throughput(run: &Kept, flow: &str) -> Option<f64> {
    Some(estimate(run, flow)? / goodput(run, flow))
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

/// What the first path of scenario 2 has over its rival under C-MPBBR whose detector differs.
fn first_with(runs: &Runs, setting: &str) -> Found {
    let settings = ["flows.tcp1.cc=bbr", setting];
    let found = get(runs, "cmpbbr/two", &["c-mpbbr"], settings, seeds(runs))?;
    Ok(over(&found["c-mpbbr"], |run| first(run) / tcp(run)))
}

/// One control over another with so much loss on both paths.
fn with_loss(runs: &Runs, scenario: &str, loss: &str, one: &str, other: &str) -> Found {
    let settings = ["bottleneck1", "bottleneck2"].map(|link| format!("links.{link}.loss={loss}"));
    let found = get(runs, &format!("cmpbbr/{scenario}"), &[one, other], settings, seeds(runs))?;
    Ok(gain(&found[one], &found[other]))
}

/// Scenario 4 with buffers of 1 MB, beside the control's own rival.
fn small(runs: &Runs, control: &str) -> Result<Vec<Kept>, Error> {
    Ok(against_with(runs, "four", Own, &SMALL)?[control].clone())
}

/// The same with the answer of out-of-tree MPTCP to a full buffer.
fn answer(runs: &Runs, control: &str) -> Result<Vec<Kept>, Error> {
    Ok(against_with(runs, "four", Own, &[&SMALL[..], &[ANSWER]].concat())?[control].clone())
}

fn of_small(runs: &Runs, one: &str, other: &str) -> Found {
    Ok(gain(&small(runs, one)?, &small(runs, other)?))
}

fn of_answer(runs: &Runs, one: &str, other: &str) -> Found {
    Ok(gain(&answer(runs, one)?, &answer(runs, other)?))
}

/// What the rival keeps, over its fair share of scenario 4.
fn left(runs: &[Kept]) -> Option<Interval> {
    over(runs, |run| tcp(run) / SHARE)
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
            claim.judge(found).into(),
            claim.decides.into(),
        ]);
    }
    let why = "the text at hand has neither its links nor a result";
    grid.row(["IV-G", "over the Internet", "", "", "not run", why]);
    Ok(grid)
}
