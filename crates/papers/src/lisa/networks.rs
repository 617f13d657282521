//! The networks of the paper, what is set there, and what runs with LISA and without have.

use std::iter;
use std::sync::atomic::AtomicBool;

use narrows_lab::{Error, HostId, Job, join};
use narrows_net::SECOND;
use narrows_stats::mean;

use crate::figures::{Interval, averages, less, less_percent};
use crate::{Ask, Controls, Form, Kept, Runs};

/// The laws that LISA is added to; the paper names none.
pub const LAWS: [&str; 3] = ["lia", "olia", "gcubic"];

/// The hosts' kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Today's Linux.
    Today,
    /// The paper's.
    Paper,
}

impl Era {
    /// Both.
    pub const ALL: [Era; 2] = [Era::Today, Era::Paper];

    /// As heads have it.
    pub fn name(self) -> &'static str {
        match self {
            Era::Today => "today",
            Era::Paper => "3.14",
        }
    }

    /// What is set for it.
    pub fn settings(self) -> &'static [&'static str] {
        match self {
            Era::Today => &[],
            Era::Paper => &["era=linux-3.14"],
        }
    }
}

/// A column of most tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The kernel.
    pub era: Era,
    /// The law.
    pub law: &'static str,
}

impl Column {
    /// What stands above it.
    pub fn head(self) -> String {
        format!("{}, {}", self.law, self.era.name())
    }
}

/// Those of one kernel.
pub fn of_era(era: Era) -> Vec<Column> {
    LAWS.map(|law| Column { era, law }).to_vec()
}

/// All.
pub fn columns() -> Vec<Column> {
    Era::ALL.into_iter().flat_map(of_era).collect()
}

/// The control with LISA.
pub fn with_lisa(law: &str) -> String {
    format!("{law}+lisa")
}

/// Long enough that every subflow leaves slow start (Section V-A: "a long enough file"), kB.
pub const LONG_KB: u64 = 5000;

/// What a form has of the queues and sizes.
pub trait Points {
    /// Figures 6 and 8, packets; LISA does nothing below 8.
    fn queues(self) -> Vec<u64>;
    /// The paper's three queues, packets.
    fn three(self) -> Vec<u64>;
    /// Sizes of files, kB.
    fn sizes(self) -> Vec<u64>;
    /// With 200 and 20 ms: ten of the paper's 5 to 92 packets.
    fn rtt_queues(self) -> Vec<u64>;
    /// Figures 11 to 13: "ranging from 100 KB to 1000 KB".
    fn phone_sizes(self) -> Vec<u64>;
}

impl Points for Form {
    fn queues(self) -> Vec<u64> {
        self.pick((1..=34).collect(), vec![4, 8, 12, 17, 24, 30], vec![4, 17])
    }

    fn three(self) -> Vec<u64> {
        self.pick(vec![9, 17, 30], vec![9, 17, 30], vec![17])
    }

    fn sizes(self) -> Vec<u64> {
        let whole = (50..=250).step_by(50).chain((300..=900).step_by(100));
        self.pick(whole.collect(), vec![100, 200, 300, 500, 900], vec![100, 300, 900])
    }

    fn rtt_queues(self) -> Vec<u64> {
        let whole = vec![5, 10, 20, 30, 40, 50, 60, 70, 80, 92];
        self.pick(whole, vec![5, 30, 60, 92], vec![30])
    }

    fn phone_sizes(self) -> Vec<u64> {
        let whole = (100..=1000).step_by(100).collect();
        self.pick(whole, vec![100, 200, 500, 1000], vec![100, 200])
    }
}

/// The least queue at which LISA does something, as the paper says, packets.
pub const LEAST_QUEUE: u64 = 8;

/// Those at which LISA does something.
pub fn from_8(queues: Vec<u64>) -> Vec<u64> {
    queues.into_iter().filter(|&packets| packets >= LEAST_QUEUE).collect()
}

/// A figure of a run; none if it has none.
pub type Figure = fn(&Kept) -> Option<f64>;

/// Completion, s.
pub fn done(run: &Kept) -> Option<f64> {
    run.test().acknowledged_s
}

/// Segments retransmitted.
pub fn retransmits(run: &Kept) -> Option<f64> {
    Some(run.test().retransmits as f64)
}

/// Segments retransmitted in slow start.
pub fn slow_start_retransmits(run: &Kept) -> Option<f64> {
    run.test().slow_start_retransmits.map(|segments| segments as f64)
}

/// The sum of windows at the end of slow start, packets.
pub fn slow_start_cwnd(run: &Kept) -> Option<f64> {
    run.test().slow_start_cwnd_packets
}

/// A figure with LISA and without, by seed or draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// With LISA.
    pub with: Vec<Option<f64>>,
    /// Without.
    pub without: Vec<Option<f64>>,
}

impl Pair {
    /// The mean of several by seed; none where one of them has none.
    pub fn averaged(pairs: &[Pair]) -> Pair {
        let of = |side: fn(&Pair) -> &Vec<Option<f64>>| {
            averages(&pairs.iter().map(|pair| side(pair).clone()).collect::<Vec<_>>())
        };
        Pair { with: of(|pair| &pair.with), without: of(|pair| &pair.without) }
    }

    /// How much less there is with LISA.
    pub fn less(&self) -> Option<Interval> {
        less(&self.with, &self.without)
    }

    /// The same in percent.
    pub fn less_percent(&self) -> Option<Interval> {
        less_percent(&self.with, &self.without)
    }

    /// How many ms later it is with LISA, of s.
    pub fn later_ms(&self) -> Option<Interval> {
        self.less().map(|found| found.times(-1000.0))
    }

    /// By seed, how much less there is.
    pub fn differences(&self) -> Vec<Option<f64>> {
        let of = |(with, without): (&Option<f64>, &Option<f64>)| Some((*without)? - (*with)?);
        self.with.iter().zip(&self.without).map(of).collect()
    }

    /// The same in percent of the mean without.
    pub fn percents(&self) -> Vec<Option<f64>> {
        let of = mean(&self.without.iter().copied().flatten().collect::<Vec<_>>());
        self.differences().iter().map(|one| one.map(|less| 100.0 * less / of)).collect()
    }
}

/// A network and what is set there.
#[derive(Clone, Debug)]
pub struct Network {
    scenario: &'static str,
    settings: Vec<String>,
}

impl Network {
    /// As it is shipped: `lisa/shared`.
    pub fn of(scenario: &'static str) -> Network {
        Network { scenario, settings: Vec::new() }
    }

    /// The queue of its bottlenecks, packets.
    pub fn queue(self, packets: u64) -> Network {
        let apart = self.scenario.contains("apart");
        let fields: &[&str] = match (self.scenario.ends_with("-rtt"), apart) {
            (true, true) => &["links.bottleneck1", "links.bottleneck2"],
            (true, false) => &["links.bottleneck1"],
            (false, true) => &["generator.disjoint"],
            (false, false) => &["generator.dumbbell"],
        };
        self.set(fields.iter().map(|field| format!("{field}.queue={packets} packets")))
    }

    /// The size of the file, kB.
    pub fn file(self, kilobytes: u64) -> Network {
        self.set([format!("flows.mptcp.source.file.size={kilobytes} kB")])
    }

    /// Other fields.
    pub fn set<S: Into<String>>(mut self, settings: impl IntoIterator<Item = S>) -> Network {
        self.settings.extend(settings.into_iter().map(Into::into));
        self
    }

    /// The runs of some controls: "10 times for each queue size", and of the real network "15 samples for each
    /// experiment".
    pub fn runs<C: Into<String>>(
        self,
        runs: &Runs,
        era: Era,
        controls: impl IntoIterator<Item = C>,
    ) -> Result<Controls, Error> {
        let whole = if self.scenario.starts_with("lisa/phone") { 15 } else { 10 };
        let ask = Ask::of(self.scenario, controls).set(self.settings);
        runs.get(&ask.set(era.settings().iter().copied()).seeds(runs.seeds(whole, 3)))
    }

    /// The runs of all laws with LISA and without.
    pub fn all(self, runs: &Runs, era: Era) -> Result<Controls, Error> {
        let controls = LAWS.iter().flat_map(|law| [law.to_string(), with_lisa(law)]);
        self.runs(runs, era, controls)
    }

    /// How the second subflow joins, by seed: how long after the data of the first began, in base RTTs of some length in
    /// s, and the window of the first then. In the simulator alone.
    pub fn joins(
        self,
        runs: &Runs,
        Column { era, law }: Column,
        rtt_s: f64,
    ) -> Result<Vec<(f64, f64)>, Error> {
        if runs.host() != HostId::SIM {
            return Ok(Vec::new());
        }
        let ask = Ask::of(self.scenario, [law]).set(self.settings);
        let scenario = ask.set(era.settings().iter().copied()).scenario()?;
        let flow = &scenario.flows[scenario.test.expect("a connection under test")];
        let begins_s = flow.active[0].0 as f64 / SECOND as f64;
        let control = law.parse().map_err(|message: String| Error::input(law, message))?;
        let stop = AtomicBool::new(false);
        let by_seed = (1..=runs.seeds(10, 3)).map(|seed| {
            let job = Job { control: Some(control), seed, ..Job::new(&scenario, &stop) };
            let found = join(&job)?;
            // The first one's handshake takes a round trip before its data.
            let after = |time_s: f64| (time_s - begins_s) / rtt_s - 1.0;
            Ok(found.map(|found| (after(found.time_s), f64::from(found.donor))))
        });
        Ok(by_seed.collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect())
    }

    /// A figure with LISA and without.
    pub fn pair(self, runs: &Runs, Column { era, law }: Column, of: Figure) -> Result<Pair, Error> {
        let lisa = with_lisa(law);
        let found = self.runs(runs, era, [law, &lisa])?;
        let values = |control: &str| found[control].iter().map(of).collect();
        Ok(Pair { with: values(&lisa), without: values(law) })
    }

    /// The same with the mean over queues for each seed.
    pub fn over(
        self,
        queues: &[u64],
        runs: &Runs,
        column: Column,
        of: Figure,
    ) -> Result<Pair, Error> {
        let at = |&packets: &u64| self.clone().queue(packets).pair(runs, column, of);
        Ok(Pair::averaged(&queues.iter().map(at).collect::<Result<Vec<_>, _>>()?))
    }
}

/// One CUBIC over the first path of `lisa/two`, in place of the two subflows.
pub fn alone(runs: &Runs, era: Era, packets: u64) -> Result<Controls, Error> {
    let one = [
        "flows.mptcp.kind=tcp",
        r#"flows.mptcp.routes=["path1"]"#,
        r#"phases=[{start="0 s", groups=[["path1"]]}]"#,
    ];
    Network::of("lisa/two").queue(packets).set(one).runs(runs, era, iter::once("cubic"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_averaged_within_a_seed() {
        let pair = |with: [f64; 2], without: [f64; 2]| Pair {
            with: with.map(Some).to_vec(),
            without: without.map(Some).to_vec(),
        };
        let mean = Pair::averaged(&[pair([1.0, 2.0], [2.0, 2.0]), pair([5.0, 9.0], [4.0, 8.0])]);
        assert_eq!(mean, pair([3.0, 5.5], [3.0, 5.0]));
        assert_eq!(mean.differences(), [Some(0.0), Some(-0.5)]);
        assert_eq!(mean.percents(), [Some(0.0), Some(-12.5)]);
    }

    #[test]
    fn later_is_the_other_way_round() {
        let pair = Pair { with: vec![Some(1.0), Some(1.5)], without: vec![Some(1.5), Some(2.0)] };
        let found = pair.later_ms().unwrap();
        assert_eq!((found.mean, found.half), (-500.0, Some(0.0)));
        let one = Pair { with: vec![Some(1.0), None], without: vec![Some(1.5), Some(2.0)] };
        assert_eq!(one.later_ms(), None, "one pair has no interval");
    }

    #[test]
    fn the_queues_set_are_those_of_the_bottlenecks() {
        let of = |scenario| Network::of(scenario).queue(9).settings;
        assert_eq!(of("lisa/two"), ["generator.dumbbell.queue=9 packets"]);
        assert_eq!(of("lisa/apart"), ["generator.disjoint.queue=9 packets"]);
        assert_eq!(of("lisa/shared-rtt"), ["links.bottleneck1.queue=9 packets"]);
        let both = ["links.bottleneck1.queue=9 packets", "links.bottleneck2.queue=9 packets"];
        assert_eq!(of("lisa/apart-rtt"), both);
    }
}
