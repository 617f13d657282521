//! The result of one check.

/// What came out for one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is there.
    Ok,
    /// Worth knowing.
    Note,
    /// This user may not look at it.
    Unseen,
    /// MPTCP is of no or of less use as it is.
    Mistake,
    /// Loading or using a control will not work.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What it is, a word or two.
    pub what: &'static str,
    /// What came out.
    pub verdict: Verdict,
    /// What was seen, one line.
    pub seen: String,
    /// What to type, a command a line.
    pub fix: Vec<String>,
}

impl Item {
    pub(super) fn new(what: &'static str, verdict: Verdict, seen: impl Into<String>) -> Item {
        Item { what, verdict, seen: seen.into(), fix: Vec::new() }
    }

    pub(super) fn fix(mut self, command: impl Into<String>) -> Item {
        self.fix.push(command.into());
        self
    }
}

#[cfg(test)]
pub(super) fn verdict(items: &[Item], what: &str) -> Option<Verdict> {
    items.iter().find(|item| item.what == what).map(|item| item.verdict)
}
