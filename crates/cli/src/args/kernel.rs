//! Options of `narrows kernel`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use narrows_kernel::Signal;
use narrows_kernel::trial::{Guards, LONGEST};
use narrows_mptcp_admin::trial::{GUARDS, guards};

/// The commands of `narrows kernel`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  narrows kernel check                        is this machine ready, is MPTCP set up
  narrows kernel load olia                    load nr_olia into the kernel
  narrows kernel use olia --default           use it for all new connections of this machine
  narrows kernel status --watch               controls, connections, subflows, every second
  narrows kernel watch                        which paths meet in one bottleneck, under any control
  narrows kernel unload                       unload all and restore the previous defaults

All but check, trial merge and --dry-run of --boot need root; without root status shows only part
of the information.")]
pub enum Command {
    /// Check kernel features and the configuration of MPTCP, and print fixes; changes nothing
    #[command(after_help = "\
Exit code: 0 ready to load and use, 1 something is missing, 2 the check could not run.")]
    Check {
        /// Check MPTCP in this network namespace (name in /run/netns)
        #[arg(long, value_name = "NAME")]
        netns: Option<String>,
    },
    /// Show loaded controls and all MPTCP connections with their subflows
    #[command(after_help = "\
Examples:
  narrows kernel status                       once; throughput over a quarter of a second
  narrows kernel status --watch               every second, in place, until Ctrl-C
  narrows kernel status --netns blue --top 20 the busiest connections of a namespace
  narrows kernel status --json | jq .namespaces[].connections[].subflows[]")]
    Status(StatusArgs),
    /// Find which paths of MPTCP connections meet in one bottleneck, under any control
    #[command(after_help = "\
Examples:
  narrows kernel watch                        all MPTCP connections, until Ctrl-C
  narrows kernel watch --port 443 --for 60    a minute, those with this port
  narrows kernel watch --tcp 8                the 8 plain TCP flows that send most
  narrows kernel watch --json | jq -r .connections[].sentence

Nothing is loaded or used as a control, and nothing stays. Only what this machine sends can be
compared. Needs root.")]
    Watch(WatchArgs),
    /// Say which control and links suit this machine's MPTCP connections; changes nothing
    #[command(after_help = "\
Examples:
  narrows kernel recommend                    after watching all MPTCP connections for 30 s
  narrows kernel recommend --netns blue --for 300
  narrows kernel recommend --json | jq -r .namespaces[].sentence

The longer it watches, the surer it is; `no change` is an answer. Only what this machine sends is
seen. Needs root.")]
    Recommend(RecommendArgs),
    /// Make MPTCP subflows that do not pay backups, under any control, until Ctrl-C
    #[command(after_help = "\
Examples:
  narrows kernel advise                       a line for each thing that is done
  narrows kernel advise --netns blue --for 60
  narrows kernel load bbr --set bbr.close=0.6 a law that gives advice by itself, which is followed

Only the path manager is used, never the window. What was set is set back at the end. Needs root.")]
    Advise(AdviseArgs),
    /// Let the receiver detect shared bottlenecks and tell the sender, until Ctrl-C
    #[command(after_help = "\
Examples, on both ends:
  narrows kernel use greno+xcorr --default --mptcp-only
  narrows kernel receiver                     connections that begin from now on, until Ctrl-C
  narrows kernel receiver --for 60 --cgroup /sys/fs/cgroup/system.slice/nginx.service

Decisions travel in an experimental TCP option. Nothing stays at the end. Needs root.")]
    Receiver(ReceiverArgs),
    /// Print figures of controls and connections in the text format of Prometheus
    #[command(after_help = "\
Examples:
  narrows kernel export
  narrows kernel export --textfile /var/lib/prometheus/node-exporter

Needs root.")]
    Export(ExportArgs),
    /// Load controls into the kernel, all or none; they stay until unloaded
    #[command(after_help = "\
Examples:
  narrows kernel load olia lia+disjoint       nr_olia and nr_lia_dj; see `narrows list controls`
  narrows kernel load olia --boot             now and at every boot
  narrows kernel load bbr --set bbr.close=0.6 with another parameter (`narrows list params`)
  narrows kernel load gcubic+xcorr --signal sender-us   its detector samples one-way delays
  narrows kernel load ./mine.h                your own law (`narrows law new`)")]
    Load {
        /// Controls: `LAW[+DETECTOR][+START]`, names in the kernel, or the header of your own law
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// Set a parameter of a law or detector: bbr.close=0.6; the others have their defaults
        #[arg(long = "set", value_name = "NAME=VALUE", conflicts_with = "boot")]
        set: Vec<String>,
        /// What detectors sample: rtt, or one-way delays by the peer's TCP timestamps, sender-ms or
        /// sender-us [default: rtt]
        #[arg(long, conflicts_with = "boot")]
        signal: Option<Signal>,
        #[command(flatten)]
        boot: Boot,
    },
    /// Use a loaded control for new connections; moves older MPTCP listeners to it
    #[command(after_help = "\
Examples:
  narrows kernel use olia --default                 all TCP and MPTCP of this machine
  narrows kernel use olia --default --mptcp-only    plain TCP keeps its control
  narrows kernel use olia --netns blue              a network namespace (ip netns)
  narrows kernel use olia --cgroup /sys/fs/cgroup/system.slice/nginx.service --mptcp-only")]
    Use {
        /// Control: `LAW[+DETECTOR][+START]`, or its name in the kernel
        name: String,
        #[command(flatten)]
        target: Target,
        /// Only for MPTCP; plain TCP, and connections that fall back to it, keep the old default
        #[arg(long)]
        mptcp_only: bool,
        /// Also move open MPTCP connections that have the former control
        #[arg(long)]
        open: bool,
        #[command(flatten)]
        boot: Boot,
    },
    /// Undo `use`: restore the previous default, unless it was changed since
    Unuse {
        #[command(flatten)]
        target: Target,
        /// Also move open MPTCP connections that have the control
        #[arg(long)]
        open: bool,
        #[command(flatten)]
        boot: Boot,
    },
    /// Try a control on a share of new connections, and end it at once when a guard is broken
    #[command(
        args_conflicts_with_subcommands = true,
        subcommand_negates_reqs = true,
        after_help = "\
Examples:
  narrows kernel load gcubic+xcorr
  narrows kernel trial gcubic+xcorr --against cubic --share 5% --dry-run   how long it would take
  narrows kernel trial gcubic+xcorr --against cubic --share 5%
  narrows kernel trial status                 what both arms have, with intervals; at any time
  narrows kernel trial stop --report out.html put all back; the result as a page
  narrows kernel trial merge a.json b.json    of several hosts, by what --json printed on each

No process stays: the kernel draws, counts, and ends the trial when a guard is broken or its time is
over. Open connections of the trial then have their former control again. All but merge need root."
    )]
    Trial(TrialArgs),
    /// Undo `use` and `load`, by default for all controls
    #[command(after_help = "\
Sockets that run a control keep it until they close. Without a name, what a killed `advise` had made
a backup is regular again, too.")]
    Unload {
        /// Controls: `LAW[+DETECTOR][+START]`, or their names in the kernel
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        boot: Boot,
    },
    /// Write the BPF objects of all laws into a folder, for bpftool
    Objects {
        /// Folder
        folder: PathBuf,
    },
}

/// Options of `status`.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Print one JSON object (docs/guide/watch.md), with --watch one line per second
    #[arg(long)]
    pub json: bool,
    /// Refresh every second until Ctrl-C; if the output is not a terminal, append blocks
    #[arg(long)]
    pub watch: bool,
    /// Only the connections of this network namespace (name in /run/netns)
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Only the N busiest connections, and the number of the others [default: as many as fit if the
    /// output is a terminal, else all]
    #[arg(long, value_name = "N", conflicts_with = "json")]
    pub top: Option<usize>,
}

/// Which connections are watched.
#[derive(Debug, clap::Args)]
pub struct ScopeArgs {
    /// The sockets of a cgroup (version 2), and of those below it, by its folder
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// Only this network namespace (name in /run/netns)
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Connections with this port on either side; several: --port 80,443
    #[arg(long, value_name = "PORT", value_delimiter = ',', value_parser = port)]
    pub port: Vec<u16>,
}

/// Options of `watch`.
#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    #[command(flatten)]
    pub scope: ScopeArgs,
    /// Instead of MPTCP the N plain TCP flows that send most
    #[arg(long, value_name = "N", value_parser = flows)]
    pub tcp: Option<usize>,
    /// Print one JSON object a second, each on a line (docs/guide/watch.md)
    #[arg(long)]
    pub json: bool,
    /// End after so many seconds: 60 or 60s
    #[arg(long = "for", value_name = "SECONDS", value_parser = super::seconds)]
    pub seconds: Option<u64>,
}

fn port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|&port| port > 0);
    port.ok_or_else(|| "expected a port, 1 to 65535".into())
}

/// As many as `watch --tcp` compares.
fn flows(text: &str) -> Result<usize, String> {
    let flows = text.parse().ok().filter(|flows| (2..=64).contains(flows));
    flows.ok_or_else(|| "expected 2 to 64 flows".into())
}

/// Options of `recommend`.
#[derive(Debug, clap::Args)]
pub struct RecommendArgs {
    #[command(flatten)]
    pub scope: ScopeArgs,
    /// Print one JSON object (docs/guide/watch.md)
    #[arg(long)]
    pub json: bool,
    /// Watch for so many seconds: 60 or 60s; Ctrl-C ends it before
    #[arg(long = "for", value_name = "SECONDS", value_parser = super::seconds, default_value = "30")]
    pub seconds: u64,
}

/// Options of `advise`.
#[derive(Debug, clap::Args)]
pub struct AdviseArgs {
    /// The connections of this network namespace (name in /run/netns) [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// End after so many seconds: 60 or 60s
    #[arg(long = "for", value_name = "SECONDS", value_parser = super::seconds)]
    pub seconds: Option<u64>,
}

/// Options of `trial`.
#[derive(Debug, clap::Args)]
pub struct TrialArgs {
    #[command(subcommand)]
    pub command: Option<TrialCommand>,
    /// The control that is tried, loaded: `LAW[+DETECTOR][+START]`, or its name in the kernel
    #[arg(value_name = "NAME", required = true)]
    pub control: Option<String>,
    /// The control that connections have now, by its name in the kernel; others are left alone
    #[arg(long, value_name = "CONTROL", required = true)]
    pub against: Option<String>,
    /// The share of new connections that get the control that is tried
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share)]
    pub share: f64,
    /// Only the sockets of a cgroup (version 2), and of those below it, by its folder
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// Only this network namespace (name in /run/netns)
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Only connections with this port on either side; several: --port 80,443
    #[arg(long, value_name = "PORT", value_delimiter = ',', value_parser = port)]
    pub port: Vec<u16>,
    /// Only MPTCP, no plain TCP
    #[arg(long)]
    pub mptcp_only: bool,
    /// How long connections are drawn: 90s, 30m, 24h, 7d
    #[arg(long = "for", value_name = "TIME", default_value = "24h", value_parser = time)]
    pub lasts: Duration,
    /// What ends the trial at once, or `none`
    #[arg(long, value_name = "LIMITS", default_value = GUARDS, value_parser = guards)]
    pub guard: Guards,
    /// Watch for 10 s who begins, say how long the trial would take, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What is to become of a trial.
#[derive(Debug, Subcommand)]
pub enum TrialCommand {
    /// Show how the trial stands
    Status(TrialOutput),
    /// End the trial, put all back, and show what it found
    Stop(TrialOutput),
    /// Show what trials of several hosts found together
    #[command(after_help = "\
Each file has what `trial status --json` or `trial stop --json` printed; of several lines the last one
counts. The trials must have been begun alike: controls, share, ports, guards, version of narrows.")]
    Merge {
        /// What --json printed, of each trial
        #[arg(required = true, value_name = "FILE.json")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        output: TrialOutput,
    },
}

/// How a trial is shown.
#[derive(Debug, clap::Args)]
pub struct TrialOutput {
    /// Print one JSON object (docs/guide/trial.md)
    #[arg(long)]
    pub json: bool,
    /// Also write it as a page for a browser
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
}

/// `5%` or `0.05`.
fn share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.parse().map(|percent: f64| percent / 100.0),
        None => text.parse(),
    };
    // 99.9 / 100 is a little above 0.999.
    let share = share.ok().filter(|share| (0.001..0.9991).contains(share));
    share.ok_or_else(|| "expected a share from 0.1% to 99.9%, such as 5%".into())
}

/// `90s`, `30m`, `24h`, `7d`.
fn time(text: &str) -> Result<Duration, String> {
    let units = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];
    let time = units.iter().find_map(|(unit, seconds)| {
        let number: u64 = text.strip_suffix(*unit)?.parse().ok()?;
        Some(Duration::from_secs(number.checked_mul(*seconds)?))
    });
    let time = time.filter(|time| !time.is_zero() && *time <= LONGEST);
    time.ok_or_else(|| "expected a time up to 7d, such as 90s, 30m, 24h".into())
}

/// Options of `receiver`.
#[derive(Debug, clap::Args)]
pub struct ReceiverArgs {
    /// The sockets of a cgroup (version 2), and of those below it, by its folder [default: all]
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// End after so many seconds: 60 or 60s
    #[arg(long = "for", value_name = "SECONDS", value_parser = super::seconds)]
    pub seconds: Option<u64>,
}

/// Options of `export`.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// Write DIR/narrows.prom, for node_exporter's textfile collector, and print each counter of
    /// the fallback law that rose since the file before
    #[arg(long, value_name = "DIR")]
    pub textfile: Option<PathBuf>,
}

/// Where a control is used.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Target {
    /// The default of the current network namespace, normally the machine's
    #[arg(long)]
    pub default: bool,
    /// The sockets of a cgroup (version 2), by its folder
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// The default of a network namespace (name in /run/netns)
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
}

/// Now, and at the start of the machine.
#[derive(Debug, clap::Args)]
pub struct Boot {
    /// Also at boot: changes a systemd unit and a sysctl.d file
    #[arg(long)]
    pub boot: bool,
    /// Show the files that --boot would write, and change nothing
    #[arg(long, requires = "boot")]
    pub dry_run: bool,
}

impl Target {
    /// As the library's type.
    pub fn target(&self) -> narrows_mptcp_admin::assign::Target {
        use narrows_mptcp_admin::assign::Target;
        match (&self.cgroup, &self.netns) {
            (Some(path), _) => Target::Cgroup(path.clone()),
            (_, Some(name)) => Target::Netns(name.clone()),
            _ => Target::Default,
        }
    }
}
