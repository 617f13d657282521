//! The estimated cost of runs: a warning before long runs, an error for infeasible ones.

use narrows_lab::units::show_bytes;
use narrows_lab::{Error, Estimate, Host, Scenario};

/// Runs longer than this are announced: an hour, in seconds.
const LONG: f64 = 3600.0;

/// Runs longer than this are refused: two days, in seconds.
const ABSURD: f64 = 2.0 * 86_400.0;

/// What some runs need together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// In the simulator.
    packet_hops: f64,
    /// Bytes, of all the runs that are under way at the same time.
    memory: f64,
    /// Wall time, seconds.
    seconds: f64,
}

impl Size {
    /// Cost of `times` runs of each of `scenarios` on each of `hosts`, `jobs` at the same time; 0:
    /// one per core, in real time one.
    pub fn of<'a>(
        scenarios: impl IntoIterator<Item = &'a Scenario>,
        hosts: &[&dyn Host],
        times: u64,
        jobs: usize,
    ) -> Size {
        let scenarios: Vec<_> = scenarios.into_iter().collect();
        let runs = scenarios.len() as f64 * times as f64;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs_at_once =
            |default| runs.min(if jobs == 0 { default } else { jobs } as f64).max(1.0);
        let mut size = Size { packet_hops: 0.0, memory: 0.0, seconds: 0.0 };
        for &host in hosts {
            let all: f64 = scenarios.iter().map(|one| times as f64 * host.seconds(one)).sum();
            if host.real_time() {
                size.seconds += all / jobs_at_once(1);
                continue;
            }
            size.seconds += all / jobs_at_once(cores).min(cores as f64);
            for one in scenarios.iter().map(|one| Estimate::of(one)) {
                size.packet_hops += times as f64 * one.packet_hops;
                size.memory = size.memory.max(one.memory * jobs_at_once(cores));
            }
        }
        size
    }

    /// With the series of `kept` runs of each of `scenarios`, which are in memory to the end.
    pub fn with_series<'a>(
        self,
        scenarios: impl IntoIterator<Item = &'a Scenario>,
        kept: u64,
    ) -> Size {
        let all: f64 = scenarios.into_iter().map(Estimate::series).sum();
        Size { memory: self.memory + all * kept as f64, ..self }
    }

    /// Warns before a long run.
    ///
    /// # Errors
    /// Not enough memory, or runs of days, unless `force` is set.
    pub fn check(self, force: bool) -> Result<(), Error> {
        if !force {
            self.refuse(available_memory())?;
        }
        if self.seconds > LONG {
            let hops = match self.packet_hops {
                0.0 => "real time".into(),
                hops => format!("up to {:.0} million packet-hops", hops / 1e6),
            };
            let time = show_wait(self.seconds);
            crate::note(&format!("narrows: this takes about {time} ({hops})"));
        }
        Ok(())
    }

    fn refuse(self, available: Option<u64>) -> Result<(), Error> {
        if let Some(available) = available.filter(|&available| self.memory > available as f64) {
            let (needed, available) = (show_bytes(self.memory as u64), show_bytes(available));
            let message = format!(
                "a run may take {needed}, and {available} are available; shorter queues, smaller \
                 buffers or fewer series need less, --force runs it anyway"
            );
            return Err(Error::input("memory", message));
        }
        if self.seconds > ABSURD {
            let time = show_wait(self.seconds);
            let message = format!("takes about {time}; --force runs it anyway");
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
    use narrows_lab::{Edits, HostId, Job, Run, host, parse};

    use super::*;

    /// A host in real time.
    struct Real;

    impl Host for Real {
        fn id(&self) -> HostId {
            HostId::new("real")
        }

        fn real_time(&self) -> bool {
            true
        }

        fn check(&self, _: &Job) -> Result<(), Error> {
            Ok(())
        }

        fn run(&self, _: Job) -> Result<Run, Error> {
            unreachable!("only looked at")
        }
    }

    fn sim() -> &'static dyn Host {
        host("sim").unwrap()
    }

    /// A link of 12 Mbit/s, which is a packet of 1500 B per ms, filled for so many hours.
    fn scenario(hours: u64) -> Scenario {
        let text = "name = \"n\"\ntitle = \"\"\nsource = \"\"\nwarmup = \"0 s\"\nduration = \"1 s\"\n\
             links.l = { rate = \"12 Mbit/s\", queue = \"20 packets\" }\n\
             routes.r = { links = [\"l\"], rtt = \"20 ms\" }\n\
             flows.a = { kind = \"tcp\", routes = [\"r\"], cc = \"reno\" }";
        let mut scenario = parse(text, &Edits::default()).unwrap();
        scenario.duration = hours * 3600 * 1_000_000_000;
        scenario.flows[0].active[0].1 = scenario.duration;
        scenario
    }

    #[test]
    fn what_is_out_of_reach_is_refused_with_its_size() {
        let refusal =
            |size: Size, available| size.refuse(available).map_err(|error| error.to_string());
        let of = |memory, hours: f64| Size { packet_hops: 0.0, memory, seconds: hours * 3600.0 };
        assert_eq!(refusal(of(1e9, 1.0), Some(1_000_000_000)), Ok(()));
        assert_eq!(
            refusal(of(1e9, 1.0), Some(999_000_000)).unwrap_err(),
            "memory: a run may take 1 GB, and 999 MB are available; shorter queues, smaller \
             buffers or fewer series need less, --force runs it anyway"
        );
        assert_eq!(refusal(of(1e9, 48.0), None), Ok(()));
        let message = refusal(of(1e9, 72.0), None).unwrap_err();
        assert_eq!(message, "time: takes about 3 days; --force runs it anyway");

        let real = |times| Size::of([&scenario(2)], &[&Real], times, 0);
        assert_eq!(refusal(real(24), None), Ok(()));
        let message = refusal(real(36), None).unwrap_err();
        assert_eq!(message, "time: takes about 3 days; --force runs it anyway");
    }

    #[test]
    fn runs_at_the_same_time_need_their_memory_together() {
        let one = scenario(1);
        let memory = |times, jobs| Size::of([&one], &[sim()], times, jobs).memory;
        let alone = Estimate::of(&one).memory;
        assert_eq!([memory(8, 1), memory(8, 3), memory(2, 3)], [1.0, 3.0, 2.0].map(|n| n * alone));
    }

    #[test]
    fn series_are_kept_of_all_runs_to_the_end() {
        let one = scenario(1);
        let size = Size::of([&one], &[sim()], 8, 1);
        let memory = size.with_series([&one, &one], 4).memory;
        assert_eq!(memory, Estimate::of(&one).memory + 8.0 * Estimate::series(&one));
        assert!(Estimate::series(&one) > 36_000.0 * 50.0, "36,000 samples of one path");
    }

    #[test]
    fn real_time_is_that_of_one_run_after_the_other_unless_asked_otherwise() {
        let one = scenario(1);
        let real = |jobs| Size::of([&one], &[&Real], 6, jobs).seconds / 3600.0;
        assert_eq!([0, 1, 3, 64].map(real), [6.0, 6.0, 2.0, 1.0]);
        let both = Size::of([&one], &[sim(), &Real], 6, 1).seconds;
        assert_eq!(both, 6.0 * Estimate::of(&one).seconds() + 6.0 * 3600.0);
        assert_eq!(Size::of([&one], &[&Real], 6, 1).memory, 0.0);
    }
}
