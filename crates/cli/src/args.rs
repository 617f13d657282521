//! The command line.

#[cfg(feature = "detect")]
pub mod detect;
#[cfg(feature = "lab")]
pub mod evaluate;
#[cfg(feature = "lab")]
pub mod fuzz;
#[cfg(feature = "kernel")]
pub mod kernel;
#[cfg(feature = "lab")]
pub mod lab;
pub mod law;
#[cfg(test)]
mod pages;
#[cfg(feature = "lab")]
pub mod papers;
#[cfg(feature = "quic")]
pub mod quic;
#[cfg(all(feature = "lab", feature = "kernel"))]
pub mod shell;
#[cfg(feature = "lab")]
pub mod suggest;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

#[cfg(feature = "lab")]
const EXAMPLES: &str = "\
Examples:
  narrows list                                         laws, detectors, scenarios
  narrows run sbd/nsb-2 --cc lia                       one run: two paths, two bottlenecks
  narrows compare sbd/nsb-2 sbd/sb-2 --cc reno,lia,olia --seeds 10
  narrows detect capture.pcap                          which flows share a bottleneck

`narrows COMMAND --help` has examples for each command.";
#[cfg(not(feature = "lab"))]
const EXAMPLES: &str = "`narrows COMMAND --help` has examples for each command.";

/// Multipath congestion control: run and compare scenarios, find shared bottlenecks, load laws into
/// the kernel.
#[derive(Debug, Parser)]
#[command(name = "narrows", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one scenario once and show its summary
    #[cfg(feature = "lab")]
    Run(lab::RunArgs),
    /// Run scenarios under several congestion controls with many seeds and show a table
    #[cfg(feature = "lab")]
    Compare(lab::CompareArgs),
    /// Put together the results of one comparison with several ranges of seeds
    #[cfg(feature = "lab")]
    Merge(lab::MergeArgs),
    /// Print the file of a scenario, or the scenario with all defaults
    #[cfg(feature = "lab")]
    Show(lab::ShowArgs),
    /// Search for the networks in which a congestion control does worst
    #[cfg(feature = "lab")]
    Fuzz(fuzz::FuzzArgs),
    /// Set published figures beside ours: run what they show, and judge their claims
    #[cfg(feature = "lab")]
    Papers(papers::PapersArgs),
    /// Run and judge what RFC 9743 (BCP 133) asks of a congestion control
    #[cfg(feature = "lab")]
    Evaluate(evaluate::EvaluateArgs),
    /// Report which flows of a capture or a table of delays share a bottleneck
    #[cfg(feature = "detect")]
    Detect(detect::DetectArgs),
    /// Open a shell or run a command in a host of a scenario's network
    #[cfg(all(feature = "lab", feature = "kernel"))]
    Shell(shell::ShellArgs),
    /// Remove what killed kernel runs and shells left behind
    #[cfg(all(feature = "lab", feature = "kernel"))]
    #[command(after_help = "\
What belongs to running commands is kept. Needs root.")]
    Clean {
        /// Show what would be removed, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// List laws, detectors, parameters, scenarios, metrics, and fields of scenarios
    #[command(after_help = "\
Examples:
  narrows list                all but the fields of scenarios
  narrows list fields         every field of a scenario, with units
  narrows list fields links   those of links
  narrows list scenarios --json | jq -r '.scenarios[].name'")]
    List {
        /// List only these
        what: Option<What>,
        /// Of fields: only those of this table
        #[cfg_attr(feature = "lab", arg(value_parser = suggest::tables(), hide_possible_values = true))]
        table: Option<String>,
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Write and check your own law
    #[command(subcommand)]
    Law(law::Command),
    /// Load congestion controls into this machine's kernel and select where they are used
    #[cfg(feature = "kernel")]
    #[command(subcommand)]
    Kernel(kernel::Command),
    /// Serve and get files over multipath QUIC
    #[cfg(feature = "quic")]
    #[command(subcommand)]
    Quic(quic::Command),
    /// Serve and get files over multipath QUIC (not in this build; `narrows quic` says how to get it)
    #[cfg(not(feature = "quic"))]
    #[command(disable_help_flag = true)]
    Quic {
        /// What a build with it takes
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    /// Write man pages into a folder, for packages
    #[command(hide = true)]
    Man {
        /// The folder
        folder: std::path::PathBuf,
    },
    /// Print a completion script
    #[command(after_help = "\
Example:
  narrows completions bash > ~/.local/share/bash-completion/completions/narrows")]
    Completions {
        /// Shell
        shell: Shell,
    },
}

/// What `list` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// Congestion control laws.
    Laws,
    /// Detectors of shared bottlenecks.
    Detectors,
    /// Slow starts.
    Starts,
    /// Parameters of laws and detectors.
    Params,
    /// All controls with their names in the kernel.
    Controls,
    /// Shipped scenarios.
    #[cfg(feature = "lab")]
    Scenarios,
    /// Metrics of results.
    #[cfg(feature = "lab")]
    Metrics,
    /// Fields of a scenario's file, with units, defaults and examples.
    #[cfg(feature = "lab")]
    Fields,
}

/// `60` or `60s`.
#[cfg(any(feature = "detect", feature = "kernel"))]
fn seconds(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse::<u32>();
    number.map(u64::from).map_err(|_| "expected seconds, such as 60 or 60s".into())
}
