//! A law that keeps two packets in flight.

mod bad;

#[test]
fn an_idle_law_lacks_goodput() {
    bad::is_above(bad::IDLE, "idle", "0", "2");
    bad::each_criterion_is_named_once();
}
