//! What figures show, as CSV: all of it, however much of it can be told apart in a figure.

use narrows_report::{Kind, Lanes, Plot, Strips};

/// A line for each x.
pub(crate) fn plot(plot: &Plot) -> Vec<u8> {
    let unit = if plot.unit.is_empty() { String::new() } else { format!(", {}", plot.unit) };
    let mut heads = vec![plot.x_label.clone()];
    for curve in &plot.curves {
        heads.push(format!("{}{unit}", curve.name));
        if !curve.low.is_empty() {
            heads.extend(["least", "greatest"].map(|end| format!("{} {end}{unit}", curve.name)));
        }
    }
    let line = |(at, x): (usize, &f64)| {
        let mut line = vec![x.to_string()];
        for curve in &plot.curves {
            let columns = [&curve.y, &curve.low, &curve.high];
            let columns = columns.into_iter().take(if curve.low.is_empty() { 1 } else { 3 });
            line.extend(columns.map(|column| number(column[at])));
        }
        line
    };
    written(heads, plot.x.iter().enumerate().map(line))
}

/// A line for each span.
pub(crate) fn lanes(lanes: &Lanes) -> Vec<u8> {
    let mut heading = "";
    let mut lines = Vec::new();
    for lane in &lanes.lanes {
        heading = lane.heading.as_deref().unwrap_or(heading);
        for span in &lane.spans {
            let what = match span.kind {
                Kind::Lost(lost) => lost.to_string(),
                kind if span.what.is_empty() => word(kind).into(),
                _ => span.what.clone(),
            };
            let times = [span.from, span.to].map(|time| time.to_string());
            let [from, to] = times;
            lines.push(vec![heading.to_owned(), lane.name.clone(), from, to, what]);
        }
    }
    written(["part", "lane", "from, s", "to, s", "what"].map(String::from).to_vec(), lines)
}

/// A line for each row, with the values it is of.
pub(crate) fn strips(strips: &Strips) -> Vec<u8> {
    let mut of: Vec<&str> = Vec::new();
    for (name, _) in strips.rows.iter().flat_map(|row| &row.values) {
        if !of.contains(&name.as_str()) {
            of.push(name);
        }
    }
    let unit = if strips.label.is_empty() { String::new() } else { format!(", {}", strips.label) };
    let fixed = ["of", "mean", "95 % interval, half", "first quartile", "median", "third quartile"];
    let heads = fixed.into_iter().chain(["published"]).chain(of.iter().copied());
    let heads = heads.enumerate().map(|(at, head)| match at {
        0 => head.to_owned(),
        _ => format!("{head}{unit}"),
    });
    let line = |row: &narrows_report::Strip| {
        let quartiles = row.quartiles.map_or([None; 3], |all| all.map(Some));
        let mut line = vec![row.name.clone(), number(row.mean), number(row.ci95)];
        line.extend(quartiles.map(number));
        line.push(row.published.as_ref().map_or(String::new(), |(text, _)| text.clone()));
        line.extend(of.iter().map(|&name| {
            let there = row.values.iter().find(|(of, _)| of == name);
            number(there.map(|(_, value)| *value))
        }));
        line
    };
    written(heads.collect(), strips.rows.iter().map(line))
}

/// What a span's kind means, as legends have it too.
pub(crate) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Group(_) => "in a group",
        Kind::Alone => "alone",
        Kind::Clear => "not congested",
        Kind::Undecided => "undecided",
        Kind::Absent => "not there",
        Kind::Right => "right",
        Kind::Wrong => "wrong",
        Kind::Lost(_) => "lost",
    }
}

fn number(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Names are others' choice, and a spreadsheet takes some for formulas.
fn tame(cell: String) -> String {
    let formula = cell.starts_with(['=', '+', '@', '\t', '\r'])
        || (cell.starts_with('-') && cell.parse::<f64>().is_err());
    if formula { format!("'{cell}") } else { cell }
}

fn written(heads: Vec<String>, lines: impl IntoIterator<Item = Vec<String>>) -> Vec<u8> {
    let mut to = csv::Writer::from_writer(Vec::new());
    for line in [heads].into_iter().chain(lines) {
        // Every line has a cell for each head, and writing to memory cannot fail.
        let _ = to.write_record(line.into_iter().map(tame));
    }
    to.into_inner().unwrap_or_default()
}
