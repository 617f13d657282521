//! What the network knows of a packet beside its payload.

/// The two bits of explicit congestion notification in the IP header (RFC 3168, section 5). ECT(0)
/// and ECT(1) are not distinguished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The endpoints do not understand marks: such a packet can only be dropped.
    #[default]
    NotEct,
    /// ECN-capable transport: a queue may mark the packet instead of dropping it.
    Ect,
    /// Congestion experienced: marked.
    Ce,
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

    /// Whether the packet is marked.
    pub fn ce(&self) -> bool {
        self.tag & 3 == 2
    }
}
