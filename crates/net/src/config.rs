//! What a link is made of.

use std::sync::Arc;

use crate::{ConfigError, Nanos, SECOND, Trace};

/// Largest delay or jitter of a link: one hour. More is taken for a mistake in units.
const MAX_DELAY: Nanos = 3600 * SECOND;

/// Largest rate: 1 Pbit/s. More is taken for a mistake in units.
const MAX_RATE: u64 = 1_000_000_000_000_000;

/// Largest packet: 1 GiB. With [`MAX_RATE`] it keeps the transmission time's arithmetic in 64 bits.
const MAX_MTU: u32 = 1 << 30;

/// How fast a link transmits.
#[derive(Clone, Debug, Default)]
pub enum Rate {
    /// Transmission takes no time, so nothing ever queues.
    #[default]
    Infinite,
    /// A constant rate in bit/s.
    Constant(u64),
    /// The delivery opportunities of a recorded trace.
    Trace(Arc<Trace>),
}

/// How much may wait in a link's droptail queue. The packet in transmission does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// Everything may wait.
    #[default]
    Unlimited,
    /// At most this many packets.
    Packets(u32),
    /// At most this many bytes.
    Bytes(u64),
    /// No packet may wait longer than this from its arrival until its transmission starts.
    Time(Nanos),
}

/// The description of a link. The default is a perfect link: no delay, no loss, infinite rate.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Name, for the caller's tables and for error messages.
    pub name: String,
    /// Transmission rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Nanos,
    /// Largest additional delay of a packet; each packet draws uniformly from 0 to this. Order is
    /// kept: a packet never arrives before its predecessor.
    pub jitter: Nanos,
    /// Probability that a packet is lost at the entry of the link, in 0..=1.
    pub loss: f64,
    /// Limit of the queue.
    pub limit: Limit,
    /// Largest packet in bytes on the wire.
    pub mtu: u32,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            name: String::new(),
            rate: Rate::default(),
            delay: 0,
            jitter: 0,
            loss: 0.0,
            limit: Limit::default(),
            mtu: 1500,
        }
    }
}

impl LinkConfig {
    /// Says whether a link can be built from this.
    ///
    /// # Errors
    /// The first field that is out of its range, see [`ConfigError`].
    pub fn validate(&self) -> Result<(), ConfigError> {
        let link = || self.name.clone();
        if let Rate::Constant(rate) = self.rate {
            if rate == 0 || rate > MAX_RATE {
                return Err(ConfigError::Rate { link: link(), rate });
            }
        }
        for (field, value) in [("delay", self.delay), ("jitter", self.jitter)] {
            if value > MAX_DELAY {
                return Err(ConfigError::Delay { link: link(), field, value });
            }
        }
        // Written so that NaN fails too.
        if !(0.0..=1.0).contains(&self.loss) {
            return Err(ConfigError::Loss { link: link(), loss: self.loss });
        }
        if matches!(self.limit, Limit::Packets(0) | Limit::Bytes(0) | Limit::Time(0)) {
            return Err(ConfigError::ZeroLimit { link: link() });
        }
        if self.mtu == 0 || self.mtu > MAX_MTU {
            return Err(ConfigError::Mtu { link: link(), mtu: self.mtu });
        }
        Ok(())
    }
}
