//! The runs of a mix, and what they say.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use narrows_advice::recommend::{Control, Kind, Look, Observer, Recommendation};
use narrows_advice::{Sample, window};
use narrows_lab::Error;

use super::design::{COUNT, Mix, QUICK, WARMUP_S};
use crate::figures::less;
use crate::goodput::mptcp;
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
    /// What is recommended after watching ours over all links, and what that has.
    pub recommendation: Recommendation<String>,
    recommended: Choice,
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

    /// And with the control and the links that are recommended.
    pub fn recommended(&self) -> f64 {
        self.recommended.mbps / self.best().mbps
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

/// The first mixes: as many as the form has, or as `--seeds` asks for, as each has one; of the least form one that has
/// two links.
fn mixes(runs: &Runs) -> Vec<Mix> {
    if runs.form() == Form::Least {
        return (0..COUNT).map(Mix::new).find(|mix| mix.links.len() == 2).into_iter().collect();
    }
    let count = runs.seeds(COUNT.into(), QUICK.into()).min(COUNT.into());
    (0..count as u32).map(Mix::new).collect()
}

/// Payload of a packet, bytes.
const PAYLOAD: u32 = 1424;

/// What `narrows kernel recommend` would say after it watched this run: a look each second of the analysed time, made
/// of the samples every 100 ms.
fn recommendation(mix: &Mix, run: &Kept) -> Recommendation<String> {
    let mut observer = Observer::default();
    let mut path: BTreeMap<&str, Look<usize, String>> = BTreeMap::new();
    for (number, link) in mix.links.iter().enumerate() {
        let sample = Sample {
            token: 0,
            subflow: number,
            acked: 0,
            received: 0,
            busy_us: 0,
            srtt_us: 0,
            window: 0,
            backup: false,
        };
        // The smallest round-trip time is that of the scenario.
        let min_rtt_us = (1000.0 * link.rtt_ms) as u32;
        let look = Look {
            sample,
            link: link.name.clone(),
            kind: Kind::Coupled,
            sent: 0,
            retransmitted: 0,
            min_rtt_us,
        };
        path.insert(&link.name, look);
    }
    let all = run.series.iter().filter(|sample| sample.connection == "mptcp");
    let times: Vec<_> = all.collect();
    for (number, tick) in times.chunk_by(|one, other| one.time_s == other.time_s).enumerate() {
        // Nobody else is there, and samples are in the order of the paths.
        for (at, retransmits) in tick.iter().zip(&run.retransmits[0]) {
            let look = path.get_mut(at.path.as_str()).expect("a sample is of a link");
            let sample = &mut look.sample;
            sample.acked += (at.goodput_mbps.unwrap_or(0.0) * 12_500.0) as u64;
            sample.busy_us += if at.inflight_packets.unwrap_or(0) > 0 { 100_000 } else { 0 };
            sample.srtt_us = (1000.0 * at.srtt_ms.unwrap_or(0.0)) as u32;
            sample.window = window(at.cwnd_packets.unwrap_or(0), PAYLOAD, false);
            look.retransmitted += retransmits[number];
            look.sent = sample.acked / u64::from(PAYLOAD) + look.retransmitted;
        }
        let time_s = tick[0].time_s;
        let tenths = (10.0 * time_s).round() as u64;
        if time_s >= WARMUP_S && tenths % 10 == 0 {
            let looks: Vec<_> = path.values().cloned().collect();
            observer.look(Duration::from_millis(100 * tenths), &looks);
        }
    }
    observer.recommend(&[])
}

/// What a mix is asked for: each set of links, all of them with advice, and ours over all as it is watched.
fn asks(mix: &Mix, runs: &Runs) -> Vec<Ask> {
    let all = (1 << mix.links.len()) - 1;
    let of = |set: u32| {
        let controls: &[&str] = if is_one(set) { &ON_ONE } else { &CONTROLS };
        Ask::made(mix.scenario(set), controls.iter().copied()).brief(runs.form())
    };
    let advised = of(all).set(["flows.mptcp.advice=true"]);
    let others = CONTROLS.into_iter().filter(|control| *control != OURS);
    let others = Ask::made(mix.scenario(all), others).brief(runs.form());
    let watched = Ask::made(mix.scenario(all), [OURS]).brief(runs.form()).series();
    (1..all).map(of).chain([others, advised, watched]).collect()
}

/// All mixes of the form.
pub fn measured(runs: &Runs) -> Result<Vec<Measured>, Error> {
    mixes(runs).into_iter().map(|mix| one(mix, runs)).collect()
}

fn one(mix: Mix, runs: &Runs) -> Result<Measured, Error> {
    let all: u32 = (1 << mix.links.len()) - 1;
    let mut found = runs.all(&asks(&mix, runs))?;
    let watched = found.pop().expect("the last one asked for");
    let over_all = all as usize - 1;
    found[over_all] = found[over_all].clone().and(watched);
    let recommendation = recommendation(&mix, &found[over_all][OURS][0]);
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
    let with_all =
        |control: &str, advised: bool| mptcp(&found[over_all + usize::from(advised)][control][0]);
    let left_out = |link: &str| recommendation.without.as_deref() == Some(link);
    let set = (0..mix.links.len()).filter(|at| !left_out(&mix.links[*at].name));
    let set: u32 = set.map(|at| 1 << at).sum();
    let control = match recommendation.control {
        Control::Model => "bbr+xcorr",
        _ if is_one(set) => "cubic",
        _ => OURS,
    };
    let recommended = choices.iter().find(|one| one.set == set && one.control == control);
    let mut one = Measured {
        recommended: *recommended.expect("every set of links has its choices"),
        recommendation,
        all: std::array::from_fn(|at| with_all(CONTROLS[at / 2], at % 2 == 1)),
        choices,
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
            found[at][control].iter().map(|run| Some(mptcp(run))).collect()
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
    let mut text = "mix,links,control,advice,recommended,mbps\n".to_owned();
    for one in found {
        let Choice { control: best, set: links, .. } = one.recommended;
        let mut line = |set: u32, control: &str, advice: bool, mbps: f64| {
            let used = one.mix.links.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
            let names: Vec<&str> = used.map(|(_, link)| link.name.as_str()).collect();
            let _ = writeln!(
                text,
                "{},{},{control},{advice},{},{}",
                one.mix.number,
                names.join(" "),
                !advice && set == links && control == best,
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
