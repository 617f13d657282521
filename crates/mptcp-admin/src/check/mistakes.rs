//! What the settings, connections and counters of a network namespace mean for MPTCP.

use super::item::{Item, Verdict};
use super::network::{Network, Trial};
use crate::listeners::Listener;
use narrows_foreign::Foreign;
use narrows_mptcp::diag::{Connection, Socket, State, Subflow};
use narrows_mptcp::pm::{Endpoint, Limits};
use narrows_mptcp::routes::{Address, Interface, Route};
use std::collections::{BTreeSet, HashSet};

/// Names that a line shows of a longer list.
const SHOWN: usize = 5;

/// A path that was busy for less is not judged by its rate or waiting, µs.
const BUSY_US: u64 = 1_000_000;

/// Seconds of data in a subflow's send buffer that are worth a note: one that Linux sizes has at most two of its largest
/// windows.
const HELD_S: u64 = 2;

/// `net.mptcp`'s counters of connections that went on as plain TCP, and why.
const FALLBACKS: [(&str, &str); 10] = [
    ("MPCapableFallbackSYNACK", "the peer or a middlebox answered without MPTCP"),
    ("MPCapableFallbackACK", "a client's last handshake packet came without MPTCP"),
    ("MPCapableDataFallback", "the first data came without MPTCP"),
    ("MPCapableSYNTXDrop", "MPTCP's SYNs went unanswered"),
    ("DSSCorruptionFallback", "a middlebox changed the data"),
    ("DssFallback", "data came with broken or without MPTCP options"),
    ("InfiniteMapRx", "the peer fell back to TCP"),
    ("Blackhole", "MPTCP is paused: its SYNs are dropped on the path"),
    ("MD5SigFallback", "TCP MD5 leaves no room"),
    ("SimultConnectFallback", "both sides connected at once"),
];

impl Network {
    /// What it means for MPTCP.
    pub fn judge(&self) -> Vec<Item> {
        let mut items = vec![match self.enabled {
            None => {
                let seen = "a kernel built with CONFIG_MPTCP=y is needed";
                return vec![Item::new("MPTCP", Verdict::Missing, seen)];
            }
            Some(false) => Item::new("MPTCP", Verdict::Missing, "disabled in this namespace")
                .fix("sysctl net.mptcp.enabled=1"),
            Some(true) => Item::new("MPTCP", Verdict::Ok, "enabled"),
        }];
        if self.kernel_manager {
            items.extend(self.judge_limits());
            items.extend(self.judge_endpoints());
        } else {
            let seen = "a daemon (mptcpd), not the kernel: it has its own limits and endpoints";
            items.push(Item::new("path manager", Verdict::Note, seen));
        }
        items.extend(self.judge_routes());
        items.extend(self.judge_own_controls());
        items.extend(self.judge_timestamps());
        items.extend(self.judge_subflows());
        items.extend(self.judge_joins());
        items.extend(self.judge_fallbacks());
        items.extend(self.judge_buffers());
        items.extend(self.judge_listeners());
        items.extend(self.judge_other_listeners());
        items
    }

    fn judge_limits(&self) -> Vec<Item> {
        let Some(limits) = self.limits else {
            return vec![Item::new("limits", Verdict::Unseen, "shown to root")];
        };
        let Limits { subflows, add_addr_accepted } = limits;
        let of = |endpoint: &&Endpoint| endpoint.is_subflow();
        let subflow_endpoints: Vec<&Endpoint> =
            self.endpoints.iter().flatten().filter(of).collect();
        // The first subflow leaves from that of the default route.
        let first = subflow_endpoints.iter().any(|endpoint| {
            let is_it =
                |a: &Address| a.address == endpoint.address && self.default == Some(a.interface);
            self.addresses.iter().any(is_it)
        });
        let wanted = subflow_endpoints.len() as u32 - u32::from(first);
        let mut items = Vec::new();
        if subflows < wanted.max(1) {
            let seen = match subflows {
                0 => "no additional subflow is allowed".into(),
                n => format!(
                    "{} allowed in addition to the first, for {wanted} further endpoints",
                    count(n, "subflow")
                ),
            };
            // The kernel allows eight.
            let fix = format!("ip mptcp limits set subflows {}", wanted.clamp(2, 8));
            items.push(Item::new("limits", Verdict::Mistake, seen).fix(fix));
        }
        let announced = self.counter("AddAddr");
        if add_addr_accepted == 0 && announced > 0 {
            let seen = format!("peers announced {}, none is used", count(announced, "address"));
            let fix = "ip mptcp limits set add_addr_accepted 2";
            items.push(Item::new("limits", Verdict::Mistake, seen).fix(fix));
        }
        if items.is_empty() {
            let seen = format!(
                "{subflows} additional subflows, {add_addr_accepted} announced addresses accepted"
            );
            items.push(Item::new("limits", Verdict::Ok, seen));
        }
        items
    }

    fn judge_endpoints(&self) -> Vec<Item> {
        let Some(endpoints) = &self.endpoints else {
            return vec![Item::new("endpoints", Verdict::Unseen, "shown to root")];
        };
        let mut items = Vec::new();
        let own: Vec<&Endpoint> = endpoints.iter().filter(|one| !one.is_implicit()).collect();
        if own.is_empty() {
            items.push(self.judge_no_endpoint());
        }
        for endpoint in own {
            let Endpoint { address, id, .. } = endpoint;
            let here = self.addresses.iter().find(|here| here.address == *address);
            items.push(match here {
                Some(here) => {
                    let name = self.name(here.interface);
                    let seen = format!("{address} on {name}:{}", flags(endpoint));
                    Item::new("endpoint", Verdict::Ok, seen)
                }
                None => {
                    let seen = format!("{address} is on no interface");
                    Item::new("endpoint", Verdict::Mistake, seen)
                        .fix(format!("ip mptcp endpoint delete id {id}"))
                }
            });
        }
        items
    }

    /// One path needs no endpoint; of several those beside the default one do.
    fn judge_no_endpoint(&self) -> Item {
        let usable: Vec<(&Interface, &Address)> = self
            .interfaces
            .iter()
            .filter(|interface| interface.usable)
            .filter(|interface| !interface.bridge || self.default == Some(interface.index))
            .filter_map(|interface| {
                let mut of = self.addresses.iter().filter(|of| of.interface == interface.index);
                Some((interface, of.find(|of| of.global)?))
            })
            .collect();
        let names: Vec<String> =
            usable.iter().map(|(interface, _)| interface.name.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if usable.len() < 2 {
            let seen = format!("none; usable interfaces: {}", list(&names));
            return Item::new("endpoints", Verdict::Note, seen);
        }
        let joined = self.judge_subflows().is_some_and(|item| item.verdict == Verdict::Ok);
        let accepts = self.limits.is_some_and(|limits| limits.add_addr_accepted > 0);
        if joined || accepts && self.counter("AddAddr") > 0 {
            let seen =
                format!("none; usable interfaces: {}; peers open the subflows", list(&names));
            return Item::new("endpoints", Verdict::Note, seen);
        }
        let seen = format!("none, though {} are usable: connections use one path", list(&names));
        let flag = if self.only_serves() { "signal" } else { "subflow" };
        let first = self.default.unwrap_or(usable[0].0.index);
        let others = usable.iter().filter(|(interface, _)| interface.index != first);
        others.fold(Item::new("endpoints", Verdict::Mistake, seen), |item, (interface, address)| {
            let (address, name) = (address.address, &interface.name);
            item.fix(format!("ip mptcp endpoint add {address} dev {} {flag}", name.word()))
        })
    }

    /// Does MPTCP come to this host alone: to a listener that others reach, and is no connection begun here?
    fn only_serves(&self) -> bool {
        let listens = |socket: &&Socket| socket.state == State::Listen && socket.mptcp;
        let reachable = self.sockets.iter().filter(listens).map(|socket| socket.local);
        let reachable = reachable.filter(|local| !local.ip().is_loopback());
        let ports: BTreeSet<u16> = reachable.map(|local| local.port()).collect();
        // What connects to this host itself is no client of others'.
        let here = |connection: &&Connection| {
            let to = connection.remote.ip();
            to.is_loopback() || self.addresses.iter().any(|own| own.address == to)
        };
        let came = |connection: &Connection| ports.contains(&connection.local.port());
        !ports.is_empty() && self.connections.iter().filter(|one| !here(one)).all(came)
    }

    fn judge_routes(&self) -> Vec<Item> {
        let wrong = |trial: &&Trial| {
            trial.route.is_none_or(|route| route.interface != trial.from.interface)
        };
        let mut items = Vec::new();
        let mut seen = BTreeSet::new();
        for trial in self.trials.iter().filter(wrong) {
            let Trial { from: Address { address, interface, .. }, to, route, behind } = trial;
            if !seen.insert(address) {
                continue;
            }
            let name = self.name(*interface);
            let seen = match route {
                Some(route) => format!(
                    "packets from {address} ({name}) to {to} leave by {}: no source route",
                    self.name(route.interface)
                ),
                None => format!("no route from {address} by {name} to {to}"),
            };
            let destination = match behind {
                Some(Route { gateway: Some(gateway), .. }) => format!("default via {gateway}"),
                // The peer is a neighbour there.
                Some(Route { gateway: None, .. }) => to.to_string(),
                None => "default via GATEWAY".into(),
            };
            // A table number of its own, clear of the kernel's.
            let table = 100 + interface;
            let family = if address.is_ipv4() { "ip" } else { "ip -6" };
            items.push(
                Item::new("source route", Verdict::Mistake, seen)
                    .fix(format!(
                        "{family} route replace {destination} dev {} table {table}",
                        name.word()
                    ))
                    .fix(format!("{family} rule add from {address} table {table}")),
            );
        }
        items
    }

    /// A route's control is meant by somebody, who may have forgotten it.
    fn judge_own_controls(&self) -> Option<Item> {
        let (to, control) = self.own_controls.first()?;
        let seen = format!(
            "with a control of their own, which comes before the default: {}, as {to} congctl {control}",
            self.own_controls.len()
        );
        let item = Item::new("routes", Verdict::Note, seen);
        Some(item.fix(
            "ip route change ROUTE    # as ip [-6] route show table all has it, without congctl",
        ))
    }

    /// Timestamps of 1 ms are no mistake; detectors that sample one-way delays like 1 µs.
    fn judge_timestamps(&self) -> Option<Item> {
        let (from, to, _) = self.us_timestamps.iter().find(|(.., has)| !has)?;
        let without = self.us_timestamps.iter().filter(|(.., has)| !has).count();
        let seen = format!(
            "of 1 ms on {without} of {} of subflows, as from {from} to {to}; --signal sender-us needs 1 us",
            count(self.us_timestamps.len(), "route")
        );
        let item = Item::new("timestamps", Verdict::Note, seen);
        Some(item.fix(
            "ip route change ROUTE features tcp_usec_ts    # Linux 6.7; at the other end, too",
        ))
    }

    fn judge_subflows(&self) -> Option<Item> {
        let living = self.connections.iter().filter(|one| one.state == State::Established);
        let living: Vec<&Connection> = living.filter(|one| !one.fell_back).collect();
        let subflows = |connection: &Connection| {
            let of = |socket: &&Socket| socket.subflow.is_some_and(|s| s.token == connection.token);
            // Without the right to see whose subflow a socket is, the connection's own count.
            let seen = self.sockets.iter().filter(of).count();
            seen.max(1 + usize::from(connection.extra_subflows))
        };
        let alone = living.iter().filter(|connection| subflows(connection) < 2).count();
        match (living.len(), alone) {
            (0, _) => None,
            (all, 0) => {
                let seen = format!("{}, all with 2 subflows or more", count(all, "connection"));
                Some(Item::new("subflows", Verdict::Ok, seen))
            }
            (all, alone) => {
                let seen = format!("{alone} of {} with only one subflow", count(all, "connection"));
                Some(Item::new("subflows", Verdict::Mistake, seen))
            }
        }
    }

    fn judge_joins(&self) -> Vec<Item> {
        let mut items = Vec::new();
        let (asked, answered) = (self.counter("MPJoinSynTx"), self.counter("MPJoinSynAckRx"));
        let lost = asked.saturating_sub(answered);
        if lost > 0 {
            // Some are lost as any packet is.
            let verdict = if lost > asked / 10 { Verdict::Mistake } else { Verdict::Note };
            let seen = format!(
                "{lost} of {} sent not answered: no listener on that address, a firewall, no route there, or \
                 connections that ended meanwhile",
                count(asked, "join")
            );
            items.push(Item::new("joins", verdict, seen));
        }
        let unbound = self.counter("MPJoinSynTxBindErr") + self.counter("MPJoinSynTxConnectErr");
        if unbound > 0 {
            let seen =
                format!("{} not sent: no such address here, or no route", count(unbound, "join"));
            items.push(Item::new("joins", Verdict::Mistake, seen));
        }
        // Short connections end before some of their joins have come.
        let came = self.counter("MPJoinSynRx");
        let mut refused = |counter, why: &str| match self.counter(counter) {
            0 => {}
            n => {
                let verdict = if n > came / 10 { Verdict::Mistake } else { Verdict::Note };
                items.push(Item::new("joins", verdict, format!("{} {why}", count(n, "join"))));
            }
        };
        refused(
            "MPJoinNoTokenFound",
            "for unknown connections: closed, or of another host behind a load balancer",
        );
        refused("MPJoinRejected", "of peers rejected: closing, or above this host's limits");
        items
    }

    fn judge_fallbacks(&self) -> Vec<Item> {
        let asked = self.counter("MPCapableSYNTX") + self.counter("MPCapableSYNRX");
        let counted = FALLBACKS.iter().filter_map(|(name, why)| match self.counter(name) {
            0 => None,
            n => {
                // One of many may meet such a peer.
                let verdict = if n > asked / 10 { Verdict::Mistake } else { Verdict::Note };
                let seen = format!("{} in total: {why} ({name})", count(n, "connection"));
                Some(Item::new("fallback", verdict, seen))
            }
        });
        let mut items: Vec<Item> = counted.collect();
        let now: Vec<&Connection> = self.connections.iter().filter(|one| one.fell_back).collect();
        if !now.is_empty() {
            let peers: BTreeSet<String> = now.iter().map(|one| one.remote.to_string()).collect();
            let peers: Vec<&str> = peers.iter().map(String::as_str).collect();
            let seen = format!(
                "{} plain TCP now, to {}",
                count(now.len(), "open connection"),
                list(&peers)
            );
            items.push(Item::new("fallback", Verdict::Mistake, seen));
        }
        items
    }

    fn judge_buffers(&self) -> Vec<Item> {
        let mut items = Vec::new();
        let fix = |bytes: u64| format!("sysctl -w net.ipv4.tcp_wmem=\"4096 16384 {bytes}\"");
        // RFC 6182 section 5.3: what all paths carry in the longest round trip, twice.
        let needed = self
            .connections
            .iter()
            .map(|connection| {
                let of = |s: &&Socket| s.subflow.is_some_and(|s| s.token == connection.token);
                let infos = self.sockets.iter().filter(of).filter_map(|s| s.info.as_ref());
                let infos = infos.filter(|info| info.busy_time >= BUSY_US);
                let (rate, rtt) = infos.fold((0, 0), |(rate, rtt): (u64, u64), info| {
                    (rate.saturating_add(info.delivery_rate), rtt.max(info.rtt.into()))
                });
                (2 * u128::from(rate) * u128::from(rtt) / 1_000_000) as u64
            })
            .max()
            .unwrap_or(0);
        if needed > self.send_buffer_max {
            let seen = format!(
                "the paths of a connection hold {needed} bytes, a send buffer at most {}",
                self.send_buffer_max
            );
            let fix = fix(needed.next_power_of_two());
            items.push(Item::new("buffers", Verdict::Mistake, seen).fix(fix));
        }
        // Time spent waiting for room, of the time there was something to send.
        let (mut peer, mut own, mut busy) = (0, 0, 0);
        // Siblings wait for what it holds, and no larger limit would help them.
        let (held, holding) = self.judge_held();
        let subflow = |socket: &&Socket| socket.subflow.is_some_and(|of| !of.fell_back());
        for socket in self.sockets.iter().filter(subflow) {
            if let Some(info) = socket.info.as_ref().filter(|info| info.busy_time >= BUSY_US) {
                busy += 1;
                peer += usize::from(info.rwnd_limited > info.busy_time / 10);
                // One below the limit grows by itself, with the window.
                let largest = u64::from(socket.send_buffer) >= self.send_buffer_max;
                let waits = socket.subflow.is_some_and(|subflow| holding.contains(&subflow.token));
                let limited = info.sndbuf_limited > info.busy_time / 10;
                own += usize::from(largest && !waits && limited);
            }
        }
        if peer > 0 {
            let seen = format!(
                "{peer} of {} waited for the peer's receive window over a tenth of the time: \
                 its tcp_rmem is too small, or its application reads too slowly",
                count(busy, "subflow")
            );
            items.push(Item::new("buffers", Verdict::Mistake, seen));
        }
        if own > 0 {
            let seen = format!(
                "{own} of {} waited for space in a send buffer of maximum size over a tenth of the \
                 time: net.ipv4.tcp_wmem is too small",
                count(busy, "subflow")
            );
            let fix = fix(self.send_buffer_max.saturating_mul(2).min(i32::MAX as u64));
            items.push(Item::new("buffers", Verdict::Mistake, seen).fix(fix));
        }
        items.extend(held);
        items
    }

    /// The scheduler gives a subflow what its send buffer has room for, and no sibling sends that. With the
    /// tokens of these connections.
    fn judge_held(&self) -> (Option<Item>, HashSet<u32>) {
        let held = self.sockets.iter().filter_map(|socket| {
            let subflow = socket.subflow.filter(|subflow| !subflow.fell_back())?;
            let info = socket.info.as_ref().filter(|info| info.busy_time >= BUSY_US)?;
            let sibling = |other: &Socket| {
                let could = |of: Subflow| of.token == subflow.token && !of.is_backup();
                other.cookie != socket.cookie && other.subflow.is_some_and(could)
            };
            let seconds = u64::from(info.notsent_bytes).checked_div(info.delivery_rate)?;
            (seconds >= HELD_S && self.sockets.iter().any(sibling))
                .then_some((subflow.token, seconds))
        });
        let held: Vec<(u32, u64)> = held.collect();
        let item = held.iter().map(|of| of.1).max().map(|most| {
            let seen = format!(
                "{} with up to {most} s of data waiting that no other subflow can send: as where a \
                 program sets SO_SNDBUF (iperf3 -w), or the path's rate fell",
                count(held.len(), "subflow")
            );
            Item::new("buffers", Verdict::Note, seen)
        });
        (item, held.into_iter().map(|of| of.0).collect())
    }

    /// A server without MPTCP is no mistake, but its clients can use only one path.
    fn judge_listeners(&self) -> Option<Item> {
        // Where the kernel shows no user which sockets are MPTCP's, all would look plain.
        let shown = narrows_kernel::is_root() || self.sockets.iter().any(|socket| socket.mptcp);
        let reachable = self.sockets.iter().filter(|socket| {
            socket.state == State::Listen && !socket.local.ip().is_loopback() && !socket.mptcp
        });
        let ports: BTreeSet<u16> = reachable.map(|socket| socket.local.port()).collect();
        if ports.is_empty() || !shown {
            return None;
        }
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
        let seen = format!("without MPTCP, on ports {}", list(&ports));
        // A program in Go calls no libc whose socket() mptcpize could replace.
        let in_go = "env GODEBUG=multipathtcp=2 COMMAND    # a program in Go";
        Some(Item::new("listeners", Verdict::Note, seen).fix("mptcpize run COMMAND").fix(in_go))
    }

    /// One that is older than a use hands a control on that is not coupled with the one in use.
    fn judge_other_listeners(&self) -> Vec<Item> {
        let judge = |listener: &Listener| match listener.older {
            true => {
                let seen = format!(
                    "{listener}: older than the use; repeat that (narrows kernel use), or restart it"
                );
                Item::new("listener", Verdict::Mistake, seen)
            }
            false => Item::new("listener", Verdict::Note, listener.to_string()),
        };
        self.listeners.iter().map(judge).collect()
    }

    fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    fn name(&self, index: u32) -> Foreign {
        let interface = self.interfaces.iter().find(|interface| interface.index == index);
        interface.map_or_else(|| format!("interface {index}").into(), |found| found.name.clone())
    }
}

/// A number and what it counts.
fn count<N: PartialEq + From<u8> + std::fmt::Display>(n: N, what: &str) -> String {
    let ending = match n == N::from(1) {
        true => "",
        false if what.ends_with('s') => "es",
        false => "s",
    };
    format!("{n} {what}{ending}")
}

/// The flags as `ip mptcp endpoint` writes them.
fn flags(endpoint: &Endpoint) -> String {
    let all = [
        (endpoint.is_subflow(), " subflow"),
        (endpoint.is_signal(), " signal"),
        (endpoint.is_backup(), " backup"),
        (endpoint.is_fullmesh(), " fullmesh"),
    ];
    all.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect()
}

/// The first few of many.
fn list(names: &[&str]) -> String {
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 if names.is_empty() => "none".into(),
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
