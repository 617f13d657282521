//! What is set, in a file, so that it is known after this process was killed.
//!
//! `/run/narrows-advise-COOKIE` is of the network namespace with that cookie, which no other one gets before the next
//! boot, which empties `/run`. Who follows advice there holds it locked, and the kernel frees the lock however that
//! process ends: so a file that can be locked is what a killed one left. A line is written before its thing is set,
//! and taken out after it was set back.

use super::Subflow;
use narrows_kernel::Error;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const FOLDER: &str = "/run";
const PREFIX: &str = "narrows-advise-";

/// What is set: subflows, and endpoints by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Made {
    pub subflows: BTreeSet<Subflow>,
    pub endpoints: BTreeMap<u8, IpAddr>,
}

impl Made {
    fn text(&self) -> String {
        let mut text = String::new();
        for (id, address) in &self.endpoints {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "endpoint {id} {address}");
        }
        for Subflow { token, local, remote } in &self.subflows {
            let _ = writeln!(text, "subflow {token:08x} {local} {remote}");
        }
        text
    }

    /// A line that was cut off says nothing.
    fn parse(text: &str) -> Made {
        let mut made = Made::default();
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["endpoint", id, address] => {
                    let address = address.parse::<IpAddr>().ok();
                    made.endpoints.extend(id.parse::<u8>().ok().zip(address));
                }
                ["subflow", token, local, remote] => {
                    let token = u32::from_str_radix(token, 16).ok();
                    let ends = local.parse().ok().zip(remote.parse().ok());
                    let subflow = |(token, (local, remote))| Subflow { token, local, remote };
                    made.subflows.extend(token.zip(ends).map(subflow));
                }
                _ => {}
            }
        }
        made
    }
}

/// The file of a network namespace, locked.
pub(super) struct Record {
    path: PathBuf,
    file: Flock<File>,
}

impl Record {
    /// That of the namespace with this cookie, and what it holds. None: another process has it.
    ///
    /// # Errors
    /// It cannot be made, locked or read.
    pub fn open(cookie: u64) -> Result<Option<(Record, Made)>, Error> {
        Record::at(Path::new(FOLDER).join(format!("{PREFIX}{cookie}")))
    }

    /// Those that killed processes left, each with its namespace's cookie.
    ///
    /// # Errors
    /// As [`Record::open`].
    pub fn left() -> Result<Vec<(u64, Record, Made)>, Error> {
        let mut all = Vec::new();
        // Without the folder nobody has recorded anything.
        for entry in fs::read_dir(FOLDER).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let cookie = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse().ok());
            let Some(cookie) = cookie else { continue };
            if let Some((record, made)) = Record::at(entry.path())? {
                all.push((cookie, record, made));
            }
        }
        Ok(all)
    }

    fn at(path: PathBuf) -> Result<Option<(Record, Made)>, Error> {
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let file = options.custom_flags(libc::O_NOFOLLOW).open(&path);
            let file = file.map_err(Error::io(&path, "open"))?;
            let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(file) => file,
                Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
                Err((_, errno)) => return Err(Error::io(&path, "lock")(errno.into())),
            };
            let text = io::read_to_string(&*file).map_err(Error::io(&path, "read"))?;
            // The one before may have removed it meanwhile.
            let own = file.metadata().map_err(Error::io(&path, "read"))?;
            if path.symlink_metadata().is_ok_and(|there| there.ino() == own.ino()) {
                return Ok(Some((Record { path, file }, Made::parse(&text))));
            }
        }
    }

    /// Holds what is set, or is about to be.
    pub fn write(&self, made: &Made) -> io::Result<()> {
        // What a process that is killed in between leaves behind the end is of before.
        let text = made.text();
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)
    }

    /// Nothing is set any more.
    pub fn remove(self) {
        // While it is locked; one that stays holds nothing, or is gone.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Made {
        let subflow = |token, local: &str| Subflow {
            token,
            local: local.parse().unwrap(),
            remote: "[2001:db8::1]:443".parse().unwrap(),
        };
        Made {
            subflows: BTreeSet::from([subflow(0x00ab_cdef, "10.0.2.1:40000")]),
            endpoints: BTreeMap::from([(2, "10.0.2.1".parse().unwrap())]),
        }
    }

    #[test]
    fn what_is_set_is_read_back_and_a_line_that_was_cut_off_is_not() {
        let text = made().text();
        let expected = "endpoint 2 10.0.2.1\nsubflow 00abcdef 10.0.2.1:40000 [2001:db8::1]:443\n";
        assert_eq!(text, expected);
        assert_eq!(Made::parse(&text), made());
        let cut = Made::parse(&text[..text.len() - 2]);
        assert_eq!(cut, Made { subflows: BTreeSet::new(), ..made() });
        assert_eq!(Made::parse("endpoint 300 10.0.2.1\nendpoint 2\n\nnonsense\n"), Made::default());
    }

    #[test]
    fn one_process_at_a_time_has_the_file_and_the_next_one_what_it_held() {
        let path = std::env::temp_dir().join(format!("narrows-advise-{}", std::process::id()));
        let open = || Record::at(path.clone()).unwrap();
        let (first, held) = open().unwrap();
        assert_eq!(held, Made::default());
        first.write(&made()).unwrap();
        assert!(open().is_none(), "it is locked");
        // As a killed process does.
        drop(first);
        let (second, held) = open().unwrap();
        assert_eq!(held, made());
        let endpoints = Made { subflows: BTreeSet::new(), ..made() };
        second.write(&endpoints).unwrap();
        drop(second);
        let (third, held) = open().unwrap();
        assert_eq!(held, endpoints);
        third.remove();
        assert!(!path.exists());
    }
}
