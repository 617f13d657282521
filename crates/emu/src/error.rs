//! What can go wrong, each as one line.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Why there is no testbed, or why it carries nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Only root may make network namespaces.
    #[error("emulation needs root, to create network namespaces")]
    NotRoot,
    /// There are no TUN devices here.
    #[error("/dev/net/tun: {0}: emulation needs TUN devices (modprobe tun)")]
    NoTun(io::Error),
    /// The description of a host makes no sense.
    #[error("host {host}: {fault}")]
    Host {
        /// The host.
        host: String,
        /// What is wrong.
        fault: String,
    },
    /// The kernel refused something for a host.
    #[error("{namespace}: cannot {doing}: {source}")]
    Refused {
        /// The namespace of the host.
        namespace: String,
        /// What was tried.
        doing: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A file could not be read or written.
    #[error("{path}: cannot {doing}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// An invalid route.
    #[error("route from {from} to {to}: {fault}")]
    Route {
        /// Source address.
        from: IpAddr,
        /// Destination address.
        to: IpAddr,
        /// What is wrong.
        fault: &'static str,
    },
    /// A tap at a host or device that does not exist.
    #[error("tap at host {host}: unknown host or device")]
    Tap {
        /// Number of the host.
        host: usize,
    },
    /// The thread that carries packets could not start.
    #[error("cannot carry packets: {0}")]
    Carrier(io::Error),
    /// A [`Wire`](crate::Wire) of this testbed is there already.
    #[error("the testbed is already running")]
    Running,
    /// The thread that carries packets has ended.
    #[error("the testbed has stopped")]
    Ended,
}

impl Error {
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { path, doing, source }
    }
}
