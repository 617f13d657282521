//! The page as HTML.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::colour::STYLE;
use crate::lanes::Lanes;
use crate::page::{Page, Part, Section, Timeline};
use crate::plot::Plot;
use crate::strips::{Strips, decimals};
use crate::table::Table;

const UPLOT: &str = include_str!("../assets/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../assets/uPlot.min.css");
const SCRIPT: &str = include_str!("../assets/page.js");

/// It goes with every copy.
const UPLOT_LICENCE: &str = include_str!("../../../LICENSES/uPlot-MIT.txt");

/// Points of a curve at most, more than a screen has pixels.
const POINTS: usize = 2000;
/// Numbers in all plots at most, of about six bytes each: what keeps a page below a megabyte.
const NUMBERS: usize = 100_000;
/// The same of spans in all lanes, of about 25 bytes each.
const SPANS: usize = 8000;

/// Dots in all rows of strips at most.
const DOTS: usize = 2000;

/// What the script draws.
#[derive(Serialize)]
struct Drawn {
    timeline: Timeline,
    plots: Vec<Plot>,
    lanes: Vec<Lanes>,
}

impl Page {
    /// The whole file. Series longer than a screen shows are thinned, see [`Plot::thinned`].
    pub fn html(&self) -> String {
        let drawn = self.drawn();
        let script = format!("{UPLOT}\n{SCRIPT}");
        // A script that foreign text might bring in has another hash.
        let hash = STANDARD.encode(Sha256::digest(&script));
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{hash}'; style-src 'unsafe-inline'; img-src data:"
        );
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    link rel="icon" href="data:,";
                    title { (self.title) }
                    style { (PreEscaped(UPLOT_STYLE)) (PreEscaped(STYLE)) }
                }
                body {
                    a.skip href="#results" { "Skip to the results" }
                    header {
                        h1 { (self.title) }
                        @if !self.lead.is_empty() { p.lead { (self.lead) } }
                        (self.origin())
                    }
                    (self.bar())
                    main #results {
                        noscript { p.note { "Plots need JavaScript, which this browser does not run; tables do not." } }
                        (self.results())
                    }
                    footer {
                        p { "Made by Narrows; plots by uPlot. This page loads nothing from a network." }
                        details.text { summary { "Licence of uPlot" } pre tabindex="0" { (UPLOT_LICENCE) } }
                    }
                    script #data type="application/json" { (PreEscaped(json(&drawn))) }
                    script { (PreEscaped(script)) }
                }
            }
        }
        .into_string()
    }

    /// The results alone, for a page that has its own frame, with `assets/page.css`, uPlot and `assets/page.js`: their HTML
    /// and, as JSON, what `narrows.draw` draws in it.
    pub fn inside(&self) -> (String, String) {
        (self.results().into_string(), json(&self.drawn()))
    }

    /// The tiles and the sections.
    fn results(&self) -> Markup {
        let mut next = Next::default();
        html! {
            @if !self.tiles.is_empty() {
                dl.tiles {
                    @for tile in &self.tiles {
                        div { dt { (tile.name) } dd { b { (tile.value) } span { (tile.about) } } }
                    }
                }
            }
            @for (number, section) in self.sections.iter().enumerate() { (next.section(number, section)) }
        }
    }

    /// The command and the facts.
    fn origin(&self) -> Markup {
        html! {
            pre.command tabindex="0" aria-label="command" { code { (self.command) } }
            dl.facts {
                @for fact in &self.facts { div { dt { (fact.name) } dd { (fact.value) } } }
            }
        }
    }

    /// What stays in view: the time that is shown, and how.
    fn bar(&self) -> Markup {
        let timed = self.parts().any(|part| match part {
            Part::Plot(plot) => plot.over_time,
            Part::Lanes(_) => true,
            _ => false,
        });
        html! {
            nav.bar aria-label="view" {
                @if timed {
                    span.range { "Time " output #range {} }
                    span.group role="group" aria-label="zoom" {
                        @for (what, label, sign) in [
                            ("in", "zoom in", "+"), ("out", "zoom out", "−"),
                            ("left", "earlier", "←"), ("right", "later", "→"), ("all", "all of the time", "All"),
                        ] {
                            button type="button" data-zoom=(what) aria-label=(label) title=(label) { (sign) }
                        }
                    }
                }
                @if self.sections.len() > 1 {
                    span.links {
                        @for (number, section) in self.sections.iter().enumerate() {
                            a href=(format!("#section-{number}")) { (section.title) }
                        }
                    }
                }
                button #theme type="button" aria-label="dark or light" title="dark or light" { "◐" }
            }
        }
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.sections.iter().flat_map(|section| &section.parts)
    }

    /// Plots and lanes in the order of the page.
    fn drawn(&self) -> Drawn {
        let (mut plots, mut lanes) = (Vec::new(), Vec::new());
        for part in self.parts() {
            match part {
                Part::Plot(plot) => plots.push(plot.thinned(POINTS)),
                Part::Lanes(of) => lanes.push(of.clone()),
                _ => {}
            }
        }
        let mut points = POINTS;
        while plots.iter().map(Plot::size).sum::<usize>() > NUMBERS && points > 50 {
            points = points * 3 / 4;
            plots = plots.iter().map(|plot| plot.thinned(points)).collect();
        }
        let mut spans = POINTS;
        while lanes.iter().map(Lanes::size).sum::<usize>() > SPANS && spans > 50 {
            spans = spans * 3 / 4;
            lanes = lanes.iter().map(|lanes| lanes.thinned(spans)).collect();
        }
        let plots = plots.into_iter().map(Plot::rounded).collect();
        Drawn { timeline: self.timeline.clone(), plots, lanes }
    }
}

/// Values as JSON that no HTML parser takes for the end of a script.
fn json(value: &impl Serialize) -> String {
    // Only maps with keys other than strings fail, and there are none.
    serde_json::to_string(value).unwrap_or_default().replace('<', "\\u003c")
}

/// The numbers of plots and lanes, by which the script finds what to draw.
#[derive(Default)]
struct Next {
    plot: usize,
    lanes: usize,
}

impl Next {
    fn section(&mut self, number: usize, section: &Section) -> Markup {
        html! {
            section id=(format!("section-{number}")) {
                h2 { (section.title) }
                @if !section.about.is_empty() { p.about { (section.about) } }
                @for part in &section.parts { (self.part(part)) }
            }
        }
    }

    fn part(&mut self, part: &Part) -> Markup {
        match part {
            Part::Plot(plot) => {
                self.plot += 1;
                figure("plot", self.plot - 1, &plot.title, &plot.about)
            }
            Part::Lanes(lanes) => {
                self.lanes += 1;
                figure("lanes", self.lanes - 1, &lanes.title, &lanes.about)
            }
            Part::Strips(of) => strips(of),
            Part::Table(of) => table(of),
            Part::Network(network) => network.svg(),
            Part::Text { title, text } => html! {
                details.text { summary { (title) } pre tabindex="0" { (text) } }
            },
        }
    }
}

/// The frame of what the script draws.
fn figure(kind: &str, number: usize, title: &str, about: &str) -> Markup {
    let id = format!("{kind}-{number}");
    html! {
        figure data-kind=(kind) data-number=(number) aria-labelledby=(id) {
            figcaption {
                h3 #(id) { (title) }
                span.at {}
                @if !about.is_empty() { p { (about) } }
            }
            div.legend {}
            div.canvas tabindex="0" role="img" aria-label=(format!("{title}; the values are in the table below")) {}
            div.below {
                details.behind { summary { "Table" } div.scroll tabindex="0" {} }
                button.csv type="button" { "Download CSV" }
            }
        }
    }
}

fn table(table: &Table) -> Markup {
    let class = |column: usize| (column >= table.left).then_some("number");
    html! {
        div.block {
            @if !table.title.is_empty() { h3 { (table.title) } }
            @if !table.about.is_empty() { p.about { (table.about) } }
            div.scroll tabindex="0" role="group" aria-label=(table.title) {
                table {
                    thead { tr {
                        @for (column, (head, about)) in table.heads.iter().enumerate() {
                            th scope="col" class=[class(column)] title=[(!about.is_empty()).then_some(about)] { (head) }
                        }
                    } }
                    tbody {
                        @for line in &table.lines {
                            tr {
                                @for (column, cell) in line.iter().enumerate() {
                                    td class=[class(column)] { (cell) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Rows of dots, without any script.
fn strips(strips: &Strips) -> Markup {
    let axis = strips.axis();
    let (low, high) = (axis[0], axis[axis.len() - 1]);
    let at = |value: f64| (100.0 * (value - low) / (high - low)).clamp(0.0, 100.0);
    let left = |value: f64| format!("left:{:.2}%", at(value));
    let between =
        |from: f64, to: f64| format!("left:{:.2}%;width:{:.2}%", at(from), at(to) - at(from));
    let (of_axis, decimals) = (decimals(&axis), strips.digits(&axis));
    let tick = |value: &f64| format!("{value:.of_axis$}");
    // Of many rows fewer, so that the file stays small.
    let dots = (DOTS / strips.rows.len().max(1)).clamp(10, 100);
    html! {
        div.block {
            h3 { (strips.title) }
            @if !strips.about.is_empty() { p.about { (strips.about) } }
            @if strips.rows.iter().any(|row| row.values.len() > dots) {
                p.about { "Of each row " (dots) " values are drawn, the least and the greatest among them." }
            }
            div.strips role="img" aria-label=(format!("{}; the values are in the table below", strips.title)) {
                @for row in &strips.rows {
                    div class=(format!("strip {}", row.colour.class())) {
                        span.name title=(row.name) { (row.name) }
                        span.line {
                            @for value in &axis { i.grid style=(left(*value)) {} }
                            @if let Some(reference) = strips.reference { i.reference style=(left(reference)) {} }
                            @if let (true, Some(mean)) = (strips.bars, row.mean) {
                                i.bar style=(between(0.0_f64.min(mean), mean.max(0.0))) {}
                            }
                            @if let (false, Some([first, median, third])) = (strips.bars, row.quartiles) {
                                i.box style=(between(first, third)) title=(format!("quartiles {first:.decimals$} to {third:.decimals$}")) {}
                                i.median style=(left(median)) title=(format!("median {median:.decimals$}")) {}
                            }
                            @for (of, value) in row.some(dots) {
                                i.dot style=(left(*value)) title=(format!("{of}: {value:.decimals$}")) {}
                            }
                            @if let Some([from, to]) = row.interval() {
                                i.interval style=(between(from, to)) title=(format!("mean {}", row.shown(decimals))) {}
                            }
                            @if let Some((text, value)) = &row.published {
                                i.published style=(left(*value)) title=(format!("published {text}")) {}
                            }
                        }
                        span.value {
                            @if let (Some(mean), None, Some([low, high])) = (row.mean, row.ci95, row.bounds) {
                                (format!("{mean:.decimals$}")) small { (format!("{low:.decimals$} to {high:.decimals$}")) }
                            } @else { (row.shown(decimals)) }
                            @if let Some((text, _)) = &row.published { small { "published " (text) } }
                        }
                    }
                }
                div.strip.axis aria-hidden="true" {
                    span.name {}
                    span.line { @for value in &axis { i style=(left(*value)) { (tick(value)) } } }
                    span.value { (strips.label) }
                }
            }
            div.below {
                details.behind {
                    summary { "Table" }
                    div.scroll tabindex="0" {
                        table {
                            thead { tr { th scope="col" { "of" } th.number scope="col" { "mean" } th.number scope="col" { (if strips.is_even() { "± 95 %" } else { "interval" }) }
                                th.number scope="col" { "quartiles" } th scope="col" { "each" } } }
                            tbody { @for row in &strips.rows {
                                tr {
                                    td { (row.name) }
                                    td.number { @if let Some(mean) = row.mean { (format!("{mean:.decimals$}")) } }
                                    td.number {
                                        @if let Some(half) = row.ci95 { (format!("{half:.decimals$}")) }
                                        @else if let Some([low, high]) = row.bounds { (format!("{low:.decimals$} to {high:.decimals$}")) }
                                    }
                                    td.number { @if let Some([a, b, c]) = row.quartiles { (format!("{a:.decimals$} / {b:.decimals$} / {c:.decimals$}")) } }
                                    td { (row.values.iter().map(|(of, value)| format!("{of}: {value:.decimals$}")).collect::<Vec<_>>().join(", ")) }
                                }
                            } }
                        }
                    }
                }
                button.csv type="button" { "Download CSV" }
            }
        }
    }
}
