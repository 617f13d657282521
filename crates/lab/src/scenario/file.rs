//! A scenario as its TOML file writes it. `scenarios/README.md` describes every field for users.

use std::borrow::Cow;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::detection::DetectionFile;
use super::either::{Either, Kinds, OneOf, OneOrEach, Tables};
use super::events::EventFile;
use super::link::{Aqm, Bursts, JitterFile, PolicerFile, ReorderFile, WifiFile};
use super::tcp::TcpFile;
use super::trace::{TraceFormat, Traces};
use crate::units::{BitRate, Bytes, PacketRate, Packets, Queue, Share, Time};

/// The whole file.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Short name, as results show it: letters, digits, `-`, `_`, `.` and `/`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Where the numbers come from.
    pub source: String,
    /// Time that no metric counts. Example: `"20 s"`.
    pub warmup: Time,
    /// Time that is analysed after it. Example: `"100 s"`.
    pub duration: Time,
    /// Largest random delay of a packet in its sender, in packet times of the route's slowest link.
    #[serde(default = "default_jitter")]
    pub jitter: Packets,
    /// The flow under test, whose law `--cc` replaces. Example: `"mptcp"`.
    pub test: Option<String>,
    /// What all end points did then. Default: today's Linux.
    pub era: Option<Era>,
    /// Options of all end points.
    pub tcp: Option<TcpFile>,
    /// What detectors sample.
    pub detection: Option<DetectionFile>,
    /// Parameters: a table for each law and detector that has any, at the top of the file.
    #[serde(skip)]
    pub params: IndexMap<String, toml::Table>,
    /// Traces on disk that were read before.
    #[serde(skip)]
    pub kept: Traces,
    /// Makes links and routes, or a fat tree.
    pub generator: Option<OneOf<Generator>>,
    /// The links that flows share.
    #[serde(default)]
    pub links: IndexMap<String, Link>,
    /// Ways from one host to another and back.
    #[serde(default)]
    pub routes: IndexMap<String, Route>,
    /// Connections and flows.
    #[serde(default)]
    pub flows: IndexMap<String, Flow>,
    /// The traffic of others, by a fixed rule.
    pub background: Option<Tables<Background>>,
    /// LINK = "FLOW": the TCP flow to compare with at each true bottleneck. Example: `bottleneck1 =
    /// "tcp1"`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub rivals: IndexMap<String, String>,
    /// Which paths under test share a bottleneck, and from when on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// What changes during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventFile>,
    /// Published values, shown beside ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paper: Vec<Paper>,
}

/// A Linux that a paper measured.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
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
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
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
    /// A fat tree, and a flow from each host to another.
    FatTree(FatTree),
}

impl Kinds for Generator {
    const WHAT: &str = "generator";
    const NAMES: &[&str] = &["disjoint", "dumbbell", "series", "parking-lot", "mesh", "fat-tree"];
}

/// What the links and routes of a generator have in common.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Bottlenecks {
    /// Number of routes.
    pub paths: usize,
    /// Of each link.
    pub rate: BitRate,
    /// Of each link.
    pub delay: Time,
    /// Of each link.
    pub queue: Queue,
    /// Base RTT of each route.
    pub rtt: Time,
}

/// Bottlenecks in series.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Links in a row.
    pub bottlenecks: usize,
    /// Number of routes.
    pub paths: usize,
    /// Of each link.
    pub rate: BitRate,
    /// Of each link.
    pub delay: Time,
    /// Of each link.
    pub queue: Queue,
    /// Base RTT of each route.
    pub rtt: Time,
}

/// A long route over bottlenecks that have cross traffic of their own.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ParkingLot {
    /// Links in a row.
    pub bottlenecks: usize,
    /// Of each link.
    pub rate: BitRate,
    /// Of each link.
    pub delay: Time,
    /// Of each link.
    pub queue: Queue,
    /// Base RTT of each route.
    pub rtt: Time,
}

/// A client with several providers and a server with several: each pair is a path.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Mesh {
    /// Providers of the client.
    pub clients: usize,
    /// Providers of the server.
    pub servers: usize,
    /// Of each link.
    pub rate: BitRate,
    /// Of each link.
    pub delay: Time,
    /// Of each link.
    pub queue: Queue,
    /// Base RTT of each route.
    pub rtt: Time,
}

/// A fat tree of switches with `k` ports, and a flow from each host; `seed` draws the traffic and its ways.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    /// Ports of a switch; there are k^3/4 hosts.
    pub k: u32,
    /// Of each link.
    pub rate: BitRate,
    /// Of each link.
    pub delay: Time,
    /// Of each link.
    pub queue: Queue,
    /// Of the links of core switches. Default: as of all.
    pub core: Option<Core>,
    /// MTU of all links. Default: `"1500 B"`.
    pub mtu: Option<Bytes>,
    /// To whom each host sends. Default: `"permutation"`.
    #[serde(default)]
    pub destinations: Destinations,
    /// What each host sends.
    #[serde(default)]
    pub source: OneOf<Source>,
    /// Congestion control of all flows.
    pub cc: String,
    /// Of each MPTCP connection, 2 to 8; 1: TCP.
    pub subflows: usize,
    /// How a subflow gets one of the shortest paths.
    pub routing: Routing,
    /// Draws the traffic and its routes, whatever the seed of the run.
    pub seed: u64,
}

/// The links between aggregation and core switches.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    /// Of each link.
    pub rate: BitRate,
    /// Of each link.
    pub queue: Queue,
}

/// To whom each host sends.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Destinations {
    /// To one other, and each is sent to by one.
    #[default]
    Permutation,
    /// To one of all others, but no two to each other.
    Random,
}

/// How a subflow gets one of the shortest paths.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Routing {
    /// The switches' hash gives one, there and back.
    Ecmp,
    /// One at random, none twice before all are taken, and back by the same switches.
    Random,
}

/// A link; with a generator, what is given here replaces what it made.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its rate, unless it has a trace.
    pub rate: Option<BitRate>,
    /// A recorded trace in place of a rate: a file beside this one or a shipped one, plain or gzip.
    /// Example: `"phone/lte.trace"`.
    pub trace: Option<String>,
    /// The columns of the trace: `ms`, the time of each packet of 1504 B as Mahimahi has it (or `s`,
    /// `us`); `s Mbit/s`, a time and the rate from then on; or `Mbit/s`, a rate for each step.
    /// Default: `"ms"`.
    pub format: Option<TraceFormat>,
    /// How long each line of a trace of rates lasts. Default: `"1 s"`.
    pub step: Option<Time>,
    /// Propagation delay. Default: `"0 s"`.
    pub delay: Option<Time>,
    /// Largest random delay besides, if uniform, or another distribution, or a recording; no packet
    /// overtakes another.
    #[serde(default)]
    pub jitter: Either<Time, JitterFile>,
    /// Random loss, or bursts. Default: none.
    pub loss: Option<Either<Share, Bursts>>,
    /// What its queue holds at most. Default: unlimited.
    pub queue: Option<Queue>,
    /// Its queue discipline.
    #[serde(default)]
    pub aqm: OneOf<Aqm>,
    /// The discipline marks instead of dropping where the end points understand it.
    #[serde(default)]
    pub ecn: bool,
    /// A token bucket at the entry drops what exceeds it. Default: none.
    pub policer: Option<PolicerFile>,
    /// Some packets are overtaken. Default: none.
    pub reorder: Option<ReorderFile>,
    /// Access and aggregation as on Wi-Fi; needs a constant rate, that of the radio. Default: none.
    pub wifi: Option<WifiFile>,
    /// Largest packet. Default: `"1500 B"`.
    pub mtu: Option<Bytes>,
}

/// A way from one host to another and back.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Links of the data, in order. Needed, unless a generator makes the route. Example: `["bottleneck1"]`.
    pub links: Option<Vec<String>>,
    /// Links of the acknowledgements.
    #[serde(default)]
    pub back: Vec<String>,
    /// Base RTT: what the links do not delay is split between the sender's access and the return
    /// path. Needed, unless a generator makes the route.
    pub rtt: Option<Time>,
    /// A middlebox on it removes the options of MPTCP.
    #[serde(default)]
    pub strips_mptcp: bool,
}

/// A connection or flow.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// What carries it.
    pub kind: Kind,
    /// One; for mptcp up to 8, the first opens the connection. Example: `["path1", "path2"]`.
    pub routes: Vec<String>,
    /// Congestion control of tcp and mptcp, LAW[+DETECTOR][+START] (`narrows list controls`).
    /// Example: `"olia"`.
    pub cc: Option<String>,
    /// What its application sends.
    #[serde(default)]
    pub source: OneOf<Source>,
    /// When it begins. Default: `"0 s"`.
    pub start: Option<Time>,
    /// When it sends, in place of a start. Example: `[["1 s", "5 s"]]`.
    pub active: Option<Vec<(Time, Time)>>,
    /// Default: 2 x sum of the paths' rates x largest RTT with full queues; BBR: three windows, as they lie in memory, if that is more.
    pub send_buffer: Option<Bytes>,
    /// The same at the receiver.
    pub recv_buffer: Option<Bytes>,
    /// Of mptcp. Default: `"linux"`.
    pub scheduler: Option<Scheduler>,
    /// Of mptcp: a subflow on each route, or N on the only one. Default: `"fullmesh"`.
    pub path_manager: Option<Either<Fullmesh, Ndiffports>>,
    /// Routes of mptcp that carry data only while no other can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backup: Vec<String>,
    /// Of mptcp: a path that does not pay becomes a backup, as `narrows kernel advise` makes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub advice: bool,
    /// Options of its end points.
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
            advice: false,
            tcp: None,
        }
    }
}

/// What carries a flow.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Tcp,
    Mptcp,
    Udp,
}

/// One subflow on each route.
#[derive(Clone, Copy, Debug)]
pub struct Fullmesh;

impl JsonSchema for Fullmesh {
    fn schema_name() -> Cow<'static, str> {
        "Fullmesh".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": "fullmesh" })
    }
}

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
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Ndiffports {
    /// Number of subflows.
    pub ndiffports: usize,
}

/// The scheduler of an MPTCP connection.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    Linux,
    MinRtt,
    #[serde(rename = "mptcp-v0.89")]
    Mptcp089,
    #[serde(rename = "mptcp-v0.89-reinject")]
    Mptcp089Reinject,
    RoundRobin,
    Redundant,
}

/// What an application sends.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// As much as the network takes.
    Greedy {},
    File(FileSource),
    Rate(RateSource),
    OnOff(OnOffSource),
    Messages(MessagesSource),
    Nada(MediaSource),
    Scream(MediaSource),
}

impl Kinds for Source {
    const WHAT: &str = "source";
    const NAMES: &[&str] = &["greedy", "file", "rate", "onoff", "messages", "nada", "scream"];
}

impl Default for OneOf<Source> {
    fn default() -> Self {
        OneOf(Source::Greedy {})
    }
}

/// A file of a given size.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileSource {
    /// Its size.
    pub size: Bytes,
}

/// Writes with exponential gaps.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RateSource {
    /// Mean rate.
    pub mean: PacketRate,
    /// Size of a packet.
    pub size: OneOf<Size>,
}

/// Pareto bursts of evenly spaced writes, exponential silences.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OnOffSource {
    /// Rate during bursts.
    pub rate: PacketRate,
    /// Size of a packet.
    pub size: OneOf<Size>,
    /// Mean duration of a burst.
    pub on: Time,
    /// Shape of the Pareto distribution of bursts, above 1.
    pub shape: f64,
    /// Mean silence.
    pub off: Time,
}

/// Messages whose latency is measured: from the write to the delivery of the last byte, in order.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MessagesSource {
    /// Size of each.
    pub size: Bytes,
    /// From one to the next.
    pub interval: Time,
    /// Whether all intervals are the same, or random with that mean, of a Poisson process.
    #[serde(default)]
    pub gaps: Gaps,
}

/// Evenly spaced packets of media whose rate adapts by NADA (RFC 8698) or SCReAM (RFC 8298) to reports; of udp only.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct MediaSource {
    /// The encoder's least rate, with headers.
    pub min: BitRate,
    /// Its largest.
    pub max: BitRate,
    /// Size of a packet, with headers.
    pub size: Bytes,
    /// Whether its packets are ECN-capable.
    pub ecn: bool,
}

impl Default for MediaSource {
    /// RFC 8698, section 4.1; RFC 8298 gives no rates. The size is our choice for NADA, the MSS of SCReAM.
    fn default() -> Self {
        MediaSource {
            min: BitRate(150_000),
            max: BitRate(1_500_000),
            size: Bytes(1000),
            ecn: false,
        }
    }
}

/// Intervals between messages.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Gaps {
    #[default]
    Constant,
    Poisson,
}

/// A distribution of sizes.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
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
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExponentialSize {
    /// Its mean before it is cut off.
    pub mean: Bytes,
    /// Least.
    pub min: Bytes,
    /// Most.
    pub max: Bytes,
}

/// The traffic of others on some links, by a fixed rule.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// The links that it loads. Example: `["bottleneck1"]`.
    pub links: Vec<String>,
    /// When it sends. Default: always.
    pub active: Option<Vec<(Time, Time)>>,
    /// Range that each flow draws its base RTT from.
    pub rtt: [Time; 2],
    /// Law of its TCP. Default: `"reno"`.
    pub cc: Option<String>,
    /// Greedy TCP flows on each link. Default: none.
    pub greedy: Option<Vec<usize>>,
    /// Share of each link's rate that rate-limited TCP and on/off UDP offer, half each; the fields
    /// below are needed with it.
    pub offered: Option<OneOrEach<Share>>,
    /// Size of a packet.
    pub size: Option<OneOf<Size>>,
    /// Of each rate-limited TCP.
    pub tcp_rate: Option<PacketRate>,
    /// Range of the rate of a UDP flow during bursts.
    pub udp_rate: Option<[PacketRate; 2]>,
    /// Range of the mean of both burst and silence.
    pub udp_period: Option<[Time; 2]>,
    /// Shape of the Pareto distribution of bursts, above 1.
    pub udp_shape: Option<f64>,
}

/// From `start` on, the paths of the connection under test meet in these groups.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// The first at `"0 s"`.
    pub start: Time,
    /// Paths that share a bottleneck, each path in one group. Example: `[["path1", "path2"]]`.
    pub groups: Vec<Vec<String>>,
}

/// Published values: of `ratio_to_tcp`, of `accuracy`, or of both.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The controls it holds for. Example: `["lia", "olia"]`.
    pub cc: Vec<String>,
    /// Of `ratio_to_tcp`.
    pub ratio_to_tcp: Option<f64>,
    /// Share of right decisions, 0 to 1.
    pub accuracy: Option<f64>,
    /// How the ratio is meant.
    #[serde(default)]
    pub bound: Bound,
    /// Table, figure or sentence it stands in.
    pub place: String,
}

/// How a published value is meant.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, Serialize, PartialEq, Eq)]
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
