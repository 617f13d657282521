//! DualPI2: two queues with coupled signals, RFC 9332.

use super::Signals;
use crate::line::{Line, Waiting};
use crate::{MAX_DELAY, MILLISECOND, Nanos, SECOND};

/// The L queue's own delay marks a packet only if more than so many wait behind it, so that slow links do not mark
/// each one: `Th_len`, RFC 9332, appendix A, which asks once the packet is taken.
const LEAST_PACKETS: usize = 1;
/// Least time between updates of p', so that a simulation does something else as well.
const LEAST_UPDATE: Nanos = MILLISECOND / 3;
/// Packets of the L queue for one of the C queue where both wait: a weight of 1/16 for the latter, which
/// RFC 9332, appendix A.2, recommends.
const TURNS: i64 = 15;

/// The coupled dual queue of RFC 9332 with PI2 (appendix A): scalable flows, whose packets are ECT(1)
/// or CE, wait in the L queue, all others in the C queue.
///
/// A controller adapts a base probability p' so that the greater of the two queues' delays stays near the
/// target. The C queue drops, or marks what is ECT(0), with p'^2; the L queue marks with the greater of k p'
/// and a ramp of its own delay. From k p' = 1 on both drop with p'^2, whatever the packets' ECN bits. The queues share a weighted
/// round robin and the link's limit. Signals come by recurrence, not at random, as in the RFC's pseudocode.
///
/// The link must mark ([`crate::LinkConfig::ecn`]): all else would drop what asks for marks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2 {
    /// Delay of the C queue that is aimed at; RFC 9332: 15 ms.
    pub target: Nanos,
    /// `RTT_max`, the longest round-trip time for which the controller is stable; RFC 9332: 100 ms. The time
    /// between updates of p' and its gains follow from it.
    pub rtt_max: Nanos,
    /// k: the L queue's probability over p'; RFC 9332: 2.
    pub coupling: f64,
    /// `minTh`, delay of the L queue from which on its ramp marks; RFC 9332: 800 us.
    pub threshold: Nanos,
    /// Length of the ramp, above which every packet is marked; RFC 9332: 400 us. 0 is a step.
    pub range: Nanos,
}

impl Default for DualPi2 {
    fn default() -> Self {
        DualPi2 {
            target: 15 * MILLISECOND,
            rtt_max: 100 * MILLISECOND,
            coupling: 2.0,
            threshold: 800 * MILLISECOND / 1000,
            range: 400 * MILLISECOND / 1000,
        }
    }
}

impl DualPi2 {
    /// What is wrong, if anything.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let DualPi2 { target, rtt_max, threshold, range, .. } = *self;
        if self.update() < LEAST_UPDATE {
            Some("DualPI2's target must be at least 0.34 ms and its rtt_max at least 1 ms")
        } else if target.max(rtt_max).max(threshold).max(range) > MAX_DELAY {
            Some("DualPI2's times must be at most one hour")
        } else if !(self.coupling >= 1.0 && self.coupling.is_finite()) {
            // Below, the C queue would drop all before the L queue is overloaded.
            Some("DualPI2's coupling must be at least 1")
        } else {
            None
        }
    }

    /// `Tupdate`, time between updates of p'.
    fn update(&self) -> Nanos {
        self.target.min(self.rtt_max / 3)
    }

    /// Integral and proportional gain, 1/s.
    fn gains(&self) -> (f64, f64) {
        let rtt = seconds(self.rtt_max);
        (0.1 * seconds(self.update()) / (rtt * rtt), 0.3 / rtt)
    }

    /// `laqm()`: the probability that the L queue's own delay gives.
    fn ramp(&self, delay: Nanos) -> f64 {
        if delay < self.threshold {
            0.0
        } else if delay >= self.threshold + self.range {
            1.0
        } else {
            (delay - self.threshold) as f64 / self.range as f64
        }
    }
}

fn seconds(time: Nanos) -> f64 {
    time as f64 / SECOND as f64
}

/// One of the two queues.
#[derive(Clone, Debug, Default)]
struct Half {
    line: Line,
    /// Of signals: one is due when it exceeds 1.
    count: f64,
}

impl Half {
    /// How long the first of its packets has waited.
    fn delay(&self, now: Nanos) -> Nanos {
        self.line.first().map_or(0, |head| now.saturating_sub(head.entered))
    }

    /// `recur()`: true in such a share of calls.
    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let due = self.count > 1.0;
        self.count -= f64::from(u8::from(due));
        due
    }
}

/// DualPI2's state on one link.
#[derive(Clone, Debug)]
pub(crate) struct State {
    config: DualPi2,
    low: Half,
    classic: Half,
    /// p'.
    p: f64,
    /// Delay at the last update, s.
    delay: f64,
    next_update: Nanos,
    /// Bytes that the L queue is ahead of its turns, if below 0.
    credit: i64,
}

impl State {
    pub fn new(config: DualPi2) -> State {
        let (low, classic) = Default::default();
        let next_update = config.update();
        State { config, low, classic, p: 0.0, delay: 0.0, next_update, credit: 0 }
    }

    pub fn len(&self) -> usize {
        self.low.line.len() + self.classic.line.len()
    }

    pub fn bytes(&self) -> u64 {
        self.low.line.bytes() + self.classic.line.bytes()
    }

    /// The link asked for a packet and there was none.
    pub fn rest(&mut self) {
        self.credit = 0;
    }

    /// A packet joins its queue.
    pub fn push(&mut self, waiting: Waiting) {
        let half = if waiting.packet.is_l4s() { &mut self.low } else { &mut self.classic };
        half.line.push(waiting);
    }

    /// Takes all packets.
    pub fn clear(&mut self) -> Vec<Waiting> {
        self.lines_mut().flat_map(|line| std::iter::from_fn(|| line.pop())).collect()
    }

    pub fn lines_mut(&mut self) -> impl Iterator<Item = &mut Line> {
        [&mut self.low.line, &mut self.classic.line].into_iter()
    }

    /// Makes up for the updates of p' due by `now`; since the last of them no packet has come or gone.
    pub fn catch_up(&mut self, now: Nanos) {
        let every = self.config.update();
        while self.next_update <= now {
            if self.len() == 0 && self.p == 0.0 && self.delay == 0.0 {
                // Nothing changes until a packet comes.
                self.next_update += ((now - self.next_update) / every + 1) * every;
                return;
            }
            let delay = self.classic.delay(self.next_update).max(self.low.delay(self.next_update));
            self.update(seconds(delay));
            self.next_update += every;
        }
    }

    /// `dualpi2_update()`, figure 8.
    fn update(&mut self, delay: f64) {
        let (alpha, beta) = self.config.gains();
        let step = alpha * (delay - seconds(self.config.target)) + beta * (delay - self.delay);
        self.p = (self.p + step).clamp(0.0, 1.0);
        self.delay = delay;
    }

    /// Takes the packet to be transmitted at `now`: `dualpi2_dequeue()`, figure 7.
    pub fn pop(&mut self, now: Nanos, signals: &mut Signals) -> Option<Waiting> {
        let (coupled, classic) = (self.config.coupling * self.p, self.p * self.p);
        loop {
            let both = self.low.line.len() > 0 && self.classic.line.len() > 0;
            let low = if both { self.credit >= 0 } else { self.low.line.len() > 0 };
            let half = if low { &mut self.low } else { &mut self.classic };
            let mut head = half.line.pop()?;
            let few = half.line.len() <= LEAST_PACKETS;
            let overload = coupled >= 1.0;
            let drops = if low && !overload {
                let own = self.config.ramp(now.saturating_sub(head.entered));
                if half.recur(coupled.max(if few { 0.0 } else { own })) {
                    signals.mark(&mut head.packet);
                }
                false
            } else {
                let due = half.recur(classic);
                if low && !due {
                    signals.mark(&mut head.packet);
                }
                due && (overload || !signals.mark(&mut head.packet))
            };
            if drops {
                signals.drop(head.packet);
                continue;
            }
            if both {
                let size = i64::from(head.packet.size);
                self.credit += if low { -size } else { TURNS * size };
            }
            return Some(head);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::{Counters, Ecn, Header};

    const US: Nanos = MILLISECOND / 1000;

    fn waiting(ecn: Ecn, entered: Nanos) -> Waiting {
        Waiting { packet: Packet::new(Header { size: 1500, flow: 0, ecn }, 0, 0), entered }
    }

    /// What becomes of 1000 packets of a kind, one each ms, that waited for `delay` where the base
    /// probability is p: marked and dropped. Others wait behind them.
    fn fate(p: f64, ecn: Ecn, delay: Nanos) -> (u64, usize) {
        let mut state = State { p, ..State::new(DualPi2::default()) };
        let (mut counters, mut lost) = (Counters::default(), Vec::new());
        (0..1002).for_each(|_| state.push(waiting(ecn, 0)));
        for _ in 0..1000 {
            let mut signals = Signals { ecn: true, counters: &mut counters, lost: &mut lost };
            state.pop(delay, &mut signals);
            if state.len() <= 2 {
                break;
            }
        }
        (counters.marked, lost.len())
    }

    /// RFC 9332, section 2.4: p_L = k p', p_C = p'^2.
    #[test]
    fn the_l_queue_marks_with_k_p_and_the_c_queue_with_its_square() {
        let (marked, dropped) = fate(0.1, Ecn::Ect1, 0);
        assert!((199..=201).contains(&marked) && dropped == 0, "{marked}, {dropped}");
        let (marked, dropped) = fate(0.1, Ecn::Ect, 0);
        assert!((9..=11).contains(&marked) && dropped == 0, "{marked}, {dropped}");
        let (marked, dropped) = fate(0.1, Ecn::NotEct, 0);
        assert!(marked == 0 && (9..=11).contains(&dropped), "{dropped}");
        assert_eq!(fate(0.0, Ecn::NotEct, 0), (0, 0));
    }

    /// Appendix A.2: from p' = 1 / k on both drop, and what is left of the L queue is marked.
    #[test]
    fn overload_drops_whatever_the_ecn_bits() {
        for ecn in [Ecn::NotEct, Ecn::Ect, Ecn::Ect1] {
            let (marked, dropped) = fate(0.6, ecn, 0);
            assert!((355..=365).contains(&dropped), "{ecn:?}: {dropped}");
            let left = if ecn == Ecn::Ect1 { 1000 - dropped as u64 } else { 0 };
            assert!(marked.abs_diff(left) <= 1, "{ecn:?}: {marked}");
        }
        assert_eq!(fate(0.499, Ecn::Ect1, 0).1, 0);
    }

    #[test]
    fn the_ramp_marks_by_the_delay_of_the_l_queue() {
        let marked = |delay| fate(0.0, Ecn::Ect1, delay).0;
        assert_eq!([0, 800].map(|us| marked(us * US)), [0, 0]);
        assert!(
            (249..=251).contains(&marked(900 * US)) && (499..=501).contains(&marked(1000 * US))
        );
        assert!(marked(1200 * US) >= 998);
        let step = DualPi2 { range: 0, ..DualPi2::default() };
        assert_eq!([799, 800].map(|us| step.ramp(us * US)), [0.0, 1.0]);
        // With one behind it a packet is not marked, however late.
        let mut state = State::new(DualPi2::default());
        let (mut counters, mut lost) = (Counters::default(), Vec::new());
        state.push(waiting(Ecn::Ect1, 0));
        for _ in 0..10 {
            state.push(waiting(Ecn::Ect1, 0));
            let mut signals = Signals { ecn: true, counters: &mut counters, lost: &mut lost };
            assert!(state.pop(SECOND, &mut signals).is_some());
        }
        assert_eq!(counters.marked, 0);
    }

    /// Appendix A.1: alpha = 0.1 Tupdate / RTT_max^2, beta = 0.3 / RTT_max.
    #[test]
    fn p_follows_the_greater_delay() {
        let mut state = State::new(DualPi2::default());
        state.push(waiting(Ecn::Ect1, 5 * MILLISECOND));
        state.push(waiting(Ecn::NotEct, 0));
        state.catch_up(30 * MILLISECOND);
        // The C queue's head has waited for 15, then for 30 ms; the L queue's less.
        let (alpha, beta) = (0.15, 3.0);
        let expected = beta * 0.015 + alpha * 0.015 + beta * 0.015;
        assert!((state.p - expected).abs() < 1e-12, "{}", state.p);
        // Without classic packets it is the L queue's.
        let mut other = State::new(DualPi2::default());
        other.push(waiting(Ecn::Ce, 0));
        other.catch_up(30 * MILLISECOND);
        assert_eq!(other.p, state.p);
    }

    /// The weights decide only where both wait; then the C queue has a turn in sixteen.
    #[test]
    fn the_c_queue_is_not_starved() {
        let mut state = State::new(DualPi2::default());
        (0..1600).for_each(|_| state.push(waiting(Ecn::Ect1, 0)));
        (0..1600).for_each(|_| state.push(waiting(Ecn::NotEct, 0)));
        let (mut counters, mut lost) = (Counters::default(), Vec::new());
        let mut low = 0;
        for _ in 0..800 {
            let mut signals = Signals { ecn: true, counters: &mut counters, lost: &mut lost };
            low += usize::from(state.pop(0, &mut signals).unwrap().packet.is_l4s());
        }
        assert_eq!(low, 750);
    }
}
