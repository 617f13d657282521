//! Options of `fuzz`.

use std::path::PathBuf;
use std::time::Duration;

use super::lab::jobs;
use super::suggest;

/// Options of `fuzz`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  narrows fuzz --cc greno+xcorr --out out/fuzz               some minutes
  narrows fuzz --cc greno+xcorr,gcubic+xcorr --for 2h --out out/fuzz
  narrows fuzz --for 2h --out out/fuzz --resume              goes on; every control
  narrows fuzz out/fuzz/greno-xcorr-silence.toml --cc greno+xcorr    judges a network
  narrows fuzz --cc gcubic+xcorr --on quic --out out/quic    connections of QUIC
  narrows fuzz --law ./mine.h --cc mine --out out/mine       your own law

A control is compared with its law uncoupled and with each path alone in the same network. Exit
code: 1 if it has a fault of its own, which the uncoupled law does not share.")]
pub struct FuzzArgs {
    /// Judge these scenarios, shipped ones or TOML files, in place of a search
    #[arg(value_name = "SCENARIO", value_parser = suggest::scenarios(), hide_possible_values = true, conflicts_with_all = ["out", "seed", "candidates", "time", "hops", "shrink"])]
    pub scenarios: Vec<String>,
    /// Congestion controls, separated by commas [default: all that are coupled]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', value_parser = suggest::controls(), hide_possible_values = true)]
    pub cc: Vec<String>,
    /// Host in virtual time to run on: sim (the simulator) or quic (QUIC in place of MPTCP)
    #[arg(long, value_name = "HOST", default_value = "sim")]
    pub on: String,
    /// Seed of the search; runs have seeds of their own
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1)]
    pub seed: u64,
    /// Networks to search for each control [default: 240, or with --for as many as there is time for]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub candidates: Option<u32>,
    /// Time for all controls together, such as 90s, 10min, 2h; what is found is shrunk after it
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub time: Option<Duration>,
    /// Packet-hops of a run at most, about
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 400_000, value_parser = clap::value_parser!(u32).range(10_000..=100_000_000))]
    pub hops: u32,
    /// Networks to judge at most to shrink a find; 0: do not shrink
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 250)]
    pub shrink: usize,
    /// Concurrent runs; 0: one per core
    #[arg(long, value_name = "J", allow_negative_numbers = true, default_value_t = 0, value_parser = jobs)]
    pub jobs: usize,
    /// Compile and load your own law, for use in --cc (`narrows law new`)
    #[arg(long, value_name = "FILE.h")]
    pub law: Option<PathBuf>,
    /// Write a scenario for each find and what was judged so far into this folder
    #[arg(long, value_name = "DIR", required_unless_present = "scenarios")]
    pub out: Option<PathBuf>,
    /// Continue the search in the --out folder
    #[arg(long, requires = "out")]
    pub resume: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "expected a time such as 90s, 10min or 2h".into())
}
