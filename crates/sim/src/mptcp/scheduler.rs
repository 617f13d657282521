//! Which subflow gets the next data.

use narrows_net::Nanos;
use narrows_traffic::Scheduler;

/// Most bytes that the choice of a subflow is good for: Linux's MPTCP_SEND_BURST_SIZE, a packet
/// of 64 kB less its headers.
pub(crate) const BURST: u32 = 65_428;

/// What a choice needs to know of a subflow, apart from the subflow's own state: those of a
/// connection lie beside each other, as each choice looks at all of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lane {
    /// The lower, the better. Linux: time until all that was handed to the subflow is
    /// acknowledged at the rate of its pacing; minRTT: smoothed RTT.
    pub cost: u64,
    /// Linux: the send buffer has room; others: so has the congestion window.
    pub has_room: bool,
    /// When the subflow's retransmission timer expires; 0 if it does not count for the timer of
    /// the connection.
    pub rtx_at: Nanos,
}

/// Picks among the subflows in the set `usable`; `last` sent before.
pub(crate) fn pick(scheduler: Scheduler, last: usize, usable: u8, lanes: &[Lane]) -> Option<usize> {
    let ready = |index: &usize| usable & (1 << index) != 0 && lanes[*index].has_room;
    let cost = |index: &usize| lanes[*index].cost;
    let all = 0..lanes.len();
    match scheduler {
        // mptcp_subflow_get_send(): the subflow whose queue drains first, or none. A slower one
        // is not used because the buffer of that is full, as in BLEST.
        Scheduler::Linux => {
            all.filter(|index| usable & (1 << index) != 0).min_by_key(cost).filter(ready)
        }
        Scheduler::MinRtt | Scheduler::Mptcp089 | Scheduler::Mptcp089Reinject => {
            all.filter(ready).min_by_key(cost)
        }
        Scheduler::RoundRobin => {
            (last + 1..lanes.len()).find(ready).or_else(|| (0..=last).find(ready))
        }
        // Sends on all of them and chooses none.
        Scheduler::Redundant => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(costs: [(u64, bool); 3]) -> [Lane; 3] {
        costs.map(|(cost, has_room)| Lane { cost, has_room, rtx_at: 0 })
    }

    #[test]
    fn min_rtt_prefers_the_quickest_with_room_and_round_robin_takes_turns() {
        let lanes = lanes([(30, true), (10, true), (20, true)]);
        assert_eq!(pick(Scheduler::MinRtt, 0, 0b111, &lanes), Some(1));
        assert_eq!(pick(Scheduler::MinRtt, 0, 0b101, &lanes), Some(2));
        for (last, next) in [(0, 1), (1, 2), (2, 0)] {
            assert_eq!(pick(Scheduler::RoundRobin, last, 0b111, &lanes), Some(next));
        }
        assert_eq!(pick(Scheduler::RoundRobin, 0, 0b101, &lanes), Some(2));
        assert_eq!(pick(Scheduler::MinRtt, 0, 0, &lanes), None);
    }

    /// The quick subflow's buffer is full: minRTT takes the next, Linux waits for it.
    #[test]
    fn linux_does_not_turn_to_a_slower_queue() {
        let lanes = lanes([(30, true), (10, false), (20, true)]);
        assert_eq!(pick(Scheduler::MinRtt, 0, 0b111, &lanes), Some(2));
        assert_eq!(pick(Scheduler::Linux, 0, 0b111, &lanes), None);
        assert_eq!(pick(Scheduler::Linux, 0, 0b101, &lanes), Some(2));
    }
}
