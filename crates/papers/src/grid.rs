//! Tables as they are made: for pages in Markdown, for terminals, and as data.

use std::fmt::Write;

use narrows_lab::HostId;
use narrows_report::Plot;
use serde::Serialize;

use crate::curves::Curves;
use crate::runs::Used;
use crate::verdict::{Judged, Verdict};

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Grid {
    /// What stands above the columns.
    pub heads: Vec<String>,
    /// The rows; each has a cell for each head.
    pub rows: Vec<Vec<Cell>>,
    /// What stands below the table; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Data behind it, as CSV, by the name of a file; not in the table's own form.
    #[serde(skip)]
    pub files: Vec<(String, String)>,
    /// The same as plots.
    #[serde(skip)]
    pub plots: Vec<Plot>,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// What it says.
    Text(String),
    /// A verdict.
    Verdict(Judged),
}

impl Cell {
    /// As it is written.
    pub fn text(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Verdict(judged) => judged.to_string(),
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.into())
    }
}

impl From<Judged> for Cell {
    fn from(judged: Judged) -> Cell {
        Cell::Verdict(judged)
    }
}

impl From<Verdict> for Cell {
    fn from(verdict: Verdict) -> Cell {
        Cell::Verdict(verdict.into())
    }
}

impl Grid {
    /// A table without rows.
    pub fn new(heads: impl IntoIterator<Item = impl Into<String>>) -> Grid {
        Grid { heads: heads.into_iter().map(Into::into).collect(), ..Grid::default() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// It has not a cell for each head.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        let cells: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        assert_eq!(cells.len(), self.heads.len(), "a cell for each of {:?}: {cells:?}", self.heads);
        self.rows.push(cells);
    }

    /// Adds data, as CSV, by the name of its file, and draws it.
    pub fn draw(&mut self, name: &str, data: String, curves: &Curves) {
        self.plots.extend(curves.of(&data));
        self.files.push((name.into(), data));
    }

    /// The same on another host, with a note on what it lacks there.
    pub(crate) fn on(mut self, host: HostId, Used { runs, unfit }: Used) -> Grid {
        let mut notes = vec![self.note];
        let lacks = |cell: &Cell| {
            cell.text().split(' ').any(|word| word.trim_end_matches([',', ';']) == "-")
        };
        if self.rows.iter().flatten().any(lacks) {
            notes.push(format!("-: no figure, of some on {host} alone."));
        }
        if unfit > 0 {
            notes.push(format!("In {unfit} of {runs} runs the machine was too slow for {host}."));
        }
        notes.retain(|note| !note.is_empty());
        self.note = notes.join(" ");
        self
    }

    /// All verdicts in it.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        let of = |cell: &Cell| match cell {
            Cell::Verdict(judged) => Some(judged.verdict),
            Cell::Text(_) => None,
        };
        self.rows.iter().flatten().filter_map(of)
    }

    /// As pages have it.
    pub fn markdown(&self) -> String {
        // What others wrote may have the sign between cells.
        let line = |cells: Vec<String>| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut text = line(self.heads.clone()) + &line(vec!["---".into(); self.heads.len()]);
        self.rows.iter().for_each(|row| text += &line(row.iter().map(Cell::text).collect()));
        if !self.note.is_empty() {
            let _ = write!(text, "\n{}\n", self.note);
        }
        text
    }

    /// In columns, for terminals; numbers stand as they are written.
    pub fn columns(&self) -> String {
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(Cell::text).collect()).collect();
        let length = |text: &str| text.chars().count();
        let width = |at: usize| {
            let cells = rows.iter().map(|row| length(&row[at]));
            cells.chain([length(&self.heads[at])]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        let line = |cells: &[String]| {
            let padded = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
            format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
        };
        let mut text = line(&self.heads);
        rows.iter().for_each(|row| text += &line(row));
        if !self.note.is_empty() {
            let _ = write!(text, "\n{}\n", self.note);
        }
        text
    }
}

/// A page with `made` between the marks of a table; none if it has no such marks.
pub fn replaced(page: &str, table: &str, made: &Grid) -> Option<String> {
    let (mark, end) = (format!("<!-- table {table} -->\n"), "<!-- end -->");
    let (head, rest) = page.split_once(&mark)?;
    let (_, tail) = rest.split_once(end)?;
    Some(format!("{head}{mark}\n{}\n{end}{tail}", made.markdown()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let mut grid = Grid::new(["claim", "ours"]);
        grid.row([Cell::from("17 % less"), Judged::new(Verdict::Worse, "1 of 2").into()]);
        grid
    }

    #[test]
    fn a_table_takes_the_place_of_the_one_between_its_marks() {
        let page = "a\n<!-- table one -->\n\n| old |\n\n<!-- end -->\nb\n<!-- table two -->\n<!-- end -->\n";
        let made = replaced(page, "one", &grid()).unwrap();
        assert_eq!(
            made,
            "a\n<!-- table one -->\n\n| claim | ours |\n| --- | --- |\n| 17 % less | worse (1 of 2) |\n\n\
             <!-- end -->\nb\n<!-- table two -->\n<!-- end -->\n"
        );
        assert_eq!(replaced(page, "three", &grid()), None);
        assert_eq!(replaced("<!-- table one -->\n", "one", &grid()), None);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut grid = grid();
        grid.note = "below".into();
        assert_eq!(grid.columns(), "claim      ours\n17 % less  worse (1 of 2)\n\nbelow\n");
    }

    #[test]
    fn a_cell_stays_one_cell_whatever_it_says() {
        let mut grid = Grid::new(["loss | mark"]);
        grid.row(["a|b"]);
        assert_eq!(grid.markdown(), "| loss \\| mark |\n| --- |\n| a\\|b |\n");
        assert_eq!(grid.columns(), "loss | mark\na|b\n");
    }

    #[test]
    fn verdicts_are_data_too() {
        assert_eq!(grid().verdicts().collect::<Vec<_>>(), [Verdict::Worse]);
        let json = serde_json::to_value(grid()).unwrap();
        assert_eq!(json["rows"][0][1]["verdict"], "worse");
        assert_eq!(json["rows"][0][0], "17 % less");
    }
}
