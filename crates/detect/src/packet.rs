//! From a packet as it was captured to its TCP segment.

use std::net::{IpAddr, SocketAddr};

use etherparse::{IpNumber, LaxNetSlice, LaxSlicedPacket, TransportSlice};

use crate::wrapped::{self, Layer, tunnelled};
pub use crate::wrapped::{Link, Skip};

/// One end of a flow.
pub type End = (IpAddr, u16);

/// A packet as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its place in the file, from 1.
    pub number: u64,
    /// Nanoseconds since 1970.
    pub time: i64,
    /// The number of a link type that is not known here.
    pub link: Result<Link, u16>,
    /// What was kept of it.
    pub data: &'a [u8],
    /// Its bytes on the wire.
    pub wire: u32,
    /// It is of no use, as its time is damaged or not there.
    pub skip: Option<Skip>,
}

/// `10.0.0.1:40001 > 10.0.0.2:5001`.
pub fn ends_name((from, to): (End, End)) -> String {
    let [from, to] = [from, to].map(|(address, port)| SocketAddr::new(address, port));
    format!("{from} > {to}")
}

/// A TCP segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    pub from: End,
    pub to: End,
    pub seq: u32,
    /// What it acknowledges, if anything.
    pub ack: Option<u32>,
    pub syn: bool,
    /// Bytes of data, whether the capture kept them or not.
    pub len: u32,
    /// IP's identification; 0 if there is none.
    pub id: u16,
    /// IP's time to live, or hop limit.
    pub hops: u8,
    /// The length of TCP's header, and its flags.
    pub flags: u16,
    /// The window that it announces, as it is in the header.
    pub window: u16,
    /// Timestamp and echoed timestamp (RFC 7323).
    pub stamps: Option<(u32, u32)>,
    /// The first block of a selective acknowledgement, which covers the newest segment (RFC 2018).
    pub sack: Option<(u32, u32)>,
    /// MPTCP's option, from its subtype on (RFC 8684, section 3).
    pub mptcp: Option<&'a [u8]>,
    /// The maximum segment size that a SYN announces.
    pub mss: Option<u16>,
    /// The capture did not keep all of its options.
    pub cut: bool,
}

impl Segment<'_> {
    /// The sequence number behind it.
    pub fn end(&self) -> u32 {
        self.seq.wrapping_add(self.len).wrapping_add(self.syn.into())
    }
}

/// Layers around a segment, more than anybody uses.
const LAYERS: usize = 16;

/// The segment in a packet of `wire` bytes, of which `data` was kept.
pub fn segment(link: Link, data: &[u8], wire: u32) -> Result<Segment<'_>, Skip> {
    innermost(link, data, wire).map_err(|(skip, _)| skip)
}

/// As [`segment`]; else also where the IP packet begins that has none.
fn innermost(link: Link, data: &[u8], wire: u32) -> Result<Segment<'_>, (Skip, usize)> {
    let nowhere = |skip: Skip| (skip, data.len());
    let mut layer = wrapped::first(link, data).map_err(nowhere)?;
    for _ in 0..LAYERS {
        layer = match layer {
            (Layer::Ip, at) => match in_ip(data, at, wire) {
                Err((skip, inner)) => {
                    match inner.and_then(|(number, at)| tunnelled(number, data, at)) {
                        Some(inner) => inner.map_err(nowhere)?,
                        None => return Err((skip, at)),
                    }
                }
                Ok(segment) => return Ok(segment),
            },
            (layer, at) => wrapped::within(layer, data, at).map_err(nowhere)?,
        };
    }
    Err(nowhere(Skip::Deep))
}

/// A UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    pub from: End,
    pub to: End,
    /// Bytes of data, and what the capture kept of them.
    pub len: u32,
    pub data: &'a [u8],
}

/// The datagram in a packet, if it has one that is no tunnel.
pub fn datagram(link: Link, data: &[u8]) -> Option<Datagram<'_>> {
    let Err((Skip::NotTcp(wrapped::ip::UDP), at)) = innermost(link, data, 0) else { return None };
    let packet = LaxSlicedPacket::from_ip(&data[at..]).ok()?;
    let (from, to) = match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            (IpAddr::V4(header.source_addr()), IpAddr::V4(header.destination_addr()))
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            (IpAddr::V6(header.source_addr()), IpAddr::V6(header.destination_addr()))
        }
        LaxNetSlice::Arp(_) => return None,
    };
    let Some(TransportSlice::Udp(udp)) = &packet.transport else { return None };
    Some(Datagram {
        from: (from, udp.source_port()),
        to: (to, udp.destination_port()),
        len: u32::from(udp.length()).saturating_sub(8),
        data: udp.payload(),
    })
}

/// The segment in the IP packet at a place of a packet; else why there is none, and what is in its payload
/// and where.
fn in_ip(data: &[u8], at: usize, wire: u32) -> Result<Segment<'_>, (Skip, Option<(u8, usize)>)> {
    let none = |skip| (skip, None);
    let bytes = data.get(at..).ok_or(none(Skip::Cut))?;
    let packet = LaxSlicedPacket::from_ip(bytes).map_err(|_| none(no_ip(bytes)))?;
    // Where the IP header begins, and how long the packet says it is.
    let (from, to, start, total, fragment, id, hops) = match packet.net.as_ref() {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            let total = u32::from(header.total_len());
            let ends = (IpAddr::V4(header.source_addr()), IpAddr::V4(header.destination_addr()));
            let (fragment, id) = (ip.is_payload_fragmented(), header.identification());
            (ends.0, ends.1, header.slice().as_ptr(), total, fragment, id, header.ttl())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            let total = match header.payload_length() {
                0 => 0,
                length => u32::from(length) + 40,
            };
            let ends = (IpAddr::V6(header.source_addr()), IpAddr::V6(header.destination_addr()));
            let fragment = ip.is_payload_fragmented();
            (ends.0, ends.1, header.slice().as_ptr(), total, fragment, 0, header.hop_limit())
        }
        _ => return Err(none(no_ip(bytes))),
    };
    if fragment {
        return Err(none(Skip::Fragment));
    }
    let payload = packet.net.as_ref().and_then(LaxNetSlice::ip_payload_ref);
    let payload = payload.ok_or_else(|| none(no_ip(bytes)))?;
    // Of its header all but some options may be there.
    let tcp = match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => tcp.slice(),
        None if payload.ip_number == IpNumber::TCP => payload.payload,
        None if packet.stop_err.is_some() => return Err(none(Skip::Cut)),
        _ => {
            let place = payload.payload.as_ptr() as usize - data.as_ptr() as usize;
            let number = payload.ip_number.0;
            return Err((Skip::NotTcp(number), Some((number, place))));
        }
    };
    tcp_in(data, tcp, wire, Ip { from, to, start, total, id, hops }).ok_or(none(Skip::Cut))
}

/// Why there is no IP header: another version, or too little of it.
fn no_ip(bytes: &[u8]) -> Skip {
    match bytes.first().map(|first| first >> 4) {
        None | Some(4 | 6) => Skip::Cut,
        Some(version) => Skip::NotIpVersion(version),
    }
}

/// What an IP header says.
struct Ip {
    from: IpAddr,
    to: IpAddr,
    start: *const u8,
    total: u32,
    id: u16,
    hops: u8,
}

/// The segment in `tcp`, which is in an IP packet, which is in `data`.
fn tcp_in<'a>(data: &'a [u8], tcp: &'a [u8], wire: u32, ip: Ip) -> Option<Segment<'a>> {
    let Ip { from, to, start, total, id, hops } = ip;
    let (fixed, rest) = tcp.split_first_chunk::<20>()?;
    let header = usize::from(fixed[12] >> 4) * 4;
    let room = header.checked_sub(fixed.len())?;
    let port = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let (ack, syn) = (fixed[13] & 0x10 != 0, fixed[13] & 0x02 != 0);
    // All are parts of `data`.
    let place = |part: *const u8| (part as usize - data.as_ptr() as usize) as u32;
    // Segments that the device is yet to cut may be longer than the IP length field; then it is 0.
    let length = if total == 0 { wire.saturating_sub(place(start)) } else { total };
    let headers = place(tcp.as_ptr()) - place(start) + header as u32;
    let mut segment = Segment {
        from: (from, port(0)),
        to: (to, port(2)),
        seq: word(&fixed[4..]),
        ack: ack.then(|| word(&fixed[8..])),
        syn,
        len: length.checked_sub(headers)?,
        id,
        hops,
        flags: u16::from_be_bytes([fixed[12], fixed[13]]),
        window: u16::from_be_bytes([fixed[14], fixed[15]]),
        stamps: None,
        sack: None,
        mptcp: None,
        mss: None,
        cut: rest.len() < room,
    };
    options(&rest[..room.min(rest.len())], &mut segment);
    Some(segment)
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Reads the options that are of use here; what follows one that is malformed is left.
fn options<'a>(mut rest: &'a [u8], segment: &mut Segment<'a>) {
    const END: u8 = 0;
    const NOP: u8 = 1;
    const MSS: u8 = 2;
    const SACK: u8 = 5;
    const TIMESTAMPS: u8 = 8;
    const MPTCP: u8 = 30;
    loop {
        let (kind, length) = match *rest {
            [NOP, ref after @ ..] => {
                rest = after;
                continue;
            }
            [] | [END, ..] | [_] => return,
            [kind, length, ..] => (kind, usize::from(length)),
        };
        let Some(body) = rest.get(2..length) else { return };
        match (kind, body.len()) {
            (MSS, 2) => segment.mss = Some(u16::from_be_bytes([body[0], body[1]])),
            (SACK, 8..) => segment.sack = Some((word(body), word(&body[4..]))),
            (TIMESTAMPS, 8) => segment.stamps = Some((word(body), word(&body[4..]))),
            (MPTCP, 1..) => segment.mptcp = Some(body),
            _ => {}
        }
        rest = &rest[length..];
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{IpHeaders, PacketBuilder, PacketBuilderStep, TcpOptionElement};

    use super::*;

    const KEY: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

    /// A segment of 1000 bytes with timestamps, as on the wire.
    fn packet(ip: PacketBuilderStep<IpHeaders>) -> Vec<u8> {
        let tcp = ip.tcp(443, 5000, 4_000_000_000, 100).ack(7).options(&[
            TcpOptionElement::Noop,
            TcpOptionElement::Noop,
            TcpOptionElement::Timestamp(11, 12),
            TcpOptionElement::Noop,
            TcpOptionElement::Noop,
            TcpOptionElement::SelectiveAcknowledgement((20, 30), [None; 3]),
        ]);
        let mut bytes = Vec::new();
        tcp.unwrap().write(&mut bytes, &[0; 1000]).unwrap();
        bytes
    }

    fn v4() -> Vec<u8> {
        packet(PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64))
    }

    /// Read with only its first 120 bytes kept.
    fn read(link: Link, header: &[u8], ip: &[u8]) -> Result<(End, End, u32), Skip> {
        let bytes = [header, ip].concat();
        let wire = bytes.len() as u32;
        let segment = segment(link, &bytes[..bytes.len().min(120)], wire)?;
        assert_eq!((segment.seq, segment.ack, segment.syn), (4_000_000_000, Some(7), false));
        assert_eq!((segment.stamps, segment.sack), (Some((11, 12)), Some((20, 30))));
        Ok((segment.from, segment.to, segment.len))
    }

    /// As [`read`], with all of it kept.
    fn carry(link: Link, header: &[u8], ip: &[u8]) -> Result<(End, End, u32), Skip> {
        let bytes = [header, ip].concat();
        let segment = segment(link, &bytes, bytes.len() as u32)?;
        assert_eq!((segment.seq, segment.stamps), (4_000_000_000, Some((11, 12))));
        Ok((segment.from, segment.to, segment.len))
    }

    #[test]
    fn the_same_segment_is_found_behind_each_link_header() {
        let ends = ((IpAddr::from([10, 0, 0, 1]), 443), (IpAddr::from([10, 0, 0, 2]), 5000));
        let right = Ok((ends.0, ends.1, 1000));
        let ethernet = [&[0; 12], &[8, 0][..]].concat();
        let vlan = [&[0; 12], &[0x81, 0, 0, 5, 8, 0][..]].concat();
        let two_vlans = [&[0; 12], &[0x88, 0xa8, 0, 6, 0x81, 0, 0, 5, 8, 0][..]].concat();
        let cooked = [&[0; 14], &[8, 0][..]].concat();
        let cooked_2 = [&[8, 0][..], &[0; 18]].concat();
        assert_eq!(read(Link::Ethernet, &ethernet, &v4()), right);
        assert_eq!(read(Link::Ethernet, &vlan, &v4()), right);
        assert_eq!(read(Link::Ethernet, &two_vlans, &v4()), right);
        assert_eq!(read(Link::LinuxSll, &cooked, &v4()), right);
        assert_eq!(read(Link::LinuxSll2, &cooked_2, &v4()), right);
        assert_eq!(read(Link::Null, &[2, 0, 0, 0], &v4()), right);
        assert_eq!(read(Link::Raw, &[], &v4()), right);
        // A frame shorter than Ethernet allows is filled up, and that is no data.
        let filled = [v4(), vec![0; 6]].concat();
        assert_eq!(read(Link::Ethernet, &ethernet, &filled), right);
        // What the device is yet to cut does not say how long it is.
        let mut large = v4();
        large[2..4].fill(0);
        assert_eq!(read(Link::Ethernet, &ethernet, &large), right);
    }

    #[test]
    fn the_same_segment_is_found_in_labels_and_tunnels() {
        let ends = ((IpAddr::from([10, 0, 0, 1]), 443), (IpAddr::from([10, 0, 0, 2]), 5000));
        let right = Ok((ends.0, ends.1, 1000));
        let ethernet = |kind: u16| [&[0; 12], &kind.to_be_bytes()[..]].concat();
        let inner = ethernet(0x0800);
        // An IPv4 header around it: its length, and what it has.
        let outer = |number: u8, rest: &[u8]| {
            let length = (20 + rest.len() + v4().len()) as u16;
            let [high, low] = length.to_be_bytes();
            let header = [0x45, 0, high, low, 0, 9, 0, 0, 64, number, 0, 0, 9, 9, 9, 1, 9, 9, 9, 2];
            [&header, rest].concat()
        };
        let udp = |from: u16, to: u16, rest: &[u8]| {
            let [length, sum] = [(8 + rest.len() + v4().len()) as u16, 0];
            outer(17, &[&[from, to, length, sum].map(u16::to_be_bytes).concat(), rest].concat())
        };
        let six = |number: u8| {
            let [high, low] = (v4().len() as u16).to_be_bytes();
            [&[0x60, 0, 0, 0, high, low, number, 64][..], &[0xfd; 32]].concat()
        };
        let nflog = [
            &[2, 0, 0, 1][..],
            &[5, 0, 10, 0, b'x', 0, 0, 0],
            &[(4 + v4().len() as u16).to_le_bytes(), [9, 0]].concat(),
        ];
        let carried: Vec<(&str, Link, Vec<u8>)> = vec![
            (
                "PPPoE",
                Link::Ethernet,
                [&ethernet(0x8864)[..], &[0x11, 0, 0, 7, 4, 30, 0, 0x21]].concat(),
            ),
            ("MPLS", Link::Ethernet, [&ethernet(0x8847)[..], &[0, 1, 0, 64, 0, 2, 1, 64]].concat()),
            (
                "Ethernet over MPLS",
                Link::Ethernet,
                [&ethernet(0x8847)[..], &[0, 1, 1, 64, 0, 0, 0, 0], &inner].concat(),
            ),
            (
                "SNAP",
                Link::Ethernet,
                [&ethernet(0x0420)[..], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat(),
            ),
            ("IP in IP", Link::Raw, outer(4, &[])),
            ("IP in IPv6", Link::Raw, six(4)),
            ("GRE", Link::Raw, outer(47, &[0, 0, 8, 0])),
            (
                "GRE with sum, key, number",
                Link::Raw,
                outer(47, &[0xb0, 0, 8, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]),
            ),
            (
                "Ethernet in GRE",
                Link::Raw,
                outer(47, &[&[0x20, 0, 0x65, 0x58, 0, 0, 0, 7], &inner[..]].concat()),
            ),
            (
                "ERSPAN",
                Link::Raw,
                outer(47, &[&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1], &[0x10; 8], &inner[..]].concat()),
            ),
            (
                "PPTP",
                Link::Raw,
                outer(
                    47,
                    &[0x30, 0x81, 0x88, 0x0b, 0, 9, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0xff, 3, 0, 0x21],
                ),
            ),
            (
                "VXLAN",
                Link::Raw,
                udp(33_333, 4789, &[&[8, 0, 0, 0, 0, 0, 7, 0], &inner[..]].concat()),
            ),
            (
                "Geneve",
                Link::Raw,
                udp(
                    33_333,
                    6081,
                    &[&[1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 0], &inner[..]].concat(),
                ),
            ),
            ("GTP-U", Link::Raw, udp(2152, 2152, &[0x30, 255, 0, 9, 0, 0, 0, 7])),
            (
                "GTP-U with an extension header",
                Link::Raw,
                udp(2152, 2152, &[0x34, 255, 0, 9, 0, 0, 0, 7, 0, 0, 0, 0x85, 1, 0, 9, 0]),
            ),
            ("L2TP", Link::Raw, udp(1701, 1701, &[0x40, 2, 0, 9, 0, 1, 0, 2, 0xff, 3, 0, 0x21])),
            (
                "L2TP with numbers and offset",
                Link::Raw,
                udp(1701, 1701, &[0x0a, 2, 0, 1, 0, 2, 0, 3, 0, 4, 0, 2, 9, 9, 0x21]),
            ),
            ("PPP", Link::Ppp, vec![0xff, 3, 0, 0x21]),
            ("PPP, compressed", Link::Ppp, vec![0x21]),
            ("PPP, pppd's log", Link::Ppp, vec![1, 3, 0, 0x21]),
            ("PPP with direction", Link::PppWithDirection, vec![1, 0, 0x21]),
            ("PPPoE without Ethernet", Link::PppEther, vec![0x11, 0, 0, 7, 4, 30, 0, 0x21]),
            ("HDLC", Link::CiscoHdlc, vec![0x0f, 0, 8, 0]),
            ("enc", Link::Encapsulated, vec![0; 12]),
            ("NFLOG", Link::Nflog, nflog.concat()),
        ];
        for (name, link, header) in &carried {
            assert_eq!(carry(*link, header, &v4()), right, "{name}");
            // Never out of bounds.
            for kept in 0..header.len() {
                let _ = segment(*link, &header[..kept], 1500);
            }
        }
        // One in the other.
        let tunnel = |number| outer(number, &[0, 0, 8, 0]);
        assert_eq!(carry(Link::Raw, &[tunnel(47), six(4)].concat(), &v4()), right);
        let endless = outer(4, &[]).repeat(20);
        assert_eq!(carry(Link::Raw, &endless, &v4()), Err(Skip::Deep));
    }

    #[test]
    fn what_carries_no_ip_has_its_number() {
        let of = |link, bytes: &[u8]| segment(link, bytes, 100).unwrap_err();
        let ethernet = |kind: u16| [&[0; 12], &kind.to_be_bytes()[..], &[0; 60]].concat();
        assert_eq!(of(Link::Ethernet, &ethernet(0x0806)), Skip::NotIp(0x0806));
        assert_eq!(of(Link::Ethernet, &ethernet(0x88e5)), Skip::NotIp(0x88e5));
        assert_eq!(of(Link::Ppp, &[0xc0, 0x21, 1, 1]), Skip::NotPppIp(0xc021));
        // A bridge's spanning tree, with its length in place of an EtherType; and SLL's number of LLC.
        let tree = [&[0; 12][..], &[0, 38, 0x42, 0x42, 3], &[0; 43]].concat();
        assert_eq!(of(Link::Ethernet, &tree), Skip::NotLlcIp(0x42));
        let routing = [&[0; 14][..], &[0, 4, 0xfe, 0xfe, 3, 0x83]].concat();
        assert_eq!(of(Link::LinuxSll, &routing), Skip::NotLlcIp(0xfe));
        assert_eq!(of(Link::Null, &[7, 0, 0, 0, 0x81, 1]), Skip::NotIpVersion(8));
        assert_eq!(Link::of(105), Err(105));
    }

    #[test]
    fn version_6_with_extension_headers() {
        let (from, to) = ([0xfd; 16], [0xfe; 16]);
        let plain = packet(PacketBuilder::ipv6(from, to, 64));
        let right = Ok(((IpAddr::from(from), 443), (IpAddr::from(to), 5000), 1000));
        assert_eq!(read(Link::Raw, &[], &plain), right);
        // Destination options of 8 bytes before TCP.
        let mut extended = plain.clone();
        extended.splice(40..40, [6, 0, 1, 4, 0, 0, 0, 0]);
        extended[6] = 60;
        let length = (extended.len() - 40) as u16;
        extended[4..6].copy_from_slice(&length.to_be_bytes());
        assert_eq!(read(Link::Raw, &[], &extended), right);
    }

    #[test]
    fn what_is_no_segment_says_why() {
        let of = |bytes: &[u8]| read(Link::Raw, &[], bytes).unwrap_err();
        let mut fragment = v4();
        fragment[6] = 0x20;
        assert_eq!(of(&fragment), Skip::Fragment);
        let mut udp = Vec::new();
        PacketBuilder::ipv4([1; 4], [2; 4], 9).udp(1, 2).write(&mut udp, &[0; 9]).unwrap();
        assert_eq!(of(&udp), Skip::NotTcp(17));
        assert_eq!(of(&v4()[..38]), Skip::Cut);
        assert_eq!(of(&[0x70; 60]), Skip::NotIpVersion(7));
        // Of IP, but not all of its header.
        assert_eq!(segment(Link::Raw, &v4()[..19], 1500), Err(Skip::Cut));
        assert_eq!(segment(Link::Raw, &[], 0), Err(Skip::Cut));
        assert_eq!(read(Link::Ethernet, &[0; 13], &[]), Err(Skip::Cut));
        assert_eq!(read(Link::Ethernet, &[0; 14], &v4()), Err(Skip::NotLlcIp(0x45)));
        // Shorter than its own headers.
        let mut short = v4();
        short[2..4].copy_from_slice(&30_u16.to_be_bytes());
        assert_eq!(of(&short), Skip::Cut);
    }

    #[test]
    fn of_options_what_was_kept_is_read() {
        let whole = v4();
        // IP, TCP, two NOP and the timestamps; then two NOP and a block.
        for (kept, stamps, sack) in [
            (64, Some((11, 12)), Some((20, 30))),
            (63, Some((11, 12)), None),
            (52, Some((11, 12)), None),
            (51, None, None),
            (40, None, None),
        ] {
            let segment = segment(Link::Raw, &whole[..kept], 1064).unwrap();
            assert_eq!((segment.seq, segment.ack, segment.len), (4_000_000_000, Some(7), 1000));
            assert_eq!((segment.stamps, segment.sack), (stamps, sack), "{kept}");
            assert_eq!(segment.cut, kept < 64, "{kept}");
        }
        assert_eq!(segment(Link::Raw, &whole[..39], 1064), Err(Skip::Cut));
        // A header that is shorter than a header.
        let mut short = whole;
        short[32] = 0x40;
        assert_eq!(segment(Link::Raw, &short, 1064), Err(Skip::Cut));
    }

    #[test]
    fn options_are_read_until_one_is_malformed() {
        let read = |options: &[u8]| {
            let bytes = v4();
            let mut segment = segment(Link::Raw, &bytes, 1076).unwrap();
            (segment.stamps, segment.sack, segment.mss, segment.mptcp) = (None, None, None, None);
            super::options(options, &mut segment);
            (segment.mss, segment.stamps, segment.mptcp.map(<[u8]>::to_vec))
        };
        let mss = [2, 4, 5, 0xb4];
        let capable = [&[30, 12, 1, 1][..], &KEY].concat();
        assert_eq!(
            read(&[&mss[..], &capable].concat()),
            (Some(1460), None, Some(capable[2..].into()))
        );
        let stamps = [8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        assert_eq!(read(&[&[1, 1][..], &stamps].concat()), (None, Some((1, 2)), None));
        for malformed in [&[3, 1][..], &[3, 0], &[3, 200], &[0]] {
            let options = read(&[&mss, malformed, &stamps].concat());
            assert_eq!(options, (Some(1460), None, None), "{malformed:?}");
        }
    }
}
