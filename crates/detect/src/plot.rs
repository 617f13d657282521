//! Each flow's delay over time, coloured by its group, with its rate and losses: SVG or PNG.

use std::sync::Once;

use narrows_laws::Place;
use plotters::backend::{BitMapBackend, SVGBackend};
use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Text};
use plotters::prelude::DrawingBackend;
use plotters::style::{Color, FontStyle, IntoFont, RGBColor, WHITE, register_font};

use crate::file::File;
use crate::verdict::numbered;
use crate::watch::Watch;
use crate::{Decision, Error, Observation, Source};

/// Points of a flow, and the pixels they take.
const BINS: usize = 1200;
const WIDTH: u32 = 1320;
/// Pixels of a flow: its delay, and below its rate and losses.
const DELAY: u32 = 130;
const RATE: u32 = 60;
/// Points of a rate: half a second and more in a capture of a minute.
const RATES: usize = 120;
/// Pixels above the first.
const HEAD: u32 = 30;

const CLEAR: RGBColor = RGBColor(95, 95, 95);
const UNDECIDED: RGBColor = RGBColor(175, 175, 175);
const LOSS: RGBColor = RGBColor(0, 0, 0);

/// Colours of groups, which are also distinct for eyes that see no red, green or blue (P. Tol, Colour
/// Schemes, SRON/EPS/TN/09-002, "muted"), dark ones first.
const COLOURS: [RGBColor; 9] = [
    RGBColor(0x33, 0x22, 0x88),
    RGBColor(0xcc, 0x66, 0x77),
    RGBColor(0x11, 0x77, 0x33),
    RGBColor(0x88, 0xcc, 0xee),
    RGBColor(0x88, 0x22, 0x55),
    RGBColor(0xdd, 0xcc, 0x77),
    RGBColor(0x44, 0xaa, 0x99),
    RGBColor(0xaa, 0x44, 0x99),
    RGBColor(0x99, 0x99, 0x33),
];

/// The delays of all flows, as means of equal times.
pub struct Plot {
    file: File,
    title: String,
    names: Vec<String>,
    start: f64,
    end: f64,
    bins: Vec<Vec<Bin>>,
    /// Of each flow, packets that arrived and that were lost.
    rates: Vec<Vec<Rate>>,
    colours: Vec<RGBColor>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    delivered: u32,
    lost: u32,
}

#[derive(Clone, Copy, Debug)]
struct Bin {
    sum_us: i64,
    count: u32,
    colour: RGBColor,
}

impl Plot {
    /// Of the flows of `source`, into a [`File::plot`] that appears when it is finished.
    pub fn new(file: File, source: &Source) -> Plot {
        let names = source.recording().flows.to_vec();
        let (start, end) = source.recording().span;
        let empty = Bin { sum_us: 0, count: 0, colour: UNDECIDED };
        Plot {
            file,
            title: format!("{}, ms above its minimum", source.recording().about()),
            start,
            // Of one packet, too.
            end: end.max(start + 1e-3),
            bins: vec![vec![empty; BINS]; names.len()],
            rates: vec![vec![Rate::default(); RATES]; names.len()],
            colours: vec![UNDECIDED; names.len()],
            names,
        }
    }

    /// Draws it and puts the file in its place.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(self) -> Result<(), Error> {
        static FONT: Once = Once::new();
        FONT.call_once(|| {
            // The font is one that can be read.
            let _ = register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular());
        });
        let name = self.file.name();
        let size = (WIDTH, HEAD + (DELAY + RATE) * self.names.len() as u32);
        let cannot_draw = |error: String| Error::input(&name, format!("cannot draw: {error}"));
        let bytes = if self.file.extension() == "png" {
            let mut pixels = vec![0; (size.0 * size.1 * 3) as usize];
            let canvas = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
            self.draw(&canvas).map_err(cannot_draw)?;
            drop(canvas);
            encode(&pixels, size).map_err(|error| cannot_draw(error.to_string()))?
        } else {
            let mut text = String::new();
            let canvas = SVGBackend::with_string(&mut text, size).into_drawing_area();
            self.draw(&canvas).map_err(cannot_draw)?;
            drop(canvas);
            self.described(&text).into_bytes()
        };
        self.file.write(&bytes)
    }

    /// The SVG with what a screen reader reads in its place.
    fn described(&self, svg: &str) -> String {
        let (title, flows) = (&self.title, self.names.len());
        let about = format!(
            "{flows} flows, {} the first, over {:.0} s: the delay of each, in the colour of its group, and \
             below it its packets per second with a dot where some were lost.",
            numbered(0),
            self.end - self.start
        );
        let parts = format!("><title id=\"title\">{title}</title><desc id=\"desc\">{about}</desc>");
        svg.replacen("<svg ", "<svg role=\"img\" aria-labelledby=\"title desc\" ", 1)
            .replacen('>', &parts, 1)
    }

    fn draw<B: DrawingBackend>(&self, canvas: &DrawingArea<B, Shift>) -> Result<(), String> {
        let text = |error: DrawingAreaErrorKind<B::ErrorType>| error.to_string();
        canvas.fill(&WHITE).map_err(text)?;
        let (head, strips) = canvas.split_vertically(HEAD);
        let font = ("sans-serif", 15);
        let head_text = |x: i32, label: &str, colour: RGBColor| {
            let style = font.into_font().color(&colour);
            head.draw(&Text::new(label.to_owned(), (x, 9), style)).map_err(text)
        };
        head_text(12, &self.title, RGBColor(0, 0, 0))?;
        head_text(560, "one colour: one bottleneck", colour(0))?;
        head_text(780, "not congested", CLEAR)?;
        head_text(900, "undecided", UNDECIDED)?;
        head_text(1000, "below: packets/s, and losses (dots)", LOSS)?;
        // One scale for all flows.
        let most_delay = self.bins.iter().map(|bins| range(bins).1).fold(0.0, f64::max);
        let seconds = (self.end - self.start) / RATES as f64;
        let most_rate = self.rates.iter().flatten().map(|rate| rate.delivered).max().unwrap_or(0);
        let (top, most) = (above(most_delay), above(f64::from(most_rate) / seconds));
        for (flow, strip) in strips.split_evenly((self.names.len(), 1)).iter().enumerate() {
            let (delay, rate) = strip.split_vertically(DELAY);
            let caption = format!("{}  {}", numbered(flow), self.names[flow]);
            self.draw_delay(&delay, &caption, &self.bins[flow], top).map_err(text)?;
            self.draw_rate(&rate, &self.rates[flow], seconds, most).map_err(text)?;
        }
        canvas.present().map_err(text)
    }

    fn draw_delay<B: DrawingBackend>(
        &self,
        strip: &DrawingArea<B, Shift>,
        caption: &str,
        bins: &[Bin],
        top: f64,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        let filled = || bins.iter().enumerate().filter(|(_, bin)| bin.count > 0);
        let (least, _) = range(bins);
        let mut chart = ChartBuilder::on(strip)
            .margin_left(8)
            .margin_right(16)
            .caption(caption, ("sans-serif", 14))
            .x_label_area_size(20)
            .y_label_area_size(50)
            .build_cartesian_2d(self.start..self.end, 0.0..top)?;
        let rounded = |value: &f64| format!("{value:.0}");
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(13)
            .y_labels(4)
            .max_light_lines(0)
            .label_style(("sans-serif", 12))
            .x_label_formatter(&|t_s| format!("{t_s:.0} s"))
            .y_label_formatter(&rounded)
            .draw()?;
        let width = (self.end - self.start) / bins.len() as f64;
        let point = |(place, bin): (usize, &Bin)| {
            (self.start + (place as f64 + 0.5) * width, bin.mean_ms() - least)
        };
        let mut line: Vec<(f64, f64)> = Vec::new();
        let mut last: Option<(usize, RGBColor)> = None;
        for (place, bin) in filled() {
            let goes_on =
                last.is_some_and(|(before, colour)| place - before <= GAP && colour == bin.colour);
            if let (false, Some((_, colour))) = (goes_on, last) {
                chart.draw_series([PathElement::new(std::mem::take(&mut line), colour)])?;
            }
            line.push(point((place, bin)));
            last = Some((place, bin.colour));
        }
        if let Some((_, colour)) = last {
            chart.draw_series([PathElement::new(line, colour)])?;
        }
        Ok(())
    }

    fn draw_rate<B: DrawingBackend>(
        &self,
        strip: &DrawingArea<B, Shift>,
        rates: &[Rate],
        seconds: f64,
        top: f64,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        let mut chart = ChartBuilder::on(strip)
            .margin_left(8)
            .margin_right(16)
            .margin_bottom(8)
            .y_label_area_size(50)
            .build_cartesian_2d(self.start..self.end, 0.0..top)?;
        let rounded = |value: &f64| format!("{value:.0}");
        chart
            .configure_mesh()
            .disable_mesh()
            .y_labels(3)
            .label_style(("sans-serif", 12))
            .y_label_formatter(&rounded)
            .draw()?;
        let at = |place: usize| self.start + (place as f64 + 0.5) * seconds;
        let rate = |(place, rate): (usize, &Rate)| (at(place), f64::from(rate.delivered) / seconds);
        let line: Vec<(f64, f64)> = rates.iter().enumerate().map(rate).collect();
        chart.draw_series([PathElement::new(line, CLEAR)])?;
        let lossy = rates.iter().enumerate().filter(|(_, rate)| rate.lost > 0);
        // The more are lost, the larger is the dot.
        let dot = |(place, rate): (usize, &Rate)| {
            let radius = 2 + rate.lost.ilog2().min(6) as i32 / 2;
            Circle::new((at(place), 0.9 * top), radius, LOSS.filled())
        };
        chart.draw_series(lossy.map(dot))?;
        Ok(())
    }
}

impl Watch for Plot {
    fn decided(&mut self, decision: &Decision) {
        for (flow, place) in decision.on.places.iter().enumerate() {
            self.colours[flow] = match place {
                Place::Clear => CLEAR,
                Place::Undecided => UNDECIDED,
                Place::Group(_) => {
                    let smallest = decision.on.places.iter().position(|other| other == place);
                    colour(smallest.unwrap_or(flow))
                }
            };
        }
    }

    fn observed(&mut self, observation: &Observation) {
        let Observation { flow, now_us, delay_us, delivered, lost } = *observation;
        let share = now_us as f64 / 1e6 / (self.end - self.start);
        let place = |all: usize| ((share * all as f64) as usize).min(all - 1);
        let rate = &mut self.rates[flow][place(RATES)];
        rate.delivered += delivered;
        rate.lost += lost;
        if let Some(delay_us) = delay_us {
            let bin = &mut self.bins[flow][place(BINS)];
            bin.sum_us += i64::from(delay_us);
            bin.count += 1;
            bin.colour = self.colours[flow];
        }
    }
}

/// The least mean of a flow, ms, and how much larger the largest is.
fn range(bins: &[Bin]) -> (f64, f64) {
    let means = || bins.iter().filter(|bin| bin.count > 0).map(Bin::mean_ms);
    let least = means().fold(f64::INFINITY, f64::min);
    (least, means().map(|mean| mean - least).fold(0.0, f64::max))
}

/// The upper end of an axis of values up to `most`.
fn above(most: f64) -> f64 {
    if most > 0.0 { 1.05 * most } else { 1.0 }
}

impl Bin {
    fn mean_ms(&self) -> f64 {
        self.sum_us as f64 / f64::from(self.count) / 1e3
    }
}

/// Means so many times apart are joined by a line.
const GAP: usize = 5;

/// The colour of a group by its smallest flow; that of the tenth is the first's again.
fn colour(flow: usize) -> RGBColor {
    COLOURS[flow % COLOURS.len()]
}

fn encode(pixels: &[u8], (width, height): (u32, u32)) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(pixels)?;
    Ok(bytes)
}
