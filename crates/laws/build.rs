//! Compiles the laws for this machine and tells dependants where their headers are.

fn main() {
    let headers = std::path::Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("c");
    println!("cargo::rustc-check-cfg=cfg(loom)"); // tests/loom.rs
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
}
