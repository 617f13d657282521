//! Which subflow sends the next segment.

use narrows_net::Nanos;

use crate::Scheduler;

/// Picks among the subflows with room in their window, given as (index, srtt) in order; `last`
/// sent before.
pub(crate) fn pick(
    scheduler: Scheduler,
    last: usize,
    ready: impl Iterator<Item = (usize, Nanos)> + Clone,
) -> Option<usize> {
    match scheduler {
        Scheduler::MinRtt => ready.min_by_key(|&(_, srtt)| srtt).map(|(index, _)| index),
        Scheduler::RoundRobin => ready
            .clone()
            .find(|&(index, _)| index > last)
            .or_else(|| ready.clone().next())
            .map(|(index, _)| index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn min_rtt_prefers_the_quickest_and_round_robin_takes_turns() {
        let ready = [(0, 30), (1, 10), (2, 20)].into_iter();
        assert_eq!(pick(Scheduler::MinRtt, 0, ready.clone()), Some(1));
        assert_eq!(pick(Scheduler::RoundRobin, 0, ready.clone()), Some(1));
        assert_eq!(pick(Scheduler::RoundRobin, 1, ready.clone()), Some(2));
        assert_eq!(pick(Scheduler::RoundRobin, 2, ready), Some(0));
        assert_eq!(pick(Scheduler::MinRtt, 0, [].into_iter()), None);
    }
}
