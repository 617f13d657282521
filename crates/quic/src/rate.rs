//! How fast a path delivers (draft-cheng-iccrg-delivery-rate-estimation), in bytes.
//!
//! A packet remembers what had been delivered when it left. When it arrives, what was delivered
//! since, over the time this took, is a sample of the rate: of the slower of sending and
//! acknowledging, so that neither a burst nor compressed acknowledgements make it too high.
//!
//! noq names each packet as it is sent and as it arrives, and says once per ACK frame if the
//! application is the limit; its own BBR makes the same samples of this (noq-proto 1.4.0,
//! congestion/bbr3).

use std::collections::VecDeque;

/// Packets that are remembered at most. One more is not, and gives no sample: the oldest arrives first.
const MOST: usize = 1 << 16;

/// What a packet remembers of the moment it left; times in µs, amounts in bytes.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u64,
    at: u64,
    delivered: u64,
    /// Packets that the law had been told of as delivered.
    told: u32,
    delivered_at: u64,
    first_sent: u64,
    inflight: u64,
    lost: u64,
    limited: bool,
}

/// A sample of the newest packet of an acknowledgement; amounts in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Bytes per second; 0 if unknown.
    pub rate: u64,
    /// Delivered since the packet was sent, itself included.
    pub delivered: u64,
    /// The same in packets, of those that the law was told of.
    pub packets: u32,
    /// Lost since then.
    pub lost: u64,
    /// In flight just after it had been sent, itself included.
    pub inflight: u64,
    /// It was sent when the application was the limit.
    pub limited: bool,
    /// It was sent after the last round had begun: with it the next begins.
    pub round_start: bool,
}

/// What a path has delivered, and when.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateSampler {
    sent: VecDeque<Sent>,
    delivered: u64,
    told: u32,
    delivered_at: u64,
    first_sent: u64,
    lost: u64,
    round_end: u64,
    newest: Option<Sent>,
    /// The application was the limit up to so much delivered.
    limited_until: Option<u64>,
}

impl RateSampler {
    /// A packet leaves; `inflight` counts it. `idle`: nothing else is in flight.
    pub fn sent(&mut self, number: u64, at: u64, inflight: u64, idle: bool) {
        // Each space of packet numbers of the handshake starts at 0.
        if self.sent.back().is_some_and(|last| last.number >= number) {
            self.sent.clear();
        }
        if idle {
            (self.first_sent, self.delivered_at) = (at, at);
        }
        if self.sent.len() == MOST {
            return;
        }
        self.sent.push_back(Sent {
            number,
            at,
            delivered: self.delivered,
            told: self.told,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            inflight,
            lost: self.lost,
            limited: self.is_limited(),
        });
    }

    /// What has left so far is no sample of what comes.
    pub fn forget_sent(&mut self) {
        self.sent.clear();
    }

    /// A packet arrived.
    pub fn arrived(&mut self, number: u64, bytes: u64) {
        self.delivered += bytes;
        if let Ok(at) = self.sent.binary_search_by_key(&number, |sent| sent.number) {
            self.newest = Some(self.sent[at]);
        }
    }

    /// The law is told that so many packets were delivered: it counts them, and rounds by them.
    pub fn told(&mut self, packets: u32) {
        self.told = self.told.wrapping_add(packets);
    }

    /// A packet was lost.
    pub fn lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// All that the application has is on its way, and the window has room for more.
    pub fn limited(&mut self, inflight: u64) {
        self.limited_until = Some(self.delivered + inflight);
    }

    /// Is a packet that leaves now limited by the application?
    pub fn is_limited(&self) -> bool {
        self.limited_until.is_some()
    }

    /// The sample of an acknowledgement that arrives at `now`, when all it delivered has been noted. A
    /// sample that took less than `min_rtt` has no rate.
    pub fn sample(&mut self, now: u64, min_rtt: u64) -> Sample {
        if self.limited_until.is_some_and(|until| self.delivered > until) {
            self.limited_until = None;
        }
        // Also if only holes were filled.
        self.delivered_at = now;
        let Some(newest) = self.newest.take() else { return Sample::default() };
        self.first_sent = newest.at;
        let sending = newest.at - newest.first_sent.min(newest.at);
        let acknowledging = now.saturating_sub(newest.delivered_at);
        let interval = sending.max(acknowledging);
        let delivered = self.delivered - newest.delivered;
        let round_start = newest.delivered >= self.round_end;
        if round_start {
            self.round_end = self.delivered;
        }
        // Older ones that arrive late are no sample.
        while self.sent.front().is_some_and(|sent| sent.number <= newest.number) {
            self.sent.pop_front();
        }
        let rate = match interval {
            0 => 0,
            _ if interval < min_rtt => 0,
            _ => (u128::from(delivered) * 1_000_000 / u128::from(interval)) as u64,
        };
        Sample {
            rate,
            delivered,
            packets: self.told.wrapping_sub(newest.told),
            lost: self.lost - newest.lost,
            inflight: newest.inflight,
            limited: newest.limited,
            round_start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_sender_is_sampled_at_its_rate() {
        let mut rate = RateSampler::default();
        // 1000 bytes every ms, 20 ms of round trip.
        let mut rounds = 0;
        for ms in 0..200u64 {
            if ms >= 20 {
                rate.arrived(ms - 20, 1000);
                let sample = rate.sample(ms * 1000, 20_000);
                rounds += u32::from(sample.round_start);
                if ms >= 60 {
                    assert_eq!(sample.rate, 1_000_000, "at {ms} ms");
                    assert_eq!(sample.inflight, 20_000);
                }
            }
            rate.sent(ms, ms * 1000, 1000 * (ms + 1).min(20), ms == 0);
        }
        assert_eq!(rounds, 180 / 20);
        assert!(rate.sent.len() <= 21);
    }

    /// The application pauses: what is sent then is marked, until what was in flight has arrived.
    #[test]
    fn samples_of_a_pausing_application_are_marked() {
        let mut rate = RateSampler::default();
        let sample = |rate: &mut RateSampler, number, now| {
            rate.arrived(number, 1000);
            rate.sample(now, 1)
        };
        rate.sent(0, 0, 1000, true);
        rate.sent(1, 0, 2000, false);
        rate.limited(2000);
        rate.sent(2, 1000, 3000, false);
        assert!(!sample(&mut rate, 1, 10_000).limited, "sent before the pause");
        assert!(sample(&mut rate, 2, 11_000).limited, "sent into it");
        rate.sent(3, 12_000, 1000, true);
        assert!(rate.is_limited(), "one of the two before it has not arrived");
        assert!(sample(&mut rate, 3, 13_000).limited);
        assert!(!rate.is_limited(), "all that was in flight in the pause has");
    }

    /// Packets that the law was told of, which are fewer than those that left if they are small.
    #[test]
    fn a_sample_counts_the_packets_that_the_law_knows_of() {
        let mut rate = RateSampler::default();
        rate.sent(0, 0, 600, true);
        rate.told(7);
        rate.sent(1, 1000, 1200, false);
        rate.arrived(0, 600);
        rate.arrived(1, 600);
        rate.told(1);
        assert_eq!(rate.sample(20_000, 1).packets, 1);
    }

    #[test]
    fn more_packets_than_are_remembered_leave_the_oldest_a_sample() {
        let mut rate = RateSampler::default();
        for number in 0..MOST as u64 + 10 {
            rate.sent(number, number, 1000, number == 0);
        }
        rate.arrived(0, 1000);
        assert_eq!(rate.sample(100_000, 1).rate, 10_000);
    }

    /// A packet that leaves after a hole was filled begins to wait then.
    #[test]
    fn what_fills_holes_is_delivered_too() {
        let mut rate = RateSampler::default();
        (0..3).for_each(|number| rate.sent(number, 0, 1000 * (number + 1), number == 0));
        rate.arrived(2, 1000);
        rate.sample(10_000, 1);
        rate.arrived(0, 1000);
        assert_eq!(rate.sample(30_000, 1), Sample::default());
        rate.sent(3, 30_000, 2000, false);
        rate.arrived(3, 1000);
        // Since packet 2 left 30 ms passed, and 30 since the hole was filled.
        assert_eq!(rate.sample(60_000, 1).rate, 1000 * 1_000_000 / 30_000);
    }

    #[test]
    fn a_second_space_of_numbers_starts_anew() {
        let mut rate = RateSampler::default();
        for number in [0, 1, 0, 1, 2] {
            rate.sent(number, 5, 1000, true);
        }
        assert_eq!(rate.sent.len(), 3);
        rate.arrived(7, 1000); // never sent: no sample, and no panic
        assert_eq!(rate.sample(10, 0), Sample::default());
    }
}
