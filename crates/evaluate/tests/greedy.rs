//! A law that grows fast and never reduces its window.

mod bad;

#[test]
fn a_greedy_law_harms_others() {
    bad::is_above(bad::GREEDY, "greedy", "NR_ONE / 8", "p->cwnd");
    bad::each_criterion_is_named_once();
}
