//! Our controls in the kernel, found by their struct_ops maps: whoever loaded them, pinned or not, and
//! also those that are unloaded and still run by sockets.

use crate::assign::{self, Use};
use libbpf_rs::query::{MapInfoIter, ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, ProgramType};
use narrows_kernel::pins::FOLDER;
use narrows_kernel::register::{NAME_MAX, available_controls, is_ours};
use narrows_kernel::state;
use narrows_laws::catalogue::control_of_kernel_name;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

/// A control's counters since it was loaded, by the names of `enum nr_counter`.
pub type Counters = BTreeMap<&'static str, u64>;

/// A control in the kernel.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Control {
    /// Its name here: `LAW[+DETECTOR][+START]`; its name in the kernel for a user's law.
    pub name: String,
    /// Its name in the kernel, as sysctl, setsockopt and ss have it.
    pub kernel_name: String,
    /// Can sockets ask for it? If not, it is an older build or unloaded, and sockets still run it.
    pub registered: bool,
    /// Does its registration outlive who loaded it?
    pub pinned: bool,
    /// Network namespaces whose default it is, whoever set it.
    pub default_in: Vec<Default>,
    /// Where `narrows kernel use` put it.
    pub uses: Vec<Use>,
    /// Its programs, by name.
    pub programs: Vec<Program>,
    /// What it counted.
    pub counters: Counters,
}

/// A network namespace that a control is the default of.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Default {
    /// Its name.
    pub netns: String,
    /// Its number.
    pub inum: u32,
}

/// One of a control's programs.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Instructions that the verifier walked through; 0: before Linux 5.16.
    pub verified_insns: u32,
    /// Runs while the kernel kept statistics.
    pub runs: u64,
    /// Time they took together, ns.
    pub run_time_ns: u64,
}

impl Control {
    /// Instructions that the verifier walked through in all programs.
    pub fn verified_insns(&self) -> u32 {
        self.programs.iter().map(|program| program.verified_insns).sum()
    }

    /// Those of its counters that report paths under the fallback law, where not zero.
    pub fn problems(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = self.counters.iter().filter(|(name, n)| name.starts_with("fallback") && **n > 0);
        all.map(|(name, n)| (*name, *n))
    }
}

/// Does the kernel measure the run time of BPF programs?
pub(super) fn stats_enabled() -> bool {
    let value = fs::read_to_string("/proc/sys/kernel/bpf_stats_enabled");
    value.is_ok_and(|value| value.trim() == "1")
}

/// All our controls; none where this user may not see BPF programs.
pub(super) fn look() -> Vec<Control> {
    let registered: HashSet<String> =
        available_controls().unwrap_or_default().into_iter().collect();
    let uses = assign::uses().unwrap_or_default();
    // Newest first: of several builds of one name that one is registered.
    let mut objects = objects();
    objects.sort_by_key(|(_, programs)| Reverse(programs.first().map(|program| program.load_time)));
    let mut taken = HashSet::new();
    let mut controls = Vec::new();
    for (kernel_name, programs) in objects {
        let control = control_of_kernel_name(&kernel_name);
        let counters = counters(&programs).unwrap_or_default();
        let mut programs: Vec<Program> = programs.into_iter().map(Program::of).collect();
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        let registered = registered.contains(&kernel_name) && taken.insert(kernel_name.clone());
        let here = uses.iter().filter(|one| registered && one.name == kernel_name);
        controls.push(Control {
            name: control.map_or_else(|| kernel_name.clone(), |control| control.to_string()),
            registered,
            pinned: registered && Path::new(FOLDER).join(&kernel_name).exists(),
            default_in: Vec::new(),
            uses: here.cloned().collect(),
            kernel_name,
            programs,
            counters,
        });
    }
    // Older builds below the registered one.
    controls.sort_by(|a, b| (&a.name, !a.registered).cmp(&(&b.name, !b.registered)));
    controls
}

impl Program {
    /// Mean time of a run, ns; none: the kernel kept no statistics.
    pub fn ns_per_run(&self) -> Option<f64> {
        (self.runs > 0).then(|| self.run_time_ns as f64 / self.runs as f64)
    }

    fn of(info: ProgramInfo) -> Program {
        Program {
            name: info.name.to_string_lossy().into_owned(),
            verified_insns: info.verified_insns,
            runs: info.run_cnt,
            run_time_ns: info.run_time_ns,
        }
    }
}

/// The kernel name of the control that each struct_ops map holds, with its programs.
fn objects() -> Vec<(String, Vec<ProgramInfo>)> {
    let values: Vec<Vec<u8>> = MapInfoIter::default()
        .filter(|info| info.ty == MapType::StructOps && info.name == "nr_ops")
        // It may have died meanwhile.
        .filter_map(|info| {
            MapHandle::from_map_id(info.id).ok()?.lookup(&[0; 4], MapFlags::ANY).ok()?
        })
        .collect();
    if values.is_empty() {
        return Vec::new();
    }
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    let programs: Vec<ProgramInfo> = ProgInfoIter::with_query_opts(options)
        .filter(|info| info.ty == ProgramType::StructOps)
        .collect();
    let objects = values.iter().filter_map(|value| {
        let name = name_in(value)?;
        // Where the kernel has a pointer to a program, user space reads the program's id.
        let ids: HashSet<u64> =
            value.chunks_exact(8).map(|id| u64::from_ne_bytes(id.try_into().unwrap())).collect();
        let own = programs.iter().filter(|program| ids.contains(&program.id.into()));
        Some((name, own.cloned().collect()))
    });
    objects.collect()
}

/// The name of ours that stands in a `struct tcp_congestion_ops`, which differs by kernel; no other
/// field holds as many letters.
fn name_in(ops: &[u8]) -> Option<String> {
    ops.windows(NAME_MAX).find_map(|bytes| {
        let name = std::str::from_utf8(bytes.split(|byte| *byte == 0).next()?).ok()?;
        (is_ours(name) && name.len() > "nr_".len()).then(|| name.to_owned())
    })
}

fn counters(programs: &[ProgramInfo]) -> Option<Counters> {
    let maps: HashSet<u32> = programs.iter().flat_map(|info| info.map_ids.clone()).collect();
    let id = MapInfoIter::default()
        .find(|info| info.name == "nr_counters" && maps.contains(&info.id))
        .map(|info| info.id)?;
    let map = MapHandle::from_map_id(id).ok()?;
    Some(state::counters(&map).ok()?.into_iter().collect())
}
