//! MPTCP listeners whose control is not the one in use where they are: older than the use, where they
//! could not be moved, or by their program's own choice. Subflows that join their connections get it.

use crate::assign::{self, Place};
use crate::sockets::{self, Members, MptcpSocket};
use narrows_foreign::Foreign;
use narrows_kernel::register::is_ours;
use narrows_mptcp::diag::Socket;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

/// A listener whose control is not the one in use.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Listener {
    /// Its address and port.
    pub local: SocketAddr,
    /// Its control.
    pub control: String,
    /// The control that is in use here.
    pub in_use: String,
    /// Id of a process that holds it; null: none does, or none that this user may look into.
    pub pid: Option<u32>,
    /// That process's command.
    pub command: Option<Foreign>,
    /// Does it have what was the default before, so that it is older than the use?
    pub older: bool,
}

/// Where which control is in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct InUse {
    /// By the number of the network namespace: what was the default before.
    before: HashMap<u32, String>,
    cgroups: Vec<(String, Members)>,
}

impl InUse {
    /// As far as this user may see: root.
    pub(crate) fn look() -> InUse {
        let mut in_use = InUse::default();
        for used in assign::uses().unwrap_or_default() {
            match used.place {
                Place::Netns { inum, before, .. } => drop(in_use.before.insert(inum, before)),
                Place::Cgroup { cgroup, id } => {
                    in_use.cgroups.push((used.name, Members::of(id, &cgroup)));
                }
            }
        }
        in_use
    }

    /// The listeners among the TCP sockets of a network namespace whose control is not the one in
    /// use there.
    ///
    /// # Errors
    /// No /proc.
    pub(crate) fn others(
        &self,
        inum: u32,
        default: &str,
        sockets: &[Socket],
    ) -> io::Result<Vec<Listener>> {
        // Who holds them is asked only if there may be one.
        let may = |socket: &MptcpSocket| {
            let default = is_ours(default).then_some(default);
            let mut names = self.cgroups.iter().map(|(name, _)| name.as_str()).chain(default);
            socket.remote.is_none() && names.any(|name| !socket.runs(name))
        };
        let found = sockets::find(sockets, may)?;
        Ok(found.iter().filter_map(|socket| self.judge(inum, default, socket)).collect())
    }

    fn judge(&self, inum: u32, default: &str, socket: &MptcpSocket) -> Option<Listener> {
        let of = self.cgroups.iter().find(|(_, members)| members.has(socket));
        let (in_use, before) = match of {
            Some((name, _)) => (name.as_str(), Some(default)),
            None if is_ours(default) => (default, self.before.get(&inum).map(String::as_str)),
            None => return None,
        };
        let control = socket.controls.first()?;
        let holder = socket.holders.first();
        (control != in_use).then(|| Listener {
            local: socket.local,
            control: control.clone(),
            in_use: in_use.to_owned(),
            pid: holder.map(|holder| holder.pid),
            command: holder.map(|holder| holder.command.clone()),
            older: before == Some(control),
        })
    }
}

impl std::fmt::Display for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Listener { local, control, in_use, pid, command, .. } = self;
        write!(f, "{local}")?;
        if let (Some(pid), Some(command)) = (pid, command) {
            write!(f, " of {command} (pid {pid})")?;
        }
        write!(f, " has {control}, not {in_use}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_testkit::recorded_netlink as answer;

    fn listener(control: &str) -> Socket {
        let socket = Socket::parse(&answer("listener")).unwrap();
        Socket { inode: 0, control: control.into(), ..socket }
    }

    #[test]
    fn a_listener_that_has_not_what_is_in_use_is_listed() {
        let in_use = InUse { before: HashMap::from([(7, "reno".into())]), cgroups: Vec::new() };
        let sockets = ["nr_olia", "reno", "bbr"].map(listener);
        let all = in_use.others(7, "nr_olia", &sockets).unwrap();
        let seen = all.iter().map(|one| (one.control.as_str(), one.older)).collect::<Vec<_>>();
        assert_eq!(seen, [("reno", true), ("bbr", false)]);
        assert_eq!(all[0].to_string(), format!("{} has reno, not nr_olia", sockets[0].local));
        assert_eq!(in_use.others(7, "reno", &sockets).unwrap(), [], "nothing is in use");
    }
}
