//! A run of a scenario on this machine's kernel, in real time.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use narrows_emu::{Packet, Testbed, Wire};
use narrows_kernel::Settings;
use narrows_mptcp::pm::{self, Endpoint};
use narrows_net::{Nanos, Network, SECOND};
use narrows_sim::Detection;
use narrows_traffic::FlowId;
use narrows_traffic::{ConnId, Generator, Scheduler, Signal, TcpConfig, UdpId};

use super::ID;
use super::app::Program;
use super::capture::Capture;
use super::change::change;
use super::controls::{self, Controls, kernel};
use super::plan::{FlowPlan, Plan, RECEIVER, SENDER};
use super::prepare::prepare;
use super::sample::{Sampler, Sender, Snapshot};
use super::sources::{Application, Cpu, PORT, Sources, Working};
use super::user_space::{Built, Connections, UserSpace};
use crate::Error;
use crate::algorithm::Algorithm;
use crate::detection::Trial;
use crate::hosts::world::{World, play};
use crate::hosts::{App, Job};
use crate::measured::Observed;
use crate::recorder::Run;
use crate::scenario::{EventKind, Flow, FlowKind, Scenario};
use crate::series::INTERVAL;
use crate::summary::Fitness;
use narrows_stats::round;

/// Samples in a row that may show a subflow which does not run what it should: one that has just
/// joined, perhaps.
const PATIENCE: u32 = 10;

/// Runs `job`. Its seed is that of the network, of the background and of the sources. All end points are
/// the kernel's but those of `others`.
///
/// # Errors
/// What this kernel cannot do, [`Error::Interrupted`] once `job.stop` is set, a connection that fails, or
/// a capture that cannot be written.
pub fn emulate(job: Job, others: Option<&UserSpace>) -> Result<Run, Error> {
    let algorithms: Vec<Option<Algorithm>> =
        (0..job.scenario.flows.len()).map(|flow| job.algorithm(flow)).collect();
    let other = |flow: usize| others.is_some_and(|others| others.flows.contains(&flow));
    let kernels: Vec<Option<Algorithm>> =
        (0..).zip(&algorithms).map(|(flow, of)| of.filter(|_| !other(flow))).collect();
    let wanted: Vec<_> =
        job.by_flow().filter(|(flow, _)| !other(*flow)).map(|(_, wanted)| wanted).collect();
    let host = others.map_or(ID, |others| others.host);
    let Job { scenario, seed, series, capture, app, live, stop, .. } = job;
    let mut scenario = scenario.drawn(seed);
    if let Some(test) = scenario.test {
        let asked = scenario.asked_signal().unwrap_or(Signal::Rtt);
        let signal = others.map_or(asked, |others| others.signal);
        scenario.to_mut().flows[test].tcp.signal = signal;
    }
    let scenario = &*scenario;
    let signal = match others {
        None => super::signal(scenario)?,
        Some(_) => narrows_kernel::Signal::default(),
    };
    // As the kernel sees it.
    let mut stacks = scenario.clone();
    for flow in others.iter().flat_map(|others| &others.flows) {
        stacks.flows[*flow].kind = FlowKind::Udp;
    }
    let plan = Plan::new(scenario, seed)?;
    let mut capture = capture.map(|request| Capture::new(scenario, request)).transpose()?;
    // Dropped in the other order: the controls go when no socket is left.
    let settings = Settings { params: scenario.params, signal };
    let controls = Controls::provide(&wanted, &settings, Some(stop))?;
    let repaired = controls.repaired()?;
    let testbed = Testbed::new(&plan.hosts).map_err(kernel)?;
    prepare(&stacks, &plan, &testbed, SENDER, signal)?;
    let hosts: Vec<&narrows_emu::Host> = testbed.hosts().collect();
    let program = match app.zip(scenario.test) {
        Some((app, test)) => {
            let begins = scenario.flows[test].active[0].0;
            Some(Replaced::new(app, test, begins, &plan, &hosts, algorithms[test], stop)?)
        }
        None => None,
    };
    let generator = |flow: usize| {
        let Flow { source, active, .. } = &scenario.flows[flow];
        Generator::new(seed, handle(scenario, flow), *source, active.clone())
    };
    let built = Built { scenario, plan: &plan, hosts: &hosts, generator: &generator };
    let others = others.map(|others| (others.open)(&built)).transpose()?;
    let applications = applications(&built, &kernels);
    let own = |flow| !other(flow) && program.as_ref().is_none_or(|program| program.flow != flow);
    let applications = applications.enumerate().map(|(flow, app)| own(flow).then_some(app));
    let sources = Sources::open(applications)?;
    let sampler = Sampler::new(hosts.clone(), senders(scenario, &plan, &kernels));
    let taps = capture.as_mut().map(|capture| capture.taps(&plan)).transpose()?;
    let taps = taps.unwrap_or_default();
    let wire = testbed.start(plan.network.clone(), &plan.routes, taps).map_err(kernel)?;
    let began = Instant::now() - Duration::from_nanos(wire.now());
    let working = sources.start(began);
    let mut running = Running {
        scenario,
        plan: &plan,
        hosts: hosts.clone(),
        program,
        working,
        others,
        wire,
        sampler,
        began: [None; 2],
        wrong: 0,
        checked: 0,
    };
    if let Some(others) = &mut running.others {
        others.start(began)?;
    }

    let recorder = play(&mut running, scenario, series, live, INTERVAL, stop)?;
    let (now, mut last) = running.snapshot(true)?;
    let flows = 0..scenario.flows.len();
    last.messages = flows.map(|flow| running.working.progress(flow).messages()).collect();
    let cc = |flow: usize| algorithms[flow].map(|algorithm| algorithm.to_string());
    let control = scenario.test.and_then(|test| algorithms[test]?.ours());
    let detector = control.map(|control| control.detector).filter(|detector| detector.decides());
    let log = running.decided();
    let trial = detector.map(|detector| Trial { scenario, detector, log });
    let mut run = recorder.finish(now, &last, host, seed, cc, trial);
    let repaired = controls.repaired()? - repaired;
    let (ran, waited) = (running.busiest(|cpu| cpu.ran), running.busiest(|cpu| cpu.waited));
    let failed = running.others.as_ref().and_then(|others| others.failed());
    let ends = failed.or_else(|| odd_ends(ran, waited, repaired, running.sampler.absurd()));
    run.summary.fitness = Some(fitness(scenario, &running.wire.fitness(), ends));
    run.notes.extend(simulators(&stacks));
    run.notes.extend(running.others.iter().flat_map(|others| others.notes()));
    let failed: Vec<_> = running.program.iter_mut().flat_map(Replaced::failed).collect();
    let nothing = run.summary.test.as_ref().is_some_and(|test| test.goodput_mbps == 0.0);
    if let Some((option, message)) = failed.first().filter(|_| nothing) {
        return Err(Error::input(*option, message));
    }
    run.notes.extend(failed.into_iter().map(|(option, message)| format!("{option}: {message}")));
    running.working.stop()?;
    if let Some(others) = &mut running.others {
        others.stop()?;
    }
    running.wire.stop().map_err(kernel)?;
    if let Some(mut capture) = capture {
        capture.finish()?;
    }
    Ok(run)
}

/// A field of a flow, for messages.
fn place(scenario: &Scenario, flow: usize, field: &str) -> String {
    format!("{}: flows.{}.{field}", scenario.name, scenario.flows[flow].name)
}

/// Which flow it is to its application. The simulator counts its connections and its UDP flows apart.
fn handle(scenario: &Scenario, flow: usize) -> FlowId {
    let is_udp = |flow: &Flow| flow.kind == FlowKind::Udp;
    let udp = is_udp(&scenario.flows[flow]);
    let before = scenario.flows[..flow].iter().filter(|of| is_udp(of) == udp).count() as u32;
    if udp { FlowId::Udp(UdpId(before)) } else { FlowId::Connection(ConnId(before)) }
}

/// The flows' applications, at their hosts.
fn applications<'a>(
    at: &'a Built<'a>,
    algorithms: &'a [Option<Algorithm>],
) -> impl Iterator<Item = Application<'a>> {
    let Built { scenario, plan, hosts, generator } = at;
    scenario.flows.iter().zip(&plan.flows).enumerate().map(move |(index, (flow, at))| {
        let end = |end: usize| {
            let address = at.paths[0].ends[end].v4;
            (hosts[at.hosts[end]], SocketAddr::new(address.into(), PORT))
        };
        let default = flow.default_buffer(&scenario.links);
        let given = |buffer: u64| (buffer != default).then_some(buffer);
        Application {
            name: &flow.name,
            kind: flow.kind,
            generator: generator(index),
            control: algorithms[index].map(controls::name),
            from: end(SENDER),
            to: end(RECEIVER),
            buffer: flow.send_buffer,
            send_buffer: given(flow.send_buffer),
            recv_buffer: given(flow.recv_buffer),
            mtu: at.paths[0].mtu,
        }
    })
}

/// The senders of all flows.
fn senders(scenario: &Scenario, plan: &Plan, algorithms: &[Option<Algorithm>]) -> Vec<Sender> {
    let flows = scenario.flows.iter().zip(&plan.flows).enumerate();
    let sender = |(index, (flow, at)): (usize, (&Flow, &FlowPlan))| Sender {
        name: flow.name.clone(),
        host: at.hosts[SENDER],
        addresses: at.paths.iter().map(|path| path.ends[SENDER].v4.into()).collect(),
        algorithm: algorithms[index],
    };
    flows.map(sender).collect()
}

/// The program in place of the source of the flow under test.
struct Replaced<'a> {
    app: &'a App,
    /// The flow under test.
    flow: usize,
    /// When it starts.
    begins: Nanos,
    sender: &'a narrows_emu::Host,
    /// Address of the receiver.
    to: Ipv4Addr,
    server: Option<Program>,
    client: Option<Program>,
}

impl<'a> Replaced<'a> {
    /// The server is there, and what both hosts send is under the flow's control.
    fn new(
        app: &'a App,
        flow: usize,
        begins: Nanos,
        plan: &Plan,
        hosts: &[&'a narrows_emu::Host],
        control: Option<Algorithm>,
        stop: &AtomicBool,
    ) -> Result<Replaced<'a>, Error> {
        let FlowPlan { hosts: ends, paths } = &plan.flows[flow];
        let [sender, receiver] = ends.map(|host| hosts[host]);
        for host in [sender, receiver] {
            let Some(control) = control else { continue };
            controls::make_default(host, "--app", control)?;
        }
        let to = paths[0].ends[RECEIVER].v4;
        let server = app.serve(receiver, to, stop)?;
        Ok(Replaced { app, flow, begins, sender, to, server, client: None })
    }

    /// The options whose programs failed, and how.
    fn failed(&mut self) -> Vec<(&'static str, String)> {
        let programs = [("--serve", &mut self.server), ("--app", &mut self.client)];
        let message = programs
            .into_iter()
            .filter_map(|(option, program)| Some((option, program.as_mut()?.failed()?)));
        message.collect()
    }
}

/// A run that is under way. Dropped in this order: who sends first, then what carries the packets.
struct Running<'a> {
    scenario: &'a Scenario,
    plan: &'a Plan,
    hosts: Vec<&'a narrows_emu::Host>,
    program: Option<Replaced<'a>>,
    working: Working,
    others: Option<Box<dyn Connections + 'a>>,
    wire: Wire,
    sampler: Sampler<'a>,
    /// What each thread that has end points had had of a CPU when the warm-up ended.
    began: [Option<Cpu>; 2],
    /// Samples in a row that showed a subflow which does not run what it should.
    wrong: u32,
    /// When that was last looked at.
    checked: Nanos,
}

impl<'a> Running<'a> {
    /// Fails if nothing more can come, and starts the program in place of a source if its time is before
    /// `time`.
    fn go_on(&mut self, time: Nanos) -> Result<(), Error> {
        if self.working.failed() {
            let message = "the sources have ended";
            self.working.stop()?;
            return Err(Error::input(&self.scenario.name, message));
        }
        let now = self.wire.now();
        // What ends before the analysis begins has nothing to analyse.
        if now < self.scenario.warmup {
            let failed = self.program.iter_mut().flat_map(Replaced::failed).next();
            if let Some((option, message)) = failed {
                self.working.stop()?;
                return Err(Error::input(option, message));
            }
        }
        match &mut self.program {
            Some(program) if program.client.is_none() && program.begins < time.min(now + 1) => {
                program.client = Some(program.app.start(program.sender, program.to)?);
            }
            _ => {}
        }
        Ok(())
    }

    /// The flows as they are now, and when that is; with `links` also the queues and what links
    /// counted.
    fn snapshot(&mut self, links: bool) -> Result<(Nanos, Snapshot), Error> {
        self.sampler.look()?;
        let now = self.wire.now();
        if let Some(test) = self.scenario.test {
            self.sampler.detect(test, now)?;
        }
        if let Some(others) = &mut self.others {
            others.look(now);
        }
        let mut snapshot = Snapshot::default();
        for flow in 0..self.scenario.flows.len() {
            if let Some(state) = self.others.as_ref().and_then(|others| others.flow(flow)) {
                snapshot.flows.push(state.clone());
                continue;
            }
            let progress = self.working.progress(flow);
            let mut state = self.sampler.flow(flow);
            // What a program reads is unknown: use what is acknowledged.
            if self.program.as_ref().is_none_or(|program| program.flow != flow) {
                state.delivered = progress.received.load(Ordering::Relaxed);
                state.completed = progress.completed.get().copied();
                state.acknowledged = progress.acknowledged.get().copied();
            }
            snapshot.flows.push(state);
        }
        if links {
            let links = self.plan.links.clone();
            let snapshot_of = move |network: &mut Network<Packet>, now| {
                let queues = links.iter().map(|&link| network.queue_delay(link, now));
                let counters = links.iter().map(|&link| network.counters(link).clone());
                (queues.collect(), counters.collect())
            };
            (snapshot.queues, snapshot.counters) = self.wire.with(snapshot_of).map_err(kernel)?;
        }
        Ok((now, snapshot))
    }

    /// The connections in user space, if the flow is one of them.
    fn others_of(&mut self, flow: usize) -> Option<&mut Box<dyn Connections + 'a>> {
        self.others.as_mut().filter(|others| others.flow(flow).is_some())
    }

    /// What the detector of the connection under test decided.
    fn decided(&self) -> &Detection {
        let test = self.scenario.test.zip(self.others.as_ref());
        let other = test.and_then(|(test, others)| others.detection(test));
        other.unwrap_or_else(|| self.sampler.detection())
    }

    /// What each thread that has end points has had of a CPU.
    fn cpus(&self) -> [Option<Cpu>; 2] {
        [self.working.cpu(), self.others.as_ref().and_then(|others| others.cpu())]
    }

    /// The most that a thread with end points has had of what `of` is a time of, as a share of the
    /// scenario's.
    fn busiest(&self, of: fn(&Cpu) -> Nanos) -> f64 {
        let threads = self.cpus().into_iter().zip(self.began);
        let times = threads.filter_map(|(end, begin)| {
            Some(of(&end?).saturating_sub(of(&begin.unwrap_or_default())))
        });
        times.max().unwrap_or(0) as f64 / self.scenario.duration as f64
    }

    /// The sender loses the address of a path.
    fn lose(&mut self, flow: usize, path: usize) -> Result<(), Error> {
        // What its socket counted.
        self.sampler.look()?;
        let gone = self.endpoints(flow, path);
        self.at_sender(flow, || {
            let known = pm::endpoints()?;
            for endpoint in known.iter().filter(|known| gone.iter().any(|gone| gone.id == known.id))
            {
                pm::remove_endpoint(endpoint.id)?;
            }
            // Where the connection began there may be another, which is no endpoint.
            if path == 0 { pm::remove_first(gone[0].address) } else { Ok(()) }
        })
    }

    /// The sender has the address of a path again.
    fn add(&mut self, flow: usize, path: usize) -> Result<(), Error> {
        let there = self.endpoints(flow, path);
        self.at_sender(flow, || there.iter().try_for_each(pm::add_endpoint))
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

impl World for Running<'_> {
    fn now(&self) -> Nanos {
        self.wire.now()
    }

    fn run_until(&mut self, time: Nanos) -> Result<(), Error> {
        self.go_on(time)?;
        let program = self.program.as_ref().filter(|program| program.client.is_none());
        let next = program.map_or(time, |program| program.begins.min(time));
        let rest = next.saturating_sub(self.wire.now());
        sleep(Duration::from_nanos(rest));
        Ok(())
    }

    fn happen(&mut self, what: &EventKind) -> Result<(), Error> {
        match *what {
            EventKind::PathLost(flow, path) => match self.others_of(flow) {
                Some(others) => others.lose(flow, path),
                None => return self.lose(flow, path),
            },
            EventKind::PathAdded(flow, path) => match self.others_of(flow) {
                Some(others) => return others.add(flow, path),
                None => return self.add(flow, path),
            },
            _ => return change(&self.wire, self.scenario, &self.plan.links, what),
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.wire.reset();
        self.began = self.cpus();
    }

    fn detection(&self) -> Option<&Detection> {
        Some(self.decided())
    }

    fn look(&mut self, links: bool) -> Result<(Nanos, impl Observed), Error> {
        self.snapshot(links)
    }

    fn check(&mut self, now: Nanos) -> Result<(), Error> {
        self.go_on(now)?;
        // Once a second, and while it is so: does each subflow run what it should?
        if now <= self.scenario.warmup || self.wrong == 0 && now < self.checked + SECOND {
            return Ok(());
        }
        self.checked = now;
        match self.sampler.wrong()? {
            None => self.wrong = 0,
            Some(wrong) if self.wrong == PATIENCE => {
                return Err(Error::input(&self.scenario.name, wrong));
            }
            Some(_) => self.wrong += 1,
        }
        Ok(())
    }
}

/// How far the wire may be late: this share of the time a full queue takes to drain.
const LATE: f64 = 0.1;
/// How far a link may be off its rate in a second.
const OFF: f64 = 0.01;

/// For what share of the time the sources may wait for a CPU: meanwhile nobody writes or reads.
const STARVED: f64 = 0.1;

/// Part of the time that they may run: beyond it they, and not the links, are the limit.
const BUSY: f64 = 0.9;

/// Why the end points did not do what the scenario has them do, if they did not: a thread of them `ran`,
/// or `waited`, for so much of the time, programs `repaired` some windows, or one that was seen was `absurd`.
fn odd_ends(ran: f64, waited: f64, repaired: u64, absurd: Option<&str>) -> Option<String> {
    if ran > BUSY {
        return Some(format!("sources ran {:.0} % of the time, on one CPU", ran * 100.0));
    }
    if waited > STARVED {
        return Some(format!("sources waited {:.0} % of the time for a CPU", waited * 100.0));
    }
    let skipped = "the kernel skipped a program";
    match (absurd, repaired) {
        (Some(absurd), _) => Some(absurd.to_owned()),
        (None, 0) => None,
        (None, 1) => Some(format!("{skipped}, 1 window repaired")),
        (None, _) => Some(format!("{skipped}, {repaired} windows repaired")),
    }
}

/// How well the wire kept real time, held against the smallest queue of the scenario, and whether
/// the end points did what they should: `ends` says why not.
pub fn fitness(
    scenario: &Scenario,
    measured: &narrows_emu::Fitness,
    ends: Option<String>,
) -> Fitness {
    let queue = scenario.links.iter().map(|link| link.full_queue()).min().unwrap_or(0);
    let ms = |time: Nanos| time as f64 / 1e6;
    let (p99, limit) = (ms(measured.lateness.p99), LATE * ms(queue));
    let why = if p99 > limit {
        Some(format!("p99 {p99:.1} ms late, limit {limit:.1} ms"))
    } else if measured.worst_second > OFF {
        Some(format!("{:.1} % off the rate in one second", measured.worst_second * 100.0))
    } else if measured.refused > 0 {
        Some(format!("{} packets refused by a device", measured.refused))
    } else {
        ends
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

/// Settings of the scenario that this kernel ignores.
fn simulators(scenario: &Scenario) -> Option<String> {
    let default = TcpConfig::default();
    let used = |is: fn(&Flow, &TcpConfig) -> bool| {
        scenario.flows.iter().any(|flow| flow.kind != FlowKind::Udp && is(flow, &default))
    };
    let fields = [
        ("scheduler", used(|flow, _| flow.scheduler != Scheduler::default())),
        ("tcp.pacing", used(|flow, default| flow.tcp.pacing != default.pacing)),
        ("tcp.tso", used(|flow, default| flow.tcp.tso != default.tso)),
        ("tcp.gro", used(|flow, default| flow.tcp.gro != default.gro)),
        (
            "tcp.loss_detection",
            used(|flow, default| flow.tcp.loss_detection != default.loss_detection),
        ),
        (
            "tcp.receiver_acks",
            used(|flow, default| flow.tcp.receiver_acks != default.receiver_acks),
        ),
        ("tcp.timestamps", used(|flow, default| flow.tcp.timestamps != default.timestamps)),
        ("tcp.opener", used(|flow, default| flow.tcp.opener != default.opener)),
    ];
    let used: Vec<&str> = fields.iter().filter(|field| field.1).map(|field| field.0).collect();
    (!used.is_empty()).then(|| format!("simulator only: {}", used.join(", ")))
}

#[cfg(test)]
mod tests {
    use narrows_emu::Quantiles;
    use narrows_net::{Limit, MILLISECOND};

    use super::*;
    use crate::{Edits, load};

    #[test]
    fn a_run_is_unfit_when_it_is_late_or_off_its_rate_or_something_was_refused() {
        let mut scenario = load("sbd/nsb-2", &Edits::default()).unwrap();
        // Full, it drains in 20 ms, and no other is smaller.
        scenario.links[1].config.limit = Limit::Time(20 * MILLISECOND);
        let why = |p99: Nanos, worst_second: f64, refused: u64| {
            let lateness = Quantiles { p50: 0, p99, max: SECOND };
            let measured = narrows_emu::Fitness {
                packets: 1,
                lateness,
                reading: lateness,
                worst_second,
                worst_at: None,
                unrouted: 0,
                malformed: 0,
                refused,
                buffers: 1,
            };
            let Fitness { fit, why, .. } = fitness(&scenario, &measured, None);
            assert_eq!(fit, why.is_none());
            why.unwrap_or_default()
        };
        assert_eq!(why(2 * MILLISECOND, 0.01, 0), "");
        assert_eq!(why(2_100_000, 0.0, 0), "p99 2.1 ms late, limit 2.0 ms");
        assert_eq!(why(0, 0.011, 0), "1.1 % off the rate in one second");
        assert_eq!(why(0, 0.0, 3), "3 packets refused by a device");
    }

    #[test]
    fn a_run_is_unfit_when_its_sources_were_starved_or_its_windows_not_its_control_s() {
        let scenario = load("sbd/nsb-2", &Edits::default()).unwrap();
        let why = |waited, repaired, absurd| {
            let measured = narrows_emu::Fitness::default();
            let ends = odd_ends(0.9, waited, repaired, absurd);
            fitness(&scenario, &measured, ends).why.unwrap_or_default()
        };
        assert_eq!(why(0.1, 0, None), "");
        assert_eq!(why(0.42, 0, None), "sources waited 42 % of the time for a CPU");
        let busy = odd_ends(0.97, 0.0, 0, None);
        assert_eq!(busy.unwrap(), "sources ran 97 % of the time, on one CPU");
        assert_eq!(why(0.0, 1, None), "the kernel skipped a program, 1 window repaired");
        assert_eq!(why(0.0, 12, None), "the kernel skipped a program, 12 windows repaired");
        let absurd = "a window of 667073216 packets in mptcp, at most 120 possible";
        assert_eq!(why(0.0, 1, Some(absurd)), absurd);
    }

    #[test]
    fn fields_for_the_simulator_only_are_noted_once() {
        let mut scenario = load("sbd/nsb-2", &Edits::default()).unwrap();
        scenario.flows.iter_mut().for_each(|flow| flow.scheduler = Scheduler::default());
        assert_eq!(simulators(&scenario), None);
        scenario.flows[0].scheduler = Scheduler::RoundRobin;
        scenario.flows.iter_mut().for_each(|flow| flow.tcp.pacing = true);
        let message = "simulator only: scheduler, tcp.pacing";
        assert_eq!(simulators(&scenario).as_deref(), Some(message));
        // Of an era the windows of the laws under test hold there too.
        let set = vec![("era".into(), "linux-3.14".into())];
        let era = load("sbd/nsb-2", &Edits { set, ..Edits::default() }).unwrap();
        let message = "simulator only: scheduler, tcp.loss_detection, tcp.receiver_acks";
        assert_eq!(simulators(&era).as_deref(), Some(message));
    }
}
