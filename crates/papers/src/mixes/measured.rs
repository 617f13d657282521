//! The runs of a mix, and what they say.

use std::fmt::Write;

use narrows_advice::losses::Seen;
use narrows_lab::Error;

use super::design::{COUNT, Mix};
use crate::figures::less;
use crate::{Ask, Form, Kept, Runs};

/// The controls among which hindsight chooses: what choose.md names for links without rivals.
pub const CONTROLS: [&str; 3] = ["gcubic+xcorr", "cubic", "bbr+xcorr"];
/// On one link gcubic is CUBIC.
const ON_ONE: [&str; 2] = ["cubic", "bbr+xcorr"];
/// What is judged over all links, in the order of [`Measured::all`].
pub const ALL_LINKS: [&str; 6] =
    [OURS, ADVISED, "cubic", "cubic, with advice", "bbr+xcorr", "bbr+xcorr, with advice"];
pub const OURS: &str = "gcubic+xcorr";
pub const ADVISED: &str = "gcubic+xcorr, with advice";
/// A mix in which ours is, with one seed, less than this above the best single link is run again, with so many other
/// seeds: the link was chosen by the first.
const NEAR: f64 = 1.05;
pub const AGAIN: u64 = 5;

/// A choice of links and control, and the goodput that it had.
#[derive(Clone, Copy)]
pub struct Choice {
    pub control: &'static str,
    /// The links, a bit each.
    pub set: u32,
    pub mbps: f64,
    /// Of each link of the mix, 0 of those not used.
    by_link: [f64; 4],
}

/// A mix and what was measured of it.
pub struct Measured {
    pub mix: Mix,
    /// Without advice: all sets of links under all controls.
    choices: Vec<Choice>,
    /// Over all links, in the order of [`ALL_LINKS`], Mbit/s.
    all: [f64; 6],
    /// Does the rule of `narrows_advice::losses` find a path held back by losses, under `cubic` over all links?
    pub held_back: bool,
    /// Was it run again?
    pub again: bool,
    /// Was ours, without and with advice, less than CUBIC on the best link, by the 95 % interval of pairs of seeds?
    pub below: [bool; 2],
}

impl Measured {
    /// What is best in hindsight.
    pub fn best(&self) -> Choice {
        self.most(|_| true)
    }

    fn most(&self, is: impl Fn(&Choice) -> bool) -> Choice {
        let of = self.choices.iter().filter(|choice| is(choice));
        *of.max_by(|one, other| one.mbps.total_cmp(&other.mbps)).expect("every kind has a choice")
    }

    /// Goodput of one of [`ALL_LINKS`] over that of the best in hindsight.
    pub fn ratio(&self, at: usize) -> f64 {
        self.all[at] / self.best().mbps
    }

    /// The same of ours.
    pub fn ours(&self) -> f64 {
        self.ratio(0)
    }

    /// And with advice.
    pub fn advised(&self) -> f64 {
        self.ratio(1)
    }

    /// And where the rule chooses the control, with advice.
    pub fn recommended(&self) -> f64 {
        self.ratio(if self.held_back { 5 } else { 1 })
    }

    /// Ours over all links, over ours over its best set of links.
    pub fn by_links(&self) -> f64 {
        self.all[0] / self.ours_best()
    }

    /// Ours over its best set of links, over the best of all controls.
    pub fn by_control(&self) -> f64 {
        self.ours_best() / self.best().mbps
    }

    fn ours_best(&self) -> f64 {
        self.most(|choice| {
            choice.control == OURS || is_one(choice.set) && choice.control == "cubic"
        })
        .mbps
    }

    /// Where ours lacks most beside the best in hindsight, and what each has there, Mbit/s.
    pub fn lacks(&self) -> String {
        let all = (1 << self.mix.links.len()) - 1;
        let ours = self.most(|choice| choice.control == OURS && choice.set == all).by_link;
        let best = self.best().by_link;
        let most =
            (0..ours.len()).max_by(|&a, &b| (best[a] - ours[a]).total_cmp(&(best[b] - ours[b])));
        let at = most.expect("a mix has links");
        let class = self.mix.links.get(at).map_or("-", |link| link.class.name);
        format!("{class}: {:.0} of {:.0}", ours[at], best[at])
    }

    /// The links of a set, in words.
    pub fn names(&self, set: u32) -> String {
        let used = self.mix.links.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
        let names: Vec<&str> = used.map(|(_, link)| link.class.name).collect();
        if names.len() == self.mix.links.len() { "all".into() } else { names.join(", ") }
    }
}

fn is_one(set: u32) -> bool {
    set.count_ones() == 1
}

/// The mixes of the form: of the quick one the first, of the least one that has two links.
fn mixes(form: Form) -> Vec<Mix> {
    let first = |count| (0..count).map(Mix::new).collect();
    match form {
        Form::Whole => first(COUNT),
        Form::Quick => first(64),
        Form::Least => {
            (0..COUNT).map(Mix::new).find(|mix| mix.links.len() == 2).into_iter().collect()
        }
    }
}

/// Payload of a packet, bits.
const PACKET_BITS: f64 = 8.0 * 1424.0;

fn held_back(mix: &Mix, run: &Kept) -> bool {
    let of = |path: &narrows_lab::PathSummary| {
        let link = mix.links.iter().find(|link| link.name == path.name);
        let lost = path.retransmits;
        let delivered = path.goodput_mbps * 1e6 * run.summary.duration_s / PACKET_BITS;
        Seen {
            sent: delivered as u64 + lost,
            lost,
            mean_rtt_us: 1000.0 * path.mean_srtt_ms,
            min_rtt_us: 1000.0 * link.map_or(0.0, |link| link.rtt_ms),
        }
    };
    run.connection("mptcp").paths.iter().any(|path| of(path).is_held_back())
}

fn goodput(run: &Kept) -> f64 {
    run.connection("mptcp").goodput_mbps
}

/// What a mix is asked for: each set of links, and all of them with advice.
fn asks(mix: &Mix, runs: &Runs) -> Vec<Ask> {
    let all = (1 << mix.links.len()) - 1;
    let of = |set: u32| {
        let controls: &[&str] = if is_one(set) { &ON_ONE } else { &CONTROLS };
        Ask::made(mix.scenario(set), controls.iter().copied()).brief(runs.form())
    };
    let advised = of(all).set(["flows.mptcp.advice=true"]);
    (1..=all).map(of).chain([advised]).collect()
}

/// All mixes of the form.
pub fn measured(runs: &Runs) -> Result<Vec<Measured>, Error> {
    mixes(runs.form()).into_iter().map(|mix| one(mix, runs)).collect()
}

fn one(mix: Mix, runs: &Runs) -> Result<Measured, Error> {
    let all: u32 = (1 << mix.links.len()) - 1;
    let found = runs.all(&asks(&mix, runs))?;
    let choice = |(set, control): (u32, &'static str)| {
        let connection = found[set as usize - 1][control][0].connection("mptcp");
        let mut by_link = [0.0; 4];
        for (link, found) in mix.links.iter().zip(&mut by_link) {
            let path = connection.paths.iter().find(|path| path.name == link.name);
            *found = path.map_or(0.0, |path| path.goodput_mbps);
        }
        Choice { control, set, mbps: connection.goodput_mbps, by_link }
    };
    let of_set = |set: u32| {
        let controls: &[&'static str] = if is_one(set) { &ON_ONE } else { &CONTROLS };
        controls.iter().map(move |control| (set, *control))
    };
    let choices: Vec<Choice> = (1..=all).flat_map(of_set).map(choice).collect();
    let over_all = |control: &str, advised: bool| {
        goodput(&found[all as usize - 1 + usize::from(advised)][control][0])
    };
    let mut one = Measured {
        choices,
        all: std::array::from_fn(|at| over_all(CONTROLS[at / 2], at % 2 == 1)),
        held_back: held_back(&mix, &found[all as usize - 1]["cubic"][0]),
        again: false,
        below: [false; 2],
        mix,
    };
    let single = one.most(|choice| is_one(choice.set) && choice.control == "cubic");
    one.again = one.all[0].min(one.all[1]) < NEAR * single.mbps && runs.form() != Form::Least;
    if one.again {
        let of = |set: u32, control: &str| {
            Ask::made(one.mix.scenario(set), [control]).from_to(2..=1 + AGAIN)
        };
        let asks = [
            of(single.set, "cubic"),
            of(all, OURS),
            of(all, OURS).set(["flows.mptcp.advice=true"]),
        ];
        let found = runs.all(&asks)?;
        let by_seed = |at: usize, control: &str| -> Vec<Option<f64>> {
            found[at][control].iter().map(|run| Some(goodput(run))).collect()
        };
        let alone = by_seed(0, "cubic");
        one.below = [1, 2].map(|at| {
            let lacks = less(&by_seed(at, OURS), &alone).and_then(|found| found.bounds());
            lacks.is_some_and(|(mean, half)| mean > half)
        });
    }
    Ok(one)
}

/// All that was measured, as CSV: a line for each mix, control and set of links.
pub fn data(found: &[Measured]) -> String {
    let mut text = "mix,links,control,advice,mbps\n".to_owned();
    for one in found {
        let mut line = |set: u32, control: &str, advice: bool, mbps: f64| {
            let used = one.mix.links.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
            let names: Vec<&str> = used.map(|(_, link)| link.name.as_str()).collect();
            let _ = writeln!(
                text,
                "{},{},{control},{advice},{}",
                one.mix.number,
                names.join(" "),
                narrows_stats::round(mbps)
            );
        };
        for choice in &one.choices {
            line(choice.set, choice.control, false, choice.mbps);
        }
        for (at, control) in CONTROLS.iter().enumerate() {
            line((1 << one.mix.links.len()) - 1, control, true, one.all[2 * at + 1]);
        }
    }
    text
}
