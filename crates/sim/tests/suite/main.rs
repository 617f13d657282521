//! Connections over small networks in virtual time.

mod adversity;
mod bbr;
mod bbr3;
mod bursts;
mod capture;
#[path = "../common/mod.rs"]
mod common;
mod conservation;
mod ecn;
mod l4s;
mod media;
mod mptcp;
mod multipath;
mod outside;
mod parts;
mod recovery;
mod reinject;
mod runs;
mod slow_start;
mod tcp;
mod unblock;
