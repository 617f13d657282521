//! A connection whose paths can be put into any state by events of a host.

use crate::raw::{MAX_PATHS, ONE_PACKET};
use crate::{Conn, Control, Event, EventKind, Output, Private, State, flag};

/// A connection and its host's view of each path.
#[derive(Clone)]
#[non_exhaustive]
pub struct Host {
    /// The connection.
    pub conn: Conn,
    /// Private state of each path.
    pub private: [Private; MAX_PATHS],
    /// The clock, constant unless set, µs.
    pub now_us: u64,
    /// Smoothed RTTs, 1/8 µs; 20 ms at first.
    pub srtt8_us: [u32; MAX_PATHS],
}

impl Host {
    /// A connection without paths.
    pub fn new(control: Control) -> Host {
        Host {
            conn: Conn::new(control),
            private: Default::default(),
            now_us: 5_000_000,
            srtt8_us: [8 * 20_000; MAX_PATHS],
        }
    }

    /// An event of `path` as filled by a host.
    pub fn event(&self, path: usize, kind: EventKind) -> Event {
        Event {
            now_us: self.now_us,
            kind: kind as u32,
            state: State::Active as u32,
            cwnd: self.conn.path(path).cwnd,
            inflight: self.conn.path(path).cwnd,
            srtt8_us: self.srtt8_us[path],
            mss: 1448,
            ..Event::default()
        }
    }

    /// Sends an event unchanged.
    pub fn send(&mut self, path: usize, event: &Event) -> Output {
        self.conn.event(path, &mut self.private[path], event)
    }

    /// Sends an event with no details but its kind.
    pub fn report(&mut self, path: usize, kind: EventKind) -> Output {
        let event = self.event(path, kind);
        self.send(path, &event)
    }

    /// Acknowledges `packets`, cwnd-limited.
    pub fn ack(&mut self, path: usize, packets: u32) -> Output {
        let event = Event {
            delivered: packets,
            flags: flag::CWND_LIMITED,
            ..self.event(path, EventKind::Acked)
        };
        self.send(path, &event)
    }

    /// The host reports a window of `cwnd`.
    pub fn set_cwnd(&mut self, path: usize, cwnd: u32) {
        let event = Event { cwnd, ..self.event(path, EventKind::Acked) };
        self.send(path, &event);
    }

    /// A path in congestion avoidance at `cwnd` packets and `srtt8_us`, with `l` packets delivered
    /// since a loss (OLIA).
    pub fn avoiding(&mut self, path: usize, cwnd: u32, srtt8_us: u32, l: u32) {
        self.srtt8_us[path] = srtt8_us;
        if self.conn.path(path).state == State::Free as u32 {
            self.report(path, EventKind::Joined);
        }
        self.set_cwnd(path, 2);
        self.report(path, EventKind::Recovery);
        let recovering =
            Event { delivered: l, flags: flag::IN_RECOVERY, ..self.event(path, EventKind::Acked) };
        self.send(path, &recovering);
        self.report(path, EventKind::Recovered);
        self.set_cwnd(path, cwnd);
    }

    /// A path in congestion avoidance at 20 ms.
    pub fn avoiding_at(&mut self, path: usize, cwnd: u32) {
        self.avoiding(path, cwnd, 8 * 20_000, 0);
    }

    /// The window of `path` with its credit, in 2^-40 packet.
    pub fn window(&self, path: usize) -> i64 {
        i64::from(self.conn.path(path).cwnd) * ONE_PACKET + self.private[path].credit()
    }

    /// Growth of `path` for one acknowledged packet, packets, computed anew.
    pub fn credit(&self, path: usize) -> f64 {
        let mut after = self.clone();
        if self.conn.control().law.keeps_growth() {
            after.private[path].discard_growth();
        }
        after.ack(path, 1);
        (after.window(path) - self.window(path)) as f64 / ONE_PACKET as f64
    }
}
