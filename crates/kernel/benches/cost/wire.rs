//! Two hosts in network namespaces, and a path between them for each subflow.

use narrows_netns::{Namespace, set_sysctl};
use narrows_testkit::net::{Host, ip, run, sweep, veth};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};

use crate::Result;

/// A rate and a queue, each path's own.
///
/// It is on a router, a third namespace, as a qdisc of the sender's own would hold it back by TCP's
/// small queues and its window would not be the limit.
#[derive(Clone, Copy)]
pub struct Bottleneck {
    pub mbit_per_s: u32,
    pub queue_packets: u32,
}

/// Client, server and the paths between them: one MPTCP subflow on each.
pub struct Wire {
    pub client: Host,
    pub server: Host,
    _router: Option<Host>,
    paths: usize,
    /// Of the links to the server.
    server_net: u8,
}

/// The network of a link is 10.NET.PATH.0/24; its left end is .1, its right end .2.
const LEFT_NET: u8 = 77;
const RIGHT_NET: u8 = 78;

impl Wire {
    pub fn lay(paths: usize, bottleneck: Option<Bottleneck>) -> Wire {
        sweep();
        let (client, server) = (host("client", paths), host("server", paths));
        let router = bottleneck.map(|_| host("router", paths));
        let server_net = if bottleneck.is_some() { RIGHT_NET } else { LEFT_NET };
        for path in 0..paths {
            let (Some(bottleneck), Some(router)) = (bottleneck, &router) else {
                link((&client, "nr"), (&server, "nr"), LEFT_NET, path);
                continue;
            };
            link((&client, "nr"), (router, "in"), LEFT_NET, path);
            link((router, "out"), (&server, "nr"), RIGHT_NET, path);
            // Packets as they are on a wire: one acknowledgement for every second.
            ip(&client, &format!("link set nr{path} gso_max_segs 1"));
            let (there, back) = (format!("10.{RIGHT_NET}.{path}"), format!("10.{LEFT_NET}.{path}"));
            ip(&client, &format!("route add {there}.0/24 via {back}.2"));
            ip(&server, &format!("route add {back}.0/24 via {there}.1"));
            let forward = router.run(|| set_sysctl("net/ipv4/ip_forward", "1"));
            forward.and_then(|set| set).expect("a router");
            let (rate, queue) = (bottleneck.mbit_per_s, bottleneck.queue_packets * 1_514);
            let tbf = format!(
                "-n {} qdisc add dev out{path} root tbf rate {rate}mbit burst 5kb limit {queue}",
                router.name
            );
            run("tc", &tbf.split(' ').collect::<Vec<_>>());
        }
        for path in 1..paths {
            ip(
                &server,
                &format!("mptcp endpoint add 10.{server_net}.{path}.2 dev nr{path} signal"),
            );
        }
        Wire { client, server, _router: router, paths, server_net }
    }

    pub fn paths(&self) -> u64 {
        self.paths as u64
    }

    /// Where the server may listen: its address on the first path.
    pub fn server_address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::new(10, self.server_net, 0, 2), 5_001))
    }

    /// Bytes the client has sent on each path so far.
    pub fn sent(&self) -> Result<Vec<u64>> {
        self.client.run(|| {
            let table = fs::read_to_string("/proc/thread-self/net/dev")?;
            let sent = |path: usize| {
                let name = format!("nr{path}:");
                let mut fields = table.lines().map(str::split_whitespace);
                let mut fields = fields
                    .find_map(|mut fields| (fields.next() == Some(&name)).then_some(fields))?;
                fields.nth(8)?.parse().ok()
            };
            (0..self.paths).map(|path| sent(path).ok_or_else(|| "no counters".into())).collect()
        })?
    }
}

/// A new one, whose MPTCP takes as many subflows as there are paths.
fn host(name: &str, paths: usize) -> Host {
    let host = Host::new(name);
    ip(&host, &format!("mptcp limits set subflows {0} add_addr_accepted {0}", paths - 1));
    host
}

/// A veth pair from left to right, each end named by its prefix and the path's number.
fn link(left: (&Namespace, &str), right: (&Namespace, &str), net: u8, path: usize) {
    let name = |prefix: &str| format!("{prefix}{path}");
    veth((left.0, &name(left.1)), (right.0, &name(right.1)));
    for (last, (host, prefix)) in [(1, left), (2, right)] {
        ip(host, &format!("address add 10.{net}.{path}.{last}/24 dev {prefix}{path}"));
        ip(host, &format!("link set {prefix}{path} up"));
    }
}
