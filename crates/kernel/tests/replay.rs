//! The laws decide inside the kernel as they do natively, bit by bit, and its verifier accepts them
//! at a bounded price.

use narrows_kernel::replay::{AT_ONCE, Outcome, Replay, STEPS as BATCH, VERIFIED_INSNS_MAX};
use narrows_laws::replay::queued;
use narrows_laws::{Conn, Control, Detector, Law, MAX_PATHS, Params, Place, Private, SlowStart};
use narrows_testkit::machine::can_run;
use std::collections::BTreeSet;

const STEPS: usize = 20_000;
const SEEDS: u64 = 4;

/// Every law under every detector that does not decide, and with every slow start.
fn controls() -> impl Iterator<Item = Control> {
    Law::all().flat_map(|law| {
        let own = Control::of(law);
        let detectors = Detector::all().filter(|detector| !detector.decides());
        let detectors = detectors.map(move |detector| Control { detector, ..own });
        let exits = SlowStart::all().filter(|start| !start.joins());
        let joins = SlowStart::all().filter(|start| start.joins());
        let starts = exits.map(move |exit| Control { exit, ..own });
        let starts = starts.chain(joins.map(move |join| Control { join, ..own }));
        detectors.chain(starts.filter(move |control| *control != own))
    })
}

/// Coupled laws of the literature, ours, and model laws, under every dynamic detector that is for BPF.
fn dynamic_controls() -> impl Iterator<Item = Control> {
    let detectors = Detector::all().filter(|detector| detector.decides() && !detector.is_native());
    let controls = detectors.flat_map(|detector| {
        let windows = ["olia", "lia", "greno", "gcubic"];
        let laws = Law::all().filter(move |law| windows.contains(&law.name()) || law.is_model());
        laws.map(move |law| Control { detector, ..Control::of(law) })
    });
    controls.filter(|control| control.fault().is_none())
}

/// False, and a word on the terminal, where this process cannot load BPF programs.
fn can_load(test: &str) -> bool {
    can_run(test, narrows_kernel::available().map_err(|reason| reason.to_string()))
}

/// A control's replay; the verifier walks a bounded number of its instructions.
fn load(control: Control) -> Replay {
    let replay = Replay::load(control).unwrap();
    for (program, insns) in replay.verified_insns().unwrap() {
        println!("  {:<16} {program:<10} {insns:>8} verifier instructions", control.to_string());
        assert!(insns <= VERIFIED_INSNS_MAX, "{control}: {program} takes {insns}");
    }
    replay
}

#[test]
fn recorded_events_get_the_same_windows_in_the_kernel() {
    if !can_load("replay in the kernel") {
        return;
    }
    let mut compared = 0;
    for control in controls() {
        let mut kernel = load(control);
        for paths in [1, 2, 4, 8] {
            for seed in 0..SEEDS {
                let parted = kernel.compare(seed, paths, STEPS).unwrap();
                assert!(parted.is_none(), "{}", parted.unwrap());
                compared += STEPS;
            }
        }
    }
    println!("replay in the kernel: {compared} outcomes equal bit by bit");
}

/// Decisions of a dynamic detector on paths 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    Together,
    Apart,
    Clear,
}

#[test]
fn dynamic_detectors_sample_and_decide_the_same_in_the_kernel() {
    if !can_load("replay of detectors in the kernel") {
        return;
    }
    let presets = [Params::default(), Params::default().with(&[("ssc.preset", "mptcp-sbd")])];
    let mut compared = 0;
    for control in dynamic_controls() {
        let mut kernel = load(control);
        let mut seen = BTreeSet::new();
        for (seed, paths) in (0..8).zip([2, 2, 8, 8, 4, 4, 5, 7]) {
            let params = &presets[seed as usize / 2 % 2];
            let mut conn = Conn::with_params(control, params);
            let mut private = [Private::default(); MAX_PATHS];
            let events = queued(seed, paths, 75, |i, event| conn.event(i, &mut private[i], event));

            let mut conn = Conn::with_params(control, params);
            conn.compare_at_once(AT_ONCE);
            let mut private = [Private::default(); MAX_PATHS];
            kernel.reset(params).unwrap();
            for (number, batch) in events.chunks(BATCH).enumerate() {
                let replayed = kernel.run(batch).unwrap();
                for (n, ((path, event), replayed)) in batch.iter().zip(replayed).enumerate() {
                    let path = *path as usize;
                    conn.event(path, &mut private[path], event);
                    let native = Outcome::of(&conn, path, &private[path]);
                    assert_eq!(
                        native, replayed,
                        "{control}, native left, kernel right, after event {n} of batch {number} \
                         of {paths} paths, seed {seed}: {event:?}"
                    );
                    compared += 1;
                }
                // And all they keep for the events to come: histories, records, observations.
                let (native, replayed) = (conn.shared(), kernel.shared());
                let same = native.0 == replayed.0 && native.1 == Some(replayed.1);
                assert!(same, "{control}: after batch {number} of {paths} paths, seed {seed}");
                seen.extend(conn.decision().and_then(|decision| match decision.places[..2] {
                    [Place::Clear, _] | [_, Place::Clear] => Some(Seen::Clear),
                    [Place::Group(a), Place::Group(b)] if a == b => Some(Seen::Together),
                    [Place::Group(_), Place::Group(_)] => Some(Seen::Apart),
                    _ => None,
                }));
            }
        }
        assert!(seen.contains(&Seen::Together) && seen.contains(&Seen::Apart), "{seen:?}");
        println!("replay in the kernel: {control} decided {seen:?}");
    }
    println!("replay in the kernel: {compared} outcomes of detectors equal bit by bit");
}
