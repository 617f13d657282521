//! Compiles the laws for this machine and tells dependants where their headers are.

fn main() {
    let headers = std::path::Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("c");
    println!("cargo::rustc-check-cfg=cfg(loom)");
    println!("cargo::rerun-if-changed=c");
    println!("cargo::metadata=include={}", headers.display());

    let mut build = cc::Build::new();
    build
        .files(["c/native.c", "c/many.c"])
        .flag("-std=c11")
        .flag("-ffreestanding")
        .flag("-Wextra")
        .flag("-Werror")
        .opt_level(2);
    if std::env::var_os("CARGO_FEATURE_UBSAN").is_some() {
        build.flag("-fsanitize=undefined").flag("-fsanitize-undefined-trap-on-error");
    }
    build.compile("narrows_laws");

    // The headers once more, for the model checker.
    if std::env::var_os("CARGO_CFG_LOOM").is_some() {
        println!("cargo::rerun-if-changed=tests/loom");
        cc::Build::new()
            .file("tests/loom/laws.c")
            .include("c")
            .std("c11")
            .flag("-fexceptions") // a failure unwinds
            .opt_level(2)
            .compile("narrows_laws_loom");
    }
}
