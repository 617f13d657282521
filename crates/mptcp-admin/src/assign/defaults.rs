//! The default congestion controls of network namespaces.

use narrows_kernel::Error;
use narrows_netns::{Namespace, set_sysctl, sysctl};
use std::io;
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
pub(crate) fn namespaces() -> Result<Vec<(u64, Namespace)>, Error> {
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
pub(crate) fn default_of(namespace: &Namespace) -> Result<String, Error> {
    inside(namespace, || sysctl(DEFAULT))
}

pub(super) fn set_default(namespace: &Namespace, name: &str) -> Result<(), Error> {
    inside(namespace, || set_sysctl(DEFAULT, name))
}

/// The number that a network namespace has for good; its inode number may be another's later.
pub(super) fn cookie(namespace: &Namespace) -> Result<u64, Error> {
    inside(namespace, narrows_netns::cookie)
}
