//! The thread that carries packets: out of devices, through the network, into devices.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use narrows_net::{Delivery, Nanos, Network, RouteId};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::prctl::set_timerslack;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeSpec;

use crate::buffers::Buffers;
use crate::fitness::Record;
use crate::packet::{self, Parsed};
use crate::tap::{Direction, Port};
use crate::{Fitness, Packet, Tap};

/// Packets that are read from a device before the others have their turn.
const BATCH: usize = 32;

/// Something that the thread shall do.
pub type Work = Box<dyn FnOnce(&mut Carrier) + Send>;

/// Where a packet goes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub route: RouteId,
    pub port: usize,
    pub strips_mptcp: bool,
}

/// What the thread works with.
pub struct Carrier {
    start: Instant,
    network: Network<Packet>,
    buffers: Buffers,
    routes: HashMap<(IpAddr, IpAddr), Target>,
    ports: Arc<[Port]>,
    taps: Vec<Tap>,
    record: Record,
    /// Since when it is awake: it should have been, if it woke late from a sleep that had an end.
    awake: Nanos,
    /// When each port's device was last seen empty.
    empty: Vec<Nanos>,
    stopped: bool,
}

impl Carrier {
    /// Model time 0 is at `start`.
    pub fn new(
        start: Instant,
        mut network: Network<Packet>,
        ports: Vec<Port>,
        routes: HashMap<(IpAddr, IpAddr), Target>,
        taps: Vec<Tap>,
    ) -> Carrier {
        network.keep_lost();
        let mtu = ports.iter().map(|port| port.mtu).max().unwrap_or(0);
        Carrier {
            start,
            network,
            buffers: Buffers::new(mtu as usize),
            routes,
            taps,
            record: Record::new(0),
            awake: 0,
            empty: vec![0; ports.len()],
            ports: ports.into(),
            stopped: false,
        }
    }

    /// Carries packets and does the work it is given until it is stopped.
    pub fn carry(&mut self, bell: &EventFd, work: &mpsc::Receiver<Work>) {
        // Timers are exact to the nanosecond, not to 50 µs.
        set_timerslack(1).ok();
        go_first(First::Carrier);
        let ports = self.ports.clone();
        let mut open: Vec<usize> = (0..ports.len()).collect();
        let wait_for = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut polled = vec![wait_for(bell.as_fd())];
        polled.extend(ports.iter().map(|port| wait_for(port.tun.as_fd())));
        let mut more = false;
        while !self.stopped {
            let now = self.deliver();
            let due = self.network.next_time();
            let wait = match due {
                _ if more => Some(0),
                due => due.map(|due| due.saturating_sub(now)),
            };
            let timeout = wait.map(|wait| TimeSpec::from(Duration::from_nanos(wait)));
            let sleeps = sleeps();
            match ppoll(&mut polled, timeout, None) {
                Err(Errno::EINTR) => continue,
                polled => polled.expect("ppoll waits"),
            };
            // What was there before it slept would have kept it awake.
            if sleeps != self::sleeps() {
                let now = self.now();
                self.awake = due.map_or(now, |due| now.min(due));
            }
            let is_ready = |polled: &PollFd| polled.any() != Some(false);
            if is_ready(&polled[0]) {
                bell.read().ok();
                work.try_iter().for_each(|work| work(self));
            }
            more = false;
            if polled[1..].iter().any(is_ready) {
                // Where several wait, none may always be the first to enter a full queue.
                open.reverse();
                polled[1..].reverse();
            }
            for n in (0..open.len()).rev() {
                let port = open[n];
                if !is_ready(&polled[n + 1]) {
                    self.empty[port] = now;
                    continue;
                }
                match self.read(port) {
                    Some(filled) => more |= filled,
                    None => {
                        open.remove(n);
                        polled.remove(n + 1);
                    }
                }
            }
        }
    }

    /// What is left at the end.
    pub fn end(self) -> (Network<Packet>, Fitness) {
        let fitness = self.fitness();
        (self.network, fitness)
    }

    fn now(&self) -> Nanos {
        self.start.elapsed().as_nanos() as Nanos
    }

    /// Writes what has arrived by now, and returns this time: everything before it has happened.
    pub fn deliver(&mut self) -> Nanos {
        loop {
            let now = self.now();
            match self.network.advance(now) {
                Some(delivery) => self.write(now, &delivery),
                None => return now,
            }
        }
    }

    fn write(&mut self, now: Nanos, delivery: &Delivery<Packet>) {
        let (bytes, to) = self.buffers.packet(delivery.payload);
        if delivery.ce {
            packet::mark(bytes);
        }
        let port = &self.ports[to];
        let written = (&*port.tun).write(bytes).is_ok();
        if written {
            record(&mut self.taps, now, port, Direction::Got, bytes);
        }
        self.record.delivered(&self.network, delivery, written.then_some(now));
        self.buffers.give_back(delivery.payload);
    }

    /// Takes in a batch of what a host sent. Whether there may be more; none: the device is gone.
    fn read(&mut self, port: usize) -> Option<bool> {
        for _ in 0..BATCH {
            let packet = self.buffers.take();
            let read = (&*self.ports[port].tun).read(self.buffers.space(packet));
            match read {
                Ok(length) => self.accept(port, packet, length),
                Err(error) => {
                    self.buffers.give_back(packet);
                    match error.kind() {
                        ErrorKind::WouldBlock => {
                            self.empty[port] = self.now();
                            return Some(false);
                        }
                        ErrorKind::Interrupted => {}
                        _ => return None,
                    }
                }
            }
        }
        Some(true)
    }

    /// A packet that was read enters the network.
    fn accept(&mut self, port: usize, packet: Packet, length: usize) {
        let now = self.deliver();
        let seen = self.empty[port].max(self.awake);
        self.record.reading.record(now.saturating_sub(seen));
        let bytes = &mut self.buffers.space(packet)[..length];
        record(&mut self.taps, now, &self.ports[port], Direction::Sent, bytes);
        let Some(Parsed { from, to, header }) = packet::parse(bytes) else {
            self.record.malformed += 1;
            return self.buffers.give_back(packet);
        };
        let Some(&target) = self.routes.get(&(from, to)) else {
            self.record.unrouted += 1;
            return self.buffers.give_back(packet);
        };
        if target.strips_mptcp {
            packet::strip_mptcp(bytes);
        }
        self.buffers.fill(packet, length, target.port);
        self.network.enqueue(now, target.route, header, packet);
        // What was dropped since the last packet entered, and perhaps this one.
        for lost in self.network.drain_lost() {
            self.buffers.give_back(lost);
        }
        debug_assert_eq!(self.buffers.used(), self.network.packets(), "a buffer leaks");
    }

    /// The network, between two packets.
    pub fn network(&mut self) -> &mut Network<Packet> {
        &mut self.network
    }

    /// Counts anew.
    pub fn reset(&mut self) {
        let now = self.deliver();
        self.network.reset_counters();
        self.record = Record::new(now);
    }

    /// How well it went so far.
    pub fn fitness(&self) -> Fitness {
        self.record.fitness(self.buffers.len())
    }

    /// Ends [`Carrier::carry`].
    pub fn stop(&mut self) {
        self.stopped = true;
    }
}

/// Who goes before whom among the threads that go before all ordinary ones.
#[derive(Clone, Copy)]
pub enum First {
    /// A stack in user space.
    EndPoints = 1,
    /// The thread that carries packets, in whose writes the kernel's TCP runs.
    Carrier,
}

/// This thread runs before all ordinary ones from now on. On two busy cores the 99th percentile of a
/// carrier's lateness is 0.3 ms with it, 4 ms at the best ordinary priority, and 6 ms without. Where it is
/// not allowed, fitness shows the effect.
pub fn go_first(first: First) {
    let (priority, policy) = (first as i32, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK);
    // Not by libc: musl's function refuses. The kernel's struct sched_param is the priority.
    // SAFETY: 0 is this thread, and the priority is only read.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
}

/// How often this thread has gone to sleep.
fn sleeps() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.voluntary_context_switches())
}

fn record(taps: &mut [Tap], now: Nanos, port: &Port, direction: Direction, bytes: &[u8]) {
    let here = |tap: &&mut Tap| {
        tap.host == port.host && tap.device.is_none_or(|device| device == port.device)
    };
    for tap in taps.iter_mut().filter(here) {
        (tap.see)(now, port.device, direction, bytes);
    }
}
