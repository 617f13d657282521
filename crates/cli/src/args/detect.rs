//! Options of `detect`.

use std::path::PathBuf;

/// Options of `detect`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sudo tcpdump -i eth0 -s 128 -w two.pcap tcp port 443   capture for a minute or more
  narrows detect two.pcap                                shared bottlenecks over time
  narrows detect two.pcap --plot two.svg                 also plot each flow's delay, coloured by group
  narrows detect two.pcap --detector tr --json | jq '.decisions[-1]'
  narrows detect delays.csv.gz --losses losses.csv       header: flow,t_s,owd_ms; and flow,t_s
  narrows detect two.pcap --set ssc.preset=mptcp-sbd --set ssc.p_s=0.15")]
pub struct DetectArgs {
    /// Capture (pcap, pcapng) or CSV with columns flow, t_s and owd_ms or rtt_ms; plain or .gz
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Detector of shared bottlenecks: ssc or tr
    #[arg(long, value_name = "NAME", default_value = "ssc")]
    pub detector: String,
    /// Set a parameter of the detector: ssc.p_s=0.15
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Analyse the N largest flows
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub flows: u8,
    /// Losses, if FILE is CSV: CSV with columns flow and t_s
    #[arg(long, value_name = "FILE")]
    pub losses: Option<PathBuf>,
    /// Plot each flow's delay, coloured by group (.svg or .png)
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Print the decisions as JSON
    #[arg(long)]
    pub json: bool,
}
