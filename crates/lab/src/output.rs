//! Result folders: everything is written beside and renamed into place at the end, so that an
//! error or Ctrl-C leaves no half-written file.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use narrows_foreign::without_path;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::Error;
use crate::lock::Lock;
use crate::provenance::{self, Provenance};
use crate::setup::hex;

/// Files on their way into a folder. Dropped before [`Output::commit`], it leaves nothing.
#[derive(Debug)]
pub struct Output {
    target: PathBuf,
    /// Folders that had to be made, outermost first; removed again if nothing comes into them.
    made: Vec<PathBuf>,
    /// Made with the first file, so that a process killed before leaves nothing.
    staging: Option<TempDir>,
    /// Names of the files of [`Output::create`].
    created: Vec<String>,
    /// Files to be removed.
    stale: Vec<PathBuf>,
    /// What `provenance.json` will say.
    provenance: Option<Provenance>,
    /// Of results: no other process writes them at the same time.
    lock: Option<Lock>,
}

impl Output {
    /// Prepares `target`, so that a folder that cannot be written is reported before a long run.
    ///
    /// # Errors
    /// The folder cannot be made or written.
    pub fn new(target: &Path) -> Result<Output, Error> {
        let missing = target.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists());
        let mut made: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        made.reverse();
        let output = Output {
            target: target.to_owned(),
            made,
            staging: None,
            created: Vec::new(),
            stale: Vec::new(),
            provenance: None,
            lock: None,
        };
        fs::create_dir_all(target).map_err(Error::io(target, "make this folder"))?;
        staging(target)?.close().map_err(Error::io(target, "write in this folder"))?;
        Ok(output)
    }

    /// The same for results, beside which their provenance will stand.
    ///
    /// # Errors
    /// As [`Output::onto`]; the folder holds other results.
    pub fn of(target: &Path, provenance: &Provenance) -> Result<Output, Error> {
        provenance.check(target)?;
        Output::onto(target, provenance)
    }

    /// The same, where the folder may hold a part of these results.
    ///
    /// # Errors
    /// As [`Output::new`]; another process writes results there now.
    pub fn onto(target: &Path, provenance: &Provenance) -> Result<Output, Error> {
        let mut output = Output::new(target)?;
        output.lock = Some(Lock::of(target)?);
        let mut provenance = provenance.clone();
        // Of what stays there.
        provenance.files = Provenance::read(target).map(|there| there.files).unwrap_or_default();
        output.provenance = Some(provenance);
        Ok(output)
    }

    /// The folder the files go to.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Writes a file, `name` relative to the folder.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<(), Error> {
        let path = self.staging()?.join(name);
        let attempt = || {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let file = Summed { file: fs::File::create(&path)?, hash: Sha256::new() };
            let mut file = std::io::BufWriter::new(file);
            write(&mut file)?;
            let file = file.into_inner().map_err(|error| error.into_error())?;
            Ok(hex(&file.hash.finalize()))
        };
        let sum = attempt().map_err(Error::io(&self.target.join(name), "write"))?;
        let comparison = self.provenance.as_mut().filter(|of| of.comparison().is_some());
        if let Some(provenance) = comparison {
            provenance.files.insert(name.into(), sum);
        }
        Ok(())
    }

    /// Opens a new file, `name` in the folder, to be written during a run.
    ///
    /// # Errors
    /// The file cannot be written, or there is one of this name in the output.
    pub fn create(&mut self, name: &str) -> Result<std::io::BufWriter<fs::File>, Error> {
        let file = fs::File::create_new(self.staging()?.join(name));
        let file = file.map_err(Error::io(&self.target.join(name), "write"))?;
        self.created.push(name.into());
        Ok(std::io::BufWriter::new(file))
    }

    /// The names of the files that were opened to be written during a run.
    pub fn created(&self) -> &[String] {
        &self.created
    }

    fn staging(&mut self) -> Result<&Path, Error> {
        let staging = match &mut self.staging {
            Some(staging) => staging,
            none => none.insert(staging(&self.target)?),
        };
        Ok(staging.path())
    }

    /// Removes a file of earlier results, `name` relative to the folder, with the commit.
    pub fn remove(&mut self, name: &str) {
        self.provenance.iter_mut().for_each(|of| drop(of.files.remove(name)));
        self.stale.push(self.target.join(name));
    }

    /// Moves all files into place; files of the same names are replaced, and others stay.
    ///
    /// # Errors
    /// A file cannot be moved.
    pub fn commit(mut self) -> Result<(), Error> {
        self.move_into_place()?;
        // What says that the rest is there comes last.
        if let Some(provenance) = self.provenance.take() {
            let mut text = serde_json::to_vec_pretty(&provenance).unwrap_or_default();
            text.push(b'\n');
            self.write(provenance::NAME, |to| to.write_all(&text))?;
            self.move_into_place()?;
        }
        for path in self.stale.iter().filter(|path| path.exists()) {
            fs::remove_file(path).map_err(Error::io(path, "remove"))?;
        }
        Ok(())
    }
}

impl Output {
    /// Moves what was written so far.
    fn move_into_place(&mut self) -> Result<(), Error> {
        if let Some(staging) = self.staging.take() {
            move_files(staging.path(), &self.target)?;
            self.made.clear();
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.staging = None;
        self.lock = None;
        // Only empty folders can be removed, so nothing of anyone else is lost.
        for folder in self.made.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// A file, and the hash of what was written to it.
struct Summed {
    file: fs::File,
    hash: Sha256,
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// A folder beside the files' places, on the same disk.
fn staging(target: &Path) -> Result<TempDir, Error> {
    let staging = tempfile::Builder::new().prefix(".narrows-").tempdir_in(target);
    staging.map_err(without_path).map_err(Error::io(target, "write in this folder"))
}

fn move_files(from: &Path, to: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(from).map_err(Error::io(from, "read"))? {
        let entry = entry.map_err(Error::io(from, "read"))?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir_all(&target).map_err(Error::io(&target, "make this folder"))?;
            move_files(&entry.path(), &target)?;
        } else {
            fs::rename(entry.path(), &target).map_err(Error::io(&target, "write"))?;
        }
    }
    Ok(())
}

/// A value as JSON for files and people.
pub fn json(value: &impl serde::Serialize) -> String {
    // Only maps with keys other than strings fail, and results have none.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> =
            entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_appear_all_at_once_or_not_at_all() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("a/b");
        let mut output = Output::new(&target).unwrap();
        output.write("runs/one.json", |to| to.write_all(b"1")).unwrap();
        assert!(!target.join("runs").exists());
        drop(output);
        assert!(files(home.path()).is_empty(), "an abandoned output leaves nothing");

        let mut output = Output::new(&target).unwrap();
        output.write("runs/one.json", |to| to.write_all(b"1")).unwrap();
        output.commit().unwrap();
        assert_eq!(files(&target), ["runs"]);

        // A later run replaces its own files and leaves the others alone.
        let mut output = Output::new(&target).unwrap();
        output.write("runs/one.json", |to| to.write_all(b"2")).unwrap();
        output.write("runs/two.json", |to| to.write_all(b"2")).unwrap();
        output.commit().unwrap();
        assert_eq!(files(&target.join("runs")), ["one.json", "two.json"]);
        assert_eq!(fs::read(target.join("runs/one.json")).unwrap(), b"2");
    }

    #[test]
    fn what_says_that_results_are_there_comes_last() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("out");
        let provenance = Provenance::new("compare", "all".into(), false, None, &[]);
        let mut output = Output::of(&target, &provenance).unwrap();
        output.write("runs/one.json", |to| to.write_all(b"1")).unwrap();
        // Something that cannot be replaced stops the files on their way.
        fs::create_dir_all(target.join("runs/one.json/full")).unwrap();
        output.commit().unwrap_err();
        assert!(!target.join(provenance::NAME).exists());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_reported_at_once() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Output::new(&file.join("out")).unwrap_err().to_string();
        assert!(error.contains("file/out: cannot make this folder"), "{error}");
        assert_eq!(files(home.path()), ["file"]);
    }
}
