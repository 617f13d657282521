//! A delay-based detector at the sender or the receiver, and passive ones at the receiver: their input,
//! and a log of decisions.

use narrows_laws::raw::MAX_PATHS;
use narrows_laws::{Conn, Control, Decision, Detector, Event, EventKind, Params, flag};
use narrows_net::Nanos;
use narrows_traffic::{Signal, TcpConfig};

use crate::controller::event;
use crate::packet::Segment;
use crate::passive::{Findings, Passive, PassiveDetector};
use crate::stats::Detection;

/// The detector of a connection, if its control has a delay-based one, and passive ones at its receiver.
#[derive(Debug)]
pub(crate) struct ReceiverDetector {
    tcp: TcpConfig,
    paths: [Arrivals; MAX_PATHS],
    /// None for a detector at the sender, which gets the events of the law there.
    receiver: Option<Box<AtReceiver>>,
    passive: Vec<Passive>,
    /// None without a detector.
    log: Option<Detection>,
}

/// A detector at the receiver.
#[derive(Debug)]
struct AtReceiver {
    conn: Conn,
    /// The masks of each decision, and who is cut together.
    masks: Vec<(u64, u64)>,
    /// Number of the newest decision that the sender knows.
    known: u16,
}

/// What has arrived on a path.
#[derive(Clone, Copy, Debug, Default)]
struct Arrivals {
    /// Anything.
    any: bool,
    /// End of the highest segment.
    end: u64,
    /// Length of the longest, bytes.
    full: u32,
}

impl ReceiverDetector {
    /// Of a connection under `control`, if its detector is delay-based, or one of `passive` is at the
    /// receiver.
    pub fn new(
        control: Control,
        passive: &[PassiveDetector],
        params: &Params,
        tcp: TcpConfig,
    ) -> Option<ReceiverDetector> {
        let decides = control.detector.decides();
        let at_receiver = || {
            Box::new(AtReceiver {
                conn: Conn::with_params(control, params),
                masks: Vec::new(),
                known: 0,
            })
        };
        let here = passive.iter().filter(|detector| detector.signal == Signal::ReceiverUs);
        let passive: Vec<Passive> = here.map(|&detector| Passive::new(detector, params)).collect();
        (decides || !passive.is_empty()).then(|| ReceiverDetector {
            tcp,
            paths: [Arrivals::default(); MAX_PATHS],
            receiver: (decides && tcp.signal == Signal::ReceiverUs).then(at_receiver),
            passive,
            log: decides.then(Detection::default),
        })
    }

    /// The law at the sender: the decisions of a detector elsewhere set its masks. Until the first
    /// they are what the detector's own would be.
    pub fn at_sender(&self, control: Control, params: &Params) -> Conn {
        match (&self.receiver, control.detector.couples_at_join(params)) {
            (None, _) => Conn::with_params(control, params),
            (Some(_), true) => Conn::decided_elsewhere(control, params),
            (Some(_), false) => {
                Conn::with_params(Control { detector: Detector::DISJOINT, ..control }, params)
            }
        }
    }

    /// Whether a detector looks at what arrives at the receiver.
    pub fn is_at_receiver(&self) -> bool {
        self.receiver.is_some() || !self.passive.is_empty()
    }

    /// A segment arrived.
    pub fn on_segment(&mut self, path: usize, segment: &Segment, now: Nanos) {
        let Segment { seq, len, sent, .. } = *segment;
        if len == 0 || !self.is_at_receiver() {
            return;
        }
        let arrivals = &mut self.paths[path];
        let lost = arrivals.lost(seq, len);
        if !std::mem::replace(&mut arrivals.any, true) {
            self.tell(path, now, event(EventKind::Joined));
        }
        let event = Event {
            // Nothing waits between a segment and the detector.
            flags: flag::OWD | flag::DWELL,
            sent_us: sent / 1000,
            owd_us: self.tcp.elapsed_us(now, sent),
            delivered: 1,
            lost,
            ..event(EventKind::Acked)
        };
        self.tell(path, now, event);
        if let (Some(receiver), Some(log)) = (&mut self.receiver, &mut self.log) {
            if log.note(&receiver.conn) {
                receiver.masks.push((receiver.conn.masks(), receiver.conn.cuts()));
            }
        }
    }

    /// Number of the newest decision at the receiver, for an acknowledgement to carry.
    pub fn decision(&self) -> u16 {
        self.receiver.as_ref().map_or(0, |receiver| receiver.masks.len() as u16)
    }

    /// An acknowledgement carries this decision: the sender's law follows it, unless it knows a newer
    /// one.
    pub fn on_ack(&mut self, decision: u16, law: &mut Conn) {
        if let Some(receiver) = &mut self.receiver {
            let newer = decision.wrapping_sub(receiver.known);
            if newer > 0 && newer <= u16::MAX / 2 {
                receiver.known = decision;
                let later = (receiver.masks.len() as u16).wrapping_sub(decision);
                let (masks, cuts) = receiver.masks[receiver.masks.len() - 1 - usize::from(later)];
                law.set_decided(masks, cuts);
            }
        }
    }

    /// Events went to the sender's law.
    pub fn on_events(&mut self, law: &Conn) {
        if let (None, Some(log)) = (&self.receiver, &mut self.log) {
            log.note(law);
        }
    }

    /// A path was removed.
    pub fn leave(&mut self, path: usize, now: Nanos) {
        if self.paths[path].any {
            self.tell(path, now, event(EventKind::Left));
        }
        self.paths[path] = Arrivals::default();
    }

    /// Tells the detectors at the receiver.
    fn tell(&mut self, path: usize, now: Nanos, event: Event) {
        let event = Event { now_us: now / 1000, ..event };
        if let Some(receiver) = &mut self.receiver {
            receiver.conn.detect(path, &event);
        }
        for passive in &mut self.passive {
            passive.take(path, &event);
        }
    }

    /// What the detector of the control decided; none without one.
    pub fn log(&self) -> Option<&Detection> {
        self.log.as_ref()
    }

    /// What the passive detectors here found.
    pub fn findings(&self) -> impl Iterator<Item = &Findings> {
        self.passive.iter().map(Passive::findings)
    }
}

impl Arrivals {
    /// Takes a segment; returns how many packets the hole before it is, if it makes one. What fills
    /// a hole later has been counted.
    fn lost(&mut self, seq: u64, len: u32) -> u32 {
        self.full = self.full.max(len);
        let hole = seq.saturating_sub(self.end);
        self.end = self.end.max(seq + u64::from(len));
        hole.div_ceil(u64::from(self.full)) as u32
    }
}

impl Detection {
    /// Takes down what is new. True if that is a decision.
    fn note(&mut self, conn: &Conn) -> bool {
        let new = |log: &mut Vec<Decision>, newest: Option<Decision>| {
            let newest =
                newest.filter(|newest| log.last().is_none_or(|l| l.number != newest.number));
            log.extend(newest);
            newest.is_some()
        };
        new(&mut self.observations, conn.observation());
        new(&mut self.decisions, conn.decision())
    }
}

#[cfg(test)]
mod tests {
    use narrows_laws::Private;
    use narrows_traffic::{ConnId, FlowId, Generator, Source};

    use super::super::connection::Connection;
    use super::*;
    use crate::ConnectionConfig;

    /// Segments 2 and 3 of seven are lost, the last but one is overtaken, and is not.
    #[test]
    fn a_hole_is_as_many_losses_as_packets_fit_and_counts_once() {
        let mut arrivals = Arrivals::default();
        let lost = [0, 1, 4, 2, 3, 6, 5].map(|n| arrivals.lost(n * 1000, 1000));
        assert_eq!(lost, [0, 0, 2, 0, 0, 1, 0]);
        // Up to a full packet each.
        assert_eq!(arrivals.lost(8_200, 100), 2);
    }

    fn receiver_detector() -> (ReceiverDetector, Conn) {
        detector_of("olia+ssc", Signal::ReceiverUs, &Params::default())
    }

    fn detector_of(control: &str, signal: Signal, params: &Params) -> (ReceiverDetector, Conn) {
        let control: Control = control.parse().unwrap();
        let tcp = TcpConfig { signal, ..TcpConfig::default() };
        let receiver_detector =
            ReceiverDetector::new(control, &[], params, tcp).expect("it detects");
        let law = receiver_detector.at_sender(control, params);
        (receiver_detector, law)
    }

    #[test]
    fn a_receiver_measures_in_the_resolution_of_its_signal() {
        let config = ConnectionConfig {
            control: "olia+ssc".parse().unwrap(),
            tcp: TcpConfig { signal: Signal::ReceiverUs, ..TcpConfig::default() },
            ..ConnectionConfig::default()
        };
        let flow = FlowId::Connection(ConnId(0));
        let generator = Generator::new(1, flow, Source::Greedy, config.active.clone());
        let connection = Connection::new(&config, &[], generator);
        let tcp = connection.receiver_detector.unwrap().tcp;
        assert_eq!(tcp.elapsed_us(41_700_000, 10_000_000), 31_700);
    }

    const SHARED: u64 = u64::MAX;
    const DISJOINT: u64 = 0x8040_2010_0804_0201;

    /// The acknowledgement with the first decision is overtaken by that with the second, and that
    /// with the third is lost.
    #[test]
    fn the_sender_obeys_the_newest_decision_it_received() {
        let (mut receiver_detector, mut law) = receiver_detector();
        assert_eq!(law.masks(), SHARED);
        let receiver = receiver_detector.receiver.as_mut().unwrap();
        receiver.masks = [SHARED, DISJOINT, SHARED, DISJOINT].map(|masks| (masks, masks)).to_vec();
        let masks = [0, 2, 1, 0, 4].map(|decision| {
            receiver_detector.on_ack(decision, &mut law);
            law.masks()
        });
        assert_eq!(masks, [SHARED, DISJOINT, DISJOINT, DISJOINT, DISJOINT]);
        receiver_detector.receiver.as_mut().unwrap().masks.push((SHARED, DISJOINT));
        assert_eq!(receiver_detector.decision(), 5);
        receiver_detector.on_ack(5, &mut law);
        assert_eq!((law.masks(), law.cuts()), (SHARED, DISJOINT));
    }

    /// Decisions are numbered with 16 bits.
    #[test]
    fn numbers_of_decisions_wrap() {
        let (mut receiver_detector, mut law) = receiver_detector();
        let receiver = receiver_detector.receiver.as_mut().unwrap();
        receiver.known = u16::MAX;
        receiver.masks = vec![(SHARED, SHARED); 1 << 16];
        receiver.masks.push((DISJOINT, DISJOINT));
        assert_eq!(receiver_detector.decision(), 1);
        receiver_detector.on_ack(1, &mut law);
        assert_eq!(law.masks(), DISJOINT);
    }

    /// A window probe is no packet that arrives, and a segment no decision; a path that comes again
    /// begins anew.
    #[test]
    fn of_a_path_that_left_nothing_is_kept() {
        let (mut receiver_detector, _) = receiver_detector();
        let sampled = |receiver_detector: &ReceiverDetector| {
            let Arrivals { any, end, full } = receiver_detector.paths[0];
            (any, end, full, receiver_detector.decision())
        };
        let segment = |len| Segment { seq: 5000, len, ..Segment::default() };
        let after = [0, 1000].map(|len| {
            receiver_detector.on_segment(0, &segment(len), 1_000_000);
            sampled(&receiver_detector)
        });
        assert_eq!(after, [(false, 0, 0, 0), (true, 6000, 1000, 0)]);
        receiver_detector.leave(0, 2_000_000);
        assert_eq!(sampled(&receiver_detector), (false, 0, 0, 0));
    }

    /// TR couples nobody before it has found them alike, SSC all, unless configured otherwise.
    #[test]
    fn before_the_first_decision_the_sender_couples_as_the_detector_would() {
        let alone = Params::default().with(&[("decision.undecided", "none")]);
        for (control, params) in
            [("lia+ssc", Params::default()), ("lia+tr", Params::default()), ("lia+ssc", alone)]
        {
            let masks = Signal::ALL.map(|signal| {
                let (_, mut law) = detector_of(control, signal, &params);
                let joined = Event { now_us: 1_000_000, ..event(EventKind::Joined) };
                for path in 0..2 {
                    law.event(path, &mut Private::default(), &joined);
                }
                law.mask(0) & 3
            });
            let uncoupled = control == "lia+tr" || params == alone;
            assert_eq!(masks, [if uncoupled { 1 } else { 3 }; 5], "{control}");
        }
    }
}
