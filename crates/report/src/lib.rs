//! Results as one page for a browser: a single HTML file that loads nothing from a network.
//!
//! A [`Page`] is plain data: sections of [`Plot`]s, [`Lanes`], [`Strips`], [`Table`]s and [`Network`]s.
//! [`Page::html`] writes it, the same bytes for the same data. All text is foreign and is escaped. Plots are
//! drawn by uPlot, which stands in `assets` with the page's own script and style.

mod colour;
mod command;
mod html;
mod lanes;
mod network;
mod page;
mod plot;
mod strips;
mod table;

pub use colour::{COLOURS, Colour, light};
pub use command::command_line;
pub use lanes::{Kind, Lane, Lanes, Span};
pub use network::{Network, NetworkLink, Route};
pub use page::{Event, Fact, Page, Part, Section, Tile, Timeline};
pub use plot::{Curve, Line, Plot};
pub use strips::{Strip, Strips, axis, decimals};
pub use table::Table;
