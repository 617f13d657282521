//! What the detector of a connection found: which subflows share a bottleneck, since when, how sure it
//! is, and if not why.

use narrows_kernel::{Delay, Signal, state};
use narrows_laws::detect::{Answer, Finding, Pair as Known, Why};
use narrows_laws::{Decision, Detector, Place, raw};
use std::collections::BTreeMap;
use std::time::Duration;

/// The detector of a connection.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Detection {
    /// Its name.
    pub detector: &'static str,
    /// Does it run? Not without room for what it keeps: then all subflows are coupled.
    pub runs: bool,
    /// What the receiver does, where this sender looks for its decisions (`narrows kernel receiver`):
    /// `decides`, then `groups` are its. Else they are those of the detector here: `waiting`, its first
    /// groups may be under way; `silent`, it sends none, as it does not detect or is undecided. Null: the
    /// sender does not look for them.
    pub receiver: Option<&'static str>,
    /// Seconds since its newest decision; null: none yet.
    pub decided_s: Option<f64>,
    /// The subflows by what is known of them.
    pub groups: Vec<Group>,
    /// What it knows of each two subflows; empty: it does not compare pairs.
    pub pairs: Vec<Pair>,
    /// What it samples of each subflow.
    pub signals: Vec<PathSignal>,
}

/// What a detector samples of a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PathSignal {
    /// Its number, as in [`super::Subflow::path`].
    pub path: u8,
    /// rtt; sender-ms or sender-us by the resolution of the peer's timestamps; null: nothing now.
    pub signal: Option<&'static str>,
    /// Why that is not what the control wants; null: it is.
    pub why: Option<&'static str>,
}

/// How users see the path in a slot: counted from 1, as flows and links are elsewhere.
pub(super) fn number(slot: usize) -> u8 {
    slot as u8 + 1
}

impl PathSignal {
    fn of(path: &state::ConnectionPath) -> PathSignal {
        let (signal, why) = match path.delay {
            Delay::Rtt => (Some(Signal::Rtt), None),
            Delay::Unknown => (None, Some("the peer's clock is not known yet")),
            Delay::Ms => (Some(Signal::SenderMs), None),
            Delay::Us => (Some(Signal::SenderUs), None),
            Delay::NoTimestamps => (Some(Signal::Rtt), Some("no TCP timestamps")),
            Delay::NoUs => (Some(Signal::Rtt), Some("the peer's timestamps are of 1 ms")),
            Delay::NoClock => {
                (Some(Signal::Rtt), Some("the peer's timestamps go by neither 1 ms nor 1 us"))
            }
        };
        PathSignal { path: number(path.slot), signal: signal.map(Signal::name), why }
    }
}

/// Subflows of which the detector says the same.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Group {
    /// Their numbers, as in [`super::Subflow::path`].
    pub paths: Vec<u8>,
    /// What it says.
    pub found: Found,
    /// Seconds that it says so of all of them. Null: the detector began after the path.
    pub for_s: Option<f64>,
    /// How likely that is right, from 0 to 1, for a detector that compares pairs of that whose answer
    /// is the least sure; else the share of the observations that agree. Null: undecided, what is said
    /// follows of other pairs, or it goes by one observation at a time.
    pub confidence: Option<f64>,
    /// Why nothing is known.
    pub why: Option<&'static str>,
}

/// What a detector says of subflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Found {
    /// They share a bottleneck.
    Shared,
    /// It has a bottleneck of its own.
    Alone,
    /// They have none.
    Uncongested,
    /// Not known.
    Undecided,
}

/// What a detector knows of two subflows.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Pair {
    /// Their numbers.
    pub paths: [u8; 2],
    /// `shared` or `separate`; null: not known.
    pub answer: Option<&'static str>,
    /// Why the newest interval said nothing; null: it did.
    pub why: Option<&'static str>,
    /// Seconds since the end of the newest interval that gave the answer.
    pub answered_s: Option<f64>,
    /// How alike their delays were then, 0 to 1.
    pub concordance: Option<f64>,
    /// From how many independent observations.
    pub observations: Option<u32>,
    /// How likely the answer is right, from 0 to 1.
    pub confidence: Option<f64>,
}

impl Pair {
    /// Of two paths; `ago` has how long a time is ago, seconds.
    fn of((i, j): (usize, usize), known: &Known, ago: impl Fn(u64) -> f64) -> Pair {
        let is_known = known.answer != Answer::Unsure;
        Pair {
            paths: [number(i), number(j)],
            answer: is_known.then(|| known.answer.name()),
            why: known.why.map(why),
            answered_s: is_known.then(|| ago(known.at_us)),
            concordance: is_known.then_some(known.concordance),
            observations: is_known.then_some(known.observations),
            confidence: known.confidence(),
        }
    }
}

impl Found {
    /// Of so many paths at a place, by the places of all.
    fn of(place: Place, paths: usize, places: &[Place]) -> Found {
        match place {
            Place::Group(_) if paths > 1 => Found::Shared,
            // With one that has left.
            Place::Group(_) if places.iter().filter(|one| **one == place).count() > 1 => {
                Found::Undecided
            }
            Place::Group(_) => Found::Alone,
            Place::Clear => Found::Uncongested,
            Place::Undecided => Found::Undecided,
        }
    }

    /// As in the JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Found::Shared => "shared",
            Found::Alone => "alone",
            Found::Uncongested => "uncongested",
            Found::Undecided => "undecided",
        }
    }

    pub(super) const ALL: [Found; 4] =
        [Found::Shared, Found::Alone, Found::Uncongested, Found::Undecided];
}

/// The first groups of a receiver come some seconds after 100 kB; longer on paths without a loss.
const FIRST_GROUPS_MS: u32 = 30_000;

/// What the receiver does: does it decide, and since when does the sender look for its decisions?
fn receiver(decides: bool, since_ms: Option<u32>, now: Duration) -> Option<&'static str> {
    let for_ms = since_ms.map(|since_ms| (now.as_millis() as u32).wrapping_sub(since_ms));
    match for_ms {
        _ if decides => Some("decides"),
        Some(ms) if ms < FIRST_GROUPS_MS => Some("waiting"),
        Some(_) => Some("silent"),
        None => None,
    }
}

/// Why nothing is known of two subflows.
const FEW: &str = "too few delays of both, or their own sending explains them";
const FLAT: &str = "no queue that changes";
const BETWEEN: &str = "their delays are less alike than in one queue, and more than in two";
const NEVER: &str = "no decision yet";

fn why(why: Why) -> &'static str {
    match why {
        Why::Few => FEW,
        Why::Flat => FLAT,
        Why::Between => BETWEEN,
        other => other.name(),
    }
}

impl Detection {
    fn without_room(detector: &'static str) -> Detection {
        Detection {
            detector,
            runs: false,
            receiver: None,
            decided_s: None,
            groups: Vec::new(),
            pairs: Vec::new(),
            signals: Vec::new(),
        }
    }

    /// Of a connection with two paths or more under `detector`; `now` is the kernel's monotonic clock,
    /// and `peer_since` says since when it looks for its peer's decisions, in ms of that clock.
    pub(super) fn of(
        entry: &state::Connection,
        detector: Detector,
        kept: Option<&raw::Detection>,
        now: Duration,
        peer_since: Option<u32>,
    ) -> Detection {
        let name = detector.name();
        let Some(kept) = kept else {
            return Detection::without_room(name);
        };
        let by_receiver = kept.receiver_decides(now.as_micros() as u64);
        let paths: Vec<usize> = entry.paths.iter().map(|path| path.slot).collect();
        let ago = |at_us: u64| now.saturating_sub(Duration::from_micros(at_us)).as_secs_f64();
        let each = paths.iter().flat_map(|&i| paths.iter().map(move |&j| (i, j)));
        let known = each.filter(|(i, j)| i < j);
        let known = known.filter_map(|(i, j)| Some(((i, j), kept.pair(detector, i, j)?)));
        // How sure the detector here is says nothing of the receiver's groups.
        let known: BTreeMap<(usize, usize), Known> = known.filter(|_| !by_receiver).collect();
        let decision = kept.decision();
        let coupled = decision.map_or([Place::Undecided; 8], |decision| decision.places);
        let places = match decision {
            Some(_) => reported(&paths, &coupled, &known, |path| kept.loses_at_random(path)),
            None => coupled,
        };
        let mut by_place: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
        for &path in &paths {
            let new = |decision: Decision| {
                // It speaks of the path that had the slot before.
                decision.number.wrapping_sub(kept.path[path].since) as i32 <= 0
            };
            let place = match decision.is_some_and(new) {
                true => Place::Undecided,
                false => places[path],
            };
            by_place.entry(place).or_default().push(path);
        }
        let agreement = kept.confidence(detector).filter(|_| !by_receiver);
        let group = |(place, paths): (Place, Vec<usize>)| {
            let found = Found::of(place, paths.len(), &places);
            // It says since when a path is where it is coupled.
            let beside = (0..8).filter(|&slot| coupled[slot] == coupled[paths[0]]);
            let known_since = match place {
                Place::Group(_) => beside.eq(paths.iter().copied()),
                _ => paths.iter().all(|&path| coupled[path] == place),
            };
            let since = paths.iter().map(|&path| kept.since_us[path]).filter(|_| known_since);
            let since = since.max().unwrap_or(0);
            let confidence = match found {
                Found::Undecided => None,
                _ if known.is_empty() => agreement
                    .map(|agreement| paths.iter().map(|&path| agreement[path]).fold(1.0, f64::min)),
                _ => confidence(found, &paths, &known),
            };
            Group {
                why: match (found, decision) {
                    (Found::Undecided, None) => Some(NEVER),
                    (Found::Undecided, Some(_)) => doubt(&paths, &known),
                    _ => None,
                },
                paths: paths.iter().map(|&path| number(path)).collect(),
                found,
                for_s: (since != 0).then(|| ago(since)),
                confidence,
            }
        };
        let mut groups: Vec<Group> = by_place.into_iter().map(group).collect();
        groups.sort_by(|a, b| (a.found, &a.paths).cmp(&(b.found, &b.paths)));
        Detection {
            detector: name,
            runs: true,
            receiver: receiver(by_receiver, peer_since, now),
            decided_s: decision.map(|decision| ago(decision.at_us)),
            groups,
            pairs: known.iter().map(|(paths, known)| Pair::of(*paths, known, ago)).collect(),
            signals: entry.paths.iter().map(PathSignal::of).collect(),
        }
    }
}

/// The places of `paths`, by their slots. Those of a decision are for coupling: who is not known to be
/// apart is in one group, and who may be where two are that are apart is undecided. Of a detector that
/// compares pairs, those are told that follow from its answers, as in `kernel watch`; but what one that
/// loses at random has in common with others is no queue.
fn reported(
    paths: &[usize],
    coupled: &[Place; 8],
    known: &BTreeMap<(usize, usize), Known>,
    at_random: impl Fn(usize) -> bool,
) -> [Place; 8] {
    if known.is_empty() {
        return *coupled;
    }
    let number = |path: usize| paths.iter().position(|&of| of == path);
    let answer = |(&(i, j), known): (&(usize, usize), &Known)| {
        let no_queue = known.answer == Answer::Shared && (at_random(i) || at_random(j));
        let answer = if no_queue { Answer::Unsure } else { known.answer };
        Some((number(i)?, number(j)?, answer))
    };
    let found = Finding::new(paths.len(), known.iter().filter_map(answer)).places();
    let mut places = [Place::Undecided; 8];
    for (&path, place) in paths.iter().zip(found) {
        places[path] = place;
    }
    places
}

fn of(known: &BTreeMap<(usize, usize), Known>, i: usize, j: usize) -> Option<&Known> {
    known.get(&(i.min(j), i.max(j)))
}

/// Of a group: its member that is the least surely with another one; of a path that is alone: the
/// one that it is the least surely apart from.
fn confidence(
    found: Found,
    paths: &[usize],
    known: &BTreeMap<(usize, usize), Known>,
) -> Option<f64> {
    let sure = |i: usize, j: usize, answer: Answer| {
        of(known, i, j).filter(|known| known.answer == answer)?.confidence()
    };
    if found == Found::Shared {
        let best = |&i: &usize| {
            let others = paths.iter().filter(|&&j| j != i);
            others.filter_map(|&j| sure(i, j, Answer::Shared)).reduce(f64::max)
        };
        return paths.iter().map(best).reduce(|a, b| Some(a?.min(b?)))?;
    }
    let all = known.keys().flat_map(|&(i, j)| [(i, j), (j, i)]);
    let others = all.filter(|(i, _)| paths.contains(i));
    others.filter_map(|(i, j)| sure(i, j, Answer::Separate)).reduce(f64::min)
}

/// Why nothing is known of `paths`: what hinders the one of their pairs that is nearest to an answer.
/// None of a detector that does not compare pairs.
fn doubt(paths: &[usize], known: &BTreeMap<(usize, usize), Known>) -> Option<&'static str> {
    let theirs = known.iter().filter(|((i, j), known)| {
        known.answer == Answer::Unsure && (paths.contains(i) || paths.contains(j))
    });
    let reasons: Vec<Why> = theirs.map(|(_, known)| known.why.unwrap_or(Why::Few)).collect();
    let nearest = [Why::Between, Why::Flat, Why::Few].into_iter();
    nearest.filter(|reason| reasons.contains(reason)).map(why).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(answer: Answer, observations: u32, why: Option<Why>) -> Known {
        let concordance = if answer == Answer::Shared { 0.95 } else { 0.0 };
        let mut known = Known::new(answer);
        (known.why, known.at_us) = (why, 1);
        (known.concordance, known.observations) = (concordance, observations);
        known
    }

    #[test]
    fn what_is_in_doubt_is_undecided_however_it_is_coupled() {
        let [shared, separate] =
            [Answer::Shared, Answer::Separate].map(|answer| known(answer, 50, None));
        let unsure = known(Answer::Unsure, 0, Some(Why::Few));
        let coupled = |places: &[Place]| {
            let mut all = [Place::Undecided; 8];
            all[..places.len()].copy_from_slice(places);
            all
        };
        let [one, other, undecided] = [Place::Group(0), Place::Group(1), Place::Undecided];
        let told = |places: &[Place], pairs: &[((usize, usize), Known)], random: &[usize]| {
            let paths: Vec<usize> = (0..places.len()).collect();
            let known = pairs.iter().copied().collect();
            let at_random = |path: usize| random.contains(&path);
            reported(&paths, &coupled(places), &known, at_random)[..places.len()].to_vec()
        };
        // Of 2 nothing is known, and it may be with either.
        let pairs = [((0, 1), separate), ((0, 2), unsure), ((1, 2), unsure)];
        assert_eq!(told(&[one, other, undecided], &pairs, &[]), [undecided; 3]);
        // Coupled as it may be the same; 0 and 1 are known to be.
        let pairs = [((0, 1), shared), ((0, 2), unsure), ((1, 2), unsure)];
        assert_eq!(told(&[one; 3], &pairs, &[]), [one, one, undecided]);
        // 0 and 3 are one, coupled with all as they may be where 1 is, or 2, which are apart.
        let pairs = [((0, 3), shared), ((1, 2), separate)];
        let places = [undecided, other, Place::Group(2), undecided];
        assert_eq!(told(&places, &pairs, &[]), [one, undecided, undecided, one]);
        // 0 loses at random, and shares no queue whatever its delays say; that it is apart stands.
        let pairs = [((0, 1), shared), ((0, 2), shared), ((1, 2), shared)];
        assert_eq!(told(&[undecided, other, other], &pairs, &[0]), [undecided, other, other]);
        assert_eq!(told(&[one, other], &[((0, 1), separate)], &[0]), [one, other]);
        // A detector that does not compare pairs says what it decided.
        assert_eq!(told(&[one, other], &[], &[]), [one, other]);
    }

    #[test]
    fn a_group_is_as_sure_as_its_weakest_link() {
        let strong = known(Answer::Shared, 200, None);
        let weak = known(Answer::Shared, 6, None);
        let unsure = known(Answer::Unsure, 0, Some(Why::Few));
        assert_eq!((strong.confidence(), weak.confidence()), (Some(0.999), Some(0.99)));
        let chain = BTreeMap::from([((0, 1), strong), ((0, 2), unsure), ((1, 2), weak)]);
        assert_eq!(confidence(Found::Shared, &[0, 1, 2], &chain), Some(0.99));
        let chain = BTreeMap::from([((0, 1), strong), ((0, 2), unsure), ((1, 2), strong)]);
        assert_eq!(confidence(Found::Shared, &[0, 1, 2], &chain), Some(0.999));
        let loose = BTreeMap::from([((0, 1), strong), ((0, 2), unsure), ((1, 2), unsure)]);
        assert_eq!(confidence(Found::Shared, &[0, 1, 2], &loose), None, "2 may be apart");
    }

    #[test]
    fn a_path_alone_is_as_sure_as_it_is_apart() {
        let separate = known(Answer::Separate, 50, None);
        let pairs = BTreeMap::from([((0, 1), separate)]);
        assert_eq!(confidence(Found::Alone, &[1], &pairs), Some(0.95));
    }

    #[test]
    fn a_receiver_is_given_time_before_it_is_called_silent() {
        let now = |s| Duration::from_secs(s);
        let since = Some(1_000_000);
        assert_eq!(receiver(false, None, now(1005)), None, "not looked for");
        assert_eq!(receiver(false, since, now(1005)), Some("waiting"));
        assert_eq!(receiver(true, since, now(1025)), Some("decides"));
        assert_eq!(receiver(false, since, now(1031)), Some("silent"));
        // What it decided holds for some seconds after the sender stopped looking.
        assert_eq!(receiver(true, None, now(1031)), Some("decides"));
        // The clock in ms wraps after 50 days.
        let wrapped = Duration::from_millis((1 << 32) + 5_000);
        assert_eq!(receiver(false, Some(u32::MAX), wrapped), Some("waiting"));
    }

    #[test]
    fn doubt_has_a_reason() {
        let unsure = |why| known(Answer::Unsure, 0, Some(why));
        let one = |known| BTreeMap::from([((0, 1), known)]);
        assert_eq!(doubt(&[0, 1], &one(unsure(Why::Few))), Some(FEW));
        assert_eq!(doubt(&[0, 1], &one(unsure(Why::Flat))), Some(FLAT));
        assert_eq!(doubt(&[0, 1], &one(unsure(Why::Between))), Some(BETWEEN));
        assert_eq!(doubt(&[0, 1], &BTreeMap::new()), None);
        let shared = known(Answer::Shared, 200, None);
        let between = BTreeMap::from([((0, 1), shared), ((0, 2), unsure(Why::Few))]);
        assert_eq!(doubt(&[0], &between), Some(FEW), "2 may be where 0 is");
    }
}
