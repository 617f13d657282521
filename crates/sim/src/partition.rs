//! Which links and end points of a simulation go into which part, so that parts can run side by side.
//!
//! Only a plain link with a delay may lead from one part to another: its delay is how far ahead the other part knows
//! what will arrive. So what stands before any other link stays together with what is behind it, as do an end point
//! and the links that it sends on and receives from. Of what is left, links of a short delay are kept within parts
//! where that leaves enough parts, as the shortest delay between two parts is how long they run before they wait for each
//! other. What many packets pass between stays together then: communities by modularity, found by moving one at a
//! time (Blondel et al., "Fast unfolding of communities in large networks", 2008), none heavier than its share.
//!
//! All parts run to the same time, the least lookahead after the earliest event, and wait for each other there: windows
//! without null messages (Fujimoto, "Parallel discrete event simulation", CACM 1990). Unison (Bai et al., EuroSys 2024)
//! instead cuts a network at each link with delay, into far more parts than threads, and gives the longest to the next
//! free thread. That balances, and each part stays in cache. Tried here at k=16, four parts on two threads took 1.2
//! times as long as two: a packet that crosses costs several times what one that stays does, and the parts of a fat tree
//! that has its traffic drawn are alike. So there are few parts, balanced before the run, and threads still take whichever
//! is not begun.

use narrows_net::{LinkId, Nanos, Network};

use crate::Packet;

/// Parts for each thread at most. What crosses from one part to another costs several times what stays in one, so there
/// are no more than it takes to give each thread its share.
const PARTS_PER_THREAD: usize = 4;
/// Less than this would not be worth it: work of all over that of the largest part.
const LEAST_GAIN: f64 = 1.25;
/// Weight of a step from one link of a route to the next; that of the middle one, where few routes share links, is 1.
const STEP_WEIGHT: u64 = 16;
/// Rounds in which each node may move to another community.
const ROUNDS: usize = 20;
/// Delays that are tried as the shortest between parts.
const DELAYS: usize = 16;

/// Parts of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    /// The part of each link.
    pub links: Vec<u32>,
    /// How many there are.
    pub parts: u32,
    /// A packet that leaves a part arrives in another so long after it has entered its link, at least.
    pub lookahead: Nanos,
}

/// From a link of a route to the next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    /// That of the first link.
    delay: Nanos,
    from: u32,
    to: u32,
    /// How much it holds together.
    weight: u64,
}

/// Sets of links that become one: each link points to another of its set, or is its representative.
#[derive(Clone)]
struct Sets(Vec<u32>);

impl Sets {
    fn of(&mut self, mut link: u32) -> u32 {
        while self.0[link as usize] != link {
            // Half of the way becomes shorter for those that come after.
            self.0[link as usize] = self.0[self.0[link as usize] as usize];
            link = self.0[link as usize];
        }
        link
    }

    fn unite(&mut self, a: u32, b: u32) {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}

impl Partition {
    /// Parts of a network for so many threads, if there are any that are worth it. Each of `together` has links that
    /// one end point sends on or receives from.
    pub fn new(
        network: &Network<Packet>,
        together: &[Vec<LinkId>],
        threads: usize,
    ) -> Option<Partition> {
        let links = network.links().count();
        let mut sets = Sets((0..links as u32).collect());
        // What passes: by each link, and from one to the next.
        let mut weight = vec![0_u64; links];
        let mut steps: Vec<Step> = Vec::new();
        for route in network.routes() {
            let hops: Vec<LinkId> = network.route(route).collect();
            hops.iter().for_each(|hop| weight[hop.0 as usize] += 1);
            for (n, pair) in hops.windows(2).enumerate() {
                let weight = if n == (hops.len() - 2) / 2 { 1 } else { STEP_WEIGHT };
                match network.lookahead(pair[0]) {
                    Some(delay) => {
                        steps.push(Step { delay, from: pair[0].0, to: pair[1].0, weight });
                    }
                    None => sets.unite(pair[0].0, pair[1].0),
                }
            }
        }
        for group in together {
            group.windows(2).for_each(|pair| sets.unite(pair[0].0, pair[1].0));
        }
        let sets = longest_delay(sets, &mut steps, &weight, threads)?;
        Some(gather(sets, &steps, &weight, threads))
    }
}

/// The sets once all that is less than some delay apart is together: the longest delay that keeps most of the gain.
fn longest_delay(
    mut sets: Sets,
    steps: &mut Vec<Step>,
    weight: &[u64],
    threads: usize,
) -> Option<Sets> {
    steps.retain(|step| sets.of(step.from) != sets.of(step.to));
    steps.sort_unstable();
    let mut delays: Vec<Nanos> = steps.iter().map(|step| step.delay).collect();
    delays.dedup();
    let total: u64 = weight.iter().sum();
    let mut tried: Vec<(f64, Sets)> = Vec::new();
    for delay in delays.iter().step_by(delays.len().div_ceil(DELAYS).max(1)) {
        for step in steps.iter().take_while(|step| step.delay < *delay) {
            sets.unite(step.from, step.to);
        }
        let mut sums = vec![0_u64; weight.len()];
        (0..).zip(weight).for_each(|(link, weight)| sums[sets.of(link) as usize] += weight);
        let heaviest = sums.into_iter().max().unwrap_or(0);
        tried.push(((total as f64 / heaviest.max(1) as f64).min(threads as f64), sets.clone()));
    }
    let best = tried.iter().map(|&(gain, _)| gain).fold(0.0, f64::max);
    let good = |&(gain, _): &(f64, Sets)| gain >= LEAST_GAIN && gain >= 0.8 * best;
    tried.into_iter().rev().find(good).map(|(_, sets)| sets)
}

/// What belongs together, as a graph: how much passes between two of its nodes, and the weight of each.
struct Graph {
    between: Vec<Vec<(u32, u64)>>,
    weight: Vec<u64>,
}

impl Graph {
    /// The nodes `of` that those of `weight` belong to, with what passes between these.
    fn new(of: &[u32], weight: &[u64], passing: impl Iterator<Item = (u32, u32, u64)>) -> Graph {
        let nodes = of.iter().max().map_or(0, |&last| last as usize + 1);
        let mut graph = Graph { between: vec![Vec::new(); nodes], weight: vec![0; nodes] };
        for (&node, weight) in of.iter().zip(weight) {
            graph.weight[node as usize] += weight;
        }
        for (from, to, count) in passing {
            let (from, to) = (of[from as usize], of[to as usize]);
            if from != to {
                graph.between[from as usize].push((to, count));
                graph.between[to as usize].push((from, count));
            }
        }
        for list in &mut graph.between {
            list.sort_unstable();
            list.dedup_by(|(next, count), (node, sum)| {
                let same = next == node;
                *sum += if same { *count } else { 0 };
                same
            });
        }
        graph
    }

    /// A community for each node, by number from 0; none heavier than `most`, unless one node is.
    fn communities(&self, most: u64) -> Vec<u32> {
        let degree: Vec<u64> =
            self.between.iter().map(|list| list.iter().map(|&(_, count)| count).sum()).collect();
        let all: u64 = degree.iter().sum::<u64>().max(1);
        let mut of: Vec<u32> = (0..degree.len() as u32).collect();
        let (mut degrees, mut weights) = (degree.clone(), self.weight.clone());
        let mut shared = vec![0_u64; degree.len()];
        for _ in 0..ROUNDS {
            let mut moved = false;
            for (node, list) in self.between.iter().enumerate() {
                let now = of[node] as usize;
                degrees[now] -= degree[node];
                weights[now] -= self.weight[node];
                list.iter()
                    .for_each(|&(other, count)| shared[of[other as usize] as usize] += count);
                // What modularity gains, times all.
                let gain = |to: usize| {
                    i128::from(shared[to]) * i128::from(all)
                        - i128::from(degree[node]) * i128::from(degrees[to])
                };
                let mut best = (gain(now), now);
                for &(other, _) in list {
                    let to = of[other as usize] as usize;
                    if gain(to) > best.0 && weights[to] + self.weight[node] <= most {
                        best = (gain(to), to);
                    }
                }
                list.iter().for_each(|&(other, _)| shared[of[other as usize] as usize] = 0);
                moved |= best.1 != now;
                of[node] = best.1 as u32;
                degrees[best.1] += degree[node];
                weights[best.1] += self.weight[node];
            }
            if !moved {
                break;
            }
        }
        number(&of)
    }
}

/// Numbers from 0, in the order in which they come.
fn number(of: &[u32]) -> Vec<u32> {
    let mut numbers = vec![u32::MAX; of.len()];
    let mut next = 0;
    of.iter()
        .map(|&one| {
            let number = &mut numbers[one as usize];
            if *number == u32::MAX {
                *number = next;
                next += 1;
            }
            *number
        })
        .collect()
}

/// Parts of the sets, for so many threads.
fn gather(mut sets: Sets, steps: &[Step], weight: &[u64], threads: usize) -> Partition {
    let links: Vec<u32> = (0..weight.len() as u32).map(|link| sets.of(link)).collect();
    let links = number(&links);
    let share = weight.iter().sum::<u64>() / threads as u64 * 9 / 8 + 1;
    let finer = (1..=PARTS_PER_THREAD as u64)
        .map(|pieces| joined(links.clone(), steps, weight, share / pieces + 1));
    // The first that gives no thread more than its share, or else the one that comes nearest.
    let mut best = (u64::MAX, Vec::new(), Vec::new());
    for links in finer {
        let weights = sums(&links, weight);
        let heaviest = sums(&dealt(&weights, threads), &weights).into_iter().max().unwrap_or(0);
        if heaviest < best.0 {
            best = (heaviest, links, weights);
        }
        if best.0 <= share {
            break;
        }
    }
    let (_, links, weights) = best;
    let of = dealt(&weights, PARTS_PER_THREAD * threads);
    let links: Vec<u32> = links.iter().map(|link| of[*link as usize]).collect();
    let parts = links.iter().max().map_or(0, |&last| last + 1);
    let apart = |step: &&Step| links[step.from as usize] != links[step.to as usize];
    let lookahead = steps.iter().filter(apart).map(|step| step.delay).min().unwrap_or(Nanos::MAX);
    Partition { links, parts, lookahead }
}

/// Communities of communities of the nodes `of` as long as they find some, none heavier than `most`, by number from 0.
fn joined(mut of: Vec<u32>, steps: &[Step], weight: &[u64], most: u64) -> Vec<u32> {
    loop {
        let passing = steps.iter().map(|step| (step.from, step.to, step.weight));
        let graph = Graph::new(&of, weight, passing);
        let larger = graph.communities(most);
        if larger.iter().max().map_or(0, |&last| last as usize + 1) == graph.weight.len() {
            return of;
        }
        of.iter_mut().for_each(|node| *node = larger[*node as usize]);
    }
}

/// What those of each number weigh.
fn sums(of: &[u32], weight: &[u64]) -> Vec<u64> {
    let mut sums = vec![0; of.iter().max().map_or(0, |&last| last as usize + 1)];
    of.iter().zip(weight).for_each(|(&number, weight)| sums[number as usize] += weight);
    sums
}

/// The heaviest first, each into the lightest of at most so many.
fn dealt(weights: &[u64], most: usize) -> Vec<u32> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&node| (std::cmp::Reverse(weights[node]), node));
    let mut sums = vec![0_u64; most.min(weights.len())];
    let mut of = vec![0_u32; weights.len()];
    for node in order {
        let lightest = (0..sums.len()).min_by_key(|&part| sums[part]).unwrap_or(0);
        sums[lightest] += weights[node];
        of[node] = lightest as u32;
    }
    of
}
