//! The finished runs of a comparison, recorded as they finish, to resume after Ctrl-C, a crash or a
//! power failure.
//!
//! One file, `unfinished.jsonl` in the folder of the results: a line that identifies the comparison,
//! then a line per finished run, each written at once. A line that did not reach the disk whole is
//! a run that runs again.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::comparison::Comparison;
use crate::plan::{Finished, Plan};
use crate::setup::sha256;

/// Name of the file.
const NAME: &str = "unfinished.jsonl";

/// The first line.
#[derive(Serialize, Deserialize)]
struct Head {
    /// Hash of the [`Comparison`].
    plan: String,
}

/// The kept runs of one comparison. Dropped while it holds none, it leaves no file.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
    earlier: Vec<Finished>,
    kept: AtomicUsize,
}

impl Journal {
    /// Is there a journal in `folder`?
    pub fn is_in(folder: &Path) -> bool {
        folder.join(NAME).exists()
    }

    /// Begins a journal of `plan` in `folder`, or goes on with the one that is there if `resume` is
    /// set.
    ///
    /// # Errors
    /// The folder cannot be written; it holds a journal and `resume` is not set; or that journal is
    /// of another plan.
    pub fn open(folder: &Path, plan: &Plan, resume: bool) -> Result<Journal, Error> {
        let path = folder.join(NAME);
        let place = path.display().to_string();
        let plan = sha256(&Comparison::of(plan)?);
        let mut earlier = Vec::new();
        let mut whole = true;
        let mut head = None;
        if path.exists() {
            let file = File::open(&path).map_err(Error::io(&path, "read"))?;
            for line in BufReader::new(file).split(b'\n') {
                let line = line.map_err(Error::io(&path, "read"))?;
                if head.is_none() {
                    head = serde_json::from_slice::<Head>(&line).ok();
                } else if let Ok(run) = serde_json::from_slice(&line) {
                    earlier.push(run);
                }
            }
            whole = ends_with_newline(&path).map_err(Error::io(&path, "read"))?;
        }
        match &head {
            Some(_) if !resume => {
                let message = "an interrupted comparison is in this folder; --resume continues it; \
                               remove this file to start again";
                return Err(Error::input(place, message));
            }
            Some(head) if head.plan != plan => {
                let message = "belongs to other arguments, other scenarios or another build of \
                               narrows; remove this file to start again";
                return Err(Error::input(place, message));
            }
            _ => {}
        }
        // Each line is one write at the end of the file, so two writers cannot tear each other's.
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .map_err(Error::io(&path, "write"))?;
        if head.is_none() {
            file.set_len(0).map_err(Error::io(&path, "write"))?;
            write_line(&mut file, &Head { plan }).map_err(Error::io(&path, "write"))?;
        } else if !whole {
            file.write_all(b"\n").map_err(Error::io(&path, "write"))?;
        }
        let kept = AtomicUsize::new(earlier.len());
        Ok(Journal { path, file: Mutex::new(file), earlier, kept })
    }

    /// The runs that had finished when the journal was opened.
    pub fn earlier(&self) -> &[Finished] {
        &self.earlier
    }

    /// Adds runs that had finished and are kept elsewhere.
    pub fn also(&mut self, runs: Vec<Finished>) {
        self.earlier.extend(runs);
    }

    /// Keeps a run that has finished.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, run: &Finished) -> Result<(), Error> {
        // A thread that panicked while it wrote left at worst a torn line, which reading forgives.
        let mut file = self.file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        write_line(&mut file, run).map_err(Error::io(&self.path, "write"))?;
        self.kept.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// `error`, which ended the comparison of `runs` runs, and what is kept of it.
    pub fn interrupted(&self, error: Error, runs: u64) -> Error {
        let kept = self.kept.load(Ordering::Relaxed);
        if kept == 0 {
            return error;
        }
        let file = self.path.display().to_string();
        Error::Kept { error: Box::new(error), kept, runs, file }
    }

    /// Removes the file: the comparison is complete and its results are written.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn remove(self) -> Result<(), Error> {
        std::fs::remove_file(&self.path).map_err(Error::io(&self.path, "remove"))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.kept.load(Ordering::Relaxed) == 0 {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn write_line(file: &mut File, value: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)
}

fn ends_with_newline(path: &Path) -> std::io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(path)?;
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
