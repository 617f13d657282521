//! The law, and what its header answers.

use std::fs;

use narrows_lab::{Algorithm, Error};
use narrows_laws::user::{self, SOURCES};

/// A congestion control that is evaluated.
#[derive(Clone, Debug)]
pub struct Law {
    control: String,
    couples: bool,
    /// The standard of whose kind it is.
    standard: Option<&'static str>,
    /// Its law's header.
    header: String,
    /// It is judged with so many paths at most.
    most_paths: Option<usize>,
}

impl Law {
    /// The control of a name: `LAW[+DETECTOR]`; a user's law is loaded before.
    ///
    /// # Errors
    /// There is none of that name, it is the kernel's, or its header cannot be read.
    pub fn new(name: &str) -> Result<Law, Error> {
        let control: Algorithm =
            name.parse().map_err(|message: String| Error::input(name, of_file(message)))?;
        let Some(ours) = control.ours() else {
            return Err(Error::input(
                name,
                "expected a law that the simulator runs, see `narrows list laws`",
            ));
        };
        if control.system().is_some() {
            let message = format!("sets a scenario's parameters; expected {ours}");
            return Err(Error::input(name, message));
        }
        let loaded = user::loaded().filter(|loaded| loaded.name() == ours.law.name());
        let header = match loaded {
            Some(loaded) => {
                let bytes =
                    fs::read(loaded.header()).map_err(Error::io(loaded.header(), "read"))?;
                String::from_utf8_lossy(&bytes).into_owned()
            }
            None => {
                let file = format!("{}.h", ours.law.name());
                let of = |(name, _): &&(&str, &str)| name.rsplit('/').next() == Some(&file);
                SOURCES.iter().find(of).map_or_else(String::new, |(_, text)| (*text).to_owned())
            }
        };
        let standard = match (loaded, ours.law.name()) {
            (None, "reno" | "lia" | "olia" | "balia" | "greno") => Some("reno"),
            (None, "cubic" | "gcubic") => Some("cubic"),
            // One of a file may be of any kind.
            _ => None,
        };
        // As it is told everywhere, in whatever order it was written.
        let (control, couples) = (control.to_string(), ours.law.couples());
        Ok(Law { control, couples, standard, header, most_paths: None })
    }

    /// The same, judged by the cells alone in which it has so many paths at most; of none by all.
    pub fn with_paths(self, most_paths: Option<usize>) -> Law {
        Law { most_paths, ..self }
    }

    /// By how many paths it is judged at most, if not by all.
    pub fn most_paths(&self) -> Option<usize> {
        self.most_paths
    }

    /// Is it judged with so many paths?
    pub(crate) fn has(&self, paths: usize) -> bool {
        self.most_paths.is_none_or(|most| paths <= most)
    }

    /// Its name.
    pub fn control(&self) -> &str {
        &self.control
    }

    /// Does it couple paths?
    pub fn couples(&self) -> bool {
        self.couples
    }

    /// The standard of whose kind it is: with one path it is that, and so it is compared with one flow of it.
    pub fn standard(&self) -> Option<&'static str> {
        self.standard
    }

    /// What the header says of a section: the paragraph that begins with `BCP 133, 5.3.1:`.
    pub fn says(&self, section: &str) -> Option<String> {
        paragraph(&self.header, section)
    }
}

/// Why a name is no control, and how a law of one's own gets one, if it is not a slip of the pen.
fn of_file(message: String) -> String {
    let own = message.starts_with("unknown law") && !message.contains("did you mean");
    match own && user::loaded().is_none() {
        true => format!("{message}; a law of your own by --law FILE.h"),
        false => message,
    }
}

/// A line of a header, as one of a comment.
struct Line<'h> {
    text: &'h str,
    /// Is it of a comment that ends with each line?
    slashes: bool,
    /// Does the comment end on it?
    last: bool,
}

impl<'h> Line<'h> {
    fn new(line: &'h str) -> Line<'h> {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("//") {
            let text = text.trim_start_matches('/').trim();
            return Line { text, slashes: true, last: false };
        }
        let (text, last) = line.split_once("*/").map_or((line, false), |(text, _)| (text, true));
        let text = text.trim_start_matches("/*").trim_start_matches('*');
        let text = if last { text.trim_end_matches('*') } else { text };
        Line { text: text.trim(), slashes: false, last }
    }
}

/// A paragraph of a comment ends where a line is empty, the comment ends, or another begins.
fn paragraph(header: &str, section: &str) -> Option<String> {
    let mark = format!("BCP 133, {section}:");
    let mut lines = header.lines().map(Line::new);
    let (first, answer) = lines.by_ref().find_map(|line| {
        let answer = line.text.strip_prefix(mark.as_str())?;
        Some((line, answer))
    })?;
    let mut text = vec![answer];
    let mut ended = first.last;
    for line in lines {
        let other = line.slashes != first.slashes || line.text.starts_with("BCP 133,");
        if ended || other || line.text.is_empty() {
            break;
        }
        text.push(line.text);
        ended = line.last;
    }
    let text = text.join(" ").replace(char::is_control, " ").trim().to_owned();
    // As a template has it.
    let to_do = text.trim_matches(|c: char| !c.is_alphanumeric()).eq_ignore_ascii_case("todo");
    (!text.is_empty() && !to_do).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_answers_by_paragraphs() {
        let header = "/*\n * mine: a law.\n *\n * BCP 133, 5.3.1: none, as it is\n * Reno.\n * BCP 133, 5.3.2: yes\n *\n * more\n * BCP 133, 8:\n */\n";
        assert_eq!(paragraph(header, "5.3.1").as_deref(), Some("none, as it is Reno."));
        assert_eq!(paragraph(header, "5.3.2").as_deref(), Some("yes"));
        assert_eq!(paragraph(header, "8"), None);
        assert_eq!(paragraph(header, "3.2"), None);
        assert_eq!(paragraph("/* BCP 133, 8: no\x1bthing */", "8").as_deref(), Some("no thing"));
    }

    #[test]
    fn a_paragraph_ends_with_its_comment() {
        let code = "#ifndef MINE_H\n#define MINE_H\n";
        for (comment, expected) in [
            ("/* BCP 133, 8: none. */\n", "none."),
            ("/** BCP 133, 8: none. **/\n", "none."),
            ("/*\n * BCP 133, 8: none,\n * as it is Reno. */\n", "none, as it is Reno."),
            ("/* BCP 133, 8: none,\n   as it is Reno.\n */\n", "none, as it is Reno."),
            ("// BCP 133, 8: none.\n", "none."),
            ("/// BCP 133, 8: none, // */\n///  as it is Reno.\n", "none, // */ as it is Reno."),
            ("// BCP 133, 8: none.\n//\n// more\n", "none."),
            ("// BCP 133, 8: none.\n/* more */\n", "none."),
        ] {
            let header = format!("{comment}{code}");
            assert_eq!(paragraph(&header, "8").as_deref(), Some(expected), "{header}");
        }
    }

    #[test]
    fn what_is_to_do_is_no_answer() {
        for header in ["// BCP 133, 8: TODO\n", "/* BCP 133, 8: todo. */\n", "/* BCP 133, 8: */\n"]
        {
            assert_eq!(paragraph(header, "8"), None, "{header}");
        }
        let header = "// BCP 133, 8: a TODO list is not kept\n";
        assert_eq!(paragraph(header, "8").as_deref(), Some("a TODO list is not kept"));
    }

    #[test]
    fn our_laws_answer_every_question() {
        let asked = crate::CATALOGUE.iter().filter(|one| matches!(one.make, crate::Make::Prose));
        for criterion in asked {
            for name in ["greno", "gcubic+xcorr"] {
                let law = Law::new(name).unwrap();
                assert!(law.says(criterion.section).is_some(), "{name}, {}", criterion.section);
            }
        }
    }

    #[test]
    fn a_law_is_known_by_its_name_with_a_detector() {
        let law = Law::new("gcubic+xcorr").unwrap();
        assert!(law.couples() && law.header.contains("gcubic"));
        assert!(!Law::new("reno").unwrap().couples());
        let standard = |name: &str| Law::new(name).unwrap().standard();
        assert_eq!((standard("greno+xcorr"), standard("gcubic")), (Some("reno"), Some("cubic")));
        assert_eq!((standard("lia"), standard("wvegas")), (Some("reno"), None));
        let error = |name: &str| Law::new(name).unwrap_err().to_string();
        assert!(error("renno").starts_with("renno: ") && !error("renno").contains("--law"));
        assert!(
            error("mine").ends_with("; a law of your own by --law FILE.h"),
            "{}",
            error("mine")
        );
        assert!(
            Law::new("kernel:cubic").unwrap_err().to_string().contains("that the simulator runs")
        );
    }
}
