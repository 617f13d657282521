//! What is to be seen of MPTCP in one network namespace: settings, routes, connections, counters.

use crate::listeners::{InUse, Listener};
use narrows_foreign::Foreign;
use narrows_mptcp::diag::{self, Connection, Socket, State};
use narrows_mptcp::pm::{self, Endpoint, Limits};
use narrows_mptcp::routes::{self, Address, Interface, Route};
use narrows_netns::sysctl;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Stands for a far host where there is no peer to ask for (RFC 5737, RFC 3849).
const FAR: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];

/// Peers that routes are asked for.
const PEERS: usize = 4;

/// An endpoint's address, and the route its packets take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The address, and the interface it is on.
    pub from: Address,
    /// The host it was tried for.
    pub to: IpAddr,
    /// What rules and tables say; none: there is no route.
    pub route: Option<Route>,
    /// The route there by the address' interface, if one is known.
    pub behind: Option<Route>,
}

/// What there is of MPTCP, as far as this user may see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Network {
    /// `net.mptcp.enabled`; none: this kernel has no MPTCP.
    pub enabled: Option<bool>,
    /// Does the kernel manage paths, or a daemon (`net.mptcp.pm_type`)?
    pub kernel_manager: bool,
    /// Of the path manager; none: not shown.
    pub limits: Option<Limits>,
    /// Of the path manager; none: not shown.
    pub endpoints: Option<Vec<Endpoint>>,
    /// All interfaces.
    pub interfaces: Vec<Interface>,
    /// All addresses.
    pub addresses: Vec<Address>,
    /// Number of the interface that packets to far hosts leave by.
    pub default: Option<u32>,
    /// Where packets of the endpoints go.
    pub trials: Vec<Trial>,
    /// All TCP sockets.
    pub sockets: Vec<Socket>,
    /// MPTCP listeners whose control is not the one in use.
    pub listeners: Vec<Listener>,
    /// All MPTCP connections.
    pub connections: Vec<Connection>,
    /// Pairs of addresses with an established subflow, each with whether the route between them has TCP
    /// timestamps of 1 µs.
    pub us_timestamps: Vec<(IpAddr, IpAddr, bool)>,
    /// Routes with a congestion control of their own that is not the default, and which.
    pub own_controls: Vec<(String, Foreign)>,
    /// MPTCP's counters.
    pub counters: BTreeMap<String, u64>,
    /// Largest send buffer that the kernel gives by itself, bytes (`net.ipv4.tcp_wmem`).
    pub send_buffer_max: u64,
}

impl Network {
    /// Looks at the network namespace this thread is in, whose number is `inum`.
    pub fn look(inum: u32) -> Network {
        let mut network = Network {
            enabled: sysctl("net/mptcp/enabled").ok().map(|value| value != "0"),
            kernel_manager: sysctl("net/mptcp/pm_type").is_ok_and(|value| value == "0"),
            limits: pm::limits().ok(),
            endpoints: pm::endpoints().ok(),
            interfaces: routes::interfaces().unwrap_or_default(),
            addresses: routes::addresses().unwrap_or_default(),
            default: FAR
                .iter()
                .find_map(|far| routes::route(None, *far, 0).ok().flatten())
                .map(|route| route.interface),
            trials: Vec::new(),
            sockets: diag::sockets().unwrap_or_default(),
            listeners: Vec::new(),
            connections: diag::connections().unwrap_or_default(),
            us_timestamps: Vec::new(),
            own_controls: routes::own_controls().unwrap_or_default(),
            counters: narrows_mptcp::counters().unwrap_or_default(),
            send_buffer_max: sysctl("net/ipv4/tcp_wmem")
                .ok()
                .and_then(|value| value.split_whitespace().last()?.parse().ok())
                .unwrap_or(u64::MAX),
        };
        network.try_routes();
        network.look_at_timestamps();
        let default = sysctl("net/ipv4/tcp_congestion_control").unwrap_or_default();
        network.own_controls.retain(|(_, control)| control.raw() != default);
        let others = InUse::look().others(inum, &default, &network.sockets);
        network.listeners = others.unwrap_or_default();
        network
    }

    /// Asks the kernel where each endpoint's packets go: to the peers there are, else to a far host.
    fn try_routes(&mut self) {
        let peers: BTreeSet<IpAddr> =
            self.connections.iter().map(|connection| connection.remote.ip()).collect();
        for endpoint in self.endpoints.iter().flatten() {
            let here = self.addresses.iter().find(|here| here.address == endpoint.address);
            let Some(&from) = here else { continue };
            let same = |to: &&IpAddr| to.is_ipv4() == from.address.is_ipv4();
            let mut to: Vec<IpAddr> = peers.iter().filter(same).take(PEERS).copied().collect();
            if peers.is_empty() && self.default.is_some() {
                to.extend(FAR.iter().filter(same));
            }
            to.retain(|to| !self.carries(from.address, *to));
            for to in to {
                let asked = routes::route(Some(from.address), to, endpoint.interface);
                let Ok(route) = asked else { continue };
                let behind = routes::route(None, to, from.interface).ok().flatten();
                self.trials.push(Trial { from, to, route, behind });
            }
        }
    }

    /// Asks for the route of each subflow there is.
    fn look_at_timestamps(&mut self) {
        let living = |socket: &&Socket| {
            socket.state == State::Established && socket.subflow.is_some_and(|of| !of.fell_back())
        };
        let pairs = self.sockets.iter().filter(living);
        let pairs = pairs.map(|socket| (socket.local.ip(), socket.remote.ip()));
        for (from, to) in pairs.collect::<BTreeSet<_>>() {
            let asked = routes::has_us_timestamps(from, to, 0).ok().flatten();
            self.us_timestamps.extend(asked.map(|has| (from, to, has)));
        }
    }

    /// Does a living subflow carry data between these hosts? Then there is a route.
    fn carries(&self, from: IpAddr, to: IpAddr) -> bool {
        self.sockets.iter().any(|socket| {
            let info = socket.info.as_ref();
            socket.local.ip() == from
                && socket.remote.ip() == to
                && info.is_some_and(|info| info.bytes_acked > 1 || info.bytes_received > 0)
        })
    }
}
