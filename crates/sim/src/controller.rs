//! What controls a connection at its sender, its law and detector, and the passive detectors there.

use std::ops::{Deref, DerefMut};

use narrows_laws::{Conn, Event, EventKind, Output, Params, Private, State, flag};
use narrows_traffic::Signal;

use crate::passive::{Findings, Passive, PassiveDetector};

/// The law and detector of a connection, at its sender, and the passive detectors there.
#[derive(Debug)]
pub(crate) struct Controller {
    conn: Conn,
    passive: Vec<Passive>,
}

impl Controller {
    /// With those of `passive` whose signal is at the sender.
    pub fn new(conn: Conn, passive: &[PassiveDetector], params: &Params) -> Controller {
        let here = passive.iter().filter(|detector| detector.signal != Signal::ReceiverUs);
        Controller { conn, passive: here.map(|&detector| Passive::new(detector, params)).collect() }
    }

    /// An event, with all that any signal samples; the law's is `signal`.
    pub fn event(
        &mut self,
        path: usize,
        private: &mut Private,
        event: &mut Event,
        signal: Signal,
    ) -> Output {
        for passive in &mut self.passive {
            let mut sampled = *event;
            sample(&mut sampled, passive.findings().by.signal);
            passive.take(path, &sampled);
        }
        sample(event, signal);
        self.conn.event(path, private, event)
    }

    /// What the passive detectors here found.
    pub fn findings(&self) -> impl Iterator<Item = &Findings> {
        self.passive.iter().map(Passive::findings)
    }
}

/// An event of a path that carries data, with nothing else known.
pub(crate) fn event(kind: EventKind) -> Event {
    let state = match kind {
        EventKind::Joined => State::Joining,
        EventKind::Left => State::Free,
        _ => State::Active,
    };
    Event { kind: kind as u32, state: state as u32, ..Event::default() }
}

/// Leaves in an event what a signal has.
fn sample(event: &mut Event, signal: Signal) {
    match signal {
        Signal::SenderUs | Signal::SenderMs => return,
        Signal::ReceiverUs | Signal::Rtt => {}
        Signal::Srtt => event.flags |= flag::SRTT,
    }
    event.flags &= !flag::OWD;
    event.owd_us = 0;
}

impl Deref for Controller {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl DerefMut for Controller {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.conn
    }
}
