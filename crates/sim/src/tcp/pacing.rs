//! Bursts and the time between them, as Linux paces without a qdisc that would: a burst leaves back
//! to back, and the next not before the time it takes at the pacing rate.

use narrows_net::{MILLISECOND, Nanos, SECOND};

use super::NEVER;
use super::recovery::Phase;
use super::sender::Sender;

/// How much more than a window per round trip leaves, in percent, so that pacing does not limit
/// growth: Linux's tcp_pacing_ss_ratio and tcp_pacing_ca_ratio.
const SLOW_START_PERCENT: u64 = 200;
const AVOIDANCE_PERCENT: u64 = 120;
/// The first packets are not paced: tcp_update_skb_after_send().
const UNPACED: u32 = 10;
/// A burst lasts 2^-10 s, about a millisecond: Linux's sk_pacing_shift.
const BURST_SHIFT: u32 = 10;
/// Linux's sk_gso_max_size, bytes: a larger burst does not fit into one skb.
const BURST_MAX: u64 = 65_536;
/// Short paths have larger bursts, half as large for each of these: tcp_tso_rtt_log.
const RTT_SHIFT: u32 = 9;
/// Linux's tcp_min_tso_segs.
const BURST_MIN: u64 = 2;

/// Where the sender stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Bytes of a full segment.
    pub mss: u32,
    /// Packets.
    pub cwnd: u32,
    /// Packets.
    pub ssthresh: u32,
    /// Packets sent and not acknowledged.
    pub packets_out: u32,
    /// Smoothed RTT, 1/8 us; 0 before the first sample.
    pub srtt8_us: u64,
    /// Smallest RTT.
    pub min_rtt: Nanos,
}

/// Burst and pacing of one subflow.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// The host paces window laws.
    on: bool,
    /// Segments of a burst, at most.
    tso: u32,
    /// A model law's rate, bytes/s; 0: it has none, and the host's rule holds.
    law_rate: u64,
    /// Segments that have left, as far as the first are concerned.
    sent: u32,
    /// Segments that may still leave in this burst.
    left: u32,
    /// The rate of this burst, bytes/s.
    rate: u64,
    /// By how much this burst was late: it may be followed the sooner.
    late: Nanos,
    /// The next burst leaves then.
    next: Nanos,
}

/// Bytes per second at which a host paces; the largest number before there is an RTT. Linux:
/// tcp_update_pacing_rate().
fn host_rate(window: &Window) -> u64 {
    let slow_start = window.cwnd < window.ssthresh / 2;
    let percent = if slow_start { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
    let bytes = u64::from(window.mss) * u64::from(window.cwnd.max(window.packets_out));
    let per_8us = 8_000_000 / 100 * percent;
    bytes.saturating_mul(per_8us).checked_div(window.srtt8_us).unwrap_or(u64::MAX)
}

/// Segments of a burst at `rate` bytes/s: a millisecond's worth, more on short paths. Linux:
/// tcp_tso_autosize().
fn autosize(rate: u64, window: &Window) -> u32 {
    let halvings = (window.min_rtt / 1_000) >> RTT_SHIFT;
    let near = BURST_MAX.checked_shr(halvings.min(64) as u32).unwrap_or(0);
    let bytes = ((rate >> BURST_SHIFT) + near).min(BURST_MAX);
    (bytes / u64::from(window.mss)).max(BURST_MIN) as u32
}

impl Pacer {
    /// Bursts of up to `tso` segments, paced if `on` or if a law gives a rate.
    pub fn new(on: bool, tso: u32) -> Self {
        Pacer { on, tso: tso.max(1), law_rate: 0, sent: 0, left: 0, rate: 0, late: 0, next: 0 }
    }

    /// Does time pass between bursts?
    pub fn is_pacing(&self) -> bool {
        self.on || self.law_rate > 0
    }

    /// A model law's rate, bytes/s.
    pub fn set_law_rate(&mut self, rate: u64) {
        self.law_rate = rate;
    }

    /// Bytes per second; the largest number before there is an RTT.
    fn rate(&self, window: &Window) -> u64 {
        match self.law_rate {
            0 => host_rate(window),
            rate => rate,
        }
    }

    /// Segments of the next burst.
    pub fn burst(&self, window: &Window) -> u32 {
        autosize(self.rate(window), window).min(self.tso)
    }

    /// A segment of `len` bytes leaves. If with it the burst is complete, the time before which the
    /// next may not leave; where that has come, nothing. Linux: tcp_update_skb_after_send().
    pub fn sent(&mut self, len: u32, now: Nanos, window: &Window) -> Option<Nanos> {
        if !self.is_pacing() {
            return None;
        }
        self.sent = self.sent.saturating_add(1);
        if self.left == 0 {
            self.left = self.burst(window);
            self.rate = self.rate(window);
            self.late = now.saturating_sub(self.next);
            self.next = self.next.max(now);
        }
        self.left -= 1;
        if self.sent > UNPACED && self.rate != u64::MAX {
            let time = u64::from(len).saturating_mul(SECOND) / self.rate.max(1);
            // What timers and a sender that was not ready lost is made good, by half at most.
            let credit = self.late.min(time / 2);
            self.late -= credit;
            self.next = self.next.saturating_add(time - credit);
        }
        if self.left == 0 { self.wait(now) } else { None }
    }

    /// Time has passed: the burst is complete as it is.
    pub fn close(&mut self, now: Nanos) -> Option<Nanos> {
        self.left = 0;
        self.wait(now)
    }

    fn wait(&self, now: Nanos) -> Option<Nanos> {
        (self.next > now).then_some(self.next)
    }
}

impl Sender {
    fn window(&self) -> Window {
        Window {
            mss: self.mss,
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            packets_out: self.board.packets_out(),
            srtt8_us: self.rtt.srtt8_us(),
            min_rtt: self.rtt.min_rtt(),
        }
    }

    /// The rate at which it is paced, or would be, bytes/s; 0 before the first RTT.
    pub fn pacing_rate(&self) -> u64 {
        let window = self.window();
        match self.pacer.as_ref().map_or_else(|| host_rate(&window), |pacer| pacer.rate(&window)) {
            u64::MAX => 0,
            rate => rate,
        }
    }

    /// Segments that are one skb: a burst where there are any, else what would be one.
    pub(super) fn autosize(&self) -> u32 {
        let window = self.window();
        match self.pacer.as_ref() {
            Some(pacer) if pacer.tso > 1 => pacer.burst(&window),
            Some(pacer) => autosize(pacer.rate(&window), &window),
            None => autosize(host_rate(&window), &window),
        }
    }

    /// A segment of `len` bytes has left.
    pub(super) fn pace(&mut self, len: u32, now: Nanos) {
        if self.pacer.is_none() {
            return;
        }
        let window = self.window();
        let until = self.pacer.as_mut().and_then(|pacer| pacer.sent(len, now, &window));
        self.pace_at = until.unwrap_or(NEVER);
    }

    /// Something happens at `now`: what left before is a burst of its own. (Data that only the
    /// application adds meanwhile may join it; the next burst then waits the longer.)
    pub(super) fn end_burst(&mut self, now: Nanos) {
        if let Some(pacer) = &mut self.pacer {
            self.pace_at = pacer.close(now).unwrap_or(NEVER);
        }
    }

    /// Should new data wait for room for a burst? Linux: tcp_tso_should_defer().
    pub(super) fn should_defer(&self, now: Nanos) -> bool {
        let Some(pacer) = self.pacer.as_ref().filter(|pacer| pacer.tso > 1) else { return false };
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        // The acknowledgement that makes room must be likely to come soon.
        let Some(head_sent) = self.board.head_sent() else { return false };
        let soon = now - self.last_sent <= MILLISECOND && now - head_sent >= self.rtt.srtt() / 2;
        let room = self.cwnd.saturating_sub(self.board.in_flight());
        soon && !recovering && room < pacer.burst(&self.window()).min(self.cwnd / 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// 100 packets of 1000 bytes in 100 ms, in slow start: 1 MB/s, paced at twice that.
    const WINDOW: Window = Window {
        mss: 1000,
        cwnd: 100,
        ssthresh: 1_000,
        packets_out: 100,
        srtt8_us: 8 * 100_000,
        min_rtt: 100 * MS,
    };

    /// The times at which a sender with endless data sends `segments`.
    fn times(pacer: &mut Pacer, from: Nanos, segments: u32) -> Vec<Nanos> {
        let mut now = from;
        let send = |_| {
            let sent = now;
            now = pacer.sent(1000, now, &WINDOW).unwrap_or(now);
            sent
        };
        (0..segments).map(send).collect()
    }

    #[test]
    fn twice_the_window_in_slow_start_and_a_fifth_more_after() {
        let pacer = Pacer::new(true, 1);
        assert_eq!(pacer.rate(&WINDOW), 2_000_000);
        assert_eq!(pacer.rate(&Window { ssthresh: 199, ..WINDOW }), 1_200_000);
        assert_eq!(pacer.rate(&Window { cwnd: 40, ..WINDOW }), 2_000_000, "what is out counts");
        assert_eq!(pacer.rate(&Window { srtt8_us: 0, ..WINDOW }), u64::MAX);
        let mut model = Pacer::new(false, 1);
        model.set_law_rate(777);
        assert_eq!(model.rate(&WINDOW), 777);
    }

    #[test]
    fn the_initial_window_is_a_burst_then_one_packet_every_half_millisecond() {
        let mut pacer = Pacer::new(true, 1);
        assert_eq!(times(&mut pacer, 0, 10), [0; 10]);
        let paced = times(&mut pacer, MS, 4);
        // The first comes a millisecond late, which shortens the wait after it by half.
        assert_eq!(paced, [1_000, 1_250, 1_750, 2_250].map(|us| us * 1_000));
    }

    #[test]
    fn a_model_law_is_paced_though_the_host_does_not() {
        let mut pacer = Pacer::new(false, 1);
        assert_eq!(times(&mut pacer, 0, 100), [0; 100]);
        pacer.set_law_rate(1_000_000);
        assert_eq!(times(&mut pacer, 0, 13)[10..], [0, MS, 2 * MS]);
    }

    #[test]
    fn bursts_are_a_millisecond_s_worth() {
        let pacer = Pacer::new(true, 44);
        // Two segments at least; 12 MB/s are 11.7 kB in 2^-10 s.
        assert_eq!(pacer.burst(&WINDOW), 2);
        assert_eq!(pacer.burst(&Window { cwnd: 600, ssthresh: 2_000, ..WINDOW }), 11);
        assert_eq!(pacer.burst(&Window { cwnd: 100_000, ..WINDOW }), 44);
        // Half of 64 kB in addition at an RTT of 512 us.
        assert_eq!(pacer.burst(&Window { min_rtt: 600_000, ..WINDOW }), 34);
        assert_eq!(Pacer::new(true, 1).burst(&WINDOW), 1);
    }

    #[test]
    fn a_burst_is_followed_by_the_time_it_takes() {
        let mut pacer = Pacer::new(true, 44);
        pacer.sent = UNPACED;
        assert_eq!(times(&mut pacer, 0, 6), [0, 0, 1, 1, 2, 2].map(|ms| ms * MS));
        // The window lets only one leave: the rest of the burst is not owed.
        assert_eq!(pacer.sent(1000, 3 * MS, &WINDOW), None);
        assert_eq!(pacer.close(3 * MS), Some(3_500_000));
    }
}
