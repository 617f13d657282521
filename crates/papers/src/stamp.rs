//! When the tables of a page were made, and by which build, as its second line says.

/// The day and the build.
#[derive(Clone, Copy, Debug)]
pub struct Stamp<'a> {
    /// As in `28 November 2026`.
    pub day: &'a str,
    /// The version of Narrows.
    pub version: &'a str,
    /// The commit that it was built from.
    pub commit: &'a str,
}

impl Stamp<'_> {
    /// A page with it in the second line, if that begins as `*Measured 28 November 2026, version 0.1.0, commit c4b3b158` and
    /// all tables of the page are among `tables`. What else it says stays. Any other page as it is.
    pub fn on(&self, page: &str, tables: &[&str]) -> String {
        let mut marks = page.lines().filter_map(|line| line.strip_prefix("<!-- table "));
        let made =
            |mark: &str| mark.strip_suffix(" -->").is_some_and(|name| tables.contains(&name));
        let all = marks.all(made);
        self.stamped(page).filter(|_| all).unwrap_or_else(|| page.to_owned())
    }

    /// The page; none: its second line says nothing of the kind.
    fn stamped(&self, page: &str) -> Option<String> {
        let (title, rest) = page.split_once('\n')?;
        let said = rest.strip_prefix("*Measured ")?;
        let (line, below) = said[day(said)?..].split_once('\n')?;
        let (about, build) = line.split_once("version ")?;
        let digits = build.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(build.len());
        let rest = &build[build[..digits].trim_end_matches('.').len()..];
        // Of which the page may have said nothing yet.
        let (before, after) = rest.split_once("commit ").unwrap_or((", ", rest));
        let after = after.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        let Stamp { day, version, commit } = self;
        Some(format!(
            "{title}\n*Measured {day}{about}version {version}{before}commit {commit}{after}\n{below}"
        ))
    }
}

/// How long the day is that a text begins with; none: it begins with something else, as with the first of several days.
fn day(text: &str) -> Option<usize> {
    let mut words = text.splitn(3, ' ');
    let (day, month, year) = (words.next()?, words.next()?, words.next()?.get(..4)?);
    let numbers = [day, year].iter().all(|number| number.parse::<u16>().is_ok());
    let whole = numbers && month.starts_with(|c: char| c.is_ascii_uppercase());
    whole.then_some(day.len() + 1 + month.len() + 1 + year.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp { day: "1 March 2027", version: "0.2.0", commit: "0123abcd" };
    const TABLES: &str = "\n<!-- table one -->\n<!-- end -->\n<!-- table two -->\n<!-- end -->\n";

    /// What a page says in its second line, after one with that line is stamped.
    fn stamped(line: &str, tables: &[&str]) -> String {
        let page = STAMP.on(&format!("# Title\n{line}\n{TABLES}"), tables);
        let stamped = page.strip_prefix("# Title\n").unwrap().strip_suffix(TABLES).unwrap();
        stamped.trim_end().to_owned()
    }

    #[test]
    fn day_version_and_commit_take_the_place_of_those_before() {
        for (before, after) in [
            (
                "*Measured 28 November 2026, version 0.1.0, commit c4b3b158; `make bcp133` commits 12.*",
                "*Measured 1 March 2027, version 0.2.0, commit 0123abcd; `make bcp133` commits 12.*",
            ),
            (
                "*Measured 2 May 2026 ([the kernel](#k) 1 May), version 0.1.0; tables as of commit c4.*",
                "*Measured 1 March 2027 ([the kernel](#k) 1 May), version 0.2.0; tables as of commit 0123abcd.*",
            ),
            (
                "*Measured 27 November 2026 by one build, version 0.1.0.*",
                "*Measured 1 March 2027 by one build, version 0.2.0, commit 0123abcd.*",
            ),
        ] {
            assert_eq!(stamped(before, &["two", "one"]), after);
            assert_eq!(stamped(after, &["two", "one"]), after, "again");
        }
    }

    #[test]
    fn a_line_stays_that_is_not_of_one_day_or_of_tables_that_were_not_made() {
        for line in [
            "*Measured 23 to 28 November 2026, version 0.1.0, commit c4b3b158.*",
            "*Measured in November 2026, version 0.1.0. Day and commit: 25, 13685572.*",
            "*Measured 28 November 2026.*",
            "What was measured 28 November 2026, version 0.1.0, commit c4b3b158.",
        ] {
            assert_eq!(stamped(line, &["one", "two"]), line);
        }
        let line = "*Measured 28 November 2026, version 0.1.0, commit c4b3b158.*";
        assert_eq!(stamped(line, &["one"]), line);
        assert_eq!(STAMP.on("# Title", &[]), "# Title");
    }
}
