//! Results as pages for a browser: `--report`.

mod compare;
mod run;

use std::path::Path;

use narrows_report::Table;

use crate::Error;
use crate::output::Output;
use crate::provenance::Provenance;
use crate::table::Lines;

pub use compare::compare;
pub use narrows_report::{Fact, Page};
pub use run::{run, shown};

/// The file of a page, which appears when it is finished.
#[derive(Debug)]
pub struct PageFile {
    output: Output,
    name: String,
}

impl PageFile {
    /// Prepares `path`, so that a file that cannot be written is reported before a long run.
    ///
    /// # Errors
    /// The name is not that of a page, something else than a file has it, or its folder cannot be written.
    pub fn new(path: &Path) -> Result<PageFile, Error> {
        let place = path.display().to_string();
        let named = |name: &&str| name.ends_with(".html") || name.ends_with(".htm");
        let name = path.file_name().and_then(|name| name.to_str()).filter(named);
        let Some(name) = name else {
            return Err(Error::input(place, "expected a name that ends with .html"));
        };
        if path.exists() && !path.is_file() {
            return Err(Error::input(place, "expected a file, found something else of this name"));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Ok(PageFile { output: Output::new(folder.unwrap_or(Path::new(".")))?, name: name.into() })
    }

    /// Writes the page.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(mut self, page: &Page) -> Result<(), Error> {
        self.output.write(&self.name, |to| to.write_all(page.html().as_bytes()))?;
        self.output.commit()
    }
}

/// What made results, as all pages tell it, after `more`.
pub fn facts(provenance: &Provenance, more: Vec<(&str, String)>) -> Vec<Fact> {
    let Provenance { version, commit, kernel, .. } = provenance;
    let commit = commit.as_ref().map(|commit| format!(", commit {commit:.12}"));
    let version = format!("narrows {version}{}", commit.unwrap_or_default());
    let kernel = kernel.as_ref().map(|kernel| ("kernel", format!("Linux {kernel}")));
    let facts = more.into_iter().chain([("version", version)]).chain(kernel);
    facts.map(|(name, value)| Fact { name: name.into(), value }).collect()
}

/// A table as a page has it.
fn table(title: &str, about: &str, Lines { heads, left, lines }: Lines) -> Table {
    Table { title: title.into(), about: about.into(), heads, left, lines }
}
