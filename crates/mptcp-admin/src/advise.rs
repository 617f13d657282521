//! Advice about subflows, of their laws or, where those give none, by what the connection delivers
//! ([`narrows_advice`]), followed where the path manager can: a subflow that is advised to be a backup becomes
//! one, and regular again when the advice is withdrawn.
//!
//! A path manager in user space sets one subflow of one connection (`MPTCP_PM_CMD_SET_FLAGS` with its
//! token). The kernel's own, up to Linux 6.18, sets an endpoint: of every connection in the namespace
//! the first subflow from the endpoint's address, and those that join later (`mptcp_pm_nl_set_flags`).
//! So there all connections with a subflow from that address decide ([`Pool`]): what those gain that have
//! the advice must not be less than what the others lose.

mod record;

use narrows_advice::{Judge, Pool, Sample, Votes, window};
use narrows_kernel::pins::{self, Held};
use narrows_kernel::register::is_ours;
use narrows_kernel::{Error, is_root, state};
use narrows_laws::catalogue::control_of_kernel_name;
use narrows_laws::{Advice, Law, params};
use narrows_mptcp::diag::{self, Socket, State};
use narrows_mptcp::pm::{self, Endpoint};
use narrows_netns::Namespace;
use record::{Made, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

/// Advice about a path is withdrawn where its law says nothing more.
const WITHDRAWN: &str = "advice withdrawn";
const CLOSED: &str = "no subflow is left";

/// An endpoint that other connections needed more is regular for so long at least.
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
}

/// How a subflow was made a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    /// Alone.
    Subflow,
    /// By the endpoint of this id.
    Endpoint(u8),
    /// Not yet: who asks for it has not been seen for long enough.
    Later,
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
    pool: Pool<Subflow, IpAddr>,
    made: Made,
    /// Is that what a killed one recorded, and not yet compared with what there is?
    resumed: bool,
    record: Record,
    /// Until when an address stays regular.
    rests: BTreeMap<IpAddr, Instant>,
    /// What could not be done at the last look.
    told: Vec<String>,
}

impl Follower {
    /// Of `namespace`; with `others` it says what advice there is elsewhere. Goes on with what a killed one had set.
    ///
    /// # Errors
    /// Another process does so there; there is no way to remember what is set.
    pub fn open(namespace: Namespace, others: bool) -> Result<Follower, Error> {
        let place = || format!("network namespace {}", namespace.name);
        let cookie = namespace.run(narrows_netns::cookie).and_then(|cookie| cookie);
        let cookie = cookie.map_err(|error| Error::input(place(), error.to_string()))?;
        let (record, made) = Record::open(cookie)?
            .ok_or_else(|| Error::input(place(), "narrows kernel advise runs there already"))?;
        Ok(Follower {
            namespace,
            others,
            judged: Judged { judge: Judge::default(), began: Instant::now() },
            pool: Pool::default(),
            made,
            resumed: true,
            record,
            rests: BTreeMap::new(),
            told: Vec::new(),
        })
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
    pub fn end(self) -> Vec<String> {
        let Follower { namespace, made, record, .. } = self;
        give_back(&namespace, record, made, "the end")
    }

    /// In the namespace.
    fn turn(
        &mut self,
        mut advised: BTreeSet<Subflow>,
        advises: impl Fn(&str) -> bool,
        problems: &mut Vec<String>,
    ) -> io::Result<Vec<String>> {
        let (sockets, now) = (diag::sockets()?, Instant::now());
        let judged: Vec<Sample<Subflow>> =
            sockets.iter().filter(|socket| !advises(&socket.control)).filter_map(sample).collect();
        let all: Vec<Sample<Subflow>> = sockets.iter().filter_map(sample).collect();
        let Judged { judge, began } = &mut self.judged;
        let at = now - *began;
        advised.extend(judge.look(at, &judged));
        let votes = self.pool.look(at, &all, &advised, |subflow| subflow.local.ip());
        let seen = look(&sockets, &advised);
        if self.resumed {
            // The kernel's path manager is asked only where endpoints were set.
            let endpoints = match self.made.endpoints.is_empty() {
                true => Vec::new(),
                false => pm::endpoints()?,
            };
            forget_unset(&mut self.made, &seen, &endpoints);
            self.resumed = false;
        }
        let mut lines = Vec::new();
        let mut stays_set = |ended: Result<String, String>| {
            let failed = ended.is_err();
            match ended {
                Ok(line) => lines.push(line),
                Err(line) => problems.push(line),
            }
            failed
        };
        self.rests.retain(|_, end| *end > now);
        self.made.endpoints.retain(|&id, &mut address| {
            match stays(address, votes.get(&address), &seen) {
                Ok(()) => true,
                Err(why) => {
                    if why != WITHDRAWN && why != CLOSED {
                        self.rests.insert(address, now + REST);
                    }
                    stays_set(end_endpoint(id, address, &why))
                }
            }
        });
        self.made.subflows.retain(|&subflow| {
            match seen.iter().find(|seen| seen.subflow == subflow) {
                Some(seen) if seen.advised => true,
                Some(_) => stays_set(end_subflow(subflow, WITHDRAWN)),
                None => false,
            }
        });
        if let Err(error) = self.record.write(&self.made) {
            problems.push(error.to_string());
        }
        let wanted: Vec<&Seen> = seen.iter().filter(|seen| seen.advised && !seen.backup).collect();
        if wanted.is_empty() {
            return Ok(lines);
        }
        let endpoints = pm::endpoints()?;
        let before: Vec<IpAddr> = self.made.endpoints.values().copied().collect();
        for &&Seen { subflow, .. } in &wanted {
            let address = subflow.local.ip();
            let ineffective = self.made.subflows.contains(&subflow) || before.contains(&address);
            if !ineffective && self.made.endpoints.values().any(|set| *set == address) {
                continue;
            }
            if self.rests.contains_key(&address) {
                continue;
            }
            let set = match ineffective {
                true => Err("set, but the kernel does not make it a backup".into()),
                false => self.set(subflow, &seen, votes.get(&address), &endpoints),
            };
            match set {
                Ok(Set::Subflow) => lines.push(format!("{subflow}: backup")),
                Ok(Set::Endpoint(id)) => {
                    let whose = whose(address, &seen);
                    lines.push(format!("endpoint {id}, {address}: backup: {whose}"));
                }
                Ok(Set::Later) => {}
                Err(why) => problems.push(format!("{subflow}: not done: {why}")),
            }
        }
        Ok(lines)
    }

    /// Makes a subflow a backup, alone or by an endpoint; what is about to be set is recorded first.
    fn set(
        &mut self,
        subflow: Subflow,
        seen: &[Seen],
        votes: Option<&Votes>,
        endpoints: &[Endpoint],
    ) -> Result<Set, String> {
        let record = |made: &Made| self.record.write(made).map_err(|error| error.to_string());
        self.made.subflows.insert(subflow);
        if let Err(why) = record(&self.made) {
            self.made.subflows.remove(&subflow);
            return Err(why);
        }
        let alone = pm::set_backup(subflow.token, subflow.local, subflow.remote, true);
        let Err(error) = alone else { return Ok(Set::Subflow) };
        self.made.subflows.remove(&subflow);
        record(&self.made)?;
        // Its path manager is the kernel's.
        if error.kind() != io::ErrorKind::InvalidInput {
            return Err(refused(&error));
        }
        let Some(endpoint) = endpoint_of(subflow, seen, votes, endpoints)? else {
            return Ok(Set::Later);
        };
        self.made.endpoints.insert(endpoint.id, endpoint.address);
        let set = record(&self.made)
            .and_then(|()| set_endpoint(endpoint, true).map_err(|error| refused(&error)));
        if set.is_err() {
            self.made.endpoints.remove(&endpoint.id);
        }
        set.map(|()| Set::Endpoint(endpoint.id))
    }
}

/// Sets back what killed processes had set in any namespace: a line for each thing, and the first error.
///
/// # Errors
/// What they recorded, or which namespaces there are, cannot be read; all else was set back.
pub fn sweep() -> (Vec<String>, Result<(), Error>) {
    let left = Record::left();
    if left.is_empty() {
        return (Vec::new(), Ok(()));
    }
    let (all, read) = match Namespace::all() {
        Ok(all) => (all, Ok(())),
        Err(error) => (Vec::new(), Err(Error::io(Path::new("/proc"), "read")(error))),
    };
    let (mut namespaces, mut all_known) = (BTreeMap::new(), read.is_ok());
    for namespace in all {
        let cookie = || namespace.run(narrows_netns::cookie).and_then(|cookie| cookie);
        match namespace.unless_gone(cookie) {
            Ok(Some(cookie)) => {
                namespaces.insert(cookie, namespace);
            }
            Ok(None) => {}
            Err(_) => all_known = false,
        }
    }
    let (mut lines, mut result) = (Vec::new(), read);
    for one in left {
        match one {
            Err(error) => result = result.and(Err(error)),
            Ok((cookie, record, made)) => match namespaces.get(&cookie) {
                Some(namespace) => {
                    lines.extend(give_back(namespace, record, made, "its `advise` was killed"));
                }
                // One that has gone has nothing that could be set.
                None if all_known => result = result.and(record.close(&Made::default())),
                None => {}
            },
        }
    }
    (lines, result)
}

/// Sets back what was set in a namespace, a line for each thing; what could not be stays recorded.
fn give_back(namespace: &Namespace, record: Record, mut made: Made, why: &str) -> Vec<String> {
    let mut lines = Vec::new();
    if made != Made::default() {
        lines = namespace.run(|| set_back(&mut made, why)).unwrap_or_else(|error| {
            vec![format!("network namespace {}: not set back: {error}", namespace.name)]
        });
    }
    lines.extend(record.close(&made).err().map(|error| error.to_string()));
    lines
}

/// In the namespace: a line for each thing that was set; leaves what could not be set back.
fn set_back(made: &mut Made, why: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut stays_set = |ended: Result<String, String>| {
        let failed = ended.is_err();
        let (Ok(line) | Err(line)) = ended;
        lines.push(line);
        failed
    };
    made.endpoints.retain(|id, address| stays_set(end_endpoint(*id, *address, why)));
    made.subflows.retain(|subflow| stays_set(end_subflow(*subflow, why)));
    lines
}

/// Takes out what was recorded and never set, or was undone since: it would be taken for something that the kernel
/// does not do.
fn forget_unset(made: &mut Made, seen: &[Seen], endpoints: &[Endpoint]) {
    made.subflows.retain(|set| !seen.iter().any(|seen| seen.subflow == *set && !seen.backup));
    made.endpoints.retain(|id, address| {
        let is = |one: &&Endpoint| one.id == *id && one.address == *address;
        endpoints.iter().find(is).is_some_and(Endpoint::is_backup)
    });
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
    let seen = |(subflow, backup): (Subflow, bool)| Seen {
        subflow,
        advised: advised.contains(&subflow),
        backup,
    };
    sockets.iter().filter_map(subflow_of).map(seen).collect()
}

/// The endpoint by which the kernel's path manager makes a subflow a backup; none: not yet.
fn endpoint_of<'a>(
    subflow: Subflow,
    seen: &[Seen],
    votes: Option<&Votes>,
    endpoints: &'a [Endpoint],
) -> Result<Option<&'a Endpoint>, String> {
    let (token, address) = (subflow.token, subflow.local.ip());
    let from = seen.iter().filter(|seen| seen.subflow.local.ip() == address);
    if from.filter(|seen| seen.subflow.token == token).count() > 1 {
        return Err(format!(
            "the kernel's path manager sets the first of several subflows of {token:08x} from {address}"
        ));
    }
    let of = |endpoint: &&Endpoint| {
        endpoint.address == address && [0, subflow.local.port()].contains(&endpoint.port)
    };
    let endpoint = endpoints.iter().find(of).ok_or_else(|| {
        format!("the kernel's path manager has no such endpoint (ip mptcp endpoint add {address})")
    })?;
    match votes {
        Some(votes) if votes.backup() => Ok(Some(endpoint)),
        Some(votes) if votes.asked => Err(format!(
            "the kernel's path manager would also set the other connections from {address}, which may lose more"
        )),
        _ => Ok(None),
    }
}

/// Is an endpoint that was set to stay a backup? Else why not.
fn stays(address: IpAddr, votes: Option<&Votes>, seen: &[Seen]) -> Result<(), String> {
    let mbit = |rate: f64| rate * 8e-6;
    match votes {
        Some(votes) if votes.backup() => Ok(()),
        Some(Votes { asked: true, gain, loss }) => Err(format!(
            "without it other connections lose {:.2} Mbit/s, and those with the advice gain {:.2}",
            mbit(*loss),
            mbit(*gain)
        )),
        _ if seen.iter().any(|seen| seen.subflow.local.ip() == address) => Err(WITHDRAWN.into()),
        _ => Err(CLOSED.into()),
    }
}

/// The subflows from an address that have the advice, and how many others.
fn whose(address: IpAddr, seen: &[Seen]) -> String {
    let from = seen.iter().filter(|seen| seen.subflow.local.ip() == address);
    let (advised, others): (Vec<&Seen>, Vec<&Seen>) = from.partition(|seen| seen.advised);
    let mut text: Vec<String> = advised.iter().map(|seen| seen.subflow.to_string()).collect();
    if !others.is_empty() {
        text.push(format!("and {} without such advice", others.len()));
    }
    text.join(", ")
}

/// The flags that are not about backups stay.
fn set_endpoint(endpoint: &Endpoint, backup: bool) -> io::Result<()> {
    let others = endpoint.flags & Endpoint::FULLMESH;
    pm::set_flags(endpoint.id, others | if backup { Endpoint::BACKUP } else { 0 })
}

/// Regular again; error: still a backup.
fn end_endpoint(id: u8, address: IpAddr, why: &str) -> Result<String, String> {
    let set_back = pm::endpoints().and_then(|endpoints| {
        // It may be gone, or another's by now.
        let ours = endpoints.iter().find(|one| one.id == id && one.address == address);
        ours.map_or(Ok(()), |endpoint| set_endpoint(endpoint, false))
    });
    ended(format!("endpoint {id}, {address}"), set_back, why)
}

/// Likewise.
fn end_subflow(subflow: Subflow, why: &str) -> Result<String, String> {
    let set_back = match pm::set_backup(subflow.token, subflow.local, subflow.remote, false) {
        // It has closed.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        set_back => set_back,
    };
    ended(subflow.to_string(), set_back, why)
}

fn ended(what: String, set_back: io::Result<()>, why: &str) -> Result<String, String> {
    match set_back {
        Ok(()) => Ok(format!("{what}: regular: {why}")),
        Err(error) => Err(format!("{what}: still a backup: {}", refused(&error))),
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
        Seen { subflow: Subflow { token, local, remote }, advised, backup: false }
    }

    fn endpoint(id: u8, address: &str, port: u16) -> Endpoint {
        Endpoint { id, address: address.parse().unwrap(), port, interface: 0, flags: 0 }
    }

    const GAINS: Votes = Votes { asked: true, gain: 1e6, loss: 5e5 };
    const LOSES: Votes = Votes { asked: true, gain: 5e5, loss: 1e6 };
    const UNASKED: Votes = Votes { asked: false, gain: 0.0, loss: 5e5 };

    /// The endpoint to set for the first of `all`, or why none can be.
    fn chosen(all: &[Seen], votes: Votes, endpoints: &[Endpoint]) -> Result<Option<u8>, String> {
        let endpoint = endpoint_of(all[0].subflow, all, Some(&votes), endpoints)?;
        Ok(endpoint.map(|endpoint| endpoint.id))
    }

    #[test]
    fn the_endpoint_of_an_advised_subflow_has_its_address() {
        let endpoints = [endpoint(1, "10.0.1.1", 0), endpoint(2, "10.0.2.1", 0)];
        let all = [seen(7, "10.0.2.1:1000", true), seen(7, "10.0.1.1:1001", false)];
        assert_eq!(chosen(&all, GAINS, &endpoints), Ok(Some(2)));
        let why = chosen(&all, GAINS, &endpoints[..1]).unwrap_err();
        assert!(why.ends_with("(ip mptcp endpoint add 10.0.2.1)"), "{why}");
        // One with a port is for the subflows from there.
        assert_eq!(chosen(&all, GAINS, &[endpoint(3, "10.0.2.1", 1000)]), Ok(Some(3)));
        assert!(chosen(&all, GAINS, &[endpoint(3, "10.0.2.1", 1001)]).is_err());
    }

    #[test]
    fn an_endpoint_is_set_by_what_all_connections_from_it_gain_and_lose() {
        let endpoints = [endpoint(2, "10.0.2.1", 0)];
        let all = [seen(7, "10.0.2.1:1000", true), seen(8, "10.0.2.1:1001", false)];
        assert_eq!(chosen(&all, GAINS, &endpoints), Ok(Some(2)));
        let why = "the kernel's path manager would also set the other connections from 10.0.2.1, \
                   which may lose more";
        assert_eq!(chosen(&all, LOSES, &endpoints).unwrap_err(), why);
        assert_eq!(chosen(&all, UNASKED, &endpoints), Ok(None), "it has not been seen for long");
        let text = "00000007 10.0.2.1:1000 > 10.0.9.9:80, and 1 without such advice";
        assert_eq!(whose("10.0.2.1".parse().unwrap(), &all), text);
    }

    #[test]
    fn of_several_subflows_from_an_address_none_is_set_and_other_connections_are() {
        let all = [seen(7, "10.0.2.1:1000", true), seen(7, "10.0.2.1:1001", true)];
        let why = "the kernel's path manager sets the first of several subflows of 00000007 from \
                   10.0.2.1";
        let endpoints = [endpoint(2, "10.0.2.1", 0)];
        assert_eq!(chosen(&all, GAINS, &endpoints).unwrap_err(), why);
        let all = [&[seen(8, "10.0.2.1:1002", true)][..], &all[..]].concat();
        assert_eq!(chosen(&all, GAINS, &endpoints), Ok(Some(2)));
    }

    #[test]
    fn what_was_recorded_and_is_not_set_may_be_set() {
        let (first, second) = (seen(7, "10.0.2.1:1000", true), seen(7, "10.0.3.1:1001", true));
        let backup = Seen { backup: true, ..second };
        let closed = seen(8, "10.0.2.1:1002", true);
        let addresses = [(2, "10.0.2.1"), (3, "10.0.3.1"), (4, "10.0.4.1")];
        let mut made = Made {
            subflows: BTreeSet::from([first, backup, closed].map(|one| one.subflow)),
            endpoints: BTreeMap::from(addresses.map(|(id, at)| (id, at.parse().unwrap()))),
        };
        let set = Endpoint { flags: Endpoint::BACKUP, ..endpoint(3, "10.0.3.1", 0) };
        // The fourth is another's by now.
        let other = Endpoint { flags: Endpoint::BACKUP, ..endpoint(4, "10.0.5.1", 0) };
        forget_unset(&mut made, &[first, backup], &[endpoint(2, "10.0.2.1", 0), set, other]);
        assert_eq!(made.subflows, BTreeSet::from([backup, closed].map(|one| one.subflow)));
        assert_eq!(made.endpoints, BTreeMap::from([(3, "10.0.3.1".parse().unwrap())]));
    }

    #[test]
    fn an_endpoint_becomes_regular_when_nobody_is_advised_or_left_or_others_lose_more() {
        let address = "10.0.2.1".parse().unwrap();
        let here = [seen(7, "10.0.2.1:1000", false)];
        assert_eq!(stays(address, Some(&GAINS), &here), Ok(()));
        assert_eq!(stays(address, Some(&UNASKED), &here).unwrap_err(), WITHDRAWN);
        // It has no other path any more.
        assert_eq!(stays(address, None, &here).unwrap_err(), WITHDRAWN);
        assert_eq!(stays(address, None, &[]).unwrap_err(), CLOSED);
        let why = "without it other connections lose 8.00 Mbit/s, and those with the advice \
                   gain 4.00";
        assert_eq!(stays(address, Some(&LOSES), &here).unwrap_err(), why);
    }
}
