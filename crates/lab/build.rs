//! The shipped scenarios are part of the program: build it anew when one changes.

fn main() {
    println!("cargo::rerun-if-changed=../../scenarios");
}
