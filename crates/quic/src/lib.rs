#![doc = include_str!("../README.md")]
#![cfg_attr(target_family = "wasm", allow(unused_crate_dependencies))]

#[cfg(target_family = "wasm")]
compile_error!(
    "narrows-quic does not support WebAssembly: its laws are C for a machine with POSIX or Windows"
);

#[cfg(not(target_family = "wasm"))]
mod alone;
#[cfg(not(target_family = "wasm"))]
mod controller;
#[cfg(not(target_family = "wasm"))]
mod coupling;
#[cfg(not(target_family = "wasm"))]
mod rate;
#[cfg(not(target_family = "wasm"))]
mod shared;
#[cfg(not(target_family = "wasm"))]
mod snapshot;
#[cfg(not(target_family = "wasm"))]
mod window;

#[cfg(not(target_family = "wasm"))]
pub use coupling::{Coupling, CouplingError, Factory};
#[cfg(not(target_family = "wasm"))]
pub use snapshot::{PairState, PathState, Snapshot};
