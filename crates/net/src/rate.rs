//! When a packet is transmitted: the server behind a link's queue.
//!
//! Both servers are first come, first served and know their future, so the whole transmission of a
//! packet is fixed when it enters the link. A managed queue calls [`Server::serve`] when the
//! transmission starts.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::{Nanos, SECOND, Trace};

/// How fast a link transmits.
#[derive(Clone, Debug, Default)]
pub enum Rate {
    /// Transmission takes no time, so nothing ever queues.
    #[default]
    Infinite,
    /// A constant rate in bit/s.
    Constant(u64),
    /// The delivery opportunities of a recorded trace.
    Trace(Arc<Trace>),
}

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
    /// Boxed, as it is large and rare.
    Trace(Box<Opportunities>),
}

impl Server {
    pub fn new(rate: &Rate) -> Server {
        match rate {
            Rate::Infinite => Server::Infinite,
            Rate::Constant(rate) => Server::Constant(Constant::new(*rate)),
            Rate::Trace(trace) => Server::Trace(Box::new(Opportunities::new(Arc::clone(trace)))),
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

    /// When the transmission of a packet would start that stands behind `bytes` others, of which the
    /// first came at `now`.
    pub fn start_behind(&self, now: Nanos, bytes: u64) -> Nanos {
        match self {
            Server::Infinite => now,
            Server::Constant(constant) => constant.start_behind(now, bytes),
            Server::Trace(opportunities) => opportunities.start_behind(now, bytes),
        }
    }

    /// The end of the last transmission, or some time past.
    pub fn busy_until(&self) -> Nanos {
        match self {
            Server::Infinite => 0,
            Server::Constant(constant) => constant.free_at(),
            Server::Trace(opportunities) => opportunities.current,
        }
    }

    /// Somebody else, or something else, keeps the link busy until then.
    pub fn seize(&mut self, until: Nanos) {
        if let Server::Constant(constant) = self {
            (constant.busy_until, constant.fraction) = (until, 0);
        }
    }

    /// Bytes that the link transmits in this time, in the mean.
    pub fn bytes_in(&self, time: Nanos) -> u64 {
        (self.mean_rate() * time as f64 / (8 * SECOND) as f64) as u64
    }

    /// bit/s, in the mean.
    pub fn mean_rate(&self) -> f64 {
        match self {
            Server::Infinite => f64::INFINITY,
            Server::Constant(constant) => constant.rate.get() as f64,
            Server::Trace(opportunities) => opportunities.trace.mean_rate() as f64,
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
/// exact; results are rounded up, so no bit is early.
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    /// bit/s.
    rate: NonZeroU64,
    busy_until: Nanos,
    /// In 1/rate ns, below `rate`.
    fraction: u64,
}

impl Constant {
    fn new(rate: u64) -> Constant {
        let rate = NonZeroU64::new(rate).expect("a valid configuration has a rate");
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

    fn start_behind(&self, now: Nanos, bytes: u64) -> Nanos {
        let idle = now >= self.free_at();
        let (since, fraction) = if idle { (now, 0) } else { (self.busy_until, self.fraction) };
        let work = u128::from(bytes) * u128::from(8 * SECOND) + u128::from(fraction);
        let time = work.div_ceil(u128::from(self.rate.get()));
        since.saturating_add(u64::try_from(time).unwrap_or(Nanos::MAX))
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

    fn start_behind(&self, now: Nanos, bytes: u64) -> Nanos {
        let mut copy = self.clone();
        let mut rest = bytes;
        while rest > 0 {
            let size = rest.min(1 << 30);
            copy.serve(now, size as u32);
            rest -= size;
        }
        copy.start(now)
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
        if self.next == self.trace.opportunities() {
            // The rest of the period offers nothing.
            self.next = 0;
            self.period_start += period;
        }
    }
}
