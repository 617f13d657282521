//! The served folder: files below it, and nothing else.

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// A folder that is held open: it stays the same if it is renamed.
#[derive(Debug)]
pub(crate) struct Folder(File);

impl Folder {
    pub fn open(path: &Path) -> io::Result<Folder> {
        let folder = File::open(path)?;
        match folder.metadata()?.is_dir() {
            true => Ok(Folder(folder)),
            false => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        }
    }

    /// A regular file by its name below the folder, and its size. The kernel resolves the name and
    /// refuses each step out of the folder: `..`, absolute names and links, those of /proc.
    pub fn file(&self, name: &str) -> Result<(File, u64), String> {
        // To open a device or a FIFO has effects: only where the name leads is found here.
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        let place = openat2(&self.0, name, how).map(File::from).map_err(|error| match error {
            Errno::EXDEV => "outside of the served folder".to_owned(),
            Errno::ENOENT | Errno::ENOTDIR => "no such file".to_owned(),
            Errno::EINVAL => "not a name of a file".to_owned(),
            Errno::ENOSYS => "the server's kernel has no openat2(): Linux 5.6 or later".to_owned(),
            other => other.desc().to_owned(),
        })?;
        let about = place.metadata().map_err(|error| error.to_string())?;
        if !about.is_file() {
            return Err("not a regular file".into());
        }
        // The same file, whatever the name leads to by now.
        let file = File::open(format!("/proc/self/fd/{}", place.as_raw_fd()));
        Ok((file.map_err(|error| error.to_string())?, about.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_outside_of_the_folder_is_opened() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("served");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(home.path().join("secret"), "secret").unwrap();
        fs::write(root.join("sub/file"), "served").unwrap();
        symlink("sub/file", root.join("inside")).unwrap();
        symlink("../secret", root.join("outside")).unwrap();
        symlink(home.path(), root.join("up")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        nix::unistd::mkfifo(&root.join("fifo"), nix::sys::stat::Mode::S_IRUSR).unwrap();

        let folder = Folder::open(&root).unwrap();
        for name in ["sub/file", "./sub/file", "sub/../sub/file", "inside"] {
            assert_eq!(folder.file(name).unwrap().1, 6, "{name}");
        }
        let secret = home.path().join("secret");
        let outside = ["../secret", "sub/../../secret", "outside", "up/secret", "magic/etc/passwd"];
        for name in outside.into_iter().chain([secret.to_str().unwrap(), "/sub/file"]) {
            assert_eq!(folder.file(name).unwrap_err(), "outside of the served folder", "{name}");
        }
        assert_eq!(folder.file("sub/file\0").unwrap_err(), "not a name of a file");
        for name in ["sub", "fifo", "."] {
            assert_eq!(folder.file(name).unwrap_err(), "not a regular file", "{name}");
        }
        for name in ["", "none", "sub/file/x"] {
            assert_eq!(folder.file(name).unwrap_err(), "no such file", "{name}");
        }
        assert!(Folder::open(&root.join("sub/file")).is_err());
    }
}
