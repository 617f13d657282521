//! The local addresses that paths begin at, which come and go.

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::str::FromStr;

/// Where paths begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Local {
    /// At an address, whenever this host has it; the routes say through which interface.
    Address(IpAddr),
    /// At each address of an interface, whenever it is up and has it; through this interface.
    Interface(String),
}

impl FromStr for Local {
    type Err = String;

    fn from_str(text: &str) -> Result<Local, String> {
        if let Ok(address) = text.parse() {
            return Ok(Local::Address(address));
        }
        // dev_valid_name() of Linux: 15 bytes, and neither / nor : nor spaces.
        let wrong = |c: char| matches!(c, '/' | ':') || c.is_whitespace();
        if text.is_empty() || text.len() > 15 || text.contains(wrong) {
            return Err("expected a local IP address or the name of an interface".into());
        }
        Ok(Local::Interface(text.into()))
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Local::Address(address) => address.fmt(f),
            Local::Interface(name) => f.write_str(name),
        }
    }
}

/// An address that this host has now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub address: IpAddr,
    /// The interface through which its packets must leave.
    device: Option<String>,
}

impl Source {
    /// A socket at a free port of the address.
    pub fn bind(&self) -> io::Result<UdpSocket> {
        let socket = Socket::new(
            Domain::for_address(SocketAddr::new(self.address, 0)),
            Type::DGRAM,
            Some(Protocol::UDP),
        )?;
        if let Some(device) = &self.device {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        socket.bind(&SockAddr::from(SocketAddr::new(self.address, 0)))?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    }
}

/// What this host has of `locals` now, in their order, each address once: those of one family.
pub(crate) fn sources(locals: &[Local], v6: bool) -> Vec<Source> {
    let mut all: Vec<Source> = Vec::new();
    for local in locals {
        let found = match local {
            Local::Address(address) => vec![Source { address: *address, device: None }],
            Local::Interface(name) => of_interface(name),
        };
        for source in found {
            let known = all.iter().any(|other| other.address == source.address);
            // An address of this host is one that can be bound.
            if !known && source.address.is_ipv6() == v6 && source.bind().is_ok() {
                all.push(source);
            }
        }
    }
    all
}

/// The addresses of an interface that is up and has a carrier; not those that are of one link only.
fn of_interface(name: &str) -> Vec<Source> {
    let works = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
    let all = getifaddrs().into_iter().flatten();
    let its = all.filter(|of| of.interface_name == name && of.flags.contains(works));
    let addresses = its.filter_map(|of| {
        let address = of.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    });
    let global = addresses.filter(|address| match address {
        IpAddr::V4(v4) => !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_unicast_link_local(),
    });
    global.map(|address| Source { address, device: Some(name.into()) }).collect()
}

/// All addresses of this host's interfaces that others may reach it at; the loopback's if there is
/// nothing else.
pub(crate) fn reachable(v6: bool) -> Vec<IpAddr> {
    let all = getifaddrs().into_iter().flatten();
    let mut names: Vec<String> = all.map(|of| of.interface_name).collect();
    names.sort_unstable();
    names.dedup();
    let all = names.iter().flat_map(|name| of_interface(name));
    let all = all.map(|source| source.address).filter(|address| address.is_ipv6() == v6);
    let (loopback, mut others): (Vec<_>, Vec<_>) = all.partition(|address| address.is_loopback());
    if others.is_empty() {
        others = loopback;
    }
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_host_and_this_family_are_sources() {
        let local = |text: &str| text.parse::<Local>().unwrap();
        // 192.0.2.0/24 is for documentation.
        let locals = ["127.0.0.2", "192.0.2.1", "::1", "127.0.0.2", "127.0.0.1"].map(local);
        let addresses: Vec<_> = sources(&locals, false).iter().map(|of| of.address).collect();
        assert_eq!(addresses, [IpAddr::from([127, 0, 0, 2]), IpAddr::from([127, 0, 0, 1])]);
        assert_eq!(sources(&[local("none0")], false), []);
    }

    #[test]
    fn what_is_neither_address_nor_interface_is_refused() {
        for text in ["", "a b", "eth0/1", "300.0.0.1:1", "sixteen-letters0"] {
            assert!(text.parse::<Local>().is_err(), "{text}");
        }
        assert_eq!("wlan0".parse(), Ok(Local::Interface("wlan0".into())));
    }
}
