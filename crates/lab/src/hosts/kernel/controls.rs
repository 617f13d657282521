//! The congestion controls of a run: they have names in the whole kernel, not in a namespace.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::sleep;
use std::time::{Duration, Instant};

use narrows_emu::Host;
use narrows_kernel::control::Registered;
use narrows_kernel::pins::{self, Held as Pinned};
use narrows_kernel::register::available_controls;
use narrows_kernel::{Settings, object};
use narrows_laws::Law;
use narrows_laws::catalogue::{control_of_kernel_name, kernel_name};
use narrows_laws::user::argument;
use narrows_netns::{set_sysctl, sysctl};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::Error;
use crate::algorithm::Algorithm;

/// Held by the process that may register our controls for its runs.
const LOCK: &str = "/run/narrows-controls.lock";

/// Our controls that are in the kernel for as long as this lives. Those that `narrows kernel load`
/// put there stay.
pub struct Controls {
    registered: Vec<Arc<Shared>>,
    /// Names of those that were there before.
    pinned: Vec<String>,
}

/// A control that runs of this process share which go on at the same time.
struct Shared {
    registered: Option<Registered>,
    // Released after the name is free.
    _lock: Arc<Flock<File>>,
}

/// What is registered now, by name, and the lock.
struct Held {
    lock: Weak<Flock<File>>,
    controls: BTreeMap<String, Weak<Shared>>,
}

static HELD: Mutex<Held> = Mutex::new(Held { lock: Weak::new(), controls: BTreeMap::new() });

/// What the kernel calls it.
pub fn name(algorithm: Algorithm) -> String {
    match algorithm {
        Algorithm::Ours(control) => kernel_name(control),
        Algorithm::System(named) => kernel_name(named.control()),
        Algorithm::Kernel(name) => name.to_string(),
    }
}

/// Checks that the kernel has, or takes, all that is `wanted`, each with the option or field that
/// asks for it.
///
/// # Errors
/// One of the kernel's own that it has not; it takes none of ours.
pub fn can_be_had(wanted: &[(String, Algorithm)]) -> Result<(), Error> {
    if wanted.iter().any(|wanted| wanted.1.ours().is_some()) {
        narrows_kernel::available().map_err(kernel)?;
    }
    let available = available_controls().map_err(kernel)?;
    for (place, algorithm) in wanted {
        let Algorithm::Kernel(name) = algorithm else { continue };
        if !available.iter().any(|known| known == name.as_str()) {
            let known = available.iter().filter(|known| control_of_kernel_name(known).is_none());
            let known: Vec<_> = known.map(|name| format!("kernel:{name}")).collect();
            let message =
                format!("this kernel has no {algorithm}; expected one of: {}", known.join(", "));
            return Err(Error::input(place, message));
        }
    }
    Ok(())
}

impl Controls {
    /// Sees to it that the kernel has all that is `wanted`, each with the option or field that asks
    /// for it. Where another process has ours for its runs, this waits for its end until `stop` is set;
    /// without a `stop` it does not wait.
    ///
    /// # Errors
    /// One of the kernel's own that it has not; ours cannot be registered, or another process has
    /// them for its runs; [`Error::Interrupted`].
    pub fn provide(
        wanted: &[(String, Algorithm)],
        settings: &Settings,
        stop: Option<&AtomicBool>,
    ) -> Result<Controls, Error> {
        can_be_had(wanted)?;
        let mut ours: Vec<_> = wanted.iter().filter_map(|wanted| wanted.1.ours()).collect();
        ours.sort_by_key(|control| control.to_string());
        ours.dedup();
        if ours.is_empty() {
            return Ok(Controls { registered: Vec::new(), pinned: Vec::new() });
        }
        // Before the guard: dropped after it, as it takes it.
        let mut controls = Controls { registered: Vec::new(), pinned: Vec::new() };
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = match held.lock.upgrade() {
            Some(lock) => lock,
            None => Arc::new(lock(stop)?),
        };
        held.lock = Arc::downgrade(&lock);
        // Before what is loaded is compared with it.
        if ours.iter().any(|control| control.law == Law::USER) {
            object::compile_user().map_err(kernel)?;
        }
        let loaded = pins::loaded().map_err(kernel)?;
        for control in ours {
            let name = kernel_name(control);
            match loaded.iter().find(|loaded| loaded.name == name) {
                Some(Pinned { settings: Some(with), .. })
                    if object::runs_the_same(control, with, settings) =>
                {
                    controls.pinned.push(name);
                    continue;
                }
                Some(loaded) if loaded.same_build => {
                    let message = format!(
                        "loaded with settings other than the run's; `narrows kernel unload \
                         {name}` first"
                    );
                    return Err(Error::input(name, message));
                }
                Some(_) => {
                    let message = format!(
                        "loaded by another build of narrows; `narrows kernel load {}` replaces it",
                        argument(control)
                    );
                    return Err(Error::input(name, message));
                }
                None => {}
            }
            let known = held.controls.get(&name).and_then(Weak::upgrade);
            let shared = match known {
                Some(shared) => shared,
                None => {
                    let registered = Some(Registered::with(control, settings).map_err(kernel)?);
                    Arc::new(Shared { registered, _lock: lock.clone() })
                }
            };
            held.controls.insert(name, Arc::downgrade(&shared));
            controls.registered.push(shared);
        }
        Ok(controls)
    }

    /// How often the programs have repaired a window since the controls were loaded, for any
    /// connection: those of runs that go on at the same time included.
    ///
    /// # Errors
    /// The kernel does not report it.
    pub fn repaired(&self) -> Result<u64, Error> {
        let registered = self.registered.iter().filter_map(|shared| shared.registered.as_ref());
        let all = registered.map(|registered| registered.counters());
        let all = all.chain(self.pinned.iter().map(|name| pins::counters(name)));
        all.map(|counters| {
            let counters = counters.map_err(kernel)?;
            Ok(counters.iter().find(|counter| counter.0 == "repaired").map_or(0, |known| known.1))
        })
        .sum()
    }
}

impl Drop for Controls {
    fn drop(&mut self) {
        // Nobody asks for a control while it goes.
        let _held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        self.registered.clear();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let Some(registered) = self.registered.take() else { return };
        let name = registered.name().to_owned();
        drop(registered);
        // The name is free a moment after the last link is closed; the next run wants it.
        let end = Instant::now() + Duration::from_secs(2);
        let taken = || available_controls().is_ok_and(|all| all.contains(&name));
        while taken() && Instant::now() < end {
            sleep(Duration::from_millis(5));
        }
    }
}

/// Does `say` from now on whenever a run begins to wait for another process that has controls of ours for its
/// own.
pub fn on_wait(say: fn()) {
    // A second one is for the same terminal.
    let _ = ON_WAIT.set(say);
}

static ON_WAIT: OnceLock<fn()> = OnceLock::new();

fn lock(stop: Option<&AtomicBool>) -> Result<Flock<File>, Error> {
    let mut file = File::create(LOCK).map_err(Error::io(LOCK.as_ref(), "create"))?;
    let mut say = ON_WAIT.get();
    loop {
        match (Flock::lock(file, FlockArg::LockExclusiveNonblock), stop) {
            (Ok(held), _) => return Ok(held),
            (Err((again, Errno::EWOULDBLOCK)), Some(stop)) => {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                if let Some(say) = say.take() {
                    say();
                }
                sleep(Duration::from_millis(20));
                file = again;
            }
            (Err((_, Errno::EWOULDBLOCK)), None) => {
                let message = "another process runs scenarios on this kernel; wait until it ends";
                return Err(Error::input("kernel", message));
            }
            (Err((_, error)), _) => return Err(Error::io(LOCK.as_ref(), "lock")(error.into())),
        }
    }
}

/// Lets new connections of a host run `control`, which `place` asks for.
///
/// # Errors
/// The kernel makes it no namespace's default.
pub fn make_default(host: &Host, place: &str, control: Algorithm) -> Result<(), Error> {
    let set = host.run(|| set_sysctl("net/ipv4/tcp_congestion_control", &name(control)));
    set.and_then(|set| set).map_err(|error| not_default(place, control, &error))
}

/// Why a control cannot be the default of a namespace.
fn not_default(place: &str, control: Algorithm, error: &io::Error) -> Error {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return Error::input(place, format!("{control}: {error}"));
    }
    let allowed = sysctl("net/ipv4/tcp_allowed_congestion_control").unwrap_or_default();
    let own = allowed.split_whitespace().filter(|name| control_of_kernel_name(name).is_none());
    let allowed: Vec<String> = own.map(|name| format!("kernel:{name}")).collect();
    let message = format!(
        "{control}: the kernel refuses it as default of a namespace; expected one of \
         net.ipv4.tcp_allowed_congestion_control: {}; programs can select it (iperf3 -C)",
        allowed.join(", ")
    );
    Error::input(place, message)
}

/// What the kernel refuses.
pub fn kernel(error: impl ToString) -> Error {
    Error::input("kernel", error)
}
