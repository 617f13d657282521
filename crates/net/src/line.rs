//! Packets that wait for their transmission, where it is not known beforehand.

use std::collections::VecDeque;

use crate::Nanos;
use crate::packet::Packet;

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub packet: Packet,
    /// When it came.
    pub entered: Nanos,
}

/// Packets in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    packets: VecDeque<Waiting>,
    bytes: u64,
}

impl Line {
    pub fn push(&mut self, waiting: Waiting) {
        self.bytes += u64::from(waiting.packet.size);
        self.packets.push_back(waiting);
    }

    pub fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.packets.pop_front()?;
        self.bytes -= u64::from(waiting.packet.size);
        Some(waiting)
    }

    pub fn first(&self) -> Option<&Waiting> {
        self.packets.front()
    }

    pub fn packets_mut(&mut self) -> impl Iterator<Item = &mut Packet> {
        self.packets.iter_mut().map(|waiting| &mut waiting.packet)
    }

    pub fn len(&self) -> usize {
        self.packets.len()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
