//! Hosts, made and removed together.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use narrows_net::Network;
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Uid, getpid, getppid};

use crate::namespace::Namespace;
use crate::owner::Owner;
use crate::tap::Port;
use crate::{Error, HostConfig, Packet, Route, Tap, Wire, clean, device};

/// Hosts with their namespaces and devices. Dropped, also by a panic, it kills what runs in them
/// and removes them; what a process leaves that is killed itself, [`clean`] removes. A [`Wire`] holds
/// its devices, so it should be stopped first.
#[derive(Debug)]
pub struct Testbed {
    owner: Owner,
    hosts: Vec<Host>,
    /// A [`Wire`] that carries has another reference.
    carried: Arc<()>,
}

/// A host of a [`Testbed`].
#[derive(Debug)]
pub struct Host {
    config: HostConfig,
    namespace: Namespace,
    tuns: Vec<Arc<File>>,
}

/// Can this process make a [`Testbed`] on this machine?
///
/// # Errors
/// It is not root's, or there are no TUN devices.
pub fn available() -> Result<(), Error> {
    if !Uid::effective().is_root() {
        return Err(Error::NotRoot);
    }
    OpenOptions::new().read(true).write(true).open(device::TUN).map_err(Error::NoTun)?;
    Ok(())
}

impl Testbed {
    /// Makes namespaces and devices. First it [cleans](clean) up after others.
    ///
    /// # Errors
    /// Not root, no TUN devices in this kernel, hosts that make no sense, or something that the
    /// kernel refuses. Nothing is left of it then.
    pub fn new(hosts: &[HostConfig]) -> Result<Testbed, Error> {
        available()?;
        validate(hosts)?;
        clean()?;
        let owner = Owner::new()?;
        let mut testbed = Testbed { owner, hosts: Vec::new(), carried: Arc::default() };
        for config in hosts {
            let name = format!("{}{}", testbed.owner.prefix(), config.name);
            let namespace = Namespace::create(&name)?;
            let refused =
                |doing: String, source| Error::Refused { namespace: name.clone(), doing, source };
            let made = namespace.run(|| device::configure(config));
            let made = made.map_err(|error| refused("be entered".into(), error))?;
            let tuns = made.map_err(|(doing, error)| refused(doing, error))?;
            let tuns = tuns.into_iter().map(Arc::new).collect();
            testbed.hosts.push(Host { config: config.clone(), namespace, tuns });
        }
        Ok(testbed)
    }

    /// Its unique part of names: four letters and digits.
    pub fn id(&self) -> &str {
        self.owner.id()
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name() == name)
    }

    /// All hosts, in the order of their configuration.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter()
    }

    /// Starts to carry packets over the network: model time 0 is now. One wire at a time; what
    /// hosts sent while there was none waits in their devices.
    ///
    /// # Errors
    /// Ways between addresses that no host has, or over a route that the network has not; taps at
    /// hosts that do not exist; a wire is there already.
    pub fn start(
        &self,
        network: Network<Packet>,
        routes: &[Route],
        taps: Vec<Tap>,
    ) -> Result<Wire, Error> {
        let mut ports = Vec::new();
        let mut port_of = HashMap::new();
        for (number, host) in self.hosts.iter().enumerate() {
            for (device, (config, tun)) in host.config.devices.iter().zip(&host.tuns).enumerate() {
                port_of.extend(config.addresses.iter().map(|&address| (address, ports.len())));
                ports.push(Port { tun: tun.clone(), host: number, device, mtu: config.mtu });
            }
        }
        let is_somewhere = |tap: &Tap| {
            let host = self.hosts.get(tap.host);
            host.is_some_and(|host| tap.device.is_none_or(|device| device < host.tuns.len()))
        };
        if let Some(nowhere) = taps.iter().find(|tap| !is_somewhere(tap)) {
            return Err(Error::Tap { host: nowhere.host });
        }
        if Arc::strong_count(&self.carried) > 1 {
            return Err(Error::Running);
        }
        Wire::start(network, ports, &port_of, routes, taps, self.carried.clone())
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        // Nothing to report to; what could not be removed, clean() tries again.
        self.owner.remove().ok();
    }
}

impl Host {
    /// Its name in the testbed.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The name of its namespace, `nr-ID-NAME`, as for `ip netns exec`.
    pub fn namespace(&self) -> &str {
        &self.namespace.name
    }

    /// The number of its namespace, as in `lsns` and `struct net::ns.inum`.
    pub fn inum(&self) -> u32 {
        self.namespace.inum
    }

    /// What it was made of.
    pub fn config(&self) -> &HostConfig {
        &self.config
    }

    /// Does `work` in a thread of its own in this host: sockets opened there are the host's.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        self.namespace.run(work)
    }

    /// A command that will run in this host. It is killed when the *thread* that spawned it ends,
    /// and with it when the process does; so spawn it from a thread that lasts, not in
    /// [`Host::run`].
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let namespace = self.namespace.file.clone();
        let parent = getpid();
        let enter = move || {
            setns(&namespace, CloneFlags::CLONE_NEWNET)?;
            set_pdeathsig(Signal::SIGKILL)?;
            if getppid() != parent {
                // The parent ended before it was asked to take this child with it.
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        };
        // SAFETY: between fork and exec it does system calls alone, and allocates nothing.
        unsafe { command.pre_exec(enter) };
        command
    }
}

/// What the kernel would not say, or not clearly.
fn validate(hosts: &[HostConfig]) -> Result<(), Error> {
    let mut owner_of: HashMap<IpAddr, &str> = HashMap::new();
    for (number, HostConfig { name, devices }) in hosts.iter().enumerate() {
        let fault = |fault: String| Err(Error::Host { host: name.clone(), fault });
        let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(is_fine) {
            return fault("a name is of letters, digits, - and _".into());
        }
        if hosts[..number].iter().any(|other| other.name == *name) {
            return fault("named twice".into());
        }
        for &address in devices.iter().flat_map(|device| &device.addresses) {
            if let Some(other) = owner_of.insert(address, name) {
                return fault(format!("{address} is an address of {other} already"));
            }
        }
    }
    Ok(())
}
