//! A link that is shared with others and sends many packets at a time, like Wi-Fi.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{MILLISECOND, Nanos, SECOND, rng};

/// What Wi-Fi does to the delay: packets wait for access to the channel and leave many at a time.
///
/// This is a model of delay, not of a radio: there are no collisions, no retries and no choice of
/// rate. When the link is free and a packet waits, it contends for the channel, for a random time
/// uniform up to [`Wifi::contention`]. Then what waits, up to [`Wifi::packets`] and [`Wifi::time`],
/// is sent as one aggregate (an A-MPDU, IEEE 802.11-2020, section 9.7): the fixed
/// [`Wifi::overhead`] and all packets at the link's constant rate, which is that of the radio. All
/// of them arrive when the aggregate ends, as receivers pass them on then.
///
/// How long a packet would wait ([`crate::Network::queue_delay`], [`crate::Limit::Time`], RED's
/// thresholds in time, PIE) is computed from the rate alone, without overhead and contention; the counted
/// queueing delays have all of it.
///
/// The default is 802.11n/ac, best effort, a channel without contenders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wifi {
    /// Most packets in an aggregate: 64, what a block ack of 802.11n/ac covers.
    pub packets: u32,
    /// Longest time for the packets of an aggregate: 4 ms, Linux's limit (`ath9k`, within the
    /// standard's `aPPDUMaxTime` of 5.484 ms). A single packet is always sent.
    pub time: Nanos,
    /// Fixed time per aggregate: 130 us, being AIFS 43 us, preamble 36 us, SIFS 16 us and block ack
    /// 35 us.
    pub overhead: Nanos,
    /// Longest time until the channel is won: 135 us, a backoff of up to 15 slots of 9 us. Other
    /// stations make it longer, about as much as an aggregate of each takes.
    pub contention: Nanos,
}

impl Default for Wifi {
    fn default() -> Self {
        const MICROSECOND: Nanos = MILLISECOND / 1000;
        Wifi {
            packets: 64,
            time: 4 * MILLISECOND,
            overhead: 130 * MICROSECOND,
            contention: 135 * MICROSECOND,
        }
    }
}

impl Wifi {
    /// What is wrong, if anything.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.packets == 0 {
            Some("a Wi-Fi aggregate needs at least one packet")
        } else if self.time.max(self.overhead).max(self.contention) > SECOND {
            Some("Wi-Fi's times must be at most one second")
        } else {
            None
        }
    }
}

/// The channel as one link sees it.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub config: Wifi,
    /// How long the next access takes, once somebody asked.
    access: Option<Nanos>,
    rng: Xoshiro256PlusPlus,
}

impl Channel {
    pub fn new(config: Wifi, rng: Xoshiro256PlusPlus) -> Channel {
        Channel { config, access: None, rng }
    }

    /// How long the next access takes.
    pub fn access(&mut self) -> Nanos {
        *self.access.get_or_insert_with(|| rng::below(&mut self.rng, self.config.contention + 1))
    }

    /// The channel was won.
    pub fn won(&mut self) {
        self.access = None;
    }
}
