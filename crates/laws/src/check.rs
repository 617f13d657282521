//! Properties of every law, whatever it computes: for the tests, and for `narrows law check` with a
//! user's law.
//!
//! A property tests a law from outside, by events and windows. The tests compare each law with its
//! source, by a reference in floating point.

mod events;
mod host;
mod siblings;
mod threads;
mod windows;

pub use host::Host;

use crate::{Control, Law};
use std::fmt;

/// A law violates a property: what was found, and the smallest case found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// Found and expected, one line.
    pub what: String,
    /// How to reproduce it, one line per step.
    pub case: Vec<String>,
}

impl Failure {
    /// Without a case.
    pub fn new(what: impl Into<String>) -> Failure {
        Failure { what: what.into(), case: Vec::new() }
    }

    /// What was found in the first line, the case in those that follow.
    pub fn of_lines(text: &str) -> Failure {
        let mut lines = text.lines().map(str::to_owned);
        Failure { what: lines.next().unwrap_or_default(), case: lines.collect() }
    }

    /// With the case, unless it has one.
    fn at(mut self, case: impl Into<String>) -> Failure {
        if self.case.is_empty() {
            self.case.push(case.into());
        }
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.case.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

impl std::error::Error for Failure {}

/// A case of a property.
pub type Case<'a> = &'a dyn Fn() -> Result<(), Failure>;

/// Runs one case: in this process, or in another that a crash of the law does not affect.
pub type Run<'a> = &'a dyn Fn(Case) -> Result<(), Failure>;

/// One of [`PROPERTIES`].
#[non_exhaustive]
pub struct Property {
    /// Short name.
    pub name: &'static str,
    /// The property, one line.
    pub about: &'static str,
    /// Laws that must have it.
    of: fn(Law) -> bool,
    holds: fn(Control, Run) -> Result<(), Failure>,
}

impl Property {
    /// Must `law` have it? Depends on its table.
    pub fn is_of(&self, law: Law) -> bool {
        (self.of)(law)
    }

    /// Checks the law of `control`.
    ///
    /// # Errors
    /// The law violates the property.
    pub fn check(&self, control: Control) -> Result<(), Failure> {
        self.check_by(control, &|case| case())
    }

    /// The same, with each case run by `run`.
    ///
    /// # Errors
    /// The law violates the property, or a case crashed.
    pub fn check_by(&self, control: Control, run: Run) -> Result<(), Failure> {
        (self.holds)(control, run)
    }
}

/// The properties. Cases are deterministic except the last, which uses threads.
pub const PROPERTIES: [Property; 15] = [
    Property {
        name: "hostile events",
        about: "any events in any order leave windows within 1 and NR_CWND_MAX packets",
        of: any,
        holds: events::hostile,
    },
    Property {
        name: "empty slots",
        about: "events of a slot without a path change nothing",
        of: any,
        holds: events::empty_slots,
    },
    Property {
        name: "extremes",
        about: "cwnd 1 to 2^20, RTT 10 us to 10 s, 1 to 8 paths: in bounds, no faster than slow start",
        of: window,
        holds: windows::extremes,
    },
    Property {
        name: "determinism",
        about: "the windows depend only on the connection's events",
        of: any,
        holds: events::determinism,
    },
    Property {
        name: "slot order",
        about: "windows are the same in any slot, to the bit",
        of: window,
        holds: events::slot_order,
    },
    Property {
        name: "stretch ACKs",
        about: "one acknowledgement of n packets grows the window as n of one packet",
        of: window,
        holds: windows::stretch,
    },
    Property {
        name: "equal paths",
        about: "2 to 8 equal coupled paths: none grows faster than Reno",
        of: coupled,
        holds: siblings::equal_paths,
    },
    Property {
        name: "disjoint siblings",
        about: "a path alone in its mask behaves as a single path",
        of: any,
        holds: siblings::disjoint,
    },
    Property {
        name: "other masks",
        about: "paths of another mask have no effect",
        of: coupled,
        holds: siblings::others,
    },
    Property {
        name: "siblings leaving",
        about: "a sibling that left has no effect",
        of: any,
        holds: siblings::left,
    },
    Property {
        name: "slot reuse",
        about: "a path in a reused slot starts without old state",
        of: any,
        holds: siblings::slot_again,
    },
    Property {
        name: "not cwnd-limited",
        about: "the window does not grow if the sender is not cwnd-limited",
        of: window,
        holds: windows::not_limited,
    },
    Property {
        name: "loss",
        about: "a congestion event reduces once, ECN as a loss but of scalable laws; a timeout leaves 1 packet; undo restores",
        of: window,
        holds: windows::loss,
    },
    Property {
        name: "host's windows",
        about: "outside recovery the law adopts the host's cwnd and ssthresh",
        of: window,
        holds: windows::hosts,
    },
    Property {
        name: "threads",
        about: "concurrent events of all paths, one thread each",
        of: window,
        holds: threads::at_once,
    },
];

fn any(_: Law) -> bool {
    true
}

fn window(law: Law) -> bool {
    !law.is_model()
}

fn coupled(law: Law) -> bool {
    window(law) && law.couples()
}

/// `Err` with `what` unless `holds`.
fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::new(what())) }
}
