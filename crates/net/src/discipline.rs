//! The queue disciplines: in which order packets leave a queue, and which of them are dropped.

use crate::aqm::codel::{self, CoDel};
use crate::aqm::dualpi2::{self, DualPi2};
use crate::aqm::fq_codel::{self, FqCoDel};
use crate::aqm::pie::{self, Pie};
use crate::aqm::red::{self, Arrival, Red};
use crate::aqm::{Signals, Verdict};
use crate::line::{Line, Waiting};
use crate::packet::Packet;
use crate::rng::Xoshiro256PlusPlus;
use crate::{Limit, Nanos};

/// Which packets a link's queue drops or marks, beside those that find it full, and in which order
/// it sends. All but FQ-CoDel and DualPI2 send in the order of arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Discipline {
    /// None: a queue is full or not.
    #[default]
    DropTail,
    /// Random early detection.
    Red(Red),
    /// Controlled delay.
    CoDel(CoDel),
    /// Fair queueing with controlled delay.
    FqCoDel(FqCoDel),
    /// Proportional integral controller enhanced.
    Pie(Pie),
    /// Two coupled queues, for scalable flows and for others.
    DualPi2(DualPi2),
}

impl Discipline {
    /// Its name, for people.
    pub fn name(&self) -> &'static str {
        match self {
            Discipline::DropTail => "droptail",
            Discipline::Red(_) => "RED",
            Discipline::CoDel(_) => "CoDel",
            Discipline::FqCoDel(_) => "FQ-CoDel",
            Discipline::Pie(_) => "PIE",
            Discipline::DualPi2(_) => "DualPI2",
        }
    }

    /// What is wrong with its parameters, or with a queue of this limit under it, if anything.
    pub(crate) fn fault(&self, limit: Limit) -> Option<&'static str> {
        match self {
            Discipline::DropTail => None,
            Discipline::Red(red) => red.fault(),
            Discipline::CoDel(codel) => codel.fault(),
            Discipline::FqCoDel(fq_codel) => fq_codel.fault(limit),
            Discipline::Pie(pie) => pie.fault(),
            Discipline::DualPi2(dual) => dual.fault(),
        }
    }
}

/// Packets that wait, under one of the disciplines.
#[derive(Clone, Debug)]
pub(crate) enum Queue {
    Line(Line, Manager),
    Fair(fq_codel::State),
    Dual(dualpi2::State),
}

/// Who manages a single line of packets.
#[derive(Clone, Debug)]
pub(crate) enum Manager {
    Nobody,
    Red(red::State),
    CoDel(CoDel, codel::State),
    Pie(pie::State),
}

impl Queue {
    pub fn new(discipline: Discipline, rng: Xoshiro256PlusPlus) -> Queue {
        let manager = match discipline {
            Discipline::DropTail => Manager::Nobody,
            Discipline::Red(red) => Manager::Red(red::State::new(red, rng)),
            Discipline::CoDel(codel) => Manager::CoDel(codel, codel::State::default()),
            Discipline::FqCoDel(config) => {
                return Queue::Fair(fq_codel::State::new(config, rng));
            }
            Discipline::Pie(pie) => Manager::Pie(pie::State::new(pie, rng)),
            Discipline::DualPi2(config) => return Queue::Dual(dualpi2::State::new(config)),
        };
        Queue::Line(Line::default(), manager)
    }

    /// Packets that wait.
    pub fn len(&self) -> usize {
        match self {
            Queue::Line(line, _) => line.len(),
            Queue::Fair(fair) => fair.len(),
            Queue::Dual(dual) => dual.len(),
        }
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        match self {
            Queue::Line(line, _) => line.bytes(),
            Queue::Fair(fair) => fair.bytes(),
            Queue::Dual(dual) => dual.bytes(),
        }
    }

    /// Judges a packet that enters. `arrival`, and how long it would `wait`, are asked for only
    /// where they matter: on a trace the latter looks at every opportunity until then.
    pub fn judge(
        &mut self,
        mtu: u32,
        arrival: impl FnOnce(&Line) -> Arrival,
        wait: impl FnOnce(&Line) -> Nanos,
    ) -> Verdict {
        match self {
            Queue::Line(line, Manager::Red(red)) => red.judge(&arrival(line), || wait(line)),
            Queue::Line(line, Manager::Pie(pie)) => pie.judge(line.bytes(), mtu),
            _ => Verdict::Pass,
        }
    }

    /// Makes up for the updates that were due until `now`. `wait` is how long a packet that joins the line at
    /// a time would wait.
    pub fn catch_up(&mut self, now: Nanos, mut wait: impl FnMut(&Line, Nanos) -> Nanos) {
        match self {
            Queue::Line(line, Manager::Pie(pie)) => pie.catch_up(now, |time| wait(line, time)),
            Queue::Dual(dual) => dual.catch_up(now),
            _ => {}
        }
    }

    /// Whether a packet of `size` bytes that has to wait may join. A fair queue always lets it,
    /// see [`Queue::shed`].
    pub fn admits(&self, limit: Limit, size: u32, wait: impl FnOnce() -> Nanos) -> bool {
        match (self, limit) {
            (Queue::Fair(_), _) | (_, Limit::Unlimited) => true,
            (_, Limit::Packets(packets)) => self.len() < packets as usize,
            (_, Limit::Bytes(bytes)) => self.bytes() + u64::from(size) <= bytes,
            (_, Limit::Time(time)) => wait() <= time,
        }
    }

    /// The link asked for a packet and there was none.
    pub fn rest(&mut self) {
        match self {
            Queue::Line(_, Manager::CoDel(_, codel)) => codel.rest(),
            Queue::Line(..) => {}
            Queue::Fair(fair) => fair.rest(),
            Queue::Dual(dual) => dual.rest(),
        }
    }

    pub fn push(&mut self, waiting: Waiting) {
        match self {
            Queue::Line(line, _) => line.push(waiting),
            Queue::Fair(fair) => fair.push(waiting),
            Queue::Dual(dual) => dual.push(waiting),
        }
    }

    /// Drops what is beyond the limit after a packet was let in; appends the keys to `lost`.
    pub fn shed(&mut self, limit: Limit, lost: &mut Vec<u32>) {
        if let Queue::Fair(fair) = self {
            fair.shed(limit, lost);
        }
    }

    /// Shows all packets, to be changed.
    pub fn each_packet(&mut self, see: &mut dyn FnMut(&mut Packet)) {
        let mut each = |line: &mut Line| line.packets_mut().for_each(&mut *see);
        match self {
            Queue::Line(line, _) => each(line),
            Queue::Fair(fair) => fair.lines_mut().for_each(each),
            Queue::Dual(dual) => dual.lines_mut().for_each(each),
        }
    }

    /// Takes all packets.
    pub fn clear(&mut self) -> Vec<Waiting> {
        match self {
            Queue::Line(line, _) => std::iter::from_fn(|| line.pop()).collect(),
            Queue::Fair(fair) => fair.clear(),
            Queue::Dual(dual) => dual.clear(),
        }
    }

    /// Takes the packet to be transmitted at `now`; `mtu` is the largest. `None` only if nobody
    /// waits.
    pub fn pop(&mut self, now: Nanos, mtu: u32, signals: &mut Signals) -> Option<Waiting> {
        match self {
            Queue::Line(line, Manager::CoDel(config, codel)) => {
                codel.pop(config, now, mtu, line, signals)
            }
            Queue::Line(line, _) => line.pop(),
            Queue::Fair(fair) => fair.pop(now, mtu, signals),
            Queue::Dual(dual) => dual.pop(now, signals),
        }
    }
}
