//! What holds for every law, whatever it computes: for the tests, and for `narrows law check` with a
//! law of a user's.
//!
//! A property looks at a law from outside, by events and windows. What a law owes to its own source
//! stands in the tests, beside a reference in floating point.

mod events;
mod host;
mod siblings;
mod threads;
mod windows;

pub use host::Host;

use crate::{Control, Law};
use std::fmt;

/// A law does not keep a property: what was seen, and the smallest case of it that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What was seen and what was expected, one line.
    pub what: String,
    /// How to see it, a line for each step.
    pub case: Vec<String>,
}

impl Failure {
    fn new(what: impl Into<String>) -> Failure {
        Failure { what: what.into(), case: Vec::new() }
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

/// Runs one case: here, or where a law that dies takes nothing else with it.
pub type Run<'a> = &'a dyn Fn(Case) -> Result<(), Failure>;

/// One of [`PROPERTIES`].
pub struct Property {
    /// A few words.
    pub name: &'static str,
    /// What holds, one line.
    pub about: &'static str,
    /// Laws that owe it.
    of: fn(Law) -> bool,
    holds: fn(Control, Run) -> Result<(), Failure>,
}

impl Property {
    /// Does `law` owe it? The table of the law decides.
    pub fn is_of(&self, law: Law) -> bool {
        (self.of)(law)
    }

    /// Does the law of `control` keep it?
    ///
    /// # Errors
    /// It does not.
    pub fn check(&self, control: Control) -> Result<(), Failure> {
        self.check_by(control, &|case| case())
    }

    /// The same, each case by `run`.
    ///
    /// # Errors
    /// It does not keep it, or a case died.
    pub fn check_by(&self, control: Control, run: Run) -> Result<(), Failure> {
        (self.holds)(control, run)
    }
}

/// The properties. Cases are deterministic but for the last, where threads meet as they do.
pub const PROPERTIES: [Property; 14] = [
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
        about: "the events of a connection alone decide its windows",
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
        about: "an acknowledgement of n packets grows the window as n of one packet do",
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
        about: "a path alone in its mask runs as if there were no other",
        of: any,
        holds: siblings::disjoint,
    },
    Property {
        name: "left siblings",
        about: "a sibling that has left leaves no trace",
        of: any,
        holds: siblings::left,
    },
    Property {
        name: "slots again",
        about: "a path in the slot of one that left knows nothing of it",
        of: any,
        holds: siblings::slot_again,
    },
    Property {
        name: "not limited",
        about: "a window that does not hold the sender back does not grow",
        of: window,
        holds: windows::not_limited,
    },
    Property {
        name: "loss",
        about: "a congestion event reduces once, ECN as a loss; a timeout leaves 1 packet; undo repairs",
        of: window,
        holds: windows::loss,
    },
    Property {
        name: "host's windows",
        about: "outside recovery the host's cwnd and ssthresh are taken over",
        of: window,
        holds: windows::hosts,
    },
    Property {
        name: "threads",
        about: "events of all paths at once, each on a thread of its own",
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
