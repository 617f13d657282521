//! Where a loaded control is used: as a network namespace's default, or for a cgroup.
//!
//! What was there before is remembered in a map that is pinned beside the controls, so that it
//! survives the command and goes with the BPF file system. It is written first and removed last:
//! whatever a killed command left, undoing finds. What somebody else changed since is left alone.

use crate::netns::Namespace;
use crate::pins::{FOLDER, Pins, Undo, control_of, make_folder};
use crate::register::available_controls;
use crate::{Aligned, Error, diag, ends_with, said};
use libbpf_rs::{Link, ObjectBuilder};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

mod defaults;
mod uses;

use defaults::{
    KERNELS_OWN, cookie, default_of, inside, namespaces, restore, set_default, set_plain,
};
use uses::{KIND_CGROUP, KIND_NETNS, Key, NAME_MAX, Record, Uses, padded, place_of, text};

static CHOOSE: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/choose.bpf.o")));

/// Where a control is to be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The network namespace of this process: normally the machine's.
    Default,
    /// A named network namespace.
    Netns(String),
    /// A folder of the cgroup2 file system.
    Cgroup(PathBuf),
}

/// A use that is in force.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Use {
    /// The control's name in the kernel.
    pub name: String,
    /// For MPTCP subflows only.
    pub mptcp_only: bool,
    /// Where.
    #[serde(flatten)]
    pub place: Place,
}

/// Where a control is used.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase", tag = "of")]
pub enum Place {
    /// The default of a network namespace.
    Netns {
        /// Its name, as it was given; `default` for the one of the process.
        netns: String,
        /// Its inode number.
        inum: u32,
        /// What was the default before.
        before: String,
    },
    /// The sockets of a cgroup.
    Cgroup {
        /// The folder, as it was given.
        cgroup: PathBuf,
        /// Its id, which is its inode number.
        id: u64,
    },
}

/// What undoing a use came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// Nothing of ours was in use there.
    Nothing,
    /// The default is again what it was.
    Restored {
        /// The control that was in use.
        name: String,
        /// The default now.
        now: String,
    },
    /// Somebody else had changed it since, and it was left as it is.
    Changed {
        /// The control that was in use.
        name: String,
        /// The default, as found.
        now: String,
    },
    /// The choice for the cgroup is gone.
    Detached {
        /// The control that was in use.
        name: String,
    },
}

/// What unloading came to.
#[derive(Clone, Debug, Default)]
pub struct Unloaded {
    /// Was it loaded?
    pub loaded: bool,
    /// The uses that were undone, by place.
    pub uses: Vec<(String, Undone)>,
    /// Namespaces that had it as default for another reason, mostly as they were made while it was
    /// the machine's, and what they have now.
    pub others: Vec<(String, String)>,
    /// Sockets that run it until they close.
    pub sockets: usize,
}

impl Target {
    /// As a message names it.
    pub fn place(&self) -> String {
        match self {
            Target::Default => "the default".into(),
            Target::Netns(name) => format!("namespace {name}"),
            Target::Cgroup(path) => format!("cgroup {}", path.display()),
        }
    }

    fn namespace(&self) -> Result<Namespace, Error> {
        match self {
            Target::Netns(name) => Namespace::named(name)
                .map_err(|error| Error::input(format!("--netns {name}"), error.to_string())),
            _ => Namespace::current().map_err(Error::io(Path::new("/proc/self/ns/net"), "read")),
        }
    }
}

impl Pins {
    /// Uses the loaded control `name` at `target`: for connections that begin from now on.
    ///
    /// # Errors
    /// It is not loaded; there is no such target; the kernel refuses. Nothing is changed then.
    pub fn assign(&self, name: &str, target: &Target, mptcp_only: bool) -> Result<Use, Error> {
        if !available_controls()?.iter().any(|known| known == name) {
            let control = control_of(name).map_or_else(|| name.into(), |c| c.to_string());
            let message = format!("not loaded; first: narrows kernel load {control}");
            return Err(Error::input(name, message));
        }
        let mut undo = Undo::default();
        make_folder(Path::new(FOLDER), &mut undo)?;
        let uses = Uses::open_or_make()?;
        undo.push(|| drop(tidy()));
        let (key, record) = match target {
            Target::Cgroup(path) => assign_cgroup(&uses, name, path, mptcp_only, &mut undo)?,
            _ => assign_netns(&uses, name, target, mptcp_only, &mut undo)?,
        };
        undo.forget();
        Ok(use_of(key, &record))
    }

    /// Undoes what [`Pins::assign`] did at `target`.
    ///
    /// # Errors
    /// There is no such target; the kernel refuses.
    pub fn unassign(&self, target: &Target) -> Result<Undone, Error> {
        let Some(uses) = Uses::open()? else { return Ok(Undone::Nothing) };
        let (found, namespace) = match target {
            // By its path: the cgroup itself may have gone.
            Target::Cgroup(path) => {
                let path = path.canonicalize().unwrap_or_else(|_| path.clone());
                let here = |record: &Record| text(&record.place) == path.display().to_string();
                let mut all = uses.all()?.into_iter();
                (all.find(|(key, record)| key.kind == KIND_CGROUP && here(record)), None)
            }
            _ => {
                let namespace = target.namespace()?;
                let key = Key { kind: KIND_NETNS, id: cookie(&namespace)? };
                (uses.get(key)?.map(|record| (key, record)), Some(namespace))
            }
        };
        let Some((key, record)) = found else { return Ok(Undone::Nothing) };
        let undone = uses.undo(key, &record, namespace.as_ref())?;
        self.tidy()?;
        Ok(undone)
    }

    /// Unloads a control and undoes its uses.
    ///
    /// # Errors
    /// It was not loaded by narrows; the kernel refuses.
    pub fn unassign_and_unload(&self, name: &str) -> Result<Unloaded, Error> {
        let mut told = Unloaded {
            loaded: crate::pins::loaded()?.iter().any(|held| held.name == name),
            ..Unloaded::default()
        };
        let namespaces = namespaces()?;
        // What the namespaces that only inherited it are to have.
        let before = former(name)?;
        if let Some(uses) = Uses::open()? {
            for (key, record) in uses.all()? {
                if text(&record.name) != name {
                    continue;
                }
                let namespace = namespaces.iter().find(|(cookie, _)| *cookie == key.id);
                let namespace = namespace.map(|(_, namespace)| namespace);
                let undone = uses.undo(key, &record, namespace)?;
                told.uses.push((text(&record.place), undone));
            }
        }
        if !told.loaded && available_controls()?.iter().any(|known| known == name) {
            self.tidy()?;
            if !told.uses.is_empty() {
                return Ok(told);
            }
            let message = "not loaded by narrows; bpftool struct_ops list shows its id, and \
                           bpftool struct_ops unregister id ID removes it";
            return Err(Error::input(name, message));
        }
        for (_, namespace) in &namespaces {
            if default_of(namespace)? == name {
                let now = restore(namespace, &before)?;
                told.others.push((namespace.name.clone(), now));
            }
        }
        self.unload(name)?;
        for (_, namespace) in &namespaces {
            let sockets = inside(namespace, diag::sockets)?;
            told.sockets += sockets.iter().filter(|socket| socket.control == name).count();
        }
        self.tidy()?;
        Ok(told)
    }
}

/// The uses in force.
///
/// # Errors
/// The BPF file system cannot be read: only root may.
pub fn uses() -> Result<Vec<Use>, Error> {
    let Some(uses) = Uses::open()? else { return Ok(Vec::new()) };
    Ok(uses.all()?.iter().map(|(key, record)| use_of(*key, record)).collect())
}

fn use_of(key: Key, record: &Record) -> Use {
    let place = if key.kind == KIND_CGROUP {
        Place::Cgroup { cgroup: text(&record.place).into(), id: key.id }
    } else {
        let (netns, before) = (text(&record.place), text(&record.before));
        Place::Netns { netns, inum: record.inum, before }
    };
    Use { name: text(&record.name), mptcp_only: record.mptcp_only != 0, place }
}

/// Namespaces whose default is `name` get its newest build: the kernel keeps the build that was
/// registered when the default was set.
pub(crate) fn renew(name: &str) -> Result<(), Error> {
    for (_, namespace) in namespaces()? {
        if default_of(&namespace)? == name {
            set_default(&namespace, name)?;
        }
    }
    Ok(())
}

fn assign_netns(
    uses: &Uses,
    name: &str,
    target: &Target,
    mptcp_only: bool,
    undo: &mut Undo,
) -> Result<(Key, Record), Error> {
    let namespace = target.namespace()?;
    let key = Key { kind: KIND_NETNS, id: cookie(&namespace)? };
    let now = default_of(&namespace)?;
    if let Target::Netns(name) = target {
        uses.forget_namesakes(key, name)?;
    }
    let older = uses.get(key)?;
    let before = match &older {
        // Ours still: what was there before stays what it was.
        Some(older) if text(&older.name) == now => text(&older.before),
        _ => former(&now)?,
    };
    let place = match target {
        Target::Netns(name) => name.as_str(),
        _ => "default",
    };
    let record = Record {
        name: padded(name),
        before: padded(&before),
        mptcp_only: mptcp_only.into(),
        inum: namespace.inum,
        place: place_of(place.as_bytes())?,
    };
    uses.set(key, &record)?;
    undo.push(move || {
        if let Ok(Some(uses)) = Uses::open() {
            let _ = match &older {
                Some(older) => uses.set(key, older),
                None => uses.remove(key),
            };
        }
    });
    let plain = mptcp_only.then_some(before.as_str());
    set_plain(namespace.inum, plain)?;
    undo.push({
        let inum = namespace.inum;
        move || {
            let older = older.filter(|older| older.mptcp_only != 0);
            let plain = older.map(|older| text(&older.before));
            let _ = set_plain(inum, plain.as_deref());
        }
    });
    set_default(&namespace, name)?;
    Ok((key, record))
}

fn assign_cgroup(
    uses: &Uses,
    name: &str,
    path: &Path,
    mptcp_only: bool,
    undo: &mut Undo,
) -> Result<(Key, Record), Error> {
    let (folder, id) = cgroup(path)?;
    let key = Key { kind: KIND_CGROUP, id };
    let path = path.canonicalize().map_err(Error::io(path, "find"))?;
    let pin = cgroup_pin(id);
    let failed = |doing| Error::bpf(path.display().to_string(), doing);

    let mut open = ObjectBuilder::default()
        .name("narrows")
        .and_then(|builder| builder.open_memory(&CHOOSE.0))
        .map_err(failed("open the choice for"))?;
    let choice = open.maps_mut().find(|map| ends_with(map.name(), ".rodata.choice"));
    let mut value = padded(name).to_vec();
    value.extend(u32::from(mptcp_only).to_ne_bytes());
    choice
        .expect("the object has its choice")
        .set_initial_value(&value)
        .map_err(failed("choose for"))?;
    let (object, said) = said::listen(|| open.load());
    let object = object.map_err(|source| match said.is_empty() {
        true => failed("load the choice for")(source),
        false => Error::Refused {
            name: "nr_choose".into(),
            last: said::last_lines(&said),
            log: said::keep("nr_choose", &said),
        },
    })?;
    let program = object.progs_mut().next().expect("the object has a program");

    uses.forget_namesakes(key, &path.display().to_string())?;
    let older = uses.get(key)?;
    let record = Record {
        name: padded(name),
        before: [0; NAME_MAX],
        mptcp_only: mptcp_only.into(),
        inum: 0,
        place: place_of(path.as_os_str().as_bytes())?,
    };
    uses.set(key, &record)?;
    undo.push(move || {
        if let Ok(Some(uses)) = Uses::open() {
            let _ = match &older {
                Some(older) => uses.set(key, older),
                None => uses.remove(key),
            };
        }
    });
    if pin.exists() {
        Link::open(&pin)
            .and_then(|mut link| link.update_prog(&program))
            .map_err(failed("change the choice for"))?;
    } else {
        program
            .attach_cgroup(folder.as_raw_fd())
            .and_then(|mut link| link.pin(&pin))
            .map_err(failed("attach the choice to"))?;
    }
    Ok((key, record))
}

impl Uses {
    /// Forgets namespaces and cgroups that had this name and have gone.
    fn forget_namesakes(&self, key: Key, place: &str) -> Result<(), Error> {
        for (other, record) in self.all()? {
            if other.kind == key.kind && other != key && text(&record.place) == place {
                self.undo(other, &record, None)?;
            }
        }
        Ok(())
    }

    /// Undoes a use; `namespace` is its network namespace, if that is still there.
    fn undo(
        &self,
        key: Key,
        record: &Record,
        namespace: Option<&Namespace>,
    ) -> Result<Undone, Error> {
        let name = text(&record.name);
        let undone = match namespace {
            _ if key.kind == KIND_CGROUP => {
                let pin = cgroup_pin(key.id);
                if pin.exists() {
                    // Fails if the cgroup itself has gone.
                    let _ = said::listen(|| Link::open(&pin).and_then(|link| link.detach()));
                    fs::remove_file(&pin).map_err(Error::io(&pin, "remove"))?;
                }
                Undone::Detached { name }
            }
            // It has gone, and another may have its number.
            None => {
                let inum = |(_, other): &(Key, Record)| other.inum == record.inum;
                if self.all()?.iter().filter(|other| inum(other)).count() == 1 {
                    set_plain(record.inum, None)?;
                }
                Undone::Nothing
            }
            Some(namespace) => {
                let now = default_of(namespace)?;
                let undone = if now == name {
                    let now = restore(namespace, &text(&record.before))?;
                    Undone::Restored { name, now }
                } else {
                    Undone::Changed { name, now }
                };
                set_plain(record.inum, None)?;
                undone
            }
        };
        self.remove(key)?;
        Ok(undone)
    }
}

fn cgroup_pin(id: u64) -> PathBuf {
    Path::new(FOLDER).join(format!("cgroup-{id}"))
}

/// The cgroup at `path`, and its id.
fn cgroup(path: &Path) -> Result<(File, u64), Error> {
    let folder = File::open(path).map_err(Error::io(path, "open"))?;
    let about = statfs(path).map_err(|errno| Error::io(path, "look at")(errno.into()))?;
    if about.filesystem_type() != CGROUP2_SUPER_MAGIC {
        let place = format!("--cgroup {}", path.display());
        return Err(Error::input(place, "expected a folder of the cgroup2 file system"));
    }
    let id = folder.metadata().map_err(Error::io(path, "look at"))?.ino();
    Ok((folder, id))
}

/// What a namespace's default was before ours: `now`, unless that is ours itself, which the
/// namespace then has from another one.
fn former(now: &str) -> Result<String, Error> {
    if control_of(now).is_none() {
        return Ok(now.to_owned());
    }
    let other = uses()?.into_iter().find_map(|used| match used.place {
        Place::Netns { before, .. } if used.name == now => Some(before),
        _ => None,
    });
    Ok(other.unwrap_or_else(|| KERNELS_OWN[0].into()))
}

/// Removes the map of uses if it has none. True: it has.
pub(crate) fn tidy() -> Result<bool, Error> {
    let pin = Uses::pin();
    if !pin.exists() {
        return Ok(false);
    }
    let in_use = !uses()?.is_empty();
    if !in_use {
        fs::remove_file(&pin).map_err(Error::io(&pin, "remove"))?;
    }
    Ok(in_use)
}
