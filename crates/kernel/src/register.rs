//! Registration of a loaded control. Handles the differences between kernels with struct_ops links
//! (Linux 6.4) and without.
//!
//! With links the registration lasts as long as the link, which is pinned or held by a process, and
//! a newer build replaces an older one atomically. Without, the kernel keeps the registration until
//! the map's value is deleted, and a newer build is registered after the older one is gone.

use crate::Error;
use libbpf_rs::btf::{Btf, types};
use libbpf_rs::libbpf_sys;
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapMut, OpenMapMut};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes of a congestion control's name in the kernel, its ending 0 included (`TCP_CA_NAME_MAX`).
pub const NAME_MAX: usize = 16;

#[cfg(test)]
thread_local! {
    static WITHOUT_LINKS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// What registering means in this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// It has struct_ops links.
    pub links: bool,
}

impl Kernel {
    /// Reads the running kernel's types.
    ///
    /// # Errors
    /// It cannot register congestion controls in BPF, or has no MPTCP.
    pub fn probe() -> Result<Kernel, Error> {
        crate::available()?;
        let btf = Btf::from_vmlinux().map_err(Error::bpf("/sys/kernel/btf/vmlinux", "read"))?;
        let has = |name| btf.type_by_name::<types::Struct<'_>>(name).is_some();
        if !has("bpf_struct_ops_tcp_congestion_ops") {
            return Err(Error::OldKernel("congestion control by BPF (Linux 5.6, CONFIG_BPF_JIT)"));
        }
        if !has("mptcp_subflow_context") {
            return Err(Error::OldKernel("MPTCP (CONFIG_MPTCP)"));
        }
        let links = has("bpf_struct_ops_link");
        #[cfg(test)]
        let links = links && !WITHOUT_LINKS.get();
        Ok(Kernel { links })
    }

    /// Does `work` as if the kernel had no links.
    #[cfg(test)]
    pub(crate) fn without_links(work: impl FnOnce()) {
        WITHOUT_LINKS.set(true);
        work();
        WITHOUT_LINKS.set(false);
    }

    /// The name of a pinned registration.
    pub(crate) fn pin_name(self) -> &'static str {
        if self.links { "link" } else { "ops" }
    }

    /// Requests a link. The objects do not, so that `bpftool struct_ops register` keeps them.
    pub(crate) fn prepare(self, ops: &mut OpenMapMut<'_>) -> Result<(), libbpf_rs::Error> {
        if !self.links {
            return Ok(());
        }
        ops.set_map_flags(ops.map_flags() | libbpf_sys::BPF_F_LINK)
    }

    /// Keeps the registration beyond this process.
    pub(crate) fn keep(self, link: &mut Link, pin: &Path) -> Result<(), libbpf_rs::Error> {
        if self.links {
            return link.pin(pin);
        }
        // What libbpf calls a link here deletes the map's value when it is dropped. The map itself
        // was pinned before, so that a registration left by a kill can be found.
        link.disconnect();
        Ok(())
    }

    /// The registration pinned at `path`; none: nothing is, or nothing that is still registered.
    ///
    /// # Errors
    /// The kernel does not tell. It may be registered then, and its pin must stay.
    pub(crate) fn pinned(self, path: &Path) -> Result<Option<Pinned>, Error> {
        // libbpf complains of what is missing.
        if !path.exists() {
            return Ok(None);
        }
        let failed = || Error::bpf(path.display().to_string(), "read");
        // Others that unload may remove it now.
        let gone = |error: &libbpf_rs::Error| error.kind() == libbpf_rs::ErrorKind::NotFound;
        if self.links {
            let link = match Link::open(path) {
                Err(error) if gone(&error) => return Ok(None),
                link => link.map_err(failed())?,
            };
            let LinkTypeInfo::StructOps(info) = link.info().map_err(failed())?.info else {
                let message = "cannot read a registration: is no link of a congestion control";
                return Err(Error::input(path.display().to_string(), message));
            };
            // A link that lost its map has been detached.
            return Ok((info.map_id != 0).then_some(Pinned::Link(link)));
        }
        let map = match MapHandle::from_pinned_path(path) {
            Err(error) if gone(&error) => return Ok(None),
            map => map.map_err(failed())?,
        };
        // struct bpf_struct_ops_value: refcnt, then state, which is 1 while registered.
        let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(failed())?;
        let state =
            value.and_then(|value| value.get(4..8)?.try_into().map(u32::from_ne_bytes).ok());
        Ok((state == Some(1)).then_some(Pinned::Map(map)))
    }

    /// Registers `ops` in place of `older`.
    ///
    /// # Errors
    /// The kernel refuses; without links the older one is gone then.
    pub(crate) fn replace(self, older: &Pinned, ops: &mut MapMut<'_>) -> io::Result<Option<Link>> {
        match older {
            Pinned::Link(link) => {
                // libbpf has no call for a link that was pinned by another process. Its attach
                // first gives the map its value, which is what an update needs, and then fails, as
                // the name is taken.
                match ops.attach_struct_ops() {
                    Err(error) if error.kind() == libbpf_rs::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(into_io(&error)),
                    // Somebody unregistered the older one just now.
                    Ok(link) => return Ok(Some(link)),
                }
                link_update(link, ops.as_fd().as_raw_fd())?;
                Ok(None)
            }
            Pinned::Map(map) => {
                map.delete(&0u32.to_ne_bytes()).map_err(|error| into_io(&error))?;
                ops.attach_struct_ops().map(Some).map_err(|error| into_io(&error))
            }
        }
    }
}

/// A registration that outlives its process.
pub(crate) enum Pinned {
    /// A link.
    Link(Link),
    /// The struct_ops map itself.
    Map(MapHandle),
}

impl Pinned {
    /// Id of the struct_ops map.
    pub(crate) fn map_id(&self) -> Option<u32> {
        match self {
            Pinned::Link(link) => match link.info().ok()?.info {
                LinkTypeInfo::StructOps(info) => Some(info.map_id),
                _ => None,
            },
            Pinned::Map(map) => map.info().ok().map(|info| info.info.id),
        }
    }

    /// Restores the map of an older build.
    pub(crate) fn put_back(&self, map: &MapHandle) -> io::Result<()> {
        match self {
            Pinned::Link(link) => link_update(link, map.as_fd().as_raw_fd()),
            // A map whose value was deleted cannot be registered again.
            Pinned::Map(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Unregisters it, removes its pin and waits until the name is free.
    pub(crate) fn unregister(self, name: &str, pin: &Path) -> Result<(), Error> {
        match &self {
            // At once from Linux 6.11; before that when nothing holds the link any more.
            Pinned::Link(link) => drop(link.detach()),
            Pinned::Map(map) => {
                map.delete(&0u32.to_ne_bytes()).map_err(Error::bpf(name, "unregister"))?;
            }
        }
        fs::remove_file(pin).map_err(Error::io(pin, "remove"))?;
        drop(self);
        let end = Instant::now() + Duration::from_secs(5);
        while available_controls()?.iter().any(|known| known == name) {
            if Instant::now() > end {
                return Err(Error::input(name, "unregistered, but the kernel still lists it"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// Is this the kernel name of a control of narrows or of a user's law? Only they begin with `nr_`.
pub fn is_ours(name: &str) -> bool {
    name.starts_with("nr_")
}

/// The congestion controls of the kernel.
///
/// # Errors
/// No /proc.
pub fn available_controls() -> Result<Vec<String>, Error> {
    let path = PathBuf::from("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let text = fs::read_to_string(&path).map_err(Error::io(&path, "read"))?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// A control's name as the kernel and its maps keep it.
pub fn padded(name: &str) -> [u8; NAME_MAX] {
    let mut bytes = [0; NAME_MAX];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes
}

fn link_update(link: &Link, map: i32) -> io::Result<()> {
    // SAFETY: both are open descriptors, and without options nothing is read behind them.
    let result =
        unsafe { libbpf_sys::bpf_link_update(link.as_fd().as_raw_fd(), map, std::ptr::null()) };
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

fn into_io(error: &libbpf_rs::Error) -> io::Error {
    io::Error::other(format!("{error:#}"))
}
