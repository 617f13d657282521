//! Interfaces, addresses and routes of the network namespace this thread is in, by rtnetlink.

use crate::netlink::{self, Wanted};
use narrows_foreign::Foreign;
use netlink_packet_core::{NlasIterator, Parseable, parse_string};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::{AddressHeader, AddressMessage, AddressScope};
use netlink_packet_route::link::{LinkFlags, LinkHeader, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteType,
};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::io;
use std::net::IpAddr;

// linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h
const RTM_GETLINK: u16 = 18;
const RTM_GETADDR: u16 = 22;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RT_TABLE_MAIN: u32 = 254;
const RT_TABLE_LOCAL: u8 = 255;
/// In RTAX_FEATURES: TCP timestamps of 1 µs instead of 1 ms (`features tcp_usec_ts`, Linux 6.7).
const RTAX_FEATURE_TCP_USEC_TS: u32 = 1 << 4;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// `struct ifinfomsg`.
const LINK_HEADER: usize = 16;
/// `struct ifaddrmsg`.
const ADDRESS_HEADER: usize = 8;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: Foreign,
    /// Can it carry packets now, and to other hosts?
    pub usable: bool,
    /// Is it a bridge, as containers and virtual machines get?
    pub bridge: bool,
}

/// An address of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub address: IpAddr,
    /// Number of the interface it is on.
    pub interface: u32,
    /// Can it be used beyond its own link?
    pub global: bool,
}

/// Where packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Number of the interface they leave by.
    pub interface: u32,
    /// The router they are handed to; none: the destination itself is on the link.
    pub gateway: Option<IpAddr>,
}

/// All interfaces.
///
/// # Errors
/// The kernel refused.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut interfaces = Vec::new();
    let request = netlink::bytes(&LinkMessage::default());
    netlink::ask(NETLINK_ROUTE, RTM_GETLINK, Wanted::All, &request, |answer| {
        let header = LinkHeader::parse(answer)?;
        let (mut name, mut bridge) = (Foreign::default(), false);
        for attribute in NlasIterator::new(&answer[LINK_HEADER..]) {
            let attribute = attribute?;
            match attribute.kind() {
                // Any bytes but white space and slashes.
                IFLA_IFNAME => {
                    let value = attribute.value();
                    name = value.strip_suffix(b"\0").unwrap_or(value).into();
                }
                IFLA_LINKINFO => {
                    for about in NlasIterator::new(attribute.value()) {
                        let about = about?;
                        bridge |= about.kind() == IFLA_INFO_KIND
                            && parse_string(about.value())? == "bridge";
                    }
                }
                _ => {}
            }
        }
        let carries = header.flags.contains(LinkFlags::Up | LinkFlags::LowerUp);
        let usable = carries && !header.flags.contains(LinkFlags::Loopback);
        interfaces.push(Interface { index: header.index, name, usable, bridge });
        Ok(())
    })?;
    Ok(interfaces)
}

/// All addresses.
///
/// # Errors
/// The kernel refused.
pub fn addresses() -> io::Result<Vec<Address>> {
    let mut addresses = Vec::new();
    let request = netlink::bytes(&AddressMessage::default());
    netlink::ask(NETLINK_ROUTE, RTM_GETADDR, Wanted::All, &request, |answer| {
        let header = AddressHeader::parse(answer)?;
        let (mut own, mut peer) = (None, None);
        // Not by AddressMessage, which takes no label (the interface's name) that is no UTF-8.
        for attribute in NlasIterator::new(&answer[ADDRESS_HEADER..]) {
            let attribute = attribute?;
            match attribute.kind() {
                // Of a point-to-point link the other attribute is the peer's.
                IFA_LOCAL => own = address(attribute.value()),
                IFA_ADDRESS => peer = address(attribute.value()),
                _ => {}
            }
        }
        let global = header.scope == AddressScope::Universe;
        let interface = header.index;
        addresses.extend(own.or(peer).map(|address| Address { address, interface, global }));
        Ok(())
    })?;
    Ok(addresses)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// The route that packets take from one of this host's addresses to another host, by policy rules
/// and tables; of a socket that is bound to an interface its number must be given. None: no route.
///
/// # Errors
/// The kernel refused.
pub fn route(from: Option<IpAddr>, to: IpAddr, bound: u32) -> io::Result<Option<Route>> {
    // The route that was found. Without it a bound socket's destination without a route is taken
    // to be on the link, and looks like a route.
    ask(from, to, bound, RouteFlags::FibMatch)
}

/// Where packets from one of this host's addresses to another host go now, of several next hops the
/// one that is chosen for these addresses. None: no route.
///
/// # Errors
/// The kernel refused.
pub fn resolve(from: IpAddr, to: IpAddr) -> io::Result<Option<Route>> {
    ask(Some(from), to, 0, RouteFlags::empty())
}

/// Do connections from one of this host's addresses to another host, by the route that is found now,
/// have TCP timestamps of 1 µs (`features tcp_usec_ts`)? A socket takes it from its route at its first
/// packet. None: no route.
///
/// # Errors
/// The kernel refused.
pub fn has_us_timestamps(from: IpAddr, to: IpAddr, bound: u32) -> io::Result<Option<bool>> {
    let mut has = false;
    let metrics = |attribute: &RouteAttribute| {
        let RouteAttribute::Metrics(metrics) = attribute else { return };
        has |= metrics.iter().any(is_us_timestamps);
    };
    let found = look_up(Some(from), to, bound, RouteFlags::FibMatch, metrics)?;
    Ok(found.map(|_| has))
}

fn is_us_timestamps(metric: &RouteMetric) -> bool {
    matches!(metric, RouteMetric::Features(bits) if bits & RTAX_FEATURE_TCP_USEC_TS != 0)
}

/// Gives all routes to other hosts TCP timestamps of 1 µs, for connections that begin from now on.
///
/// # Errors
/// The kernel refused: it is older than Linux 6.7.
pub fn set_us_timestamps() -> io::Result<()> {
    for mut route in to_other_hosts(Some)? {
        // What the kernel tells of its state is no part of a route.
        route.attributes.retain(|attribute| !matches!(attribute, RouteAttribute::CacheInfo(_)));
        let metrics = route.attributes.iter_mut().find_map(|attribute| match attribute {
            RouteAttribute::Metrics(metrics) => Some(metrics),
            _ => None,
        });
        let features = RouteMetric::Features(RTAX_FEATURE_TCP_USEC_TS);
        match metrics {
            Some(metrics) => add_us_timestamps(metrics),
            None => route.attributes.push(RouteAttribute::Metrics(vec![features])),
        }
        let request = netlink::bytes(&route);
        netlink::ask(NETLINK_ROUTE, RTM_NEWROUTE, Wanted::Replaced, &request, |_| Ok(()))?;
    }
    Ok(())
}

/// The routes to other hosts that have a congestion control of their own (`ip route .. congctl`), which
/// comes before the namespace's default: `192.0.2.0/24`, `default table 7` or `-6 default` of a route, and the
/// control.
///
/// # Errors
/// The kernel refused.
pub fn own_controls() -> io::Result<Vec<(String, Foreign)>> {
    let own = |route: RouteMessage| {
        let (mut to, mut control) = (None, None::<Foreign>);
        for attribute in &route.attributes {
            match attribute {
                RouteAttribute::Destination(at) => to = ip(at),
                RouteAttribute::Metrics(metrics) => {
                    control = metrics.iter().find_map(|metric| match metric {
                        RouteMetric::CcAlgo(name) => Some(name.as_str().into()),
                        _ => None,
                    });
                }
                _ => {}
            }
        }
        let control = control?;
        let RouteHeader { address_family, destination_prefix_length: length, .. } = route.header;
        let mut words = Vec::new();
        words.extend((address_family == AddressFamily::Inet6).then(|| "-6".to_owned()));
        words.push(match to {
            Some(host) if length == if host.is_ipv4() { 32 } else { 128 } => host.to_string(),
            Some(to) => format!("{to}/{length}"),
            None => "default".into(),
        });
        // One above 255 stands in an attribute alone.
        let table = route.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::Table(table) => Some(*table),
            _ => None,
        });
        let table = table.unwrap_or(route.header.table.into());
        words.extend((table != RT_TABLE_MAIN).then(|| format!("table {table}")));
        Some((words.join(" "), control))
    };
    to_other_hosts(own)
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some(IpAddr::V4(*address)),
        RouteAddress::Inet6(address) => Some(IpAddr::V6(*address)),
        _ => None,
    }
}

/// What is `wanted` of the routes of both families and all tables that lead to other hosts.
fn to_other_hosts<T>(wanted: impl Fn(RouteMessage) -> Option<T>) -> io::Result<Vec<T>> {
    let mut found = Vec::new();
    for address_family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut all = RouteMessage::default();
        all.header.address_family = address_family;
        let request = netlink::bytes(&all);
        netlink::ask(NETLINK_ROUTE, RTM_GETROUTE, Wanted::All, &request, |answer| {
            let route = RouteMessage::parse(answer)?;
            if route.header.kind == RouteType::Unicast && route.header.table != RT_TABLE_LOCAL {
                found.extend(wanted(route));
            }
            Ok(())
        })?;
    }
    Ok(found)
}

fn add_us_timestamps(metrics: &mut Vec<RouteMetric>) {
    let features = metrics.iter_mut().find_map(|metric| match metric {
        RouteMetric::Features(bits) => Some(bits),
        _ => None,
    });
    match features {
        Some(bits) => *bits |= RTAX_FEATURE_TCP_USEC_TS,
        None => metrics.push(RouteMetric::Features(RTAX_FEATURE_TCP_USEC_TS)),
    }
}

fn ask(
    from: Option<IpAddr>,
    to: IpAddr,
    bound: u32,
    flags: RouteFlags,
) -> io::Result<Option<Route>> {
    look_up(from, to, bound, flags, |_| ())
}

/// Shows `each` attribute of the route that is found.
fn look_up(
    from: Option<IpAddr>,
    to: IpAddr,
    bound: u32,
    flags: RouteFlags,
    mut each: impl FnMut(&RouteAttribute),
) -> io::Result<Option<Route>> {
    let bits = if to.is_ipv4() { 32 } else { 128 };
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 },
        destination_prefix_length: bits,
        source_prefix_length: if from.is_some() { bits } else { 0 },
        flags,
        ..RouteHeader::default()
    };
    message.attributes.push(RouteAttribute::Destination(to.into()));
    message.attributes.extend(from.map(|from| RouteAttribute::Source(from.into())));
    if bound != 0 {
        message.attributes.push(RouteAttribute::Oif(bound));
    }
    let mut found = None;
    let request = netlink::bytes(&message);
    let asked = netlink::ask(NETLINK_ROUTE, RTM_GETROUTE, Wanted::One, &request, |answer| {
        let (mut interface, mut gateway) = (0, None);
        for attribute in RouteMessage::parse(answer)?.attributes {
            each(&attribute);
            match attribute {
                RouteAttribute::Oif(index) => interface = index,
                RouteAttribute::Gateway(to) => gateway = ip(&to),
                _ => {}
            }
        }
        found = Some(Route { interface, gateway });
        Ok(())
    });
    match asked.map_err(|error| (error.kind(), error)) {
        Ok(()) => Ok(found),
        Err((io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable, _)) => Ok(None),
        Err((_, error)) => Err(error),
    }
}
