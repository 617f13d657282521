//! Metrics in the text format of Prometheus (version 0.0.4).

use narrows_foreign::Foreign;
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// Samples of a metric by their labels, which are sorted so.
pub type Samples<V = u64> = BTreeMap<Vec<(&'static str, String)>, V>;

/// A metric's text: what it is, then its samples; nothing without a sample.
pub fn metric<V: Display>(
    text: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    samples: Samples<V>,
) {
    if samples.is_empty() {
        return;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in samples {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

/// One that may fall.
pub fn gauge<V: Display>(text: &mut String, name: &str, help: &str, samples: Samples<V>) {
    metric(text, name, "gauge", help, samples);
}

/// A label's value as it stands between quotes: what a terminal would obey written out, and the escapes
/// of the format.
fn escaped(value: &str) -> String {
    let line = |line| Foreign::from(line).to_string().replace('\\', "\\\\").replace('"', "\\\"");
    value.split('\n').map(line).collect::<Vec<_>>().join("\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_are_escaped() {
        let samples = Samples::from([(vec![("netns", "a\"b\\c\nd".to_owned())], 3)]);
        let mut text = String::new();
        metric(&mut text, "m", "gauge", "help", samples);
        let expected = "# HELP m help\n# TYPE m gauge\nm{netns=\"a\\\"b\\\\c\\nd\"} 3\n";
        assert_eq!(text, expected);
        assert_eq!(escaped("\u{1b}[2J\u{202e}ü"), "\\\\u001b[2J\\\\u202eü");
        assert_eq!(escaped("\r\t'"), "\\\\r\\\\t'");
    }
}
