//! Path management: which subflows there are, and which of them may carry data.

use narrows_laws::{Advice, MAX_PATHS, State};
use narrows_net::Nanos;

use super::connection::{ALL, Connection};
use super::scheduler::Lane;
use super::subflow::{PathSetup, Subflow};
use crate::wire::Wire;

impl Connection {
    /// Opens what may be opened now: the first path, and the others when the connection is fully
    /// established (Linux: mptcp_pm_fully_established()).
    pub(super) fn open_subflows(&mut self, wire: &mut Wire) {
        self.touched = ALL;
        let waits = |subflow: &Subflow| subflow.present && subflow.sender.is_closed();
        let by_receiver = self.is_download();
        let route = |subflow: &Subflow| {
            if by_receiver { subflow.reverse } else { subflow.sender.route() }
        };
        if self.established.is_some() {
            if self.fully_established && self.multipath {
                for subflow in self.subflows.iter_mut().filter(|s| waits(s)) {
                    let route = route(subflow);
                    subflow.sender.open(true, subflow.backup, route, wire);
                }
            }
        } else if !self.subflows.iter().any(|s| s.present && !s.sender.is_closed()) {
            if let Some(path) = self.subflows.iter().position(waits) {
                self.first = (path as u8, self.subflows[path].generation);
                wire.first = self.first;
                let route = route(&self.subflows[path]);
                self.subflows[path].sender.open(false, false, route, wire);
            }
        }
    }

    /// A subflow may carry data.
    pub(super) fn on_established(&mut self, path: usize, wire: &mut Wire) {
        self.established.get_or_insert(wire.now);
        self.last = path;
        self.update_usable(wire.now);
        self.push(path, wire);
    }

    /// A SYN arrived. If a middlebox took its options the connection is one of plain TCP (RFC
    /// 8684, section 3.7).
    pub(super) fn pass_middlebox(&mut self, path: usize, wire: &mut Wire) {
        let Subflow { sender, strips_mptcp, .. } = &mut self.subflows[path];
        if self.multipath && *strips_mptcp && !sender.joins() {
            sender.fall_back();
            (self.multipath, wire.multipath) = (false, false);
            self.fallback = true;
        }
    }

    /// A SYN/ACK arrived. If a middlebox took the option of a join, both ends reset the subflow
    /// (RFC 8684, section 3.2).
    pub(super) fn refuse_join(&mut self, path: usize) -> bool {
        let Subflow { sender, strips_mptcp, .. } = &self.subflows[path];
        let refused = *strips_mptcp && sender.joins();
        if refused {
            self.failed_joins += 1;
            self.clear(path);
        }
        refused
    }

    /// The subflow is to be used only if no regular one is usable.
    pub(super) fn is_backup(&self, path: usize) -> bool {
        let Subflow { backup, advice, .. } = self.subflows[path];
        backup || advice == Advice::Backup
    }

    /// Something changed in what may carry data: finds the subflows that the scheduler may use,
    /// and reports the state of the others to the law.
    pub(super) fn update_usable(&mut self, now: Nanos) {
        self.touched = ALL;
        let (mut regular, mut backup) = (0, 0);
        for (path, _) in self.subflows.iter().enumerate().filter(|(_, s)| s.is_active()) {
            let kind = if self.is_backup(path) { &mut backup } else { &mut regular };
            *kind |= 1 << path;
        }
        self.usable = if regular != 0 { regular } else { backup };
        for (path, subflow) in self.subflows.iter_mut().enumerate() {
            if subflow.sender.is_established() {
                let standing = match (subflow.stale, self.usable & (1 << path)) {
                    (true, _) => State::Failed,
                    (false, 0) => State::Backup,
                    (false, _) => State::Active,
                };
                subflow.sender.stand(standing, now, &mut self.controller);
            }
        }
    }

    /// Does what the law asks about a path. The last one that works is not closed.
    pub(super) fn heed(&mut self, advice: Advice, path: usize, wire: &mut Wire) {
        self.subflows[path].advice = advice;
        self.advised |= 1 << path;
        let alone = self.subflows.iter().filter(|subflow| subflow.is_active()).count() < 2;
        if advice == Advice::Close && !alone {
            self.remove_path(path, wire);
        } else {
            self.update_usable(wire.now);
        }
    }

    /// The subflow becomes a backup, or regular again, and the peer is told (MP_PRIO).
    pub fn set_backup(&mut self, path: usize, backup: bool, wire: &mut Wire) {
        self.subflows[path].backup = backup;
        self.update_usable(wire.now);
        self.push(path, wire);
    }

    /// The address of a path is lost: both ends drop the subflow at once, and what the connection
    /// has outstanding goes out on others (Linux: __mptcp_close_ssk()). False if there is none.
    pub fn remove_path(&mut self, path: usize, wire: &mut Wire) -> bool {
        if !self.subflows.get(path).is_some_and(|subflow| subflow.present) {
            return false;
        }
        self.subflows[path].sender.leave(wire.now, &mut self.controller);
        if let Some(receiver_detector) = &mut self.receiver_detector {
            receiver_detector.leave(path, wire.now);
        }
        self.clear(path);
        // Lost before it was fully established, a connection fails in Linux, and the application
        // opens another; here the next path joins all the same.
        self.fully_established |= self.established.is_some();
        if self.opened {
            self.open_subflows(wire);
        }
        if self.multipath {
            self.update_usable(wire.now);
            self.retransmit_all(wire);
        }
        true
    }

    /// A new path, in the place that a path of the same route left or else the first free one, that
    /// joins as soon as it may. Its place, or none if there is no room for it or the connection is
    /// plain TCP.
    pub fn add_path(&mut self, setup: &PathSetup, wire: &mut Wire) -> Option<usize> {
        if !self.multipath {
            return None;
        }
        let free = || self.subflows.iter().enumerate().filter(|(_, subflow)| !subflow.present);
        let free = free().find(|(_, s)| s.sender.route() == setup.forward).or(free().next());
        let free = free.map(|(path, _)| path);
        let path = free.unwrap_or(self.subflows.len());
        if path == MAX_PATHS {
            return None;
        }
        if path == self.subflows.len() {
            self.subflows.push(Subflow::new(path, setup, &self.tcp));
            self.lanes.push(Lane::default());
        } else {
            self.subflows[path].replace(path, setup, &self.tcp);
        }
        if self.opened {
            self.open_subflows(wire);
        }
        Some(path)
    }

    /// Empties a slot. What the network still has of it is of an old generation.
    fn clear(&mut self, path: usize) {
        self.subflows[path].clear(path);
        self.advised &= !(1 << path);
        self.generations &= !(0xff << (8 * path));
        self.generations |= u64::from(self.subflows[path].generation) << (8 * path);
        if self.multipath {
            self.lanes[path] = Lane::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use narrows_net::{LinkConfig, MILLISECOND, Network, Rate, SECOND};
    use narrows_traffic::{ConnId, FlowId, Generator, Source};

    use super::*;
    use crate::ConnectionConfig;

    const DELAY: Nanos = 10 * MILLISECOND;

    /// A greedy connection over two ideal paths and the network between its ends.
    struct Bench {
        connection: Connection,
        network: Network<crate::Packet>,
        now: Nanos,
    }

    impl Bench {
        fn new() -> Bench {
            let mut network = Network::new(1);
            let config = LinkConfig { rate: Rate::Infinite, delay: DELAY, ..LinkConfig::default() };
            let link = network.add_link(config).expect("a valid link");
            let route = network.add_route(&[link]).expect("a valid route");
            let setup = PathSetup {
                forward: route,
                reverse: route,
                mss: 1000,
                backup: false,
                strips_mptcp: false,
            };
            let config = ConnectionConfig {
                multipath: true,
                send_buffer: 400_000,
                ..ConnectionConfig::default()
            };
            let generator = Generator::new(
                1,
                FlowId::Connection(ConnId(0)),
                Source::Greedy,
                config.active.clone(),
            );
            let connection = Connection::new(&config, &[setup; 2], generator);
            let mut bench = Bench { connection, network, now: 0 };
            bench.act(|connection, wire| connection.on_source(wire));
            bench.run(SECOND / 2);
            bench
        }

        fn act<R>(&mut self, act: impl FnOnce(&mut Connection, &mut Wire) -> R) -> R {
            let mut wire = Wire {
                now: self.now,
                flow: 0,
                multipath: true,
                generations: self.connection.generations(),
                first: self.connection.first(),
                network: &mut self.network,
                recorder: None,
            };
            act(&mut self.connection, &mut wire)
        }

        fn run(&mut self, time: Nanos) {
            let until = self.now + time;
            while let Some(delivery) = self.network.advance(until) {
                self.now = delivery.time;
                self.act(|connection, wire| connection.on_packet(&delivery.payload, false, wire));
            }
            self.now = until;
        }

        fn sent(&self, path: usize) -> u64 {
            self.connection.subflows[path].sender.counters.sent_packets
        }
    }

    /// A law that asks for it parks a path: the scheduler may not use it, and the law's sums do not
    /// count it. When the law changes its mind it is as before.
    #[test]
    fn a_law_parks_a_path_and_takes_it_up_again() {
        let mut bench = Bench::new();
        let seen =
            |bench: &Bench| (bench.connection.usable, bench.connection.controller.path(1).state);
        assert_eq!(seen(&bench), (0b11, State::Active as u32));
        bench.act(|connection, wire| connection.heed(Advice::Backup, 1, wire));
        assert_eq!(seen(&bench), (0b01, State::Backup as u32));
        // The other one is lost: better this than none.
        bench.act(|connection, wire| connection.remove_path(0, wire));
        assert_eq!(bench.connection.usable, 0b10);
        bench.act(|connection, wire| connection.heed(Advice::None, 1, wire));
        bench.run(20 * DELAY);
        assert_eq!(seen(&bench), (0b10, State::Active as u32));
    }

    /// What is not a backup is busy all the time, of a greedy source; a backup is not, once what it had is delivered.
    #[test]
    fn a_path_that_is_made_a_backup_is_busy_no_longer() {
        let mut bench = Bench::new();
        let busy =
            |bench: &Bench| [0, 1].map(|path| bench.connection.subflows[path].busy(bench.now));
        let [before, _] = busy(&bench);
        bench.run(10 * DELAY);
        assert_eq!(busy(&bench)[0] - before, 10 * DELAY);
        bench.act(|connection, wire| connection.set_backup(1, true, wire));
        bench.run(4 * DELAY);
        let [first, second] = busy(&bench);
        bench.run(10 * DELAY);
        assert_eq!(busy(&bench), [first + 10 * DELAY, second]);
        bench.act(|connection, wire| connection.set_backup(1, false, wire));
        bench.run(10 * DELAY);
        assert!(busy(&bench)[1] > second);
    }

    /// Advice about a path that carries nothing is withdrawn by the events of others.
    #[test]
    fn a_parked_path_returns_with_another_ones_acknowledgement() {
        let mut bench = Bench::new();
        bench.act(|connection, wire| connection.heed(Advice::Backup, 1, wire));
        assert_eq!(bench.connection.usable, 0b01);
        // The law has no advice about it.
        bench.run(4 * DELAY);
        assert_eq!(bench.connection.usable, 0b11);
    }

    /// A law may close a path, but not the last: the slot is free, its generation a new one.
    #[test]
    fn a_law_closes_a_path_but_not_the_last() {
        let mut bench = Bench::new();
        bench.act(|connection, wire| connection.heed(Advice::Close, 0, wire));
        assert_eq!(bench.connection.controller.path(0).state, State::Free as u32);
        assert_eq!(bench.connection.generations(), 1);
        bench.act(|connection, wire| connection.heed(Advice::Close, 1, wire));
        assert_ne!(bench.connection.controller.path(1).state, State::Free as u32);
        let before = bench.sent(1);
        bench.run(20 * DELAY);
        assert!(bench.sent(1) > before);
        // A new path in the slot is a new join to the law.
        let setup = PathSetup {
            forward: bench.connection.subflows[1].sender.route(),
            reverse: bench.connection.subflows[1].reverse,
            mss: 1000,
            backup: false,
            strips_mptcp: false,
        };
        let (joins, before) = (bench.connection.controller.path(0).generation, bench.sent(0));
        assert_eq!(bench.act(|connection, wire| connection.add_path(&setup, wire)), Some(0));
        bench.run(20 * DELAY);
        assert_eq!(bench.connection.controller.path(0).generation, joins + 1);
        assert!(bench.sent(0) > before);
    }
}
