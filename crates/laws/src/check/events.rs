//! Properties for any sequence of events; a failure is reduced to the fewest and simplest events.

use super::{Failure, Run, ensure};
use crate::raw::{MAX_PATHS, ONE_PACKET};
use crate::replay::{Random, trace};
use crate::{Conn, Control, Event, EventKind, Output, Path, Private, State, flag};

/// Events of paths.
type Events = [(u32, Event)];

/// The largest window, packets (`NR_CWND_MAX`).
const CWND_MAX: u32 = 1 << 30;

const KINDS: [EventKind; 9] = [
    EventKind::Joined,
    EventKind::Acked,
    EventKind::Recovery,
    EventKind::Recovered,
    EventKind::Timeout,
    EventKind::Undo,
    EventKind::Ecn,
    EventKind::Restart,
    EventKind::Left,
];

/// `enum nr_flag`.
const FLAGS: [(u32, &str); 11] = [
    (flag::CWND_LIMITED, "NR_F_CWND_LIMITED"),
    (flag::APP_LIMITED, "NR_F_APP_LIMITED"),
    (flag::IN_RECOVERY, "NR_F_IN_RECOVERY"),
    (flag::ROUND_START, "NR_F_ROUND_START"),
    (flag::RETRANS, "NR_F_RETRANS"),
    (flag::OWD, "NR_F_OWD"),
    (flag::DWELL, "NR_F_DWELL"),
    (flag::PACED, "NR_F_PACED"),
    (flag::SRTT, "NR_F_SRTT"),
    (flag::NO_DELAY, "NR_F_NO_DELAY"),
    (flag::RESIZED, "NR_F_RESIZED"),
];

/// An event for the law's author: non-zero fields by the names of `struct nr_event`; the state only
/// if it is not NR_ACTIVE.
pub(super) fn words((path, event): &(u32, Event)) -> String {
    let kind = KINDS.iter().find(|kind| **kind as u32 == event.kind);
    let kind = kind.map_or("unknown kind".into(), |kind| format!("{kind:?}").to_uppercase());
    let mut words = format!("path {path}: NR_{kind}");
    if event.state != State::Active as u32 {
        words += &format!(" state={}", event.state);
    }
    let wide =
        [("now_us", event.now_us), ("sent_us", event.sent_us), ("rate", event.rate)].into_iter();
    let narrow = [
        ("delivered", event.delivered),
        ("lost", event.lost),
        ("marked", event.marked),
        ("rtt_us", event.rtt_us),
        ("inflight", event.inflight),
        ("cwnd", event.cwnd),
        ("ssthresh", event.ssthresh),
        ("srtt8_us", event.srtt8_us),
        ("mss", event.mss),
    ];
    for (name, value) in wide.chain(narrow.map(|(name, value)| (name, value.into()))) {
        if value != 0 {
            words += &format!(" {name}={value}");
        }
    }
    let set = FLAGS.iter().filter(|(bit, _)| event.flags & bit != 0);
    let set: Vec<_> = set.map(|(_, name)| *name).collect();
    if !set.is_empty() {
        words += &format!(" flags={}", set.join("|"));
    }
    words
}

/// Simplifications of an event.
const PLAINER: [fn(&mut Event); 17] = [
    |event| *event = Event { kind: event.kind, state: State::Active as u32, ..Event::default() },
    |event| event.now_us = 0,
    |event| event.sent_us = 0,
    |event| event.rate = 0,
    |event| event.flags &= flag::CWND_LIMITED,
    |event| event.flags = 0,
    |event| event.state = State::Active as u32,
    |event| event.delivered = event.delivered.min(1),
    |event| event.lost = 0,
    |event| event.marked = 0,
    |event| event.rtt_us = 0,
    |event| event.inflight = 0,
    |event| event.cwnd = event.cwnd.min(10),
    |event| event.cwnd = 0,
    |event| event.ssthresh = 0,
    |event| event.srtt8_us = 0,
    |event| event.mss = 0,
];

/// Checks `events`; if they fail, reduces them to the fewest and simplest that still fail.
fn smallest(
    events: &Events,
    run: Run,
    holds: &dyn Fn(&Events) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let fails = |events: &Events| run(&|| holds(events)).err();
    let Some(mut failure) = fails(events) else { return Ok(()) };
    let mut events = events.to_vec();
    let mut try_it = |events: &mut Vec<(u32, Event)>, other: Vec<(u32, Event)>| {
        let less = other != *events;
        let Some(with) = less.then(|| fails(&other)).flatten() else { return false };
        (failure, *events) = (with, other);
        true
    };
    loop {
        let before = events.clone();
        let mut piece = events.len().div_ceil(2);
        while piece > 0 {
            let mut at = 0;
            while at < events.len() {
                let mut fewer = events.clone();
                fewer.drain(at..(at + piece).min(events.len()));
                if !try_it(&mut events, fewer) {
                    at += piece;
                }
            }
            piece /= 2;
        }
        for at in 0..events.len() {
            for plainer in PLAINER {
                let mut other = events.clone();
                plainer(&mut other[at].1);
                try_it(&mut events, other);
            }
        }
        if events == before {
            break;
        }
    }
    failure.case = events.iter().map(words).collect();
    Err(failure)
}

/// A connection, and the slot of each path.
struct Seated {
    conn: Conn,
    private: [Private; MAX_PATHS],
    slot: [usize; MAX_PATHS],
}

impl Seated {
    fn new(control: Control, slot: [usize; MAX_PATHS]) -> Seated {
        Seated { conn: Conn::new(control), private: Default::default(), slot }
    }

    fn event(&mut self, path: u32, event: &Event) -> (Output, i64) {
        let slot = self.slot[path as usize];
        let output = self.conn.event(slot, &mut self.private[slot], event);
        (output, self.private[slot].credit())
    }
}

const IN_ORDER: [usize; MAX_PATHS] = [0, 1, 2, 3, 4, 5, 6, 7];

/// Generates and checks a trace of `paths` paths under `control` as one case, reduced if it fails.
fn traced(
    control: Control,
    run: Run,
    (seed, paths, steps): (u64, usize, usize),
    holds: &dyn Fn(&Events) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let whole = || {
        let mut under = Seated::new(control, IN_ORDER);
        let events = trace(seed, paths, steps, |path, event| under.event(path as u32, event).0);
        // In one process from here on: a law that crashes has crashed above.
        smallest(&events, &|case| case(), holds)
    };
    run(&whole).map_err(|failure| failure.at(format!("trace {seed} of {paths} paths")))
}

fn differ(path: u32, first: (Output, i64), second: (Output, i64), where_: &str) -> Failure {
    let words = |(output, credit): (Output, i64)| {
        let fraction = credit as f64 / ONE_PACKET as f64;
        format!("cwnd {}, ssthresh {}, credit {fraction:.9}", output.cwnd, output.ssthresh)
    };
    Failure::new(format!("path {path} has {}; {where_} {}", words(first), words(second)))
}

pub(super) fn slot_order(control: Control, run: Run) -> Result<(), Failure> {
    const SEATS: [[usize; MAX_PATHS]; 3] =
        [[7, 6, 5, 4, 3, 2, 1, 0], [3, 0, 6, 1, 7, 4, 2, 5], [5, 7, 1, 2, 0, 3, 4, 6]];
    let holds = |events: &Events| {
        let mut here = Seated::new(control, IN_ORDER);
        let mut there = SEATS.map(|slot| Seated::new(control, slot));
        for (path, event) in events {
            let expected = here.event(*path, event);
            for there in &mut there {
                let found = there.event(*path, event);
                if found != expected {
                    let slot = there.slot;
                    let seats = format!("with paths 0, 1, 2... in slots {slot:?}:");
                    return Err(differ(*path, expected, found, &seats));
                }
            }
        }
        Ok(())
    };
    for paths in [2, 3, 5, 8] {
        for seed in 0..4 {
            traced(control, run, (seed, paths, 10_000), &holds)?;
        }
    }
    Ok(())
}

pub(super) fn determinism(control: Control, run: Run) -> Result<(), Failure> {
    // Next to another connection, with the same events in other slots.
    let holds = |events: &Events| {
        let mut alone = Seated::new(control, IN_ORDER);
        let expected: Vec<_> =
            events.iter().map(|(path, event)| alone.event(*path, event)).collect();
        let mut again = Seated::new(control, IN_ORDER);
        let mut other = Seated::new(control, [7, 6, 5, 4, 3, 2, 1, 0]);
        for ((path, event), expected) in events.iter().zip(expected) {
            other.event(*path, &Event { delivered: event.delivered / 2, ..*event });
            let found = again.event(*path, event);
            if found != expected {
                return Err(differ(
                    *path,
                    expected,
                    found,
                    "in a second run, next to another connection:",
                ));
            }
        }
        Ok(())
    };
    for paths in [1, 2, 4] {
        // What is remembered outside may be for good after the first time: that first time counts, too.
        let first = || {
            let (mut under, mut outputs) = (Seated::new(control, IN_ORDER), Vec::new());
            let events = trace(9, paths, 20_000, |path, event| {
                outputs.push(under.event(path as u32, event));
                outputs[outputs.len() - 1].0
            });
            let mut again = Seated::new(control, IN_ORDER);
            for (step, ((path, event), expected)) in events.iter().zip(outputs).enumerate() {
                let found = again.event(*path, event);
                if found != expected {
                    return Err(differ(*path, expected, found, "the second time:")
                        .at(format!("trace 9 of {paths} paths, event {step}")));
                }
            }
            Ok(())
        };
        run(&first)?;
        traced(control, run, (9, paths, 20_000), &holds)?;
    }
    Ok(())
}

/// Small and huge numbers, and all between.
fn any_u64(random: &mut Random, usual: u64) -> u64 {
    match random.below(5) {
        0 => random.below(4),
        1 => usual / 100 + random.below(usual),
        2 => u64::MAX,
        3 => 1 << random.below(64),
        _ => random.next(),
    }
}

fn any_event(random: &mut Random) -> Event {
    let mut any = || any_u64(random, 100_000) as u32;
    let event = Event {
        delivered: any(),
        lost: any(),
        marked: any(),
        rtt_us: any(),
        dwell_us: any(),
        inflight: any(),
        sample_inflight: any(),
        sample_delivered: any(),
        sample_lost: any(),
        cwnd: any(),
        ssthresh: any(),
        srtt8_us: any(),
        mss: any(),
        ..Event::default()
    };
    Event {
        now_us: any_u64(random, 100_000_000),
        sent_us: any_u64(random, 100_000_000),
        rate: any_u64(random, 100_000_000),
        kind: random.below(12) as u32,
        flags: random.next() as u32,
        state: random.below(7) as u32,
        owd_us: random.next() as i32,
        ..event
    }
}

/// Up to 200 events of any kind. Half of the slots begin with a join, the others with any event.
fn any_events(seed: u64) -> Vec<(u32, Event)> {
    let mut random = Random(seed);
    let mut joined = [false; MAX_PATHS];
    let mut events = Vec::new();
    for _ in 0..1 + random.below(200) {
        let path = random.below(MAX_PATHS as u64) as usize;
        let event = any_event(&mut random);
        if !joined[path] && path % 2 == 0 {
            events.push((path as u32, Event { kind: EventKind::Joined as u32, ..event }));
        }
        joined[path] = event.kind != EventKind::Left as u32;
        events.push((path as u32, event));
    }
    events
}

pub(super) fn hostile(control: Control, run: Run) -> Result<(), Failure> {
    let holds = |events: &Events| {
        let mut under = Seated::new(control, IN_ORDER);
        let mut joined = [false; MAX_PATHS];
        for (path, event) in events {
            let (output, credit) = under.event(*path, event);
            let joined = &mut joined[*path as usize];
            *joined |= event.kind == EventKind::Joined as u32;
            *joined &= event.kind != EventKind::Left as u32;
            let (cwnd, ssthresh) = (output.cwnd, output.ssthresh);
            if !*joined {
                let what = || format!("a slot without a path has a cwnd of {cwnd}, expected 0");
                ensure(cwnd == 0, what)?;
                continue;
            }
            ensure((1..=CWND_MAX).contains(&cwnd), || {
                format!("cwnd is {cwnd}, expected 1 to 2^30 packets")
            })?;
            ensure(ssthresh >= 1, || "ssthresh is 0, expected 1 packet or more".into())?;
            ensure(control.law.is_model() || credit.abs() < ONE_PACKET, || {
                format!("{credit} units of credit are left, expected less than a packet, 2^40")
            })?;
        }
        Ok(())
    };
    (0..500).try_for_each(|seed| smallest(&any_events(seed), run, &holds))
}

/// Linux calls some hooks of a socket before its control's init, and some after its release.
pub(super) fn empty_slots(control: Control, run: Run) -> Result<(), Failure> {
    let event = |kind: u32, cwnd| Event {
        kind,
        cwnd,
        state: State::Active as u32,
        flags: flag::CWND_LIMITED,
        delivered: 2,
        srtt8_us: 160_000,
        ..Event::default()
    };
    let [join, timeout, left] =
        [EventKind::Joined, EventKind::Timeout, EventKind::Left].map(|kind| event(kind as u32, 10));
    let before = [(1, join), (1, timeout)];
    let after = [(1, join), (1, timeout), (0, join), (0, timeout), (0, left)];
    for begin in [&before[..], &after] {
        for kind in EventKind::Acked as u32..=EventKind::Left as u32 + 1 {
            for cwnd in [0, 1, 10] {
                let last = (0, event(kind, cwnd));
                let case = || {
                    let mut under = Seated::new(control, IN_ORDER);
                    for (path, event) in begin {
                        under.event(*path, event);
                    }
                    let line: Path = *under.conn.path(0);
                    ensure((line.state, line.cwnd) == (State::Free as u32, 0), || {
                        format!("a free slot has state {} and cwnd {}", line.state, line.cwnd)
                    })?;
                    under.event(0, &last.1);
                    let found = *under.conn.path(0);
                    ensure(found == line, || format!("{found:?}, expected as before: {line:?}"))
                };
                run(&case).map_err(|mut failure| {
                    failure.case = begin.iter().chain([&last]).map(words).collect();
                    failure
                })?;
            }
        }
    }
    Ok(())
}
