//! Congestion control of real-time media: SCReAM (RFC 8298).
//!
//! The receiver acknowledges what arrives; the sender keeps the queueing delay near a target by a window of bytes, as
//! LEDBAT does, paces packets, and sets the encoder's rate by how fast they leave. One stream, no priorities (section
//! 4.1.2.8).
//!
//! What the RFC leaves open: a report is one of RFC 8888 at the interval of section 4.2.2. What was lost and marked is
//! counted from the start, so a lost report hides nothing. As no window waits for reordering (a SHOULD of section
//! 4.1.2.4), a packet that was overtaken counts as lost. The base delay is kept for the whole run (RFC 6817: 10
//! minutes). The RFC has a history of 100 delays and reads 200 of them: here are 200, one for each report. The share of
//! RTTs with a loss event is smoothed by 0.01, as in the authors' implementation (github.com/EricssonResearch/scream).
//! The inflection point of the rate is taken at each loss and mark, and where fast increase ends. While the window is
//! full a packet goes out at the least rate of pacing, or a window that is lost whole would stay full.
//!
//! What it leaves to the encoder is in [`crate::media`]: the encoder follows the rate at once, so its measured rate is
//! the target itself. Without reports window and rate stay as they are.

use std::collections::VecDeque;

use narrows_net::{MILLISECOND, Nanos, SECOND};

use crate::packet::{Media, Receipt};

// The constants of section 4.1.1.1. Delays in seconds, as in its pseudocode.

/// Least and largest target of the queueing delay, s.
const QDELAY_TARGET_LO: f64 = 0.1;
const QDELAY_TARGET_HI: f64 = 0.4;
/// Weight of the newest fractional delay in its average.
const QDELAY_WEIGHT: f64 = 0.1;
/// A trend from here on is incipient congestion.
const QDELAY_TREND_TH: f64 = 0.2;
/// A trend below is none, for fast increase to resume.
const QDELAY_TREND_LO: f64 = 0.2;
/// For how long it must be below.
const T_RESUME_FAST_INCREASE: Nanos = 5 * SECOND;
/// Least window, bytes.
const MIN_CWND: f64 = 3000.0;
/// The window is at most so many times what was in flight.
const MAX_BYTES_IN_FLIGHT_HEAD_ROOM: f64 = 1.1;
/// Gain of the window's adjustment.
const GAIN: f64 = 1.0;
/// What a loss leaves of the window, and of the rate.
const BETA_LOSS: f64 = 0.8;
const BETA_R: f64 = 0.9;
/// What a mark leaves of both.
const BETA_ECN: f64 = 0.9;
/// Between adjustments of the rate.
const RATE_ADJUST_INTERVAL: Nanos = 200 * MILLISECOND;
/// Largest increase of the rate, bit/s per second.
const RAMP_UP_SPEED: f64 = 200_000.0;
/// How much the trend takes from the rate, and the queue before the network.
const PRE_CONGESTION_GUARD: f64 = 0.1;
const TX_QUEUE_SIZE_FACTOR: f64 = 1.0;
/// A delay in that queue from here on, s, scales the rate by this.
const RTP_QDELAY_TH: f64 = 0.02;
const TARGET_RATE_SCALE_RTP_QDELAY: f64 = 0.95;
/// Least rate of pacing, bit/s.
const RATE_PACE_MIN: f64 = 50_000.0;

/// Between samples of the fractional delay, and how many there are (section 4.1.2).
const SAMPLE: Nanos = 50 * MILLISECOND;
const FRACTIONS: usize = 20;
/// Delays of which competing flows are found, and the newest of them for the average (section 4.1.2.3).
const NORMS: usize = 200;
const NEWEST: usize = 50;
/// Share of RTTs with a loss event from which on flows compete.
const LOSS_EVENTS: f64 = 0.002;
/// Variance below which the delay is steady.
const STEADY: f64 = 0.2;
/// For how long the largest flight counts (section 4.1.2.2).
const FLIGHTS: Nanos = 5 * SECOND;
/// Intervals of adjustment in the median of the encoder's rate: more than 10 s (section 4.1.1.2).
const RATES: usize = 51;

/// Bytes of a report without what it says of each packet: IPv4 and UDP, 28; the header of RTCP with the sender's SSRC,
/// 8; SSRC, first number and count, 8, and the time of the report, 4 (RFC 8888, section 3.1). With 1000 B a packet
/// that is within the 5 % that RFC 3550, section 6.2, gives RTCP, as RFC 9392 reckons, from 150 kbit/s of media on.
const REPORT_SIZE: u32 = 48;
/// At most so many bytes for packets, 2 each: with them a report fits the 576 B that every host takes (RFC 791).
const REPORTED_SIZE: u64 = 400;
/// Before the first report: section 4.2.2 has 100 to 400 ms for low rates.
const FIRST_REPORT: Nanos = 100 * MILLISECOND;

fn seconds(time: Nanos) -> f64 {
    time as f64 / SECOND as f64
}

fn mean(of: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = of.len() as f64;
    of.sum::<f64>() / count
}

/// The prediction coefficient of section 4.1.2: autocorrelation at lag 1, of what differs by more than rounding.
fn prediction(of: &VecDeque<f64>) -> f64 {
    let mean = mean(of.iter().copied());
    let product = |lag: usize| -> f64 {
        of.iter().zip(of.iter().skip(lag)).map(|(one, later)| (one - mean) * (later - mean)).sum()
    };
    let all = product(0);
    if all > 1e-9 { product(1) / all } else { 0.0 }
}

/// The receiver's part: section 4.2.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    /// The next sequence number that is expected.
    next: u64,
    /// One-way delay of the packet before it.
    delay: Nanos,
    /// Packets lost and marked so far.
    lost: u32,
    marked: u32,
    /// Since the last report: packets, the lost ones too, and bits that arrived.
    packets: u64,
    bits: u64,
    /// From one report to the next.
    interval: Nanos,
}

impl Receiver {
    pub fn new() -> Receiver {
        Receiver { interval: FIRST_REPORT, ..Receiver::default() }
    }

    /// From one report to the next.
    pub fn interval(&self) -> Nanos {
        self.interval
    }

    /// A packet arrived. One out of order is lost already.
    pub fn on_packet(&mut self, now: Nanos, media: Media, size: u32, ce: bool) {
        if media.seq < self.next {
            return;
        }
        self.lost += (media.seq - self.next) as u32;
        self.marked += u32::from(ce);
        self.packets += media.seq + 1 - self.next;
        self.bits += 8 * u64::from(size);
        self.next = media.seq + 1;
        self.delay = now - media.sent;
    }

    /// What it reports now, and in how many bytes; nothing if nothing has arrived since the last. Sets the interval
    /// by the rate in the one that ends: section 4.2.2.
    pub fn report(&mut self) -> Option<(u32, Receipt)> {
        if self.packets == 0 {
            return None;
        }
        let rate_bps = self.bits as f64 / seconds(self.interval);
        let reports = (rate_bps / 10_000.0).clamp(2.5, 50.0);
        self.interval = (SECOND as f64 / reports) as Nanos;
        let reported = (2 * self.packets).next_multiple_of(4).min(REPORTED_SIZE) as u32;
        (self.packets, self.bits) = (0, 0);
        let Receiver { delay, lost, marked, .. } = *self;
        Some((REPORT_SIZE + reported, Receipt { seq: self.next - 1, delay, lost, marked }))
    }
}

/// The sender's part: section 4.1.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    /// Least and largest rate that the encoder supports, bit/s.
    least: f64,
    most: f64,
    /// Bytes of a packet, the MSS.
    mss: f64,
    /// Packets sent, and those up to the newest that is acknowledged.
    sent: u64,
    acked: u64,
    /// When the last was sent; none before the first.
    last: Option<Nanos>,
    /// Bytes in flight as packets were sent: the largest first, then each that is the largest after it.
    flights: VecDeque<(Nanos, f64)>,
    /// Smoothed RTT, s; 0 before the first.
    srtt: f64,
    /// The least one-way delay.
    base: Nanos,
    /// Queueing delay, s, and its target.
    qdelay: f64,
    target: f64,
    /// Fractional delays, the oldest first, their average, when the last was sampled.
    fractions: VecDeque<f64>,
    average: f64,
    sampled: Nanos,
    /// The trend of the delay, and its peaks.
    trend: f64,
    peak: f64,
    /// Delays by the least target, the oldest first.
    norms: VecDeque<f64>,
    /// Losses and marks that were reported.
    lost: u32,
    marked: u32,
    /// More of them are no event before this time.
    ignored_until: Nanos,
    /// Share of RTTs with a loss event, when the present RTT ends, and whether it has one.
    loss_events: f64,
    round_ends: Nanos,
    round_lost: bool,
    /// Fast increase, and since when there is neither trend nor event.
    fast: bool,
    calm_since: Nanos,
    /// Congestion window, bytes.
    cwnd: f64,
    /// Target of the media's rate, bit/s, where it last met congestion, and its history.
    rate: f64,
    last_max: f64,
    rates: VecDeque<f64>,
    /// When it was last adjusted, and what was sent and acknowledged by then.
    adjusted: Nanos,
    counted: (u64, u64),
}

impl Sender {
    pub fn new(least_bps: u64, most_bps: u64, bytes: u32) -> Sender {
        let [least, most] = [least_bps, most_bps].map(|bps| bps as f64);
        Sender {
            least,
            most,
            mss: bytes.into(),
            base: Nanos::MAX,
            target: QDELAY_TARGET_LO,
            fractions: VecDeque::from([0.0; FRACTIONS]),
            norms: VecDeque::from([0.0; NORMS]),
            fast: true,
            cwnd: MIN_CWND,
            rate: least,
            last_max: 1.0,
            ..Sender::default()
        }
    }

    /// It begins to send, or again after a silence, which counts neither as delays nor as a rate.
    pub fn start(&mut self, now: Nanos) {
        (self.sampled, self.adjusted, self.calm_since) = (now, now, now);
        self.counted = (self.sent, self.acked);
    }

    /// Target of the media's rate, bit/s.
    pub fn rate_bps(&self) -> f64 {
        self.rate
    }

    fn in_flight(&self) -> f64 {
        (self.sent - self.acked) as f64 * self.mss
    }

    /// From when on the next packet may be sent: by pacing (section 4.1.2.6) if the send window (4.1.2.5) has room
    /// for it, or at the minimum rate.
    pub fn ready(&self) -> Nanos {
        let Some(last) = self.last else { return 0 };
        let slack = if self.qdelay <= self.target { self.mss } else { 0.0 };
        let room = self.cwnd + slack - self.in_flight() >= self.mss;
        // Before the first RTT that is no pacing.
        let pace = if room { self.cwnd * 8.0 / self.srtt } else { 0.0 };
        last + (self.mss * 8.0 / pace.max(RATE_PACE_MIN) * SECOND as f64) as Nanos
    }

    /// A packet was sent.
    pub fn on_sent(&mut self, now: Nanos) {
        self.sent += 1;
        self.last = Some(now);
        let flight = self.in_flight();
        while self.flights.back().is_some_and(|(_, before)| *before <= flight) {
            self.flights.pop_back();
        }
        self.flights.push_back((now, flight));
    }

    /// A report arrived, while so many bits wait before the network.
    pub fn on_report(&mut self, now: Nanos, rtt: Nanos, receipt: Receipt, waiting: f64) {
        if receipt.seq < self.acked {
            return;
        }
        let newly = (receipt.seq + 1 - self.acked) as f64 * self.mss;
        self.acked = receipt.seq + 1;
        let rtt = seconds(rtt);
        self.srtt = if self.srtt == 0.0 { rtt } else { self.srtt + (rtt - self.srtt) / 8.0 };
        self.base = self.base.min(receipt.delay);
        self.qdelay = seconds(receipt.delay - self.base);
        self.sample(now);
        let [lost, marked] = [receipt.lost > self.lost, receipt.marked > self.marked];
        (self.lost, self.marked) = (receipt.lost, receipt.marked);
        let event = (lost || marked) && now >= self.ignored_until;
        if event {
            self.on_event(now, lost);
        } else {
            self.update_window(now, newly);
        }
        self.round(now);
        self.adjust_target();
        if event || self.trend >= QDELAY_TREND_LO {
            self.calm_since = now;
        } else if now - self.calm_since >= T_RESUME_FAST_INCREASE {
            self.fast = true;
        }
        if !event && now - self.adjusted >= RATE_ADJUST_INTERVAL {
            self.adjust_rate(now, waiting);
        }
    }

    /// A loss or else a mark: sections 4.1.2.1, 4.1.2.2 and 4.1.3. More within an RTT do not count.
    fn on_event(&mut self, now: Nanos, lost: bool) {
        self.ignored_until = now + (self.srtt * SECOND as f64) as Nanos;
        self.round_lost |= lost;
        self.fast = false;
        self.last_max = self.rate;
        let (window, rate) = if lost { (BETA_LOSS, BETA_R) } else { (BETA_ECN, BETA_ECN) };
        self.cwnd = (self.cwnd * window).max(MIN_CWND);
        self.rate = (self.rate * rate).max(self.least);
    }

    /// Where an RTT ends it counts in the share of those with a loss event.
    fn round(&mut self, now: Nanos) {
        if now >= self.round_ends {
            self.round_ends = now + (self.srtt * SECOND as f64) as Nanos;
            let lost = f64::from(std::mem::take(&mut self.round_lost));
            self.loss_events += 0.01 * (lost - self.loss_events);
        }
    }

    /// `update_variables` of section 4.1.2, for each 50 ms that have passed.
    fn sample(&mut self, now: Nanos) {
        while self.sampled + SAMPLE <= now {
            self.sampled += SAMPLE;
            let fraction = self.qdelay / self.target;
            self.average += QDELAY_WEIGHT * (fraction - self.average);
            self.fractions.pop_front();
            self.fractions.push_back(fraction);
            self.trend = (prediction(&self.fractions) * self.average).clamp(0.0, 1.0);
            self.peak = (0.99 * self.peak).max(self.trend);
        }
    }

    /// `update_cwnd` of section 4.1.2.2.
    fn update_window(&mut self, now: Nanos, newly: f64) {
        if self.fast && self.trend >= QDELAY_TREND_TH {
            self.fast = false;
            self.last_max = self.rate;
        }
        if self.fast {
            if self.in_flight() * 1.5 + newly > self.cwnd {
                self.cwnd += newly;
            }
            return;
        }
        let off_target = (self.target - self.qdelay) / self.target;
        if off_target <= 0.0 || self.in_flight() * 1.25 + newly > self.cwnd {
            self.cwnd += GAIN * off_target * newly * self.mss / self.cwnd;
        }
        while self.flights.front().is_some_and(|(time, _)| *time + FLIGHTS < now) {
            self.flights.pop_front();
        }
        let most = self.flights.front().map_or(0.0, |(_, flight)| *flight);
        self.cwnd = self.cwnd.min(most * MAX_BYTES_IN_FLIGHT_HEAD_ROOM).max(MIN_CWND);
    }

    /// `adjust_qdelay_target` of section 4.1.2.3: beside flows that fill the queue the target is what they leave.
    fn adjust_target(&mut self) {
        self.norms.pop_front();
        self.norms.push_back(self.qdelay / QDELAY_TARGET_LO);
        let all = mean(self.norms.iter().copied());
        let variance = mean(self.norms.iter().map(|norm| (norm - all) * (norm - all)));
        let average = mean(self.norms.range(NORMS - NEWEST..).copied());
        let new = (average + libm::sqrt(variance)) * QDELAY_TARGET_LO;
        self.target = if self.loss_events > LOSS_EVENTS {
            1.5 * new
        } else if variance < STEADY {
            new
        } else if new < QDELAY_TARGET_LO {
            new.max(0.5 * self.target)
        } else {
            0.9 * self.target
        };
        self.target = self.target.clamp(QDELAY_TARGET_LO, QDELAY_TARGET_HI);
    }

    /// Media rate control without an event: section 4.1.3. As there, a queue in bits is taken from a rate.
    fn adjust_rate(&mut self, now: Nanos, waiting: f64) {
        let elapsed = seconds(now - self.adjusted);
        let packets = (self.sent - self.counted.0).max(self.acked - self.counted.1);
        let current = packets as f64 * self.mss * 8.0 / elapsed;
        (self.adjusted, self.counted) = (now, (self.sent, self.acked));
        let media = self.rate;
        if self.rates.len() == RATES {
            self.rates.pop_front();
        }
        self.rates.push_back(media);
        let mut sorted: Vec<f64> = self.rates.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let median = sorted[sorted.len() / 2];

        let most = RAMP_UP_SPEED.min(self.rate / 2.0) * seconds(RATE_ADJUST_INTERVAL);
        let above = 4.0 * (self.rate - self.last_max) / self.last_max;
        let scale = (above * above).clamp(0.2, 1.0);
        if self.fast {
            self.rate += most * scale;
        } else {
            let change = current * (1.0 - PRE_CONGESTION_GUARD * self.trend);
            let change = change - TX_QUEUE_SIZE_FACTOR * waiting;
            self.rate += if change > 0.0 { most.min(change * scale) } else { change };
            if waiting > RTP_QDELAY_TH * current {
                self.rate *= TARGET_RATE_SCALE_RTP_QDELAY;
            }
        }
        let limit = current.max(media).max(median) * (2.0 - self.peak);
        self.rate = self.rate.min(limit).clamp(self.least, self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = MILLISECOND;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6 * expected.abs(), "{found}, not {expected}");
    }

    /// A sender past fast increase with 20 packets of 1000 B in flight, which fill its window.
    fn sender() -> Sender {
        let mut sender = Sender::new(150_000, 1_500_000, 1000);
        (sender.cwnd, sender.rate, sender.fast) = (20_000.0, 1e6, false);
        sender.start(1000 * MS);
        (0..20).for_each(|_| sender.on_sent(1000 * MS));
        sender
    }

    /// Section 4.2.2: 1 / min(50, max(2.5, rate / 10000)); and RFC 8888: 2 B a packet, lost ones too, padded to 4.
    #[test]
    fn reports_come_by_the_rate_and_say_of_each_packet() {
        let mut receiver = Receiver::new();
        assert_eq!(receiver.report(), None);
        let feed = |receiver: &mut Receiver, seqs: &[u64], ce| {
            for &seq in seqs {
                let media = Media { seq, sent: seq * 10 * MS, ecn: true };
                receiver.on_packet(media.sent + 30 * MS, media, 1000, ce);
            }
        };
        feed(&mut receiver, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], false);
        let receipt = Receipt { seq: 9, delay: 30 * MS, lost: 0, marked: 0 };
        assert_eq!(receiver.report(), Some((48 + 20, receipt)));
        assert_eq!(receiver.interval(), 20 * MS, "800 kbit/s");
        // One that is late changes nothing.
        feed(&mut receiver, &[12, 11], true);
        let receipt = Receipt { seq: 12, delay: 30 * MS, lost: 2, marked: 1 };
        assert_eq!(receiver.report(), Some((48 + 8, receipt)));
        assert!(receiver.interval().abs_diff(25 * MS) < 1000, "400 kbit/s");
    }

    /// 0.8 and 0.9 for a loss, 0.9 for a mark; what is lost within an RTT of 100 ms is no second event.
    #[test]
    fn losses_and_marks_count_once_an_rtt() {
        let mut sender = sender();
        let receipt = |seq, lost, marked| Receipt { seq, delay: 50 * MS, lost, marked };
        sender.on_report(1100 * MS, 100 * MS, receipt(1, 1, 0), 0.0);
        near(sender.cwnd, 16_000.0);
        near(sender.rate, 900_000.0);
        near(sender.last_max, 1e6);
        // The window grows by 2000 1000 / 16000.
        sender.on_report(1150 * MS, 100 * MS, receipt(3, 2, 1), 0.0);
        near(sender.cwnd, 16_125.0);
        near(sender.rate, 900_000.0);
        sender.on_report(1201 * MS, 100 * MS, receipt(5, 2, 2), 0.0);
        near(sender.cwnd, 14_512.5);
        near(sender.rate, 810_000.0);
        // One that was overtaken says nothing.
        sender.on_report(1900 * MS, 100 * MS, receipt(4, 9, 9), 0.0);
        near(sender.cwnd, 14_512.5);
    }

    /// Half of the target above it: -0.5 2000 1000 / 20000. A window that is not used does not grow.
    #[test]
    fn the_window_follows_the_distance_to_the_target() {
        let mut sender = sender();
        sender.qdelay = 0.15;
        sender.update_window(1000 * MS, 2000.0);
        near(sender.cwnd, 19_950.0);
        (sender.qdelay, sender.acked) = (0.05, 10);
        sender.update_window(1000 * MS, 2000.0);
        near(sender.cwnd, 19_950.0);
        // At most 1.1 times the largest flight of the last 5 s.
        sender.cwnd = 50_000.0;
        sender.update_window(1000 * MS, 2000.0);
        near(sender.cwnd, 22_000.0);
        // In fast increase it grows by what is acknowledged, until there is a trend.
        (sender.fast, sender.acked) = (true, 0);
        sender.update_window(1000 * MS, 2000.0);
        near(sender.cwnd, 24_000.0);
        sender.trend = 0.2;
        sender.update_window(1000 * MS, 2000.0);
        assert!(!sender.fast);
    }

    /// Full, the window holds the next packet back until the least rate sends it: 8000 bits at 50 kbit/s.
    #[test]
    fn a_full_window_sends_at_the_least_rate() {
        let mut sender = sender();
        sender.srtt = 0.1;
        assert_eq!(sender.ready(), 1005 * MS, "below the target there is room for one more");
        sender.qdelay = 0.15;
        assert_eq!(sender.ready(), 1160 * MS);
    }

    /// A ramp of 20 has 565.25 / 665 = 0.85.
    #[test]
    fn a_delay_that_rises_or_falls_is_a_trend() {
        let of = |delay: fn(i32) -> f64| prediction(&(0..20).map(delay).collect());
        near(of(f64::from), 0.85);
        near(of(|i| f64::from(-i)), 0.85);
        near(of(|i| f64::from(i % 2)), -0.95);
        assert_eq!(of(|_| 0.3), 0.0);
    }

    /// A delay that stays is what others leave; with losses half as much more is granted, up to 0.4 s.
    #[test]
    fn the_target_rises_beside_flows_that_fill_the_queue() {
        let mut sender = sender();
        sender.norms = VecDeque::from([2.0; NORMS]);
        sender.qdelay = 0.2;
        sender.adjust_target();
        near(sender.target, 0.2);
        sender.loss_events = 0.01;
        sender.adjust_target();
        near(sender.target, 0.3);
        (sender.norms, sender.qdelay) = (VecDeque::from([4.0; NORMS]), 0.4);
        sender.adjust_target();
        near(sender.target, 0.4);
    }

    /// 40 kbit/s in 200 ms, a fifth of it where it met congestion before; 5 % less while more than 20 ms wait.
    #[test]
    fn the_rate_rises_slowly_where_it_met_congestion() {
        let adjusted = |last_max: f64, fast: bool, waiting: f64| {
            let mut sender = sender();
            // 20 packets were sent in 160 ms: 1 Mbit/s.
            (sender.adjusted, sender.counted) = (840 * MS, (0, 0));
            (sender.last_max, sender.fast) = (last_max, fast);
            sender.adjust_rate(1000 * MS, waiting);
            sender.rate
        };
        near(adjusted(1.0, true, 0.0), 1_040_000.0);
        near(adjusted(1e6, true, 0.0), 1_008_000.0);
        near(adjusted(1.0, false, 16_000.0), 1_040_000.0);
        near(adjusted(1.0, false, 30_000.0), 988_000.0);
    }
}
