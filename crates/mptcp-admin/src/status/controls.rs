//! Our controls in the kernel, found by their struct_ops maps: whoever loaded them, pinned or not, and
//! also those that are unloaded and still run by sockets.

use crate::assign::{self, Use};
use libbpf_rs::query::{
    LinkInfoIter, LinkTypeInfo, MapInfoIter, ProgInfoIter, ProgInfoQueryOptions, ProgramInfo,
};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, ProgramType};
use narrows_foreign::Foreign;
use narrows_kernel::bpffs;
use narrows_kernel::pins::FOLDER;
use narrows_kernel::register::{NAME_MAX, available_controls, is_ours};
use narrows_kernel::{Signal, object, state};
use narrows_laws::catalogue::control_of_kernel_name;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
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
    /// Is it pinned where `narrows kernel load` does?
    pub pinned: bool,
    /// What keeps it registered; null: it is not, or that is not seen.
    pub kept: Option<Keeper>,
    /// Network namespaces whose default it is, whoever set it.
    pub default_in: Vec<Default>,
    /// Where `narrows kernel use` put it; null: not seen.
    pub uses: Option<Vec<Use>>,
    /// What its detector samples: rtt, sender-ms or sender-us; null: it has none that decides, or that
    /// is not seen.
    pub signal: Option<&'static str>,
    /// Its programs, by name.
    pub programs: Vec<Program>,
    /// What it counted.
    pub counters: Counters,
}

/// What keeps a control registered.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase", tag = "by")]
pub enum Keeper {
    /// `narrows kernel load`, by its pin.
    Narrows,
    /// The kernel, until it is unregistered: someone registered it without a link, as bpftool does.
    Kernel {
        /// Id of its struct_ops map, for `bpftool struct_ops unregister id`.
        id: u32,
    },
    /// Processes that have its link open; it ends with the last of them.
    Process {
        /// The first of them.
        pid: u32,
        /// Its command.
        command: Foreign,
    },
    /// Its link is pinned elsewhere, as in the BPF file system of another mount namespace.
    Pin,
}

/// A network namespace that a control is the default of.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Default {
    /// Its name.
    pub netns: Foreign,
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

    /// Those of its counters that report paths under the fallback law, or without detection, where
    /// not zero.
    pub fn problems(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let problem = |name: &str| name.starts_with("fallback") || name == "undetected";
        let all = self.counters.iter().filter(move |(name, n)| problem(name) && **n > 0);
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
    let unseen = bpffs::problem().is_some_and(|problem| problem.is_unseen());
    let uses = if unseen { None } else { assign::uses().ok() };
    // Newest first: of several builds of one name that one is registered.
    let mut objects = objects();
    objects.sort_by_key(|object| Reverse(object.programs.first().map(|program| program.load_time)));
    let links = links();
    let mut taken = HashSet::new();
    let mut controls = Vec::new();
    for Object { kernel_name, map, programs } in objects {
        let control = control_of_kernel_name(&kernel_name);
        let counters = counters(&programs).unwrap_or_default();
        let decides = control.is_some_and(|control| control.detector.decides());
        let signal = decides.then(|| signal(&programs)).flatten().map(Signal::name);
        let mut programs: Vec<Program> = programs.into_iter().map(Program::of).collect();
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        let registered = registered.contains(&kernel_name) && taken.insert(kernel_name.clone());
        let pinned = registered && Path::new(FOLDER).join(&kernel_name).exists();
        let kept = match (registered, pinned, links.get(&map)) {
            (false, ..) => None,
            (true, true, _) => Some(Keeper::Narrows),
            (true, false, Some(&link)) => Some(holder_of_link(link).unwrap_or(Keeper::Pin)),
            // Before Linux 6.4 also what narrows loaded.
            (true, false, None) => (!unseen).then_some(Keeper::Kernel { id: map }),
        };
        let here = |all: &Vec<Use>| {
            let here = all.iter().filter(|one| registered && one.name == kernel_name);
            here.cloned().collect::<Vec<_>>()
        };
        controls.push(Control {
            name: control.map_or_else(|| kernel_name.clone(), |control| control.to_string()),
            registered,
            pinned,
            kept,
            default_in: Vec::new(),
            uses: uses.as_ref().map(here),
            kernel_name,
            signal,
            programs,
            counters,
        });
    }
    // Older builds below the registered one.
    controls.sort_by(|a, b| (&a.name, !a.registered).cmp(&(&b.name, !b.registered)));
    controls
}

/// The struct_ops links of this kernel, by the map that each has registered.
fn links() -> HashMap<u32, u32> {
    let links = LinkInfoIter::default().filter_map(|link| match link.info {
        LinkTypeInfo::StructOps(info) => Some((info.map_id, link.id)),
        _ => None,
    });
    links.collect()
}

/// The first process that has a link open.
fn holder_of_link(id: u32) -> Option<Keeper> {
    let wanted = format!("link_id:\t{id}");
    let holds = |pid: &u32| {
        let fds = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        fds.filter(|fd| fs::read_link(fd.path()).is_ok_and(|to| to.as_os_str() == LINK)).any(|fd| {
            let info = Path::new("/proc").join(pid.to_string()).join("fdinfo").join(fd.file_name());
            fs::read_to_string(info).is_ok_and(|text| text.lines().any(|line| line == wanted))
        })
    };
    let pid = narrows_netns::processes().ok()?.into_iter().find(holds)?;
    Some(Keeper::Process { pid, command: narrows_netns::command(pid) })
}

/// What a descriptor of a BPF link is called in /proc.
const LINK: &str = "anon_inode:bpf_link";

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

/// A control as the kernel has it.
struct Object {
    kernel_name: String,
    /// Id of its struct_ops map.
    map: u32,
    programs: Vec<ProgramInfo>,
}

/// The struct_ops maps that hold one of our controls, with its programs.
fn objects() -> Vec<Object> {
    let maps: Vec<(u32, Vec<u8>)> = MapInfoIter::default()
        .filter(|info| info.ty == MapType::StructOps && info.name == "nr_ops")
        .filter_map(|info| {
            // It may have died meanwhile.
            let value = MapHandle::from_map_id(info.id).ok()?.lookup(&[0; 4], MapFlags::ANY);
            Some((info.id, value.ok()??))
        })
        .collect();
    if maps.is_empty() {
        return Vec::new();
    }
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    let programs: Vec<ProgramInfo> = ProgInfoIter::with_query_opts(options)
        .filter(|info| info.ty == ProgramType::StructOps)
        .collect();
    let objects = maps.into_iter().filter_map(|(map, value)| {
        let kernel_name = name_in(&value)?;
        // Where the kernel has a pointer to a program, user space reads the program's id.
        let ids: HashSet<u64> =
            value.chunks_exact(8).map(|id| u64::from_ne_bytes(id.try_into().unwrap())).collect();
        let own = programs.iter().filter(|program| ids.contains(&program.id.into()));
        Some(Object { kernel_name, map, programs: own.cloned().collect() })
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
    let map = map_of(programs, "nr_counters")?;
    Some(state::counters(&map).ok()?.into_iter().collect())
}

fn signal(programs: &[ProgramInfo]) -> Option<Signal> {
    let constants = map_of(programs, ".rodata.control")?.lookup(&[0; 4], MapFlags::ANY).ok()??;
    object::signal_of(&constants)
}

/// A map of these programs.
fn map_of(programs: &[ProgramInfo], name: &str) -> Option<MapHandle> {
    let maps: HashSet<u32> = programs.iter().flat_map(|info| info.map_ids.clone()).collect();
    let id = MapInfoIter::default()
        .find(|info| info.name == name && maps.contains(&info.id))
        .map(|info| info.id)?;
    MapHandle::from_map_id(id).ok()
}
