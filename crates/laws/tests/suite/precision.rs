//! The C against the floating-point reference, over all windows and round-trip times we claim:
//! cwnd 1 to 2^20, RTT 10 µs to 10 s, 1 to 8 paths, alike or not.

use crate::common;
use crate::reference;

use common::Host;
use narrows_laws::{Control, EventKind};
use proptest::prelude::*;
use reference::Flow;

/// What the laws' headers claim, far below the 1 % that is asked for: a slip in any step shows.
const RELATIVE: f64 = 1.0 / (1u64 << 27) as f64;
/// One unit of credit, 2^-40 packet, for each of two truncated terms.
const ABSOLUTE: f64 = 2.0 / (1u64 << 40) as f64;

fn host(control: Control, flows: &[Flow]) -> Host {
    let mut host = Host::new(control);
    for path in 0..flows.len() {
        host.report(path, EventKind::Joined);
    }
    for (path, flow) in flows.iter().enumerate() {
        host.avoiding(path, flow.w, flow.rtt8, flow.l);
    }
    host
}

fn close(ours: f64, reference: f64, scale: f64, what: &str, flows: &[Flow]) {
    let error = (ours - reference).abs();
    assert!(
        error <= ABSOLUTE + RELATIVE * scale,
        "{what}: {ours:e} instead of {reference:e}, off by {error:e}, with {flows:?}"
    );
}

fn check(flows: &[Flow]) {
    let lia = host(Control::LIA, flows);
    let olia = host(Control::OLIA, flows);
    let balia = host(Control::BALIA, flows);
    let ewtcp = host("ewtcp".parse().unwrap(), flows);
    for i in 0..flows.len() {
        // LIA's and EWTCP's ssthresh is at least 2, and so is that of a path alone: 1 packet is slow start.
        if flows[i].w >= 2 {
            let expected = reference::lia(flows, i);
            close(lia.credit(i), expected, expected, "LIA", flows);
            let expected = reference::ewtcp(flows, i);
            close(ewtcp.credit(i), expected, expected, "EWTCP", flows);
        }
        if flows.len() == 1 && flows[i].w < 2 {
            continue;
        }
        let expected = reference::balia(flows, i);
        close(balia.credit(i), expected, expected, "Balia", flows);
        // OLIA's terms may cancel: relative to what they are before they do. A window of 1 has
        // nothing below it to fall to.
        let mut counted = flows.to_vec();
        counted[i].l += 1; // by the acknowledgement itself
        let (first, second) = reference::olia(&counted, i);
        if flows[i].w > 1 || first + second > 0.0 {
            close(olia.credit(i), first + second, first + second.abs(), "OLIA", flows);
        }
    }
}

fn log_uniform(from: f64, to: f64) -> impl Strategy<Value = f64> {
    (libm::log(from)..=libm::log(to)).prop_map(libm::exp)
}

fn flow() -> impl Strategy<Value = Flow> {
    (log_uniform(1.0, 1048576.0), log_uniform(80.0, 8e7), log_uniform(1.0, 4e9))
        .prop_map(|(w, rtt8, l)| Flow { w: w as u32, rtt8: rtt8 as u32, l: l as u32 })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn any_paths(flows in prop::collection::vec(flow(), 1..=8)) {
        check(&flows);
    }

    #[test]
    fn equal_paths(flow in flow(), n in 1usize..=8) {
        check(&vec![flow; n]);
    }

    #[test]
    fn nearly_equal_paths(flow in flow(), off in prop::collection::vec(0u32..3, 1..=8)) {
        let flows: Vec<Flow> = off
            .iter()
            .map(|off| Flow { w: flow.w + off, rtt8: flow.rtt8 + off, l: flow.l })
            .collect();
        check(&flows);
    }
}

#[test]
fn corners() {
    let (w, rtt8) = ([1, 2, 1 << 20], [80, 160_000, 80_000_000]);
    let mut flows = Vec::new();
    for w in w {
        for rtt8 in rtt8 {
            flows.push(Flow { w, rtt8, l: w });
        }
    }
    for a in &flows {
        check(&[*a]);
        for b in &flows {
            check(&[*a, *b]);
            check(&[*a, *b, *b, *b, *b, *b, *b, *b]);
        }
    }
}
