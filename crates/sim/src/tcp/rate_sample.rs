//! How fast the network delivers, as Linux's tcp_rate.c (draft-cheng-iccrg-delivery-rate-estimation).
//!
//! A segment remembers what had been delivered when it left. When it arrives, what was delivered
//! since, over the time this took, is a sample of the rate: of the slower of sending and
//! acknowledging, so that neither a burst nor compressed acknowledgements make it too high.

use narrows_net::{Nanos, SECOND};

/// Times between events of one subflow are kept in 64 ns, so that 32 bits last for 275 s. Linux
/// keeps them in 1 us, which is coarse for the round trips of a data center.
const TICK_BITS: u32 = 6;

/// What a segment remembers of the moment it left last (Linux: tcp_skb_cb.tx).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamp {
    /// Packets delivered up to then.
    delivered: u32,
    /// Packets marked lost up to then.
    lost: u32,
    /// Packets in flight, this one included.
    inflight: u32,
    /// Ticks since the first transmission of the sample that was then being collected.
    sending: u32,
    /// Ticks since the last delivery.
    quiet: u32,
    /// The application was the limit.
    app_limited: bool,
}

/// The newest of the segments that one acknowledgement newly acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newest {
    stamp: Stamp,
    sent: Nanos,
    end: u64,
}

impl Newest {
    /// When it left.
    pub fn sent(&self) -> Nanos {
        self.sent
    }
}

/// A sample of the delivery rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Packets delivered since the sample's packet was sent, itself included.
    pub delivered: u32,
    /// In this time. 0: too short to be one, the rate is unknown.
    pub interval: Nanos,
    /// Packets marked lost since then.
    pub lost: u32,
    /// Packets in flight just after it had been sent, itself included.
    pub inflight: u32,
    /// It was sent when the application, not the network, was the limit.
    pub app_limited: bool,
    /// It was sent after the last round had begun: with it the next begins.
    pub round_start: bool,
}

impl Sample {
    /// Bytes per second, for packets of `mss` bytes; 0 if unknown.
    pub fn rate(&self, mss: u32) -> u64 {
        let bytes = u64::from(self.delivered) * u64::from(mss);
        bytes.saturating_mul(SECOND).checked_div(self.interval).unwrap_or(0)
    }
}

/// What a subflow has delivered, and when.
#[derive(Debug, Default)]
pub(crate) struct RateSampler {
    /// Packets delivered; wraps, as all counts here.
    delivered: u32,
    /// Packets marked lost, retransmissions of them again.
    lost: u32,
    /// When something was last delivered.
    delivered_at: Nanos,
    /// When the newest delivered packet was sent: the next sample is sent from there on.
    first_sent: Nanos,
    /// The application was the limit up to this many packets delivered.
    app_limited: Option<u32>,
    /// The round ends when a packet arrives that was sent after so many deliveries.
    round_end: u32,
}

impl RateSampler {
    /// A segment leaves; `in_flight` counts it. `idle`: nothing else is out, and a silence is no
    /// time of delivery. Linux: tcp_rate_skb_sent().
    pub fn sent(&mut self, now: Nanos, in_flight: u32, idle: bool) -> Stamp {
        if idle {
            self.first_sent = now;
            self.delivered_at = now;
        }
        Stamp {
            delivered: self.delivered,
            lost: self.lost,
            inflight: in_flight,
            sending: ticks(now - self.first_sent),
            quiet: ticks(now - self.delivered_at),
            app_limited: self.app_limited.is_some(),
        }
    }

    /// A segment arrived. Of one acknowledgement's the one that was sent last is the sample.
    /// Linux: tcp_rate_skb_delivered().
    pub fn arrived(&mut self, newest: &mut Option<Newest>, stamp: &Stamp, sent: Nanos, end: u64) {
        self.delivered = self.delivered.wrapping_add(1);
        if newest.is_none_or(|n| (n.sent, n.end) < (sent, end)) {
            *newest = Some(Newest { stamp: *stamp, sent, end });
        }
    }

    /// Packets were marked lost.
    pub fn lost(&mut self, packets: u32) {
        self.lost = self.lost.wrapping_add(packets);
    }

    /// All that the application has is on its way, and the window has room for more. Linux:
    /// tcp_rate_check_app_limited().
    pub fn app_limited(&mut self, in_flight: u32) {
        self.app_limited = Some(self.delivered.wrapping_add(in_flight));
    }

    /// Is a packet that leaves now limited by the application?
    pub fn is_app_limited(&self) -> bool {
        self.app_limited.is_some()
    }

    /// The sample of an acknowledgement, when all it delivered has been noted. Linux: tcp_rate_gen().
    pub fn sample(&mut self, newest: &Newest, now: Nanos, min_rtt: Nanos) -> Sample {
        let Newest { stamp, sent, .. } = newest;
        if self.app_limited.is_some_and(|until| after(self.delivered, until)) {
            self.app_limited = None;
        }
        self.delivered_at = now;
        self.first_sent = *sent;
        let sending = Nanos::from(stamp.sending) << TICK_BITS;
        let acknowledging = now - sent + (Nanos::from(stamp.quiet) << TICK_BITS);
        let interval = sending.max(acknowledging);
        // A packet that seems to have crossed faster than any had been sent again for nothing: it
        // was the first copy that arrived.
        let known = interval >= min_rtt && stamp.sending != u32::MAX && stamp.quiet != u32::MAX;
        let round_start = !after(self.round_end, stamp.delivered);
        if round_start {
            self.round_end = self.delivered;
        }
        Sample {
            delivered: self.delivered.wrapping_sub(stamp.delivered),
            interval: if known { interval } else { 0 },
            lost: self.lost.wrapping_sub(stamp.lost),
            inflight: stamp.inflight,
            app_limited: stamp.app_limited,
            round_start,
        }
    }
}

fn ticks(time: Nanos) -> u32 {
    u32::try_from(time >> TICK_BITS).unwrap_or(u32::MAX)
}

/// Does count `a` come after `b`, wrapping?
fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// Packets as the path sees them: sent, and later acknowledged one by one.
    #[derive(Default)]
    struct Bench {
        sampler: RateSampler,
        out: std::collections::VecDeque<(Stamp, Nanos)>,
    }

    impl Bench {
        fn send(&mut self, now: Nanos) {
            let in_flight = self.out.len() as u32 + 1;
            let stamp = self.sampler.sent(now, in_flight, in_flight == 1);
            self.out.push_back((stamp, now));
        }

        /// An acknowledgement of the next `packets`; the smallest RTT is 10 ms.
        fn ack(&mut self, packets: u64, now: Nanos) -> Sample {
            let mut newest = None;
            for n in 0..packets {
                let (stamp, sent) = self.out.pop_front().expect("it was sent");
                self.sampler.arrived(&mut newest, &stamp, sent, n);
            }
            self.sampler.sample(&newest.expect("packets arrived"), now, 10 * MS)
        }
    }

    /// Ten packets at once over a bottleneck of one packet per ms: the first acknowledgement knows
    /// of one packet in a round trip, the tenth of ten in ten ms more; and then, when a packet has
    /// left for each that arrived, the rate is the bottleneck's.
    #[test]
    fn a_full_pipe_gives_the_rate_of_the_bottleneck() {
        let mut bench = Bench::default();
        (0..10).for_each(|_| bench.send(0));
        let mut rounds = 0;
        let mut last = None;
        for n in 1..=30 {
            let now = (9 + n) * MS;
            let sample = bench.ack(1, now);
            bench.send(now);
            rounds += u32::from(sample.round_start);
            if n == 1 {
                assert_eq!((sample.delivered, sample.interval), (1, 10 * MS));
                assert_eq!(sample.inflight, 1);
            }
            last = Some(sample);
        }
        let last = last.expect("thirty samples");
        // In flight when its packet left: ten, for nine were out beside it.
        assert_eq!((last.delivered, last.inflight, last.app_limited), (10, 10, false));
        assert_eq!(last.rate(1000), 1_000_000);
        assert_eq!(rounds, 3, "at the acknowledgements 1, 11 and 21");
    }

    /// Acknowledgements that were held up and come all at once: delivery looks quick, but the
    /// packets were not sent more quickly than they were.
    #[test]
    fn compressed_acknowledgements_do_not_raise_the_rate() {
        let mut bench = Bench::default();
        for n in 0..=40 {
            bench.send(n * MS);
            if (10..20).contains(&n) {
                bench.ack(1, n * MS);
            }
        }
        // Thirty-one are out. Twenty of them arrive at once, then the others at once.
        bench.ack(20, 41 * MS);
        let sample = bench.ack(11, 41 * MS + 1);
        assert!(sample.rate(1000) <= 1_000_000, "{sample:?}");
    }

    /// The application pauses: what was in flight then gives samples marked so, and the packets
    /// sent after it as well, until all of the former have arrived.
    #[test]
    fn samples_of_a_pausing_application_are_marked() {
        let mut bench = Bench::default();
        (0..3).for_each(|_| bench.send(0));
        bench.sampler.app_limited(3);
        bench.send(MS);
        assert!(!bench.ack(3, 10 * MS).app_limited, "sent before the pause");
        bench.send(11 * MS);
        assert!(bench.ack(1, 12 * MS).app_limited, "sent into it");
        assert!(bench.sampler.app_limited.is_none(), "what was in flight then has arrived");
        bench.send(13 * MS);
        assert!(bench.ack(1, 21 * MS).app_limited, "sent before this was known");
        assert!(!bench.ack(1, 23 * MS).app_limited);
    }

    /// The acknowledgement of a retransmission within less than the smallest RTT is of the first
    /// copy: how long that took is not known.
    #[test]
    fn too_short_an_interval_has_no_rate() {
        let mut bench = Bench::default();
        bench.send(0);
        assert_eq!(bench.ack(1, 9 * MS).rate(1000), 0);
        bench.send(20 * MS);
        assert_eq!(bench.ack(1, 30 * MS).rate(1000), 100_000);
    }

    #[test]
    fn losses_are_counted_from_the_sending_of_the_sample() {
        let mut bench = Bench::default();
        bench.sampler.lost(5);
        bench.send(0);
        bench.send(0);
        bench.sampler.lost(2);
        assert_eq!(bench.ack(1, 10 * MS).lost, 2);
    }
}
