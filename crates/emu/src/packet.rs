//! Packets as bytes: what the network has to know of them, and what it does to them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use etherparse::{IpNumber, IpSlice, TcpSlice};
use narrows_net::{Ecn, Header};

/// The kind of TCP option that MPTCP uses (RFC 8684, section 3).
const OPTION_MPTCP: u8 = 30;

/// What an IP packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    pub from: IpAddr,
    pub to: IpAddr,
    pub header: Header,
}

/// None: it is no whole IP packet.
pub fn parse(bytes: &[u8]) -> Option<Parsed> {
    let packet = IpSlice::from_slice(bytes).ok()?;
    let (from, to) = (packet.source_addr(), packet.destination_addr());
    let ecn = match &packet {
        IpSlice::Ipv4(packet) => packet.header().ecn(),
        IpSlice::Ipv6(packet) => packet.header().ecn(),
    };
    let ecn = match ecn.value() {
        0 => Ecn::NotEct,
        3 => Ecn::Ce,
        _ => Ecn::Ect,
    };
    let mut flow = DefaultHasher::new();
    let payload = packet.payload();
    (from, to, payload.ip_number.0).hash(&mut flow);
    if let (IpNumber::TCP | IpNumber::UDP, false) = (payload.ip_number, payload.fragmented) {
        payload.payload.get(..4).hash(&mut flow);
    }
    let header = Header { size: bytes.len() as u32, flow: flow.finish() as u32, ecn };
    Some(Parsed { from, to, header })
}

/// Marks a packet: congestion experienced (RFC 3168, section 5).
pub fn mark(bytes: &mut [u8]) {
    let before = u16::from_be_bytes([bytes[0], bytes[1]]);
    match bytes[0] >> 4 {
        4 => {
            bytes[1] |= 3;
            let after = u16::from_be_bytes([bytes[0], bytes[1]]);
            let checksum = u16::from_be_bytes([bytes[10], bytes[11]]);
            bytes[10..12].copy_from_slice(&updated(checksum, before, after).to_be_bytes());
        }
        // The traffic class lies four bits further, and there is no checksum.
        _ => bytes[1] |= 3 << 4,
    }
}

/// The Internet checksum after one of the words it covers has changed (RFC 1624, equation 3).
fn updated(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// Replaces the options of MPTCP by padding, as some middleboxes do.
pub fn strip_mptcp(bytes: &mut [u8]) {
    let Some(tcp) = tcp_offset(bytes) else { return };
    let header = 4 * usize::from(bytes[tcp + 12] >> 4);
    if !pad_options(&mut bytes[tcp + 20..tcp + header]) {
        return;
    }
    if let Some(checksum) = tcp_checksum(bytes) {
        bytes[tcp + 16..tcp + 18].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Where the TCP header begins, if a whole one is there.
fn tcp_offset(bytes: &[u8]) -> Option<usize> {
    let packet = IpSlice::from_slice(bytes).ok()?;
    let payload = packet.payload();
    if payload.ip_number != IpNumber::TCP || payload.fragmented {
        return None;
    }
    TcpSlice::from_slice(payload.payload).ok()?;
    Some(payload.payload.as_ptr() as usize - bytes.as_ptr() as usize)
}

/// Whether there was anything to replace.
fn pad_options(mut options: &mut [u8]) -> bool {
    const END: u8 = 0;
    const PADDING: u8 = 1;
    let mut found = false;
    loop {
        let length = match *options {
            [] | [END, ..] => return found,
            [PADDING, ..] => 1,
            [_, length, ..] if (2..=options.len()).contains(&length.into()) => length.into(),
            _ => return found,
        };
        let (option, rest) = options.split_at_mut(length);
        if option[0] == OPTION_MPTCP {
            option.fill(PADDING);
            found = true;
        }
        options = rest;
    }
}

fn tcp_checksum(bytes: &[u8]) -> Option<u16> {
    let packet = IpSlice::from_slice(bytes).ok()?;
    let tcp = TcpSlice::from_slice(packet.payload().payload).ok()?;
    match &packet {
        IpSlice::Ipv4(packet) => {
            let header = packet.header();
            tcp.calc_checksum_ipv4(header.source(), header.destination()).ok()
        }
        IpSlice::Ipv6(packet) => {
            let header = packet.header();
            tcp.calc_checksum_ipv6(header.source(), header.destination()).ok()
        }
    }
}
