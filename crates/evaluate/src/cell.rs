//! Cells of criteria: a place, the runs made there, and the figure of them.

use narrows_papers::{Ask, Kept};

use crate::bed::{Bed, LAW};
use crate::rule::{less, more};

/// The standard controls beside which a law is judged: RFC 5681 and RFC 9438.
pub const STANDARD: [&str; 2] = ["reno", "cubic"];
/// Shares of what is lost count from 0.1 % on: a few segments are not many times none.
pub const FEW: f64 = 0.001;

/// A figure of the runs of one seed, in the order of the cell; greater is worse.
type Figure = Box<dyn Fn(&[&Kept]) -> f64>;

/// A cell.
pub struct Cell {
    /// Where, in a few words.
    pub place: String,
    /// What is run there, and under which control.
    pub runs: Vec<(Ask, String)>,
    /// What is measured.
    pub figure: Figure,
}

impl Cell {
    /// A cell of runs.
    pub fn new(
        place: impl Into<String>,
        runs: Vec<(Ask, String)>,
        figure: impl Fn(&[&Kept]) -> f64 + 'static,
    ) -> Cell {
        Cell { place: place.into(), runs, figure: Box::new(figure) }
    }

    /// The law against the standards in one place: a figure of which more is better, and the lesser of theirs.
    pub fn least(
        place: impl Into<String>,
        law: &str,
        bed: impl Fn(&str) -> Bed,
        of: impl Fn(&Kept) -> f64 + 'static,
    ) -> Cell {
        Cell::new(place, against(law, bed), move |runs| {
            less(of(runs[0]), runs[1..].iter().map(|run| of(run)).fold(f64::INFINITY, f64::min))
        })
    }

    /// The same of a figure of which less is better, and the greater of theirs; below `floor` it does not count.
    pub fn most(
        place: impl Into<String>,
        law: &str,
        bed: impl Fn(&str) -> Bed,
        floor: f64,
        of: impl Fn(&Kept) -> f64 + 'static,
    ) -> Cell {
        Cell::new(place, against(law, bed), move |runs| {
            more(of(runs[0]), runs[1..].iter().map(|run| of(run)).fold(0.0, f64::max), floor)
        })
    }
}

/// A network under the law, and under each standard.
pub fn against(law: &str, bed: impl Fn(&str) -> Bed) -> Vec<(Ask, String)> {
    let run = |control: &str| (bed(control).ask(control), control.to_owned());
    [law].into_iter().chain(STANDARD).map(run).collect()
}

/// What others lose, and of what they lose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Goodput.
    Goodput,
    /// The share of their packets sent again.
    Loss,
    /// Their smoothed round-trip time.
    Delay,
}

impl Metric {
    fn name(self) -> &'static str {
        match self {
            Metric::Goodput => "goodput",
            Metric::Loss => "loss",
            Metric::Delay => "delay",
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
    /// The route of one more flow in its place.
    pub instead: String,
    /// Control of the rivals.
    pub kind: &'static str,
    /// When the connection, or the flow in its place, starts, s.
    pub start_s: f64,
}

impl Beside {
    /// The harm to the rivals: what they lose more than beside whichever one more flow costs them most, of their own kind,
    /// of Reno or of CUBIC.
    pub fn cells(&self, law: &str, metrics: &[Metric]) -> Vec<Cell> {
        metrics.iter().map(|metric| self.cell(law, *metric)).collect()
    }

    fn cell(&self, law: &str, metric: Metric) -> Cell {
        let others = STANDARD
            .into_iter()
            .chain([self.kind].into_iter().filter(|kind| !STANDARD.contains(kind)));
        let one_more = |control: &str| {
            (
                self.bed.clone().law_on(&self.instead, self.start_s, "").ask(control),
                control.to_owned(),
            )
        };
        let with_law = match self.routes.as_slice() {
            [route] => self.bed.clone().law_on(route, self.start_s, ""),
            routes => self.bed.clone().law_over(routes, self.start_s, ""),
        };
        let runs =
            [(with_law.ask(law), law.to_owned())].into_iter().chain(others.map(one_more)).collect();
        let place = format!("{}, {} of {}", self.place, metric.name(), self.kind);
        Cell::new(place, runs, move |runs| harm(runs, metric, "rival"))
    }
}

/// The harm to flows whose names begin so, in the first run over the worst of the others.
pub fn harm(runs: &[&Kept], metric: Metric, names: &str) -> f64 {
    let worst =
        |of: fn(&Kept, &str) -> f64| runs[1..].iter().map(|run| of(run, names)).fold(0.0, f64::max);
    match metric {
        Metric::Goodput => {
            let least = runs[1..].iter().map(|run| goodput(run, names));
            less(goodput(runs[0], names), least.fold(f64::INFINITY, f64::min))
        }
        Metric::Loss => more(loss(runs[0], names), worst(loss), FEW),
        Metric::Delay => more(delay(runs[0], names), worst(delay), 0.0),
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

/// The share of their packets that flows sent again.
pub fn loss(run: &Kept, names: &str) -> f64 {
    /// Payload of a packet, bits.
    const PAYLOAD: f64 = 8.0 * 1448.0;
    let again: f64 = of(run, names).map(|one| one.retransmits as f64).sum();
    let once = goodput(run, names) * 1e6 * run.summary.duration_s / PAYLOAD;
    if again > 0.0 { again / (again + once) } else { 0.0 }
}

/// Their smoothed round-trip time, mean, ms.
pub fn delay(run: &Kept, names: &str) -> f64 {
    let all: Vec<f64> =
        of(run, names).flat_map(|one| &one.paths).map(|path| path.mean_srtt_ms).collect();
    narrows_stats::mean(&all)
}

fn of<'r>(run: &'r Kept, names: &str) -> impl Iterator<Item = &'r narrows_lab::ConnectionSummary> {
    run.summary.connections.iter().filter(move |one| one.name.starts_with(names))
}

/// Jain's index of the goodputs of flows whose names begin so, and of the law's.
pub fn jain(run: &Kept, names: &str) -> f64 {
    let rates: Vec<f64> = of(run, names).map(|one| one.goodput_mbps).chain([own(run)]).collect();
    narrows_stats::jain(&rates)
}

/// Mean completion of files of flows whose names begin so, s; one that is not complete counts with the whole run.
pub fn completion(run: &Kept, names: &str) -> f64 {
    let all: Vec<f64> =
        of(run, names).map(|one| one.completion_s.unwrap_or(run.summary.duration_s)).collect();
    narrows_stats::mean(&all)
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
