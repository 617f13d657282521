//! The Mininet topologies of the trend-line paper as scenarios, and what else it shows.

use std::fmt::Write;

use narrows_net::rng::{below, stream};

use crate::{Kept, Runs};

/// By topology, the links of each kind of flow. The connection under test has the first two ways: those from n0. The
/// layout is read from what the paper's tables have in common, as its Figure 5 cannot be read; docs/results/tr.md has it.
type Ways = &'static [(&'static str, &'static [&'static str])];

const T3: Ways = &[("f1", &["L0", "L1", "L2"]), ("f2", &["L13", "L7", "L2"])];
const T4: Ways = &[
    ("f0", &["L0", "L1", "L2", "L10", "L17", "L18"]),
    ("f1", &["L13", "L7", "L2", "L10", "L17", "L18"]),
    ("f2", &["L1", "L2", "L3"]),
    ("f3", &["L11"]),
];
/// The first link of each of the two ways, which all flows of n0 take and no other.
const FIRST: [&str; 2] = ["L0", "L13"];
/// The connection's routes.
pub const ROUTES: [&str; 2] = ["via-n1", "via-n2"];

/// The paper's text has no length; its Table 5 goes to 166 s.
pub const DURATION_S: u32 = 170;
const SOURCE: &str = "Delay trend line (Zhang, arXiv 1812.05816)";

/// A link of a row of Tables 3 and 4.
#[derive(Clone, Debug)]
struct Link {
    name: String,
    mbps: f64,
    delay_ms: u32,
    /// In packets; none where the table has ten times Q, which never limits.
    queue: Option<f64>,
}

/// A row of Tables 3 and 4.
#[derive(Clone, Debug)]
pub struct Experiment {
    pub name: String,
    links: Vec<Link>,
    flows: Vec<u32>,
    /// Jain's index under SSC-LIA and TR-LIA.
    pub jain: [f64; 2],
}

/// A scenario as a file, and which of its TCPs go the way of each path.
#[derive(Clone, Debug)]
pub struct Network {
    pub name: String,
    pub text: String,
    /// By path, the name of its own TCP, and how those of its background begin.
    tcps: Vec<(String, String)>,
}

impl Network {
    /// The goodputs of the TCPs that go the way of a path, Mbit/s.
    pub fn of_path(&self, path: usize, run: &Kept) -> Vec<f64> {
        let (own, background) = &self.tcps[path];
        let numbered =
            |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
        let goes = |name: &str| {
            name == own || name.strip_prefix(background.as_str()).is_some_and(numbered)
        };
        let connections = run.summary.connections.iter().filter(|one| goes(&one.name));
        connections.map(|one| one.goodput_mbps).collect()
    }

    /// Of some goodputs ten by chance, as the paper does: the same of a network and seed under every control.
    pub fn choose(&self, mut goodputs: Vec<f64>, seed: u64) -> Vec<f64> {
        // FNV-1a.
        let hash = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let mut rng = stream(seed, self.name.bytes().fold(0xcbf2_9ce4_8422_2325, hash));
        for place in 0..CHOSEN {
            let other = place + below(&mut rng, (goodputs.len() - place) as u64) as usize;
            goodputs.swap(place, other);
        }
        goodputs.truncate(CHOSEN);
        goodputs
    }
}

/// "Ten TCP flows are randomly chosen."
pub const CHOSEN: usize = 10;

/// Tables 3 and 4: in the quick form each third, in the least the first.
pub fn experiments(runs: &Runs) -> Vec<Experiment> {
    published().into_iter().step_by(runs.form().pick(1, 3, usize::MAX)).collect()
}

/// An experiment by its name.
pub fn experiment(name: &str) -> Experiment {
    published().into_iter().find(|one| one.name == name).expect("a row of Tables 3 and 4")
}

fn published() -> Vec<Experiment> {
    let mut lines = include_str!("published.csv").lines().filter(|line| !line.starts_with('#'));
    let heads: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    lines.map(|line| read(&heads, &line.split(',').collect::<Vec<_>>())).collect()
}

fn read(heads: &[&str], row: &[&str]) -> Experiment {
    let at =
        |name: &str| heads.iter().position(|head| *head == name).map_or("", |place| row[place]);
    let number = |name: &str| at(name).parse::<f64>().expect("a number");
    let link = |name: &&str| {
        let mut parts = at(name).split('/');
        let mut part = || parts.next();
        let (mbps, delay_ms, queue) = (part()?.parse().ok()?, part()?.parse().ok()?, part()?);
        Some(Link {
            name: name.to_string(),
            mbps,
            delay_ms,
            queue: (queue == "Q").then(|| number("Q")),
        })
    };
    Experiment {
        name: at("experiment").into(),
        links: heads.iter().filter(|head| head.starts_with('L')).filter_map(link).collect(),
        flows: ["f0", "f1", "f2", "f3"].iter().filter_map(|name| at(name).parse().ok()).collect(),
        jain: ["jain_ssc", "jain_tr"].map(number),
    }
}

impl Experiment {
    fn ways(&self) -> Ways {
        if self.name.starts_with("T3") { T3 } else { T4 }
    }

    fn link(&self, name: &str) -> &Link {
        self.links.iter().find(|link| link.name == name).expect("a link of the topology")
    }

    /// The link whose queue is Q.
    fn bottleneck(&self) -> &Link {
        self.links.iter().find(|link| link.queue.is_some()).expect("a link of the queue Q")
    }

    /// What rates and numbers of flows are divided by, so that a run takes a second: as much as leaves whole numbers
    /// of them, and ten on each way of the connection.
    fn scale(&self) -> u32 {
        let limited = |way: &&[&str]| way.contains(&self.bottleneck().name.as_str());
        let counts = self
            .ways()
            .iter()
            .zip(&self.flows)
            .filter(|((_, way), _)| limited(way))
            .map(|(_, count)| *count);
        let counts: Vec<u32> = counts.collect();
        let least = self.on_ways().into_iter().min().unwrap_or(0);
        let fits = |n: &u32| counts.iter().all(|count| count % n == 0) && least >= 10 * n;
        let most = counts.iter().copied().max().unwrap_or(1);
        (1..most).filter(fits).max().expect("1 fits")
    }

    /// The TCPs on each way of the connection.
    fn on_ways(&self) -> [u32; 2] {
        [self.flows[0], self.flows[1]]
    }

    fn rtt_ms(&self, way: usize) -> u32 {
        2 * self.ways()[way].1.iter().map(|link| self.link(link).delay_ms).sum::<u32>()
    }

    fn queue_ms(&self) -> f64 {
        let link = self.bottleneck();
        link.queue.unwrap_or_default() * 1500.0 * 8.0 / link.mbps / 1000.0
    }

    /// The connection's two paths, each with its bottleneck and as many TCPs of `law` as go the same way; with `rtts`
    /// in ms in place of the table's.
    fn both_ways(
        &self,
        law: &str,
        name: String,
        title: &str,
        links: &[(&str, String)],
        bottlenecks: [&str; 2],
        rtts: Option<[f64; 2]>,
    ) -> Network {
        let rtts = rtts.unwrap_or([self.rtt_ms(0), self.rtt_ms(1)].map(f64::from));
        let count = |way: usize| self.flows[way] / self.scale();
        let mut background: Vec<_> =
            (0..2).map(|way| greedy(bottlenecks[way], count(way) - 1, rtts[way], law)).collect();
        for (way, (_, over)) in self.ways().iter().enumerate().skip(2) {
            if over.contains(&bottlenecks[0]) {
                background.push(greedy(
                    bottlenecks[0],
                    count(way),
                    f64::from(self.rtt_ms(way)),
                    law,
                ));
            }
        }
        let routes = [0, 1].map(|way| (ROUTES[way], bottlenecks[way], rtts[way]));
        let tcp = |way: usize| {
            let (name, route) = (format!("tcp{}", way + 1), ROUTES[way]);
            (
                name,
                format!(
                    "{{ kind = \"tcp\", routes = [\"{route}\"], cc = \"{law}\", start = \"0.5 s\" }}"
                ),
            )
        };
        let flows = [("mptcp".to_owned(), connection(&ROUTES, "")), tcp(0), tcp(1)];
        // The same link twice has one rival.
        let rivals: &[(&str, &str)] = if bottlenecks[0] == bottlenecks[1] {
            &[(bottlenecks[1], "tcp2")]
        } else {
            &[(bottlenecks[0], "tcp1"), (bottlenecks[1], "tcp2")]
        };
        let file = File {
            title,
            links,
            routes: &routes,
            flows: &flows,
            background: &background,
            rivals,
            length_s: DURATION_S,
        };
        let tcps = vec![
            ("tcp1".into(), format!("bg-{}-greedy", bottlenecks[0])),
            ("tcp2".into(), format!("bg2-{}-greedy", bottlenecks[1])),
        ];
        Network { text: file.text(&name), name, tcps }
    }

    /// As the table has it: one bottleneck; or with another queue, ms.
    pub fn shared(&self, law: &str, queue_ms: Option<u32>) -> Network {
        let link = self.bottleneck();
        let other = queue_ms.map_or(String::new(), |ms| format!("-{ms}ms"));
        let name = format!("tr-{}{other}-{law}", self.name.to_lowercase());
        let limits =
            limit(link.mbps / f64::from(self.scale()), queue_ms.map_or(self.queue_ms(), f64::from));
        let links = [(link.name.as_str(), limits)];
        self.both_ways(
            law,
            name,
            "Two paths through one bottleneck",
            &links,
            [&link.name, &link.name],
            None,
        )
    }

    /// A bottleneck for each way: the first links share out the bottleneck's rate by their flows, so that n/C is its
    /// n/C on both; the second then has `factor` times that rate. With `ratio` the second way has so many times the
    /// first's RTT.
    pub fn apart(&self, law: &str, factor: u32, ratio: Option<f64>) -> Network {
        let rate = self.bottleneck().mbps / f64::from(self.scale());
        let counts = self.on_ways().map(f64::from);
        let mut rates = counts.map(|count| rate * count / (counts[0] + counts[1]));
        rates[1] *= f64::from(factor);
        let links = [0, 1].map(|way| (FIRST[way], limit(rates[way], self.queue_ms())));
        let rtt = f64::from(self.rtt_ms(0));
        let suffix = ratio.map_or(String::new(), |ratio| format!("-rtt-{ratio}"));
        let name = format!("tr-{}-apart-{factor}{suffix}-{law}", self.name.to_lowercase());
        let rtts = ratio.map(|ratio| [rtt, ratio * rtt]);
        self.both_ways(law, name, "Two paths with a bottleneck each", &links, FIRST, rtts)
    }
}

/// Of those with the RTTs of a ratio, T3-E1's beside Reno come as scenarios.
pub const RATIOS: [f64; 4] = [1.0, 1.25, 2.0, 4.0];

/// What a scenario is made of.
struct File<'a> {
    title: &'a str,
    links: &'a [(&'a str, String)],
    routes: &'a [(&'a str, &'a str, f64)],
    flows: &'a [(String, String)],
    background: &'a [String],
    rivals: &'a [(&'a str, &'a str)],
    length_s: u32,
}

impl File<'_> {
    fn text(&self, name: &str) -> String {
        let mut groups = indexmap::IndexMap::<&str, Vec<&str>>::new();
        self.routes.iter().for_each(|(route, link, _)| groups.entry(link).or_default().push(route));
        let groups: Vec<_> = groups.values().collect();
        let mut text = format!(
            "name = \"{name}\"\ntitle = \"{}\"\nsource = \"{SOURCE}\"\nwarmup = \"0 s\"\nduration = \"{} s\"\ntest = \"mptcp\"\n",
            self.title, self.length_s
        );
        // The paper's Linux: before 6.6.
        text += "tcp.receiver_acks = \"linux-6.5\"\ndetection.signal = \"rtt\"\n";
        for (link, limits) in self.links {
            let _ = writeln!(text, "links.{link} = {limits}");
        }
        for (route, link, rtt) in self.routes {
            let _ =
                writeln!(text, "routes.{route} = {{ links = [\"{link}\"], rtt = \"{rtt} ms\" }}");
        }
        for (link, flow) in self.rivals {
            let _ = writeln!(text, "rivals.{link} = \"{flow}\"");
        }
        let _ = writeln!(text, "phases = [{{ start = \"0 s\", groups = {groups:?} }}]");
        for (flow, table) in self.flows {
            let _ = writeln!(text, "flows.{flow} = {table}");
        }
        let _ = writeln!(text, "background = [");
        for table in self.background {
            let _ = writeln!(text, "    {table},");
        }
        text + "]\n"
    }
}

fn greedy(link: &str, count: u32, rtt_ms: f64, law: &str) -> String {
    format!(
        "{{ links = [\"{link}\"], greedy = [{count}], rtt = [\"{rtt_ms} ms\", \"{rtt_ms} ms\"], cc = \"{law}\" }}"
    )
}

fn connection(routes: &[&str], source: &str) -> String {
    format!("{{ kind = \"mptcp\", routes = {routes:?}, cc = \"lia\"{source} }}")
}

/// A link that limits.
fn limit(mbps: f64, queue_ms: f64) -> String {
    format!("{{ rate = \"{:.0} kbit/s\", queue = \"{queue_ms} ms\" }}", 1000.0 * mbps)
}

/// The nearest to the rule of the author's ns-3 program that `tr` has: crates/laws/c/detect/tr.h.
pub fn by_program(network: Network) -> Network {
    let rule = "tr.t_s = 0.1\ntr.settle_ms = 50\ntr.eps = 0.15\ntr.matches = 3\n";
    Network { name: network.name + "-program", text: network.text + rule, tcps: network.tcps }
}

/// Queue of Table 1, which does not give it: as in Table 2.
pub const TABLE_1_QUEUE_MS: u32 = 100;

/// Table 1: the narrow link, the least RTT of its three links in a row, and the law.
pub const SINGLE: [(f64, f64, &str); 2] = [(20.0, 180.0, "reno"), (40.0, 240.0, "cubic")];

/// One path and so many flows, of which the connection under test is one.
pub fn single(row: usize, flows: u32, queue_ms: u32) -> Network {
    let (mbps, rtt, law) = SINGLE[row];
    let queue =
        if queue_ms == TABLE_1_QUEUE_MS { String::new() } else { format!("-queue-{queue_ms}") };
    let name = format!("tr-t1-{}-{flows}{queue}", row + 1);
    let tcp =
        format!("{{ kind = \"tcp\", routes = [\"row\"], cc = \"{law}\", start = \"0.5 s\" }}");
    let file = File {
        title: "One path",
        links: &[("L1", limit(mbps, queue_ms.into()))],
        routes: &[("row", "L1", rtt)],
        flows: &[("mptcp".into(), connection(&["row"], "")), ("tcp1".into(), tcp)],
        background: &[greedy("L1", flows - 2, rtt, law)],
        rivals: &[("L1", "tcp1")],
        length_s: DURATION_S,
    };
    Network { text: file.text(&name), name, tcps: Vec::new() }
}

/// Figure 1: 1 Mbit/s with 50 ms one way. Its queue is not given: 1 s.
pub const ALONE_MBPS: f64 = 1.0;

/// Figure 1: one flow, alone.
pub fn alone() -> Network {
    let name = "tr-figure-1".to_owned();
    let file = File {
        title: "One flow alone",
        links: &[("L1", limit(ALONE_MBPS, 1000.0))],
        routes: &[("row", "L1", 100.0)],
        flows: &[("mptcp".into(), connection(&["row"], ""))],
        background: &[],
        rivals: &[],
        length_s: 300,
    };
    Network { text: file.text(&name), name, tcps: Vec::new() }
}

/// Queues beside BBR, ms. The paper does not give its network: 20 Mbit/s, as Table 1's first, and the RTTs of T3-E1.
pub const BBR_QUEUES_MS: [u32; 4] = [25, 50, 100, 200];

/// A connection of one or two paths beside one BBR flow on its first: files of equal size, or as long as the run.
pub fn beside_bbr(queue_ms: u32, paths: usize, file: bool) -> Network {
    let name = format!("tr-bbr-{queue_ms}-{paths}-{}", if file { "file" } else { "greedy" });
    let source = if file { ", source = { file = { size = \"50 MB\" } }" } else { "" };
    let routes = [(ROUTES[0], "L2", 60.0), (ROUTES[1], "L2", 100.0)];
    let bbr = format!("{{ kind = \"tcp\", routes = [\"{}\"], cc = \"bbr\"{source} }}", ROUTES[0]);
    let made = File {
        title: "Beside one BBR flow",
        links: &[("L2", limit(20.0, f64::from(queue_ms)))],
        routes: &routes[..paths],
        flows: &[("mptcp".into(), connection(&ROUTES[..paths], source)), ("tcp1".into(), bbr)],
        background: &[],
        rivals: &[("L2", "tcp1")],
        // Long enough for the second half of the files at a tenth of the link.
        length_s: if file { 400 } else { 120 },
    };
    Network { text: made.text(&name), name, tcps: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toml(network: &Network) -> toml::Table {
        network.text.parse().unwrap_or_else(|error| panic!("{}: {error}", network.name))
    }

    #[test]
    fn one_link_limits_and_a_round_trip_is_twice_the_delays_of_its_links() {
        for one in published() {
            assert_eq!(one.bottleneck().name, if one.name == "T4-E5" { "L18" } else { "L2" });
        }
        let rtts = |name: &str| {
            (0..experiment(name).flows.len())
                .map(|way| experiment(name).rtt_ms(way))
                .collect::<Vec<_>>()
        };
        assert_eq!(rtts("T3-E1"), [60, 100]);
        assert_eq!(rtts("T4-E5"), [400, 380, 120, 20]);
    }

    #[test]
    fn scaled_flows_are_whole_and_ten_can_be_chosen() {
        for one in published() {
            for count in one.on_ways() {
                assert_eq!(count % one.scale(), 0, "{}", one.name);
                assert!(count / one.scale() >= CHOSEN as u32, "{}", one.name);
            }
        }
        assert_eq!(experiment("T3-E4").scale(), 5);
    }

    /// TCPs and Mbit/s of each link that limits.
    fn flows_per_mbps(network: &Network) -> Vec<f64> {
        let file = toml(network);
        let of = |link: &String, limits: &toml::Value| {
            let crosses = |flow: &&toml::Value| {
                let route = flow["routes"][0].as_str().unwrap();
                flow["kind"].as_str() == Some("tcp")
                    && file["routes"][route]["links"][0].as_str() == Some(link)
            };
            let flows = file["flows"].as_table().unwrap().values().filter(crosses).count() as i64;
            let background = file["background"].as_array().unwrap().iter();
            let background = background.filter(|one| one["links"][0].as_str() == Some(link));
            let all =
                flows + background.map(|one| one["greedy"][0].as_integer().unwrap()).sum::<i64>();
            let rate =
                limits["rate"].as_str().unwrap().split(' ').next().unwrap().parse::<f64>().unwrap();
            all as f64 / (rate / 1000.0)
        };
        file["links"].as_table().unwrap().iter().map(|(link, limits)| of(link, limits)).collect()
    }

    #[test]
    fn flows_per_mbps_are_the_papers_and_separate_ones_are_equal_or_half() {
        for one in published() {
            let limited =
                |(_, way): &(&str, &[&str])| way.contains(&one.bottleneck().name.as_str());
            let crossing = one
                .ways()
                .iter()
                .zip(&one.flows)
                .filter(|(way, _)| limited(way))
                .map(|(_, count)| count);
            let expected = f64::from(crossing.sum::<u32>()) / one.bottleneck().mbps;
            let found = flows_per_mbps(&one.shared("reno", None));
            assert!((found[0] - expected).abs() < 1e-3, "{}: {found:?} {expected}", one.name);
            for factor in [1, 2] {
                let found = flows_per_mbps(&one.apart("cubic", factor, None));
                assert!(
                    (found[0] / found[1] - f64::from(factor)).abs() < 1e-3,
                    "{}: {found:?}",
                    one.name
                );
            }
        }
    }

    #[test]
    fn the_shipped_scenarios_are_those_of_the_ratios() {
        for ratio in &RATIOS[1..] {
            let rtt = 60.0 * ratio;
            let made = experiment("T3-E1").apart("reno", 1, Some(*ratio)).text;
            let (_, rest) = made.split_once('\n').unwrap();
            let title =
                format!("25 flows on two paths with a bottleneck each, RTT 60 and {rtt} ms");
            let rest = rest.replace("Two paths with a bottleneck each", &title);
            let rest = rest.replace(
                SOURCE,
                &format!("{SOURCE}, Table 3, E1; separate bottlenecks and their RTTs by our rule"),
            );
            let expected = format!("name = \"tr/t3-e1-apart-rtt-{ratio}\"\n{rest}");
            let file = format!(
                "{}/../../scenarios/tr/t3-e1-apart-rtt-{ratio}.toml",
                env!("CARGO_MANIFEST_DIR")
            );
            let text = std::fs::read_to_string(file).unwrap();
            let text: String = text
                .lines()
                .filter(|line| !line.starts_with('#'))
                .map(|line| format!("{line}\n"))
                .collect();
            assert_eq!(text, expected, "{ratio}");
        }
    }

    #[test]
    fn another_queue_and_the_programs_rule_are_all_that_differs() {
        let one = experiment("T3-E1");
        let [mut as_is, mut other] =
            [None, Some(100)].map(|queue| toml(&one.shared("reno", queue)));
        let queue = |file: &toml::Table| file["links"]["L2"]["queue"].as_str().unwrap().to_owned();
        assert_eq!((queue(&as_is), queue(&other)), ("12 ms".into(), "100 ms".into()));
        for file in [&mut as_is, &mut other] {
            file.remove("name");
            file.remove("links");
        }
        assert_eq!(as_is, other);
        let rule = toml(&by_program(one.apart("reno", 1, None)));
        assert_eq!(rule["tr"]["matches"].as_integer(), Some(3));
    }

    #[test]
    fn all_are_scenarios() {
        let mut all: Vec<Network> = (0..2)
            .flat_map(|row| [15, 30, 60].map(|flows| single(row, flows, TABLE_1_QUEUE_MS)))
            .collect();
        all.extend([alone(), beside_bbr(25, 1, true), beside_bbr(200, 2, false)]);
        for one in published() {
            all.extend([
                one.shared("cubic", None),
                one.apart("reno", 2, None),
                by_program(one.apart("reno", 1, Some(1.25))),
            ]);
        }
        for network in all {
            narrows_lab::parse(&network.text, &narrows_lab::Edits::default())
                .unwrap_or_else(|error| panic!("{}: {error}\n{}", network.name, network.text));
        }
    }

    #[test]
    fn ten_are_chosen_and_the_same_ones_again() {
        let network = experiment("T3-E1").shared("reno", None);
        let goodputs: Vec<f64> = (0..30).map(f64::from).collect();
        let chosen = network.choose(goodputs.clone(), 1);
        let mut sorted = chosen.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        assert_eq!(sorted.len(), CHOSEN);
        assert_eq!(network.choose(goodputs.clone(), 1), chosen);
        assert_ne!(network.choose(goodputs, 2), chosen);
    }
}
