//! Sockets that keep a control after it was unloaded, and the processes that hold them.

use super::inside;
use narrows_foreign::Foreign;
use narrows_kernel::Error;
use narrows_mptcp::diag::{self, Socket};
use narrows_mptcp::holders;
use narrows_netns::Namespace;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// What keeps a control in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keepers {
    /// How many TCP sockets run it: listeners, subflows and plain ones.
    pub sockets: usize,
    /// How many of them no process holds, as they are closing.
    pub unheld: usize,
    /// The processes that hold the others; those with most sockets first.
    pub processes: Vec<Process>,
}

/// A process that holds sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its command's name.
    pub command: Foreign,
    /// How many of the sockets it holds, alone or with others.
    pub sockets: usize,
}

/// The sockets of these namespaces under the control `name`.
///
/// # Errors
/// The kernel refuses.
pub(super) fn keepers(name: &str, namespaces: &[(u64, Namespace)]) -> Result<Keepers, Error> {
    let mut keepers = Keepers::default();
    let mut inodes: HashMap<u32, usize> = HashMap::new();
    for (_, namespace) in namespaces {
        let sockets = namespace.unless_gone(|| inside(namespace, diag::sockets))?;
        for inode in inodes_of(name, &sockets.unwrap_or_default()) {
            keepers.sockets += 1;
            *inodes.entry(inode).or_default() += 1;
        }
    }
    let wanted = inodes.keys().copied().filter(|inode| *inode != 0).collect();
    let held = holders::holders(&wanted).map_err(Error::io(Path::new("/proc"), "read"))?;
    let mut processes: BTreeMap<u32, Process> = BTreeMap::new();
    for (inode, sockets) in inodes {
        let holders = held.get(&inode).into_iter().flatten();
        keepers.unheld += if held.contains_key(&inode) { 0 } else { sockets };
        for holder in holders {
            let new = || Process { pid: holder.pid, command: holder.command.clone(), sockets: 0 };
            processes.entry(holder.pid).or_insert_with(new).sockets += sockets;
        }
    }
    keepers.processes = processes.into_values().collect();
    keepers.processes.sort_by_key(|process| Reverse(process.sockets));
    Ok(keepers)
}

/// The inodes of a namespace's sockets under a control: of a subflow its connection's; 0: no file.
fn inodes_of(name: &str, sockets: &[Socket]) -> Vec<u32> {
    let connections = diag::inodes(sockets);
    let own = sockets.iter().filter(|socket| socket.control == name);
    own.map(|socket| socket.subflow.map_or(socket.inode, |subflow| connections[&subflow.token]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_testkit::recorded_netlink as answer;

    #[test]
    fn a_subflow_is_held_by_who_holds_its_connection() {
        let first = Socket::parse(&answer("first")).unwrap();
        let token = |socket: &Socket| socket.subflow.unwrap();
        let mut joined = Socket { inode: 0, control: "nr_lia".into(), ..first.clone() };
        joined.subflow = Some(token(&first));
        let first = Socket { inode: 7, control: "reno".into(), ..first };
        let plain = Socket { inode: 9, subflow: None, ..joined.clone() };
        assert_eq!(inodes_of("nr_lia", &[joined, first, plain]), [7, 9]);
    }
}
