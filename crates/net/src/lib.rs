//! The network model: links with a rate or a recorded trace, a queue, loss and delay; routes are
//! lists of links.
//!
//! The model does no input or output and owns no clock. The caller says when a packet enters
//! ([`Network::enqueue`]), asks when something next happens ([`Network::next_time`]) and lets it
//! happen ([`Network::advance`]). A simulator jumps from one such time to the next; an emulator
//! sleeps until it. Packets move at their exact model times also if the caller comes late, so a
//! busy emulator loses no rate.
//!
//! What one link does to a packet, in this order:
//!
//! 1. A packet larger than the link's MTU is dropped.
//! 2. It is lost at random, alone or in bursts ([`Loss`]).
//! 3. It is dropped if the link is down ([`Network::set_up`]).
//! 4. It is dropped if it exceeds the rate of a [`Policer`].
//! 5. A queue discipline ([`Discipline`]) that decides at the entry, RED or PIE, drops or marks it.
//! 6. It waits in the queue until its transmission starts, or is dropped if the queue is full. As
//!    in Linux (and ns-2, ns-3), a packet has left the queue once its transmission has started: the
//!    packet on the wire does not count against the limit. CoDel and FQ-CoDel drop or mark when the
//!    turn of a packet comes; FQ-CoDel also chooses whose turn it is.
//! 7. It is transmitted: at a constant rate, by the delivery opportunities of a [`Trace`], or with
//!    others in an aggregate as on [`Wifi`].
//! 8. It propagates: the delay, plus a jitter ([`Variation`]) that never changes the order; some packets
//!    take longer and are overtaken ([`Reorder`]).
//!
//! Rate and delay may change during the run, a link go down and up, or hold its packets for a time
//! ([`Network::set_rate`], [`Network::set_delay`], [`Network::set_up`], [`Network::hold`]). On a link that has none of the rarer features the
//! whole way of a packet is known when it enters, and it costs what a plain link costs.
//!
//! Times are integer nanoseconds and every link draws from random streams of its own, one per
//! purpose, so a run is a function of its seed and of what the caller does.
//!
//! ```
//! use narrows_net::{Header, Limit, LinkConfig, Network, Rate};
//!
//! let mut network = Network::new(1);
//! let link = network
//!     .add_link(LinkConfig {
//!         name: "dsl".into(),
//!         rate: Rate::Constant(12_000_000),
//!         delay: 10_000_000,
//!         limit: Limit::Packets(50),
//!         ..LinkConfig::default()
//!     })
//!     .unwrap();
//! let route = network.add_route(&[link]).unwrap();
//!
//! network.enqueue(0, route, Header { size: 1500, ..Header::default() }, "hello");
//! // 1500 bytes take 1 ms at 12 Mbit/s and arrive 10 ms later.
//! assert_eq!(network.next_time(), Some(11_000_000));
//! let delivery = network.advance(11_000_000).unwrap();
//! assert_eq!((delivery.time, delivery.payload), (11_000_000, "hello"));
//! ```

mod aqm;
mod border;
mod calendar;
mod config;
mod counters;
mod delays;
mod discipline;
mod error;
mod histogram;
mod jitter;
mod line;
mod link;
mod loss;
mod managed;
mod network;
mod packet;
mod parts;
mod plain;
mod policer;
mod pool;
mod prefetch;
mod queue;
mod rate;
mod reorder;
pub mod rng;
mod schedule;
mod trace;
mod wifi;

pub use aqm::codel::CoDel;
pub use aqm::dualpi2::DualPi2;
pub use aqm::fq_codel::FqCoDel;
pub use aqm::pie::Pie;
pub use aqm::red::{Red, Weight};
pub use border::Crossing;
pub use calendar::Calendar;
pub use config::LinkConfig;
pub use counters::Counters;
pub use delays::Delays;
pub use discipline::Discipline;
pub use error::{ConfigError, TraceError, TraceFault};
pub use histogram::Histogram;
pub use jitter::{Distribution, Variation};
pub use loss::{GilbertElliott, Loss};
pub use network::{Delivery, LinkId, Network, PREFETCHED, RouteId, Seen};
pub use packet::{Ecn, Header};
pub use policer::Policer;
pub use prefetch::prefetch;
pub use queue::Limit;
pub use rate::Rate;
pub use reorder::Reorder;
pub use trace::Trace;
pub use wifi::Wifi;

/// A time or duration in nanoseconds. Time 0 is the start of the run.
pub type Nanos = u64;

/// Nanoseconds in a second.
pub const SECOND: Nanos = 1_000_000_000;

/// Nanoseconds in a millisecond.
pub const MILLISECOND: Nanos = 1_000_000;

/// Largest delay or jitter of a link, and time of its discipline: one hour. More is taken for a
/// mistake in units.
const MAX_DELAY: Nanos = 3600 * SECOND;
