//! What carries IP packets: link headers, labels and tunnels, one within the other.

/// What a packet begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Ethernet,
    /// `tcpdump -i any`, first form.
    LinuxSll,
    /// `tcpdump -i any`, second form.
    LinuxSll2,
    CiscoHdlc,
    /// BSD's loopback: four bytes of address family.
    Null,
    /// OpenBSD's IPsec, decrypted.
    Encapsulated,
    Ppp,
    /// A byte before it says which way.
    PppWithDirection,
    PppEther,
    /// Linux's log of a firewall.
    Nflog,
    /// No header at all.
    Raw,
}

impl Link {
    /// The link type with this number, or the number.
    pub fn of(number: i32) -> Result<Link, u16> {
        Ok(match number {
            1 => Link::Ethernet,
            113 => Link::LinuxSll,
            276 => Link::LinuxSll2,
            104 => Link::CiscoHdlc,
            0 | 108 => Link::Null,
            109 => Link::Encapsulated,
            9 | 50 | 166 => Link::Ppp,
            204 => Link::PppWithDirection,
            51 => Link::PppEther,
            239 => Link::Nflog,
            // 12 and 14: what some systems call 101.
            12 | 14 | 101 | 228 | 229 => Link::Raw,
            other => return Err(other as u16),
        })
    }
}

/// Why a packet is no segment that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// Its time is days from that of the packets around it: damage.
    Far,
    /// It has no time: a simple packet block.
    Untimed,
    /// Of a link type that is not known here.
    Link(u16),
    /// Neither IPv4 nor IPv6, but of this EtherType.
    NotIp(u16),
    /// Of PPP, but neither of both.
    NotPppIp(u16),
    /// Of LLC, but not of SNAP: for this service (its DSAP).
    NotLlcIp(u8),
    /// What stands where IP is to be has this version.
    NotIpVersion(u8),
    /// UDP and others, by IP's numbers.
    NotTcp(u8),
    /// A part of an IP packet.
    Fragment,
    /// In more tunnels than are opened.
    Deep,
    /// The capture kept less than its headers, up to TCP's options, or they contradict themselves.
    Cut,
}

/// What stands at a place in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// By the numbers of Ethernet (IEEE 802.3, IANA's "IEEE 802 Numbers").
    Ether(u16),
    /// An Ethernet frame.
    Frame,
    /// The number of a protocol of PPP (RFC 1661), and what that numbers.
    Ppp,
    /// An IP header of either version.
    Ip,
}

/// EtherTypes.
mod ether {
    pub const IPV4: u16 = 0x0800;
    pub const IPV6: u16 = 0x86dd;
    pub const VLAN: u16 = 0x8100;
    pub const SERVICE_VLAN: u16 = 0x88a8;
    pub const OLD_VLAN: u16 = 0x9100;
    pub const MPLS: u16 = 0x8847;
    pub const MPLS_UPSTREAM: u16 = 0x8848;
    pub const PPPOE: u16 = 0x8864;
    pub const BRIDGED: u16 = 0x6558;
    pub const PPP: u16 = 0x880b;
    pub const ERSPAN: u16 = 0x88be;
    /// Numbers below are lengths (IEEE 802.3).
    pub const LEAST: u16 = 0x0600;
}

/// Numbers of IP.
pub mod ip {
    pub const IPV4: u8 = 4;
    pub const UDP: u8 = 17;
    pub const IPV6: u8 = 41;
    pub const GRE: u8 = 47;
}

/// Ports of UDP.
mod port {
    pub const L2TP: u16 = 1701;
    pub const GTP_U: u16 = 2152;
    pub const VXLAN: u16 = 4789;
    /// Linux's, before IANA gave one.
    pub const OLD_VXLAN: u16 = 8472;
    pub const GENEVE: u16 = 6081;
}

/// Where the next layer begins and what it is.
type Next = Result<(Layer, usize), Skip>;

fn half(data: &[u8], at: usize) -> Result<u16, Skip> {
    let bytes = data.get(at..at + 2).ok_or(Skip::Cut)?;
    Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// The first layer of a packet (the link types of pcap, tcpdump.org/linktypes.html).
pub fn first(link: Link, data: &[u8]) -> Next {
    Ok(match link {
        Link::Ethernet => (Layer::Ether(half(data, 12)?), 14),
        Link::LinuxSll => (Layer::Ether(half(data, 14)?), 16),
        Link::LinuxSll2 => (Layer::Ether(half(data, 0)?), 20),
        Link::CiscoHdlc => (Layer::Ether(half(data, 2)?), 4),
        Link::Null => (Layer::Ip, 4),
        Link::Encapsulated => (Layer::Ip, 12),
        Link::Raw => (Layer::Ip, 0),
        Link::Ppp => (Layer::Ppp, 0),
        Link::PppWithDirection => (Layer::Ppp, 1),
        Link::PppEther => (Layer::Ether(ether::PPPOE), 0),
        Link::Nflog => return nflog(data),
    })
}

/// The payload among what Linux's NFLOG tells of a packet: a header of 4 bytes, and values with their
/// length and type in the order of the host's bytes, in multiples of 4 bytes.
fn nflog(data: &[u8]) -> Next {
    const PAYLOAD: u16 = 9;
    let mut at = 4;
    loop {
        let bytes = data.get(at..at + 4).ok_or(Skip::Cut)?;
        let length = u16::from_le_bytes([bytes[0], bytes[1]]);
        let (length, kind) = match u16::from_le_bytes([bytes[2], bytes[3]]) & 0x7fff {
            kind if kind < 256 => (length, kind),
            _ => (length.swap_bytes(), u16::from_be_bytes([bytes[2], bytes[3]]) & 0x7fff),
        };
        if kind == PAYLOAD {
            return Ok((Layer::Ip, at + 4));
        }
        at += usize::from(length).max(4).next_multiple_of(4);
    }
}

/// The layer within one that is not IP.
pub fn within(layer: Layer, data: &[u8], at: usize) -> Next {
    match layer {
        Layer::Ip => Ok((Layer::Ip, at)),
        Layer::Frame => Ok((Layer::Ether(half(data, at + 12)?), at + 14)),
        Layer::Ether(ether::IPV4 | ether::IPV6) => Ok((Layer::Ip, at)),
        Layer::Ether(ether::VLAN | ether::SERVICE_VLAN | ether::OLD_VLAN) => {
            Ok((Layer::Ether(half(data, at + 2)?), at + 4))
        }
        Layer::Ether(ether::MPLS | ether::MPLS_UPSTREAM) => labels(data, at),
        // RFC 2516; other codes than 0 set the session up.
        Layer::Ether(ether::PPPOE) if half(data, at)? & 0xff == 0 => Ok((Layer::Ppp, at + 6)),
        Layer::Ether(ether::BRIDGED) => Ok((Layer::Frame, at)),
        // LLC with SNAP (RFC 1042).
        Layer::Ether(length) if length < ether::LEAST && half(data, at)? == 0xaaaa => {
            Ok((Layer::Ether(half(data, at + 6)?), at + 8))
        }
        Layer::Ether(length) if length < ether::LEAST => {
            Err(Skip::NotLlcIp(*data.get(at).ok_or(Skip::Cut)?))
        }
        Layer::Ether(other) => Err(Skip::NotIp(other)),
        Layer::Ppp => ppp(data, at),
    }
}

/// MPLS (RFC 3032). Behind the last label is IP, or an Ethernet frame after a control word (RFC 4448).
fn labels(data: &[u8], mut at: usize) -> Next {
    while half(data, at + 2)? & 0x0100 == 0 {
        at += 4;
    }
    at += 4;
    match data.get(at).ok_or(Skip::Cut)? >> 4 {
        4 | 6 => Ok((Layer::Ip, at)),
        0 => Ok((Layer::Frame, at + 4)),
        _ => Err(Skip::NotIp(ether::MPLS)),
    }
}

/// PPP, with or without the address of HDLC (RFC 1662), its number in one byte or two.
fn ppp(data: &[u8], mut at: usize) -> Next {
    // The address and the control field; pppd's log has the direction in place of the address.
    if matches!(half(data, at)?, 0xff03 | 0x0003 | 0x0103) {
        at += 2;
    }
    let mut number = half(data, at)?;
    at += 2;
    if number & 0x0100 != 0 {
        number >>= 8;
        at -= 1;
    }
    match number {
        0x0021 | 0x0057 => Ok((Layer::Ip, at)),
        0x0281 => Ok((Layer::Ether(ether::MPLS), at)),
        other => Err(Skip::NotPppIp(other)),
    }
}

/// The layer within IP, at the place of what is in its payload; none if that is no tunnel that is known.
pub fn tunnelled(number: u8, data: &[u8], at: usize) -> Option<Next> {
    match number {
        ip::IPV4 | ip::IPV6 => Some(Ok((Layer::Ip, at))),
        ip::GRE => Some(gre(data, at)),
        ip::UDP => {
            let (from, to) = (half(data, at).ok()?, half(data, at + 2).ok()?);
            let (at, flags) = (at + 8, *data.get(at + 8)?);
            match to {
                // RFC 7348: the network's number is there, and nothing else.
                port::VXLAN | port::OLD_VXLAN if flags & 0xf7 == 0 => {
                    Some(Ok((Layer::Frame, at + 8)))
                }
                // RFC 8926, version 0.
                port::GENEVE if flags >> 6 == 0 => {
                    let kind = half(data, at + 2);
                    Some(
                        kind.map(|kind| {
                            (Layer::Ether(kind), at + 8 + 4 * usize::from(flags & 0x3f))
                        }),
                    )
                }
                port::GTP_U => gtp(data, at),
                port::L2TP => l2tp(data, at),
                _ if from == port::GTP_U => gtp(data, at),
                _ if from == port::L2TP => l2tp(data, at),
                _ => None,
            }
        }
        _ => None,
    }
}

/// GRE (RFC 2784, 2890), also of PPTP (RFC 2637) and ERSPAN.
fn gre(data: &[u8], at: usize) -> Next {
    const ROUTED: u16 = 0x4000;
    let (flags, kind) = (half(data, at)?, half(data, at + 2)?);
    let set = |bits: u16| if flags & bits != 0 { 4 } else { 0 };
    match (flags & 7, kind) {
        _ if flags & ROUTED != 0 => Err(Skip::NotTcp(ip::GRE)),
        (1, ether::PPP) => Ok((Layer::Ppp, at + 8 + set(0x1000) + set(0x0080))),
        (0, kind) => {
            let after = at + 4 + set(0x8000) + set(0x2000) + set(0x1000);
            match kind {
                // With a sequence number it has a header of its own.
                ether::ERSPAN => Ok((Layer::Frame, after + 2 * set(0x1000))),
                _ => Ok((Layer::Ether(kind), after)),
            }
        }
        _ => Err(Skip::NotTcp(ip::GRE)),
    }
}

/// Data of GTP's user plane (3GPP TS 29.281, section 5).
fn gtp(data: &[u8], at: usize) -> Option<Next> {
    const DATA: u16 = 255;
    let begin = half(data, at).ok()?;
    if begin & 0xf0ff != 0x3000 | DATA {
        return None;
    }
    let mut after = at + 8;
    if begin & 0x0700 != 0 {
        after += 4;
        // Extension headers, each with the type of the next at its end.
        let mut more = begin & 0x0400 != 0;
        while more && *data.get(after - 1)? != 0 {
            let length = 4 * usize::from(*data.get(after)?);
            more = length > 0;
            after += length;
        }
    }
    Some(Ok((Layer::Ip, after)))
}

/// Data of L2TP, version 2 (RFC 2661, section 3.1).
fn l2tp(data: &[u8], at: usize) -> Option<Next> {
    const CONTROL: u16 = 0x8000;
    let flags = half(data, at).ok()?;
    if flags & (CONTROL | 0x000f) != 2 {
        return None;
    }
    let set = |bit: u16, bytes: usize| if flags & bit != 0 { bytes } else { 0 };
    let mut after = at + 2 + set(0x4000, 2) + 4 + set(0x0800, 4);
    if flags & 0x0200 != 0 {
        after += 2 + usize::from(half(data, after).ok()?);
    }
    Some(Ok((Layer::Ppp, after)))
}
