//! The law of a connection at its sender, and the detectors that listen there.

use std::ops::{Deref, DerefMut};

use narrows_laws::{Conn, Event, Output, Params, Private, flag};
use narrows_traffic::Signal;

use crate::listening::{Heard, Listener, Listening};

/// The law of a connection at its sender, and the detectors that listen there.
#[derive(Debug)]
pub(crate) struct Law {
    conn: Conn,
    listeners: Vec<Listening>,
}

impl Law {
    /// With those of `listeners` whose signal is at the sender.
    pub fn new(conn: Conn, listeners: &[Listener], params: &Params) -> Law {
        let here = listeners.iter().filter(|listener| listener.signal != Signal::ReceiverUs);
        Law { conn, listeners: here.map(|&listener| Listening::new(listener, params)).collect() }
    }

    /// An event, with all that any signal samples; the law's is `signal`.
    pub fn event(
        &mut self,
        path: usize,
        private: &mut Private,
        event: &mut Event,
        signal: Signal,
    ) -> Output {
        for listening in &mut self.listeners {
            let mut heard = *event;
            sample(&mut heard, listening.heard().by.signal);
            listening.hear(path, &heard);
        }
        sample(event, signal);
        self.conn.event(path, private, event)
    }

    /// What those that listen here found.
    pub fn heard(&self) -> impl Iterator<Item = &Heard> {
        self.listeners.iter().map(Listening::heard)
    }
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

impl Deref for Law {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl DerefMut for Law {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.conn
    }
}
