//! What can be wrong with a description of a network.

use thiserror::Error;

use crate::Nanos;

/// A link or route that cannot be built.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ConfigError {
    /// The rate is zero or beyond 1 Pbit/s.
    #[error("link '{link}': a rate of {rate} bit/s is not above 0 and at most 1 Pbit/s")]
    Rate {
        /// Name of the link.
        link: String,
        /// The rate in bit/s.
        rate: u64,
    },
    /// The delay or jitter is beyond one hour.
    #[error("link '{link}': a {field} of {value} ns is more than one hour")]
    Delay {
        /// Name of the link.
        link: String,
        /// `delay` or `jitter`.
        field: &'static str,
        /// The value in ns.
        value: Nanos,
    },
    /// The loss is not a probability.
    #[error("link '{link}': a loss of {loss} is not a probability in 0..=1")]
    Loss {
        /// Name of the link.
        link: String,
        /// The value given.
        loss: f64,
    },
    /// The queue could hold nothing.
    #[error("link '{link}': a queue limit of 0 would drop every packet that has to wait")]
    ZeroLimit {
        /// Name of the link.
        link: String,
    },
    /// The MTU is zero or beyond 1 GiB.
    #[error("link '{link}': an MTU of {mtu} bytes is not in 1..=2^30")]
    Mtu {
        /// Name of the link.
        link: String,
        /// The value in bytes.
        mtu: u32,
    },
    /// A feature that only some links have is out of range, or does not go with another.
    #[error("link '{link}': {fault}")]
    Feature {
        /// Name of the link.
        link: String,
        /// What is wrong.
        fault: &'static str,
    },
    /// A route without a link.
    #[error("a route needs at least one link")]
    EmptyRoute,
    /// A route over a link that was never added.
    #[error("a route names link {0}, which does not exist")]
    UnknownLink(
        /// Number of the link.
        u32,
    ),
}

/// A trace that cannot be read: its name, the line (from 1) and what is wrong there.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{name}:{line}: {fault}")]
pub struct TraceError {
    /// Name of the trace, as given to [`crate::Trace::parse`].
    pub name: String,
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong.
    pub fault: TraceFault,
}

/// What is wrong with a trace.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TraceFault {
    /// There is no line at all.
    #[error("the trace is empty")]
    Empty,
    /// A line is not an integer.
    #[error("not a whole number of milliseconds")]
    NotNumeric,
    /// A timestamp is below zero.
    #[error("a timestamp cannot be negative")]
    Negative,
    /// A timestamp does not fit 32 bits (49 days).
    #[error("a timestamp beyond 2^32 ms")]
    TooLarge,
    /// A timestamp is smaller than the one before it.
    #[error("timestamps must not decrease")]
    Unordered,
    /// The last timestamp is 0, so the trace would repeat infinitely often at once.
    #[error("the trace must last longer than 0 ms")]
    ZeroPeriod,
    /// Not one packet fits what its rates carry.
    #[error("the trace carries less than a packet")]
    Nothing,
    /// A delay that no network has.
    #[error("a delay of more than an hour above the smallest")]
    TooLong,
    /// More packets than memory should hold.
    #[error("the trace carries more than 2^26 packets")]
    TooMany,
}
