//! A page on a file: groups, delays, rates and losses over time, and a table of each two flows.

use narrows_laws::{Detector, Place};
use narrows_report::{
    Colour, Curve, Fact, Kind, Lane, Lanes, Page, Part, Plot, Section, Span, Table, Timeline,
    command_line,
};

use crate::file::File;
use crate::report::{how_sure, needs, sorted};
use crate::verdict::{numbered, sentence};
use crate::watch::Watch;
use crate::{Decision, Error, Found, Observation, Source, Verdict};

/// Equal times into which delays are put.
const BINS: usize = 1500;
/// The same of rates and losses.
const RATES: usize = 300;
/// Curves that are shown without being asked for.
const SHOWN: usize = 6;
/// Lines of pairs at most: those of 32 flows.
const PAIRS: usize = 500;

/// What a page shows, collected while a file is read.
pub struct Sheet {
    file: File,
    detector: Detector,
    start: f64,
    end: f64,
    /// By flow and time.
    delays: Vec<Vec<Bin>>,
    rates: Vec<Vec<Rate>>,
    decisions: Vec<Decision>,
    verdicts: Vec<Verdict>,
    lost: Vec<u64>,
    warm_up_s: f64,
}

#[derive(Clone, Copy, Debug)]
struct Bin {
    sum_us: i64,
    count: u32,
    least_us: i32,
    most_us: i32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    delivered: u32,
    lost: u32,
}

impl Sheet {
    /// Of the flows of `source` as `detector` sees them, into a [`File::page`] that appears when it is finished.
    pub fn new(file: File, source: &Source, detector: Detector) -> Sheet {
        let flows = source.recording().flows.len();
        let (start, end) = source.recording().span;
        let empty = Bin { sum_us: 0, count: 0, least_us: i32::MAX, most_us: i32::MIN };
        Sheet {
            file,
            detector,
            start,
            // Of one packet, too.
            end: end.max(start + 1e-3),
            delays: vec![vec![empty; BINS]; flows],
            rates: vec![vec![Rate::default(); RATES]; flows],
            decisions: Vec::new(),
            verdicts: Vec::new(),
            lost: vec![0; flows],
            warm_up_s: 0.0,
        }
    }

    /// What was found at the end.
    pub fn found(&mut self, found: &Found) {
        self.verdicts.clone_from(&found.verdicts);
        self.lost.clone_from(&found.lost);
        self.warm_up_s = found.warm_up_s;
    }

    /// Writes the page; `arguments` are those of the command.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(&self, source: &Source, arguments: &[String]) -> Result<(), Error> {
        self.file.write(self.page(source, arguments).html().as_bytes())
    }

    fn page(&self, source: &Source, arguments: &[String]) -> Page {
        let words = arguments.iter().map(String::as_str);
        let mut facts = vec![
            ("detector", self.detector.name().to_owned()),
            ("signal", format!("{} ({})", source.recording().signal, source.recording().about())),
            ("time", format!("{:.1} s", self.end - self.start)),
        ];
        facts.extend(source.recording().captured.clone().map(|captured| ("captured", captured)));
        if self.start != 0.0 {
            facts.push(("0 s in the plots", format!("{} s in the file", self.start)));
        }
        facts.push(("version", format!("narrows {}", env!("CARGO_PKG_VERSION"))));
        let fact = |(name, value): (&str, String)| Fact { name: name.into(), value };
        let mut results = vec![Part::Table(self.flows(source)), Part::Table(self.pairs())];
        if !source.recording().notes.is_empty() {
            results.push(Part::Text {
                title: "Notes".into(),
                text: source.recording().notes.join("\n"),
            });
        }
        let section = |title: &str, about: &str, parts| Section {
            title: title.into(),
            about: about.into(),
            parts,
        };
        let mut over_time = vec![Part::Lanes(self.groups()), Part::Plot(self.delay())];
        over_time.push(Part::Plot(self.rate()));
        over_time.extend(self.losses().map(Part::Lanes));
        let about = "Drag over a plot to zoom in all of them, double-click to see all again. Keys of a \
                     plot in focus: arrows, plus, minus, 0.";
        Page {
            title: "Which flows share a bottleneck".into(),
            lead: sentence(&self.verdicts, source.recording().flows.len()),
            command: command_line(words),
            facts: facts.into_iter().map(fact).collect(),
            tiles: Vec::new(),
            timeline: Timeline { end: self.end - self.start, ..Timeline::default() },
            sections: vec![section("Flows", "", results), section("Over time", about, over_time)],
        }
    }

    fn flows(&self, source: &Source) -> Table {
        let bytes = (0..source.recording().flows.len())
            .any(|flow| source.recording().traffic[flow].bytes.is_some());
        let rate = if bytes { "Mbit/s" } else { "packets/s" };
        let has_losses = source.recording().signal.has_losses();
        let line = |(flow, name): (usize, &String)| {
            let traffic = source.recording().traffic[flow];
            let lost = 100.0 * self.lost[flow] as f64 / traffic.packets.max(1) as f64;
            vec![
                numbered(flow),
                name.clone(),
                traffic.packets.to_string(),
                format!("{:.2}", traffic.rate()),
                traffic.min_rtt_ms.map_or("-".into(), |rtt| format!("{rtt:.1}")),
                if has_losses { format!("{lost:.1} %") } else { "-".into() },
            ]
        };
        Table {
            title: "What each sent".into(),
            about: "The largest first. Plots have them by their numbers.".into(),
            heads: heads(["", "flow", "packets", rate, "min RTT ms", "lost"]),
            left: 2,
            lines: source.recording().flows.iter().enumerate().map(line).collect(),
        }
    }

    fn pairs(&self) -> Table {
        let line = |verdict: &&Verdict| {
            let (a, b) = verdict.flows;
            let since = verdict
                .since_s
                .map_or(String::new(), |since_s| format!("{:.1}", since_s - self.start));
            let flows = format!("{} {}", numbered(a), numbered(b));
            let compared = verdict.compared_s.map_or(String::new(), |s| format!("{s:.1}"));
            let lacks = verdict.why.map(|why| format!(": needs {}", needs(why, self.warm_up_s)));
            let sure = how_sure(verdict) + &lacks.unwrap_or_default();
            vec![flows, verdict.answer.name().into(), since, compared, sure]
        };
        let sorted = sorted(&self.verdicts);
        let more = match sorted.len().saturating_sub(PAIRS) {
            0 => String::new(),
            more => format!(" {more} more pairs are in the JSON (--json)."),
        };
        Table {
            title: "Each two flows".into(),
            about: format!(
                "Concordance: how alike their delays change, 0 to 1; near 1 they wait in one queue.{more}"
            ),
            heads: heads(["flows", "bottleneck", "since, s", "compared, s", "how sure"]),
            left: 5,
            lines: sorted.iter().take(PAIRS).map(line).collect(),
        }
    }

    fn groups(&self) -> Lanes {
        let length = self.end - self.start;
        let times = self.decisions.iter().map(|decision| decision.t_s - self.start);
        let until: Vec<f64> = times.clone().skip(1).chain([length]).collect();
        let from: Vec<f64> = times.collect();
        let lane = |flow: usize| {
            let span = |(number, decision): (usize, &Decision)| {
                let (kind, what) = place(&decision.on.places, flow, self.delays.len());
                Span { from: from[number], to: until[number], kind, what }
            };
            Lane::new(numbered(flow), self.decisions.iter().enumerate().map(span))
        };
        Lanes {
            title: "Groups of flows".into(),
            about: "Each decision holds until the next; before the first nothing is known.".into(),
            lanes: (0..self.delays.len()).map(lane).collect(),
        }
    }

    fn curve(flow: usize, y: Vec<Option<f64>>) -> Curve {
        Curve { hidden: flow >= SHOWN, ..Curve::new(numbered(flow), Colour::Number(flow), y) }
    }

    /// The middles of so many equal times.
    fn times(&self, all: usize) -> Vec<f64> {
        let width = (self.end - self.start) / all as f64;
        (0..all).map(|at| (at as f64 + 0.5) * width).collect()
    }

    fn delay(&self) -> Plot {
        let curve = |(flow, bins): (usize, &Vec<Bin>)| {
            let there = |bin: &&Bin| bin.count > 0;
            let base = bins.iter().filter(there).map(|bin| bin.least_us).min().unwrap_or(0);
            let ms = |of: &dyn Fn(&Bin) -> f64| -> Vec<Option<f64>> {
                let one = |bin: &Bin| (bin.count > 0).then(|| (of(bin) - f64::from(base)) / 1e3);
                bins.iter().map(one).collect()
            };
            Curve {
                low: ms(&|bin| f64::from(bin.least_us)),
                high: ms(&|bin| f64::from(bin.most_us)),
                ..Sheet::curve(flow, ms(&|bin| bin.sum_us as f64 / f64::from(bin.count)))
            }
        };
        Plot {
            title: "Delays".into(),
            about: "Of each flow above its least: the mean between the least and the greatest."
                .into(),
            x_label: "time, s".into(),
            y_label: "delay".into(),
            unit: "ms".into(),
            over_time: true,
            smooth: true,
            top: None,
            x: self.times(BINS),
            curves: self.delays.iter().enumerate().map(curve).collect(),
        }
    }

    fn rate(&self) -> Plot {
        let seconds = (self.end - self.start) / RATES as f64;
        let curve = |(flow, rates): (usize, &Vec<Rate>)| {
            let rates = rates.iter().map(|rate| Some(f64::from(rate.delivered) / seconds));
            Sheet::curve(flow, rates.collect())
        };
        Plot {
            title: "Rates".into(),
            about: "Packets that arrived.".into(),
            x_label: "time, s".into(),
            y_label: "rate".into(),
            unit: "packets/s".into(),
            over_time: true,
            x: self.times(RATES),
            curves: self.rates.iter().enumerate().map(curve).collect(),
            ..Plot::default()
        }
    }

    fn losses(&self) -> Option<Lanes> {
        let seconds = (self.end - self.start) / RATES as f64;
        let lane = |(flow, rates): (usize, &Vec<Rate>)| {
            let span = |(at, rate): (usize, &Rate)| Span {
                from: at as f64 * seconds,
                to: (at as f64 + 1.0) * seconds,
                kind: Kind::Lost(rate.lost.into()),
                what: String::new(),
            };
            let lossy = rates.iter().enumerate().filter(|(_, rate)| rate.lost > 0);
            let spans: Vec<Span> = lossy.map(span).collect();
            (!spans.is_empty()).then_some(Lane {
                name: numbered(flow),
                heading: None,
                colour: Colour::Number(flow),
                spans,
            })
        };
        let lanes: Vec<Lane> = self.rates.iter().enumerate().filter_map(lane).collect();
        let about = format!("Packets lost in each {seconds:.2} s; the more, the higher.");
        (!lanes.is_empty()).then(|| Lanes { title: "Losses".into(), about, lanes })
    }
}

impl Watch for Sheet {
    fn decided(&mut self, decision: &Decision) {
        // One that changes nothing holds on.
        if self.decisions.last().is_none_or(|last| last.on.places != decision.on.places) {
            self.decisions.push(decision.clone());
        }
    }

    fn observed(&mut self, observation: &Observation) {
        let Observation { flow, now_us, delay_us, delivered, lost } = *observation;
        let share = now_us as f64 / 1e6 / (self.end - self.start);
        let at = |all: usize| ((share * all as f64) as usize).min(all - 1);
        let rate = &mut self.rates[flow][at(RATES)];
        rate.delivered += delivered;
        rate.lost += lost;
        if let Some(delay_us) = delay_us {
            let bin = &mut self.delays[flow][at(BINS)];
            bin.sum_us += i64::from(delay_us);
            bin.count += 1;
            bin.least_us = bin.least_us.min(delay_us);
            bin.most_us = bin.most_us.max(delay_us);
        }
    }
}

fn heads<const N: usize>(heads: [&str; N]) -> Vec<(String, String)> {
    heads.map(|head| (head.to_owned(), String::new())).to_vec()
}

/// How a flow stands in a decision, and with whom.
fn place(places: &[Place], flow: usize, flows: usize) -> (Kind, String) {
    match places[flow] {
        Place::Clear => (Kind::Clear, "not congested".into()),
        Place::Undecided => (Kind::Undecided, "undecided".into()),
        Place::Group(_) => {
            let group = (0..flows).filter(|&other| places[other] == places[flow]);
            let group: Vec<usize> = group.collect();
            let others = group.iter().filter(|&&other| other != flow).map(|&of| numbered(of));
            match others.collect::<Vec<_>>().join(", ") {
                others if others.is_empty() => (Kind::Alone, "alone".into()),
                others => (Kind::Group(group[0]), format!("with {others}")),
            }
        }
    }
}
