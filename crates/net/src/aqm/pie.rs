//! PIE: proportional integral controller enhanced, RFC 8033.

use rand_xoshiro::Xoshiro256PlusPlus;

use super::Verdict;
use crate::{MAX_DELAY, MILLISECOND, Nanos, SECOND, rng};

/// Drop probability up to which a link that marks does so: RFC 8033, section 5.1.
const MAX_MARK: f64 = 0.1;

/// Proportional integral controller enhanced (RFC 8033): packets are dropped at the entry with a
/// probability p that a controller adapts every [`Pie::update`] so that the queueing delay stays
/// near the target.
///
/// The basic algorithm of section 4 with its auto-tuning (4.2) and burst allowance (4.4). Of the
/// optional parts of section 5 only ECN: up to p = 0.1 packets are marked where the link marks
/// ([`crate::LinkConfig::ecn`]), above that dropped. The delay is that of a packet which would come
/// at the moment of the update; the model knows it without an estimate of the rate. The RFC's mean
/// packet size, twice of which may always wait, is the MTU, as in Linux.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pie {
    /// `QDELAY_REF`, the delay aimed at; RFC 8033: 15 ms.
    pub target: Nanos,
    /// `T_UPDATE`, time between updates of p; RFC 8033: 15 ms.
    pub update: Nanos,
    /// `MAX_BURST`, for which time after an idle one nothing is dropped; RFC 8033: 150 ms.
    pub burst: Nanos,
    /// Change of p per update and second of delay above the target; RFC 8033: 0.125.
    pub alpha: f64,
    /// Change of p per update and second by which the delay grew; RFC 8033: 1.25.
    pub beta: f64,
}

impl Default for Pie {
    fn default() -> Self {
        Pie {
            target: 15 * MILLISECOND,
            update: 15 * MILLISECOND,
            burst: 150 * MILLISECOND,
            alpha: 0.125,
            beta: 1.25,
        }
    }
}

impl Pie {
    /// What is wrong, if anything.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let gain = |x: f64| x > 0.0 && x.is_finite();
        if self.target == 0 || self.update < MILLISECOND / 1000 {
            Some("PIE's target must be above 0 and its update at least 1 us")
        } else if self.target.max(self.update).max(self.burst) > MAX_DELAY {
            Some("PIE's times must be at most one hour")
        } else if !gain(self.alpha) || !gain(self.beta) {
            Some("PIE's alpha and beta must be above 0")
        } else {
            None
        }
    }
}

/// PIE's state on one link.
#[derive(Clone, Debug)]
pub(crate) struct State {
    config: Pie,
    /// Drop probability.
    p: f64,
    /// Delay at the last update, s.
    delay: f64,
    /// Time left in which nothing is dropped.
    allowance: Nanos,
    next_update: Nanos,
    rng: Xoshiro256PlusPlus,
}

impl State {
    pub fn new(config: Pie, rng: Xoshiro256PlusPlus) -> State {
        let (allowance, next_update) = (config.burst, config.update);
        State { config, p: 0.0, delay: 0.0, allowance, next_update, rng }
    }

    /// Judges a packet that enters a queue in which `bytes` wait.
    pub fn judge(&mut self, bytes: u64, mtu: u32) -> Verdict {
        let calm = self.delay < self.target() / 2.0 && self.p < 0.2;
        if self.allowance > 0 || calm || bytes <= 2 * u64::from(mtu) {
            return Verdict::Pass;
        }
        if rng::uniform_f64(&mut self.rng) >= self.p {
            Verdict::Pass
        } else if self.p < MAX_MARK {
            Verdict::Signal
        } else {
            Verdict::Drop
        }
    }

    fn target(&self) -> f64 {
        self.config.target as f64 / SECOND as f64
    }

    /// Makes up for the updates due by `now`, with what a packet would have waited at each.
    pub fn catch_up(&mut self, now: Nanos, mut wait_at: impl FnMut(Nanos) -> Nanos) {
        while self.next_update <= now {
            let wait = wait_at(self.next_update);
            let rested = self.p == 0.0 && self.delay == 0.0 && self.allowance == self.config.burst;
            if wait == 0 && rested {
                // Nothing changes until a packet comes, and none has come up to now.
                let missed = (now - self.next_update) / self.config.update + 1;
                self.next_update += missed * self.config.update;
                return;
            }
            self.update(wait as f64 / SECOND as f64);
            self.next_update += self.config.update;
        }
    }

    /// RFC 8033, sections 4.2 and 4.4.
    fn update(&mut self, delay: f64) {
        let Pie { alpha, beta, .. } = self.config;
        let step = alpha * (delay - self.target()) + beta * (delay - self.delay);
        let tuned = match self.p {
            p if p < 0.000_001 => step / 2048.0,
            p if p < 0.000_01 => step / 512.0,
            p if p < 0.000_1 => step / 128.0,
            p if p < 0.001 => step / 32.0,
            p if p < 0.01 => step / 8.0,
            p if p < 0.1 => step / 2.0,
            _ => step,
        };
        self.p += tuned;
        if delay == 0.0 && self.delay == 0.0 {
            self.p *= 0.98;
        }
        self.p = self.p.clamp(0.0, 1.0);
        self.allowance = self.allowance.saturating_sub(self.config.update);
        let half = self.target() / 2.0;
        if self.p == 0.0 && delay < half && self.delay < half {
            self.allowance = self.config.burst;
        }
        self.delay = delay;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 0.001;

    /// With this drop probability and this delay at the last update, no burst allowed.
    fn state(p: f64, delay: f64) -> State {
        let state = State::new(Pie::default(), rng::stream(1, 0));
        State { p, delay, allowance: 0, ..state }
    }

    fn updated(p: f64, before: f64, delay: f64) -> State {
        let mut state = state(p, before);
        state.update(delay);
        state
    }

    /// From 20 to 30 ms, the target being 15 ms: 0.125 * 15 ms + 1.25 * 10 ms, divided as in the
    /// table of RFC 8033, section 4.2.
    #[test]
    fn the_step_is_smaller_where_p_is_small() {
        let step = 0.125 * 0.015 + 1.25 * 0.010;
        for (p, scale) in [
            (0.0, 2048.0),
            (0.000_000_9, 2048.0),
            (0.000_001, 512.0),
            (0.000_009, 512.0),
            (0.000_01, 128.0),
            (0.000_09, 128.0),
            (0.000_1, 32.0),
            (0.000_9, 32.0),
            (0.001, 8.0),
            (0.009, 8.0),
            (0.01, 2.0),
            (0.09, 2.0),
            (0.1, 1.0),
            (0.9, 1.0),
        ] {
            let change = updated(p, 20.0 * MS, 30.0 * MS).p - p;
            assert!((change / (step / scale) - 1.0).abs() < 1e-6, "{change} at {p}");
        }
    }

    #[test]
    fn p_decays_without_a_queue_and_remains_a_probability() {
        // 0.125 * -15 ms
        let expected = (0.5 - 0.001_875) * 0.98;
        assert!((updated(0.5, 0.0, 0.0).p - expected).abs() < 1e-12);
        // One of the two delays is not 0.
        assert!(updated(0.5, 1.0 * MS, 0.0).p > 0.495);
        assert!(updated(0.5, 0.0, 1.0 * MS).p > 0.495);
        assert_eq!(updated(0.000_000_5, 0.0, 0.0).p, 0.0);
        assert_eq!(updated(0.99, 0.0, 1.0).p, 1.0);
    }

    /// RFC 8033, section 4.4.
    #[test]
    fn a_burst_is_allowed_again_after_congestion() {
        let full = Pie::default().burst;
        for (p, before, delay, allowance) in
            [(0.0, 7.0, 7.0, full), (0.0, 7.0, 8.0, 0), (0.0, 8.0, 7.0, 0), (0.5, 7.0, 7.0, 0)]
        {
            let state = updated(p, before * MS, delay * MS);
            assert_eq!(state.allowance, allowance, "{p} {before} {delay}");
        }
        // Else it runs out; the last update leaves nothing of a rest.
        let mut state = state(0.5, 20.0 * MS);
        state.allowance = 20 * MILLISECOND;
        state.update(20.0 * MS);
        assert_eq!(state.allowance, 5 * MILLISECOND);
        state.update(20.0 * MS);
        assert_eq!(state.allowance, 0);
    }

    /// RFC 8033, section 4.1 and, for the mark, 5.1.
    #[test]
    fn packets_pass_while_the_queue_is_short() {
        // What may happen to a packet that comes upon so many bytes of MTUs of 1500.
        let verdicts = |p: f64, delay: f64, bytes: u64| {
            let mut state = state(p, delay * MS);
            let mut seen = Vec::new();
            for _ in 0..1000 {
                let verdict = state.judge(bytes, 1500);
                if !seen.contains(&verdict) && verdict != Verdict::Pass {
                    seen.push(verdict);
                }
            }
            seen
        };
        assert_eq!(verdicts(0.19, 7.0, 9000), []);
        assert_eq!(verdicts(0.19, 8.0, 9000), [Verdict::Drop]);
        assert_eq!(verdicts(0.21, 7.0, 9000), [Verdict::Drop]);
        assert_eq!(verdicts(0.09, 8.0, 9000), [Verdict::Signal]);
        assert_eq!(verdicts(0.1, 8.0, 9000), [Verdict::Drop]);
        assert_eq!(verdicts(1.0, 20.0, 3000), []);
        assert_eq!(verdicts(1.0, 20.0, 3001), [Verdict::Drop]);
        let mut bursting = state(1.0, 20.0 * MS);
        bursting.allowance = 1;
        assert_eq!(bursting.judge(9000, 1500), Verdict::Pass);
    }

    /// Updates of an idle queue need not be made one by one.
    #[test]
    fn a_long_rest_ends_as_short_ones_do() {
        let (mut once, mut often) = (state(0.3, 0.02), state(0.3, 0.02));
        let idle = |_| 0;
        once.catch_up(3600 * SECOND + 1, idle);
        (0..=3600).for_each(|second| often.catch_up(second * SECOND + 1, idle));
        assert_eq!((once.p, once.next_update), (0.0, often.next_update));
        assert_eq!(once.next_update, 3600 * SECOND + 15 * MILLISECOND);
        // Without an allowance there is still p to decay.
        let config = Pie { burst: 0, ..Pie::default() };
        let mut without = State { config, ..state(0.3, 0.0) };
        without.catch_up(3600 * SECOND, idle);
        assert_eq!(without.p, 0.0);
        // Idle from the start, and an update due at the very moment.
        once.catch_up(3600 * SECOND + 30 * MILLISECOND, idle);
        assert_eq!(once.next_update, 3600 * SECOND + 45 * MILLISECOND);
    }
}
