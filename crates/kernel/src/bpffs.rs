//! The BPF file system on /sys/fs/bpf, where controls are pinned.

use crate::state::{BPFFS, SHARED};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Why nothing is pinned there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It is not mounted.
    NotMounted,
    /// `ip netns exec` put a /sys of its own over the machine's; what is mounted and pinned below it
    /// goes when that command ends.
    Hidden {
        /// The network namespace.
        netns: String,
    },
    /// Not root's alone: without a mode it is mounted with 1777, and another user's folder of our
    /// name keeps root from pinning there.
    Writable {
        /// Its permissions.
        mode: u32,
        /// Its owner.
        uid: u32,
    },
    /// Something of ours by name that another user has put there.
    Foreign {
        /// Its name.
        name: &'static str,
    },
    /// Users other than root may create BPF maps, also under our names, and the maps of controls
    /// are found by name.
    Unprivileged,
}

/// What is wrong with it, as this process sees it; none: controls can be pinned.
pub fn problem() -> Option<Problem> {
    if let Some(netns) = netns_exec() {
        return Some(Problem::Hidden { netns });
    }
    if !statfs(BPFFS).is_ok_and(|about| about.filesystem_type() == BPF_FS_MAGIC) {
        return Some(Problem::NotMounted);
    }
    let about = fs::metadata(BPFFS).ok()?;
    let (mode, uid) = (about.mode() & 0o7777, about.uid());
    if mode & 0o022 != 0 || uid != 0 {
        return Some(Problem::Writable { mode, uid });
    }
    // From when others could write there.
    let foreign = |name: &&str| {
        let about = Path::new(BPFFS).join(name).symlink_metadata();
        about.is_ok_and(|about| about.uid() != 0 || !about.is_file())
    };
    if let Some(name) = SHARED.into_iter().find(foreign) {
        return Some(Problem::Foreign { name });
    }
    let sysctl = fs::read_to_string("/proc/sys/kernel/unprivileged_bpf_disabled");
    sysctl.is_ok_and(|value| value.trim() == "0").then_some(Problem::Unprivileged)
}

impl Problem {
    /// Is the machine's BPF file system out of sight, so that nothing is known of its pins?
    pub fn is_unseen(&self) -> bool {
        matches!(self, Problem::NotMounted | Problem::Hidden { .. })
    }

    /// What is there.
    pub fn seen(&self) -> String {
        match self {
            Problem::NotMounted => "the BPF file system is not mounted here".into(),
            Problem::Hidden { netns } => {
                format!("hidden by `ip netns exec {netns}`, which has a /sys of its own")
            }
            Problem::Writable { mode, uid } => {
                format!("mode {mode:04o}, owner {uid}: users other than root can write there")
            }
            Problem::Foreign { name } => format!("{name} there is no map of root's"),
            Problem::Unprivileged => {
                "kernel.unprivileged_bpf_disabled is 0: any user may create BPF maps of our names"
                    .into()
            }
        }
    }

    /// What to type; with [`Problem::Hidden`], outside of `ip netns exec`.
    pub fn fix(&self) -> String {
        match self {
            Problem::NotMounted => format!("mount -t bpf -o mode=0700 bpf {BPFFS}"),
            Problem::Hidden { netns } => format!("narrows kernel check --netns {netns}"),
            Problem::Writable { .. } => format!("chown 0:0 {BPFFS} && chmod 0700 {BPFFS}"),
            Problem::Foreign { name } => format!("rm -r {BPFFS}/{name}"),
            Problem::Unprivileged => "sysctl -w kernel.unprivileged_bpf_disabled=2".into(),
        }
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Hidden { netns } => write!(
                f,
                "{}; run narrows outside of it: use, unuse, status and check have --netns {netns}",
                self.seen()
            ),
            _ => write!(f, "{}: {}", self.seen(), self.fix()),
        }
    }
}

/// The namespace that this process was put into by `ip netns exec`, if it was: that mounts sysfs
/// with the namespace's name as its source.
fn netns_exec() -> Option<String> {
    let mounts = fs::read_to_string("/proc/thread-self/mounts").ok()?;
    let source = source_of_sys(&mounts)?;
    let inode = |path: &Path| fs::metadata(path).ok().map(|about| (about.dev(), about.ino()));
    let named = inode(&Path::new("/run/netns").join(source))?;
    (inode(Path::new("/proc/thread-self/ns/net")) == Some(named)).then(|| source.to_owned())
}

/// The source of the file system on /sys: the last one mounted there.
fn source_of_sys(mounts: &str) -> Option<&str> {
    mounts.lines().rev().find_map(|line| {
        let mut fields = line.split(' ');
        let (source, path) = (fields.next()?, fields.next()?);
        (path == "/sys").then_some(source)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_of_sys_is_that_of_its_last_mount() {
        let mounts =
            "sysfs /sys sysfs rw 0 0\nbpf /sys/fs/bpf bpf rw 0 0\nblue /sys sysfs rw 0 0\n";
        assert_eq!(source_of_sys(mounts), Some("blue"));
        assert_eq!(source_of_sys("proc /proc proc rw 0 0\n"), None);
    }

    #[test]
    fn a_problem_is_a_line_that_ends_with_what_to_do() {
        let writable = Problem::Writable { mode: 0o1777, uid: 0 }.to_string();
        assert!(writable.starts_with("mode 1777, owner 0: users other than root"), "{writable}");
        assert!(writable.ends_with("chmod 0700 /sys/fs/bpf"), "{writable}");
        let hidden = Problem::Hidden { netns: "blue".into() }.to_string();
        assert!(hidden.ends_with("have --netns blue"), "{hidden}");
    }
}
