//! Cells of criteria: a place, the runs made there, and the figure of them.

use narrows_lab::series::INTERVAL;
use narrows_papers::{Ask, Controls, Kept};

use crate::bed::{Bed, LAW, Link, Run};
use crate::rule::{Better, Figures};

/// The standard controls beside which a law is judged: RFC 5681 and RFC 9438.
pub const STANDARD: [&str; 2] = ["reno", "cubic"];
/// Shares of what is lost count from 0.1 % on: a few segments are not many times none.
pub const FEW: f64 = 0.001;

/// Whose control a run has; the law may have a standard's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who<'c> {
    /// The law's.
    Law(&'c str),
    /// A standard's.
    Standard(&'c str),
}

impl<'c> Who<'c> {
    /// Its name.
    pub fn control(self) -> &'c str {
        match self {
            Who::Law(control) | Who::Standard(control) => control,
        }
    }

    /// A standard has one path where the law has `count`.
    pub fn paths(self, count: usize) -> usize {
        match self {
            Who::Law(_) => count,
            Who::Standard(_) => 1,
        }
    }
}

/// A cell: runs of the law and of standards in a place, and the figure of each.
pub struct Cell {
    place: String,
    /// The law's first.
    runs: Vec<Run>,
    better: Better,
    worst: Option<f64>,
    /// A figure that stands for a standard's, and what it is.
    given: Option<(String, f64)>,
    of: Box<dyn Fn(&Kept) -> f64>,
}

impl Cell {
    /// A cell of the law's run and, after it, those to compare it with.
    pub fn new(
        place: impl Into<String>,
        runs: Vec<Run>,
        better: Better,
        of: impl Fn(&Kept) -> f64 + 'static,
    ) -> Cell {
        Cell { place: place.into(), runs, better, worst: None, given: None, of: Box::new(of) }
    }

    /// The law against the standards by a figure of which more is better.
    pub fn least(
        place: impl Into<String>,
        law: &str,
        bed: impl Fn(Who) -> Bed,
        of: impl Fn(&Kept) -> f64 + 'static,
    ) -> Cell {
        Cell::new(place, against(law, bed), Better::More, of)
    }

    /// The same of a figure of which less is better; below `floor` it does not count.
    pub fn most(
        place: impl Into<String>,
        law: &str,
        bed: impl Fn(Who) -> Bed,
        floor: f64,
        of: impl Fn(&Kept) -> f64 + 'static,
    ) -> Cell {
        Cell::new(place, against(law, bed), Better::Less { floor }, of)
    }

    /// The law alone against a figure that is given: `of` what, in words.
    pub fn against(
        place: impl Into<String>,
        law: Run,
        (what, given): (&str, f64),
        of: impl Fn(&Kept) -> f64 + 'static,
    ) -> Cell {
        let cell = Cell::new(place, vec![law], Better::More, of);
        Cell { given: Some((what.to_owned(), given)), ..cell }
    }

    /// The figure cannot be worse than this: a queue that is always full.
    pub fn at_worst(mut self, worst: f64) -> Cell {
        self.worst = Some(worst);
        self
    }

    /// The runs keep their series.
    pub fn with_series(mut self) -> Cell {
        self.runs = self.runs.into_iter().map(|run| Run { ask: run.ask.series(), ..run }).collect();
        self
    }

    /// How many paths the law has in it.
    pub fn paths(&self) -> usize {
        self.runs[0].paths
    }

    /// What is run.
    pub fn asks(&self) -> impl Iterator<Item = &Ask> {
        self.runs.iter().map(|run| &run.ask)
    }

    /// The figures of what was found for [`Cell::asks`], in their order; `own` is the law's own standard, if it has one.
    pub fn figures<'f>(
        &self,
        found: impl Iterator<Item = &'f Controls>,
        limit: f64,
        own: Option<&str>,
    ) -> Figures {
        let by_seed = |(Run { control, .. }, found): (&Run, &Controls)| {
            let values = found.of(control).iter().map(|run| (self.of)(run)).collect::<Vec<f64>>();
            (control.clone(), values)
        };
        let mut all = self.runs.iter().zip(found).map(by_seed);
        let (_, law) = all.next().expect("the law's run is the first");
        let standards: Vec<(String, Vec<f64>)> = all.collect();
        let own = standards.iter().find(|(control, _)| Some(control.as_str()) == own).cloned();
        let given = self.given.iter().map(|(what, given)| (what.clone(), vec![*given; law.len()]));
        let standards = standards.into_iter().chain(given).collect();
        let figures = Figures::new(&self.place, self.better, self.worst, law, standards, limit);
        match own {
            Some(own) => figures.with_own(self.worst, own),
            None => figures,
        }
    }
}

/// A network under the law, and under each standard.
pub fn against(law: &str, bed: impl Fn(Who) -> Bed) -> Vec<Run> {
    each(law, |who: Who| bed(who).run(who.control()))
}

/// A run of the law, and one of each standard.
pub fn each(law: &str, run: impl Fn(Who) -> Run) -> Vec<Run> {
    [Who::Law(law)].into_iter().chain(STANDARD.map(Who::Standard)).map(run).collect()
}

/// What others lose, and of what they lose it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// Goodput.
    Goodput,
    /// The share of their packets sent again.
    Loss,
    /// Their smoothed round-trip time above the base RTT.
    Delay {
        /// The base RTT, ms.
        base_ms: f64,
        /// What a full queue adds, ms.
        full_ms: f64,
    },
}

impl Metric {
    /// All of them, for rivals on the route of a link.
    pub fn all(link: &Link) -> [Metric; 3] {
        let delay = Metric::Delay { base_ms: link.rtt_ms, full_ms: link.full_ms() };
        [Metric::Goodput, Metric::Loss, delay]
    }

    fn name(self) -> &'static str {
        match self {
            Metric::Goodput => "goodput",
            Metric::Loss => "loss",
            Metric::Delay { .. } => "delay",
        }
    }

    fn better(self) -> Better {
        match self {
            Metric::Goodput => Better::More,
            Metric::Loss => Better::Less { floor: FEW },
            Metric::Delay { .. } => Better::Less { floor: 1.0 },
        }
    }

    fn worst(self) -> Option<f64> {
        match self {
            Metric::Delay { full_ms, .. } => Some(full_ms),
            _ => None,
        }
    }

    /// Its cell for rivals of a control, whose names begin with `rival`.
    pub fn cell(self, place: &str, kind: &str, runs: Vec<Run>) -> Cell {
        let place = format!("{place}, {} of {kind}", self.name());
        let cell = Cell::new(place, runs, self.better(), move |run| self.of(run, "rival"));
        Cell { worst: self.worst(), ..cell }
    }

    /// Of flows whose names begin so.
    fn of(self, run: &Kept, names: &str) -> f64 {
        match self {
            Metric::Goodput => goodput(run, names),
            Metric::Loss => loss(run, names),
            Metric::Delay { base_ms, .. } => delay(run, names) - base_ms,
        }
    }
}

/// The law's connection beside rivals, whose names begin with `rival`.
pub struct Beside {
    /// Where, in a few words.
    pub place: String,
    /// The network with the rivals.
    pub bed: Bed,
    /// Routes of the law's connection: one makes it TCP.
    pub routes: Vec<String>,
    /// How many flows are in its place, on the link `l`.
    pub flows: usize,
    /// Control of the rivals.
    pub kind: &'static str,
    /// When the connection, or the flows in its place, start, s.
    pub start_s: f64,
}

impl Beside {
    /// One flow in its place, from 2 s on.
    pub fn new(place: String, bed: Bed, routes: Vec<String>, kind: &'static str) -> Beside {
        Beside { place, bed, routes, flows: 1, kind, start_s: 2.0 }
    }

    /// The harm to the rivals: what they lose more than beside other flows in its place, of their own kind, of Reno or of
    /// CUBIC.
    pub fn cells(&self, law: &str, metrics: &[Metric]) -> Vec<Cell> {
        metrics.iter().map(|metric| self.cell(law, *metric)).collect()
    }

    fn cell(&self, law: &str, metric: Metric) -> Cell {
        metric.cell(&self.place, self.kind, self.runs(law))
    }

    /// The law's connection, and flows in its place.
    pub fn runs(&self, law: &str) -> Vec<Run> {
        let others = STANDARD
            .into_iter()
            .chain([self.kind].into_iter().filter(|kind| !STANDARD.contains(kind)));
        let in_its_place = |control: &str| {
            let bed = self.bed.clone().law_on("l", self.start_s, "");
            let bed = (1..self.flows).fold(bed, |bed, number| {
                bed.tcp(&format!("more{number}"), "l", control, self.start_s, "")
            });
            bed.run(control)
        };
        [self.with_law(law)].into_iter().chain(others.map(in_its_place)).collect()
    }

    /// The law's connection.
    pub fn with_law(&self, law: &str) -> Run {
        let with_law = match self.routes.as_slice() {
            [route] => self.bed.clone().law_on(route, self.start_s, ""),
            routes => self.bed.clone().law_over(routes, self.start_s, ""),
        };
        with_law.run(law)
    }
}

/// Goodput of all flows whose names begin so, Mbit/s.
pub fn goodput(run: &Kept, names: &str) -> f64 {
    of(run, names).map(|one| one.goodput_mbps).sum()
}

/// Goodput of the law's connection, Mbit/s.
pub fn own(run: &Kept) -> f64 {
    run.connection(LAW).goodput_mbps
}

/// Payload of a packet, bits.
const PAYLOAD: f64 = 8.0 * 1448.0;

/// The share of their packets that flows sent again.
pub fn loss(run: &Kept, names: &str) -> f64 {
    let again: f64 = of(run, names).map(|one| one.retransmits as f64).sum();
    let once = goodput(run, names) * 1e6 * run.summary.duration_s / PAYLOAD;
    if again > 0.0 { again / (again + once) } else { 0.0 }
}

/// The largest share of their packets that all flows together sent again within so many seconds, from `since_s` on. Of a run with
/// series.
pub fn worst_loss(run: &Kept, since_s: f64, window_s: f64) -> f64 {
    /// Between two samples.
    const SAMPLE_S: f64 = INTERVAL as f64 / 1e9;
    // A sample has a row of each flow and path, and each of them a number for each sample.
    let by_time = run.series.chunk_by(|one, other| one.time_s == other.time_s).enumerate();
    let counts = by_time.filter(|(_, rows)| rows[0].time_s > since_s).map(|(at, rows)| {
        let again: u64 = run.retransmits.iter().flatten().map(|path| path[at]).sum();
        let mbps: f64 = rows.iter().filter_map(|row| row.goodput_mbps).sum();
        (again as f64, mbps * 1e6 * SAMPLE_S / PAYLOAD)
    });
    worst_share(&counts.collect::<Vec<_>>(), libm::round(window_s / SAMPLE_S) as usize)
}

/// The largest share of the first of two counts in both, of so many on end.
fn worst_share(counts: &[(f64, f64)], window: usize) -> f64 {
    let share = |counts: &[(f64, f64)]| {
        let [again, once] = [
            counts.iter().map(|both| both.0).sum::<f64>(),
            counts.iter().map(|both| both.1).sum::<f64>(),
        ];
        if again > 0.0 { again / (again + once) } else { 0.0 }
    };
    counts.windows(window).map(share).fold(0.0, f64::max)
}

/// Their smoothed round-trip time, mean, ms; no number if one of them never measured any.
pub fn delay(run: &Kept, names: &str) -> f64 {
    let all: Vec<f64> =
        of(run, names).flat_map(|one| &one.paths).map(|path| measured(path.mean_srtt_ms)).collect();
    narrows_stats::mean(&all)
}

/// A round-trip time, no number where nothing was measured: none is the longest, not 0.
pub fn measured(srtt_ms: f64) -> f64 {
    if srtt_ms > 0.0 { srtt_ms } else { f64::NAN }
}

fn of<'r>(run: &'r Kept, names: &str) -> impl Iterator<Item = &'r narrows_lab::ConnectionSummary> {
    run.summary.connections.iter().filter(move |one| one.name.starts_with(names))
}

/// Jain's index of the goodputs of flows whose names begin so, and of the law's; 0 if nobody has any.
pub fn jain(run: &Kept, names: &str) -> f64 {
    let rates: Vec<f64> = of(run, names).map(|one| one.goodput_mbps).chain([own(run)]).collect();
    if rates.iter().sum::<f64>() > 0.0 { narrows_stats::jain(&rates) } else { 0.0 }
}

/// Mean completion of files of flows whose names begin so, s; one that is not complete counts with the whole run.
pub fn completion(run: &Kept, names: &str) -> f64 {
    narrows_stats::mean(&completions(run, names).collect::<Vec<_>>())
}

/// That of the last of them.
pub fn longest(run: &Kept, names: &str) -> f64 {
    completions(run, names).fold(0.0, f64::max)
}

fn completions(run: &Kept, names: &str) -> impl Iterator<Item = f64> {
    of(run, names).map(move |one| one.completion_s.unwrap_or(run.summary.duration_s))
}

/// The link of a name.
pub fn link<'r>(run: &'r Kept, name: &str) -> &'r narrows_lab::LinkSummary {
    let found = run.summary.links.iter().find(|link| link.name == name);
    found.unwrap_or_else(|| panic!("there is no link {name}"))
}

/// Packets of full size that came to a link of such a rate.
pub fn offered(run: &Kept, name: &str, kbps: f64) -> f64 {
    let link = link(run, name);
    link.drops as f64 + sent(link, kbps, run)
}

fn sent(link: &narrows_lab::LinkSummary, kbps: f64, run: &Kept) -> f64 {
    link.utilization * kbps * 1000.0 * run.summary.duration_s / 12_000.0
}

/// The share of its packets that a link of such a rate drops.
pub fn dropped(run: &Kept, name: &str, kbps: f64) -> f64 {
    let drops = link(run, name).drops as f64;
    if drops > 0.0 { drops / offered(run, name, kbps) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_that_was_never_measured_is_no_short_one() {
        assert_eq!(measured(40.0), 40.0);
        assert!(measured(0.0).is_nan());
    }

    #[test]
    fn the_worst_window_is_found_wherever_it_is() {
        let counts = [(0.0, 10.0), (1.0, 9.0), (5.0, 5.0), (7.0, 3.0), (0.0, 10.0)];
        assert_eq!(worst_share(&counts, 1), 0.7);
        assert_eq!(worst_share(&counts, 2), 12.0 / 20.0);
        assert_eq!(worst_share(&counts, 5), 13.0 / 50.0);
        assert_eq!(worst_share(&[(0.0, 0.0); 3], 2), 0.0);
    }

    #[test]
    fn a_cell_has_the_paths_of_the_law_not_those_of_the_standards() {
        let bed = |who: Who| {
            let bed = Bed::one(Link::new("l", 1_000.0, 40.0, 1.0), 1.0, 1.0);
            let bed = bed.route("l2", &["l"], 40.0);
            match who {
                Who::Law(_) => bed.law_over(&["l".into(), "l2".into()], 1.0, ""),
                Who::Standard(_) => bed.law_on("l", 1.0, ""),
            }
        };
        assert_eq!(Cell::least("", "lia", bed, own).paths(), 2);
        assert_eq!(Cell::least("", "lia", |_| bed(Who::Standard("reno")), own).paths(), 1);
    }
}
