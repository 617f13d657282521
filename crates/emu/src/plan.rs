//! What is to be built: hosts, their devices and addresses, and the routes between addresses.

use std::net::IpAddr;

use narrows_net::RouteId;

/// A host: a network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Its name, unique in the testbed, of letters, digits, `-` and `_`. The namespace is called
    /// `nr-ID-NAME`, where ID is the testbed's.
    pub name: String,
    /// Its devices. What has no source address yet leaves by the first.
    pub devices: Vec<DeviceConfig>,
}

/// A TUN device. What a host sends from one of its addresses leaves by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Its name, at most 15 bytes.
    pub name: String,
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// Its addresses, IPv4 and IPv6, each unique in the testbed.
    pub addresses: Vec<IpAddr>,
}

/// The route of packets from one address to another. Packets between addresses without a route
/// are dropped, and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Source address.
    pub from: IpAddr,
    /// Destination address.
    pub to: IpAddr,
    /// The route in the network.
    pub route: RouteId,
    /// A middlebox on the route removes the options of MPTCP.
    pub strips_mptcp: bool,
}
