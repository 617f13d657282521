//! The shipped scenarios are what their sources say.

use std::sync::atomic::AtomicBool;

use narrows_lab::{
    Bound, Control, Edits, FlowKind, Job, Published, Scenario, host, load, run, shipped,
};
use narrows_net::{Discipline, Limit, MILLISECOND, SECOND};
use narrows_traffic::Source;

fn scenario(name: &str) -> Scenario {
    load(name, &Edits::default()).unwrap()
}

#[test]
fn every_shipped_scenario_loads_and_names_its_source() {
    let all = shipped();
    assert_eq!(all.len(), 113);
    for one in all {
        let loaded = scenario(one);
        assert_eq!(loaded.name, one);
        assert!(!loaded.source.is_empty() && !loaded.title.is_empty());
        assert!(loaded.test.is_some());
        // Which subflows share a link of a fat tree is drawn.
        assert_eq!(loaded.phases.is_empty(), one == "lisa/fat-tree", "{one}");
        // Beside the papers' connections over a real network, and their files, ran no TCP to compare with,
        // and at home none on most links.
        let alone = one.starts_with("sbd/realnet")
            || one.starts_with("home/")
            || one.starts_with("lisa/") && one != "lisa/shared-tcp"
            || one.ends_with("-itself")
            || ["cmpbbr/one", "cmpbbr/five", "nornet/mesh", "dc/incast"].contains(&one);
        assert_eq!(loaded.rivals.is_empty(), alone, "{one}");
    }
}

/// A shipped scenario cut short: long enough for every event and every path's start, also where a SYN is lost.
pub fn short(name: &str, duration: &str) -> Scenario {
    let whole = scenario(name);
    let mut set = vec![("duration".into(), duration.into())];
    if whole.warmup > SECOND {
        set.push(("warmup".into(), "1 s".into()));
    }
    // What changes in them comes later.
    let set = if whole.events.is_empty() && whole.phases.len() <= 1 { set } else { vec![] };
    load(name, &Edits { set, ..Edits::default() }).unwrap()
}

#[test]
fn every_shipped_scenario_runs() {
    for one in shipped() {
        let scenario = short(one, "6 s");
        let stop = AtomicBool::new(false);
        let run = run(host("sim").unwrap(), Job::new(&scenario, &stop)).unwrap();
        let test = &run.summary.connections[scenario.test.unwrap()];
        assert!(test.goodput_mbps > 0.0, "{one}: {test:?}");
        // A file of 300 kB is gone before the last of eight subflows, or of three, has a turn.
        let each = !["lisa/fat-tree", "lisa/three"].contains(&one);
        assert!(!each || test.paths.iter().all(|path| path.goodput_mbps > 0.0), "{one}: {test:?}");
    }
}

/// MPTCP-SBD, Section IV-A: 20 Mbit/s, 20 ms, droptail of 35 packets, 120 s.
#[test]
fn the_sbd_networks_are_those_of_the_paper() {
    for n in 2..=5 {
        for (kind, bottlenecks) in [("nsb", n), ("sb", 1)] {
            let scenario = scenario(&format!("sbd/{kind}-{n}"));
            assert_eq!(scenario.duration, 120 * SECOND);
            assert_eq!(scenario.links.len(), bottlenecks);
            for link in &scenario.links {
                assert_eq!(link.mean_rate(), 20_000_000);
                assert_eq!(link.config.limit, Limit::Packets(35));
            }
            let test = &scenario.flows[scenario.test.unwrap()];
            assert_eq!((test.kind, test.paths.len()), (FlowKind::Mptcp, n));
            assert!(test.paths.iter().all(|path| path.rtt == 20 * MILLISECOND));
            assert_eq!(scenario.rivals.len(), bottlenecks);
            for rival in &scenario.rivals {
                let flow = &scenario.flows[rival.flow];
                assert_eq!(
                    (flow.control, flow.source),
                    (Some(Control::RENO.into()), Source::Greedy)
                );
                assert_eq!(flow.paths[0].rtt, 20 * MILLISECOND);
            }
            let groups = &scenario.phases[0].groups;
            assert_eq!(groups.len(), bottlenecks, "NSB: a group per path, SB: one");
        }
    }
    let published = scenario("sbd/nsb-2");
    let of_balia = |paper: &&Published| paper.controls.contains(&Control::BALIA.into());
    let published = published.paper.iter().find(of_balia).unwrap();
    assert_eq!((published.ratio_to_tcp, published.bound), (Some(0.6), Bound::About));
}

/// MPTCP-SBD, Tables III and IV: RED that drops, and RTTs of 20 to 60 ms.
#[test]
fn red_and_different_rtts_are_all_that_changes() {
    for n in 2..=5 {
        for kind in ["nsb", "sb"] {
            let base = scenario(&format!("sbd/{kind}-{n}"));
            let test = base.test.unwrap();
            let red = scenario(&format!("sbd/{kind}-{n}-red"));
            let rtt = scenario(&format!("sbd/{kind}-{n}-rtt"));
            for (link, plain) in red.links.iter().zip(&base.links) {
                assert!(matches!(link.config.discipline, Discipline::Red(_)), "{:?}", link.config);
                assert_eq!(link.config.limit, plain.config.limit);
            }
            assert!(red.flows.iter().all(|flow| !flow.tcp.ecn));
            let ms = |path: &narrows_lab::FlowPath| path.rtt / MILLISECOND;
            let rtts: Vec<_> = rtt.flows[test].paths.iter().map(ms).collect();
            // Two paths: 20 and 40 ms; more: 10 ms apart.
            let expected: &[u64] =
                if n == 2 { &[20, 40] } else { &[20, 30, 40, 50, 60][..n as usize] };
            assert_eq!(rtts, expected);
            for other in [red, rtt] {
                assert_eq!(other.phases, base.phases);
                assert_eq!(other.flows.len(), base.flows.len());
                assert_eq!(other.rivals, base.rivals);
            }
        }
    }
}

/// While a link is no bottleneck, nobody but the connection under test sends over it.
#[test]
fn the_load_shifts_with_the_phases() {
    for seconds in [30, 60] {
        let scenario = scenario(&format!("sbd/shifting-{seconds}"));
        let test = scenario.test.unwrap();
        let starts = [0, 20 + seconds, 20 + 2 * seconds, 20 + 3 * seconds, 20 + 4 * seconds];
        assert_eq!(scenario.end(), (20 + 5 * seconds) * SECOND);
        assert_eq!(scenario.phases.len(), 5);
        for (index, phase) in scenario.phases.iter().enumerate() {
            assert_eq!(phase.start, starts[index] * SECOND);
            let until = scenario.phases.get(index + 1).map_or(scenario.end(), |next| next.start);
            let others = scenario.flows.iter().enumerate().filter(|(flow, _)| *flow != test);
            let mut loaded: Vec<usize> = others
                .filter(|(_, flow)| flow.active.iter().any(|a| a.0 < until && a.1 > phase.start))
                .flat_map(|(_, flow)| flow.paths[0].links.clone())
                .collect();
            loaded.sort_unstable();
            loaded.dedup();
            let bottlenecks: &[usize] = if phase.groups.len() == 1 { &[2] } else { &[0, 1] };
            assert_eq!(loaded, bottlenecks);
        }
    }
}

/// Table 2 of the trend-line paper: 15 or 30 flows on each of two paths, two of them the flow under test's.
#[test]
fn the_trace_experiments_have_the_flows_of_their_table() {
    let table = [(40, 15), (60, 15), (90, 30), (120, 30), (120, 30)];
    for (e, (mbps, flows)) in (1..).zip(table) {
        for (kind, bottlenecks) in [("", 1), ("-red", 1), ("-apart", 2), ("-unequal", 2)] {
            let scenario = scenario(&format!("tr/e{e}{kind}"));
            assert_eq!(scenario.links.len(), bottlenecks);
            let over = |link: usize, rtt: u64| {
                let paths = scenario.flows.iter().flat_map(|flow| &flow.paths);
                paths.filter(|path| path.links == [link] && path.rtt == rtt).count()
            };
            let test = &scenario.flows[scenario.test.unwrap()];
            for path in &test.paths {
                assert_eq!(over(path.links[0], path.rtt), flows, "tr/e{e}{kind} {}", path.name);
                let link = &scenario.links[path.links[0]];
                let twice = kind == "-unequal" && path.links[0] == 1;
                assert_eq!(link.mean_rate(), mbps * if twice { 2_000_000 } else { 1_000_000 });
            }
            assert_eq!(scenario.phases[0].groups.len(), bottlenecks);
        }
    }
}

/// What the background offers each link, by TCP and by UDP, bit/s: mean of many seeds.
fn offered(scenario: &Scenario) -> Vec<(f64, f64)> {
    const SEEDS: u64 = 40;
    let mut by_link = vec![(0.0, 0.0); scenario.links.len()];
    let flows = (1..=SEEDS).flat_map(|seed| scenario.drawn(seed).into_owned().flows);
    for flow in flows.filter(|flow| flow.background) {
        let [link] = flow.paths[0].links[..] else { panic!("over one link") };
        let rtt = flow.paths[0].rtt;
        assert!((20 * MILLISECOND..=80 * MILLISECOND).contains(&rtt), "{rtt}");
        // Sizes have a mean of 1000 B.
        match flow.source {
            Source::Rate { mean_pps, .. } => by_link[link].0 += mean_pps * 8000.0 / SEEDS as f64,
            Source::OnOff { pps, on_mean_s, off_mean_s, .. } => {
                assert!((17.0..=150.0).contains(&pps) && (1.0..=5.0).contains(&on_mean_s));
                let on = on_mean_s / (on_mean_s + off_mean_s);
                by_link[link].1 += pps * 8000.0 * on / SEEDS as f64;
            }
            _ => assert_eq!(flow.source, Source::Greedy),
        }
    }
    by_link
}

/// The stated rule: rate-limited TCP and on/off UDP each offer a quarter of each link.
#[test]
fn the_background_offers_half_of_each_link() {
    for (tcp, udp) in offered(&scenario("sbd/nsb-3")) {
        assert!((tcp - 5e6).abs() < 0.6e6, "{tcp}");
        assert!((udp - 5e6).abs() < 0.4e6, "{udp}");
    }
}

/// NorNet, Sections IV-C and V-A: all six pairs of three and two providers; what is left of a link beside its background is
/// what one TCP got, in payload; only ADSL lines are shared.
#[test]
fn the_nornet_mesh_has_the_payload_of_the_paper_in_its_links() {
    let scenario = scenario("nornet/mesh");
    let test = &scenario.flows[scenario.test.unwrap()];
    assert_eq!((test.send_buffer, test.recv_buffer), (1600 << 10, 1600 << 10));
    assert_eq!((scenario.warmup, scenario.duration), (0, 60 * SECOND));
    let limit = |path: &narrows_lab::FlowPath| {
        let slowest = path.links.iter().min_by_key(|link| scenario.links[**link].mean_rate());
        *slowest.unwrap()
    };
    let background = offered(&scenario);
    let left = |link: usize| {
        let (tcp, udp) = background[link];
        (scenario.links[link].mean_rate() as f64 - tcp - udp) * 1448.0 / 1500.0 / 1e6
    };
    for (path, pair) in test.paths.iter().zip(["1-1", "1-2", "2-1", "2-2", "3-1", "3-2"]) {
        let (from, to) = pair.split_once('-').unwrap();
        let names: Vec<_> =
            path.links.iter().map(|link| scenario.links[*link].config.name.as_str()).collect();
        assert_eq!(names, [format!("client{from}"), format!("server{to}")]);
        let payload = if from == "1" { 12.0 } else { 0.22 };
        assert!((left(limit(path)) / payload - 1.0).abs() < 0.02, "{pair}: {}", left(limit(path)));
    }
    for group in &scenario.phases[0].groups {
        let limits: Vec<_> = group.iter().map(|path| limit(&test.paths[*path])).collect();
        assert!(limits.iter().all(|link| *link == limits[0]), "{group:?}");
        assert_eq!(group.len(), if left(limits[0]) < 1.0 { 2 } else { 1 });
    }
}

/// What the sbd families with other backgrounds have in common with the one whose bottlenecks are alike: listed
/// flows but UDP, with their RTTs, links, phases and rivals.
fn but_the_background(scenario: &Scenario) -> impl PartialEq + std::fmt::Debug + use<> {
    let listed = scenario.flows.iter().filter(|flow| !flow.background);
    let listed = listed.filter(|flow| flow.kind != FlowKind::Udp);
    let listed: Vec<_> = listed.map(|flow| (flow.name.clone(), flow.paths[0].rtt)).collect();
    let links = scenario.links.iter().map(|link| format!("{:?}", link.config));
    let rivals = scenario.rivals.iter();
    let rivals = rivals.map(|rival| (rival.link, scenario.flows[rival.flow].name.clone()));
    let rivals: Vec<_> = rivals.collect();
    (listed, links.collect::<Vec<_>>(), scenario.phases.clone(), rivals)
}

/// How many greedy TCPs are in the background of each link.
fn greedy(scenario: &Scenario) -> Vec<usize> {
    let mut by_link = vec![0; scenario.links.len()];
    for flow in scenario.flows.iter().filter(|flow| flow.background) {
        by_link[flow.paths[0].links[0]] += usize::from(flow.source == Source::Greedy);
    }
    by_link
}

/// The list of the unlike family, of which n bottlenecks have the first n: loads and greedy TCPs.
#[test]
fn unlike_bottlenecks_differ_in_load_and_in_greedy_flows() {
    for n in 2..=5 {
        let unlike = scenario(&format!("sbd/nsb-{n}-unlike"));
        assert_eq!(greedy(&unlike), [2, 5, 20, 0, 10][..n]);
        for ((tcp, udp), share) in offered(&unlike).into_iter().zip([0.3, 0.5, 0.85, 0.1, 0.7]) {
            // Whole flows: 1.2 Mbit/s of TCP, 0.4 of UDP.
            assert!((tcp - 10e6 * share).abs() < 0.65e6, "{n} {share}: {tcp}");
            assert!((udp - 10e6 * share).abs() < 0.6e6, "{n} {share}: {udp}");
        }
        let alike = scenario(&format!("sbd/nsb-{n}"));
        assert_eq!(but_the_background(&unlike), but_the_background(&alike));
    }
}

/// The script's block of on/off UDP and greedy TCP, four times at each bottleneck.
#[test]
fn the_background_of_the_script_differs_in_its_periods_and_greedy_flows() {
    for n in 2..=5 {
        let itg = scenario(&format!("sbd/nsb-{n}-itg"));
        let blocks: Vec<_> = (1..=n).map(|block| 4 * block).collect();
        assert_eq!(greedy(&itg), blocks);
        for (link, own) in [0.5, 3.0, 2.0, 0.25, 5.0].into_iter().enumerate().take(n) {
            let over = itg.flows.iter().filter(|flow| flow.paths[0].links == [link]);
            let mut bursts: Vec<_> = over
                .filter_map(|flow| match flow.source {
                    Source::OnOff { pps, size, on_mean_s, on_shape, off_mean_s } => {
                        assert!(flow.kind == FlowKind::Udp && (size.mean() - 1000.0).abs() < 1.0);
                        // Of a Pareto burst the script gives the least: 280 ms for 1 s of silence.
                        let least = on_mean_s * (on_shape - 1.0) / on_shape;
                        assert!((least - 0.28 * off_mean_s).abs() < 1e-9, "{on_mean_s}");
                        Some((pps, off_mean_s))
                    }
                    _ => None,
                })
                .collect();
            bursts.sort_by(|a, b| a.partial_cmp(b).unwrap());
            let block = [(50.0, 1.0), (50.0, 2.0), (50.0, 3.0), (150.0, own)];
            assert_eq!(bursts, block.map(|flow| [flow; 4]).concat());
        }
        let alike = scenario(&format!("sbd/nsb-{n}"));
        assert_eq!(but_the_background(&itg), but_the_background(&alike));
    }
}

/// The rule of the uneven family: loads from 40 to 60 %, spread evenly, with and without RED, other RTTs;
/// nothing else differs.
#[test]
fn uneven_bottlenecks_are_loaded_from_40_to_60_percent() {
    for n in 2..=5 {
        for kind in ["", "-red", "-rtt"] {
            let (even, uneven) =
                (format!("sbd/nsb-{n}{kind}"), format!("sbd/nsb-{n}-uneven{kind}"));
            let (even, uneven) = (scenario(&even), scenario(&uneven));
            for (link, (tcp, udp)) in offered(&uneven).into_iter().enumerate() {
                let expected = 20e6 * (0.4 + 0.2 * link as f64 / (n as f64 - 1.0));
                // Whole flows: 1.2 Mbit/s of TCP, 0.4 of UDP.
                assert!((tcp - expected / 2.0).abs() < 0.65e6, "{n} {link}: {tcp}");
                assert!((udp - expected / 2.0).abs() < 0.4e6, "{n} {link}: {udp}");
            }
            assert_eq!(but_the_background(&uneven), but_the_background(&even));
        }
    }
}

#[test]
fn the_default_buffer_is_twice_the_rates_times_the_largest_rtt() {
    let scenario = scenario("sbd/nsb-2");
    let test = &scenario.flows[scenario.test.unwrap()];
    // 2 x 40 Mbit/s x (20 ms + 1.8 ms of jitter + 35 packets of 0.6 ms in the queue).
    let bytes = 2.0 * 40e6 / 8.0 * (0.020 + 0.0018 + 0.021);
    assert_eq!(test.recv_buffer, bytes as u64);
    assert_eq!(test.send_buffer, test.recv_buffer);
}

/// A queue that would take 16,000 years to drain counts as the longest time there is.
#[test]
fn the_default_buffer_of_a_huge_queue_on_a_slow_link_does_not_wrap() {
    let set = [("rate", "100 bit/s"), ("queue", "4294967295 packets")];
    let set = set.map(|(field, value)| (format!("links.wifi.{field}"), value.into())).to_vec();
    let scenario = load("phone/wifi-lte", &Edits { set, ..Edits::default() }).unwrap();
    let rival = scenario.flows.iter().find(|flow| flow.name == "tcp-wifi").unwrap();
    // 2 x 100 bit/s x 2^64 ns.
    assert_eq!(rival.recv_buffer, 461_168_601_842);
}

#[test]
fn a_recorded_trace_replaces_the_shipped_one() {
    use std::io::Write;
    let file = std::env::temp_dir().join(format!("narrows-trace-{}.gz", std::process::id()));
    let out = std::fs::File::create(&file).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(out, flate2::Compression::default());
    gzip.write_all(b"1\n2\n3\n4\n").unwrap();
    gzip.finish().unwrap();
    let edits = Edits { traces: vec![("lte".into(), file.clone())], ..Edits::default() };
    let loaded = load("phone/wifi-lte", &edits);
    std::fs::remove_file(file).unwrap();
    // One packet of 1504 bytes each millisecond.
    let loaded = loaded.unwrap();
    let lte = loaded.links.iter().find(|link| link.config.name == "lte").unwrap();
    assert_eq!(lte.mean_rate(), 12_032_000);
}

/// The two recorded downlinks: an operator's LTE while driving, and while standing.
#[test]
fn the_phone_runs_over_recorded_lte_links() {
    let Some(folder) = narrows_testkit::data("traces") else { return };
    for (name, kbits) in
        [("ATT-LTE-driving-2016.down.gz", 4572), ("Verizon-LTE-short.down.gz", 5040)]
    {
        let edits = Edits {
            set: vec![("duration".into(), "5 s".into()), ("warmup".into(), "3 s".into())],
            traces: vec![("lte".into(), folder.join(name))],
        };
        let scenario = load("phone/wifi-lte", &edits).unwrap();
        let lte = scenario.links.iter().position(|link| link.config.name == "lte").unwrap();
        // 12,032 bits per opportunity, over the last timestamp.
        assert_eq!(scenario.links[lte].mean_rate() / 1000, kbits);
        let stop = AtomicBool::new(false);
        let run = run(host("sim").unwrap(), Job::new(&scenario, &stop)).unwrap();
        let test = &run.summary.connections[scenario.test.unwrap()];
        assert!(test.paths.iter().all(|path| path.goodput_mbps > 0.0), "{name}: {test:?}");
    }
}

/// The C-MPBBR paper has networks with a rival on one of two separate paths: their ratio is said to
/// lack one.
#[test]
fn no_shipped_scenario_warns_but_of_a_path_that_has_no_rival_in_its_paper() {
    for name in shipped() {
        let warnings = load(name, &Edits::default()).unwrap().warnings();
        if ["cmpbbr/two", "cmpbbr/four"].contains(&name) {
            assert!(warnings.len() == 1 && warnings[0].contains("no rival"), "{warnings:?}");
        } else {
            assert_eq!(warnings, Vec::<String>::new(), "{name}");
        }
    }
}

/// `crates/papers/src/sbd/published.csv` has all shares of the papers' tables, a scenario the share of its
/// right groups.
#[test]
fn published_accuracies_are_those_of_the_tables() {
    let csv = concat!(env!("CARGO_MANIFEST_DIR"), "/../papers/src/sbd/published.csv");
    let text = std::fs::read_to_string(csv).unwrap();
    let mut tables = 0;
    for line in text.lines().filter(|line| line.contains(",sbd/")) {
        let fields: Vec<&str> = line.split(',').collect();
        let scenario = load(fields[1], &Edits::default()).unwrap();
        let groups = scenario.phases.last().unwrap().groups.len();
        let published = fields[1 + groups].parse().ok();
        let ours = scenario.paper.iter().find_map(|paper| paper.accuracy);
        assert_eq!(ours, published, "{line}");
        tables += 1;
    }
    assert_eq!(tables, 24);
}
