//! What runs now: loaded controls, where they are used, and every MPTCP connection with its
//! subflows, our controls' state joined with what the kernel reports of the sockets.
//!
//! The structs are the schema of `narrows kernel status --json`; docs/guide/watch.md shows it. Fields may
//! be added under the same [`FORMAT`].

mod connections;
mod controls;
mod detection;
pub mod export;
mod text;

pub use crate::listeners::Listener;
pub use connections::{Connection, Namespace, Subflow};
pub use controls::{Control, Counters, Default, Keeper, Program};
pub use detection::{Detection, Found, Group, Pair, PathSignal};
pub use text::Fit;

use crate::check::Machine;
use narrows_kernel::{bpffs, is_root, state};
use narrows_netns as netns;
use std::collections::HashMap;
use std::time::Instant;

/// Version of the schema.
pub const FORMAT: u32 = 3;

/// What runs now.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Status {
    /// [`FORMAT`].
    pub format: u32,
    /// The kernel that runs.
    pub kernel: Kernel,
    /// What this user was not shown, a line each; empty for root.
    pub unseen: Vec<String>,
    /// Our controls, loaded or still run by sockets, by name.
    pub controls: Vec<Control>,
    /// How full the map of connections is; null: there is none, or it is not seen.
    pub map: Option<Map>,
    /// Likewise the map of what detectors keep of connections.
    pub detection_map: Option<Map>,
    /// Network namespaces with connections or listeners to show, and the current one.
    pub namespaces: Vec<Namespace>,
    /// Seconds that the throughputs were measured over; null: there are none yet.
    pub interval_s: Option<f64>,
    #[serde(skip)]
    taken: Instant,
    /// The only namespace whose connections were looked at.
    #[serde(skip)]
    only: Option<netns::Namespace>,
}

/// A map with entries of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Map {
    /// Its entries, of all namespaces.
    pub entries: usize,
    /// How many it has room for.
    pub entries_max: u32,
}

/// The byte counters of all sockets at a moment, which throughput is measured from.
pub struct Sample {
    taken: Instant,
    /// By the socket's cookie.
    bytes: HashMap<u64, Bytes>,
}

/// The byte counters of a socket.
struct Bytes {
    /// When its namespace's sockets were read: with many namespaces some ms after the first's.
    read: Instant,
    acked: u64,
    received: u64,
}

impl Sample {
    /// Of all namespaces, or of one.
    pub fn look(only: Option<&netns::Namespace>) -> Sample {
        Sample { taken: Instant::now(), bytes: connections::bytes(only) }
    }
}

/// The kernel, as far as controls differ by it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Kernel {
    /// Its release, as in `uname -r`.
    pub release: String,
    /// Are controls held by struct_ops links (Linux 6.4), or plainly registered?
    pub struct_ops_links: bool,
    /// Does it measure the run time of BPF programs (`kernel.bpf_stats_enabled`)?
    pub bpf_stats: bool,
}

impl Status {
    /// Looks at controls and connections. What cannot be seen is listed in `unseen`.
    pub fn look() -> Status {
        Status::of(Kernel::look(), None)
    }

    /// Likewise, at the connections of one namespace only.
    pub fn look_in(namespace: netns::Namespace) -> Status {
        Status::of(Kernel::look(), Some(namespace))
    }

    /// Looks again, with the throughputs since `self`.
    pub fn again(&self) -> Status {
        let mut now = Status::of(self.kernel.clone(), self.only.clone());
        now.kernel.bpf_stats = controls::stats_enabled();
        now.measure(&self.sample());
        now
    }

    fn sample(&self) -> Sample {
        let mut bytes = HashMap::new();
        for namespace in &self.namespaces {
            for one in namespace.connections.iter().flat_map(|connection| &connection.subflows) {
                let (read, acked, received) = (namespace.read, one.bytes_acked, one.bytes_received);
                bytes.insert(one.cookie, Bytes { read, acked, received });
            }
        }
        Sample { taken: self.taken, bytes }
    }

    fn of(kernel: Kernel, only: Option<netns::Namespace>) -> Status {
        let mut unseen = Vec::new();
        let entries = match is_root() {
            true => state::connections().unwrap_or_else(|error| {
                unseen.push(error.to_string());
                Vec::new()
            }),
            false => {
                unseen.push("controls, and their state of connections: needs root".into());
                Vec::new()
            }
        };
        if is_root() {
            unseen.extend(state::of_other_builds().into_iter().map(|id| {
                format!("connections of another build of narrows (bpftool map dump id {id})")
            }));
        }
        // The sockets right after the state, so that the two are of the same moment.
        let taken = Instant::now();
        let complete = unseen.is_empty();
        let detections = is_root().then(state::Detections::open);
        let detections = detections.and_then(|opened| match opened {
            Ok(detections) => Some(detections),
            Err(error) => {
                unseen.push(error.to_string());
                None
            }
        });
        let mut namespaces =
            connections::look(only.as_ref(), &entries, detections.as_ref(), complete, &mut unseen);
        if namespaces.iter().any(Namespace::has_fallback) {
            connections::find_late(&mut namespaces, &state::connections().unwrap_or_default());
        }
        let mut controls = controls::look();
        for control in &mut controls {
            let ours =
                |n: &&Namespace| control.registered && n.default_control == control.kernel_name;
            let with = namespaces.iter().filter(ours);
            let default = |n: &Namespace| Default { netns: n.name.clone(), inum: n.inum };
            control.default_in = with.map(default).collect();
        }
        if let Some(problem) = bpffs::problem().filter(|problem| problem.is_unseen()) {
            if !controls.is_empty() {
                unseen.push(format!("where controls are used: {}: {problem}", state::BPFFS));
            }
        }
        let worth = |n: &Namespace| match &only {
            Some(only) => n.inum == only.inum,
            None => {
                let shown = !n.connections.is_empty() || !n.listeners.is_empty();
                shown || n.is_current || n.runs_ours()
            }
        };
        let namespaces = namespaces.into_iter().filter(worth).collect();
        let map = state::capacity().filter(|_| is_root());
        let map = map.map(|entries_max| Map { entries: entries.len(), entries_max });
        let detection_map = detections.and_then(|detections| detections.count());
        let detection_map =
            detection_map.map(|(entries, entries_max)| Map { entries, entries_max });
        Status {
            format: FORMAT,
            kernel,
            unseen,
            controls,
            map,
            detection_map,
            namespaces,
            interval_s: None,
            taken,
            only,
        }
    }

    /// Fills in throughputs: what each socket's byte counters grew by since `before`.
    pub fn measure(&mut self, before: &Sample) {
        for namespace in &mut self.namespaces {
            for connection in &mut namespace.connections {
                connection.measure(namespace.read, before);
            }
        }
        self.interval_s = Some((self.taken - before.taken).as_secs_f64());
    }
}

impl Connection {
    /// Its sockets were read at `read`.
    fn measure(&mut self, read: Instant, before: &Sample) {
        // One that is new brought all it has within the interval.
        let new = Bytes { read: before.taken, acked: 0, received: 0 };
        let (mut sent, mut received) = (0, 0);
        for subflow in &mut self.subflows {
            let then = before.bytes.get(&subflow.cookie).unwrap_or(&new);
            let seconds = (read - then.read).as_secs_f64();
            let rate = |now: u64, then: u64| (now.saturating_sub(then) as f64 / seconds) as u64;
            let of_one = rate(subflow.bytes_acked, then.acked);
            subflow.sent_bytes_per_s = Some(of_one);
            sent += of_one;
            let of_one = rate(subflow.bytes_received, then.received);
            subflow.received_bytes_per_s = Some(of_one);
            received += of_one;
        }
        self.sent_bytes_per_s = Some(sent);
        self.received_bytes_per_s = Some(received);
    }
}

impl Kernel {
    fn look() -> Kernel {
        let Machine { release, links, .. } = Machine::look();
        Kernel { release, struct_ops_links: links, bpf_stats: controls::stats_enabled() }
    }
}
