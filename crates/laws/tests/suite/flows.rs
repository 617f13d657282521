//! The detectors on flows of a capture: who meets whom in queues that others fill and empty.

use crate::common;

use common::queue::Queue;
use narrows_laws::detect::{Flows, FlowsDecision, MAX_FLOWS, Sample};
use narrows_laws::{
    Conn, Control, Detector, Event, EventKind, Law, MAX_PATHS, Params, Place, State, flag,
};
use narrows_testkit::Random;
use std::collections::{BTreeMap, BTreeSet};

/// Who is in which of the queues, and the time in which somebody is silent.
struct Network<'a> {
    /// Depth and the time to fill it, us.
    queues: &'a [(f64, f64)],
    /// The queue of each flow.
    at: &'a [usize],
    seconds: u64,
    silent: &'a dyn Fn(usize, u64) -> bool,
}

/// Every sample of the network's flows, in the order of time: about 200 a second of each.
fn samples(network: &Network<'_>, mut take: impl FnMut(usize, &Sample)) {
    let mut random = Random(7);
    let mut queues: Vec<Queue> =
        network.queues.iter().map(|&(full, fills)| Queue::new(full, fills, 0.3)).collect();
    for step in 0..network.seconds * 200 {
        let now_us = step * 5_000;
        for (flow, &queue) in network.at.iter().enumerate() {
            let noise = random.below(200) as i32;
            let delay = queues[queue].delay_us(now_us as f64, &mut random) as i32;
            // Each flow's zero is its own.
            let delay_us = Some(delay + noise + 10_000 * flow as i32);
            if !(network.silent)(flow, now_us) {
                take(flow, &Sample { now_us, delay_us, delivered: 2, ..Sample::default() });
            }
        }
    }
}

/// All decisions.
fn decide(detector: Detector, params: &Params, network: &Network<'_>) -> Vec<FlowsDecision> {
    let mut flows = Flows::new(detector, params, network.at.len()).unwrap();
    let mut decisions = Vec::new();
    samples(network, |flow, sample| decisions.extend(flows.sample(flow, sample)));
    decisions.extend(std::iter::from_fn(|| flows.advance(network.seconds * 1_000_000)));
    decisions
}

/// Flows by their place, those with others and those alone.
fn partition(places: &[Place]) -> BTreeSet<Vec<usize>> {
    let mut groups: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
    for (flow, place) in places.iter().enumerate() {
        groups.entry(*place).or_default().push(flow);
    }
    groups.into_values().collect()
}

/// Flows by their queue.
fn truth(at: &[usize]) -> BTreeSet<Vec<usize>> {
    partition(&at.iter().map(|queue| Place::Group(*queue as u8)).collect::<Vec<_>>())
}

/// Each half as deep again as the one before, and more; they fill in like times.
const QUEUES: [(f64, f64); 8] = [
    (4_000.0, 2_000_000.0),
    (7_000.0, 1_600_000.0),
    (12_000.0, 2_200_000.0),
    (20_000.0, 1_800_000.0),
    (34_000.0, 2_100_000.0),
    (58_000.0, 1_700_000.0),
    (100_000.0, 2_300_000.0),
    (170_000.0, 1_900_000.0),
];

#[test]
fn sixty_four_flows_are_found_in_their_eight_queues() {
    let at: Vec<usize> = (0..MAX_FLOWS).map(|flow| flow * 5 % 8).collect();
    let network = Network { queues: &QUEUES, at: &at, seconds: 60, silent: &|_, _| false };
    let decisions = decide(Detector::SSC, &Params::default(), &network);
    assert_eq!(decisions.len(), 17, "every 3.5 s");
    let last = decisions.last().unwrap();
    assert_eq!(partition(&last.places), truth(&at), "{last:?}");
    let groups = last.groups();
    assert_eq!(groups.len(), 8);
    assert!(groups.iter().all(|group| group.confidence > 0.8), "{groups:?}");
    // In pairs they are found sooner.
    let network = Network { seconds: 20, ..network };
    let decisions = decide(Detector::XCORR, &Params::default(), &network);
    let last = decisions.last().unwrap();
    assert_eq!(partition(&last.places), truth(&at), "{last:?}");
}

#[test]
fn the_order_of_flows_does_not_matter() {
    let mut random = Random(1);
    let mut order: Vec<usize> = (0..16).collect();
    for last in (1..16).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    for detector in [Detector::SSC, Detector::TR, Detector::XCORR] {
        let at: Vec<usize> = (0..16).map(|flow| flow % 5).collect();
        let network = Network { queues: &QUEUES, at: &at, seconds: 80, silent: &|_, _| false };
        let mut one = Flows::new(detector, &Params::default(), 16).unwrap();
        let mut other = Flows::new(detector, &Params::default(), 16).unwrap();
        let mut compared = 0;
        samples(&network, |flow, sample| {
            let (one, other) = (one.sample(flow, sample), other.sample(order[flow], sample));
            assert_eq!(one.is_some(), other.is_some());
            let (Some(one), Some(other)) = (one, other) else { return };
            let back: Vec<Place> = order.iter().map(|flow| other.places[*flow]).collect();
            assert_eq!(partition(&one.places), partition(&back));
            compared += usize::from(one.places.iter().any(|p| matches!(p, Place::Group(_))));
        });
        assert!(compared > 3, "{detector:?}: {compared} decisions with groups");
    }
}

#[test]
fn who_comes_late_or_falls_silent_is_undecided() {
    let at = [0, 0, 3, 3];
    // Flow 1 comes at 40 s, flow 3 is silent from 60 s on.
    let silent =
        |flow, now_us| flow == 1 && now_us < 40_000_000 || flow == 3 && now_us > 60_000_000;
    let network = Network { queues: &QUEUES, at: &at, seconds: 110, silent: &silent };
    let decisions = decide(Detector::SSC, &Params::default(), &network);
    let at_s = |seconds: u64| {
        let until = decisions.iter().take_while(|decision| decision.at_us <= seconds * 1_000_000);
        until.last().unwrap().places.clone()
    };
    assert!(at_s(10).iter().all(|place| *place == Place::Undecided));
    let (first, late) = (at_s(50), at_s(105));
    assert_eq!(first[1], Place::Undecided);
    assert_eq!(first[2], first[3]);
    assert!(matches!(first[3], Place::Group(_)), "{first:?}");
    assert_eq!(late[3], Place::Undecided);
    assert_eq!(late[0], late[1]);
    assert!(matches!(late[0], Place::Group(_)) && late[0] != late[2], "{late:?}");
}

/// However short: `xcorr` looks at one observation.
#[test]
fn decisions_go_on_after_a_silence_of_all() {
    for detector in Detector::all().filter(|detector| detector.measures_delay()) {
        for silence_us in [600_000, 3_000_000, 40_000_000] {
            let silent = |_, now_us: u64| (20_000_000..20_000_000 + silence_us).contains(&now_us);
            let network = Network { queues: &QUEUES, at: &[0, 0], seconds: 90, silent: &silent };
            let mut flows = Flows::new(detector, &Params::default(), 2).unwrap();
            let mut last_us = 0;
            let mut see = |decision: FlowsDecision| last_us = decision.at_us;
            samples(&network, |flow, sample| {
                flows.sample(flow, sample).into_iter().for_each(&mut see)
            });
            while let Some(decision) = flows.advance(90_000_000) {
                see(decision);
            }
            let name = detector.name();
            assert!(last_us > 84_000_000, "{name}, {silence_us} us of silence: last at {last_us}");
        }
    }
}

#[test]
fn a_long_silence_costs_nothing_and_forgets_nothing_wrong() {
    let mut flows = Flows::new(Detector::SSC, &Params::default(), 2).unwrap();
    let sample = Sample { now_us: 5, delay_us: Some(1), delivered: 1, ..Sample::default() };
    assert_eq!(flows.sample(0, &sample), None);
    // A clock that jumps to the end of time is no reason to count intervals until then.
    let mut told = 0;
    while let Some(decision) = flows.advance(u64::MAX) {
        assert_eq!(decision.places, [Place::Undecided; 2]);
        told += 1;
    }
    assert!((1..=3).contains(&told), "{told} decisions");
    assert_eq!(flows.sample(1, &sample), None, "before the last one: at its time");
}

#[test]
fn a_connection_and_a_capture_of_it_are_seen_alike() {
    let at: Vec<usize> = (0..MAX_PATHS).map(|path| path % 3).collect();
    let network = Network { queues: &QUEUES[2..], at: &at, seconds: 90, silent: &|_, _| false };
    for detector in [Detector::SSC, Detector::TR, Detector::XCORR] {
        // Each observation a decision: both show what they see.
        let params = Params::default().with(&[
            ("decision.observations", "1"),
            ("decision.together", "1"),
            ("decision.every", "1"),
            ("tr.hold_s", "5"),
        ]);
        let t_us = match detector {
            Detector::SSC => params.word("ssc.t_ms").into(),
            Detector::TR => params.word("tr.t_s").into(),
            _ => 240_000,
        };
        let mut conn = Conn::with_params(Control { detector, ..Control::of(Law::OLIA) }, &params);
        let mut flows = Flows::new(detector, &params, MAX_PATHS).unwrap();
        let mut seen: BTreeMap<u64, [Place; MAX_PATHS]> = BTreeMap::new();
        let mut decisions = Vec::new();
        for path in 0..MAX_PATHS {
            conn.detect(path, &Event { kind: EventKind::Joined as u32, ..Event::default() });
        }
        samples(&network, |flow, sample| {
            let event = Event {
                now_us: sample.now_us,
                kind: EventKind::Acked as u32,
                flags: flag::OWD,
                state: State::Active as u32,
                owd_us: sample.delay_us.unwrap(),
                delivered: sample.delivered,
                ..Event::default()
            };
            conn.detect(flow, &event);
            decisions.extend(flows.sample(flow, sample));
            if let Some(observed) = conn.observation() {
                seen.insert(u64::from(observed.number), observed.places);
            }
        });
        let (mut compared, mut grouped) = (0, 0);
        for decision in &decisions {
            let Some(places) = seen.get(&(decision.at_us / t_us)) else { continue };
            assert_eq!(partition(&decision.places), partition(places), "{detector:?} {decision:?}");
            compared += 1;
            grouped += usize::from(places.iter().any(|place| matches!(place, Place::Group(_))));
        }
        assert!(compared + 3 >= decisions.len() && decisions.len() >= 17, "{compared} compared");
        assert!(grouped * 2 > compared, "{detector:?}: {grouped} of {compared} with groups");
    }
}

#[test]
fn a_detector_that_needs_a_law_is_refused() {
    let refused = Flows::new(Detector::BTLBW, &Params::default(), 2).map(|_| ()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "detector 'btlbw' does not use delays and losses; expected one of: ssc, tr, xcorr, dcw"
    );
}
