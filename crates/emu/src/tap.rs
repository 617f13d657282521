//! Where packets leave and enter the hosts, and who watches them there.

use std::fmt;
use std::fs::File;
use std::sync::Arc;

use narrows_net::Nanos;

/// Whether a host sent a packet or got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It sent it.
    Sent,
    /// It got it.
    Got,
}

/// What a [`Tap`] is given: the time, the number of the device, the direction, and the IP packet.
pub type See = Box<dyn FnMut(Nanos, usize, Direction, &[u8]) + Send>;

/// Sees packets as a host sent and got them: model times of reading from and writing to a device,
/// and what a middlebox or a mark on the way has made of what it got. It works in the thread that
/// carries all packets, so it must be quick.
pub struct Tap {
    /// The number of the host.
    pub host: usize,
    /// The number of its device; all if none.
    pub device: Option<usize>,
    /// Called with every packet.
    pub see: See,
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Tap").field("host", &self.host).field("device", &self.device).finish()
    }
}

/// A device of a host, where packets come out and go in.
#[derive(Debug)]
pub(crate) struct Port {
    pub tun: Arc<File>,
    pub host: usize,
    pub device: usize,
    pub mtu: u32,
}
