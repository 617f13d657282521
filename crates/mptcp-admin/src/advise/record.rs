//! What is set, in a file, so that it is known after this process was killed.
//!
//! `narrows-advise-COOKIE` in `/run` is of the network namespace with that cookie, which no other one gets before the
//! next boot. A container may keep its `/run` over that, so the first line has the boot's id. Who follows advice there
//! holds it locked, and the kernel frees the lock however that process ends: so a file that can be locked is what a
//! killed one left. A line is written before its thing is set, and taken out after it was set back.

use super::Subflow;
use crate::boot::this_boot;
use narrows_kernel::{Error, run_folder};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::net::IpAddr;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

const PREFIX: &str = "narrows-advise-";

/// What is set: subflows, and endpoints by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Made {
    pub subflows: BTreeSet<Subflow>,
    pub endpoints: BTreeMap<u8, IpAddr>,
}

impl Made {
    fn text(&self, boot: &str) -> String {
        let mut text = format!("boot {boot}\n");
        for (id, address) in &self.endpoints {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "endpoint {id} {address}");
        }
        for Subflow { token, local, remote } in &self.subflows {
            let _ = writeln!(text, "subflow {token:08x} {local} {remote}");
        }
        text
    }

    /// A line that was cut off says nothing, nor does the record of another boot.
    fn parse(text: &str, boot: &str) -> Made {
        let mut made = Made::default();
        let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        if lines.next().and_then(|line| line.strip_prefix("boot ")) != Some(boot) {
            return made;
        }
        for line in lines {
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

/// What a process that was killed left: its namespace's cookie, and what it had set there.
pub(super) type Left = (u64, Record, Made);

/// The file of a network namespace, locked.
pub(super) struct Record {
    path: PathBuf,
    file: Flock<File>,
    boot: String,
}

impl Record {
    /// That of the namespace with this cookie, and what it holds. None: another process has it.
    ///
    /// # Errors
    /// It cannot be made, locked or read.
    pub fn open(cookie: u64) -> Result<Option<(Record, Made)>, Error> {
        Record::at(run_folder().join(format!("{PREFIX}{cookie}")))
    }

    /// Those that killed processes left; an error for each that cannot be opened, locked or read.
    pub fn left() -> Vec<Result<Left, Error>> {
        let of = |entry: fs::DirEntry| {
            let cookie = entry.file_name().to_str()?.strip_prefix(PREFIX)?.parse::<u64>().ok()?;
            let record = Record::at(entry.path()).transpose()?;
            Some(record.map(|(record, made)| (cookie, record, made)))
        };
        // Without the folder nobody has recorded anything.
        fs::read_dir(run_folder()).into_iter().flatten().flatten().filter_map(of).collect()
    }

    fn at(path: PathBuf) -> Result<Option<(Record, Made)>, Error> {
        let boot = this_boot()?;
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
            let mut bytes = Vec::new();
            (&*file).read_to_end(&mut bytes).map_err(Error::io(&path, "read"))?;
            let made = Made::parse(&String::from_utf8_lossy(&bytes), &boot);
            // The one before may have removed it meanwhile.
            let own = file.metadata().map_err(Error::io(&path, "read"))?;
            if path.symlink_metadata().is_ok_and(|there| there.ino() == own.ino()) {
                if made == Made::default() {
                    // Behind what is written next there must be no lines of another boot.
                    file.set_len(0).map_err(Error::io(&path, "write"))?;
                }
                return Ok(Some((Record { path, file, boot }, made)));
            }
        }
    }

    /// Holds what is set, or is about to be.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, made: &Made) -> Result<(), Error> {
        // What a process that is killed in between leaves behind the end is of before.
        let text = made.text(&self.boot);
        let written = self.file.write_all_at(text.as_bytes(), 0);
        let written = written.and_then(|()| self.file.set_len(text.len() as u64));
        written.map_err(Error::io(&self.path, "write"))
    }

    /// The end of who had it: holds what is still set; goes if nothing is.
    ///
    /// # Errors
    /// As [`Record::write`].
    pub fn close(self, made: &Made) -> Result<(), Error> {
        if *made != Made::default() {
            return self.write(made);
        }
        // While it is locked; one that stays holds nothing, or is gone.
        let _ = fs::remove_file(&self.path);
        Ok(())
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
        let parse = |text: &str| Made::parse(text, "1f-2e");
        let text = made().text("1f-2e");
        let expected = "boot 1f-2e\nendpoint 2 10.0.2.1\n\
                        subflow 00abcdef 10.0.2.1:40000 [2001:db8::1]:443\n";
        assert_eq!(text, expected);
        assert_eq!(parse(&text), made());
        let cut = parse(&text[..text.len() - 2]);
        assert_eq!(cut, Made { subflows: BTreeSet::new(), ..made() });
        let nonsense = "boot 1f-2e\nendpoint 300 10.0.2.1\nendpoint 2\n\nnonsense\n";
        assert_eq!(parse(nonsense), Made::default());
        // Another boot gives the same cookies to other namespaces.
        assert_eq!(Made::parse(&text, "1f-2f"), Made::default());
        assert_eq!(parse("endpoint 2 10.0.2.1\n"), Made::default());
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
        third.close(&held).unwrap();
        // Bytes that are no text hide no other line.
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend(b"\xff\n");
        fs::write(&path, bytes).unwrap();
        let (fourth, held) = open().unwrap();
        assert_eq!(held, endpoints, "what is not set back stays known");
        fourth.close(&Made::default()).unwrap();
        assert!(!path.exists());
    }
}
