//! Generators: topologies that are made rather than listed.

use narrows_laws::MAX_PATHS;
use narrows_net::rng::{self, RngCore, Xoshiro256PlusPlus};
use narrows_net::{MILLISECOND, Nanos};
use narrows_sim::topology::{FatTree, permutation};

use super::either::OneOf;
use super::file::{self, Destinations, File, Flow, Generator, Kind, Link, Routing};
use super::{Fault, flow, source};
use crate::units::{BitRate, Queue, Time};

/// Most bottlenecks in a row.
const MAX_ROW: usize = 32;

/// Adds the generator's links, routes and flows to those of `file`. What the file says about one of
/// the same name goes before what the generator makes.
pub fn expand(file: &mut File) -> Result<(), Fault> {
    match file.generator.clone().map(|OneOf(generator)| generator) {
        None => Ok(()),
        Some(Generator::Disjoint(made)) => {
            count("disjoint", "paths", made.paths, MAX_PATHS)?;
            let common = Common { rate: made.rate, delay: made.delay, queue: made.queue };
            for n in 1..=made.paths {
                let bottleneck = common.link(file, format!("bottleneck{n}"));
                route(file, format!("path{n}"), vec![bottleneck], made.rtt);
            }
            Ok(())
        }
        Some(Generator::Dumbbell(made)) => {
            count("dumbbell", "paths", made.paths, MAX_PATHS)?;
            let common = Common { rate: made.rate, delay: made.delay, queue: made.queue };
            let row = common.row(file, 1);
            paths_over(file, &row, made.paths, made.rtt);
            Ok(())
        }
        Some(Generator::Series(made)) => {
            count("series", "bottlenecks", made.bottlenecks, MAX_ROW)?;
            count("series", "paths", made.paths, MAX_PATHS)?;
            let common = Common { rate: made.rate, delay: made.delay, queue: made.queue };
            let row = common.row(file, made.bottlenecks);
            paths_over(file, &row, made.paths, made.rtt);
            Ok(())
        }
        Some(Generator::ParkingLot(made)) => {
            count("parking-lot", "bottlenecks", made.bottlenecks, MAX_ROW)?;
            let common = Common { rate: made.rate, delay: made.delay, queue: made.queue };
            let row = common.row(file, made.bottlenecks);
            route(file, "long".into(), row.clone(), made.rtt);
            for (n, bottleneck) in (1..).zip(row) {
                route(file, format!("cross{n}"), vec![bottleneck], made.rtt);
            }
            Ok(())
        }
        Some(Generator::Mesh(made)) => mesh(file, &made),
        Some(Generator::FatTree(made)) => fat_tree(file, &made),
    }
}

/// Refuses a number of things that is 0 or too large.
fn count(generator: &str, field: &str, found: usize, most: usize) -> Result<(), Fault> {
    if (1..=most).contains(&found) {
        return Ok(());
    }
    let message = format!("expected 1 to {most} {field}, found {found}");
    Err(Fault::new(["generator", generator, field], message))
}

/// What all links of a generator have in common.
struct Common {
    rate: BitRate,
    delay: Time,
    queue: Queue,
}

impl Common {
    /// Adds a link and returns its name.
    fn link(&self, file: &mut File, name: String) -> String {
        let link = file.links.entry(name.clone()).or_default();
        if link.trace.is_none() {
            link.rate.get_or_insert(self.rate);
        }
        link.delay.get_or_insert(self.delay);
        link.queue.get_or_insert(self.queue);
        name
    }

    /// Adds `bottleneck1..n` and returns their names.
    fn row(&self, file: &mut File, n: usize) -> Vec<String> {
        (1..=n).map(|n| self.link(file, format!("bottleneck{n}"))).collect()
    }
}

fn route(file: &mut File, name: String, links: Vec<String>, rtt: Time) {
    let route = file.routes.entry(name).or_default();
    route.links.get_or_insert(links);
    route.rtt.get_or_insert(rtt);
}

/// Routes `path1..n`, all over the same links.
fn paths_over(file: &mut File, links: &[String], n: usize, rtt: Time) {
    for n in 1..=n {
        route(file, format!("path{n}"), links.to_vec(), rtt);
    }
}

/// Each of m providers of the client with each of n of the server: m x n paths, of which those of
/// one provider meet there.
fn mesh(file: &mut File, made: &file::Mesh) -> Result<(), Fault> {
    count("mesh", "clients", made.clients, MAX_PATHS)?;
    count("mesh", "servers", made.servers, MAX_PATHS / made.clients)?;
    let common = Common { rate: made.rate, delay: made.delay, queue: made.queue };
    for client in 1..=made.clients {
        common.link(file, format!("client{client}"));
    }
    for server in 1..=made.servers {
        common.link(file, format!("server{server}"));
    }
    for client in 1..=made.clients {
        for server in 1..=made.servers {
            let links = vec![format!("client{client}"), format!("server{server}")];
            route(file, format!("path{client}-{server}"), links, made.rtt);
        }
    }
    Ok(())
}

/// Flows begin at random in this time, so that not all send their first window at once.
const START: Nanos = MILLISECOND;

/// A fat tree whose hosts each send to another: flows `host0..`, each with the routes of its
/// subflows, `host0-1..`.
fn fat_tree(file: &mut File, made: &file::FatTree) -> Result<(), Fault> {
    let fault = |field, message: String| Fault::new(["generator", "fat-tree", field], message);
    /// More hosts than 8192 would be more than the results can show.
    const MAX_K: u32 = 32;
    let tree = FatTree::new(made.k).filter(|_| (4..=MAX_K).contains(&made.k)).ok_or_else(|| {
        fault("k", format!("expected an even number from 4 to {MAX_K}, found {}", made.k))
    })?;
    count("fat-tree", "subflows", made.subflows, MAX_PATHS)?;
    // Of each flow: the field that is wrong is the generator's.
    source::source(&made.source.0).map_err(|message| fault("source", message))?;
    flow::control(&made.cc, false).map_err(|message| fault("cc", message))?;
    let common = Common { rate: made.rate, delay: made.delay, queue: made.queue };
    let core =
        made.core.as_ref().map(|core| Common { rate: core.rate, queue: core.queue, ..common });
    let names: Vec<String> = (0..tree.links()).map(|link| tree.link_name(link)).collect();
    for (index, name) in (0..).zip(&names) {
        let common = core.as_ref().filter(|_| tree.is_core(index)).unwrap_or(&common);
        let name = common.link(file, name.clone());
        let link: &mut Link = file.links.entry(name).or_default();
        link.mtu = link.mtu.or(made.mtu);
    }
    let named = |links: Vec<u32>| -> Vec<String> {
        links.into_iter().map(|link| names[link as usize].clone()).collect()
    };
    let mut rng = rng::stream(made.seed, 0);
    let destinations = match made.destinations {
        Destinations::Permutation => permutation(tree.hosts(), &mut rng),
        Destinations::Random => one_way(tree.hosts(), &mut rng),
    };
    for (from, to) in (0..).zip(destinations) {
        let mut routes = Vec::new();
        for (n, (there, back)) in (1..).zip(ways(tree, made, from, to, &mut rng)) {
            let name = format!("host{from}-{n}");
            let route = file.routes.entry(name.clone()).or_default();
            let (there, back) = (tree.path(from, to, there), tree.path(to, from, back));
            let rtt = made.delay.0.saturating_mul((there.len() + back.len()) as u64);
            route.rtt.get_or_insert(Time(rtt));
            if route.links.is_none() {
                (route.links, route.back) = (Some(named(there)), named(back));
            }
            routes.push(name);
        }
        let kind = if made.subflows > 1 { Kind::Mptcp } else { Kind::Tcp };
        let start = Time(rng::below(&mut rng, START));
        let flow = Flow {
            cc: Some(made.cc.clone()),
            source: made.source.clone(),
            start: Some(start),
            ..Flow::new(kind, routes)
        };
        file.flows.entry(format!("host{from}")).or_insert(flow);
    }
    Ok(())
}

/// For each of many hosts another one at random; no two have each other.
fn one_way(hosts: u32, rng: &mut impl RngCore) -> Vec<u32> {
    let mut to = Vec::new();
    for from in 0..hosts {
        let may = |&other: &u32| other != from && to.get(other as usize) != Some(&from);
        let others: Vec<u32> = (0..hosts).filter(may).collect();
        to.push(others[rng::below(rng, others.len() as u64) as usize]);
    }
    to
}

/// The shortest paths of a flow's subflows by index, there and back.
fn ways(
    tree: FatTree,
    made: &file::FatTree,
    from: u32,
    to: u32,
    rng: &mut Xoshiro256PlusPlus,
) -> Vec<(u32, u32)> {
    match made.routing {
        Routing::Ecmp => (0..made.subflows as u64)
            // The ports of a subflow.
            .map(|subflow| made.seed.wrapping_mul(MAX_PATHS as u64) + subflow)
            .map(|flow| (tree.ecmp(from, to, flow), tree.ecmp(to, from, flow)))
            .collect(),
        Routing::Random => {
            let chosen = tree.random_paths(from, to, made.subflows, rng);
            chosen.into_iter().map(|index| (index, index)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::super::resolve::resolve;
    use super::super::{FlowKind, Scenario};
    use super::*;
    use crate::{Job, host, run};
    use narrows_net::Limit;
    use narrows_traffic::Source;

    const LINKS: &str = "rate = '10 Mbit/s', delay = '2 ms', queue = '20 packets'";

    /// A scenario of a generator's fields and of what follows them.
    fn scenario(generator: &str, fields: &str, rest: &str) -> Result<Scenario, Fault> {
        let text = format!(
            "name = 'made'\ntitle = ''\nsource = ''\nwarmup = '1 s'\nduration = '4 s'\n\
             generator.{generator} = {{ {LINKS}, {fields} }}\n{rest}"
        );
        resolve(toml::from_str(&text).expect("the file's fields"))
    }

    fn refusal(generator: &str, fields: &str) -> String {
        let Err(fault) = scenario(generator, fields, "") else { panic!("{fields} is no fault") };
        format!("{}: {}", fault.field.join("."), fault.message)
    }

    /// A greedy Reno flow per route.
    fn tcp(routes: &[&str]) -> String {
        let flow = |route| format!("[flows.{route}]\nkind='tcp'\nroutes=['{route}']\ncc='reno'\n");
        routes.iter().map(flow).collect()
    }

    /// The links of a flow's path, by name.
    fn links(scenario: &Scenario, flow: usize, path: usize) -> Vec<&str> {
        let over = &scenario.flows[flow].paths[path].links;
        over.iter().map(|&link| scenario.links[link].config.name.as_str()).collect()
    }

    #[test]
    fn numbers_out_of_range_are_reported_by_field() {
        let rtt = "rtt = '20 ms'";
        let tree = "cc = 'lia', routing = 'ecmp', seed = 1";
        for (generator, fields, field) in [
            ("dumbbell", format!("{rtt}, paths = 0"), "dumbbell.paths: expected 1 to 8 paths"),
            (
                "series",
                format!("{rtt}, paths = 1, bottlenecks = 0"),
                "series.bottlenecks: expected 1 to 32 bottlenecks, found 0",
            ),
            (
                "parking-lot",
                format!("{rtt}, bottlenecks = 33"),
                "parking-lot.bottlenecks: expected 1 to 32 bottlenecks, found 33",
            ),
            (
                "mesh",
                format!("{rtt}, clients = 3, servers = 3"),
                "mesh.servers: expected 1 to 2 servers, found 3",
            ),
            (
                "fat-tree",
                format!("{tree}, subflows = 1, k = 5"),
                "fat-tree.k: expected an even number from 4 to 32, found 5",
            ),
            (
                "fat-tree",
                format!("{tree}, subflows = 9, k = 4"),
                "fat-tree.subflows: expected 1 to 8 subflows, found 9",
            ),
        ] {
            let refusal = refusal(generator, &fields);
            assert!(refusal.starts_with(&format!("generator.{field}")), "{refusal}");
        }
    }

    /// Its law and its routes' links are the file's where the file has its own.
    #[test]
    fn what_the_file_lists_goes_before_what_is_made() {
        let rest = "links.bottleneck2.rate = '5 Mbit/s'\n".to_owned() + &tcp(&["path1"]);
        let made = scenario("series", "paths = 2, bottlenecks = 3, rtt = '20 ms'", &rest).unwrap();
        let rates: Vec<u64> = made.links.iter().map(|link| link.mean_rate()).collect();
        // Listed links come first.
        assert_eq!(rates, [5_000_000, 10_000_000, 10_000_000]);
        assert_eq!(links(&made, 0, 0), ["bottleneck1", "bottleneck2", "bottleneck3"]);
    }

    #[test]
    fn a_link_that_no_made_route_needs_is_a_mistake() {
        let rest = "links.bottleneck4.rate = '5 Mbit/s'\n".to_owned() + &tcp(&["path1"]);
        let refusal = scenario("series", "paths = 1, bottlenecks = 3, rtt = '20 ms'", &rest);
        assert_eq!(
            refusal.unwrap_err().message,
            "no flow uses this link (did you mean 'bottleneck1'?)"
        );
    }

    /// The flow over all three bottlenecks meets one other at each and gets less than they do,
    /// as its losses add up.
    #[test]
    fn in_a_parking_lot_the_long_route_gets_least() {
        let rest = tcp(&["long", "cross1", "cross2", "cross3"]);
        let made = scenario("parking-lot", "bottlenecks = 3, rtt = '40 ms'", &rest).unwrap();
        assert_eq!(links(&made, 0, 0), ["bottleneck1", "bottleneck2", "bottleneck3"]);
        assert_eq!(links(&made, 3, 0), ["bottleneck3"]);
        let stop = AtomicBool::new(false);
        let run = run(host("sim").unwrap(), Job::new(&made, &stop)).unwrap();
        let goodput: Vec<f64> = run.summary.connections.iter().map(|c| c.goodput_mbps).collect();
        assert!(goodput[1..].iter().all(|&cross| cross > 1.2 * goodput[0]), "{goodput:?}");
    }

    /// Two providers of the client, three of the server: six paths. The client's two links are
    /// what limits it, and not a scheduler that waits for what a small window was handed.
    #[test]
    fn a_mesh_has_a_path_for_each_pair_of_providers() {
        let rest = "flows.test.kind = 'mptcp'\nflows.test.cc = 'lia'\n\
                    flows.test.scheduler = 'min-rtt'\nflows.test.routes = \
                    ['path1-1', 'path1-2', 'path1-3', 'path2-1', 'path2-2', 'path2-3']";
        let made = scenario("mesh", "clients = 2, servers = 3, rtt = '20 ms'", rest).unwrap();
        assert_eq!(made.links.len(), 5);
        assert_eq!(links(&made, 0, 0), ["client1", "server1"]);
        assert_eq!(links(&made, 0, 5), ["client2", "server3"]);
        let stop = AtomicBool::new(false);
        let run = run(host("sim").unwrap(), Job::new(&made, &stop)).unwrap();
        let goodput = run.summary.connections[0].goodput_mbps;
        assert!(goodput > 17.0 && goodput < 20.0, "{goodput}");
    }

    /// In a fat tree every host sends and is sent to, over paths that begin and end at its one
    /// link; data and acknowledgements pass the same switches if the ways are drawn, others if
    /// hashed.
    #[test]
    fn a_fat_tree_has_a_flow_for_each_host() {
        for routing in ["random", "ecmp"] {
            let fields =
                format!("k = 4, cc = 'olia', subflows = 4, routing = '{routing}', seed = 3");
            let made = scenario("fat-tree", &fields, "").unwrap();
            assert_eq!((made.flows.len(), made.links.len()), (16, 96));
            let name = |link: &usize| made.links[*link].config.name.as_str();
            let (mut receivers, mut symmetric) = (Vec::new(), 0);
            for (from, flow) in made.flows.iter().enumerate() {
                assert_eq!((flow.kind, flow.paths.len()), (FlowKind::Mptcp, 4));
                assert!(flow.active[0].0 < START);
                for path in &flow.paths {
                    assert!(name(&path.links[0]).starts_with(&format!("host{from}-")));
                    assert_eq!(path.rtt, 4 * MILLISECOND * path.links.len() as Nanos);
                    let turned = |link: &usize| {
                        let (near, far) = name(link).split_once('-').unwrap();
                        format!("{far}-{near}")
                    };
                    let back: Vec<String> = path.back.iter().rev().map(turned).collect();
                    symmetric += usize::from(path.links.iter().map(name).eq(back));
                }
                let ends = flow.paths.iter().map(|path| name(path.links.last().unwrap()));
                let end: Vec<&str> = ends.collect();
                assert!(end.iter().all(|&last| last == end[0]), "{end:?}");
                receivers.push(end[0]);
            }
            receivers.sort_unstable();
            receivers.dedup();
            assert_eq!(receivers.len(), 16);
            match routing {
                "random" => assert_eq!(symmetric, 64),
                // One in four between pods, all below one switch.
                _ => assert!(symmetric < 40, "{symmetric}"),
            }
        }
    }

    /// Whom each host sends to, by the last link of its first path.
    fn receivers(made: &Scenario) -> Vec<usize> {
        let last = |flow: usize| *links(made, flow, 0).last().unwrap();
        let host = |name: &str| name.rsplit("-host").next().unwrap().parse().unwrap();
        (0..made.flows.len()).map(|flow| host(last(flow))).collect()
    }

    #[test]
    fn destinations_at_random_meet_and_are_never_mutual() {
        let mut met = false;
        for seed in 1..20 {
            let fields = format!(
                "k = 4, cc = 'olia', subflows = 8, routing = 'random', seed = {seed}, \
                 destinations = 'random', source = {{ file = {{ size = '300 kB' }} }}"
            );
            let made = scenario("fat-tree", &fields, "").unwrap();
            assert!(made.flows.iter().all(|flow| flow.source == Source::File { bytes: 300_000 }));
            let to = receivers(&made);
            assert_eq!(to.len(), 16);
            for (from, &other) in to.iter().enumerate() {
                assert!(other != from && to[other] != from, "{from} and {other}");
            }
            let mut distinct = to.clone();
            distinct.sort_unstable();
            distinct.dedup();
            met |= distinct.len() < to.len();
        }
        assert!(met, "some host is sent to by two");
    }

    #[test]
    fn core_links_have_a_rate_and_a_queue_of_their_own() {
        let fields = "k = 4, cc = 'olia', subflows = 8, routing = 'random', seed = 1, \
                      core = { rate = '5 Mbit/s', queue = '7 packets' }";
        let made = scenario("fat-tree", fields, "").unwrap();
        let core = |link: &&crate::scenario::Link| link.config.name.contains("core");
        let (core, other): (Vec<_>, Vec<_>) = made.links.iter().partition(core);
        assert_eq!((core.len(), other.len()), (32, 64));
        assert!(core.iter().all(|link| link.mean_rate() == 5_000_000));
        assert!(core.iter().all(|link| link.config.limit == Limit::Packets(7)));
        assert!(other.iter().all(|link| link.mean_rate() == 10_000_000));
        assert!(other.iter().all(|link| link.config.limit == Limit::Packets(20)));
    }

    #[test]
    fn one_subflow_in_a_fat_tree_is_tcp() {
        let fields = "k = 4, cc = 'reno', subflows = 1, routing = 'ecmp', seed = 1";
        let made = scenario("fat-tree", fields, "").unwrap();
        assert!(made.flows.iter().all(|flow| flow.kind == FlowKind::Tcp));
    }
}
