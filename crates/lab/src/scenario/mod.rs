//! Scenarios: what runs over which network, and what is right there.
//!
//! [`file`](self) types mirror the TOML; [`Scenario`] is what they resolve to: links, flows with
//! their paths, all in the simulator's units, checked.

mod background;
mod detection;
mod document;
mod either;
mod era;
mod events;
mod file;
mod flow;
mod generate;
mod link;
mod load;
mod origin;
mod reference;
mod resolve;
mod shipped;
mod source;
mod sweep;
mod system;
mod tcp;
mod trace;
mod whole;

use std::borrow::Cow;
use std::collections::BTreeMap;

use narrows_laws::catalogue::Unknown;
use narrows_laws::{Control, Detector, Law, Params};
use narrows_net::{Distribution, LinkConfig, Nanos, Rate};
use narrows_sim::PassiveDetector;
use narrows_traffic::{PathManager, Scheduler, Signal, Source, TcpConfig};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::algorithm::Algorithm;
use crate::units::{show_rate, show_time};
use crate::user_law;

pub use file::Bound;
pub use load::{Edits, Made, load, parse, source_text};
pub use reference::{Field, Table, reference};
pub use shipped::shipped;
pub use sweep::Sweep;

/// A scenario, ready to run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Short name, as results show it.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Where the numbers come from.
    pub source: String,
    /// Time from the start that no metric counts.
    pub warmup: Nanos,
    /// Time after the warm-up that is analysed.
    pub duration: Nanos,
    /// The links that flows share.
    pub links: Vec<Link>,
    /// All flows; those of the background last.
    pub flows: Vec<Flow>,
    /// Index of the connection under test: the one whose law `--cc` replaces.
    pub test: Option<usize>,
    /// The designated rival at each true bottleneck.
    pub rivals: Vec<Rival>,
    /// The right groups in each phase, ordered by start.
    pub phases: Vec<Phase>,
    /// Parameters of delay-based detectors.
    pub params: Params,
    /// Passive detectors of the connection under test, without effect on it.
    pub passive: Vec<PassiveDetector>,
    /// What changes during the run, in the order of time.
    pub events: Vec<Event>,
    /// Published values.
    pub paper: Vec<Published>,
    /// As it is written, without its bases and with the changes of the command line.
    file: file::File,
    /// What the command line set, by field.
    pub settings: BTreeMap<String, String>,
}

/// A link that flows share.
#[derive(Clone, Debug)]
pub struct Link {
    /// As the network takes it.
    pub config: LinkConfig,
}

impl Link {
    /// Mean rate in bit/s.
    pub fn mean_rate(&self) -> u64 {
        match &self.config.rate {
            Rate::Constant(rate) => *rate,
            Rate::Trace(trace) => trace.mean_rate(),
            // A shared link always has a rate; resolve.rs asks for it.
            Rate::Infinite => u64::MAX,
        }
    }
}

/// What carries a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowKind {
    /// TCP over one path.
    Tcp,
    /// Multipath TCP.
    Mptcp,
    /// UDP: one way, but for feedback to media whose rate adapts.
    Udp,
}

impl FlowKind {
    /// As results show it.
    pub fn name(self) -> &'static str {
        match self {
            FlowKind::Tcp => "tcp",
            FlowKind::Mptcp => "mptcp",
            FlowKind::Udp => "udp",
        }
    }
}

/// A connection or flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Name, unique in the scenario.
    pub name: String,
    /// Made by the background's rule rather than listed.
    pub background: bool,
    /// What carries it.
    pub kind: FlowKind,
    /// Its paths; one unless [`FlowKind::Mptcp`].
    pub paths: Vec<FlowPath>,
    /// What its application sends.
    pub source: Source,
    /// When its application sends: `[start, stop)`.
    pub active: Vec<(Nanos, Nanos)>,
    /// Congestion control; `None` for UDP.
    pub control: Option<Algorithm>,
    /// Scheduler over the paths.
    pub scheduler: Scheduler,
    /// A path that does not pay becomes a backup.
    pub advice: bool,
    /// Which subflows it opens. With ndiffports all paths but the first are copies of it.
    pub path_manager: PathManager,
    /// What its end points do.
    pub tcp: TcpConfig,
    /// Send buffer, bytes.
    pub send_buffer: u64,
    /// Receive buffer, bytes.
    pub recv_buffer: u64,
}

impl Flow {
    /// Is its sender told which packets arrive? UDP's is not, but of media whose rate adapts.
    pub fn has_feedback(&self) -> bool {
        self.kind != FlowKind::Udp || matches!(self.source, Source::Media { .. })
    }
}

/// A path of a flow: its own access link, shared links, and a way back.
#[derive(Clone, Debug)]
pub struct FlowPath {
    /// Name of the route.
    pub name: String,
    /// Shared links from the sender to the receiver, as indices into [`Scenario::links`].
    pub links: Vec<usize>,
    /// Shared links of the acknowledgements' way.
    pub back: Vec<usize>,
    /// Base RTT: propagation only.
    pub rtt: Nanos,
    /// Delay of the sender's access link, which has no other limit.
    pub access_delay: Nanos,
    /// Jitter of the sender's access link.
    pub access_jitter: Nanos,
    /// Delay of the way back, besides that of its shared links.
    pub return_delay: Nanos,
    /// Carries data only while no regular path can.
    pub backup: bool,
    /// A middlebox on the way removes the options of MPTCP.
    pub strips_mptcp: bool,
}

/// What happens at a time of the run.
#[derive(Clone, Debug)]
pub struct Event {
    /// The time.
    pub at: Nanos,
    /// What happens.
    pub what: EventKind,
}

/// What can happen during a run. Links, flows and paths are named by their indices.
#[derive(Clone, Debug)]
pub enum EventKind {
    /// A link goes up or down; what it holds when it goes down is lost.
    LinkUp(usize, bool),
    /// A link holds its packets for this time: it sends none, and what is in transmission ends.
    LinkHold(usize, Nanos),
    /// A link has this rate from now on.
    LinkRate(usize, Rate),
    /// A link has this delay from now on.
    LinkDelay(usize, Nanos),
    /// A flow loses the address of a path: the subflow is closed at both ends.
    PathLost(usize, usize),
    /// The address of a path is there again, and a subflow joins.
    PathAdded(usize, usize),
}

/// The designated rival at a true bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rival {
    /// Index of the link.
    pub link: usize,
    /// Index of the rival's flow.
    pub flow: usize,
}

/// From `start` on, the paths of the connection under test meet in these groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Start of the phase.
    pub start: Nanos,
    /// Groups of indices into the connection's paths.
    pub groups: Vec<Vec<usize>>,
}

/// Published values, shown beside ours.
#[derive(Clone, Debug)]
pub struct Published {
    /// The controls it holds for.
    pub controls: Vec<Algorithm>,
    /// Of `ratio_to_tcp`.
    pub ratio_to_tcp: Option<f64>,
    /// Of `accuracy`, the share of the detector's decisions that were right.
    pub accuracy: Option<f64>,
    /// How it is meant.
    pub bound: Bound,
    /// Table, figure or sentence it stands in.
    pub place: String,
}

impl Scenario {
    /// When the run ends.
    pub fn end(&self) -> Nanos {
        self.warmup + self.duration
    }

    /// The scenario as a run with this seed meets it: the flows of its background take what they draw
    /// from their ranges, and the middle no more.
    pub fn drawn(&self, seed: u64) -> Cow<'_, Scenario> {
        let made = background::flows(&self.file, &self.links, self.end(), Some(seed));
        let made = made.expect("flows between those of both ends of their ranges");
        if made.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut scenario = self.clone();
        let own = scenario.flows.iter_mut().filter(|flow| flow.background);
        for (flow, made) in own.zip(made) {
            *flow = Flow { tcp: flow.tcp, active: std::mem::take(&mut flow.active), ..made };
        }
        Cow::Owned(scenario)
    }

    /// The congestion control of the flow of this index; `replaced` is that of the connection under
    /// test, if it is another than the scenario's.
    pub fn algorithm(&self, flow: usize, replaced: Option<Algorithm>) -> Option<Algorithm> {
        match replaced {
            Some(_) if self.test == Some(flow) => replaced,
            _ => self.flows[flow].control,
        }
    }

    /// The congestion controls of all flows that have one, each with the option or field that asks for
    /// it.
    pub(crate) fn asked_for(&self, replaced: Option<Algorithm>) -> Vec<(String, Algorithm)> {
        let asked = |flow: usize| {
            let place = match replaced {
                Some(_) if self.test == Some(flow) => "--cc".into(),
                _ => format!("{}: flows.{}.cc", self.name, self.flows[flow].name),
            };
            Some((place, self.algorithm(flow, replaced)?))
        };
        (0..self.flows.len()).filter_map(asked).collect()
    }

    /// Is the law that was loaded at run time part of a run, with one of `controls` for the connection under test
    /// or with the scenario's own?
    pub fn takes_user_law(&self, controls: &[Algorithm]) -> bool {
        let own = self.flows.iter().filter_map(|flow| flow.control);
        let user =
            |algorithm: Algorithm| algorithm.ours().is_some_and(|control| control.law == Law::USER);
        let of_user = |name: &str| {
            let group = name.split('.').next();
            user_law::loaded().is_some_and(|law| group == Some(law.name))
        };
        own.chain(controls.iter().copied()).any(user)
            || self.params.differing(&Params::default()).any(|(name, _)| of_user(name))
    }

    /// Sets the delay signal of the connection under test, if its detector is delay-based.
    pub fn set_signal(&mut self, signal: Signal) {
        if self.test.is_some() {
            self.take_signal(signal);
            self.settings.insert("detection.signal".into(), signal.name().into());
        }
    }

    /// The same, not by the command line.
    fn take_signal(&mut self, signal: Signal) {
        if let Some(test) = self.test {
            self.flows[test].tcp.signal = signal;
            let file = self.file.detection.get_or_insert_default();
            file.signal = Some(signal.name().into());
        }
    }

    /// The signal of the connection under test, if the command line asks for one.
    #[cfg(feature = "kernel")]
    pub(crate) fn asked_signal(&self) -> Option<Signal> {
        self.settings.get("detection.signal")?;
        Some(self.flows[self.test?].tcp.signal)
    }

    /// The scenario under a control of its connection under test: with what a named system sets, and with a
    /// delay signal, if one is given.
    ///
    /// # Errors
    /// What the control is, and what the command line sets, do not fit.
    pub fn under(
        &self,
        control: Algorithm,
        signal: Option<Signal>,
    ) -> Result<Cow<'_, Scenario>, Error> {
        let mut scenario = Cow::Borrowed(self);
        if let Some(system) = control.system() {
            scenario.to_mut().adopt(system, "--cc")?;
        }
        if let Some(signal) = signal {
            scenario.to_mut().set_signal(signal);
        }
        scenario.check_passive(control)?;
        Ok(scenario)
    }

    /// Can all passive detectors sample the connection under test under `control`?
    ///
    /// # Errors
    /// The control's detector needs other timestamps than one of them.
    pub fn check_passive(&self, control: Algorithm) -> Result<(), Error> {
        let Some(test) = self.test.filter(|_| control.decides()) else { return Ok(()) };
        let signal = self.flows[test].tcp.signal;
        let other = self.passive.iter().find(|passive| !passive.signal.goes_with(signal));
        other.map_or(Ok(()), |other| {
            let message = format!(
                "{} needs other timestamps than {control} with {}; run them apart",
                detection::show(other),
                signal.name()
            );
            Err(Error::input(format!("{}: detection.passive", self.name), message))
        })
    }

    /// Does a flow run each law and detector that the command line sets a parameter of, under one of
    /// `controls` if there are any? Passive detectors count.
    ///
    /// # Errors
    /// None does.
    pub fn check_law_settings(&self, controls: &[Algorithm]) -> Result<(), Error> {
        let tested = self.test.filter(|_| !controls.is_empty());
        let flows = self.flows.iter().enumerate().filter(|(flow, _)| Some(*flow) != tested);
        let others = flows.filter_map(|(_, flow)| flow.control);
        let run: Vec<Control> =
            others.chain(controls.iter().copied()).filter_map(Algorithm::ours).collect();
        for field in self.settings.keys() {
            let Some((name, _)) = field.split_once('.') else { continue };
            let runs = match name.parse::<Control>() {
                Ok(Control { law, .. }) => run.iter().any(|control| control.law == law),
                Err(_) => {
                    let Some(detector) = Detector::all().find(|known| known.name() == name) else {
                        continue;
                    };
                    run.iter().any(|control| control.detector == detector)
                        || self.passive.iter().any(|passive| passive.detector == detector)
                }
            };
            if !runs {
                let message = format!("no flow runs {name}; expected --cc with {name}");
                return Err(Error::input(format!("--set {field}"), message));
            }
        }
        Ok(())
    }

    /// Groups of paths that cross no common link, on the way there or back: a line each.
    fn groups_without_link(&self) -> Vec<String> {
        let Some(test) = self.test else { return Vec::new() };
        let paths = &self.flows[test].paths;
        let mut warnings = Vec::new();
        for group in self.phases.iter().flat_map(|phase| &phase.groups) {
            let all = |path: usize| paths[path].links.iter().chain(&paths[path].back);
            let common =
                all(group[0]).any(|link| group.iter().all(|&path| all(path).any(|l| l == link)));
            if common {
                continue;
            }
            let names: Vec<&str> = group.iter().map(|&path| paths[path].name.as_str()).collect();
            let line = format!("the group of {} has no link in common", names.join(", "));
            if !warnings.contains(&line) {
                warnings.push(line);
            }
        }
        warnings
    }

    /// What is most likely not meant: traces with a mean that no network has; phases in which paths meet
    /// where no rival is, so that the ratio is not that of this bottleneck. A line each.
    pub fn warnings(&self) -> Vec<String> {
        let of_traces = self.links.iter().filter_map(|link| match &link.config.rate {
            Rate::Trace(trace) if trace::is_absurd(trace.mean_rate()) => Some(format!(
                "links.{}.trace: {} carries {} on average over {}; is its format another?",
                link.config.name,
                trace.name(),
                show_rate(trace.mean_rate()),
                show_time(trace.period()),
            )),
            _ => None,
        });
        let of_delays = self.links.iter().filter_map(|link| match &link.config.variation.distribution {
            Distribution::Recorded(delays) if trace::is_absurd_delay(delays) => Some(format!(
                "links.{}.jitter.trace: {} has {} delays of up to {} in {}; is its format another?",
                link.config.name,
                delays.name(),
                delays.points().len(),
                show_time(delays.max()),
                show_time(delays.period()),
            )),
            _ => None,
        });
        let mut warnings: Vec<String> = of_traces.chain(of_delays).collect();
        warnings.extend(self.left_out());
        warnings.extend(self.groups_without_link());
        let Some(test) = self.test.filter(|_| !self.rivals.is_empty()) else { return warnings };
        let paths = &self.flows[test].paths;
        let mut warned: Vec<&Vec<usize>> = Vec::new();
        for Phase { start, groups } in &self.phases {
            for group in groups {
                // The bottleneck of the group: a link that all of it crosses, and no other path.
                let crosses = |link: &usize| {
                    (0..paths.len())
                        .all(|path| paths[path].links.contains(link) == group.contains(&path))
                };
                let links: Vec<usize> =
                    paths[group[0]].links.iter().copied().filter(crosses).collect();
                let rival = |link: &usize| self.rivals.iter().any(|rival| rival.link == *link);
                if !links.is_empty() && !links.iter().any(rival) && !warned.contains(&group) {
                    warned.push(group);
                    let names = |of: &[usize], name: &dyn Fn(usize) -> String| {
                        of.iter().map(|&one| name(one)).collect::<Vec<_>>().join(", ")
                    };
                    warnings.push(format!(
                        "from {} s on the bottleneck of path {} is link {}, which no rival crosses: the \
                         ratio compares with nothing there",
                        *start as f64 / 1e9,
                        names(group, &|path| paths[path].name.clone()),
                        names(&links, &|link| self.links[link].config.name.clone()),
                    ));
                }
            }
        }
        warnings
    }

    /// What the file has at or after the end of the run, if anything: so `--set duration` may cut a run
    /// short.
    fn left_out(&self) -> Option<String> {
        let mut all = Vec::new();
        let mut look = |name: &str, times: &mut dyn Iterator<Item = Nanos>| {
            for (index, at) in times.enumerate().filter(|(_, at)| *at >= self.end()) {
                all.push(format!("{name}.{index} (at {})", show_time(at)));
            }
        };
        let file = &self.file;
        look("events", &mut file.events.iter().map(|event| event.at.0));
        look("phases", &mut file.phases.iter().map(|phase| phase.start.0));
        for (name, flow) in &file.flows {
            let active = flow.active.iter().flatten();
            look(&format!("flows.{name}.active"), &mut active.map(|period| period.0.0));
        }
        let end = show_time(self.end());
        (!all.is_empty())
            .then(|| format!("the run ends at {end} and leaves out {}", all.join(", ")))
    }

    /// The rivals that `flow` meets on its path `path`, or on any of its paths.
    pub fn rivals_of(&self, flow: &Flow, path: Option<usize>) -> impl Iterator<Item = &Rival> {
        let paths = match path {
            Some(index) => &flow.paths[index..=index],
            None => &flow.paths[..],
        };
        self.rivals.iter().filter(|rival| paths.iter().any(|p| p.links.contains(&rival.link)))
    }
}

/// A name in a scenario that is none of those it may be.
fn unknown<'a>(kind: &'static str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    Unknown::new(kind, name, &known.collect::<Vec<_>>()).to_string()
}

/// A link of no scenario.
fn unknown_link(name: &str, links: &[Link]) -> String {
    unknown("link", name, links.iter().map(|link| link.config.name.as_str()))
}

/// A flow that no scenario lists.
fn unknown_flow(name: &str, flows: &[Flow]) -> String {
    let listed = flows.iter().filter(|flow| !flow.background);
    unknown("flow", name, listed.map(|flow| flow.name.as_str()))
}

/// A mistake in a scenario: the field, as the keys that lead to it, and what is wrong.
#[derive(Debug)]
struct Fault {
    field: Vec<String>,
    message: String,
}

impl Fault {
    fn new<const N: usize>(field: [&str; N], message: impl Into<String>) -> Fault {
        Fault { field: field.map(String::from).to_vec(), message: message.into() }
    }
}
