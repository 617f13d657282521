//! Is this machine ready, and does MPTCP do on it what it is there for?
//!
//! Looking and judging are apart: [`Machine`] and [`Network`] hold what was seen, their `judge` says
//! what it means. Nothing here needs root; what only root may see is told as unseen.

mod machine;
mod mistakes;
mod network;

pub use machine::Machine;
pub use network::{Network, Trial};

use narrows_netns::Namespace;
use std::fmt::{self, Write};
use std::io;

/// What came out for one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is there.
    Ok,
    /// Worth knowing.
    Note,
    /// This user may not look at it.
    Unseen,
    /// MPTCP is of no or of less use as it is.
    Mistake,
    /// Loading or using a control will not work.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What it is, a word or two.
    pub what: &'static str,
    /// What came out.
    pub verdict: Verdict,
    /// What was seen, one line.
    pub seen: String,
    /// What to type, a command a line.
    pub fix: Vec<String>,
}

impl Item {
    fn new(what: &'static str, verdict: Verdict, seen: impl Into<String>) -> Item {
        Item { what, verdict, seen: seen.into(), fix: Vec::new() }
    }

    fn fix(mut self, command: impl Into<String>) -> Item {
        self.fix.push(command.into());
        self
    }
}

/// All that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Name of the network namespace that was looked at.
    pub namespace: String,
    /// Kernel and mounts.
    pub machine: Vec<Item>,
    /// MPTCP in the namespace.
    pub network: Vec<Item>,
}

impl Report {
    /// How much of what loading and using a control needs is missing.
    pub fn missing(&self) -> usize {
        self.count(Verdict::Missing)
    }

    fn items(&self) -> impl Iterator<Item = &Item> {
        self.machine.iter().chain(&self.network)
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.items().filter(|item| item.verdict == verdict).count()
    }
}

/// Looks at this machine, and at MPTCP in `namespace`.
///
/// # Errors
/// The namespace cannot be entered: another one needs root.
pub fn check(namespace: &Namespace) -> io::Result<Report> {
    let machine = Machine::look();
    let network = namespace.run(Network::look)?;
    let mut report = Report {
        namespace: namespace.name.clone(),
        machine: machine.judge(),
        network: network.judge(),
    };
    for item in &mut report.network {
        for command in &mut item.fix {
            *command = namespace.command(command);
        }
    }
    Ok(report)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::from("machine\n");
        let show = |text: &mut String, items: &[Item]| {
            for item in items {
                let verdict = match item.verdict {
                    Verdict::Ok => "ok",
                    Verdict::Note => "note",
                    Verdict::Unseen => "unseen",
                    Verdict::Mistake => "mistake",
                    Verdict::Missing => "missing",
                };
                // Writing to a string cannot fail.
                let _ = writeln!(text, "  {verdict:8} {:14} {}", item.what, item.seen);
                for command in &item.fix {
                    let _ = writeln!(text, "  {:8} {:14}   type: {command}", "", "");
                }
            }
        };
        show(&mut text, &self.machine);
        let _ = writeln!(text, "\nMPTCP, network namespace {}", self.namespace);
        show(&mut text, &self.network);
        if self.missing() == 0 {
            let _ = match self.count(Verdict::Mistake) {
                0 => writeln!(text, "\nready"),
                n => writeln!(
                    text,
                    "\nready to load and use; mistakes that cost MPTCP its paths: {n}"
                ),
            };
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
fn verdict(items: &[Item], what: &str) -> Option<Verdict> {
    items.iter().find(|item| item.what == what).map(|item| item.verdict)
}
