//! The kernel's run-time statistics of BPF programs.
//!
//! They are on while a descriptor of BPF_ENABLE_STATS is open, in this process or any other; no
//! sysctl is touched, and with the process they end. The kernel then reads its clock before and
//! after every run of a program, so what it reports includes one reading of the clock and the call:
//! the same for every program, and measured with an empty one.

use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{Object, Program, libbpf_sys};
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use crate::Result;

/// The statistics are on as long as this lives.
pub struct Statistics {
    _on: OwnedFd,
}

impl Statistics {
    pub fn on() -> Result<Statistics> {
        // SAFETY: a system call without pointers.
        let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if fd < 0 {
            return Err(format!("BPF_ENABLE_STATS: {}", io::Error::from_raw_os_error(-fd)).into());
        }
        // SAFETY: the descriptor is new and ours.
        Ok(Statistics { _on: unsafe { OwnedFd::from_raw_fd(fd) } })
    }
}

/// Runs of a program, and the time they took together.
#[derive(Clone, Copy, Default)]
pub struct Runs {
    pub count: u64,
    pub ns: u64,
}

impl Runs {
    pub fn since(self, before: Runs) -> Runs {
        Runs { count: self.count - before.count, ns: self.ns - before.ns }
    }

    pub fn ns_per_run(self) -> f64 {
        self.ns as f64 / self.count as f64
    }
}

/// The programs of a congestion control, by their ids.
#[derive(Clone)]
pub struct Programs(HashSet<u32>);

impl Programs {
    /// Those of a loaded object.
    pub fn of(object: &Object) -> Result<Programs> {
        let ids = object.progs().map(|program| Program::id_from_fd(program.as_fd()));
        Ok(Programs(ids.collect::<std::result::Result<_, _>>()?))
    }

    /// Each program's name, and its runs since it was loaded.
    pub fn runs(&self) -> Vec<(String, Runs)> {
        let ours = ProgInfoIter::default().filter(|program| self.0.contains(&program.id));
        ours.map(|program| {
            let runs = Runs { count: program.run_cnt, ns: program.run_time_ns };
            (program.name.to_string_lossy().into_owned(), runs)
        })
        .collect()
    }
}
