//! A law that grows fast and never reduces its window.

mod bad;

#[test]
fn a_greedy_law_harms_others() {
    let hooks = "NR_INLINE nr_s64 nr_greedy_credit(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	return NR_ONE / 8;
}
NR_INLINE nr_u32 nr_greedy_ssthresh(NR_HOOK)
{
	return p->cwnd;
}
NR_LAW(greedy) = {
    .name = \"greedy\", .code = \"greed\", .about = \"never reduces\", .source = \"none\",
    .kind = NR_WINDOW, .credit = nr_greedy_credit, .ssthresh = nr_greedy_ssthresh,
};";
    bad::is_above(bad::GREEDY, "greedy", hooks);
    bad::each_criterion_is_named_once();
}
