//! The two ends of a connection apart, each in a part of the simulation of its own.

use narrows_laws::Law;
use narrows_traffic::{ConnId, FlowId, Generator, Source};

use super::connection::{ALL, Connection};
use super::subflow::{PathSetup, Subflow};
use crate::ConnectionConfig;

impl Connection {
    /// Whether its ends learn of each other by packets alone. Those that do not: where the receiver opens, is told by a
    /// middlebox, runs a detector, loses paths that a law loaded at run time closes, or notes when messages arrive that
    /// the sender wrote.
    pub fn can_part(&self) -> bool {
        let at_receiver =
            self.receiver_detector.as_ref().is_some_and(|detector| detector.is_at_receiver());
        let messages = matches!(self.source, Source::Messages { .. });
        let stripped = self.subflows.iter().any(|subflow| subflow.strips_mptcp);
        let closes = self.controller.control().law == Law::USER;
        !(self.is_download() || at_receiver || messages || stripped || closes)
    }

    /// Takes the receiving end out, as a connection of which nothing else is in use. Until [`Connection::reunite`] this
    /// one is the sending end alone.
    pub fn part(&mut self) -> Connection {
        let config = ConnectionConfig {
            multipath: self.multipath,
            tcp: self.tcp,
            source: self.source,
            ..ConnectionConfig::default()
        };
        let paths: Vec<PathSetup> = self.subflows.iter().map(Subflow::setup).collect();
        let generator =
            Generator::new(0, FlowId::Connection(ConnId(0)), Source::Greedy, Vec::new());
        let mut far = Connection::new(&config, &paths, generator);
        (far.first, far.generations) = (self.first, self.generations);
        self.exchange_receiver(&mut far);
        far
    }

    /// Takes the receiving end back.
    pub fn reunite(&mut self, mut far: Connection) {
        self.exchange_receiver(&mut far);
    }

    fn exchange_receiver(&mut self, other: &mut Connection) {
        std::mem::swap(&mut self.data, &mut other.data);
        std::mem::swap(&mut self.pushed, &mut other.pushed);
        std::mem::swap(&mut self.completed, &mut other.completed);
        for (subflow, other) in self.subflows.iter_mut().zip(&mut other.subflows) {
            std::mem::swap(&mut subflow.receiver, &mut other.receiver);
        }
        (self.touched, other.touched) = (ALL, ALL);
    }
}
