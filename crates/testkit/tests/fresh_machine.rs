//! What the scripts that build say on a machine that lacks something: it is named in one line, before any work.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What every system has, and the compiler of these tests.
const SYSTEM: [&str; 12] =
    ["bash", "cut", "dirname", "env", "head", "id", "realpath", "rustc", "sed", "sort", "tr", "sh"];

/// A machine that has no commands but these: a folder for PATH, and in it a checkout in which nothing was built. Those
/// of `fakes` do what their script says.
struct Machine(TempDir);

impl Machine {
    fn with(fakes: &[(&str, &str)]) -> Machine {
        let folder = tempfile::tempdir().unwrap();
        for name in SYSTEM.iter().filter(|name| fakes.iter().all(|(fake, _)| fake != *name)) {
            let output = Command::new("sh").args(["-c", "command -v \"$0\"", name]).output();
            let path = String::from_utf8(output.unwrap().stdout).unwrap();
            symlink(path.trim(), folder.path().join(name)).unwrap();
        }
        for (name, script) in fakes {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let checkout = folder.path().join("checkout");
        fs::create_dir(&checkout).unwrap();
        for name in ["Cargo.toml", "crates", "scripts"] {
            symlink(root().join(name), checkout.join(name)).unwrap();
        }
        Machine(folder)
    }

    /// The exit status of a script there, and both outputs.
    fn run(&self, script: &str, arguments: &[&str]) -> (i32, String, String) {
        let checkout = self.0.path().join("checkout");
        let mut command = Command::new(checkout.join("scripts").join(script));
        command.args(arguments).current_dir(checkout).env("PATH", self.0.path());
        // Rust itself is where it is.
        let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let rustup = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        command.env("CARGO_HOME", cargo.unwrap_or_else(|| home.join(".cargo")));
        command.env("RUSTUP_HOME", rustup.unwrap_or_else(|| home.join(".rustup")));
        command.env("HOME", self.0.path()).env("CARGO_TARGET_DIR", self.0.path().join("target"));
        let output = command.env_remove("CLANG").output().unwrap();
        let [out, err] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (output.status.code().unwrap(), out, err)
    }
}

#[test]
fn a_build_takes_any_clang_that_compiles_the_laws_and_asks_for_nothing_that_tests_need() {
    // Its compiler finds all headers.
    for clang in ["clang-19", "clang-20", "clang-21", "clang"] {
        let setup = |version: &str| {
            let says = format!("echo 'Debian clang version {version}'");
            let machine = Machine::with(&[(clang, &says), ("cc", ""), ("pkg-config", "")]);
            machine.run("setup", &["bpf"])
        };
        assert_eq!(setup("19.1.7 (3)"), (0, String::new(), String::new()), "{clang}");
        // One that crashes on the laws.
        let (status, _, err) = setup("14.0.6");
        assert_eq!(status, 2, "{clang}");
        assert!(err.starts_with("setup: no clang; "), "{err}");
    }
}

#[test]
fn without_apt_what_is_missing_is_named_in_one_line() {
    let machine = Machine::with(&[
        ("cc", r#"read -r line; case $line in *zlib.h*) ;; *) exit 1 ;; esac"#),
        ("pkg-config", ""),
    ]);
    let (status, out, err) = machine.run("setup", &["bpf"]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert_eq!(
        err,
        "setup: no clang libelf.h; install them with your package manager (on Debian: clang-19 \
         libelf-dev)\n"
    );
}

/// What scripts/static asks for.
const STATIC: [&str; 14] = [
    "autoreconf",
    "aclocal",
    "libtoolize",
    "autopoint",
    "flex",
    "bison",
    "gawk",
    "make",
    "pkg-config",
    "cc",
    "clang-19",
    "llvm-strip-19",
    "python3",
    "rustup",
];

#[test]
fn the_static_build_names_each_command_that_it_lacks() {
    for lacks in STATIC {
        let fakes: Vec<_> =
            STATIC.iter().filter(|name| **name != lacks).map(|name| (*name, "exit 9")).collect();
        let (status, out, err) = Machine::with(&fakes).run("static", &[]);
        assert_eq!((status, out.as_str()), (2, ""), "{lacks}: {err}");
        let says = "on Debian 'scripts/setup static' installs them";
        assert_eq!(err, format!("static: no {lacks}; {says}\n"));
    }
}

#[test]
fn the_reason_of_a_venv_that_is_not_made_reaches_the_terminal() {
    // As Debian's python3 says it, on standard output, which the caller of scripts/static reads as a path.
    let mut fakes: Vec<_> = STATIC.iter().map(|name| (*name, "")).collect();
    fakes.retain(|(name, _)| *name != "python3");
    fakes.push(("python3", "echo 'ensurepip is not available'; exit 1"));
    let (status, out, err) = Machine::with(&fakes).run("static", &[]);
    assert_ne!(status, 0);
    assert_eq!(out, "");
    assert_eq!(err, "ensurepip is not available\n");
}

#[test]
fn without_rustup_other_systems_are_not_checked_and_the_script_says_why() {
    let (status, out, err) = Machine::with(&[("clang", "")]).run("portable", &[]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert_eq!(err, "portable: no rustup, which brings std for other systems\n");
}

#[test]
fn a_command_for_arm_is_not_tried_without_an_emulator_or_what_it_is_compared_with() {
    let mut fakes = vec![("id", "echo 0"), ("uname", "echo x86_64"), ("readelf", "echo AArch64")];
    let (status, out, err) = Machine::with(&fakes).run("test-static", &["narrows"]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert_eq!(
        err,
        "test-static: no static qemu-aarch64; on Debian: apt install qemu-user-static\n"
    );
    fakes.push(("qemu-aarch64", ""));
    let (status, out, err) = Machine::with(&fakes).run("test-static", &["narrows"]);
    assert_eq!((status, out.as_str()), (2, ""));
    let says =
        "/x86_64-unknown-linux-musl/release/narrows to compare with: scripts/static makes it\n";
    assert!(err.starts_with("test-static: no /") && err.ends_with(says), "{err}");
}

#[test]
fn what_is_neither_a_package_nor_a_tarball_is_not_installed() {
    let (status, out, err) = Machine::with(&[]).run("test-deb", &["narrows.rpm"]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert_eq!(err, "test-deb: narrows.rpm: expected .deb or .tar.gz\n");
}

#[test]
fn where_no_engine_answers_the_image_is_not_tested_and_the_script_says_so() {
    let skipped = "test-container: skipped, neither podman nor docker answers\n";
    // One is not there, and of the other the daemon.
    let silent = Machine::with(&[("docker", "exit 1")]);
    assert_eq!(silent.run("test-container", &[]), (0, skipped.to_owned(), String::new()));
    // One that answers has something to build from.
    let answers = Machine::with(&[("docker", "")]);
    let (status, out, err) = answers.run("test-container", &["nowhere"]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert_eq!(err, "test-container: nowhere: expected narrows, as scripts/static makes it\n");
}

#[test]
fn the_site_says_which_rust_its_mdbook_needs() {
    let old = [
        ("rustc", "echo 'rustc 1.85.0 (abc 2025-01-01)'"),
        ("python3", ""),
        ("clang-19", ""),
        ("llvm-ar-19", ""),
    ];
    let (status, out, err) = Machine::with(&old).run("setup", &["site"]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert_eq!(
        err,
        "setup: mdBook needs Rust 1.88, this is 1.85.0: install rustup and run 'rustup update'\n"
    );
}

#[test]
fn an_old_cargo_packages_no_two_crates_and_the_scripts_say_so() {
    let old = [("rustc", "echo 'rustc 1.85.0 (abc 2025-01-01)'"), ("cargo", "echo 'cargo 1.85.0'")];
    for script in ["test-crates", "release"] {
        let (status, out, err) = Machine::with(&old).run(script, &[]);
        assert_eq!((status, out.as_str()), (2, ""), "{script}: {err}");
        assert_eq!(
            err,
            format!(
                "{script}: two crates are packaged together, which needs cargo 1.90 ('rustup \
                 update'); this is cargo 1.85.0\n"
            )
        );
    }
}

#[test]
fn the_first_table_ends_with_how_to_call_the_command() {
    let rust = "echo 'rustc 1.85.0 (abc 2025-01-01)'";
    let machine = Machine::with(&[("cargo", ""), ("id", "echo 1000"), ("rustc", rust)]);
    let release = machine.0.path().join("target/release");
    fs::create_dir_all(&release).unwrap();
    symlink(machine.0.path().join("cargo"), release.join("narrows")).unwrap();
    let (status, out, err) = machine.run("first-table", &[]);
    assert_eq!(status, 0, "{err}");
    let (_, last) = out.split_once("\n\nTo call what was built as 'narrows' ").expect(&out);
    let path = format!("\n  export PATH=\"{}:$PATH\"\n", release.canonicalize().unwrap().display());
    assert!(last.contains(&path) && last.contains("\n  narrows papers sbd --quick "), "{out}");
}

/// `make` says of a file of such a name that it is up to date, and of a target without a rule that it has none.
#[test]
fn what_the_makefile_lists_as_phony_is_a_target() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap().replace("\\\n", " ");
    let phony = makefile.lines().find_map(|line| line.strip_prefix(".PHONY: ")).unwrap();
    for target in phony.split_whitespace() {
        let rule = format!("\n{target}:");
        assert!(makefile.contains(&rule), "no rule for {target}");
    }
}
