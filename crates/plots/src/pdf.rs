//! A drawing as PDF: one page, with the glyphs of its text embedded, and with nothing of when or where it was made.

use std::collections::BTreeMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::types::{CidFontType, FontFlags, LineJoinStyle, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str, TextStr};
use subsetter::GlyphRemapper;

use crate::drawing::{Drawing, Point, Rgb, SIZE, Shape, WIDTH, safe};
use crate::font;

const FONT: Name = Name(b"F");
/// A subset has six letters before its name (ISO 32000-1, section 9.6.4).
const FONT_NAME: Name = Name(b"NARROW+DejaVuSans");
const SYSTEM: SystemInfo =
    SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// The file.
pub(crate) fn of(drawing: &Drawing) -> Vec<u8> {
    let mut next = Ref::new(1);
    let [catalog, pages, page, content, info] = std::array::from_fn(|_| next.bump());
    let mut used = Used::default();
    let drawn = used.content(drawing);
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages).lang(TextStr("en"));
    pdf.pages(pages).kids([page]).count(1);
    let mut of_page = pdf.page(page);
    of_page.parent(pages).contents(content);
    of_page.media_box(Rect::new(0.0, 0.0, WIDTH as f32, drawing.height as f32));
    let mut resources = of_page.resources();
    let font = next.bump();
    if !used.letters.is_empty() {
        resources.fonts().pair(FONT, font);
    }
    if !used.opacities.is_empty() {
        let mut states = resources.ext_g_states();
        for percent in &used.opacities {
            let name = opacity_name(*percent);
            let opacity = f32::from(*percent) / 100.0;
            states
                .insert(Name(name.as_bytes()))
                .start::<pdf_writer::writers::ExtGraphicsState>()
                .non_stroking_alpha(opacity);
        }
    }
    resources.finish();
    of_page.finish();
    let packed = packed(&drawn);
    pdf.stream(content, &packed).filter(Filter::FlateDecode);
    pdf.document_info(info)
        .title(TextStr(&safe(&drawing.title)))
        .subject(TextStr(&safe(&drawing.about)));
    if !used.letters.is_empty() {
        used.embed(&mut pdf, font, &mut next);
    }
    pdf.finish()
}

/// What the page refers to.
#[derive(Default)]
struct Used {
    /// Glyphs as they are numbered in the file.
    glyphs: GlyphRemapper,
    /// The letter and the old number of each.
    letters: BTreeMap<u16, (char, ttf_parser::GlyphId)>,
    /// Percent.
    opacities: Vec<u8>,
}

impl Used {
    fn content(&mut self, drawing: &Drawing) -> Vec<u8> {
        let mut to = Content::new();
        // As in the drawing, from above.
        to.transform([1.0, 0.0, 0.0, -1.0, 0.0, drawing.height as f32]);
        to.set_line_join(LineJoinStyle::RoundJoin);
        for shape in &drawing.shapes {
            match shape {
                Shape::Line { points, stroke } => {
                    let [red, green, blue] = stroke.colour.map(share);
                    to.set_stroke_rgb(red, green, blue).set_line_width(stroke.width as f32);
                    let dash = stroke.dash.map(|dash| dash.map(|length| length as f32));
                    to.set_dash_pattern(dash.into_iter().flatten(), 0.0);
                    path(&mut to, points);
                    to.stroke();
                }
                Shape::Area { points, fill, opacity } => {
                    self.fill(&mut to, *fill, *opacity);
                    path(&mut to, points);
                    to.close_path().fill_nonzero();
                }
                Shape::Dot { at, radius, fill, opacity } => {
                    self.fill(&mut to, *fill, *opacity);
                    circle(&mut to, *at, *radius);
                    to.fill_nonzero();
                }
                Shape::Text { at: (x, y), text, anchor, turned, fill } => {
                    self.fill(&mut to, *fill, 1.0);
                    let text = safe(text);
                    let before = font::before(&text, *anchor);
                    // Letters stand upright again.
                    let matrix = if *turned {
                        [0.0, -1.0, -1.0, 0.0, short(*x), short(y + before)]
                    } else {
                        [1.0, 0.0, 0.0, -1.0, short(x - before), short(*y)]
                    };
                    let bytes = self.encoded(&text);
                    to.begin_text().set_font(FONT, SIZE as f32).set_text_matrix(matrix);
                    to.show(Str(&bytes)).end_text();
                }
            }
        }
        to.finish().into_vec()
    }

    fn fill(&mut self, to: &mut Content, fill: Rgb, opacity: f64) {
        let [red, green, blue] = fill.map(share);
        to.set_fill_rgb(red, green, blue);
        let percent = (100.0 * opacity).round() as u8;
        // It holds on: once one was set, each that follows says its own.
        if percent < 100 || !self.opacities.is_empty() {
            if !self.opacities.contains(&percent) {
                self.opacities.push(percent);
            }
            to.set_parameters(Name(opacity_name(percent).as_bytes()));
        }
    }

    /// A text as the numbers of its glyphs, two bytes each.
    fn encoded(&mut self, text: &str) -> Vec<u8> {
        let mut number = |letter| {
            let glyph = font::glyph(letter);
            let number = self.glyphs.remap(glyph.0);
            self.letters.entry(number).or_insert((letter, glyph));
            number.to_be_bytes()
        };
        text.chars().flat_map(&mut number).collect()
    }

    /// The font, with these glyphs alone.
    fn embed(&self, pdf: &mut Pdf, font: Ref, next: &mut Ref) {
        let [cid, descriptor, cmap, data] = std::array::from_fn(|_| next.bump());
        let face = font::face();
        let scale = 1000.0 / f64::from(face.units_per_em());
        let scaled = |units: i16| (f64::from(units) * scale) as f32;
        pdf.type0_font(font)
            .base_font(FONT_NAME)
            .encoding_predefined(Name(b"Identity-H"))
            .descendant_font(cid)
            .to_unicode(cmap);
        let mut of = pdf.cid_font(cid);
        of.subtype(CidFontType::Type2).base_font(FONT_NAME).system_info(SYSTEM);
        of.font_descriptor(descriptor).default_width(0.0);
        of.cid_to_gid_map_predefined(Name(b"Identity"));
        let mut widths = of.widths();
        for (number, (_, glyph)) in &self.letters {
            widths.consecutive(*number, [(font::advance(*glyph) * scale) as f32]);
        }
        widths.finish();
        of.finish();
        let bounds = face.global_bounding_box();
        let bounds = [bounds.x_min, bounds.y_min, bounds.x_max, bounds.y_max].map(scaled);
        pdf.font_descriptor(descriptor)
            .name(FONT_NAME)
            .flags(FontFlags::SYMBOLIC)
            .bbox(Rect::new(bounds[0], bounds[1], bounds[2], bounds[3]))
            .italic_angle(0.0)
            .ascent(scaled(face.ascender()))
            .descent(scaled(face.descender()))
            .cap_height(scaled(face.capital_height().unwrap_or(face.ascender())))
            // A guess that readers use without the font alone.
            .stem_v(80.0)
            .font_file2(data);
        let mut unicode = UnicodeCmap::new(Name(b"Narrows"), SYSTEM);
        for (number, (letter, _)) in &self.letters {
            unicode.pair(*number, *letter);
        }
        pdf.cmap(cmap, &unicode.finish());
        let subset = subsetter::subset(font::file(), 0, &self.glyphs);
        let subset = subset.expect("the font that comes with the program");
        let packed = packed(&subset);
        pdf.stream(data, &packed)
            .filter(Filter::FlateDecode)
            .pair(Name(b"Length1"), subset.len() as i32);
    }
}

fn opacity_name(percent: u8) -> String {
    format!("O{percent}")
}

fn share(of: u8) -> f32 {
    f32::from(of) / 255.0
}

/// With as many digits as can be seen.
fn short(value: f64) -> f32 {
    ((100.0 * value).round() / 100.0) as f32
}

fn path(to: &mut Content, points: &[Point]) {
    for (at, (x, y)) in points.iter().enumerate() {
        if at == 0 {
            to.move_to(short(*x), short(*y));
        } else {
            to.line_to(short(*x), short(*y));
        }
    }
}

/// Four curves, which are off by less than a thousandth of the radius.
fn circle(to: &mut Content, (x, y): Point, radius: f64) {
    const HANDLE: f64 = 0.5523;
    let at = |across: f64, down: f64| (short(x + radius * across), short(y + radius * down));
    let (first, corners) = (at(1.0, 0.0), [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)]);
    to.move_to(first.0, first.1);
    for (at_corner, (across, down)) in corners.into_iter().enumerate() {
        let (next_across, next_down) = corners[(at_corner + 1) % 4];
        let one = at(across + HANDLE * next_across, down + HANDLE * next_down);
        let other = at(next_across + HANDLE * across, next_down + HANDLE * down);
        let end = at(next_across, next_down);
        to.cubic_to(one.0, one.1, other.0, other.1, end.0, end.1);
    }
    to.close_path();
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut to = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail.
    let _ = to.write_all(bytes);
    to.finish().unwrap_or_default()
}
