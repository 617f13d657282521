//! A flow of UDP packets: what the application writes goes out, what arrives is counted. Media also
//! adapts its rate to what its receiver reports.

use narrows_net::{Nanos, RouteId};
use narrows_traffic::{Generator, Source, Write};

use crate::media::Adaptive;
use crate::packet::{Body, Payload};
use crate::stats::UdpStats;
use crate::tcp::NEVER;
use crate::wire::Wire;

/// A UDP flow.
#[derive(Debug)]
pub(crate) struct Udp {
    route: RouteId,
    generator: Generator,
    media: Option<Box<Adaptive>>,
    /// When the application's time comes next; earlier ones that were set are void.
    due: Nanos,
    stats: UdpStats,
}

impl Udp {
    /// `back` is for the feedback of [`Source::Media`].
    pub fn new(route: RouteId, back: Option<RouteId>, generator: Generator) -> Self {
        let media = match (generator.source(), back) {
            (Source::Media { control, min_bps, max_bps, bytes, ecn }, Some(back)) => {
                let rates = [min_bps, max_bps];
                Some(Box::new(Adaptive::new(control, back, rates, bytes, ecn)))
            }
            _ => None,
        };
        let due = generator.first_start();
        Udp { route, generator, media, due, stats: UdpStats::default() }
    }

    /// First time of the application.
    pub fn first_start(&self) -> Nanos {
        self.generator.first_start()
    }

    /// The routes that it uses: of its packets, and of feedback.
    pub fn routes(&self) -> impl Iterator<Item = RouteId> {
        [Some(self.route), self.media.as_ref().map(|media| media.back())].into_iter().flatten()
    }

    /// Counters, and what the sender of media knows.
    pub fn stats(&self) -> UdpStats {
        UdpStats { media: self.media.as_ref().map(|media| media.stats()), ..self.stats }
    }

    /// The application's time has come. Returns when it comes again.
    pub fn on_source(&mut self, wire: &mut Wire) -> Nanos {
        if wire.now < self.due {
            return NEVER;
        }
        self.due = self.write(wire);
        self.due
    }

    fn write(&mut self, wire: &mut Wire) -> Nanos {
        let paced = self.media.as_mut().and_then(|media| media.next(wire.now));
        if let Some((packet, next)) = paced {
            if let Some((size, media)) = packet {
                self.send(size, Payload::Media(media), wire);
            }
            return next;
        }
        let (write, next) = self.generator.wake(wire.now);
        match (write, &mut self.media) {
            (Write::Message(size), _) => self.send(size, Payload::Plain, wire),
            (Write::Start { .. }, Some(media)) => {
                media.start(wire.now, next);
                return wire.now;
            }
            _ => {}
        }
        next
    }

    fn send(&mut self, size: u32, payload: Payload, wire: &mut Wire) {
        self.stats.sent_packets += 1;
        wire.send(self.route, 0, Body::Udp { size, payload });
    }

    /// A packet of `size` bytes arrived at its receiver, or feedback at the sender. Returns when the
    /// receiver reports, or the sender sends what waited for that, if a time is to be set.
    pub fn on_packet(&mut self, now: Nanos, size: u32, ce: bool, payload: Payload) -> Nanos {
        if let (Payload::Report(report), Some(sender)) = (payload, &mut self.media) {
            let next = sender.on_report(now, report);
            if next >= self.due {
                return NEVER;
            }
            self.due = next;
            return next;
        }
        self.stats.received_packets += 1;
        self.stats.received_bytes += u64::from(size);
        match (payload, &mut self.media) {
            (Payload::Media(media), Some(receiver)) => receiver.on_packet(now, media, size, ce),
            _ => NEVER,
        }
    }

    /// The time of the receiver's feedback has come. Returns when it comes again.
    pub fn on_feedback(&mut self, wire: &mut Wire) -> Nanos {
        let Some(media) = &mut self.media else { return NEVER };
        let (report, next) = media.report(wire.now);
        if let Some((size, report)) = report {
            let payload = Payload::Report(report);
            wire.send(media.back(), 0, Body::Udp { size, payload });
        }
        next
    }
}
