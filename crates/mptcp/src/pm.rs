//! MPTCP's path manager in the network namespace this thread is in: endpoints and limits of the one in
//! the kernel, read and set; subflows of connections whose path manager is in user space.

use crate::netlink::{self, Wanted};
use netlink_packet_core::{
    DecodeError, NLA_F_NESTED, NlasIterator, parse_ip, parse_u8, parse_u16, parse_u32,
};
use netlink_sys::protocols::NETLINK_GENERIC;
use std::io;
use std::net::{IpAddr, SocketAddr};

// linux/genetlink.h
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
// linux/socket.h
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
/// `struct genlmsghdr`.
const GENL_HEADER: usize = 4;

// linux/mptcp.h
const MPTCP_PM_CMD_ADD_ADDR: u8 = 1;
const MPTCP_PM_CMD_DEL_ADDR: u8 = 2;
const MPTCP_PM_CMD_GET_ADDR: u8 = 3;
const MPTCP_PM_CMD_SET_LIMITS: u8 = 5;
const MPTCP_PM_CMD_GET_LIMITS: u8 = 6;
const MPTCP_PM_CMD_SET_FLAGS: u8 = 7;
const MPTCP_PM_ATTR_ADDR: u16 = 1;
const MPTCP_PM_ATTR_RCV_ADD_ADDRS: u16 = 2;
const MPTCP_PM_ATTR_SUBFLOWS: u16 = 3;
const MPTCP_PM_ATTR_TOKEN: u16 = 4;
const MPTCP_PM_ATTR_ADDR_REMOTE: u16 = 6;
const MPTCP_PM_ADDR_ATTR_FAMILY: u16 = 1;
const MPTCP_PM_ADDR_ATTR_ID: u16 = 2;
const MPTCP_PM_ADDR_ATTR_ADDR4: u16 = 3;
const MPTCP_PM_ADDR_ATTR_ADDR6: u16 = 4;
const MPTCP_PM_ADDR_ATTR_PORT: u16 = 5;
const MPTCP_PM_ADDR_ATTR_FLAGS: u16 = 6;
const MPTCP_PM_ADDR_ATTR_IF_IDX: u16 = 7;

/// An address that the path manager may open subflows from, or announce (`ip mptcp endpoint`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its id, from 1. Of one that is added 0 leaves it to the kernel.
    pub id: u8,
    /// The address.
    pub address: IpAddr,
    /// The port it is announced with; 0: the connection's.
    pub port: u16,
    /// Number of the interface subflows are bound to; 0: none.
    pub interface: u32,
    /// `MPTCP_PM_ADDR_FLAG_*`: the constants below.
    pub flags: u32,
}

impl Endpoint {
    /// The address is announced to the peer.
    pub const SIGNAL: u32 = 1 << 0;
    /// Subflows are opened from it.
    pub const SUBFLOW: u32 = 1 << 1;
    /// For the time that the others fail only.
    pub const BACKUP: u32 = 1 << 2;
    /// Subflows are opened from it to every address of the peer.
    pub const FULLMESH: u32 = 1 << 3;
    /// The kernel made it up for a subflow whose address is no endpoint.
    pub const IMPLICIT: u32 = 1 << 4;

    /// See [`Endpoint::SIGNAL`].
    pub fn is_signal(&self) -> bool {
        self.flags & Endpoint::SIGNAL != 0
    }

    /// See [`Endpoint::SUBFLOW`].
    pub fn is_subflow(&self) -> bool {
        self.flags & Endpoint::SUBFLOW != 0
    }

    /// See [`Endpoint::BACKUP`].
    pub fn is_backup(&self) -> bool {
        self.flags & Endpoint::BACKUP != 0
    }

    /// See [`Endpoint::FULLMESH`].
    pub fn is_fullmesh(&self) -> bool {
        self.flags & Endpoint::FULLMESH != 0
    }

    /// See [`Endpoint::IMPLICIT`].
    pub fn is_implicit(&self) -> bool {
        self.flags & Endpoint::IMPLICIT != 0
    }
}

/// How much the path manager may do for one connection (`ip mptcp limits`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Subflows beside the first.
    pub subflows: u32,
    /// Announced addresses of the peer that are taken up.
    pub add_addr_accepted: u32,
}

/// The endpoints of the in-kernel path manager.
///
/// # Errors
/// No MPTCP in this kernel (not found), or not allowed.
pub fn endpoints() -> io::Result<Vec<Endpoint>> {
    let mut endpoints = Vec::new();
    manager(MPTCP_PM_CMD_GET_ADDR, Wanted::All, &[], |attributes| {
        for attribute in NlasIterator::new(attributes) {
            let attribute = attribute?;
            if attribute.kind() == MPTCP_PM_ATTR_ADDR {
                endpoints.extend(parse_endpoint(attribute.value())?);
            }
        }
        Ok(())
    })?;
    Ok(endpoints)
}

/// The limits of the in-kernel path manager.
///
/// # Errors
/// No MPTCP in this kernel (not found), or not allowed.
pub fn limits() -> io::Result<Limits> {
    let mut limits = Limits::default();
    manager(MPTCP_PM_CMD_GET_LIMITS, Wanted::One, &[], |attributes| {
        limits = parse_limits(attributes)?;
        Ok(())
    })?;
    Ok(limits)
}

/// Adds an endpoint. Connections that live open their subflows from it now, or announce it.
///
/// # Errors
/// The kernel refused: not root, no such interface, an address or id that is there, too many, flags
/// that do not go together.
pub fn add_endpoint(endpoint: &Endpoint) -> io::Result<()> {
    let mut about = address(endpoint.address);
    about.extend(netlink::attribute(MPTCP_PM_ADDR_ATTR_FLAGS, &endpoint.flags.to_ne_bytes()));
    about.extend(netlink::attribute(MPTCP_PM_ADDR_ATTR_ID, &[endpoint.id]));
    if endpoint.port != 0 {
        about.extend(netlink::attribute(MPTCP_PM_ADDR_ATTR_PORT, &endpoint.port.to_ne_bytes()));
    }
    if endpoint.interface != 0 {
        let interface = endpoint.interface.to_ne_bytes();
        about.extend(netlink::attribute(MPTCP_PM_ADDR_ATTR_IF_IDX, &interface));
    }
    order_about(MPTCP_PM_CMD_ADD_ADDR, &about)
}

/// Removes the endpoint `id`: its subflows are closed, and the peer learns that the address is gone.
///
/// # Errors
/// The kernel refused: not root, or no such endpoint.
pub fn remove_endpoint(id: u8) -> io::Result<()> {
    order_about(MPTCP_PM_CMD_DEL_ADDR, &netlink::attribute(MPTCP_PM_ADDR_ATTR_ID, &[id]))
}

/// Closes the first subflow, which has the id 0, of all connections that began on an address.
///
/// # Errors
/// The kernel refused: not root.
pub fn remove_first(local: IpAddr) -> io::Result<()> {
    let mut about = address(local);
    about.extend(netlink::attribute(MPTCP_PM_ADDR_ATTR_ID, &[0]));
    order_about(MPTCP_PM_CMD_DEL_ADDR, &about)
}

/// Changes whether the endpoint `id` is [`Endpoint::BACKUP`] and [`Endpoint::FULLMESH`], also for
/// the connections that live. The other flags stay.
///
/// # Errors
/// The kernel refused: not root, or no such endpoint.
pub fn set_flags(id: u8, flags: u32) -> io::Result<()> {
    let mut about = netlink::attribute(MPTCP_PM_ADDR_ATTR_ID, &[id]);
    about.extend(netlink::attribute(MPTCP_PM_ADDR_ATTR_FLAGS, &flags.to_ne_bytes()));
    order_about(MPTCP_PM_CMD_SET_FLAGS, &about)
}

/// Changes whether a subflow, of the connection with this token, is a backup, if the connection's path
/// manager is in user space (`net.mptcp.pm_type` was 1 when it began; Linux 5.19).
///
/// # Errors
/// The kernel refused: not root; `InvalidInput`: no such subflow, or the path manager is the kernel's.
pub fn set_backup(
    token: u32,
    local: SocketAddr,
    remote: SocketAddr,
    backup: bool,
) -> io::Result<()> {
    let end = |kind, at: SocketAddr, flags: u32| {
        let mut about = address(at.ip());
        about.extend(netlink::attribute(MPTCP_PM_ADDR_ATTR_PORT, &at.port().to_ne_bytes()));
        about.extend(netlink::attribute(MPTCP_PM_ADDR_ATTR_FLAGS, &flags.to_ne_bytes()));
        netlink::attribute(kind | NLA_F_NESTED, &about)
    };
    let flags = if backup { Endpoint::BACKUP } else { 0 };
    let mut attributes = netlink::attribute(MPTCP_PM_ATTR_TOKEN, &token.to_ne_bytes());
    attributes.extend(end(MPTCP_PM_ATTR_ADDR, local, flags));
    attributes.extend(end(MPTCP_PM_ATTR_ADDR_REMOTE, remote, 0));
    order(MPTCP_PM_CMD_SET_FLAGS, &attributes)
}

/// Sets the limits of the in-kernel path manager.
///
/// # Errors
/// The kernel refused: not root, or more than it can do (8 each).
pub fn set_limits(limits: Limits) -> io::Result<()> {
    let Limits { subflows, add_addr_accepted } = limits;
    let mut attributes =
        netlink::attribute(MPTCP_PM_ATTR_RCV_ADD_ADDRS, &add_addr_accepted.to_ne_bytes());
    attributes.extend(netlink::attribute(MPTCP_PM_ATTR_SUBFLOWS, &subflows.to_ne_bytes()));
    order(MPTCP_PM_CMD_SET_LIMITS, &attributes)
}

/// The attributes of an address.
fn address(address: IpAddr) -> Vec<u8> {
    let (family, kind, bytes) = match address {
        IpAddr::V4(address) => (AF_INET, MPTCP_PM_ADDR_ATTR_ADDR4, address.octets().to_vec()),
        IpAddr::V6(address) => (AF_INET6, MPTCP_PM_ADDR_ATTR_ADDR6, address.octets().to_vec()),
    };
    let mut attributes = netlink::attribute(MPTCP_PM_ADDR_ATTR_FAMILY, &family.to_ne_bytes());
    attributes.extend(netlink::attribute(kind, &bytes));
    attributes
}

/// An order that is about one endpoint.
fn order_about(command: u8, endpoint: &[u8]) -> io::Result<()> {
    order(command, &netlink::attribute(MPTCP_PM_ATTR_ADDR | NLA_F_NESTED, endpoint))
}

fn order(command: u8, attributes: &[u8]) -> io::Result<()> {
    manager(command, Wanted::Done, attributes, |_| Ok(()))
}

/// A question or order to the path manager.
fn manager(
    command: u8,
    wanted: Wanted,
    attributes: &[u8],
    mut each: impl FnMut(&[u8]) -> Result<(), DecodeError>,
) -> io::Result<()> {
    let mut family = 0;
    let mut request = vec![CTRL_CMD_GETFAMILY, 1, 0, 0];
    request.extend(netlink::attribute(CTRL_ATTR_FAMILY_NAME, b"mptcp_pm\0"));
    netlink::ask(NETLINK_GENERIC, GENL_ID_CTRL, Wanted::One, &request, |answer| {
        for attribute in NlasIterator::new(skip_header(answer)?) {
            let attribute = attribute?;
            if attribute.kind() == CTRL_ATTR_FAMILY_ID {
                family = parse_u16(attribute.value())?;
            }
        }
        Ok(())
    })?;
    let request = [&[command, 1, 0, 0], attributes].concat();
    netlink::ask(NETLINK_GENERIC, family, wanted, &request, |answer| each(skip_header(answer)?))
}

fn skip_header(answer: &[u8]) -> Result<&[u8], DecodeError> {
    answer.get(GENL_HEADER..).ok_or_else(|| DecodeError::from("a generic message without header"))
}

/// An endpoint of a family without an address is none.
fn parse_endpoint(value: &[u8]) -> Result<Option<Endpoint>, DecodeError> {
    let (mut id, mut address, mut port, mut interface, mut flags) = (0, None, 0, 0, 0);
    for attribute in NlasIterator::new(value) {
        let attribute = attribute?;
        let value = attribute.value();
        match attribute.kind() {
            MPTCP_PM_ADDR_ATTR_ID => id = parse_u8(value)?,
            MPTCP_PM_ADDR_ATTR_ADDR4 | MPTCP_PM_ADDR_ATTR_ADDR6 => address = Some(parse_ip(value)?),
            MPTCP_PM_ADDR_ATTR_PORT => port = parse_u16(value)?,
            MPTCP_PM_ADDR_ATTR_FLAGS => flags = parse_u32(value)?,
            MPTCP_PM_ADDR_ATTR_IF_IDX => interface = parse_u32(value)?,
            _ => {}
        }
    }
    Ok(address.map(|address| Endpoint { id, address, port, interface, flags }))
}

fn parse_limits(attributes: &[u8]) -> Result<Limits, DecodeError> {
    let mut limits = Limits::default();
    for attribute in NlasIterator::new(attributes) {
        let attribute = attribute?;
        let value = attribute.value();
        match attribute.kind() {
            MPTCP_PM_ATTR_RCV_ADD_ADDRS => limits.add_addr_accepted = parse_u32(value)?,
            MPTCP_PM_ATTR_SUBFLOWS => limits.subflows = parse_u32(value)?,
            _ => {}
        }
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_testkit::recorded_netlink as answer;

    #[test]
    fn an_endpoint_is_what_ip_mptcp_added() {
        // ip mptcp endpoint add 10.77.2.1 dev v2 subflow
        let answer = answer("endpoint");
        let attributes = skip_header(&answer).unwrap();
        let nested = NlasIterator::new(attributes).next().unwrap().unwrap();
        let endpoint = parse_endpoint(nested.value()).unwrap().unwrap();
        assert_eq!(endpoint.address, IpAddr::from([10, 77, 2, 1]));
        assert_eq!((endpoint.id, endpoint.port, endpoint.interface), (1, 0, 3));
        assert!(endpoint.is_subflow() && !endpoint.is_signal() && !endpoint.is_backup());
    }

    #[test]
    fn limits_are_what_ip_mptcp_set() {
        // ip mptcp limits set subflows 3 add_addr_accepted 5
        let limits = parse_limits(skip_header(&answer("limits")).unwrap()).unwrap();
        assert_eq!(limits, Limits { subflows: 3, add_addr_accepted: 5 });
    }
}
