//! What a part of a network knows of the whole, and what it hands over to other parts.

use crate::Nanos;
use crate::packet::Packet;

/// No link of this part.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// A packet that is on a link of one part and will arrive at one of another.
#[derive(Clone, Copy, Debug)]
pub struct Crossing<P> {
    /// When it arrives at the far end of the link that it is on.
    pub(crate) time: Nanos,
    /// That link's number in the whole.
    pub(crate) link: u32,
    pub(crate) packet: Packet,
    pub(crate) payload: P,
}

/// What a part knows of the whole.
#[derive(Clone, Debug)]
pub(crate) struct Border<P> {
    /// Number here of each link of the whole, or [`NOWHERE`].
    pub here: Vec<u32>,
    /// Number in the whole of each link here, and whether it stands for one of another part.
    pub whole: Vec<(u32, bool)>,
    /// What leaves for each other part, and the first arrival of all that.
    pub out: Vec<Vec<Crossing<P>>>,
    pub first: Nanos,
}

impl<P> Border<P> {
    pub fn new(links: usize, parts: u32) -> Border<P> {
        let out = (0..parts).map(|_| Vec::new()).collect();
        Border { here: vec![NOWHERE; links], whole: Vec::new(), out, first: Nanos::MAX }
    }

    /// A packet has entered `link` of this part, and goes on in another.
    pub fn leave(&mut self, part: u32, link: u32, time: Nanos, packet: Packet, payload: P) {
        let (link, _) = self.whole[link as usize];
        self.first = self.first.min(time);
        self.out[part as usize].push(Crossing { time, link, packet, payload });
    }
}
