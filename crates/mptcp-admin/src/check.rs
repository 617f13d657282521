//! Is this machine ready, and does MPTCP do on it what it is there for?
//!
//! Looking and judging are apart: [`Machine`] and [`Network`] hold what was seen, their `judge` says
//! what it means. Nothing here needs root; what only root may see is reported as unseen.

mod item;
mod machine;
mod mistakes;
mod network;

pub use item::{Item, Verdict};
pub use machine::Machine;
pub use network::{Network, Trial};

use narrows_foreign::Foreign;
use narrows_netns::Namespace;
use std::fmt::{self, Write};
use std::io;

/// All that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Name of the network namespace that was looked at.
    pub namespace: Foreign,
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
    let network = namespace.run(|| Network::look(namespace.inum))?;
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
                    let _ = writeln!(text, "  {:8} {:14}   run: {command}", "", "");
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
                    "\nready to load and use; mistakes in the configuration of MPTCP: {n}"
                ),
            };
        }
        f.write_str(&text)
    }
}
