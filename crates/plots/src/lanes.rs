//! What was so from when to when.

use narrows_report::{Colour, Kind, Lane, Lanes, Span, Timeline, light};

use crate::data::word;
use crate::drawing::{Anchor, Drawing, Point, Rgb, Stroke, WIDTH, grid, rule};
use crate::font::{fitting, width};
use crate::frame::{BASE, EDGE, GAP, LINE, MIDDLE, Scale, about, below, events, legend, within};

/// Points of a lane, and from one to the next.
const LANE: f64 = 9.0;
const STEP: f64 = 11.0;
/// Points of a name at most.
const NAME: f64 = 70.0;
/// Spans of a lane that can be told apart.
const SPANS: usize = 400;

/// Lanes over time.
pub(crate) fn draw(lanes: &Lanes, timeline: &Timeline) -> Drawing {
    let mut drawing = Drawing::new(&lanes.title, about(&lanes.about, "", Some(timeline)));
    let kinds: Vec<Kind> = [
        Kind::Group(0),
        Kind::Alone,
        Kind::Right,
        Kind::Wrong,
        Kind::Undecided,
        Kind::Clear,
        Kind::Absent,
    ]
    .into_iter()
    .filter(|kind| {
        let same = |span: &Span| word(span.kind) == word(*kind);
        lanes.lanes.iter().any(|lane| lane.spans.iter().any(same))
    })
    .collect();
    let name = |kind: &Kind| match kind {
        Kind::Group(_) => "one colour: one group",
        kind => word(*kind),
    };
    let names: Vec<&str> = kinds.iter().map(name).collect();
    let sample = |to: &mut Drawing, number: usize, from: Point, end: Point| match kinds[number] {
        // Two, as that is what tells groups apart.
        Kind::Group(_) => {
            let middle = (from.0 + end.0) / 2.0;
            fill(to, Kind::Group(0), from, (middle - 0.5, end.1));
            fill(to, Kind::Group(1), (middle + 0.5, from.1), end);
        }
        kind => fill(to, kind, from, end),
    };
    let mut y = legend(&mut drawing, &names, sample) + GAP;
    if !timeline.events.is_empty() {
        y += LINE;
    }
    let top = y;
    let thin = lanes.thinned(SPANS);
    let widest = thin.lanes.iter().map(|lane| width(&lane.name)).fold(0.0, f64::max);
    let left = widest.min(NAME) + GAP;
    let x = Scale { low: 0.0, high: timeline.end, from: left, to: WIDTH - EDGE };
    let mut rows: Vec<(f64, &Lane)> = Vec::new();
    for lane in &thin.lanes {
        if lane.heading.is_some() {
            y += LINE + 1.0;
        }
        rows.push((y, lane));
        y += STEP;
    }
    let bottom = y;
    // The grid behind all.
    let end = below(&mut drawing, &within(0.0, timeline.end), x, (top, bottom), "time, s");
    for (y, lane) in rows {
        if let Some(heading) = &lane.heading {
            let heading = fitting(heading, x.to - left);
            let muted = Colour::Muted.light();
            drawing.text_in((left, y - LINE + BASE), Anchor::Start, heading, muted);
        }
        let name = fitting(&lane.name, NAME);
        drawing.text((left - GAP, y + LANE / 2.0 + MIDDLE), Anchor::End, name);
        let most = lane.spans.iter().map(lost).max().unwrap_or(0).max(1);
        for span in &lane.spans {
            let (from, to) = (x.at(span.from), x.at(span.to));
            let least = if lost(span) > 0 { 0.8 } else { 0.2 };
            let corner = (to.max(from + least), y + LANE);
            match span.kind {
                // The more, the higher.
                Kind::Lost(lost) => {
                    let height = LANE * (0.25 + 0.75 * lost as f64 / most as f64);
                    drawing.rect((from, y + LANE - height), corner, lane.colour.light(), 1.0);
                }
                kind => fill(&mut drawing, kind, (from, y), corner),
            }
        }
        drawing.line([(left, y + LANE), (x.to, y + LANE)], grid());
    }
    events(&mut drawing, timeline, x, (top - LINE, bottom));
    drawing.height = end;
    drawing
}

fn lost(span: &Span) -> u64 {
    match span.kind {
        Kind::Lost(lost) => lost,
        _ => 0,
    }
}

/// A span between two corners. Kinds are told apart without their colours, too.
fn fill(drawing: &mut Drawing, kind: Kind, from: Point, to: Point) {
    const WHITE: Rgb = [255; 3];
    let mut rect = |colour: Rgb| drawing.rect(from, to, colour, 1.0);
    match kind {
        Kind::Group(number) => rect(Colour::Number(number).light()),
        Kind::Right => rect(light("right")),
        Kind::Clear | Kind::Lost(_) => rect(light("clear")),
        Kind::Alone => {
            rect(light("clear"));
            drawing.rect((from.0, to.1 - 1.5), to, Colour::Muted.light(), 1.0);
        }
        Kind::Wrong => {
            rect(light("wrong"));
            hatch(drawing, from, to, WHITE);
        }
        Kind::Undecided => {
            let colour = light("undecided");
            drawing.rect(from, to, colour, 0.35);
            hatch(drawing, from, to, colour);
        }
        Kind::Absent => {
            let middle = (from.1 + to.1) / 2.0;
            let stroke = Stroke { dash: Some([1.5, 1.5]), ..rule() };
            drawing.line([(from.0, middle), (to.0, middle)], stroke);
        }
    }
}

/// Slanted lines between two corners.
fn hatch(drawing: &mut Drawing, from: Point, to: Point, colour: Rgb) {
    const STEP: f64 = 2.8;
    let height = to.1 - from.1;
    // By a grid of the figure, so that neighbours go on.
    let mut foot = ((from.0 - height) / STEP).floor() * STEP;
    while foot < to.0 {
        let at = |x: f64| (x, to.1 - (x - foot));
        let (left, right) = (foot.max(from.0), (foot + height).min(to.0));
        if left < right {
            drawing.line([at(left), at(right)], Stroke::new(colour, 0.6));
        }
        foot += STEP;
    }
}
