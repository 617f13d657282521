//! A trial before a roll-out: a share of new connections gets another control, the others keep theirs, and
//! what becomes of both is compared ([`narrows_kernel::trial`]).
//!
//! Three values are compared, each by a confidence sequence of its own ([`ALPHA`]); the structs of
//! `trial/report.rs` are the schema of `narrows kernel trial status --json`.

mod report;

pub use report::{Arm, Difference, Interval, Limits, Report, Stratum, duration};

use crate::assign::{Admin, namespaces};
use narrows_kernel::Error;
use narrows_kernel::cgroup::Cgroup;
use narrows_kernel::register::available_controls;
use narrows_kernel::trial::{self, Guards, LEAST, Plan};
use narrows_mptcp::diag::{self, State};
use narrows_netns::Namespace;
use narrows_stats::sequence::{Sums, needed};
use std::time::Duration;

/// The error of one value's interval, over all times: three values are compared (Bonferroni).
pub const ALPHA: f64 = 0.05 / 3.0;

/// What a trial is planned to find: a tenth less goodput.
pub const PLANNED_RATIO: f64 = 0.9;

/// Standard deviation of log2 of the goodputs of connections of one size, where open connections do not
/// tell: a factor of 2.8.
const DEVIATION: f64 = 1.5;

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
    /// By this factor goodputs of connections of one size are spread (a standard deviation).
    pub spread: f64,
    /// Of so many open connections; none: there were too few, and it is assumed.
    pub of: Option<usize>,
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
        let available = available_controls()?;
        for name in [&terms.control, &terms.against] {
            if !available.contains(name) {
                let hint = "no such congestion control in the kernel (first: narrows kernel load, or modprobe)";
                return Err(Error::input(name, hint));
            }
        }
        if terms.control == terms.against {
            return Err(Error::input(&terms.against, "is the control that is to be tried"));
        }
        let need = need(terms)?;
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

    /// Ends the trial, gives its open connections their former control back, and forgets it. What it found;
    /// none: there is none.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn end_trial(&self) -> Result<Option<Report>, Error> {
        if !trial::is_there() {
            return Ok(None);
        }
        for (_, namespace) in namespaces()? {
            let failed = |error: std::io::Error| Error::input("trial", error.to_string());
            namespace.unless_gone(|| {
                namespace.run(trial::put_back).map_err(failed).and_then(|done| done)
            })?;
        }
        let report = trial::read()?.map(|trial| Report::of(&trial));
        trial::remove()?;
        self.tidy()?;
        Ok(report)
    }
}

/// The trial as it stands; none: there is none.
///
/// # Errors
/// Only root may read it.
pub fn status() -> Result<Option<Report>, Error> {
    Ok(trial::read()?.map(|trial| Report::of(&trial)))
}

/// What a trial will take, by the open connections that could have been in it.
fn need(terms: &Terms) -> Result<Need, Error> {
    let namespaces = match &terms.netns {
        Some(one) => vec![one.clone()],
        None => namespaces()?.into_iter().map(|(_, one)| one).collect(),
    };
    let mut sizes = [Sums::default(); trial::SIZES];
    for netns in &namespaces {
        let sockets = netns.unless_gone(|| netns.run(diag::sockets).and_then(|all| all));
        let failed = |error: std::io::Error| Error::input("sockets", error.to_string());
        for socket in sockets.map_err(failed)?.unwrap_or_default() {
            let port = |port: &u16| [socket.local.port(), socket.remote.port()].contains(port);
            let taken = socket.state == State::Established
                && socket.control == terms.against
                && (terms.ports.is_empty() || terms.ports.iter().any(port));
            let Some(info) = socket.info.filter(|info| taken && info.busy_time > 0) else {
                continue;
            };
            let (bytes, busy_s) = (info.bytes_acked, info.busy_time as f64 / 1e6);
            if bytes >= 20_000 {
                let size = [100_000, 1_000_000, 10_000_000].iter().filter(|least| bytes >= **least);
                sizes[size.count()].add((bytes as f64 / busy_s).log2());
            }
        }
    }
    let n: f64 = sizes.iter().map(|one| one.n).sum();
    let enough = n >= LEAST as f64;
    let within = sizes.iter().map(|one| one.variance() * one.n).sum::<f64>() / n;
    let deviation = if enough { within.sqrt() } else { DEVIATION };
    let connections = needed(ALPHA, PLANNED_RATIO.log2(), deviation, terms.share);
    Ok(Need {
        connections: connections.clamp(2.0 * LEAST as f64, f64::from(u32::MAX)) as u32,
        spread: deviation.exp2(),
        of: enough.then_some(n as usize),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
