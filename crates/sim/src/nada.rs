//! Congestion control of real-time media: NADA (RFC 8698).
//!
//! The receiver sums up queueing delay, losses and marks in one signal, in ms of delay, and reports it;
//! the sender adapts its rate to that. What the RFC leaves open is as in the ns-3 module of its authors
//! (github.com/cisco/ns3-rmcat): ratios are smoothed once a report, the filter of delays stays within the
//! observation window, each gap in the sequence is a loss event, and the signal is at most 500 ms. Without
//! that limit a signal that falls after many losses raises the rate by far more than it lowered it before,
//! as that was at least RMIN. Otherwise than there, the average loss interval leaves out the open one: with
//! it, the time since a loss is below the sum of the weights, 6 averages, and no loss expires after 7.
//!
//! The baseline is kept for the whole run (section 5.1.1: tens of minutes). A receiver to which nothing came
//! in the observation window reports nothing. Without reports the rate stays: the circuit breakers of RFC
//! 8083 are not here. The first gradual update after a silence takes all of it as its interval, and the signal
//! of before it as the one to differ from.

use std::collections::VecDeque;

use narrows_net::{MILLISECOND, Nanos, SECOND};

use crate::packet::{Media, Signal};

/// Feedback interval.
pub(crate) const DELTA: Nanos = 100 * MILLISECOND;

/// Bytes of a report on the wire: IPv4 and UDP, 28; the header of an RTCP feedback message, 12 (RFC 4585,
/// section 6.1; alone in its packet, RFC 5506); 8 for the 6 of RFC 8698, section 5.3, padded; LSR and DLSR, 8.
/// Every 100 ms that is 4.5 kbit/s: within the 5 % that RFC 3550, section 6.2, gives RTCP, as RFC 9392 reckons
/// feedback intervals, from 90 kbit/s of media on.
pub(crate) const REPORT_SIZE: u32 = 56;

// The other parameters: RFC 8698, section 4.1. Delays in ms, as in its equations.

/// Weight of the flow.
const PRIO: f64 = 1.0;
/// Reference congestion level, ms.
const XREF: f64 = 10.0;
/// Scale of gradual updates.
const KAPPA: f64 = 0.5;
/// Scale of the signal's change in them.
const ETA: f64 = 2.0;
/// Upper bound of the RTT in them, ms.
const TAU: f64 = 500.0;
/// Observation window of the receiver.
const LOGWIN: Nanos = 500 * MILLISECOND;
/// A delay from here on is a queue that builds up.
const QEPS: Nanos = 10 * MILLISECOND;
/// Bound on the delay of filtering, ms.
const DFILT: f64 = 120.0;
/// Largest increase in the accelerated ramp-up.
const GAMMA_MAX: f64 = 0.5;
/// Largest queue that it may cause, ms.
const QBOUND: f64 = 50.0;
/// A loss counts for so many average loss intervals.
const MULTILOSS: f64 = 7.0;
/// Delays are warped from here on, ms.
const QTH: f64 = 50.0;
/// How much.
const LAMBDA: f64 = 0.5;
/// Reference ratio of losses.
const PLRREF: f64 = 0.01;
/// Reference ratio of marks.
const PMRREF: f64 = 0.01;
/// Delay that losses at the reference ratio stand for, ms.
const DLOSS: f64 = 10.0;
/// Delay that marks at the reference ratio stand for, ms.
const DMARK: f64 = 2.0;
/// Weight of the newest ratio of losses or marks.
const ALPHA: f64 = 0.1;

/// Window of the minimum filter of delays, packets (section 5.1.1).
const FILTER: usize = 15;
/// Unit of the signal in a report, ms (section 5.3).
const SIGNAL_UNIT: f64 = 0.1;
/// Largest signal, ms: XMAX of the authors' module.
const XMAX: f64 = 500.0;

/// Weights of the newest eight loss intervals (RFC 5348, section 5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

fn ms(time: Nanos) -> f64 {
    time as f64 / MILLISECOND as f64
}

/// The delay after non-linear warping, ms: equation 1.
fn warped(queue_ms: f64) -> f64 {
    if queue_ms < QTH { queue_ms } else { QTH * libm::exp(-LAMBDA * (queue_ms - QTH) / QTH) }
}

/// The aggregate congestion signal, ms, of a delay and the ratios of marks and losses: equation 2.
fn signal(delay_ms: f64, marks: f64, losses: f64) -> f64 {
    let [marks, losses] = [marks / PMRREF, losses / PLRREF];
    delay_ms + DMARK * marks * marks + DLOSS * losses * losses
}

/// Loss intervals, packets, the newest first; the first is open. Those before a loss are one.
#[derive(Debug, Default)]
struct Intervals(VecDeque<f64>);

impl Intervals {
    /// A packet arrived, after `lost` that did not.
    fn on_packet(&mut self, lost: u64) {
        if lost > 0 {
            self.0.push_front(lost as f64);
            self.0.truncate(WEIGHTS.len() + 1);
        }
        match self.0.front_mut() {
            Some(open) => *open += 1.0,
            None => self.0.push_front(1.0),
        }
    }

    /// The average of the closed ones (I_tot1 / W_tot of RFC 5348, section 5.4), or none before a loss.
    fn average(&self) -> Option<f64> {
        let closed = self.0.len().checked_sub(1).filter(|closed| *closed > 0)?;
        let total: f64 = self.0.iter().skip(1).zip(WEIGHTS).map(|(of, weight)| of * weight).sum();
        Some(total / WEIGHTS[..closed].iter().sum::<f64>())
    }

    /// The share of the warped delay in the signal: all of it until the last loss is as long ago as
    /// MULTILOSS average intervals, then less for one more (section 4.2).
    fn warping(&self) -> f64 {
        match (self.0.front(), self.average()) {
            (Some(since), Some(average)) => (1.0 + MULTILOSS - since / average).clamp(0.0, 1.0),
            _ => 0.0,
        }
    }
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    time: Nanos,
    seq: u64,
    sent: Nanos,
    size: u32,
    ce: bool,
}

/// The receiver's part: section 4.2.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// The least one-way delay.
    base: Nanos,
    /// The packets of the observation window, in order.
    window: VecDeque<Arrival>,
    /// The first sequence number after those before the window.
    before: u64,
    /// The next that is expected.
    next: u64,
    /// Ratios, smoothed.
    losses: f64,
    marks: f64,
    intervals: Intervals,
}

impl Receiver {
    pub fn new() -> Receiver {
        Receiver {
            base: Nanos::MAX,
            window: VecDeque::new(),
            before: 0,
            next: 0,
            losses: 0.0,
            marks: 0.0,
            intervals: Intervals::default(),
        }
    }

    /// A packet arrived. One out of order is lost already (section 5.1.2).
    pub fn on_packet(&mut self, now: Nanos, media: Media, size: u32, ce: bool) {
        let Media { seq, sent, .. } = media;
        if seq < self.next {
            return;
        }
        self.intervals.on_packet(seq - self.next);
        self.next = seq + 1;
        self.base = self.base.min(now - sent);
        self.window.push_back(Arrival { time: now, seq, sent, size, ce });
    }

    /// Drops what is no longer in the observation window.
    fn forget(&mut self, now: Nanos) {
        while let Some(first) = self.window.front().filter(|first| first.time + LOGWIN <= now) {
            self.before = first.seq + 1;
            self.window.pop_front();
        }
    }

    /// Packets lost in the observation window.
    fn missing(&self) -> u64 {
        self.next - self.before - self.window.len() as u64
    }

    /// What it reports now; nothing if nothing has arrived lately.
    pub fn report(&mut self, now: Nanos) -> Option<Signal> {
        self.forget(now);
        if self.window.is_empty() {
            return None;
        }
        // Equation 10.
        let smooth = |old: &mut f64, new: f64| *old = ALPHA * new + (1.0 - ALPHA) * *old;
        let marked = self.window.iter().filter(|arrival| arrival.ce).count();
        let [missing, all] = [self.missing(), self.next - self.before].map(|count| count as f64);
        smooth(&mut self.losses, missing / all);
        smooth(&mut self.marks, marked as f64 / self.window.len() as f64);
        let queue = |arrival: &Arrival| arrival.time - arrival.sent - self.base;
        let queue_ms = ms(self.window.iter().rev().take(FILTER).map(queue).min()?);
        let share = self.intervals.warping();
        let delay_ms = share * warped(queue_ms) + (1.0 - share) * queue_ms;
        let signal_ms = signal(delay_ms, self.marks, self.losses).min(XMAX);
        let bytes: u64 = self.window.iter().map(|arrival| u64::from(arrival.size)).sum();
        Some(Signal {
            ramp_up: self.missing() == 0 && self.window.iter().all(|arrival| queue(arrival) < QEPS),
            signal: libm::round(signal_ms / SIGNAL_UNIT) as u16,
            rate_bps: (bytes * 8 * SECOND / LOGWIN).min(u32::MAX.into()) as u32,
        })
    }
}

/// The sender's part: section 4.3.
#[derive(Debug)]
pub(crate) struct Sender {
    /// Least and largest rate that the encoder supports, bit/s.
    least: f64,
    most: f64,
    /// Reference rate, bit/s.
    rate: f64,
    /// The signal of the last report, ms.
    before_ms: f64,
    /// When it came.
    last: Nanos,
}

impl Sender {
    pub fn new(least_bps: u64, most_bps: u64) -> Sender {
        let [least, most] = [least_bps, most_bps].map(|bps| bps as f64);
        Sender { least, most, rate: least, before_ms: 0.0, last: 0 }
    }

    /// It begins to send, or again after a silence, at the rate that it had.
    pub fn start(&mut self, now: Nanos) {
        self.last = now;
    }

    /// Reference rate, bit/s.
    pub fn rate_bps(&self) -> f64 {
        self.rate
    }

    /// A report arrived.
    pub fn on_report(&mut self, now: Nanos, rtt: Nanos, report: Signal) {
        let signal_ms = f64::from(report.signal) * SIGNAL_UNIT;
        if report.ramp_up {
            self.ramp_up(rtt, f64::from(report.rate_bps));
        } else {
            self.update(ms(now - self.last), signal_ms);
        }
        self.rate = self.rate.clamp(self.least, self.most);
        self.before_ms = signal_ms;
        self.last = now;
    }

    /// The accelerated ramp-up: equations 3 and 4.
    fn ramp_up(&mut self, rtt: Nanos, received_bps: f64) {
        let gamma = (QBOUND / (ms(rtt) + ms(DELTA) + DFILT)).min(GAMMA_MAX);
        self.rate = self.rate.max((1.0 + gamma) * received_bps);
    }

    /// A gradual update, `delta_ms` after the last: equations 5 to 7.
    fn update(&mut self, delta_ms: f64, signal_ms: f64) {
        let offset = signal_ms - PRIO * XREF * self.most / self.rate;
        let change = signal_ms - self.before_ms;
        let by = KAPPA * delta_ms / TAU * offset / TAU + KAPPA * ETA * change / TAU;
        self.rate -= by * self.rate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = MILLISECOND;

    fn near(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() < 1e-3 * expected.abs().max(1.0),
            "{found}, not {expected}"
        );
    }

    /// So many packets of 1000 B, 10 ms apart from `seq` on, each with this delay.
    fn feed(receiver: &mut Receiver, seq: u64, count: u64, delay: Nanos) -> Nanos {
        let mut now = 0;
        for seq in seq..seq + count {
            let sent = seq * 10 * MS;
            now = sent + delay;
            receiver.on_packet(now, Media { seq, sent, ecn: false }, 1000, false);
        }
        now
    }

    /// Equation 1: 50 e^(-0.5 (250 - 50) / 50) = 50 e^-2.
    #[test]
    fn long_delays_are_warped() {
        near(warped(49.0), 49.0);
        near(warped(50.0), 50.0);
        near(warped(100.0), 50.0 * 0.606_531);
        near(warped(250.0), 6.766_764);
    }

    /// Equation 2: 20 + 2 (0.02 / 0.01)^2 + 10 (0.03 / 0.01)^2 = 20 + 8 + 90.
    #[test]
    fn the_signal_sums_up_delay_marks_and_losses() {
        near(signal(20.0, 0.0, 0.0), 20.0);
        near(signal(20.0, 0.02, 0.03), 118.0);
    }

    /// Equations 3 and 4: 50 / (80 + 100 + 120) = 1/6; never a decrease.
    #[test]
    fn the_ramp_up_grows_by_what_a_queue_may_hold() {
        let mut sender = Sender::new(150_000, 1_500_000);
        let report = |rate_bps| Signal { ramp_up: true, signal: 0, rate_bps };
        sender.on_report(1100 * MS, 80 * MS, report(600_000));
        near(sender.rate_bps(), 700_000.0);
        sender.on_report(1100 * MS, 80 * MS, report(300_000));
        near(sender.rate_bps(), 700_000.0);
        sender.on_report(1100 * MS, 80 * MS, report(1_400_000));
        near(sender.rate_bps(), 1_500_000.0);
    }

    /// Equations 5 to 7 at 1 Mbit/s, 100 ms after a signal of 15 ms, for one of 40 ms: the offset is 40 -
    /// 10 1.5 / 1 = 25, the change 25; 0.5 0.2 25 / 500 + 0.5 2 25 / 500 = 0.005 + 0.05.
    #[test]
    fn gradual_updates_follow_offset_and_change() {
        let mut sender = Sender::new(150_000, 1_500_000);
        (sender.rate, sender.before_ms, sender.last) = (1e6, 15.0, 900 * MS);
        let report = |signal| Signal { ramp_up: false, signal, rate_bps: 0 };
        sender.on_report(1000 * MS, 50 * MS, report(400));
        near(sender.rate_bps(), 945_000.0);
        // At the equilibrium, x = XREF RMAX / r, it stays.
        (sender.rate, sender.before_ms) = (1e6, 15.0);
        sender.on_report(1100 * MS, 50 * MS, report(150));
        near(sender.rate_bps(), 1e6);
        sender.on_report(1200 * MS, 50 * MS, report(30_000));
        near(sender.rate_bps(), 150_000.0);
    }

    /// RFC 5348, section 5.4: of six intervals the weights are 1, 1, 1, 1, 0.8 and 0.6.
    #[test]
    fn loss_intervals_are_averaged_as_tfrc_does() {
        let mut intervals = Intervals::default();
        let mut packets = |lost: u64, count: u64| {
            intervals.on_packet(lost);
            (1..count).for_each(|_| intervals.on_packet(0));
            intervals.average()
        };
        assert_eq!(packets(0, 11), None);
        assert_eq!(packets(2, 4), Some(11.0));
        assert_eq!(packets(1, 3), Some(8.5));
        assert_eq!(intervals.0, [4.0, 6.0, 11.0]);
        let six = Intervals(VecDeque::from([1.0, 10.0, 10.0, 10.0, 10.0, 10.0, 20.0]));
        near(six.average().unwrap(), (40.0 + 8.0 + 12.0) / 5.4);
        let many = (0..20).fold(Intervals::default(), |mut many, _| {
            many.on_packet(1);
            many
        });
        assert_eq!(many.0.len(), 9);
    }

    /// With an average of 10 packets a loss counts for 70, then less until 80.
    #[test]
    fn a_loss_expires_over_one_interval() {
        let since = |open: f64| Intervals(VecDeque::from([open, 10.0, 10.0])).warping();
        assert_eq!(since(70.0), 1.0);
        near(since(72.5), 0.75);
        assert_eq!(since(80.0), 0.0);
        assert_eq!(Intervals(VecDeque::from([1.0])).warping(), 0.0, "no loss yet");
    }

    /// A delay of 20 ms over the least, filtered: 15 packets must have it.
    #[test]
    fn the_queue_is_the_least_of_fifteen_delays_above_the_least_of_all() {
        let mut receiver = Receiver::new();
        let now = feed(&mut receiver, 0, 100, 30 * MS);
        let report = receiver.report(now).unwrap();
        assert_eq!((report.signal, report.ramp_up), (0, true));
        // 50 packets in half a second.
        assert_eq!(report.rate_bps, 800_000);
        let now = feed(&mut receiver, 100, 14, 50 * MS);
        let report = receiver.report(now + MS).unwrap();
        assert_eq!((report.signal, report.ramp_up), (0, false));
        let now = feed(&mut receiver, 114, 1, 50 * MS);
        assert_eq!(receiver.report(now).unwrap().signal, 200);
        assert_eq!(receiver.report(now + LOGWIN), None);
    }

    /// Two of the window's 50 packets are lost: the ratio of 0.04 is smoothed by 0.1 with each report.
    #[test]
    fn losses_are_smoothed_report_by_report() {
        let mut receiver = Receiver::new();
        feed(&mut receiver, 0, 98, 30 * MS);
        let now = feed(&mut receiver, 100, 1, 30 * MS);
        let report = receiver.report(now).unwrap();
        near(receiver.losses, 0.004);
        // 10 (0.004 / 0.01)^2 = 1.6 ms.
        assert_eq!((report.signal, report.ramp_up), (16, false));
        receiver.report(now);
        near(receiver.losses, 0.0076);
        // One that is late changes nothing.
        receiver.on_packet(now, Media { seq: 98, sent: 980 * MS, ecn: false }, 1000, false);
        assert_eq!(receiver.missing(), 2);
        // More than 7 % are as bad as 7 %.
        receiver.losses = 0.5;
        assert_eq!(receiver.report(now).unwrap().signal, 5000);
    }

    /// All of the window's packets are marked: 2 (0.1 / 0.01)^2 = 200 ms.
    #[test]
    fn marks_count_as_a_delay() {
        let mut receiver = Receiver::new();
        for seq in 0..60 {
            let media = Media { seq, sent: seq * 10 * MS, ecn: true };
            receiver.on_packet(media.sent + 30 * MS, media, 1000, true);
        }
        let report = receiver.report(620 * MS).unwrap();
        assert_eq!((report.signal, report.ramp_up), (2000, true));
    }
}
