//! Advice about subflows, of their laws or, where those give none, by what the connection delivers
//! ([`narrows_advice`]), followed where the path manager can: a subflow that is advised to be a backup becomes
//! one, and regular again when the advice is withdrawn.
//!
//! A path manager in user space sets one subflow of one connection (`MPTCP_PM_CMD_SET_FLAGS` with its
//! token). The kernel's own, up to Linux 6.18, sets an endpoint: of every connection in the namespace
//! the first subflow from the endpoint's address, and those that join later (`mptcp_pm_nl_set_flags`).
//! So there advice is followed only where all connections with a subflow from that address have it,
//! and one such subflow each, those aside that say nothing on any path: an idle connection, as a
//! control channel beside a transfer, has no advice and no need of the path.

use narrows_advice::{Judge, Sample, window};
use narrows_kernel::pins::{self, Held};
use narrows_kernel::register::is_ours;
use narrows_kernel::{Error, is_root, state};
use narrows_laws::catalogue::control_of_kernel_name;
use narrows_laws::{Advice, Law, params};
use narrows_mptcp::diag::{self, Socket, State};
use narrows_mptcp::pm::{self, Endpoint};
use narrows_netns::Namespace;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// Advice about a path is withdrawn where its law says nothing more.
const WITHDRAWN: &str = "advice withdrawn";
const CLOSED: &str = "no subflow is left";

/// A connection without data for so long is idle.
const IDLE_MS: u32 = 10_000;
/// An endpoint that an idle connection wanted back is regular for so long at least.
const REST: Duration = Duration::from_secs(60);

/// May this process follow advice?
///
/// # Errors
/// Not root.
pub fn allowed() -> Result<(), Error> {
    match is_root() {
        true => Ok(()),
        false => Err(Error::input("kernel advise", "needs root")),
    }
}

/// Does a control give advice, as far as is known? A law of narrows has a parameter for it, 0 if it
/// does not.
fn gives(name: &str, held: Option<&Held>) -> bool {
    let Some(control) = control_of_kernel_name(name).filter(|one| one.law != Law::USER) else {
        return true;
    };
    match params::named(&format!("{}.close", control.law.name())) {
        Err(_) => false,
        Ok(close) => {
            let known = held.and_then(|held| held.settings.as_ref());
            known.is_none_or(|settings| settings.params.word(&close.name) != 0)
        }
    }
}

/// A subflow, by its connection's token and its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Subflow {
    token: u32,
    local: SocketAddr,
    remote: SocketAddr,
}

impl fmt::Display for Subflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x} {} > {}", self.token, self.local, self.remote)
    }
}

/// An established subflow, as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    subflow: Subflow,
    /// Does its law advise to make it a backup, or to close it?
    advised: bool,
    /// Is it a backup, whoever wanted that?
    backup: bool,
    /// Had its connection no data for [`IDLE_MS`], on any subflow and in any direction?
    idle: bool,
}

/// Judges connections whose laws give no advice, from one beginning on.
struct Judged {
    judge: Judge<Subflow>,
    began: Instant,
}

/// Follows the advice in a network namespace.
pub struct Follower {
    namespace: Namespace,
    /// Is advice in other namespaces reported, too?
    others: bool,
    judged: Judged,
    /// What was set: subflows, and endpoints by their ids.
    subflows: BTreeSet<Subflow>,
    endpoints: BTreeMap<u8, IpAddr>,
    /// Until when an address stays regular.
    rests: BTreeMap<IpAddr, Instant>,
    /// What could not be done at the last look.
    told: Vec<String>,
}

impl Follower {
    /// Of `namespace`; with `others` it says what advice there is elsewhere.
    pub fn new(namespace: Namespace, others: bool) -> Follower {
        Follower {
            namespace,
            others,
            judged: Judged { judge: Judge::default(), began: Instant::now() },
            subflows: BTreeSet::new(),
            endpoints: BTreeMap::new(),
            rests: BTreeMap::new(),
            told: Vec::new(),
        }
    }

    /// Does what is advised now. A line for each thing done, and for each that newly cannot be done.
    ///
    /// # Errors
    /// The advice or the sockets cannot be read.
    pub fn look(&mut self) -> Result<Vec<String>, Error> {
        let (mut here, mut problems) = (BTreeSet::new(), Vec::new());
        for connection in state::connections()? {
            let advised = connection.paths.iter().filter(|at| at.line.advice() != Advice::None);
            let of = |at: &state::ConnectionPath| Subflow {
                token: connection.token,
                local: at.local,
                remote: at.remote,
            };
            if connection.netns == self.namespace.inum {
                here.extend(advised.map(of));
            } else if self.others {
                let place = name_of(connection.netns);
                problems.extend(advised.map(|at| format!("{}: not done: {place}", of(at))));
            }
        }
        let loaded = pins::loaded()?;
        let advises =
            |name: &str| is_ours(name) && gives(name, loaded.iter().find(|one| one.name == name));
        let namespace = self.namespace.clone();
        let turn = || self.turn(here, advises, &mut problems);
        let done = namespace.run(turn).and_then(|done| done);
        let place = || format!("network namespace {}", namespace.name);
        let mut lines = done.map_err(|error| Error::input(place(), error.to_string()))?;
        lines.extend(problems.iter().filter(|line| !self.told.contains(line)).cloned());
        self.told = problems;
        Ok(lines)
    }

    /// Sets back what was set, a line for each.
    pub fn end(&mut self) -> Vec<String> {
        let namespace = self.namespace.clone();
        let undone = namespace.run(|| {
            let endpoints = std::mem::take(&mut self.endpoints).into_iter();
            let lines = endpoints.map(|(id, address)| end_endpoint(id, address, "the end"));
            let subflows = std::mem::take(&mut self.subflows).into_iter();
            lines.chain(subflows.map(|subflow| end_subflow(subflow, "the end"))).collect()
        });
        // A namespace that has gone has nothing that could be set.
        undone.unwrap_or_default()
    }

    /// In the namespace.
    fn turn(
        &mut self,
        mut advised: BTreeSet<Subflow>,
        advises: impl Fn(&str) -> bool,
        problems: &mut Vec<String>,
    ) -> io::Result<Vec<String>> {
        let (sockets, now) = (diag::sockets()?, Instant::now());
        let samples: Vec<Sample<Subflow>> =
            sockets.iter().filter(|socket| !advises(&socket.control)).filter_map(sample).collect();
        let Judged { judge, began } = &mut self.judged;
        advised.extend(judge.look(now - *began, &samples));
        let seen = look(&sockets, &advised);
        let mut lines = Vec::new();
        self.rests.retain(|_, end| *end > now);
        self.endpoints.retain(|&id, &mut address| match agree(address, &seen) {
            Ok(()) => true,
            Err(why) => {
                if why != WITHDRAWN && why != CLOSED {
                    self.rests.insert(address, now + REST);
                }
                lines.push(end_endpoint(id, address, &why));
                false
            }
        });
        self.subflows.retain(|&subflow| match seen.iter().find(|seen| seen.subflow == subflow) {
            Some(seen) if seen.advised => true,
            Some(_) => {
                lines.push(end_subflow(subflow, WITHDRAWN));
                false
            }
            None => false,
        });
        let wanted: Vec<&Seen> = seen.iter().filter(|seen| seen.advised && !seen.backup).collect();
        if wanted.is_empty() {
            return Ok(lines);
        }
        let endpoints = pm::endpoints()?;
        let before: Vec<IpAddr> = self.endpoints.values().copied().collect();
        for &&Seen { subflow, .. } in &wanted {
            let address = subflow.local.ip();
            let ineffective = self.subflows.contains(&subflow) || before.contains(&address);
            if !ineffective && self.endpoints.values().any(|set| *set == address) {
                continue;
            }
            if self.rests.contains_key(&address) {
                continue;
            }
            let set = match ineffective {
                true => Err("set, but the kernel does not make it a backup".into()),
                false => set(subflow, &seen, &endpoints),
            };
            match set {
                Ok(None) => {
                    self.subflows.insert(subflow);
                    lines.push(format!("{subflow}: backup"));
                }
                Ok(Some(id)) => {
                    self.endpoints.insert(id, address);
                    let from = seen.iter().filter(|seen| seen.subflow.local.ip() == address);
                    let of: Vec<String> = from.map(|seen| seen.subflow.to_string()).collect();
                    lines.push(format!("endpoint {id}, {address}: backup: {}", of.join(", ")));
                }
                Err(why) => problems.push(format!("{subflow}: not done: {why}")),
            }
        }
        Ok(lines)
    }
}

/// The subflow of a socket, if it is an established one.
fn subflow_of(socket: &Socket) -> Option<(Subflow, bool)> {
    let mptcp = socket.subflow.filter(|subflow| !subflow.fell_back())?;
    let subflow = Subflow { token: mptcp.token, local: socket.local, remote: socket.remote };
    (socket.state == State::Established).then_some((subflow, mptcp.is_backup()))
}

fn sample(socket: &Socket) -> Option<Sample<Subflow>> {
    let (subflow, backup) = subflow_of(socket)?;
    let info = socket.info.as_ref()?;
    Some(Sample {
        token: subflow.token,
        subflow,
        acked: info.bytes_acked,
        received: info.bytes_received,
        busy_us: info.busy_time,
        srtt_us: info.rtt,
        window: window(info.snd_cwnd, info.snd_mss, is_model(&socket.control)),
        backup,
    })
}

/// Is a control of this name in the kernel a model law?
pub(crate) fn is_model(name: &str) -> bool {
    name == "bbr" || control_of_kernel_name(name).is_some_and(|control| control.law.is_model())
}

/// The established subflows among the sockets of a namespace.
fn look(sockets: &[Socket], advised: &BTreeSet<Subflow>) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut idle_ms: BTreeMap<u32, u32> = BTreeMap::new();
    for socket in sockets {
        let Some((subflow, backup)) = subflow_of(socket) else { continue };
        seen.push(Seen { subflow, advised: advised.contains(&subflow), backup, idle: false });
        let info = socket.info.as_ref();
        let last = info.map_or(0, |info| info.last_data_sent.min(info.last_data_recv));
        let least = idle_ms.entry(subflow.token).or_insert(last);
        *least = last.min(*least);
    }
    for one in &mut seen {
        one.idle = idle_ms[&one.subflow.token] >= IDLE_MS;
    }
    seen
}

/// Makes a subflow a backup: alone, or by an endpoint, whose id is returned.
fn set(subflow: Subflow, seen: &[Seen], endpoints: &[Endpoint]) -> Result<Option<u8>, String> {
    match pm::set_backup(subflow.token, subflow.local, subflow.remote, true) {
        Ok(()) => return Ok(None),
        // Its path manager is the kernel's.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
        Err(error) => return Err(refused(&error)),
    }
    let endpoint = endpoint_of(subflow, seen, endpoints)?;
    set_endpoint(endpoint, true).map_err(|error| refused(&error))?;
    Ok(Some(endpoint.id))
}

/// The endpoint by which the kernel's path manager makes a subflow a backup, and no other without
/// advice.
fn endpoint_of<'a>(
    subflow: Subflow,
    seen: &[Seen],
    endpoints: &'a [Endpoint],
) -> Result<&'a Endpoint, String> {
    let address = subflow.local.ip();
    agree(address, seen)?;
    let of = |endpoint: &&Endpoint| {
        endpoint.address == address && [0, subflow.local.port()].contains(&endpoint.port)
    };
    endpoints.iter().find(of).ok_or_else(|| {
        format!("the kernel's path manager has no such endpoint (ip mptcp endpoint add {address})")
    })
}

/// Are all subflows from this address advised to be backups, one of each connection that is not idle?
fn agree(address: IpAddr, seen: &[Seen]) -> Result<(), String> {
    let mut here: Vec<&Seen> =
        seen.iter().filter(|seen| seen.subflow.local.ip() == address).collect();
    if here.is_empty() {
        return Err(CLOSED.into());
    }
    if here.iter().any(|seen| seen.advised) {
        here.retain(|seen| seen.advised || !seen.idle);
    }
    let Some(other) = here.iter().find(|seen| !seen.advised) else {
        let twice = |one: &&&Seen| {
            here.iter().filter(|seen| seen.subflow.token == one.subflow.token).count() > 1
        };
        return match here.iter().find(twice) {
            None => Ok(()),
            Some(seen) => Err(format!(
                "the kernel's path manager sets the first of several subflows of {:08x} from {address}",
                seen.subflow.token
            )),
        };
    };
    match here.iter().any(|seen| seen.advised) {
        false => Err(WITHDRAWN.into()),
        true => Err(format!(
            "the kernel's path manager would also set {}, without such advice",
            other.subflow
        )),
    }
}

/// The flags that are not about backups stay.
fn set_endpoint(endpoint: &Endpoint, backup: bool) -> io::Result<()> {
    let others = endpoint.flags & Endpoint::FULLMESH;
    pm::set_flags(endpoint.id, others | if backup { Endpoint::BACKUP } else { 0 })
}

/// Regular again; what it came to.
fn end_endpoint(id: u8, address: IpAddr, why: &str) -> String {
    let set_back = pm::endpoints().and_then(|endpoints| {
        // It may be gone, or another's by now.
        let ours = endpoints.iter().find(|one| one.id == id && one.address == address);
        ours.map_or(Ok(()), |endpoint| set_endpoint(endpoint, false))
    });
    ended(format!("endpoint {id}, {address}"), set_back, why)
}

/// Likewise.
fn end_subflow(subflow: Subflow, why: &str) -> String {
    let set_back = match pm::set_backup(subflow.token, subflow.local, subflow.remote, false) {
        // It has closed.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        set_back => set_back,
    };
    ended(subflow.to_string(), set_back, why)
}

fn ended(what: String, set_back: io::Result<()>, why: &str) -> String {
    match set_back {
        Ok(()) => format!("{what}: regular: {why}"),
        Err(error) => format!("{what}: still a backup: {}", refused(&error)),
    }
}

fn refused(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "needs CAP_NET_ADMIN in its network namespace".into(),
        _ => format!("the path manager: {error}"),
    }
}

/// Where advice is that this command does not follow.
fn name_of(inum: u32) -> String {
    let all = Namespace::all().unwrap_or_default();
    match all.into_iter().find(|namespace| namespace.inum == inum) {
        Some(Namespace { name, .. }) => match name.raw().strip_prefix("pid:") {
            Some(pid) => format!("in another network namespace (--netns /proc/{pid}/ns/net)"),
            None => format!("in another network namespace (--netns {})", name.word()),
        },
        None => format!("in another network namespace, number {inum}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(token: u32, local: &str, advised: bool) -> Seen {
        let (local, remote) = (local.parse().unwrap(), "10.0.9.9:80".parse().unwrap());
        Seen { subflow: Subflow { token, local, remote }, advised, backup: false, idle: false }
    }

    fn endpoint(id: u8, address: &str, port: u16) -> Endpoint {
        Endpoint { id, address: address.parse().unwrap(), port, interface: 0, flags: 0 }
    }

    /// The endpoint to set for the first of `all`, or why none can be.
    fn chosen(all: &[Seen], endpoints: &[Endpoint]) -> Result<u8, String> {
        endpoint_of(all[0].subflow, all, endpoints).map(|endpoint| endpoint.id)
    }

    #[test]
    fn the_endpoint_of_an_advised_subflow_has_its_address() {
        let endpoints = [endpoint(1, "10.0.1.1", 0), endpoint(2, "10.0.2.1", 0)];
        let all = [seen(7, "10.0.2.1:1000", true), seen(7, "10.0.1.1:1001", false)];
        assert_eq!(chosen(&all, &endpoints), Ok(2));
        let why = chosen(&all, &endpoints[..1]).unwrap_err();
        assert!(why.ends_with("(ip mptcp endpoint add 10.0.2.1)"), "{why}");
        // One with a port is for the subflows from there.
        assert_eq!(chosen(&all, &[endpoint(3, "10.0.2.1", 1000)]), Ok(3));
        assert!(chosen(&all, &[endpoint(3, "10.0.2.1", 1001)]).is_err());
    }

    #[test]
    fn an_endpoint_is_set_only_if_all_connections_from_it_are_advised() {
        let endpoints = [endpoint(2, "10.0.2.1", 0)];
        let mut all = vec![seen(7, "10.0.2.1:1000", true), seen(8, "10.0.2.1:1001", true)];
        assert_eq!(chosen(&all, &endpoints), Ok(2));
        all.push(seen(9, "10.0.2.1:1002", false));
        let why = "the kernel's path manager would also set 00000009 10.0.2.1:1002 > 10.0.9.9:80, \
                   without such advice";
        assert_eq!(chosen(&all, &endpoints).unwrap_err(), why);
    }

    #[test]
    fn idle_connections_are_not_asked() {
        let idle = |token, local, advised| Seen { idle: true, ..seen(token, local, advised) };
        let address = "10.0.2.1".parse().unwrap();
        let mut all = vec![seen(7, "10.0.2.1:1000", true), idle(8, "10.0.2.1:1001", false)];
        assert_eq!(agree(address, &all), Ok(()));
        all.push(idle(8, "10.0.2.1:1002", false));
        assert_eq!(agree(address, &all), Ok(()));
        all[1].idle = false;
        assert!(agree(address, &all).is_err());
        assert_eq!(agree(address, &[idle(8, "10.0.2.1:1001", false)]).unwrap_err(), WITHDRAWN);
    }

    #[test]
    fn of_several_subflows_from_an_address_none_is_set() {
        let all = [seen(7, "10.0.2.1:1000", true), seen(7, "10.0.2.1:1001", true)];
        let why = "the kernel's path manager sets the first of several subflows of 00000007 from \
                   10.0.2.1";
        assert_eq!(chosen(&all, &[endpoint(2, "10.0.2.1", 0)]).unwrap_err(), why);
    }

    #[test]
    fn an_endpoint_becomes_regular_when_nobody_is_advised_or_left() {
        let address = "10.0.2.1".parse().unwrap();
        let why = |all: &[Seen]| agree(address, all).unwrap_err();
        assert_eq!(why(&[seen(7, "10.0.2.1:1000", false)]), WITHDRAWN);
        assert_eq!(why(&[seen(7, "10.0.1.1:1000", true)]), CLOSED);
    }
}
