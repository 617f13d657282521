//! Figures of a page of every kind of plot, with names that somebody else chose.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use narrows_plots::{Figure, figures};
use narrows_report::{
    Colour, Curve, Event, Kind, Lane, Lanes, Line, Page, Part, Plot, Section, Span, Strip, Strips,
    Table, Timeline,
};

/// A name of a flow as nobody would choose it who means well.
const NAME: &str = "=<path1> & \u{1}\u{202e}\u{ffff}\"é";

fn page() -> Page {
    let x: Vec<f64> = (0..2000).map(|i| f64::from(i) / 10.0).collect();
    let y = x.iter().map(|x| (*x > 1.0).then_some(10.0 + x / 7.0)).collect();
    let low = x.iter().map(|x| Some(x / 9.0)).collect();
    let high = x.iter().map(|x| Some(20.0 + x / 7.0)).collect();
    let curve = Curve { low, high, ..Curve::new(NAME, Colour::Number(0), y) };
    let other = x.iter().map(|x| Some(x / 3.0)).collect();
    let dashed = Curve { line: Line::Dashed, ..Curve::new("tcp", Colour::Number(1), other) };
    let hidden = Curve { hidden: true, ..Curve::new("sum", Colour::Ink, vec![Some(1.5); 2000]) };
    let plot = Plot {
        title: "Goodput".into(),
        about: "Of each path.".into(),
        x_label: "time, s".into(),
        y_label: "goodput".into(),
        unit: "Mbit/s".into(),
        over_time: true,
        smooth: true,
        x,
        curves: vec![curve, dashed, hidden],
        ..Plot::default()
    };
    let span = |from: f64, to: f64, kind| Span { from, to, kind, what: String::new() };
    let kinds = [Kind::Group(1), Kind::Alone, Kind::Clear, Kind::Undecided, Kind::Absent];
    let kinds = kinds.into_iter().chain([Kind::Right, Kind::Wrong, Kind::Lost(7)]).zip(0..);
    let spans: Vec<Span> = kinds
        .map(|(kind, at)| span(20.0 * f64::from(at), 20.0 * f64::from(at + 1), kind))
        .collect();
    let lane = Lane::new(NAME, spans).under("found");
    let lanes = Lanes { title: "Groups".into(), about: String::new(), lanes: vec![lane] };
    let strip = |name: &str, mean: f64, half: f64| Strip {
        name: name.into(),
        colour: Colour::Number(2),
        values: vec![("seed 1".into(), mean - 0.25), ("seed 2".into(), mean + 0.25)],
        mean: Some(mean),
        ci95: Some(half),
        bounds: None,
        quartiles: Some([mean - 0.2, mean, mean + 0.2]),
        published: Some(("~0.60".into(), 0.6)),
    };
    let strips = |bars| Strips {
        title: "Ratio to TCP".into(),
        decimals: 2,
        bars,
        reference: Some(1.0),
        // Of two seeds an interval may be much wider than an axis.
        rows: vec![strip("lia", 0.5, 0.4), strip(NAME, 1.25, 50.0)],
        ..Strips::default()
    };
    let parts = [Part::Plot(plot), Part::Lanes(lanes), Part::Table(Table::default())];
    let parts = parts.into_iter().chain([true, false].map(|bars| Part::Strips(strips(bars))));
    Page {
        timeline: Timeline {
            end: 200.0,
            warmup: 20.0,
            events: vec![Event { at: 50.0, what: "wifi is lost".into() }],
        },
        sections: vec![Section {
            title: "sbd/nsb-2".into(),
            about: String::new(),
            parts: parts.collect(),
        }],
        ..Page::default()
    }
}

fn named(name: &str) -> Figure {
    let mut all = figures(&page());
    let at = all.iter().position(|figure| figure.name == name).unwrap();
    all.swap_remove(at)
}

#[test]
fn a_figure_is_named_after_its_section_and_tables_are_none() {
    let names: Vec<String> = figures(&page()).into_iter().map(|figure| figure.name).collect();
    let expected = ["goodput", "groups", "ratio-to-tcp", "ratio-to-tcp-2"];
    assert_eq!(names, expected.map(|name| format!("sbd-nsb-2-{name}")));
}

#[test]
fn svg_is_xml_with_a_title_and_a_description_and_all_of_it_is_inside() {
    for Figure { name, svg, .. } in figures(&page()) {
        let xml =
            roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        let root = xml.root_element();
        let text = |tag| {
            let found =
                root.children().find(|node| node.has_tag_name(("http://www.w3.org/2000/svg", tag)));
            found.and_then(|node| node.text()).unwrap_or_default().to_owned()
        };
        assert!(["Goodput", "Groups", "Ratio to TCP"].contains(&text("title").as_str()), "{name}");
        let expected = match text("title").as_str() {
            "Goodput" => {
                "Of each path. Curves: =<path1> & \\u0001\\u202e\u{fffd}\"é, tcp. In its data alone: sum. 1: wifi is lost at 50 s."
            }
            "Groups" => "1: wifi is lost at 50 s.",
            _ => "95 % interval",
        };
        assert!(text("desc").contains(expected), "{name}: {}", text("desc"));
        let number = |text: &str| text.trim_end_matches("pt").parse::<f64>().unwrap();
        let [width, height] = ["width", "height"].map(|of| number(root.attribute(of).unwrap()));
        assert!((width - 240.94).abs() < 0.01, "85 mm: {width}");
        let (mut seen, mut labels) = (BTreeSet::new(), BTreeSet::new());
        for node in root.descendants().filter(|node| node.is_element()) {
            seen.insert(node.tag_name().name().to_owned());
            let inside = |x: &str, y: &str| {
                let (x, y) = (number(x), number(y));
                let fits = (0.0..=width).contains(&x) && (0.0..=height).contains(&y);
                assert!(fits, "{name}: {x},{y} in {width} x {height}: {node:?}");
            };
            for pair in node.attribute("points").into_iter().flat_map(|all| all.split(' ')) {
                let (x, y) = pair.split_once(',').unwrap();
                inside(x, y);
            }
            if let Some(label) = node.attribute("aria-label") {
                labels.insert(label.to_owned());
                let matrix = node.attribute("transform").unwrap().trim_end_matches(')');
                let matrix: Vec<&str> = matrix.split(['(', ' ']).skip(1).collect();
                inside(matrix[4], matrix[5]);
                // Of a font of 2048 units.
                let size = 2048.0 * number(matrix[0]).max(number(matrix[2]));
                assert!((7.0..=8.0).contains(&size), "{name}: {label} of {size} points");
                let path = node.attribute("d").unwrap();
                let drawn = path.starts_with('M') && path.ends_with('Z');
                assert!(drawn || label.is_empty(), "{name}: {label}: {path}");
            }
        }
        // A reader may lack the font, but not what draws a path.
        assert!(!seen.contains("text") && seen.contains("polyline"), "{name}: {seen:?}");
        let expected = match text("title").as_str() {
            "Goodput" => "time, s",
            "Groups" => "found",
            _ => "lia",
        };
        assert!(labels.contains(expected), "{name}: {labels:?}");
    }
}

#[test]
fn the_data_is_all_of_it_as_it_is() {
    let csv = |name: &str| String::from_utf8(named(name).csv).unwrap();
    let text = csv("sbd-nsb-2-goodput");
    let lines: Vec<&str> = text.lines().collect();
    // A spreadsheet takes no name for a formula; else names are as they are, quoted.
    let name = NAME.replace('"', "\"\"");
    let head = format!(
        "\"time, s\",\"'{name}, Mbit/s\",\"'{name} least, Mbit/s\",\"'{name} greatest, Mbit/s\",\
         \"tcp, Mbit/s\",\"sum, Mbit/s\""
    );
    assert_eq!((lines.len(), lines[0]), (2001, head.as_str()));
    assert_eq!(lines[1], "0,,0,20,0,1.5");
    let values: Vec<f64> = lines[2000].split(',').map(|cell| cell.parse().unwrap()).collect();
    assert_eq!(
        values,
        [199.9, 10.0 + 199.9 / 7.0, 199.9 / 9.0, 20.0 + 199.9 / 7.0, 199.9 / 3.0, 1.5]
    );

    let text = csv("sbd-nsb-2-groups");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0]), (9, "part,lane,\"from, s\",\"to, s\",what"));
    assert!(lines[1].starts_with("found,") && lines[1].ends_with(",0,20,in a group"), "{text}");
    assert!(lines[8].ends_with(",140,160,7"), "{text}");

    let text = csv("sbd-nsb-2-ratio-to-tcp");
    assert!(text.contains("\nlia,0.5,0.4,0.3,0.5,0.7,~0.60,0.25,0.75\n"), "{text}");
}

#[test]
fn bytes_are_the_same_twice_and_say_nothing_of_a_time() {
    for (one, other) in figures(&page()).into_iter().zip(figures(&page())) {
        assert_eq!((&one.svg, &one.pdf, &one.csv), (&other.svg, &other.pdf, &other.csv));
        let pdf = String::from_utf8_lossy(&one.pdf);
        assert!(pdf.contains("/FontFile2") && !pdf.contains("Date"), "{}", one.name);
    }
}

/// What a program of poppler says of a file on its standard input; none without it.
fn poppler(program: &str, file: &[u8], after: &[&str]) -> Option<String> {
    let folder = std::env::temp_dir().join(format!("narrows-{}-{program}.pdf", std::process::id()));
    std::fs::File::create(&folder).unwrap().write_all(file).unwrap();
    let found = Command::new(program).arg(&folder).args(after).stderr(Stdio::piped()).output();
    std::fs::remove_file(&folder).unwrap();
    let Ok(output) = found else {
        eprintln!("skipped: {program} is not installed");
        return None;
    };
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
        (Some(0), "")
    );
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_reader_of_pdf_finds_the_text_and_its_font_inside() {
    let Figure { pdf, .. } = named("sbd-nsb-2-goodput");
    if let Some(text) = poppler("pdftotext", &pdf, &["-"]) {
        for word in ["goodput, Mbit/s", "time, s", "=<path1> & \\u0001\\u202e", "\"é", "200"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
    if let Some(text) = poppler("pdfinfo", &pdf, &[]) {
        assert!(text.contains("Title:           Goodput") && text.contains("240.945 x"), "{text}");
        assert!(!text.contains("CreationDate"), "{text}");
    }
    if let Some(text) = poppler("pdffonts", &pdf, &[]) {
        let fonts: Vec<&str> = text.lines().skip(2).collect();
        let [font] = fonts[..] else { panic!("{text}") };
        // Embedded, a subset, with Unicode.
        assert!(font.contains("DejaVuSans") && font.contains("yes yes yes"), "{text}");
    }
}

#[test]
fn a_page_without_values_has_figures_too() {
    let empty = Plot {
        title: "Empty".into(),
        curves: vec![Curve::new("a", Colour::Ink, vec![])],
        ..Plot::default()
    };
    let parts =
        vec![Part::Plot(empty), Part::Lanes(Lanes::default()), Part::Strips(Strips::default())];
    let section = Section { title: "…".into(), about: String::new(), parts };
    let all = figures(&Page { sections: vec![section], ..Page::default() });
    let names: Vec<&str> = all.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names, ["empty", "plot", "plot-2"]);
    for figure in &all {
        assert!(!figure.svg.contains("NaN") && !figure.svg.contains("inf"), "{}", figure.svg);
        roxmltree::Document::parse(&figure.svg).unwrap();
    }
}
