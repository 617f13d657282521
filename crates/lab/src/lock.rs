//! Folders into which one process at a time writes results.

#[cfg(unix)]
use std::fs::File;
use std::path::Path;
#[cfg(unix)]
use std::sync::{Arc, Mutex, Weak};

#[cfg(unix)]
use nix::fcntl::{Flock, FlockArg};

use crate::Error;

/// A folder that no other process of narrows writes results into while this is there. Several of one process may
/// have the same.
#[derive(Debug)]
pub struct Lock {
    #[cfg(unix)]
    _held: Option<Arc<Flock<File>>>,
}

/// A lock by device and inode of its folder.
#[cfg(unix)]
type Held = ((u64, u64), Weak<Flock<File>>);

/// The locks that this process holds: a second one of its own would be refused, too.
#[cfg(unix)]
static HELD: Mutex<Vec<Held>> = Mutex::new(Vec::new());

impl Lock {
    /// Of a folder that is there: its own lock (flock), which ends with the process however that ends. Where the file system
    /// has no locks, or the folder cannot be opened, there is none.
    ///
    /// # Errors
    /// Another process has it.
    #[cfg(unix)]
    pub fn of(folder: &Path) -> Result<Lock, Error> {
        use std::os::unix::fs::MetadataExt;
        let opened = File::open(folder).and_then(|file| Ok((file.metadata()?, file)));
        let Ok((there, file)) = opened else { return Ok(Lock { _held: None }) };
        let id = (there.dev(), there.ino());
        let mut all = HELD.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        all.retain(|(_, held)| held.strong_count() > 0);
        if let Some(held) = all.iter().find(|(other, _)| *other == id) {
            return Ok(Lock { _held: held.1.upgrade() });
        }
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(held) => {
                let held = Arc::new(held);
                all.push((id, Arc::downgrade(&held)));
                Ok(Lock { _held: Some(held) })
            }
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => {
                let message = "another narrows is writing here; expected another folder";
                Err(Error::input(folder.display().to_string(), message))
            }
            Err(_) => Ok(Lock { _held: None }),
        }
    }

    /// None: there are no locks here.
    ///
    /// # Errors
    /// None.
    #[cfg(not(unix))]
    pub fn of(_folder: &Path) -> Result<Lock, Error> {
        Ok(Lock {})
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_of_one_process_until_that_is_done_with_it() {
        let home = tempfile::tempdir().unwrap();
        let (one, two) = (Lock::of(home.path()).unwrap(), Lock::of(home.path()).unwrap());
        // As another process has it: by a file of its own.
        let other = || {
            let file = File::open(home.path()).unwrap();
            Flock::lock(file, FlockArg::LockExclusiveNonblock)
        };
        drop(one);
        assert!(other().is_err(), "the second is still there");
        drop(two);
        let held = other().unwrap_or_else(|_| panic!("it is free"));
        let error = Lock::of(home.path()).unwrap_err().to_string();
        assert!(error.ends_with(": another narrows is writing here; expected another folder"));
        drop(held);
        Lock::of(home.path()).unwrap();
    }
}
