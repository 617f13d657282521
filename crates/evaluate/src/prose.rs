//! The law, and what its header answers.

use std::fs;

use narrows_lab::{Algorithm, Error};
use narrows_laws::user::{self, SOURCES};

/// A congestion control that is evaluated.
#[derive(Clone, Debug)]
pub struct Law {
    control: String,
    couples: bool,
    /// Its law's header.
    header: String,
}

impl Law {
    /// The control of a name: `LAW[+DETECTOR]`; a user's law is loaded before.
    ///
    /// # Errors
    /// There is none of that name, it is the kernel's, or its header cannot be read.
    pub fn new(name: &str) -> Result<Law, Error> {
        let control: Algorithm =
            name.parse().map_err(|message: String| Error::input(name, message))?;
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
        // As it is told everywhere, in whatever order it was written.
        Ok(Law { control: control.to_string(), couples: ours.law.couples(), header })
    }

    /// Its name.
    pub fn control(&self) -> &str {
        &self.control
    }

    /// Does it couple paths?
    pub fn couples(&self) -> bool {
        self.couples
    }

    /// What the header says of a section: the paragraph that begins with `BCP 133, 5.3.1:`.
    pub fn says(&self, section: &str) -> Option<String> {
        paragraph(&self.header, section)
    }
}

/// A paragraph of a comment ends where a line is empty, the comment ends, or another begins.
fn paragraph(header: &str, section: &str) -> Option<String> {
    let mark = format!("BCP 133, {section}:");
    let bare = |line: &'_ str| {
        let line =
            line.trim().trim_end_matches("*/").trim_start_matches("/*").trim_start_matches('*');
        line.trim().to_owned()
    };
    let mut lines = header.lines().map(bare);
    let first = lines.by_ref().find_map(|line| line.strip_prefix(&mark).map(str::to_owned))?;
    let more = lines.take_while(|line| !line.is_empty() && !line.starts_with("BCP 133,"));
    let text = [first].into_iter().chain(more).collect::<Vec<_>>().join(" ");
    let text = text.replace(char::is_control, " ").trim().to_owned();
    (!text.is_empty()).then_some(text)
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
        assert!(Law::new("renno").unwrap_err().to_string().starts_with("renno: "));
        assert!(
            Law::new("kernel:cubic").unwrap_err().to_string().contains("that the simulator runs")
        );
    }
}
