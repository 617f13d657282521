//! What is seen of a connection of noq's, wherever it runs.

use std::sync::Arc;

use narrows_laws::{Decision, MAX_PATHS, Place};
use narrows_net::Nanos;
use narrows_quic::Factory;
use narrows_sim::Detection;
use noq::PathStats;
use noq::congestion::Controller;

use crate::measured::{FlowState, PathState};

/// Bytes of a datagram with data that are not data: a short header with a connection id of 8 and a
/// packet number of 2 bytes, a STREAM frame's header with an offset of 4 and without a length, and the
/// AEAD's tag (RFC 9000, sections 17.3 and 19.8; RFC 9001, section 5.3).
const OVERHEAD: u64 = 11 + 6 + 16;

/// Both ends of a connection. Paths are named by their numbers in the flow.
pub trait Ends {
    /// What the sender counts of a path, and its controller; none while it is not open.
    fn sender(&mut self, path: usize) -> Option<(PathStats, Box<dyn Controller>)>;
    /// What the receiver counts of it, likewise.
    fn receiver(&mut self, path: usize) -> Option<PathStats>;
}

/// A connection as it was at the last look.
pub struct Seen {
    pub state: FlowState,
    /// What its detector decided.
    pub detection: Detection,
    factory: Arc<Factory>,
    /// What each path had delivered, and retransmitted, when it was last opened again.
    before: Vec<(u64, u64)>,
}

impl Seen {
    /// Nothing yet of a connection with so many paths, whose sender has the controllers of `factory`.
    pub fn new(paths: usize, factory: Arc<Factory>) -> Seen {
        let state = FlowState { paths: vec![PathState::default(); paths], ..FlowState::default() };
        let before = vec![(0, 0); paths];
        Seen { state, detection: Detection::default(), factory, before }
    }

    /// A path is opened again: its ends count from 0.
    pub fn reopened(&mut self, path: usize) {
        let PathState { delivered, retransmits, .. } = self.state.paths[path];
        self.before[path] = (delivered, retransmits);
    }

    /// Looks at the paths, at `now`.
    pub fn look(&mut self, ends: &mut impl Ends, now: Nanos) {
        let mut places = [Place::Undecided; MAX_PATHS];
        for (path, state) in self.state.paths.iter_mut().enumerate() {
            let (delivered, retransmits) = self.before[path];
            if let Some(stats) = ends.receiver(path) {
                let of_data = stats.udp_rx.bytes.saturating_sub(OVERHEAD * stats.udp_rx.datagrams);
                state.delivered = state.delivered.max(delivered + of_data);
            }
            let sender = ends.sender(path);
            let sender = sender
                .and_then(|(stats, controller)| Some((stats, self.factory.path(controller)?)));
            let Some((stats, controlled)) = sender else {
                // It is not there, or not any more: what it counted stays.
                let PathState { delivered, retransmits, .. } = *state;
                *state = PathState { delivered, retransmits, ..PathState::default() };
                continue;
            };
            let lost = stats.lost_packets.saturating_sub(stats.lost_plpmtud_probes);
            state.retransmits = state.retransmits.max(retransmits + lost);
            let packets = |bytes: u64| (bytes / u64::from(stats.current_mtu)) as u32;
            state.cwnd = packets(controlled.cwnd);
            state.ssthresh = controlled.ssthresh.map(packets);
            state.srtt = controlled.srtt.map_or(0, |srtt| srtt.as_nanos() as Nanos);
            state.inflight = packets(controlled.inflight);
            if let Some(place) = places.get_mut(path) {
                *place = controlled.place.unwrap_or(Place::Undecided);
            }
        }
        self.state.retransmits = self.state.paths.iter().map(|path| path.retransmits).sum();
        let number = self.factory.snapshot().decision;
        let log = &mut self.detection.decisions;
        if number != 0 && log.last().is_none_or(|last| last.number != number) {
            log.push(Decision::new(number, now / 1000, places));
        }
    }
}
