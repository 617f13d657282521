//! Options of `narrows kernel`.

use std::path::PathBuf;

use clap::Subcommand;

/// The commands of `narrows kernel`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  narrows kernel check                        is this machine ready, and what is wrong with its MPTCP
  narrows kernel load olia                    put nr_olia into the kernel
  narrows kernel use olia --default           for all connections of this machine that begin now
  narrows kernel status --watch               controls, connections, subflows, each second
  narrows kernel unload                       everything as it was before

All but check and --dry-run need root; without it status shows what the kernel tells everybody.")]
pub enum Command {
    /// Is this machine ready, and what makes MPTCP useless on it? Says what to type; changes nothing
    #[command(after_help = "\
Exit code: 0 ready to load and use, 1 something is missing, 2 it could not look.")]
    Check {
        /// Look at MPTCP in a network namespace, by its name in /run/netns
        #[arg(long, value_name = "NAME")]
        netns: Option<String>,
    },
    /// Show loaded controls, and all MPTCP connections with their subflows
    #[command(after_help = "\
Examples:
  narrows kernel status                       once; throughput of a quarter of a second
  narrows kernel status --watch               each second, in place, until Ctrl-C
  narrows kernel status --json | jq .namespaces[].connections[].subflows[]")]
    Status(StatusArgs),
    /// Load controls into the kernel, where they stay until unloaded: all that are named, or none
    #[command(after_help = "\
Examples:
  narrows kernel load olia lia+disjoint       nr_olia and nr_lia_dj; `narrows list controls` has all
  narrows kernel load olia --boot             now and whenever the machine starts
  narrows kernel load ./mine.h                a law of your own (`narrows law new`)")]
    Load {
        /// Controls: `LAW[+DETECTOR][+START]`, their names in the kernel, or the header of a law
        /// of your own
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        boot: Boot,
    },
    /// Use a loaded control for connections that begin from now on
    #[command(after_help = "\
Examples:
  narrows kernel use olia --default                 all TCP and MPTCP of this machine
  narrows kernel use olia --default --mptcp-only    plain TCP keeps its control
  narrows kernel use olia --netns blue              a network namespace (ip netns)
  narrows kernel use olia --cgroup /sys/fs/cgroup/system.slice/nginx.service --mptcp-only")]
    Use {
        /// The control: `LAW[+DETECTOR][+START]`, or its name in the kernel
        name: String,
        #[command(flatten)]
        target: Target,
        /// Only for MPTCP: plain TCP, and connections that fall back to it, go on with what they had
        #[arg(long)]
        mptcp_only: bool,
        #[command(flatten)]
        boot: Boot,
    },
    /// Undo `use`: what was there before is there again, unless somebody else changed it since
    Unuse {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        boot: Boot,
    },
    /// Undo `use` and `load`; without a name, of all controls
    #[command(after_help = "\
Sockets that run a control keep it until they close.")]
    Unload {
        /// Controls: `LAW[+DETECTOR][+START]`, or their names in the kernel
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        boot: Boot,
    },
    /// Write the BPF objects of all laws into a folder, for bpftool
    Objects {
        /// The folder
        folder: PathBuf,
    },
}

/// Options of `status`.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Print one JSON object (docs/kernel.md); with --watch one a second, each on a line
    #[arg(long)]
    pub json: bool,
    /// Show it again each second until Ctrl-C; block after block where the output is no terminal
    #[arg(long)]
    pub watch: bool,
}

/// Where a control is used.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Target {
    /// Everywhere in the network namespace this command runs in, normally the machine's
    #[arg(long)]
    pub default: bool,
    /// For the sockets of a cgroup (version 2), by its folder
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// Everywhere in a network namespace, by its name in /run/netns
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
}

/// Now, and at the start of the machine.
#[derive(Debug, clap::Args)]
pub struct Boot {
    /// Also at the start of the machine: changes a systemd unit and a sysctl.d file
    #[arg(long)]
    pub boot: bool,
    /// Show what --boot would write, and change nothing
    #[arg(long, requires = "boot")]
    pub dry_run: bool,
}

impl Target {
    /// As the library has it.
    pub fn target(&self) -> narrows_mptcp_admin::assign::Target {
        use narrows_mptcp_admin::assign::Target;
        match (&self.cgroup, &self.netns) {
            (Some(path), _) => Target::Cgroup(path.clone()),
            (_, Some(name)) => Target::Netns(name.clone()),
            _ => Target::Default,
        }
    }
}
