//! Controls for the sockets of a cgroup, by a program attached with a pinned link.

use crate::object::{Aligned, ends_with};
use crate::pins::FOLDER;
use crate::register::padded;
use crate::{Error, libbpf_log};
use libbpf_rs::{Link, Object, ObjectBuilder};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

static CHOOSE: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/choose.bpf.o")));

/// A folder of the cgroup2 file system.
pub struct Cgroup {
    /// Without links and dots.
    pub path: PathBuf,
    /// Its inode number, never given twice.
    pub id: u64,
    folder: File,
}

impl Cgroup {
    /// The one at `path`.
    ///
    /// # Errors
    /// It is not there, or no folder of the cgroup2 file system.
    pub fn open(path: &Path) -> Result<Cgroup, Error> {
        let folder = File::open(path).map_err(Error::io(path, "open"))?;
        let system = statfs(path).map_err(|errno| Error::io(path, "inspect")(errno.into()))?;
        let about = folder.metadata().map_err(Error::io(path, "inspect"))?;
        if system.filesystem_type() != CGROUP2_SUPER_MAGIC || !about.is_dir() {
            let place = format!("--cgroup {}", path.display());
            return Err(Error::input(place, "expected a folder of the cgroup2 file system"));
        }
        let path = path.canonicalize().map_err(Error::io(path, "find"))?;
        Ok(Cgroup { path, id: about.ino(), folder })
    }

    /// The one at the top of the first cgroup2 file system that is mounted.
    ///
    /// # Errors
    /// There is none.
    pub fn top() -> Result<Cgroup, Error> {
        let mounts = Path::new("/proc/self/mounts");
        let text = fs::read_to_string(mounts).map_err(Error::io(mounts, "read"))?;
        let mut rows = text.lines().map(|row| row.split(' ').collect::<Vec<_>>());
        let row = rows.find(|row| row.get(2) == Some(&"cgroup2"));
        let row =
            row.ok_or_else(|| Error::input("cgroup2", "expected such a file system, mounted"))?;
        Cgroup::open(Path::new(row[1]))
    }

    pub(crate) fn folder(&self) -> &File {
        &self.folder
    }

    /// Attaches `choice`, for new connections.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn attach(&self, choice: &Choice) -> Result<(), Error> {
        let program = choice.0.progs_mut().next().expect("the object has a program");
        let pin = pin(self.id);
        let (attached, _) = libbpf_log::capture(|| match pin.exists() {
            true => Link::open(&pin).and_then(|mut link| link.update_prog(&program)),
            false => {
                let link = program.attach_cgroup(self.folder.as_raw_fd());
                link.and_then(|mut link| link.pin(&pin))
            }
        });
        attached.map_err(Error::bpf(self.path.display().to_string(), "attach the program to"))
    }
}

/// A program that chooses a control, as the verifier has accepted it.
pub struct Choice(Object);

/// The program that chooses `name` for the connections, or MPTCP connections, of `cgroup`.
///
/// # Errors
/// The verifier refuses it.
pub fn choice(name: &str, mptcp_only: bool, cgroup: &Cgroup) -> Result<Choice, Error> {
    let failed = |doing| Error::bpf(cgroup.path.display().to_string(), doing);
    let mut open = ObjectBuilder::default()
        .name("narrows")
        .and_then(|builder| builder.open_memory(&CHOOSE.0))
        .map_err(failed("open the program for"))?;
    let choice = open.maps_mut().find(|map| ends_with(map.name(), ".rodata.choice"));
    let mut value = padded(name).to_vec();
    value.extend(u32::from(mptcp_only).to_ne_bytes());
    choice
        .expect("the object has its choice")
        .set_initial_value(&value)
        .map_err(failed("load the program for"))?;
    libbpf_log::load("nr_choose", open).map(Choice)
}

/// Detaches the program of the cgroup with that id.
///
/// # Errors
/// Its pin cannot be removed.
pub fn detach(id: u64) -> Result<(), Error> {
    let pin = pin(id);
    if !pin.exists() {
        return Ok(());
    }
    // Fails if the cgroup itself has gone.
    let _ = libbpf_log::capture(|| Link::open(&pin).and_then(|link| link.detach()));
    fs::remove_file(&pin).map_err(Error::io(&pin, "remove"))
}

fn pin(id: u64) -> PathBuf {
    Path::new(FOLDER).join(format!("cgroup-{id}"))
}
