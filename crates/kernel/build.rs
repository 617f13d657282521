//! Compiles `src/bpf/*.bpf.c` to BPF objects in `OUT_DIR`; the control and its replay once for each
//! law.

use narrows_laws::{Control, Law, Params, catalogue};
use object::{Object, ObjectSymbol, SymbolKind};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// Tried in this order where `CLANG` names none. Debian 12's unversioned clang (14) is not tested.
const CLANGS: [&str; 4] = ["clang-19", "clang-20", "clang-21", "clang"];

const OBJECTS: [&str; 2] = ["choose", "empty"];

fn main() {
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rerun-if-changed=src/bpf");
    println!("cargo::rerun-if-changed={}", variable("DEP_NARROWS_LAWS_INCLUDE"));

    if let Some(reason) = catalogue::unfit_kernel_name() {
        fail(&reason);
    }
    let Some(clang) = clang() else {
        fail(
            "no clang found (package clang-19): it compiles the laws for the kernel; CLANG=... names one",
        )
    };
    for name in OBJECTS {
        compile(&clang, name, name, &[]);
    }
    for law in Law::all() {
        let control = Control::of(law);
        let params = Params::default();
        let list = |words: &[u32]| words.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let defines = [
            format!("NR_LAW_HEADER=\"laws/{}.h\"", law.name()),
            format!("NR_THIS={}", law.name()),
            format!("NR_NUMBER={}", law.number()),
            format!("NR_THIS_NAME=\"{}\"", catalogue::kernel_name(control)),
            format!("NR_THIS_DETECTOR={}", control.detector.number()),
            format!("NR_THIS_START={}", control.start()),
            format!("NR_THIS_WINDOW={}", list(&params.of_window())),
            format!("NR_THIS_PARAMS={}", list(&params.of_law(law))),
        ];
        let defines = defines.map(|define| format!("-D{define}"));
        for source in ["control", "replay"] {
            let object = compile(&clang, source, &format!("{source}-{}", law.name()), &defines);
            no_table(&object);
        }
    }
    let all = |source: &str| {
        let rows = Law::all().map(|law| {
            let (number, name) = (law.number(), law.name());
            let path = format!("concat!(env!(\"OUT_DIR\"), \"/{source}-{name}.bpf.o\")");
            format!("({number}, &Aligned(*include_bytes!({path}))),")
        });
        let name = source.to_uppercase();
        format!("static {name}: &[(u32, &Aligned<[u8]>)] = &[{}];\n", rows.collect::<String>())
    };
    let path = PathBuf::from(variable("OUT_DIR")).join("objects.rs");
    if let Err(error) = std::fs::write(&path, all("control") + &all("replay")) {
        fail(&format!("{}: {error}", path.display()));
    }
}

/// The tables of laws, detectors and slow starts must have folded away: a program reaches none.
fn no_table(path: &Path) {
    let bytes = std::fs::read(path).unwrap_or_else(|e| fail(&format!("{}: {e}", path.display())));
    let object = object::File::parse(&*bytes)
        .unwrap_or_else(|error| fail(&format!("{}: {error}", path.display())));
    let table = object.symbols().find(|symbol| {
        let name = symbol.name().unwrap_or_default();
        symbol.kind() != SymbolKind::Text
            && ["nr_law_", "nr_detector_", "nr_start_"].iter().any(|of| name.starts_with(of))
    });
    if let Some(symbol) = table {
        let name = symbol.name().unwrap_or_default();
        fail(&format!("{}: table {name} is still there, expected it to fold", path.display()));
    }
    slots();
}

/// Compiles `src/bpf/slots.h` for the model checker of `tests/slots.rs`.
fn slots() {
    let headers = variable("DEP_NARROWS_LAWS_INCLUDE");
    let port = format!("{headers}/../tests/loom");
    println!("cargo::rerun-if-changed=tests/slots.c");
    println!("cargo::rerun-if-changed={port}");
    cc::Build::new()
        .file("tests/slots.c")
        .includes(["src/bpf", &headers, &port])
        .std("c11")
        .flag("-Wno-unused-parameter") // of a detector that is not compiled in
        .flag("-fexceptions") // a failure unwinds
        .opt_level(2)
        .cargo_metadata(false)
        .compile("slots");
    println!("cargo::rustc-link-arg-tests={}/libslots.a", variable("OUT_DIR"));
}

/// Compiles `source`.bpf.c to `object`.bpf.o.
fn compile(clang: &str, source: &str, object: &str, defines: &[String]) -> PathBuf {
    let source = Path::new("src/bpf").join(format!("{source}.bpf.c"));
    let object = PathBuf::from(variable("OUT_DIR")).join(format!("{object}.bpf.o"));
    let status = Command::new(clang)
        .args(["-target", "bpf", "-mcpu=v3", "-std=gnu11", "-O2", "-g"])
        // The kernel fixes the parameters of programs, a constant law leaves some unused.
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        // BPF_PROG's own; which register a program's arguments come in.
        .arg(format!("-D__TARGET_ARCH_{}", target_arch()))
        .args(defines)
        .arg(format!("-I{}", variable("DEP_NARROWS_LAWS_INCLUDE")))
        // libbpf's own headers, of the version that loads the object.
        .args(["-isystem", &variable("DEP_BPF_INCLUDE")])
        // <linux/bpf.h> wants <asm/types.h>, which -target bpf does not look for.
        .arg(format!("-idirafter/usr/include/{}-linux-gnu", variable("CARGO_CFG_TARGET_ARCH")))
        .arg("-c")
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .status();
    match status {
        Ok(status) if status.success() => object,
        Ok(_) => fail(&format!("{clang} did not compile {}", source.display())),
        Err(error) => fail(&format!("{clang}: {error}")),
    }
}

/// As the kernel calls it.
fn target_arch() -> String {
    match variable("CARGO_CFG_TARGET_ARCH").as_str() {
        "x86_64" => "x86".into(),
        "aarch64" => "arm64".into(),
        other => other.into(),
    }
}

fn clang() -> Option<String> {
    if let Ok(named) = env::var("CLANG") {
        return Some(named);
    }
    let runs = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    CLANGS.iter().copied().find(runs).map(str::to_owned)
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("{name} is not set")))
}

fn fail(reason: &str) -> ! {
    println!("cargo::error={reason}");
    exit(1)
}
