//! `narrows kernel export`.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use narrows_mptcp_admin::status::{Status, export};
use narrows_mptcp_admin::trial;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;

use crate::args::kernel::ExportArgs;
use crate::error::Error;
use crate::print;

/// The file that node_exporter reads, and the one that becomes it. It reads `*.prom` only.
const FILE: &str = "narrows.prom";
const NEW: &str = ".narrows.prom.new";
/// More than a status has.
const MAX_BYTES: u64 = 64 << 20;
/// Held by the command that writes.
const LOCK: &str = "narrows-export.lock";

/// Prints the status for Prometheus, or writes it into a folder and prints what rose.
pub fn export(args: &ExportArgs) -> Result<(), Error> {
    if !narrows_kernel::is_root() {
        return Err(Error::input("kernel export", "needs root"));
    }
    let Some(folder) = &args.textfile else { return print(&figures()) };
    let failed =
        |error| Error::input(folder.join(FILE).display(), format!("cannot write: {error}"));
    // Of two commands, one after the other. Others may open the folder, and hold a lock of it.
    let mut lock = OpenOptions::new();
    lock.write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let path = narrows_kernel::run_folder().join(LOCK);
    let cannot_open = |error| Error::input(path.display(), format!("cannot open: {error}"));
    let lock = lock.open(&path).map_err(cannot_open)?;
    let _lock = Flock::lock(lock, FlockArg::LockExclusive)
        .map_err(|(_, errno)| failed(io::Error::from(errno)))?;
    let text = figures();
    let before = before(&folder.join(FILE)).map_err(failed)?;
    replace(folder, &text).map_err(failed)?;
    let rises = before.map(|before| export::rises(&before, &text)).unwrap_or_default();
    print(&rises.iter().map(|rise| format!("{rise}\n")).collect::<String>())
}

/// The status, and what the trial counts, if there is one that this build can read.
fn figures() -> String {
    let trial = trial::status().unwrap_or_else(|error| {
        crate::note(&format!("narrows: the trial is left out: {error}"));
        None
    });
    Status::look().prometheus() + &trial.map(|trial| trial.prometheus()).unwrap_or_default()
}

/// What was written last. The folder's owner may have laid something else there.
fn before(path: &Path) -> io::Result<Option<String>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(Some(text))
}

/// The whole file or the one before, whenever it is read and whatever ends this process.
fn replace(folder: &Path, text: &str) -> io::Result<()> {
    let new = folder.join(NEW);
    // What a killed one left; never through a link.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = file
        .write_all(text.as_bytes())
        // Whatever the umask: node_exporter is another user.
        .and_then(|()| file.set_permissions(Permissions::from_mode(0o644)))
        .and_then(|()| fs::rename(&new, folder.join(FILE)));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}
