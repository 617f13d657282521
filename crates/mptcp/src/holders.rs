//! MPTCP sockets of other processes: who holds them, and their congestion control, read and set as
//! their process could do itself.
//!
//! A subflow that joins gets the control of its MPTCP socket, which a connection copies from its
//! listener; the TCP sockets below are not where it is kept. Only a descriptor reaches the MPTCP
//! socket, so it is duplicated from a process that has one (pidfd_getfd, Linux 5.6). That needs the
//! right to trace the process: root, unless a security module forbids it.

use narrows_foreign::Foreign;
use nix::libc;
use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A process that holds a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its command's name.
    pub command: Foreign,
    /// Inode of the socket.
    inode: u32,
    /// The socket's descriptor in the process.
    fd: i32,
}

/// The processes that hold the sockets with these inode numbers, by inode and in the order of their
/// ids. A socket is missing if no process holds it, or none that this user may look into.
///
/// # Errors
/// No /proc.
pub fn holders(inodes: &HashSet<u32>) -> io::Result<HashMap<u32, Vec<Holder>>> {
    let mut all: HashMap<u32, Vec<Holder>> = HashMap::new();
    if inodes.is_empty() {
        return Ok(all);
    }
    for pid in narrows_netns::processes()? {
        let folder = format!("/proc/{pid}");
        // It may have ended, or be another user's.
        let Ok(entries) = fs::read_dir(format!("{folder}/fd")) else { continue };
        for entry in entries.flatten() {
            let inode = fs::read_link(entry.path()).ok().as_deref().and_then(socket);
            let fd = entry.file_name().to_string_lossy().parse();
            let (Some(inode), Ok(fd)) = (inode.filter(|inode| inodes.contains(inode)), fd) else {
                continue;
            };
            let of = all.entry(inode).or_default();
            if of.last().is_none_or(|last| last.pid != pid) {
                let command = narrows_netns::command(pid);
                of.push(Holder { pid, command, inode, fd });
            }
        }
    }
    Ok(all)
}

/// The inode of `socket:[123]`.
fn socket(target: &Path) -> Option<u32> {
    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

impl Holder {
    /// The process's descriptor as one of this process.
    ///
    /// # Errors
    /// The process may not be traced; `NotFound`: it has ended, or closed the socket.
    pub fn open(&self) -> io::Result<MptcpSocket> {
        // SAFETY: plain system calls; descriptors are new and owned at once.
        let socket = unsafe {
            opened(libc::syscall(libc::SYS_pidfd_open, self.pid, 0)).and_then(|process| {
                opened(libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), self.fd, 0))
            })
        };
        let socket = match socket {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::EBADF)) => {
                return Err(io::ErrorKind::NotFound.into());
            }
            socket => File::from(socket?),
        };
        // The descriptor, or the process id, may be another's by now.
        if socket.metadata()?.ino() != self.inode.into() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(MptcpSocket(socket.into()))
    }
}

/// # Safety
/// `result` is what a system call returned that makes a descriptor.
unsafe fn opened(result: libc::c_long) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as the caller promises; it is nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(result as i32) })
}

/// An MPTCP socket.
pub struct MptcpSocket(OwnedFd);

impl MptcpSocket {
    /// The congestion control of its first subflow; a listener's is what its connections get.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn control(&self) -> io::Result<String> {
        let mut name = [0u8; 16];
        let mut size = name.len() as libc::socklen_t;
        // SAFETY: the kernel writes at most `size` bytes.
        let got = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_CONGESTION,
                name.as_mut_ptr().cast(),
                &mut size,
            )
        };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Ok(String::from_utf8_lossy(&name[..end]).into_owned())
    }

    /// Sets its congestion control: that of the subflows there are, and of those that join.
    ///
    /// # Errors
    /// No such control, or one that is restricted.
    pub fn set_control(&self, name: &str) -> io::Result<()> {
        let name = CString::new(name)?;
        // SAFETY: the string has so many bytes.
        let set = unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_CONGESTION,
                name.as_ptr().cast(),
                name.as_bytes().len() as libc::socklen_t,
            )
        };
        if set < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
