//! What a page is made of.

use serde::Serialize;

use crate::lanes::Lanes;
use crate::network::Network;
use crate::plot::Plot;
use crate::strips::Strips;
use crate::table::Table;

/// Results, as a page shows them.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The title.
    pub title: String,
    /// A sentence below it.
    pub lead: String,
    /// The command that makes this page again.
    pub command: String,
    /// What it was made of: version, seed, scenario, settings.
    pub facts: Vec<Fact>,
    /// Numbers that matter most.
    pub tiles: Vec<Tile>,
    /// What plots over time have in common.
    pub timeline: Timeline,
    /// The rest, in this order.
    pub sections: Vec<Section>,
}

/// A name and its value.
#[derive(Clone, Debug)]
pub struct Fact {
    /// What it is.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A number that stands out.
#[derive(Clone, Debug)]
pub struct Tile {
    /// What it is.
    pub name: String,
    /// The number with its unit.
    pub value: String,
    /// What it means, in a few words.
    pub about: String,
}

/// What plots over time have in common.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Timeline {
    /// The end, s; it begins at 0.
    pub end: f64,
    /// Until when nothing is analysed, s.
    pub warmup: f64,
    /// What happens.
    pub events: Vec<Event>,
}

/// What happens at a time.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// When, s.
    pub at: f64,
    /// What happens, in a few words.
    pub what: String,
}

/// A part of a page under a heading.
#[derive(Clone, Debug)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// What is shown; may be empty.
    pub about: String,
    /// What it shows.
    pub parts: Vec<Part>,
}

/// Something shown.
#[derive(Clone, Debug)]
pub enum Part {
    /// Curves.
    Plot(Plot),
    /// What was so from when to when.
    Lanes(Lanes),
    /// Values beside each other.
    Strips(Strips),
    /// A table.
    Table(Table),
    /// Links and routes.
    Network(Network),
    /// Text in lines, folded away under its title.
    Text {
        /// The title.
        title: String,
        /// The text.
        text: String,
    },
}
