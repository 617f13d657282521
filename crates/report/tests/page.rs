//! The file as a parser meets it.

use narrows_report::{
    Colour, Curve, Event, Fact, Kind, Lane, Lanes, Network, NetworkLink, Page, Part, Plot, Route,
    Section, Span, Strip, Strips, Table, Tile, Timeline,
};

/// A page with something of every kind, in which `text` stands wherever text can.
fn page(text: &str, points: usize) -> Page {
    let t = || text.to_owned();
    let y = |scale: f64| (0..points).map(|i| Some(scale * (i % 97) as f64)).collect();
    let curve = |i: usize| Curve::new(t(), Colour::Number(i), y(1.0 / (1.0 + i as f64)));
    let plot = Plot {
        title: t(),
        about: t(),
        x_label: t(),
        y_label: t(),
        unit: t(),
        over_time: true,
        x: (0..points).map(|i| i as f64 / 10.0).collect(),
        curves: (0..14).map(curve).collect(),
        ..Plot::default()
    };
    let span = |i: usize| Span {
        from: i as f64,
        to: i as f64 + 1.0,
        kind: if i % 2 == 0 { Kind::Group(1) } else { Kind::Lost(i as u64) },
        what: t(),
    };
    let lane = Lane::new(t(), (0..points).map(span)).under(t());
    let strip = Strip {
        name: t(),
        colour: Colour::Muted,
        values: vec![(t(), 1.0), (t(), 2.0)],
        mean: Some(1.5),
        ci95: Some(0.5),
        bounds: None,
        quartiles: Some([1.0, 1.5, 2.0]),
        published: Some((t(), 1.7)),
    };
    let link = NetworkLink { name: t(), about: t(), whole: t() };
    let route = Route { name: t(), links: vec![0], colour: Colour::Number(0), minor: false };
    let parts = vec![
        Part::Plot(plot.clone()),
        Part::Plot(plot),
        Part::Lanes(Lanes { title: t(), about: t(), lanes: vec![lane] }),
        Part::Strips(Strips {
            title: t(),
            about: t(),
            label: t(),
            rows: vec![strip],
            ..Strips::default()
        }),
        Part::Table(Table {
            title: t(),
            about: t(),
            heads: vec![(t(), t())],
            left: 1,
            lines: vec![vec![t()]],
        }),
        Part::Network(Network { about: t(), links: vec![link], routes: vec![route] }),
        Part::Text { title: t(), text: t() },
    ];
    Page {
        title: t(),
        lead: t(),
        command: t(),
        facts: vec![Fact { name: t(), value: t() }],
        tiles: vec![Tile { name: t(), value: t(), about: t() }],
        timeline: Timeline {
            end: points as f64 / 10.0,
            warmup: 1.0,
            events: vec![Event { at: 2.0, what: t() }],
        },
        sections: vec![Section { title: t(), about: t(), parts }],
    }
}

/// The names of all tags in their order, `/name` of those that close; scripts and styles are not looked into.
fn tags(mut html: &str) -> Vec<String> {
    let mut tags = Vec::new();
    while let Some(at) = html.find('<') {
        html = &html[at + 1..];
        let name: String = html
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '!'))
            .collect();
        for raw in ["script", "style"] {
            if name == raw {
                html = &html[html.find(&format!("</{raw}")).expect("it closes")..];
            }
        }
        tags.push(name);
    }
    tags
}

#[test]
fn all_tags_close_in_order() {
    let html = page("a name", 300).html();
    let mut open: Vec<String> = Vec::new();
    for tag in tags(&html) {
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name)),
            None if ["!DOCTYPE", "meta", "link"].contains(&tag.as_str()) => {}
            None => open.push(tag),
        }
    }
    assert_eq!(open, Vec::<String>::new());
    // Nothing is loaded.
    assert!(!html.contains(" src=") && !html.contains("href=\"http") && !html.contains("@import"));
}

#[test]
fn foreign_text_changes_no_tag() {
    let plain = tags(&page("a name", 300).html());
    for hostile in [
        "</script><img src=x onerror=alert(1)>",
        "<!-- <script>",
        "\" onmouseover=\"alert(1)\" x=\"",
        "' ><svg/onload=alert(1)>",
        "]]></title></style><b>",
        "&lt;b&gt; \u{2028} \u{0}",
    ] {
        let html = page(hostile, 300).html();
        assert_eq!(tags(&html), plain, "{hostile}");
        assert!(!html.contains("\" onmouseover=\""), "{hostile}");
    }
}

#[test]
fn the_script_finds_the_text_as_it_was() {
    let hostile = "</script> <!-- \"quoted\" \\ \u{e9}";
    let html = page(hostile, 20).html();
    let (_, data) = html.split_once("id=\"data\" type=\"application/json\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["plots"][0]["title"], hostile);
    assert_eq!(data["lanes"][0]["lanes"][0]["name"], hostile);
    assert_eq!(data["timeline"]["events"][0]["what"], hostile);
}

/// Rows of a thousand seeds: some dots stand for all, and the table has all.
#[test]
fn of_many_values_the_least_and_the_greatest_are_drawn() {
    let mut page = page("name", 10);
    for part in &mut page.sections[0].parts {
        let Part::Strips(strips) = part else { continue };
        strips.rows[0].values =
            (0..1000).map(|i| (format!("seed {i}"), f64::from(i * 7 % 1000))).collect();
    }
    let html = page.html();
    assert_eq!(html.matches("class=\"dot\"").count(), 100);
    for value in ["seed 0: 0\"", "seed 857: 999\""] {
        assert!(html.contains(&format!("title=\"{value}")), "{value}");
    }
    assert!(html.contains("100 values are drawn") && html.contains("seed 856: 992, "));
}

#[test]
fn the_same_data_give_the_same_bytes() {
    assert!(page("a", 5000).html() == page("a", 5000).html());
}

/// A day of 14 paths, sampled every 100 ms.
#[test]
fn a_long_run_stays_below_a_megabyte() {
    let html = page("name", 864_000).html();
    assert!(html.len() < 1_000_000, "{}", html.len());
    let short = page("name", 100).html();
    assert!(short.len() > 60_000 && short.len() < 200_000, "{}", short.len());
}
