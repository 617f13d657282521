//! The plots of a page for a paper: each as SVG and as PDF, as wide as a column of two, with its data as CSV.
//!
//! They show what the [`Page`] shows, of the same data: curves, lanes and strips. Its tables are not drawn, nor
//! is its network. A figure is laid out once, as a drawing of lines, areas and text, and written in both forms;
//! the same page gives the same bytes on every machine, as the font comes with the program.

mod data;
mod drawing;
mod font;
mod frame;
mod lanes;
mod pdf;
mod plot;
mod strips;
mod svg;

use narrows_report::{Page, Part, Timeline};

use crate::drawing::Drawing;

/// A plot as files.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The name of its files, without what they end with.
    pub name: String,
    /// As SVG, which needs no font.
    pub svg: String,
    /// As PDF, with the font embedded.
    pub pdf: Vec<u8>,
    /// What it shows, as CSV; also the curves that a page does not show until it is asked to.
    pub csv: Vec<u8>,
}

/// All plots of a page, in its order. Each is named after its section and itself; one that has the name of another
/// has a number behind it.
pub fn figures(page: &Page) -> Vec<Figure> {
    let mut all: Vec<Figure> = Vec::new();
    for section in &page.sections {
        for part in &section.parts {
            let Some((title, drawing, csv)) = figure(part, &page.timeline) else { continue };
            let name = file_name(&format!("{} {title}", section.title));
            let same = |name: &String| all.iter().any(|other| other.name == *name);
            let numbered = (2..).map(|number| format!("{name}-{number}"));
            let name = [name.clone()].into_iter().chain(numbered).find(|name| !same(name));
            let (svg, pdf) = (svg::of(&drawing), pdf::of(&drawing));
            all.push(Figure { name: name.unwrap_or_default(), svg, pdf, csv });
        }
    }
    all
}

/// The title of a part that is a plot, its drawing, and its data.
fn figure<'a>(part: &'a Part, timeline: &Timeline) -> Option<(&'a str, Drawing, Vec<u8>)> {
    match part {
        Part::Plot(of) => Some((&of.title, plot::draw(of, timeline), data::plot(of))),
        Part::Lanes(of) => Some((&of.title, lanes::draw(of, timeline), data::lanes(of))),
        Part::Strips(of) => Some((&of.title, strips::draw(of), data::strips(of))),
        Part::Table(_) | Part::Network(_) | Part::Text { .. } => None,
    }
}

/// `sbd/nsb-2 Ratio to TCP` is `sbd-nsb-2-ratio-to-tcp`.
fn file_name(title: &str) -> String {
    let letters = title.to_lowercase().replace('\'', "");
    let words = letters.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    // Of titles that others chose, as long as every file system takes.
    let name: String = words.join("-").chars().take(120).collect();
    if name.is_empty() { "plot".into() } else { name }
}
