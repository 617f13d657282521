//! What runs now: loaded controls, where they are used, and every MPTCP connection with its
//! subflows, our controls' state joined with what the kernel reports of the sockets.
//!
//! The structs are the schema of `narrows kernel status --json`; docs/kernel.md shows it. Fields may
//! be added under the same [`FORMAT`].

mod connections;
mod controls;
mod text;

pub use crate::listeners::Listener;
pub use connections::{Connection, Namespace, Subflow};
pub use controls::{Control, Counters, Default, Program};

use crate::check::Machine;
use narrows_kernel::{is_root, state};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Version of the schema.
pub const FORMAT: u32 = 2;

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
    /// Network namespaces with connections or listeners to show, and the current one.
    pub namespaces: Vec<Namespace>,
    /// Seconds that the throughputs were measured over; null: there are none yet.
    pub interval_s: Option<f64>,
    #[serde(skip)]
    taken: Instant,
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
        Status::of(Kernel::look())
    }

    /// Looks again, with the throughputs since `self`.
    pub fn again(&self) -> Status {
        let mut now = Status::of(self.kernel.clone());
        now.kernel.bpf_stats = controls::stats_enabled();
        now.measure(self, now.taken - self.taken);
        now
    }

    fn of(kernel: Kernel) -> Status {
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
        let mut namespaces = connections::look(&entries, unseen.is_empty(), &mut unseen);
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
        let worth = |n: &Namespace| {
            !n.connections.is_empty() || !n.listeners.is_empty() || n.is_current || n.runs_ours()
        };
        let namespaces = namespaces.into_iter().filter(worth).collect();
        Status { format: FORMAT, kernel, unseen, controls, namespaces, interval_s: None, taken }
    }

    /// Fills in throughputs: what each socket's byte counters grew by since `before`.
    fn measure(&mut self, before: &Status, interval: Duration) {
        let seconds = interval.as_secs_f64();
        let subflows = |status: &Status| {
            let each =
                status.namespaces.iter().flat_map(|n| &n.connections).flat_map(|c| &c.subflows);
            each.map(|subflow| (subflow.cookie, (subflow.bytes_acked, subflow.bytes_received)))
                .collect::<HashMap<_, _>>()
        };
        let before = subflows(before);
        let rate = |now: u64, then: u64| (now.saturating_sub(then) as f64 / seconds) as u64;
        for connection in self.namespaces.iter_mut().flat_map(|n| &mut n.connections) {
            let (mut sent, mut received) = (0, 0);
            for subflow in &mut connection.subflows {
                // One that is new brought all it has within the interval.
                let then = before.get(&subflow.cookie).copied().unwrap_or_default();
                subflow.sent_bytes_per_s = Some(rate(subflow.bytes_acked, then.0));
                subflow.received_bytes_per_s = Some(rate(subflow.bytes_received, then.1));
                sent += subflow.sent_bytes_per_s.unwrap_or(0);
                received += subflow.received_bytes_per_s.unwrap_or(0);
            }
            connection.sent_bytes_per_s = Some(sent);
            connection.received_bytes_per_s = Some(received);
        }
        self.interval_s = Some(seconds);
    }
}

impl Kernel {
    fn look() -> Kernel {
        let Machine { release, links, .. } = Machine::look();
        Kernel { release, struct_ops_links: links, bpf_stats: controls::stats_enabled() }
    }
}
