//! What user space reads is what is there: connections over two paths, watched and judged.

use narrows_kernel::control::Registered;
use narrows_laws::Control;
use narrows_mptcp_admin::check::{Item, Verdict, check};
use narrows_mptcp_admin::status::{Connection, Detection, Fit, Found, Keeper, Status};
use narrows_netns::Namespace;
use narrows_testkit::machine::{Turn, mptcp, tools, turn};
use narrows_testkit::net::{Net, client, ip, run, sysctl};
use narrows_testkit::transfer::{Kind, Server, Traffic};
use narrows_testkit::wait_until;
use std::thread::sleep;
use std::time::Duration;

/// Paths' rates, Mbit/s.
const RATES: [u32; 2] = [10, 20];
const PORT: u16 = 5001;
/// Bytes of a job: as one after the other is sent, as much as the paths carry.
const JOB: u64 = 1 << 20;

/// Two hosts and two paths between them; none, and a word on the terminal, where this process cannot
/// load BPF programs or make hosts.
fn two_paths(test: &str) -> Option<(Turn, Net)> {
    let bpf = narrows_kernel::available().map_err(|reason| reason.to_string());
    let needs = bpf.and_then(|()| mptcp()).and_then(|()| tools(&["ip", "ss", "tc"]));
    Some((turn(test, needs)?, Net::new(&RATES)))
}

/// A connection that sends as much as it can.
fn send(net: &Net, port: u16, listen: Kind, connect: Kind) -> Sending {
    let address = net.address(port);
    let server = Server::start(&net.server, address, listen);
    Sending { traffic: Traffic::start(&net.client, address, connect, JOB, 0), server }
}

struct Sending {
    traffic: Traffic,
    server: Server,
}

impl Sending {
    fn stop(self) {
        self.traffic.stop();
        let failed = self.server.stop();
        assert!(failed.is_empty(), "{failed:?}");
    }
}

/// The connections of a host as status shows them.
fn connections(status: &Status, host: &Namespace) -> Vec<Connection> {
    let of = |one: &&narrows_mptcp_admin::status::Namespace| one.inum == host.inum;
    status.namespaces.iter().find(of).map(|found| found.connections.clone()).unwrap_or_default()
}

/// Looks until a host's connections have so many subflows, then twice, half a second apart.
fn watch(host: &Namespace, subflows: usize) -> (Status, Vec<Connection>) {
    let count = |status: &Status| {
        connections(status, host).iter().map(|one| one.subflows.len()).sum::<usize>()
    };
    wait_until(10, || match count(&Status::look()) {
        n if n == subflows => Ok(()),
        n => Err(format!("{n} subflows of {subflows}")),
    });
    // Past slow start.
    sleep(Duration::from_secs(1));
    let first = Status::look();
    sleep(Duration::from_millis(500));
    let status = first.again();
    let connections = connections(&status, host);
    (status, connections)
}

#[test]
fn a_transfer_over_two_paths_is_shown_as_one_connection_with_its_throughput() {
    let Some((_turn, net)) = two_paths("status of MPTCP without our control") else { return };
    net.set_default("reno");
    let sending = send(&net, PORT, Kind::Mptcp, Kind::Mptcp);
    let (status, seen) = watch(&net.client, 2);
    assert_eq!(seen.len(), 1, "{}", status.text(Fit::All));
    assert!(seen[0].token.is_some() && seen[0].law.is_none() && !seen[0].fell_back);
    let mbits = seen[0].sent_bytes_per_s.unwrap() as f64 * 8e-6;
    // What waited for a busy CPU is acknowledged at once.
    assert!((10.0..33.0).contains(&mbits), "{mbits} Mbit/s of 30");
    for (n, subflow) in (1..).zip(&seen[0].subflows) {
        assert_eq!(subflow.local.ip().to_string(), format!("10.77.{n}.1"));
        assert_eq!(subflow.remote, net.address(PORT));
        assert_eq!(
            subflow.interface.as_ref().map(|name| name.raw()),
            Some(format!("c{n}").as_str())
        );
        assert_eq!(subflow.control, "reno");
        assert!(subflow.cwnd_packets > 1 && subflow.srtt_us > 0);
        assert_eq!(subflow.fallback_law, Some(false));
        assert!(subflow.bytes_acked > 100_000, "{subflow:?}");
    }
    // The other side receives what this one sends, all at one address that is on no path.
    let there = connections(&status, &net.server);
    assert_eq!(there.len(), 1);
    for subflow in &there[0].subflows {
        assert_eq!(subflow.local, net.address(PORT));
        let n = (1..3).find(|n| subflow.remote.ip() == client(*n)).expect("a client's address");
        assert_eq!(
            subflow.interface.as_ref().map(|name| name.raw()),
            Some(format!("s{n}").as_str())
        );
    }
    let received = there[0].received_bytes_per_s.unwrap() as f64 * 8e-6;
    assert!((received / mbits - 1.0).abs() < 0.3, "{received} of {mbits} Mbit/s");
    sending.stop();
}

#[test]
fn under_our_control_subflows_stand_with_their_paths_and_masks() {
    let Some((_turn, net)) = two_paths("status of our control") else { return };
    let law = Registered::register(Control::LIA).unwrap();
    net.set_default(law.name());
    let sending = [
        send(&net, PORT, Kind::Mptcp, Kind::Mptcp),
        send(&net, PORT + 1, Kind::Tcp, Kind::Tcp),
        send(&net, PORT + 2, Kind::Tcp, Kind::Mptcp),
    ];
    let (status, seen) = watch(&net.client, 4);

    let text = status.text(Fit::All);
    let control = status.controls.iter().find(|one| one.kernel_name == law.name()).unwrap();
    assert!(control.registered && !control.pinned, "{text}");
    let keeper = control.kept.as_ref();
    let this = std::process::id();
    assert!(matches!(keeper, Some(Keeper::Process { pid, .. }) if *pid == this), "{text}");
    assert!(text.contains("removed when it ends; default of "), "{text}");
    let map = status.map.unwrap();
    assert!(map.entries >= 2 && map.entries_max > 1000, "{map:?}");
    let verified = law.verified_insns().unwrap();
    assert_eq!(control.programs.len(), verified.len());
    assert_eq!(control.verified_insns(), verified.iter().map(|program| program.1).sum::<u32>());
    let default: Vec<u32> = control.default_in.iter().map(|default| default.inum).collect();
    for host in [&net.client, &net.server] {
        assert!(default.contains(&host.inum), "{text}");
    }
    assert!(control.counters["joins"] >= 6, "{text}");
    assert_eq!(control.problems().count(), 0, "{text}");

    let coupled: Vec<_> = seen.iter().filter(|one| one.subflows.len() == 2).collect();
    assert_eq!(coupled.len(), 1, "{text}");
    assert_eq!(coupled[0].law.as_deref(), Some("lia"));
    for (n, subflow) in coupled[0].subflows.iter().enumerate() {
        let other = Some(vec![2 - n as u8]);
        assert_eq!((subflow.path, &subflow.coupled_with), (Some(n as u8 + 1), &other), "{text}");
        // It carries data; now and then nothing is in flight, which is idle.
        assert!(matches!(subflow.path_state, Some("active" | "idle")), "{text}");
    }
    // The other side only receives.
    assert!(text.contains(" receiving ") && !text.contains(" joining "), "{text}");
    // One namespace alone.
    let alone = Status::look_in((*net.server).clone());
    assert_eq!(alone.namespaces.len(), 1);
    assert_eq!(connections(&alone, &net.server).len(), 3);
    let (tcp, mptcp): (Vec<_>, Vec<_>) =
        seen.iter().filter(|one| one.subflows.len() == 1).partition(|one| one.token.is_none());
    assert_eq!((tcp.len(), mptcp.len()), (1, 1), "{text}");
    assert!(mptcp[0].fell_back && !tcp[0].fell_back);
    for one in [tcp[0], mptcp[0]] {
        assert_eq!(one.law.as_deref(), Some("lia"));
        // Its state is the socket's own, not in the map.
        assert_eq!(one.subflows[0].coupled_with, None, "{text}");
    }
    sending.into_iter().for_each(Sending::stop);
    net.set_default("reno");
}

#[test]
fn what_a_detector_found_is_shown_with_how_long_and_how_sure() {
    let Some((_turn, net)) = two_paths("status of a detector") else { return };
    let law = Registered::register("lia+xcorr".parse().unwrap()).unwrap();
    net.set_default(law.name());
    // Two connections, whose losses make the queue of each link change.
    let sending = [1, 2].map(|n| send(&net, PORT + n, Kind::Mptcp, Kind::Mptcp));
    let detection = |status: &Status| {
        let connections = connections(status, &net.client).into_iter();
        connections.filter_map(|one| one.detection).collect::<Vec<_>>()
    };
    let mut undecided = None;
    wait_until(60, || {
        let status = Status::look();
        let all = detection(&status);
        let is_alone = |found: &Detection| {
            let groups = found.groups.iter();
            groups.map(|group| (group.found, &group.paths[..])).collect::<Vec<_>>()
                == [(Found::Alone, &[1][..]), (Found::Alone, &[2])]
        };
        undecided = undecided.take().or_else(|| {
            let mut groups = all.iter().flat_map(|found| &found.groups);
            groups.find(|group| group.found == Found::Undecided).cloned()
        });
        let Some(found) = all.iter().find(|found| is_alone(found)) else {
            return Err(format!("{all:?}"));
        };
        assert_eq!((found.detector, found.runs), ("xcorr", true));
        let pair = &found.pairs[0];
        assert_eq!((found.pairs.len(), pair.paths), (1, [1, 2]));
        // The answer may be one of an interval later than the decision that was read with it.
        if pair.answer != Some("separate") {
            return Err(format!("{found:?}"));
        }
        let (seconds, confidence) = (found.groups[0].for_s, found.groups[0].confidence);
        assert_eq!((confidence, pair.confidence), (Some(0.95), Some(0.95)));
        assert!(pair.concordance.unwrap() < 0.5 && pair.observations.unwrap() > 0, "{found:?}");
        let decided = found.decided_s.unwrap();
        if decided > 5.0 || seconds.is_none_or(|seconds| seconds > 60.0) {
            return Err(format!("{found:?}"));
        }
        let text = status.text(Fit::All);
        assert!(text.contains("  #1 has a bottleneck of its own for "), "{text}");
        assert!(
            text.contains(" decisions ") && text.contains("map of detected connections: "),
            "{text}"
        );
        let lines = status.prometheus();
        let alone = lines.lines().find(|line| line.contains("found=\"alone\""));
        let alone = alone.and_then(|line| line.rsplit(' ').next()?.parse::<u32>().ok());
        assert!(alone.is_some_and(|alone| alone >= 2), "{lines}");
        let control = status.controls.iter().find(|one| one.kernel_name == law.name()).unwrap();
        let [decisions, changed] = ["decisions", "regroupings"].map(|name| control.counters[name]);
        assert!(0 < changed && changed < decisions, "{changed} of {decisions}");
        Ok(())
    });
    // Before that nothing was known, and why was said; the machine may have been too slow to see it.
    if let Some(group) = undecided {
        assert!(group.why.is_some() && group.confidence.is_none(), "{group:?}");
    }
    sending.into_iter().for_each(Sending::stop);
    net.set_default("reno");
}

/// What check finds of one kind in a host.
fn find(host: &Namespace, what: &str) -> Vec<Item> {
    let network = check(host).unwrap().network;
    network.into_iter().filter(|item| item.what == what).collect()
}

fn mistakes(host: &Namespace) -> Vec<Item> {
    let network = check(host).unwrap().network;
    network.into_iter().filter(|item| item.verdict == Verdict::Mistake).collect()
}

/// Types what an item says.
fn follow(item: &Item) {
    for line in &item.fix {
        let words: Vec<&str> = line.split(' ').collect();
        run(words[0], &words[1..]);
    }
}

#[test]
fn what_check_says_to_type_repairs_the_mistake() {
    let Some((_turn, net)) = two_paths("check of MPTCP") else { return };
    let client = &net.client;
    assert_eq!(mistakes(client), [], "as the network is made");

    sysctl(client, "net/mptcp/enabled", "0").unwrap();
    let items = find(client, "MPTCP");
    assert_eq!(items[0].verdict, Verdict::Missing);
    follow(&items[0]);
    assert_eq!(find(client, "MPTCP")[0].verdict, Verdict::Ok);

    ip(client, "mptcp limits set subflows 0");
    follow(&find(client, "limits")[0]);
    assert_eq!(find(client, "limits")[0].verdict, Verdict::Ok);

    ip(client, "mptcp endpoint flush");
    let items = find(client, "endpoints");
    assert_eq!(items[0].verdict, Verdict::Mistake);
    follow(&items[0]);
    let items = find(client, "endpoint");
    assert!(items[0].seen.starts_with("10.77.2.1 on c2"), "{items:?}");

    // The default route leaves by the first path: so would the second one's packets.
    ip(client, "rule del from 10.77.2.1");
    ip(client, "mptcp endpoint flush");
    ip(client, "mptcp endpoint add 10.77.2.1 subflow");
    let items = find(client, "source route");
    assert!(items[0].seen.contains("leave by c1"), "{items:?}");
    assert!(items[0].fix[0].contains(" via 10.77.2.2 dev c2 "), "{items:?}");
    follow(&items[0]);
    assert_eq!(find(client, "source route"), []);
    assert_eq!(mistakes(client), []);
}

#[test]
fn check_reports_connections_that_fell_back_or_have_one_subflow() {
    let Some((_turn, net)) = two_paths("check of connections") else { return };
    let client = &net.client;
    let fallen = send(&net, PORT, Kind::Tcp, Kind::Mptcp);
    let items = find(client, "fallback");
    assert_eq!(items.len(), 2, "{items:?}");
    assert!(items[0].seen.contains("MPCapableFallbackSYNACK"), "{items:?}");
    assert!(items[1].seen.contains(&net.address(PORT).to_string()), "{items:?}");
    let listeners = find(&net.server, "listeners");
    assert!(listeners[0].seen.ends_with(&PORT.to_string()), "{listeners:?}");
    assert!(listeners[0].fix[1].contains("env GODEBUG=multipathtcp=2 "), "{listeners:?}");

    ip(client, "mptcp endpoint flush");
    let alone = send(&net, PORT + 1, Kind::Mptcp, Kind::Mptcp);
    wait_until(10, || match find(client, "subflows").first() {
        Some(item) if item.seen.starts_with("1 of 1 connection with only one") => Ok(()),
        item => Err(format!("{item:?}")),
    });
    fallen.stop();
    alone.stop();
}
