//! Congestion control for connections of several paths: laws, bottleneck detectors, slow starts.
//!
//! The algorithms are C headers in `c/`, written once and compiled here for this machine, and by
//! the kernel's host for BPF. This crate wraps them for Rust: a [`Conn`] is the shared state of a
//! connection's paths, a [`Private`] the private state of one, and every [`Event`] of a path
//! returns an [`Output`]. The duties of a host are in `docs/method/contract.md`.
//!
//! ```
//! use narrows_laws::{Conn, Control, Event, EventKind, Private, State, flag};
//!
//! let mut conn = Conn::new("olia".parse()?);
//! let mut path = Private::default();
//! let joined = Event { kind: EventKind::Joined as u32, mss: 1448, ..Event::default() };
//! assert_eq!(conn.event(0, &mut path, &joined).cwnd, 10);
//!
//! let ack = Event {
//!     kind: EventKind::Acked as u32,
//!     flags: flag::CWND_LIMITED,
//!     state: State::Active as u32,
//!     now_us: 20_000,
//!     delivered: 2,
//!     cwnd: 10,
//!     srtt8_us: 8 * 20_000,
//!     mss: 1448,
//!     ..Event::default()
//! };
//! assert_eq!(conn.event(0, &mut path, &ack).cwnd, 12); // slow start
//! # Ok::<(), narrows_laws::catalogue::NoControl>(())
//! ```

#[cfg(target_family = "wasm")]
compile_error!("WebAssembly is not supported: the laws are C, compiled by cc for a native target");

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
