//! Options of `detect`.

use std::path::PathBuf;

/// So many seconds, and not 0, in which nothing is seen.
fn seconds(text: &str) -> Result<u64, String> {
    match super::seconds(text)? {
        0 => Err("expected seconds above 0, such as 60 or 60s".into()),
        seconds => Ok(seconds),
    }
}

/// Options of `detect`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sudo tcpdump -i eth0 -s 128 -w two.pcap tcp port 443   for a minute or more
  narrows detect two.pcap                          who shares a bottleneck, when
  narrows detect two.pcap --plot two.svg           also delays, rates, losses
  narrows detect two.pcap --report two.html        the same as a page for a browser
  narrows detect two.pcap --detector all           what each detector finds
  narrows detect two.pcap --json | jq '.verdicts'
  narrows detect -i eth0 --for 60s                 what is sent now, until Ctrl-C or so long
  ssh host sudo tcpdump -U -s 128 -w - tcp | narrows detect -
  narrows detect trace.sqlog                       the paths of a connection of QUIC
  narrows detect server/*.sqlog                    connections, by the logs of their sender
  narrows detect delays.csv.gz --losses losses.csv   flow,t_s,owd_ms; flow,t_s
  narrows detect two.pcap --detector ssc --set ssc.preset=mptcp-sbd")]
pub struct DetectArgs {
    /// Capture (pcap, pcapng), logs of QUIC (qlog, one or several) or CSV with columns flow, t_s and owd_ms
    /// or rtt_ms, also compressed by gzip or zstd; - is standard input, a capture there is read as it comes
    #[arg(value_name = "FILE", required_unless_present = "interface")]
    pub files: Vec<PathBuf>,
    /// Capture on this interface, or on any, by tcpdump, which has to be installed (root, or cap_net_raw of its own)
    #[arg(short, long, value_name = "IFACE", conflicts_with_all = ["files", "losses", "plot", "report"])]
    pub interface: Option<String>,
    /// With --interface: packets to capture, in tcpdump's language
    #[arg(long, value_name = "FILTER", default_value = "tcp", conflicts_with = "files")]
    pub filter: String,
    /// With --interface: end after so many seconds, such as 60 or 60s; else Ctrl-C ends
    #[arg(long = "for", value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds, conflicts_with = "files")]
    pub seconds: Option<u64>,
    /// Detectors of shared bottlenecks, separated by commas, or all
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = narrows_detect::DEFAULT)]
    pub detector: Vec<String>,
    /// Set a parameter of a detector: ssc.p_s=0.15
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Analyse the N largest flows
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub flows: u8,
    /// Leave out flows with fewer packets of data, such as control connections
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 100)]
    pub min_packets: u64,
    /// Where the capture was made, of the way of the data: sender, receiver or middle; else its packets tell
    #[arg(long, value_name = "PLACE")]
    pub at: Option<narrows_detect::At>,
    /// Losses, if FILE is CSV: CSV with columns flow and t_s
    #[arg(long, value_name = "FILE")]
    pub losses: Option<PathBuf>,
    /// Plot each flow's delay, coloured by group (.svg or .png)
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Write a page for a browser: groups, delays, rates, losses, each two flows; of the first detector
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Print decisions and verdicts as JSON
    #[arg(long)]
    pub json: bool,
}
