//! The mesh, what is set in it, and its runs.

use std::collections::BTreeMap;

use narrows_lab::Error;

use crate::goodput::under_test;
use crate::{Ask, Controls, Form, Kept, Runs};

pub const UNCOUPLED: [&str; 2] = ["cubic", "reno"];
pub const COUPLED: [&str; 4] = ["balia", "lia", "olia", "wvegas"];
pub const OURS: [&str; 2] = ["greno+xcorr", "gcubic+xcorr"];

/// Pairs of providers, ADSL first, as in the paper's figures: these are Telenor's and PowerTech's.
pub const ADSL: [&str; 4] = ["path3-2", "path3-1", "path2-2", "path2-1"];
/// Uninett's.
pub const FIBRE: [&str; 2] = ["path1-2", "path1-1"];

/// A Linux.
#[derive(Debug, PartialEq, Eq)]
pub struct Era {
    /// The head of its column.
    pub name: &'static str,
    /// What is set for one TCP, which has no scheduler.
    tcp: &'static [&'static str],
    /// What is set for a connection.
    settings: &'static [&'static str],
}

/// Of the paper's time, as its text names no version; the same with the scheduler of MPTCP then; and today's.
pub const ERAS: [Era; 3] = [
    Era { name: "3.14", tcp: &["era=linux-3.14"], settings: &["era=linux-3.14"] },
    Era { name: "3.14, v0.89", tcp: &["era=linux-3.14"], settings: &OF_ITS_TIME },
    Era { name: "today", tcp: &[], settings: &[] },
];

/// Linux and MPTCP of the paper's time as far as they are modelled.
const OF_ITS_TIME: [&str; 2] = ["era=linux-3.14", "flows.mptcp.scheduler=mptcp-v0.89"];

/// The six controls of the paper.
pub fn published() -> Vec<&'static str> {
    [&UNCOUPLED[..], &COUPLED].concat()
}

/// The same and ours.
pub fn all() -> Vec<&'static str> {
    [&published()[..], &OURS].concat()
}

pub fn pairs() -> Vec<&'static str> {
    [&ADSL[..], &FIBRE].concat()
}

/// `Uninett-BKK`: the provider in Tromsø and that in Bergen.
pub fn name(pair: &str) -> String {
    let number = |at: usize| usize::from(pair.as_bytes()[at] - b'1');
    let (from, to) = (["Uninett", "Telenor", "PowerTech"], ["Uninett", "BKK"]);
    format!("{}-{}", from[number(4)], to[number(6)])
}

// --- Settings -------------------------------------------------------------------------------------------

pub fn routes(pairs: &[&str]) -> String {
    format!("flows.mptcp.routes={pairs:?}")
}

/// All pairs, this one first, the others in the order of the figures.
pub fn opened_over(pair: &str) -> String {
    let rest = pairs().into_iter().filter(|one| *one != pair);
    routes(&[pair].into_iter().chain(rest).collect::<Vec<_>>())
}

/// Each of these pairs has a bottleneck of its own, and no others are there.
pub fn only(pairs: &[&str]) -> [String; 2] {
    let groups: Vec<_> = pairs.iter().map(|pair| [pair]).collect();
    [routes(pairs), format!("phases=[{{start=\"0 s\", groups={groups:?}}}]")]
}

pub fn adsl_queue(value: &str) -> Vec<String> {
    ["client2", "client3"].map(|line| format!("links.{line}.queue={value}")).into()
}

/// Of Bergen's two providers.
pub fn uib(field: &str, value: &str) -> Vec<String> {
    ["server1", "server2"].map(|link| format!("links.{link}.{field}={value}")).into()
}

pub fn buffers(value: &str) -> Vec<String> {
    ["send", "recv"].map(|end| format!("flows.mptcp.{end}_buffer={value}")).into()
}

// --- Runs -----------------------------------------------------------------------------------------------

/// The paper's "repeated 50 times".
fn seeds(runs: &Runs) -> u64 {
    runs.seeds(50, 3)
}

/// What else differs from it has fewer.
fn few(runs: &Runs) -> u64 {
    runs.seeds(10, 3)
}

fn get(
    runs: &Runs,
    controls: Vec<&str>,
    settings: &[String],
    seeds: u64,
    later: bool,
) -> Result<Controls, Error> {
    let ask = Ask::of("nornet/mesh", controls).set(settings).seeds(seeds);
    runs.get(&match (later, ask.brief(runs.form())) {
        // "Once all subflows are established": from then on.
        (true, ask) if runs.form() != Form::Least => ask.set(["warmup=10 s", "duration=50 s"]),
        (_, ask) => ask,
    })
}

fn of_era(settings: &[&str], more: impl IntoIterator<Item = String>) -> Vec<String> {
    settings.iter().map(|one| one.to_string()).chain(more).collect()
}

/// One TCP over a pair.
pub fn tcp(runs: &Runs, era: &Era, pair: &str) -> Result<Controls, Error> {
    let alone = [vec!["flows.mptcp.kind=tcp".into()], only(&[pair]).into()].concat();
    get(runs, published(), &of_era(era.tcp, alone), seeds(runs), false)
}

/// The connection, opened over a pair.
pub fn first(runs: &Runs, era: &Era, pair: &str) -> Result<Controls, Error> {
    let more = [opened_over(pair), "detection.passive=[\"xcorr\"]".into()];
    get(runs, all(), &of_era(era.settings, more), seeds(runs), false)
}

/// The same once all subflows are up: what counts begins later.
fn later(runs: &Runs, era: &Era, pair: &str) -> Result<Controls, Error> {
    let settings = of_era(era.settings, [opened_over(pair)]);
    get(runs, UNCOUPLED.into(), &settings, seeds(runs), true)
}

/// The connection on Linux of its time, opened over Uninett's pair, in a network that differs.
pub fn other(runs: &Runs, more: Vec<String>) -> Result<Controls, Error> {
    let more = [vec![opened_over("path1-1")], more].concat();
    get(runs, all(), &of_era(&OF_ITS_TIME, more), few(runs), false)
}

/// A cell of the map: buffers at both ends, ADSL's queue, and loss to Bergen.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub buffer: &'static str,
    pub queue: &'static str,
    pub loss: Option<&'static str>,
}

impl Cell {
    /// The paper's controls on Linux of its time, opened over a pair.
    fn get(
        self,
        runs: &Runs,
        pair: &str,
        controls: Vec<&str>,
        later: bool,
    ) -> Result<Controls, Error> {
        let loss = self.loss.map(|loss| uib("loss", loss)).unwrap_or_default();
        let more =
            [vec![opened_over(pair)], buffers(self.buffer), adsl_queue(self.queue), loss].concat();
        get(runs, controls, &of_era(&OF_ITS_TIME, more), few(runs), later)
    }
}

// --- Goodputs -------------------------------------------------------------------------------------------

pub fn goodputs(runs: &[Kept]) -> Vec<f64> {
    runs.iter().map(under_test).collect()
}

/// Goodputs by seed, Mbit/s, of a control and a pair.
#[derive(Clone, Debug, Default)]
pub struct Goodputs(pub BTreeMap<(String, String), Vec<f64>>);

impl Goodputs {
    fn of(
        controls: &[&str],
        pairs: &[&str],
        get: impl Fn(&str) -> Result<Controls, Error>,
    ) -> Result<Goodputs, Error> {
        let mut found = BTreeMap::new();
        for pair in pairs {
            let runs = get(pair)?;
            for control in controls {
                found.insert((control.to_string(), pair.to_string()), goodputs(&runs[control]));
            }
        }
        Ok(Goodputs(found))
    }

    pub fn by_seed(&self, control: &str, pair: &str) -> &[f64] {
        let found = self.0.get(&(control.into(), pair.into()));
        found.unwrap_or_else(|| panic!("no runs of {control} and {pair}"))
    }
}

/// A network in which the claims are judged.
#[derive(Clone, Debug)]
pub struct Network {
    /// Of one TCP over a pair.
    pub tcp: Goodputs,
    /// Of the connection opened over the pair.
    pub first: Goodputs,
    /// Of that once all subflows are up.
    pub later: Goodputs,
    /// First pairs.
    pub adsl: Vec<&'static str>,
    pub fibre: Vec<&'static str>,
}

impl Network {
    /// That of the paper, on a Linux.
    pub fn of_era(runs: &Runs, era: &Era) -> Result<Network, Error> {
        Ok(Network {
            tcp: Goodputs::of(&published(), &pairs(), |pair| tcp(runs, era, pair))?,
            first: Goodputs::of(&published(), &pairs(), |pair| first(runs, era, pair))?,
            later: Goodputs::of(&UNCOUPLED, &pairs(), |pair| later(runs, era, pair))?,
            adsl: ADSL.into(),
            fibre: FIBRE.into(),
        })
    }

    /// A cell of the map, opened over a pair of each kind.
    pub fn of_cell(runs: &Runs, cell: Cell) -> Result<Network, Error> {
        let (adsl, fibre) = (vec!["path3-1"], vec!["path1-1"]);
        let both = [adsl[0], fibre[0]];
        // One TCP needs no more than the least buffer; a queue of ADSL it fills whatever its length.
        let mut tcp = Goodputs::of(&published(), &pairs(), |pair| tcp(runs, &ERAS[0], pair))?;
        let few = usize::try_from(few(runs)).unwrap_or(usize::MAX);
        tcp.0.values_mut().for_each(|by_seed| by_seed.truncate(few));
        let first =
            Goodputs::of(&published(), &both, |pair| cell.get(runs, pair, published(), false))?;
        let later =
            Goodputs::of(&UNCOUPLED, &both, |pair| cell.get(runs, pair, UNCOUPLED.into(), true))?;
        Ok(Network { tcp, first, later, adsl, fibre })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_named_by_their_providers() {
        assert_eq!(name("path3-2"), "PowerTech-BKK");
        assert_eq!(name("path1-1"), "Uninett-Uninett");
    }

    #[test]
    fn settings_are_toml() {
        assert_eq!(routes(&FIBRE), r#"flows.mptcp.routes=["path1-2", "path1-1"]"#);
        assert_eq!(only(&FIBRE)[1], r#"phases=[{start="0 s", groups=[["path1-2"], ["path1-1"]]}]"#);
        let opened = opened_over("path2-2");
        assert!(opened.starts_with(r#"flows.mptcp.routes=["path2-2", "path3-2", "path3-1","#));
    }
}
