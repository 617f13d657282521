//! The course of a run: its warm-up, its samples, its events.

use std::sync::atomic::{AtomicBool, Ordering};

use narrows_net::{Nanos, SECOND};
use narrows_sim::Detection;

use super::host::{Live, Seen};
use crate::Error;
use crate::detection::Found;
use crate::measured::{Observed, seconds};
use crate::recorder::Recorder;
use crate::scenario::{EventKind, Scenario};
use crate::series::INTERVAL;

/// A scenario that runs, in virtual or in real time.
pub trait World {
    /// Time since the start of the run.
    fn now(&self) -> Nanos;

    /// Lets everything happen up to `time`, or, in real time, something.
    ///
    /// # Errors
    /// What ends the run.
    fn run_until(&mut self, time: Nanos) -> Result<(), Error>;

    /// Lets an event of the scenario happen now.
    ///
    /// # Errors
    /// It cannot happen so.
    fn happen(&mut self, what: &EventKind) -> Result<(), Error>;

    /// The warm-up has ended: the counters of all links are 0 again.
    fn begin(&mut self);

    /// How flows are now, with `links` also the links, and when that is.
    ///
    /// # Errors
    /// The host does not say.
    fn look(&mut self, links: bool) -> Result<(Nanos, impl Observed), Error>;

    /// What the detector of the connection under test decided so far, if it has one.
    fn detection(&self) -> Option<&Detection>;

    /// All is sampled that was due at `due`: may it go on?
    ///
    /// # Errors
    /// Why not.
    fn check(&mut self, _due: Nanos) -> Result<(), Error> {
        Ok(())
    }
}

/// Runs `scenario` in `world` from its start to its end. Looks at `stop` after each `slice` of time. `live` sees
/// the samples of a series.
///
/// # Errors
/// [`Error::Interrupted`] once `stop` is set, and those of `world`.
pub fn play<'a>(
    world: &mut impl World,
    scenario: &'a Scenario,
    series: bool,
    live: Option<&dyn Live>,
    slice: Nanos,
    stop: &AtomicBool,
) -> Result<Recorder<'a>, Error> {
    let mut events = scenario.events.iter().peekable();
    let mut recorder = Recorder::new(scenario, series);
    let run_until = |world: &mut _, time| run_until(world, time, slice, stop);
    let mut due = 0;
    while due < scenario.end() {
        if due == scenario.warmup {
            world.begin();
            let (now, sample) = world.look(false)?;
            recorder.begin(now, &sample);
        }
        let next = (due + INTERVAL).min(scenario.end());
        // The analysis begins exactly at the end of the warm-up.
        let next = if due < scenario.warmup { next.min(scenario.warmup) } else { next };
        while let Some(event) = events.next_if(|event| event.at < next) {
            run_until(world, event.at)?;
            world.happen(&event.what)?;
        }
        run_until(world, next)?;
        due = next;
        let (now, sample) = world.look(series)?;
        recorder.sample(now, &sample);
        drop(sample);
        if let Some(live) = live {
            let decision = world.detection().and_then(|log| log.decisions.last());
            let paths = scenario.test.map_or(0, |test| scenario.flows[test].paths.len());
            let places = decision.into_iter().flat_map(|decision| decision.places).take(paths);
            let places = places.map(Found::from).collect();
            live.see(Seen { time_s: seconds(now), samples: recorder.latest(), places });
        }
        world.check(due)?;
    }
    Ok(recorder)
}

fn run_until(
    world: &mut impl World,
    time: Nanos,
    slice: Nanos,
    stop: &AtomicBool,
) -> Result<(), Error> {
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let now = world.now();
        if now >= time {
            return Ok(());
        }
        world.run_until((now + slice).min(time))?;
    }
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
