//! The command that made a page.

/// The arguments of the command, the first without the program, as a shell takes them.
pub fn command_line<'a>(arguments: impl IntoIterator<Item = &'a str>) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=./:,+@%".contains(c);
    let quote = |word: &str| match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    let words = arguments.into_iter().map(quote);
    ["narrows".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_what_was_given() {
        let line = command_line(["run", "a b", "--set", "x='1'", "", "links.l.rate=5"]);
        assert_eq!(line, r"narrows run 'a b' --set 'x='\''1'\''' '' links.l.rate=5");
    }
}
