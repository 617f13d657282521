//! What was judged, on disk: a search that is asked for again, after Ctrl-C or for more candidates,
//! makes the same choices and finds their verdicts here.
//!
//! One file, `judged.jsonl` in the folder of the results: a line that identifies the program and the
//! user's law, then a line for each verdict, written at once. A line that did not reach the disk
//! whole is judged again.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use narrows_lab::{Error, sha256};
use serde::{Deserialize, Serialize};

use crate::judge::Verdict;

/// Name of the file.
const NAME: &str = "judged.jsonl";

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    /// Hash of scenario, control and seed; of the first line of the program.
    key: String,
    /// None in the first line.
    verdict: Option<Verdict>,
}

/// Verdicts by what was judged.
#[derive(Debug)]
pub struct Memo {
    file: Option<(PathBuf, Mutex<File>)>,
    known: HashMap<String, Verdict>,
}

impl Memo {
    /// One that keeps nothing.
    pub fn none() -> Memo {
        Memo { file: None, known: HashMap::new() }
    }

    /// That of `folder`, which is made; with what is there if `resume` is set. `program` is all that a
    /// verdict depends on besides scenario, control and seed.
    ///
    /// # Errors
    /// The folder cannot be written; it holds verdicts and `resume` is not set; or they are of another
    /// program.
    pub fn open(folder: &Path, program: &str, resume: bool) -> Result<Memo, Error> {
        std::fs::create_dir_all(folder).map_err(Error::io(folder, "make this folder"))?;
        let path = folder.join(NAME);
        let place = path.display().to_string();
        let mut lines = Vec::new();
        let mut torn = false;
        if path.exists() {
            if !resume {
                let message = "a search is in this folder; --resume continues it; remove this file to \
                               start again";
                return Err(Error::input(place, message));
            }
            let file = File::open(&path).map_err(Error::io(&path, "read"))?;
            for line in BufReader::new(file).split(b'\n') {
                let line = line.map_err(Error::io(&path, "read"))?;
                let read = serde_json::from_slice::<Line>(&line);
                torn = read.is_err();
                lines.extend(read);
            }
        }
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let mut file = file.map_err(Error::io(&path, "write"))?;
        let mut lines = lines.into_iter();
        match lines.next() {
            None => {
                file.set_len(0).map_err(Error::io(&path, "write"))?;
                let head = Line { key: program.into(), verdict: None };
                write(&mut file, &head).map_err(Error::io(&path, "write"))?;
            }
            Some(head) if head.key != program => {
                let message = "belongs to another build of narrows or another law; remove this file to \
                               start again";
                return Err(Error::input(place, message));
            }
            // What follows begins a line of its own.
            Some(_) if torn => file.write_all(b"\n").map_err(Error::io(&path, "write"))?,
            Some(_) => {}
        }
        let known = lines.filter_map(|line| Some((line.key, line.verdict?))).collect();
        Ok(Memo { file: Some((path, Mutex::new(file))), known })
    }

    /// The verdict on a scenario's text, by `judge` where it is not known yet.
    ///
    /// # Errors
    /// Those of `judge`, or the file cannot be written.
    pub fn verdict(
        &self,
        text: &str,
        control: &str,
        seed: u64,
        judge: impl FnOnce() -> Result<Verdict, Error>,
    ) -> Result<Verdict, Error> {
        let key = sha256(&(text, control, seed));
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let verdict = judge()?;
        if let Some((path, file)) = &self.file {
            // A thread that panicked while it wrote left at worst a torn line, which reading forgives.
            let mut file = file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let line = Line { key, verdict: Some(verdict.clone()) };
            write(&mut file, &line).map_err(Error::io(path, "write"))?;
        }
        Ok(verdict)
    }
}

fn write(file: &mut File, line: &Line) -> std::io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    file.write_all(&bytes)
}
