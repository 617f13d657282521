//! What the testbed's owner holds of the thread that carries packets.

use std::collections::HashMap;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use narrows_net::{Nanos, Network};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::carrier::{Carrier, Target, Work};
use crate::tap::{Port, Tap};
use crate::{Error, Fitness, Packet, Route};

/// A network that carries packets between the hosts of a [`Testbed`](crate::Testbed). Dropped, it
/// stops.
///
/// Model time is CLOCK_MONOTONIC since the start.
#[derive(Debug)]
pub struct Wire {
    start: Instant,
    work: mpsc::Sender<Work>,
    bell: Arc<EventFd>,
    thread: Option<JoinHandle<(Network<Packet>, Fitness)>>,
}

impl Wire {
    pub(crate) fn start(
        network: Network<Packet>,
        ports: Vec<Port>,
        port_of: &HashMap<IpAddr, usize>,
        routes: &[Route],
        taps: Vec<Tap>,
        carried: Arc<()>,
    ) -> Result<Wire, Error> {
        let routes = resolve(&network, port_of, routes)?;
        let (work, todo) = mpsc::channel();
        let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let bell = Arc::new(bell.map_err(|errno| Error::Carrier(errno.into()))?);
        let start = Instant::now();
        let mut carrier = Carrier::new(start, network, ports, routes, taps);
        let rung = bell.clone();
        let carry = move || {
            // Until its end, no other wire may read these devices.
            let _carried = carried;
            carrier.carry(&rung, &todo);
            carrier.end()
        };
        let thread = Builder::new().name("nr-wire".into()).spawn(carry).map_err(Error::Carrier)?;
        Ok(Wire { start, work, bell, thread: Some(thread) })
    }

    /// Model time.
    pub fn now(&self) -> Nanos {
        self.start.elapsed().as_nanos() as Nanos
    }

    /// Does `work` on the network, after all that happened before, and returns what it returns. It
    /// must leave to the wire what the network [delivers](Network::advance) and
    /// [loses](Network::drain_lost). All packets wait meanwhile. If it panics, so does this.
    ///
    /// # Errors
    /// The thread that carries packets has ended: a tap panicked, or the kernel refused to let it
    /// wait.
    pub fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Network<Packet>, Nanos) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.ask(|carrier| {
            let now = carrier.deliver();
            catch_unwind(AssertUnwindSafe(|| work(carrier.network(), now)))
        })?
        .map_or_else(|panic| resume_unwind(panic), Ok)
    }

    /// Counters of all links, and fitness, are counted from here on, as at the end of a warm-up.
    /// Seconds begin here.
    ///
    /// # Panics
    /// If the thread that carries packets has ended by a panic.
    pub fn reset(&self) {
        self.ask(Carrier::reset).expect("the wire carries packets");
    }

    /// How well it kept up with the model so far.
    ///
    /// # Panics
    /// If the thread that carries packets has ended by a panic.
    pub fn fitness(&self) -> Fitness {
        self.ask(|carrier| carrier.fitness()).expect("the wire carries packets")
    }

    /// Stops. The network is as it was when the last packet was carried; what is underway in it
    /// is lost.
    ///
    /// # Errors
    /// The thread that carried packets had ended before.
    pub fn stop(mut self) -> Result<(Network<Packet>, Fitness), Error> {
        self.end().unwrap_or(Err(Error::Ended))
    }

    fn end(&mut self) -> Option<Result<(Network<Packet>, Fitness), Error>> {
        let thread = self.thread.take()?;
        self.send(Box::new(Carrier::stop)).ok();
        Some(thread.join().map_err(|_| Error::Ended))
    }

    /// Has it done by the thread that carries packets, between two packets.
    fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Carrier) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.send(Box::new(move |carrier| {
            answer.send(work(carrier)).ok();
        }))?;
        answered.recv().map_err(|_| Error::Ended)
    }

    fn send(&self, work: Work) -> Result<(), Error> {
        self.work.send(work).map_err(|_| Error::Ended)?;
        self.bell.write(1).map_err(|errno| Error::Carrier(errno.into()))?;
        Ok(())
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.end();
    }
}

/// Where packets between two addresses go.
fn resolve(
    network: &Network<Packet>,
    port_of: &HashMap<IpAddr, usize>,
    routes: &[Route],
) -> Result<HashMap<(IpAddr, IpAddr), Target>, Error> {
    let mut targets = HashMap::new();
    for &Route { from, to, route, strips_mptcp } in routes {
        let fault = |fault| Err(Error::Route { from, to, fault });
        if !port_of.contains_key(&from) {
            return fault("no host has the source address");
        }
        let Some(&port) = port_of.get(&to) else {
            return fault("no host has the destination address");
        };
        if network.routes().all(|known| known != route) {
            return fault("the network has no such route");
        }
        if targets.insert((from, to), Target { route, port, strips_mptcp }).is_some() {
            return fault("named twice");
        }
    }
    Ok(targets)
}
