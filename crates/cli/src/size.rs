//! What lies ahead, said before it starts; what is out of reach is refused.

use std::io::Write;

use narrows_lab::units::show_bytes;
use narrows_lab::{Error, Estimate};

/// A wait of this many seconds is told: an hour.
const LONG: f64 = 3600.0;

/// A wait of this many seconds is refused: two days.
const ABSURD: f64 = 2.0 * 86_400.0;

/// What some runs need together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    packet_hops: f64,
    /// Bytes, of all the runs that are under way at the same time.
    memory: f64,
    /// Wall time in seconds.
    seconds: f64,
}

impl Size {
    /// Of one run of each of `cases` for each of `times`, `jobs` at the same time.
    pub fn of(cases: impl Iterator<Item = Estimate>, times: u64, jobs: usize) -> Size {
        let mut size = Size { packet_hops: 0.0, memory: 0.0, seconds: 0.0 };
        let mut runs: f64 = 0.0;
        for case in cases {
            let times = times as f64;
            runs += times;
            size.packet_hops += times * case.packet_hops;
            size.seconds += times * case.seconds();
            size.memory = size.memory.max(case.memory);
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = if jobs == 0 { cores } else { jobs };
        size.memory *= runs.min(jobs as f64);
        size.seconds /= runs.min(jobs.min(cores) as f64).max(1.0);
        size
    }

    /// Says before a long wait that it will be one.
    ///
    /// # Errors
    /// The memory is not there, or the wait would be days, unless `force` is set.
    pub fn check(self, force: bool) -> Result<(), Error> {
        if !force {
            self.refuse(available_memory())?;
        }
        if self.seconds > LONG {
            let (millions, time) = (self.packet_hops / 1e6, show_wait(self.seconds));
            // Nobody is left to tell if standard error is closed.
            let _ = writeln!(
                std::io::stderr(),
                "narrows: up to {millions:.0} million packet-hops ahead, about {time}"
            );
        }
        Ok(())
    }

    fn refuse(self, available: Option<u64>) -> Result<(), Error> {
        if let Some(available) = available.filter(|&available| self.memory > available as f64) {
            let (needed, available) = (show_bytes(self.memory as u64), show_bytes(available));
            let message = format!(
                "a run may take {needed}, and {available} are available; shorter queues or smaller \
                 buffers take less, --force runs it as it is"
            );
            return Err(Error::input("memory", message));
        }
        if self.seconds > ABSURD {
            let time = show_wait(self.seconds);
            let message = format!("about {time} ahead; --force runs it all the same");
            return Err(Error::input("time", message));
        }
        Ok(())
    }
}

/// Memory that Linux can give without swapping, bytes; unknown elsewhere.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn show_wait(seconds: f64) -> String {
    match seconds / 3600.0 {
        hours if hours > 48.0 => format!("{:.0} days", hours / 24.0),
        hours => format!("{hours:.0} hours"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_reach_is_refused_with_its_size() {
        let one = Estimate { packet_hops: 3e6 * 3600.0, memory: 1e9 };
        let refusal = |times, available| {
            let size = Size::of([one].into_iter(), times, 1);
            size.refuse(available).map_err(|error| error.to_string())
        };
        assert_eq!(refusal(1, Some(1_000_000_000)), Ok(()));
        assert_eq!(
            refusal(1, Some(999_000_000)).unwrap_err(),
            "memory: a run may take 1 GB, and 999 MB are available; shorter queues or smaller \
             buffers take less, --force runs it as it is"
        );
        assert_eq!(refusal(48, None), Ok(()));
        let told = refusal(72, None).unwrap_err();
        assert_eq!(told, "time: about 3 days ahead; --force runs it all the same");
    }

    #[test]
    fn runs_at_the_same_time_need_their_memory_together() {
        let one = Estimate { packet_hops: 1.0, memory: 10.0 };
        let memory = |times, jobs| Size::of([one].into_iter(), times, jobs).memory;
        assert_eq!([memory(8, 1), memory(8, 3), memory(2, 3)], [10.0, 30.0, 20.0]);
    }
}
