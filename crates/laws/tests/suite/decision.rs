//! From observations to masks: MPTCP-SBD's filter, the three states of a path, joins, and clocks
//! that are set back.

use crate::common::detect;

use narrows_laws::raw::{self, Detection, MAX_PATHS, OBSERVATIONS};
use narrows_laws::{Conn, Control, Event, EventKind, Params, Place, Private, State, flag};
use narrows_testkit::Random;
use proptest::prelude::*;

const CLEAR: u8 = 0xe;
const UNDECIDED: u8 = 0xf;
const STAMP: u32 = 1_000;

/// A connection whose detector is about to observe nothing and then to decide.
struct Bench {
    conn: raw::Conn,
    detection: Box<Detection>,
    t_us: u64,
}

/// Of 10 observations a decision is made, and of an 11th, of the paths that are silent meanwhile.
fn eleven() -> Params {
    Params::default().with(&[("decision.observations", "11")])
}

impl Bench {
    fn new(params: &Params) -> Bench {
        let conn = raw::Conn::new(control(), params);
        let t_us = u64::from(params.word("ssc.t_ms"));
        let mut bench = Bench { conn, detection: Detection::new(params), t_us };
        for path in 0..MAX_PATHS {
            bench.send(path, EventKind::Joined, 0);
        }
        bench
    }

    fn send(&mut self, path: usize, kind: EventKind, now_us: u64) {
        let event = Event { kind: kind as u32, now_us, ..Event::default() };
        detect(control().detector, &mut self.conn, &mut self.detection, path, &event);
    }

    /// The last observations before `STAMP`, oldest first: the place of each path.
    fn observed(&mut self, observations: &[[u8; MAX_PATHS]]) {
        self.observed_before(STAMP, observations);
    }

    fn observed_before(&mut self, stamp: u32, observations: &[[u8; MAX_PATHS]]) {
        for (age, places) in observations.iter().rev().enumerate() {
            let stamp = stamp - 1 - age as u32;
            let nibbles = places.iter().rev().fold(0, |word, place| word << 4 | u64::from(*place));
            self.detection.ring[stamp as usize % OBSERVATIONS] = u64::from(stamp) << 32 | nibbles;
        }
    }

    /// Decides, and tells where each path stands.
    fn decide(&mut self) -> [u8; MAX_PATHS] {
        self.decide_at(STAMP)
    }

    fn decide_at(&mut self, stamp: u32) -> [u8; MAX_PATHS] {
        let t_us = self.t_us;
        self.send(0, EventKind::Acked, (u64::from(stamp) + 1) * t_us);
        let decided = self.detection.decided;
        assert_eq!(decided >> 32, u64::from(stamp), "a decision was made");
        std::array::from_fn(|path| (decided >> (4 * path)) as u8 & 15)
    }

    fn mask(&self, path: usize) -> u8 {
        self.conn.masks.to_le_bytes()[path]
    }
}

fn control() -> Control {
    "lia+ssc".parse().unwrap()
}

/// Ten observations in which the first paths stood at `places(n)`, the others nowhere.
fn ten(places: impl Fn(usize) -> Vec<u8>) -> Vec<[u8; MAX_PATHS]> {
    let row = |n| {
        let mut row = [UNDECIDED; MAX_PATHS];
        let some = places(n);
        row[..some.len()].copy_from_slice(&some);
        row
    };
    (0..10).map(row).collect()
}

fn decided(places: impl Fn(usize) -> Vec<u8>) -> [u8; MAX_PATHS] {
    decided_with(&eleven(), places)
}

fn decided_with(params: &Params, places: impl Fn(usize) -> Vec<u8>) -> [u8; MAX_PATHS] {
    let mut bench = Bench::new(params);
    bench.observed(&ten(places));
    bench.decide()
}

#[test]
fn two_paths_are_grouped_if_they_were_together_in_half_of_the_observations() {
    let together = |times: usize| {
        let places = decided(|n| if n < times { vec![2, 2] } else { vec![0, 1] });
        places[0] == places[1]
    };
    let times: Vec<bool> = (0..=10).map(together).collect();
    let expected: Vec<bool> = (0..=10).map(|times| times >= 5).collect();
    assert_eq!(times, expected, "a tie groups");
}

#[test]
fn a_tie_among_fewer_observations_groups_too() {
    let together = |times: usize| {
        let mut bench = Bench::new(&Params::default());
        // Of the ten that count, the newest and the oldest do not have both; 8 do.
        bench.observed(&ten(|n| match n {
            0 | 1 => vec![0, UNDECIDED],
            _ if n < 2 + times => vec![1, 1],
            _ => vec![0, 1],
        }));
        let places = bench.decide();
        places[0] == places[1]
    };
    assert_eq!([3, 4].map(together), [false, true]);
}

/// Whichever of the two is in the lower slot.
#[test]
fn only_observations_with_a_place_for_both_count_for_two() {
    let places = |row: &dyn Fn(usize) -> [u8; 2]| {
        let one = decided(|n| row(n).to_vec());
        let other = decided(|n| row(n).into_iter().rev().collect());
        assert_eq!(one[0] == one[1], other[0] == other[1]);
        assert!(![one[0], one[1], other[0], other[1]].contains(&UNDECIDED));
        one[0] == one[1]
    };
    // Together in 4 of 6, or in 2 of 6; in the other 4 one of them has no place.
    let often = |times: usize| {
        places(&|n| match n {
            0..=3 => [0, UNDECIDED],
            _ if n < 4 + times => [2, 2],
            _ => [0, 1],
        })
    };
    assert_eq!([2, 4].map(often), [false, true]);
    // Never at the same time.
    assert!(!places(&|n| if n < 5 { [0, UNDECIDED] } else { [UNDECIDED, 0] }));
    // In a group whenever both were seen, though one of them is clear in most of its places.
    assert!(places(&|n| match n {
        0..=3 => [3, 3],
        4 => [CLEAR, CLEAR],
        _ => [CLEAR, UNDECIDED],
    }));
}

#[test]
fn an_undecided_path_is_no_bridge_between_others() {
    // The second is seen in 4 of 10, always with one of the others, which is clear in the rest.
    for order in [[0, 1], [1, 0]] {
        let row = |n: usize| if n < 4 { [0, 0] } else { [CLEAR, UNDECIDED] };
        let places = decided(|n| order.map(|path: usize| row(n)[path]).to_vec());
        assert_eq!(order.map(|path: usize| places[path]), [CLEAR, UNDECIDED]);
    }
}

#[test]
fn the_number_of_a_group_means_nothing_from_one_observation_to_the_next() {
    let places = decided(|n| vec![n as u8 % 3, n as u8 % 3, 5]);
    assert_eq!(places[0], places[1]);
    assert_ne!(places[0], places[2]);
}

#[test]
fn an_observation_counts_until_there_are_as_many_newer_ones() {
    let params =
        Params::default().with(&[("decision.observations", "5"), ("decision.together", "1")]);
    let together = |at: usize| {
        let mut bench = Bench::new(&params);
        bench.observed(&ten(|n| if n == at { vec![1, 1] } else { vec![0, 1] }));
        let places = bench.decide();
        places[0] == places[1]
    };
    // The newest is the eleventh, which the decision makes.
    assert_eq!([5, 6].map(together), [false, true]);
}

#[test]
fn only_the_newest_observations_count() {
    // Together in the first six of ten, and in none of the newest five.
    let params = eleven().with(&[("decision.observations", "5"), ("decision.together", "2")]);
    let mut bench = Bench::new(&params);
    bench.observed(&ten(|n| if n < 6 { vec![0, 0] } else { vec![0, 1] }));
    let places = bench.decide();
    assert_ne!(places[0], places[1]);
}

#[test]
fn groups_are_connected_components() {
    // a and b were together in 6, b and c in 6, a and c in 2: one group, whatever their slots.
    let row = |n: usize| match n {
        0..=3 => [0, 0, 1],
        4..=7 => [0, 1, 1],
        _ => [0, 0, 0],
    };
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let places = decided(|n| order.map(|path: usize| row(n)[path]).to_vec());
        assert_eq!(places[..3], [places[0]; 3], "{order:?}");
    }
}

#[test]
fn a_path_alone_is_clear_if_it_was_so_in_most_of_its_observations() {
    let place = |clear: usize| decided(|n| vec![if n < clear { CLEAR } else { 0 }])[0];
    assert_eq!([4, 5].map(place), [0, 0], "a tie is congestion");
    assert_eq!([6, 10].map(place), [CLEAR, CLEAR]);
    // Two that are not congested are in no group, though they always stand alike.
    assert_eq!(decided(|_| vec![CLEAR, CLEAR])[..2], [CLEAR, CLEAR]);
    // But paths together in half of the observations are grouped, though clear in the others.
    let places = decided(|n| if n < 5 { vec![CLEAR, CLEAR] } else { vec![3, 3] });
    assert_eq!(places[..2], [0, 0]);
}

/// The rule of the authors' user-space program.
#[test]
fn a_path_alone_is_clear_if_it_was_so_in_all_of_its_observations_where_that_is_asked_for() {
    let params = eleven().with(&[("decision.clear_always", "on")]);
    let place = |other: u8, clear: usize| {
        decided_with(&params, |n| vec![if n < clear { CLEAR } else { other }])[0]
    };
    assert_eq!([6, 9].map(|clear| place(0, clear)), [0, 0]);
    assert_eq!(place(0, 10), CLEAR);
    assert_eq!(place(UNDECIDED, 6), CLEAR, "of those in which it had a place");
}

#[test]
fn a_path_seen_in_fewer_than_half_of_the_observations_is_undecided() {
    let seen = |times: usize| decided(|n| vec![if n < times { 0 } else { UNDECIDED }])[0];
    assert_eq!([4, 5].map(seen), [UNDECIDED, 0]);
    // Two that were seen in 6 at the same time, together in 3 of these: half of what is known.
    let places = decided(|n| match n {
        0..=2 => vec![0, 0],
        3..=5 => vec![0, 1],
        _ => vec![0, UNDECIDED],
    });
    assert_eq!(places[..2], [0, 0]);
}

#[test]
fn masks_of_the_three_states() {
    // 0 and 1 in a group, 2 alone, 3 and 4 not congested; the others unknown.
    let places = |_| vec![0, 0, 1, CLEAR, CLEAR];
    let masks = |undecided: &str, clear: &str, grouped: &str| {
        let mut params = eleven();
        params.set("decision.undecided", undecided).unwrap();
        params.set("decision.clear", clear).unwrap();
        params.set("decision.grouped", grouped).unwrap();
        let mut bench = Bench::new(&params);
        bench.observed(&ten(places));
        bench.decide();
        [0, 2, 3, 5].map(|path| bench.mask(path))
    };
    // As it is: a group with the unknown, which ask for all; the clear ones for nobody.
    let usual = masks("all", "none", "undecided");
    assert_eq!(usual, [0b1110_0011, 0b1110_0100, 0b1110_1000, 0b1111_1111]);
    // MPTCP-SBD's text: a group is its members.
    let paper = masks("none", "none", "none");
    assert_eq!(paper, [0b0000_0011, 0b0000_0100, 0b0000_1000, 0b0010_0000]);
    // Its authors' code: who is not congested is coupled with all, and so all with it.
    let authors = masks("all", "all", "undecided");
    assert_eq!(authors, [0b1111_1011, 0b1111_1100, 0b1111_1111, 0b1111_1111]);
    // One that asks is enough.
    let asked = masks("none", "none", "undecided");
    assert_eq!(asked, [0b1110_0011, 0b1110_0100, 0b0000_1000, 0b0010_0111]);
}

/// SSC-LIA, the baseline of arXiv:1812.05816, section 5.2.
fn ssc_lia() -> Params {
    let none = [("decision.undecided", "none"), ("decision.grouped", "none")];
    eleven().with(&none).with(&[("ssc.hold_s", "100")])
}

const TOGETHER: fn(usize) -> Vec<u8> = |_| vec![1, 1];
const APART: fn(usize) -> Vec<u8> = |_| vec![0, 1];

/// 100 s are 286 intervals of 350 ms.
#[test]
fn a_pair_of_ssc_is_held_for_100_s_after_the_last_decision_that_grouped_it() {
    let mut bench = Bench::new(&ssc_lia());
    let coupled = |bench: &mut Bench, stamp, places: fn(usize) -> Vec<u8>| {
        bench.observed_before(stamp, &ten(places));
        let places = bench.decide_at(stamp);
        assert_eq!(places[0] == places[1], bench.mask(0) == 0b11);
        assert_eq!(bench.mask(0) == 0b11, bench.mask(1) == 0b11);
        bench.mask(0) == 0b11
    };
    assert_eq!([0, 1].map(|path| bench.mask(path)), [0b01, 0b10], "uncoupled at first");
    assert!(!coupled(&mut bench, STAMP - 20, APART));
    assert!(coupled(&mut bench, STAMP, TOGETHER));
    assert!([10, 285].map(|later| coupled(&mut bench, STAMP + later, APART)) == [true; 2]);
    assert!(!coupled(&mut bench, STAMP + 295, APART));
    // Found again, the time begins again; a path that nobody sees keeps its place.
    assert!(coupled(&mut bench, STAMP + 400, TOGETHER));
    assert!(coupled(&mut bench, STAMP + 500, TOGETHER));
    assert!(coupled(&mut bench, STAMP + 780, |_| vec![0, UNDECIDED]));
    assert!(!coupled(&mut bench, STAMP + 790, |_| vec![0, UNDECIDED]));
}

#[test]
fn without_a_hold_a_pair_is_apart_at_the_next_decision() {
    let mut bench = Bench::new(&ssc_lia().with(&[("ssc.hold_s", "0")]));
    bench.observed(&ten(TOGETHER));
    bench.decide();
    assert_eq!(bench.mask(0), 0b11);
    bench.observed_before(STAMP + 10, &ten(APART));
    bench.decide_at(STAMP + 10);
    assert_eq!(bench.mask(0), 0b01);
}

#[test]
fn a_path_that_joins_in_a_slot_is_not_held_by_what_the_last_one_was_found_in() {
    let mut bench = Bench::new(&ssc_lia());
    bench.observed(&ten(TOGETHER));
    bench.decide();
    let now_us = u64::from(STAMP + 1) * bench.t_us;
    bench.send(1, EventKind::Left, now_us);
    bench.send(1, EventKind::Joined, now_us);
    bench.observed_before(STAMP + 20, &ten(APART));
    assert_eq!(bench.decide_at(STAMP + 20)[..2], [0, 1]);
    assert_eq!(bench.mask(1), 0b10);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn coupling_is_mutual_and_a_path_is_in_its_own_mask(
        rows in prop::collection::vec(prop::array::uniform8(0..16u8), 0..20),
        policy in prop::array::uniform3(0..3u32),
    ) {
        let [undecided, clear, grouped] =
            policy.map(|policy| ["none", "undecided", "all"][policy as usize]);
        let params = eleven().with(&[
            ("decision.undecided", undecided),
            ("decision.clear", clear),
            ("decision.grouped", grouped),
        ]);
        let mut bench = Bench::new(&params);
        bench.observed(&rows);
        bench.decide();
        for i in 0..MAX_PATHS {
            prop_assert!(bench.mask(i) >> i & 1 == 1);
            for j in 0..MAX_PATHS {
                prop_assert_eq!(bench.mask(i) >> j & 1, bench.mask(j) >> i & 1);
            }
        }
    }
}

#[test]
fn what_was_seen_of_a_slots_last_path_is_not_the_next_ones() {
    let apart = |_| vec![0, 1, 2];
    let mut bench = Bench::new(&eleven());
    bench.observed(&ten(apart));
    assert_eq!(bench.decide()[..3], [0, 1, 2]);
    assert_eq!(bench.mask(1), 0b1111_1010);

    let mut bench = Bench::new(&eleven());
    let now_us = u64::from(STAMP - 2) * bench.t_us;
    bench.send(1, EventKind::Left, now_us);
    bench.send(1, EventKind::Joined, now_us);
    assert_eq!(bench.mask(1), 0xff, "with all, until something is known");
    bench.observed(&ten(apart));
    bench.detection.decided = 0;
    assert_eq!(bench.decide()[..3], [0, UNDECIDED, 2]);
    assert_eq!(bench.mask(0), 0b1111_1011, "still with all");
    assert_eq!(bench.mask(1), 0xff);
}

#[test]
fn a_path_that_joins_after_a_decision_is_coupled_as_the_undecided_are() {
    let joined = |undecided: &str| {
        let mut params = eleven();
        params.set("decision.undecided", undecided).unwrap();
        params.set("decision.grouped", "none").unwrap();
        let mut bench = Bench::new(&params);
        bench.observed(&ten(|_| vec![0, 1, 2, 3, 4, 5, 6, 7]));
        bench.decide();
        assert_eq!([0, 1].map(|path| bench.mask(path)), [0b01, 0b10]);
        let now_us = (u64::from(STAMP) + 1) * u64::from(params.word("ssc.t_ms"));
        bench.send(1, EventKind::Left, now_us);
        bench.send(1, EventKind::Joined, now_us);
        [0, 1].map(|path| bench.mask(path))
    };
    assert_eq!(joined("all"), [0b11, 0xff]);
    assert_eq!(joined("none"), [0b01, 0b10]);
}

/// The slot's last path was with its neighbour in each of the first 5 of 10 observations, its next
/// in 2 of the other 5.
#[test]
fn two_paths_are_compared_since_the_later_of_them_came() {
    let bench = |later: Option<usize>| {
        let mut bench = Bench::new(&eleven());
        let now_us = u64::from(STAMP - 6) * bench.t_us;
        if let Some(path) = later {
            bench.send(path, EventKind::Left, now_us);
            bench.send(path, EventKind::Joined, now_us);
            bench.detection.decided = 0;
        }
        bench.observed(&ten(|n| if n < 7 { vec![0, 0] } else { vec![0, 1] }));
        let places = bench.decide();
        places[0] == places[1]
    };
    assert_eq!([None, Some(0), Some(1)].map(bench), [true, false, false]);
}

#[test]
fn masks_from_elsewhere_are_made_mutual() {
    let mut conn = Conn::new(Control::LIA);
    conn.set_masks(0x0000_0000_0000_0002);
    assert_eq!(conn.masks(), 0x8040_2010_0804_0303);
    // They are a decision like one's own: a join after it is coupled with all.
    let joined = Event { kind: EventKind::Joined as u32, ..Event::default() };
    conn.event(2, &mut Private::default(), &joined);
    assert_eq!(conn.mask(2), 0xff);
    assert_eq!(conn.mask(0), 0b0000_0111);
}

/// Two paths behind one queue and one behind another, from `begin` on for 40 s; the decisions.
fn run(conn: &mut Conn, private: &mut [Private], begin: u64, seed: u64) -> Vec<[Place; 3]> {
    let mut random = Random(seed);
    let (mut queue, mut decisions) = ([0i64; 2], Vec::new());
    for step in 0..20_000u64 {
        let now_us = begin + step * 2_000;
        for (queue, drain) in queue.iter_mut().zip([900, 700]) {
            // Sawtooth with noise: a rise, and half of it gone at the top.
            *queue += random.below(100) as i64;
            if *queue > 40 * drain {
                *queue /= 2;
            }
        }
        for path in 0..3 {
            let event = Event {
                kind: EventKind::Acked as u32,
                state: State::Active as u32,
                now_us,
                delivered: 1,
                flags: flag::OWD | flag::DWELL,
                owd_us: (queue[path / 2] + random.below(50) as i64) as i32,
                srtt8_us: 160_000,
                ..Event::default()
            };
            let before = conn.decision();
            conn.event(path, &mut private[path], &event);
            if conn.decision() != before {
                decisions.push(std::array::from_fn(|i| conn.decision().unwrap().places[i]));
            }
        }
    }
    decisions
}

fn joined() -> (Conn, [Private; 3]) {
    let params = Params::default().with(&[("ssc.trusted", "30")]);
    let mut conn = Conn::with_params(control(), &params);
    let mut private = [Private::default(); 3];
    for (path, private) in private.iter_mut().enumerate() {
        let now_us = 3_600_000_000;
        let event = Event { kind: EventKind::Joined as u32, now_us, ..Event::default() };
        conn.event(path, private, &event);
    }
    (conn, private)
}

#[test]
fn a_clock_that_is_set_back_starts_all_over() {
    let (mut conn, mut private) = joined();
    let first = run(&mut conn, &mut private, 3_600_000_000, 1);
    assert!(first.len() > 8, "{first:?}");
    assert!(first.iter().skip(4).all(|places| places[0] != Place::Undecided), "{first:?}");
    let masks = conn.masks();
    // An hour back. What was decided stays until there is another decision.
    let again = run(&mut conn, &mut private, 1_000_000, 2);
    assert!(again.len() + 1 >= first.len(), "{again:?}");
    assert!(again.iter().skip(4).all(|places| places[0] != Place::Undecided), "{again:?}");
    assert_ne!(masks, u64::MAX);
}

#[test]
fn two_paths_behind_one_queue_are_found_together() {
    let (mut conn, mut private) = joined();
    let places = run(&mut conn, &mut private, 3_600_000_000, 3);
    let right = |places: &&[Place; 3]| {
        matches!(places[0], Place::Group(_)) && places[0] == places[1] && places[1] != places[2]
    };
    let late = &places[places.len() / 2..];
    assert!(late.iter().filter(right).count() * 2 > late.len(), "{places:?}");
    assert_eq!(conn.mask(0) & 0b011, 0b011);
}

#[test]
fn a_small_step_back_changes_nothing() {
    // Another CPU's clock may be a little behind, also across an interval's end: the sample counts
    // in the open interval.
    let params = Params::default().with(&[("ssc.trusted", "8")]);
    let stamps = |back: u64| {
        let mut conn = Conn::with_params(control(), &params);
        let mut private = Private::default();
        let mut stamps = Vec::new();
        for step in 0..2_000u64 {
            let now_us = 3_600_000_000 + step * 5_000;
            let kind = if step == 0 { EventKind::Joined } else { EventKind::Acked };
            let late = if step % 70 == 21 { back } else { 0 };
            let event = Event { kind: kind as u32, now_us: now_us - late, ..Event::default() };
            let event = Event { flags: flag::OWD | flag::DWELL, delivered: 1, ..event };
            conn.event(0, &mut private, &event);
            stamps.extend(conn.observation().map(|seen| (seen.number, seen.places)));
        }
        stamps
    };
    assert_eq!(stamps(0), stamps(11_000));
}

#[test]
fn it_is_kept_since_when_a_group_is_as_it_is() {
    let mut bench = Bench::new(&eleven());
    let t_us = bench.t_us;
    let at = |stamp: u32| (u64::from(stamp) + 1) * t_us;
    let mut decide = |stamp: u32, places: [u8; 4]| {
        bench.observed_before(stamp, &ten(|_| places.to_vec()));
        bench.decide_at(stamp);
        let since = bench.detection.since_us;
        [0, 1, 2, 3, 4].map(|path| since[path])
    };
    let [a, b, c, d, e] = [0, 20, 40, 60, 80].map(|later| STAMP + later);
    // Path 4 stays as it joined: undecided.
    assert_eq!(decide(a, [0, 0, CLEAR, UNDECIDED]), [at(a), at(a), at(a), 0, 0]);
    assert_eq!(decide(b, [1, 1, CLEAR, UNDECIDED]), [at(a), at(a), at(a), 0, 0], "as before");
    assert_eq!(decide(c, [0, 0, CLEAR, 1]), [at(a), at(a), at(a), at(c), 0], "alone");
    assert_eq!(decide(d, [0, 1, 1, 3]), [at(d), at(d), at(d), at(c), 0], "1 changes over to 2");
    assert_eq!(decide(e, [0, 1, 1, 1]), [at(d), at(e), at(e), at(e), 0], "3 joins them");
    bench.send(0, EventKind::Left, at(e) + 7);
    assert_eq!(bench.detection.since_us[..2], [at(e) + 7, at(e)]);
}
