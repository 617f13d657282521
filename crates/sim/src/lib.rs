//! Packet simulator of Narrows: TCP and MPTCP end points over [`narrows_net`], under the control
//! of [`narrows_laws`] and fed by the sources of [`narrows_traffic`], in virtual time.
//!
//! A run is a function of configuration and seed: integer nanoseconds, seeded generators, no wall
//! clock.
//!
//! ```
//! use narrows_net::{Limit, LinkConfig, MILLISECOND, Rate, SECOND};
//! use narrows_sim::{ConnectionConfig, PathConfig, Sim};
//! use narrows_traffic::Source;
//!
//! // Two paths of 10 Mbit/s, each with a way back.
//! let mut sim = Sim::new(1);
//! let mut paths = vec![];
//! for name in ["wifi", "lte"] {
//!     let mut link = |rate| {
//!         sim.add_link(LinkConfig {
//!             name: name.into(),
//!             rate,
//!             delay: 10 * MILLISECOND,
//!             limit: Limit::Packets(50),
//!             ..LinkConfig::default()
//!         })
//!     };
//!     let (there, back) = (link(Rate::Constant(10_000_000))?, link(Rate::Infinite)?);
//!     let (forward, reverse) = (sim.add_route(&[there])?, sim.add_route(&[back])?);
//!     paths.push(PathConfig::new(name, forward, reverse));
//! }
//! let connection = sim.add_connection(ConnectionConfig {
//!     name: "download".into(),
//!     multipath: true,
//!     paths,
//!     control: "olia".parse()?,
//!     source: Source::File { bytes: 5_000_000 },
//!     send_buffer: 1 << 20,
//!     recv_buffer: 1 << 20,
//!     ..ConnectionConfig::default()
//! });
//! sim.run_until(10 * SECOND);
//! // 5 MB at 20 Mbit/s, less the headers: 2.1 s, and some more for slow start.
//! let completed = sim.connection(connection).completed.expect("the file arrived");
//! assert!(completed > 2 * SECOND && completed < 3 * SECOND);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | where to look | |
//! |---|---|
//! | `sim`, `event` | the loop: packets that arrive, timers that expire |
//! | `sim::parts`, `partition` | one run on several threads, and into what it is taken apart for that |
//! | `tcp` | a subflow: sender, receiver, and a file for each mechanism |
//! | `mptcp` | the connection: sequence, scheduling, reassembly; plain TCP is one of one subflow |
//! | `udp` | UDP flows |
//! | `media`, `nada`, `scream` | media whose rate adapts, and how |
//! | `packet` | what travels, and its size on the wire |
//! | `controller`, `passive` | the law and detector of a connection, and passive detectors beside them |
//! | `capture` | who wants to see it travel |
//! | [`topology`] | fat trees: links, shortest paths, who sends to whom |

pub mod capture;
mod config;
mod controller;
mod event;
mod media;
mod mptcp;
mod nada;
mod packet;
mod partition;
mod passive;
mod ranges;
mod scream;
mod sim;
mod stats;
mod tcp;
pub mod topology;
mod udp;
mod wire;

pub use config::{ConnectionConfig, PathConfig, UdpConfig};
pub use packet::{Ack, Body, Feedback, Media, Packet, Payload, Receipt, Report, Segment, Signal};
pub use passive::{Findings, Found, PassiveDetector};
pub use sim::{Datagram, Sim, THREAD};
pub use stats::{
    ConnectionStats, Detection, HeadOfLine, MediaStats, PathStats, SlowStartEnd, UdpStats,
};
