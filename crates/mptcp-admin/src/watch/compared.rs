//! Paths that are compared with each other, and which of them meet in one bottleneck.

use super::groups::{Groups, groups, numbered};
use narrows_detect::{Live, Verdict};
use narrows_foreign::Foreign;
use narrows_kernel::sampler::RttSample;
use narrows_laws::detect::{DELACK_US, Sample};
use narrows_laws::{Detector, Params};
use narrows_mptcp::diag::{Socket, TcpInfo};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A sample that is so much older than what was taken before it has no delay: a bin of `xcorr`, µs.
const LATE_US: u64 = 20_000;

/// Decisions that are further apart have a pause between them, of which this part counts, µs.
const APART_US: u64 = 1_000_000;

/// A path: a subflow, or a TCP flow.
pub struct Path {
    pub cookie: u64,
    pub netns: Foreign,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub interface: Option<Foreign>,
    /// Its congestion control.
    pub control: String,
    pub open: bool,
    /// Is it a backup?
    pub backup: bool,
    /// What TCP knew of it at the last look.
    pub info: Option<TcpInfo>,
    /// Looks since it last sent.
    pub silent: u32,
    pub min_rtt_us: u32,
    /// Packets lost since it is watched.
    pub lost: u64,
    /// Bytes acknowledged, and when that was read: at first, at the last look and the one before, µs.
    pub acked: [(u64, u64); 3],
    newest: Option<RttSample>,
}

impl Path {
    /// As the kernel describes it now.
    pub fn new(socket: &Socket, netns: &Foreign, interface: Option<Foreign>, now_us: u64) -> Path {
        let mut path = Path {
            cookie: socket.cookie,
            netns: netns.clone(),
            local: socket.local,
            remote: socket.remote,
            interface,
            control: String::new(),
            open: true,
            backup: false,
            info: None,
            silent: 0,
            min_rtt_us: 0,
            lost: 0,
            acked: [(0, 0); 3],
            newest: None,
        };
        path.update(Some((socket, 1)), now_us);
        path.acked = [path.acked[2]; 3];
        path
    }

    /// The socket now, and by how many bytes more were acknowledged; none: it has ended.
    pub fn update(&mut self, now: Option<(&Socket, u64)>, now_us: u64) {
        let Some((socket, grown)) = now.filter(|_| self.open) else {
            self.open = false;
            return;
        };
        self.silent = if grown > 0 { 0 } else { self.silent + 1 };
        self.control.clone_from(&socket.control);
        self.backup = socket.subflow.is_some_and(|subflow| subflow.is_backup());
        self.info.clone_from(&socket.info);
        if let Some(info) = &socket.info {
            self.min_rtt_us = info.min_rtt;
            self.acked = [self.acked[0], self.acked[2], (info.bytes_acked, now_us)];
        }
    }

    /// What the newest sample says, beyond the one before: none of the first. A sample that came `late`
    /// has no delay.
    fn take(&mut self, sample: &RttSample, late: bool) -> Option<Sample> {
        let before = self.newest.replace(*sample)?;
        let delivered = sample.delivered.wrapping_sub(before.delivered);
        let lost = sample.lost.wrapping_sub(before.lost);
        self.lost += u64::from(lost);
        let waited =
            delivered == 1 && sample.at_us.saturating_sub(before.at_us) >= u64::from(DELACK_US);
        let rtt = Some(sample.rtt_us).filter(|&rtt_us| rtt_us > 0 && !waited);
        Some(Sample {
            now_us: sample.at_us,
            delay_us: rtt.filter(|_| !late).and_then(|rtt_us| i32::try_from(rtt_us).ok()),
            rtt_us: rtt,
            delivered,
            lost,
            limited: sample.app_limited != 0,
        })
    }
}

/// Other paths meet from now on.
pub struct Change {
    pub at_us: u64,
    /// Of the connection.
    pub name: String,
    pub what: String,
}

/// Paths that are compared with each other: of a connection, or TCP flows.
pub struct Compared {
    /// Of the connection; none: TCP flows.
    pub token: Option<u32>,
    room: usize,
    live: Live,
    pub paths: Vec<Path>,
    /// Now, of the open paths.
    pub groups: Groups,
    /// Time since the first answer, by the groups that there were, µs.
    pub spent: BTreeMap<Groups, u64>,
    decided_us: Option<u64>,
}

impl Compared {
    /// Of the connection with a token, or of TCP flows; with room for so many paths.
    pub fn new(token: Option<u32>, room: usize) -> Compared {
        let live = Live::new(Detector::XCORR, &Params::default(), room);
        Compared {
            token,
            room,
            live: live.expect("xcorr goes by delays"),
            paths: Vec::new(),
            groups: Groups::new(),
            spent: BTreeMap::new(),
            decided_us: None,
        }
    }

    /// Has it no room for another path?
    pub fn is_full(&self) -> bool {
        self.paths.len() == self.room
    }

    /// Is one of its paths open?
    pub fn is_open(&self) -> bool {
        self.paths.iter().any(|path| path.open)
    }

    /// Begins anew with the open paths, if one has ended.
    pub fn renew(&mut self) {
        if self.paths.iter().all(|path| path.open) {
            return;
        }
        let paths = std::mem::take(&mut self.paths);
        *self = Compared::new(self.token, self.room);
        self.paths = paths.into_iter().filter(|path| path.open).collect();
    }

    /// A sample of a path, in the order of time; `taken_us`: up to when samples were taken before.
    pub fn sample(&mut self, slot: usize, sample: &RttSample, taken_us: u64) -> Vec<Change> {
        let late = sample.at_us + LATE_US < taken_us;
        let Some(sample) = self.paths[slot].take(sample, late) else { return Vec::new() };
        let mut due = self.live.sample(slot, &sample);
        let mut changes = Vec::new();
        while let Some(decision) = due {
            changes.extend(self.decided(decision.on.at_us));
            due = self.live.advance(sample.now_us);
        }
        changes
    }

    /// Up to now there are no more samples.
    pub fn advance(&mut self, now_us: u64) -> Vec<Change> {
        let mut changes = Vec::new();
        while let Some(decision) = self.live.advance(now_us) {
            changes.extend(self.decided(decision.on.at_us));
        }
        changes
    }

    fn decided(&mut self, at_us: u64) -> Option<Change> {
        let before_us = self.decided_us.replace(at_us).unwrap_or(at_us);
        let open: Vec<usize> =
            (0..self.paths.len()).filter(|&slot| self.paths[slot].open).collect();
        let groups = groups(&self.live.verdicts(), &open);
        if !self.spent.is_empty() || !groups.is_empty() {
            let passed = at_us.saturating_sub(before_us).min(APART_US);
            *self.spent.entry(groups.clone()).or_default() += passed;
        }
        if groups == self.groups {
            return None;
        }
        self.groups = groups;
        let what = numbered(&self.groups, &open);
        Some(Change { at_us, name: Compared::name(self.token), what })
    }

    /// On each two paths, those included that there is room for.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.live.verdicts()
    }

    /// What it is called: by its token.
    pub fn name(token: Option<u32>) -> String {
        token.map_or_else(|| "TCP".into(), |token| format!("{token:08x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_testkit::recorded_netlink;

    fn path(cookie: u64) -> Path {
        let socket = Socket::parse(&recorded_netlink("joined")).unwrap();
        Path::new(&Socket { cookie, ..socket }, &"blue".into(), None, 0)
    }

    #[test]
    fn a_lone_acknowledgement_after_a_wait_and_a_late_sample_have_no_delay() {
        let mut path = path(1);
        let sample = |at_us, delivered| RttSample {
            cookie: 1,
            at_us,
            rtt_us: 30_000,
            delivered,
            lost: 0,
            app_limited: 0,
        };
        let samples = [sample(0, 10), sample(50_000, 11), sample(60_000, 12), sample(110_000, 14)];
        let mut take = |n: usize, late| path.take(&samples[n], late);
        assert_eq!(take(0, false), None, "it says what was before");
        assert_eq!(take(1, false).unwrap().delay_us, None);
        let taken = take(2, false).unwrap();
        assert_eq!((taken.delay_us, taken.delivered), (Some(30_000), 1));
        let late = take(3, true).unwrap();
        assert_eq!((late.delay_us, late.delivered), (None, 2));
    }

    #[test]
    fn room_is_made_by_paths_that_have_ended_and_only_then_it_begins_anew() {
        let mut compared = Compared::new(None, 2);
        compared.paths = vec![path(1), path(2)];
        compared.spent.insert(vec![vec![0, 1]], 5);
        compared.renew();
        assert!(compared.is_full());
        assert!(!compared.spent.is_empty(), "what was found of open paths stays");
        compared.paths[0].open = false;
        compared.renew();
        assert!(!compared.is_full() && compared.spent.is_empty());
        assert_eq!(compared.paths[0].cookie, 2);
    }
}
