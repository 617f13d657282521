//! Tables.

/// A table of text.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The title.
    pub title: String,
    /// A sentence on it; may be empty.
    pub about: String,
    /// Heads, each with what it means as a tooltip.
    pub heads: Vec<(String, String)>,
    /// How many columns from the left are text; the others are numbers.
    pub left: usize,
    /// The lines.
    pub lines: Vec<Vec<String>>,
}
