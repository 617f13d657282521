//! Properties of siblings.

use super::{Failure, Host, Run, ensure};
use crate::raw::ONE_PACKET;
use crate::replay::trace;
use crate::{Conn, Control, Detector, EventKind, MAX_PATHS, Private};

/// `n` paths in congestion avoidance at `w` packets and 20 ms.
fn equal(control: Control, n: usize, w: u32) -> Host {
    equal_in(control, n, w, None)
}

/// The same in other masks, from before their first reduction.
fn equal_in(control: Control, n: usize, w: u32, masks: Option<u64>) -> Host {
    let mut host = Host::new(control);
    for path in 0..n {
        host.report(path, EventKind::Joined);
    }
    if let Some(masks) = masks {
        host.conn.set_masks(masks);
    }
    for path in 0..n {
        host.avoiding_at(path, w);
    }
    host
}

pub(super) fn equal_paths(control: Control, run: Run) -> Result<(), Failure> {
    for n in 2..=MAX_PATHS {
        for bits in 1..=20 {
            for w in [1 << bits, (1 << bits) * 2 / 3 + 1] {
                let case = || {
                    let reno = equal(Control::RENO, 1, w).credit(0);
                    let credit = equal(control, n, w).credit(0);
                    ensure(credit <= reno, || {
                        format!(
                            "an acknowledged packet adds {credit:.9} packets, Reno on a single \
                             path {reno:.9}"
                        )
                    })
                };
                let words = || format!("{n} coupled paths at cwnd {w} and 20 ms");
                run(&case).map_err(|failure| failure.at(words()))?;
            }
        }
    }
    Ok(())
}

/// A trace through one connection of disjoint paths, and through one connection for each path.
pub(super) fn disjoint(control: Control, run: Run) -> Result<(), Failure> {
    let control = Control { detector: Detector::DISJOINT, ..control };
    for (paths, seed) in [(2, 1), (4, 2), (8, 3)] {
        let case = || {
            let new = || (Conn::new(control), [Private::default(); MAX_PATHS]);
            let mut together = new();
            let mut apart: Vec<_> = (0..paths).map(|_| new()).collect();
            let mut failure = Ok(());
            let mut step = 0;
            trace(seed, paths, 10_000, |path, event| {
                let found = together.0.event(path, &mut together.1[path], event);
                let alone = &mut apart[path];
                let expected = alone.0.event(path, &mut alone.1[path], event);
                if failure.is_ok() && (found != expected || together.1[path] != alone.1[path]) {
                    failure = Err(Failure::new(format!(
                        "path {path} has {found:?} beside disjoint siblings, {expected:?} without"
                    ))
                    .at(format!("trace {seed} of {paths} paths, event {step}"))
                    .at(super::events::words(&(path as u32, *event))));
                }
                step += 1;
                found
            });
            failure
        };
        run(&case).map_err(|failure| failure.at(format!("trace {seed} of {paths} paths")))?;
    }
    Ok(())
}

/// Two masks of two paths each, beside one mask of two.
pub(super) fn others(control: Control, run: Run) -> Result<(), Failure> {
    const MASKS: u64 = 0x8040_2010_0c0c_0303;
    for w in [2, 10, 100, 1_000] {
        let case = || {
            let mut alone = equal_in(control, 2, w, Some(MASKS));
            let mut beside = equal_in(control, 4, w, Some(MASKS));
            for step in 0..200 {
                live(&mut beside, 2, 1);
                beside.now_us = alone.now_us;
                let (found, expected) = (live(&mut beside, 0, 1), live(&mut alone, 0, 1));
                ensure(found == expected, || {
                    let window = |(cwnd, credit)| {
                        format!("cwnd {cwnd}, credit {:.9}", credit as f64 / ONE_PACKET as f64)
                    };
                    format!(
                        "path 0 has {} with two paths of another mask present, {} without, after {} \
                         acknowledgements: does it read paths that are not in `set`?",
                        window(found),
                        window(expected),
                        step + 1
                    )
                })?;
            }
            Ok(())
        };
        let words = || format!("paths 0 and 1 in one mask, 2 and 3 in another, all at cwnd {w}");
        run(&case).map_err(|failure| failure.at(words()))?;
    }
    Ok(())
}

/// Path 0 is alone; then, without events of path 0, a sibling joins, grows, loses and leaves.
pub(super) fn left(control: Control, run: Run) -> Result<(), Failure> {
    for before in [1, 10, 100, 1_000] {
        for acks in [0, 1, 10, 100] {
            let case = || {
                let mut host = Host::new(control);
                host.report(0, EventKind::Joined);
                live(&mut host, 0, before);
                let mut alone = host.clone();
                host.report(1, EventKind::Joined);
                live(&mut host, 1, acks);
                host.report(1, EventKind::Left);
                alone.now_us = host.now_us;
                for step in 0..200 {
                    let (found, expected) = (live(&mut host, 0, 1), live(&mut alone, 0, 1));
                    ensure(found == expected, || {
                        format!(
                            "{step} acknowledgements after its sibling left, cwnd and credit of a \
                             path are {found:?}, without that sibling {expected:?}"
                        )
                    })?;
                }
                Ok(())
            };
            let words = || {
                format!(
                    "path 0 has {before} acknowledgements; path 1 joins, has {acks}, and leaves"
                )
            };
            run(&case).map_err(|failure| failure.at(words()))?;
        }
    }
    Ok(())
}

/// `acks` acknowledgements at 20 ms, and a loss each 64th; returns the window and its fraction.
fn live(host: &mut Host, path: usize, acks: usize) -> (u32, i64) {
    for ack in 1..=acks {
        host.now_us += 1_000;
        host.ack(path, 2);
        if ack % 64 == 0 {
            host.report(path, EventKind::Recovery);
            host.report(path, EventKind::Recovered);
        }
    }
    (host.conn.path(path).cwnd, host.private[path].credit())
}

pub(super) fn slot_again(control: Control, run: Run) -> Result<(), Failure> {
    for acks in [1, 10, 100, 1_000] {
        let case = || {
            let mut host = Host::new(control);
            let mut fresh = Host::new(control);
            host.report(0, EventKind::Joined);
            live(&mut host, 0, acks);
            host.report(0, EventKind::Left);
            let line = host.conn.path(0);
            ensure((line.state, line.cwnd, line.srtt8_us, line.word) == (0, 0, 0, [0, 0]), || {
                format!("the published line of a path that left is {line:?}, expected zeros")
            })?;
            fresh.now_us = host.now_us;
            let (found, expected) =
                [&mut host, &mut fresh].map(|host| host.report(0, EventKind::Joined)).into();
            ensure(found == expected && host.private[0] == fresh.private[0], || {
                format!("a path begins with {found:?}, in a new slot with {expected:?}")
            })?;
            let (line, new) = (host.conn.path(0), fresh.conn.path(0));
            ensure(line.word == new.word && line.debit & 0xffff == 0, || {
                format!("its published words are {:?}, in a new slot {:?}", line.word, new.word)
            })?;
            ensure(line.generation == 2, || {
                format!("generation {} of the slot, expected 2", line.generation)
            })
        };
        let words =
            || format!("a path joins, has {acks} acknowledgements and leaves; another joins");
        run(&case).map_err(|failure: Failure| failure.at(words()))?;
    }
    Ok(())
}
