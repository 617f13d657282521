//! Real network stacks through the network model: hosts are network namespaces with TUN devices,
//! and one process carries their packets over the links of a [`narrows_net::Network`] in real time.
//!
//! A packet that a host sends comes out of one of its TUN devices. Its two addresses name a [`Route`],
//! which is a route of the network; at the model time of its arrival it is written into the device
//! of the host that has the destination's address. Packets move at exact model times: a late wake-up
//! delays a packet, which is recorded ([`Fitness`]), and takes no rate from a link.
//!
//! All of it is in network namespaces `nr-ID-NAME`, which `ip netns` knows too; the rest of the
//! machine stays as it is. They go with their [`Testbed`], and what a killed process leaves goes with
//! the next one or by [`clean`].
//!
//! ```no_run
//! use narrows_emu::{DeviceConfig, HostConfig, Testbed, Route};
//! use narrows_net::{LinkConfig, MILLISECOND, Network, Rate};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = |name: &str, address: &str| HostConfig {
//!     name: name.into(),
//!     devices: vec![DeviceConfig {
//!         name: "dsl".into(),
//!         mtu: 1500,
//!         addresses: vec![address.parse().expect("an address")],
//!     }],
//! };
//! let testbed = Testbed::new(&[host("home", "10.1.0.1"), host("server", "10.1.0.2")])?;
//!
//! let mut network = Network::new(1);
//! let mut route = |from: &str, to: &str, rate| -> Result<Route, Box<dyn std::error::Error>> {
//!     let rate = Rate::Constant(rate);
//!     let delay = 10 * MILLISECOND;
//!     let link = network.add_link(LinkConfig { rate, delay, ..LinkConfig::default() })?;
//!     let route = network.add_route(&[link])?;
//!     Ok(Route { from: from.parse()?, to: to.parse()?, route, strips_mptcp: false })
//! };
//! let routes = [
//!     route("10.1.0.1", "10.1.0.2", 10_000_000)?,
//!     route("10.1.0.2", "10.1.0.1", 50_000_000)?,
//! ];
//! let wire = testbed.start(network, &routes, Vec::new())?;
//!
//! let home = testbed.host("home").expect("it was made");
//! home.command("ping").args(["-c", "3", "10.1.0.2"]).status()?; // 20 ms and a bit
//! let (_, fitness) = wire.stop()?;
//! println!("99 % of the packets were at most {} ns late", fitness.lateness.p99);
//! # Ok(())
//! # }
//! ```

mod buffers;
mod carrier;
mod device;
mod error;
mod fitness;
mod namespace;
mod owner;
mod packet;
mod plan;
mod tap;
mod testbed;
mod wire;

pub use buffers::Packet;
pub use carrier::{First, go_first};
pub use error::Error;
pub use fitness::{Fitness, Quantiles};
pub use owner::{Removed, clean, left};
pub use plan::{DeviceConfig, HostConfig, Route};
pub use tap::{Direction, See, Tap};
pub use testbed::{Host, Testbed, available};
pub use wire::Wire;
