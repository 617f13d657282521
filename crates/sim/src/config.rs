//! What a simulation is told about its connections and flows.

use std::str::FromStr;

use narrows_laws::{Control, Params};
use narrows_net::{MILLISECOND, Nanos, RouteId};

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
            scheduler: Scheduler::default(),
            tcp: TcpConfig::default(),
            source: Source::Greedy,
            active: vec![(0, Nanos::MAX)],
            send_buffer: 1 << 40,
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

/// What a TCP end point does beyond what all do. The default is Linux's (without sch_fq), but that
/// segments leave and are taken one by one, as the papers on congestion control assume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// Data is ECN-capable (RFC 3168), so that links may mark it instead of dropping it.
    pub ecn: bool,
    /// Window laws are paced, at 200 % of a window per round trip in slow start and 120 % after
    /// (Linux's internal pacing, as with `SO_MAX_PACING_RATE` or sch_fq). Laws that give a rate
    /// always are.
    pub pacing: bool,
    /// Segments that leave back to back at most, as one burst: TCP segmentation offload. 1: none.
    /// 44 of 1448 bytes fill Linux's 64 kB.
    ///
    /// With pacing the burst is what Linux's tcp_tso_autosize() makes of the rate, a millisecond's
    /// worth and two at least. Without, the sender waits until a burst's worth of window, or a
    /// third of the window, has opened, as tcp_tso_should_defer(); but it looks again only when
    /// an acknowledgement or a timer comes, not when the application writes, and does not know
    /// how much that wrote.
    pub tso: u32,
    /// For how long the receiver gathers segments that arrive in order, before it acknowledges them
    /// together: an interrupt of the network card that waits for more (ethtool's rx-usecs, often
    /// 20 to 100 us), and generic receive offload, which then merges up to 64 kB. 0: not at all.
    ///
    /// The time counts from the segment with which an acknowledgement became due; the data is
    /// handed on at once. A segment out of order ends it.
    pub gro: Nanos,
    /// Resolution of timestamps, and so of the RTT that is measured by them.
    pub timestamps: Timestamps,
    /// So many millionths the receiver's clock is faster than the sender's.
    pub skew_ppm: i32,
    /// What a detector that listens hears.
    pub signal: Signal,
}

impl Default for TcpConfig {
    fn default() -> Self {
        TcpConfig {
            ecn: false,
            pacing: false,
            tso: 1,
            gro: 0,
            timestamps: Timestamps::Ms,
            skew_ppm: 0,
            signal: Signal::default(),
        }
    }
}

impl TcpConfig {
    /// What the receiver's clock shows when the sender's shows `time`.
    pub fn receiver_clock(&self, time: Nanos) -> Nanos {
        if self.skew_ppm == 0 {
            return time;
        }
        let ahead = i128::from(time) * i128::from(self.skew_ppm) / 1_000_000;
        time.saturating_add_signed(ahead as i64)
    }

    /// From a timestamp of the sender's to the one that the receiver sends `now`, us.
    pub(crate) fn elapsed_us(&self, now: Nanos, echo: Nanos) -> i32 {
        let elapsed = self.receiver_clock(now) as i64 - echo as i64;
        let us = match self.timestamps {
            Timestamps::Us => elapsed.div_euclid(1_000),
            Timestamps::Ms => elapsed.div_euclid(1_000_000) * 1_000,
        };
        us as i32
    }
}

/// What a detector that listens hears of a path, and where it listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Signal {
    /// The detector is at the receiver, as MPTCP-SBD (INFOCOM 2016, section III-B) has it: it hears
    /// the one-way delay of each segment to the microsecond, and losses as holes in the sequence.
    /// Its decision rides on the acknowledgements of all paths. The eight bytes that its timestamp
    /// takes of a segment are not modelled: what TCP's timestamp, of 1 us then, says is enough.
    ReceiverUs,
    /// At the sender, the one-way delay from TCP's timestamps of 1 us: when the receiver sent the
    /// acknowledgement (TSval), less when the newest segment that it tells of left, by the sender's own
    /// note. What it echoes (TSecr, RFC 7323, section 4) left earlier if the acknowledgement was delayed,
    /// and TSval - TSecr would contain the wait.
    #[default]
    SenderUs,
    /// The same from timestamps of 1 ms, Linux's default.
    SenderMs,
    /// At the sender, the round-trip time as it takes it, without timestamps.
    Rtt,
}

impl Signal {
    /// All of them.
    pub const ALL: [Signal; 4] =
        [Signal::ReceiverUs, Signal::SenderUs, Signal::SenderMs, Signal::Rtt];

    /// As options and results show it.
    pub fn name(self) -> &'static str {
        match self {
            Signal::ReceiverUs => "receiver-us",
            Signal::SenderUs => "sender-us",
            Signal::SenderMs => "sender-ms",
            Signal::Rtt => "rtt",
        }
    }

    /// The resolution of timestamps that it needs, if it needs any.
    pub fn timestamps(self) -> Option<Timestamps> {
        match self {
            Signal::ReceiverUs | Signal::SenderUs => Some(Timestamps::Us),
            Signal::SenderMs => Some(Timestamps::Ms),
            Signal::Rtt => None,
        }
    }
}

/// Clock of the timestamps in segments (RFC 7323, section 5.4).
///
/// Linux takes the RTT from its own note of when a segment left, to the microsecond; only where
/// all that an acknowledgement tells had been sent again it needs the timestamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timestamps {
    /// 1 ms: Linux's default.
    #[default]
    Ms,
    /// 1 us: Linux's `features tcp_usec_ts` of a route.
    Us,
}

impl Timestamps {
    /// Length of a tick.
    pub fn tick(self) -> Nanos {
        match self {
            Timestamps::Ms => MILLISECOND,
            Timestamps::Us => MILLISECOND / 1000,
        }
    }
}

impl FromStr for Signal {
    type Err = String;

    fn from_str(name: &str) -> Result<Signal, String> {
        let known = || Signal::ALL.map(Signal::name).join(", ");
        let signal = Signal::ALL.into_iter().find(|signal| signal.name() == name);
        signal.ok_or_else(|| format!("unknown signal \"{name}\"; there is: {}", known()))
    }
}

/// Which subflows a connection opens once it is fully established (Linux: after the first
/// acknowledgement in data sequence).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathManager {
    /// One on each path.
    #[default]
    Fullmesh,
    /// So many (1 to 8) on the only path of the configuration, told apart by their ports.
    Ndiffports(u8),
}

/// The rule that gives data to subflows. Each uses backup paths only while no regular path works,
/// and none that makes no progress while others do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// As Linux: up to 64 kB to the subflow that would be the first to have sent all it holds, as
    /// far as its send buffer has room. What a subflow holds may wait for its window.
    #[default]
    Linux,
    /// Each segment to the subflow with the lowest smoothed RTT that has room in its window.
    MinRtt,
    /// Each segment to the next subflow in turn that has room in its window.
    RoundRobin,
    /// Each segment on every subflow, unless it was acknowledged before that had room.
    Redundant,
}

/// What an application sends.
///
/// A TCP write is sent at once if the window has room (no Nagle), and joins what waits otherwise;
/// one that does not fit into the send buffer is given up, as by a source that cannot wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// Always more to send.
    Greedy,
    /// So many bytes, once.
    File {
        /// Size of the file, bytes.
        bytes: u64,
    },
    /// Writes with exponential gaps (a Poisson process).
    Rate {
        /// Mean writes per second.
        mean_pps: f64,
        /// Bytes per write.
        size: SizeDist,
    },
    /// Bursts of evenly spaced writes, of Pareto length; exponential silences between.
    OnOff {
        /// Writes per second during a burst.
        pps: f64,
        /// Bytes per write.
        size: SizeDist,
        /// Mean length of a burst, seconds.
        on_mean_s: f64,
        /// Shape of the burst's Pareto distribution, above 1.
        on_shape: f64,
        /// Mean length of a silence, seconds.
        off_mean_s: f64,
    },
}

/// Distribution of sizes: payload bytes of a TCP write, wire bytes of a UDP packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SizeDist {
    /// Always the same.
    Constant(u32),
    /// Exponential, cut off at both ends.
    Exponential {
        /// Mean before the cut, bytes.
        mean: f64,
        /// Smallest, bytes.
        min: u32,
        /// Largest, bytes.
        max: u32,
    },
    /// Uniform over both ends and all between.
    Uniform {
        /// Smallest, bytes.
        min: u32,
        /// Largest, bytes.
        max: u32,
    },
}

impl SizeDist {
    /// The smallest that is drawn, bytes.
    pub fn min(self) -> u32 {
        match self {
            SizeDist::Constant(bytes) => bytes,
            SizeDist::Uniform { min, .. } | SizeDist::Exponential { min, .. } => min,
        }
    }

    /// The mean, bytes, of what is drawn: after the cut.
    pub fn mean(self) -> f64 {
        match self {
            SizeDist::Constant(bytes) => f64::from(bytes),
            SizeDist::Uniform { min, max } => (f64::from(min) + f64::from(max)) / 2.0,
            SizeDist::Exponential { mean, min, max } => {
                let beyond = |size: u32| mean * libm::exp(-f64::from(size) / mean);
                f64::from(min) + beyond(min) - beyond(max)
            }
        }
    }
}

/// A flow of UDP packets, one way and without any control.
#[derive(Clone, Debug)]
pub struct UdpConfig {
    /// Name, for messages and results.
    pub name: String,
    /// The route of the packets.
    pub route: RouteId,
    /// [`Source::Rate`] or [`Source::OnOff`]: each write is a packet. The others have no rate.
    pub source: Source,
    /// When the application sends: `[start, stop)` in order, not overlapping.
    pub active: Vec<(Nanos, Nanos)>,
}

/// A connection of one [`Sim`](crate::Sim).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u32);

/// A UDP flow of one [`Sim`](crate::Sim).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UdpId(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    const US: Nanos = 1_000;

    /// A segment of 10.0 ms is acknowledged at 41.7 ms.
    #[test]
    fn timestamps_tell_as_much_as_their_ticks() {
        let tcp = |timestamps| TcpConfig { timestamps, ..TcpConfig::default() };
        let elapsed = |timestamps| tcp(timestamps).elapsed_us(41_700 * US, 10_000 * US);
        assert_eq!([Timestamps::Us, Timestamps::Ms].map(elapsed), [31_700, 31_000]);
    }

    /// A receiver whose clock is fast sees delays grow, and one whose clock is slow sees them fall,
    /// at last below zero.
    #[test]
    fn clocks_that_run_apart_change_the_delay_between_them() {
        let elapsed = |skew_ppm, now| {
            let timestamps = Timestamps::Us;
            let tcp = TcpConfig { skew_ppm, timestamps, ..TcpConfig::default() };
            tcp.elapsed_us(now, now - 10 * MILLISECOND)
        };
        let after = |seconds: Nanos| seconds * 1000 * MILLISECOND;
        assert_eq!([10, 100].map(|s| elapsed(50, after(s))), [10_500, 15_000]);
        assert_eq!(elapsed(-50, after(1000)), -40_000);
    }
}
