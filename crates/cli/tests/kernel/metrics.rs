//! The text format of Prometheus, read as strictly as its description is written
//! (prometheus.io/docs/instrumenting/exposition_formats, version 0.0.4).

use std::collections::{BTreeMap, BTreeSet};

/// A sample.
#[derive(Debug)]
pub struct Sample {
    pub name: String,
    pub labels: Vec<(String, String)>,
    pub value: f64,
}

/// All samples. Panics where the text is not as described: each metric has a help and a type, once
/// and before its samples, which are in one group; no series is there twice; there are no timestamps.
pub fn parse(text: &str) -> Vec<Sample> {
    assert!(text.ends_with('\n'), "the last line has an end");
    let (mut helps, mut types) = (BTreeSet::new(), BTreeMap::new());
    let (mut samples, mut series, mut closed) =
        (Vec::<Sample>::new(), BTreeSet::new(), BTreeSet::new());
    let mut current = String::new();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        let name = match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(name), Some(help)) => {
                assert!(!help.is_empty() && helps.insert(name.to_owned()), "{line}");
                name.to_owned()
            }
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                assert!(["counter", "gauge"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
                name.to_owned()
            }
            _ => {
                let sample = sample(line);
                let name = sample.name.clone();
                assert!(helps.contains(&name) && types.contains_key(&name), "{line}");
                let mut labels = sample.labels.clone();
                labels.sort();
                assert!(series.insert((name.clone(), labels)), "twice: {line}");
                samples.push(sample);
                name
            }
        };
        if name != current {
            assert!(!closed.contains(&name), "not in one group: {line}");
            closed.insert(std::mem::replace(&mut current, name));
        }
    }
    samples
}

/// `name{label="value",...} number`.
fn sample(line: &str) -> Sample {
    let is_name = |text: &str| {
        let first = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        first && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let end = line.find(['{', ' ']).expect(line);
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"").expect(line);
            assert!(is_name(label), "{line}");
            let mut value = String::new();
            let mut letters = after.char_indices();
            let end = loop {
                match letters.next().expect(line) {
                    (at, '"') => break at,
                    (_, '\\') => value.push(match letters.next().expect(line).1 {
                        'n' => '\n',
                        c @ ('\\' | '"') => c,
                        c => panic!("\\{c} in {line}"),
                    }),
                    (_, c) => value.push(c),
                }
            };
            labels.push((label.to_owned(), value));
            rest = &after[end + 1..];
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        rest = &rest[1..];
    }
    let number = rest.strip_prefix(' ').expect(line);
    // A timestamp would be a second word.
    let value = number.parse().unwrap_or_else(|_| panic!("no number in {line}"));
    Sample { name: name.to_owned(), labels, value }
}
