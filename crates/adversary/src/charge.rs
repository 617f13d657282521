//! What a control can be charged with in a network, and what is right.

use narrows_lab::{EventKind, Link, Scenario, TestSummary};
use narrows_traffic::Scheduler;
use serde::{Deserialize, Serialize};

/// A charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Charge {
    /// It delivers nothing for too long while a path is there.
    Silence,
    /// It delivers less than the best of its paths alone.
    Goodput,
    /// At a bottleneck that all its paths share it takes more than one flow.
    More,
    /// There it takes less.
    Less,
    /// It sends more of its data again than the uncoupled law.
    Retransmits,
    /// The run panics, or a user's law ends it.
    Failure,
}

/// All of them.
pub const CHARGES: [Charge; 6] = [
    Charge::Silence,
    Charge::Goodput,
    Charge::More,
    Charge::Less,
    Charge::Retransmits,
    Charge::Failure,
];

/// What was measured for a charge in one run, or in the runs that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Of the control.
    pub value: f64,
    /// Of the uncoupled law.
    pub uncoupled: f64,
    /// The value that is just right.
    pub limit: f64,
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blame {
    /// The control's.
    Law,
    /// The uncoupled law shares it under the same scheduler and buffers: the host's.
    Host,
}

/// What two runs of one law on one path differ by at most in the mean is no fault: goodputs count
/// from so much below the best path's.
const TOLERANCE: f64 = 0.05;
/// Shares of one rival that are right.
const SHARES: [f64; 2] = [0.8, 1.25];
/// Times as much sent again as the uncoupled law that is right.
const RETRANSMITS: f64 = 3.0;
/// Shares of what is sent again count from 0.1 % on, so that a few segments are not many times none.
const NONE_AGAIN: f64 = 0.001;
/// And from so many segments on.
const FEW_AGAIN: f64 = 30.0;
/// A share needs this time before the analysis and in it, seconds: RFC 8382 detects in tens of RTTs,
/// and no detector at once.
const SETTLED_S: f64 = 10.0;
/// And so many of the longest RTTs, in which windows of tens of packets reach equilibrium.
const SETTLED_RTTS: f64 = 50.0;
/// Least time that silence may last, seconds.
const SILENCE_S: f64 = 1.0;
/// Beyond the RTT, with queues that are full at the least rate, a timeout (RFC 6298) has at least this,
/// seconds: TCP_RTO_MIN of Linux.
const RTO_MIN_S: f64 = 0.2;
/// What the control has that many times as much of as the uncoupled law is not shared by it.
const NOT_SHARED: f64 = 2.0;

impl Charge {
    /// As results name it.
    pub fn name(self) -> &'static str {
        match self {
            Charge::Silence => "silence",
            Charge::Goodput => "goodput",
            Charge::More => "more",
            Charge::Less => "less",
            Charge::Retransmits => "retransmits",
            Charge::Failure => "failure",
        }
    }

    /// What its value is.
    pub fn about(self) -> &'static str {
        match self {
            Charge::Silence => "s without delivery while a path is there",
            Charge::Goodput => "of the best path's goodput",
            Charge::More | Charge::Less => "of one flow's share of the bottleneck",
            Charge::Retransmits => "times the share of the uncoupled law sent again",
            Charge::Failure => "of the run",
        }
    }

    /// Is a greater value worse?
    pub fn greater_is_worse(self) -> bool {
        !matches!(self, Charge::Goodput | Charge::Less)
    }

    /// How bad a value is: above 1 it is wrong.
    fn bad(self, value: f64, limit: f64) -> f64 {
        /// A connection that does not deliver at all is no worse than one that does next to nothing.
        const MOST: f64 = 1e3;
        let bad = if self.greater_is_worse() { value / limit } else { limit / value };
        if bad.is_finite() { bad.min(MOST) } else { MOST }
    }

    /// How bad the control is: above 1 it is wrong.
    pub fn of(self, measure: &Measure) -> f64 {
        self.bad(measure.value, measure.limit)
    }

    /// How much worse it is than what is right, or than the uncoupled law where that is wrong, too.
    pub fn score(self, measure: &Measure) -> f64 {
        self.of(measure) / self.bad(measure.uncoupled, measure.limit).max(1.0)
    }

    /// Whose fault it is, if it is one.
    pub fn blame(self, measure: &Measure) -> Option<Blame> {
        let (bad, uncoupled) = (self.of(measure), self.bad(measure.uncoupled, measure.limit));
        // What uncoupled control takes at a shared bottleneck is what coupling is for.
        let shared = self != Charge::More && uncoupled > 1.0 && bad <= NOT_SHARED * uncoupled;
        (bad > 1.0).then_some(if shared { Blame::Host } else { Blame::Law })
    }
}

/// The runs that charges are made of, all in the same network with the same seed.
pub struct Runs<'a> {
    /// The network.
    pub scenario: &'a Scenario,
    /// Under the control.
    pub control: &'a Seen,
    /// Under its law uncoupled.
    pub uncoupled: &'a Seen,
    /// The uncoupled law on each path alone.
    pub alone: &'a [Seen],
}

/// What a run showed of the connection under test.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its summary.
    pub test: TestSummary,
    /// Payload acknowledged on all its paths, Mbit/s: more than its goodput if paths carry the same.
    pub acknowledged_mbps: f64,
    /// Goodput of the rivals at its bottlenecks, Mbit/s.
    pub rivals_mbps: f64,
    /// Analysed time, s.
    pub seconds: f64,
}

impl Seen {
    /// The share of what was sent that was sent again.
    fn again(&self) -> f64 {
        /// Payload of a segment of full size with MPTCP's options, bits, about.
        const SEGMENT: f64 = 8.0 * 1420.0;
        let again = self.test.retransmits as f64;
        let once = self.acknowledged_mbps * 1e6 * self.seconds / SEGMENT;
        again / (again + once).max(1.0)
    }

    /// What it takes of its bottlenecks over what its rivals take.
    fn ratio(&self) -> Option<f64> {
        (self.rivals_mbps > 0.0).then(|| self.acknowledged_mbps / self.rivals_mbps)
    }
}

impl Measure {
    /// Of runs of which some failed: those under the control, or others, too.
    pub fn failure(others: bool) -> Measure {
        Measure { value: 1.0, uncoupled: f64::from(u8::from(others)), limit: 0.5 }
    }
}

impl Runs<'_> {
    /// What was measured for a charge; none where it is no question.
    pub fn measure(&self, charge: Charge) -> Option<Measure> {
        let Runs { control, uncoupled, .. } = self;
        match charge {
            Charge::Silence => Some(Measure {
                value: control.test.silence_s?,
                uncoupled: uncoupled.test.silence_s?,
                limit: SILENCE_S.max(2.0 * (longest_rtts_s(self.scenario) + RTO_MIN_S)),
            }),
            Charge::Goodput => {
                let copies = copies(self.scenario);
                // What waits for a slow path at either end of the time may be seconds of goodput, and
                // is not lost: at most a receive buffer.
                let buffer =
                    self.scenario.test.map_or(0, |test| self.scenario.flows[test].recv_buffer);
                let goodput = |seen: &Seen| {
                    let waits = buffer as f64 * 8e-6 / seen.seconds;
                    let at_most = seen.test.goodput_mbps + waits;
                    seen.test.goodput_mbps.max((seen.acknowledged_mbps / copies).min(at_most))
                };
                let best = self.alone.iter().map(|one| one.test.goodput_mbps).fold(0.0, f64::max);
                (best > 0.0).then(|| Measure {
                    value: goodput(control) / best,
                    uncoupled: goodput(uncoupled) / best,
                    limit: (1.0 - TOLERANCE) / copies,
                })
            }
            Charge::More => self.share(SHARES[1], f64::max),
            Charge::Less => self.share(SHARES[0], f64::min),
            Charge::Retransmits => {
                let own = control.test.retransmits as f64;
                let share = |seen: &Seen| NONE_AGAIN + seen.again();
                (own >= FEW_AGAIN).then(|| Measure {
                    value: share(control) / share(uncoupled),
                    uncoupled: 1.0,
                    limit: RETRANSMITS,
                })
            }
            Charge::Failure => None,
        }
    }

    /// The share of the bottleneck in units of what one flow gets in the connection's place, which
    /// settles where RTTs, buffers or what else happens give two flows of one law different shares:
    /// on which of its paths, `either` says. What it gets on one is not too much, nor too little.
    fn share(&self, limit: f64, either: fn(f64, f64) -> f64) -> Option<Measure> {
        let Scenario { warmup, duration, .. } = *self.scenario;
        let settled = SETTLED_S.max(SETTLED_RTTS * longest_rtts_s(self.scenario));
        let settled = seconds(warmup.min(duration - down(self.scenario))) >= settled;
        // Where one flow and the rival are not even nearly alike, chance decides.
        let alike =
            self.alone.iter().filter_map(Seen::ratio).filter(|one| (0.5..=2.0).contains(one));
        let one = alike.reduce(either).filter(|_| settled)?;
        let of = |seen: &Seen| Some(seen.ratio()? / one);
        let limit = if limit > 1.0 { limit.max(least_ratio(self.scenario)? / one) } else { limit };
        Some(Measure { value: of(self.control)?, uncoupled: of(self.uncoupled)?, limit })
    }
}

/// For how much of the analysed time the rival's link is down.
fn down(scenario: &Scenario) -> u64 {
    let Some(rival) = scenario.rivals.first() else { return 0 };
    let (mut since, mut down) = (None, 0);
    let end = scenario.warmup + scenario.duration;
    let events = scenario.events.iter().filter_map(|event| match event.what {
        EventKind::LinkUp(link, up) if link == rival.link => Some((event.at, up)),
        _ => None,
    });
    for (at, up) in events.chain([(end, true)]) {
        match since {
            Some(from) if up => {
                down += at.max(scenario.warmup) - scenario.warmup.max(from);
                since = None;
            }
            None if !up => since = Some(at),
            _ => {}
        }
    }
    down
}

/// How often each byte crosses one link: the redundant scheduler sends all on every path, and of one
/// share that several paths have together it cannot deliver more than each has.
fn copies(scenario: &Scenario) -> f64 {
    let Some(test) = scenario.test.map(|test| &scenario.flows[test]) else { return 1.0 };
    let crossing = |link| test.paths.iter().filter(|path| path.links.contains(&link)).count();
    match test.scheduler {
        Scheduler::Redundant => (0..scenario.links.len()).map(crossing).max().unwrap_or(1) as f64,
        _ => 1.0,
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// The rates that a link has from `from` on, bit/s: the one then and those to come.
fn rates(scenario: &Scenario, index: usize, from: u64) -> impl Iterator<Item = f64> {
    let step = move |event: &narrows_lab::Event| match &event.what {
        EventKind::LinkRate(of, narrows_net::Rate::Constant(to)) if *of == index => {
            Some((event.at, *to as f64))
        }
        _ => None,
    };
    let steps: Vec<(u64, f64)> = scenario.events.iter().filter_map(step).collect();
    let first = steps.iter().rev().find(|(at, _)| *at <= from).map(|(_, to)| *to);
    let first = first.unwrap_or(scenario.links[index].mean_rate() as f64);
    std::iter::once(first)
        .chain(steps.into_iter().filter(move |(at, _)| *at > from).map(|(_, to)| to))
}

/// The longest time that a packet may take on a link besides the path's base RTT, s: a full queue at the
/// least rate, and what is late.
fn late_s(scenario: &Scenario, index: usize) -> f64 {
    let link: &Link = &scenario.links[index];
    let slowest = rates(scenario, index, 0).fold(f64::MAX, f64::min);
    let delays = scenario.events.iter().filter_map(|event| match &event.what {
        EventKind::LinkDelay(of, to) if *of == index => Some(*to),
        _ => None,
    });
    let delay = delays.max().unwrap_or(0);
    let holds = scenario.events.iter().filter_map(|event| match &event.what {
        EventKind::LinkHold(of, time) if *of == index => Some(*time),
        _ => None,
    });
    let held = holds.max().unwrap_or(0);
    let late = link.config.reorder.as_ref().map_or(0, |reorder| reorder.delay);
    seconds(link.full_queue()) * link.mean_rate() as f64 / slowest
        + seconds(delay + link.config.jitter + late + held)
}

/// The longest RTT of a path, s.
fn longest_rtt_s(scenario: &Scenario, path: &narrows_lab::FlowPath) -> f64 {
    let links = path.links.iter().chain(&path.back);
    seconds(path.rtt + path.access_jitter) + links.map(|&link| late_s(scenario, link)).sum::<f64>()
}

/// What the paths take of the rival's link over what they leave, with the least windows that a reduction
/// leaves (RFC 5681, equation 4), at the longest RTTs and the greatest rate: a law that keeps to
/// them cannot take less. None: they leave nothing.
fn least_ratio(scenario: &Scenario) -> Option<f64> {
    /// Packets.
    const LEAST_WINDOW: f64 = 2.0;
    let test = &scenario.flows[scenario.test?];
    let index = scenario.rivals.first()?.link;
    let link: &Link = &scenario.links[index];
    let rate = rates(scenario, index, scenario.warmup).fold(0.0, f64::max);
    // The bucket is full at first.
    let policed = |of: &narrows_net::Policer| {
        of.rate as f64 + 8.0 * of.burst as f64 / seconds(scenario.end())
    };
    let rate = link.config.policer.as_ref().map_or(rate, |of| rate.min(policed(of)));
    let crossing = test.paths.iter().filter(|path| path.links.contains(&index));
    let bits = 8.0 * LEAST_WINDOW * f64::from(link.config.mtu);
    let least: f64 = crossing.map(|path| bits / longest_rtt_s(scenario, path)).sum();
    (least < rate).then(|| least / (rate - least))
}

/// The longest of all its paths, s.
fn longest_rtts_s(scenario: &Scenario) -> f64 {
    let paths = scenario.test.map_or(&[][..], |test| &scenario.flows[test].paths);
    paths.iter().map(|path| longest_rtt_s(scenario, path)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(value: f64, uncoupled: f64, limit: f64) -> Measure {
        Measure { value, uncoupled, limit }
    }

    #[test]
    fn what_the_uncoupled_law_shares_is_the_hosts() {
        let silence = |value, uncoupled| Charge::Silence.blame(&measure(value, uncoupled, 1.0));
        assert_eq!(silence(0.9, 0.9), None);
        assert_eq!(silence(1.5, 0.9), Some(Blame::Law));
        assert_eq!(silence(1.5, 1.1), Some(Blame::Host));
        // Ten times as long is not the same silence.
        assert_eq!(silence(11.0, 1.1), Some(Blame::Law));
        let goodput = |value, uncoupled| Charge::Goodput.blame(&measure(value, uncoupled, 0.95));
        assert_eq!(goodput(0.96, 0.5), None);
        assert_eq!(goodput(0.7, 1.8), Some(Blame::Law));
        assert_eq!(goodput(0.7, 0.7), Some(Blame::Host));
        assert_eq!(goodput(0.0, 1.0), Some(Blame::Law));
        // Two shares are what uncoupled control takes.
        assert_eq!(Charge::More.blame(&measure(1.5, 2.0, 1.25)), Some(Blame::Law));
    }

    /// Two paths and a rival over link `a`.
    fn scenario(rate: &str, rtt: &str, more: &str) -> Scenario {
        let text = format!(
            "name = \"n\"\ntitle = \"\"\nsource = \"\"\nwarmup = \"20 s\"\nduration = \"40 s\"\n\
             test = \"c\"\n\
             links.a = {{ rate = \"{rate}\", queue = \"7 packets\" }}\n\
             routes.a = {{ links = [\"a\"], rtt = \"{rtt}\" }}\n\
             routes.b = {{ links = [\"a\"], rtt = \"{rtt}\" }}\n\
             flows.c = {{ kind = \"mptcp\", routes = [\"a\", \"b\"], cc = \"lia\" }}\n\
             flows.d = {{ kind = \"tcp\", routes = [\"a\"], cc = \"reno\" }}\n\
             rivals.a = \"d\"\n{more}"
        );
        let edits = narrows_lab::Edits::default();
        narrows_lab::parse(&text, &edits).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_link_that_is_down_shows_no_share() {
        let down = |events: &[(&str, bool)]| {
            let event = |(at, up): &(&str, bool)| {
                format!("[[events]]\nat = \"{at}\"\nlink = \"a\"\nup = {up}\n")
            };
            let events: String = events.iter().map(event).collect();
            seconds(down(&scenario("7.5 Mbit/s", "1 ms", &events)))
        };
        assert_eq!(down(&[]), 0.0);
        assert_eq!(down(&[("5 s", false), ("9 s", true)]), 0.0, "before the analysis");
        assert_eq!(down(&[("15 s", false), ("26 s", true)]), 6.0);
        assert_eq!(down(&[("30 s", false), ("31 s", true), ("50 s", false)]), 11.0);
    }

    #[test]
    fn the_least_windows_may_be_more_than_a_share() {
        let ratio = |rate, rtt, more| least_ratio(&scenario(rate, rtt, more));
        let near = |found: Option<f64>, right: f64| {
            assert!((found.unwrap() - right).abs() < 0.01, "{found:?}");
        };
        // Four packets of 12 kbit in 1 ms, 7 packet times of 1.6 ms and 3 of jitter, of 7.5 Mbit/s.
        near(ratio("7.5 Mbit/s", "1 ms", ""), 48.0 / 17.0 / (7.5 - 48.0 / 17.0));
        near(ratio("7.5 Mbit/s", "11 ms", ""), 48.0 / 27.0 / (7.5 - 48.0 / 27.0));
        // A step that was undone before the analysis makes the RTT no shorter, nor the link slower.
        let step = |at: &str, rate: &str| {
            format!("[[events]]\nat = \"{at}\"\nlink = \"a\"\nrate = \"{rate}\"\n")
        };
        let undone = step("1 s", "1 Mbit/s") + &step("2 s", "7.5 Mbit/s");
        near(ratio("7.5 Mbit/s", "1 ms", &undone), 48.0 / 89.8 / (7.5 - 48.0 / 89.8));
        let later = step("30 s", "1 Mbit/s");
        near(ratio("7.5 Mbit/s", "1 ms", &later), 48.0 / 89.8 / (7.5 - 48.0 / 89.8));
    }
}
