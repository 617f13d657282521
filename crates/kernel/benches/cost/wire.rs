//! Two hosts in network namespaces without a name, and a path between them for each subflow.
//!
//! A namespace lives as long as this process holds it, so nothing is left behind however the
//! process ends.

use narrows_netns::Namespace;
use nix::sched::{CloneFlags, unshare};
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::process::{self, Command};
use std::thread;

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
    pub client: File,
    pub server: File,
    _router: Option<File>,
    paths: usize,
    /// Of the links to the server.
    server_net: u8,
}

/// The network of a link is 10.NET.PATH.0/24; its left end is .1, its right end .2.
const LEFT_NET: u8 = 77;
const RIGHT_NET: u8 = 78;

impl Wire {
    pub fn lay(paths: usize, bottleneck: Option<Bottleneck>) -> Result<Wire> {
        let (client, server) = (namespace(paths)?, namespace(paths)?);
        let router = bottleneck.map(|_| namespace(paths)).transpose()?;
        let server_net = if bottleneck.is_some() { RIGHT_NET } else { LEFT_NET };
        for path in 0..paths {
            let (Some(bottleneck), Some(router)) = (bottleneck, &router) else {
                link((&client, "nr"), (&server, "nr"), LEFT_NET, path)?;
                continue;
            };
            link((&client, "nr"), (router, "in"), LEFT_NET, path)?;
            link((router, "out"), (&server, "nr"), RIGHT_NET, path)?;
            inside(&client, || {
                // Packets as they are on a wire: one acknowledgement for every second.
                ip(&format!("link set nr{path} gso_max_segs 1"))?;
                ip(&format!("route add 10.{RIGHT_NET}.{path}.0/24 via 10.{LEFT_NET}.{path}.2"))
            })?;
            inside(&server, || {
                ip(&format!("route add 10.{LEFT_NET}.{path}.0/24 via 10.{RIGHT_NET}.{path}.1"))
            })?;
            inside(router, || {
                fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
                let (rate, queue) = (bottleneck.mbit_per_s, bottleneck.queue_packets * 1_514);
                run(&format!(
                    "tc qdisc add dev out{path} root tbf rate {rate}mbit burst 5kb limit {queue}"
                ))
            })?;
        }
        inside(&server, || {
            (1..paths).try_for_each(|path| {
                ip(&format!("mptcp endpoint add 10.{server_net}.{path}.2 dev nr{path} signal"))
            })
        })?;
        Ok(Wire { client, server, _router: router, paths, server_net })
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
        inside(&self.client, || {
            let table = fs::read_to_string("/proc/thread-self/net/dev")?;
            let sent = |path: usize| {
                let name = format!("nr{path}:");
                let mut fields = table.lines().map(str::split_whitespace);
                let mut fields = fields
                    .find_map(|mut fields| (fields.next() == Some(&name)).then_some(fields))?;
                fields.nth(8)?.parse().ok()
            };
            (0..self.paths).map(|path| sent(path).ok_or_else(|| "no counters".into())).collect()
        })
    }
}

/// Does `what` on a thread of its own inside the namespace.
pub fn inside<T: Send>(namespace: &File, what: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    Namespace::named(&file(namespace))?.run(what)?
}

/// What stands for the namespace in this process and in those it starts.
fn file(namespace: &File) -> String {
    format!("/proc/{}/fd/{}", process::id(), namespace.as_raw_fd())
}

/// A new one, whose MPTCP takes as many subflows as there are paths.
fn namespace(paths: usize) -> Result<File> {
    let make = move || {
        unshare(CloneFlags::CLONE_NEWNET)?;
        ip("link set lo up")?;
        ip(&format!("mptcp limits set subflows {0} add_addr_accepted {0}", paths - 1))?;
        Ok(File::open("/proc/thread-self/ns/net")?)
    };
    thread::spawn(make).join().expect("no panic making a namespace")
}

/// A veth pair from left to right, each end named by its prefix and the path's number.
fn link(left: (&File, &str), right: (&File, &str), net: u8, path: usize) -> Result<()> {
    let peer = format!("name {}{path} netns {}", right.1, file(right.0));
    inside(left.0, || ip(&format!("link add {}{path} type veth peer {peer}", left.1)))?;
    for (host, (namespace, prefix)) in [(1, left), (2, right)] {
        inside(namespace, || {
            ip(&format!("address add 10.{net}.{path}.{host}/24 dev {prefix}{path}"))?;
            ip(&format!("link set {prefix}{path} up"))
        })?;
    }
    Ok(())
}

fn ip(arguments: &str) -> Result<()> {
    run(&format!("ip {arguments}"))
}

/// Runs a command in this thread's namespace.
fn run(command: &str) -> Result<()> {
    let mut words = command.split_whitespace();
    let name = words.next().expect("a command");
    let output =
        Command::new(name).args(words).output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim()).into())
}
