//! Real network stacks through the network model: hosts are network namespaces with TUN devices,
//! and one process carries their packets over the links of a [`narrows_net::Network`] in real time.
//!
//! A packet that a host sends comes out of one of its TUN devices. Its two addresses name a [`Way`],
//! which is a route of the network; at the model time of its arrival it is written into the device
//! of the host that has the destination's address. Packets move at exact model times: a late wake-up
//! delays a packet, which is recorded, and takes no rate from a link.

mod buffers;
mod carrier;
mod device;
mod error;
mod fitness;
mod namespace;
mod owner;
mod packet;
mod plan;
mod testbed;
mod wire;

pub use buffers::Packet;
pub use error::Error;
pub use fitness::{Fitness, Quantiles};
pub use owner::{Removed, clean};
pub use plan::{DeviceConfig, HostConfig, Way};
pub use testbed::{Host, Testbed};
pub use wire::{Direction, See, Tap, Wire};
