//! What the tests share: two hosts with a link each way, and what must not change. It is compiled
//! into each test that says so, and none uses all of it.
#![allow(dead_code)]

pub mod root;

use std::fs::File;
use std::net::IpAddr;

use narrows_emu::{DeviceConfig, Error, HostConfig, Packet, Testbed, Way, Wire};
use narrows_net::{LinkConfig, LinkId, Network};
use nix::fcntl::{Flock, FlockArg};

/// Real time for one test alone, also of other processes: what tests measure would be the others'
/// load.
pub struct Alone(#[expect(dead_code, reason = "held")] Flock<File>);

impl Alone {
    /// None, and a word on the terminal, where there is no root or no TUN.
    pub fn with(test: &str) -> Option<Alone> {
        if let Err(reason @ (Error::NotRoot | Error::NoTun(_))) = Testbed::new(&[]) {
            println!("{test}: skipped, {reason}");
            return None;
        }
        let file = File::create("/run/narrows-test.lock").expect("/run is root's");
        println!("{test}");
        Some(Alone(Flock::lock(file, FlockArg::LockExclusive).expect("flock")))
    }
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

/// A network of two links a path, to the right and to the left, and the ways over them.
pub fn network(paths: &[(LinkConfig, LinkConfig)]) -> (Network<Packet>, Vec<Way>) {
    let mut network = Network::new(1);
    let mut ways = Vec::new();
    for (device, (right, left)) in (1..).zip(paths) {
        for (link, from, to) in [(right, 1, 2), (left, 2, 1)] {
            let link = network.add_link(link.clone()).expect("a link");
            let route = network.add_route(&[link]).expect("a route");
            for address in [v4, v6] {
                let (from, to) = (address(from, device), address(to, device));
                ways.push(Way { from, to, route, strips_mptcp: false });
            }
        }
    }
    (network, ways)
}

/// The link of the first path, to the right and to the left.
pub const RIGHT: LinkId = LinkId(0);
/// Likewise.
pub const LEFT: LinkId = LinkId(1);

/// Two hosts and one path, which carries.
pub fn pair(right: LinkConfig, left: LinkConfig) -> (Testbed, Wire) {
    let testbed = two_hosts(1);
    let (network, ways) = network(&[(right, left)]);
    let wire = testbed.start(network, &ways, Vec::new()).expect("a wire");
    (testbed, wire)
}
