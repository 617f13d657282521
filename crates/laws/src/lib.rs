#![doc = include_str!("../README.md")]

pub mod catalogue;
pub mod check;
mod conn;
mod control;
pub mod detect;
mod finding;
mod pair;
pub mod params;
mod place;
pub mod raw;
pub mod replay;
#[cfg(all(feature = "user", target_os = "linux"))]
pub mod user;

pub use conn::{Advice, Conn, Decision, Output, Private, event_shared};
pub use control::{Control, Detector, Law, SlowStart};
pub use params::Params;
pub use place::Place;
pub use raw::{Event, EventKind, MAX_PATHS, Path, State, flag};
