//! When a packet is transmitted: the server behind a link's queue.
//!
//! Both servers are first come, first served and know their future, so the whole transmission of a
//! packet is fixed when it enters the link. A queue that decides at dequeue (CoDel, FQ) would call
//! [`Server::serve`] at that time instead.

use std::sync::Arc;

use crate::{Nanos, Rate, SECOND, Trace};

/// The transmission of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Its first bit leaves the queue.
    pub start: Nanos,
    /// Its last bit is on the wire.
    pub end: Nanos,
}

/// A link's transmitter and its state.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    Infinite,
    Constant(Constant),
    Trace(Opportunities),
}

impl Server {
    pub fn new(rate: &Rate) -> Server {
        match rate {
            Rate::Infinite => Server::Infinite,
            Rate::Constant(rate) => Server::Constant(Constant::new(*rate)),
            Rate::Trace(trace) => Server::Trace(Opportunities::new(Arc::clone(trace))),
        }
    }

    /// When the transmission of a packet that enters at `now` would start.
    pub fn start(&mut self, now: Nanos) -> Nanos {
        match self {
            Server::Infinite => now,
            Server::Constant(constant) => constant.start(now),
            Server::Trace(opportunities) => opportunities.start(now),
        }
    }

    /// Transmits a packet of `size` bytes that enters at `now`.
    pub fn serve(&mut self, now: Nanos, size: u32) -> Slot {
        match self {
            Server::Infinite => Slot { start: now, end: now },
            Server::Constant(constant) => constant.serve(now, size),
            Server::Trace(opportunities) => opportunities.serve(now, size),
        }
    }
}

/// A constant rate.
///
/// The end of a transmission is rarely a whole nanosecond. The exact end is kept as
/// `busy_until + fraction / rate` ns and the next packet starts there, so the long-run rate is
/// exact; what is told is rounded up, so no bit is early.
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    /// bit/s.
    rate: u64,
    busy_until: Nanos,
    /// In 1/rate ns, below `rate`.
    fraction: u64,
}

impl Constant {
    fn new(rate: u64) -> Constant {
        Constant { rate, busy_until: 0, fraction: 0 }
    }

    fn start(&self, now: Nanos) -> Nanos {
        now.max(self.free_at())
    }

    fn serve(&mut self, now: Nanos, size: u32) -> Slot {
        let start = self.start(now);
        if now >= start {
            (self.busy_until, self.fraction) = (now, 0);
        }
        // At most 2^30 bytes and 10^15 bit/s (LinkConfig::validate): below 2^63.
        let work = u64::from(size) * 8 * SECOND + self.fraction;
        self.busy_until = self.busy_until.saturating_add(work / self.rate);
        self.fraction = work % self.rate;
        Slot { start, end: self.free_at() }
    }

    /// The end of the last transmission, rounded up.
    fn free_at(&self) -> Nanos {
        self.busy_until.saturating_add(u64::from(self.fraction > 0))
    }
}

/// The delivery opportunities of a trace, used up in order as Mahimahi's `LinkQueue` does:
///
/// - An opportunity at time t serves packets that entered before t.
/// - It carries up to [`Trace::OPPORTUNITY`] bytes: of one packet or of several. What a packet
///   lacks comes from the next opportunities, and it leaves with the last of them.
/// - What the waiting packets do not need is lost.
#[derive(Clone, Debug)]
pub(crate) struct Opportunities {
    trace: Arc<Trace>,
    /// Time of the current opportunity.
    current: Nanos,
    /// Bytes of the current opportunity not yet given to a packet.
    left: u32,
    /// Start of the period of the next opportunity.
    period_start: Nanos,
    /// Index of the next opportunity in its period.
    next: usize,
}

impl Opportunities {
    fn new(trace: Arc<Trace>) -> Opportunities {
        Opportunities { trace, current: 0, left: 0, period_start: 0, next: 0 }
    }

    fn start(&mut self, now: Nanos) -> Nanos {
        if now < self.current && self.left > 0 {
            return self.current;
        }
        self.skip(now);
        self.period_start + self.trace.time(self.next)
    }

    fn serve(&mut self, now: Nanos, size: u32) -> Slot {
        let start = self.start(now);
        if start > self.current || self.left == 0 {
            self.take();
        }
        let mut need = size;
        while need > self.left {
            need -= self.left;
            self.take();
        }
        self.left -= need;
        Slot { start, end: self.current }
    }

    /// Makes the next opportunity the current one.
    fn take(&mut self) {
        self.current = self.period_start + self.trace.time(self.next);
        self.left = Trace::OPPORTUNITY;
        self.next += 1;
        if self.next == self.trace.opportunities() {
            self.next = 0;
            self.period_start += self.trace.period();
        }
    }

    /// Loses the opportunities up to and including `now`.
    fn skip(&mut self, now: Nanos) {
        if self.period_start + self.trace.time(self.next) > now {
            return;
        }
        let period = self.trace.period();
        let periods = (now - self.period_start) / period;
        self.period_start += periods * period;
        self.next = self.trace.after(now - self.period_start);
    }
}
