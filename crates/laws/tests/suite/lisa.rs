//! LISA: each line of Algorithm 1, and each rule of `c/start/lisa.h` for what the paper leaves open.

use crate::common;

use common::{Host, every_window_law};
use narrows_laws::catalogue::all;
use narrows_laws::raw::MAX_PATHS;
use narrows_laws::replay::trace;
use narrows_laws::{Conn, Control, Event, EventKind, Params, Private, SlowStart, State, flag};

fn lisa(law: &str) -> Control {
    format!("{law}+lisa").parse().unwrap()
}

/// A connection in whose slot 0 a path of `cwnd` packets, all in flight, is in slow start.
fn beside(control: Control, cwnd: u32) -> Host {
    let mut host = Host::new(control);
    slow_start(&mut host, 0, cwnd);
    host
}

/// A path that has `cwnd` packets in flight, and no threshold.
fn slow_start(host: &mut Host, path: usize, cwnd: u32) {
    host.report(path, EventKind::Joined);
    let event = Event { cwnd, inflight: cwnd, ..host.event(path, EventKind::Acked) };
    assert_eq!(host.send(path, &event).cwnd, cwnd);
}

/// The first window of a path that joins; `host_cwnd`: what its host would begin with.
fn join_with(host: &mut Host, path: usize, host_cwnd: u32) -> u32 {
    let state = State::Joining as u32;
    let event = Event { state, cwnd: host_cwnd, ..host.event(path, EventKind::Joined) };
    host.send(path, &event).cwnd
}

fn join(host: &mut Host, path: usize) -> u32 {
    join_with(host, path, 10)
}

/// An acknowledgement of one packet, of a full window; returns the window after it.
fn ack(host: &mut Host, path: usize, inflight: u32) -> u32 {
    let event = Event {
        inflight: inflight - 1,
        delivered: 1,
        flags: flag::CWND_LIMITED,
        ..host.event(path, EventKind::Acked)
    };
    host.send(path, &event).cwnd
}

/// What a path has after it settled what was taken from it.
fn settled(host: &mut Host, path: usize) -> u32 {
    let event = host.event(path, EventKind::Acked);
    host.send(path, &event).cwnd
}

/// Algorithm 1, lines 4 to 21, as the paper writes it: the joining path's window, and what is left.
fn algorithm_1(old: Option<u32>) -> (u32, u32) {
    match old {
        Some(old @ 20..) => (10, old - 10),
        Some(old @ 6..) => (old / 2, old - old / 2),
        Some(old) => (3, old),
        None => (10, 0),
    }
}

#[test]
fn every_window_law_takes_what_algorithm_1_takes() {
    for control in every_window_law() {
        let control = Control { join: SlowStart::LISA, ..control };
        for old in 1..100 {
            let mut host = beside(control, old);
            let (new, left) = algorithm_1(Some(old));
            assert_eq!(
                (join(&mut host, 1), settled(&mut host, 0)),
                (new, left),
                "{control}, {old}"
            );
        }
        let mut host = Host::new(control);
        assert_eq!(join(&mut host, 0), algorithm_1(None).0, "{control}");
    }
}

/// The paper's example: of 40 packets in flight 10 are lent; the first 10 that come back make no
/// room, the next 30 double the rest. And as the standard start would have had it.
#[test]
fn the_donor_ignores_as_many_acknowledged_packets_as_are_too_many_in_flight() {
    for (control, cwnds) in [("olia+lisa", [40, 30, 30, 60]), ("olia", [40, 41, 50, 80])] {
        let mut host = beside(control.parse().unwrap(), 40);
        join(&mut host, 1);
        let mut seen = vec![host.conn.path(0).cwnd];
        let mut inflight = 40;
        for acked in 1..=40 {
            let cwnd = ack(&mut host, 0, inflight);
            inflight = cwnd.max(inflight - 1);
            if [1, 10, 40].contains(&acked) {
                seen.push(cwnd);
            }
        }
        assert_eq!(seen, cwnds, "{control}");
    }
}

/// Nothing in flight beyond what is left: nothing is ignored.
#[test]
fn a_donor_with_less_in_flight_than_it_keeps_ignores_nothing() {
    let mut host = beside(lisa("lia"), 40);
    join(&mut host, 1);
    assert_eq!(ack(&mut host, 0, 30), 31);
}

#[test]
fn a_donor_is_the_fastest_path_in_slow_start() {
    // 60 packets in 100 ms, 40 in 20 ms, 30 in 12 ms.
    let mut host = Host::new(lisa("olia"));
    for (path, (cwnd, rtt_ms)) in [(60, 100), (40, 20), (30, 12)].into_iter().enumerate() {
        host.srtt8_us[path] = 8_000 * rtt_ms;
        slow_start(&mut host, path, cwnd);
    }
    assert_eq!(join(&mut host, 3), 10);
    assert_eq!([0, 1, 2].map(|path| settled(&mut host, path)), [60, 40, 20]);
}

#[test]
fn a_nearest_donor_has_the_smallest_rtt_and_at_most_twice_that_of_the_joining_path() {
    let params = Params::default().with(&[("lisa.donor", "nearest")]);
    // 60 packets in 100 ms, 40 in 20 ms, 30 in 12 ms; what is left when one of so many ms joins.
    for (own_ms, left) in [
        (5, [60, 40, 30]),
        (6, [60, 40, 20]),
        (12, [60, 40, 20]),
        (200, [60, 40, 20]),
        (0, [60, 40, 20]),
    ] {
        let mut host = Host::new(lisa("olia"));
        host.conn = Conn::with_params(lisa("olia"), &params);
        for (path, (cwnd, rtt_ms)) in [(60, 100), (40, 20), (30, 12)].into_iter().enumerate() {
            host.srtt8_us[path] = 8_000 * rtt_ms;
            slow_start(&mut host, path, cwnd);
        }
        host.srtt8_us[3] = 8_000 * own_ms;
        assert_eq!(join(&mut host, 3), 10, "{own_ms} ms");
        assert_eq!([0, 1, 2].map(|path| settled(&mut host, path)), left, "{own_ms} ms");
    }
}

#[test]
fn a_path_that_has_left_slow_start_lends_nothing() {
    for kind in [EventKind::Recovery, EventKind::Ecn] {
        let mut host = beside(lisa("lia"), 40);
        host.report(0, kind);
        let left = host.conn.path(0).cwnd;
        assert_eq!((join(&mut host, 1), settled(&mut host, 0)), (10, left), "{kind:?}");
    }
    // After a timeout it is in slow start again, with a window too small to lend of.
    let mut host = beside(lisa("lia"), 40);
    host.report(0, EventKind::Timeout);
    assert_eq!((join(&mut host, 1), settled(&mut host, 0)), (3, 1));
    // HyStart++ that found the path full.
    let mut host = beside(lisa("lia"), 40);
    let event = Event { ssthresh: 40, ..host.event(0, EventKind::Acked) };
    host.send(0, &event);
    assert_eq!(join(&mut host, 1), 10);
}

/// Before the donor has had an event: each sees what those before it took.
#[test]
fn joins_in_one_round_trip_take_one_after_the_other() {
    let mut host = beside(lisa("olia"), 40);
    assert_eq!([1, 2, 3].map(|path| join(&mut host, path)), [10, 10, 10]);
    // Of 10 packets each, at the RTT of all, the first is found first.
    assert_eq!(join(&mut host, 4), 5);
    let windows = [0, 1, 2, 3, 4].map(|path| settled(&mut host, path));
    assert_eq!(windows, [5, 10, 10, 10, 5]);
    assert_eq!(windows.iter().sum::<u32>(), 40, "no packet more than before");
}

/// A joiner is itself a donor, before its first acknowledgement: it may be the fastest.
#[test]
fn a_path_that_has_just_joined_lends_too() {
    let mut host = beside(lisa("olia"), 24);
    assert_eq!(join(&mut host, 1), 10);
    host.srtt8_us[1] = 8_000;
    settled(&mut host, 1);
    let event =
        Event { state: State::Joining as u32, srtt8_us: 8_000, ..host.event(1, EventKind::Acked) };
    host.send(1, &event);
    assert_eq!(join(&mut host, 2), 5);
    assert_eq!([0, 1].map(|path| settled(&mut host, path)), [14, 5]);
}

/// Without an RTT sample its rate is not known: any other path is taken from first.
#[test]
fn a_path_without_an_rtt_lends_if_no_other_can() {
    for sibling in [false, true] {
        let mut host = Host::new(lisa("olia"));
        host.srtt8_us[0] = 0;
        assert_eq!(join(&mut host, 0), 10);
        if sibling {
            slow_start(&mut host, 1, 8);
        }
        assert_eq!(join(&mut host, 2), if sibling { 4 } else { 5 });
        assert_eq!(settled(&mut host, 0), if sibling { 10 } else { 5 });
    }
}

/// All paths are donors: the joining path is not known to be apart from any, whatever the detector
/// makes of it until it has measured, and whether the law couples or not.
#[test]
fn donors_are_all_paths_under_every_detector() {
    for control in all().filter(|control| control.join == SlowStart::LISA) {
        let mut host = beside(control, 40);
        assert_eq!((join(&mut host, 1), settled(&mut host, 0)), (10, 30), "{control}");
    }
}

#[test]
fn an_application_limited_donor_counts_for_twice_what_it_has_in_flight() {
    for (inflight, new, left) in [(40, 10, 30), (20, 10, 30), (9, 9, 31), (3, 3, 37), (2, 3, 40)] {
        let mut host = beside(lisa("lia"), 40);
        let event = Event { inflight, ..host.event(0, EventKind::Acked) };
        host.send(0, &event);
        let joined = (join(&mut host, 1), settled(&mut host, 0));
        assert_eq!(joined, (new, left), "{inflight} in flight");
    }
    // Its rate, too: 30 packets that are used are more than 100 that are not.
    let mut host = beside(lisa("lia"), 100);
    slow_start(&mut host, 1, 30);
    let event = Event { inflight: 10, ..host.event(0, EventKind::Acked) };
    host.send(0, &event);
    join(&mut host, 2);
    assert_eq!([0, 1].map(|path| settled(&mut host, path)), [100, 20]);
}

/// A stretch acknowledgement of the whole window leaves nothing in flight: it was in use all the
/// same, and the window after it is twice that.
#[test]
fn an_acknowledgement_of_the_whole_window_does_not_look_application_limited() {
    let mut host = beside(lisa("lia"), 10);
    let event = Event {
        inflight: 0,
        delivered: 10,
        flags: flag::CWND_LIMITED,
        ..host.event(0, EventKind::Acked)
    };
    assert_eq!(host.send(0, &event).cwnd, 20);
    assert_eq!(join(&mut host, 1), 10);
}

#[test]
fn paths_that_do_not_send_are_no_donors() {
    for state in [State::Idle, State::Backup, State::Failed] {
        let mut host = beside(lisa("lia"), 40);
        let event = Event { state: state as u32, ..host.event(0, EventKind::Acked) };
        host.send(0, &event);
        assert_eq!((join(&mut host, 1), settled(&mut host, 0)), (10, 40), "{state:?}");
    }
    // Silent for a second, or for two round trips.
    for (silent_ms, rtt_ms, left) in
        [(900, 20, 30), (1_100, 20, 40), (1_100, 600, 30), (1_300, 600, 40)]
    {
        let mut host = Host::new(lisa("lia"));
        host.srtt8_us[0] = 8_000 * rtt_ms;
        slow_start(&mut host, 0, 40);
        host.now_us += 1_000 * silent_ms;
        assert_eq!((join(&mut host, 1), settled(&mut host, 0)), (10, left), "{silent_ms} ms");
    }
}

/// Its debit leaves with it: the joiner keeps the packets, and the slot's next path owes nothing.
#[test]
fn a_donor_that_leaves_takes_its_debit_along() {
    let mut host = beside(lisa("lia"), 40);
    assert_eq!(join(&mut host, 1), 10);
    host.report(0, EventKind::Left);
    assert_eq!(join(&mut host, 0), 5, "from the other one");
    assert_eq!([0, 1].map(|path| settled(&mut host, path)), [5, 5]);
}

/// Its window fell since it was read: as much stays as is taken.
#[test]
fn a_loss_of_the_donor_after_the_join_leaves_it_a_packet() {
    let mut host = beside(lisa("lia"), 20);
    assert_eq!(join(&mut host, 1), 10);
    let event = Event { cwnd: 8, ..host.event(0, EventKind::Acked) };
    assert_eq!(host.send(0, &event).cwnd, 1);
}

/// The host's initial window bounds both, and is what a path without a donor begins with.
#[test]
fn the_hosts_initial_window_bounds_what_is_taken() {
    for (of_host, alone, taken, too_small) in
        [(0, 10, 10, 3), (40, 40, 10, 3), (4, 4, 4, 3), (2, 2, 2, 2)]
    {
        let mut host = Host::new(lisa("lia"));
        assert_eq!(join_with(&mut host, 0, of_host), alone);
        let mut host = beside(lisa("lia"), 40);
        assert_eq!(join_with(&mut host, 1, of_host), taken);
        assert_eq!(settled(&mut host, 0), 40 - taken);
        let mut host = beside(lisa("lia"), 3);
        assert_eq!(join_with(&mut host, 1, of_host), too_small);
        assert_eq!(settled(&mut host, 0), 3);
    }
}

#[test]
fn the_bounds_are_parameters() {
    let params = Params::default().with(&[("lisa.most", "16"), ("lisa.least", "2")]);
    for (old, new, left) in [(40, 16, 24), (31, 15, 16), (4, 2, 2), (3, 2, 3)] {
        let mut host = Host::new(lisa("lia"));
        host.conn = Conn::with_params(lisa("lia"), &params);
        slow_start(&mut host, 0, old);
        assert_eq!((join_with(&mut host, 1, 20), settled(&mut host, 0)), (new, left), "{old}");
    }
}

/// A backup does not send; a path that has sent before, whose control is changed, has its window.
#[test]
fn backups_and_paths_that_have_sent_before_take_nothing() {
    for state in [State::Backup, State::Active] {
        let mut host = beside(lisa("lia"), 40);
        let event = Event { state: state as u32, cwnd: 25, ..host.event(1, EventKind::Joined) };
        assert_eq!((host.send(1, &event).cwnd, settled(&mut host, 0)), (25, 40), "{state:?}");
    }
}

/// Windows alone change: the rate at which a host paces stays its own.
#[test]
fn pacing_is_the_hosts() {
    let mut host = beside(lisa("lia"), 40);
    let event = Event {
        state: State::Joining as u32,
        flags: flag::PACED,
        ..host.event(1, EventKind::Joined)
    };
    assert_eq!(host.send(1, &event).cwnd, 10);
    settled(&mut host, 0);
    assert_eq!([0, 1].map(|path| host.conn.path(path).pacing_rate), [0, 0]);
}

/// With an exit of another slow start, the join is LISA's and growth is the exit's.
#[test]
fn an_exit_of_another_slow_start_has_its_effect() {
    let mut host = beside("reno+lisa+hystart++".parse().unwrap(), 40);
    assert_eq!(join(&mut host, 1), 10);
    for (rtt_ms, cwnd) in [(100, 20), (130, 28)] {
        for n in 0..10 {
            let round = if n == 0 { flag::ROUND_START } else { 0 };
            let event = Event {
                delivered: 1,
                rtt_us: 1_000 * rtt_ms,
                flags: flag::CWND_LIMITED | round,
                ..host.event(1, EventKind::Acked)
            };
            host.send(1, &event);
        }
        // Seven samples, then a quarter of the speed.
        let grown = host.conn.path(1).cwnd;
        assert!(grown == cwnd || (rtt_ms == 130 && grown == 27), "{grown} at {rtt_ms} ms");
    }
    assert_eq!(settled(&mut host, 0), 30);
}

/// Joins and losses as they come: windows stay in bounds, and some lend.
#[test]
fn random_events_lend_and_never_take_a_window_below_one() {
    for control in every_window_law() {
        let control = Control { join: SlowStart::LISA, ..control };
        let (mut lent, mut joins) = (0, 0);
        for seed in 0..20 {
            let mut conn = Conn::new(control);
            let mut private = [Private::default(); MAX_PATHS];
            trace(seed, MAX_PATHS, 10_000, |path, event| {
                let debits = |conn: &Conn| -> u32 {
                    (0..MAX_PATHS).map(|path| conn.path(path).debit & 0xffff).sum()
                };
                let before = debits(&conn);
                let output = conn.event(path, &mut private[path], event);
                if event.kind == EventKind::Joined as u32 {
                    joins += 1;
                    lent += u32::from(debits(&conn) > before);
                }
                assert!(output.cwnd >= 1 || event.kind == EventKind::Left as u32);
                output
            });
        }
        assert!(lent > 20 && lent < joins, "{control}: {lent} of {joins} joins");
    }
}
