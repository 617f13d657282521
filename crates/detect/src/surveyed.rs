//! What a first pass over a capture found.

use crate::order::Order;
use crate::packet::End;
use crate::{Input, Signal, Traffic};

/// Longer captures have damaged times, nanoseconds: a month.
const LONG: i64 = 30 * DAY;
const DAY: i64 = 86_400_000_000_000;

/// A flow to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Who sends its data, and who gets it.
    pub ends: (End, End),
    /// What the user sees: `10.0.0.1:40001 > 10.0.0.2:5001`, with its MPTCP connection.
    pub name: String,
    /// Nanoseconds of a tick of the clock that stamps.
    pub tick: i64,
    /// The largest payload of a packet, as both ends announced it, else as usual.
    pub mss: u32,
    /// Of its data, and of what comes back: is what may be a copy one?
    pub doubled: (bool, bool),
    /// It has copies.
    pub copied: bool,
    /// What it sent.
    pub traffic: Traffic,
}

/// What the first pass found.
#[derive(Debug)]
pub struct Survey {
    pub signal: Signal,
    /// Where it was captured, and why that is so.
    pub captured: String,
    pub flows: Vec<Flow>,
    /// What the user should know: skipped packets, flows left out, damage.
    pub notes: Vec<String>,
    /// The order in which packets were captured.
    pub order: Order,
    /// When the first packet came, nanoseconds since 1970.
    pub start: i64,
    /// When the last came.
    pub end: i64,
}

/// The note on a capture whose first packet and last are too far apart, nanoseconds.
pub fn far_apart(input: &Input, start: i64, end: i64) -> Option<String> {
    let long = end.saturating_sub(start);
    (long > LONG).then(|| {
        format!(
            "{}: the first packet and the last are {} days apart; their times may be damaged",
            input.name(),
            long / DAY
        )
    })
}
