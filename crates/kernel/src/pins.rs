//! Controls that outlive the command that loads them, by pins in the BPF file system.
//!
//! ```text
//! /sys/fs/bpf/nr_conns, nr_plain, nr_users, nr_detections   maps that controls share
//! /sys/fs/bpf/narrows/nr_olia/    link (before Linux 6.4: ops), counters, build, params, signal, ops_id, the programs
//! /sys/fs/bpf/narrows/cgroup-ID   a control's choice for a cgroup; see cgroup
//! /sys/fs/bpf/narrows/trial/      a trial; see trial
//! ```
//!
//! A control counts as loaded while its registration is pinned, which is pinned last and removed
//! first. What a killed command left incomplete the next one cleans up. Others may add pins for
//! loaded controls to the folder: they stay as long as the control.

use crate::bpffs::{self, Problem};
use crate::control::Loaded;
use crate::object;
use crate::register::{Kernel, available_controls, is_ours};
use crate::state::{self, BPFFS, SHARED};
use crate::{Error, Settings, Signal, Undo};
use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use narrows_laws::catalogue::{control_of_kernel_name, kernel_name};
use narrows_laws::{Control, Params};
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Our folder in it.
pub const FOLDER: &str = "/sys/fs/bpf/narrows";

/// Prefix of a newer build until it replaces the older one.
const NEW: &str = "new-";
/// Prefix of an older build until it is replaced.
const OLD: &str = "old-";

/// What [`Pins::load`] found and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The control was not loaded.
    Loaded,
    /// Another build was loaded, or this one with other parameters.
    Replaced,
    /// This build was loaded, with these parameters.
    None,
}

/// A loaded control.
#[derive(Clone, Debug)]
pub struct Held {
    /// The control; none for a user's law that this process has not loaded.
    pub control: Option<Control>,
    /// Its name in the kernel.
    pub name: String,
    /// Is it of the same build as this command? False where `control` is none.
    pub same_build: bool,
    /// What it was loaded with; none: it is of another build.
    pub settings: Option<Settings>,
    /// Is it another law under the same name? Two laws of users may have one code.
    other_law: bool,
}

/// The controls that are loaded, by name.
///
/// # Errors
/// The BPF file system cannot be read: only root may.
pub fn loaded() -> Result<Vec<Held>, Error> {
    if !Path::new(FOLDER).exists() {
        return Ok(Vec::new());
    }
    let kernel = Kernel::probe()?;
    let mut all = Vec::new();
    for name in names(Path::new(FOLDER))?.into_iter().filter(|name| is_ours(name)) {
        let folder = Path::new(FOLDER).join(&name);
        if kernel.pinned(&folder.join(kernel.pin_name()))?.is_some() {
            let control = control_of_kernel_name(&name);
            let (known, own) = (build_of(&folder), control.map(build));
            let other_law = known.zip(own).is_some_and(|(known, own)| known.law != own.law);
            let same_build = own.is_some() && known == own;
            let settings = same_build.then(|| settings_of(&folder)).flatten();
            all.push(Held { control, name, same_build, settings, other_law });
        }
    }
    Ok(all)
}

/// The counters of the loaded control `name` since it was loaded, by name.
///
/// # Errors
/// It is not loaded, or the kernel does not report them.
pub fn counters(name: &str) -> Result<Vec<(&'static str, u64)>, Error> {
    let map = MapHandle::from_pinned_path(Path::new(FOLDER).join(name).join("counters"));
    map.and_then(|map| state::counters(&map)).map_err(Error::bpf(name, "read the counters of"))
}

/// Gives the namespaces whose default is the control of that name its newest build.
type Renew = Box<dyn Fn(&str) -> Result<(), Error>>;

/// The pins, for one command at a time.
pub struct Pins {
    kernel: Kernel,
    renew: Renew,
    _lock: Flock<File>,
}

impl Pins {
    /// Waits for other commands, and cleans up after a killed one. `renew` is called with the name
    /// of each control replaced by a newer build: for a namespace's default the kernel keeps the
    /// old build until the default is set again.
    ///
    /// # Errors
    /// Not root, a kernel without what is needed, no BPF file system that is root's alone.
    pub fn open(renew: impl Fn(&str) -> Result<(), Error> + 'static) -> Result<Pins, Error> {
        let kernel = Kernel::probe()?;
        let root = Path::new(BPFFS);
        // What others could do before a control is loaded is no reason to keep one loaded.
        let problem = bpffs::problem().filter(|problem| *problem != Problem::Unprivileged);
        if let Some(problem) = problem {
            return Err(Error::input(BPFFS, problem.to_string()));
        }
        let about = Path::new(FOLDER).symlink_metadata();
        if about.is_ok_and(|about| !about.is_dir() || about.uid() != 0) {
            // From when others could write there: do not follow their links.
            return Err(Error::input(FOLDER, "is not a folder owned by root; remove it"));
        }
        let folder = File::open(root).map_err(Error::io(root, "open"))?;
        let lock = Flock::lock(folder, FlockArg::LockExclusive)
            .map_err(|(_, errno)| Error::io(root, "lock")(errno.into()))?;
        let pins = Pins { kernel, renew: Box::new(renew), _lock: lock };
        pins.sweep()?;
        Ok(pins)
    }

    /// Loads and pins all or none of `controls`, each with `settings`.
    ///
    /// # Errors
    /// As [`crate::control::Registered::register`], or `interrupted` returned true. Nothing is changed
    /// then.
    pub fn load(
        &self,
        controls: &[Control],
        settings: &Settings,
        interrupted: impl Fn() -> bool,
    ) -> Result<Vec<(String, Change)>, Error> {
        if let Some(problem @ Problem::Unprivileged) = bpffs::problem() {
            return Err(Error::input("load", problem.to_string()));
        }
        let check = || if interrupted() { Err(Error::Interrupted) } else { Ok(()) };
        let available = available_controls()?;
        let held = loaded()?;
        let mut changes = Vec::new();
        let mut work = Vec::new();
        for &control in controls {
            let name = kernel_name(control);
            if changes.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let change = match held.iter().find(|held| held.name == name) {
                Some(Held { settings: Some(with), .. })
                    if object::runs_the_same(control, with, settings) =>
                {
                    Change::None
                }
                Some(held) if held.other_law => {
                    let message = "another law with the same .code is loaded; give yours another \
                                   .code, or unload that one";
                    return Err(Error::input(&name, message));
                }
                Some(_) => Change::Replaced,
                None if available.contains(&name) => {
                    let hint = ", and narrows did not load it (bpftool struct_ops list)";
                    return Err(Error::NameTaken(name, hint));
                }
                None => Change::Loaded,
            };
            if change != Change::None {
                check()?;
                work.push((Loaded::load(control, settings)?, change));
            }
            changes.push((name, change));
        }
        let mut undo = Undo::default();
        for (loaded, change) in &mut work {
            self.pin_parts(loaded, settings, *change, &mut undo)?;
        }
        check()?;
        for (loaded, change) in work {
            match change {
                Change::Replaced => self.replace(loaded, &mut undo)?,
                _ => self.register(loaded, &mut undo)?,
            }
        }
        // Without links an older build that was replaced is gone: there is no way back.
        if self.kernel.links || changes.iter().all(|(_, change)| *change != Change::Replaced) {
            check()?;
        }
        undo.forget();
        for (name, change) in &changes {
            if *change == Change::Replaced {
                (self.renew)(name)?;
                remove_folder(&Path::new(FOLDER).join(format!("{OLD}{name}")))?;
            }
        }
        Ok(changes)
    }

    /// Unregisters a control and removes its pins. Sockets that run it keep it until they close.
    /// False: it was not loaded.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn unload(&self, name: &str) -> Result<bool, Error> {
        let folder = Path::new(FOLDER).join(name);
        let pin = folder.join(self.kernel.pin_name());
        let Some(registration) = self.kernel.pinned(&pin)? else { return Ok(false) };
        registration.unregister(name, &pin)?;
        remove_folder(&folder)?;
        self.tidy()?;
        Ok(true)
    }

    /// Removes the shared maps when no control is left.
    ///
    /// # Errors
    /// A pin cannot be removed.
    pub fn tidy(&self) -> Result<(), Error> {
        let folder = Path::new(FOLDER);
        if !folder.exists() {
            return Ok(());
        }
        if !names(folder)?.is_empty() {
            return Ok(());
        }
        // Controls that bpftool registered share the maps by these pins.
        if !available_controls()?.iter().any(|name| is_ours(name)) {
            for name in SHARED {
                let pin = Path::new(BPFFS).join(name);
                if pin.exists() {
                    fs::remove_file(&pin).map_err(Error::io(&pin, "remove"))?;
                }
            }
        }
        fs::remove_dir(folder).map_err(Error::io(folder, "remove"))
    }

    /// Finishes or removes what a killed command left.
    fn sweep(&self) -> Result<(), Error> {
        let root = Path::new(FOLDER);
        if !root.exists() {
            return Ok(());
        }
        for name in names(root)? {
            let folder = root.join(&name);
            let own = name.strip_prefix(NEW).or_else(|| name.strip_prefix(OLD));
            if !is_ours(own.unwrap_or(&name)) {
                continue;
            }
            let pin_name = self.kernel.pin_name();
            let living = self.kernel.pinned(&folder.join(pin_name))?.is_some();
            match own {
                Some(own) if living && !root.join(own).exists() => {
                    rename(&folder, &root.join(own))?;
                }
                // The link runs the newer build already, and its pin is still the older one's.
                Some(own) if name.starts_with(NEW) && self.runs(own, &folder)? => {
                    let old = root.join(format!("{OLD}{own}"));
                    rename(&old.join(pin_name), &folder.join(pin_name))?;
                    rename(&folder, &root.join(own))?;
                }
                Some(own) => {
                    if name.starts_with(OLD) && root.join(own).exists() {
                        (self.renew)(own)?;
                    }
                    remove_folder(&folder)?;
                }
                None if folder.is_dir() && !living => remove_folder(&folder)?,
                None => {}
            }
        }
        self.tidy()
    }

    /// Was the link of the older build of `own`, which was moved away, given the map of the newer one
    /// in `new`?
    fn runs(&self, own: &str, new: &Path) -> Result<bool, Error> {
        let old = Path::new(FOLDER).join(format!("{OLD}{own}")).join(self.kernel.pin_name());
        let running = self.kernel.pinned(&old)?.and_then(|older| older.map_id());
        Ok(running.is_some() && running == ops_of(new))
    }

    /// Pins all but the registration; no socket is affected yet.
    fn pin_parts(
        &self,
        loaded: &mut Loaded,
        settings: &Settings,
        change: Change,
        undo: &mut Undo,
    ) -> Result<(), Error> {
        let name = loaded.name().to_owned();
        let failed = |doing| Error::bpf(&name, doing);
        make_folder(Path::new(FOLDER), undo)?;
        for (shared, map) in loaded.shared() {
            let pin = Path::new(BPFFS).join(shared);
            let mut map = MapHandle::try_from(&map).map_err(failed("pin a map of"))?;
            let id = |map: &MapHandle| map.info().map(|info| info.info.id).ok();
            let mut older = MapHandle::from_pinned_path(&pin).ok();
            if older.as_ref().is_some_and(|older| id(older) == id(&map)) {
                continue;
            }
            // Of a build with another layout: nothing is in it, or it would not have been passed over.
            if older.is_some() {
                fs::remove_file(&pin).map_err(Error::io(&pin, "remove"))?;
            }
            let pinned = map.pin(&pin).map_err(failed("pin a map of"));
            undo.push(move || {
                let _ = fs::remove_file(&pin);
                older.as_mut().map(|older| older.pin(&pin));
            });
            pinned?;
        }
        let prefix = if change == Change::Replaced { NEW } else { "" };
        let folder = Path::new(FOLDER).join(format!("{prefix}{name}"));
        make_folder(&folder, undo)?;
        let mut counters = MapHandle::try_from(&loaded.map("nr_counters"));
        let counters = counters.as_mut().map_err(|_| ()).expect("the map is open");
        counters.pin(folder.join("counters")).map_err(failed("pin the counters of"))?;
        pin_build(&folder, build(loaded.control())).map_err(failed("pin the build of"))?;
        pin_settings(&folder, settings).map_err(failed("pin the settings of"))?;
        let ops = MapHandle::try_from(&loaded.map("nr_ops")).map_err(failed("pin a map of"))?;
        pin_ops(&folder, &ops).map_err(failed("pin the map's id of"))?;
        for mut program in loaded.object_mut().progs_mut() {
            let pin = folder.join(program.name());
            program.pin(pin).map_err(failed("pin a program of"))?;
        }
        if !self.kernel.links {
            let mut ops = ops;
            ops.pin(folder.join(self.kernel.pin_name())).map_err(failed("pin a map of"))?;
        }
        Ok(())
    }

    fn register(&self, loaded: Loaded, undo: &mut Undo) -> Result<(), Error> {
        let name = loaded.name().to_owned();
        let pin = Path::new(FOLDER).join(&name).join(self.kernel.pin_name());
        let mut registered = loaded.register()?;
        self.kernel.keep(registered.link_mut(), &pin).map_err(Error::bpf(&name, "pin"))?;
        let kernel = self.kernel;
        undo.push(move || {
            if let Ok(Some(registration)) = kernel.pinned(&pin) {
                let _ = registration.unregister(&name, &pin);
            }
        });
        Ok(())
    }

    /// Replaces an older build by a newer one, for new connections.
    fn replace(&self, mut loaded: Loaded, undo: &mut Undo) -> Result<(), Error> {
        let name = loaded.name().to_owned();
        let folder = |prefix: &str| Path::new(FOLDER).join(format!("{prefix}{name}"));
        let (here, new, old) = (folder(""), folder(NEW), folder(OLD));
        let pin_name = self.kernel.pin_name();
        let older = self.kernel.pinned(&here.join(pin_name))?;
        let older = older.ok_or_else(|| Error::input(&name, "was unloaded meanwhile"))?;
        let before = older.map_id().and_then(|id| MapHandle::from_map_id(id).ok());
        let failed = |source| Error::Io { path: here.clone(), doing: "replace", source };

        rename(&here, &old)?;
        undo.push({
            let (here, old) = (here.clone(), old.clone());
            move || drop(fs::rename(old, here))
        });
        let mut ops = loaded.object_mut().maps_mut().find(|map| map.name() == "nr_ops");
        let ops = ops.as_mut().expect("the object has a congestion control");
        match self.kernel.replace(&older, ops).map_err(failed)? {
            Some(mut link) => {
                let pin = new.join(pin_name);
                self.kernel.keep(&mut link, &pin).map_err(Error::bpf(&name, "pin"))?;
                // The older one is gone. The new one must not stay without a pin.
                let (kernel, name) = (self.kernel, name.clone());
                undo.push(move || {
                    if let Ok(Some(new)) = kernel.pinned(&pin) {
                        let _ = new.unregister(&name, &pin);
                    }
                });
            }
            None => {
                rename(&old.join(pin_name), &new.join(pin_name))?;
                let (old, new) = (old.join(pin_name), new.join(pin_name));
                undo.push(move || {
                    let _ = fs::rename(new, old);
                    let _ = before.map(|before| older.put_back(&before));
                });
            }
        }
        rename(&new, &here)?;
        undo.push(move || drop(fs::rename(here, new)));
        Ok(())
    }
}

/// Creates a folder of pins if it is missing.
///
/// # Errors
/// It cannot be made.
pub fn make_folder(path: &Path, undo: &mut Undo) -> Result<(), Error> {
    if !path.exists() {
        DirBuilder::new().mode(0o700).create(path).map_err(Error::io(path, "make"))?;
        let path = path.to_owned();
        undo.push(move || drop(remove_folder(&path)));
    }
    Ok(())
}

/// Removes a folder of pins, of one level.
pub(crate) fn remove_folder(path: &Path) -> Result<(), Error> {
    if !path.exists() {
        return Ok(());
    }
    for name in names(path)? {
        let pin = path.join(name);
        fs::remove_file(&pin).map_err(Error::io(&pin, "remove"))?;
    }
    fs::remove_dir(path).map_err(Error::io(path, "remove"))
}

fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(Error::io(from, "rename"))
}

/// The names in a folder, sorted; none of one that is not there, as when another command unloads all.
fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Error::io(folder, "read"))?,
    };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

/// What a control was loaded from, to distinguish builds.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Build {
    object: u64,
    /// The law's name: of two laws of users, the code may be the same.
    law: u64,
}

fn build(control: Control) -> Build {
    let mut object = object::of_control(control).to_vec();
    if control.detector.decides() {
        // Its defaults are set at load.
        object.extend(object::detection(&Params::default()));
    }
    Build { object: fnv(&object), law: fnv(control.law.name().as_bytes()) }
}

/// FNV-1a.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn pin_build(folder: &Path, build: Build) -> Result<(), libbpf_rs::Error> {
    let words = [build.object, build.law].map(u64::to_ne_bytes);
    pin_values(&folder.join("build"), "nr_build", &words)
}

fn pin_settings(folder: &Path, settings: &Settings) -> Result<(), libbpf_rs::Error> {
    let Settings { params, signal } = settings;
    pin_values(&folder.join("params"), "nr_params", &[params.to_bytes()])?;
    pin_values(&folder.join("signal"), "nr_signal", &[signal.number().to_ne_bytes()])
}

/// The id of a build's struct_ops map: a link tells by it which build it runs.
fn pin_ops(folder: &Path, ops: &MapHandle) -> Result<(), libbpf_rs::Error> {
    let id = ops.info()?.info.id;
    pin_values(&folder.join("ops_id"), "nr_ops_id", &[id.to_ne_bytes()])
}

fn ops_of(folder: &Path) -> Option<u32> {
    let map = MapHandle::from_pinned_path(folder.join("ops_id")).ok()?;
    map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??.try_into().map(u32::from_ne_bytes).ok()
}

/// Pins an array with these values, which have one size.
fn pin_values(pin: &Path, name: &str, all: &[impl AsRef<[u8]>]) -> Result<(), libbpf_rs::Error> {
    let options =
        bpf_map_create_opts { sz: size_of::<bpf_map_create_opts>() as _, ..Default::default() };
    let (size, n) = (all[0].as_ref().len() as u32, all.len() as u32);
    let mut map = MapHandle::create(MapType::Array, Some(name), 4, size, n, &options)?;
    for (key, value) in (0..n).zip(all) {
        map.update(&key.to_ne_bytes(), value.as_ref(), MapFlags::ANY)?;
    }
    map.pin(pin)
}

fn settings_of(folder: &Path) -> Option<Settings> {
    let value = |name: &str| {
        let map = MapHandle::from_pinned_path(folder.join(name)).ok()?;
        map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()?
    };
    let params = Params::from_bytes(&value("params")?)?;
    let signal = value("signal")?.try_into().map(u32::from_ne_bytes).ok()?;
    Some(Settings { params, signal: Signal::from_number(signal)? })
}

fn build_of(folder: &Path) -> Option<Build> {
    let map = MapHandle::from_pinned_path(folder.join("build")).ok()?;
    let word = |key: u32| {
        let value = map.lookup(&key.to_ne_bytes(), MapFlags::ANY).ok()??;
        value.try_into().map(u64::from_ne_bytes).ok()
    };
    Some(Build { object: word(0)?, law: word(1)? })
}

#[cfg(test)]
mod tests;
