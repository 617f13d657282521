//! Packet simulator of Narrows: TCP and MPTCP end points and traffic sources over
//! [`narrows_net`], under the control of [`narrows_laws`], in virtual time.
//!
//! A run is a function of configuration and seed: integer nanoseconds, seeded generators, no wall
//! clock.

mod config;
mod event;
mod mptcp;
mod packet;
mod ranges;
mod sim;
mod source;
mod stats;
mod tcp;
mod udp;

pub use config::{
    ConnId, ConnectionConfig, PathConfig, Scheduler, SizeDist, Source, UdpConfig, UdpId,
};
pub use packet::Packet;
pub use sim::Sim;
pub use stats::{ConnectionStats, PathStats, UdpStats};
