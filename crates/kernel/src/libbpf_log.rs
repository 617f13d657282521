//! Captures libbpf's log, including the verifier's, for the error instead of printing it.

use crate::Error;
use libbpf_rs::{Object, OpenObject, PrintLevel, set_print};
use narrows_foreign::harmless;
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Once;

thread_local! {
    /// The log of this thread's call so far; none: it is not captured.
    static LOG: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work`; returns its result and libbpf's log.
pub(crate) fn capture<T>(work: impl FnOnce() -> T) -> (T, String) {
    static PRINT: Once = Once::new();
    PRINT.call_once(|| {
        set_print(Some((PrintLevel::Warn, append)));
    });
    LOG.set(Some(String::new()));
    let done = work();
    (done, LOG.take().unwrap_or_default())
}

/// Loads an object, whose name in an error is `name`.
///
/// # Errors
/// The verifier, or libbpf, rejects it: with the end of the log, and a file with the full log.
pub(crate) fn load(name: &str, open: OpenObject) -> Result<Object, Error> {
    let (loaded, log) = capture(|| open.load());
    loaded.map_err(|source| match log.is_empty() {
        true => Error::bpf(name, "load")(source),
        false => {
            Error::Refused { name: name.to_owned(), last: last_lines(&log), log: keep(name, &log) }
        }
    })
}

/// libbpf calls back on the thread that called it.
fn append(_: PrintLevel, text: String) {
    LOG.with_borrow_mut(|log| match log {
        Some(log) => log.push_str(&text),
        None => eprint!("{}", harmless(&text)),
    });
}

/// The end of a verifier's log in one line, or else libbpf's first complaint.
fn last_lines(log: &str) -> String {
    let Some((_, log)) = log.split_once("-- BEGIN PROG LOAD LOG --") else {
        let first = log.lines().next().unwrap_or("no reason was given");
        return first.trim_start_matches("libbpf: ").to_owned();
    };
    let log = log.split("-- END PROG LOAD LOG --").next().unwrap_or_default();
    let reason = |line: &&str| {
        // Statistics, and the source line that stands before what is wrong with it.
        !line.is_empty() && !line.starts_with("processed ") && !line.starts_with(';')
    };
    let lines: Vec<&str> = log.lines().map(str::trim).filter(reason).collect();
    lines[lines.len().saturating_sub(2)..].join("; ")
}

/// Writes the whole log to a new file in the temporary folder.
fn keep(name: &str, log: &str) -> Option<PathBuf> {
    let path =
        std::env::temp_dir().join(format!("narrows-{name}-verifier-{}.log", std::process::id()));
    // Always a new file, never an existing one.
    let mut file = File::create_new(&path).ok()?;
    file.write_all(log.as_bytes()).ok()?;
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifiers_log_ends_in_the_reason() {
        let log = "libbpf: prog 'nr_init': BPF program load failed: -EACCES\n\
            libbpf: prog 'nr_init': -- BEGIN PROG LOAD LOG --\n\
            0: R1=ctx() R10=fp0\n; int x = *p; @ control.bpf.c:12\n\
            1: (61) r0 = *(u32 *)(r2 +0)\nR2 !read_ok\n\
            processed 2 insns (limit 1000000)\n-- END PROG LOAD LOG --\n\
            libbpf: failed to load object 'narrows'\n";
        assert_eq!(last_lines(log), "1: (61) r0 = *(u32 *)(r2 +0); R2 !read_ok");
        let log = "libbpf: extern (func ksym) 'x': not found in kernel BTFs\nlibbpf: failed\n";
        assert_eq!(last_lines(log), "extern (func ksym) 'x': not found in kernel BTFs");
    }
}
