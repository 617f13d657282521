//! The cells of `design.toml`: networks that detectors are compared on.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

/// The design, as its file has it.
#[derive(Deserialize)]
pub struct Design {
    pub seeds: Seeds,
    time: Time,
    pub open: Open,
    pub closed: Closed,
    factor: Vec<Factor>,
    pub drawn: Vec<Drawn>,
}

#[derive(Deserialize)]
pub struct Seeds {
    pub first: u64,
    pub full: u64,
    pub quick: u64,
}

#[derive(Deserialize)]
struct Time {
    warmup: String,
    duration: String,
}

#[derive(Deserialize)]
pub struct Open {
    law: String,
    pub controls: BTreeMap<String, Vec<String>>,
    passive: Vec<String>,
}

#[derive(Deserialize)]
pub struct Closed {
    pub seeds: u64,
    pub signal: String,
    pub controls: Vec<String>,
}

#[derive(Deserialize)]
struct Factor {
    name: String,
    level: Vec<Level>,
}

/// A level of a factor; several of them combined are one, where the last that says something holds.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Level {
    name: String,
    set: Vec<String>,
    separate: Option<Side>,
    shared: Option<Side>,
    networks: BTreeMap<String, String>,
    paths: Option<usize>,
    rate_mbps: Option<f64>,
    queue_bdp: Option<f64>,
    rtt_ms: Option<f64>,
    law: Option<String>,
    traces: BTreeMap<String, BTreeMap<String, String>>,
    passive: Option<Vec<String>>,
    time: Option<[String; 2]>,
    closed: Option<bool>,
}

/// What a level has on one side: settings, or `false` for no such side.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Side {
    Lacks(#[expect(dead_code, reason = "it is only ever false")] bool),
    Settings(Vec<String>),
}

/// Levels that were drawn.
#[derive(Deserialize)]
pub struct Drawn {
    pub name: String,
    pub side: String,
    pub levels: Vec<String>,
}

/// A network that detectors are compared on.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub name: String,
    pub factor: String,
    pub side: String,
    pub scenario: String,
    pub settings: Vec<String>,
    /// Recordings by link.
    pub traces: Vec<(String, String)>,
    pub law: String,
    pub passive: Vec<String>,
    pub closed: bool,
}

/// The folder of recordings, if there is one.
pub fn recordings() -> Option<PathBuf> {
    std::env::var_os("NARROWS_TEST_DATA").map(PathBuf::from)
}

impl Cell {
    /// The recordings as the folder has them; none without a folder.
    pub fn recorded(&self) -> Option<Vec<(String, PathBuf)>> {
        if self.traces.is_empty() {
            return Some(Vec::new());
        }
        let folder = recordings()?.join("traces");
        Some(self.traces.iter().map(|(link, file)| (link.clone(), folder.join(file))).collect())
    }
}

/// The centre: 35 packets are a bandwidth-delay product of 20 Mbit/s and 20 ms.
const RATE_MBPS: f64 = 20.0;
const QUEUE_PACKETS: f64 = 35.0;
const RTT_MS: f64 = 20.0;
const LEAST_QUEUE: f64 = 10.0;
/// The background of sbd/base: packets/s of a TCP flow, and of a UDP flow in its bursts.
const TCP_PPS: f64 = 150.0;
const UDP_PPS: [f64; 2] = [50.0, 150.0];

const SIDES: [&str; 2] = ["separate", "shared"];

/// The setting once for each bottleneck, rival or path, if its field says so by a star.
fn numbered(setting: &str, paths: usize, bottlenecks: usize) -> Vec<String> {
    let field = setting.split('=').next().unwrap_or_default();
    let stars = ["bottleneck*", "tcp*", "path*"].map(|star| field.find(star));
    let first = stars.iter().flatten().min();
    let count = match first {
        None => return vec![setting.to_owned()],
        Some(_) if stars[2] == first.copied() => paths,
        Some(_) => bottlenecks,
    };
    (1..=count).map(|number| setting.replace('*', &number.to_string())).collect()
}

/// The scenario of so many paths.
fn network(side: &str, paths: usize) -> String {
    let kind = if side == "separate" { "nsb" } else { "sb" };
    format!("{}/{kind}-{paths}", if paths <= 5 { "sbd" } else { "detection" })
}

/// Rate and queue of all bottlenecks, and packet rates of a background with as many flows as at the centre.
fn link_settings(side: &str, rate: f64, bdp: f64) -> Vec<String> {
    let scale = rate / RATE_MBPS;
    // Half to even, as the tables were first made.
    let queue = LEAST_QUEUE.max((QUEUE_PACKETS * scale * bdp).round_ties_even());
    let generator = if side == "separate" { "disjoint" } else { "dumbbell" };
    let mut settings = vec![
        format!("generator.{generator}.rate={rate} Mbit/s"),
        format!("generator.{generator}.queue={queue} packets"),
    ];
    if scale != 1.0 {
        let [low, high] = UDP_PPS.map(|pps| format!("{} packets/s", pps * scale));
        settings.push(format!("background.tcp_rate={} packets/s", TCP_PPS * scale));
        settings.push(format!("background.udp_rate=['{low}', '{high}']"));
    }
    settings
}

/// Base RTTs, evenly from the centre's to `most` ms.
fn spread_rtts(paths: usize, most: f64) -> Vec<String> {
    let step = (most - RTT_MS) / (paths - 1) as f64;
    let rtt =
        |path: usize| format!("routes.path{}.rtt={} ms", path + 1, RTT_MS + path as f64 * step);
    (1..paths).map(rtt).collect()
}

impl Level {
    /// Several levels as one.
    fn merged(levels: &[Level]) -> Level {
        let mut all = Level::default();
        for level in levels {
            let Level {
                name,
                networks,
                paths,
                rate_mbps,
                queue_bdp,
                rtt_ms,
                law,
                traces,
                passive,
                time,
                closed,
                ..
            } = level.clone();
            all.name = name;
            all.networks.extend(networks);
            all.traces.extend(traces);
            all.paths = paths.or(all.paths);
            all.rate_mbps = rate_mbps.or(all.rate_mbps);
            all.queue_bdp = queue_bdp.or(all.queue_bdp);
            all.rtt_ms = rtt_ms.or(all.rtt_ms);
            all.law = law.or(all.law);
            all.passive = passive.or(all.passive);
            all.time = time.or(all.time);
            all.closed = closed.or(all.closed);
        }
        all
    }

    fn side(&self, side: &str) -> Option<&Side> {
        match side {
            "separate" => self.separate.as_ref(),
            "shared" => self.shared.as_ref(),
            _ => None,
        }
    }
}

impl Design {
    /// The one that is built in.
    pub fn read() -> Design {
        toml::from_str(include_str!("design.toml")).expect("the design is TOML of this form")
    }

    /// The cell of one level, or of levels of several factors; none if a level has no such side.
    fn cell(&self, factor: &str, side: &str, levels: &[Level]) -> Option<Cell> {
        if levels.iter().any(|level| matches!(level.side(side), Some(Side::Lacks(_)))) {
            return None;
        }
        let merged = Level::merged(levels);
        let paths = merged.paths.unwrap_or(2);
        let [warmup, duration] =
            merged.time.clone().unwrap_or([self.time.warmup.clone(), self.time.duration.clone()]);
        let mut settings = vec![format!("warmup={warmup}"), format!("duration={duration}")];
        if merged.rate_mbps.is_some() || merged.queue_bdp.is_some() {
            let (rate, bdp) =
                (merged.rate_mbps.unwrap_or(RATE_MBPS), merged.queue_bdp.unwrap_or(1.0));
            settings.extend(link_settings(side, rate, bdp));
        }
        settings.extend(merged.rtt_ms.iter().flat_map(|&most| spread_rtts(paths, most)));
        let bottlenecks = if side == "separate" { paths } else { 1 };
        for level in levels {
            let of_side = match level.side(side) {
                Some(Side::Settings(settings)) => &settings[..],
                _ => &[],
            };
            let all = level.set.iter().chain(of_side);
            settings.extend(all.flat_map(|setting| numbered(setting, paths, bottlenecks)));
        }
        let scenario = merged.networks.get(side).cloned();
        Some(Cell {
            name: format!("{side}, {}", merged.name),
            factor: factor.into(),
            side: side.into(),
            scenario: scenario.unwrap_or_else(|| network(side, paths)),
            settings,
            traces: merged.traces.get(side).cloned().unwrap_or_default().into_iter().collect(),
            law: merged.law.unwrap_or_else(|| self.open.law.clone()),
            passive: merged.passive.unwrap_or_else(|| self.open.passive.clone()),
            closed: merged.closed.unwrap_or(true),
        })
    }

    /// All cells, in the order of the design.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for factor in &self.factor {
            for level in &factor.level {
                let own: Vec<&str> = level.networks.keys().map(String::as_str).collect();
                let sides = if own.is_empty() { &SIDES[..] } else { &own };
                let of = |side: &&str| self.cell(&factor.name, side, std::slice::from_ref(level));
                cells.extend(sides.iter().filter_map(of));
            }
        }
        cells.extend(self.drawn.iter().filter_map(|drawn| self.combined(drawn, &drawn.side)));
        cells
    }

    /// Drawn levels on a side.
    pub fn combined(&self, drawn: &Drawn, side: &str) -> Option<Cell> {
        let known = || self.factor.iter().flat_map(|factor| &factor.level);
        let level = |name: &String| {
            known().find(|level| level.name == *name).expect("a level of the design").clone()
        };
        let mut levels: Vec<Level> = drawn.levels.iter().map(level).collect();
        levels.push(Level { name: drawn.name.clone(), closed: Some(false), ..Level::default() });
        self.cell("drawn", side, &levels)
    }

    /// The drawn networks as separate and as shared ones, where all their levels have both.
    pub fn twins(&self) -> Vec<[Cell; 2]> {
        let both = |drawn: &Drawn| {
            Some([self.combined(drawn, SIDES[0])?, self.combined(drawn, SIDES[1])?])
        };
        self.drawn.iter().filter_map(both).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(name: &str) -> Cell {
        let found = Design::read().cells().into_iter().find(|cell| cell.name == name);
        found.unwrap_or_else(|| panic!("{name}"))
    }

    #[test]
    fn there_are_135_each_of_its_own_name_and_all_are_scenarios() {
        let cells = Design::read().cells();
        assert_eq!(cells.len(), 135);
        for (at, cell) in cells.iter().enumerate() {
            assert!(cells[..at].iter().all(|other| other.name != cell.name), "{}", cell.name);
            let set = cell.settings.iter().map(|one| one.split_once('=').unwrap());
            let set = set.map(|(field, value)| (field.to_owned(), value.to_owned())).collect();
            let edits = narrows_lab::Edits { set, traces: Vec::new() };
            narrows_lab::load(&cell.scenario, &edits)
                .unwrap_or_else(|error| panic!("{}: {error}", cell.name));
        }
        assert_eq!(Design::read().twins().len(), 30);
    }

    #[test]
    fn one_bottleneck_takes_a_setting_once_and_each_path_takes_its_own() {
        assert_eq!(numbered("links.bottleneck*.aqm=red", 3, 1), ["links.bottleneck1.aqm=red"]);
        let back = ["routes.path1.back=['return1']", "routes.path2.back=['return2']"];
        assert_eq!(numbered("routes.path*.back=['return*']", 2, 1), back);
        assert_eq!(numbered("tcp.pacing=true", 2, 2), ["tcp.pacing=true"]);
    }

    #[test]
    fn a_rate_brings_its_queue_and_background() {
        let settings = cell("shared, 100 Mbit/s").settings;
        for expected in [
            "generator.dumbbell.queue=175 packets",
            "background.udp_rate=['250 packets/s', '750 packets/s']",
            "duration=50 s",
        ] {
            assert!(settings.iter().any(|one| one == expected), "{expected}: {settings:?}");
        }
        let quarter = cell("separate, 1/4 BDP").settings;
        assert!(
            quarter.iter().any(|one| one == "generator.disjoint.queue=10 packets"),
            "{quarter:?}"
        );
    }

    #[test]
    fn levels_of_several_factors_are_combined() {
        // 3 paths, CUBIC background, Wi-Fi and others.
        let drawn = cell("separate, drawn 14");
        assert_eq!((&*drawn.scenario, &*drawn.law, drawn.closed), ("sbd/nsb-3", "reno", false));
        for expected in ["routes.path3.rtt=100 ms", "links.bottleneck3.wifi={}", "tcp.pacing=true"]
        {
            assert!(
                drawn.settings.iter().any(|one| one == expected),
                "{expected}: {:?}",
                drawn.settings
            );
        }
        assert_eq!(spread_rtts(3, 100.0), ["routes.path2.rtt=60 ms", "routes.path3.rtt=100 ms"]);
    }

    #[test]
    fn a_level_may_lack_a_side() {
        cell("separate, 20 and 5 Mbit/s");
        let cells = Design::read().cells();
        assert!(cells.iter().all(|cell| cell.name != "shared, 20 and 5 Mbit/s"));
    }
}
