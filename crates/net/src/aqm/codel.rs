//! CoDel: controlled delay, RFC 8289.

use super::Signals;
use crate::line::{Line, Waiting};
use crate::{MAX_DELAY, MILLISECOND, Nanos};

/// Controlled delay (RFC 8289): once every packet of an interval has waited longer than the
/// target, packets are dropped from the front, the n-th `interval / sqrt(n)` after the one before,
/// until one has waited less or no more than an MTU waits behind it.
///
/// As in Linux, a marked packet (see [`crate::LinkConfig::ecn`]) counts as a drop and is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// Acceptable standing delay; RFC 8289, section 4.4: 5 ms.
    pub target: Nanos,
    /// Time in which to find the minimum delay, about the largest RTT; RFC 8289, section 4.3:
    /// 100 ms.
    pub interval: Nanos,
}

impl Default for CoDel {
    fn default() -> Self {
        CoDel { target: 5 * MILLISECOND, interval: 100 * MILLISECOND }
    }
}

impl CoDel {
    /// What is wrong, if anything.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let wrong = |time| time == 0 || time > MAX_DELAY;
        (wrong(self.target) || wrong(self.interval))
            .then_some("CoDel's target and interval must be above 0 and at most one hour")
    }

    /// When the next drop after number `count` at time `last` is due: RFC 8289, section 5.6.
    fn next_drop(&self, last: Nanos, count: u32) -> Nanos {
        last + (self.interval as f64 / libm::sqrt(f64::from(count))) as Nanos
    }
}

/// CoDel's state of one queue (RFC 8289, section 5.2).
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// When the delay will have been above target for an interval; `None` while it is below.
    first_above: Option<Nanos>,
    drop_next: Nanos,
    /// Drops since the dropping state was entered.
    count: u32,
    /// `count` when it was entered last.
    last_count: u32,
    dropping: bool,
}

impl State {
    /// Takes the packet to be transmitted at `now` from the line; drops or marks on the way. `mtu`
    /// is the largest packet. `None` only if the line is empty.
    pub fn pop(
        &mut self,
        config: &CoDel,
        now: Nanos,
        mtu: u32,
        line: &mut Line,
        signals: &mut Signals,
    ) -> Option<Waiting> {
        let (mut head, mut late) = self.take(config, now, mtu, line)?;
        if self.dropping {
            self.dropping = late;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                let marked = signals.mark(&mut head.packet);
                if !marked {
                    signals.drop(head.packet);
                    (head, late) = self.take(config, now, mtu, line)?;
                    self.dropping = late;
                }
                if self.dropping {
                    self.drop_next = config.next_drop(self.drop_next, self.count);
                }
                if marked {
                    break;
                }
            }
        } else if late {
            if !signals.mark(&mut head.packet) {
                signals.drop(head.packet);
                (head, _) = self.take(config, now, mtu, line)?;
            }
            self.dropping = true;
            // Dropping again so soon: go on near the rate that controlled the queue the last time
            // (RFC 8289, section 5.5; 16 intervals as there).
            let again = now.saturating_sub(self.drop_next) < 16 * config.interval;
            let delta = self.count - self.last_count;
            self.count = if again && delta > 1 { delta } else { 1 };
            self.last_count = self.count;
            self.drop_next = config.next_drop(now, self.count);
        }
        Some(head)
    }

    /// The link asked for a packet and there was none.
    pub fn rest(&mut self) {
        self.first_above = None;
        self.dropping = false;
    }

    /// The head of the line, and whether it has waited too long for too long.
    fn take(
        &mut self,
        config: &CoDel,
        now: Nanos,
        mtu: u32,
        line: &mut Line,
    ) -> Option<(Waiting, bool)> {
        let Some(head) = line.pop() else {
            self.rest();
            return None;
        };
        // An MTU that waits is no standing queue.
        if now - head.entered < config.target || line.bytes() <= u64::from(mtu) {
            self.first_above = None;
            return Some((head, false));
        }
        let due = *self.first_above.get_or_insert(now + config.interval);
        Some((head, now >= due))
    }
}
