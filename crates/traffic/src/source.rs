//! What an application sends.

use narrows_net::Nanos;

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
    /// Bursts of writes with exponential gaps, of Pareto length; exponential silences between.
    OnOff {
        /// Mean writes per second during a burst.
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
    /// Messages whose latency is measured, see [`Messages`](crate::Messages).
    Messages {
        /// Size of each, bytes.
        bytes: u32,
        /// From one to the next, the mean of it if they are random.
        interval: Nanos,
        /// The intervals are exponential (a Poisson process), not all the same.
        poisson: bool,
    },
    /// Evenly spaced packets of media whose rate adapts; of UDP only.
    Media {
        /// How it adapts.
        control: MediaControl,
        /// The encoder's least rate, with which it starts, bit/s on the wire.
        min_bps: u64,
        /// Its largest, bit/s on the wire.
        max_bps: u64,
        /// Bytes per packet, on the wire.
        bytes: u32,
        /// Whether its packets are ECN-capable.
        ecn: bool,
    },
}

/// A congestion control of media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaControl {
    /// NADA (RFC 8698).
    Nada,
    /// SCReAM (RFC 8298).
    Scream,
}

impl MediaControl {
    /// Its name, as its RFC writes it.
    pub fn name(self) -> &'static str {
        match self {
            MediaControl::Nada => "NADA",
            MediaControl::Scream => "SCReAM",
        }
    }
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
