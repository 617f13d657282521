#![doc = include_str!("../README.md")]

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
compile_error!("narrows-quic: expected a target where noq takes the clock of std");

mod ack_wait;
mod alone;
mod controller;
mod coupling;
mod qlog;
mod rate;
mod shared;
mod snapshot;
#[cfg(feature = "tend")]
mod tend;
mod window;

pub use coupling::{Coupling, CouplingError, Factory};
pub use narrows_laws::catalogue::NoControl;
pub use narrows_laws::params::ParamError;
pub use narrows_laws::{Advice, Control, Params, Place};
pub use qlog::QlogVersion;
pub use snapshot::{PairState, PathState, Snapshot};
#[cfg(feature = "tend")]
pub use tend::tend;
