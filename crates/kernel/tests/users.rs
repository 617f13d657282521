//! What one user may take of the map of connections: nothing with plain TCP, and with MPTCP his part,
//! whatever namespaces and uids he uses. Others notice nothing.

mod support;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use narrows_kernel::control::Registered;
use narrows_kernel::state::{self, Connection, USERS, USERS_ALL};
use narrows_laws::Control;
use narrows_netns::set_sysctl;
use narrows_testkit::net::{self, Host};
use narrows_testkit::transfer::{Kind, Server, Traffic, connect, listen, set_control};
use narrows_testkit::wait_until;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use support::Alone;
use support::law::{Net, agree, counted, counter, slots};

const LAW: Control = Control::OLIA;
const PORT: u16 = 7000;
const JOB: u64 = 1 << 18;
/// A user who need not exist.
const USER: u32 = 30_001;

/// `users/hoard.py`, with its connections open.
struct Hoard(Child);

impl Hoard {
    fn start(how: &str, control: &str, user: u32, namespaces: usize) -> Hoard {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/users/hoard.py");
        let (user, namespaces) = (user.to_string(), namespaces.to_string());
        let mut python = Command::new("python3");
        python.args([script, how, control, &user, &namespaces]);
        let hoard = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut hoard = Hoard(hoard.unwrap());
        let mut line = String::new();
        BufReader::new(hoard.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        hoard
    }
}

impl Drop for Hoard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().ok();
    }
}

fn of_user(user: u32) -> Vec<Connection> {
    let all = state::connections().unwrap();
    all.into_iter().filter(|connection| connection.user == user).collect()
}

/// Entries in use, as the control counts them: the user's, and all.
fn in_use(law: &Registered, user: u32) -> [u32; 2] {
    let map = law.loaded().object().maps().find(|map| map.name() == USERS).unwrap();
    let map = MapHandle::try_from(&map).unwrap();
    [if user < 65536 { user } else { 65536 + user / 65536 }, USERS_ALL].map(|index| {
        let value = map.lookup(&index.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        u32::from_ne_bytes(value[..4].try_into().unwrap())
    })
}

/// Bytes go both ways over two paths, both of them in the connection's entry.
fn others_notice_nothing(net: &Net, law: &Registered) {
    let server = Server::start(&net.server, net.address(PORT), Kind::Mptcp);
    let traffic = Traffic::start(&net.client, net.address(PORT), Kind::Mptcp, JOB, JOB);
    agree(net, LAW, law.name(), 2);
    traffic.stop();
    let failed = server.stop();
    assert!(failed.is_empty(), "{failed:?}");
    net.drained();
}

/// `namespaces` with a connection, both of whose ends are in it, and room for as many entries as
/// they would take.
fn gets_his_part(how: &str, user: u32, namespaces: usize) {
    let room = 2 * namespaces as u32;
    let law = Registered::with_room(LAW, [room, 1]).unwrap();
    let net = Net::new(&[50, 50]);
    net.set_default(law.name());
    {
        let _hoard = Hoard::start(how, law.name(), user, namespaces);
        // A quarter of the free ones: a fifth of all.
        assert_eq!(of_user(user).len() as u32, room / 5, "{}", counted(&law));
        assert_eq!(in_use(&law, user), [room / 5; 2]);
        assert_eq!(counter(&law, "fallback_user"), u64::from(room - room / 5));
        others_notice_nothing(&net, &law);
        assert_eq!(counter(&law, "fallback_user"), u64::from(room - room / 5));
    }
    wait_until(30, || match in_use(&law, user) {
        [0, 0] => Ok(()),
        [his, all] => Err(format!("in use: {his} of {all}")),
    });
    assert!(of_user(user).is_empty());
    assert_eq!(counter(&law, "fallback_full"), 0);
    println!("  {}", counted(&law));
}

#[test]
fn a_thousand_namespaces_get_a_user_no_more_than_one() {
    let Some(_alone) = Alone::with("a thousand namespaces", &["python3"]) else { return };
    gets_his_part("own", USER, 1000);
}

#[test]
fn subuids_in_nested_namespaces_are_their_users() {
    let Some(_alone) = Alone::with("subuids", &["python3"]) else { return };
    gets_his_part("subuids", USER, 100);
}

/// As of containers, whose engine is root's: of a uid above 65,535, which is nobody else's part.
#[test]
fn namespaces_that_root_made_are_those_of_who_is_mapped_into_them() {
    let Some(_alone) = Alone::with("namespaces of root's", &["python3"]) else { return };
    gets_his_part("rooted", 131_072 + USER, 100);
}

/// Plain TCP inside `host`, both of its ends running `control`.
fn plain(host: &Host, connections: usize, control: &str) -> Vec<[TcpStream; 2]> {
    let work = || {
        let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Kind::Tcp).unwrap();
        let open = |_| {
            let client = connect(listener.local_addr().unwrap(), Kind::Tcp).unwrap();
            let both = [client, listener.accept().unwrap().0];
            both.iter().for_each(|end| set_control(end, control).unwrap());
            both
        };
        (0..connections).map(open).collect()
    };
    host.run(work).unwrap()
}

#[test]
fn plain_tcp_takes_no_entry_and_keeps_its_state_while_it_runs_the_control() {
    let Some(_alone) = Alone::with("hundreds of plain TCP connections", &[]) else { return };
    const MANY: usize = 200;
    // Fewer entries than connections.
    let law = Registered::with_room(LAW, [100, 1]).unwrap();
    let net = Net::new(&[50, 50]);
    net.set_default(law.name());
    let elsewhere = Host::new("elsewhere");
    let streams = plain(&elsewhere, MANY, law.name());
    assert_eq!(slots(&law), 2 * MANY as i64, "{}", counted(&law));
    let entries = state::connections().unwrap();
    assert!(entries.iter().all(|entry| entry.netns != elsewhere.inum), "{entries:?}");
    assert_eq!(counter(&law, "fallback_full"), 0);
    others_notice_nothing(&net, &law);

    let alone = law.loaded().object().maps().find(|map| map.name() == "nr_alone").unwrap();
    let alone = MapHandle::try_from(&alone).unwrap();
    let state = |end: &TcpStream| {
        alone.lookup(&end.as_raw_fd().to_ne_bytes(), MapFlags::ANY).unwrap().is_some()
    };
    let end = &streams[0][0];
    assert!(state(end));
    set_control(end, "reno").unwrap();
    assert!(!state(end), "given up with the control");
    assert_eq!(slots(&law), 2 * MANY as i64 - 1);
    set_control(end, law.name()).unwrap();
    assert!(state(end));
    drop(streams);
    wait_until(10, || match slots(&law) {
        0 => Ok(()),
        left => Err(format!("{left} sockets")),
    });
    println!("  {}", counted(&law));
}

/// Whoever takes entries takes from others what couples their paths, and from those with one path nothing.
#[test]
fn a_connection_without_an_entry_grows_as_reno_while_it_has_one_subflow() {
    let Some(_alone) = Alone::with("without an entry, on one path", &[]) else { return };
    let law = Registered::with_room(LAW, [1, 1]).unwrap();
    let net = Net::new(&[10]);
    net.set_default(law.name());
    let server = Server::start(&net.server, net.address(PORT), Kind::Mptcp);
    let first = Traffic::start(&net.client, net.address(PORT), Kind::Mptcp, 1, 1);
    wait_until(10, || match state::connections().unwrap().len() {
        1 => Ok(()),
        entries => Err(format!("{entries} entries")),
    });
    let second = Traffic::start(&net.client, net.address(PORT), Kind::Mptcp, 0, JOB);
    // A packet each round trip; the fallback law grows by a 64th of one.
    wait_until(40, || {
        let busiest = || {
            let all = net::sockets(&net.server).into_iter();
            let windows = all.filter_map(|one| {
                Some([one.number("cwnd")?, one.number("ssthresh")?, one.number("rtt")?])
            });
            windows.max_by(|a, b| a[0].total_cmp(&b[0])).ok_or("no loss yet")
        };
        let (began, before) = (Instant::now(), busiest()?);
        sleep(Duration::from_millis(500));
        let after = busiest()?;
        if after[1] != before[1] || before[0] < before[1] {
            return Err("a loss, or slow start".into());
        }
        let rounds = began.elapsed().as_secs_f64() * 1e3 / before[2];
        let grown = after[0] - before[0];
        println!("  grown by {grown} packets in {rounds:.0} round trips");
        // Queues grow meanwhile, and round trips with them.
        if grown >= 0.25 * rounds { Ok(()) } else { Err(format!("{before:?}, then {after:?}")) }
    });
    assert!(counter(&law, "fallback_full") + counter(&law, "fallback_user") >= 2);
    first.stop();
    second.stop();
    let failed = server.stop();
    assert!(failed.is_empty(), "{failed:?}");
    net.drained();
    println!("  {}", counted(&law));
}

#[test]
fn plain_tcp_without_memory_for_its_state_runs_the_fallback_law() {
    let Some(_alone) = Alone::with("plain TCP without socket memory", &[]) else { return };
    let host = Host::new("poor");
    // Since Linux 6.9 a namespace has its own.
    let set = host.run(|| set_sysctl("net/core/optmem_max", "1000")).unwrap();
    if let Err(error) = set {
        println!("  skipped, net.core.optmem_max: {error}");
        return;
    }
    let law = Registered::register(LAW).unwrap();
    let streams = plain(&host, 1, law.name());
    assert_eq!((counter(&law, "fallback_full"), slots(&law)), (2, 0), "{}", counted(&law));
    drop(streams);
}
