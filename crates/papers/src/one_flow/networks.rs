//! The networks of docs/results/one-flow.md, and the controls compared there.

use std::ops::RangeInclusive;

use crate::{Ask, Form, Runs};

/// The laws compared, by the kind of their rivals.
const KINDS: [(&str, &[&str]); 2] = [("reno", &["greno", "lia", "olia"]), ("cubic", &["gcubic"])];
/// Those that are judged, also with the detector; the others are there to compare.
const JUDGED: [&str; 2] = ["greno", "gcubic"];
/// All paths are one group, or the best detector finds the groups.
const GROUPS: &[&str] = &["", "+xcorr"];

/// Not used to find a law or a constant of it. Twenty where one flow is most uncertain.
const FIRST_SEED: u64 = 11;

/// What the group's goodput is over.
#[derive(Clone, Debug, PartialEq)]
pub enum Yardstick {
    /// Its rivals'.
    Tcp,
    /// The mean of the greedy TCPs' at the best bottleneck.
    Best,
    /// What the law has uncoupled, in the same place.
    Uncoupled,
    /// That of another connection under the same control, which is so made.
    Other(String),
}

/// A network, who is compared with the group there, and how.
#[derive(Clone, Debug)]
pub struct Network {
    pub name: String,
    pub table: &'static str,
    pub scenario: String,
    pub settings: Vec<String>,
    seeds: u64,
    groups: &'static [&'static str],
    pub paths: usize,
    pub rivals: Vec<String>,
    /// Which background has TCPs of the rivals' kind: the only one, or those of a list by number.
    backgrounds: &'static [&'static str],
    pub yardstick: Yardstick,
    /// When one more TCP takes the connection's place, s, and on which route; none: it does not.
    one_more: Option<(u32, &'static str)>,
    /// When the run ends, s.
    end: f64,
    /// From, to, kind and rivals.
    pub phases: Vec<(u32, u32, &'static str, Vec<&'static str>)>,
}

impl Network {
    fn new(name: impl Into<String>, table: &'static str, scenario: impl Into<String>) -> Network {
        Network {
            name: name.into(),
            table,
            scenario: scenario.into(),
            settings: Vec::new(),
            seeds: 20,
            groups: GROUPS,
            paths: 2,
            rivals: vec!["tcp1".into()],
            backgrounds: &[""],
            yardstick: Yardstick::Tcp,
            one_more: None,
            end: 140.0,
            phases: Vec::new(),
        }
    }

    /// Controls by the kind of their rivals: all laws with all paths in one group, and some with the detector; of
    /// the sweep's many runs those judged.
    pub fn controls(&self) -> impl Iterator<Item = (&'static str, Vec<String>)> {
        KINDS.into_iter().map(|(kind, laws)| {
            let judged = || laws.iter().filter(|law| JUDGED.contains(law));
            if self.table == "sweep" {
                return (kind, judged().map(|law| law.to_string()).collect());
            }
            let with_all = ["apart", "shifting"].contains(&self.table);
            let of = |group: &&'static str| {
                let group = *group;
                let chosen: Vec<_> = if group.is_empty() || with_all {
                    laws.iter().collect()
                } else {
                    judged().collect()
                };
                chosen.into_iter().map(move |law| format!("{law}{group}"))
            };
            (kind, self.groups.iter().flat_map(of).collect())
        })
    }

    /// The settings with rivals of a kind; Reno's are the scenarios' own.
    fn with_rivals(&self, kind: &str) -> Vec<String> {
        let mut settings = self.settings.clone();
        if kind != "reno" {
            settings.extend(self.rivals.iter().map(|rival| format!("flows.{rival}.cc={kind}")));
            settings.extend(
                self.backgrounds.iter().map(|place| format!("background.{place}cc={kind}")),
            );
        }
        settings
    }

    fn seeds(&self, runs: &Runs) -> RangeInclusive<u64> {
        FIRST_SEED..=FIRST_SEED + runs.seeds(self.seeds, 2) - 1
    }

    /// Runs with rivals of a kind.
    pub fn ask<'a>(
        &self,
        runs: &Runs,
        kind: &str,
        controls: impl IntoIterator<Item = &'a str>,
    ) -> Ask {
        Ask::of(&self.scenario, controls).set(self.with_rivals(kind)).from_to(self.seeds(runs))
    }

    /// The same with one more TCP in the connection's place, which itself starts as the run ends; none where it
    /// is not compared.
    pub fn ask_one_more(&self, runs: &Runs, kind: &str) -> Option<Ask> {
        let (start, route) = self.one_more?;
        let more = [
            format!("flows.mptcp.start={} s", self.end - 0.1),
            format!(
                "flows.more={{kind=\"tcp\", routes=[\"{route}\"], cc=\"{kind}\", start=\"{start} s\"}}"
            ),
        ];
        Some(self.ask(runs, kind, ["lia"]).set(more))
    }
}

/// One bottleneck: the networks of the papers.
fn shared() -> Vec<Network> {
    let mut all = Vec::new();
    for suffix in ["", "-red", "-rtt"] {
        for paths in 2..=5 {
            let name = format!("sb-{paths}{suffix}");
            let scenario = format!("sbd/{name}");
            all.push(Network {
                paths,
                one_more: Some((2, "path1")),
                ..Network::new(name, "shared", scenario)
            });
        }
    }
    for name in ["tr/e1", "tr/e5"] {
        // One run has 30 or 60 flows for 300 s.
        all.push(Network {
            seeds: 10,
            one_more: Some((0, "n1-n7")),
            backgrounds: &["0.", "1."],
            end: 300.0,
            ..Network::new(name, "shared", name)
        });
    }
    all
}

/// Five TCPs, alike in all, beside the traffic of others, and beside nobody else.
fn many() -> Vec<Network> {
    let mut all = Vec::new();
    for paths in [2, 5] {
        for (rate, offered) in [(20, "50 %"), (100, "50 %"), (100, "0 %")] {
            let mut settings = dumbbell(rate, 20, 1.0);
            settings.retain(|setting| !setting.starts_with("background.rtt"));
            let own =
                ["background.greedy=[4]", "background.rtt=['20 ms', '20 ms']", "duration=60 s"];
            settings.extend(own.map(String::from));
            settings.push(format!("background.offered={offered}"));
            let alone = if offered == "0 %" { ", nobody else" } else { "" };
            let name = format!("{paths} paths, {rate} Mbit/s{alone}");
            all.push(Network {
                settings,
                seeds: 5,
                groups: &GROUPS[..1],
                paths,
                yardstick: Yardstick::Best,
                ..Network::new(name, "many", format!("sbd/sb-{paths}"))
            });
        }
    }
    all
}

/// One TCP is all that sends beside two paths.
fn one() -> Vec<Network> {
    let mut all = Vec::new();
    for (rate, rtt) in [(10, 40), (20, 20), (100, 20)] {
        for bdp in [0.5, 1.0, 2.0] {
            let mut settings = dumbbell(rate, rtt, bdp);
            let alone = ["background.greedy=[0]", "background.offered=0 %", "duration=60 s"];
            settings.extend(alone.map(String::from));
            let name = format!("{rate} Mbit/s, {rtt} ms, {bdp} BDP");
            all.push(Network { settings, seeds: 10, ..Network::new(name, "one", "sbd/sb-2") });
        }
    }
    all
}

/// sbd/sb-n at another rate in Mbit/s, RTT in ms and buffer in BDPs; as many flows beside, at rates to match.
fn dumbbell(rate: u32, rtt: u32, bdp: f64) -> Vec<String> {
    let packets = f64::from(rate) * f64::from(rtt) * 1000.0 / 8.0 / 1500.0;
    let scale = f64::from(rate) / 20.0;
    let [low, high] = [50.0, 150.0].map(|pps| format!("{} packets/s", pps * scale));
    vec![
        format!("generator.dumbbell.rate={rate} Mbit/s"),
        format!("generator.dumbbell.rtt={rtt} ms"),
        format!("generator.dumbbell.delay={} ms", f64::from(rtt) / 4.0),
        // Half to even, as the tables were first made.
        format!("generator.dumbbell.queue={} packets", (packets * bdp).round_ties_even().max(4.0)),
        format!("background.rtt=['{rtt} ms', '{} ms']", 4 * rtt),
        format!("background.tcp_rate={high}"),
        format!("background.udp_rate=['{low}', '{high}']"),
    ]
}

/// Each rate with each RTT; numbers of paths and buffers take turns.
const RATES_MBPS: [u32; 4] = [1, 10, 100, 1000];
const RTTS_MS: [u32; 4] = [5, 20, 80, 200];
const TURNS: [(usize, f64); 5] = [(2, 1.0), (8, 4.0), (4, 0.25), (3, 2.0), (5, 0.5)];
/// A run has 25 loss cycles of the fair flow and at least 60 s or so many packets. Networks where these cycles take
/// more than the most packets are left out: a run that holds them takes minutes.
const CYCLES: f64 = 25.0;
const LEAST_S: f64 = 60.0;
const LEAST_PACKETS: f64 = 4e5;
const MOST_PACKETS: f64 = 1.5e6;

/// Rates, RTTs, paths and buffers.
fn sweep() -> Vec<Network> {
    let mut all = Vec::new();
    let points = RATES_MBPS.iter().flat_map(|&rate| RTTS_MS.map(|rtt| (rate, rtt)));
    for (turn, (rate, rtt)) in points.enumerate() {
        for (paths, bdp) in [TURNS[turn % TURNS.len()], TURNS[(turn + 2) % TURNS.len()]] {
            let packets_per_s = f64::from(rate) * 1e6 / 12000.0;
            // A quarter of the link, with half of the queue in the mean.
            let full_s = f64::from(rtt) / 1000.0 * (1.0 + bdp / 2.0);
            let cycles_s = CYCLES * 2.0 / 3.0 * (packets_per_s * full_s / 4.0) * full_s;
            if cycles_s * packets_per_s <= MOST_PACKETS {
                let length = cycles_s.max(LEAST_S.min(LEAST_PACKETS / packets_per_s));
                all.push(point(paths, rate, rtt, bdp, length.round_ties_even() as u32));
            }
        }
    }
    all
}

fn point(paths: usize, rate: u32, rtt: u32, bdp: f64, length: u32) -> Network {
    let warmup = (length / 5).max(5);
    let mut settings = dumbbell(rate, rtt, bdp);
    settings.extend([format!("warmup={warmup} s"), format!("duration={length} s")]);
    let folder = if paths <= 5 { "sbd" } else { "detection" };
    let name = format!("{rate} Mbit/s, {rtt} ms, {bdp} BDP, {paths} paths");
    Network {
        settings,
        seeds: 10,
        groups: &GROUPS[..1],
        paths,
        one_more: Some((2, "path1")),
        end: f64::from(warmup + length),
        ..Network::new(name, "sweep", format!("{folder}/sb-{paths}"))
    }
}

/// Bottlenecks of their own.
fn apart() -> Vec<Network> {
    let apart = |name: String, scenario: String| Network {
        seeds: 5,
        yardstick: Yardstick::Uncoupled,
        ..Network::new(name, "apart", scenario)
    };
    let mut all = Vec::new();
    for paths in 2..=5 {
        let rivals = (1..=paths).map(|number| format!("tcp{number}")).collect();
        all.push(Network {
            paths,
            rivals,
            ..apart(format!("nsb-{paths}"), format!("sbd/nsb-{paths}"))
        });
    }
    for name in ["phone/wifi-lte", "phone/wifi-handover"] {
        let rivals = vec!["tcp-wifi".into(), "tcp-lte".into()];
        all.push(Network { rivals, backgrounds: &[], ..apart(name.into(), name.into()) });
    }
    all
}

/// Two such connections, and nobody else; the other one starts with the first, or twelve seconds later.
fn two() -> Vec<Network> {
    let mut all = Vec::new();
    for paths in [2, 5] {
        for start in [2, 14] {
            let routes: Vec<_> = (1..=paths).map(|number| format!("\"path{number}\"")).collect();
            let routes = routes.join(", ");
            let other = format!(
                "kind=\"mptcp\", routes=[{routes}], scheduler=\"min-rtt\", start=\"{start} s\""
            );
            let name = format!("two of {paths} paths, {} s apart", start - 2);
            all.push(Network {
                seeds: 5,
                paths,
                yardstick: Yardstick::Other(other),
                ..Network::new(name, "two", format!("sbd/sb-{paths}"))
            });
        }
    }
    all
}

/// The bottleneck shifts between a shared one and one for each path; the first phase is the start.
fn shifting() -> Vec<Network> {
    let (apart, shared) = (vec!["tcp1", "tcp2"], vec!["tcp3"]);
    let phases = vec![
        (50, 80, "apart", apart.clone()),
        (80, 110, "shared", shared.clone()),
        (110, 140, "apart", apart),
        (140, 170, "shared", shared),
    ];
    vec![Network {
        seeds: 10,
        groups: &GROUPS[1..],
        rivals: ["tcp1", "tcp2", "tcp3"].map(String::from).to_vec(),
        backgrounds: &["0.", "1."],
        phases,
        ..Network::new("shifting-30", "shifting", "sbd/shifting-30")
    }]
}

/// Those of a table: in the least form the first.
pub fn of_table(table: &str, form: Form) -> Vec<Network> {
    let mut all = match table {
        "shared" => shared(),
        "one" => one(),
        "many" => many(),
        "sweep" => sweep(),
        "apart" => apart(),
        "two" => two(),
        _ => shifting(),
    };
    all.truncate(form.pick(usize::MAX, usize::MAX, 1));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sweep_spans_what_is_asked() {
        let sweep = sweep();
        for paths in [2, 3, 4, 5, 8] {
            assert!(sweep.iter().any(|one| one.paths == paths), "{paths} paths");
        }
        for rate in RATES_MBPS {
            assert!(
                sweep.iter().any(|one| one.name.starts_with(&format!("{rate} Mbit/s"))),
                "{rate} Mbit/s"
            );
        }
    }

    #[test]
    fn every_network_is_a_scenario_with_each_kind_of_rivals() {
        for table in ["shared", "one", "many", "sweep", "apart", "two", "shifting"] {
            for network in of_table(table, Form::Whole) {
                for (kind, _) in network.controls() {
                    let set = network.with_rivals(kind).into_iter().map(|one| {
                        let (field, value) = one.split_once('=').unwrap();
                        (field.to_owned(), value.to_owned())
                    });
                    let edits = narrows_lab::Edits { set: set.collect(), traces: Vec::new() };
                    let loaded = narrows_lab::load(&network.scenario, &edits);
                    loaded.unwrap_or_else(|error| panic!("{}, {kind}: {error}", network.name));
                }
            }
        }
    }

    #[test]
    fn rivals_are_of_the_laws_kind_and_the_detector_is_for_those_judged() {
        let e1 = shared().into_iter().find(|one| one.name == "tr/e1").unwrap();
        let cubic = ["flows.tcp1.cc=cubic", "background.0.cc=cubic", "background.1.cc=cubic"];
        assert_eq!(e1.with_rivals("cubic"), cubic);
        assert!(e1.with_rivals("reno").is_empty());
        let controls: Vec<_> = e1.controls().collect();
        assert_eq!(controls[0].1, ["greno", "lia", "olia", "greno+xcorr"]);
        assert_eq!(controls[1].1, ["gcubic", "gcubic+xcorr"]);
        let shifting: Vec<_> = shifting()[0].controls().collect();
        assert_eq!(shifting[0].1, ["greno+xcorr", "lia+xcorr", "olia+xcorr"]);
    }
}
