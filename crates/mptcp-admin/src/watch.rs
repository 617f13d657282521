//! Which paths of a connection meet in one bottleneck, under whatever control they run: their
//! round-trip times are sampled through BPF ([`Sampler`]), and `xcorr` decides here, as it does on
//! captures (`narrows_detect::Live`). Nothing of a socket or the machine is changed.
//!
//! Once a second the kernel's sock_diag says which sockets there are ([`Watch::look`]); their samples
//! are read some times a second ([`Watch::sample`]).
//!
//! The structs of `watch/report.rs` are the schema of `narrows kernel watch --json`; docs/guide/watch.md shows it.

pub(crate) mod compared;
mod groups;
pub(crate) mod report;
mod scope;

pub use report::{Connection, Pair, Path, Report, Spent};
pub use scope::Scope;

use crate::clock::monotonic;
use crate::interfaces::Interfaces;
use compared::Compared;
use narrows_foreign::Foreign;
use narrows_kernel::Error;
use narrows_kernel::sampler::{RttSample, SOCKETS_MAX, Sampler};
use narrows_mptcp::diag::{self, Socket};
use narrows_netns::Namespace;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io;

/// Subflows of a connection that are compared, also those that have ended; with more it begins anew.
/// Linux has at most nine at a time.
const SUBFLOWS: usize = 16;

/// MPTCP connections that are watched at the same time.
const CONNECTIONS: usize = SOCKETS_MAX / SUBFLOWS;

/// A sample can be read when the next acknowledgement comes, and those of all paths must be in the
/// order of time: so long they are held back, µs.
const HELD_US: u64 = 150_000;

/// Who is not watched yet must have had so many bytes acknowledged since the last look, 14 packets: with
/// fewer in a second most bins of the detector are empty.
const LEAST: u64 = 20_000;

/// Who sends nothing for so many looks makes room for others.
const IDLE: u32 = 10;

/// What is compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    /// The subflows of a connection, by the number of its namespace and its token.
    Mptcp(u32, u32),
    /// Plain TCP.
    Tcp,
}

/// A socket of the scope.
struct Seen<'a> {
    key: Key,
    netns: &'a Namespace,
    socket: Socket,
    /// Bytes that were acknowledged since the last look; of a socket that was not there, of the last
    /// second by its rate.
    grown: u64,
}

/// What is watched.
pub struct Watch {
    scope: Scope,
    sampler: Sampler,
    began_us: u64,
    compared: BTreeMap<Key, Compared>,
    /// Whose samples those of a socket are, by its cookie.
    places: HashMap<u64, (Key, usize)>,
    /// Samples that are held back, and up to when all were taken.
    held: Vec<RttSample>,
    taken_us: u64,
    /// Bytes that were acknowledged at the last look, by the socket's cookie.
    acked: HashMap<u64, u64>,
    left_out: usize,
}

impl Watch {
    /// Loads the sampler. Sockets are found by [`Watch::look`].
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn start(scope: Scope) -> Result<Watch, Error> {
        let sampler = Sampler::start()?;
        let now_us = now_us();
        Ok(Watch {
            scope,
            sampler,
            began_us: now_us,
            compared: BTreeMap::new(),
            places: HashMap::new(),
            held: Vec::new(),
            taken_us: now_us,
            acked: HashMap::new(),
            left_out: 0,
        })
    }

    /// What is known of all that is watched.
    pub fn report(&self) -> Report {
        Report {
            format: report::FORMAT,
            t_s: self.seconds(now_us()),
            connections: self.compared.values().map(Connection::of).collect(),
            left_out: self.left_out,
            missed_samples: self.sampler.missed(),
        }
    }

    /// Looks which sockets there are, and chooses those that are watched: as many MPTCP connections of
    /// several subflows, or TCP flows, as there is room for, those first that send most. Returns the
    /// connections that have ended since the last look.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn look(&mut self) -> Result<Vec<Connection>, Error> {
        let failed = |error: io::Error| Error::input("network namespaces", error.to_string());
        let now_us = now_us();
        let namespaces = match &self.scope.netns {
            Some(one) => vec![one.clone()],
            None => Namespace::all().map_err(failed)?,
        };
        let cgroups = self.scope.cgroups()?;
        let mut seen = Vec::new();
        for netns in &namespaces {
            let sockets = netns.unless_gone(|| netns.run(diag::sockets).and_then(|all| all));
            let sockets = sockets.map_err(failed)?.unwrap_or_default();
            for (key, socket) in self.scope.of(netns, sockets, cgroups.as_ref()) {
                seen.push(Seen { key, netns, socket, grown: 0 });
            }
        }
        let acked = |socket: &Socket| socket.info.as_ref().map_or(0, |info| info.bytes_acked);
        for one in &mut seen {
            one.grown = match self.acked.get(&one.socket.cookie) {
                Some(before) => acked(&one.socket).saturating_sub(*before),
                None => one.socket.info.as_ref().map_or(0, |info| {
                    of_last_second(info.bytes_acked, info.last_data_sent, info.delivery_rate)
                }),
            };
        }
        let ended = self.update(&seen, now_us);
        for (one, interface) in with_interfaces(self.choose(&seen)) {
            self.add(one, interface, now_us);
        }
        self.acked = seen.iter().map(|one| (one.socket.cookie, acked(&one.socket))).collect();
        Ok(ended)
    }

    /// Takes the samples that came, and returns what changed: a line for each time that other paths meet
    /// in one bottleneck.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn sample(&mut self) -> Result<Vec<String>, Error> {
        self.sampler.drain(|sample| self.held.push(sample))?;
        let until_us = now_us().saturating_sub(HELD_US);
        self.held.sort_by_key(|sample| sample.at_us);
        let due = self.held.partition_point(|sample| sample.at_us <= until_us);
        let mut changes = Vec::new();
        for sample in self.held.drain(..due) {
            let Some((key, slot)) = self.places.get(&sample.cookie) else { continue };
            let compared = self.compared.get_mut(key).expect("a place is of something compared");
            changes.extend(compared.sample(*slot, &sample, self.taken_us));
        }
        for compared in self.compared.values_mut() {
            changes.extend(compared.advance(until_us));
        }
        self.taken_us = until_us;
        changes.sort_by_key(|change| change.at_us);
        let line = |change: compared::Change| {
            format!("{:8.1}  {}  {}", self.seconds(change.at_us), change.name, change.what)
        };
        Ok(changes.into_iter().map(line).collect())
    }

    /// The open paths of MPTCP connections, each with the number of its namespace and its connection's token.
    pub(crate) fn open(&self) -> impl Iterator<Item = (u32, u32, &compared::Path)> {
        self.compared.iter().flat_map(|(key, compared)| {
            let open = compared.paths.iter().filter(|path| path.open);
            open.filter_map(|path| match *key {
                Key::Mptcp(netns, token) => Some((netns, token, path)),
                Key::Tcp => None,
            })
        })
    }

    /// Since the beginning.
    fn seconds(&self, at_us: u64) -> f64 {
        at_us.saturating_sub(self.began_us) as f64 / 1e6
    }

    /// Takes what the kernel says now of the sockets that are watched, and returns connections that have
    /// ended.
    fn update(&mut self, seen: &[Seen<'_>], now_us: u64) -> Vec<Connection> {
        let sockets: HashMap<u64, &Seen<'_>> =
            seen.iter().map(|one| (one.socket.cookie, one)).collect();
        for (key, compared) in &mut self.compared {
            for path in &mut compared.paths {
                let now = sockets.get(&path.cookie).map(|one| (&one.socket, one.grown));
                path.update(now, now_us);
            }
            let idle = |path: &compared::Path| path.silent >= IDLE;
            let all = self.left_out > 0 && compared.paths.iter().all(idle);
            for path in &mut compared.paths {
                path.open &= !(all || *key == Key::Tcp && idle(path));
            }
        }
        self.places.retain(|&cookie, (key, slot)| {
            let open = self.compared[key].paths[*slot].open;
            if !open {
                self.sampler.remove(cookie);
            }
            open
        });
        let over = |(key, compared): &(&Key, &Compared)| **key != Key::Tcp && !compared.is_open();
        let ended: Vec<Key> = self.compared.iter().filter(over).map(|(key, _)| *key).collect();
        let remove = |key| self.compared.remove(key).map(|compared| Connection::of(&compared));
        ended.iter().filter_map(remove).collect()
    }

    /// Those that are to be watched from now on, too.
    fn choose<'a, 'b>(&mut self, seen: &'a [Seen<'b>]) -> Vec<&'a Seen<'b>> {
        let new = seen.iter().filter(|one| !self.places.contains_key(&one.socket.cookie));
        let mut new: Vec<&Seen<'b>> = new.collect();
        if let Some(most) = self.scope.tcp {
            new.retain(|one| one.grown >= LEAST);
            new.sort_by_key(|one| Reverse(one.grown));
            let all = new.len();
            new.truncate(most.saturating_sub(self.places.len()));
            self.left_out = all - new.len();
            return new;
        }
        // A connection that is not watched yet: what it sends, and how many subflows it has.
        let mut others: HashMap<Key, (u64, usize)> = HashMap::new();
        for one in new.iter().filter(|one| !self.compared.contains_key(&one.key)) {
            let (grown, subflows) = others.entry(one.key).or_default();
            *grown += one.grown;
            *subflows += 1;
        }
        let mut others: Vec<(u64, Key)> = others
            .into_iter()
            .filter(|(_, (grown, subflows))| *grown >= LEAST && *subflows > 1)
            .map(|(key, (grown, _))| (grown, key))
            .collect();
        others.sort_unstable_by_key(|&(grown, key)| (Reverse(grown), key));
        let room = CONNECTIONS.saturating_sub(self.compared.len());
        self.left_out = others.len().saturating_sub(room);
        others.truncate(room);
        let chosen = |key| others.iter().any(|(_, other)| *other == key);
        new.retain(|one| self.compared.contains_key(&one.key) || chosen(one.key));
        // The first subflow has the ids 0.
        new.sort_by_key(|one| {
            let ids = one.socket.subflow.map(|subflow| (subflow.local_id, subflow.remote_id));
            (one.key, ids, one.socket.local)
        });
        new
    }

    /// Watches a socket from now on, if there is room for it.
    fn add(&mut self, one: &Seen<'_>, interface: Option<Foreign>, now_us: u64) {
        let (key, cookie) = (one.key, one.socket.cookie);
        let new = || match key {
            Key::Mptcp(_, token) => Compared::new(Some(token), SUBFLOWS),
            Key::Tcp => Compared::new(None, narrows_detect::MAX_FLOWS),
        };
        let compared = self.compared.entry(key).or_insert_with(new);
        if compared.is_full() {
            compared.renew();
            for (slot, path) in compared.paths.iter().enumerate() {
                self.places.insert(path.cookie, (key, slot));
            }
        }
        if compared.is_full() || self.sampler.add(cookie).is_err() {
            self.left_out += 1;
            return;
        }
        let path = compared::Path::new(&one.socket, &one.netns.name, interface, now_us);
        self.places.insert(cookie, (key, compared.paths.len()));
        compared.paths.push(path);
    }
}

/// The interface that each socket's packets leave by, as far as its namespace says.
fn with_interfaces<'a, 'b>(all: Vec<&'a Seen<'b>>) -> Vec<(&'a Seen<'b>, Option<Foreign>)> {
    let mut by_netns: BTreeMap<u32, Vec<&'a Seen<'b>>> = BTreeMap::new();
    for one in all {
        by_netns.entry(one.netns.inum).or_default().push(one);
    }
    let of = |sockets: Vec<&'a Seen<'b>>| {
        let look = || {
            let mut interfaces = Interfaces::look();
            sockets.iter().map(|one| interfaces.of(&one.socket)).collect::<Vec<_>>()
        };
        let found = sockets[0].netns.run(look).unwrap_or_else(|_| vec![None; sockets.len()]);
        sockets.into_iter().zip(found)
    };
    by_netns.into_values().flat_map(of).collect()
}

/// Bytes that a socket had acknowledged in the last second, as far as it tells: its rate when it was
/// last measured, if it sent since.
fn of_last_second(acked: u64, sent_ms_ago: u32, bytes_per_s: u64) -> u64 {
    if sent_ms_ago <= 1000 { acked.min(bytes_per_s) } else { 0 }
}

/// As the samples have it.
fn now_us() -> u64 {
    monotonic().as_micros() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_first_sight_a_socket_counts_for_what_it_sends_now() {
        assert_eq!(of_last_second(1 << 30, 3, 1_000_000), 1_000_000);
        assert_eq!(of_last_second(1 << 30, 5_000, 1_000_000), 0, "it sent long ago");
        assert_eq!(of_last_second(5_000, 3, 1_000_000), 5_000, "it has just begun");
    }
}
