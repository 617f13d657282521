//! A law whose window grows by a share of itself, and BBR version 3.

mod bad;

#[test]
fn a_law_that_grows_by_a_share_fills_queues() {
    bad::is_above(bad::STEEP, "steep", "NR_ONE / 50", "p->cwnd - p->cwnd / 8");
    bad::each_criterion_is_named_once();
}

#[test]
fn bbr3_goes_on_where_half_is_lost() {
    bad::fails(bad::BBR3, "bbr3");
}
