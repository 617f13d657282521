//! A scenario as its TOML file writes it. `scenarios/README.md` describes every field for users.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::detection::DetectionFile;
use super::either::{Either, Kinds, OneOf, OneOrEach, Tables};
use super::events::EventFile;
use super::link::{Aqm, Bursts, PolicerFile, ReorderFile, WifiFile};
use super::tcp::TcpFile;
use crate::units::{BitRate, Bytes, PacketRate, Packets, Queue, Share, Time};

/// The whole file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    pub name: String,
    pub title: String,
    pub source: String,
    pub warmup: Time,
    pub duration: Time,
    #[serde(default = "default_jitter")]
    pub jitter: Packets,
    pub test: Option<String>,
    pub era: Option<Era>,
    pub tcp: Option<TcpFile>,
    pub detection: Option<DetectionFile>,
    /// Parameters: a table for each law and detector that has any, at the top of the file.
    #[serde(skip)]
    pub params: IndexMap<String, toml::Table>,
    pub generator: Option<OneOf<Generator>>,
    #[serde(default)]
    pub links: IndexMap<String, Link>,
    #[serde(default)]
    pub routes: IndexMap<String, Route>,
    #[serde(default)]
    pub flows: IndexMap<String, Flow>,
    pub background: Option<Tables<Background>>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub rivals: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paper: Vec<Paper>,
}

/// A Linux that a paper measured.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub enum Era {
    /// Of March 2014, with out-of-tree MPTCP v0.89; `era.rs` has its rules.
    #[serde(rename = "linux-3.14")]
    Linux314,
}

/// Three packet times: enough to break the phase effects of deterministic timing.
fn default_jitter() -> Packets {
    Packets(3.0)
}

/// A topology that is made rather than listed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Generator {
    /// Links `bottleneck1..n` and routes `path1..n`, one over each.
    Disjoint(Bottlenecks),
    /// One link `bottleneck1` and routes `path1..n`, all over it.
    Dumbbell(Bottlenecks),
    /// Links `bottleneck1..n` and routes `path1..m`, each over all of them.
    Series(Series),
    /// Links `bottleneck1..n`, a route `long` over all and routes `cross1..n`, one over each.
    ParkingLot(ParkingLot),
    /// Links `client1..m` and `server1..n`, and a route `path1-1..m-n` over each pair.
    Mesh(Mesh),
    /// A fat tree, and a flow from each host to one other.
    FatTree(FatTree),
}

impl Kinds for Generator {
    const WHAT: &str = "generator";
    const NAMES: &[&str] = &["disjoint", "dumbbell", "series", "parking-lot", "mesh", "fat-tree"];
}

/// What the links and routes of a [`Generator`] have in common.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Bottlenecks {
    pub paths: usize,
    pub rate: BitRate,
    pub delay: Time,
    pub queue: Queue,
    pub rtt: Time,
}

/// Bottlenecks in series.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    pub bottlenecks: usize,
    pub paths: usize,
    pub rate: BitRate,
    pub delay: Time,
    pub queue: Queue,
    pub rtt: Time,
}

/// A long route over bottlenecks that have cross traffic of their own.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ParkingLot {
    pub bottlenecks: usize,
    pub rate: BitRate,
    pub delay: Time,
    pub queue: Queue,
    pub rtt: Time,
}

/// A client with several providers and a server with several: each pair is a path.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Mesh {
    pub clients: usize,
    pub servers: usize,
    pub rate: BitRate,
    pub delay: Time,
    pub queue: Queue,
    pub rtt: Time,
}

/// A fat tree of switches with `k` ports; `seed` draws the traffic and its ways.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    pub k: u32,
    pub rate: BitRate,
    pub delay: Time,
    pub queue: Queue,
    pub mtu: Option<Bytes>,
    pub cc: String,
    pub subflows: usize,
    pub routing: Routing,
    pub seed: u64,
}

/// How a subflow gets one of the shortest paths.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Routing {
    /// The switches' hash gives one, there and back.
    Ecmp,
    /// One at random, none twice before all are taken, and back by the same switches.
    Random,
}

/// A link; with a generator, what is given here replaces what it made.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub rate: Option<BitRate>,
    pub trace: Option<String>,
    pub delay: Option<Time>,
    #[serde(default)]
    pub jitter: Time,
    pub loss: Option<Either<Share, Bursts>>,
    pub queue: Option<Queue>,
    #[serde(default)]
    pub aqm: OneOf<Aqm>,
    #[serde(default)]
    pub ecn: bool,
    pub policer: Option<PolicerFile>,
    pub reorder: Option<ReorderFile>,
    pub wifi: Option<WifiFile>,
    pub mtu: Option<Bytes>,
}

/// A way from one host to another and back.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    pub links: Option<Vec<String>>,
    #[serde(default)]
    pub back: Vec<String>,
    pub rtt: Option<Time>,
    #[serde(default)]
    pub strips_mptcp: bool,
}

/// A connection or flow.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    pub kind: Kind,
    pub routes: Vec<String>,
    pub cc: Option<String>,
    #[serde(default)]
    pub source: OneOf<Source>,
    pub start: Option<Time>,
    pub active: Option<Vec<(Time, Time)>>,
    pub send_buffer: Option<Bytes>,
    pub recv_buffer: Option<Bytes>,
    pub scheduler: Option<Scheduler>,
    pub path_manager: Option<Either<Fullmesh, Ndiffports>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backup: Vec<String>,
    pub tcp: Option<TcpFile>,
}

impl Flow {
    /// A flow with the defaults.
    pub fn new(kind: Kind, routes: Vec<String>) -> Flow {
        Flow {
            kind,
            routes,
            cc: None,
            source: OneOf::default(),
            start: None,
            active: None,
            send_buffer: None,
            recv_buffer: None,
            scheduler: None,
            path_manager: None,
            backup: Vec::new(),
            tcp: None,
        }
    }
}

/// What carries a flow.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Tcp,
    Mptcp,
    Udp,
}

/// One subflow on each route.
#[derive(Clone, Copy, Debug)]
pub struct Fullmesh;

impl Serialize for Fullmesh {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("fullmesh")
    }
}

impl std::str::FromStr for Fullmesh {
    type Err = String;

    fn from_str(name: &str) -> Result<Fullmesh, String> {
        match name {
            "fullmesh" => Ok(Fullmesh),
            _ => Err(format!("expected \"fullmesh\" or {{ ndiffports = N }}, found \"{name}\"")),
        }
    }
}

/// So many subflows on the only route.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Ndiffports {
    pub ndiffports: usize,
}

/// The scheduler of an MPTCP connection.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    Linux,
    MinRtt,
    RoundRobin,
    Redundant,
}

/// What an application sends.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// As much as the network takes.
    Greedy {},
    File(FileSource),
    Rate(RateSource),
    OnOff(OnOffSource),
}

impl Kinds for Source {
    const WHAT: &str = "source";
    const NAMES: &[&str] = &["greedy", "file", "rate", "onoff"];
}

impl Default for OneOf<Source> {
    fn default() -> Self {
        OneOf(Source::Greedy {})
    }
}

/// A file of a given size.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileSource {
    pub size: Bytes,
}

/// Writes with exponential gaps.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RateSource {
    pub mean: PacketRate,
    pub size: OneOf<Size>,
}

/// Pareto bursts of evenly spaced writes, exponential silences.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OnOffSource {
    pub rate: PacketRate,
    pub size: OneOf<Size>,
    pub on: Time,
    pub shape: f64,
    pub off: Time,
}

/// A distribution of sizes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    Constant(Bytes),
    Uniform([Bytes; 2]),
    Exponential(ExponentialSize),
}

impl Kinds for Size {
    const WHAT: &str = "distribution of sizes";
    const NAMES: &[&str] = &["constant", "uniform", "exponential"];
}

/// Exponential, cut off at both ends.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExponentialSize {
    pub mean: Bytes,
    pub min: Bytes,
    pub max: Bytes,
}

/// The traffic of others on some links; `background.rs` makes it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    pub links: Vec<String>,
    pub active: Option<Vec<(Time, Time)>>,
    pub rtt: [Time; 2],
    pub cc: Option<String>,
    pub greedy: Option<Vec<usize>>,
    /// What follows describes this load, and is needed where there is one.
    pub offered: Option<OneOrEach<Share>>,
    pub size: Option<OneOf<Size>>,
    pub tcp_rate: Option<PacketRate>,
    pub udp_rate: Option<[PacketRate; 2]>,
    pub udp_period: Option<[Time; 2]>,
    pub udp_shape: Option<f64>,
}

/// From `start` on, the paths of the connection under test meet in these groups.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    pub start: Time,
    pub groups: Vec<Vec<String>>,
}

/// A published value of `ratio_to_tcp`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    pub cc: Vec<String>,
    pub ratio_to_tcp: f64,
    #[serde(default)]
    pub bound: Bound,
    pub place: String,
}

/// How a published value is meant.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    #[default]
    /// About this.
    About,
    /// Less than this.
    Below,
    /// More than this.
    Above,
}
