//! A run of a scenario on this machine's kernel, in real time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use narrows_emu::{Testbed, Wire};
use narrows_kernel::mptcp::{self, Endpoint};
use narrows_net::Nanos;
use narrows_sim::capture::Flow as Handle;
use narrows_sim::{ConnId, Generator, UdpId};

use super::capture::Capture;
use super::change::change;
use super::controls::{self, Controls, kernel};
use super::plan::{Plan, RECEIVER, SENDER};
use super::prepare::prepare;
use super::sample::{Sampler, Sender, Snapshot};
use super::sources::{Application, PORT, Sources, Working};
use crate::Error;
use crate::algorithm::Algorithm;
use crate::caught::caught;
use crate::host::Host;
use crate::metrics::{FlowState, Recorder, Run};
use crate::scenario::{FlowKind, Happening, Scenario};
use crate::series::INTERVAL;
use crate::stats::round;
use crate::summary::Fitness;

/// Samples in a row that may show a subflow which does not run what it should: one that has just
/// joined, perhaps.
const PATIENCE: u32 = 10;

/// What one thread can carry, bit/s: links that are faster in sum are not worth trying.
const MAX_RATE: u64 = 1_000_000_000;

/// Runs `scenario` with `seed`, which is that of the network and of the sources; `control` replaces
/// the law of the connection under test. Samples for a series are kept if `series` is set; packets
/// are written down if there is a `capture`.
///
/// # Errors
/// What this kernel cannot do, [`Error::Interrupted`] once `stop` is set, a connection that fails, a
/// capture that cannot be written, or [`Error::Fault`]. Nothing is left in the kernel.
pub fn run(
    scenario: &Scenario,
    control: Option<Algorithm>,
    seed: u64,
    series: bool,
    capture: Option<&mut Capture>,
    stop: &AtomicBool,
) -> Result<Run, Error> {
    caught(|| emulate(scenario, control, seed, series, capture, stop)).unwrap_or_else(|message| {
        let control = control.or(scenario.test.and_then(|test| scenario.flows[test].control));
        let cc = control.map_or("-".into(), |control| control.to_string());
        Err(Error::Fault { scenario: scenario.name.clone(), cc, seed, message })
    })
}

/// Checks what can be checked without this kernel: whether any could be given `scenario`.
///
/// # Errors
/// What is too fast for real time, or what Linux does not have.
pub fn check(scenario: &Scenario) -> Result<(), Error> {
    possible(scenario)?;
    Plan::new(scenario, 0).map(drop)
}

fn emulate(
    scenario: &Scenario,
    control: Option<Algorithm>,
    seed: u64,
    series: bool,
    mut capture: Option<&mut Capture>,
    stop: &AtomicBool,
) -> Result<Run, Error> {
    let algorithm = |index: usize| match control {
        Some(control) if scenario.test == Some(index) => Some(control),
        _ => scenario.flows[index].control,
    };
    possible(scenario)?;
    let plan = Plan::new(scenario, seed)?;
    let wanted: Vec<(String, Algorithm)> = (0..scenario.flows.len())
        .filter_map(|index| match (algorithm(index)?, control) {
            (algorithm, Some(_)) if scenario.test == Some(index) => {
                Some(("--cc".into(), algorithm))
            }
            (algorithm, _) => Some((place(scenario, index, "cc"), algorithm)),
        })
        .collect();
    // Dropped in the other order: the controls go when no socket is left.
    let _controls = Controls::provide(&wanted)?;
    let testbed = Testbed::new(&plan.hosts).map_err(kernel)?;
    prepare(scenario, &plan, &testbed, SENDER)?;
    let hosts: Vec<&narrows_emu::Host> = testbed.hosts().collect();
    let sources = Sources::open(applications(scenario, &plan, &hosts, seed, &algorithm))?;
    let senders = scenario.flows.iter().zip(&plan.flows).enumerate();
    let senders = senders.map(|(index, (flow, at))| Sender {
        name: flow.name.clone(),
        host: at.hosts[SENDER],
        addresses: at.paths.iter().map(|path| path.ends[SENDER].v4.into()).collect(),
        algorithm: algorithm(index),
    });
    let sampler = Sampler::new(hosts.clone(), senders.collect());
    let taps = capture.as_mut().map(|capture| capture.taps(&plan)).transpose()?;
    let taps = taps.unwrap_or_default();
    let wire = testbed.start(plan.network.clone(), &plan.ways, taps).map_err(kernel)?;
    let began = Instant::now() - Duration::from_nanos(wire.now());
    let working = sources.start(began);
    let mut running = Running { scenario, plan: &plan, hosts, wire, working, sampler, wrong: 0 };

    let mut events = scenario.events.iter().peekable();
    let mut recorder = Recorder::new(scenario, series);
    let mut due = 0;
    while due < scenario.end() {
        if due == scenario.warmup {
            running.wire.reset();
            recorder.begin(running.wire.now(), &running.look(false)?);
        }
        let next = (due + INTERVAL).min(scenario.end());
        // The analysis begins at the end of the warm-up.
        let next = if due < scenario.warmup { next.min(scenario.warmup) } else { next };
        while let Some(event) = events.next_if(|event| event.at < next) {
            running.wait(event.at, stop)?;
            running.happen(&event.what)?;
        }
        running.wait(next, stop)?;
        due = next;
        let sample = running.look(series)?;
        recorder.sample(running.wire.now(), &sample);
        if due > scenario.warmup {
            running.check(due)?;
        }
    }
    let (last, now) = (running.look(true)?, running.wire.now());
    let Running { wire, mut working, .. } = running;
    working.stop()?;
    let (_, measured) = wire.stop().map_err(kernel)?;
    if let Some(capture) = capture {
        capture.finish()?;
    }
    let cc = |flow| algorithm(flow).map(|algorithm| algorithm.to_string());
    let mut run = recorder.finish(now, &last, Host::Kernel, seed, cc);
    run.summary.fitness = Some(fitness(scenario, &measured));
    Ok(run)
}

/// A field of a flow, for messages.
fn place(scenario: &Scenario, flow: usize, field: &str) -> String {
    format!("{}: flows.{}.{field}", scenario.name, scenario.flows[flow].name)
}

/// The flows' applications, at their hosts.
fn applications<'a>(
    scenario: &'a Scenario,
    plan: &'a Plan,
    hosts: &'a [&'a narrows_emu::Host],
    seed: u64,
    algorithm: &'a impl Fn(usize) -> Option<Algorithm>,
) -> impl Iterator<Item = Application<'a>> {
    // The simulator counts its connections and its UDP flows apart.
    let (mut connections, mut udp) = (0, 0);
    scenario.flows.iter().zip(&plan.flows).enumerate().map(move |(index, (flow, at))| {
        let number = |counter: &mut u32| {
            *counter += 1;
            *counter - 1
        };
        let handle = match flow.kind {
            FlowKind::Udp => Handle::Udp(UdpId(number(&mut udp))),
            FlowKind::Tcp | FlowKind::Mptcp => Handle::Connection(ConnId(number(&mut connections))),
        };
        let end = |end: usize| {
            let address = at.paths[0].ends[end].v4;
            (hosts[at.hosts[end]], SocketAddr::new(address.into(), PORT))
        };
        let default = flow.default_buffer(&scenario.links);
        let given = |buffer: u64| (buffer != default).then_some(buffer);
        Application {
            name: &flow.name,
            kind: flow.kind,
            source: flow.source,
            generator: Generator::new(seed, handle, flow.source, flow.active.clone()),
            control: algorithm(index).map(controls::name),
            from: end(SENDER),
            to: end(RECEIVER),
            buffer: flow.send_buffer,
            send_buffer: given(flow.send_buffer),
            recv_buffer: given(flow.recv_buffer),
            mtu: at.paths[0].mtu,
        }
    })
}

/// A run that is under way. Dropped in this order: sources first, then what carries their packets.
struct Running<'a> {
    scenario: &'a Scenario,
    plan: &'a Plan,
    hosts: Vec<&'a narrows_emu::Host>,
    working: Working,
    wire: Wire,
    sampler: Sampler<'a>,
    /// Samples in a row that showed a subflow which does not run what it should.
    wrong: u32,
}

impl Running<'_> {
    /// Waits until a time of the run.
    fn wait(&mut self, until: Nanos, stop: &AtomicBool) -> Result<(), Error> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            if self.working.failed() {
                let message = "the sources have ended";
                self.working.stop()?;
                return Err(Error::input(&self.scenario.name, message));
            }
            match until.checked_sub(self.wire.now()) {
                None | Some(0) => return Ok(()),
                Some(rest) => sleep(Duration::from_nanos(rest.min(INTERVAL))),
            }
        }
    }

    /// The flows as they are now, and with `links` the queues and what links counted.
    fn look(&mut self, links: bool) -> Result<Snapshot, Error> {
        self.sampler.look()?;
        let mut snapshot = Snapshot::default();
        if links {
            let links = self.plan.links.clone();
            let tell = move |network: &mut narrows_net::Network<_>, now| {
                let queue = |&link: &_| network.queue_delay(link, now);
                let queues: Vec<Nanos> = links.iter().map(queue).collect();
                let counters = links.iter().map(|&link| network.counters(link).clone());
                (queues, counters.collect::<Vec<_>>())
            };
            (snapshot.queues, snapshot.counters) = self.wire.with(tell).map_err(kernel)?;
        }
        for flow in 0..self.scenario.flows.len() {
            let received = self.working.received(flow);
            snapshot.flows.push(FlowState {
                delivered: received.bytes.load(Ordering::Relaxed),
                completed: received.completed.get().copied(),
                ..self.sampler.flow(flow)
            });
        }
        Ok(snapshot)
    }

    /// Once a second, and while it is so: does each subflow run what it should?
    fn check(&mut self, now: Nanos) -> Result<(), Error> {
        if self.wrong == 0 && now % narrows_net::SECOND != 0 {
            return Ok(());
        }
        match self.sampler.wrong()? {
            None => self.wrong = 0,
            Some(wrong) if self.wrong == PATIENCE => {
                return Err(Error::input(&self.scenario.name, wrong));
            }
            Some(_) => self.wrong += 1,
        }
        Ok(())
    }

    /// Lets something happen now.
    fn happen(&mut self, what: &Happening) -> Result<(), Error> {
        match what {
            Happening::PathLost(flow, path) => self.lose(*flow, *path),
            Happening::PathAdded(flow, path) => self.add(*flow, *path),
            _ => change(&self.wire, self.scenario, &self.plan.links, what),
        }
    }

    /// The sender loses the address of a path.
    fn lose(&mut self, flow: usize, path: usize) -> Result<(), Error> {
        // What its socket counted.
        self.sampler.look()?;
        let gone = self.endpoints(flow, path);
        self.at_sender(flow, || {
            let known = mptcp::endpoints()?;
            for endpoint in known.iter().filter(|known| gone.iter().any(|gone| gone.id == known.id))
            {
                mptcp::remove_endpoint(endpoint.id)?;
            }
            // Where the connection began there may be another, which is no endpoint.
            if path == 0 { mptcp::remove_first(gone[0].address) } else { Ok(()) }
        })
    }

    /// The sender has the address of a path again.
    fn add(&mut self, flow: usize, path: usize) -> Result<(), Error> {
        let there = self.endpoints(flow, path);
        self.at_sender(flow, || there.iter().try_for_each(mptcp::add_endpoint))
    }

    /// The endpoints that stand for a path, IPv4 first.
    fn endpoints(&self, flow: usize, path: usize) -> Vec<Endpoint> {
        let at = &self.plan.flows[flow];
        let own = at.paths[path].ends[SENDER];
        let mut all = at.endpoints(SENDER);
        all.retain(|endpoint| own.iter().any(|address| address == endpoint.address));
        if all.is_empty() {
            // A first path needs none to begin with.
            let (id, address) = (path as u8 + 1, IpAddr::V4(own.v4));
            all.push(Endpoint { id, address, port: 0, interface: 0, flags: Endpoint::SUBFLOW });
        }
        all
    }

    /// Does something to MPTCP at the sender of a flow.
    fn at_sender(
        &self,
        flow: usize,
        work: impl FnOnce() -> io::Result<()> + Send,
    ) -> Result<(), Error> {
        let done = self.hosts[self.plan.flows[flow].hosts[SENDER]].run(work);
        let place = || place(self.scenario, flow, "routes");
        done.and_then(|done| done).map_err(|error| Error::input(place(), error))
    }
}

/// How far the wire may be late: this share of the time a full queue takes to drain.
const LATE: f64 = 0.1;
/// How far a link may be off its rate in a second.
const OFF: f64 = 0.01;

/// How well the wire kept real time, held against the smallest queue of the scenario.
pub fn fitness(scenario: &Scenario, measured: &narrows_emu::Fitness) -> Fitness {
    let queue = scenario.links.iter().map(|link| link.full_queue()).min().unwrap_or(0);
    let ms = |time: Nanos| time as f64 / 1e6;
    let (p99, limit) = (ms(measured.lateness.p99), LATE * ms(queue));
    let why = if p99 > limit {
        Some(format!("p99 {p99:.1} ms late, at most {limit:.1} ms are fit"))
    } else if measured.worst_second > OFF {
        Some(format!("a second {:.1} % off the rate", measured.worst_second * 100.0))
    } else if measured.refused > 0 {
        Some(format!("{} packets refused by a device", measured.refused))
    } else {
        None
    };
    Fitness {
        lateness_p50_ms: round(ms(measured.lateness.p50)),
        lateness_p99_ms: round(p99),
        lateness_max_ms: round(ms(measured.lateness.max)),
        worst_second: round(measured.worst_second),
        fit: why.is_none(),
        why,
    }
}

/// Refuses what is too large for real time.
fn possible(scenario: &Scenario) -> Result<(), Error> {
    let rate = scenario.links.iter().fold(0u64, |sum, link| sum.saturating_add(link.mean_rate()));
    if rate > MAX_RATE {
        let message = format!(
            "links of {:.1} Gbit/s in sum; in real time one core carries about {} Gbit/s",
            rate as f64 / 1e9,
            MAX_RATE / 1_000_000_000
        );
        return Err(Error::input(&scenario.name, message));
    }
    Ok(())
}
