//! The bytes of the packets that are underway.

/// A packet in the network: stands for its bytes, which the wire keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet(u32);

/// A buffer for a packet.
#[derive(Clone, Debug)]
struct Buffer {
    bytes: Box<[u8]>,
    length: usize,
    /// Where the packet goes: the number of a port.
    to: usize,
}

/// Buffers that are used again: nothing is allocated for a packet unless more are underway than
/// ever before.
#[derive(Clone, Debug)]
pub struct Buffers {
    /// Bytes of each.
    size: usize,
    all: Vec<Buffer>,
    free: Vec<u32>,
}

impl Buffers {
    /// For packets of at most `size` bytes.
    pub fn new(size: usize) -> Buffers {
        Buffers { size, all: Vec::new(), free: Vec::new() }
    }

    /// A free one, the one that was used last: its memory is still near.
    pub fn take(&mut self) -> Packet {
        Packet(self.free.pop().unwrap_or_else(|| {
            self.all.push(Buffer { bytes: vec![0; self.size].into(), length: 0, to: 0 });
            self.all.len() as u32 - 1
        }))
    }

    /// It is free again.
    pub fn give_back(&mut self, Packet(number): Packet) {
        self.free.push(number);
    }

    /// All of it, to be filled.
    pub fn space(&mut self, Packet(number): Packet) -> &mut [u8] {
        &mut self.all[number as usize].bytes
    }

    /// So much of it is a packet, and it goes there.
    pub fn fill(&mut self, Packet(number): Packet, length: usize, to: usize) {
        let buffer = &mut self.all[number as usize];
        (buffer.length, buffer.to) = (length, to);
    }

    /// The packet and where it goes.
    pub fn packet(&mut self, Packet(number): Packet) -> (&mut [u8], usize) {
        let buffer = &mut self.all[number as usize];
        (&mut buffer.bytes[..buffer.length], buffer.to)
    }

    /// How many there are, free or not.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// How many are not free.
    pub fn used(&self) -> usize {
        self.all.len() - self.free.len()
    }
}
