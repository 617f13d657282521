//! Both ends of media whose rate adapts, under either control: the encoder, what waits before the network, and the
//! reports, as long as packets arrive. The encoder has no frames: it has evenly spaced packets at the control's rate,
//! which it follows at once. NADA sends each at once, SCReAM holds it until its window has room. An encoder skips
//! frames whose packets would be of no use: one that would wait longer than [`WAIT`] is discarded (RFC 8298, section
//! 4.1.3, leaves it to the sender).

use narrows_net::{MILLISECOND, Nanos, RouteId, SECOND};
use narrows_traffic::MediaControl;

use crate::packet::{Feedback, Media, Report};
use crate::stats::MediaStats;
use crate::tcp::NEVER;
use crate::{nada, scream};

/// The longest queue before the network, in time at the encoder's rate. Our choice.
const WAIT: Nanos = 500 * MILLISECOND;

/// The ends of a control.
#[derive(Debug)]
enum Ends {
    Nada(nada::Sender, nada::Receiver),
    Scream(Box<scream::Sender>, scream::Receiver),
}

/// Sender and receiver of media.
#[derive(Debug)]
pub(crate) struct Adaptive {
    back: RouteId,
    /// Of a packet, on the wire.
    bytes: u32,
    ecn: bool,
    ends: Ends,
    /// When the present interval of activity ends; 0: none has begun.
    until: Nanos,
    /// When the encoder has its next packet.
    encoded: Nanos,
    /// Packets that wait before the network.
    waiting: u64,
    /// The next packet's number.
    seq: u64,
    /// The newest RTT, without what the receiver held back; 0 before the first.
    rtt: Nanos,
    /// The newest packet that arrived: when it was sent, and when it came.
    newest: (Nanos, Nanos),
    /// The time of the next report is set.
    reports: bool,
}

impl Adaptive {
    pub fn new(
        control: MediaControl,
        back: RouteId,
        [min_bps, max_bps]: [u64; 2],
        bytes: u32,
        ecn: bool,
    ) -> Adaptive {
        let ends = match control {
            MediaControl::Nada => {
                Ends::Nada(nada::Sender::new(min_bps, max_bps), nada::Receiver::new())
            }
            MediaControl::Scream => {
                let sender = scream::Sender::new(min_bps, max_bps, bytes);
                Ends::Scream(Box::new(sender), scream::Receiver::new())
            }
        };
        Adaptive {
            back,
            bytes,
            ecn,
            ends,
            until: 0,
            encoded: 0,
            waiting: 0,
            seq: 0,
            rtt: 0,
            newest: (0, 0),
            reports: false,
        }
    }

    /// The route of the reports.
    pub fn back(&self) -> RouteId {
        self.back
    }

    fn rate_bps(&self) -> f64 {
        match &self.ends {
            Ends::Nada(sender, _) => sender.rate_bps(),
            Ends::Scream(sender, _) => sender.rate_bps(),
        }
    }

    pub fn stats(&self) -> MediaStats {
        MediaStats { rate_bps: self.rate_bps() as u64, rtt: self.rtt }
    }

    /// An interval of activity begins, which ends at `until`. What waited at the end of the last is gone.
    pub fn start(&mut self, now: Nanos, until: Nanos) {
        (self.until, self.encoded, self.waiting) = (until, now, 0);
        match &mut self.ends {
            Ends::Nada(sender, _) => sender.start(now),
            Ends::Scream(sender, _) => sender.start(now),
        }
    }

    /// The packet that is sent now, if one is, with its size, and when to come back if no report comes before; none
    /// outside of an interval.
    pub fn next(&mut self, now: Nanos) -> Option<(Option<(u32, Media)>, Nanos)> {
        if now >= self.until {
            return None;
        }
        if now >= self.encoded {
            let gap = f64::from(self.bytes) * 8.0 * SECOND as f64 / self.rate_bps();
            let gap = (gap as Nanos).max(1);
            self.waiting += u64::from(self.waiting.saturating_mul(gap) < WAIT);
            self.encoded = now + gap;
        }
        let packet =
            (self.waiting > 0 && self.ready() <= now).then(|| (self.bytes, self.send(now)));
        let next = if self.waiting > 0 { self.encoded.min(self.ready()) } else { self.encoded };
        Some((packet, self.until.min(next)))
    }

    /// From when on a packet may be sent, unless a report changes that.
    fn ready(&self) -> Nanos {
        match &self.ends {
            Ends::Nada(..) => 0,
            Ends::Scream(sender, _) => sender.ready(),
        }
    }

    fn send(&mut self, now: Nanos) -> Media {
        let media = Media { seq: self.seq, sent: now, ecn: self.ecn };
        self.seq += 1;
        self.waiting -= 1;
        if let Ends::Scream(sender, _) = &mut self.ends {
            sender.on_sent(now);
        }
        media
    }

    /// A packet arrived. Returns when to report, if no time is set.
    pub fn on_packet(&mut self, now: Nanos, media: Media, size: u32, ce: bool) -> Nanos {
        if media.sent >= self.newest.0 {
            self.newest = (media.sent, now);
        }
        let interval = match &mut self.ends {
            Ends::Nada(_, receiver) => {
                receiver.on_packet(now, media, size, ce);
                nada::DELTA
            }
            Ends::Scream(_, receiver) => {
                receiver.on_packet(now, media, size, ce);
                receiver.interval()
            }
        };
        if std::mem::replace(&mut self.reports, true) { NEVER } else { now + interval }
    }

    /// The report that is due now, with its size, and when the next is.
    pub fn report(&mut self, now: Nanos) -> (Option<(u32, Report)>, Nanos) {
        let (feedback, interval) = match &mut self.ends {
            Ends::Nada(_, receiver) => {
                let signal = receiver.report(now);
                (signal.map(|it| (nada::REPORT_SIZE, Feedback::Signal(it))), nada::DELTA)
            }
            Ends::Scream(_, receiver) => {
                let receipt = receiver.report();
                (receipt.map(|(size, it)| (size, Feedback::Receipt(it))), receiver.interval())
            }
        };
        self.reports = feedback.is_some();
        let (echo, arrived) = self.newest;
        let held = now - arrived;
        let report = feedback.map(|(size, feedback)| (size, Report { echo, held, feedback }));
        (report, if self.reports { now + interval } else { NEVER })
    }

    /// A report arrived. Returns when to send what waits.
    pub fn on_report(&mut self, now: Nanos, report: Report) -> Nanos {
        self.rtt = now - report.echo - report.held;
        match (&mut self.ends, report.feedback) {
            (Ends::Nada(sender, _), Feedback::Signal(signal)) => {
                sender.on_report(now, self.rtt, signal);
            }
            (Ends::Scream(sender, _), Feedback::Receipt(receipt)) => {
                let waiting = self.waiting as f64 * f64::from(self.bytes) * 8.0;
                sender.on_report(now, self.rtt, receipt, waiting);
            }
            _ => unreachable!("a receiver reports to the control of its sender"),
        }
        if self.waiting > 0 && now < self.until { self.ready().max(now) } else { NEVER }
    }
}
