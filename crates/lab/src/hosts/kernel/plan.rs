//! What is built of a scenario: its network, hosts with their devices and addresses, and which route
//! packets take from one address to another.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use narrows_emu::{DeviceConfig, HostConfig, Packet, Route};
use narrows_mptcp::pm::{Endpoint, Limits};
use narrows_net::{ConfigError, LinkId, Network, RouteId};
use narrows_traffic::PathManager;

use crate::Error;
use crate::hosts::honest;
use crate::routes::{add_forward, add_links, add_reverse};
use crate::scenario::{Flow, FlowKind, FlowPath, Scenario};

/// Maximum flows: more sockets in real time measure the machine, not the network.
const MAX_FLOWS: usize = 500;
/// What one thread can carry, bit/s: links that are faster in sum are not worth trying.
const MAX_RATE: u64 = 1_000_000_000;
/// `MPTCP_PM_ADDR_MAX`: endpoints of a namespace at most.
const MAX_ENDPOINTS: usize = 8;
/// Smallest MTU that IPv6 works on (RFC 8200, section 5).
const MIN_IPV6_MTU: u32 = 1280;
/// What all plain TCP and UDP flows share, but for the flow under test.
const OTHERS: [&str; 2] = ["others-sender", "others-receiver"];
/// `IFNAMSIZ` less its zero.
const MAX_DEVICE: usize = 15;

/// Index of the data's sender among the two ends.
pub const SENDER: usize = 0;
/// Index of the data's receiver.
pub const RECEIVER: usize = 1;

/// What is built of a scenario.
#[derive(Clone, Debug)]
pub struct Plan {
    /// All hosts.
    pub hosts: Vec<HostConfig>,
    /// The network.
    pub network: Network<Packet>,
    /// The scenario's links in it.
    pub links: Vec<LinkId>,
    /// Between which addresses packets go, and over which route.
    pub routes: Vec<Route>,
    /// The scenario's flows.
    pub flows: Vec<FlowPlan>,
}

/// Where a flow runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPlan {
    /// Indices of the sender and the receiver in [`Plan::hosts`].
    pub hosts: [usize; 2],
    /// By path of the flow.
    pub paths: Vec<PathPlan>,
}

/// Where a path of a flow runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathPlan {
    /// Index of its device at each of the flow's hosts.
    pub device: usize,
    /// The sender's and the receiver's addresses.
    pub ends: [Addresses; 2],
    /// The data's route.
    pub forward: RouteId,
    /// The acknowledgements' route.
    pub reverse: RouteId,
    /// The smallest MTU of both, and so of the devices.
    pub mtu: u32,
    /// Carries data only while no regular path can.
    pub backup: bool,
}

/// The addresses of one end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// 10.P.x.y of the sender and 10.(100+P).x.y of the receiver, where P is the number of the path
    /// and x.y that of the flow, both from 1.
    pub v4: Ipv4Addr,
    /// fd6e:72::1:P:F of the sender and fd6e:72::2:P:F of the receiver; none where the MTU is too
    /// small for IPv6.
    pub v6: Option<Ipv6Addr>,
}

impl Addresses {
    fn new(end: usize, path: usize, flow: usize, mtu: u32) -> Addresses {
        let (path, flow) = (path as u16 + 1, flow as u16 + 1);
        let [high, low] = flow.to_be_bytes();
        let v6 = Ipv6Addr::new(0xfd6e, 0x72, 0, 0, 0, end as u16 + 1, path, flow);
        Addresses {
            v4: Ipv4Addr::new(10, path as u8 + 100 * end as u8, high, low),
            v6: (mtu >= MIN_IPV6_MTU).then_some(v6),
        }
    }

    /// All of them, IPv4 first.
    pub fn iter(&self) -> impl Iterator<Item = IpAddr> {
        [Some(IpAddr::V4(self.v4)), self.v6.map(IpAddr::V6)].into_iter().flatten()
    }
}

impl Plan {
    /// The plan of `scenario`; `seed` is that of the network's chances.
    ///
    /// # Errors
    /// What the kernel cannot do, or the network's error for an impossible link.
    pub fn new(scenario: &Scenario, seed: u64) -> Result<Plan, Error> {
        possible(scenario)?;
        let fault = |error: ConfigError| Error::input(&scenario.name, error);
        let mut network = Network::new(seed);
        let links = add_links(&mut network, scenario).map_err(fault)?;
        let mut plan =
            Plan { hosts: Vec::new(), network, links, routes: Vec::new(), flows: Vec::new() };
        for (index, flow) in scenario.flows.iter().enumerate() {
            let paths = flow.paths.iter().enumerate();
            let paths = paths.map(|(number, path)| plan.path(index, number, path));
            let paths = paths.collect::<Result<Vec<_>, _>>().map_err(fault)?;
            plan.add_ways(flow, &paths);
            plan.flows.push(FlowPlan { hosts: [0; 2], paths });
        }
        plan.add_hosts(scenario);
        Ok(plan)
    }

    fn path(
        &mut self,
        flow: usize,
        number: usize,
        path: &FlowPath,
    ) -> Result<PathPlan, ConfigError> {
        let forward = add_forward(&mut self.network, &self.links, path)?;
        let reverse = add_reverse(&mut self.network, &self.links, path)?;
        let mtu = [forward, reverse].map(|route| self.network.route_mtu(route));
        let mtu = mtu[0].min(mtu[1]).min(u16::MAX.into());
        let ends = [SENDER, RECEIVER].map(|end| Addresses::new(end, number, flow, mtu));
        Ok(PathPlan { device: number, ends, forward, reverse, mtu, backup: path.backup })
    }

    /// Both ends have an address on each path. A path is named by the address that is not the
    /// first, so whoever connects to the other's first address gets all paths from its own.
    fn add_ways(&mut self, flow: &Flow, paths: &[PathPlan]) {
        for (i, sender) in paths.iter().enumerate() {
            for (j, receiver) in paths.iter().enumerate() {
                let path = match (i, j) {
                    (i, 0) => i,
                    (0, j) => j,
                    (i, j) if i == j => i,
                    _ => continue,
                };
                let PathPlan { forward, reverse, .. } = paths[path];
                let strips_mptcp = flow.paths[path].strips_mptcp;
                for from in sender.ends[SENDER].iter() {
                    let same = |to: &IpAddr| to.is_ipv4() == from.is_ipv4();
                    for to in receiver.ends[RECEIVER].iter().filter(same) {
                        self.routes.push(Route { from, to, route: forward, strips_mptcp });
                        self.routes.push(Route {
                            from: to,
                            to: from,
                            route: reverse,
                            strips_mptcp,
                        });
                    }
                }
            }
        }
    }

    /// The flow under test has hosts of its own, and so has every other MPTCP flow. The others
    /// share theirs, with an address for each and a device for each MTU.
    fn add_hosts(&mut self, scenario: &Scenario) {
        let mut shared: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, flow) in scenario.flows.iter().enumerate() {
            let names = if scenario.test == Some(index) {
                ["sender", "receiver"].map(String::from)
            } else if flow.kind == FlowKind::Mptcp {
                ["sender", "receiver"].map(|end| format!("{}-{end}", plain(&flow.name)))
            } else {
                shared.entry(self.flows[index].paths[0].mtu).or_default().push(index);
                continue;
            };
            let devices = device_names(flow);
            let planned = &mut self.flows[index];
            planned.hosts = [self.hosts.len(), self.hosts.len() + 1];
            for (end, name) in names.into_iter().enumerate() {
                let device = |(name, path): (&String, &PathPlan)| DeviceConfig {
                    name: name.clone(),
                    mtu: path.mtu,
                    addresses: path.ends[end].iter().collect(),
                };
                let devices = devices.iter().zip(&planned.paths).map(device).collect();
                self.hosts.push(HostConfig { name, devices });
            }
        }
        if shared.is_empty() {
            return;
        }
        let hosts = [self.hosts.len(), self.hosts.len() + 1];
        for (device, indices) in shared.values().enumerate() {
            for &index in indices {
                self.flows[index].hosts = hosts;
                self.flows[index].paths[0].device = device;
            }
        }
        for (end, name) in OTHERS.into_iter().enumerate() {
            let device = |(&mtu, indices): (&u32, &Vec<usize>)| {
                let addresses = indices.iter().map(|&index| self.flows[index].paths[0].ends[end]);
                let addresses =
                    addresses.flat_map(|addresses| addresses.iter().collect::<Vec<_>>());
                DeviceConfig { name: format!("mtu{mtu}"), mtu, addresses: addresses.collect() }
            };
            let devices = shared.iter().map(device).collect();
            self.hosts.push(HostConfig { name: name.into(), devices });
        }
    }
}

impl FlowPlan {
    /// The endpoints that the host at `end` needs to open a subflow on every path, if it is the one
    /// that connects: IPv4, and IPv6 where all have room. A first path is one only if it is backup.
    /// Ids are the numbers of paths from 1, and for IPv6 from 101.
    pub fn endpoints(&self, end: usize) -> Vec<Endpoint> {
        let of = |v6: bool| -> Vec<Endpoint> {
            let paths = self.paths.iter().enumerate();
            let extra = paths.filter(|(index, path)| *index > 0 || path.backup);
            let endpoint = |(index, path): (usize, &PathPlan)| {
                let address = path.ends[end].iter().find(|address| address.is_ipv6() == v6)?;
                let id = index as u8 + if v6 { 101 } else { 1 };
                let backup = if path.backup { Endpoint::BACKUP } else { 0 };
                let flags = Endpoint::SUBFLOW | backup;
                Some(Endpoint { id, address, port: 0, interface: 0, flags })
            };
            extra.filter_map(endpoint).collect()
        };
        let (mut all, v6) = (of(false), of(true));
        if all.len() + v6.len() <= MAX_ENDPOINTS {
            all.extend(v6);
        }
        all
    }

    /// The limits of both hosts: the kernel's own. The endpoints say how many subflows there are; a
    /// path that comes back while the peer still counts its old subflow must not be refused.
    pub fn limits(&self) -> Limits {
        Limits { subflows: 8, add_addr_accepted: 0 }
    }
}

/// Checks what can be checked without this kernel: whether any could run `scenario`.
///
/// # Errors
/// What is too large for real time, or what Linux does not have.
pub fn possible(scenario: &Scenario) -> Result<(), Error> {
    let rate = scenario.links.iter().fold(0u64, |sum, link| sum.saturating_add(link.mean_rate()));
    if rate > MAX_RATE {
        let message = format!(
            "links of {:.1} Gbit/s in total; one core forwards about {} Gbit/s",
            rate as f64 / 1e9,
            MAX_RATE / 1_000_000_000
        );
        return Err(Error::input(&scenario.name, message));
    }
    let flows = scenario.flows.len();
    if flows > MAX_FLOWS {
        let message = format!("{flows} flows; the kernel runs at most {MAX_FLOWS} in real time");
        return Err(Error::input(&scenario.name, message));
    }
    let several = |flow: &&Flow| matches!(flow.path_manager, PathManager::Ndiffports(n) if n > 1);
    if let Some(flow) = scenario.flows.iter().find(several) {
        let place = format!("{}: flows.{}.path_manager", scenario.name, flow.name);
        return Err(Error::input(
            place,
            "Linux has no ndiffports; expected fullmesh on the kernel",
        ));
    }
    if let Some(flow) = scenario.flows.iter().find(|flow| flow.tcp.scalable) {
        let place = format!("{}: flows.{}.tcp.ecn", scenario.name, flow.name);
        let message = "scalable senders run in the simulator only; expected true or false";
        return Err(Error::input(place, message));
    }
    let media = |flow: &&Flow| flow.kind == FlowKind::Udp && flow.has_feedback();
    if let Some(flow) = scenario.flows.iter().find(media) {
        let place = format!("{}: flows.{}.source", scenario.name, flow.name);
        let message = "media (nada, scream) does not run in real time; expected rate or onoff";
        return Err(Error::input(place, message));
    }
    honest(scenario, &scenario.flows)
}

/// Of letters, digits, `-` and `_`.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().map(plain).collect()
}

/// Devices are called as the routes, unless one of the names cannot be a device's.
fn device_names(flow: &Flow) -> Vec<String> {
    let fits = |name: &str| {
        let taken = ["lo", "all", "default"].contains(&name);
        (1..=MAX_DEVICE).contains(&name.len()) && plain(name) == name && !taken
    };
    if flow.paths.iter().all(|path| fits(&path.name)) {
        return flow.paths.iter().map(|path| path.name.clone()).collect();
    }
    (1..=flow.paths.len()).map(|number| format!("path{number}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edits, load, parse};

    fn plan(scenario: &str) -> Plan {
        Plan::new(&load(scenario, &Edits::default()).unwrap(), 1).unwrap()
    }

    fn route(plan: &Plan, from: &str, to: &str) -> Option<RouteId> {
        let (from, to): (IpAddr, IpAddr) = (from.parse().unwrap(), to.parse().unwrap());
        let mut routes = plan.routes.iter().filter(|entry| (entry.from, entry.to) == (from, to));
        let route = routes.next().map(|entry| entry.route);
        assert!(routes.next().is_none(), "two routes from {from} to {to}");
        route
    }

    #[test]
    fn what_the_kernels_end_points_do_not_do_is_refused() {
        for (field, value) in [("receiver_hides", "losses"), ("ecn", "scalable")] {
            let set = [("flows.mptcp.cc", "dctcp"), (&format!("flows.mptcp.tcp.{field}"), value)];
            let set = set.map(|(field, value)| (field.to_owned(), value.to_owned())).to_vec();
            let scenario = load("sbd/nsb-2", &Edits { set, ..Edits::default() }).unwrap();
            let error = possible(&scenario).unwrap_err().to_string();
            assert!(error.starts_with(&format!("sbd/nsb-2: flows.mptcp.tcp.{field}: ")), "{error}");
        }
    }

    #[test]
    fn a_phone_has_a_device_per_path_and_the_others_share_one() {
        let plan = plan("phone/wifi-lte");
        let devices = |host: &HostConfig| -> Vec<String> {
            host.devices.iter().map(|device| device.name.clone()).collect()
        };
        let hosts: Vec<_> = plan.hosts.iter().map(|at| (at.name.as_str(), devices(at))).collect();
        let phone = vec!["wifi".to_owned(), "lte".to_owned()];
        let others = vec!["mtu1500".to_owned()];
        assert_eq!(
            hosts,
            [
                ("sender", phone.clone()),
                ("receiver", phone),
                ("others-sender", others.clone()),
                ("others-receiver", others),
            ]
        );
        let lte = &plan.hosts[1].devices[1].addresses;
        assert_eq!(lte[..], ["10.102.0.1", "fd6e:72::2:2:1"].map(|a| a.parse::<IpAddr>().unwrap()));
        assert_eq!(plan.hosts[2].devices[0].addresses.len(), 4);
        assert_eq!(plan.flows[2].hosts, [2, 3]);
    }

    #[test]
    fn whoever_connects_to_the_first_address_gets_all_paths() {
        let plan = plan("phone/wifi-lte");
        let [wifi, lte] = [0, 1].map(|path| plan.flows[0].paths[path]);
        let at = |from, to| route(&plan, from, to);
        assert_eq!(at("10.1.0.1", "10.101.0.1"), Some(wifi.forward));
        assert_eq!(at("10.2.0.1", "10.101.0.1"), Some(lte.forward));
        assert_eq!(at("10.1.0.1", "10.102.0.1"), Some(lte.forward));
        assert_eq!(at("10.2.0.1", "10.102.0.1"), Some(lte.forward));
        assert_eq!(at("10.101.0.1", "10.2.0.1"), Some(lte.reverse));
        assert_eq!(at("fd6e:72::2:1:1", "fd6e:72::1:2:1"), Some(lte.reverse));
        // A neighbour's address, and another family's.
        assert_eq!(at("10.1.0.1", "10.101.0.2"), None);
        assert_eq!(at("10.1.0.1", "fd6e:72::2:1:1"), None);
        let name = |route| plan.network.route(route).map(|l| plan.network.config(l).name.clone());
        assert_eq!(name(lte.forward).collect::<Vec<_>>(), ["access", "lte"]);
        assert_eq!(name(lte.reverse).collect::<Vec<_>>(), ["return"]);
    }

    #[test]
    fn a_middlebox_is_on_its_own_path_both_ways() {
        let mut scenario = load("phone/wifi-lte", &Edits::default()).unwrap();
        scenario.flows[0].paths[1].strips_mptcp = true;
        let plan = Plan::new(&scenario, 1).unwrap();
        let lte = plan.flows[0].paths[1];
        for entry in &plan.routes {
            assert_eq!(
                entry.strips_mptcp,
                [lte.forward, lte.reverse].contains(&entry.route),
                "{entry:?}"
            );
        }
    }

    #[test]
    fn paths_that_do_not_meet_at_a_first_address_have_no_way() {
        let plan = plan("sbd/nsb-3");
        assert_eq!(route(&plan, "10.2.0.1", "10.103.0.1"), None);
        assert!(route(&plan, "10.3.0.1", "10.103.0.1").is_some());
        // 3n - 2 pairs of addresses, two routes each, in two families.
        let of_test = |entry: &&Route| plan.hosts[..2].iter().any(|host| has(host, entry.from));
        let test = plan.routes.iter().filter(of_test).count();
        assert_eq!(test, (3 * 3 - 2) * 2 * 2);
    }

    fn has(host: &HostConfig, address: IpAddr) -> bool {
        host.devices.iter().any(|device| device.addresses.contains(&address))
    }

    #[test]
    fn the_connecting_host_has_endpoints_for_all_paths_but_the_first() {
        let mut flow = plan("phone/wifi-handover").flows.remove(0);
        let show = |flow: &FlowPlan, end| -> Vec<String> {
            let all = flow.endpoints(end);
            all.iter().map(|at| format!("{} {} {}", at.id, at.address, at.flags)).collect()
        };
        assert_eq!(show(&flow, SENDER), ["2 10.2.0.1 6", "102 fd6e:72::1:2:1 6"]);
        assert_eq!(show(&flow, RECEIVER), ["2 10.102.0.1 6", "102 fd6e:72::2:2:1 6"]);
        // With backup on the first path it must be an endpoint, too.
        flow.paths[0].backup = true;
        assert_eq!(flow.endpoints(SENDER)[0].id, 1);
        // Eight paths leave no room for IPv6.
        flow.paths = vec![PathPlan { backup: false, ..flow.paths[0] }; 8];
        assert_eq!(flow.endpoints(SENDER).len(), 7);
    }

    /// One flow over a link of the given MTU, and what else the flow says.
    fn one(mtu: u32, route: &str, flow: &str) -> Result<Plan, Error> {
        let text = format!(
            "name = \"one\"\ntitle = \"one\"\nsource = \"ours\"\nwarmup = \"1 s\"\nduration = \"1 s\"\n\
             [links.l]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"10 packets\"\nmtu = \"{mtu} B\"\n\
             [routes.\"{route}\"]\nlinks = [\"l\"]\nrtt = \"4 ms\"\n\
             [flows]\nf = {{ {flow}, routes = [\"{route}\"] }}\n"
        );
        Plan::new(&parse(&text, &Edits::default()).unwrap(), 1)
    }

    #[test]
    fn a_small_mtu_has_no_ipv6() {
        let tcp = "kind = \"tcp\", cc = \"reno\"";
        assert_eq!(one(1279, "r", tcp).unwrap().hosts[0].devices[0].addresses.len(), 1);
        let plan = one(1280, "r", tcp).unwrap();
        assert_eq!(plan.hosts[0].devices[0].addresses.len(), 2);
        assert_eq!(plan.hosts[0].devices[0].mtu, 1280);
    }

    #[test]
    fn names_are_what_devices_and_namespaces_can_be_called() {
        let mptcp = "kind = \"mptcp\", cc = \"lia\"";
        let name = |route| one(1500, route, mptcp).unwrap().hosts[0].devices[0].name.clone();
        assert_eq!(name("wifi-5"), "wifi-5");
        assert_eq!(name("all"), "path1");
        assert_eq!(name("a route with a name"), "path1");
        assert_eq!(one(1500, "r", mptcp).unwrap().hosts[1].name, "f-receiver");
        assert_eq!(plain("f/1 b"), "f_1_b");
    }

    #[test]
    fn what_the_kernel_cannot_do_is_refused_in_one_line() {
        let mptcp = "kind = \"mptcp\", cc = \"lia\", path_manager = { ndiffports = 2 }";
        let message = one(1500, "r", mptcp).unwrap_err().to_string();
        assert!(
            message.starts_with("one: flows.f.path_manager: Linux has no ndiffports"),
            "{message}"
        );
        let message = one(1500, "r", "kind = \"udp\", source = \"nada\"").unwrap_err().to_string();
        assert!(
            message
                .starts_with("one: flows.f.source: media (nada, scream) does not run in real time"),
            "{message}"
        );
        let mut scenario = load("phone/wifi-lte", &Edits::default()).unwrap();
        scenario.flows.extend(vec![scenario.flows[1].clone(); MAX_FLOWS]);
        let message = Plan::new(&scenario, 1).unwrap_err().to_string();
        assert_eq!(message, "phone/wifi-lte: 503 flows; the kernel runs at most 500 in real time");
    }
}
