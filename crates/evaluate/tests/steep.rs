//! A law whose window grows by a share of itself, and BBR version 3.

mod bad;

#[test]
fn a_law_that_grows_by_a_share_fills_queues() {
    let hooks = "NR_INLINE nr_s64 nr_steep_credit(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	return NR_ONE / 50;
}
NR_INLINE nr_u32 nr_steep_ssthresh(NR_HOOK)
{
	return p->cwnd - p->cwnd / 8;
}
NR_LAW(steep) = {
    .name = \"steep\", .code = \"steep\", .about = \"multiplicative increase\", .source = \"none\",
    .kind = NR_WINDOW, .credit = nr_steep_credit, .ssthresh = nr_steep_ssthresh,
};";
    bad::is_above(bad::STEEP, "steep", hooks);
    bad::each_criterion_is_named_once();
}

#[test]
fn bbr3_goes_on_where_half_is_lost() {
    bad::fails(bad::BBR3, "bbr3");
}
