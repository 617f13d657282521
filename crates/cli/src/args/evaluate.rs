//! Options of `evaluate`.

use std::path::PathBuf;

use super::lab::jobs;
use super::suggest;

/// Options of `evaluate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  narrows evaluate list                                 every criterion: section, keyword, what is run, limit
  narrows evaluate gcubic+xcorr --quick                 few seeds and networks, in minutes
  narrows law new mine.h
  narrows evaluate mine --law mine.h --quick --report mine.html
  narrows evaluate olia --only 5.1.2,7.10               some sections
  narrows evaluate mine --law mine.h --paths 1          a control of one path
  narrows evaluate gcubic+xcorr --quick --on sim,quic   also on noq's end points, in virtual time
  narrows evaluate olia balia --out out/bcp133 --resume goes on where it was interrupted

A verdict is `meets`, `falls short` or `cannot be told`, by one rule for all criteria: docs/results/bcp133.md.
The law's header answers questions of prose in paragraphs that begin with `BCP 133, 5.3.1:`.")]
pub struct EvaluateArgs {
    /// Congestion controls, LAW[+DETECTOR][+START], or list
    #[arg(required = true, value_name = "LAW[+DETECTOR]", value_parser = suggest::controls(), hide_possible_values = true)]
    pub laws: Vec<String>,
    /// Compile and load your own law (`narrows law new`)
    #[arg(long = "law", value_name = "FILE.h")]
    pub law: Option<PathBuf>,
    /// Five seeds and a part of the networks
    #[arg(long)]
    pub quick: bool,
    /// Only these sections of RFC 9743 (5.1.2, 7.10), or criteria (5.1.4/late)
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Only the cells in which the law has so many paths at most: 1 judges a control of one path
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u8).range(1..))]
    pub paths: Option<u8>,
    /// So many seeds in place of 20, or of 5 with --quick
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub seeds: Option<u64>,
    /// Hosts to run on, separated by commas: sim, quic; kernel, quic-real in real time, days without --only. Criteria that
    /// need what a host does not have are left out there
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "sim")]
    pub on: Vec<String>,
    /// Concurrent runs; 0: one per core, in real time one
    #[arg(long, value_name = "J", allow_negative_numbers = true, default_value_t = 0, value_parser = jobs)]
    pub jobs: usize,
    /// Keep the runs in this folder, and write the tables and all cells there
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Use the runs that are in the folder
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Write a page for a browser: all verdicts, with their cells
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Rewrite the tables in the page of this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["only", "paths"])]
    pub docs: Option<PathBuf>,
    /// Print verdicts and cells as JSON
    #[arg(long)]
    pub json: bool,
}
