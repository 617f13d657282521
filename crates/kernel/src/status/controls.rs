//! Our controls in the kernel, found by their BPF programs: whoever loaded them, pinned or not, and
//! also those that are unloaded and still run by sockets.

use crate::assign::{self, Use};
use crate::pins::FOLDER;
use crate::state::COUNTERS;
use libbpf_rs::query::{MapInfoIter, ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::{MapCore, MapFlags, MapHandle, ProgramType};
use narrows_laws::catalogue::{DETECTORS, LAWS, STARTS, kernel_name};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

/// Which control an object was loaded as; the constants are one map.
const SWITCHES: &str = ".rodata.control";

/// A control's counters since it was loaded, by the names of `enum nr_counter`.
pub type Counters = BTreeMap<&'static str, u64>;

/// A control in the kernel.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Control {
    /// Its name here: `LAW[+DETECTOR][+START]`.
    pub name: String,
    /// Its name in the kernel, as sysctl, setsockopt and ss have it.
    pub kernel_name: String,
    /// Can sockets ask for it? If not, it is an older build or unloaded, and sockets still run it.
    pub registered: bool,
    /// Does its registration outlive who loaded it?
    pub pinned: bool,
    /// Network namespaces whose sockets get it where none is asked for, whoever set that.
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

    /// Those of its counters that tell of paths that ran uncoupled or careful, where not zero.
    pub fn problems(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = self.counters.iter().filter(|(name, n)| name.starts_with("careful") && **n > 0);
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
    let switches: HashSet<u32> =
        MapInfoIter::default().filter(|info| info.name == SWITCHES).map(|info| info.id).collect();
    let (registered, uses) = (registered(), assign::uses().unwrap_or_default());
    // Newest first: of several builds of one name that one is registered.
    let mut objects = objects(&switches);
    objects.sort_by_key(|(_, programs)| std::cmp::Reverse(programs[0].load_time));
    let mut taken = HashSet::new();
    let mut controls = Vec::new();
    for (switches, programs) in objects {
        let Some(control) = read_switches(switches) else { continue };
        let kernel_name = kernel_name(control);
        let counters = counters(&programs).unwrap_or_default();
        let mut programs: Vec<Program> = programs.into_iter().map(Program::of).collect();
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        let registered = registered.contains(&kernel_name) && taken.insert(kernel_name.clone());
        controls.push(Control {
            name: control.to_string(),
            registered,
            pinned: registered && Path::new(FOLDER).join(&kernel_name).exists(),
            default_in: Vec::new(),
            uses: uses
                .iter()
                .filter(|one| registered && one.name == kernel_name)
                .cloned()
                .collect(),
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

/// The programs of each object, under the id of its switches' map.
fn objects(switches: &HashSet<u32>) -> Vec<(u32, Vec<ProgramInfo>)> {
    let mut objects: BTreeMap<u32, Vec<ProgramInfo>> = BTreeMap::new();
    if switches.is_empty() {
        return Vec::new();
    }
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    for info in ProgInfoIter::with_query_opts(options) {
        let ours = info.ty == ProgramType::StructOps;
        let map = info.map_ids.iter().find(|id| ours && switches.contains(id)).copied();
        if let Some(map) = map {
            objects.entry(map).or_default().push(info);
        }
    }
    objects.into_iter().collect()
}

/// The control's law, detector and start, if this build knows them.
fn read_switches(map: u32) -> Option<narrows_laws::Control> {
    let value = MapHandle::from_map_id(map).ok()?.lookup(&[0; 4], MapFlags::ANY).ok()??;
    let number = |at: usize| {
        Some(u32::from_ne_bytes(value.get(4 * at..4 * at + 4)?.try_into().ok()?) as usize)
    };
    Some(narrows_laws::Control {
        law: LAWS.get(number(0)?)?.item,
        detector: DETECTORS.get(number(1)?)?.item,
        start: STARTS.get(number(2)?)?.item,
    })
}

fn counters(programs: &[ProgramInfo]) -> Option<Counters> {
    let maps: HashSet<u32> = programs.iter().flat_map(|info| info.map_ids.clone()).collect();
    let id = MapInfoIter::default()
        .find(|info| info.name == "nr_counters" && maps.contains(&info.id))
        .map(|info| info.id)?;
    let map = MapHandle::from_map_id(id).ok()?;
    let mut all = Counters::new();
    for (index, name) in COUNTERS.iter().enumerate() {
        let value = map.lookup(&(index as u32).to_ne_bytes(), MapFlags::ANY).ok()??;
        all.insert(name, u64::from_ne_bytes(value.try_into().ok()?));
    }
    Some(all)
}

/// The names that sockets can ask for.
fn registered() -> HashSet<String> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    names.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}
