//! Compiles `src/bpf/*.bpf.c` to BPF objects in `OUT_DIR`; for each law the control, without and with
//! detectors that decide, and its replay.

use lzma_rust2::{LzmaOptions, LzmaWriter};
use narrows_laws::{Control, Law, catalogue};
use object::{Object, ObjectSymbol, SymbolKind};
use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::exit;

#[path = "src/clang.rs"]
mod clang;

const OBJECTS: [&str; 6] = ["choose", "empty", "reap", "receiver", "sampler", "trial"];

/// The law whose control benches/cost has with clocks around its decisions.
const TIMED: &str = "gcubic";

fn main() {
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rerun-if-changed=src/bpf");
    println!("cargo::rerun-if-changed={}", variable("DEP_NARROWS_LAWS_INCLUDE"));

    if let Some(reason) = catalogue::unfit_kernel_name(None) {
        fail(&reason);
    }
    let Some(clang) = clang::find() else { fail(clang::MISSING) };
    sources();
    tested_c("slots");
    tested_c("repair");
    tested_c("ack_thinning");
    tested_c("clock");
    tested_c("trial");
    for name in OBJECTS {
        compile(&clang, name, name, &[]).unwrap_or_else(|reason| fail(&reason));
    }
    let laws: Vec<Law> = Law::all().collect();
    let jobs = variable("NUM_JOBS").parse().unwrap_or(1);
    let compiled: Result<Vec<()>, String> = std::thread::scope(|scope| {
        let start = |job| {
            let (clang, mut laws) = (&clang, laws.iter().skip(job).step_by(jobs));
            scope.spawn(move || laws.try_for_each(|&law| compile_law(clang, law)))
        };
        let all: Vec<_> = (0..jobs).map(start).collect();
        all.into_iter().map(|one| one.join().expect("no panic")).collect()
    });
    compiled.unwrap_or_else(|reason| fail(&reason));
    let path = PathBuf::from(variable("OUT_DIR")).join("objects.rs");
    let packed = clang::KINDS.map(|(kind, ..)| pack(kind, &laws).unwrap_or_else(|e| fail(&e)));
    let objects = packed.concat();
    if let Err(error) = std::fs::write(&path, objects) {
        fail(&format!("{}: {error}", path.display()));
    }
}

/// The tables of laws, detectors and slow starts must be folded: no program refers to them.
fn no_table(path: &Path) -> Result<(), String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if bytes.is_empty() {
        return Ok(());
    }
    let object = object::File::parse(&*bytes);
    let object = object.map_err(|error| format!("{}: {error}", path.display()))?;
    let table = object.symbols().find(|symbol| {
        let name = symbol.name().unwrap_or_default();
        symbol.kind() != SymbolKind::Text
            && ["nr_law_", "nr_detector_", "nr_start_"].iter().any(|of| name.starts_with(of))
    });
    table.map_or(Ok(()), |symbol| {
        let name = symbol.name().unwrap_or_default();
        Err(format!("{}: table {name} was not folded into constants", path.display()))
    })
}

/// Compiles `src/bpf/NAME.h` for `tests/NAME.rs`.
fn tested_c(name: &str) {
    let headers = variable("DEP_NARROWS_LAWS_INCLUDE");
    let port = format!("{headers}/../tests/loom");
    println!("cargo::rerun-if-changed=tests/{name}.c");
    println!("cargo::rerun-if-changed={port}");
    cc::Build::new()
        .file(format!("tests/{name}.c"))
        .includes(["src/bpf", &headers, &port])
        .std("c11")
        .flag("-Wno-unused-parameter") // of a detector that is not compiled in
        .flag("-fno-strict-aliasing")
        .flag("-fexceptions") // a failure unwinds
        .opt_level(2)
        .cargo_metadata(false)
        .compile(name);
    println!("cargo::rustc-link-arg-tests={}/lib{name}.a", variable("OUT_DIR"));
}

/// Compiles the objects of a law.
fn compile_law(clang: &str, law: Law) -> Result<(), String> {
    let mut defines = vec![
        format!("-DNR_LAW_HEADER=\"laws/{}.h\"", law.name()),
        format!("-DNR_THIS={}", law.name()),
        format!("-DNR_NUMBER={}", law.number()),
    ];
    defines.extend(clang::defines(Control::of(law)));
    for (kind, source, define) in clang::KINDS {
        let defines = [&defines[..], &define.map(str::to_owned).into_iter().collect::<Vec<_>>()];
        let object = format!("{kind}-{}", law.name());
        no_table(&compile(clang, source, &object, &defines.concat())?)?;
    }
    if law.name() == TIMED {
        defines.push("-DNR_TIME_DECISIONS".to_owned());
        compile(clang, "control", "timed", &defines)?;
    }
    Ok(())
}

/// Compiles `source`.bpf.c to `object`.bpf.o.
fn compile(clang: &str, source: &str, object: &str, defines: &[String]) -> Result<PathBuf, String> {
    let source = Path::new("src/bpf").join(format!("{source}.bpf.c"));
    let object = PathBuf::from(variable("OUT_DIR")).join(format!("{object}.bpf.o"));
    let arch = variable("CARGO_CFG_TARGET_ARCH");
    let headers = ["DEP_NARROWS_LAWS_INCLUDE", "DEP_BPF_INCLUDE"].map(variable);
    let headers = [0, 1].map(|n| Path::new(&headers[n]));
    // Nothing runs what clippy checks.
    if env::var("RUSTC_WORKSPACE_WRAPPER").is_ok_and(|wrapper| wrapper.contains("clippy")) {
        return std::fs::write(&object, []).map(|()| object).map_err(|error| error.to_string());
    }
    let mut command = clang::command(clang, &arch, headers, &source, &object, defines);
    // The same bytes wherever they are built.
    for (folder, name) in headers.iter().zip(["laws", "libbpf"]) {
        command.arg(format!("-ffile-prefix-map={}={name}", folder.display()));
    }
    command.arg("-ffile-compilation-dir=narrows");
    match command.status() {
        Ok(status) if status.success() => {
            clang::strip(clang, &object);
            Ok(object)
        }
        Ok(_) => Err(format!("{clang} did not compile {}", source.display())),
        Err(error) => Err(format!("{clang}: {error}")),
    }
}

/// Packs the objects of a kind, one behind the other: they have most in common. Returns what
/// src/object.rs includes.
fn pack(kind: &str, laws: &[Law]) -> Result<String, String> {
    let folder = PathBuf::from(variable("OUT_DIR"));
    let (mut objects, mut rows) = (Vec::new(), String::new());
    for law in laws {
        let file = folder.join(format!("{kind}-{}.bpf.o", law.name()));
        let object = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        // ELF is aligned.
        objects.resize(objects.len().next_multiple_of(16), 0);
        rows += &format!("({}, {}..", law.number(), objects.len());
        objects.extend(object);
        rows += &format!("{}),", objects.len());
    }
    let length = Some(objects.len() as u64);
    let packed = LzmaWriter::new_use_header(Vec::new(), &LzmaOptions::with_preset(3), length)
        .and_then(|mut to| to.write_all(&objects).and_then(|()| to.finish()));
    let file = format!("{kind}.lzma");
    packed
        .and_then(|packed| std::fs::write(folder.join(&file), packed))
        .map_err(|e| format!("{file}: {e}"))?;
    let name = kind.to_uppercase();
    let packed = format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{file}\"))");
    Ok(format!("static {name}: Packed = Packed::new({packed}, &[{rows}]);\n"))
}

/// The sources that compile a user's law, as text.
fn sources() {
    let own = [
        "control.bpf.c",
        "replay.bpf.c",
        "ack_thinning.h",
        "clock.h",
        "conns.h",
        "decision_times.h",
        "model_hooks.h",
        "nr_kernel.h",
        "repair.h",
        "slots.h",
        "state.h",
        "window_hooks.h",
    ];
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("src/bpf");
    let own = own.map(|name| (name.to_owned(), root.join(name)));
    let libbpf = PathBuf::from(variable("DEP_BPF_INCLUDE")).join("bpf");
    let names = ["helpers", "helper_defs", "tracing", "core_read", "endian"];
    let libbpf = names.map(|name| {
        let name = format!("bpf_{name}.h");
        (format!("bpf/{name}"), libbpf.join(name))
    });
    let rows = own.into_iter().chain(libbpf);
    let rows = rows.map(|(name, path)| format!("({name:?}, include_str!({path:?})),"));
    let path = PathBuf::from(variable("OUT_DIR")).join("sources.rs");
    if let Err(error) = std::fs::write(&path, format!("&[{}]", rows.collect::<String>())) {
        fail(&format!("{}: {error}", path.display()));
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("{name} is not set")))
}

fn fail(reason: &str) -> ! {
    println!("cargo::error={reason}");
    exit(1)
}
