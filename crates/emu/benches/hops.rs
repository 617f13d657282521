//! How late packets are: four hosts, two paths of 100 Mbit/s, TCP in each direction of each.

#[path = "../tests/support/mod.rs"]
mod support;

use std::fs;
use std::io::{Read, Write};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use narrows_emu::{DeviceConfig, HostConfig, Route, Testbed};
use narrows_net::{Limit, LinkConfig, MILLISECOND, Nanos, Network, Rate};
use support::{alone, tcp, v4};

const RATE: u64 = 100_000_000;
const WARM_UP: Duration = Duration::from_secs(2);
const TIME: Duration = Duration::from_secs(10);

/// CPU time of the thread that carries, in ticks of 10 ms.
fn ticks() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").expect("/proc").flatten();
    let stats = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    let wire = stats.into_iter().find(|stat| stat.contains("(nr-wire)")).expect("it runs");
    let fields: Vec<&str> = wire.split(' ').collect();
    // User and system time, proc_pid_stat(5).
    fields[13..15].iter().map(|field| field.parse::<u64>().expect("a number")).sum()
}

fn ms(time: Nanos) -> f64 {
    time as f64 / MILLISECOND as f64
}

fn main() {
    let Some(_alone) = alone("emulated hops") else { return };
    let hosts: Vec<HostConfig> = (1..=4)
        .map(|host| {
            let addresses = vec![v4(host, 1)];
            let device = DeviceConfig { name: "path".into(), mtu: 1500, addresses };
            HostConfig { name: format!("host{host}"), devices: vec![device] }
        })
        .collect();
    let testbed = Testbed::new(&hosts).expect("a testbed");
    let mut network = Network::new(1);
    let pairs = [(1, 2), (2, 1), (3, 4), (4, 3)];
    let routes = pairs.map(|(from, to)| {
        let config = LinkConfig {
            rate: Rate::Constant(RATE),
            delay: 10 * MILLISECOND,
            limit: Limit::Time(40 * MILLISECOND),
            ..LinkConfig::default()
        };
        let link = network.add_link(config).expect("a link");
        let route = network.add_route(&[link]).expect("a route");
        Route { from: v4(from, 1), to: v4(to, 1), route, strips_mptcp: false }
    });
    let wire = testbed.start(network, &routes, Vec::new()).expect("a wire");
    let host = |number: u8| testbed.host(&format!("host{number}")).expect("it was made");
    let until = Instant::now() + WARM_UP + TIME;
    scope(|scope| {
        for (from, to) in pairs {
            let [mut sender, mut receiver] = tcp([host(from), host(to)], v4(to, 1), 80);
            scope.spawn(move || {
                while Instant::now() < until {
                    sender.write_all(&[7; 1 << 16]).expect("there is a receiver");
                }
            });
            scope.spawn(move || while receiver.read(&mut [0; 1 << 16]).expect("data") > 0 {});
        }
        sleep(WARM_UP);
        wire.reset();
        let (began, cpu) = (Instant::now(), ticks());
        sleep(TIME);
        let (time, cpu) = (began.elapsed().as_secs_f64(), (ticks() - cpu) as f64 / 100.0);
        let fitness = wire.fitness();
        let bytes = wire.with(|network, _| {
            network.links().map(|link| network.counters(link).bytes_sent).collect::<Vec<_>>()
        });
        let rates = bytes.expect("it carries").into_iter().map(|bytes| 8e-6 * bytes as f64 / time);
        let rates: Vec<String> = rates.map(|rate| format!("{rate:.1}")).collect();
        println!("throughput  {} Mbit/s", rates.join(", "));
        println!("packets     {:.0} /s", fitness.packets as f64 / time);
        for (name, of) in [("lateness", fitness.lateness), ("reading", fitness.reading)] {
            let [p50, p99, max] = [of.p50, of.p99, of.max].map(ms);
            println!("{name:11} p50 {p50:.3}, p99 {p99:.3}, max {max:.3} ms");
        }
        println!("worst second off by {:.2} % of a link's rate", 100.0 * fitness.worst_second);
        println!("wire's CPU  {:.0} % of a core", 100.0 * cpu / time);
    });
}
