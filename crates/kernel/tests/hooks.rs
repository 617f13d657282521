//! Hooks that the kernel calls when one would not think so: before a socket is ready, and on its way
//! to another control.

use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use narrows_kernel::control::Registered;
use narrows_kernel::state::{self, Connection};
use narrows_laws::Control;
use narrows_netns::set_sysctl;
use narrows_testkit::net::run;
use narrows_testkit::wait_until;
use nix::libc;
use nix::sched::{CloneFlags, unshare};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read, Write};
use std::mem::{MaybeUninit, size_of, size_of_val, zeroed};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::thread;

mod support;

/// Does `work` with Reno loaded, in a network namespace where it is the default; not where this
/// process cannot load BPF programs, with a word on the terminal.
fn with_reno(test: &str, work: impl FnOnce(&Registered) + Send) {
    let here = narrows_kernel::available().map_err(|reason| reason.to_string());
    let Some(_turn) = support::turn_without_connections(test, here) else { return };
    let reno = Registered::register(Control::RENO).unwrap();
    thread::scope(|scope| {
        let inside = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            run("ip", &["link", "set", "lo", "up"]);
            set_sysctl("net/ipv4/tcp_congestion_control", reno.name()).unwrap();
            work(&reno);
        });
        inside.join().unwrap();
    });
    drop(reno);
}

/// Number of this thread's network namespace.
fn here() -> u32 {
    fs::metadata("/proc/thread-self/ns/net").unwrap().ino() as u32
}

/// Its connections.
fn connections() -> Vec<Connection> {
    let here = here();
    let all = state::connections().unwrap();
    all.into_iter().filter(|connection| connection.netns == here).collect()
}

fn counters(control: &Registered) -> HashMap<&'static str, u64> {
    control.counters().unwrap().into_iter().collect()
}

/// Both ends of a connection by TCP that sends its first data already with the SYN.
fn fast_open(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let std::net::SocketAddr::V4(to) = listener.local_addr().unwrap() else { unreachable!() };
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: to.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*to.ip()).to_be() },
        sin_zero: [0; 8],
    };
    let data = [7u8; 100];
    // SAFETY: the descriptor is checked and has no other owner, the pointers are to live values of
    // the lengths given.
    let client = unsafe {
        let client = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
        assert!(client >= 0, "{}", io::Error::last_os_error());
        let sent = libc::sendto(
            client,
            data.as_ptr().cast(),
            data.len(),
            libc::MSG_FASTOPEN,
            (&raw const address).cast(),
            size_of_val(&address) as u32,
        );
        assert_eq!(sent, data.len() as isize, "{}", io::Error::last_os_error());
        TcpStream::from_raw_fd(client)
    };
    let (mut server, _) = listener.accept().unwrap();
    server.read_exact(&mut [0; 100]).unwrap();
    (client, server)
}

#[test]
fn a_syn_with_data_is_acknowledged_before_the_socket_is_ready_and_takes_no_slot() {
    with_reno("data in the SYN", |reno| {
        // Client, server, and both without a cookie.
        set_sysctl("net/ipv4/tcp_fastopen", "0x607").unwrap();
        let listener = TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let backlog = 8;
        // SAFETY: the option's value is an int.
        let set = unsafe {
            libc::setsockopt(
                listener.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_FASTOPEN,
                (&raw const backlog).cast(),
                4,
            )
        };
        assert_eq!(set, 0, "{}", io::Error::last_os_error());
        // Half of all initial sequence numbers look as if a round were over.
        for _ in 0..20 {
            let (client, server) = fast_open(&listener);
            assert_eq!(joined(reno), 2);
            assert!(connections().is_empty());
            server.shutdown(Shutdown::Both).unwrap();
            drop((client, server));
        }
        let netstat = fs::read_to_string("/proc/thread-self/net/netstat").unwrap();
        assert_eq!(netstat_value(&netstat, "TCPFastOpenPassive"), 20);
        drained(reno, 40);
    });
}

fn netstat_value(netstat: &str, name: &str) -> u64 {
    let mut lines = netstat.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        if let Some(at) = names.split(' ').position(|known| known == name) {
            return values.split(' ').nth(at).unwrap().parse().unwrap();
        }
    }
    panic!("no {name}");
}

/// Sockets that run it now.
fn joined(control: &Registered) -> u64 {
    let counted = counters(control);
    counted["joins"] - counted["leaves"]
}

/// `sockets` have come and gone, and nothing is left of them.
fn drained(control: &Registered, sockets: u64) {
    wait_until(2, || match joined(control) {
        0 => Ok(()),
        left => Err(format!("{left} sockets")),
    });
    assert!(connections().is_empty());
    let counted = counters(control);
    assert_eq!((counted["joins"], counted["leaves"]), (sockets, sockets), "{counted:?}");
}

fn info(socket: &Socket) -> libc::tcp_info {
    // SAFETY: numbers, for which zero is valid.
    let mut info: libc::tcp_info = unsafe { zeroed() };
    let mut len = size_of::<libc::tcp_info>() as u32;
    // SAFETY: the kernel writes at most `len` bytes to `info`.
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut len,
        )
    };
    assert_eq!(got, 0, "{}", io::Error::last_os_error());
    info
}

/// A control that is chosen while the SYN waits for its answer runs `init` before the stack sets the
/// route's initial window, ten times the one that `init` saw.
#[test]
fn a_window_that_the_stack_sets_after_init_is_right() {
    with_reno("a route's initial window", |reno| {
        set_sysctl("net/ipv4/tcp_congestion_control", "reno").unwrap();
        let route = "ip route replace table local local 127.0.0.1 dev lo initcwnd 100";
        assert!(Command::new("sh").args(["-c", route]).status().unwrap().success());
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        listener.listen(0).unwrap();
        let connect = || {
            let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            client.set_nonblocking(true).unwrap();
            client.connect(&listener.local_addr().unwrap()).ok();
            client
        };
        // The first fills the queue, so the second's SYN is dropped and sent again after a second.
        let clients = [connect(), connect()];
        let [_, client] = &clients;
        assert!(client.peer_addr().is_err(), "the SYN was answered");
        client.set_tcp_congestion(reno.name().as_bytes()).unwrap();
        let accepted = [listener.accept().unwrap(), listener.accept().unwrap()];
        client.send(&[7; 1000]).unwrap();
        accepted[1].0.recv(&mut [MaybeUninit::uninit(); 1000]).unwrap();
        // The acknowledgement of so little makes no window grow.
        wait_until(2, || match info(client).tcpi_unacked {
            0 => Ok(()),
            left => Err(format!("{left} segments")),
        });
        assert_eq!((info(client).tcpi_snd_cwnd, counters(reno)["repaired"]), (100, 0));
        drop((clients, accepted));
        drained(reno, 1);
    });
}

#[test]
fn plain_tcp_that_the_other_control_refuses_runs_ours() {
    with_reno("plain TCP handed to nobody", |reno| {
        let plain = MapInfoIter::default().find(|map| map.name == state::PLAIN).unwrap();
        let plain = MapHandle::from_map_id(plain.id).unwrap();
        let here = narrows_netns::cookie().unwrap().to_ne_bytes();
        let hand_to = |name: &str| {
            let mut value = [0; 16];
            value[..name.len()].copy_from_slice(name.as_bytes());
            plain.update(&here, &value, MapFlags::ANY).unwrap();
        };
        let listener = TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let connect = || {
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            client.write_all(b"?").unwrap();
            server.read_exact(&mut [0]).unwrap();
            (client, server)
        };
        hand_to("cubic");
        let handed = connect();
        assert!(connections().is_empty());
        assert_eq!(counters(reno)["plain"], 2);

        hand_to("no_such_control");
        let kept = connect();
        assert_eq!(joined(reno), 2);
        let counted = counters(reno);
        assert_eq!((counted["plain"], counted["alone"]), (2, 2), "{counted:?}");
        drop((handed, kept));
        plain.delete(&here).unwrap();
        drained(reno, 2);
    });
}

/// Of the buffer of a connection that is coupled from its start on.
#[test]
fn a_coupled_subflow_has_twice_the_send_buffer() {
    with_reno("send buffers", |reno| {
        // Segments of a network: ten of them are far below what tcp_wmem allows.
        run("ip", &["link", "set", "lo", "mtu", "1500"]);
        let olia = Registered::register(Control::OLIA).unwrap();
        let of = |control: &Registered, protocol: Protocol| {
            let listener = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).unwrap();
            listener.bind(&SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0).into()).unwrap();
            listener.listen(1).unwrap();
            let client = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).unwrap();
            client.set_tcp_congestion(control.name().as_bytes()).unwrap();
            client.connect(&listener.local_addr().unwrap()).unwrap();
            client.send_buffer_size().unwrap()
        };
        let [ours, stacks] = [&olia, reno].map(|control| of(control, Protocol::MPTCP) as f64);
        assert!((1.8..2.2).contains(&(ours / stacks)), "{ours} and {stacks} bytes");
        assert_eq!(
            of(&olia, Protocol::TCP),
            of(reno, Protocol::TCP),
            "a single path is not coupled"
        );
    });
}
