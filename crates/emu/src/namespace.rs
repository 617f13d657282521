//! Network namespaces with a name, as `ip netns` keeps them.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use crate::Error;

/// Where they are mounted.
pub const NAMED: &str = "/run/netns";

/// A network namespace.
#[derive(Clone, Debug)]
pub struct Namespace {
    pub name: String,
    /// Its number, as in `lsns`.
    pub inum: u32,
    pub file: Arc<File>,
}

impl Namespace {
    /// Makes one and gives it a name.
    pub fn create(name: &str) -> Result<Namespace, Error> {
        prepare_folder()?;
        let refused = |doing: &str| {
            let (namespace, doing) = (name.to_owned(), doing.to_owned());
            |source| Error::Refused { namespace, doing, source }
        };
        let path = Path::new(NAMED).join(name);
        let place = File::create_new(&path).map_err(refused("make its file in /run/netns"))?;
        drop(place);
        // A thread that has left its process's namespace cannot be trusted with anything else.
        let inside = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            let own = "/proc/thread-self/ns/net";
            mount(Some(own), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
            let file = File::open(own)?;
            // An inode number of the kernel's namespace file system has 32 bits.
            let inum = file.metadata()?.ino() as u32;
            Ok(Namespace { name: name.into(), inum, file: Arc::new(file) })
        };
        let made = elsewhere(inside);
        if made.is_err() {
            remove(name).ok();
        }
        made.map_err(refused("be made"))
    }

    /// Does `work` in a thread inside.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        elsewhere(|| {
            setns(&self.file, CloneFlags::CLONE_NEWNET)?;
            Ok(work())
        })
    }
}

/// Does `work` in a thread of its own.
fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Makes `/run/netns` and makes it a shared mount, so that namespaces appear and go in all mount
/// namespaces, as `ip netns add` does; under the same lock.
fn prepare_folder() -> Result<(), Error> {
    let folder = Path::new(NAMED);
    let io = |doing| Error::io(folder, doing);
    DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(io("be made"))?;
    let file = File::open(folder).map_err(io("be opened"))?;
    let _lock = Flock::lock(file, FlockArg::LockExclusive)
        .map_err(|(_, errno)| io("be locked")(errno.into()))?;
    let share = || {
        let flags = MsFlags::MS_SHARED | MsFlags::MS_REC;
        mount(None::<&str>, folder, None::<&str>, flags, None::<&str>)
    };
    let shared = match share() {
        // It is no mount yet.
        Err(Errno::EINVAL) => {
            let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
            mount(Some(folder), folder, None::<&str>, flags, None::<&str>).and_then(|()| share())
        }
        shared => shared,
    };
    shared.map_err(|errno| io("be made a shared mount")(errno.into()))
}

/// Removes the name. The namespace goes with its last process, socket and device.
pub fn remove(name: &str) -> io::Result<()> {
    let path = Path::new(NAMED).join(name);
    let removed = match umount2(&path, MntFlags::MNT_DETACH) {
        // Its maker ended before it was mounted.
        Ok(()) | Err(Errno::EINVAL) => fs::remove_file(path),
        Err(errno) => Err(errno.into()),
    };
    match removed {
        // Somebody else was first.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Lets sockets end soon that have lost their process. Those with data that nobody acknowledges would
/// hold the namespace, and their congestion control, for minutes: TCP's for 8 retransmissions, MPTCP's
/// for the `close_timeout` that there is when they are closed.
pub fn hasten(name: &str) -> io::Result<()> {
    elsewhere(|| {
        setns(File::open(Path::new(NAMED).join(name))?, CloneFlags::CLONE_NEWNET)?;
        fs::write("/proc/sys/net/ipv4/tcp_orphan_retries", "1")?;
        fs::write("/proc/sys/net/mptcp/close_timeout", "1")
    })
}

/// The names that begin with `prefix`.
pub fn named(prefix: &str) -> Vec<String> {
    let entries = fs::read_dir(NAMED).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort_unstable();
    names
}

/// What identifies a namespace: device and inode of its file.
pub type Identity = (u64, u64);

/// The identity of the namespace that has this name.
pub fn identity(name: &str) -> Option<Identity> {
    identity_at(&Path::new(NAMED).join(name))
}

fn identity_at(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|about| (about.dev(), about.ino()))
}

/// The processes that are in one of these namespaces with their main thread: number and name. A
/// thread that looks in for a moment makes no process one of them.
pub fn processes(namespaces: &[Identity]) -> Vec<(i32, String)> {
    let inside = narrows_netns::processes().unwrap_or_default().into_iter().filter_map(|pid| {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let namespace = identity_at(&folder.join("ns/net"))?;
        let name = fs::read_to_string(folder.join("comm")).ok()?;
        namespaces.contains(&namespace).then(|| (pid as i32, name.trim_end().to_owned()))
    });
    inside.collect()
}
