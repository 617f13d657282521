//! What the settings, connections and counters of a network namespace mean for MPTCP.

use super::network::{Network, Trial};
use super::{Item, Verdict};
use crate::diag::{Connection, Socket, State};
use crate::mptcp::{Endpoint, Limits};
use crate::routes::{Address, Interface, Route};
use std::collections::BTreeSet;

/// Names that a line shows of a longer list.
const SHOWN: usize = 5;

/// A path that was busy for less is not judged by its rate or waiting, µs.
const BUSY_US: u64 = 1_000_000;

/// `net.mptcp`'s counters of connections that went on as plain TCP, and why.
const FALLBACKS: [(&str, &str); 10] = [
    ("MPCapableFallbackSYNACK", "the peer or somebody on the way answered without MPTCP"),
    ("MPCapableFallbackACK", "a client's last handshake packet came without MPTCP"),
    ("MPCapableDataFallback", "the first data came without MPTCP"),
    ("MPCapableSYNTXDrop", "MPTCP's SYNs went unanswered"),
    ("DSSCorruptionFallback", "somebody on the way changed the data"),
    ("DssFallback", "data came with broken or without MPTCP options"),
    ("InfiniteMapRx", "the peer gave MPTCP up"),
    ("Blackhole", "MPTCP was given up for a while: its SYNs are dropped on the way"),
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
            Some(false) => Item::new("MPTCP", Verdict::Missing, "switched off in this namespace")
                .fix("sysctl net.mptcp.enabled=1"),
            Some(true) => Item::new("MPTCP", Verdict::Ok, "enabled"),
        }];
        if self.kernel_manager {
            items.extend(self.judge_limits());
            items.extend(self.judge_endpoints());
        } else {
            let seen = "a daemon's (mptcpd), not the kernel's: limits and endpoints are its own";
            items.push(Item::new("path manager", Verdict::Note, seen));
        }
        items.extend(self.judge_routes());
        items.extend(self.judge_subflows());
        items.extend(self.judge_joins());
        items.extend(self.judge_fallbacks());
        items.extend(self.judge_buffers());
        items.extend(self.judge_listeners());
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
        // From that of the way out the first subflow goes.
        let first = subflow_endpoints.iter().any(|endpoint| {
            let is_it =
                |a: &Address| a.address == endpoint.address && self.default == Some(a.interface);
            self.addresses.iter().any(is_it)
        });
        let wanted = subflow_endpoints.len() as u32 - u32::from(first);
        let mut items = Vec::new();
        if subflows < wanted.max(1) {
            let seen = match subflows {
                0 => "no subflow beside the first is allowed".into(),
                n => format!(
                    "{} beside the first allowed, for {wanted} further endpoints",
                    count(n, "subflow")
                ),
            };
            // The kernel allows eight.
            let fix = format!("ip mptcp limits set subflows {}", wanted.clamp(2, 8));
            items.push(Item::new("limits", Verdict::Mistake, seen).fix(fix));
        }
        let announced = self.counter("AddAddr");
        if add_addr_accepted == 0 && announced > 0 {
            let seen = format!("peers announced {}, none is taken up", count(announced, "address"));
            let fix = "ip mptcp limits set add_addr_accepted 2";
            items.push(Item::new("limits", Verdict::Mistake, seen).fix(fix));
        }
        if items.is_empty() {
            let seen = format!(
                "{subflows} subflows beside the first, {add_addr_accepted} announced addresses taken up"
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
        let names: Vec<&str> =
            usable.iter().map(|(interface, _)| interface.name.as_str()).collect();
        if usable.len() < 2 {
            let seen = format!("none; usable interfaces: {}", list(&names));
            return Item::new("endpoints", Verdict::Note, seen);
        }
        let joined = self.judge_subflows().filter(|subflows| subflows.verdict == Verdict::Ok);
        if joined.is_some() {
            let seen =
                format!("none; usable interfaces: {}; peers open the subflows", list(&names));
            return Item::new("endpoints", Verdict::Note, seen);
        }
        let seen = format!(
            "none, though {} are usable: connections use one path (a server announces with signal)",
            list(&names)
        );
        let first = self.default.unwrap_or(usable[0].0.index);
        let others = usable.iter().filter(|(interface, _)| interface.index != first);
        others.fold(Item::new("endpoints", Verdict::Mistake, seen), |item, (interface, address)| {
            let (address, name) = (address.address, &interface.name);
            item.fix(format!("ip mptcp endpoint add {address} dev {name} subflow"))
        })
    }

    fn judge_routes(&self) -> Vec<Item> {
        let wrong = |trial: &&Trial| {
            trial.route.is_none_or(|route| route.interface != trial.from.interface)
        };
        let mut items = Vec::new();
        let mut told = BTreeSet::new();
        for trial in self.trials.iter().filter(wrong) {
            let Trial { from: Address { address, interface, .. }, to, route, behind } = trial;
            if !told.insert(address) {
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
            let way = match behind {
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
                    .fix(format!("{family} route replace {way} dev {name} table {table}"))
                    .fix(format!("{family} rule add from {address} table {table}")),
            );
        }
        items
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
                let seen = format!("{alone} of {} with one subflow only", count(all, "connection"));
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
                "{lost} of {} sent not answered: no listener on that address, a firewall, or no way there",
                count(asked, "join")
            );
            items.push(Item::new("joins", verdict, seen));
        }
        let mut mistake = |seen| items.push(Item::new("joins", Verdict::Mistake, seen));
        let unbound = self.counter("MPJoinSynTxBindErr") + self.counter("MPJoinSynTxConnectErr");
        if unbound > 0 {
            mistake(format!(
                "{} not sent: no such address here, or no route",
                count(unbound, "join")
            ));
        }
        let stray = self.counter("MPJoinNoTokenFound");
        if stray > 0 {
            mistake(format!(
                "{} came for connections that are not here: gone, or another host's behind a load \
                 balancer",
                count(stray, "join")
            ));
        }
        let rejected = self.counter("MPJoinRejected");
        if rejected > 0 {
            mistake(format!(
                "{} of peers rejected: over this host's limits",
                count(rejected, "join")
            ));
        }
        items
    }

    fn judge_fallbacks(&self) -> Vec<Item> {
        let asked = self.counter("MPCapableSYNTX") + self.counter("MPCapableSYNRX");
        let counted = FALLBACKS.iter().filter_map(|(name, why)| match self.counter(name) {
            0 => None,
            n => {
                // One of many may meet such a peer.
                let verdict = if n > asked / 10 { Verdict::Mistake } else { Verdict::Note };
                let seen = format!("{} so far: {why} ({name})", count(n, "connection"));
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
                count(now.len(), "living connection"),
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
                "the paths of a connection fill {needed} bytes, a send buffer is {} at most",
                self.send_buffer_max
            );
            let fix = fix(needed.next_power_of_two());
            items.push(Item::new("buffers", Verdict::Mistake, seen).fix(fix));
        }
        // Time spent waiting for room, of the time there was something to send.
        let (mut peer, mut own, mut busy) = (0, 0, 0);
        let subflow = |socket: &&Socket| socket.subflow.is_some_and(|of| !of.fell_back());
        for socket in self.sockets.iter().filter(subflow) {
            if let Some(info) = socket.info.as_ref().filter(|info| info.busy_time >= BUSY_US) {
                busy += 1;
                peer += usize::from(info.rwnd_limited > info.busy_time / 10);
                // One below the limit grows by itself, with the window.
                let largest = u64::from(socket.send_buffer) >= self.send_buffer_max;
                own += usize::from(largest && info.sndbuf_limited > info.busy_time / 10);
            }
        }
        if peer > 0 {
            let seen = format!(
                "{peer} of {} waiting for the peer's receive window over a tenth of the time: \
                 its tcp_rmem is too small, or its application reads too slowly",
                count(busy, "subflow")
            );
            items.push(Item::new("buffers", Verdict::Mistake, seen));
        }
        if own > 0 {
            let seen = format!(
                "{own} of {} waiting for room in the send buffer over a tenth of the time, at its \
                 largest: net.ipv4.tcp_wmem is too small",
                count(busy, "subflow")
            );
            let fix = fix(self.send_buffer_max.saturating_mul(2).min(i32::MAX as u64));
            items.push(Item::new("buffers", Verdict::Mistake, seen).fix(fix));
        }
        items
    }

    /// A server without MPTCP is no mistake of this machine's, but nobody can use paths to it.
    fn judge_listeners(&self) -> Option<Item> {
        // Where the kernel tells no user which sockets are MPTCP's, all would look plain.
        let told = crate::is_root() || self.sockets.iter().any(|socket| socket.mptcp);
        let reachable = self.sockets.iter().filter(|socket| {
            socket.state == State::Listen && !socket.local.ip().is_loopback() && !socket.mptcp
        });
        let ports: BTreeSet<u16> = reachable.map(|socket| socket.local.port()).collect();
        if ports.is_empty() || !told {
            return None;
        }
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
        let seen = format!("without MPTCP, on ports {}", list(&ports));
        Some(Item::new("listeners", Verdict::Note, seen).fix("mptcpize run COMMAND"))
    }

    fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    fn name(&self, index: u32) -> String {
        let interface = self.interfaces.iter().find(|interface| interface.index == index);
        interface.map_or_else(|| format!("interface {index}"), |found| found.name.clone())
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
mod tests {
    use super::super::verdict;
    use super::*;
    use crate::netlink::recorded::answer;
    use std::net::IpAddr;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Two interfaces with an address each; the default route leaves by the first.
    fn two_paths() -> Network {
        let interface =
            |index, name: &str| Interface { index, name: name.into(), usable: true, bridge: false };
        let on = |interface, text| Address { address: address(text), interface, global: true };
        Network {
            enabled: Some(true),
            kernel_manager: true,
            limits: Some(Limits { subflows: 2, add_addr_accepted: 0 }),
            endpoints: Some(Vec::new()),
            interfaces: vec![interface(1, "wlan0"), interface(2, "wwan0")],
            addresses: vec![on(1, "192.168.1.7"), on(2, "10.8.0.2")],
            default: Some(1),
            send_buffer_max: 4 << 20,
            ..Network::default()
        }
    }

    fn endpoint(text: &str) -> Endpoint {
        Endpoint { id: 3, address: address(text), port: 0, interface: 2, flags: 2 }
    }

    fn find<'a>(items: &'a [Item], what: &str) -> &'a Item {
        items.iter().find(|item| item.what == what).unwrap()
    }

    #[test]
    fn two_interfaces_and_no_endpoint_is_a_mistake_with_the_command_for_the_second() {
        let items = two_paths().judge();
        let item = find(&items, "endpoints");
        assert_eq!(item.verdict, Verdict::Mistake);
        assert_eq!(item.fix, ["ip mptcp endpoint add 10.8.0.2 dev wwan0 subflow"]);

        let with = Network { endpoints: Some(vec![endpoint("10.8.0.2")]), ..two_paths() };
        assert!(with.judge().iter().all(|item| item.verdict == Verdict::Ok));
    }

    #[test]
    fn a_bridge_for_containers_is_no_second_path() {
        let mut network = two_paths();
        network.interfaces[1].bridge = true;
        assert_eq!(verdict(&network.judge(), "endpoints"), Some(Verdict::Note));
    }

    #[test]
    fn an_endpoint_that_left_the_machine_is_a_mistake() {
        let network = Network { endpoints: Some(vec![endpoint("10.9.9.9")]), ..two_paths() };
        let items = network.judge();
        assert_eq!(find(&items, "endpoint").fix, ["ip mptcp endpoint delete id 3"]);
    }

    #[test]
    fn packets_that_leave_by_the_wrong_interface_ask_for_a_source_route() {
        let mut network = two_paths();
        let from = network.addresses[1];
        let to = address("198.51.100.1");
        let by = |interface| Some(Route { interface, gateway: None });
        let behind = Some(Route { interface: 2, gateway: Some(address("10.8.0.1")) });
        network.trials = vec![Trial { from, to, route: by(1), behind }];
        let items = network.judge();
        let item = find(&items, "source route");
        assert_eq!(item.verdict, Verdict::Mistake);
        let fix = [
            "ip route replace default via 10.8.0.1 dev wwan0 table 102",
            "ip rule add from 10.8.0.2 table 102",
        ];
        assert_eq!(item.fix, fix);

        network.trials = vec![Trial { from, to, route: by(1), behind: by(2) }];
        let items = network.judge();
        let neighbour = "ip route replace 198.51.100.1 dev wwan0 table 102";
        assert_eq!(find(&items, "source route").fix[0], neighbour);

        network.trials = vec![Trial { from, to, route: by(2), behind }];
        assert_eq!(verdict(&network.judge(), "source route"), None);
    }

    #[test]
    fn limits_that_allow_no_subflow_and_addresses_not_taken_up_are_mistakes() {
        let mut network = two_paths();
        network.limits = Some(Limits::default());
        network.counters.insert("AddAddr".into(), 3);
        let items = network.judge();
        let fixes: Vec<_> =
            items.iter().filter(|item| item.what == "limits").flat_map(|item| &item.fix).collect();
        let wanted = ["ip mptcp limits set subflows 2", "ip mptcp limits set add_addr_accepted 2"];
        assert_eq!(fixes, wanted);
    }

    #[test]
    fn an_endpoint_on_the_way_out_needs_no_subflow_beside_the_first() {
        let endpoints = Some(vec![endpoint("192.168.1.7"), endpoint("10.8.0.2")]);
        let with = |subflows| {
            let limits = Some(Limits { subflows, add_addr_accepted: 0 });
            Network { limits, endpoints: endpoints.clone(), ..two_paths() }
        };
        assert_eq!(verdict(&with(1).judge(), "limits"), Some(Verdict::Ok));
        assert_eq!(verdict(&with(0).judge(), "limits"), Some(Verdict::Mistake));
        // Both are further ones where packets leave by neither.
        let inner = Network { default: None, ..with(1) };
        assert_eq!(verdict(&inner.judge(), "limits"), Some(Verdict::Mistake));
    }

    #[test]
    fn counters_tell_of_fallback_and_of_joins_without_answer() {
        let mut network = two_paths();
        network.counters.insert("MPCapableFallbackACK".into(), 2);
        network.counters.insert("MPJoinSynTx".into(), 5);
        network.counters.insert("MPJoinSynAckRx".into(), 4);
        let items = network.judge();
        assert_eq!(
            find(&items, "joins").seen.split(':').next(),
            Some("1 of 5 joins sent not answered")
        );
        assert!(find(&items, "fallback").seen.starts_with("2 connections so far"));
        assert_eq!(find(&items, "joins").verdict, Verdict::Mistake);
        assert_eq!(find(&items, "fallback").verdict, Verdict::Mistake);
        network.counters.insert("MPCapableSYNRX".into(), 20);
        assert_eq!(verdict(&network.judge(), "fallback"), Some(Verdict::Note));
        network.counters.insert("MPJoinSynTx".into(), 5000);
        network.counters.insert("MPJoinSynAckRx".into(), 4999);
        assert_eq!(verdict(&network.judge(), "joins"), Some(Verdict::Note));
        network.counters.insert("MPJoinSynAckRx".into(), 5000);
        assert_eq!(verdict(&network.judge(), "joins"), None);
    }

    /// A kernel's own answers: a connection with two subflows, whose second one had to wait.
    fn living() -> Network {
        let socket = |name| Socket::parse(&answer(name)).unwrap();
        let connection = Connection::parse(&answer("connection")).unwrap();
        let mut network = Network {
            connections: vec![connection],
            sockets: vec![socket("joined")],
            ..two_paths()
        };
        network.sockets.push(network.sockets[0].clone());
        network
    }

    #[test]
    fn a_connection_with_one_subflow_is_told() {
        let mut network = living();
        assert_eq!(verdict(&network.judge(), "subflows"), Some(Verdict::Ok));
        // A server whose clients join needs no endpoint.
        assert_eq!(verdict(&network.judge(), "endpoints"), Some(Verdict::Note));
        network.connections[0].extra_subflows = 0;
        network.sockets.pop();
        assert_eq!(verdict(&network.judge(), "subflows"), Some(Verdict::Mistake));
        assert_eq!(verdict(&network.judge(), "endpoints"), Some(Verdict::Mistake));
    }

    #[test]
    fn buffers_are_too_small_where_paths_carry_more_or_subflows_wait() {
        let mut network = living();
        for socket in &mut network.sockets {
            let info = socket.info.as_mut().unwrap();
            (info.busy_time, info.rwnd_limited, info.sndbuf_limited) = (10_000_000, 0, 0);
            // 8 Mbit/s and 100 ms on each of two: 2 * 2 MB/s * 0.1 s.
            (info.delivery_rate, info.rtt) = (1_000_000, 100_000);
        }
        network.send_buffer_max = 400_000;
        assert_eq!(verdict(&network.judge(), "buffers"), None);
        network.send_buffer_max = 399_999;
        let items = network.judge();
        assert_eq!(
            find(&items, "buffers").fix,
            ["sysctl -w net.ipv4.tcp_wmem=\"4096 16384 524288\""]
        );
        network.send_buffer_max = 400_000;
        network.sockets[1].info.as_mut().unwrap().rwnd_limited = 1_100_000;
        assert!(find(&network.judge(), "buffers").seen.starts_with("1 of 2 subflows"));

        let info = network.sockets[1].info.as_mut().unwrap();
        (info.rwnd_limited, info.sndbuf_limited) = (0, 1_100_000);
        network.sockets[1].send_buffer = 399_999;
        assert_eq!(verdict(&network.judge(), "buffers"), None);
        network.sockets[1].send_buffer = 400_000;
        assert!(find(&network.judge(), "buffers").seen.contains("tcp_wmem"));

        // A few requests do not tell how much a path carries.
        for socket in &mut network.sockets {
            socket.info.as_mut().unwrap().busy_time = 500_000;
        }
        network.send_buffer_max = 1;
        assert_eq!(verdict(&network.judge(), "buffers"), None);
    }

    #[test]
    fn plain_listeners_are_noted_once_it_is_known_which_are_plain() {
        let socket = |name| Socket::parse(&answer(name)).unwrap();
        let sockets = vec![socket("listener"), socket("plain-listener")];
        let items = Network { sockets, ..two_paths() }.judge();
        assert_eq!(find(&items, "listeners").seen, "without MPTCP, on ports 5001");
    }

    #[test]
    fn a_kernel_without_mptcp_is_not_judged_further() {
        let items = Network { enabled: None, ..two_paths() }.judge();
        assert_eq!(items.len(), 1);
        assert_eq!(items[0].verdict, Verdict::Missing);
        let off = Network { enabled: Some(false), ..two_paths() };
        assert_eq!(find(&off.judge(), "MPTCP").fix, ["sysctl net.mptcp.enabled=1"]);
    }
}
