//! The command that made a page.

use narrows_foreign::Foreign;

/// The arguments of the command, without the program, as a shell takes them.
pub fn command_line<'a>(arguments: impl IntoIterator<Item = &'a str>) -> String {
    let words = arguments.into_iter().map(|word| Foreign::from(word).word());
    ["narrows".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}
