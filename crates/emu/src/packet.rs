//! Packets as bytes: what the network has to know of them, and what it does to them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use etherparse::{IpNumber, IpSlice, TcpSlice};
use narrows_net::{Ecn, Header};

/// The kind of TCP option that MPTCP uses (RFC 8684, section 3).
const OPTION_MPTCP: u8 = 30;

/// The headers of an IP packet.
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
        1 => Ecn::Ect1,
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

#[cfg(test)]
mod tests {
    use etherparse::{IpEcn, Ipv6FragmentHeader, PacketBuilder, TcpHeader};
    use proptest::prelude::*;

    use super::*;

    const V4: ([u8; 4], [u8; 4]) = ([10, 1, 0, 1], [10, 1, 0, 2]);
    const V6: ([u8; 16], [u8; 16]) = ([1; 16], [2; 16]);

    fn v4_header(ecn: IpEcn) -> etherparse::Ipv4Header {
        let mut header =
            etherparse::Ipv4Header::new(0, 64, IpNumber::UDP, V4.0, V4.1).expect("it is short");
        header.ecn = ecn;
        header
    }

    fn v4(ecn: IpEcn) -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
        PacketBuilder::ip(etherparse::IpHeaders::Ipv4(v4_header(ecn), Default::default()))
    }

    fn v6(ecn: IpEcn) -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
        let mut header = etherparse::Ipv6Header {
            hop_limit: 64,
            source: V6.0,
            destination: V6.1,
            ..Default::default()
        };
        header.set_ecn(ecn);
        PacketBuilder::ip(etherparse::IpHeaders::Ipv6(header, Default::default()))
    }

    fn udp(ip: etherparse::PacketBuilderStep<etherparse::IpHeaders>, ports: (u16, u16)) -> Vec<u8> {
        let mut bytes = Vec::new();
        ip.udp(ports.0, ports.1).write(&mut bytes, b"payload").expect("a Vec takes all");
        bytes
    }

    #[test]
    fn a_header_is_what_the_packet_says() {
        for (ip, from, to, size) in [
            (v4 as fn(_) -> _, V4.0.into(), V4.1.into(), 20 + 8 + 7),
            (v6, V6.0.into(), V6.1.into(), 40 + 8 + 7),
        ] {
            let parsed = |ecn, ports| parse(&udp(ip(ecn), ports)).expect("it is whole");
            let one = parsed(IpEcn::ZERO, (1, 2));
            assert_eq!((one.from, one.to, one.header.size), (from, to, size));
            assert_eq!(one.header.ecn, Ecn::NotEct);
            let ecns = [IpEcn::ONE, IpEcn::TWO, IpEcn::THREE];
            let ecns = ecns.map(|ecn| parsed(ecn, (1, 2)).header.ecn);
            assert_eq!(ecns, [Ecn::Ect1, Ecn::Ect, Ecn::Ce]);
            // The ports name the flow, in their order; the mark does not.
            assert_ne!(one.header.flow, parsed(IpEcn::ZERO, (2, 1)).header.flow);
            assert_eq!(one.header.flow, parsed(IpEcn::THREE, (1, 2)).header.flow);
        }
    }

    #[test]
    fn fragments_are_a_flow_of_their_addresses() {
        let fragment = |ports| {
            let mut bytes = udp(v4(IpEcn::ZERO), ports);
            bytes[6] |= 0x20; // more fragments
            parse(&bytes).expect("it is whole").header.flow
        };
        assert_eq!(fragment((1, 2)), fragment((3, 4)));
        let fragment = |ports| {
            let mut bytes = udp(v6(IpEcn::ZERO), ports);
            let header = Ipv6FragmentHeader::new(IpNumber::UDP, 0.try_into().unwrap(), true, 7);
            bytes[5] += 8; // payload length
            bytes[6] = IpNumber::IPV6_FRAGMENTATION_HEADER.0;
            bytes.splice(40..40, header.to_bytes());
            parse(&bytes).expect("it is whole").header.flow
        };
        assert_eq!(fragment((1, 2)), fragment((3, 4)));
    }

    #[test]
    fn a_marked_packet_is_marked_and_right() {
        for ecn in [IpEcn::ONE, IpEcn::TWO, IpEcn::THREE] {
            for ip in [v4, v6] {
                let mut bytes = udp(ip(ecn), (1, 2));
                mark(&mut bytes);
                assert_eq!(bytes, udp(ip(IpEcn::THREE), (1, 2)));
            }
        }
        // Whatever the checksum is: sums may carry twice.
        for identification in 0..=u16::MAX {
            let header = |ecn| {
                let mut header = v4_header(ecn);
                header.identification = identification;
                header.header_checksum = header.calc_header_checksum();
                header.to_bytes()
            };
            let mut bytes = header(IpEcn::TWO);
            mark(&mut bytes);
            assert_eq!(bytes, header(IpEcn::THREE));
        }
    }

    fn tcp(ip: etherparse::PacketBuilderStep<etherparse::IpHeaders>, options: &[u8]) -> Vec<u8> {
        let mut header = TcpHeader::new(1, 2, 3, 4);
        header.set_options_raw(options).expect("they fit");
        let mut bytes = Vec::new();
        ip.tcp_header(header).write(&mut bytes, b"payload").expect("a Vec takes all");
        bytes
    }

    #[test]
    fn a_stripped_packet_has_padding_and_a_right_checksum() {
        // MSS, MP_CAPABLE of an odd offset and length, timestamps that contain a 30.
        let with = [2, 4, 5, 220, 1, 30, 5, 9, 9, 9, 8, 10, 30, 4, 0, 1, 0, 0, 0, 2];
        let without = [2, 4, 5, 220, 1, 1, 1, 1, 1, 1, 8, 10, 30, 4, 0, 1, 0, 0, 0, 2];
        for ip in [v4, v6] {
            let mut bytes = tcp(ip(IpEcn::ZERO), &with);
            strip_mptcp(&mut bytes);
            assert_eq!(bytes, tcp(ip(IpEcn::ZERO), &without));
            let mut other = udp(ip(IpEcn::ZERO), (30, 30));
            strip_mptcp(&mut other);
            assert_eq!(other, udp(ip(IpEcn::ZERO), (30, 30)));
        }
    }

    #[test]
    fn what_is_no_whole_packet_is_none() {
        let bytes = udp(v4(IpEcn::ZERO), (1, 2));
        assert_eq!(parse(&bytes[..bytes.len() - 1]), None);
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&[0x50; 60]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(
            mut bytes in prop::collection::vec(any::<u8>(), 0..120),
            options in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            if let Some(first) = bytes.first_mut() {
                *first = [0x45, 0x46, 0x60][usize::from(*first) % 3];
            }
            strip_mptcp(&mut bytes);
            if parse(&bytes).is_some() {
                mark(&mut bytes);
                let Parsed { header, .. } = parse(&bytes).expect("still one");
                prop_assert_eq!(header.ecn, Ecn::Ce);
            }
            let mut stripped = options.clone();
            let found = pad_options(&mut stripped);
            prop_assert_eq!(found, stripped != options);
            prop_assert!(!pad_options(&mut stripped), "nothing is left");
        }
    }
}
