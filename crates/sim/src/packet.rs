//! What travels in the network: segments of TCP and MPTCP, and UDP packets, as small values.

use narrows_net::{Ecn, Nanos};
use narrows_traffic::{ConnId, FlowId, UdpId};

/// SACK blocks that fit beside the timestamp option (RFC 2018, section 3).
pub(crate) const MAX_SACK_BLOCKS: usize = 3;
/// SACK blocks that fit beside timestamp and DSS option: MPTCP's come first, as in Linux's
/// tcp_established_options().
const MPTCP_SACK_BLOCKS: usize = 1;

/// IPv4 and TCP header with the timestamp option, bytes.
pub(crate) const TCP_HEADER: u32 = 52;
/// The same with a DSS option that maps data: data ACK of 4 bytes, data sequence number of 8
/// (RFC 8684, section 3.3). The first segment's MP_CAPABLE with data length is as long.
pub(crate) const MPTCP_HEADER: u32 = 76;
/// A DSS option with a data ACK only, of 8 bytes: Linux answers in the length of the other end's
/// data sequence numbers.
const DSS_ACK: u32 = 12;
/// The same from the end that gets no data: a data ACK of 4 bytes.
const DSS_SHORT_ACK: u32 = 8;
/// IPv4 and TCP header with the options of a SYN: MSS, SACK permitted, timestamp, window scale.
const SYN_HEADER: u32 = 60;

/// The path of datagrams that end points outside of the simulator send.
pub(crate) const OUTSIDE: u8 = u8::MAX;

/// A packet in the network. Opaque outside of this crate; captures show what is in it.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Number of the connection or the UDP flow; of a datagram from outside what its sender calls it.
    pub(crate) flow: u32,
    /// Path of the connection, or [`OUTSIDE`].
    pub(crate) path: u8,
    /// How many paths were removed from that place before.
    pub(crate) generation: u8,
    /// IPv4's identification, given by the recorder if there is one.
    pub(crate) id: u16,
    pub(crate) body: Body,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// First packet of a handshake.
    Syn {
        /// When it was sent.
        sent: Nanos,
        /// Of a subflow that joins a connection (MP_JOIN), not of one that opens it.
        joins: bool,
    },
    /// Second packet of a handshake, to the sender.
    SynAck {
        /// When the SYN it answers was sent.
        echo: Nanos,
        /// End of the receive window, data sequence.
        edge: u64,
    },
    /// Third packet of a handshake.
    Third,
    /// Fourth packet of a join, to the sender (RFC 8684, section 3.2).
    Fourth {
        /// Next byte expected on the connection.
        data_ack: u64,
        /// End of the receive window, data sequence.
        edge: u64,
    },
    /// A data segment, or a window probe.
    Data(Segment),
    /// An acknowledgement, to the sender.
    Ack(Ack),
    /// UDP.
    Udp {
        /// Bytes on the wire.
        size: u32,
        /// What an end point of the simulator reads of it.
        payload: Payload,
    },
}

/// What a UDP packet carries.
#[derive(Clone, Copy, Debug)]
pub enum Payload {
    /// Nothing that anybody reads.
    Plain,
    /// Media whose rate adapts.
    Media(Media),
    /// The feedback to its sender.
    Report(Report),
}

/// The header of a packet of media.
#[derive(Clone, Copy, Debug)]
pub struct Media {
    /// Sequence number, from 0 on.
    pub seq: u64,
    /// When it was sent.
    pub sent: Nanos,
    /// Whether it is ECN-capable.
    pub ecn: bool,
}

/// What a receiver of media reports, and by what its sender measures the RTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// When the newest packet was sent, as LSR of RFC 3550, section 6.4.1.
    pub echo: Nanos,
    /// How long ago it arrived, as DLSR.
    pub held: Nanos,
    /// What the sender's control reads.
    pub feedback: Feedback,
}

/// The feedback of a control of media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// Of NADA.
    Signal(Signal),
    /// Of SCReAM.
    Receipt(Receipt),
}

/// What a receiver reports to NADA (RFC 8698, section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// The rate may go up fast (`rmode`).
    pub ramp_up: bool,
    /// Aggregate congestion signal (`x_curr`), 100 us, at most 15 bits.
    pub signal: u16,
    /// Receiving rate (`r_recv`), bit/s on the wire.
    pub rate_bps: u32,
}

/// What a sender under SCReAM reads of a report (RFC 8298, section 4.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The highest sequence number that arrived.
    pub seq: u64,
    /// How long that packet was on its way.
    pub delay: Nanos,
    /// Packets lost so far.
    pub lost: u32,
    /// Packets that arrived with a mark so far (`n_ECN`).
    pub marked: u32,
}

impl Packet {
    /// The flow it belongs to.
    pub(crate) fn flow(&self) -> FlowId {
        match self.body {
            Body::Udp { .. } => FlowId::Udp(UdpId(self.flow)),
            _ => FlowId::Connection(ConnId(self.flow)),
        }
    }
}

/// A data segment. Byte sequence numbers count from 0 and do not wrap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    /// First byte in the subflow's sequence.
    pub seq: u64,
    /// First byte in the connection's sequence; of plain TCP the same.
    pub dsn: u64,
    /// Bytes of payload; 0 is a window probe.
    pub len: u32,
    /// Timestamp (RFC 7323).
    pub sent: Nanos,
    /// What IP says of ECN.
    pub ecn: Ecn,
    /// CWR: the sender has reduced its window.
    pub cwr: bool,
    /// PSH: the end of a burst, or of what the application has written.
    pub psh: bool,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// Next byte expected on the subflow.
    pub ack: u64,
    /// Next byte expected on the connection.
    pub data_ack: u64,
    /// End of the receive window, data sequence.
    pub edge: u64,
    /// Timestamp echo (RFC 7323).
    pub echo: Nanos,
    /// SACK blocks as offsets from `ack`, the newest first; an empty block ends the list. A first
    /// block below `ack`, or inside the second, is a DSACK: that segment came twice (RFC 2883).
    pub sack: [(i32, i32); MAX_SACK_BLOCKS],
    /// ECE: data that arrived was marked (RFC 3168), for a scalable sender the data that this covers (RFC 8257).
    pub ece: bool,
    /// Number of the newest decision of a detector at the receiver, as its option carries it with the
    /// decision; 0 before the first.
    pub decision: u16,
    /// The acknowledgement's own timestamp less `echo`, us: TSval - TSecr.
    pub elapsed_us: i32,
}

impl Ack {
    /// Drops the SACK blocks that MPTCP's options leave no room for.
    pub(crate) fn leave_room_for_dss(&mut self) {
        self.sack[MPTCP_SACK_BLOCKS..].fill((0, 0));
    }

    /// The SACK blocks in byte sequence numbers, the newest first.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, u64)> {
        let base = self.ack;
        self.sack.into_iter().take_while(|&(start, end)| start != end).map(move |(start, end)| {
            (base.wrapping_add_signed(start.into()), base.wrapping_add_signed(end.into()))
        })
    }
}

impl Body {
    /// Does the data's sender send it, or the receiver?
    pub(crate) fn is_forward(&self) -> bool {
        !matches!(
            self,
            Body::SynAck { .. }
                | Body::Fourth { .. }
                | Body::Ack(_)
                | Body::Udp { payload: Payload::Report(_), .. }
        )
    }

    /// Bytes on the wire, on the first subflow of a connection or one that `joins`. Lengths of
    /// MP_CAPABLE and MP_JOIN: RFC 8684, sections 3.1 and 3.2.
    pub(crate) fn size(&self, multipath: bool, joins: bool) -> u32 {
        let mp = |bytes: u32| if multipath { bytes } else { 0 };
        let handshake = |capable, join| mp(if joins { join } else { capable });
        match self {
            Body::Syn { .. } => SYN_HEADER + handshake(4, 12),
            Body::SynAck { .. } => SYN_HEADER + handshake(12, 16),
            Body::Third => TCP_HEADER + handshake(20, 24),
            Body::Fourth { .. } => TCP_HEADER + mp(DSS_ACK),
            Body::Data(segment) if segment.len == 0 => TCP_HEADER + mp(DSS_SHORT_ACK),
            Body::Data(segment) => segment.len + if multipath { MPTCP_HEADER } else { TCP_HEADER },
            Body::Ack(ack) => {
                let blocks = ack.blocks().count() as u32;
                TCP_HEADER + mp(DSS_ACK) + if blocks > 0 { 4 + 8 * blocks } else { 0 }
            }
            Body::Udp { size, .. } => *size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TCP header has room for 40 bytes of options (RFC 9293, section 3.1), so a subflow of MPTCP
    /// carries one SACK block where TCP carries three.
    #[test]
    fn the_options_fit_into_a_header() {
        let sack = [(1, 2), (3, 4), (5, 6)];
        let mut ack = Ack { sack, ..Ack::default() };
        assert_eq!(Body::Ack(ack).size(false, false), 40 + 12 + 28);
        ack.leave_room_for_dss();
        assert_eq!(ack.blocks().collect::<Vec<_>>(), [(1, 2)]);
        assert_eq!(Body::Ack(ack).size(true, false), 40 + 12 + 12 + 12);
    }
}
