//! What the state map says, held against what `ss` says.

use libbpf_rs::{MapCore, MapHandle};
use narrows_kernel::control::Registered;
use narrows_kernel::state::{self, Connection, DETECTIONS};
use narrows_laws::Control;
use narrows_netns::Namespace;
use narrows_testkit::net;
use narrows_testkit::wait_until;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Deref;

/// Both hosts. Dropped: every socket must be gone from them and every entry from the map.
pub struct Net(net::Net);

impl Net {
    /// A path for each rate, Mbit/s in either direction.
    pub fn new(rates: &[u32]) -> Net {
        Net(net::Net::new(rates))
    }

    /// Likewise, and the endpoints are IPv6 addresses.
    pub fn v6(rates: &[u32]) -> Net {
        Net(net::Net::v6(rates))
    }

    /// Waits until all that was opened is closed: sockets, and entries of the map.
    pub fn drained(&self) {
        self.0.drained(|| entries(self).len());
    }
}

impl Deref for Net {
    type Target = net::Net;

    fn deref(&self) -> &net::Net {
        &self.0
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.drained();
        }
    }
}

/// The entries of both hosts.
pub fn entries(net: &Net) -> Vec<Connection> {
    let ours = [net.client.inum, net.server.inum];
    let all = state::connections().expect("the state map can be read");
    all.into_iter().filter(|entry| ours.contains(&entry.netns)).collect()
}

/// A counter of MPTCP in a host.
pub fn mptcp(host: &Namespace, name: &str) -> u64 {
    let counters = host.run(narrows_mptcp::counters).unwrap().unwrap();
    counters.get(name).copied().unwrap_or(0)
}

/// A counter of a control.
pub fn counter(law: &Registered, name: &str) -> u64 {
    let counters = law.counters().expect("counters can be read");
    counters.iter().find(|(found, _)| *found == name).expect("there is such a counter").1
}

/// All that a control counted, for the terminal.
pub fn counted(law: &Registered) -> String {
    let counters = law.counters().expect("counters can be read");
    let some = counters.iter().filter(|(_, count)| *count > 0);
    some.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

/// Joins, at once or later, less leaves: what has a slot now.
pub fn slots(law: &Registered) -> i64 {
    let of = |name| counter(law, name) as i64;
    of("joins") + of("coupled_later") - of("fallback_lost") - of("leaves")
}

/// The map of what detectors keep of connections; it stays for as long as this is held.
pub fn detections_of(law: &Registered) -> MapHandle {
    let map = law.loaded().object().maps().find(|map| map.name() == DETECTIONS);
    MapHandle::try_from(&map.expect("a control with a detector that decides")).unwrap()
}

/// Connections of which a detector keeps something.
pub fn detections(law: &Registered) -> usize {
    detections_of(law).keys().count()
}

/// Waits until every MPTCP subflow of both hosts runs `control`, and each host has for each
/// connection one entry of it with just these subflows in it: none runs the fallback law. `subflows` of them
/// in each host.
pub fn agree(net: &Net, control: Control, name: &str, subflows: usize) {
    wait_until(20, || agreement(net, control, name, subflows));
}

fn agreement(net: &Net, control: Control, name: &str, subflows: usize) -> Result<(), String> {
    let entries = entries(net);
    for host in [&net.client, &net.server] {
        let sockets: Vec<_> = net::sockets(host).into_iter().filter(|s| s.is_mptcp()).collect();
        if sockets.len() != subflows {
            return Err(format!("{}: {} subflows of {subflows}", host.name, sockets.len()));
        }
        if let Some(other) = sockets.iter().find(|socket| !socket.runs(name)) {
            return Err(format!("{}: not {name}: {other:?}", host.name));
        }
        let entries: Vec<_> = entries.iter().filter(|entry| entry.netns == host.inum).collect();
        let mut paths: Vec<(SocketAddr, SocketAddr)> = Vec::new();
        let mut tokens = BTreeMap::new();
        for entry in entries {
            if entry.control != Some(control) || entry.closed {
                return Err(format!("{}: not of {control}: {entry:?}", host.name));
            }
            *tokens.entry(entry.token).or_insert(0) += 1;
            paths.extend(entry.paths.iter().map(|path| (path.local, path.remote)));
        }
        if tokens.values().any(|entries| *entries != 1) {
            return Err(format!("{}: entries by token: {tokens:?}", host.name));
        }
        let mut by_ss: Vec<_> = sockets.iter().map(|s| (s.local, s.remote)).collect();
        paths.sort();
        by_ss.sort();
        if paths != by_ss {
            return Err(format!("{}: in the map {paths:?}, by ss {by_ss:?}", host.name));
        }
    }
    Ok(())
}
