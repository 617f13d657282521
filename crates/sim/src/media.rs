//! Both ends of media whose rate adapts: evenly spaced packets at the reference rate, and a report every
//! 100 ms as long as packets arrive. The encoder has no frames and follows the rate at once.

use narrows_net::{Nanos, RouteId, SECOND};

use crate::nada::{DELTA, Receiver, Sender};
use crate::packet::{Media, Report};
use crate::stats::MediaStats;
use crate::tcp::NEVER;

/// Sender and receiver of media.
#[derive(Debug)]
pub(crate) struct Adaptive {
    back: RouteId,
    /// Of a packet, on the wire.
    bytes: u32,
    ecn: bool,
    sender: Sender,
    /// When the present interval of activity ends; 0: none has begun.
    until: Nanos,
    /// The next packet's number.
    seq: u64,
    receiver: Receiver,
    /// The time of the next report is set.
    reports: bool,
}

impl Adaptive {
    pub fn new(back: RouteId, min_bps: u64, max_bps: u64, bytes: u32, ecn: bool) -> Adaptive {
        let (sender, receiver) = (Sender::new(min_bps, max_bps), Receiver::new());
        Adaptive { back, bytes, ecn, sender, until: 0, seq: 0, receiver, reports: false }
    }

    /// The route of the reports.
    pub fn back(&self) -> RouteId {
        self.back
    }

    pub fn stats(&self) -> MediaStats {
        MediaStats { rate_bps: self.sender.rate_bps() as u64, rtt: self.sender.rtt() }
    }

    /// An interval of activity begins, which ends at `until`.
    pub fn start(&mut self, now: Nanos, until: Nanos) {
        self.until = until;
        self.sender.start(now);
    }

    /// The packet that is due now, its size, and when the next is; none outside of an interval.
    pub fn next(&mut self, now: Nanos) -> Option<(u32, Media, Nanos)> {
        if now >= self.until {
            return None;
        }
        let media = Media { seq: self.seq, sent: now, ecn: self.ecn };
        self.seq += 1;
        let gap = f64::from(self.bytes) * 8.0 * SECOND as f64 / self.sender.rate_bps();
        Some((self.bytes, media, self.until.min(now + (gap as Nanos).max(1))))
    }

    /// A packet arrived. Returns when to report, if no time is set.
    pub fn on_packet(&mut self, now: Nanos, media: Media, size: u32, ce: bool) -> Nanos {
        self.receiver.on_packet(now, media, size, ce);
        if std::mem::replace(&mut self.reports, true) { NEVER } else { now + DELTA }
    }

    /// The report that is due now, and when the next is.
    pub fn report(&mut self, now: Nanos) -> (Option<Report>, Nanos) {
        let report = self.receiver.report(now);
        self.reports = report.is_some();
        (report, if self.reports { now + DELTA } else { NEVER })
    }

    /// A report arrived.
    pub fn on_report(&mut self, now: Nanos, report: Report) {
        self.sender.on_report(now, report);
    }
}
