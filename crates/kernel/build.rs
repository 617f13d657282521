//! Compiles `src/bpf/*.bpf.c` to BPF objects in `OUT_DIR`; for each law the control, without and with
//! detectors that decide, and its replay.

use flate2::Compression;
use flate2::write::ZlibEncoder;
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

    if let Some(reason) = catalogue::unfit_kernel_name() {
        fail(&reason);
    }
    let Some(clang) = clang::find() else { fail("no clang found; install clang-19, or set CLANG") };
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
    let all = |source: &str| {
        let rows = Law::all().map(|law| {
            let (number, name) = (law.number(), law.name());
            let packed = pack(&format!("{source}-{name}")).unwrap_or_else(|reason| fail(&reason));
            let path = format!("concat!(env!(\"OUT_DIR\"), \"/{packed}\")");
            format!("Packed::new({number}, include_bytes!({path})),")
        });
        let name = source.to_uppercase();
        format!("static {name}: [Packed; {}] = [{}];\n", laws.len(), rows.collect::<String>())
    };
    let path = PathBuf::from(variable("OUT_DIR")).join("objects.rs");
    let objects = clang::KINDS.map(|(kind, ..)| all(kind)).concat();
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

/// Compresses an object of a law; returns the file's name. There are 36, of half a megabyte.
fn pack(object: &str) -> Result<String, String> {
    let folder = PathBuf::from(variable("OUT_DIR"));
    let (from, to) = (format!("{object}.bpf.o"), format!("{object}.bpf.o.zz"));
    let packed = std::fs::read(folder.join(&from)).and_then(|bytes| {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&bytes)?;
        encoder.finish()
    });
    packed
        .and_then(|packed| std::fs::write(folder.join(&to), packed))
        .map_err(|error| format!("{from}: {error}"))?;
    Ok(to)
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
