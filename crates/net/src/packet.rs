//! What the network knows of a packet beside its payload.

/// The two bits of explicit congestion notification in the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The endpoints do not understand marks: such a packet can only be dropped.
    #[default]
    NotEct,
    /// ECT(0), ECN-capable transport: a queue may mark the packet instead of dropping it.
    Ect,
    /// Congestion experienced: marked.
    Ce,
    /// ECT(1), a scalable sender's (RFC 9331, section 3): the same, and queues that know it keep it apart.
    Ect1,
}

/// What a packet shows to the links it crosses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Bytes on the wire.
    pub size: u32,
    /// Names the flow to a queue that keeps flows apart; stands for the addresses and ports.
    pub flow: u32,
    /// ECN bits.
    pub ecn: Ecn,
}

/// A packet on a link: its header and what the network needs to find the rest of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packet {
    /// Bytes on the wire.
    pub size: u32,
    /// See [`Header::flow`].
    pub flow: u32,
    /// Key in the network's pool.
    pub key: u32,
    /// Position on the route (see `Network::hops`) above two bits of ECN.
    tag: u32,
}

impl Packet {
    /// Positions on all routes of a network together.
    pub const MAX_HOPS: u32 = 1 << 30;

    pub fn new(header: Header, key: u32, hop: u32) -> Packet {
        debug_assert!(hop < Self::MAX_HOPS);
        let ecn = match header.ecn {
            Ecn::NotEct => 0,
            Ecn::Ect => 1,
            Ecn::Ce => 2,
            Ecn::Ect1 => 3,
        };
        Packet { size: header.size, flow: header.flow, key, tag: hop << 2 | ecn }
    }

    /// Position on the route.
    pub fn hop(&self) -> u32 {
        self.tag >> 2
    }

    /// Goes to the next link of the route.
    pub fn step(&mut self) {
        self.tag += 4;
    }

    /// Marks the packet, if its endpoints understand that. False if not.
    pub fn mark(&mut self) -> bool {
        if self.tag & 3 == 0 {
            return false;
        }
        self.tag = self.tag & !3 | 2;
        true
    }

    /// Whether a queue for scalable senders takes it: ECT(1) or CE (RFC 9331, section 5.1).
    pub fn is_l4s(&self) -> bool {
        self.tag & 3 >= 2
    }

    /// Whether the packet is marked.
    pub fn ce(&self) -> bool {
        self.tag & 3 == 2
    }
}
