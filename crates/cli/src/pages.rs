//! A page of results as files: `--report` and `--plots`.

use std::path::Path;

use narrows_lab::Output;
use narrows_lab::page::{Page, PageFile};
use narrows_plots::figures;

use crate::error::Error;

/// Writes a page into its file, and its plots into their folder; returns what to say of both.
///
/// # Errors
/// A file cannot be written.
pub fn written(
    report: Option<(PageFile, &Path)>,
    plots: Option<Output>,
    page: &Page,
) -> Result<String, Error> {
    let mut said = String::new();
    if let Some((file, path)) = report {
        file.write(page)?;
        said = format!("\nPage for a browser: {}\n", path.display());
    }
    let Some(mut output) = plots else { return Ok(said) };
    let figures = figures(page);
    let place = output.target().display().to_string();
    if figures.is_empty() {
        return Ok(said + &format!("\n{place}: no plots; these tables are no figures\n"));
    }
    for figure in &figures {
        let forms = [("svg", figure.svg.as_bytes()), ("pdf", &figure.pdf), ("csv", &figure.csv)];
        for (form, bytes) in forms {
            output.write(&format!("{}.{form}", figure.name), |to| to.write_all(bytes))?;
        }
    }
    let number = figures.len();
    said += &format!("\nPlots in {place}: {number}, as SVG and PDF, with their data as CSV\n");
    output.commit()?;
    Ok(said)
}
