//! The detector `btlbw` (C-MPBBR's rule) on series of bandwidths, in the place of a law that
//! publishes them. Each slip of the paper's published code has its test.

use crate::common::detect;

use narrows_laws::raw::{self, Detection};
use narrows_laws::{Control, Detector, Event, EventKind, Params, State};

/// A law with a window never publishes a bandwidth: the test does.
const CONTROL: Control = Control { detector: Detector::BTLBW, ..Control::LIA };
const MS: u64 = 1_000;
/// What an undecided path's mask is: all.
const ALL: u64 = u64::MAX;

/// A connection whose law is the test.
struct Paths {
    conn: raw::Conn,
    detection: Box<Detection>,
    now_us: u64,
}

impl Paths {
    fn new(paths: usize) -> Paths {
        let params = Params::default();
        let conn = raw::Conn::new(CONTROL, &params);
        let mut paths_ = Paths { conn, detection: Detection::new(&params), now_us: 10_000_000 };
        for path in 0..paths {
            paths_.report(path, EventKind::Joined);
        }
        paths_
    }

    fn report(&mut self, path: usize, kind: EventKind) {
        let event = Event {
            now_us: self.now_us,
            kind: kind as u32,
            state: State::Active as u32,
            ..Event::default()
        };
        detect(CONTROL.detector, &mut self.conn, &mut self.detection, path, &event);
    }

    /// An acknowledgement on each path but the `idle` ones, every 10 ms for `ms`.
    fn pass(&mut self, ms: u64, idle: &[usize]) {
        for _ in 0..ms / 10 {
            self.now_us += 10 * MS;
            for path in (0..8).filter(|path| !idle.contains(path)) {
                self.report(path, EventKind::Acked);
            }
        }
    }

    /// A full ProbeBW cycle ends on `path`, as a law publishes it.
    fn cycle(&mut self, path: usize, bw: u64) {
        self.conn.path[path].bw = bw;
        self.conn.path[path].word[0] += 1;
    }

    /// Cycles of 200 ms that end together; the masks a while after them.
    fn cycles<const N: usize>(&mut self, series: &[[u64; N]]) -> Vec<u8> {
        for at in series {
            self.pass(200, &[]);
            for (path, bw) in at.iter().enumerate() {
                self.cycle(path, *bw);
            }
        }
        self.pass(3_000, &[]);
        self.masks(N)
    }

    fn masks(&self, paths: usize) -> Vec<u8> {
        self.conn.masks.to_le_bytes()[..paths].iter().map(|mask| mask & !(0xff << paths)).collect()
    }

    /// Laws publish a bandwidth long before the first cycle is over.
    fn started(bw: &[u64]) -> Paths {
        let mut paths = Paths::new(bw.len());
        for (path, bw) in bw.iter().enumerate() {
            paths.conn.path[path].bw = *bw;
        }
        paths.pass(500, &[]);
        paths
    }
}

const TOGETHER: [u8; 2] = [0b11, 0b11];
const APART: [u8; 2] = [0b01, 0b10];

const ALIKE: [u64; 2] = [1_000_000, 1_100_000];
const UNLIKE: [u64; 2] = [1_000_000, 2_000_000];

#[test]
fn three_cycles_alike_group_and_three_unlike_part() {
    let mut paths = Paths::started(&ALIKE);
    assert_eq!(paths.cycles(&[UNLIKE; 3]), APART);
    assert_eq!(paths.cycles(&[ALIKE; 2]), APART);
    assert_eq!(paths.cycles(&[ALIKE]), TOGETHER);
    assert_eq!(paths.cycles(&[UNLIKE; 2]), TOGETHER);
    assert_eq!(paths.cycles(&[UNLIKE]), APART);
}

#[test]
fn cycles_must_follow_each_other() {
    let mut paths = Paths::started(&UNLIKE);
    assert_eq!(paths.cycles(&[UNLIKE; 3]), APART);
    assert_eq!(paths.cycles(&[ALIKE, ALIKE, UNLIKE, ALIKE, ALIKE]), APART);
    assert_eq!(paths.cycles(&[ALIKE, UNLIKE, UNLIKE, ALIKE, UNLIKE, UNLIKE]), APART);
    let mut paths = Paths::started(&ALIKE);
    assert_eq!(paths.cycles(&[ALIKE; 3]), TOGETHER);
    assert_eq!(paths.cycles(&[UNLIKE, UNLIKE, ALIKE, UNLIKE, UNLIKE]), TOGETHER);
}

/// The code overwrites the last number of alike paths at each acknowledgement, so that its three
/// cycles are two acknowledgements.
#[test]
fn acknowledgements_are_not_cycles() {
    let mut paths = Paths::started(&UNLIKE);
    paths.cycles(&[UNLIKE; 3]);
    assert_eq!(paths.cycles(&[ALIKE]), APART);
    paths.pass(30_000, &[]);
    assert_eq!(paths.masks(2), APART);
}

/// The code looks at its siblings' bandwidths as they are in the middle of their cycles.
#[test]
fn a_bandwidth_counts_at_the_end_of_its_cycle() {
    let mut paths = Paths::started(&UNLIKE);
    assert_eq!(paths.cycles(&[UNLIKE; 3]), APART);
    for _ in 0..5 {
        paths.pass(100, &[]);
        paths.conn.path[1].bw = 1_000_000;
        paths.pass(100, &[]);
        paths.cycle(0, 1_000_000);
        paths.cycle(1, 2_000_000);
    }
    paths.pass(3_000, &[]);
    assert_eq!(paths.masks(2), APART);
}

/// The code measures from "this" path's bandwidth: 124 is 24 % from 100, 100 is 19 %
/// from 124.
#[test]
fn whether_two_agree_does_not_depend_on_which_asks() {
    for (a, b, masks) in [(100, 119, TOGETHER), (100, 121, APART), (100, 124, APART)] {
        let (a, b) = (a * 100_000, b * 100_000);
        assert_eq!(Paths::started(&[a, b]).cycles(&[[a, b]; 3]), masks, "{a} {b}");
        assert_eq!(Paths::started(&[b, a]).cycles(&[[b, a]; 3]), masks, "{b} {a}");
    }
}

/// In the code 100 and 130 each have 115 in their group, and it has both, but they not each other.
#[test]
fn a_chain_of_agreeing_paths_is_one_group_for_all_of_it() {
    let series = &[[1_000_000, 1_300_000, 1_150_000, 3_000_000]; 3];
    let masks = Paths::started(&series[0]).cycles(series);
    assert_eq!(masks, [0b0111, 0b0111, 0b0111, 0b1000]);
    let without = &[[1_000_000, 1_300_000, 5_000_000, 3_000_000]; 3];
    let mut paths = Paths::started(&series[0]);
    paths.cycles(series);
    assert_eq!(paths.cycles(without), [0b0001, 0b0010, 0b0100, 0b1000]);
}

/// The code does not reset a path's bandwidth, and the one before leaks into a path without any.
#[test]
fn a_path_without_a_bandwidth_is_in_no_group() {
    let mut paths = Paths::started(&[1_000_000, 1_000_000, 0]);
    let masks = paths.cycles(&[[1_000_000, 1_000_000, 0]; 4]);
    assert_eq!(masks[0] & 0b011, 0b011);
    let places = paths.detection.observed;
    assert_eq!((places & 0xf, places >> 4 & 0xf, places >> 8 & 0xf), (0, 0, 0xf));
}

#[test]
fn the_first_cycle_that_is_seen_to_end_may_not_have_been_full() {
    let mut paths = Paths::new(2);
    paths.pass(200, &[]);
    for (path, bw) in ALIKE.iter().enumerate() {
        paths.cycle(path, *bw);
    }
    paths.cycles(&[ALIKE; 2]);
    assert_eq!(paths.detection.observed & 0xff, 0xff);
    paths.cycles(&[ALIKE]);
    assert_eq!(paths.detection.observed & 0xff, 0);
}

/// Nor does it ask how old a bandwidth is.
#[test]
fn an_idle_path_stays_where_it_was_and_comes_back_without_its_old_cycles() {
    let mut paths = Paths::started(&ALIKE);
    assert_eq!(paths.cycles(&[ALIKE; 3]), TOGETHER);
    // Path 1 is idle while path 0's bandwidth changes.
    for _ in 0..6 {
        paths.pass(200, &[1]);
        paths.cycle(0, 3_000_000);
    }
    paths.pass(3_000, &[1]);
    assert_eq!((paths.masks(2), paths.detection.observed & 0xff), (TOGETHER.to_vec(), 0));
    // It comes back, and the cycle it was silent in ends: two new ones are not enough to say that
    // they disagree.
    paths.cycle(1, 1_100_000);
    paths.pass(200, &[]);
    assert_eq!(paths.cycles(&[[3_000_000, 1_100_000]; 2]), TOGETHER);
    assert_eq!(paths.cycles(&[[3_000_000, 1_100_000]]), APART);
}

/// As another CPU's may be.
#[test]
fn a_clock_that_is_a_little_behind_makes_no_silence() {
    let mut paths = Paths::started(&UNLIKE);
    for _ in 0..3 {
        paths.pass(200, &[]);
        (0..2).for_each(|path| paths.cycle(path, UNLIKE[path]));
        paths.now_us -= 5 * MS;
        (0..2).for_each(|path| paths.report(path, EventKind::Acked));
    }
    paths.pass(3_000, &[]);
    assert_eq!(paths.masks(2), APART);
}

#[test]
fn paths_of_unequal_round_trips_end_their_cycles_when_they_do() {
    let mut paths = Paths::started(&UNLIKE);
    assert_eq!(paths.cycles(&[UNLIKE; 3]), APART);
    for tenth in 0..60 {
        paths.pass(100, &[]);
        paths.cycle(0, 1_000_000);
        if tenth % 10 == 9 {
            paths.cycle(1, 1_050_000);
        }
        assert!(tenth >= 29 || paths.masks(2) == APART, "{tenth}");
    }
    assert_eq!(paths.masks(2), TOGETHER);
}

#[test]
fn a_path_that_joins_in_a_slot_knows_nothing_of_the_last_one() {
    let mut paths = Paths::started(&UNLIKE);
    assert_eq!(paths.cycles(&[ALIKE; 3]), TOGETHER);
    paths.report(1, EventKind::Left);
    paths.conn.path[1].bw = 0;
    paths.conn.path[1].word[0] = 0;
    paths.report(1, EventKind::Joined);
    paths.pass(3_000, &[]);
    assert_eq!(paths.detection.observed >> 4 & 0xf, 0xf);
    paths.conn.path[1].bw = 2_000_000;
    paths.pass(500, &[]);
    assert_eq!(paths.cycles(&[UNLIKE; 3]), APART);
}

#[test]
fn without_a_law_that_publishes_bandwidths_the_masks_stay_as_the_joins_made_them() {
    let mut paths = Paths::new(3);
    paths.conn.path[0].word[0] = 17; // OLIA's word
    for _ in 0..20 {
        paths.pass(500, &[]);
        paths.conn.path[0].word[0] += 1;
    }
    assert_eq!(paths.conn.masks, ALL);
    assert_eq!(paths.detection.decided & 0xffff_ffff, 0xffff_ffff);
}

/// What the rule cannot report (the paper's scenario 5): two bottlenecks of one bandwidth.
#[test]
fn equal_bottlenecks_are_taken_for_one() {
    assert_eq!(Paths::started(&[1_000_000; 2]).cycles(&[[1_000_000; 2]; 3]), TOGETHER);
}
