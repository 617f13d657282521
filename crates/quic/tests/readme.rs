//! What pages show of the crate compiles: its README's example, which the documentation tests run, is
//! `examples/two_paths.rs`, and the lines of the repository's README and of the guide are those of [`shown`].

use std::error::Error;
use std::time::Duration;

#[test]
fn the_example_of_the_readme_is_the_one_in_the_folder() {
    let example = include_str!("../examples/two_paths.rs");
    let code = &example[example.find("use narrows_quic").expect("it uses the crate")..];
    assert!(include_str!("../README.md").contains(&format!("```rust\n{code}```\n")));
}

/// With what is not shown: a configuration, and the connection that was made with it.
#[expect(dead_code, reason = "it is compiled alone")]
fn shown(
    transport: &mut noq::TransportConfig,
    connection: noq::Connection,
) -> Result<(), Box<dyn Error>> {
    let factory = narrows_quic::Coupling::new("gcubic+xcorr")?.factory();
    transport.congestion_controller_factory(factory.clone());
    tokio::spawn(narrows_quic::tend(&connection, factory, Duration::from_secs(1)));
    Ok(())
}

/// The code of a page's section, line by line, without comments.
fn code<'a>(page: &'a str, section: &str) -> Vec<&'a str> {
    let (_, text) = page.split_once(section).expect(section);
    let text = text.split("\n## ").next().expect("a first part");
    let lines = text.lines().filter_map(|line| line.strip_prefix("    ")?.split("//").next());
    lines.map(str::trim_end).filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_lines_of_other_pages_are_compiled_here() {
    let here: Vec<&str> = include_str!("readme.rs").lines().map(str::trim_start).collect();
    let readme = code(include_str!("../../../README.md"), "\n## In QUIC\n");
    let guide = code(include_str!("../../../docs/guide/quic.md"), "\n## Usage\n");
    assert_eq!((readme.len(), guide.len()), (2, 3), "{readme:?} {guide:?}");
    for line in readme.iter().chain(&guide) {
        assert!(here.contains(line), "not compiled: {line}");
    }
}
