//! A user's law, `mine.h`, compiled and loaded at run time: [`Law::USER`].
//!
//! The header is compiled like those of this crate ([`SOURCES`]) and checked before its code runs.
//! Nothing stays on disk: the code is kept in memory, accessible to child processes
//! ([`UserLaw::fd`]). A process has at most one such law, and never unloads it.

use crate::catalogue::{self, NAMES};
use crate::control::{Control, Detector, Law, SlowStart};
use crate::params;
use crate::raw::{self, Module};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::SigSet;
use sha2::{Digest, Sha256};
use std::ffi::{CStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// The C sources of this crate by name: the headers that a law may include, and module.c.
pub static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/headers.rs"));

/// Largest header, bytes.
const MAX_HEADER: u64 = 1 << 20;

/// Tried in this order unless `CC` is set.
const COMPILERS: [&str; 3] = ["cc", "gcc", "clang"];

/// Keys of scenario files, beside which a law's parameters stand, and what begins names of functions
/// in the headers.
const SCENARIO: [&str; 22] = [
    "name",
    "title",
    "source",
    "warmup",
    "duration",
    "jitter",
    "test",
    "era",
    "tcp",
    "detection",
    "base",
    "generator",
    "links",
    "routes",
    "flows",
    "background",
    "rivals",
    "phases",
    "events",
    "paper",
    "set",
    "start",
];

static USER: OnceLock<UserLaw> = OnceLock::new();

/// Run-time checks compiled into the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checks {
    /// Nothing.
    None,
    /// Undefined behaviour stops the process (UBSan).
    Undefined,
}

/// Why a header cannot be loaded as a law: one line, followed by the compiler's messages if any.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {message}")]
#[non_exhaustive]
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
    /// What `sha256` is of; empty where another process has compiled it.
    files: Vec<PathBuf>,
}

/// The law loaded by [`load`] or [`adopt`].
pub fn loaded() -> Option<&'static UserLaw> {
    USER.get()
}

/// What commands that load `control` call it: a user's law by its header.
pub fn argument(control: Control) -> String {
    match loaded() {
        Some(law) if control.law == Law::USER => law.header.display().to_string(),
        _ => control.to_string(),
    }
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

    /// Are its files still those that were compiled? False after [`adopt`], which does not know them.
    pub fn is_unchanged(&self) -> bool {
        sha256(&self.files).is_ok_and(|now| now == self.sha256)
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
    // The compiler's messages alone are several lines, whatever the file is called.
    let one_line = |text: &str| text.replace('\n', "\\n");
    let place = one_line(&header.display().to_string());
    let error = |message: String| LoadError { place: place.clone(), message };
    let name = name_of(header).map_err(|message| error(one_line(&message)))?;
    let folder = Folder::new().map_err(|e| error(format!("no temporary folder: {e}")))?;
    let absolute = fs::canonicalize(header).map_err(|e| error(format!("cannot read: {e}")))?;
    if absolute.to_string_lossy().contains(['"', '\\', '\n']) {
        let absolute = absolute.display();
        return Err(error(format!(
            "{absolute:?}: C cannot include a path with \", \\ or a newline"
        )));
    }
    let (object, files) = compile(&absolute, &name, folder.path(), checks)
        .map_err(|message| error(message.replace(&*absolute.to_string_lossy(), &place)))?;
    let code = in_memory(&object).map_err(|e| error(format!("cannot keep its code: {e}")))?;
    let sha256 = sha256(&files).map_err(|e| error(format!("cannot read {e}")))?;
    register(UserLaw { code, name, header: absolute, sha256, files }).map_err(error)
}

/// Loads the law whose code is open as `fd`, from a process that loaded it from `header`.
///
/// # Errors
/// It is no law.
///
/// # Safety
/// `fd` is open and owned by the caller.
pub unsafe fn adopt(fd: RawFd, name: &str, header: &Path, sha256: &str) -> Result<Law, LoadError> {
    let error = |message: String| LoadError { place: header.display().to_string(), message };
    // SAFETY: guaranteed by the caller.
    let code = unsafe { OwnedFd::from_raw_fd(fd) };
    let (name, header, sha256) = (name.to_owned(), header.to_owned(), sha256.to_owned());
    register(UserLaw { code, name, header, sha256, files: Vec::new() }).map_err(error)
}

/// The name of the law in `header`, after checks of its text.
fn name_of(header: &Path) -> Result<String, String> {
    let regular = || {
        let of = fs::metadata(header)?; // before it is opened: a pipe would wait for its writer
        if !of.is_file() || of.len() > MAX_HEADER {
            return Err(std::io::Error::other("not a file, or larger than 1 MiB"));
        }
        fs::read(header)
    };
    let text = match regular() {
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
    let aliases = NAMES.iter().map(|named| named.name);
    let groups = ["decision", "window"]; // of parameters
    if SCENARIO.contains(&name) || SOURCES.iter().any(|(file, _)| *file == format!("{name}.h")) {
        return Err(format!(
            "'{name}' is a word of scenario files or a header of narrows; expected another name for the file and its \
             table"
        ));
    }
    if taken.any(|known| known == name)
        || parts.chain(aliases).chain(groups).any(|known| known == name)
    {
        return Err(format!(
            "the name '{name}' is taken; expected another for the file and its table"
        ));
    }
    Ok(())
}

/// Compiles to a shared object in `folder`; returns its path and the user's files.
fn compile(
    header: &Path,
    name: &str,
    folder: &Path,
    checks: Checks,
) -> Result<(PathBuf, Vec<PathBuf>), String> {
    write_sources(SOURCES, folder).map_err(|error| format!("cannot write the sources: {error}"))?;
    let (object, depends) = (folder.join("law.so"), folder.join("law.d"));
    let mut arguments: Vec<OsString> = [
        "-shared",
        "-fPIC",
        "-O2",
        "-std=c11",
        "-ffreestanding",
        // No fractions of the machine's, no functions but its own.
        "-mgeneral-regs-only",
        "-Wl,-z,defs",
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
    let depends = fs::read_to_string(&depends)
        .map_err(|error| format!("cannot read what it includes: {error}"))?;
    let mut files = prerequisites(&depends);
    files.retain(|file| !file.starts_with(folder));
    Ok((object, files))
}

fn sha256(files: &[PathBuf]) -> Result<String, String> {
    let mut hash = Sha256::new();
    for file in files {
        let text = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        hash.update(text);
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The files that a rule written by `-MMD` names, with make's escapes undone.
fn prerequisites(rule: &str) -> Vec<PathBuf> {
    let rule = rule.replace("\\\n", " ").replace("\\ ", "\0");
    let words = rule.split_ascii_whitespace().skip(1);
    words
        .map(|word| word.replace('\0', " ").replace("\\#", "#").replace("$$", "$").into())
        .collect()
}

/// The macros that select the law in `module.c` and in the BPF programs.
pub fn defines(header: &Path, name: &str) -> [String; 3] {
    [
        format!("-DNR_LAW_HEADER=\"{}\"", header.display()),
        format!("-DNR_THIS={name}"),
        format!("-DNR_NUMBER={}", Law::USER.number()),
    ]
}

/// A temporary folder to compile in. It is removed when dropped; signals that end this process wait
/// until then. What the process runs meanwhile does not wait.
pub struct Folder {
    folder: Option<TempDir>,
    before: SigSet,
}

impl Folder {
    /// An empty folder.
    ///
    /// # Errors
    /// The file system's.
    pub fn new() -> std::io::Result<Folder> {
        use nix::sys::signal::Signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
        let before = SigSet::thread_get_mask()?;
        SigSet::from_iter([SIGHUP, SIGINT, SIGQUIT, SIGTERM]).thread_block()?;
        // From here on, dropping it lets signals through again.
        let mut made = Folder { folder: None, before };
        made.folder = Some(tempfile::tempdir()?);
        Ok(made)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.as_ref().expect("made by new").path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(self.folder.take());
        let _ = self.before.thread_set_mask();
    }
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

fn register(law: UserLaw) -> Result<Law, String> {
    let name = &law.name;
    let path = format!("/proc/self/fd/{}", law.fd());
    // SAFETY: compiled above from C without constructors.
    let library = unsafe { libloading::Library::new(path) }.map_err(|e| e.to_string())?;
    let symbol = format!("narrows_law_{name}");
    // SAFETY: module.c defines the symbol as a module.
    let module = unsafe { library.get::<*const Module>(symbol.as_bytes()) };
    let module: *const Module = *module.map_err(|e| e.to_string())?;
    // SAFETY: a constant of the library, which is loaded.
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
    if crate::control::text(table.name) != name.as_str() {
        return Err(format!("its table has another .name, expected \"{name}\""));
    }
    let room = table.room();
    if table.state > room || table.params as usize > raw::LAW_PARAMS {
        return Err(format!(
            "{} bytes of state and {} parameters, expected at most {room} and {}",
            table.state,
            table.params,
            raw::LAW_PARAMS
        ));
    }
    if table.kind > 1 || (table.kind == 1) == table.event.is_null() {
        return Err("expected .kind = NR_WINDOW, or NR_MODEL with .event".into());
    }
    if table.param.is_null() != (table.params == 0) {
        return Err("expected both .param and .params, or none; NR_TAKES() sets them".into());
    }
    let params = params::rows(table.param, table.params);
    let of_params = params.iter().flat_map(|row| [row.name, row.about, row.source]);
    let texts = [table.name, table.code, table.about, table.source].into_iter().chain(of_params);
    // SAFETY: string constants of the library, which is loaded.
    if !texts.into_iter().all(|text| unsafe { CStr::from_ptr(text) }.to_bytes().is_ascii()) {
        return Err("expected ASCII in the strings of its table and parameters".into());
    }
    if let Some(fault) = params.iter().find_map(|row| params::fault(row)) {
        return Err(fault);
    }
    if SlowStart::from_number(table.start).is_none() {
        return Err(format!("no slow start has the number {}", table.start));
    }
    let (own, code) = (Control::in_table(Law::USER, table), crate::control::text(table.code));
    if let Some(why) = catalogue::unfit_kernel_name(Some((own, code))) {
        return Err(format!("its .code \"{code}\": {why}"));
    }
    // Its code may run until the process ends; one that was refused gives way to the next.
    std::mem::forget(library);
    let twice = "this process already has a user's law";
    raw::USER.set(module).map_err(|_| twice.to_owned())?;
    USER.set(law).map_err(|_| twice.to_owned())?;
    Ok(Law::USER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_rule_have_their_own_names() {
        let rule = "law.o: /tmp/a/module.c \\\n /home/My\\ Laws/mine.h /x/a$$b\\#c.h\n";
        let files = prerequisites(rule);
        let expected = ["/tmp/a/module.c", "/home/My Laws/mine.h", "/x/a$b#c.h"];
        assert_eq!(files, expected.map(PathBuf::from));
    }
}
