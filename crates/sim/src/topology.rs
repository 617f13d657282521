//! Topologies by number: who is connected to whom, and which ways lead from one host to another.
//! The caller makes links of its own rate, delay and queue, in the order given here.

use narrows_net::rng::{self, RngCore};

/// Which direction of a cable.
#[derive(Clone, Copy)]
enum Direction {
    Up = 0,
    Down = 1,
}

/// A k-ary fat tree: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, all
/// with k ports, and k^3/4 hosts (Al-Fares, Loukissas, Vahdat: "A scalable, commodity data center
/// network architecture", SIGCOMM 2008, section 3.1).
///
/// Hosts count from 0, edge by edge and pod by pod. Each of the three layers (host to edge, edge
/// to aggregation, aggregation to core) has as many cables as there are hosts, and each cable is
/// two links: up has an even number, down the next.
///
/// ```
/// use narrows_sim::topology::FatTree;
///
/// let tree = FatTree::new(4).unwrap();
/// assert_eq!((tree.hosts(), tree.links()), (16, 96));
/// // To the neighbour there is one way, by the switch between; into another pod four.
/// assert_eq!((tree.paths(0, 1), tree.paths(0, 15)), (1, 4));
/// let names: Vec<String> = tree.path(0, 1, 0).into_iter().map(|link| tree.link_name(link)).collect();
/// assert_eq!(names, ["host0-edge0", "edge0-host1"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FatTree {
    /// Half the ports of a switch.
    half: u32,
}

impl FatTree {
    /// Largest number of ports: 64 make 65,536 hosts.
    pub const MAX_PORTS: u32 = 64;

    /// The tree of switches with `k` ports; `None` unless `k` is even and 2 to
    /// [`FatTree::MAX_PORTS`].
    pub fn new(k: u32) -> Option<FatTree> {
        let valid = (2..=FatTree::MAX_PORTS).contains(&k) && k % 2 == 0;
        valid.then_some(FatTree { half: k / 2 })
    }

    /// Number of hosts: k^3/4.
    pub fn hosts(self) -> u32 {
        2 * self.half.pow(3)
    }

    /// Number of links, one for each direction of each cable.
    pub fn links(self) -> u32 {
        3 * 2 * self.hosts()
    }

    /// Number of shortest paths between two hosts: 1 below one edge switch, k/2 within a pod,
    /// (k/2)^2 between pods.
    pub fn paths(self, from: u32, to: u32) -> u32 {
        if self.edge(from) == self.edge(to) {
            1
        } else if self.pod(from) == self.pod(to) {
            self.half
        } else {
            self.half * self.half
        }
    }

    /// The links of shortest path `index` from one host to another. The path of the same index
    /// from there to here passes the same switches.
    ///
    /// # Panics
    /// If a host does not exist, both are the same, or there are fewer paths.
    pub fn path(self, from: u32, to: u32, index: u32) -> Vec<u32> {
        assert!(from != to && from.max(to) < self.hosts(), "no two hosts: {from} and {to}");
        assert!(index < self.paths(from, to), "no path {index} from {from} to {to}");
        let half = self.half;
        let mut links = vec![self.link(0, from, Direction::Up)];
        if self.edge(from) != self.edge(to) {
            // The aggregation switch in its pod, and the core switch among those above it.
            let (aggregation, core) = if self.pod(from) == self.pod(to) {
                (index, None)
            } else {
                (index / half, Some(index % half))
            };
            links.push(self.link(1, self.edge(from) * half + aggregation, Direction::Up));
            if let Some(core) = core {
                let above = |host| (self.pod(host) * half + aggregation) * half + core;
                links.push(self.link(2, above(from), Direction::Up));
                links.push(self.link(2, above(to), Direction::Down));
            }
            links.push(self.link(1, self.edge(to) * half + aggregation, Direction::Down));
        }
        links.push(self.link(0, to, Direction::Down));
        links
    }

    /// The path that equal-cost multipath routing (RFC 2992) gives a flow: a hash of the hosts and
    /// of `flow`, which stands for the ports. The way back has its own.
    pub fn ecmp(self, from: u32, to: u32, flow: u64) -> u32 {
        let mut hash = rng::stream(flow, u64::from(from) << 32 | u64::from(to));
        rng::below(&mut hash, self.paths(from, to).into()) as u32
    }

    /// `count` shortest paths at random, none again before all have been taken (Raiciu et al.:
    /// "Improving datacenter performance and robustness with Multipath TCP", SIGCOMM 2011,
    /// section 3, lets each subflow take a random one).
    pub fn random_paths(
        self,
        from: u32,
        to: u32,
        count: usize,
        rng: &mut impl RngCore,
    ) -> Vec<u32> {
        let mut chosen = Vec::with_capacity(count);
        let mut left = Vec::new();
        while chosen.len() < count {
            if left.is_empty() {
                left = (0..self.paths(from, to)).collect();
            }
            chosen.push(left.swap_remove(rng::below(rng, left.len() as u64) as usize));
        }
        chosen
    }

    /// Does a link lead to or from a core switch?
    pub fn is_core(self, link: u32) -> bool {
        link / 2 / self.hosts() == 2
    }

    /// Name of a link, its ends joined by a hyphen.
    pub fn link_name(self, link: u32) -> String {
        let (layer, cable) = (link / 2 / self.hosts(), link / 2 % self.hosts());
        let lower = cable / self.half;
        let (low, high) = match layer {
            0 => (format!("host{cable}"), format!("edge{lower}")),
            1 => {
                let pod = lower / self.half;
                let aggregation = pod * self.half + cable % self.half;
                (format!("edge{lower}"), format!("aggregation{aggregation}"))
            }
            _ => {
                let core = lower % self.half * self.half + cable % self.half;
                (format!("aggregation{lower}"), format!("core{core}"))
            }
        };
        if link % 2 == Direction::Up as u32 {
            format!("{low}-{high}")
        } else {
            format!("{high}-{low}")
        }
    }

    fn link(self, layer: u32, cable: u32, direction: Direction) -> u32 {
        2 * (layer * self.hosts() + cable) + direction as u32
    }

    fn edge(self, host: u32) -> u32 {
        host / self.half
    }

    fn pod(self, host: u32) -> u32 {
        self.edge(host) / self.half
    }
}

/// A permutation traffic matrix: to whom each of `n` hosts sends, so that each is sent to by one
/// other and nobody by itself. Sattolo's algorithm: one cycle through all.
pub fn permutation(n: u32, rng: &mut impl RngCore) -> Vec<u32> {
    let mut to: Vec<u32> = (0..n).collect();
    for last in (1..to.len()).rev() {
        to.swap(last, rng::below(rng, last as u64) as usize);
    }
    to
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A path as the names of the nodes it passes.
    fn nodes(tree: FatTree, from: u32, to: u32, index: u32) -> Vec<String> {
        let mut nodes = vec![format!("host{from}")];
        for link in tree.path(from, to, index) {
            let name = tree.link_name(link);
            let (near, far) = name.split_once('-').expect("two ends");
            assert_eq!(nodes.last().map(String::as_str), Some(near), "where the last link ended");
            nodes.push(far.to_owned());
        }
        nodes
    }

    #[test]
    fn switches_have_an_even_number_of_ports() {
        assert!([0, 1, 3, 5, 66].into_iter().all(|k| FatTree::new(k).is_none()));
        for (k, hosts) in [(2, 2), (4, 16), (8, 128), (16, 1024)] {
            assert_eq!(FatTree::new(k).map(FatTree::hosts), Some(hosts));
        }
    }

    /// Every link has a name of its own, and no switch more than k cables.
    #[test]
    fn cables_are_wired_as_the_paper_says() {
        for k in [2, 4, 8] {
            let tree = FatTree::new(k).unwrap();
            let names: BTreeSet<String> = (0..tree.links()).map(|l| tree.link_name(l)).collect();
            assert_eq!(names.len() as u32, tree.links());
            let from = |node: &str| {
                let start = format!("{node}-");
                names.iter().filter(|name| name.starts_with(&start)).count() as u32
            };
            for switch in 0..k * k / 2 {
                assert_eq!(from(&format!("edge{switch}")), k);
                assert_eq!(from(&format!("aggregation{switch}")), k);
            }
            for core in 0..k * k / 4 {
                assert_eq!(from(&format!("core{core}")), k);
            }
        }
    }

    /// From host to host along the cables, all different, back through the same switches.
    #[test]
    fn shortest_paths_lead_to_the_host_and_differ() {
        let tree = FatTree::new(6).unwrap();
        for (to, count, length) in [(1, 1, 3), (3, 3, 5), (8, 3, 5), (9, 9, 7), (53, 9, 7)] {
            assert_eq!(tree.paths(0, to), count);
            let mut seen = BTreeSet::new();
            for index in 0..count {
                let there = nodes(tree, 0, to, index);
                assert_eq!((there.len(), there.last()), (length, Some(&format!("host{to}"))));
                let mut back = nodes(tree, to, 0, index);
                back.reverse();
                assert_eq!(back, there);
                seen.insert(there);
            }
            assert_eq!(seen.len() as u32, count);
        }
    }

    #[test]
    fn random_paths_are_all_taken_before_any_is_taken_again() {
        let tree = FatTree::new(8).unwrap();
        let mut rng = rng::stream(1, 0);
        let mut drawn = tree.random_paths(0, 127, 32, &mut rng);
        assert_ne!(drawn[..16], drawn[16..], "each time in another order");
        drawn[..16].sort_unstable();
        drawn[16..].sort_unstable();
        assert!(drawn.into_iter().eq((0..16).chain(0..16)));
        assert_eq!(tree.random_paths(0, 1, 2, &mut rng), [0, 0]);
    }

    #[test]
    fn ecmp_spreads_flows_evenly_and_keeps_each_on_its_path() {
        let tree = FatTree::new(8).unwrap();
        let mut flows = [0_u32; 16];
        for flow in 0..16_000 {
            let path = tree.ecmp(3, 77, flow);
            assert_eq!(path, tree.ecmp(3, 77, flow));
            flows[path as usize] += 1;
        }
        // Binomial with mean 1000 and deviation 31.
        assert!(flows.iter().all(|n| n.abs_diff(1000) < 150), "{flows:?}");
        let same_way_back = (0..16_000).filter(|&f| tree.ecmp(3, 77, f) == tree.ecmp(77, 3, f));
        assert!(same_way_back.count().abs_diff(1000) < 150);
    }

    #[test]
    fn a_permutation_sends_every_host_to_one_other() {
        for n in [2, 3, 16, 1024] {
            let to = permutation(n, &mut rng::stream(7, 0));
            assert!((0..).zip(&to).all(|(from, &to)| from != to));
            assert_eq!(to.iter().collect::<BTreeSet<_>>().len() as u32, n);
        }
    }
}
