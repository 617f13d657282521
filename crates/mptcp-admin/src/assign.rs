//! Controls are loaded, used as a network namespace's default or for a cgroup, and unloaded.
//!
//! What was there before is remembered in a map that is pinned beside the controls, so that it
//! survives the command and goes with the BPF file system. It is written first and removed last:
//! undo also finds what a killed command left. What others changed since is left alone.
//!
//! MPTCP listeners that are older than a use are moved to its control, as their connections would
//! mix both (`sockets`), and moved back with it. Which ones needs no memory: those whose
//! control is the default that the place had, and back those that have the control of the use.

use crate::sockets::{self, Members};
use crate::trial::Report;
use narrows_foreign::Foreign;
use narrows_kernel::cgroup::{self, Cgroup};
use narrows_kernel::pins::{self, Change, FOLDER, Pins, make_folder};
use narrows_kernel::register::{NAME_MAX, available_controls, is_ours, padded};
use narrows_kernel::state::set_plain;
use narrows_kernel::trial;
use narrows_kernel::{Error, Settings, Undo};
use narrows_laws::Control;
use narrows_laws::catalogue::control_of_kernel_name;
use narrows_laws::user::argument;
use narrows_mptcp::{diag, routes};
use narrows_netns::Namespace;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

mod defaults;
mod keepers;
mod uses;

pub use crate::sockets::{Kept, Moved};
pub use keepers::{Keepers, Process};

use defaults::{KERNELS_OWN, cookie, inside, restore, set_default};
pub(crate) use defaults::{default_of, namespaces};
use uses::{KIND_CGROUP, KIND_NETNS, Key, Record, Uses, place_of, text};

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
        netns: Foreign,
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
    /// The namespace has gone, and the use with it.
    Gone {
        /// The control that was in use.
        name: String,
    },
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
    pub uses: Vec<(Foreign, Undone)>,
    /// Namespaces that had it as default for another reason, mostly as they were made while it was
    /// the machine's, and what they have now.
    pub others: Vec<(Foreign, String)>,
    /// MPTCP listeners that had it.
    pub moved: Moved,
    /// Is there a trial of it, which has ended now, and is to be [forgotten](Admin::forget_trial)?
    pub trial: bool,
    /// What that found, if this build can read it.
    pub found: Option<Report>,
    /// What runs it until it closes.
    pub keepers: Keepers,
}

impl Target {
    /// As a message names it.
    pub fn place(&self) -> String {
        match self {
            Target::Default => "the default".into(),
            Target::Netns(name) => format!("namespace {}", Foreign::from(name.as_str())),
            Target::Cgroup(path) => format!("cgroup {}", Foreign::from(path.as_path())),
        }
    }

    /// The routes there whose own control, another than `used`, comes before one that is used as default:
    /// `default congctl cubic`. What cannot be asked has none.
    pub fn routes_with_others(&self, used: &str) -> Vec<String> {
        if matches!(self, Target::Cgroup(_)) {
            return Vec::new();
        }
        let asked = self.namespace().ok().and_then(|there| there.run(routes::own_controls).ok());
        let found = asked.and_then(Result::ok).unwrap_or_default().into_iter();
        let others = found.filter(|(_, control)| control.raw() != used);
        others.map(|(to, control)| format!("{to} congctl {control}")).collect()
    }

    fn namespace(&self) -> Result<Namespace, Error> {
        match self {
            Target::Netns(name) => Namespace::named(name)
                .map_err(|error| Error::input(format!("--netns {name}"), error.to_string())),
            _ => Namespace::current().map_err(Error::io(Path::new("/proc/self/ns/net"), "read")),
        }
    }
}

/// The controls of this machine, for one command at a time.
pub struct Admin(Pins);

impl Admin {
    /// Waits for other commands, and sweeps up after one that was killed, and after connections that
    /// left their entries behind.
    ///
    /// # Errors
    /// Not root, a kernel without what is needed, no BPF file system.
    pub fn open() -> Result<Admin, Error> {
        let admin = Admin(Pins::open(renew)?);
        trial::sweep()?;
        admin.tidy()?;
        // What cannot be swept up now stays until another time; the command is about something else.
        let _ = narrows_kernel::reap();
        Ok(admin)
    }

    /// Loads `controls` with `settings`: all of them, or none.
    ///
    /// # Errors
    /// As [`Pins::load`].
    pub fn load(
        &self,
        controls: &[Control],
        settings: &Settings,
        interrupted: impl Fn() -> bool,
    ) -> Result<Vec<(String, Change)>, Error> {
        self.0.load(controls, settings, interrupted)
    }

    /// Uses the loaded control `name` at `target`: for connections that begin from now on, also on
    /// MPTCP listeners that have what was the default; with `open` for open MPTCP connections, too.
    ///
    /// # Errors
    /// It is not loaded; there is no such target; the kernel refuses. Nothing is changed then. That a
    /// socket cannot be moved is no error.
    pub fn assign(
        &self,
        name: &str,
        target: &Target,
        mptcp_only: bool,
        open: bool,
    ) -> Result<(Use, Moved), Error> {
        if !available_controls()?.iter().any(|known| known == name) {
            let control = control_of_kernel_name(name);
            let control = control.map_or_else(|| "LAW.h".into(), argument);
            let message = format!("not loaded; first: narrows kernel load {control}");
            return Err(Error::input(name, message));
        }
        let mut undo = Undo::default();
        make_folder(Path::new(FOLDER), &mut undo)?;
        let uses = Uses::open_or_make()?;
        undo.push(|| drop(tidy_uses()));
        let new = New { name, mptcp_only, open };
        let (key, record, moved) = match target {
            Target::Cgroup(path) => assign_cgroup(&uses, &new, path, &mut undo)?,
            _ => assign_netns(&uses, &new, target, &mut undo)?,
        };
        undo.forget();
        Ok((use_of(key, &record), moved))
    }

    /// Undoes what [`Admin::assign`] did at `target`. With `open` also open MPTCP connections that
    /// have the control are moved to the default.
    ///
    /// # Errors
    /// There is no such target; the kernel refuses.
    pub fn unassign(&self, target: &Target, open: bool) -> Result<(Undone, Moved), Error> {
        let nothing = (Undone::Nothing, Moved::default());
        let Some(uses) = Uses::open()? else { return Ok(nothing) };
        let (found, namespace) = match target {
            // By what they were called: they may have gone.
            Target::Cgroup(path) => {
                let path = path.canonicalize().unwrap_or_else(|_| path.clone());
                (uses.called(KIND_CGROUP, &path)?, None)
            }
            Target::Netns(name) if target.namespace().is_err() => {
                let found = uses.called(KIND_NETNS, Path::new(name))?;
                let namespaces = namespaces()?;
                let namespace = found.and_then(|(key, record)| of(key, &record, &namespaces));
                (found, namespace)
            }
            _ => {
                let namespace = target.namespace()?;
                let key = Key { kind: KIND_NETNS, id: cookie(&namespace)? };
                (uses.get(key)?.map(|record| (key, record)), Some(namespace))
            }
        };
        let Some((key, record)) = found else { return Ok(nothing) };
        let undone = uses.undo(key, &record, namespace.as_ref(), open)?;
        self.tidy()?;
        Ok(undone)
    }

    /// Unloads a control and undoes its uses; ends its trial.
    ///
    /// # Errors
    /// It was not loaded by narrows; the kernel refuses.
    pub fn unload(&self, name: &str) -> Result<Unloaded, Error> {
        let mut done = Unloaded {
            loaded: pins::loaded()?.iter().any(|held| held.name == name),
            ..Unloaded::default()
        };
        if trial::head()?.is_some_and(|trial| trial.controls.iter().any(|one| one == name)) {
            done.found = self.end_trial()?;
            done.trial = true;
        }
        let namespaces = namespaces()?;
        // What the namespaces that only inherited it are to have.
        let before = former(name)?;
        if let Some(uses) = Uses::open()? {
            for (key, record) in uses.all()? {
                if text(&record.name) != name {
                    continue;
                }
                let namespace = of(key, &record, &namespaces);
                let (undone, moved) = uses.undo(key, &record, namespace.as_ref(), false)?;
                done.uses.push((text(&record.place).into(), undone));
                done.moved.then(moved);
            }
        }
        if !done.loaded && available_controls()?.iter().any(|known| known == name) {
            self.tidy()?;
            if !done.uses.is_empty() {
                return Ok(done);
            }
            let message = "not loaded by narrows; bpftool struct_ops list shows its id, and \
                           bpftool struct_ops unregister id ID removes it";
            return Err(Error::input(name, message));
        }
        for (_, namespace) in &namespaces {
            let now = namespace.unless_gone(|| match default_of(namespace)? == name {
                true => restore(namespace, &before).map(Some),
                false => Ok(None),
            })?;
            done.others.extend(now.flatten().map(|now| (namespace.name.clone(), now)));
        }
        // Those that have it for another reason, too: their connections would not get it any more.
        let mut moved = Moved::default();
        for (_, namespace) in &namespaces {
            let here = namespace.unless_gone(|| {
                let way = Way {
                    from: &[name],
                    to: &default_of(namespace)?,
                    open: false,
                    only_made_in: None,
                };
                way.shift(namespace, None, None)
            })?;
            moved.and(here.unwrap_or_default());
        }
        done.moved.then(moved);
        self.0.unload(name)?;
        done.keepers = keepers::keepers(name, &namespaces)?;
        self.tidy()?;
        Ok(done)
    }

    /// Removes the shared maps when no control is left.
    pub(crate) fn tidy(&self) -> Result<(), Error> {
        tidy_uses()?;
        self.0.tidy()
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
        Place::Netns { netns: netns.into(), inum: record.inum, before }
    };
    Use { name: text(&record.name), mptcp_only: record.mptcp_only != 0, place }
}

/// Namespaces whose default is `name` get its newest build: the kernel keeps the build that was
/// registered when the default was set.
fn renew(name: &str) -> Result<(), Error> {
    for (_, namespace) in namespaces()? {
        namespace.unless_gone(|| {
            if default_of(&namespace)? == name {
                set_default(&namespace, name)?;
            }
            // So does a listener that was moved to it.
            let way = Way { from: &[name], to: name, open: false, only_made_in: None };
            way.shift(&namespace, None, None).map(drop)
        })?;
    }
    Ok(())
}

/// A use that is to come into force.
struct New<'a> {
    name: &'a str,
    mptcp_only: bool,
    /// For open connections, too.
    open: bool,
}

/// From which controls MPTCP sockets are moved to which one.
struct Way<'a> {
    from: &'a [&'a str],
    to: &'a str,
    /// Open connections, too.
    open: bool,
    /// Plain TCP is to keep its control, and there is only the program of this cgroup to see to it:
    /// so listeners that were made elsewhere are left alone.
    only_made_in: Option<&'a Members>,
}

impl Way<'_> {
    /// Moves the sockets of a namespace, or only those of a cgroup.
    fn shift(
        &self,
        namespace: &Namespace,
        of: Option<&Members>,
        mut undo: Option<&mut Undo>,
    ) -> Result<Moved, Error> {
        let all = inside(namespace, diag::sockets)?;
        let from = |socket: &sockets::MptcpSocket| self.from.iter().any(|name| socket.runs(name));
        let found = sockets::find(&all, from).map_err(Error::io(Path::new("/proc"), "read"))?;
        let mut moved = Moved::default();
        for socket in found.iter().filter(|socket| of.is_none_or(|of| of.has(socket))) {
            if socket.remote.is_some() && !self.open {
                moved.open += 1;
            } else if socket.remote.is_none()
                && self.only_made_in.is_some_and(|of| !of.made(socket))
            {
                moved.kept.push(socket.kept("made outside of the cgroup; restart the program"));
            } else {
                moved.shift(socket, self.to, undo.as_deref_mut());
            }
        }
        Ok(moved)
    }
}

fn assign_netns(
    uses: &Uses,
    new: &New<'_>,
    target: &Target,
    undo: &mut Undo,
) -> Result<(Key, Record, Moved), Error> {
    let New { name, mptcp_only, open } = *new;
    let namespace = target.namespace()?;
    let key = Key { kind: KIND_NETNS, id: cookie(&namespace)? };
    let now = default_of(&namespace)?;
    if let Target::Netns(name) = target {
        uses.forget_namesakes(key, name)?;
    }
    let older = uses.get(key)?;
    let ours = older.filter(|older| text(&older.name) == now);
    let before = match &ours {
        // What was there before stays what it was.
        Some(older) => text(&older.before),
        None => former(&now)?,
    };
    if ours.is_some() && now != name {
        // Killed between the record and the default, this would not be known as ours.
        restore(&namespace, &before)?;
        let (namespace, now) = (namespace.clone(), now.clone());
        undo.push(move || drop(set_default(&namespace, &now)));
    }
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
    uses.note(key, &record, undo)?;
    let plain = mptcp_only.then_some(before.as_str());
    set_plain(key.id, plain)?;
    undo.push(move || {
        let older = older.filter(|older| older.mptcp_only != 0);
        let plain = older.map(|older| text(&older.before));
        let _ = set_plain(key.id, plain.as_deref());
    });
    let replaced = older.map_or_else(String::new, |older| text(&older.name));
    let mut from = vec![now.as_str(), before.as_str(), replaced.as_str()];
    from.retain(|from| *from != name);
    let way = Way { from: &from, to: name, open, only_made_in: None };
    // The listeners first: a connection that comes in between has one control, not two.
    let mut moved = way.shift(&namespace, None, Some(undo))?;
    set_default(&namespace, name)?;
    undo.push({
        let (namespace, now) = (namespace.clone(), now.clone());
        move || drop(set_default(&namespace, &now))
    });
    // And those that were made in between.
    moved.then(way.shift(&namespace, None, Some(undo))?);
    Ok((key, record, moved))
}

fn assign_cgroup(
    uses: &Uses,
    new: &New<'_>,
    path: &Path,
    undo: &mut Undo,
) -> Result<(Key, Record, Moved), Error> {
    let New { name, mptcp_only, open } = *new;
    let cgroup = Cgroup::open(path)?;
    let key = Key { kind: KIND_CGROUP, id: cgroup.id };
    let choice = cgroup::choice(name, mptcp_only, &cgroup)?;
    uses.forget_namesakes(key, &cgroup.path.display().to_string())?;
    let record = Record {
        name: padded(name),
        before: [0; NAME_MAX],
        mptcp_only: mptcp_only.into(),
        inum: 0,
        place: place_of(cgroup.path.as_os_str().as_bytes())?,
    };
    let replaced = uses.get(key)?.map_or_else(String::new, |older| text(&older.name));
    uses.note(key, &record, undo)?;
    let members = Members::of(cgroup.id, &cgroup.path);
    let moved = in_each(|namespace| {
        let default = default_of(namespace)?;
        let mut from = vec![default.as_str(), replaced.as_str()];
        from.retain(|from| *from != name);
        let way = Way { from: &from, to: name, open, only_made_in: mptcp_only.then_some(&members) };
        way.shift(namespace, Some(&members), Some(undo))
    })?;
    cgroup.attach(&choice)?;
    Ok((key, record, moved))
}

/// Moves sockets in all namespaces.
fn in_each(mut shift: impl FnMut(&Namespace) -> Result<Moved, Error>) -> Result<Moved, Error> {
    let mut all = Moved::default();
    for (_, namespace) in namespaces()? {
        all.and(namespace.unless_gone(|| shift(&namespace))?.unwrap_or_default());
    }
    Ok(all)
}

impl Uses {
    /// Writes a record; undone, what was there before is there again.
    fn note(&self, key: Key, record: &Record, undo: &mut Undo) -> Result<(), Error> {
        let older = self.get(key)?;
        self.set(key, record)?;
        undo.push(move || {
            if let Ok(Some(uses)) = Uses::open() {
                let _ = match &older {
                    Some(older) => uses.set(key, older),
                    None => uses.remove(key),
                };
            }
        });
        Ok(())
    }

    /// Forgets namespaces and cgroups that had this name and have gone.
    fn forget_namesakes(&self, key: Key, place: &str) -> Result<(), Error> {
        for (other, record) in self.all()? {
            if other.kind != key.kind || other == key || text(&record.place) != place {
                continue;
            }
            // A namespace can be renamed, and `default` is also what the machine's is called here.
            if key.kind == KIND_CGROUP || of(other, &record, &namespaces()?).is_none() {
                self.undo(other, &record, None, false)?;
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
        open: bool,
    ) -> Result<(Undone, Moved), Error> {
        let undone = if key.kind == KIND_CGROUP {
            undo_cgroup(key, record, open)?
        } else {
            self.undo_netns(key, record, namespace, open)?
        };
        self.remove(key)?;
        Ok(undone)
    }

    fn undo_netns(
        &self,
        key: Key,
        record: &Record,
        namespace: Option<&Namespace>,
        open: bool,
    ) -> Result<(Undone, Moved), Error> {
        let name = text(&record.name);
        let restored = |namespace| -> Result<(Undone, Moved), Error> {
            let shift = |to: &str| shift_back(&name, to, open, namespace, None);
            let now = default_of(namespace)?;
            if now != name {
                let moved = shift(&now)?;
                return Ok((Undone::Changed { name: name.clone(), now }, moved));
            }
            // The listeners first, as in a use.
            let before = text(&record.before);
            let mut moved = shift(&before)?;
            let now = restore(namespace, &before)?;
            moved.then(shift(&now)?);
            Ok((Undone::Restored { name: name.clone(), now }, moved))
        };
        let undone = match namespace {
            Some(namespace) => namespace.unless_gone(|| restored(namespace))?,
            None => None,
        };
        set_plain(key.id, None)?;
        Ok(undone.unwrap_or((Undone::Gone { name }, Moved::default())))
    }
}

/// Moves the sockets of a control whose use is undone to `to`.
fn shift_back(
    name: &str,
    to: &str,
    open: bool,
    namespace: &Namespace,
    of: Option<&Members>,
) -> Result<Moved, Error> {
    Way { from: &[name], to, open, only_made_in: None }.shift(namespace, of, None)
}

fn undo_cgroup(key: Key, record: &Record, open: bool) -> Result<(Undone, Moved), Error> {
    let name = text(&record.name);
    cgroup::detach(key.id)?;
    let members = Members::of(key.id, Path::new(&text(&record.place)));
    let moved = in_each(|namespace| {
        let default = default_of(namespace)?;
        if default == name {
            return Ok(Moved::default());
        }
        shift_back(&name, &default, open, namespace, Some(&members))
    })?;
    Ok((Undone::Detached { name }, moved))
}

/// The namespace of a use, if it is still there: one where no process is has its name alone.
fn of(key: Key, record: &Record, namespaces: &[(u64, Namespace)]) -> Option<Namespace> {
    let seen = namespaces.iter().find(|(cookie, _)| *cookie == key.id);
    seen.map(|(_, namespace)| namespace.clone()).or_else(|| {
        let named = Namespace::named(&text(&record.place)).ok()?;
        (cookie(&named).ok()? == key.id).then_some(named)
    })
}

/// What a namespace's default was before ours: `now`, unless that is ours itself, which the
/// namespace then has from another one.
fn former(now: &str) -> Result<String, Error> {
    if !is_ours(now) {
        return Ok(now.to_owned());
    }
    let other = uses()?.into_iter().find_map(|used| match used.place {
        Place::Netns { before, .. } if used.name == now => Some(before),
        _ => None,
    });
    Ok(other.unwrap_or_else(|| KERNELS_OWN[0].into()))
}

/// Removes the map of uses if it has none.
fn tidy_uses() -> Result<(), Error> {
    let pin = Uses::pin();
    if pin.exists() && uses()?.is_empty() {
        fs::remove_file(&pin).map_err(Error::io(&pin, "remove"))?;
    }
    Ok(())
}
