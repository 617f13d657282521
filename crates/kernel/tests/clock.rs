//! One-way delays by a peer's timestamps: the C of `src/bpf/clock.h`.

use narrows_kernel::{Delay, Signal};

/// `struct nr_clock`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    tsval: u32,
    at_us: u32,
    rtt_us: u32,
    was_us: i32,
    least_us: i32,
    owd_us: i32,
    delay: u8,
    told: u8,
    fresh: u8,
    failures: u8,
}

unsafe extern "C" {
    safe fn nr_test_clock_sample(c: &mut Clock, tsval: u32, now_us: u32, rtt_us: u32, signal: u32);
}

/// The way to the peer and back without queues, µs.
const WAY: i64 = 20_000;
/// From one acknowledgement to the next, µs.
const EACH: i64 = 2_000;

/// A connection whose peer has a clock.
struct Path {
    clock: Clock,
    signal: Signal,
    /// µs of a tick of the peer's clock, and by how many ppm it is faster than it should be.
    tick: f64,
    ppm: f64,
    /// What it shows at 0, in ticks; a step changes it.
    offset: i64,
    /// Ours, at 0.
    zero: u32,
    now: i64,
}

impl Path {
    fn new(signal: Signal, tick: f64) -> Path {
        let clock = Clock { delay: Delay::Unknown as u8, ..Clock::default() };
        Path { clock, signal, tick, ppm: 0.0, offset: 77_000, zero: 5_000, now: 0 }
    }

    /// An acknowledgement, whose segment waited so long on its way there, and itself on its way back,
    /// µs; the delay that it gives.
    fn acknowledge(&mut self, there: i64, back: i64) -> Option<i32> {
        self.now += EACH;
        let (way, rtt) = (WAY + back, 2 * WAY + there + back);
        let stamped = (self.now - way) as f64 * (1.0 + self.ppm * 1e-6) / self.tick;
        let tsval = (stamped.floor() as i64 + self.offset) as u32;
        let now = self.zero.wrapping_add(self.now as u32);
        self.clock.fresh = 0;
        nr_test_clock_sample(&mut self.clock, tsval, now, rtt as u32, self.signal as u32);
        (self.clock.fresh == 1).then_some(self.clock.owd_us)
    }

    /// Delays with these queues there and back by the number of the acknowledgement.
    fn run(&mut self, n: i64, queues: impl Fn(i64) -> (i64, i64)) -> Vec<Option<i32>> {
        (0..n).map(queues).map(|(there, back)| self.acknowledge(there, back)).collect()
    }

    fn delay(&self) -> u8 {
        self.clock.delay
    }
}

/// A triangle of this height over so many acknowledgements.
fn triangle(k: i64, period: i64, height: i64) -> i64 {
    let k = k % period;
    2 * height * k.min(period - k) / period
}

/// Of the sampled delays: how far they are at most from the queue there, less that of the first one.
fn error(delays: &[Option<i32>], there: impl Fn(i64) -> i64) -> i64 {
    let mut known =
        (0..).zip(delays).filter_map(|(k, delay)| Some((there(k), i64::from((*delay)?))));
    let (queue, delay) = known.next().expect("there are delays");
    known.map(|(q, d)| ((d - delay) - (q - queue)).abs()).max().unwrap()
}

#[test]
fn the_delay_is_the_queue_there_and_not_the_one_back() {
    for (tick, signal, most) in
        [(1.0, Signal::SenderUs, 1), (1.0, Signal::SenderMs, 1), (1000.0, Signal::SenderMs, 1000)]
    {
        let mut path = Path::new(signal, tick);
        let there = |k| triangle(k, 150, 30_000);
        let delays = path.run(5_000, |k| (there(k), triangle(k + 40, 90, 60_000)));
        assert_eq!(path.delay(), if tick == 1.0 { Delay::Us } else { Delay::Ms } as u8);
        assert!(error(&delays, there) <= most, "{tick}: {}", error(&delays, there));
        // 8 round trips, of at most 130 ms.
        let unknown = delays.iter().take_while(|delay| delay.is_none()).count() as i64;
        assert!((50..=520).contains(&unknown), "{unknown}");
        assert!(delays[unknown as usize..].iter().all(Option::is_some), "{tick}");
        assert_eq!(path.clock.failures, 0);
    }
}

#[test]
fn clocks_and_delays_may_wrap() {
    for tick in [1.0, 1000.0] {
        // Ours, the peer's, and both at different moments.
        for (zero, offset) in
            [(u32::MAX - 3_000_000, 7), (5, -2_000_000), (u32::MAX - 3_000_000, -4_000)]
        {
            let mut path = Path::new(Signal::SenderMs, tick);
            (path.zero, path.offset) = (zero, offset);
            let there = |k| triangle(k, 150, 30_000);
            let delays = path.run(5_000, |k| (there(k), 0));
            assert!(error(&delays, there) <= tick as i64, "{tick} {zero} {offset}");
            assert_eq!(path.clock.failures, 0);
        }
    }
}

#[test]
fn a_clock_of_the_wrong_tick_leaves_round_trip_times() {
    for (tick, ppm, signal, expected) in [
        (1000.0, 0.0, Signal::SenderUs, Delay::NoUs),
        (10_000.0, 0.0, Signal::SenderMs, Delay::NoClock),
        (4_000.0, 0.0, Signal::SenderMs, Delay::NoClock),
        (2_000.0, 0.0, Signal::SenderMs, Delay::NoClock),
        (10.0, 0.0, Signal::SenderUs, Delay::NoClock),
        (500_000.0, 0.0, Signal::SenderMs, Delay::NoClock),
        // 1/1024 of a second.
        (1000.0, -23_400.0, Signal::SenderMs, Delay::NoClock),
        (1.0, 200_000.0, Signal::SenderUs, Delay::NoClock),
        // Not seen until it has gone further.
        (1.0, 100_000.0, Signal::SenderUs, Delay::NoClock),
        (1.0, -100_000.0, Signal::SenderUs, Delay::NoClock),
    ] {
        let mut path = Path { ppm, ..Path::new(signal, tick) };
        let queues = |k| (triangle(k, 150, 30_000), triangle(k, 40, 5_000));
        let growth = |k| queues(k).0 + queues(k).1;
        let delays = path.run(20_000, queues);
        assert_eq!(path.delay(), expected as u8, "{tick} {ppm}");
        // Where the tick is nearly right, delays are wrong until that shows.
        let from = if ppm == 0.0 { 0 } else { 15_000 };
        assert_eq!(error(&delays[from..], |k| growth(k + from as i64)), 0, "{tick} {ppm}");
        assert!(delays[15_000..].iter().all(Option::is_some), "{tick}");
    }
}

#[test]
fn clocks_may_differ_and_drift() {
    for ppm in [-300.0, -50.0, 50.0, 300.0] {
        for tick in [1.0, 1000.0] {
            let mut path = Path { ppm, ..Path::new(Signal::SenderMs, tick) };
            // 10 minutes, and hours of silence in them.
            for _ in 0..5 {
                let delays =
                    path.run(60_000, |k| (triangle(k, 150, 30_000), triangle(k, 77, 9_000)));
                let known = delays.iter().flatten().count();
                assert!(known > 59_000, "{ppm} {tick}: {known}, {:?}", path.clock);
                assert_ne!(path.delay(), Delay::NoClock as u8);
                path.now += 2 * 3_600_000_000;
            }
        }
    }
}

#[test]
fn clocks_that_drift_are_no_steps() {
    for ppm in [-300.0, 300.0] {
        let mut path = Path { ppm, ..Path::new(Signal::SenderUs, 1.0) };
        // 20 minutes.
        let delays = path.run(600_000, |k| (triangle(k, 150, 30_000), triangle(k, 77, 9_000)));
        assert!(delays[1_000..].iter().all(Option::is_some), "{ppm}");
    }
}

/// Wi-Fi or LTE: acknowledgements wait, now long, now not, and one after the other.
#[test]
fn jitter_on_the_way_back_is_no_step() {
    for (seed, tick) in [(1, 1.0), (2, 1.0), (3, 1000.0)] {
        let mut path = Path::new(Signal::SenderMs, tick);
        let mut random: u64 = seed;
        // 10 minutes, an acknowledgement in 20 ms.
        for n in 0..30_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            path.now += 10 * EACH - EACH;
            path.acknowledge(triangle(n, 150, 30_000), (random >> 33) as i64 % 18_000);
        }
        assert_eq!(
            (path.clock.failures, path.delay() != Delay::NoClock as u8),
            (0, true),
            "{seed}"
        );
    }
}

#[test]
fn clocks_that_drift_on_a_short_path_are_no_steps() {
    for ppm in [-200.0, -50.0, 50.0, 200.0] {
        let mut path = Path { ppm, ..Path::new(Signal::SenderUs, 1.0) };
        // 10 minutes, with a round trip of 1 ms.
        for _ in 0..300_000 {
            path.now += EACH;
            let stamped = (path.now - 500) as f64 * (1.0 + ppm * 1e-6);
            let now = path.zero.wrapping_add(path.now as u32);
            let tsval = (stamped.floor() as i64 + path.offset) as u32;
            nr_test_clock_sample(&mut path.clock, tsval, now, 1_000, Signal::SenderUs as u32);
        }
        assert_eq!((path.clock.failures, path.delay()), (0, Delay::Us as u8), "{ppm}");
    }
}

#[test]
fn a_silence_in_which_clocks_drift_is_no_step() {
    for (silence, tick) in [(50, 1.0), (120, 1.0), (120, 1000.0), (4_400, 1000.0)] {
        for ppm in [-200.0, 200.0] {
            let mut path = Path { ppm, ..Path::new(Signal::SenderMs, tick) };
            for _ in 0..10 {
                path.run(10_000, |k| (triangle(k, 150, 30_000), 0));
                path.now += silence * 1_000_000;
            }
            assert_eq!(path.clock.failures, 0, "{silence} {ppm}");
        }
    }
}

/// The peer's clock is another one from then on, as behind a middlebox that makes timestamps anew.
#[test]
fn a_step_is_no_queue() {
    for (tick, by) in [(1.0, 15), (1.0, 200), (1.0, 100_000), (1000.0, 15), (1000.0, 100_000)] {
        let mut path = Path::new(Signal::SenderMs, tick);
        let there = |k| triangle(k, 150, 30_000);
        let queues = |k| (there(k), triangle(k, 90, 4_000));
        path.run(3_000, queues);
        path.offset += by * 1000 / tick as i64;
        let delays = path.run(3_000, queues);
        assert_eq!(path.clock.failures, 1, "{tick} {by}");
        assert_ne!(path.delay(), Delay::NoClock as u8);
        assert!(delays[0].is_none() && delays[2_000..].iter().all(Option::is_some));
        // At most the queue there was until the step, and is afterwards.
        let most = delays.iter().flatten().fold(0, |most, delay| delay.abs().max(most));
        assert!(most <= 61_000 + tick as i32, "{tick} {by}: {most}");
        assert!(error(&delays, there) <= tick as i64);
    }
}

/// Its round-trip times go on from where its one-way delays were.
#[test]
fn a_clock_that_steps_again_and_again_is_given_up() {
    let mut path = Path::new(Signal::SenderUs, 1.0);
    let queues = |k| (triangle(k, 150, 30_000), 7_000);
    let mut last = None;
    for _ in 0..3 {
        last = *path.run(1_800, queues).last().unwrap();
        path.offset += 80_000;
    }
    let delays = path.run(5_000, queues);
    assert_eq!(path.delay(), Delay::NoClock as u8);
    // All but the one that shows the last step.
    assert!(delays[0].is_none() && delays[1..].iter().all(Option::is_some));
    assert_eq!(error(&delays, |k| queues(k).0), 0);
    let step = delays[1].unwrap() - last.unwrap();
    assert!(step.abs() <= 400, "{step}");
}

/// One in a day is none, however long the connection lives.
#[test]
fn steps_are_forgotten() {
    let mut path = Path::new(Signal::SenderUs, 1.0);
    for _ in 0..6 {
        path.run(100_000, |k| (triangle(k, 150, 30_000), 0));
        path.offset += 80_000;
    }
    assert_eq!(path.delay(), Delay::Us as u8);
}

#[test]
fn what_was_settled_stays() {
    for delay in [Delay::Rtt, Delay::NoTimestamps, Delay::NoUs, Delay::NoClock] {
        let mut path = Path::new(Signal::SenderUs, 1.0);
        path.clock.delay = delay as u8;
        let grows = matches!(delay, Delay::NoUs | Delay::NoClock);
        assert!(path.run(2_000, |_| (0, 0)).iter().all(|delay| delay.is_some() == grows));
        assert_eq!(path.delay(), delay as u8);
    }
}
