//! End points that a run has in user space beside the kernel's.

use std::time::Instant;

use narrows_emu::Host;
use narrows_net::Nanos;
use narrows_sim::Detection;
use narrows_traffic::{Generator, Signal};

use super::plan::Plan;
use super::sources::Cpu;
use crate::Error;
use crate::host_id::HostId;
use crate::measured::FlowState;
use crate::scenario::Scenario;

/// Flows whose end points are not the kernel's but in user space, over UDP.
pub struct UserSpace<'a> {
    /// The name of the host that has them.
    pub host: HostId,
    /// Their indices.
    pub flows: Vec<usize>,
    /// What the detector of the connection under test samples.
    pub signal: Signal,
    /// Opens their end points. Nothing is sent yet.
    pub open: &'a dyn for<'b> Fn(&Built<'b>) -> Opened<'b>,
}

/// Connections whose end points are open.
pub type Opened<'a> = Result<Box<dyn Connections + 'a>, Error>;

/// What there is when end points are opened.
pub struct Built<'a> {
    /// The scenario as it was drawn.
    pub scenario: &'a Scenario,
    /// What is built of it.
    pub plan: &'a Plan,
    /// The plan's hosts.
    pub hosts: &'a [&'a Host],
    /// The application of a flow.
    pub generator: &'a dyn Fn(usize) -> Generator,
}

/// Connections in user space. Dropped: they end.
pub trait Connections {
    /// Lets them work; the run began at `began`.
    fn start(&mut self, began: Instant) -> Result<(), Error>;
    /// Looks at them, at `now`.
    fn look(&mut self, now: Nanos);
    /// A flow as it was at the last look; none if it is not one of these.
    fn flow(&self, flow: usize) -> Option<&FlowState>;
    /// What the detector of a flow decided.
    fn detection(&self, flow: usize) -> Option<&Detection>;
    /// The end that connects loses the address of a path.
    fn lose(&mut self, flow: usize, path: usize);
    /// It has it again.
    ///
    /// # Errors
    /// A socket cannot be had there.
    fn add(&mut self, flow: usize, path: usize) -> Result<(), Error>;
    /// What they have had of a CPU, since they were started; none where the kernel does not
    /// account for it.
    fn cpu(&self) -> Option<Cpu>;
    /// Why the first of them that ended before the run did so.
    fn failed(&self) -> Option<String>;
    /// What people should know, a line each.
    fn notes(&self) -> Vec<String>;
    /// Ends them.
    ///
    /// # Errors
    /// What made them fail before.
    fn stop(&mut self) -> Result<(), Error>;
}
