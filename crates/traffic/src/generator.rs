//! What applications write, and when.

use narrows_net::rng::{self, Xoshiro256PlusPlus};
use narrows_net::{Nanos, SECOND};

use crate::flow::{ConnId, FlowId, UdpId};
use crate::source::{SizeDist, Source};

/// A time that does not come.
const NEVER: Nanos = Nanos::MAX;

/// What the application does at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// An interval of activity begins; the first opens the connection.
    Start {
        /// Bytes that are written now, counted from the first start (`u64::MAX`: without end), by a
        /// source that writes all at once; none of one that writes messages.
        total: Option<u64>,
    },
    /// It ends.
    Stop {
        /// What has not been sent is withdrawn.
        withdraws: bool,
    },
    /// A message of so many bytes.
    Message(u32),
    /// Nothing any more.
    Nothing,
}

/// The application of one flow: what it writes, and when. It is a function of its arguments alone, so
/// that it writes the same on every host. Of [`Source::Media`], whose rate is for the sender to say, it has
/// only when it is active.
#[derive(Debug)]
pub struct Generator {
    source: Source,
    active: Vec<(Nanos, Nanos)>,
    /// Number of the present or next interval of activity.
    interval: usize,
    running: bool,
    /// End of the present or next burst; on/off sources only.
    burst_end: Nanos,
    rng: Xoshiro256PlusPlus,
}

impl Generator {
    /// The application of `flow`, which writes in the intervals `active`: `[start, stop)` in order,
    /// not overlapping.
    pub fn new(seed: u64, flow: FlowId, source: Source, active: Vec<(Nanos, Nanos)>) -> Generator {
        let stream = match flow {
            FlowId::Connection(ConnId(number)) => 2 * u64::from(number),
            FlowId::Udp(UdpId(number)) => 2 * u64::from(number) + 1,
        };
        let rng = rng::stream(seed, stream);
        Generator { source, active, interval: 0, running: false, burst_end: 0, rng }
    }

    /// What it writes.
    pub fn source(&self) -> Source {
        self.source
    }

    /// When to wake it first; `u64::MAX`: never.
    pub fn first_start(&self) -> Nanos {
        self.active.first().map_or(NEVER, |&(start, _)| start)
    }

    /// Its time has come: what it writes, and when to wake it next (`u64::MAX`: never).
    pub fn wake(&mut self, now: Nanos) -> (Write, Nanos) {
        let Some(&(_, stop)) = self.active.get(self.interval) else {
            return (Write::Nothing, NEVER);
        };
        if !self.running {
            self.running = true;
            let next = self.first_after_start(now);
            return (Write::Start { total: self.total() }, next.min(stop));
        }
        if now >= stop {
            self.running = false;
            self.interval += 1;
            let next = self.active.get(self.interval).map_or(NEVER, |&(start, _)| start);
            return (Write::Stop { withdraws: self.total().is_some() }, next.max(now));
        }
        let (write, next) = self.next_write(now);
        (write, next.min(stop))
    }

    /// Bytes of a source that writes all at once.
    fn total(&self) -> Option<u64> {
        match self.source {
            Source::Greedy => Some(u64::MAX),
            Source::File { bytes } => Some(bytes),
            Source::Rate { .. }
            | Source::OnOff { .. }
            | Source::Messages { .. }
            | Source::Media { .. } => None,
        }
    }

    fn first_after_start(&mut self, now: Nanos) -> Nanos {
        match self.source {
            Source::Greedy | Source::File { .. } | Source::Media { .. } => NEVER,
            Source::Rate { mean_pps, .. } => now + self.exponential(1.0 / mean_pps),
            Source::OnOff { on_mean_s, off_mean_s, .. } => {
                // In a burst or not as likely as later on, so that the mean rate holds from the
                // start.
                let at = rng::uniform_f64(&mut self.rng) * (on_mean_s + off_mean_s);
                let silence = if at < on_mean_s { 0 } else { self.exponential(off_mean_s) };
                let first = self.burst(now + silence);
                self.in_burst(first)
            }
            Source::Messages { interval, poisson, .. } => now + self.gap(interval, poisson),
        }
    }

    fn next_write(&mut self, now: Nanos) -> (Write, Nanos) {
        match self.source {
            Source::Greedy | Source::File { .. } | Source::Media { .. } => (Write::Nothing, NEVER),
            Source::Rate { mean_pps, size } => {
                let bytes = self.size(size);
                (Write::Message(bytes), now + self.exponential(1.0 / mean_pps))
            }
            Source::OnOff { pps, size, .. } => {
                let bytes = self.size(size);
                let gap = self.exponential(1.0 / pps);
                (Write::Message(bytes), self.in_burst(now + gap))
            }
            Source::Messages { bytes, interval, poisson } => {
                (Write::Message(bytes), now + self.gap(interval, poisson))
            }
        }
    }

    /// From one message to the next.
    fn gap(&mut self, interval: Nanos, poisson: bool) -> Nanos {
        if poisson { self.exponential(interval as f64 / SECOND as f64) } else { interval }
    }

    /// Begins a burst; returns its first time of writing.
    fn burst(&mut self, start: Nanos) -> Nanos {
        let Source::OnOff { pps, on_mean_s, on_shape, .. } = self.source else { return NEVER };
        self.burst_end = start + self.pareto(on_mean_s, on_shape);
        start + self.exponential(1.0 / pps)
    }

    /// The time of the next write: `next`, or the first one after the burst and a silence.
    fn in_burst(&mut self, mut next: Nanos) -> Nanos {
        let Source::OnOff { off_mean_s, .. } = self.source else { return NEVER };
        while next >= self.burst_end {
            let start = self.burst_end + self.exponential(off_mean_s);
            next = self.burst(start);
        }
        next
    }

    fn exponential(&mut self, mean_s: f64) -> Nanos {
        seconds(-mean_s * libm::log(self.unit()))
    }

    /// Pareto distribution of a given mean: scale (shape - 1) / shape times the mean.
    fn pareto(&mut self, mean_s: f64, shape: f64) -> Nanos {
        seconds(mean_s * (shape - 1.0) / shape * libm::pow(self.unit(), -1.0 / shape))
    }

    fn size(&mut self, size: SizeDist) -> u32 {
        match size {
            SizeDist::Constant(bytes) => bytes,
            SizeDist::Exponential { mean, min, max } => {
                (-mean * libm::log(self.unit())).clamp(min.into(), max.into()) as u32
            }
            SizeDist::Uniform { min, max } => {
                min + rng::below(&mut self.rng, u64::from(max - min) + 1) as u32
            }
        }
    }

    /// A uniform number in (0, 1]: its logarithm is finite.
    fn unit(&mut self) -> f64 {
        1.0 - rng::uniform_f64(&mut self.rng)
    }
}

fn seconds(s: f64) -> Nanos {
    // A Pareto variate may be huge: a century is as good as never.
    (s * SECOND as f64).min(3e18) as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECONDS: u64 = 2_000;
    const FLOW: FlowId = FlowId::Connection(ConnId(0));

    /// (messages, bytes) of a source over `SECONDS` seconds.
    fn offered(source: Source, seed: u64) -> (f64, f64) {
        let active = vec![(0, SECONDS * SECOND)];
        let mut generator = Generator::new(seed, FLOW, source, active);
        let (mut now, mut messages, mut bytes) = (generator.first_start(), 0.0, 0.0);
        while now != NEVER {
            let (write, next) = generator.wake(now);
            assert!(next >= now);
            now = next;
            if let Write::Message(n) = write {
                messages += 1.0;
                bytes += f64::from(n);
            }
        }
        (messages, bytes)
    }

    #[test]
    fn a_rate_source_offers_its_mean_rate_and_size() {
        let size = SizeDist::Exponential { mean: 1000.0, min: 1, max: 100_000 };
        let (messages, bytes) = offered(Source::Rate { mean_pps: 100.0, size }, 1);
        let expected = 100.0 * SECONDS as f64;
        assert!((messages / expected - 1.0).abs() < 0.01, "{messages}");
        assert!((bytes / messages / 1000.0 - 1.0).abs() < 0.01, "{}", bytes / messages);
    }

    /// Sizes of packets: an exponential one is cut at the MTU, and its mean is less for it.
    #[test]
    fn sizes_have_their_mean_after_the_cut() {
        for size in [
            SizeDist::Constant(700),
            SizeDist::Uniform { min: 528, max: 1472 },
            SizeDist::Exponential { mean: 1000.0, min: 100, max: 1500 },
        ] {
            let (messages, bytes) = offered(Source::Rate { mean_pps: 100.0, size }, 2);
            let measured = size.mean();
            assert!((bytes / messages / measured - 1.0).abs() < 0.01, "{size:?}: {measured}");
        }
    }

    #[test]
    fn an_on_off_source_is_on_for_its_share_of_time() {
        let size = SizeDist::Uniform { min: 500, max: 1500 };
        let source =
            Source::OnOff { pps: 100.0, size, on_mean_s: 0.5, on_shape: 2.5, off_mean_s: 1.5 };
        let mean = (0..10).map(|seed| offered(source, seed).0).sum::<f64>() / 10.0;
        let expected = 100.0 * SECONDS as f64 / 4.0;
        assert!((mean / expected - 1.0).abs() < 0.02, "{mean} of {expected}");
    }

    /// 50 a second: all 20 ms after the one before, or at random.
    #[test]
    fn messages_are_evenly_spaced_or_a_poisson_process() {
        let interval = SECOND / 50;
        let gaps = |poisson, seed| {
            let source = Source::Messages { bytes: 100, interval, poisson };
            let mut generator = Generator::new(seed, FLOW, source, vec![(SECOND, 100 * SECOND)]);
            let (mut now, mut times) = (generator.first_start(), vec![SECOND]);
            while now != NEVER {
                let (write, next) = generator.wake(now);
                times.extend((write == Write::Message(100)).then_some(now));
                now = next;
            }
            times.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<Nanos>>()
        };
        let even = gaps(false, 1);
        assert!(even.len() == 50 * 99 - 1 && even.iter().all(|gap| *gap == interval));
        let random = gaps(true, 1);
        assert!(random == gaps(true, 1) && random != gaps(true, 2));
        let (n, mean) = (random.len() as f64, interval as f64);
        assert!((n / (50.0 * 99.0) - 1.0).abs() < 0.05, "{n}");
        let square = random.iter().map(|gap| (*gap as f64 / mean).powi(2)).sum::<f64>() / n;
        assert!(
            (square / 2.0 - 1.0).abs() < 0.1,
            "an exponential's deviation is its mean: {square}"
        );
    }

    /// A Poisson process: a gap's deviation is its mean, and a burst has a write for each mean gap.
    #[test]
    fn gaps_within_a_burst_are_exponential() {
        let size = SizeDist::Constant(1000);
        let source =
            Source::OnOff { pps: 100.0, size, on_mean_s: 1e6, on_shape: 2.5, off_mean_s: 1e-3 };
        let mut generator = Generator::new(4, FLOW, source, vec![(0, SECONDS * SECOND)]);
        let (mut now, mut times) = (generator.first_start(), vec![]);
        while now != NEVER {
            let (write, next) = generator.wake(now);
            times.extend(matches!(write, Write::Message(_)).then_some(now as f64 / 1e9));
            now = next;
        }
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 0.01 - 1.0).abs() < 0.01, "{mean}");
        assert!((square / (2.0 * mean * mean) - 1.0).abs() < 0.05, "{square}");
    }

    #[test]
    fn intervals_start_and_stop_the_source() {
        let size = SizeDist::Constant(1);
        let active = vec![(SECOND, 2 * SECOND), (5 * SECOND, 6 * SECOND)];
        let source = Source::Rate { mean_pps: 50.0, size };
        let mut generator = Generator::new(3, FLOW, source, active);
        let mut now = generator.first_start();
        let mut marks = vec![];
        while now != NEVER {
            let (write, next) = generator.wake(now);
            match write {
                Write::Message(_) => assert!(matches!(now / SECOND, 1 | 5)),
                write => marks.push((now / SECOND, write)),
            }
            now = next;
        }
        let (start, stop) = (Write::Start { total: None }, Write::Stop { withdraws: false });
        let expected = [(1, start), (2, stop), (5, start), (6, stop)];
        assert_eq!(marks, expected);
    }
}
