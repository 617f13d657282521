//! DCTCP: what marks take of a window, by RFC 8257.

use crate::common;

use common::Host;
use narrows_laws::{Event, EventKind, flag};

/// A window of 100 packets after so many round trips of 20 ms in each of which so many of ten packets are marked.
fn marked(rounds: u32, of_ten: u32) -> Host {
    let mut host = Host::new("dctcp".parse().unwrap());
    host.avoiding_at(0, 100);
    for packet in 0..10 * rounds {
        host.now_us += 2_000;
        let acked = Event {
            delivered: 1,
            marked: u32::from(packet % 10 < of_ten),
            flags: flag::IN_RECOVERY,
            ..host.event(0, EventKind::Acked)
        };
        host.send(0, &acked);
    }
    host.set_cwnd(0, 100);
    host
}

/// Section 3.3: a window yields half of the share of marks that lasts.
#[test]
fn the_cut_is_half_of_the_share_of_marks() {
    for (of_ten, expected) in [(0, 100), (2, 90), (4, 80), (10, 50)] {
        let ssthresh = marked(200, of_ten).report(0, EventKind::Ecn).ssthresh;
        assert!(ssthresh.abs_diff(expected) <= 1, "{of_ten} of ten: {ssthresh}");
    }
}

/// Section 4.2: g = 1/16, and alpha is 1 at first.
#[test]
fn the_share_is_averaged_over_sixteen_round_trips() {
    assert_eq!(marked(0, 0).report(0, EventKind::Ecn).ssthresh, 50);
    for rounds in [8, 16, 32] {
        let alpha = (15.0_f64 / 16.0).powi(rounds);
        let ssthresh = marked(rounds as u32, 0).report(0, EventKind::Ecn).ssthresh;
        let expected = 100.0 * (1.0 - alpha / 2.0);
        assert!((f64::from(ssthresh) - expected).abs() <= 2.5, "{rounds}: {ssthresh}, {expected}");
    }
}

/// Section 3.5: a loss takes what it takes of Reno.
#[test]
fn a_loss_halves() {
    assert_eq!(marked(200, 0).report(0, EventKind::Recovery).ssthresh, 50);
    assert_eq!(marked(200, 0).report(0, EventKind::Timeout).ssthresh, 50);
}
