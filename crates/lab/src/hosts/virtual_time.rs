//! The course of a run in virtual time: its warm-up, its samples, its events.

use std::sync::atomic::{AtomicBool, Ordering};

use narrows_net::{ConfigError, Nanos, SECOND};

use crate::Error;
use crate::measured::Observed;
use crate::recorder::Recorder;
use crate::scenario::{EventKind, Scenario};
use crate::series::INTERVAL;

/// A scenario that runs in virtual time.
pub trait World: Observed {
    /// Time since the start of the run.
    fn now(&self) -> Nanos;

    /// Lets everything happen up to `time`.
    ///
    /// # Errors
    /// What is captured cannot be written.
    fn run_until(&mut self, time: Nanos) -> Result<(), Error>;

    /// Lets an event of the scenario happen now.
    ///
    /// # Errors
    /// A link cannot change so.
    fn happen(&mut self, what: &EventKind) -> Result<(), ConfigError>;

    /// Sets the counters of all links to 0.
    fn reset_link_counters(&mut self);
}

/// Runs `scenario` in `world` from its start to its end. Looks at `stop` after each `slice` of time.
///
/// # Errors
/// [`Error::Interrupted`] once `stop` is set, and those of `world`.
pub fn play<'a>(
    world: &mut impl World,
    scenario: &'a Scenario,
    series: bool,
    slice: Nanos,
    stop: &AtomicBool,
) -> Result<Recorder<'a>, Error> {
    let mut events = scenario.events.iter().peekable();
    let mut recorder = Recorder::new(scenario, series);
    let run_until = |world: &mut _, time| run_until(world, time, slice, stop);
    let mut now = 0;
    while now < scenario.end() {
        if now == scenario.warmup {
            recorder.begin(now, world);
            world.reset_link_counters();
        }
        let next = (now + INTERVAL).min(scenario.end());
        // The analysis begins exactly at the end of the warm-up.
        let next = if now < scenario.warmup { next.min(scenario.warmup) } else { next };
        while let Some(event) = events.next_if(|event| event.at < next) {
            run_until(world, event.at)?;
            world.happen(&event.what).map_err(|error| Error::input(&scenario.name, error))?;
        }
        run_until(world, next)?;
        now = next;
        recorder.sample(now, world);
    }
    Ok(recorder)
}

fn run_until(
    world: &mut impl World,
    time: Nanos,
    slice: Nanos,
    stop: &AtomicBool,
) -> Result<(), Error> {
    while world.now() < time {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        world.run_until((world.now() + slice).min(time))?;
    }
    Ok(())
}

/// Simulated time between two looks at whether to stop: that of a sample, or less if links are so fast
/// that it would be more than a million packets.
pub fn slice(scenario: &Scenario) -> Nanos {
    const BITS: u128 = 8 * 1500 * 1_000_000;
    let rate: u128 = scenario.links.iter().map(|link| u128::from(link.mean_rate())).sum();
    let bits = rate * u128::from(INTERVAL) / u128::from(SECOND);
    (u128::from(INTERVAL) / (1 + bits / BITS)).max(1) as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edits, load};

    #[test]
    fn fast_links_are_interrupted_as_soon_as_slow_ones() {
        let with = |rate: &str| {
            let set = vec![("links.wifi.rate".into(), rate.into())];
            slice(&load("phone/wifi-lte", &Edits { set, ..Edits::default() }).unwrap())
        };
        assert_eq!(with("30 Mbit/s"), INTERVAL);
        // 16.7 million packets in 100 ms.
        assert_eq!(with("2 Tbit/s"), INTERVAL / 17);
    }
}
