//! The search: random networks first, then more and more children of the worst, for each charge by
//! itself, as the traces of CC-Fuzz are bred (Ray and Seshan, HotNets 2022). What is worst with one
//! seed is judged with two more before it has children, so that chance is not what is bred; what is
//! left at the end is judged with seeds that took no part, and then shrunk.
//!
//! All draws are by the number of the candidate and all choices by generation, so that the result
//! is a function of the seed and the number of candidates, whatever the number of jobs.
//!
//! No library does this part. Those for evolutionary search breed vectors of one kind of number and
//! cannot go on where they were stopped; proptest shrinks only values that it drew itself, which a child of
//! two networks is not; fuzzers are led by the branches that an input takes, which all networks take.

use narrows_lab::Error;
use rayon::prelude::*;

use crate::charge::{Blame, CHARGES, Charge, Measure};
use crate::draw::Draw;
use crate::judge::Verdict;
use crate::network::Network;
use crate::shrink::simpler;
use crate::vary::{crossed, mutated};

/// Candidates of a generation; not by the number of jobs, on which nothing may depend.
const GENERATION: usize = 24;
/// The worst networks of each charge that have children.
const PARENTS: usize = 8;
/// Percent of the candidates that are random after the first generation, and of the others those with
/// two parents.
const RANDOM: usize = 30;
const CROSSED: usize = 30;
/// The seeds of the runs: the first of all candidates, the others of those that look bad with it.
const SEEDS: [u64; 3] = [1, 2, 3];
/// The seeds that confirm a find, and that its file is judged with.
pub const FRESH: [u64; 3] = [4, 5, 6];
/// The least of three that is their majority.
const MAJORITY: usize = 2;
/// Networks that are judged at the same time to shrink one; not by the number of jobs either.
const AT_ONCE: usize = 4;

/// How to search.
pub struct Plan<'a> {
    /// Seed of all draws.
    pub seed: u64,
    /// Networks to judge; the last generation is whole.
    pub candidates: usize,
    /// Packet-hops of a run at most, about.
    pub hops: u32,
    /// Networks to judge at most to shrink one; 0: what is found is not shrunk.
    pub shrinks: usize,
    /// Judges a network with a seed.
    pub judge: &'a (dyn Fn(&Network, u64) -> Result<Verdict, Error> + Sync),
    /// Asked after each generation, with the candidates so far: whether to go on.
    pub go_on: &'a (dyn Fn(usize) -> bool + Sync),
}

/// A fault that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Find {
    /// The charge.
    pub charge: Charge,
    /// Whose fault it is.
    pub blame: Blame,
    /// What was measured with the middle one of the fresh seeds.
    pub measure: Measure,
    /// The network, shrunk.
    pub network: Network,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Networks that were drawn or bred, and judged.
    pub candidates: usize,
    /// The worst of each charge and blame, those of the law first.
    pub finds: Vec<Find>,
}

/// A network that is bad by one charge.
#[derive(Clone)]
struct Bad {
    network: Network,
    score: f64,
}

/// The worst networks of a charge, the worst first.
#[derive(Clone, Default)]
struct Worst(Vec<Bad>);

impl Worst {
    fn add(&mut self, network: &Network, score: f64) {
        if self.0.iter().any(|bad| bad.network == *network) {
            return;
        }
        let place = self.0.partition_point(|bad| bad.score >= score);
        self.0.insert(place, Bad { network: network.clone(), score });
        self.0.truncate(PARENTS);
    }
}

/// What is known so far: for each charge the worst by score, and the worst that are the host's.
#[derive(Default)]
struct Known {
    laws: [Worst; CHARGES.len()],
    hosts: [Worst; CHARGES.len()],
}

/// Searches, in the current pool of threads.
///
/// # Errors
/// Those of the judge.
pub fn search(plan: &Plan) -> Result<Found, Error> {
    let mut known = Known::default();
    let mut next = 0;
    while next < plan.candidates && (next == 0 || (plan.go_on)(next)) {
        let generation: Vec<Network> =
            (next..next + GENERATION).map(|index| candidate(plan, &known, index)).collect();
        next += GENERATION;
        let judged: Vec<Verdict> = generation
            .par_iter()
            .with_max_len(1)
            .map(|network| middle(plan, network))
            .collect::<Result<_, _>>()?;
        for (network, verdict) in generation.iter().zip(judged) {
            for (place, charge) in CHARGES.into_iter().enumerate() {
                let Some(measure) = verdict.0.get(&charge) else { continue };
                // What is not yet wrong may have children that are.
                if charge.blame(measure) == Some(Blame::Host) {
                    known.hosts[place].add(network, charge.of(measure));
                } else {
                    known.laws[place].add(network, charge.score(measure));
                }
            }
        }
    }
    let mut finds = Vec::new();
    for (blame, worst) in [(Blame::Law, &known.laws), (Blame::Host, &known.hosts)] {
        for (charge, worst) in CHARGES.into_iter().zip(worst) {
            finds.extend(confirmed(plan, charge, blame, worst)?);
        }
    }
    Ok(Found { candidates: next, finds })
}

/// The candidate of this number.
fn candidate(plan: &Plan, known: &Known, index: usize) -> Network {
    let mut draw = Draw::new(plan.seed, index as u64);
    // Each charge has as many candidates.
    let worst = &known.laws[index % CHARGES.len()].0;
    if index < GENERATION || worst.is_empty() || draw.percent(RANDOM) {
        return Network::random(&mut draw, plan.hops);
    }
    // The better of two places is the smaller.
    let place = draw.below(worst.len()).min(draw.below(worst.len()));
    let parent = &worst[place].network;
    if draw.percent(CROSSED) {
        let others = &known.laws[draw.below(CHARGES.len())].0;
        if !others.is_empty() {
            let other = &others[draw.below(others.len())].network;
            return crossed(parent, other, &mut draw, plan.hops);
        }
    }
    mutated(parent, &mut draw, plan.hops)
}

/// The verdict on a network: with one seed, or where that is bad of each charge the middle one of three.
fn middle(plan: &Plan, network: &Network) -> Result<Verdict, Error> {
    let first = (plan.judge)(network, SEEDS[0])?;
    if !first.0.iter().any(|(charge, measure)| charge.blame(measure).is_some()) {
        return Ok(first);
    }
    let mut all = vec![first];
    for seed in &SEEDS[1..] {
        all.push((plan.judge)(network, *seed)?);
    }
    let of = |charge: Charge| Some((charge, middle_of(charge, &all)?));
    Ok(Verdict(CHARGES.into_iter().filter_map(of).collect()))
}

/// What most verdicts agree on: whose fault it is, if it is one, and the middle measure of those that agree;
/// none if most have no measure of this charge.
pub fn agreed(charge: Charge, verdicts: &[Verdict]) -> Option<(Option<Blame>, Measure)> {
    let of = |blame: Option<Blame>| {
        let agrees = |verdict: &&Verdict| {
            verdict.0.get(&charge).is_some_and(|measure| charge.blame(measure) == blame)
        };
        let those: Vec<Verdict> = verdicts.iter().filter(agrees).cloned().collect();
        let most = 2 * those.len() > verdicts.len();
        most.then(|| middle_of(charge, &those)).flatten().map(|measure| (blame, measure))
    };
    let blames = [Some(Blame::Law), Some(Blame::Host), None];
    blames.into_iter().find_map(of).or_else(|| Some((None, middle_of(charge, verdicts)?)))
}

/// The middle measure of a charge, if most verdicts have one.
fn middle_of(charge: Charge, verdicts: &[Verdict]) -> Option<Measure> {
    let measures = verdicts.iter().filter_map(|verdict| verdict.0.get(&charge));
    let mut measures: Vec<Measure> = measures.copied().collect();
    measures.sort_by(|a, b| charge.score(a).total_cmp(&charge.score(b)));
    (2 * measures.len() > verdicts.len()).then(|| measures[(measures.len() - 1) / 2])
}

/// The worst of some networks that is bad with fresh seeds, too, shrunk.
fn confirmed(
    plan: &Plan,
    charge: Charge,
    blame: Blame,
    worst: &Worst,
) -> Result<Option<Find>, Error> {
    for Bad { network, score } in &worst.0 {
        if blame == Blame::Law && *score <= 1.0 {
            break;
        }
        let case = Case { plan, charge, blame };
        let Some(measure) = case.stands(network, 1.0)? else { continue };
        // Half of what is too much must stay, so that what is left is not on the edge.
        let least = 1.0 + (charge.of(&measure) - 1.0) / 2.0;
        let (network, measure) = case.shrunk(network.clone(), measure, least)?;
        return Ok(Some(Find { charge, blame, measure, network }));
    }
    Ok(None)
}

/// A charge that is examined.
struct Case<'a> {
    plan: &'a Plan<'a>,
    charge: Charge,
    blame: Blame,
}

impl Case<'_> {
    /// What is measured in a network, if with most of the fresh seeds the blame is the same and the value
    /// at least so bad.
    fn stands(&self, network: &Network, least: f64) -> Result<Option<Measure>, Error> {
        let mut verdicts = Vec::new();
        let mut against = 0;
        for seed in FRESH {
            let verdict = (self.plan.judge)(network, seed)?;
            let measure = verdict.0.get(&self.charge);
            let bad = |measure: &Measure| {
                let blame = self.charge.blame(measure) == Some(self.blame);
                blame && self.charge.of(measure) >= least
            };
            if measure.is_some_and(bad) {
                verdicts.push(verdict);
            } else {
                against += 1;
            }
            if against > FRESH.len() - MAJORITY {
                return Ok(None);
            }
        }
        Ok(middle_of(self.charge, &verdicts))
    }

    /// The network made simpler as long as it stands.
    fn shrunk(
        &self,
        mut network: Network,
        mut measure: Measure,
        least: f64,
    ) -> Result<(Network, Measure), Error> {
        let (mut judged, mut place, mut in_vain) = (0, 0, 0);
        loop {
            let all = simpler(&network, self.plan.hops);
            if in_vain >= all.len() || judged >= self.plan.shrinks {
                return Ok((network, measure));
            }
            // After a step that was made, on with those behind it: those before it failed but now.
            let some = (place..).take(AT_ONCE.min(all.len() - in_vain));
            let some: Vec<&Network> = some.map(|index| &all[index % all.len()]).collect();
            let stand: Vec<Option<Measure>> = some
                .par_iter()
                .with_max_len(1)
                .map(|next| self.stands(next, least))
                .collect::<Result<_, _>>()?;
            judged += some.len();
            let first = stand.iter().zip(0..).find_map(|(stands, index)| Some(((*stands)?, index)));
            match first {
                Some((now, index)) => {
                    (measure, place, in_vain) = (now, (place + index) % all.len(), 0);
                    network = some[index].clone();
                }
                None => {
                    place = (place + some.len()) % all.len();
                    in_vain += some.len();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::network::{Loss, What};

    /// A law that is silent for the longer the slower the link that goes down, if another one loses
    /// packets in bursts.
    fn planted(network: &Network, _: u64) -> Result<Verdict, Error> {
        let bursts = network.links.iter().any(|link| matches!(link.loss, Loss::Bursts(..)));
        let down = network.changes.iter().filter_map(|change| match change.what {
            What::Down(link, _) => Some(network.links[link].kbps),
            _ => None,
        });
        let value =
            if bursts { down.map(|kbps| 1e4 / f64::from(kbps)).fold(0.0, f64::max) } else { 0.0 };
        let measure = Measure { value, uncoupled: 0.0, limit: 1.0 };
        Ok(Verdict([(Charge::Silence, measure)].into()))
    }

    fn finds(
        jobs: usize,
        judge: &(dyn Fn(&Network, u64) -> Result<Verdict, Error> + Sync),
    ) -> Vec<Find> {
        let plan = Plan {
            seed: 7,
            candidates: 10 * GENERATION,
            hops: 200_000,
            shrinks: 250,
            judge,
            go_on: &|_| true,
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build().unwrap();
        pool.install(|| search(&plan)).unwrap().finds
    }

    #[test]
    fn a_planted_fault_is_found_and_shrunk_to_what_it_needs() {
        let all = finds(1, &planted);
        let [find] = &all[..] else { panic!("{all:?}") };
        assert_eq!((find.charge, find.blame), (Charge::Silence, Blame::Law));
        assert!(find.measure.value > 10.0, "the search goes for the worst: {find:?}");
        let network = &find.network;
        assert_eq!((network.paths.len(), network.rivals.len(), network.changes.len()), (2, 0, 1));
        let lossy = network.links.iter().filter(|link| link.loss != Loss::No);
        assert_eq!(lossy.count(), 1);
        assert_eq!((network.scheduler, network.buffer_kb, network.pauses.len()), (0, None, 0));
    }

    #[test]
    fn the_result_is_the_same_with_any_number_of_jobs() {
        assert_eq!(finds(1, &planted), finds(3, &planted));
    }

    #[test]
    fn what_chance_makes_bad_is_no_find() {
        // One seed in three is bad, whatever the network.
        let count = AtomicUsize::new(0);
        let unlucky = |_: &Network, seed: u64| {
            count.fetch_add(1, Ordering::Relaxed);
            let value = if seed % 3 == 1 { 5.0 } else { 0.1 };
            let measure = Measure { value, uncoupled: 0.1, limit: 1.0 };
            Ok(Verdict([(Charge::Silence, measure)].into()))
        };
        assert_eq!(finds(1, &unlucky), []);
        assert!(count.into_inner() >= 3 * 10 * GENERATION);
    }
}
