//! Where a scenario's text comes from, and where the base and the traces are that it names.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::shipped;
use crate::Error;

/// Where the text of a scenario, or of a base, comes from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Origin {
    /// A file on disk.
    Disk(PathBuf),
    /// A file that comes with Narrows: its path below `scenarios` without `.toml`.
    Shipped(String),
    /// Text that is in no file.
    Memory,
}

impl Origin {
    /// What the command line names: a file, or a shipped scenario.
    pub fn named(name: &str) -> Origin {
        let path = Path::new(if name == "-" { "/dev/stdin" } else { name });
        // As messages name a shipped file.
        let shipped = name.strip_suffix(".toml").filter(|_| shipped::file(name).is_some());
        if let (Some(shipped), false) = (shipped, path.exists()) {
            return Origin::Shipped(shipped.to_owned());
        }
        if (path.exists() && !path.is_dir())
            || path.extension().is_some_and(|extension| extension == "toml")
        {
            Origin::Disk(path.to_owned())
        } else {
            Origin::Shipped(name.to_owned())
        }
    }

    /// What this file names as its base: a `.toml` file beside it, or a shipped scenario.
    pub fn base(&self, base: &str) -> Origin {
        match base.ends_with(".toml") {
            true => Origin::Disk(self.folder().join(base)),
            false => Origin::Shipped(base.to_owned()),
        }
    }

    /// The same with an absolute path: the current folder may be another one later.
    pub fn absolute(self) -> Origin {
        match self {
            Origin::Disk(path) => Origin::Disk(super::trace::absolute(&path)),
            other => other,
        }
    }

    /// Does the text come from the same place?
    pub fn same(&self, other: &Origin) -> bool {
        match (self, other) {
            (Origin::Disk(a), Origin::Disk(b)) => {
                a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
            }
            (Origin::Shipped(a), Origin::Shipped(b)) => a == b,
            _ => false,
        }
    }

    /// As errors name it.
    pub fn place(&self) -> String {
        match self {
            Origin::Disk(path) => path.display().to_string(),
            Origin::Shipped(name) => format!("{name}.toml"),
            Origin::Memory => "scenario".into(),
        }
    }

    /// The text.
    ///
    /// # Errors
    /// There is no such file, or it holds no text.
    pub fn text(&self) -> Result<String, Error> {
        match self {
            Origin::Disk(path) => {
                let bytes = std::fs::read(path).map_err(Error::io(path, "read"))?;
                String::from_utf8(bytes).map_err(|_| {
                    Error::input(self.place(), "not a text file; expected a scenario in TOML")
                })
            }
            Origin::Shipped(name) => {
                let bytes = shipped::file(&format!("{name}.toml"));
                let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
                text.map(str::to_owned).ok_or_else(|| {
                    let file = format!("{name}.toml");
                    let hint = match Path::new(&file).is_file() {
                        true => format!(" (did you mean '{file}'?)"),
                        false => narrows_laws::catalogue::hint(name, &shipped::shipped()),
                    };
                    let message = match Path::new(name).is_dir() {
                        true => "a folder; expected a scenario, a file in TOML".into(),
                        false => format!(
                            "no such file and no shipped scenario{hint}; `narrows list scenarios` lists them"
                        ),
                    };
                    Error::input(name, message)
                })
            }
            Origin::Memory => Ok(String::new()),
        }
    }

    /// What this file names as a trace, as a name that [`super::trace::find`] takes: a file beside it, or
    /// a shipped one.
    ///
    /// # Errors
    /// There is none.
    pub fn trace(&self, trace: &str) -> Result<String, String> {
        let shipped = shipped::file(trace).is_some();
        match self {
            Origin::Disk(_) => {
                let path = self.folder().join(trace);
                let beside = path.is_file() || !shipped;
                Ok(if beside { super::trace::on_disk(&path) } else { trace.to_owned() })
            }
            _ if shipped => Ok(trace.to_owned()),
            Origin::Shipped(_) => Err(format!("no trace \"{trace}\" is shipped")),
            Origin::Memory if Path::new(trace).is_absolute() => Ok(trace.to_owned()),
            Origin::Memory => Err(format!(
                "no file \"{trace}\": the scenario has no folder; expected an absolute path"
            )),
        }
    }

    /// The folder that the paths in it count from.
    fn folder(&self) -> &Path {
        match self {
            Origin::Disk(path) => path.parent().unwrap_or(Path::new("")),
            _ => Path::new(""),
        }
    }
}
