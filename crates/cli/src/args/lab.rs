//! Options of the commands that run scenarios.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use narrows_lab::hosts::child;
use narrows_lab::{Edits, Error, Host, Seeds, SeriesOf, Shard, host};
use narrows_laws::user::{self, Checks};

use super::suggest;

/// Options that change a scenario.
#[derive(Debug, clap::Args)]
pub struct EditArgs {
    /// Change a field of the scenario, by its dotted name
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = suggest::fields(), hide_possible_values = true)]
    pub set: Vec<String>,
    /// Compile and load your own law, for use in --cc (`narrows law new`)
    #[arg(long = "law", value_name = "FILE.h")]
    pub law: Option<PathBuf>,
    /// Replay a recorded trace (plain or .gz) on a link: Mahimahi's format, or that of
    /// --set links.LINK.format='s Mbit/s' (`narrows list fields links`)
    #[arg(long = "trace", value_name = "LINK=FILE")]
    pub trace: Vec<String>,
}

/// Options of `show`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  narrows show sbd/sb-2 > mine.toml     a file to edit; runs from any folder
  narrows show sbd/sb-2 --resolved      bases merged, with all defaults
  narrows show sbd/sb-2 --resolved --set links.bottleneck1.aqm=red")]
pub struct ShowArgs {
    /// A shipped scenario or base (`narrows list scenarios`) or a TOML file
    #[arg(value_parser = suggest::scenarios(), hide_possible_values = true)]
    pub scenario: String,
    /// Print the complete scenario: bases merged, generators expanded, all defaults
    #[arg(long)]
    pub resolved: bool,
    #[command(flatten)]
    pub edit: EditArgs,
}

/// Options of `run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  narrows run sbd/nsb-2                               the scenario's controls
  narrows run sbd/sb-2 --cc balia --seed 7 --json     another law and seed
  narrows run phone/wifi-lte --trace lte=lte.down.gz  a recorded trace
  narrows run sbd/nsb-2 --set links.bottleneck2.rate='5 Mbit/s' --out out/slow
  narrows run phone/wifi-lte --pcap out/pcap --capture mptcp,wifi
  narrows run phone/wifi-handover --cc lia            links come and go
  narrows run sbd/nsb-2 --cc olia --on kernel         this kernel, as root
  narrows run sbd/nsb-2 --cc olia --on kernel --serve 'mptcpize run iperf3 -s' \\
    --app 'mptcpize run iperf3 -c {server} -t 60'     a program as the source
  narrows run sbd/sb-2 --cc lia+xcorr --report a.html a page for a browser
  narrows run sbd/sb-2 --cc lia+xcorr --plots out/fig plots for a paper
  narrows run my/scenario.toml --dry-run              what would run")]
pub struct RunArgs {
    /// A shipped scenario (`narrows list scenarios`) or a TOML file
    #[arg(value_parser = suggest::scenarios(), hide_possible_values = true)]
    pub scenario: String,
    /// Congestion control of the connection under test: `LAW[+DETECTOR][+START]` or `kernel:NAME`
    #[arg(long, value_name = "NAME", value_parser = suggest::controls(), hide_possible_values = true)]
    pub cc: Option<String>,
    /// Delay signal of the detector: receiver-us, sender-us, sender-ms, rtt or srtt [default: that
    /// of a named system, else the scenario's, else sender-us]
    #[arg(long, value_name = "NAME")]
    pub signal: Option<String>,
    /// Host to run on: sim (the simulator), kernel (this machine's kernel, in real time), quic (QUIC
    /// in place of MPTCP, over simulated links) or quic-real (QUIC beside this machine's kernel, in
    /// real time)
    #[arg(long, value_name = "HOST", default_value = "sim")]
    pub on: String,
    /// On the kernel: a program that replaces the source under test, in the sender's host; {server}
    /// is the receiver's address. Only data from sender to receiver is counted; TCP programs use all
    /// paths with `mptcpize run`
    #[arg(long, value_name = "CMD", value_parser = NonEmptyStringValueParser::new())]
    pub app: Option<String>,
    /// The server for --app, a program in the receiver's host; --app starts when it listens
    #[arg(long, value_name = "CMD", requires = "app", value_parser = NonEmptyStringValueParser::new())]
    pub serve: Option<String>,
    /// Seed of the random generator
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = seed)]
    pub seed: u64,
    #[command(flatten)]
    pub edit: EditArgs,
    /// Threads of the simulator at most, with the same result: a large network is run in parts, one bottleneck on one thread [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Run even if the estimate exceeds the available memory or two days
    #[arg(long)]
    pub force: bool,
    /// Show rates, windows and groups of the paths on the terminal while it runs; q or Ctrl-C interrupts it
    #[arg(long, conflicts_with_all = ["app", "law"])]
    pub live: bool,
    /// Write summary.json and a time series (every 100 ms) into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write a page for a browser: plots over time, the detector's decisions, the network, tables
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Write the plots of such a page into this folder for a paper: each as SVG and PDF, 85 mm wide, with its data as CSV
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// Capture packets of hosts or links into this folder, as pcapng
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Flows (at both hosts) and links (sim only) to capture [default: the connection under test]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', requires = "pcap")]
    pub capture: Vec<String>,
    /// Bytes to capture of each packet, 40 or more [default: headers, at most 80 and on the kernel 100]
    #[arg(long, value_name = "N", allow_negative_numbers = true, requires = "pcap", value_parser = clap::value_parser!(u32).range(40..=65_535))]
    pub snaplen: Option<u32>,
    /// Format of the series
    #[arg(long, value_enum, default_value_t = Series::Csv)]
    pub series: Series,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    /// Show links, flows and cost of the run without running it
    #[arg(long, conflicts_with_all = ["json", "live", "out", "report", "plots", "pcap"])]
    pub dry_run: bool,
}

/// Formats of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Series {
    /// Comma-separated values.
    Csv,
    /// Apache Parquet.
    Parquet,
}

/// Options of `compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  narrows compare sbd/nsb-2 sbd/sb-2 --cc reno,lia,olia,balia
  narrows compare sbd/sb-5 --cc reno,olia --seeds 30 --out out/sb-5
  narrows compare sbd/nsb-2 sbd/sb-2 --cc reno,olia --on sim,kernel
  narrows compare sbd/nsb-2 --cc reno,lia+xcorr --signal rtt --on sim,quic,quic-real,kernel
  narrows compare sbd/nsb-2 --cc lia --sweep jitter='0..6 packets:3'
  narrows compare sbd/nsb-2 --cc lia --sweep links.bottleneck1.rate='1..100 Mbit/s:5:log' \\
    --sweep flows.mptcp.scheduler=min-rtt,round-robin    every combination
  narrows compare sbd/nsb-2 --cc olia+ssc --signal receiver-us,rtt
  narrows compare sbd/nsb-2 --cc olia+ssc --set ssc.p_s=0.1
  narrows compare sbd/nsb-5 --cc lia+shared --set detection.passive='[\"xcorr\"]'
  narrows compare sbd/sb-5 --cc reno,olia --seeds 60 --out out/sb-5 --resume
  narrows compare sbd/sb-5 --cc reno,olia --seeds 500 --shard 3/7 --out out/3    one job of seven
  narrows compare sbd/nsb-2 --cc lia,olia --json | jq '.rows[].ratio_to_tcp'")]
pub struct CompareArgs {
    /// Shipped scenarios (`narrows list scenarios`) or TOML files
    #[arg(required = true, value_name = "SCENARIO", value_parser = suggest::scenarios(), hide_possible_values = true)]
    pub scenarios: Vec<String>,
    /// Congestion controls of the connection under test, separated by commas
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', required = true, value_parser = suggest::controls(), hide_possible_values = true)]
    pub cc: Vec<String>,
    /// Delay signals of the detectors, a row each: receiver-us, sender-us, sender-ms, rtt, srtt
    /// [default: that of a named system, else the scenario's, else sender-us]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub signal: Vec<String>,
    /// Hosts to run on: sim, kernel, quic, quic-real, separated by commas
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "sim")]
    pub on: Vec<String>,
    /// Run each with seeds 1 to K, or A to B
    #[arg(long, value_name = "K|A..B", allow_negative_numbers = true, default_value = "10")]
    pub seeds: Seeds,
    /// Run only the Ith of N parts of the seeds, as each job of an array does; `narrows merge` puts the
    /// results together
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Concurrent runs; 0: one per core, in real time one
    #[arg(long, value_name = "J", default_value_t = 0, allow_negative_numbers = true, value_parser = jobs)]
    pub jobs: usize,
    /// Run with N evenly spaced values of a field from A to B (A..B:N:log: each as many times the one
    /// before), or with those listed (FIELD=A,B,C); several sweeps: all combinations
    #[arg(long, value_name = "FIELD=A..B:N", value_parser = suggest::fields(), hide_possible_values = true)]
    pub sweep: Vec<String>,
    #[command(flatten)]
    pub edit: EditArgs,
    /// Run even if the estimate exceeds the available memory or two days
    #[arg(long)]
    pub force: bool,
    /// Show the runs of each row, its goodput, ratio and accuracy so far and the time that is left on the terminal; q or Ctrl-C interrupts it
    #[arg(long, conflicts_with = "law")]
    pub live: bool,
    /// Write the report, the rows and every run's summary into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write a page for a browser: every metric over the seeds, with tables
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Write the plots of such a page into this folder for a paper: each as SVG and PDF, 85 mm wide, with its data as CSV
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// The seeds whose time series (every 100 ms) go into --out
    #[arg(long, value_name = "SEEDS", default_value = "first", requires = "out",
        value_parser = PossibleValuesParser::new(SeriesOf::NAMES).try_map(|name| name.parse::<SeriesOf>()))]
    pub series_of: SeriesOf,
    /// Resume an interrupted comparison, or add seeds to a finished one; needs the same arguments
    /// (but --seeds) and --out folder
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Print the rows as JSON
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print the rows as CSV
    #[arg(long)]
    pub csv: bool,
}

impl CompareArgs {
    /// The seeds that are run: all, or those of the shard.
    ///
    /// # Errors
    /// More shards than seeds.
    pub fn seeds(&self) -> Result<Seeds, Error> {
        let Some(shard) = self.shard else { return Ok(self.seeds) };
        self.seeds.shard(shard).map_err(|message| Error::input("--shard", message))
    }
}

/// A seed.
fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number, at most {}", u64::MAX))
}

/// A number of threads.
///
/// # Errors
/// Not a number, or more than any machine runs.
pub fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(jobs) if jobs <= 1024 => Ok(jobs),
        _ => Err("expected a number of threads, at most 1024".into()),
    }
}

impl EditArgs {
    /// The edits.
    ///
    /// # Errors
    /// An option of the wrong form.
    pub fn edits(&self) -> Result<Edits, Error> {
        let pair = |option: &str, form: &str, text: &String| {
            let pair =
                text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
            let message = format!("expected {form}, found \"{text}\"");
            pair.map(|(name, value)| (name.to_owned(), value.to_owned()))
                .ok_or_else(|| Error::input(option, message))
        };
        let trimmed = |(field, value): (String, String)| (field.trim().into(), value.trim().into());
        let set = self.set.iter().map(|text| pair("--set", "FIELD=VALUE", text).map(trimmed));
        let traces = self.trace.iter().map(|text| {
            pair("--trace", "LINK=FILE", text).map(|(link, file)| (link, PathBuf::from(file)))
        });
        let traces: Vec<(String, PathBuf)> = traces.collect::<Result<_, _>>()?;
        let twice = |(at, (link, _)): &(usize, &(String, _))| {
            traces[..*at].iter().any(|(other, _)| other == link)
        };
        if let Some((_, (link, _))) = traces.iter().enumerate().find(twice) {
            let message = "has two traces; expected one for a link";
            return Err(Error::input(format!("--trace {link}"), message));
        }
        Ok(Edits { set: set.collect::<Result<_, _>>()?, traces })
    }
}

impl EditArgs {
    /// Loads the user's law once, before --cc, --set or a scenario names it.
    ///
    /// # Errors
    /// Not a law, or it does not compile.
    pub fn load_law(&self) -> Result<(), crate::error::Error> {
        load_law(self.law.as_deref())
    }
}

/// Loads the user's law of an option once, whose runs are children's.
///
/// # Errors
/// Not a law, or it does not compile.
pub fn load_law(header: Option<&Path>) -> Result<(), crate::error::Error> {
    let Some(header) = header.filter(|_| user::loaded().is_none()) else {
        return Ok(());
    };
    user::load(header, Checks::None).map_err(crate::error::Error::of_law)?;
    // Also when another build has taken the place of its file.
    child::isolate("/proc/self/exe".into(), Vec::new());
    Ok(())
}

/// The hosts of an option.
///
/// # Errors
/// An unknown host, one this program was built without, or one named twice.
pub fn hosts(names: &[String]) -> Result<Vec<&'static dyn Host>, Error> {
    let mut hosts = Vec::<&dyn Host>::new();
    for name in names {
        let host = host(name.trim())?;
        if hosts.iter().any(|known| known.id() == host.id()) {
            return Err(Error::input("--on", format!("{} is named twice", host.id())));
        }
        hosts.push(host);
    }
    Ok(hosts)
}

/// Concurrent runs on a host where so many were asked for: in real time they share nothing, so one for 0.
pub fn jobs_on(host: &dyn Host, jobs: usize) -> usize {
    if host.real_time() { jobs.max(1) } else { jobs }
}

/// Options of `merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  narrows compare sbd/sb-5 --cc reno,olia --seeds 1..250 --out out/a      on one machine
  narrows compare sbd/sb-5 --cc reno,olia --seeds 251..500 --out out/b    on another
  narrows merge out/a out/b --out out/all --report all.html
  narrows merge out/shard-* --out out/all                                 all parts of --shard

The scenario's files are read again, as the command in out/a names them.")]
pub struct MergeArgs {
    /// Folders of results of one comparison with seeds that follow each other, in any order
    #[arg(required = true, num_args = 2.., value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Write the report, the rows and every run's summary into this folder
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Write a page for a browser: every metric over the seeds, with tables
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Write the plots of such a page into this folder for a paper: each as SVG and PDF, 85 mm wide, with its data as CSV
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// Also of different builds of narrows, which may simulate differently; `compare --resume` refuses what several made
    #[arg(long)]
    pub any_build: bool,
}

#[cfg(all(test, feature = "kernel"))]
mod tests {
    use super::*;

    #[test]
    fn in_real_time_runs_are_one_at_a_time_unless_more_are_asked_for() {
        let (sim, kernel) = (host("sim").unwrap(), host("kernel").unwrap());
        assert_eq!([jobs_on(sim, 0), jobs_on(sim, 3)], [0, 3]);
        assert_eq!([jobs_on(kernel, 0), jobs_on(kernel, 3)], [1, 3]);
    }
}
