//! A connection whose paths that do not pay become backups, as `narrows kernel advise` makes them.

use std::time::Duration;

use narrows_advice::{Judge, Sample};
use narrows_laws::State;
use narrows_net::{Nanos, SECOND};
use narrows_sim::{PathStats, Sim};
use narrows_traffic::{ConnId, FlowId};

use crate::scenario::{Flow, Scenario};

/// Time between two looks, that of the command.
const EVERY: Nanos = SECOND;

/// A connection that follows advice.
pub struct Advised {
    connection: ConnId,
    judge: Judge<usize>,
    /// Which paths are backups, also those of the scenario.
    backup: Vec<bool>,
    /// The path that became one by advice.
    parked: Option<usize>,
    next: Nanos,
}

impl Advised {
    /// The connections of `scenario` that follow advice, by their `handles` in the simulator.
    pub fn all(scenario: &Scenario, handles: &[FlowId]) -> Vec<Advised> {
        let one = |(flow, handle): (&Flow, &FlowId)| match *handle {
            FlowId::Connection(connection) if flow.advice => Some(Advised {
                connection,
                judge: Judge::default(),
                backup: flow.paths.iter().map(|path| path.backup).collect(),
                parked: None,
                next: EVERY,
            }),
            _ => None,
        };
        scenario.flows.iter().zip(handles).filter_map(one).collect()
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
