//! The Linux of a time: the fields that it sets where the scenario does not.
//!
//! What Linux 3.14 with out-of-tree MPTCP v0.89 does, by its sources:
//!
//! - net/ipv4/tcp_cong.c, tcp_slow_start() and tcp_reno_cong_avoid(), and likewise the laws in
//!   net/mptcp: slow start up to a window *above* ssthresh, counting packets; then a counter of
//!   calls, one for each acknowledgement.
//! - net/mptcp/mptcp_sched.c: the subflow with the lowest smoothed RTT that has room in its window.
//! - net/ipv4/tcp_input.c: FACK, and a receiver that pays no regard to PSH of full-sized segments.
//!
//! The tests of the simulator's physics set the same (`greedy_linux_3_14` in `crates/sim/tests/common`).

use toml::Value;

use super::file::{Era, File, Kind, Scheduler};
use super::tcp::{Acks, Detection};

/// Sets what the file's era does and the file leaves open. The era has gone then.
pub fn apply(file: &mut File) {
    let Some(Era::Linux314) = file.era.take() else { return };
    let window = file.params.entry("window".into()).or_default();
    for switch in ["slow_start_at_ssthresh", "count_acks"] {
        window.entry(switch).or_insert(Value::String("on".into()));
    }
    let tcp = file.tcp.get_or_insert_default();
    tcp.loss_detection.get_or_insert(Detection::Fack);
    tcp.receiver_acks.get_or_insert(Acks::Linux65);
    for flow in file.flows.values_mut().filter(|flow| flow.kind == Kind::Mptcp) {
        flow.scheduler.get_or_insert(Scheduler::MinRtt);
    }
}
