//! FQ-CoDel: fair queueing of flows, each with CoDel; RFC 8290.

use std::collections::VecDeque;

use rand_core::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Signals;
use super::codel::{self, CoDel};
use crate::line::{Line, Waiting};
use crate::{Limit, Nanos};

/// Most packets dropped at a time when there are too many: RFC 8290, section 4.1.
const BATCH: usize = 64;

/// Fair queueing with CoDel (RFC 8290): flows are hashed into queues that are served in deficit
/// round robin, new ones first; each queue has its own CoDel.
///
/// The hash of [`crate::Header::flow`] is perturbed by the run's seed. When there is a packet too
/// many for the link's limit (packets or bytes; Linux has 10240 packets), the queue with most bytes
/// loses the first half of them, at most 64 packets (section 4.1; Linux `fq_codel_drop`). Where
/// CoDel asks how much waits, it asks its own queue, while Linux asks all; and unlike Linux it does
/// not count what was lost so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDel {
    /// Each queue's CoDel.
    pub codel: CoDel,
    /// Number of queues, each of which takes 100 bytes also if unused; RFC 8290, section 5.2.5:
    /// 1024.
    pub flows: u32,
    /// Bytes a queue may send per round; RFC 8290, section 5.2.4: 1514, an MTU of Ethernet.
    pub quantum: u32,
}

impl Default for FqCoDel {
    fn default() -> Self {
        FqCoDel { codel: CoDel::default(), flows: 1024, quantum: 1514 }
    }
}

impl FqCoDel {
    /// What is wrong, or with this limit, if anything.
    pub(crate) fn fault(&self, limit: Limit) -> Option<&'static str> {
        if matches!(limit, Limit::Time(_)) {
            Some("FQ-CoDel's limit is in packets or bytes, not in time")
        } else if !(1..=65_536).contains(&self.flows) {
            Some("FQ-CoDel's flows must be in 1..=65536")
        } else if self.quantum == 0 {
            Some("FQ-CoDel's quantum must be above 0")
        } else {
            self.codel.fault()
        }
    }
}

/// The queue of the flows that hash to it.
#[derive(Clone, Debug, Default)]
struct Queue {
    line: Line,
    codel: codel::State,
    /// Bytes it may still send in this round.
    deficit: i64,
    /// Whether it is in one of the lists.
    active: bool,
}

/// FQ-CoDel's state on one link.
#[derive(Clone, Debug)]
pub(crate) struct State {
    config: FqCoDel,
    perturbation: u64,
    queues: Vec<Queue>,
    /// Queues that became active, by number; they come first.
    new: VecDeque<u32>,
    /// The others.
    old: VecDeque<u32>,
    packets: usize,
    bytes: u64,
}

impl State {
    pub fn new(config: FqCoDel, mut rng: Xoshiro256PlusPlus) -> State {
        State {
            config,
            perturbation: rng.next_u64(),
            queues: vec![Queue::default(); config.flows as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.packets
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The queue of a flow: the finaliser of SplitMix64 as hash, its upper bits scaled.
    fn classify(&self, flow: u32) -> u32 {
        let mut hash = u64::from(flow) ^ self.perturbation;
        hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        (((hash >> 32) * u64::from(self.config.flows)) >> 32) as u32
    }

    /// The link asked for a packet and there was none: no queue is active any more.
    pub fn rest(&mut self) {
        for number in self.new.drain(..).chain(self.old.drain(..)) {
            let queue = &mut self.queues[number as usize];
            queue.active = false;
            queue.codel.rest();
        }
    }

    /// A packet joins its flow's queue.
    pub fn push(&mut self, waiting: Waiting) {
        let number = self.classify(waiting.packet.flow);
        self.packets += 1;
        self.bytes += u64::from(waiting.packet.size);
        let queue = &mut self.queues[number as usize];
        queue.line.push(waiting);
        if !queue.active {
            queue.active = true;
            queue.deficit = i64::from(self.config.quantum);
            self.new.push_back(number);
        }
    }

    /// Drops what is beyond the limit, from the head of the queue with most bytes; of several the
    /// one whose turn is first. Appends the keys to `lost`.
    pub fn shed(&mut self, limit: Limit, lost: &mut Vec<u32>) {
        let over = |state: &State| match limit {
            Limit::Packets(packets) => state.packets > packets as usize,
            Limit::Bytes(bytes) => state.bytes > bytes,
            Limit::Unlimited | Limit::Time(_) => false,
        };
        while over(self) {
            let active = self.new.iter().chain(&self.old).map(|&number| number as usize);
            let fattest = active.reduce(|best, other| {
                let bytes = |number: usize| self.queues[number].line.bytes();
                if bytes(other) > bytes(best) { other } else { best }
            });
            let Some(fattest) = fattest else { return };
            let line = &mut self.queues[fattest].line;
            let (len, bytes) = (line.len(), line.bytes());
            while let Some(waiting) = line.pop() {
                lost.push(waiting.packet.key);
                if len - line.len() == BATCH || bytes - line.bytes() >= bytes / 2 {
                    break;
                }
            }
            self.packets -= len - line.len();
            self.bytes -= bytes - line.bytes();
        }
    }

    /// Takes all packets, queue by queue.
    pub fn clear(&mut self) -> Vec<Waiting> {
        (self.packets, self.bytes) = (0, 0);
        self.lines_mut().flat_map(|line| std::iter::from_fn(|| line.pop())).collect()
    }

    pub fn lines_mut(&mut self) -> impl Iterator<Item = &mut Line> {
        self.queues.iter_mut().map(|queue| &mut queue.line)
    }

    /// Takes the packet to be transmitted at `now` (RFC 8290, section 4.2).
    pub fn pop(&mut self, now: Nanos, mtu: u32, signals: &mut Signals) -> Option<Waiting> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let queue = &mut self.queues[number as usize];
            if queue.deficit <= 0 {
                queue.deficit += i64::from(self.config.quantum);
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            let before = (queue.line.len(), queue.line.bytes());
            let head = queue.codel.pop(&self.config.codel, now, mtu, &mut queue.line, signals);
            self.packets -= before.0 - queue.line.len();
            self.bytes -= before.1 - queue.line.bytes();
            let Some(head) = head else {
                list.pop_front();
                // An empty new queue goes once through the old ones, or a flow could starve them
                // by always being new.
                if from_new && !self.old.is_empty() {
                    self.old.push_back(number);
                } else {
                    queue.active = false;
                }
                continue;
            };
            queue.deficit -= i64::from(head.packet.size);
            return Some(head);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    /// 65,536 flows meet in 1024 queues as by chance, and others in each run.
    #[test]
    fn flows_spread_over_the_queues() {
        let state = |seed| State::new(FqCoDel::default(), rng::stream(seed, 0));
        let (one, other) = (state(1), state(2));
        let mut counts = [0_u32; 1024];
        let mut same = 0;
        for flow in 0..65_536 {
            let queue = one.classify(flow);
            counts[queue as usize] += 1;
            same += u32::from(other.classify(flow) == queue);
        }
        // Binomial with mean 64 and deviation 8 each.
        assert!(counts.iter().all(|&count| count.abs_diff(64) < 40), "{counts:?}");
        assert!(same.abs_diff(64) < 40, "{same}");
    }
}
