//! Networks with a mistake each, made up or recorded, and what is said of them.

use super::super::item::verdict;
use super::*;
use narrows_testkit::recorded_netlink as answer;
use std::net::IpAddr;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Two interfaces with an address each; the default route leaves by the first.
fn two_paths() -> Network {
    let interface =
        |index, name: &str| Interface { index, name: name.into(), usable: true, bridge: false };
    let on = |interface, text| Address { address: address(text), interface, global: true };
    Network {
        enabled: Some(true),
        kernel_manager: true,
        limits: Some(Limits { subflows: 2, add_addr_accepted: 0 }),
        endpoints: Some(Vec::new()),
        interfaces: vec![interface(1, "wlan0"), interface(2, "wwan0")],
        addresses: vec![on(1, "192.168.1.7"), on(2, "10.8.0.2")],
        default: Some(1),
        send_buffer_max: 4 << 20,
        ..Network::default()
    }
}

fn endpoint(text: &str) -> Endpoint {
    Endpoint { id: 3, address: address(text), port: 0, interface: 2, flags: 2 }
}

fn find<'a>(items: &'a [Item], what: &str) -> &'a Item {
    items.iter().find(|item| item.what == what).unwrap()
}

#[test]
fn two_interfaces_and_no_endpoint_is_a_mistake_with_the_command_for_the_second() {
    let items = two_paths().judge();
    let item = find(&items, "endpoints");
    assert_eq!(item.verdict, Verdict::Mistake);
    assert_eq!(item.fix, ["ip mptcp endpoint add 10.8.0.2 dev wwan0 subflow"]);

    let with = Network { endpoints: Some(vec![endpoint("10.8.0.2")]), ..two_paths() };
    assert!(with.judge().iter().all(|item| item.verdict == Verdict::Ok));
}

#[test]
fn an_interface_that_another_user_named_is_one_word_of_the_command_to_type() {
    let mut network = two_paths();
    network.interfaces[1].name = "$(id)\u{1b}[2J'".into();
    let items = network.judge();
    let item = find(&items, "endpoints");
    assert!(item.seen.contains("wlan0, $(id)\\u001b[2J' are usable"), "{}", item.seen);
    assert_eq!(item.fix, [r"ip mptcp endpoint add 10.8.0.2 dev $'$(id)\033[2J\'' subflow"]);
}

#[test]
fn routes_without_timestamps_of_1_us_are_counted() {
    let mut network = two_paths();
    assert_eq!(verdict(&network.judge(), "timestamps"), None, "no connection needs any");
    let peer = address("198.51.100.1");
    network.us_timestamps = vec![(address("10.8.0.2"), peer, true)];
    assert_eq!(verdict(&network.judge(), "timestamps"), None);
    network.us_timestamps.push((address("192.168.1.7"), peer, false));
    let items = network.judge();
    let item = find(&items, "timestamps");
    assert_eq!(item.verdict, Verdict::Note);
    let seen = "of 1 ms on 1 of 2 routes of subflows, as from 192.168.1.7 to 198.51.100.1;";
    assert!(item.seen.starts_with(seen), "{}", item.seen);
}

#[test]
fn a_control_of_a_route_is_noted() {
    let mut network = two_paths();
    assert_eq!(verdict(&network.judge(), "routes"), None);
    network.own_controls =
        vec![("default".into(), "cubic".into()), ("10.9.0.0/16".into(), "\u{1b}[2J".into())];
    let items = network.judge();
    let item = find(&items, "routes");
    assert_eq!(item.verdict, Verdict::Note);
    let seen =
        "with a control of their own, which comes before the default: 2, as default congctl cubic";
    assert_eq!(item.seen, seen);
}

#[test]
fn a_bridge_for_containers_is_no_second_path() {
    let mut network = two_paths();
    network.interfaces[1].bridge = true;
    assert_eq!(verdict(&network.judge(), "endpoints"), Some(Verdict::Note));
}

#[test]
fn an_endpoint_that_left_the_machine_is_a_mistake() {
    let network = Network { endpoints: Some(vec![endpoint("10.9.9.9")]), ..two_paths() };
    let items = network.judge();
    assert_eq!(find(&items, "endpoint").fix, ["ip mptcp endpoint delete id 3"]);
}

#[test]
fn packets_that_leave_by_the_wrong_interface_ask_for_a_source_route() {
    let mut network = two_paths();
    let from = network.addresses[1];
    let to = address("198.51.100.1");
    let by = |interface| Some(Route { interface, gateway: None });
    let behind = Some(Route { interface: 2, gateway: Some(address("10.8.0.1")) });
    network.trials = vec![Trial { from, to, route: by(1), behind }];
    let items = network.judge();
    let item = find(&items, "source route");
    assert_eq!(item.verdict, Verdict::Mistake);
    let fix = [
        "ip route replace default via 10.8.0.1 dev wwan0 table 102",
        "ip rule add from 10.8.0.2 table 102",
    ];
    assert_eq!(item.fix, fix);

    network.trials = vec![Trial { from, to, route: by(1), behind: by(2) }];
    let items = network.judge();
    let neighbour = "ip route replace 198.51.100.1 dev wwan0 table 102";
    assert_eq!(find(&items, "source route").fix[0], neighbour);

    network.trials = vec![Trial { from, to, route: by(2), behind }];
    assert_eq!(verdict(&network.judge(), "source route"), None);
}

#[test]
fn limits_that_allow_no_subflow_and_addresses_not_taken_up_are_mistakes() {
    let mut network = two_paths();
    network.limits = Some(Limits::default());
    network.counters.insert("AddAddr".into(), 3);
    let items = network.judge();
    let fixes: Vec<_> =
        items.iter().filter(|item| item.what == "limits").flat_map(|item| &item.fix).collect();
    let wanted = ["ip mptcp limits set subflows 2", "ip mptcp limits set add_addr_accepted 2"];
    assert_eq!(fixes, wanted);
}

#[test]
fn an_endpoint_on_the_way_out_needs_no_subflow_beside_the_first() {
    let endpoints = Some(vec![endpoint("192.168.1.7"), endpoint("10.8.0.2")]);
    let with = |subflows| {
        let limits = Some(Limits { subflows, add_addr_accepted: 0 });
        Network { limits, endpoints: endpoints.clone(), ..two_paths() }
    };
    assert_eq!(verdict(&with(1).judge(), "limits"), Some(Verdict::Ok));
    assert_eq!(verdict(&with(0).judge(), "limits"), Some(Verdict::Mistake));
    // Both are further ones where packets leave by neither.
    let inner = Network { default: None, ..with(1) };
    assert_eq!(verdict(&inner.judge(), "limits"), Some(Verdict::Mistake));
}

#[test]
fn counters_show_fallback_and_joins_without_answer() {
    let mut network = two_paths();
    network.counters.insert("MPCapableFallbackACK".into(), 2);
    network.counters.insert("MPJoinSynTx".into(), 5);
    network.counters.insert("MPJoinSynAckRx".into(), 4);
    let items = network.judge();
    assert_eq!(
        find(&items, "joins").seen.split(':').next(),
        Some("1 of 5 joins sent not answered")
    );
    assert!(find(&items, "fallback").seen.starts_with("2 connections in total"));
    assert_eq!(find(&items, "joins").verdict, Verdict::Mistake);
    assert_eq!(find(&items, "fallback").verdict, Verdict::Mistake);
    network.counters.insert("MPCapableSYNRX".into(), 20);
    assert_eq!(verdict(&network.judge(), "fallback"), Some(Verdict::Note));
    network.counters.insert("MPJoinSynTx".into(), 5000);
    network.counters.insert("MPJoinSynAckRx".into(), 4999);
    assert_eq!(verdict(&network.judge(), "joins"), Some(Verdict::Note));
    network.counters.insert("MPJoinSynAckRx".into(), 5000);
    assert_eq!(verdict(&network.judge(), "joins"), None);
    // A server whose connections are short refuses some that come as these end.
    network.counters.insert("MPJoinRejected".into(), 124);
    network.counters.insert("MPJoinSynRx".into(), 1759);
    assert_eq!(verdict(&network.judge(), "joins"), Some(Verdict::Note));
    network.counters.insert("MPJoinSynRx".into(), 200);
    assert_eq!(verdict(&network.judge(), "joins"), Some(Verdict::Mistake));
    network.counters.remove("MPJoinRejected");
    network.counters.insert("MPJoinNoTokenFound".into(), 20);
    assert_eq!(verdict(&network.judge(), "joins"), Some(Verdict::Note));
}

/// A kernel's own answers: a connection with two subflows, whose second one had to wait.
fn living() -> Network {
    let socket = |name| Socket::parse(&answer(name)).unwrap();
    let connection = Connection::parse(&answer("connection")).unwrap();
    let mut network =
        Network { connections: vec![connection], sockets: vec![socket("joined")], ..two_paths() };
    network.sockets.push(network.sockets[0].clone());
    network
}

#[test]
fn a_connection_with_one_subflow_is_reported() {
    let mut network = living();
    assert_eq!(verdict(&network.judge(), "subflows"), Some(Verdict::Ok));
    // A server whose clients join needs no endpoint.
    assert_eq!(verdict(&network.judge(), "endpoints"), Some(Verdict::Note));
    network.connections[0].extra_subflows = 0;
    network.sockets.pop();
    assert_eq!(verdict(&network.judge(), "subflows"), Some(Verdict::Mistake));
    assert_eq!(verdict(&network.judge(), "endpoints"), Some(Verdict::Mistake));
}

#[test]
fn a_host_that_only_serves_announces_its_addresses() {
    let mut network = living();
    network.connections[0].extra_subflows = 0;
    network.sockets.pop();
    let fix = |network: &Network| find(&network.judge(), "endpoints").fix.concat();
    assert_eq!(fix(&network), "ip mptcp endpoint add 10.8.0.2 dev wwan0 subflow");
    let mut listener = network.sockets[0].clone();
    listener.state = State::Listen;
    (listener.mptcp, listener.subflow) = (true, None);
    listener.local = network.connections[0].local;
    listener.local.set_ip(address("0.0.0.0"));
    network.sockets.push(listener);
    assert_eq!(fix(&network), "ip mptcp endpoint add 10.8.0.2 dev wwan0 signal");
    // One that also begins connections: to itself, and to others.
    network.connections[0].local.set_port(1);
    let peer = network.connections[0].remote.ip();
    network.connections[0].remote.set_ip(address("127.0.0.1"));
    assert_eq!(fix(&network), "ip mptcp endpoint add 10.8.0.2 dev wwan0 signal");
    network.connections[0].remote.set_ip(peer);
    assert_eq!(fix(&network), "ip mptcp endpoint add 10.8.0.2 dev wwan0 subflow");
}

#[test]
fn buffers_are_too_small_where_paths_carry_more_or_subflows_wait() {
    let mut network = living();
    for socket in &mut network.sockets {
        let info = socket.info.as_mut().unwrap();
        (info.busy_time, info.rwnd_limited, info.sndbuf_limited) = (10_000_000, 0, 0);
        // 8 Mbit/s and 100 ms on each of two: 2 * 2 MB/s * 0.1 s.
        (info.delivery_rate, info.rtt) = (1_000_000, 100_000);
    }
    network.send_buffer_max = 400_000;
    assert_eq!(verdict(&network.judge(), "buffers"), None);
    network.send_buffer_max = 399_999;
    let items = network.judge();
    assert_eq!(find(&items, "buffers").fix, ["sysctl -w net.ipv4.tcp_wmem=\"4096 16384 524288\""]);
    network.send_buffer_max = 400_000;
    network.sockets[1].info.as_mut().unwrap().rwnd_limited = 1_100_000;
    assert!(find(&network.judge(), "buffers").seen.starts_with("1 of 2 subflows"));

    let info = network.sockets[1].info.as_mut().unwrap();
    (info.rwnd_limited, info.sndbuf_limited) = (0, 1_100_000);
    network.sockets[1].send_buffer = 399_999;
    assert_eq!(verdict(&network.judge(), "buffers"), None);
    network.sockets[1].send_buffer = 400_000;
    assert!(find(&network.judge(), "buffers").seen.contains("tcp_wmem"));

    // What one subflow has in its own buffer the other cannot send.
    network.sockets[1].send_buffer = 399_999;
    network.sockets[1].cookie += 1;
    network.sockets[0].info.as_mut().unwrap().sndbuf_limited = 1_100_000;
    network.sockets[0].send_buffer = 400_000;
    network.sockets[1].info.as_mut().unwrap().notsent_bytes = 1_900_000;
    assert!(find(&network.judge(), "buffers").seen.contains("tcp_wmem"));
    network.sockets[1].info.as_mut().unwrap().notsent_bytes = 21_500_000;
    let seen = find(&network.judge(), "buffers").seen.clone();
    assert!(seen.starts_with("1 subflow with up to 21 s of data waiting"), "{seen}");
    assert_eq!(network.judge().iter().filter(|item| item.what == "buffers").count(), 1);
    // Another connection's wait is its own.
    let mut other = network.sockets[0].clone();
    other.subflow.as_mut().unwrap().token += 1;
    network.sockets.push(other);
    assert!(find(&network.judge(), "buffers").seen.contains("1 of 3 subflows"));
    network.sockets.pop();
    // Alone it has nobody who could.
    let sibling = network.sockets.remove(0);
    assert_eq!(verdict(&network.judge(), "buffers"), None);
    network.sockets.insert(0, sibling);

    // A few requests do not show how much a path carries.
    for socket in &mut network.sockets {
        socket.info.as_mut().unwrap().busy_time = 500_000;
    }
    network.send_buffer_max = 1;
    assert_eq!(verdict(&network.judge(), "buffers"), None);
}

#[test]
fn plain_listeners_are_noted_once_it_is_known_which_are_plain() {
    let socket = |name| Socket::parse(&answer(name)).unwrap();
    let sockets = vec![socket("listener"), socket("plain-listener")];
    let items = Network { sockets, ..two_paths() }.judge();
    assert_eq!(find(&items, "listeners").seen, "without MPTCP, on ports 5001");
}

#[test]
fn a_kernel_without_mptcp_is_not_judged_further() {
    let items = Network { enabled: None, ..two_paths() }.judge();
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].verdict, Verdict::Missing);
    let off = Network { enabled: Some(false), ..two_paths() };
    assert_eq!(find(&off.judge(), "MPTCP").fix, ["sysctl net.mptcp.enabled=1"]);
}
