//! Files over multipath QUIC: a [`Server`] of a folder, and [`get`], which fetches one of its files over
//! several paths and shows what each of them does.
//!
//! The server's certificate is made when it starts, and its fingerprint is part of the [`Url`], which
//! is all that a client needs. A URL without one is that of a file at a server of another stack, which is
//! asked by `hq-interop` and checked as [`Trust`] says. The client opens the paths, one for each local address that it is given,
//! and asks for ranges of the file on several streams at once; the server, which sends, runs the
//! congestion control, the detector too, and reports on the first stream what it knows of each path.
//! Linux only.

mod error;
mod folder;
mod get;
mod hash;
#[cfg(test)]
mod hostile;
mod idle;
mod local;
mod log;
mod paths;
mod plain;
mod serve;
mod tls;
mod url;
pub mod wire;

pub use error::Error;
pub use get::{Get, PathProgress, Progress, Received, get};
pub use local::Local;
pub use serve::{MAX_CONNECTIONS, MAX_FROM_ONE, Server};
pub use tls::{Fingerprint, Trust};
pub use url::Url;

use noq::{IdleTimeout, PathId, TransportConfig, VarInt};
use std::time::Duration;

/// Paths of a connection. [`narrows_quic`] couples so many.
pub const MAX_PATHS: u32 = 8;

/// A connection, or a path, on which nothing arrives for so long is given up.
const CONNECTION_IDLE: Duration = Duration::from_secs(30);
const PATH_IDLE: Duration = Duration::from_secs(5);
/// Each path is pinged so often.
const PING: Duration = Duration::from_secs(1);

/// Ranges that a client asks for at once. A stream's window stays at noq's 1.25 MB.
const STREAMS: u8 = 8;

/// What both ends set.
fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    let idle = IdleTimeout::from(VarInt::from_u32(CONNECTION_IDLE.as_millis() as u32));
    transport
        .max_concurrent_multipath_paths(MAX_PATHS)
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .max_idle_timeout(Some(idle))
        .default_path_max_idle_timeout(Some(PATH_IDLE))
        .datagram_receive_buffer_size(None);
    transport
}

/// A path's number, which noq only prints.
fn number(id: PathId) -> u32 {
    id.to_string().parse().expect("the number that it is made from")
}
