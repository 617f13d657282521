//! A law that keeps two packets in flight.

mod bad;

#[test]
fn an_idle_law_lacks_goodput() {
    let hooks = "NR_INLINE nr_s64 nr_idle_credit(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	return 0;
}
NR_INLINE nr_u32 nr_idle_ssthresh(NR_HOOK)
{
	return 2;
}
NR_LAW(idle) = {
    .name = \"idle\", .code = \"idle\", .about = \"two packets after the first loss\", .source = \"none\",
    .kind = NR_WINDOW, .credit = nr_idle_credit, .ssthresh = nr_idle_ssthresh,
};";
    bad::is_above(bad::IDLE, "idle", hooks);
    bad::each_criterion_is_named_once();
}
