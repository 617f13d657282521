//! A file that appears when it is finished.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use narrows_foreign::without_path;
use tempfile::NamedTempFile;

use crate::Error;

/// Where it will be.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    folder: PathBuf,
    extension: String,
}

impl File {
    /// A plot, SVG or PNG by its name.
    ///
    /// # Errors
    /// Those of [`File::new`].
    pub fn plot(path: &Path) -> Result<File, Error> {
        File::new(path, &["svg", "png"])
    }

    /// A page, HTML by its name.
    ///
    /// # Errors
    /// Those of [`File::new`].
    pub fn page(path: &Path) -> Result<File, Error> {
        File::new(path, &["html", "htm"])
    }

    /// At `path`, whose name ends with one of `extensions`.
    ///
    /// # Errors
    /// It has another name, is a folder, or its folder cannot be written.
    pub fn new(path: &Path, extensions: &[&str]) -> Result<File, Error> {
        let name = path.display().to_string();
        let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
        let extension = extension.as_ref().and_then(|extension| extension.to_str());
        let Some(extension) = extension.filter(|extension| extensions.contains(extension)) else {
            let message = format!("expected a name that ends with .{}", extensions.join(" or ."));
            return Err(Error::input(&name, message));
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        // Better reported now than after a long time. It is gone at once, so that Ctrl-C leaves nothing.
        temporary(&folder).map_err(Error::io(&name, "write"))?;
        if path.exists() && !path.is_file() {
            let what = if path.is_dir() { "a folder" } else { "something else" };
            return Err(Error::input(&name, format!("expected a file, found {what}")));
        }
        Ok(File { path: path.to_owned(), folder, extension: extension.to_owned() })
    }

    /// How its name ends.
    pub fn extension(&self) -> &str {
        &self.extension
    }

    /// Its name, for messages.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Writes it and puts it in its place.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        let attempt = || {
            let mut file = temporary(&self.folder)?;
            file.write_all(bytes)?;
            readable(&file.persist(&self.path)?)
        };
        attempt().map_err(Error::io(&self.name(), "write"))
    }
}

/// A file that is gone if it is not kept.
fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    NamedTempFile::new_in(folder).map_err(without_path)
}

/// Temporary files are for their owner alone; results are not.
#[cfg(unix)]
fn readable(file: &std::fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable(_: &std::fs::File) -> io::Result<()> {
    Ok(())
}
