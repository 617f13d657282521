//! Clocks of other machines, as their TCP timestamps show them (RFC 7323, section 5.4).

/// Ticks that are in use: 1 us (Linux's tcp_usec_ts), 1 ms, 4 ms and 10 ms, in nanoseconds.
const TICKS: [i64; 4] = [1_000, 1_000_000, 4_000_000, 10_000_000];

/// Shorter observations give no tick, nanoseconds.
const SHORTEST: i64 = 1_000_000_000;

/// By how much delay may have changed from the first stamp to the last, nanoseconds.
const DELAY: f64 = 0.5e9;

/// How far a clock may be off its tick, beside what delay explains.
const TOLERANCE: f64 = 0.02;

/// The stamps of one end, made longer than their 32 bits.
#[derive(Clone, Copy, Debug)]
pub struct Stamps {
    newest: u32,
    total: i64,
}

impl Stamps {
    /// With the first stamp, which counts as 0.
    pub fn new(stamp: u32) -> Stamps {
        Stamps { newest: stamp, total: 0 }
    }

    /// Ticks since the first stamp.
    pub fn ticks(&mut self, stamp: u32) -> i64 {
        self.total += i64::from(stamp.wrapping_sub(self.newest) as i32);
        self.newest = stamp;
        self.total
    }
}

/// A delay by the stamps of a clock that counts ticks, as far as they show that it changes.
///
/// A stamp says nothing of when in its tick it was taken. Of packets that are sent in step with the ticks, this
/// moment is all that changes, and it changes as a queue does. So a delay is known to lie within a tick, and counts
/// as changed by no more than all that is known requires: changes below a tick are none, and of a queue as short
/// as two ticks half is left.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    tick: i64,
    /// Nanoseconds.
    delay: Option<i64>,
}

impl Known {
    /// Of stamps that count ticks of so many nanoseconds; 0: the delay is known as it is.
    pub fn new(tick: i64) -> Known {
        Known { tick, delay: None }
    }

    /// The delay, of which the stamps show that it is at most `most` and longer than that less a tick.
    pub fn within(&mut self, most: i64) -> i64 {
        let known = self.delay.unwrap_or(most).clamp(most.saturating_sub(self.tick), most);
        self.delay = Some(known);
        known
    }
}

/// A time without packets, which may be one that the clock here was set ahead by.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    /// Of the first packet behind it.
    pub number: u64,
    /// When the last packet before it passed.
    pub from: i64,
}

/// A clock at the beginning of a gap.
#[derive(Clone, Copy, Debug)]
struct Origin {
    /// [`Gap::number`].
    gap: u64,
    time: i64,
    total: i64,
    tick: i64,
}

/// One end's clock, seen from here.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    first: i64,
    last: i64,
    stamps: Stamps,
    /// At the last gap.
    origin: Option<Origin>,
    /// For each of [`TICKS`], the least and the largest delay since the first stamp, nanoseconds.
    delays: [(i64, i64); TICKS.len()],
}

impl Clock {
    /// With the first stamp and when it passed.
    pub fn new(time: i64, stamp: u32) -> Clock {
        Clock {
            first: time,
            last: time,
            stamps: Stamps::new(stamp),
            origin: None,
            delays: Default::default(),
        }
    }

    /// By how much more the time here advanced over `gap` than the stamps did, up to a stamp that passes
    /// now and is not [seen](Clock::see) yet, nanoseconds. None: the clock is not known from before.
    pub fn ahead(&mut self, gap: Gap, time: i64, stamp: u32) -> Option<i64> {
        if self.origin.is_none_or(|origin| origin.gap != gap.number) {
            if self.last > gap.from {
                return None;
            }
            let tick = self.origin.map(|origin| origin.tick).or_else(|| self.tick())?;
            let (time, total) = (self.last, self.stamps.total);
            self.origin = Some(Origin { gap: gap.number, time, total, tick });
        }
        let Origin { time: from, total, tick, .. } = self.origin?;
        // Half of 32 bits, after which a stamp may be of another turn.
        if time.saturating_sub(from) / tick >= 1 << 31 {
            return None;
        }
        let ticks = self.stamps.clone().ticks(stamp) - total;
        Some(time.saturating_sub(from).saturating_sub(ticks.saturating_mul(tick)))
    }

    /// Another stamp passed.
    pub fn see(&mut self, time: i64, stamp: u32) {
        self.last = self.last.max(time);
        self.stamps.ticks(stamp);
    }

    /// The delay of the stamp that passed last, at its time, counts for [`Clock::change`].
    pub fn compare(&mut self, time: i64) {
        let since = time.saturating_sub(self.first);
        for ((least, most), tick) in self.delays.iter_mut().zip(TICKS) {
            let delay = since.saturating_sub(self.stamps.total.saturating_mul(tick));
            *least = delay.min(*least);
            *most = delay.max(*most);
        }
    }

    /// How much delay changes from the stamps' host to here, nanoseconds; 0 if the stamps are of no known
    /// clock.
    pub fn change(&self) -> i64 {
        let tick = self.tick().and_then(|tick| TICKS.iter().position(|of| *of == tick));
        tick.map_or(0, |tick| self.delays[tick].1.saturating_sub(self.delays[tick].0))
    }

    /// Nanoseconds of a tick, if the stamps are those of a clock that is known.
    pub fn tick(&self) -> Option<i64> {
        let span = self.last.saturating_sub(self.first);
        if span < SHORTEST || self.stamps.total <= 0 {
            return None;
        }
        let span = span as f64;
        let ratio = |tick: i64| (self.stamps.total as f64 * tick as f64 / span - 1.0).abs();
        TICKS.into_iter().find(|&tick| ratio(tick) < (TOLERANCE + DELAY / span).min(0.3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tick found for a clock that makes `hertz` stamps a second, observed for so many seconds with
    /// delay that rises by `delay_ms`.
    fn tick_of(hertz: f64, seconds: f64, delay_ms: f64) -> Option<i64> {
        let packets = 500;
        let mut clock: Option<Clock> = None;
        for packet in 0..=packets {
            let sent = seconds * f64::from(packet) / f64::from(packets);
            // It wraps on the way.
            let stamp = (u32::MAX - 100).wrapping_add((sent * hertz) as u64 as u32);
            let time = ((sent + sent / seconds * delay_ms / 1e3) * 1e9) as i64;
            clock.get_or_insert(Clock::new(time, stamp)).see(time, stamp);
        }
        clock.unwrap().tick()
    }

    #[test]
    fn the_four_clocks_are_reported_under_delay_and_skew() {
        for (hertz, tick) in
            [(1e6, 1_000), (1e3, 1_000_000), (250.0, 4_000_000), (100.0, 10_000_000)]
        {
            for skew in [-200e-6, 0.0, 200e-6] {
                let hertz = hertz * (1.0 + skew);
                assert_eq!(tick_of(hertz, 600.0, 300.0), Some(tick), "{hertz} Hz");
                assert_eq!(tick_of(hertz, 2.0, 200.0), Some(tick), "{hertz} Hz");
            }
        }
    }

    /// What is known of delays in units of a tenth of a tick: of packets sent so far after the last tick.
    #[test]
    fn what_the_moment_of_a_stamp_explains_is_no_change_of_delay() {
        let seen = |tick: i64, of: &[(i64, i64)]| {
            let mut known = Known::new(tick);
            of.iter().map(|(delay, after)| known.within(delay + after)).collect::<Vec<_>>()
        };
        let in_step: Vec<(i64, i64)> = (0..50).map(|packet| (70, 3 * packet % 10)).collect();
        assert_eq!(seen(10, &in_step), [70; 50]);
        assert_eq!(seen(0, &[(70, 0), (70, 9), (72, 3)]), [70, 79, 75]);
        // A queue of five ticks, first and last at its least.
        let queue: Vec<(i64, i64)> =
            (0..=100).map(|at: i64| (50 - (at - 50).abs(), at % 7)).collect();
        let seen = seen(10, &queue);
        assert!(seen.iter().zip(&queue).all(|(seen, (right, _))| (seen - right).abs() <= 10));
        assert!(seen.iter().max() >= Some(&40) && seen[100] <= 6);
    }

    #[test]
    fn change_of_delay_is_that_of_the_right_tick() {
        let mut clock = Clock::new(0, 7);
        for (time_ms, stamp) in [(500, 507), (1_012, 1_007), (2_000, 2_007), (3_041, 3_007)] {
            clock.see(time_ms * 1_000_000, stamp);
            clock.compare(time_ms * 1_000_000);
        }
        assert_eq!((clock.tick(), clock.change()), (Some(1_000_000), 41_000_000));
    }

    #[test]
    fn what_is_no_such_clock_is_not_taken_for_one() {
        assert_eq!(tick_of(1e3, 0.5, 0.0), None, "too short");
        assert_eq!(tick_of(1e3 * 1.2, 60.0, 0.0), None, "no tick that is in use");
        assert_eq!(tick_of(0.0, 60.0, 0.0), None, "it stands still");
    }
}
