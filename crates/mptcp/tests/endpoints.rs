//! Endpoints and limits that are set are there, and open connections follow them.

use narrows_mptcp::diag::{self, State};
use narrows_mptcp::pm::{self, Endpoint, Limits};
use narrows_mptcp::routes;
use narrows_testkit::machine::{can_run, mptcp};
use narrows_testkit::wait_until;
use nix::sched::{CloneFlags, unshare};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::process::Command;

const SUBFLOW: u32 = Endpoint::SUBFLOW;
const SERVER: [u8; 4] = [127, 0, 0, 1];
const FIRST: [u8; 4] = [127, 0, 0, 2];
const SECOND: [u8; 4] = [127, 0, 0, 3];

/// This test's thread moves into a network namespace of its own, which goes with it. False, and a
/// word on the terminal, where that cannot be.
fn alone(test: &str) -> bool {
    if !can_run(test, mptcp()) {
        return false;
    }
    if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
        println!("{test}: skipped, a network namespace: {error}");
        return false;
    }
    // It is this thread's namespace that the command begins in.
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
    if !up.is_ok_and(|status| status.success()) {
        println!("{test}: skipped, no ip here");
        return false;
    }
    true
}

fn endpoint(address: impl Into<IpAddr>, flags: u32) -> Endpoint {
    Endpoint { id: 0, address: address.into(), port: 0, interface: 0, flags }
}

#[test]
fn what_is_set_is_what_is_read() {
    if !alone("endpoints are set") {
        return;
    }
    let limits = Limits { subflows: 3, add_addr_accepted: 5 };
    pm::set_limits(limits).unwrap();
    assert_eq!(pm::limits().unwrap(), limits);

    let lo = routes::interfaces().unwrap().iter().find(|at| at.name.raw() == "lo").unwrap().index;
    let v6: IpAddr = "fd6e:72::1".parse().unwrap();
    let wanted = [
        endpoint([10, 1, 0, 1], SUBFLOW),
        Endpoint { id: 7, ..endpoint(v6, SUBFLOW | Endpoint::BACKUP) },
        Endpoint { interface: lo, ..endpoint([10, 2, 0, 1], SUBFLOW | Endpoint::FULLMESH) },
        Endpoint { port: 4711, ..endpoint(SERVER, Endpoint::SIGNAL) },
    ];
    wanted.iter().for_each(|endpoint| pm::add_endpoint(endpoint).unwrap());
    let mut there = pm::endpoints().unwrap();
    there.sort_by_key(|there| wanted.iter().position(|wanted| wanted.address == there.address));
    let ids: Vec<u8> = there.iter().map(|endpoint| endpoint.id).collect();
    assert!(ids.iter().all(|&id| id != 0) && ids[1] == 7, "{ids:?}");
    let mut wanted = wanted;
    wanted.iter_mut().zip(&ids).for_each(|(wanted, &id)| wanted.id = id);
    assert_eq!(there, wanted);

    let flags = |id| pm::endpoints().unwrap().iter().find(|at| at.id == id).unwrap().flags;
    pm::set_flags(ids[0], Endpoint::BACKUP).unwrap();
    assert_eq!(flags(ids[0]), SUBFLOW | Endpoint::BACKUP);
    pm::set_flags(7, 0).unwrap();
    assert_eq!(flags(7), SUBFLOW);

    ids.iter().for_each(|&id| pm::remove_endpoint(id).unwrap());
    assert_eq!(pm::endpoints().unwrap(), []);
}

#[test]
fn the_kernel_says_what_is_wrong() {
    if !alone("endpoints are refused") {
        return;
    }
    let refused = |done: std::io::Result<()>| done.unwrap_err().to_string();
    let add = |flags| pm::add_endpoint(&endpoint(FIRST, flags));
    add(SUBFLOW).unwrap();
    let again = refused(add(SUBFLOW));
    assert!(again.contains("os error"), "{again}");
    let both = refused(pm::add_endpoint(&endpoint(SECOND, Endpoint::SIGNAL | Endpoint::FULLMESH)));
    assert!(both.contains("signal") && both.contains("Invalid argument"), "{both}");
    let gone = refused(pm::remove_endpoint(200));
    assert!(gone.contains("not found"), "{gone}");
    let many = refused(pm::set_limits(Limits { subflows: 9, add_addr_accepted: 0 }));
    assert!(many.contains("limit"), "{many}");
}

/// The client's subflows, by local address.
fn subflows() -> Vec<(IpAddr, diag::Socket)> {
    let client = |socket: &diag::Socket| {
        socket.state == State::Established && socket.remote.ip() == IpAddr::from(SERVER)
    };
    let mut all: Vec<_> =
        diag::sockets().unwrap().into_iter().filter(client).map(|at| (at.local.ip(), at)).collect();
    all.sort_unstable_by_key(|at| at.0);
    all
}

/// Waits until the client's subflows are from these addresses.
fn has_subflows(wanted: &[[u8; 4]]) {
    let wanted: Vec<IpAddr> = wanted.iter().copied().map(IpAddr::from).collect();
    wait_until(10, || {
        let local: Vec<IpAddr> = subflows().iter().map(|at| at.0).collect();
        if local == wanted { Ok(()) } else { Err(format!("{local:?}, not {wanted:?}")) }
    });
}

#[test]
fn a_living_connection_follows_its_endpoints() {
    if !alone("a open connection") {
        return;
    }
    // Room for a join that comes before the peer has counted the subflow out that it replaces: it would
    // be reset, and not tried again.
    pm::set_limits(Limits { subflows: 4, add_addr_accepted: 0 }).unwrap();
    let socket = || Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).unwrap();
    let listener = socket();
    listener.bind(&SocketAddr::from((SERVER, 5001)).into()).unwrap();
    listener.listen(1).unwrap();
    let mut client = socket();
    client.bind(&SocketAddr::from((FIRST, 0)).into()).unwrap();
    client.connect(&SocketAddr::from((SERVER, 5001)).into()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let mut exchange = || {
        client.write_all(b"there?").unwrap();
        server.read_exact(&mut [0; 6]).unwrap();
        server.write_all(b"here.").unwrap();
        client.read_exact(&mut [0; 5]).unwrap();
    };
    exchange();
    has_subflows(&[FIRST]);

    pm::add_endpoint(&Endpoint { id: 2, ..endpoint(SECOND, SUBFLOW) }).unwrap();
    has_subflows(&[FIRST, SECOND]);
    pm::remove_first(FIRST.into()).unwrap();
    has_subflows(&[SECOND]);
    // The peer closes what has this id when its worker comes to it. A join before that has the same id, and
    // would be closed with it.
    wait_until(10, || match narrows_mptcp::counters().unwrap().get("RmAddr") {
        Some(1) => Ok(()),
        other => Err(format!("addresses that the peer has removed: {other:?}")),
    });
    exchange();
    pm::add_endpoint(&endpoint(FIRST, SUBFLOW)).unwrap();
    has_subflows(&[FIRST, SECOND]);
    // Closing one before there was data on the other, in both directions, would reset the connection.
    pm::set_flags(2, Endpoint::BACKUP).unwrap();
    let new = IpAddr::from(FIRST);
    wait_until(10, || {
        exchange();
        let all = subflows();
        let info = all.iter().find(|at| at.0 == new).and_then(|at| at.1.info.as_ref());
        let used = info.is_some_and(|info| info.bytes_acked > 1 && info.bytes_received > 1);
        if used { Ok(()) } else { Err(format!("no data on {new}: {info:?}")) }
    });
    pm::remove_endpoint(2).unwrap();
    has_subflows(&[FIRST]);
    exchange();
}
