//! TCP as Linux does it: one direction of data, a sender and a receiver per subflow.

pub(crate) mod delack;
pub(crate) mod ecn;
mod handshake;
pub(crate) mod limited;
mod min_rtt;
pub(crate) mod pacing;
pub(crate) mod prr;
pub(crate) mod psh;
pub(crate) mod rack;
pub(crate) mod rate_sample;
pub(crate) mod receiver;
mod recovery;
pub(crate) mod rto;
pub(crate) mod scoreboard;
pub(crate) mod sender;
#[cfg(test)]
mod tests;
mod tlp;
mod undo;

/// A deadline that is not set.
pub(crate) const NEVER: narrows_net::Nanos = narrows_net::Nanos::MAX;
