//! Growth and reduction of window laws.

use super::{Failure, Host, Run, ensure};
use crate::raw::{ONE_PACKET, SSTHRESH_MAX};
use crate::replay::Random;
use crate::{Control, Event, EventKind, flag};

/// Paths in congestion avoidance: window, packets, and smoothed RTT, 1/8 µs.
type Paths = [(u32, u32)];

fn avoiding(control: Control, paths: &Paths) -> Host {
    let mut host = Host::new(control);
    for path in 0..paths.len() {
        host.report(path, EventKind::Joined);
    }
    for (path, (w, rtt8)) in paths.iter().enumerate() {
        host.avoiding(path, *w, *rtt8, 0);
    }
    host
}

fn words(paths: &Paths) -> String {
    let path =
        |(n, (w, rtt8)): (usize, &(u32, u32))| format!("path {n} at cwnd {w} and {} us", rtt8 / 8);
    paths.iter().enumerate().map(path).collect::<Vec<_>>().join(", ")
}

/// Path 0 and 0 to 7 others, from normal to extreme.
fn extreme_paths() -> impl Iterator<Item = Vec<(u32, u32)>> {
    const WINDOWS: [u32; 6] = [2, 1, 3, 10, 1_000, 1 << 20];
    const RTTS_US: [u32; 4] = [20_000, 10, 1_000_000, 10_000_000];
    [0, 1, 2, 7].into_iter().flat_map(|others| {
        WINDOWS.into_iter().flat_map(move |w| {
            RTTS_US.into_iter().flat_map(move |rtt_us| {
                // Equal, and as different as possible.
                let other = [(w, rtt_us), (1, 10), (1 << 20, 10), (1, 10_000_000)];
                let kinds = if others == 0 { 1 } else { other.len() };
                other.into_iter().take(kinds).map(move |other| {
                    let mut paths = vec![(w, 8 * rtt_us)];
                    paths.extend([(other.0, 8 * other.1)].repeat(others));
                    paths
                })
            })
        })
    })
}

pub(super) fn extremes(control: Control, run: Run) -> Result<(), Failure> {
    for paths in extreme_paths() {
        let case = || {
            let mut host = avoiding(control, &paths);
            for round in 0..20 {
                for path in 0..paths.len() {
                    let w = host.conn.path(path).cwnd;
                    let packets = 1 + (w - 1) * round / 19;
                    let cwnd = host.ack(path, packets).cwnd;
                    // A window of 1 has no whole packet to measure by.
                    ensure(cwnd >= 1 && cwnd <= w.max(2) + packets, || {
                        format!(
                            "{packets} packets acknowledged take cwnd of path {path} from {w} to \
                             {cwnd}: faster than slow start"
                        )
                    })?;
                }
                host.now_us += u64::from(paths[0].1 / 8);
            }
            Ok(())
        };
        run(&case).map_err(|failure: Failure| failure.at(words(&paths)))?;
    }
    // Beyond the specified range: in bounds, if not accurate.
    let case = || {
        let mut host = avoiding(control, &[(1 << 30, 160_000), (1 << 30, 160_000)]);
        for _ in 0..100 {
            host.now_us += 1_000_000_000;
            let cwnd = host.ack(0, u32::MAX).cwnd;
            let credit = host.private[0].credit();
            let bounds = (1 << 30) - 100..=1 << 30;
            ensure(bounds.contains(&cwnd), || format!("cwnd is {cwnd}, expected about 2^30"))?;
            ensure(credit < ONE_PACKET, || format!("{credit} units of credit are left over"))?;
        }
        Ok(())
    };
    run(&case)
        .map_err(|failure| failure.at("2 paths at cwnd 2^30, 2^32 - 1 packets acknowledged"))?;
    let case = || {
        let mut host = avoiding(control, &[(2, 160_000), (2, 160_000)]);
        let mut bounded = host.clone();
        let (all, bounded) = (host.ack(0, u32::MAX).cwnd, bounded.ack(0, 1 << 20).cwnd);
        ensure(all == bounded, || {
            format!("2^32 - 1 packets acknowledged lead to cwnd {all}, 2^20 to {bounded}")
        })
    };
    run(&case).map_err(|failure| failure.at("2 paths at cwnd 2"))
}

/// A law whose siblings publish counts at each acknowledgement (OLIA's l) counts all packets of a
/// stretch before it grows: it may be off by rounding, but not by a packet.
pub(super) fn stretch(control: Control, run: Run) -> Result<(), Failure> {
    let counts = control.law.couples() && control.law.acts_at_acks();
    let allowed = if counts { ONE_PACKET } else { 0 };
    let mut random = Random(3);
    for bound in [10, 100, 5_000] {
        for n in [1, 2, 3, 4].repeat(34) {
            let mut path =
                || (2 + random.below(bound) as u32, 8_000 + random.below(8_000_000) as u32);
            let paths: Vec<_> = (0..n).map(|_| path()).collect();
            let seed = random.next();
            let case = || {
                let mut random = Random(seed);
                let mut host = avoiding(control, &paths);
                for _ in 0..20 {
                    let w = host.conn.path(0).cwnd;
                    // Within one window: at most NR_GROW_STEPS packets of growth.
                    let packets = 1 + random.below(u64::from(w.min(64))) as u32;
                    let mut single = host.clone();
                    for _ in 0..packets {
                        single.ack(0, 1);
                    }
                    host.ack(0, packets);
                    let (found, expected) = (host.window(0), single.window(0));
                    ensure((found - expected).abs() <= allowed, || {
                        let of = |window: i64| window as f64 / ONE_PACKET as f64;
                        format!(
                            "{packets} packets acknowledged at cwnd {w} by one event lead to \
                             {:.9}, by {packets} events to {:.9}",
                            of(found),
                            of(expected)
                        )
                    })?;
                    host = single;
                    host.now_us += 10_000;
                }
                Ok(())
            };
            run(&case).map_err(|failure: Failure| failure.at(words(&paths)))?;
        }
    }
    Ok(())
}

pub(super) fn not_limited(control: Control, run: Run) -> Result<(), Failure> {
    for w in [2, 10, 1_000] {
        let case = || {
            let mut host = avoiding(control, &[(w, 160_000), (w, 160_000)]);
            let before = host.window(0);
            let event = Event { delivered: 1_000, ..host.event(0, EventKind::Acked) };
            host.send(0, &event);
            let after = host.window(0);
            ensure(after == before, || {
                let grown = (after - before) as f64 / ONE_PACKET as f64;
                format!("cwnd changes by {grown:.9} packets, without NR_F_CWND_LIMITED")
            })
        };
        run(&case).map_err(|failure| failure.at(format!("2 paths at cwnd {w}")))?;
    }
    Ok(())
}

pub(super) fn loss(control: Control, run: Run) -> Result<(), Failure> {
    for paths in extreme_paths() {
        for kind in [EventKind::Recovery, EventKind::Ecn, EventKind::Timeout] {
            let case = || reduces(avoiding(control, &paths), kind);
            let words =
                || format!("{}; path 0: NR_{}", words(&paths), format!("{kind:?}").to_uppercase());
            run(&case).map_err(|failure: Failure| failure.at(words()))?;
        }
    }
    Ok(())
}

fn reduces(mut host: Host, kind: EventKind) -> Result<(), Failure> {
    host.ack(0, 1);
    host.now_us += 20_000;
    let (before, words) = (*host.conn.path(0), host.conn.path(0).word);
    let w = before.cwnd;
    let mut other = host.clone();
    let reduced = host.report(0, kind);
    ensure(reduced.cwnd <= w, || format!("raises cwnd from {w} to {}", reduced.cwnd))?;
    ensure(w < 4 || reduced.ssthresh < w, || {
        format!("ssthresh is {} at cwnd {w}, expected a reduction", reduced.ssthresh)
    })?;
    let credit = host.private[0].credit();
    ensure(credit == 0, || format!("{credit} units of credit remain after the reduction"))?;
    if kind == EventKind::Timeout {
        ensure(reduced.cwnd == 1, || format!("cwnd is {} after it, expected 1", reduced.cwnd))?;
    } else {
        let lost = other.report(0, EventKind::Recovery);
        let scales = host.conn.control().law.scales() && kind == EventKind::Ecn;
        ensure(scales || reduced == lost, || format!("{reduced:?}, after a loss {lost:?}"))?;
        let again = host.clone().report(0, kind);
        ensure(again == reduced, || {
            format!(
                "a second event of the same window takes cwnd from {} to {}",
                reduced.cwnd, again.cwnd
            )
        })?;
    }
    let mut timeouts = host.clone();
    for _ in 0..3 {
        let after = timeouts.report(0, EventKind::Timeout);
        ensure((after.cwnd, after.ssthresh) == (1, reduced.ssthresh), || {
            format!(
                "a timeout after it leaves cwnd {} and ssthresh {}, expected 1 and {}",
                after.cwnd, after.ssthresh, reduced.ssthresh
            )
        })?;
    }
    host.now_us += 20_000;
    let undone = host.report(0, EventKind::Undo);
    ensure(undone.cwnd == w.max(reduced.cwnd), || {
        format!("undo restores cwnd {}, expected {w}", undone.cwnd)
    })?;
    let ssthresh = before.ssthresh.max(reduced.ssthresh);
    ensure(undone.ssthresh == ssthresh, || {
        format!("undo restores ssthresh {}, expected {ssthresh}", undone.ssthresh)
    })?;
    let line = host.conn.path(0);
    ensure(line.word == words, || {
        format!("undo leaves the published words {:?}, expected {words:?}", line.word)
    })?;
    host.set_cwnd(0, 1);
    let twice = host.report(0, EventKind::Undo).cwnd;
    ensure(twice == 1, || format!("a second undo takes cwnd from 1 to {twice}"))
}

pub(super) fn hosts(control: Control, run: Run) -> Result<(), Failure> {
    let case = || {
        let mut host = Host::new(control);
        let taken = |host: &mut Host, event: &Event, expected: (u32, u32)| {
            let output = host.send(0, event);
            let found = (output.cwnd, output.ssthresh);
            ensure(found == expected, || {
                format!("cwnd and ssthresh are {found:?}, expected {expected:?}")
                    + &format!(" after {}", super::events::words(&(0, *event)))
            })
        };
        let join = Event { cwnd: 40, ssthresh: 30, ..host.event(0, EventKind::Joined) };
        taken(&mut host, &join, (40, 30))?;
        let remembered = Event { cwnd: 20, ssthresh: 33, ..host.event(0, EventKind::Acked) };
        taken(&mut host, &remembered, (20, 33))?;
        let reduced = host.report(0, EventKind::Recovery);
        let late = Event {
            cwnd: 20,
            ssthresh: 99,
            flags: flag::IN_RECOVERY,
            ..host.event(0, EventKind::Acked)
        };
        taken(&mut host, &late, (reduced.cwnd, reduced.ssthresh))?;
        let undo = host.event(0, EventKind::Undo);
        taken(&mut host, &undo, (20, 33))?;
        // A path without a threshold is in its first slow start.
        let join = host.event(1, EventKind::Joined);
        let joined = host.send(1, &join);
        ensure((joined.cwnd, joined.ssthresh) == (10, SSTHRESH_MAX), || {
            format!("a path joins with {joined:?}, expected a cwnd of 10 and no ssthresh")
        })
    };
    run(&case).map_err(|failure| failure.at("a path joins with cwnd 40 and ssthresh 30"))
}
