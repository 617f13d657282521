//! How far what hosts saw is from what the model did.

use narrows_net::{Delivery, Histogram, LinkId, Nanos, Network, Rate, SECOND};

/// A distribution of durations, ns. Quantiles are too large by at most 1/32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// The median.
    pub p50: Nanos,
    /// The 99th percentile.
    pub p99: Nanos,
    /// The largest.
    pub max: Nanos,
}

impl Quantiles {
    fn of(histogram: &Histogram) -> Quantiles {
        let (p50, p99) = (histogram.quantile(0.5), histogram.quantile(0.99));
        Quantiles { p50, p99, max: histogram.max() }
    }
}

/// How well the wire kept up with the model, since its start or the last
/// [`Wire::reset`](crate::Wire::reset).
///
/// Inside the network every packet moves at its exact model time. Real time shows at its two ends:
/// a packet is read from its sender's device some time after it was sent, and written into its
/// receiver's some time after it arrived.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fitness {
    /// Packets written into their receivers' devices.
    pub packets: u64,
    /// From the model time at which a packet arrived to the moment before it was written into its
    /// receiver's device. Every packet counts.
    pub lateness: Quantiles,
    /// How long a packet may have waited in its sender's device while the wire was busy: the time
    /// until it was read, since the wire last saw the device empty, or was woken if that was later.
    /// An upper bound. How long a sleeping wire takes to wake when a packet comes cannot be seen and
    /// is not in it; it is as long as after a timer, whose lateness is in `lateness`.
    pub reading: Quantiles,
    /// The worst that lateness did to a link's rate: of all links with a finite rate and all
    /// seconds, the largest difference between the bytes that by the model arrived in this second
    /// at the end of a route over the link, and those that were written in it, as a share of what
    /// the link carries in a second. What a device refused was not late and is in neither.
    pub worst_second: f64,
    /// Where that was, and in which second, from 0.
    pub worst_at: Option<(LinkId, u64)>,
    /// Packets between addresses without a route; dropped.
    pub unrouted: u64,
    /// What hosts sent that was no whole IP packet, or larger than all devices' MTU; dropped.
    pub malformed: u64,
    /// Packets that the receiver's device did not take, as it is down or gone; dropped.
    pub refused: u64,
    /// The most packets that were underway at once since the start, in whose memory all live.
    pub buffers: usize,
}

/// Writes it down while it happens.
#[derive(Clone, Debug)]
pub struct Record {
    /// Model time of the start or the last reset.
    start: Nanos,
    lateness: Histogram,
    pub reading: Histogram,
    /// By link and second: the share of a second's bytes that were too many, or too few.
    off: Vec<Vec<f64>>,
    pub unrouted: u64,
    pub malformed: u64,
    pub refused: u64,
}

impl Record {
    /// Seconds are counted from `start`.
    pub fn new(start: Nanos) -> Record {
        Record {
            start,
            lateness: Histogram::default(),
            reading: Histogram::default(),
            off: Vec::new(),
            unrouted: 0,
            malformed: 0,
            refused: 0,
        }
    }

    /// A packet is written at `now`; or is not, as the device does not take it.
    pub fn delivered<P: Copy>(
        &mut self,
        network: &Network<P>,
        delivery: &Delivery<P>,
        written: Option<Nanos>,
    ) {
        let Some(now) = written else {
            self.refused += 1;
            return;
        };
        self.lateness.record(now - delivery.time);
        let second = |time: Nanos| Some(time.checked_sub(self.start)? / SECOND);
        let (due, done) = (second(delivery.time), second(now));
        if due != done {
            self.shift(network, delivery, due, done);
        }
    }

    /// The bytes of a packet were due in one second and written in another.
    #[cold]
    fn shift<P: Copy>(
        &mut self,
        network: &Network<P>,
        delivery: &Delivery<P>,
        due: Option<u64>,
        done: Option<u64>,
    ) {
        for link in network.route(delivery.route) {
            let rate = match &network.config(link).rate {
                Rate::Infinite => continue,
                Rate::Constant(rate) => *rate,
                Rate::Trace(trace) => trace.mean_rate(),
            };
            let share = 8.0 * f64::from(delivery.size) / rate as f64;
            for (second, share) in [(due, -share), (done, share)] {
                let Some(second) = second.map(|second| second as usize) else { continue };
                let link = link.0 as usize;
                self.off.resize(self.off.len().max(link + 1), Vec::new());
                let seconds = &mut self.off[link];
                seconds.resize(seconds.len().max(second + 1), 0.0);
                seconds[second] += share;
            }
        }
    }

    pub fn fitness(&self, buffers: usize) -> Fitness {
        let seconds = (0..).zip(&self.off).flat_map(|(link, seconds)| {
            (0..).zip(seconds).map(move |(second, off)| (off.abs(), (LinkId(link), second)))
        });
        let worst = seconds.max_by(|(a, _), (b, _)| a.total_cmp(b));
        Fitness {
            packets: self.lateness.count(),
            lateness: Quantiles::of(&self.lateness),
            reading: Quantiles::of(&self.reading),
            worst_second: worst.map_or(0.0, |(off, _)| off),
            worst_at: worst.map(|(_, place)| place),
            unrouted: self.unrouted,
            malformed: self.malformed,
            refused: self.refused,
            buffers,
        }
    }
}
