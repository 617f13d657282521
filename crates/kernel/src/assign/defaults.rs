//! The default congestion controls of network namespaces.

use crate::netns::Namespace;
use crate::{Error, state};
use libbpf_rs::{MapCore, MapFlags};
use nix::libc;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use super::uses::padded;

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

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

/// Hands the plain TCP of a namespace to `control`; none: it runs the law as one path.
pub(super) fn set_plain(inum: u32, control: Option<&str>) -> Result<(), Error> {
    let failed = |doing| Error::bpf(state::PLAIN, doing);
    let key = inum.to_ne_bytes();
    let Some(map) = state::find(state::PLAIN) else {
        return match control {
            Some(_) => Err(Error::input(state::PLAIN, "no control has this map")),
            None => Ok(()),
        };
    };
    match control {
        Some(control) => map.update(&key, &padded(control), MapFlags::ANY).map_err(failed("set")),
        None => match map.lookup(&key, MapFlags::ANY).map_err(failed("read"))? {
            Some(_) => map.delete(&key).map_err(failed("change")),
            None => Ok(()),
        },
    }
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
    let read = || fs::read_to_string(DEFAULT);
    Ok(inside(namespace, read)?.trim().to_owned())
}

pub(super) fn set_default(namespace: &Namespace, name: &str) -> Result<(), Error> {
    inside(namespace, || {
        fs::write(DEFAULT, name)
            .map_err(|error| io::Error::new(error.kind(), format!("{DEFAULT}={name}: {error}")))
    })
}

/// The number that a network namespace has for good; its inode number may be another's later.
pub(super) fn cookie(namespace: &Namespace) -> Result<u64, Error> {
    inside(namespace, || {
        // SAFETY: plain system calls; the descriptor is new and owned at once, and the kernel
        // writes at most the eight bytes it is told of.
        unsafe {
            let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
            if socket < 0 {
                return Err(io::Error::last_os_error());
            }
            let socket = OwnedFd::from_raw_fd(socket);
            let mut cookie = 0u64;
            let mut size = size_of::<u64>() as libc::socklen_t;
            let told = libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                SO_NETNS_COOKIE,
                (&raw mut cookie).cast(),
                &mut size,
            );
            if told < 0 { Err(io::Error::last_os_error()) } else { Ok(cookie) }
        }
    })
}

/// asm-generic/socket.h, Linux 5.14.
const SO_NETNS_COOKIE: libc::c_int = 71;
