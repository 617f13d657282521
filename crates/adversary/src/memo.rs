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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::charge::{Charge, Measure};
    use crate::file::{Head, text};
    use crate::network::Network;
    use crate::search::{Find, Plan, search};

    /// A search in `folder` for the network with the slowest link, interrupted after so many judgements;
    /// returns what it found and how many there were.
    fn searched(folder: &Path, resume: bool, patience: usize) -> (Result<Vec<Find>, Error>, usize) {
        let memo = Memo::open(folder, "this", resume).unwrap();
        let count = AtomicUsize::new(0);
        let judge = |network: &Network, seed: u64| {
            let text = text(network, "reno", &Head { name: "n", title: "", source: "" });
            memo.verdict(&text, "lia", seed, || {
                if count.fetch_add(1, Ordering::Relaxed) >= patience {
                    return Err(Error::Interrupted);
                }
                let slowest = network.links.iter().map(|link| link.kbps).min().unwrap();
                let value = 1e4 / f64::from(slowest);
                let measure = Measure { value, uncoupled: 0.0, limit: 1.0 };
                Ok(Verdict([(Charge::Silence, measure)].into()))
            })
        };
        let plan = Plan {
            seed: 5,
            candidates: 100,
            hops: 200_000,
            shrinks: 50,
            judge: &judge,
            go_on: &|_| true,
        };
        let found = search(&plan).map(|found| found.finds);
        (found, count.into_inner())
    }

    #[test]
    fn what_was_interrupted_goes_on_where_it_was() {
        let [whole, parts] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let (expected, all) = searched(whole.path(), false, usize::MAX);
        let (interrupted, _) = searched(parts.path(), false, all / 2);
        assert!(matches!(interrupted, Err(Error::Interrupted)));
        // The last line is torn.
        let file = parts.path().join(NAME);
        let text = std::fs::read(&file).unwrap();
        std::fs::write(&file, &text[..text.len() - 7]).unwrap();
        let (resumed, rest) = searched(parts.path(), true, usize::MAX);
        assert_eq!(resumed.unwrap(), expected.unwrap());
        assert!(rest <= all - all / 2 + 1, "{rest} of {all} were judged again");
        let (_, again) = searched(parts.path(), true, 0);
        assert_eq!(again, 0, "all is known");
    }

    #[test]
    fn what_is_of_another_program_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let open = |program: &str, resume| {
            Memo::open(folder.path(), program, resume).map_err(|error| error.to_string())
        };
        open("this", false).unwrap();
        assert!(open("this", false).unwrap_err().contains("--resume continues it"));
        assert!(open("that", true).unwrap_err().contains("belongs to another build"));
        open("this", true).unwrap();
    }
}
