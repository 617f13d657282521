//! `narrows kernel export`.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use narrows_mptcp_admin::status::{Status, export};
use nix::fcntl::{Flock, FlockArg};

use crate::args::kernel::ExportArgs;
use crate::error::Error;
use crate::print;

/// The file that node_exporter reads, and the one that becomes it. It reads `*.prom` only.
const FILE: &str = "narrows.prom";
const NEW: &str = ".narrows.prom.new";

/// Prints the status for Prometheus, or writes it into a folder and prints what rose.
pub fn export(args: &ExportArgs) -> Result<(), Error> {
    if !narrows_kernel::is_root() {
        return Err(Error::input("kernel export", "needs root"));
    }
    let Some(folder) = &args.textfile else { return print(&Status::look().prometheus()) };
    let failed =
        |error| Error::input(folder.join(FILE).display(), format!("cannot write: {error}"));
    // Of two commands, one after the other.
    let lock = File::open(folder).map_err(failed)?;
    let _lock = Flock::lock(lock, FlockArg::LockExclusive)
        .map_err(|(_, errno)| failed(io::Error::from(errno)))?;
    let text = Status::look().prometheus();
    let before = match fs::read_to_string(folder.join(FILE)) {
        Ok(before) => Some(before),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    replace(folder, &text).map_err(failed)?;
    let rises = before.map(|before| export::rises(&before, &text)).unwrap_or_default();
    print(&rises.iter().map(|rise| format!("{rise}\n")).collect::<String>())
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
