//! The README's example, which the documentation tests compile and run, is `examples/two_paths.rs`.

#[test]
fn the_example_of_the_readme_is_the_one_in_the_folder() {
    let example = include_str!("../examples/two_paths.rs");
    let code = &example[example.find("use narrows_quic").expect("it uses the crate")..];
    assert!(include_str!("../README.md").contains(&format!("```rust\n{code}```\n")));
}
