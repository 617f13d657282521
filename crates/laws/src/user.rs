//! A user's law, `mine.h`, compiled and loaded at run time: [`Law::USER`].
//!
//! The header is compiled like those of this crate ([`SOURCES`]) and checked before its code runs.
//! Nothing stays on disk: the code is kept in memory, accessible to child processes
//! ([`UserLaw::fd`]). A process has at most one such law, and never unloads it.

use crate::catalogue::{self, ALIASES};
use crate::control::{Detector, Law, SlowStart};
use crate::raw::{self, Module};
use nix::sys::memfd::{MFdFlags, memfd_create};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The C sources of this crate by name: the headers that a law may include, and module.c.
pub const SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/headers.rs"));

/// Tried in this order unless `CC` is set.
const COMPILERS: [&str; 3] = ["cc", "gcc", "clang"];

static USER: OnceLock<UserLaw> = OnceLock::new();

/// Run-time checks compiled into the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checks {
    /// Nothing.
    None,
    /// Undefined behaviour stops the process (UBSan).
    Undefined,
}

/// Why a header cannot be loaded as a law: one line, followed by the compiler's messages if any.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {message}")]
pub struct LoadError {
    place: String,
    message: String,
}

/// The user's law of this process.
#[derive(Debug)]
pub struct UserLaw {
    code: OwnedFd,
    name: String,
    header: PathBuf,
    sha256: String,
}

/// The law loaded by [`load`] or [`adopt`].
pub fn loaded() -> Option<&'static UserLaw> {
    USER.get()
}

impl UserLaw {
    /// Its name: the file stem of its header.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its header, an absolute path.
    pub fn header(&self) -> &Path {
        &self.header
    }

    /// SHA-256 of the header and of the user's files that it includes: the version of the law.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The compiled code, open in this process and its children; see [`adopt`].
    pub fn fd(&self) -> RawFd {
        self.code.as_raw_fd()
    }
}

/// Compiles the law in `header` and loads it as [`Law::USER`].
///
/// # Errors
/// The file cannot be read, has no table or two, its name is invalid or taken, there is no compiler,
/// it does not compile, the table is invalid.
pub fn load(header: &Path, checks: Checks) -> Result<Law, LoadError> {
    let place = header.display().to_string();
    let error = |message: String| LoadError { place: place.clone(), message };
    let name = name_of(header).map_err(error)?;
    let folder = tempfile::tempdir().map_err(|e| error(format!("no temporary folder: {e}")))?;
    let absolute = fs::canonicalize(header).map_err(|e| error(format!("cannot read: {e}")))?;
    let (object, sha256) = compile(&absolute, &name, folder.path(), checks)
        .map_err(|message| error(message.replace(&*absolute.to_string_lossy(), &place)))?;
    let code = in_memory(&object).map_err(|e| error(format!("cannot keep its code: {e}")))?;
    register(code, name, absolute, sha256).map_err(error)
}

/// Loads the law whose code is open as `fd`, from a process that loaded it from `header`.
///
/// # Errors
/// It is no law.
///
/// # Safety
/// `fd` is open and owned by the caller.
pub unsafe fn adopt(fd: RawFd, header: &Path, sha256: &str) -> Result<Law, LoadError> {
    let error = |message: String| LoadError { place: header.display().to_string(), message };
    // SAFETY: guaranteed by the caller.
    let code = unsafe { OwnedFd::from_raw_fd(fd) };
    let name = name_of(header).map_err(error)?;
    register(code, name, header.to_owned(), sha256.to_owned()).map_err(error)
}

/// The name of the law in `header`, after checks of its text.
fn name_of(header: &Path) -> Result<String, String> {
    let text = match fs::read(header) {
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err("no such file; `narrows law new FILE` writes a template".into());
        }
        Err(error) => return Err(format!("cannot read: {error}")),
    };
    let name = header.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if header.extension().is_none_or(|extension| extension != "h") {
        return Err("not a law, expected a C header NAME.h".into());
    }
    check_name(&name)?;
    let tables: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .filter_map(|(line, text)| Some((line + 1, text.strip_prefix("NR_LAW(")?)))
        .collect();
    match tables[..] {
        [] => Err(format!("not a law, expected a table NR_LAW({name}) = {{ ... }};")),
        [(line, of)] => match of.split_once(')') {
            Some((of, _)) if of == name => Ok(name),
            _ => Err(format!("line {line}: expected NR_LAW({name}), as the file is called")),
        },
        [(first, _), (second, _), ..] => {
            Err(format!("two tables, in lines {first} and {second}; expected one NR_LAW({name})"))
        }
    }
}

/// Checks the name of a user's law.
///
/// # Errors
/// Why not, in one line.
pub fn check_name(name: &str) -> Result<(), String> {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if !name.bytes().all(word) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Err(format!(
            "'{name}' is not a name for a law; expected lower case letters, digits and _ before .h"
        ));
    }
    let mut taken = Law::all().filter(|law| *law != Law::USER).map(Law::name);
    let parts = Detector::all().map(Detector::name).chain(SlowStart::all().map(SlowStart::name));
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    let groups = ["decision", "window"]; // of parameters
    if taken.any(|known| known == name)
        || parts.chain(aliases).chain(groups).any(|known| known == name)
    {
        return Err(format!("the name '{name}' is taken; rename the file and its table"));
    }
    Ok(())
}

/// Compiles to a shared object in `folder`; returns its path and the hash of the user's files.
fn compile(
    header: &Path,
    name: &str,
    folder: &Path,
    checks: Checks,
) -> Result<(PathBuf, String), String> {
    write_sources(SOURCES, folder).map_err(|error| format!("cannot write the sources: {error}"))?;
    let (object, depends) = (folder.join("law.so"), folder.join("law.d"));
    let mut arguments: Vec<OsString> = [
        "-shared",
        "-fPIC",
        "-O2",
        "-std=c11",
        "-ffreestanding",
        "-fno-strict-aliasing",
        "-Wall",
        "-Wextra",
        "-Werror",
        // Hooks have one signature; most do not use all arguments.
        "-Wno-unused-parameter",
        "-MMD",
        "-MF",
    ]
    .map(OsString::from)
    .into();
    arguments.push(depends.clone().into());
    if checks == Checks::Undefined {
        arguments.push("-fsanitize=undefined".into());
        arguments.push("-fsanitize-undefined-trap-on-error".into());
    }
    arguments.extend(defines(header, name).map(OsString::from));
    arguments.extend(["-I".into(), folder.into(), folder.join("module.c").into()]);
    arguments.extend(["-o".into(), object.clone().into()]);
    let output = compiler(&arguments)?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        // Lines about inclusion of the header do not help its author.
        let included = |line: &&str| {
            line.starts_with("In file included from") || line.starts_with("                 from")
        };
        let stderr: Vec<&str> = stderr.trim_end().lines().filter(|line| !included(line)).collect();
        return Err(format!("does not compile\n{}", stderr.join("\n")));
    }
    let depends = fs::read_to_string(&depends).unwrap_or_default();
    let mut hash = Sha256::new();
    let own = depends.replace("\\\n", " ");
    let own = own.split_whitespace().skip(1).map(Path::new);
    for file in own.filter(|file| !file.starts_with(folder)) {
        hash.update(fs::read(file).unwrap_or_default());
    }
    let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((object, sha256))
}

/// The macros that select the law in `module.c` and in the BPF programs.
pub fn defines(header: &Path, name: &str) -> [String; 3] {
    [
        format!("-DNR_LAW_HEADER=\"{}\"", header.display()),
        format!("-DNR_THIS={name}"),
        format!("-DNR_NUMBER={}", Law::USER.number()),
    ]
}

/// Writes sources by name into `folder`.
///
/// # Errors
/// The file system's.
pub fn write_sources(sources: &[(&str, &str)], folder: &Path) -> std::io::Result<()> {
    for (name, text) in sources {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("it is in the folder"))?;
        fs::write(path, text)?;
    }
    Ok(())
}

fn compiler(arguments: &[OsString]) -> Result<std::process::Output, String> {
    let named = std::env::var_os("CC").map(|cc| vec![cc]);
    let tried = named.unwrap_or_else(|| COMPILERS.map(OsString::from).into());
    for cc in &tried {
        match Command::new(cc).args(arguments).output() {
            Ok(output) => return Ok(output),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{}: {error}", cc.to_string_lossy())),
        }
    }
    let tried: Vec<_> = tried.iter().map(|cc| cc.to_string_lossy()).collect();
    Err(format!("no C compiler ({}); install gcc or clang, or name one in CC", tried.join(", ")))
}

/// The file's content in memory, inherited by child processes.
fn in_memory(path: &Path) -> std::io::Result<OwnedFd> {
    let fd = memfd_create(c"law", MFdFlags::empty())?;
    let mut file = File::from(fd);
    file.write_all(&fs::read(path)?)?;
    Ok(file.into())
}

fn register(code: OwnedFd, name: String, header: PathBuf, sha256: String) -> Result<Law, String> {
    let path = format!("/proc/self/fd/{}", code.as_raw_fd());
    // SAFETY: compiled above from C without constructors.
    let library = unsafe { libloading::Library::new(path) }.map_err(|e| e.to_string())?;
    let symbol = format!("narrows_law_{name}");
    // SAFETY: module.c defines the symbol as a module.
    let module = unsafe { library.get::<*const Module>(symbol.as_bytes()) };
    let module: *const Module = *module.map_err(|e| e.to_string())?;
    // Its code may run until the process ends.
    std::mem::forget(library);
    // SAFETY: a constant of the library, which stays loaded.
    let module = unsafe { &*module };
    if module.version != raw::VERSION {
        let version = module.version;
        return Err(format!("version {version}, expected {}", raw::VERSION));
    }
    // SAFETY: as above.
    let table = unsafe { &*module.law };
    if [table.name, table.code, table.about, table.source].iter().any(|text| text.is_null()) {
        return Err("its table lacks one of .name, .code, .about and .source".into());
    }
    if crate::control::text(table.name) != name {
        return Err(format!("its table has another .name, expected \"{name}\""));
    }
    let room = 8 * raw::LAW_WORDS as u32;
    if table.state > room || table.params as usize > raw::LAW_PARAMS {
        return Err(format!(
            "{} bytes of state and {} parameters, expected at most {room} and {}",
            table.state,
            table.params,
            raw::LAW_PARAMS
        ));
    }
    if SlowStart::from_number(table.start).is_none() {
        return Err(format!("no slow start has the number {}", table.start));
    }
    let twice = "this process already has a user's law";
    raw::USER.set(module).map_err(|_| twice.to_owned())?;
    USER.set(UserLaw { code, name, header, sha256 }).map_err(|_| twice.to_owned())?;
    catalogue::unfit_kernel_name().map_or(Ok(Law::USER), Err)
}
