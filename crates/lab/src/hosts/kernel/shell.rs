//! A scenario's network for any program: the hosts of its flow under test, and no flows.

use std::fmt::Write;
use std::net::IpAddr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use narrows_emu::{Host, Testbed, Wire};
use narrows_kernel::Settings;
use narrows_net::LinkId;

use super::capture::Capture;
use super::change::change;
use super::controls::{self, Controls, kernel};
use super::plan::{Addresses, FlowPlan, Plan, RECEIVER};
use super::prepare::prepare;
use super::run::fitness;
use crate::Error;
use crate::algorithm::Algorithm;
use crate::capture::CaptureRequest;
use crate::describe::describe_link;
use crate::scenario::{Event, EventKind, Scenario};
use crate::summary::Fitness;
use crate::units::show_time;

/// The hosts' names, by end.
const NAMES: [&str; 2] = ["sender", "receiver"];

/// A scenario's network with the hosts of its flow under test. Programs in one of them, the *own*,
/// connect to the other; MPTCP is set up for that.
///
/// Dropped, it kills what runs in its hosts and removes them.
pub struct Shell {
    wire: Wire,
    testbed: Testbed,
    capture: Option<Capture>,
    /// After the hosts: then no socket is left that runs them.
    _controls: Controls,
    plan: Plan,
    /// With the flow under test alone.
    scenario: Scenario,
    /// Which of the two is the own host.
    own: usize,
}

/// The scenario with its flow under test alone: what a [`Shell`] has hosts for.
///
/// # Errors
/// No flow is under test.
pub fn alone(mut scenario: Scenario) -> Result<Scenario, Error> {
    let Some(test) = scenario.test else {
        let message = "no flow is under test, and a shell is in one of its hosts; expected a field \
                       test = \"FLOW\"";
        return Err(Error::input(&scenario.name, message));
    };
    scenario.flows = vec![scenario.flows.swap_remove(test)];
    scenario.test = Some(0);
    let of_link =
        |what: &EventKind| !matches!(what, EventKind::PathLost(..) | EventKind::PathAdded(..));
    scenario.events.retain(|event| of_link(&event.what));
    Ok(scenario)
}

impl Shell {
    /// Makes the network of `scenario`, which is [`alone`]; its time begins now. `host` is the own
    /// host's name, `seed` that of the network's chances. New connections of both hosts run
    /// `control`, or what the kernel has as its default. Packets are written down if there is a
    /// `capture`.
    ///
    /// # Errors
    /// A host that there is not, or what this kernel refuses.
    pub fn new(
        scenario: Scenario,
        host: &str,
        seed: u64,
        control: Option<Algorithm>,
        capture: Option<CaptureRequest>,
    ) -> Result<Shell, Error> {
        let Some(own) = NAMES.iter().position(|name| *name == host) else {
            let message = format!("no host \"{host}\"; expected one of: {}", NAMES.join(", "));
            return Err(Error::input("--host", message));
        };
        let mut capture = capture.map(|request| Capture::new(&scenario, request)).transpose()?;
        let plan = Plan::new(&scenario, seed)?;
        let wanted: Vec<_> = control.iter().map(|&control| ("--cc".into(), control)).collect();
        let signal = super::signal(&scenario)?;
        let settings = Settings { params: scenario.params, signal };
        let controls = Controls::provide(&wanted, &settings, None)?;
        let testbed = Testbed::new(&plan.hosts).map_err(kernel)?;
        prepare(&scenario, &plan, &testbed, own, signal)?;
        if let Some(control) = control {
            for host in testbed.hosts() {
                controls::make_default(host, "--cc", control)?;
            }
        }
        let taps = capture.as_mut().map(|capture| capture.taps(&plan)).transpose()?;
        let taps = taps.unwrap_or_default();
        let wire = testbed.start(plan.network.clone(), &plan.routes, taps).map_err(kernel)?;
        Ok(Shell { wire, testbed, capture, _controls: controls, plan, scenario, own })
    }

    /// The own host.
    pub fn own(&self) -> &Host {
        self.at(self.own)
    }

    /// The other host.
    pub fn other(&self) -> &Host {
        self.at(RECEIVER - self.own)
    }

    fn at(&self, end: usize) -> &Host {
        self.testbed.host(NAMES[end]).expect("both are made")
    }

    fn flow(&self) -> &FlowPlan {
        &self.plan.flows[0]
    }

    /// The addresses of the other host to connect to.
    pub fn server(&self) -> Addresses {
        self.flow().paths[0].ends[RECEIVER - self.own]
    }

    /// Does `work` while what the scenario lets happen to its links happens at its time.
    ///
    /// # Errors
    /// A change that the network refuses.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> Result<T, Error> {
        let (done, wait) = mpsc::channel::<()>();
        let (wire, scenario, links) = (&self.wire, &self.scenario, &self.plan.links);
        std::thread::scope(|scope| {
            let events = scope.spawn(move || follow(wire, scenario, links, &wait));
            let worked = work();
            drop(done);
            match events.join() {
                Ok(followed) => followed.map(|()| worked),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Ends it and reports how well the network kept up with the model.
    ///
    /// # Errors
    /// The network had ended before, or a capture cannot be written.
    pub fn end(self) -> Result<Fitness, Error> {
        let (_, measured) = self.wire.stop().map_err(kernel)?;
        if let Some(mut capture) = self.capture {
            capture.finish()?;
        }
        // Its programs are not the scenario's: only the network is judged.
        Ok(fitness(&self.scenario, &measured, None))
    }

    /// What a user wants to know who begins to type in it: hosts, addresses, paths, links.
    pub fn describe(&self) -> String {
        let Scenario { name, flows, links, .. } = &self.scenario;
        let (own, other) = (NAMES[self.own], NAMES[RECEIVER - self.own]);
        let mut text = format!("{name}, without its flows. You are in host {own}.\n\n");
        let mut row = |[path, own, other, rtt, links]: [&str; 5]| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {path:14} {own:16} {other:16} {rtt:10} {links}");
        };
        row(["path", own, other, "base RTT", "data crosses"]);
        for (path, planned) in flows[0].paths.iter().zip(&self.flow().paths) {
            let address = |end: usize| planned.ends[end].v4.to_string();
            let [here, there] = [self.own, RECEIVER - self.own].map(address);
            let links: Vec<&str> =
                path.links.iter().map(|&link| links[link].config.name.as_str()).collect();
            row([&path.name, &here, &there, &show_time(path.rtt), &links.join(" > ")]);
        }
        text.push_str("\nlinks\n");
        let crosses = |link: &usize| {
            flows[0].paths.iter().any(|path| path.links.contains(link) || path.back.contains(link))
        };
        for link in (0..links.len()).filter(crosses) {
            let _ = writeln!(text, "  {}", describe_link(&links[link]));
        }
        let addresses: Vec<IpAddr> = self.server().iter().collect();
        let addresses: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
        let _ = write!(
            text,
            "\n{other} is {} ($NARROWS_SERVER, $NARROWS_SERVER6)\n\n  \
             ip netns exec {} CMD    runs CMD in {other}\n  \
             mptcpize run CMD    makes a TCP program use all paths\n  \
             PS1=\"($NARROWS_HOST) $PS1\"    shows the host in the prompt\n\n\
             The network is removed when this shell ends.\n",
            addresses.join(", "),
            self.other().namespace(),
        );
        text
    }
}

/// Lets everything happen at its time until the other side of `wait` is gone.
fn follow(
    wire: &Wire,
    scenario: &Scenario,
    links: &[LinkId],
    wait: &mpsc::Receiver<()>,
) -> Result<(), Error> {
    for Event { at, what } in &scenario.events {
        let ahead = Duration::from_nanos(at.saturating_sub(wire.now()));
        if wait.recv_timeout(ahead) != Err(RecvTimeoutError::Timeout) {
            return Ok(());
        }
        change(wire, scenario, links, what)?;
    }
    Ok(())
}
