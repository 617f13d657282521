//! BBR alone through a queue of half a BDP, with the default buffers. Linux 6.18 has 9.46 Mbit/s, no
//! retransmission and 11 ms of queue.

use std::sync::atomic::AtomicBool;

use narrows_lab::{Case, Edits, HostId, Plan, Seeds, SeriesOf, compare, parse};

const SCENARIO: &str = include_str!("../../../../experiments/one-bbr.toml");

#[test]
fn startup_ends_and_the_queue_stays_short() {
    let scenario = parse(SCENARIO, &Edits::default()).unwrap();
    let plan = Plan {
        cases: &[Case { scenario, set: Vec::new() }],
        controls: &["bbr".parse().unwrap()],
        signals: &[],
        hosts: &[HostId::SIM],
        seeds: Seeds::up_to(3),
        jobs: 0,
        series: SeriesOf::None,
    };
    for run in compare(plan, None, &AtomicBool::new(false), &|_| ()).unwrap() {
        let (flow, link) = (&run.summary.connections[0], &run.summary.links[0]);
        let (mbit, again, queue) = (flow.goodput_mbps, flow.retransmits, link.mean_queue_ms);
        let seen = format!("{mbit} Mbit/s, {again} again, {queue:?} ms");
        assert!((8.4..10.3).contains(&mbit) && again <= 10 && queue < 12.0, "{seen}");
    }
}
