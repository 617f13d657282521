//! Compiles the laws as native code, each separately, and exports the path of their headers.

use std::path::Path;
use std::process::exit;

fn main() {
    let headers = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("c");
    println!("cargo::rerun-if-changed=c");
    println!("cargo::metadata=include={}", headers.display());

    let mut build = cc::Build::new();
    build.flag("-std=c11").flag("-ffreestanding").flag("-fno-strict-aliasing");
    // A contributed user's law includes headers without a path.
    build.include("c");
    // Hooks have one signature; most do not use all arguments. What a compiler of tomorrow warns of
    // stops nobody's build: `make lint` has every warning an error.
    build.flag("-Wextra").flag("-Wno-unused-parameter");
    // What is built without optimisation, as for another crate's build script, does nothing that takes long.
    let optimised = std::env::var("OPT_LEVEL").is_ok_and(|level| level != "0");
    build.opt_level(if optimised { 2 } else { 0 });
    let native = std::env::var("TARGET").ok() == std::env::var("HOST").ok();
    let env = std::env::var("CARGO_CFG_TARGET_ENV");
    if env.is_ok_and(|env| env == "msvc") && !names_compiler(native) {
        build.compiler("clang"); // cl.exe does not know GNU C
    }
    // Undefined behaviour ends a test, as overflows of Rust do.
    let tested = native && Path::new("tests").exists();
    if tested && std::env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        build.flag("-fsanitize=undefined").flag("-fsanitize-undefined-trap-on-error");
    }
    let laws = laws(&headers);
    // Nothing runs what clippy checks, but for build scripts, which are not optimised.
    let clippy = |wrapper: String| wrapper.contains("clippy");
    let checked = optimised && std::env::var("RUSTC_WORKSPACE_WRAPPER").is_ok_and(clippy);
    if !checked {
        compile(build, laws);
    }
    sources(&headers);

    // The headers once more, for the model checker.
    if tested && !checked && std::env::var_os("CARGO_CFG_LOOM_MODELS").is_some() {
        println!("cargo::rerun-if-changed=tests/loom");
        cc::Build::new()
            .file("tests/loom/laws.c")
            .include("c")
            .std("c11")
            .flag("-Wno-unused-parameter")
            .flag("-fno-strict-aliasing")
            .flag("-fexceptions") // a failure unwinds
            .opt_level(if optimised { 2 } else { 0 })
            .cargo_metadata(false)
            .compile("narrows_laws_loom");
        let out = std::env::var("OUT_DIR").unwrap();
        println!("cargo::rustc-link-arg-tests={out}/libnarrows_laws_loom.a");
    }
}

/// Does the environment name this target's C compiler, in a way that `cc` looks for?
fn names_compiler(native: bool) -> bool {
    let target = std::env::var("TARGET").expect("cargo sets it");
    let whose = if native { "HOST_CC" } else { "TARGET_CC" };
    let of_target = [format!("CC_{target}"), format!("CC_{}", target.replace(['-', '.'], "_"))];
    let mut names = of_target.iter().map(String::as_str).chain([whose, "CC"]);
    // One that is named later is taken, too.
    names.clone().for_each(|name| println!("cargo::rerun-if-env-changed={name}"));
    names.any(|name| std::env::var_os(name).is_some())
}

/// Each law separately, and what they share.
fn compile(mut build: cc::Build, laws: Vec<(u8, String)>) {
    let mut objects = build.clone().files(["c/native.c", "c/many.c"]).compile_intermediates();
    for (number, name) in laws {
        let mut law = build.clone();
        law.define("NR_LAW_HEADER", format!("\"laws/{name}.h\"").as_str()).file("c/module.c");
        law.define("NR_THIS", name.as_str()).define("NR_NUMBER", number.to_string().as_str());
        // One source for all: without separate folders the objects would overwrite each other.
        let out = Path::new(&std::env::var("OUT_DIR").unwrap()).join(&name);
        objects.extend(law.out_dir(out).compile_intermediates());
    }
    build.objects(objects).compile("narrows_laws");
}

/// The sources as text, for laws compiled at run time.
fn sources(headers: &Path) {
    let mut list = String::from("&[");
    for folder in ["", "detect/", "detect/xcorr/", "laws/", "laws/bbr/", "start/"] {
        let files = std::fs::read_dir(headers.join(folder)).expect("the headers are there");
        let mut names: Vec<String> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names.retain(|name| [".h", ".def", "module.c"].iter().any(|end| name.ends_with(end)));
        for name in names {
            let path = headers.join(folder).join(&name);
            list += &format!("({:?}, include_str!({path:?})),", format!("{folder}{name}"));
        }
    }
    let to = Path::new(&std::env::var("OUT_DIR").unwrap()).join("headers.rs");
    std::fs::write(to, list + "]").expect("the folder is there");
}

/// The lines of `laws.def`; the build stops at an invalid one.
fn laws(headers: &Path) -> Vec<(u8, String)> {
    let def = std::fs::read_to_string(headers.join("laws.def")).expect("laws.def is there");
    let mut laws: Vec<(u8, String)> = Vec::new();
    for (line, text) in def.lines().enumerate() {
        let Some(row) = text.trim().strip_prefix("R(") else { continue };
        let fail = |reason: String| fail(format!("laws.def:{}: {reason}", line + 1));
        let row = row.trim_end_matches(['\\', ' ', '\t']).strip_suffix(')');
        let row = row.and_then(|row| row.split_once(','));
        let row = row.and_then(|(n, name)| Some((n.trim().parse::<u8>().ok()?, name.trim())));
        let Some((number, name)) = row else { fail("expected R(number, name)".into()) };
        if number >= 63 {
            fail(format!("number {number}, expected one below 63"));
        }
        if laws.iter().any(|(n, of)| *n == number || of == name) {
            fail(format!("law {number}, {name}: duplicate number or name"));
        }
        let header = std::fs::read_to_string(headers.join(format!("laws/{name}.h")));
        let Ok(header) = header else { fail(format!("laws/{name}.h does not exist")) };
        if !header.contains(&format!("\nNR_LAW({name}) = {{")) {
            fail(format!("laws/{name}.h has no table, expected NR_LAW({name}) = {{ ... }};"));
        }
        laws.push((number, name.to_owned()));
    }
    laws
}

fn fail(reason: String) -> ! {
    println!("cargo::error={reason}");
    exit(1)
}
