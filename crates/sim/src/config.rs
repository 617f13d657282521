//! Configuration of connections and flows.

use narrows_laws::{Control, Params};
use narrows_net::{Nanos, RouteId};
use narrows_traffic::{PathManager, Scheduler, Source, TcpConfig};

use crate::passive::PassiveDetector;

/// A connection: plain TCP over one path, or MPTCP over one to eight.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// Name, for messages and results.
    pub name: String,
    /// MPTCP (RFC 8684) if set, plain TCP (one path) otherwise.
    pub multipath: bool,
    /// The paths. The first carries the connection's handshake.
    pub paths: Vec<PathConfig>,
    /// Which subflows join; without meaning for plain TCP.
    pub path_manager: PathManager,
    /// Congestion control: law, detector and slow start.
    pub control: Control,
    /// Parameters of its detector.
    pub params: Params,
    /// Detectors whose findings nothing follows.
    pub passive: Vec<PassiveDetector>,
    /// Which subflow sends the next segment; without meaning for plain TCP.
    pub scheduler: Scheduler,
    /// What the TCP of both ends does.
    pub tcp: TcpConfig,
    /// What the sending application writes.
    pub source: Source,
    /// When the application writes: `[start, stop)` in order, not overlapping. The first start
    /// opens the connection. What was not sent at a stop waits for the next start.
    pub active: Vec<(Nanos, Nanos)>,
    /// Bytes written but not acknowledged (MPTCP: at the data level) that the sender holds at most.
    pub send_buffer: u64,
    /// Bytes that the send buffer of a model law grows to at most, as its window grows (Linux: tcp_wmem);
    /// none: it has its size from the start (SO_SNDBUF).
    pub send_buffer_max: Option<u64>,
    /// Bytes the receiver holds at most; MPTCP: shared by all subflows (RFC 8684, section 3.3.1).
    pub recv_buffer: u64,
}

impl Default for ConnectionConfig {
    /// A greedy plain TCP under Reno, active all the time, whose buffers are no limit. It has no
    /// path yet.
    fn default() -> Self {
        ConnectionConfig {
            name: String::new(),
            multipath: false,
            paths: Vec::new(),
            path_manager: PathManager::default(),
            control: Control::RENO,
            params: Params::default(),
            passive: Vec::new(),
            scheduler: Scheduler::default(),
            tcp: TcpConfig::default(),
            source: Source::Greedy,
            active: vec![(0, Nanos::MAX)],
            send_buffer: 1 << 40,
            send_buffer_max: None,
            recv_buffer: 1 << 40,
        }
    }
}

/// One path of a connection.
#[derive(Clone, Debug)]
pub struct PathConfig {
    /// Name, for messages and results.
    pub name: String,
    /// Route of data, sender to receiver. Its MTU fixes the MSS: MTU - 52 (TCP) or - 76 (MPTCP).
    pub forward: RouteId,
    /// Route of acknowledgements, receiver to sender.
    pub reverse: RouteId,
    /// Joins with the flag B: carries data only while no regular path can (RFC 8684, section
    /// 3.3.8).
    pub backup: bool,
    /// A middlebox on this path removes the options of MPTCP: the connection falls back to TCP if
    /// this is its first path (RFC 8684, section 3.7), and otherwise the join fails.
    pub strips_mptcp: bool,
}

impl PathConfig {
    /// A regular path without middleboxes.
    pub fn new(name: impl Into<String>, forward: RouteId, reverse: RouteId) -> PathConfig {
        PathConfig { name: name.into(), forward, reverse, backup: false, strips_mptcp: false }
    }
}

/// A flow of UDP packets: one way and without any control, or media whose rate adapts to feedback.
#[derive(Clone, Debug)]
pub struct UdpConfig {
    /// Name, for messages and results.
    pub name: String,
    /// The route of the packets.
    pub route: RouteId,
    /// The route of the feedback, which [`Source::Media`] needs.
    pub back: Option<RouteId>,
    /// [`Source::Rate`] or [`Source::OnOff`]: each write is a packet; or [`Source::Media`]. The others have
    /// no rate.
    pub source: Source,
    /// When the application sends: `[start, stop)` in order, not overlapping.
    pub active: Vec<(Nanos, Nanos)>,
}
