//! Network namespaces: which there are, work done inside one, the sysctls of each, and the processes
//! that may be in one.

use narrows_foreign::Foreign;
use nix::libc;
use nix::sched::{CloneFlags, setns};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where `ip netns` keeps those that have a name.
const NAMED: &str = "/run/netns";
/// The one of this process.
const OWN: &str = "/proc/self/ns/net";

/// A network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Its name in `/run/netns`; `current` for the one of this process, `pid:N` for one that only
    /// processes hold.
    pub name: Foreign,
    /// Its number, as in `lsns` and `struct net::ns.inum`.
    pub inum: u32,
    /// The file that stands for it; none: this process is in it.
    path: Option<PathBuf>,
}

impl Namespace {
    /// The one this process is in, with its name if it has one.
    ///
    /// # Errors
    /// No /proc.
    pub fn current() -> io::Result<Namespace> {
        let inum = inum(Path::new(OWN))?;
        let named = named().into_iter().find(|named| named.inum == inum);
        let name = named.map_or_else(|| "current".into(), |named| named.name);
        Ok(Namespace { name, inum, path: None })
    }

    /// The one called `name`: as `ip netns` does, or the path of its file.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn named(name: &str) -> io::Result<Namespace> {
        let path = Path::new(NAMED).join(name);
        let about = fs::metadata(&path).map_err(|error| match error.kind() {
            kind @ io::ErrorKind::NotFound => {
                io::Error::new(kind, format!("no network namespace {}", path.display()))
            }
            kind => io::Error::new(kind, format!("{}: {error}", path.display())),
        })?;
        if about.dev() != fs::metadata(OWN)?.dev() {
            let message = format!("{} is no network namespace", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(Namespace { name: name.into(), inum: about.ino() as u32, path: Some(path) })
    }

    /// Does `work` in or on this namespace; none: it failed, as the namespace has gone meanwhile.
    /// One without a name goes with its last process.
    ///
    /// # Errors
    /// It failed otherwise.
    pub fn unless_gone<T, E>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<Option<T>, E> {
        let is = |path: &PathBuf| inum(path).is_ok_and(|inum| inum == self.inum);
        match work() {
            Err(_) if !self.path.as_ref().is_none_or(is) => Ok(None),
            done => done.map(Some),
        }
    }

    /// The current one, those with a name, and those of the processes that this user may look into
    /// (root: all), each once.
    ///
    /// # Errors
    /// No /proc.
    pub fn all() -> io::Result<Vec<Namespace>> {
        let mut all = vec![Namespace::current()?];
        let mut seen = HashSet::from([all[0].inum]);
        all.extend(named().into_iter().filter(|named| seen.insert(named.inum)));
        all.extend(of_processes().into_iter().filter(|held| seen.insert(held.inum)));
        Ok(all)
    }

    /// Is this process in it?
    pub fn is_current(&self) -> bool {
        self.path.is_none()
    }

    /// Does `work` in this namespace: in a thread of its own, so that nothing else of the process
    /// moves there.
    ///
    /// # Errors
    /// Entering another namespace needs root.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let Some(path) = &self.path else { return Ok(work()) };
        let file = File::open(path)?;
        // The path may be that of another one by now: a name or a process's number given again.
        if file.metadata()?.ino() != u64::from(self.inum) {
            let gone = format!("{} is another namespace now", path.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, gone));
        }
        let inside = move || {
            setns(file, CloneFlags::CLONE_NEWNET)?;
            Ok(work())
        };
        std::thread::scope(|scope| match scope.spawn(inside).join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    /// The command, as it must be typed from outside to be done in this namespace.
    pub fn command(&self, command: &str) -> String {
        match (&self.path, self.name.raw().strip_prefix("pid:")) {
            (None, _) => command.into(),
            (_, Some(pid)) => format!("nsenter -t {pid} -n {command}"),
            _ => format!("ip netns exec {} {command}", self.name.word()),
        }
    }
}

/// The ids of all processes, in ascending order.
///
/// # Errors
/// No /proc.
pub fn processes() -> io::Result<Vec<u32>> {
    let entries = fs::read_dir("/proc")?.flatten();
    let mut pids: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    Ok(pids)
}

/// The number that the network namespace of this thread has for good (SO_NETNS_COOKIE); its inode
/// number may be another's later.
///
/// # Errors
/// The kernel refuses a socket, or is older than Linux 5.14.
pub fn cookie() -> io::Result<u64> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut cookie = 0u64;
    let mut size = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel writes at most the eight bytes it is given.
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &mut size,
        )
    };
    if got < 0 { Err(io::Error::last_os_error()) } else { Ok(cookie) }
}

/// asm-generic/socket.h, Linux 5.14.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// A sysctl of the namespace this thread is in, by its path below /proc/sys, as `net/mptcp/enabled`.
///
/// # Errors
/// This kernel does not have it, or does not show it.
pub fn sysctl(path: &str) -> io::Result<String> {
    Ok(fs::read_to_string(format!("/proc/sys/{path}"))?.trim_end().to_owned())
}

/// Sets a sysctl of the namespace this thread is in; the error names it and the value.
///
/// # Errors
/// The kernel refuses: not root, no such sysctl, or no such value.
pub fn set_sysctl(path: &str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/{path}"), value)
        .map_err(|error| io::Error::new(error.kind(), format!("{path} = {value}: {error}")))
}

fn inum(path: &Path) -> io::Result<u32> {
    // An inode number of the kernel's namespace file system has 32 bits.
    Ok(fs::metadata(path)?.ino() as u32)
}

/// Those with a name. A file that is no namespace (`ip netns` makes it first, then mounts) is none.
fn named() -> Vec<Namespace> {
    let proc = fs::metadata(OWN).map(|own| own.dev());
    let Ok(entries) = fs::read_dir(NAMED) else { return Vec::new() };
    let mut all: Vec<Namespace> = entries
        .flatten()
        .filter_map(|entry| {
            let path = entry.path();
            let about = fs::metadata(&path).ok()?;
            let name = entry.file_name().as_os_str().into();
            let is_namespace = proc.as_ref().is_ok_and(|dev| *dev == about.dev());
            is_namespace.then(|| Namespace { name, inum: about.ino() as u32, path: Some(path) })
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// What a process is called; nothing if it has ended.
pub fn command(pid: u32) -> Foreign {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.strip_suffix(b"\n").unwrap_or(&name).into()
}

/// Those that processes are in, each under its first process.
fn of_processes() -> Vec<Namespace> {
    let held = processes().unwrap_or_default().into_iter().filter_map(|pid| {
        let path = PathBuf::from(format!("/proc/{pid}/ns/net"));
        Some(Namespace {
            name: format!("pid:{pid}").into(),
            inum: inum(&path).ok()?,
            path: Some(path),
        })
    });
    let mut seen = HashSet::new();
    held.filter(|held| seen.insert(held.inum)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_call_itself_anything_and_is_on_one_line() {
        let script = "printf 'a\\nb\\377' > /proc/$$/comm; echo; read -r end";
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        assert_eq!(command(child.id()).to_string(), "a\\nb\\xff");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
