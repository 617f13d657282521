//! The kernel and its mounts.

use super::item::{Item, Verdict};
use libbpf_rs::btf::{Btf, types::Struct};
use narrows_kernel::Unavailable;
use narrows_kernel::bpffs::{self, Problem};
use std::fs;
use std::path::{Path, PathBuf};

/// The oldest kernel the controls are tested on.
pub const OLDEST: (u32, u32) = (6, 1);

/// What the kernel can, as far as this user may see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Its release, as in `uname -r`.
    pub release: String,
    /// Does it describe its types (`/sys/kernel/btf/vmlinux`)?
    pub btf: bool,
    /// Is there a sysfs on /sys?
    pub sysfs: bool,
    /// Can BPF be a TCP congestion control?
    pub struct_ops: bool,
    /// Can that be held by a link (Linux 6.4), not by plain registration alone?
    pub links: bool,
    /// `net.core.bpf_jit_enable`; none: not shown to this user, or not in this network namespace.
    pub jit: Option<bool>,
    /// Why controls cannot be pinned in the BPF file system on /sys/fs/bpf; none: they can.
    pub bpffs: Option<Problem>,
    /// Where cgroup2 is mounted.
    pub cgroup2: Option<PathBuf>,
    /// Is this process root?
    pub root: bool,
    /// Does the kernel refuse BPF to it, though it is root (a container's)?
    pub refused: bool,
}

impl Machine {
    /// Looks at the machine this runs on.
    pub fn look() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        // A machine without it does not make libbpf's attempt to find it elsewhere.
        let btf = Path::new("/sys/kernel/btf/vmlinux").exists().then(Btf::from_vmlinux);
        let btf = btf.and_then(Result::ok);
        let has =
            |name| btf.as_ref().is_some_and(|btf| btf.type_by_name::<Struct<'_>>(name).is_some());
        let mounts = read("/proc/self/mounts");
        Machine {
            release: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            btf: btf.is_some(),
            sysfs: Path::new("/sys/kernel").exists(),
            struct_ops: has("bpf_struct_ops_tcp_congestion_ops"),
            links: has("bpf_struct_ops_link"),
            jit: match read("/proc/sys/net/core/bpf_jit_enable").trim() {
                "" => None,
                value => Some(value != "0"),
            },
            bpffs: bpffs::problem(),
            cgroup2: mount_of(&mounts, "cgroup2").map(PathBuf::from),
            root: narrows_kernel::is_root(),
            refused: matches!(narrows_kernel::available(), Err(Unavailable::Refused)),
        }
    }

    /// What it means for loading and using a control.
    pub fn judge(&self) -> Vec<Item> {
        use Verdict::{Missing, Note, Ok, Unseen};
        let (major, minor) = OLDEST;
        let release = &self.release;
        let mut items = vec![match version(release) {
            Some(version) if version >= OLDEST => Item::new("kernel", Ok, release),
            _ => Item::new(
                "kernel",
                Missing,
                format!("{release}; {major}.{minor} or newer is needed"),
            ),
        }];
        items.push(match (self.btf, self.sysfs) {
            (true, _) => Item::new("BTF", Ok, "/sys/kernel/btf/vmlinux"),
            (false, true) => {
                Item::new("BTF", Missing, "a kernel built with CONFIG_DEBUG_INFO_BTF=y is needed")
            }
            (false, false) => Item::new("BTF", Missing, "sysfs is not mounted on /sys")
                .fix("mount -t sysfs sysfs /sys"),
        });
        items.push(match (self.struct_ops, self.links) {
            _ if !self.btf => Item::new("struct_ops", Unseen, "needs BTF to see"),
            (true, true) => Item::new("struct_ops", Ok, "TCP congestion control, with links"),
            (true, false) => Item::new(
                "struct_ops",
                Ok,
                "TCP congestion control, without links (Linux 6.4): plain registration",
            ),
            (false, _) => Item::new(
                "struct_ops",
                Missing,
                "a kernel with CONFIG_BPF_SYSCALL, CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF is needed",
            ),
        });
        items.push(match self.jit {
            Some(true) => Item::new("BPF JIT", Ok, "on"),
            Some(false) => {
                Item::new("BPF JIT", Missing, "off").fix("sysctl net.core.bpf_jit_enable=1")
            }
            None => Item::new("BPF JIT", Unseen, "shown to root in the first network namespace"),
        });
        items.push(match &self.bpffs {
            None => Item::new("bpffs", Ok, "/sys/fs/bpf, root's alone"),
            Some(problem) => {
                Item::new("bpffs", Missing, format!("/sys/fs/bpf: {}", problem.seen()))
                    .fix(problem.fix())
            }
        });
        items.push(match &self.cgroup2 {
            Some(path) => Item::new("cgroup2", Ok, path.display().to_string()),
            None => {
                Item::new("cgroup2", Missing, "not mounted; use --cgroup and --mptcp-only need it")
                    .fix("mkdir -p /run/cgroup2 && mount -t cgroup2 cgroup2 /run/cgroup2")
            }
        });
        if self.refused {
            let seen = "refused: no CAP_BPF here (a container's root has none), or locked down";
            items.push(Item::new("BPF", Missing, seen));
        }
        if !self.root {
            items.push(Item::new(
                "root",
                Note,
                "load, use, unuse and unload need it; check does not",
            ));
        }
        items
    }
}

/// Major and minor of a release, as in `6.1.0-18-cloud-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Some((major, minor)),
        _ => None,
    }
}

/// Where this file system is mounted first, from /proc/self/mounts.
fn mount_of<'a>(mounts: &'a str, kind: &str) -> Option<&'a str> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let path = fields.next()?;
        (fields.next()? == kind).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::super::item::verdict;
    use super::*;

    fn good() -> Machine {
        Machine {
            release: "6.12.9-cloud-amd64".into(),
            btf: true,
            sysfs: true,
            struct_ops: true,
            links: true,
            jit: Some(true),
            bpffs: None,
            cgroup2: Some("/sys/fs/cgroup".into()),
            root: true,
            refused: false,
        }
    }

    #[test]
    fn a_machine_with_everything_has_only_good_items() {
        assert!(good().judge().iter().all(|item| item.verdict == Verdict::Ok));
    }

    #[test]
    fn what_is_missing_is_named_with_what_to_type() {
        let bpffs = Some(Problem::NotMounted);
        let machine = Machine { bpffs, cgroup2: None, jit: Some(false), ..good() };
        let items = machine.judge();
        let missing: Vec<_> =
            items.iter().filter(|item| item.verdict == Verdict::Missing).collect();
        assert_eq!(missing.len(), 3);
        for item in missing {
            assert_eq!(item.fix.len(), 1, "{item:?}");
        }
        let container = Machine { btf: false, sysfs: false, struct_ops: false, ..good() };
        assert_eq!(container.judge()[1].fix, ["mount -t sysfs sysfs /sys"]);
        assert_eq!(verdict(&container.judge(), "struct_ops"), Some(Verdict::Unseen));
        let container = Machine { refused: true, ..good() };
        assert_eq!(verdict(&container.judge(), "BPF"), Some(Verdict::Missing));
        let old = Machine { release: "5.15.0-91-generic".into(), ..good() };
        assert_eq!(verdict(&old.judge(), "kernel"), Some(Verdict::Missing));
    }

    #[test]
    fn what_only_root_may_see_is_not_called_missing() {
        let machine = Machine { jit: None, root: false, ..good() };
        assert_eq!(verdict(&machine.judge(), "BPF JIT"), Some(Verdict::Unseen));
        assert!(machine.judge().iter().all(|item| item.verdict != Verdict::Missing));
    }

    #[test]
    fn releases_and_mounts_are_read_as_the_kernel_writes_them() {
        assert_eq!(version("6.1.0-18-cloud-amd64"), Some((6, 1)));
        assert_eq!(version("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(version("next"), None);
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n\
                      bpf /run/other bpf rw 0 0\n";
        assert_eq!(mount_of(mounts, "cgroup2"), Some("/sys/fs/cgroup/unified"));
        assert_eq!(mount_of(mounts, "tracefs"), None);
    }
}
