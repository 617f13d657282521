//! The state of a connection's paths, to look at.

use narrows_laws::{Advice, Place};
use std::time::Duration;

/// The paths of a connection at their last events.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The name of the control that they run.
    pub control: String,
    /// The paths.
    pub paths: Vec<PathState>,
    /// Number of the detector's newest decision, which grows with each; 0 before the first.
    pub decision: u32,
    /// What the detector knows of pairs of paths; empty unless it compares pairs (`xcorr`) and has
    /// decided.
    pub pairs: Vec<PairState>,
    /// How many paths run their law alone, on no knowledge of the others, as the shared state could not
    /// be used. 0 unless a factory was given to several connections, or there are more than eight paths.
    pub alone: u64,
}

impl Snapshot {
    /// Takes all others from it than the paths in `slots`, as bits.
    pub(crate) fn keep(&mut self, slots: u8) {
        let kept = |slot: usize| slots >> slot & 1 != 0;
        self.paths.retain(|path| kept(path.slot));
        self.pairs.retain(|pair| kept(pair.slots.0) && kept(pair.slots.1));
    }
}

/// A path.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PathState {
    /// Its number among the connection's paths: a free one below 8 when it was opened. Not noq's
    /// `PathId`; [`crate::Factory::path`] finds the state of a path of noq's.
    pub slot: usize,
    /// Window, bytes.
    pub cwnd: u64,
    /// Bytes in flight.
    pub inflight: u64,
    /// Slow start threshold, bytes; none in the first slow start.
    pub ssthresh: Option<u64>,
    /// The window was reduced, and no packet has arrived yet that was sent since (RFC 9002, section
    /// 7.3.2).
    pub recovering: bool,
    /// Smoothed RTT; none before the first sample.
    pub srtt: Option<Duration>,
    /// Where the detector has placed it in its newest decision: paths of one group share a bottleneck.
    /// None under the fixed detectors, and before the first decision.
    pub place: Option<Place>,
    /// The paths that its window is coupled with: bit n is slot n, its own included.
    pub coupled: u8,
    /// What the law advises about this path.
    pub advice: Advice,
}

/// Two paths that were compared.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PairState {
    /// Their slots.
    pub slots: (usize, usize),
    /// The answer in force: do they share a bottleneck?
    pub shared: bool,
    /// How likely the answer is right, from measurements with known truth.
    pub confidence: f64,
}
