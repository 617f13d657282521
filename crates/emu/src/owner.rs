//! Who owns a testbed, and what is left of one whose owner has died.
//!
//! A testbed has a file `/run/narrows/ID.lock` that its process holds locked. The kernel frees the
//! lock when the process ends, however it ends; so a file that can be locked is a dead owner's, and
//! all namespaces `nr-ID-*` are, too.

use std::fmt::{self, Display, Formatter};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};

use crate::{Error, namespace};

/// Where the locks are.
const OWNERS: &str = "/run/narrows";

/// How long to wait for killed processes.
const DEATH: Duration = Duration::from_secs(5);

/// Something that a testbed left behind, and that [`clean`] removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removed {
    /// A process that was in one of its namespaces, killed.
    Process {
        /// Its number.
        pid: i32,
        /// The name of its program.
        name: String,
    },
    /// A network namespace, by name.
    Namespace(String),
    /// The file that its owner held locked.
    Lock(PathBuf),
}

impl Display for Removed {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Removed::Process { pid, name } => write!(f, "process {pid} ({name})"),
            Removed::Namespace(name) => write!(f, "namespace {name}"),
            Removed::Lock(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Removes what testbeds left whose processes have died: kills what runs in their namespaces, and
/// removes these and the lock files. What else there is, also under names like theirs, stays.
///
/// # Errors
/// Not root, or the kernel refuses.
pub fn clean() -> Result<Vec<Removed>, Error> {
    of_dead_owners(|owner| owner.remove())
}

/// What [`clean`] would remove now.
///
/// # Errors
/// As [`clean`].
pub fn left() -> Result<Vec<Removed>, Error> {
    of_dead_owners(|owner| Ok(owner.left()))
}

fn of_dead_owners(
    work: impl Fn(&Owner) -> Result<Vec<Removed>, Error>,
) -> Result<Vec<Removed>, Error> {
    if !Uid::effective().is_root() {
        return Err(Error::NotRoot);
    }
    let mut all = Vec::new();
    for entry in fs::read_dir(OWNERS).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "lock") {
            continue;
        }
        let Some(id) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        // It may be removed by another process this moment.
        let Ok(file) = File::open(&path) else { continue };
        if let Some(owner) = Owner::lock(id, &path, file)? {
            all.extend(work(&owner)?);
        }
    }
    Ok(all)
}

/// A testbed's name and the lock that marks it as in use.
#[derive(Debug)]
pub struct Owner {
    id: String,
    path: PathBuf,
    _lock: Flock<File>,
}

impl Owner {
    /// A new one.
    pub fn new() -> Result<Owner, Error> {
        let folder = Path::new(OWNERS);
        let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
        made.map_err(Error::io(folder, "be made"))?;
        loop {
            let id = random_id();
            let path = folder.join(format!("{id}.lock"));
            // Whoever can open it can lock it, and make a dead owner look alive.
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            let file = match file {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.map_err(Error::io(&path, "be made"))?,
            };
            // None: taken for a dead one's before it was locked.
            if let Some(owner) = Owner::lock(&id, &path, file)? {
                return Ok(owner);
            }
        }
    }

    /// None: another one holds the lock, or has removed the file.
    fn lock(id: &str, path: &Path, file: File) -> Result<Option<Owner>, Error> {
        let lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
            Err((_, errno)) => return Err(Error::io(path, "be locked")(errno.into())),
        };
        let identity = |about: fs::Metadata| (about.dev(), about.ino());
        let locked = lock.metadata().map(identity).map_err(Error::io(path, "be read"))?;
        let is_there = fs::metadata(path).map(identity).is_ok_and(|there| there == locked);
        Ok(is_there.then(|| Owner { id: id.into(), path: path.into(), _lock: lock }))
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// What the names of its namespaces begin with.
    pub fn prefix(&self) -> String {
        format!("nr-{}-", self.id)
    }

    /// What [`Owner::remove`] would remove.
    fn left(&self) -> Vec<Removed> {
        let names = namespace::named(&self.prefix());
        let processes = inside(&names).into_iter();
        let mut left: Vec<_> =
            processes.map(|(pid, name)| Removed::Process { pid, name }).collect();
        left.extend(names.into_iter().map(Removed::Namespace));
        left.push(Removed::Lock(self.path.clone()));
        left
    }

    /// Removes its namespaces with what runs in them, and at last the lock.
    pub fn remove(&self) -> Result<Vec<Removed>, Error> {
        let names = namespace::named(&self.prefix());
        for name in &names {
            // Not all kernels have all of it; else it lasts longer.
            namespace::hasten(name).ok();
        }
        let mut removed = kill_all(&names);
        for name in names {
            namespace::remove(&name).map_err(|source| {
                let (namespace, doing) = (name.clone(), "be removed".into());
                Error::Refused { namespace, doing, source }
            })?;
            removed.push(Removed::Namespace(name));
        }
        fs::remove_file(&self.path).map_err(Error::io(&self.path, "be removed"))?;
        removed.push(Removed::Lock(self.path.clone()));
        Ok(removed)
    }
}

/// Kills what runs in these namespaces, also what is forked meanwhile, and waits for the end.
fn kill_all(names: &[String]) -> Vec<Removed> {
    let began = Instant::now();
    let mut killed = Vec::new();
    while began.elapsed() < DEATH {
        let processes = inside(names);
        if processes.is_empty() {
            break;
        }
        for (pid, name) in processes {
            kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
            let process = Removed::Process { pid, name };
            if !killed.contains(&process) {
                killed.push(process);
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    killed
}

/// The processes in these namespaces but this one: number and name.
fn inside(names: &[String]) -> Vec<(i32, String)> {
    let namespaces: Vec<_> = names.iter().filter_map(|name| namespace::identity(name)).collect();
    let mut processes = namespace::processes(&namespaces);
    processes.retain(|&(pid, _)| pid != std::process::id() as i32);
    processes
}

/// Four characters. The first is a letter: no number of a process looks like it.
fn random_id() -> String {
    const CHARACTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut random = RandomState::new().hash_one(std::process::id());
    let mut draw = |of: usize| {
        let character = CHARACTERS[random as usize % of];
        random /= of as u64;
        char::from(character)
    };
    [26, 36, 36, 36].into_iter().map(&mut draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_on_a_file_that_was_removed_is_none() {
        let path = std::env::temp_dir().join(format!("narrows-owner-{}", std::process::id()));
        let lock = |file| Owner::lock("id", &path, file).unwrap();
        let file = File::create_new(&path).unwrap();
        let held = lock(file).expect("it is free");
        assert!(lock(File::open(&path).unwrap()).is_none(), "it is held");
        let late = File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        drop(held);
        assert!(lock(late.try_clone().unwrap()).is_none(), "its owner has removed it");
        fs::write(&path, "").unwrap();
        assert!(lock(late).is_none(), "the file of this name is another one's");
        fs::remove_file(&path).unwrap();
    }
}
