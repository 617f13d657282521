//! A trial before a roll-out: a share of new connections gets another control, the others keep theirs, and
//! what becomes of both is compared ([`narrows_kernel::trial`]).
//!
//! Three values are compared over all connections, each by a confidence sequence of its own ([`ALPHA`]); the structs of
//! `trial/report.rs` are the schema of `narrows kernel trial status --json`. Reports of several hosts are added up by
//! [`merge()`].

mod export;
mod merge;
mod minutes;
mod report;

pub use merge::{Part, merge};
pub use minutes::Minute;
pub use report::{Arm, Difference, Interval, Limits, Origin, Report, Stratum, duration};

use crate::assign::{Admin, default_of, namespaces};
use crate::sockets::Members;
use narrows_kernel::Error;
use narrows_kernel::cgroup::Cgroup;
use narrows_kernel::register::available_controls;
use narrows_kernel::trial::{self, Guards, LEAST, Plan};
use narrows_mptcp::diag::{self, Socket, State};
use narrows_netns::Namespace;
use narrows_stats::sequence::{Sums, needed};
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The error of one value's interval, over all times: three values are compared (Bonferroni).
pub const ALPHA: f64 = 0.05 / 3.0;

/// What a trial is planned to find: a tenth less goodput.
pub const PLANNED_RATIO: f64 = 0.9;

/// Standard deviation of log2 of the goodputs of connections, where open connections do not tell: a factor of
/// 2.8.
const DEVIATION: f64 = 1.5;

/// So long is watched who begins, before a trial.
pub const WATCHED: Duration = Duration::from_secs(10);

/// Time between two looks at the sockets: a connection that begins and ends in between is not seen.
const LOOK: Duration = Duration::from_millis(250);

/// Guards where none are given.
pub const GUARDS: &str = "retransmits<=1.5x,p95_srtt<=1.3x,goodput>=0.9x";

/// Who takes part in a trial, and how.
pub struct Terms {
    /// Name in the kernel of the control that is tried.
    pub control: String,
    /// Name in the kernel of the control that connections must have, and keep in the other arm.
    pub against: String,
    /// The share of connections that get `control`.
    pub share: f64,
    /// The cgroup whose sockets take part.
    pub cgroup: Cgroup,
    /// Only those of this namespace.
    pub netns: Option<Namespace>,
    /// Only those with one of these ports.
    pub ports: Vec<u16>,
    /// No plain TCP.
    pub mptcp_only: bool,
    /// How long connections are drawn.
    pub lasts: Duration,
    /// What ends the trial before.
    pub guards: Guards,
}

/// What a trial will take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// Connections of both arms that have something to send, until a tenth less goodput is found in 9 of 10
    /// trials.
    pub connections: u32,
    /// By this factor goodputs of connections are spread (a standard deviation).
    pub spread: f64,
    /// Of so many open connections; none: there were too few, and it is assumed.
    pub of: Option<usize>,
    /// Is the control of `--against` a namespace's default, or that of an open socket, among those that take part?
    pub in_use: bool,
}

/// How a trial would go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// What it will take.
    pub need: Need,
    /// Connections that could be in it, and had something to send, that began in [`WATCHED`].
    pub began: usize,
}

impl Forecast {
    /// Until there are as many as it takes, at this rate; none: none began.
    pub fn takes(&self) -> Option<Duration> {
        let times = f64::from(self.need.connections) / self.began as f64;
        Duration::try_from_secs_f64(times * WATCHED.as_secs_f64()).ok()
    }

    /// The ratio of goodputs that is found in so long, as what it takes grows with the square of log2 of the ratio.
    pub fn finds(&self, lasts: Duration) -> Option<f64> {
        let takes = self.takes()?.as_secs_f64();
        Some(PLANNED_RATIO.powf((takes / lasts.as_secs_f64()).sqrt()))
    }
}

/// Guards as they are written: `retransmits<=1.5x,p95_srtt<=1.3x,goodput>=0.9x`, or `none`.
///
/// # Errors
/// It is none of these, or a limit that cannot be judged.
pub fn guards(text: &str) -> Result<Guards, String> {
    let mut guards = Guards::default();
    if text == "none" {
        return Ok(guards);
    }
    for one in text.split(',') {
        let wrong = |what: &str| format!("'{one}': expected {what}");
        let known =
            "goodput>=0.9x, retransmits<=1.5x or p95_srtt<=1.3x, separated by commas, or none";
        let least = one.split_once(">=").map(|(name, limit)| (name, ">=", limit));
        let most = one.split_once("<=").map(|(name, limit)| (name, "<=", limit));
        let (name, sign, limit) = least.or(most).ok_or_else(|| wrong(known))?;
        let limit = limit.strip_suffix('x').and_then(|ratio| ratio.parse::<f64>().ok());
        let within = |low: f64, high: f64| {
            let fits = limit.filter(|limit| (low..=high).contains(limit));
            fits.ok_or_else(|| wrong(&format!("a ratio from {low}x to {high}x")))
        };
        let guard = match (name.trim(), sign) {
            ("goodput", ">=") => (&mut guards.goodput, within(0.0625, 1.0)?),
            ("retransmits", "<=") => (&mut guards.retransmits, within(1.0, 16.0)?),
            ("p95_srtt", "<=") => (&mut guards.p95_srtt, within(1.0, 16.0)?),
            _ => return Err(wrong(known)),
        };
        if guard.0.replace(guard.1).is_some() {
            return Err(wrong("each guard once"));
        }
    }
    Ok(guards)
}

impl Admin {
    /// Begins a trial, and says what it will take.
    ///
    /// # Errors
    /// A control is not loaded, there is a trial already, or the kernel refuses. Nothing is changed then.
    pub fn begin_trial(&self, terms: &Terms) -> Result<Need, Error> {
        are_there(&[&terms.control, &terms.against])?;
        are_two(terms)?;
        let need = Scope::of(terms)?.look()?.need(terms.share);
        let netns = terms.netns.as_ref().map(|netns| {
            let cookie = netns.run(narrows_netns::cookie).and_then(|cookie| cookie);
            cookie.map_err(|error| Error::input("--netns", error.to_string()))
        });
        let plan = Plan {
            controls: [terms.against.clone(), terms.control.clone()],
            share: terms.share,
            netns: netns.transpose()?,
            ports: terms.ports.clone(),
            mptcp_only: terms.mptcp_only,
            lasts: terms.lasts,
            guards: terms.guards,
            planned: need.connections,
        };
        trial::start(&terms.cgroup, &plan)?;
        Ok(need)
    }

    /// Ends the trial, and gives its open connections their former control back. What it found; none: there is
    /// no trial, or another build of narrows began it, and only that can read it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn end_trial(&self) -> Result<Option<Report>, Error> {
        let Some(head) = trial::head()? else { return Ok(None) };
        for (_, namespace) in namespaces()? {
            let failed = |error: std::io::Error| Error::input("trial", error.to_string());
            namespace.unless_gone(|| {
                namespace.run(trial::put_back).map_err(failed).and_then(|done| done)
            })?;
        }
        match head.readable {
            true => status(),
            false => Ok(None),
        }
    }

    /// Removes a trial that has ended, with what it found.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn forget_trial(&self) -> Result<(), Error> {
        trial::remove()?;
        self.tidy()
    }
}

/// The trial as it stands; none: there is none.
///
/// # Errors
/// Only root may read it, or another build began it.
pub fn status() -> Result<Option<Report>, Error> {
    Ok(trial::read()?.map(|trial| Report::of(&trial)))
}

/// How a trial would go, after [`WATCHED`]. The control that is tried need not be loaded.
///
/// # Errors
/// There is no control to try against; the sockets cannot be read.
pub fn foresee(terms: &Terms) -> Result<Forecast, Error> {
    are_there(&[&terms.against])?;
    are_two(terms)?;
    let scope = Scope::of(terms)?;
    let first = scope.look()?;
    let (end, mut began) = (Instant::now() + WATCHED, Seen::default());
    while Instant::now() < end {
        sleep(LOOK);
        began.join_new(scope.look()?, &first);
    }
    Ok(Forecast { need: first.need(terms.share), began: began.with_something_to_send() })
}

fn are_there(names: &[&String]) -> Result<(), Error> {
    let available = available_controls()?;
    match names.iter().find(|name| !available.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let hint = "no such congestion control in the kernel (first: narrows kernel load, or modprobe)";
            Err(Error::input(name.as_str(), hint))
        }
    }
}

fn are_two(terms: &Terms) -> Result<(), Error> {
    match terms.control == terms.against {
        false => Ok(()),
        true => Err(Error::input(&terms.against, "is the control that is to be tried")),
    }
}

/// Where connections are that could be in a trial.
struct Scope<'a> {
    terms: &'a Terms,
    namespaces: Vec<Namespace>,
    /// None: all of the machine.
    members: Option<Members>,
}

impl Scope<'_> {
    fn of(terms: &Terms) -> Result<Scope<'_>, Error> {
        let namespaces = match &terms.netns {
            Some(one) => vec![one.clone()],
            None => namespaces()?.into_iter().map(|(_, one)| one).collect(),
        };
        let top = Cgroup::top().is_ok_and(|top| top.id == terms.cgroup.id);
        let members = (!top).then(|| Members::of(terms.cgroup.id, &terms.cgroup.path));
        Ok(Scope { terms, namespaces, members })
    }

    /// Those that are open now.
    fn look(&self) -> Result<Seen, Error> {
        let (terms, mut seen) = (self.terms, Seen::default());
        for netns in &self.namespaces {
            let default = netns.unless_gone(|| default_of(netns))?;
            seen.in_use |= default.is_some_and(|default| default == terms.against);
            let sockets = netns.unless_gone(|| netns.run(diag::sockets).and_then(|all| all));
            let failed = |error: std::io::Error| Error::input("sockets", error.to_string());
            for socket in sockets.map_err(failed)?.unwrap_or_default() {
                let here = self.members.as_ref().is_none_or(|members| members.are(socket.cgroup));
                if here
                    && socket.control == terms.against
                    && takes_part(&socket, &terms.ports, terms.mptcp_only)
                {
                    seen.add(&socket);
                }
            }
        }
        Ok(seen)
    }
}

/// Would a connection of this socket's take part, with these ports and in this kind of trial?
fn takes_part(socket: &Socket, ports: &[u16], mptcp_only: bool) -> bool {
    let mptcp = socket.mptcp && socket.subflow.is_none_or(|subflow| !subflow.fell_back());
    let port = |port: &u16| [socket.local.port(), socket.remote.port()].contains(port);
    (mptcp || !mptcp_only) && (ports.is_empty() || ports.iter().any(port))
}

/// What open sockets that could be in a trial tell before it begins.
#[derive(Default)]
struct Seen {
    /// Bytes acknowledged, and the time in which there was something to send of the subflow that was busy longest,
    /// µs: of MPTCP by token, of plain TCP by cookie.
    connections: BTreeMap<(bool, u64), (u64, u64)>,
    in_use: bool,
}

impl Seen {
    /// A socket with the control that is tried against.
    fn add(&mut self, socket: &Socket) {
        self.in_use = true;
        let Some(info) = socket.info.as_ref().filter(|_| socket.state == State::Established) else {
            return;
        };
        let token = socket.subflow.map(|subflow| (true, u64::from(subflow.token)));
        let all = self.connections.entry(token.unwrap_or((false, socket.cookie))).or_default();
        *all = (all.0 + info.bytes_acked, all.1.max(info.busy_time));
    }

    /// With what others have that `first` has not, as it is there now.
    fn join_new(&mut self, other: Seen, first: &Seen) {
        let is_new = |(id, _): &(_, _)| !first.connections.contains_key(id);
        self.connections.extend(other.connections.into_iter().filter(is_new));
    }

    /// As a trial counts: 20 kB acknowledged, or something to send for a second.
    fn with_something_to_send(&self) -> usize {
        let has = |(bytes, busy_us): &&(u64, u64)| *bytes >= 20_000 || *busy_us >= 1_000_000;
        self.connections.values().filter(has).count()
    }

    /// What a trial will take with this share, by the goodputs of these.
    fn need(&self, share: f64) -> Need {
        let goodputs = self.goodputs();
        let enough = goodputs.n >= LEAST as f64;
        let deviation = if enough { goodputs.variance().sqrt() } else { DEVIATION };
        let connections = needed(ALPHA, PLANNED_RATIO.log2(), deviation, share);
        Need {
            connections: connections.clamp(2.0 * LEAST as f64, f64::from(u32::MAX)) as u32,
            spread: deviation.exp2(),
            of: enough.then_some(goodputs.n as usize),
            in_use: self.in_use,
        }
    }

    /// log2 of bytes/s of those that a trial would count.
    fn goodputs(&self) -> Sums {
        let mut goodputs = Sums::default();
        for (bytes, busy_us) in self.connections.values() {
            if *bytes >= 20_000 && *busy_us > 0 {
                goodputs.add((*bytes as f64 * 1e6 / *busy_us as f64).log2());
            }
        }
        goodputs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_testkit::recorded_netlink as answer;

    /// An open subflow that has sent so much in so many seconds.
    fn sent(token: u32, bytes: u64, seconds: u64) -> Socket {
        let mut socket = Socket::parse(&answer("first")).unwrap();
        (socket.state, socket.mptcp) = (State::Established, true);
        let flags = diag::flag::CAPABLE_PEER | diag::flag::CONNECTED;
        socket.subflow = Some(diag::Subflow { token, flags, ..diag::Subflow::default() });
        let info = socket.info.as_mut().unwrap();
        (info.bytes_acked, info.busy_time) = (bytes, 1_000_000 * seconds);
        socket
    }

    #[test]
    fn a_connection_counts_once_with_all_its_subflows() {
        let mut seen = Seen::default();
        assert!(!seen.in_use);
        for (token, bytes, seconds) in [(1, 96_000, 1), (1, 32_000, 2), (2, 15_000, 1)] {
            seen.add(&sent(token, bytes, seconds));
        }
        let listener = Socket::parse(&answer("listener")).unwrap();
        seen.add(&listener);
        let goodputs = seen.goodputs();
        // 64 kB a second; what sent less than 20 kB, or listens, is not counted.
        assert_eq!((goodputs.n, goodputs.sum, seen.in_use), (1.0, 64_000f64.log2(), true));
    }

    #[test]
    fn how_long_it_takes_is_told_by_those_that_begin_and_have_something_to_send() {
        let look = |all: &[(u32, u64, u64)]| {
            let mut seen = Seen::default();
            all.iter().for_each(|&(token, bytes, seconds)| seen.add(&sent(token, bytes, seconds)));
            seen
        };
        let first = look(&[(1, 90_000, 1)]);
        let mut began = Seen::default();
        began.join_new(look(&[(1, 95_000, 1), (2, 100, 0), (3, 100, 0)]), &first);
        assert_eq!(began.with_something_to_send(), 0);
        // One has sent enough, one had something to send for long, one has ended; one was there before.
        began.join_new(look(&[(1, 99_000, 2), (2, 20_000, 0), (4, 0, 1), (5, 100, 0)]), &first);
        assert_eq!(began.with_something_to_send(), 2);
        began.join_new(look(&[(5, 100, 0)]), &first);
        assert_eq!(began.with_something_to_send(), 2);

        // By the spread that is assumed, as there are too few.
        let need = first.need(0.5);
        let expected = needed(ALPHA, 0.9f64.log2(), DEVIATION, 0.5) as u32;
        assert_eq!((need.connections, need.of, need.in_use), (expected, None, true));
        let forecast = Forecast { need: Need { connections: 6000, ..need }, began: 100 };
        assert_eq!(forecast.takes(), Some(Duration::from_secs(600)));
        // A quarter of the time finds twice the difference, on a scale of ratios.
        let found = [600, 150].map(|s| forecast.finds(Duration::from_secs(s)).unwrap());
        assert!((found[0] - 0.9).abs() < 1e-9 && (found[1] - 0.81).abs() < 1e-9, "{found:?}");
        let none = Forecast { began: 0, ..forecast };
        assert_eq!((none.takes(), none.finds(WATCHED)), (None, None));
    }

    #[test]
    fn only_those_that_could_be_in_the_trial_are_looked_at() {
        let subflow = sent(1, 1, 1);
        let plain = Socket { mptcp: false, subflow: None, ..subflow.clone() };
        let (here, there) = (subflow.local.port(), subflow.remote.port());
        for (socket, in_mptcp_only) in [(&subflow, true), (&plain, false)] {
            assert!(takes_part(socket, &[], false));
            assert_eq!(takes_part(socket, &[], true), in_mptcp_only);
            assert!(takes_part(socket, &[here], false) && takes_part(socket, &[1, there], false));
            assert!(!takes_part(socket, &[1], false));
        }
    }

    #[test]
    fn guards_are_read_as_they_are_written() {
        let all = guards(GUARDS).unwrap();
        let expected = Guards { goodput: Some(0.9), retransmits: Some(1.5), p95_srtt: Some(1.3) };
        assert_eq!(all, expected);
        assert_eq!(guards("none"), Ok(Guards::default()));
        assert_eq!(guards("goodput>=1x").unwrap().goodput, Some(1.0));
        for (text, why) in [
            ("", "'': expected goodput>=0.9x, "),
            ("goodput", "'goodput': expected goodput>=0.9x, "),
            ("goodput<=0.9x", "'goodput<=0.9x': expected goodput>=0.9x, "),
            ("goodput>=1.1x", "'goodput>=1.1x': expected a ratio from 0.0625x to 1x"),
            ("retransmits<=NaNx", "'retransmits<=NaNx': expected a ratio from 1x to 16x"),
            ("retransmits<=1.5", "'retransmits<=1.5': expected a ratio from 1x to 16x"),
            ("goodput>=0.9x,goodput>=0.8x", "'goodput>=0.8x': expected each guard once"),
        ] {
            let error = guards(text).unwrap_err();
            assert!(error.starts_with(why), "{text}: {error}");
        }
    }
}
