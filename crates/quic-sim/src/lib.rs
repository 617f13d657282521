//! QUIC end points of noq in virtual time, over the links of `narrows-net`, beside the TCP and UDP of
//! `narrows-sim`.
//!
//! A [`Sim`] holds a network, and connections between a client and a server each: real `noq-proto`
//! end points with TLS, which get their time and their datagrams from it. A connection has a path for
//! each pair of routes, and carries what an [`application`] sends, whose every byte is verified where it
//! arrives. A run depends on its seed alone: [`Sim::trace`] tells two runs apart.
//!
//! ```
//! use narrows_net::{LinkConfig, MILLISECOND, Rate, SECOND};
//! use narrows_quic_sim::{Setup, Side, Sim, application};
//! use narrows_traffic::Source;
//!
//! let mut sim = Sim::new(1);
//! let rate = Rate::Constant(20_000_000);
//! let link = LinkConfig { rate, delay: 10 * MILLISECOND, ..LinkConfig::default() };
//! let path = sim.path(&[link]);
//! let application = application(Source::File { bytes: 1_000_000 });
//! let setup = Setup { application, ..Setup::new(vec![path], Side::Client) };
//! let connection = sim.connect(setup);
//! sim.run(2 * SECOND);
//! assert!(sim.finished(connection).is_some_and(|at| at < SECOND));
//! ```

mod host;
mod sim;
mod tls;
mod transfer;

pub use noq_proto::{MtuDiscoveryConfig, PathEvent, Side, VarInt};
pub use sim::{Routes, Setup, Sim, application, transport};
pub use tls::{NAME, client, server};
