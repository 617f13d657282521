//! Tables as a page for a browser.

use narrows_report::{Fact, Page, Part, Section, Table as PageTable, Tile};

use crate::{Cell, Grid, Judged, Paper, Table, Verdict};

/// All verdicts, as tiles show them: what each means.
const VERDICTS: [(Verdict, &str); 4] = [
    (Verdict::Reproduced, "ours agrees with what is published, as far as its interval can tell"),
    (Verdict::Better, "ours is on the better side of it"),
    (Verdict::Worse, "ours is on the worse side of it"),
    (Verdict::CannotBeTold, "the interval decides nothing, or there is none"),
];

/// A verdict with a sign before it, which a glance finds in a table.
fn cell(cell: &Cell) -> String {
    let Cell::Verdict(judged @ Judged { verdict, .. }) = cell else {
        return cell.text().replace("**", "");
    };
    let sign = match verdict {
        Verdict::Reproduced => '✓',
        Verdict::Better => '▲',
        Verdict::Worse => '▼',
        Verdict::CannotBeTold => '?',
    };
    format!("{sign} {judged}")
}

fn table((_, table, grid): &(&Paper, &Table, &Grid)) -> Part {
    // Columns of which every cell is a number are set as such.
    let number = |at: usize| {
        let digit = |cell: &Cell| {
            cell.text().starts_with(|c: char| c.is_ascii_digit() || "-+*".contains(c))
        };
        grid.rows.iter().all(|row| digit(&row[at]))
    };
    let left = (0..grid.heads.len()).rev().find(|&at| !number(at)).map_or(0, |last| last + 1);
    let note = if grid.note.is_empty() { String::new() } else { format!(" {}", grid.note) };
    Part::Table(PageTable {
        title: table.name.to_owned(),
        about: format!("{}.{note}", table.about),
        heads: grid.heads.iter().map(|head| (head.replace('`', ""), String::new())).collect(),
        left,
        lines: grid.rows.iter().map(|row| row.iter().map(cell).collect()).collect(),
    })
}

/// The plots of a table.
fn drawn(grid: &Grid) -> impl Iterator<Item = Part> {
    grid.plots.iter().cloned().map(Part::Plot)
}

/// The plots of some tables alone, a section for each.
pub fn plots(made: &[(&Paper, &Table, &Grid)]) -> Page {
    let section = |(paper, table, grid): &(&Paper, &Table, &Grid)| Section {
        title: format!("{}/{}", paper.name, table.name),
        about: table.about.into(),
        parts: drawn(grid).collect(),
    };
    Page { sections: made.iter().map(section).collect(), ..Page::default() }
}

/// The page of some tables, by paper; made by `command`, of which `facts` tell more.
pub fn page(made: &[(&Paper, &Table, &Grid)], command: String, facts: Vec<Fact>) -> Page {
    let section = |of: &[(&Paper, &Table, &Grid)]| Section {
        title: of[0].0.name.to_owned(),
        about: format!("{} (docs/{}).", of[0].0.title, of[0].0.document),
        parts: of.iter().flat_map(|one| [table(one)].into_iter().chain(drawn(one.2))).collect(),
    };
    let count = |verdict: Verdict| {
        made.iter().flat_map(|(_, _, grid)| grid.verdicts()).filter(|one| *one == verdict).count()
    };
    let tile = |(verdict, about): (Verdict, &str)| Tile {
        name: verdict.to_string(),
        value: count(verdict).to_string(),
        about: about.into(),
    };
    let sections: Vec<Section> = made.chunk_by(|a, b| a.0.name == b.0.name).map(section).collect();
    let names: Vec<&str> = sections.iter().map(|section| section.title.as_str()).collect();
    Page {
        title: format!("{}: published figures beside ours", names.join(", ")),
        lead: "A verdict is of 95 % intervals over the seeds, not of means.".into(),
        command,
        facts,
        tiles: if names.is_empty() { Vec::new() } else { VERDICTS.map(tile).to_vec() },
        sections,
        ..Page::default()
    }
}

#[cfg(test)]
mod tests {
    use narrows_report::{Colour, Curve, Plot};

    use super::*;
    use crate::PAPERS;

    #[test]
    fn a_page_has_each_table_with_its_verdicts() {
        let mut grid = Grid::new(["claim", "ours", "verdict"]);
        grid.row([
            Cell::from("**less**"),
            "17.0 ±2".into(),
            Judged::new(Verdict::Worse, "1 of 2").into(),
        ]);
        let (paper, table) = (&PAPERS[0], &PAPERS[0].tables[0]);
        let html = page(&[(paper, table, &grid)], "narrows papers sbd".into(), Vec::new()).html();
        for expected in
            [paper.title, table.about, "▼ worse (1 of 2)", "narrows papers sbd", "17.0 ±2"]
        {
            assert!(html.contains(expected), "{expected}");
        }
        assert!(!html.contains("**less**"));
    }

    /// All tables as their documents have them, each with a plot of 10^4 points: more than any of them draws.
    #[test]
    fn a_page_of_all_papers_is_smaller_than_5_mb() {
        let x: Vec<f64> = (0..10_000).map(f64::from).collect();
        let y = x.iter().map(|x| Some(x % 97.0)).collect();
        let curves = vec![Curve::new("ours", Colour::Number(0), y)];
        let plot = Plot { title: "ours".into(), x, curves, ..Plot::default() };
        let cells = |line: &str| -> Option<Vec<Cell>> {
            let line = line.strip_prefix("| ")?.strip_suffix(" |")?;
            Some(line.split(" | ").map(Cell::from).collect())
        };
        let grid = |(paper, table): &(&Paper, &Table)| {
            let text = format!("{}/../../docs/{}", env!("CARGO_MANIFEST_DIR"), paper.document);
            let text = std::fs::read_to_string(text).unwrap();
            let (_, text) = text.split_once(&format!("<!-- table {} -->\n", table.name)).unwrap();
            let (text, _) = text.split_once("<!-- end -->").unwrap();
            let mut rows = text.trim_start().lines().map_while(cells);
            let heads = rows.next().unwrap_or_default().iter().map(Cell::text).collect();
            let rows: Vec<_> = rows.skip(1).collect();
            assert!(!rows.is_empty() || table.name == "twins", "{}", table.name);
            Grid { heads, rows, plots: vec![plot.clone()], ..Grid::default() }
        };
        let all = PAPERS.iter().flat_map(|paper| paper.tables.iter().map(move |one| (paper, one)));
        let all: Vec<(&Paper, &Table)> = all.collect();
        let grids: Vec<Grid> = all.iter().map(grid).collect();
        let made = all.iter().zip(&grids).map(|((paper, table), grid)| (*paper, *table, grid));
        let made: Vec<_> = made.collect();
        let size = page(&made, "narrows papers all".into(), Vec::new()).html().len();
        assert!((500_000..5_000_000).contains(&size), "{size} bytes");
    }
}
