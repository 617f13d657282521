//! The default congestion controls of network namespaces.

use narrows_kernel::Error;
use narrows_netns::{Namespace, set_sysctl, sysctl};
use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

const DEFAULT: &str = "net/ipv4/tcp_congestion_control";

/// What the kernel has by itself; the last of them always, and for every namespace.
pub(super) const KERNELS_OWN: [&str; 2] = ["cubic", "reno"];

/// Gives a namespace the default it had, or, as that may have been unloaded meanwhile, the kernel's
/// own; returns which.
pub(super) fn restore(namespace: &Namespace, before: &str) -> Result<String, Error> {
    let mut set = set_default(namespace, before).map(|()| before);
    for own in KERNELS_OWN {
        set = set.or_else(|_| set_default(namespace, own).map(|()| own));
    }
    set.map(str::to_owned)
}

/// All network namespaces that can be found, each with its cookie.
pub(super) fn namespaces() -> Result<Vec<(u64, Namespace)>, Error> {
    let all = Namespace::all().map_err(Error::io(Path::new("/proc"), "read"))?;
    // One that has gone meanwhile is no concern.
    Ok(all.into_iter().filter_map(|one| Some((cookie(&one).ok()?, one))).collect())
}

/// Does `work` in a namespace.
pub(super) fn inside<T: Send>(
    namespace: &Namespace,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> Result<T, Error> {
    namespace
        .run(work)
        .and_then(|done| done)
        .map_err(|error| Error::input(format!("namespace {}", namespace.name), error.to_string()))
}

/// Its default congestion control.
pub(super) fn default_of(namespace: &Namespace) -> Result<String, Error> {
    inside(namespace, || sysctl(DEFAULT))
}

pub(super) fn set_default(namespace: &Namespace, name: &str) -> Result<(), Error> {
    inside(namespace, || set_sysctl(DEFAULT, name))
}

/// The number that a network namespace has for good; its inode number may be another's later.
pub(super) fn cookie(namespace: &Namespace) -> Result<u64, Error> {
    inside(namespace, || {
        // SAFETY: plain system calls; the descriptor is new and owned at once, and the kernel
        // writes at most the eight bytes it is given.
        unsafe {
            let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
            if socket < 0 {
                return Err(io::Error::last_os_error());
            }
            let socket = OwnedFd::from_raw_fd(socket);
            let mut cookie = 0u64;
            let mut size = size_of::<u64>() as libc::socklen_t;
            let got = libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                SO_NETNS_COOKIE,
                (&raw mut cookie).cast(),
                &mut size,
            );
            if got < 0 { Err(io::Error::last_os_error()) } else { Ok(cookie) }
        }
    })
}

/// asm-generic/socket.h, Linux 5.14.
const SO_NETNS_COOKIE: libc::c_int = 71;
