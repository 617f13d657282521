//! What the machine says of its CPU time.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::Result;

/// A tick of /proc/stat: USER_HZ is 100 wherever Linux runs.
const TICK: Duration = Duration::from_millis(10);

/// The CPUs, and where the CPU time of their softirq threads stands.
pub struct Machine {
    pub cpus: u32,
    ksoftirqd: Vec<PathBuf>,
}

impl Machine {
    pub fn look() -> Result<Machine> {
        let is_softirq = |process: &PathBuf| {
            fs::read_to_string(process.join("comm")).is_ok_and(|name| name.starts_with("ksoftirqd"))
        };
        let processes = fs::read_dir("/proc")?.map(|entry| Ok(entry?.path()));
        let processes = processes.collect::<Result<Vec<_>>>()?;
        let stat = fs::read_to_string("/proc/stat")?;
        let cpus = stat.lines().filter(|line| line.starts_with("cpu")).count() as u32 - 1;
        Ok(Machine { cpus, ksoftirqd: processes.into_iter().filter(is_softirq).collect() })
    }

    /// CPU time of all ksoftirqd threads since boot.
    pub fn softirq(&self) -> Result<Duration> {
        let mut all = 0;
        for thread in &self.ksoftirqd {
            let stat = fs::read_to_string(thread.join("schedstat"))?;
            all += stat.split(' ').next().unwrap_or_default().parse::<u64>()?;
        }
        Ok(Duration::from_nanos(all))
    }

    /// What all CPUs were idle together since boot. The kernel measures it, ticks do not sample it.
    pub fn idle(&self) -> Result<Duration> {
        let stat = fs::read_to_string("/proc/stat")?;
        let fields = stat.split_ascii_whitespace().skip(4).take(2); // idle, iowait
        Ok(TICK * fields.map(str::parse::<u32>).sum::<std::result::Result<u32, _>>()?)
    }
}
