//! What a loss takes, what it leaves, and what else happens to a window.

use crate::common;
use crate::reference;

use common::{Host, every_window_law};
use narrows_laws::raw::SSTHRESH_MAX;
use narrows_laws::{Control, Event, EventKind, State, flag};
use reference::Flow;

/// The window after a loss of path 0 in a connection of these paths.
fn after_loss(control: Control, flows: &[(u32, u32)]) -> u32 {
    let mut host = Host::new(control);
    for (path, (w, rtt_us)) in flows.iter().enumerate() {
        host.avoiding(path, *w, 8 * rtt_us, 0);
    }
    host.report(0, EventKind::Recovery).ssthresh
}

#[test]
fn balia_decreases_by_alpha_continuously() {
    // The kernel divided integers: any alpha from 1 to 2 took the same half.
    let mut seen = Vec::new();
    for other in 10_000..=17_000 {
        let w = 10_000;
        let flows = [Flow { w, rtt8: 800_000, l: 0 }, Flow { w: other, rtt8: 800_000, l: 0 }];
        let ssthresh = after_loss(Control::BALIA, &[(w, 100_000), (other, 100_000)]);
        let expected = f64::from(w) - reference::balia_decrease(&flows, 0);
        assert!((f64::from(ssthresh) - expected).abs() <= 1.0, "{ssthresh}, not {expected}");
        seen.push(ssthresh);
    }
    assert!(seen.windows(2).all(|pair| pair[0] >= pair[1] && pair[0] - pair[1] <= 1));
    assert_eq!((seen[0], seen[seen.len() - 1]), (5_000, 2_500));
}

#[test]
fn balia_halves_on_its_only_path_and_on_its_fastest() {
    for w in [2, 3, 10, 11, 1 << 20] {
        assert_eq!(after_loss(Control::BALIA, &[(w, 10_000)]), (w / 2).max(2));
        let both = after_loss(Control::BALIA, &[(w, 10_000), (w, 20_000)]);
        assert_eq!(both, w / 2);
    }
}

#[test]
fn balia_decreases_right_after_a_join() {
    // The oldest kernel version took nothing while one path was established and another joining.
    let mut host = Host::new(Control::BALIA);
    host.avoiding_at(0, 100);
    let joining = Event { state: State::Joining as u32, ..host.event(1, EventKind::Joined) };
    host.send(1, &joining);
    assert_eq!(host.report(0, EventKind::Recovery).ssthresh, 50);
}

#[test]
fn balia_halves_a_path_that_has_no_rtt_sample_yet() {
    let mut host = Host::new(Control::BALIA);
    host.avoiding_at(1, 100);
    host.srtt8_us[0] = 0;
    host.report(0, EventKind::Joined);
    assert_eq!(host.report(0, EventKind::Timeout).ssthresh, 5);
}

#[test]
fn balia_decreases_by_the_rates_at_the_loss() {
    // The kernel kept the decrease of the last growth: the window had moved on since.
    let mut host = Host::new(Control::BALIA);
    host.avoiding_at(0, 100);
    host.avoiding_at(1, 100);
    host.ack(0, 1);
    host.set_cwnd(1, 130);
    assert_eq!(host.report(0, EventKind::Recovery).ssthresh, 35); // 100 - 50 * 1.3
}

#[test]
fn floors_of_ssthresh() {
    let one = [(2, 20_000)];
    let two = [(2, 20_000), (2, 20_000)];
    for control in every_window_law() {
        assert_eq!(after_loss(control, &one), 2, "{control} alone");
    }
    for control in [Control::OLIA, Control::BALIA] {
        assert_eq!(after_loss(control, &two), 1, "{control} with a sibling");
    }
    // RFC 6356 changes nothing of RFC 5681 but the increase.
    assert_eq!(after_loss(Control::LIA, &two), 2);
    // An idle or backup sibling is established as well; one that joins or has failed is not.
    for (state, floor) in
        [(State::Idle, 1), (State::Backup, 1), (State::Joining, 2), (State::Failed, 2)]
    {
        for control in [Control::OLIA, Control::BALIA] {
            let mut host = Host::new(control);
            host.avoiding_at(0, 2);
            let joined = Event { state: state as u32, ..host.event(1, EventKind::Joined) };
            host.send(1, &joined);
            assert_eq!(host.report(0, EventKind::Recovery).ssthresh, floor, "{control}, {state:?}");
        }
    }
}

#[test]
fn with_floor_one_a_small_path_stays_out_of_slow_start() {
    // MPTCP-SBD, remark 1: with a floor of 2, each loss of a window of 1 or 2 ended in slow start.
    let mut host = Host::new(Control::OLIA);
    host.avoiding_at(0, 2);
    host.avoiding_at(1, 100);
    host.report(0, EventKind::Recovery);
    host.report(0, EventKind::Recovered);
    assert_eq!(host.conn.path(0).cwnd, 1);
    host.ack(0, 1);
    assert_eq!(host.conn.path(0).cwnd, 1, "in slow start this would be 2");
}

#[test]
fn one_reduction_for_each_loss_event() {
    for control in every_window_law() {
        let mut host = Host::new(control);
        host.avoiding_at(0, 100);
        let reduced = host.report(0, EventKind::Recovery);
        assert_eq!(reduced.cwnd, reduced.ssthresh);
        // More losses of the same window, the timer, and the timer again.
        assert_eq!(host.report(0, EventKind::Recovery), reduced);
        for _ in 0..3 {
            let timeout = host.report(0, EventKind::Timeout);
            assert_eq!((timeout.cwnd, timeout.ssthresh), (1, reduced.ssthresh), "{control}");
        }
        // RFC 5681 section 3.1: only once data is acknowledged again may ssthresh fall anew.
        host.ack(0, 1);
        let again = host.report(0, EventKind::Timeout).ssthresh;
        assert_eq!(again, 2, "{control}");
    }
}

/// RFC 5681, section 3.1: where the timer of a packet fires again ssthresh is held, though others have
/// been delivered meanwhile. The next loss event reduces, and undo knows the first.
#[test]
fn a_packet_that_times_out_again_holds_ssthresh() {
    for control in every_window_law() {
        let mut host = Host::new(control);
        host.avoiding_at(0, 100);
        let reduced = host.report(0, EventKind::Timeout).ssthresh;
        host.ack(0, 2);
        let again = Event { flags: flag::RETRANS, ..host.event(0, EventKind::Timeout) };
        let again = host.send(0, &again);
        assert_eq!((again.cwnd, again.ssthresh), (1, reduced), "{control}");
        assert_eq!(host.clone().report(0, EventKind::Undo).cwnd, 100, "{control}");
        host.ack(0, 9);
        assert!(host.report(0, EventKind::Timeout).ssthresh < reduced, "{control}");
    }
}

#[test]
fn recovery_ends_at_the_reduced_window() {
    let mut host = Host::new(Control::RENO);
    host.avoiding_at(0, 100);
    host.report(0, EventKind::Recovery);
    // PRR moves the host's window; the law keeps to its own.
    for cwnd in (50..=99).rev() {
        let event = Event {
            cwnd,
            delivered: 2,
            flags: flag::IN_RECOVERY | flag::CWND_LIMITED,
            ..host.event(0, EventKind::Acked)
        };
        assert_eq!(host.send(0, &event).cwnd, 50);
    }
    assert_eq!(host.report(0, EventKind::Recovered).cwnd, 50);
}

#[test]
fn undo_counts_on_as_if_nothing_was_lost() {
    // OLIA: 30 packets since the last loss, 500 before it; then a spurious one, and 40 more packets.
    let mut host = Host::new(Control::OLIA);
    host.avoiding(0, 100, 160_000, 500);
    host.report(0, EventKind::Recovery);
    host.report(0, EventKind::Recovered);
    host.ack(0, 30);
    let mut calm = host.clone();
    calm.ack(0, 40);
    host.report(0, EventKind::Recovery);
    let recovering =
        Event { delivered: 40, flags: flag::IN_RECOVERY, ..host.event(0, EventKind::Acked) };
    host.send(0, &recovering);
    host.report(0, EventKind::Undo);
    for host in [&mut calm, &mut host] {
        assert_eq!(host.conn.path(0).word[0], 500);
        host.report(0, EventKind::Recovery);
        assert_eq!(host.conn.path(0).word[0], 70, "30 and 40 are one run without loss");
    }
}

#[test]
fn undo_returns_to_the_first_slow_start() {
    let mut host = Host::new(Control::RENO);
    host.report(0, EventKind::Joined);
    host.ack(0, 10);
    host.report(0, EventKind::Timeout);
    let undone = host.report(0, EventKind::Undo);
    assert_eq!((undone.cwnd, undone.ssthresh), (20, SSTHRESH_MAX));
}

#[test]
fn after_an_undo_the_next_loss_counts() {
    let mut host = Host::new(Control::RENO);
    host.avoiding_at(0, 100);
    host.report(0, EventKind::Recovery);
    host.report(0, EventKind::Undo);
    assert_eq!(host.report(0, EventKind::Recovery).ssthresh, 50);
}

#[test]
fn a_loss_never_raises_a_window() {
    // ssthresh has a floor of 2 packets, which may be above the window.
    for kind in [EventKind::Recovery, EventKind::Ecn] {
        let mut host = Host::new(Control::RENO);
        host.avoiding_at(0, 1);
        let output = host.report(0, kind);
        assert_eq!((output.cwnd, output.ssthresh), (1, 2), "{kind:?}");
    }
}

#[test]
fn undo_does_not_shrink_a_window_that_has_outgrown_it() {
    let mut host = Host::new(Control::RENO);
    host.avoiding_at(0, 100);
    host.report(0, EventKind::Recovery);
    host.report(0, EventKind::Recovered);
    host.set_cwnd(0, 120);
    assert_eq!(host.report(0, EventKind::Undo).cwnd, 120);
}

#[test]
fn after_idleness_the_window_restarts_and_ssthresh_remembers() {
    let mut host = Host::new(Control::RENO);
    host.avoiding_at(0, 100);
    host.ack(0, 99);
    let restart = Event { cwnd: 10, ..host.event(0, EventKind::Restart) };
    let output = host.send(0, &restart);
    assert_eq!((output.cwnd, output.ssthresh), (10, 75));
    assert_eq!(host.private[0].credit(), 0, "the fraction was that of the larger window");
    // A window below the restart window stays.
    host.set_cwnd(0, 4);
    let restart = Event { cwnd: 10, ..host.event(0, EventKind::Restart) };
    assert_eq!(host.send(0, &restart).cwnd, 4);
}

#[test]
fn idleness_does_not_lower_ssthresh() {
    let mut host = Host::new(Control::RENO);
    host.report(0, EventKind::Joined);
    host.ack(0, 30);
    let restart = Event { cwnd: 10, ..host.event(0, EventKind::Restart) };
    assert_eq!(host.send(0, &restart).ssthresh, SSTHRESH_MAX, "the first slow start goes on");
}

#[test]
fn the_hosts_window_is_the_truth_outside_recovery() {
    let mut host = Host::new(Control::RENO);
    host.avoiding_at(0, 100);
    host.ack(0, 99);
    host.set_cwnd(0, 60);
    assert_eq!(host.conn.path(0).cwnd, 60);
    assert_eq!(host.ack(0, 59).cwnd, 60, "the credit of the larger window is gone");
    assert_eq!(host.ack(0, 1).cwnd, 61);
}

#[test]
fn a_reduction_starts_from_the_hosts_window() {
    for kind in [EventKind::Recovery, EventKind::Ecn, EventKind::Timeout] {
        let mut host = Host::new(Control::RENO);
        host.avoiding_at(0, 100);
        let clamped = Event { cwnd: 60, ..host.event(0, kind) };
        assert_eq!(host.send(0, &clamped).ssthresh, 30, "{kind:?}");
        // In recovery the host's window is on its way, and says nothing.
        let moving = Event { cwnd: 45, ..host.event(0, EventKind::Timeout) };
        assert_eq!(host.send(0, &moving).ssthresh, 30, "{kind:?}");
        assert_eq!(host.report(0, EventKind::Undo).cwnd, 60, "{kind:?}");
    }
}

#[test]
fn masks_follow_the_detector_at_every_join() {
    let mut shared = Host::new(Control::LIA);
    let mut disjoint = Host::new("lia+disjoint".parse().unwrap());
    for path in 0..8 {
        shared.report(path, EventKind::Joined);
        disjoint.report(path, EventKind::Joined);
        assert_eq!(shared.conn.mask(path), 0xff);
        assert_eq!(disjoint.conn.mask(path), 1 << path);
    }
}
