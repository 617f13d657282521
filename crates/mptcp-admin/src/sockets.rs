//! MPTCP sockets that processes hold: listeners and open connections, and moving them to another
//! control.
//!
//! The kernel gives a control to each MPTCP socket when it is made, a connection copies its
//! listener's, and once a socket option was set subflows that join get that one, whatever the default
//! is by then (`mptcp_sockopt_sync_locked`). So a listener that is older than a default would go on
//! handing out the former one.

use narrows_foreign::Foreign;
use narrows_kernel::Undo;
use narrows_mptcp::diag::{self, Socket, State};
use narrows_mptcp::holders::{self, Holder};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// An MPTCP socket: a listener, or an open connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MptcpSocket {
    /// Of its file.
    inode: u32,
    /// Local address and port.
    pub(crate) local: SocketAddr,
    /// The peer's; none: it listens.
    pub(crate) remote: Option<SocketAddr>,
    /// The controls of its TCP sockets: one of a listener, of a connection one a subflow.
    pub(crate) controls: Vec<String>,
    /// Id of the cgroup it was made in.
    cgroup: u64,
    /// Who holds it; the first ones first.
    pub(crate) holders: Vec<Holder>,
}

/// A socket that was not moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Local address and port.
    pub local: SocketAddr,
    /// The peer's; none: it listens.
    pub remote: Option<SocketAddr>,
    /// The control it keeps.
    pub control: String,
    /// Id and command of a process that holds it; none: no process does.
    pub process: Option<(u32, Foreign)>,
    /// Why it was not moved.
    pub why: String,
}

/// What moving sockets came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Listeners that were moved.
    pub listeners: usize,
    /// Open connections that were moved.
    pub connections: usize,
    /// What could not be moved.
    pub kept: Vec<Kept>,
    /// Open connections that were left as they are, as nobody asked to move them.
    pub open: usize,
}

/// The processes and sockets of a cgroup and those below it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    ids: HashSet<u64>,
    pids: HashSet<u32>,
}

impl Members {
    /// Those of the folder at `path`, if it still is that of cgroup `id`.
    pub(crate) fn of(id: u64, path: &Path) -> Members {
        let mut members = Members { ids: HashSet::from([id]), pids: HashSet::new() };
        if fs::metadata(path).is_ok_and(|about| about.ino() == id) {
            members.add(path);
        }
        members
    }

    /// What ends meanwhile has no sockets.
    fn add(&mut self, folder: &Path) {
        let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        self.pids.extend(processes.lines().filter_map(|pid| pid.parse::<u32>().ok()));
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if let Some(about) = entry.metadata().ok().filter(fs::Metadata::is_dir) {
                self.ids.insert(about.ino());
                self.add(&entry.path());
            }
        }
    }

    /// Was the socket made here?
    pub(crate) fn made(&self, socket: &MptcpSocket) -> bool {
        self.are(socket.cgroup)
    }

    /// Are the sockets of the cgroup with this id among them?
    pub(crate) fn are(&self, cgroup: u64) -> bool {
        self.ids.contains(&cgroup)
    }

    /// Was the socket made here, or is it held by a process that is here?
    pub(crate) fn has(&self, socket: &MptcpSocket) -> bool {
        let held = |holder: &Holder| self.pids.contains(&holder.pid);
        self.made(socket) || socket.holders.iter().any(held)
    }
}

/// The MPTCP sockets of a namespace's TCP sockets that are `wanted`, with who holds them.
///
/// # Errors
/// No /proc.
pub(crate) fn find(
    sockets: &[Socket],
    wanted: impl Fn(&MptcpSocket) -> bool,
) -> io::Result<Vec<MptcpSocket>> {
    let mut found = join(sockets);
    found.retain(wanted);
    let inodes = found.iter().map(|socket| socket.inode).filter(|inode| *inode != 0).collect();
    let mut holders: HashMap<_, _> = holders::holders(&inodes)?;
    for socket in &mut found {
        socket.holders = holders.remove(&socket.inode).unwrap_or_default();
    }
    Ok(found)
}

/// The MPTCP sockets that these TCP sockets belong to.
fn join(sockets: &[Socket]) -> Vec<MptcpSocket> {
    let inodes = diag::inodes(sockets);
    let mut connections: BTreeMap<u32, MptcpSocket> = BTreeMap::new();
    let mut all = Vec::new();
    for socket in sockets.iter().filter(|socket| socket.mptcp) {
        let listens = socket.state == State::Listen;
        let one = |inode| MptcpSocket {
            inode,
            local: socket.local,
            remote: (!listens).then_some(socket.remote),
            controls: Vec::new(),
            cgroup: socket.cgroup,
            holders: Vec::new(),
        };
        if listens {
            all.push(MptcpSocket { controls: vec![socket.control.clone()], ..one(socket.inode) });
        } else if let Some(subflow) = socket.subflow.filter(|subflow| !subflow.fell_back()) {
            let new = || one(inodes[&subflow.token]);
            let of = connections.entry(subflow.token).or_insert_with(new);
            of.controls.push(socket.control.clone());
        }
    }
    // What is closing is its process's no more.
    all.extend(connections.into_values().filter(|connection| connection.inode != 0));
    all
}

impl MptcpSocket {
    /// Does it run this control on any of its subflows?
    pub(crate) fn runs(&self, control: &str) -> bool {
        self.controls.iter().any(|known| known == control)
    }

    /// As one that was not moved.
    pub(crate) fn kept(&self, why: impl Into<String>) -> Kept {
        Kept {
            local: self.local,
            remote: self.remote,
            control: self.controls.first().cloned().unwrap_or_default(),
            process: self.holders.first().map(|holder| (holder.pid, holder.command.clone())),
            why: why.into(),
        }
    }

    /// Gives it the control `to`; what is not moved says why. None: it has gone.
    fn shift(&self, to: &str, mut undo: Option<&mut Undo>) -> Option<Result<(), Kept>> {
        let mut refused = None;
        for holder in &self.holders {
            let shifted = holder.open().and_then(|socket| {
                let before = socket.control()?;
                socket.set_control(to)?;
                // Opened again then: of many, not all can be open at the same time.
                if let Some(undo) = &mut undo {
                    let holder = holder.clone();
                    undo.push(move || {
                        let _ = holder.open().and_then(|socket| socket.set_control(&before));
                    });
                }
                Ok(())
            });
            match shifted {
                Ok(()) => return Some(Ok(())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => refused = Some((holder, error)),
            }
        }
        if let Some((holder, error)) = refused {
            let process = Some((holder.pid, holder.command.clone()));
            return Some(Err(Kept { process, ..self.kept(error.to_string()) }));
        }
        match self.holders.is_empty() {
            true => Some(Err(self.kept("no process holds it"))),
            false => None,
        }
    }
}

impl Moved {
    /// Moves a socket to the control `to`.
    pub(crate) fn shift(&mut self, socket: &MptcpSocket, to: &str, undo: Option<&mut Undo>) {
        match socket.shift(to, undo) {
            Some(Err(kept)) => self.kept.push(kept),
            Some(Ok(())) if socket.remote.is_none() => self.listeners += 1,
            Some(Ok(())) => self.connections += 1,
            None => {}
        }
    }

    /// A later look at the same sockets: what moved adds up, what is kept is what it found.
    pub(crate) fn then(&mut self, later: Moved) {
        self.listeners += later.listeners;
        self.connections += later.connections;
        (self.kept, self.open) = (later.kept, later.open);
    }

    /// Other sockets.
    pub(crate) fn and(&mut self, others: Moved) {
        self.listeners += others.listeners;
        self.connections += others.connections;
        self.kept.extend(others.kept);
        self.open += others.open;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_testkit::recorded_netlink as answer;

    fn socket(name: &str, inode: u32) -> Socket {
        Socket { inode, ..Socket::parse(&answer(name)).unwrap() }
    }

    #[test]
    fn subflows_are_one_socket_and_what_nobody_holds_is_none() {
        let mut other = socket("joined", 7);
        other.control = "reno".into();
        let fallen = socket("fallen-back", 8);
        let closing = socket("first", 0);
        let sockets = [socket("joined", 0), other, fallen, closing, socket("listener", 9)];
        let all = join(&sockets);
        assert_eq!(all.iter().map(|one| one.inode).collect::<Vec<_>>(), [9, 7]);
        assert_eq!(all[0].remote, None);
        assert_eq!((all[1].remote, all[1].controls.len()), (Some(sockets[0].remote), 2));
        assert!(all[1].runs("reno") && all[1].runs("bbr") && !all[1].runs("cubic"));
    }

    #[test]
    fn a_socket_that_no_process_holds_is_named() {
        let one = join(&[socket("listener", 0)]).remove(0);
        let mut moved = Moved::default();
        moved.shift(&one, "reno", None);
        assert_eq!(moved.kept, [one.kept("no process holds it")]);
        assert_eq!((moved.listeners, moved.connections), (0, 0));
    }
}
