//! Packets as bytes: IPv4 with TCP or UDP. All payload is zeros, which checksums do not see.

use etherparse::{IpEcn, IpNumber, Ipv4Header, TcpHeader, UdpHeader};
use narrows_net::Ecn;
use narrows_sim::Body;
use narrows_sim::capture::Captured;

use super::options::{options, sequence};
use super::secrets::Ports;
use super::wiring::Wiring;

/// Linux's default.
const TIME_TO_LIVE: u8 = 64;

/// The IPv4 header and what follows it, without the payload. The packet is as long on the wire as
/// the simulator said.
pub fn headers(packet: &Captured, wiring: &mut Wiring) -> Vec<u8> {
    let ports = wiring.ports(packet);
    let [sender, receiver] = wiring.addresses(packet);
    let (from, to) = if packet.forward { (sender, receiver) } else { (receiver, sender) };
    let udp = matches!(packet.body, Body::Udp { .. });
    let length = packet.size - Ipv4Header::MIN_LEN as u32;
    let protocol = if udp { IpNumber::UDP } else { IpNumber::TCP };
    let mut ip =
        Ipv4Header::new(length as u16, TIME_TO_LIVE, protocol, from.0.octets(), to.0.octets())
            .expect("no MTU is larger than IPv4 can tell");
    ip.identification = packet.id;
    ip.ecn = match packet.ecn {
        Ecn::NotEct => IpEcn::NotEct,
        Ecn::Ect => IpEcn::Ect0,
        Ecn::Ect1 => IpEcn::Ect1,
        Ecn::Ce => IpEcn::CongestionExperienced,
    };
    ip.header_checksum = ip.calc_header_checksum();

    let mut bytes = ip.to_bytes().to_vec();
    if udp {
        let payload = zeros(length as usize - UdpHeader::LEN);
        let header = UdpHeader::with_ipv4_checksum(from.1, to.1, &ip, payload);
        bytes.extend(header.expect("as long as the IPv4 header says").to_bytes());
    } else {
        let mut header = tcp(packet, wiring, &ports);
        (header.source_port, header.destination_port) = (from.1, to.1);
        let payload = match packet.body {
            Body::Data(segment) => segment.len as usize,
            _ => 0,
        };
        debug_assert_eq!(header.header_len() + payload, length as usize, "{packet:?}");
        let checksum = header.calc_checksum_ipv4(&ip, zeros(payload));
        header.checksum = checksum.expect("as long as the IPv4 header says");
        bytes.extend(header.to_bytes());
    }
    bytes
}

fn zeros(length: usize) -> &'static [u8] {
    static ZEROS: [u8; u16::MAX as usize] = [0; u16::MAX as usize];
    &ZEROS[..length]
}

/// All but ports and checksum.
fn tcp(packet: &Captured, wiring: &Wiring, ports: &Ports) -> TcpHeader {
    let [sender, receiver] = ports.map(|port| port.isn);
    // The receiver sends no data: its sequence number stays that after its SYN.
    let (seq, ack, window) = match packet.body {
        Body::Syn { .. } => (sender, None, wiring.send_window(true)),
        Body::SynAck { edge, .. } => {
            let window = edge.min(u16::MAX.into()) as u16;
            (receiver, Some(sequence(sender, 0)), window)
        }
        Body::Third => {
            (sequence(sender, 0), Some(sequence(receiver, 0)), wiring.send_window(false))
        }
        Body::Data(segment) => {
            // A probe repeats the last byte that was acknowledged, as Linux's.
            let probe = u32::from(segment.len == 0);
            let seq = sequence(sender, segment.seq).wrapping_sub(probe);
            (seq, Some(sequence(receiver, 0)), wiring.send_window(false))
        }
        Body::Fourth { data_ack, edge } => {
            let window = wiring.receive_window(edge - data_ack);
            (sequence(receiver, 0), Some(sequence(sender, 0)), window)
        }
        Body::Ack(ack) => {
            let window = wiring.receive_window(ack.edge - ack.data_ack);
            (sequence(receiver, 0), Some(sequence(sender, ack.ack)), window)
        }
        Body::Udp { .. } => unreachable!("UDP has no TCP header"),
    };
    let mut header = TcpHeader::new(0, 0, seq, window);
    // RFC 3168, section 6.1: ends that understand ECN say so with ECE and CWR, and ECE.
    (header.ece, header.cwr) = match packet.body {
        Body::Syn { .. } => (wiring.tcp.ecn, wiring.tcp.ecn),
        Body::SynAck { .. } => (wiring.tcp.ecn, false),
        Body::Data(segment) => (false, segment.cwr),
        Body::Ack(ack) => (ack.ece, false),
        _ => (false, false),
    };
    header.syn = matches!(packet.body, Body::Syn { .. } | Body::SynAck { .. });
    header.psh = matches!(packet.body, Body::Data(segment) if segment.psh);
    header.ack = ack.is_some();
    header.acknowledgment_number = ack.unwrap_or_default();
    header
        .set_options_raw(&options(packet, wiring, ports))
        .expect("the simulator keeps to 40 bytes");
    header
}
