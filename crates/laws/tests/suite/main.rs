//! The laws, the detectors and the catalogue, without a network; the C library.

mod authors;
mod bbr;
mod bbr3;
mod btlbw;
#[cfg(target_os = "linux")]
mod capi;
mod close_orders;
mod common;
mod cubic;
mod dctcp;
mod dcw;
mod decision;
mod equilibrium;
mod flows;
mod gcubic;
mod greno;
mod group;
mod growth;
mod left_out;
mod lisa;
mod loss;
mod peer_decision;
mod precision;
mod properties;
mod random_loss;
mod reference;
mod share_orders;
mod shared;
mod ssc;
mod start;
mod stress;
mod tr;
mod wvegas;
mod xcorr;
