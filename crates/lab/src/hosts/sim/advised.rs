//! A connection whose paths that do not pay become backups, as `narrows kernel advise` makes them.

use std::time::Duration;

use narrows_advice::{Judge, Sample, window};
use narrows_laws::{Control, State};
use narrows_net::{LinkConfig, Nanos, SECOND};
use narrows_sim::{PathStats, Sim};
use narrows_traffic::{ConnId, FlowId};

use crate::scenario::{Flow, FlowPath, Scenario};

/// Time between two looks, that of the command.
const EVERY: Nanos = SECOND;

/// Of IPv4, TCP with timestamps, and MPTCP's DSS, bytes ([`narrows_sim::PathConfig`]).
const HEADERS: u32 = 76;

/// A connection that follows advice.
pub struct Advised {
    connection: ConnId,
    judge: Judge<usize>,
    /// Is its law a model law?
    model: bool,
    /// Payload of a full segment on each path, bytes.
    mss: Vec<u32>,
    /// Which paths are backups, also those of the scenario.
    backup: Vec<bool>,
    /// The path that became one by advice.
    parked: Option<usize>,
    next: Nanos,
}

impl Advised {
    /// The connections of `scenario` that follow advice, by their `handles` in the simulator and the controls of all
    /// flows.
    pub fn all(
        scenario: &Scenario,
        handles: &[FlowId],
        controls: &[Option<Control>],
    ) -> Vec<Advised> {
        let mss = |path: &FlowPath| {
            let mtus = path.links.iter().map(|&link| scenario.links[link].config.mtu);
            mtus.min().unwrap_or(LinkConfig::default().mtu) - HEADERS
        };
        let one = |((flow, handle), control): ((&Flow, &FlowId), &Option<Control>)| match *handle {
            FlowId::Connection(connection) if flow.advice => Some(Advised {
                connection,
                judge: Judge::default(),
                model: control.is_some_and(|control| control.law.is_model()),
                mss: flow.paths.iter().map(mss).collect(),
                backup: flow.paths.iter().map(|path| path.backup).collect(),
                parked: None,
                next: EVERY,
            }),
            _ => None,
        };
        scenario.flows.iter().zip(handles).zip(controls).filter_map(one).collect()
    }

    /// Looks once a second, and does what is advised.
    pub fn look(&mut self, sim: &mut Sim) {
        if sim.now() < self.next {
            return;
        }
        self.next += EVERY;
        let stats = sim.connection(self.connection);
        let established =
            stats.paths.iter().enumerate().filter(|(_, path)| path.state != State::Free);
        let sample = |(subflow, path): (usize, &PathStats)| Sample {
            token: 0,
            subflow,
            acked: path.delivered_bytes,
            received: 0,
            busy_us: path.busy / 1000,
            srtt_us: (path.srtt / 1000) as u32,
            window: window(path.cwnd, self.mss[subflow], self.model),
            backup: self.backup[subflow],
        };
        let samples: Vec<_> = established.map(sample).collect();
        let parked = self.judge.look(Duration::from_nanos(sim.now()), &samples).first().copied();
        if parked == self.parked {
            return;
        }
        for (path, backup) in [(self.parked, false), (parked, true)] {
            if let Some(path) = path {
                self.backup[path] = backup;
                sim.set_backup(self.connection, path, backup);
            }
        }
        self.parked = parked;
    }
}
