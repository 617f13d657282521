//! What was run, as results carry it: the settings, and a hash of the scenario that they resolve to.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use narrows_laws::Params;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::algorithm::Algorithm;
use crate::scenario::Scenario;
use crate::user_law;

/// A scenario as it was resolved. With law, host and seed it fixes a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// SHA-256 of [`Scenario::text`], the scenario whole as TOML: `narrows show --resolved`.
    pub scenario_sha256: String,
    /// What the command line set, by field, and parameters that are not the defaults.
    pub settings: BTreeMap<String, String>,
}

impl Setup {
    /// That of `scenario`, with `controls` in turn for its connection under test.
    pub fn of(scenario: &Scenario, controls: &[Algorithm]) -> Setup {
        let mut settings = scenario.settings.clone();
        let defaults = Params::default();
        let changed = scenario.params.differing(&defaults);
        settings.extend(changed.map(|(name, value)| (name.to_owned(), value)));
        // The version of a user's law, which a process may have loaded for other runs.
        let law = user_law::loaded().filter(|_| scenario.takes_user_law(controls));
        settings.extend(law.map(|law| {
            let version = format!("{} sha256 {}", law.name, law.sha256);
            ("law".to_owned(), version)
        }));
        Setup { scenario_sha256: hex(&Sha256::digest(scenario.text())), settings }
    }

    /// `duration = 2 s; warmup = 1 s`.
    pub fn show(&self) -> String {
        let settings = self.settings.iter().map(|(field, value)| format!("{field} = {value}"));
        settings.collect::<Vec<_>>().join("; ")
    }
}

/// SHA-256 of what `value` shows for debugging, in hexadecimal digits.
pub fn sha256(value: &impl std::fmt::Debug) -> String {
    let mut hash = Sha256::new();
    // The writer cannot fail.
    let _ = write!(Hashing(&mut hash), "{value:?}");
    hex(&hash.finalize())
}

/// The library that holds this code, open, as another may take its place; and the hash of this program once it is
/// known.
static LIBRARY: OnceLock<(PathBuf, File)> = OnceLock::new();
static HASH: OnceLock<String> = OnceLock::new();

/// This code is in `file`, a library, and not in the program that runs.
///
/// # Errors
/// It cannot be read.
pub fn is_in(file: &Path) -> Result<(), Error> {
    let library = File::open(file).map_err(Error::io(file, "read"))?;
    let _ = LIBRARY.set((file.to_owned(), library));
    Ok(())
}

/// What includes a part that this program was built without: in the command, or in Python's wheel, whose code is in a
/// library.
pub fn included_by([command, wheel]: [&str; 2]) -> String {
    match LIBRARY.get() {
        Some(_) => format!("`{wheel}` in a checkout"),
        None => format!("`{command}`"),
    }
}

/// SHA-256 of this program, another build of which may simulate otherwise.
///
/// # Errors
/// Its file cannot be read.
pub fn program() -> Result<String, Error> {
    if let Some(hash) = HASH.get() {
        return Ok(hash.clone());
    }
    let bytes = match LIBRARY.get() {
        Some((path, library)) => whole(library).map_err(Error::io(path, "read"))?,
        None => {
            let program = std::env::current_exe().unwrap_or_default();
            std::fs::read(&program).map_err(Error::io(&program, "read"))?
        }
    };
    Ok(HASH.get_or_init(|| hex(&Sha256::digest(bytes))).clone())
}

/// All of a file, whose position other threads and forks share.
#[cfg(unix)]
fn whole(file: &File) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; file.metadata()?.len() as usize];
    std::os::unix::fs::FileExt::read_exact_at(file, &mut bytes, 0)?;
    Ok(bytes)
}

/// Only Unix reads so.
#[cfg(not(unix))]
fn whole(_file: &File) -> std::io::Result<Vec<u8>> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Hexadecimal digits of a hash.
pub fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Text on its way into a hash, which needs not be in memory as a whole.
struct Hashing<'a>(&'a mut Sha256);

impl Write for Hashing<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edits, load, parse};

    const FILE: &str = "name = \"n\"\ntitle = \"\"\nsource = \"\"\nwarmup = \"0 s\"\n\
        duration = \"2 s\"\nlinks.l = { rate = \"12 Mbit/s\", queue = \"20 packets\" }\n\
        routes.r = { links = [\"l\"], rtt = \"20 ms\" }\n\
        flows.a = { kind = \"tcp\", routes = [\"r\"], cc = \"reno\" }\n";

    fn hash(file: &str, set: &[(&str, &str)]) -> String {
        let set = set.iter().map(|(field, value)| (field.to_string(), value.to_string())).collect();
        Setup::of(&parse(file, &Edits { set, ..Edits::default() }).unwrap(), &[]).scenario_sha256
    }

    #[test]
    fn a_hash_is_of_what_a_file_says_and_not_of_how() {
        let first = hash(FILE, &[]);
        let other = FILE.replace("\"2 s\"", "\"2000 ms\" # two");
        assert_eq!(hash(&other, &[]), first);
        assert_eq!(hash(&FILE.replace("\"2 s\"", "\"9 s\""), &[("duration", "2 s")]), first);
        assert_ne!(hash(FILE, &[("duration", "3 s")]), first);
        assert_ne!(hash(&FILE.replace("reno", "cubic"), &[]), first);
    }

    #[test]
    fn what_a_program_lacks_is_included_by_what_builds_programs() {
        assert_eq!(included_by(["make install", "scripts/python wheel"]), "`make install`");
    }

    #[test]
    fn settings_are_what_the_command_line_changed_and_parameters_that_differ() {
        let set = [("ssc.p_s", "0.20"), ("duration", "3 s")];
        let set = set.map(|(field, value)| (field.to_owned(), value.to_owned())).to_vec();
        let mut scenario = load("sbd/sb-2", &Edits { set, traces: Vec::new() }).unwrap();
        scenario.set_signal("rtt".parse().unwrap());
        let settings = "detection.signal = rtt; duration = 3 s; ssc.p_s = 0.2";
        assert_eq!(Setup::of(&scenario, &[]).show(), settings);
    }
}
