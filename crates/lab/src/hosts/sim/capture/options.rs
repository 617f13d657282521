//! TCP options, in Linux's order and with its padding: tcp_options_write(), mptcp_write_options().

use narrows_net::Nanos;
use narrows_sim::capture::Captured;
use narrows_sim::{Ack, Body, Segment};
use narrows_traffic::TcpConfig;

use super::secrets::Ports;
use super::wiring::{FROM_RECEIVER, FROM_SENDER, Wiring};

const NOP: u8 = 1;
const MPTCP: u8 = 30;
// Subtypes of MPTCP's option, RFC 8684, section 8.
const MP_CAPABLE: u8 = 0x00;
const MP_JOIN: u8 = 0x10;
const DSS: u8 = 0x20;
/// MP_CAPABLE: version 1, and the flag of HMAC-SHA256.
const VERSION_1: u8 = 1;
const HMAC_SHA256: u8 = 0x01;
// Flags of DSS, RFC 8684, section 3.3.
const DATA_ACK: u8 = 0x01;
const LONG_DATA_ACK: u8 = 0x02;
const MAPPING: u8 = 0x04;
const LONG_DSN: u8 = 0x08;

/// The options of a packet.
pub fn options(packet: &Captured, wiring: &Wiring, ports: &Ports) -> Vec<u8> {
    let mut options = Vec::with_capacity(40);
    match packet.body {
        Body::Syn { .. } | Body::SynAck { .. } => {
            options.extend([2, 4]);
            options.extend(wiring.mss(packet).to_be_bytes());
            options.extend([4, 2]);
            timestamps(&mut options, packet, &wiring.tcp, ports);
            options.extend([NOP, 3, 3, wiring.window_scale(packet.forward)]);
        }
        _ => {
            options.extend([NOP, NOP]);
            timestamps(&mut options, packet, &wiring.tcp, ports);
        }
    }
    if let Body::Ack(ack) = &packet.body {
        sack(&mut options, ack, ports[FROM_SENDER].isn);
    }
    if packet.multipath {
        mptcp(&mut options, packet, wiring, ports);
    }
    options
}

/// RFC 7323, section 3.2.
fn timestamps(options: &mut Vec<u8>, packet: &Captured, tcp: &TcpConfig, ports: &Ports) {
    let [sender, receiver] = ports.map(|port| port.clock);
    let stamp = |of_sender: bool, time: Nanos| {
        let (clock, time) =
            if of_sender { (sender, time) } else { (receiver, tcp.receiver_clock(time)) };
        clock.wrapping_add((time / tcp.timestamps.tick()) as u32)
    };
    options.extend([8, 10]);
    options.extend(stamp(packet.forward, packet.sent).to_be_bytes());
    options.extend(packet.echo.map_or(0, |echo| stamp(!packet.forward, echo)).to_be_bytes());
}

/// RFC 2018, section 3.
fn sack(options: &mut Vec<u8>, ack: &Ack, isn: u32) {
    let blocks = ack.blocks().count() as u8;
    if blocks > 0 {
        options.extend([NOP, NOP, 5, 2 + 8 * blocks]);
    }
    for (start, end) in ack.blocks() {
        options.extend(sequence(isn, start).to_be_bytes());
        options.extend(sequence(isn, end).to_be_bytes());
    }
}

/// A byte's sequence number: the SYN has the first.
pub fn sequence(isn: u32, byte: u64) -> u32 {
    isn.wrapping_add(1).wrapping_add(byte as u32)
}

fn mptcp(options: &mut Vec<u8>, packet: &Captured, wiring: &Wiring, ports: &Ports) {
    let joins = packet.joins;
    match packet.body {
        Body::Syn { .. } | Body::SynAck { .. } | Body::Third if joins => {
            join(options, packet, wiring, ports);
        }
        Body::Syn { .. } => options.extend([MPTCP, 4, MP_CAPABLE | VERSION_1, HMAC_SHA256]),
        Body::SynAck { .. } => {
            options.extend([MPTCP, 12, MP_CAPABLE | VERSION_1, HMAC_SHA256]);
            options.extend(wiring.secrets.hosts[FROM_RECEIVER].key.to_be_bytes());
        }
        Body::Third => {
            options.extend([MPTCP, 20, MP_CAPABLE | VERSION_1, HMAC_SHA256]);
            both_keys(options, wiring);
        }
        // The first data shows the keys again, should the third packet be lost: RFC 8684, section
        // 3.1. It maps itself to the beginning of the stream.
        Body::Data(Segment { seq: 0, len, .. }) if !joins && len > 0 => {
            options.extend([MPTCP, 22, MP_CAPABLE | VERSION_1, HMAC_SHA256]);
            both_keys(options, wiring);
            options.extend((len as u16).to_be_bytes());
            options.extend([NOP, NOP]);
        }
        Body::Data(segment) => mapping(options, &segment, wiring),
        Body::Fourth { data_ack, .. } | Body::Ack(Ack { data_ack, .. }) => {
            options.extend([MPTCP, 12, DSS, DATA_ACK | LONG_DATA_ACK]);
            options.extend(wiring.data_sequence(FROM_SENDER, data_ack).to_be_bytes());
        }
        Body::Udp { .. } => {}
    }
}

fn both_keys(options: &mut Vec<u8>, wiring: &Wiring) {
    for host in wiring.secrets.hosts {
        options.extend(host.key.to_be_bytes());
    }
}

/// RFC 8684, section 3.2. The address ID is the path's number; the lowest bit
/// of the flags is B, backup.
fn join(options: &mut Vec<u8>, packet: &Captured, wiring: &Wiring, ports: &Ports) {
    let (id, secrets) = (packet.path as u8, &wiring.secrets);
    let backup = u8::from(wiring.is_backup(packet));
    match packet.body {
        Body::Syn { .. } => {
            options.extend([MPTCP, 12, MP_JOIN | backup, id]);
            options.extend(secrets.hosts[FROM_RECEIVER].token.to_be_bytes());
            options.extend(ports[FROM_SENDER].nonce.to_be_bytes());
        }
        Body::SynAck { .. } => {
            options.extend([MPTCP, 16, MP_JOIN, id]);
            options.extend(&secrets.proof(ports, FROM_RECEIVER)[..8]);
            options.extend(ports[FROM_RECEIVER].nonce.to_be_bytes());
        }
        _ => {
            options.extend([MPTCP, 24, MP_JOIN, 0]);
            options.extend(&secrets.proof(ports, FROM_SENDER)[..20]);
        }
    }
}

/// The sender's DSS: where its data belongs, unless it is a probe, and a data ACK of 4 bytes, since
/// the receiver never sent data (RFC 8684, section 3.3).
fn mapping(options: &mut Vec<u8>, segment: &Segment, wiring: &Wiring) {
    let data_ack = (wiring.data_sequence(FROM_RECEIVER, 0) as u32).to_be_bytes();
    if segment.len == 0 {
        options.extend([MPTCP, 8, DSS, DATA_ACK]);
        options.extend(data_ack);
        return;
    }
    options.extend([MPTCP, 22, DSS, DATA_ACK | MAPPING | LONG_DSN]);
    options.extend(data_ack);
    options.extend(wiring.data_sequence(FROM_SENDER, segment.dsn).to_be_bytes());
    // Relative to the subflow's SYN.
    options.extend(sequence(0, segment.seq).to_be_bytes());
    options.extend((segment.len as u16).to_be_bytes());
    options.extend([NOP, NOP]);
}
