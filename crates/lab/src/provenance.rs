//! The origin of results: `provenance.json` in their folder. It identifies the content, so that
//! results of two kinds are never mixed in one, and how to make them again. It differs from one
//! time to the next, so exclude this file to compare folders byte by byte.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::comparison::Comparison;
use crate::plan::Seeds;
use crate::setup::hex;
use crate::{Error, Journal};

/// Name of the file.
pub const NAME: &str = "provenance.json";

/// Version of the format of result files: one more whenever a key or a column gets another meaning.
const FORMAT: u32 = 2;

/// Where the results of a folder come from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of the format of result files.
    format: u32,
    /// The kind of results: the subcommand that makes them.
    kind: String,
    /// Hash of all that the results depend on, besides the program.
    results_sha256: String,
    /// The command line.
    command: Vec<String>,
    /// Version of narrows.
    pub(crate) version: String,
    /// Commit that it was built from, where that is known.
    pub(crate) commit: Option<String>,
    /// Release of the kernel that ran them, of results in real time.
    pub(crate) kernel: Option<String>,
    /// When the command started, UTC.
    started: String,
    /// What was compared, of a comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comparison: Option<Comparison>,
    /// SHA-256 of the files beside it, by name, of a comparison.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) files: BTreeMap<String, String>,
}

impl Provenance {
    /// That of results of a `kind` that `results_sha256` identifies, which `command` begins to make
    /// now, on this machine's kernel if `kernel` is set.
    pub fn new(
        kind: &str,
        results_sha256: String,
        kernel: bool,
        commit: Option<&str>,
        command: &[String],
    ) -> Provenance {
        let release = || fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        Provenance {
            format: FORMAT,
            kind: kind.into(),
            results_sha256,
            command: command.to_vec(),
            version: env!("CARGO_PKG_VERSION").into(),
            commit: commit.map(String::from),
            kernel: kernel.then(release).flatten().map(|release| release.trim().to_owned()),
            started: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
            comparison: None,
            files: BTreeMap::new(),
        }
    }

    /// The command as a shell takes it, whatever the program's folder; a call that no command makes is one word, and
    /// stands as it is.
    pub fn command_line(&self) -> String {
        if let [call] = &self.command[..] {
            return call.clone();
        }
        narrows_report::command_line(self.command.iter().skip(1).map(String::as_str))
    }

    /// The day when the command started, UTC, as pages have it: `28 November 2026`.
    pub fn day(&self) -> String {
        const MONTHS: [&str; 12] = [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ];
        let number = |at: Range<usize>| self.started.get(at)?.parse::<usize>().ok();
        let month = number(5..7).and_then(|month| MONTHS.get(month.checked_sub(1)?));
        match (number(8..10), month, number(0..4)) {
            (Some(day), Some(month), Some(year)) => format!("{day} {month} {year}"),
            _ => self.started.clone(),
        }
    }

    /// That of `comparison`.
    pub fn of_comparison(self, comparison: Comparison) -> Provenance {
        Provenance { comparison: Some(comparison), ..self }
    }

    /// The same, of runs on the kernel that made `other`.
    pub fn like(self, other: &Provenance) -> Provenance {
        Provenance { kernel: other.kernel.clone(), ..self }
    }

    /// The same, made by other [builds](Comparison::builds).
    pub fn by(self, builds: &str) -> Provenance {
        Provenance { comparison: self.comparison.map(|compared| compared.by(builds)), ..self }
    }

    /// Are the results of runs in real time?
    pub fn real_time(&self) -> bool {
        self.kernel.is_some()
    }

    /// What two comparisons differ in besides their seeds, if in anything.
    pub fn differs(&self, other: &Provenance) -> Option<&'static str> {
        match (&self.comparison, &other.comparison) {
            (Some(ours), Some(theirs)) => ours.differs(theirs),
            _ => Some("not both are comparisons"),
        }
        .or((self.kernel != other.kernel).then_some("another kernel"))
    }

    /// The command line.
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// What was compared, of a comparison.
    pub fn comparison(&self) -> Option<&Comparison> {
        self.comparison.as_ref()
    }

    /// That of the finished results in `folder`, if it has any of this format.
    pub fn read(folder: &Path) -> Option<Provenance> {
        let there: Provenance = serde_json::from_slice(&fs::read(folder.join(NAME)).ok()?).ok()?;
        (there.format == FORMAT).then_some(there)
    }

    /// Was there a file of this name among the results?
    pub fn has(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// Checks that a file of the results in `folder` has the bytes that were written.
    ///
    /// # Errors
    /// It has others; it is not said which.
    pub fn check_file(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let wrong = |what: &str| Err(Error::input(folder.join(name).display().to_string(), what));
        match self.files.get(name) {
            Some(sum) if *sum == hex(&Sha256::digest(bytes)) => Ok(()),
            Some(_) => wrong(
                "is damaged, as its SHA-256 is not that in provenance.json; remove it, and the same compare --resume makes it again",
            ),
            None => wrong(
                "may be damaged, as provenance.json has no SHA-256 of it; expected the results of this version",
            ),
        }
    }

    /// The seeds of this comparison whose results `folder` already has, if it has any.
    ///
    /// # Errors
    /// It has other results than those of this comparison, or of seeds that are not in it.
    pub fn finished(&self, folder: &Path) -> Result<Option<Seeds>, Error> {
        let Some(there) = Provenance::read(folder).filter(|there| there.kind == self.kind) else {
            return self.check(folder).map(|()| None);
        };
        let (Some(ours), Some(theirs)) = (&self.comparison, &there.comparison) else {
            return self.check(folder).map(|()| None);
        };
        let refused = |what: String| {
            Err(Error::input(folder.display().to_string(), format!("cannot be resumed: {what}")))
        };
        if let Some(what) = self.differs(&there) {
            return refused(format!(
                "{what}; it holds the results of \"{}\"",
                there.command.join(" ")
            ));
        }
        if !ours.seeds.include(theirs.seeds) {
            let seeds = theirs.seeds;
            return refused(format!("it holds seeds {seeds}; expected --seeds with all of them"));
        }
        Ok(Some(theirs.seeds))
    }

    /// Checks that `folder` holds no other results.
    ///
    /// # Errors
    /// It does: what they are.
    pub fn check(&self, folder: &Path) -> Result<(), Error> {
        let refused = |what: String| {
            let message = format!("holds {what}; choose another folder, or remove this one first");
            Err(Error::input(folder.display().to_string(), message))
        };
        if self.kind != "compare" && Journal::is_in(folder) {
            return refused("an interrupted comparison".into());
        }
        let there = fs::read(folder.join(NAME)).ok();
        let there = there.and_then(|bytes| serde_json::from_slice::<Provenance>(&bytes).ok());
        match there {
            Some(there) if there.format != self.format => {
                refused(format!("results in format {}, not {}", there.format, self.format))
            }
            Some(there)
                if (&there.kind, &there.results_sha256) != (&self.kind, &self.results_sha256) =>
            {
                let more = self.differs(&there).is_none();
                let hint = if more { " (--resume adds seeds to them)" } else { "" };
                refused(format!("other results, those of \"{}\"{hint}", there.command.join(" ")))
            }
            None if ["summary.json", "rows.json"].iter().any(|name| folder.join(name).exists()) => {
                refused(format!("results without a {NAME}"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_of_a_command_is_told_in_words() {
        let mut provenance = Provenance::new("run", String::new(), false, None, &[]);
        for (started, day) in [
            ("2026-11-08T23:59:59Z", "8 November 2026"),
            ("2027-01-31T00:00:00Z", "31 January 2027"),
            ("2027-13-31", "2027-13-31"),
        ] {
            provenance.started = started.into();
            assert_eq!(provenance.day(), day);
        }
    }
}
