//! What libbpf says while it works, the verifier's log among it: kept for the error instead of
//! printed.

use libbpf_rs::{PrintLevel, set_print};
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Once;

thread_local! {
    /// What this thread's call has heard so far; none: nobody listens.
    static HEARD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Does `work`, and returns with its result what libbpf said on the way.
pub(crate) fn listen<T>(work: impl FnOnce() -> T) -> (T, String) {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        set_print(Some((PrintLevel::Warn, hear)));
    });
    HEARD.set(Some(String::new()));
    let done = work();
    (done, HEARD.take().unwrap_or_default())
}

/// libbpf calls back on the thread that called it.
fn hear(_: PrintLevel, words: String) {
    HEARD.with_borrow_mut(|heard| match heard {
        Some(heard) => heard.push_str(&words),
        None => eprint!("{words}"),
    });
}

/// The end of a verifier's log in one line, or else libbpf's first complaint.
pub(crate) fn last_lines(said: &str) -> String {
    let Some((_, log)) = said.split_once("-- BEGIN PROG LOAD LOG --") else {
        let first = said.lines().next().unwrap_or("no reason was given");
        return first.trim_start_matches("libbpf: ").to_owned();
    };
    let log = log.split("-- END PROG LOAD LOG --").next().unwrap_or_default();
    let told = |line: &&str| {
        // Statistics, and the source line that stands before what is wrong with it.
        !line.is_empty() && !line.starts_with("processed ") && !line.starts_with(';')
    };
    let lines: Vec<&str> = log.lines().map(str::trim).filter(told).collect();
    lines[lines.len().saturating_sub(2)..].join("; ")
}

/// Writes all that was said to a new file in the temporary folder.
pub(crate) fn keep(name: &str, said: &str) -> Option<PathBuf> {
    let path =
        std::env::temp_dir().join(format!("narrows-{name}-verifier-{}.log", std::process::id()));
    // A new file, never one that somebody else put there.
    let mut file = File::create_new(&path).ok()?;
    file.write_all(said.as_bytes()).ok()?;
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifiers_log_ends_in_the_reason() {
        let said = "libbpf: prog 'nr_init': BPF program load failed: -EACCES\n\
            libbpf: prog 'nr_init': -- BEGIN PROG LOAD LOG --\n\
            0: R1=ctx() R10=fp0\n; int x = *p; @ control.bpf.c:12\n\
            1: (61) r0 = *(u32 *)(r2 +0)\nR2 !read_ok\n\
            processed 2 insns (limit 1000000)\n-- END PROG LOAD LOG --\n\
            libbpf: failed to load object 'narrows'\n";
        assert_eq!(last_lines(said), "1: (61) r0 = *(u32 *)(r2 +0); R2 !read_ok");
        let said = "libbpf: extern (func ksym) 'x': not found in kernel BTFs\nlibbpf: failed\n";
        assert_eq!(last_lines(said), "extern (func ksym) 'x': not found in kernel BTFs");
    }
}
