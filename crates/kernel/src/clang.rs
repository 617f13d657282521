//! Compiles BPF objects: at build time the laws of this program, at run time a user's law. build.rs
//! includes this file, too.

use std::path::Path;
use std::process::Command;

/// Tried in this order unless `CLANG` is set; scripts/setup reads both.
const CLANGS: [&str; 4] = ["clang-19", "clang-20", "clang-21", "clang"];
/// The unversioned clang is of Debian 12 or Ubuntu 24.04, too: 14 to 18 crash on the laws.
const OLDEST: u32 = 19;
/// What is said without one.
pub const MISSING: &str = "no clang 19 or newer found; install clang-19, or set CLANG";

/// The objects of a law: name, source, macro.
pub const KINDS: [(&str, &str, Option<&str>); 3] = [
    ("control", "control", Some("-DNR_STATIC_DETECTORS")),
    ("detect", "control", None),
    ("replay", "replay", None),
];

/// The compiler that `CLANG` names, or the first that is there.
pub fn find() -> Option<String> {
    if let Ok(named) = std::env::var("CLANG") {
        return Some(named);
    }
    let fits = |name: &&str| {
        let output = Command::new(name).arg("--version").output();
        let version =
            output.ok().and_then(|output| version(&String::from_utf8_lossy(&output.stdout)));
        version.is_some_and(|version| version >= OLDEST)
    };
    CLANGS.iter().copied().find(fits).map(str::to_owned)
}

/// The first number of a version: `Debian clang version 19.1.7 (3~deb12u1)`.
fn version(said: &str) -> Option<u32> {
    let (_, version) = said.split_once("clang version ")?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Compiles `source` to `object` for a machine of `arch`, as Rust calls it; `laws` and `libbpf` are
/// the folders of their headers.
pub fn command(
    clang: &str,
    arch: &str,
    [laws, libbpf]: [&Path; 2],
    source: &Path,
    object: &Path,
    defines: &[String],
) -> Command {
    // As the kernel calls it.
    let target = match arch {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => other,
    };
    let mut command = Command::new(clang);
    command
        .args(["-target", "bpf", "-mcpu=v3", "-std=gnu11", "-O2", "-g", "-fno-strict-aliasing"])
        // The kernel fixes the parameters of programs, a constant law leaves some unused.
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        // BPF_PROG's own; which register a program's arguments come in.
        .arg(format!("-D__TARGET_ARCH_{target}"))
        .args(defines)
        .arg("-I")
        .arg(laws)
        // libbpf's own headers, of the version that loads the object.
        .arg("-isystem")
        .arg(libbpf)
        // <linux/bpf.h> wants <asm/types.h>, which -target bpf does not look for: that of the machine that
        // compiles, where there is none of `arch`. Both have the kernel's generic types.
        .arg(format!("-idirafter/usr/include/{arch}-linux-gnu"))
        .arg(format!("-idirafter/usr/include/{}-linux-gnu", std::env::consts::ARCH))
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object);
    command
}

/// Takes the DWARF out of an object, which nothing reads and is a third of it; BTF stays. By the
/// llvm-strip of `clang`'s version, where it is installed.
#[allow(dead_code)] // at run time
pub fn strip(clang: &str, object: &Path) {
    let _ = Command::new(clang.replace("clang", "llvm-strip")).arg("-g").arg(object).status();
}

/// Macros for a control and its replay: the name, the default constants for other loaders, and the
/// kind of its law.
pub fn defines(control: narrows_laws::Control) -> Vec<String> {
    let params = narrows_laws::Params::default();
    let list = |words: &[u32]| words.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let mut defines = vec![
        format!("-DNR_THIS_NAME=\"{}\"", narrows_laws::catalogue::kernel_name(control)),
        format!("-DNR_THIS_DETECTOR={}", control.detector.number()),
        format!("-DNR_THIS_START={}", control.start()),
        format!("-DNR_THIS_WINDOW={}", list(&params.of_window())),
        format!("-DNR_THIS_PARAMS={}", list(&params.of_law(control.law))),
        format!("-DNR_THIS_JOIN={}", list(&params.of_join(control.join))),
    ];
    if control.law.is_model() {
        defines.push("-DNR_THIS_MODEL".to_owned());
    }
    defines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clang_is_told_by_what_it_says() {
        assert_eq!(version("Debian clang version 19.1.7 (3~deb12u1)\nTarget: x86"), Some(19));
        assert_eq!(version("Ubuntu clang version 18.1.3 (1)\n"), Some(18));
        assert_eq!(version("clang version 21.1.0git"), Some(21));
        assert_eq!(version("cc: not found"), None);
    }
}
