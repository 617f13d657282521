//! MPTCP connections, and plain TCP under our controls, of every network namespace.

use super::Bytes;
use super::detection::{Detection, number};
use crate::clock::monotonic;
use crate::interfaces::Interfaces;
use crate::listeners::{InUse, Listener};
use narrows_foreign::Foreign;
use narrows_kernel::register::is_ours;
use narrows_kernel::state;
use narrows_laws::catalogue::control_of_kernel_name;
use narrows_laws::{Advice, Detector, raw};
use narrows_mptcp::diag::{self, Socket, State};
use narrows_netns::{self as netns, sysctl};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

/// A network namespace.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Namespace {
    /// Its name in `/run/netns`; `current`, or `pid:N`, where it has none.
    pub name: Foreign,
    /// Its number, as in `lsns`.
    pub inum: u32,
    /// Is it the one of this process?
    pub is_current: bool,
    /// The control of sockets that ask for none (`net.ipv4.tcp_congestion_control`).
    pub default_control: String,
    /// MPTCP's counters that are not zero (`nstat 'MPTcp*'`).
    pub mptcp_counters: BTreeMap<String, u64>,
    /// MPTCP listeners whose control is not the one in use.
    pub listeners: Vec<Listener>,
    /// Its connections.
    pub connections: Vec<Connection>,
    /// When their sockets were read.
    #[serde(skip)]
    pub(super) read: Instant,
}

/// An MPTCP connection, or a TCP socket that runs one of our controls on one path.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Connection {
    /// MPTCP token on this side; null: plain TCP.
    pub token: Option<u32>,
    /// Its control here, if it is one of ours.
    pub law: Option<String>,
    /// Asked for as MPTCP and going on as plain TCP.
    pub fell_back: bool,
    /// Bytes the peer acknowledged, per second; null: no second look was taken.
    pub sent_bytes_per_s: Option<u64>,
    /// Bytes that came, per second.
    pub received_bytes_per_s: Option<u64>,
    /// What the control's detector found; null: it has none that decides, there is one subflow, or
    /// that is not seen.
    pub detection: Option<Detection>,
    /// Its subflows.
    pub subflows: Vec<Subflow>,
}

/// A subflow: a TCP socket.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Subflow {
    /// Local address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// The interface its packets leave by: the one it is bound to, as an endpoint may say, else that of
    /// the route between its addresses; null: there is no route.
    pub interface: Option<Foreign>,
    /// MPTCP id of the local address.
    pub local_id: u8,
    /// MPTCP id of the peer's.
    pub remote_id: u8,
    /// TCP's state.
    pub tcp_state: State,
    /// How our control counts it: joining, active, idle, backup, failed; null: not under one.
    pub path_state: Option<&'static str>,
    /// MPTCP's flag: for the time that others fail.
    pub backup: bool,
    /// What its law advises: backup, close; null: nothing (`narrows kernel advise`).
    pub advice: Option<&'static str>,
    /// The socket's control, by its name in the kernel.
    pub control: String,
    /// Runs one of ours without a slot in the connection, or beside subflows that do not, so by the
    /// fallback law: as one of eight coupled paths; null: unknown, as our control's state was not all
    /// seen, or this is plain TCP.
    pub fallback_law: Option<bool>,
    /// Its number among the connection's paths under our control, from 1.
    pub path: Option<u8>,
    /// The numbers of the paths that it is coupled with, its own not among them.
    pub coupled_with: Option<Vec<u8>>,
    /// Congestion window, packets.
    pub cwnd_packets: u32,
    /// Slow start threshold, packets; null: none yet.
    pub ssthresh_packets: Option<u32>,
    /// Smoothed round-trip time, µs.
    pub srtt_us: u32,
    /// Smallest round-trip time of late, µs.
    pub min_rtt_us: u32,
    /// Payload bytes of a full packet.
    pub mss_bytes: u32,
    /// Packets sent again.
    pub retransmits: u32,
    /// Bytes the peer acknowledged.
    pub bytes_acked: u64,
    /// Bytes that came.
    pub bytes_received: u64,
    /// Bytes the peer acknowledged, per second; null: no second look was taken.
    pub sent_bytes_per_s: Option<u64>,
    /// Bytes that came, per second.
    pub received_bytes_per_s: Option<u64>,
    /// The kernel's number of the socket.
    #[serde(skip)]
    pub(super) cookie: u64,
}

impl Namespace {
    /// Is one of our controls the default here?
    pub(super) fn runs_ours(&self) -> bool {
        is_ours(&self.default_control)
    }

    pub(super) fn has_fallback(&self) -> bool {
        let mut subflows = self.connections.iter().flat_map(|connection| &connection.subflows);
        subflows.any(|subflow| subflow.fallback_law == Some(true))
    }
}

/// All namespaces this user can enter, with what runs in each, or in `only` one. Without `complete`
/// some connections' state is missing in `entries`.
pub(super) fn look(
    only: Option<&netns::Namespace>,
    entries: &[state::Connection],
    detections: Option<&state::Detections>,
    complete: bool,
    unseen: &mut Vec<String>,
) -> Vec<Namespace> {
    let all = match netns::Namespace::all() {
        Ok(all) => all,
        Err(error) => {
            unseen.push(format!("network namespaces: {error}"));
            return Vec::new();
        }
    };
    let entries = Entries::of(entries, complete);
    let in_use = InUse::look();
    let (mut namespaces, mut closed) = (Vec::new(), Vec::new());
    for namespace in all {
        let wanted = only.is_none_or(|only| only.inum == namespace.inum);
        let entries = wanted.then_some(&entries);
        let seen = namespace.run(|| look_inside(&namespace, entries, &in_use));
        match seen.and_then(|seen| seen) {
            Ok(seen) => namespaces.push(seen),
            // It ended meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                closed.push(namespace.name.to_string());
            }
            Err(error) => unseen.push(format!("network namespace {}: {error}", namespace.name)),
        }
    }
    if !closed.is_empty() {
        unseen.push(format!("network namespaces {}: needs root", closed.join(", ")));
    }
    if let Some(detections) = detections {
        if let Err(error) = detect(&mut namespaces, &entries, detections) {
            unseen.push(error.to_string());
        }
    }
    namespaces
}

/// What detectors found of the connections.
fn detect(
    namespaces: &mut [Namespace],
    entries: &Entries<'_>,
    detections: &state::Detections,
) -> Result<(), narrows_kernel::Error> {
    for connection in namespaces.iter_mut().flat_map(|namespace| &mut namespace.connections) {
        let entry = connection.token.and_then(|token| entries.tokens.get(&token));
        let Some((entry, detector)) = entry.and_then(|entry| Some((entry, detector(entry)?)))
        else {
            continue;
        };
        let kept = detections.of(entry.token)?;
        // What a detector keeps goes before the entry.
        if kept.is_none() && !state::has_entry(entry.token)? {
            continue;
        }
        // After that was read, so that nothing in it is of later.
        let now = monotonic();
        let (kept, peer_since) = (kept.as_deref(), detections.peer_since(entry.token));
        let detection = Detection::of(entry, detector, kept, now, peer_since);
        connection.detection = Some(detection);
    }
    Ok(())
}

/// The detector that decides for a connection, if what it keeps can be read: not of one path, nor of
/// another build.
fn detector(entry: &state::Connection) -> Option<Detector> {
    let control = entry.control.filter(|_| entry.version == raw::VERSION && entry.paths.len() > 1);
    Some(control?.detector).filter(|detector| detector.decides())
}

/// Looks for subflows under the fallback law once more, in state that was read later: one that began
/// between the looks at state and sockets is not under it.
pub(super) fn find_late(namespaces: &mut [Namespace], entries: &[state::Connection]) {
    let entries = Entries::of(entries, true);
    for namespace in namespaces {
        for connection in &mut namespace.connections {
            let token = connection.token.filter(|_| !connection.fell_back);
            for subflow in
                connection.subflows.iter_mut().filter(|one| one.fallback_law == Some(true))
            {
                let found = entries.find(token, subflow.local, subflow.remote);
                subflow.place(found, true);
            }
        }
    }
}

/// The byte counters of all sockets of all namespaces, or of `only` one, by their cookies.
pub(super) fn bytes(only: Option<&netns::Namespace>) -> HashMap<u64, Bytes> {
    let all = match only {
        Some(only) => vec![only.clone()],
        None => netns::Namespace::all().unwrap_or_default(),
    };
    let mut bytes = HashMap::new();
    for namespace in all {
        // What cannot be seen now, is not seen later either, and is reported then.
        let Ok(Ok(sockets)) = namespace.run(diag::sockets) else { continue };
        let read = Instant::now();
        bytes.extend(sockets.into_iter().filter_map(|socket| {
            let info = socket.info?;
            let (acked, received) = (info.bytes_acked, info.bytes_received);
            Some((socket.cookie, Bytes { read, acked, received }))
        }));
    }
    bytes
}

/// Without `entries` its sockets are not wanted.
fn look_inside(
    namespace: &netns::Namespace,
    entries: Option<&Entries<'_>>,
    in_use: &InUse,
) -> io::Result<Namespace> {
    let default_control = sysctl("net/ipv4/tcp_congestion_control").unwrap_or_default();
    let (mut connections, mut listeners) = (Vec::new(), Vec::new());
    let mut mptcp_counters = BTreeMap::new();
    let mut read = Instant::now();
    if let Some(entries) = entries {
        let sockets = diag::sockets()?;
        read = Instant::now();
        connections = join(&sockets, &mut Interfaces::look(), entries);
        listeners = in_use.others(namespace.inum, &default_control, &sockets)?;
        mptcp_counters = narrows_mptcp::counters()?;
        mptcp_counters.retain(|_, value| *value > 0);
    }
    Ok(Namespace {
        name: namespace.name.clone(),
        inum: namespace.inum,
        is_current: namespace.is_current(),
        default_control,
        mptcp_counters,
        listeners,
        connections,
        read,
    })
}

/// The connections of a namespace's sockets, with what our controls know of them.
fn join(sockets: &[Socket], interfaces: &mut Interfaces, entries: &Entries<'_>) -> Vec<Connection> {
    let mut by_key: BTreeMap<Key, Connection> = BTreeMap::new();
    // Finding one among all names takes as long as all else of a socket.
    let mut laws: HashMap<&String, String> = HashMap::new();
    for socket in sockets.iter().filter(|socket| socket.state != State::Listen) {
        let Some(key) = Key::of(socket) else { continue };
        let coupled = socket.subflow.filter(|subflow| !subflow.fell_back());
        let token = coupled.map(|subflow| subflow.token);
        let found = entries.find(token, socket.local, socket.remote);
        let mut subflow = subflow(socket, interfaces);
        if is_ours(&socket.control) {
            subflow.place(found, entries.complete && token.is_some());
        }
        let shown = by_key.entry(key).or_insert_with(|| Connection {
            token: socket.subflow.map(|subflow| subflow.token),
            law: None,
            fell_back: socket.subflow.is_some_and(|subflow| subflow.fell_back()),
            sent_bytes_per_s: None,
            received_bytes_per_s: None,
            detection: None,
            subflows: Vec::new(),
        });
        let law = found.0.and_then(|connection| connection.control).map(|law| law.to_string());
        let ours = Some(&socket.control).filter(|control| is_ours(control));
        let law = law.or_else(|| {
            let law = laws.entry(ours?).or_insert_with_key(|name| {
                control_of_kernel_name(name).map_or_else(|| (*name).clone(), |law| law.to_string())
            });
            Some(law.clone())
        });
        shown.law = shown.law.take().or(law);
        shown.subflows.push(subflow);
    }
    for connection in by_key.values_mut() {
        connection.subflows.sort_by_key(|subflow| (subflow.path, subflow.local_id, subflow.local));
    }
    by_key.into_values().collect()
}

/// What makes sockets one connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Mptcp(u32),
    Alone(u64),
}

impl Key {
    /// None: a plain TCP socket that is none of ours.
    fn of(socket: &Socket) -> Option<Key> {
        match socket.subflow {
            Some(subflow) => Some(Key::Mptcp(subflow.token)),
            None if is_ours(&socket.control) => Some(Key::Alone(socket.cookie)),
            None => None,
        }
    }
}

/// Our controls' state, to be found by what a socket knows.
struct Entries<'a> {
    /// Were all seen?
    complete: bool,
    tokens: HashMap<u32, &'a state::Connection>,
}

type Found<'a> = (Option<&'a state::Connection>, Option<&'a state::ConnectionPath>);

impl<'a> Entries<'a> {
    fn of(entries: &'a [state::Connection], complete: bool) -> Entries<'a> {
        let tokens = entries.iter().map(|entry| (entry.token, entry)).collect();
        Entries { complete, tokens }
    }

    /// The connection of a socket, and its path in it; plain TCP, without a token, is in no entry.
    fn find(&self, token: Option<u32>, local: SocketAddr, remote: SocketAddr) -> Found<'a> {
        let connection = token.and_then(|token| self.tokens.get(&token).copied());
        let ours = |path: &&state::ConnectionPath| path.local == local && path.remote == remote;
        (connection, connection.and_then(|connection| connection.paths.iter().find(ours)))
    }
}

impl Subflow {
    /// What our control, which it runs, keeps of it. Where nothing was found and all was seen it
    /// runs the fallback law.
    fn place(&mut self, (connection, path): Found<'_>, complete: bool) {
        let beside = |path: &state::ConnectionPath| {
            let others = connection.into_iter().flat_map(|of| &of.paths);
            let coupled = others.filter(|p| p.slot != path.slot && path.mask >> p.slot & 1 == 1);
            coupled.map(|p| number(p.slot)).collect()
        };
        self.path_state = path.map(|path| path_state(path.line.state));
        self.advice = path.and_then(|path| match path.line.advice() {
            Advice::Backup => Some("backup"),
            Advice::Close => Some("close"),
            _ => None,
        });
        self.path = path.map(|path| number(path.slot));
        self.coupled_with = path.map(beside);
        self.fallback_law = match path {
            Some(path) => Some(path.outside),
            None => complete.then_some(self.tcp_state == State::Established),
        };
    }
}

/// What the kernel reports of a socket.
fn subflow(socket: &Socket, interfaces: &mut Interfaces) -> Subflow {
    let mptcp = socket.subflow.unwrap_or_default();
    let info = socket.info.as_ref();
    let of = |field: fn(&diag::TcpInfo) -> u32| info.map_or(0, field);
    Subflow {
        local: socket.local,
        remote: socket.remote,
        interface: interfaces.of(socket),
        local_id: mptcp.local_id,
        remote_id: mptcp.remote_id,
        tcp_state: socket.state,
        path_state: None,
        backup: mptcp.is_backup(),
        advice: None,
        control: socket.control.clone(),
        fallback_law: Some(false),
        path: None,
        coupled_with: None,
        cwnd_packets: of(|info| info.snd_cwnd),
        ssthresh_packets: info.map(|info| info.snd_ssthresh).filter(|n| *n < i32::MAX as u32),
        srtt_us: of(|info| info.rtt),
        min_rtt_us: of(|info| info.min_rtt),
        mss_bytes: of(|info| info.snd_mss),
        retransmits: of(|info| info.total_retrans),
        bytes_acked: info.map_or(0, |info| info.bytes_acked),
        bytes_received: info.map_or(0, |info| info.bytes_received),
        sent_bytes_per_s: None,
        received_bytes_per_s: None,
        cookie: socket.cookie,
    }
}

fn path_state(number: u32) -> &'static str {
    const STATES: [&str; 6] = ["free", "joining", "active", "idle", "backup", "failed"];
    debug_assert_eq!(raw::State::Failed as usize, STATES.len() - 1);
    STATES.get(number as usize).copied().unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_laws::raw::Conn;
    use narrows_testkit::recorded_netlink as answer;

    fn socket(name: &str, control: &str) -> Socket {
        Socket { control: control.into(), ..Socket::parse(&answer(name)).unwrap() }
    }

    /// What our control would know of these sockets, as paths of one connection.
    fn entry(token: u32, sockets: &[&Socket]) -> state::Connection {
        let path = |(slot, socket): (usize, &&Socket)| {
            let mut line =
                Conn::new(narrows_laws::Control::OLIA, &narrows_laws::Params::default()).path[0];
            line.state = raw::State::Active as u32;
            let (local, remote) = (socket.local, socket.remote);
            state::ConnectionPath {
                slot,
                local,
                remote,
                local_id: 0,
                remote_id: 0,
                delay: narrows_kernel::Delay::Rtt,
                mask: 0xff,
                outside: false,
                line,
                event: narrows_laws::Event::default(),
            }
        };
        state::Connection {
            token,
            user: 0,
            control: Some(narrows_laws::Control::OLIA),
            version: 0,
            netns: 7,
            closed: false,
            paths: sockets.iter().enumerate().map(path).collect(),
        }
    }

    fn interfaces() -> Interfaces {
        Interfaces::named([(2, "v1".into()), (3, "v2".into())])
    }

    fn seen(sockets: &[Socket], entries: &[state::Connection]) -> Vec<Connection> {
        join(sockets, &mut interfaces(), &Entries::of(entries, true))
    }

    #[test]
    fn a_subflow_meets_its_path_by_token_and_addresses() {
        let sockets = [socket("joined", "nr_olia")];
        let token = sockets[0].subflow.unwrap().token;
        let seen = seen(&sockets, &[entry(token, &[&sockets[0]])]);
        assert_eq!(seen[0].token, Some(token));
        assert_eq!(seen[0].law.as_deref(), Some("olia"));
        let subflow = &seen[0].subflows[0];
        assert_eq!((subflow.path, subflow.path_state), (Some(1), Some("active")));
        assert_eq!(subflow.fallback_law, Some(false));
        // Coupled with all, of which there is no other.
        assert_eq!(subflow.coupled_with, Some(vec![]));
        assert_eq!(subflow.interface, Some("v2".into()));
        assert_eq!((subflow.ssthresh_packets, subflow.advice), (Some(142), None));
    }

    #[test]
    fn what_another_build_keeps_for_its_detector_is_not_read() {
        let joined = socket("joined", "nr_lia_xc");
        let of = |control: &str, version, sockets: &[&Socket]| {
            let control = Some(control.parse().unwrap());
            detector(&state::Connection { control, version, ..entry(1, sockets) })
        };
        let two = [&joined, &joined];
        assert_eq!(of("lia+xcorr", raw::VERSION, &two), Some(Detector::XCORR));
        assert_eq!(of("lia+xcorr", raw::VERSION + 1, &two), None);
        assert_eq!(of("lia+xcorr", raw::VERSION, &two[..1]), None, "it has one path");
        assert_eq!(of("lia", raw::VERSION, &two), None, "it decides nothing");
    }

    #[test]
    fn a_subflow_has_its_laws_advice() {
        let sockets = [socket("joined", "nr_olia")];
        let mut entry = entry(sockets[0].subflow.unwrap().token, &[&sockets[0]]);
        entry.paths[0].line.advice = Advice::Backup as u32;
        assert_eq!(seen(&sockets, &[entry])[0].subflows[0].advice, Some("backup"));
    }

    #[test]
    fn subflows_of_a_server_share_its_address_and_differ_by_their_peers() {
        let first = socket("joined", "nr_olia");
        let mut second = first.clone();
        second.remote.set_port(first.remote.port() + 1);
        second.info.as_mut().unwrap().snd_ssthresh = i32::MAX as u32;
        let entry = entry(first.subflow.unwrap().token, &[&first, &second]);
        let seen = seen(&[second.clone(), first.clone()], &[entry]);
        let shown = seen[0].subflows.iter().map(|one| (one.path, one.remote, one.ssthresh_packets));
        let expected = [(Some(1), first.remote, Some(142)), (Some(2), second.remote, None)];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_subflow_without_a_path_runs_the_fallback_law() {
        let sockets = [socket("joined", "nr_olia")];
        let token = sockets[0].subflow.unwrap().token;
        let seen = seen(&sockets, &[entry(token, &[&socket("first", "nr_olia")])]);
        assert_eq!(seen[0].subflows[0].fallback_law, Some(true));
        assert_eq!(seen[0].subflows[0].path, None);
    }

    #[test]
    fn without_all_state_no_subflow_counts_as_under_the_fallback_law() {
        let sockets = [socket("joined", "nr_olia")];
        let seen = join(&sockets, &mut interfaces(), &Entries::of(&[], false));
        assert_eq!(seen[0].subflows[0].fallback_law, None);
    }

    #[test]
    fn a_subflow_that_came_between_the_looks_is_found_by_a_later_one() {
        let sockets = [socket("joined", "nr_olia")];
        let token = sockets[0].subflow.unwrap().token;
        let mut namespace = Namespace {
            name: "current".into(),
            inum: 7,
            is_current: true,
            default_control: "nr_olia".into(),
            mptcp_counters: BTreeMap::new(),
            listeners: Vec::new(),
            connections: seen(&sockets, &[]),
            read: Instant::now(),
        };
        let subflow = |namespace: &Namespace| namespace.connections[0].subflows[0].clone();
        assert_eq!(subflow(&namespace).fallback_law, Some(true));
        let entries = [entry(token, &[&sockets[0]])];
        find_late(std::slice::from_mut(&mut namespace), &entries);
        assert_eq!(
            (subflow(&namespace).fallback_law, subflow(&namespace).path),
            (Some(false), Some(1))
        );
    }

    #[test]
    fn a_subflow_under_another_control_shows_its_name() {
        let sockets = [socket("joined", "cubic"), socket("first", "cubic")];
        let seen = seen(&sockets, &[]);
        assert_eq!(seen.len(), 2);
        for connection in &seen {
            assert_eq!(connection.law, None);
            assert_eq!(connection.subflows[0].control, "cubic");
            assert_eq!(connection.subflows[0].fallback_law, Some(false));
        }
    }

    #[test]
    fn plain_tcp_is_shown_as_one_path_if_it_runs_a_control_of_ours() {
        let plain = |control| Socket { subflow: None, mptcp: false, ..socket("first", control) };
        assert_eq!(seen(&[plain("bbr")], &[]).len(), 0);
        let all = seen(&[plain("nr_olia")], &[]);
        assert_eq!((all[0].token, all[0].subflows.len()), (None, 1));
        assert_eq!(all[0].law.as_deref(), Some("olia"));
        // It has no entry, by which one could tell.
        assert_eq!((all[0].subflows[0].path, all[0].subflows[0].fallback_law), (None, None));
    }

    #[test]
    fn who_fell_back_is_shown_as_plain_tcp_is() {
        let all = seen(&[socket("fallen-back", "nr_olia")], &[]);
        assert!(all[0].fell_back && all[0].subflows[0].fallback_law.is_none());
    }

    #[test]
    fn a_path_beside_subflows_outside_its_entry_runs_the_fallback_law() {
        let sockets = [socket("joined", "nr_olia"), socket("first", "cubic")];
        let mut entry = entry(sockets[0].subflow.unwrap().token, &[&sockets[0]]);
        entry.paths[0].outside = true;
        let subflow = &seen(&sockets[..1], &[entry])[0].subflows[0];
        assert_eq!((subflow.path, subflow.fallback_law), (Some(1), Some(true)));
    }
}
