//! What the tests share: two hosts with a link each way, and what must not change. It is compiled
//! into each test that says so, and none uses all of it.
#![allow(dead_code)]

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use narrows_emu::{DeviceConfig, Host, HostConfig, Packet, Route, Testbed, Wire};
use narrows_net::{LinkConfig, LinkId, Network};
use narrows_testkit::machine::{Turn, root, tun, turn};

/// The machine for one test alone. None, and a word on the terminal, where there is no root or no TUN.
pub fn alone(test: &str) -> Option<Turn> {
    turn(test, root().and_then(|()| tun()))
}

/// The address of host `host` on its device `device`, both from 1.
pub fn v4(host: u8, device: u8) -> IpAddr {
    IpAddr::from([10, device, 0, host])
}

/// Likewise.
pub fn v6(host: u8, device: u8) -> IpAddr {
    IpAddr::from([0xfd6e, 0x72, 0, 0, 0, 0, device.into(), host.into()])
}

/// `left` is host 1, `right` is host 2; devices `path1`, `path2`, ...
pub fn two_hosts(devices: u8) -> Testbed {
    Testbed::new(&hosts(devices)).expect("a testbed")
}

/// What they are made of.
pub fn hosts(devices: u8) -> Vec<HostConfig> {
    let host = |number, name: &str| HostConfig {
        name: name.into(),
        devices: (1..=devices)
            .map(|device| DeviceConfig {
                name: format!("path{device}"),
                mtu: 1500,
                addresses: vec![v4(number, device), v6(number, device)],
            })
            .collect(),
    };
    vec![host(1, "left"), host(2, "right")]
}

/// A network of two links a path, to the right and to the left, and the routes over them.
pub fn network(paths: &[(LinkConfig, LinkConfig)]) -> (Network<Packet>, Vec<Route>) {
    let mut network = Network::new(1);
    let mut routes = Vec::new();
    for (device, (right, left)) in (1..).zip(paths) {
        for (link, from, to) in [(right, 1, 2), (left, 2, 1)] {
            let link = network.add_link(link.clone()).expect("a link");
            let route = network.add_route(&[link]).expect("a route");
            for address in [v4, v6] {
                let (from, to) = (address(from, device), address(to, device));
                routes.push(Route { from, to, route, strips_mptcp: false });
            }
        }
    }
    (network, routes)
}

/// The link of the first path, to the right and to the left.
pub const RIGHT: LinkId = LinkId(0);
/// Likewise.
pub const LEFT: LinkId = LinkId(1);

/// Two hosts and one path, which carries.
pub fn pair(right: LinkConfig, left: LinkConfig) -> (Testbed, Wire) {
    let testbed = two_hosts(1);
    let (network, routes) = network(&[(right, left)]);
    let wire = testbed.start(network, &routes, Vec::new()).expect("a wire");
    (testbed, wire)
}

/// The hosts of [`two_hosts`].
pub fn left_and_right(testbed: &Testbed) -> [&Host; 2] {
    ["left", "right"].map(|name| testbed.host(name).expect("it was made"))
}

/// Longer than any test leaves a host without an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A socket of a host.
pub fn udp(host: &Host, address: IpAddr, port: u16) -> UdpSocket {
    let socket = host.run(|| UdpSocket::bind(SocketAddr::new(address, port)));
    let socket = socket.expect("the host is there").expect("its address is");
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Both ends of a TCP connection, from `from` to `to`.
pub fn tcp([from, to]: [&Host; 2], address: IpAddr, port: u16) -> [TcpStream; 2] {
    let address = SocketAddr::new(address, port);
    let listener = to.run(|| TcpListener::bind(address)).unwrap().expect("its address");
    let client = from.run(|| TcpStream::connect_timeout(&address, PATIENCE)).unwrap();
    let client = client.expect("a connection");
    let (server, _) = listener.accept().expect("a connection");
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
    }
    [client, server]
}

/// What a host's kernel has counted, from /proc/net: `IpExt`, `InCEPkts`, or of IPv6, `Ip6InCEPkts`.
pub fn counter(host: &Host, group: &str, name: &str) -> u64 {
    let read = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap();
    let text = host.run(|| read("netstat") + &read("snmp") + &read("snmp6")).unwrap();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(value) = line.strip_prefix(name).filter(|_| group.is_empty()) {
            return value.trim().parse().expect("a number");
        }
        if line.split(':').next() != Some(group) {
            continue;
        }
        let values = lines.next().expect("names, then values");
        let mut pairs = line.split(' ').zip(values.split(' '));
        if let Some((_, value)) = pairs.find(|(found, _)| *found == name) {
            return value.parse().expect("a number");
        }
    }
    panic!("no counter {group} {name}")
}
