//! Which sockets are watched.

use super::Key;
use narrows_kernel::Error;
use narrows_kernel::cgroup::Cgroup;
use narrows_mptcp::diag::{Socket, State};
use narrows_netns::Namespace;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Which sockets are watched; the default is all MPTCP connections of all network namespaces.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Of this namespace only.
    pub netns: Option<Namespace>,
    /// Of this cgroup, and those below it.
    pub cgroup: Option<PathBuf>,
    /// With one of these ports, on either side; none: with any.
    pub ports: Vec<u16>,
    /// Instead of MPTCP so many plain TCP flows, those that send most, at most
    /// [`narrows_detect::MAX_FLOWS`].
    pub tcp: Option<usize>,
}

impl Scope {
    /// The numbers of its cgroups as they are now; none: of any.
    pub(super) fn cgroups(&self) -> Result<Option<HashSet<u64>>, Error> {
        let Some(path) = &self.cgroup else { return Ok(None) };
        let top = Cgroup::open(path)?;
        let mut all = HashSet::from([top.id]);
        below(&top.path, &mut all);
        Ok(Some(all))
    }

    /// Those of the sockets of a namespace, with what they are compared with. A connection is in the
    /// scope if one of its subflows is.
    pub(super) fn of(
        &self,
        netns: &Namespace,
        mut sockets: Vec<Socket>,
        cgroups: Option<&HashSet<u64>>,
    ) -> Vec<(Key, Socket)> {
        let key = |socket: &Socket| match socket.subflow.filter(|of| !of.fell_back()) {
            Some(of) if self.tcp.is_none() => Some(Key::Mptcp(netns.inum, of.token)),
            None if self.tcp.is_some() => Some(Key::Tcp),
            _ => None,
        };
        let wanted = |socket: &Socket| {
            let port = |port: &u16| [socket.local.port(), socket.remote.port()].contains(port);
            (self.ports.is_empty() || self.ports.iter().any(port))
                && cgroups.is_none_or(|all| all.contains(&socket.cgroup))
        };
        sockets.retain(|socket| matches!(socket.state, State::Established | State::CloseWait));
        let connections: HashSet<Key> =
            sockets.iter().filter(|socket| wanted(socket)).filter_map(key).collect();
        let of = |socket: Socket| {
            let key = key(&socket)?;
            let is = if key == Key::Tcp { wanted(&socket) } else { connections.contains(&key) };
            is.then_some((key, socket))
        };
        sockets.into_iter().filter_map(of).collect()
    }
}

/// Adds the numbers of the cgroups below a folder. One may end meanwhile.
fn below(folder: &Path, all: &mut HashSet<u64>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() {
            all.insert(about.ino());
            below(&entry.path(), all);
        }
    }
}
