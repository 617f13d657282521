//! Options of `papers`.

use std::path::PathBuf;

use super::lab::jobs;

/// Options of `papers`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  narrows papers list                              every table, and where it stands in its paper
  narrows papers laws --quick                      few seeds, in a minute
  narrows papers sbd --quick --report sbd.html     a page for a browser
  narrows papers lisa/claims lisa/figure-6         tables by the beginning of their names
  narrows papers sbd/coupled --quick --on quic     the same networks with QUIC in place of MPTCP
  narrows papers sbd/claims --adaptive --out out/sbd   clear claims with fewer seeds
  narrows papers list --out out/papers             what was made there, and the verdicts
  narrows papers all --out out/papers --resume     goes on where it was interrupted
  narrows papers laws --out out/laws --docs docs   rewrites the table in docs/results/laws.md")]
pub struct PapersArgs {
    /// Papers (lisa), tables of them by the beginning of their names (lisa/figure-6) or the number in the paper (lisa/6,
    /// sbd/II), all, or list
    #[arg(required = true, value_name = "PAPER[/TABLE]")]
    pub names: Vec<String>,
    /// Few seeds and a part of the networks
    #[arg(long)]
    pub quick: bool,
    /// So many seeds in place of each table's own, where it has several
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub seeds: Option<u64>,
    /// Stop a claim of sbd/claims where 5 or 10 of its 20 seeds settle it; by a rule that keeps its error rate at 5 %. The
    /// table says how many seeds each has
    #[arg(long, requires = "out", conflicts_with = "quick")]
    pub adaptive: bool,
    /// Host to run on in place of the simulator: kernel (in real time), quic or quic-real (in real time). Tables that
    /// need what it does not have are left out
    #[arg(long, value_name = "HOST", default_value = "sim")]
    pub on: String,
    /// Concurrent runs; 0: one per core, in real time one
    #[arg(long, value_name = "J", default_value_t = 0, allow_negative_numbers = true, value_parser = jobs)]
    pub jobs: usize,
    /// Keep the runs in this folder, and write each table as PAPER/TABLE.md and .json (TABLE-on-HOST of another host), with
    /// the data of figures; of list: show what was made there
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Use the runs that are in the folder
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Write a page for a browser: all tables with their verdicts
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Write the tables that are figures into this folder for a paper: each as SVG and PDF, 85 mm wide, with its data as CSV
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// Rewrite the tables in the pages of this folder
    #[arg(long, value_name = "DIR")]
    pub docs: Option<PathBuf>,
    /// Leave the pages as they are; fail if a table differs from theirs
    #[arg(long, requires = "docs")]
    pub check: bool,
    /// Print the tables as JSON
    #[arg(long)]
    pub json: bool,
}
