//! Options of `shell`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;

use super::lab::EditArgs;
use super::suggest;

/// Options of `shell`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  narrows shell phone/wifi-lte                          a shell in host receiver; the server is sender
  narrows shell phone/wifi-lte --serve 'python3 -m http.server 80 -d /srv' -- \\
      curl -o /dev/null http://{server}/file            over one path, by TCP
  narrows shell phone/wifi-lte --serve 'mptcpize run python3 -m http.server 80 -d /srv' -- \\
      mptcpize run curl -o /dev/null http://{server}/file     over both, by MPTCP
  narrows shell sbd/nsb-2 --host sender --serve 'mptcpize run iperf3 -s' -- \\
      mptcpize run iperf3 -c {server}                   from the sender: an upload
  narrows shell phone/wifi-lte --pcap out/pcap -- ping -c 5 {server}

In a scenario data flows from host sender to host receiver. The scenario's flows are not started;
events that change links take place. In CMD and --serve, {server} and {server6} are the addresses
of the other host; the environment has NARROWS_SERVER, NARROWS_SERVER6 and NARROWS_HOST. The exit
code is CMD's. Needs root.")]
pub struct ShellArgs {
    /// A shipped scenario (`narrows list scenarios`) or a TOML file
    #[arg(value_parser = suggest::scenarios(), hide_possible_values = true)]
    pub scenario: String,
    /// Host of the shell: sender or receiver
    #[arg(long, value_name = "NAME", default_value = "receiver")]
    pub host: String,
    /// Server to run in the other host, with sh; CMD starts when it listens (or after 5 s)
    #[arg(long, value_name = "CMD", value_parser = NonEmptyStringValueParser::new())]
    pub serve: Option<String>,
    /// Congestion control of new connections: `LAW[+DETECTOR][+START]` or `kernel:NAME` [default:
    /// the kernel's default]
    #[arg(long, value_name = "NAME", value_parser = suggest::controls(), hide_possible_values = true)]
    pub cc: Option<String>,
    /// Capture packets of both hosts into this folder, as pcapng
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Bytes to capture of each packet, 40 or more [default: headers, at most 100]
    #[arg(long, value_name = "N", requires = "pcap", value_parser = clap::value_parser!(u32).range(40..=65_535))]
    pub snaplen: Option<u32>,
    #[command(flatten)]
    pub edit: EditArgs,
    /// Command to run instead of a shell
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
