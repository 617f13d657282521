//! `narrows.papers` and `narrows.PaperTable`.

use std::sync::Arc;

use narrows_cli::COMMIT;
use narrows_lab::page::facts;
use narrows_lab::{Provenance, tables};
use narrows_papers::{Form, Grid, Paper, Runs, Store, page, select};
use pyo3::prelude::*;

use crate::error::Failure;
use crate::run::inline;
use crate::table::Table;
use crate::value::{self, JOBS, whole};
use crate::wait::{at_once, wait};

/// A published table or figure beside ours; made by :func:`narrows.papers`.
#[pyclass(frozen, module = "narrows")]
pub struct PaperTable {
    paper: &'static Paper,
    table: &'static narrows_papers::Table,
    grid: Grid,
    words: Vec<String>,
}

#[pymethods]
impl PaperTable {
    /// Its name, ``PAPER/TABLE``.
    #[getter]
    fn name(&self) -> String {
        format!("{}/{}", self.paper.name, self.table.name)
    }

    /// What it shows, with its place in the paper.
    #[getter]
    fn about(&self) -> &str {
        self.table.about
    }

    /// Its cells as text, a row for each of the published table.
    #[getter]
    fn cells(&self, py: Python<'_>) -> PyResult<Table> {
        at_once(py, || {
            let row = |row: &Vec<narrows_papers::Cell>| {
                row.iter().map(|cell| Some(cell.text())).collect()
            };
            let rows: Vec<Vec<Option<String>>> = self.grid.rows.iter().map(row).collect();
            Ok(Table::new(tables::texts(&self.grid.heads, &rows)?))
        })
    }

    /// Its verdicts, in order: reproduced, better, worse or cannot be told.
    #[getter]
    fn verdicts(&self) -> Vec<String> {
        self.grid.verdicts().map(|verdict| verdict.to_string()).collect()
    }

    /// The table in columns.
    ///
    /// Returns
    /// -------
    /// str
    ///     The table in columns, for a terminal.
    fn report(&self) -> String {
        self.grid.columns()
    }

    /// The table in Markdown.
    ///
    /// Returns
    /// -------
    /// str
    ///     The table in Markdown, as pages have it.
    fn to_markdown(&self) -> String {
        self.grid.markdown()
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        at_once(py, || {
            let provenance = Provenance::new("papers", String::new(), false, COMMIT, &self.words);
            let command = provenance.command_line();
            let page = page(
                &[(self.paper, self.table, &self.grid)],
                command,
                facts(&provenance, Vec::new()),
            );
            Ok(inline(&page.html(), 600))
        })
    }

    fn __repr__(&self) -> String {
        format!("<narrows.PaperTable {}: {}>", self.name(), self.table.about)
    }
}

/// Makes published tables and figures again.
#[pyfunction]
#[pyo3(signature = (names, quick, seeds, jobs, out, resume))]
pub fn papers(
    py: Python<'_>,
    names: &Bound<'_, PyAny>,
    quick: bool,
    seeds: Option<Bound<'_, PyAny>>,
    jobs: &Bound<'_, PyAny>,
    out: Option<&Bound<'_, PyAny>>,
    resume: bool,
) -> PyResult<Vec<PaperTable>> {
    let names = at_once(py, || value::names(names, "names"))?;
    let out = at_once(py, || value::out(out, resume))?;
    let jobs = at_once(py, || whole(jobs, "jobs", 0..=JOBS))? as usize;
    let seeds =
        seeds.map(|seeds| at_once(py, || whole(&seeds, "seeds", 1..=100_000))).transpose()?;
    let work = |stop: &Arc<_>| {
        let chosen = select(&names).map_err(|error| Failure::named("names", error))?;
        let store = out.as_deref().map(|out| Store::open(out, resume)).transpose()?;
        let form = if quick { Form::Quick } else { Form::Whole };
        let runs = Runs::new(form, seeds, store.as_ref(), jobs, stop, &|_| ())?;
        let mut words = vec!["narrows".to_owned(), "papers".into()];
        words.extend(names.clone());
        words.extend(quick.then(|| "--quick".into()));
        words.extend(seeds.map(|seeds| format!("--seeds={seeds}")));
        let mut made = Vec::new();
        for (paper, table) in chosen {
            let grid = (table.make)(&runs).map_err(Failure::from)?;
            made.push(PaperTable { paper, table, grid, words: words.clone() });
        }
        Ok(made)
    };
    wait(py, work, |_| Ok(()))
}
