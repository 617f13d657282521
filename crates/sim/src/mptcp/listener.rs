//! A detector that listens, at the sender or the receiver: what it hears, and a log of what it says.

use narrows_laws::raw::MAX_PATHS;
use narrows_laws::{Conn, Control, Decision, Detector, Event, EventKind, Params, State, flag};
use narrows_net::Nanos;

use crate::packet::Segment;
use crate::{Detection, Signal, TcpConfig};

/// The listening detector of a connection.
#[derive(Debug)]
pub(crate) struct Listener {
    /// None where it listens at the sender, whose law's events it hears.
    receiver: Option<Box<AtReceiver>>,
    log: Detection,
}

/// A detector at the receiver.
#[derive(Debug)]
struct AtReceiver {
    conn: Conn,
    tcp: TcpConfig,
    paths: [Arrivals; MAX_PATHS],
    /// The masks of each decision.
    masks: Vec<u64>,
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

impl Listener {
    /// Of a connection under `control`, if its detector listens.
    pub fn new(control: Control, params: &Params, tcp: TcpConfig) -> Option<Listener> {
        let at_receiver = || {
            Box::new(AtReceiver {
                conn: Conn::with_params(control, params),
                tcp,
                paths: [Arrivals::default(); MAX_PATHS],
                masks: Vec::new(),
                known: 0,
            })
        };
        control.detector.listens().then(|| Listener {
            receiver: (tcp.signal == Signal::ReceiverUs).then(at_receiver),
            log: Detection::default(),
        })
    }

    /// The control of the sender: what a detector elsewhere says is put into its masks.
    pub fn at_sender(&self, control: Control) -> Control {
        match self.receiver {
            Some(_) => Control { detector: Detector::Shared, ..control },
            None => control,
        }
    }

    /// A segment arrived.
    pub fn on_segment(&mut self, path: usize, segment: &Segment, now: Nanos) {
        if let Some(receiver) = self.receiver.as_deref_mut().filter(|_| segment.len > 0) {
            receiver.on_segment(path, segment, now);
            if self.log.note(&receiver.conn) {
                receiver.masks.push(receiver.conn.masks());
            }
        }
    }

    /// Number of the newest decision at the receiver, for an acknowledgement to tell.
    pub fn decision(&self) -> u16 {
        self.receiver.as_ref().map_or(0, |receiver| receiver.masks.len() as u16)
    }

    /// An acknowledgement tells of this decision: the sender's law obeys it, unless it knows a newer
    /// one.
    pub fn on_ack(&mut self, decision: u16, law: &mut Conn) {
        if let Some(receiver) = &mut self.receiver {
            let newer = decision.wrapping_sub(receiver.known);
            if newer > 0 && newer <= u16::MAX / 2 {
                receiver.known = decision;
                let later = (receiver.masks.len() as u16).wrapping_sub(decision);
                law.set_masks(receiver.masks[receiver.masks.len() - 1 - usize::from(later)]);
            }
        }
    }

    /// Events went to the sender's law.
    pub fn on_events(&mut self, law: &Conn) {
        if self.receiver.is_none() {
            self.log.note(law);
        }
    }

    /// A path was removed.
    pub fn leave(&mut self, path: usize, now: Nanos) {
        if let Some(receiver) = &mut self.receiver {
            if receiver.paths[path].any {
                receiver.tell(path, now, EventKind::Left, Event::default());
            }
            receiver.paths[path] = Arrivals::default();
        }
    }

    pub fn log(&self) -> &Detection {
        &self.log
    }
}

impl AtReceiver {
    fn on_segment(&mut self, path: usize, segment: &Segment, now: Nanos) {
        let Segment { seq, len, sent, .. } = *segment;
        if !self.paths[path].any {
            self.tell(path, now, EventKind::Joined, Event::default());
        }
        let Arrivals { any, end, full } = &mut self.paths[path];
        *any = true;
        *full = len.max(*full);
        // A hole is as many packets as fit into it; what fills it later has been counted.
        let lost = seq.saturating_sub(*end).div_ceil(u64::from(*full));
        *end = (seq + u64::from(len)).max(*end);
        let event = Event {
            // Nothing waits between a segment and the detector.
            flags: flag::OWD | flag::DWELL,
            sent_us: sent / 1000,
            owd_us: self.tcp.elapsed_us(now, sent),
            delivered: 1,
            lost: lost as u32,
            ..Event::default()
        };
        self.tell(path, now, EventKind::Acked, event);
    }

    fn tell(&mut self, path: usize, now: Nanos, kind: EventKind, event: Event) {
        let state = match kind {
            EventKind::Joined => State::Joining,
            EventKind::Left => State::Free,
            _ => State::Active,
        };
        let event = Event { kind: kind as u32, state: state as u32, now_us: now / 1000, ..event };
        self.conn.detect(path, &event);
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
