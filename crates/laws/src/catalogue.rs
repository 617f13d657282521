//! The names of laws, detectors and slow starts, and where each comes from.

use crate::control::{Control, Detector, Law, SlowStart};

/// A law, a detector or a slow start, as `narrows list` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<T> {
    /// What it names.
    pub item: T,
    /// The name in a control's name, and in file names.
    pub name: &'static str,
    /// Its part of a control's name in the kernel; see [`kernel_name`].
    pub code: &'static str,
    /// What it does, one line.
    pub about: &'static str,
    /// Where it is specified.
    pub source: &'static str,
}

/// The laws.
pub const LAWS: [Entry<Law>; 5] = [
    Entry {
        item: Law::Reno,
        name: "reno",
        code: "reno",
        about: "a packet per window; halves on loss (uncoupled)",
        source: "RFC 5681, RFC 6582",
    },
    Entry {
        item: Law::Cubic,
        name: "cubic",
        code: "cubic",
        about: "a cubic of the time since the last loss; 0.7 on loss (uncoupled)",
        source: "RFC 9438",
    },
    Entry {
        item: Law::Lia,
        name: "lia",
        code: "lia",
        about: "linked increases: together as much as one TCP on the best path",
        source: "RFC 6356",
    },
    Entry {
        item: Law::Olia,
        name: "olia",
        code: "olia",
        about: "opportunistic linked increases: Pareto-optimal, moves traffic to the best paths",
        source: "draft-khalili-mptcp-congestion-control-05",
    },
    Entry {
        item: Law::Balia,
        name: "balia",
        code: "balia",
        about: "balanced linked adaptation: between LIA's friendliness and OLIA's responsiveness",
        source: "draft-walid-mptcp-congestion-control-04",
    },
];

/// The detectors.
pub const DETECTORS: [Entry<Detector>; 2] = [
    Entry {
        item: Detector::Shared,
        name: "shared",
        code: "sh",
        about: "all paths share one bottleneck (default of coupled laws)",
        source: "RFC 6356",
    },
    Entry {
        item: Detector::Disjoint,
        name: "disjoint",
        code: "dj",
        about: "no two paths share a bottleneck (default of uncoupled laws)",
        source: "RFC 5681",
    },
];

/// The slow starts.
pub const STARTS: [Entry<SlowStart>; 2] = [
    Entry {
        item: SlowStart::Standard,
        name: "standard",
        code: "",
        about: "initial window of 10 packets, doubled each round trip; of cubic with Linux's HyStart",
        source: "RFC 5681, RFC 6928",
    },
    Entry {
        item: SlowStart::HystartPlusPlus,
        name: "hystart++",
        code: "h",
        about: "a rising RTT slows slow start down, and ends it after five round trips",
        source: "RFC 9406",
    },
];

/// Other names under which controls are known, and what they are here.
pub const ALIASES: [(&str, &str); 2] = [("uncoupled", "reno"), ("coupled", "lia")];

/// A name that nothing in the catalogue has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} '{name}'{hint}; there is: {known}", hint = hint(near))]
pub struct Unknown {
    /// `law`, or `detector or slow start`.
    pub kind: &'static str,
    /// The name that was asked for.
    pub name: String,
    /// The nearest known name, if one is near.
    pub near: Option<&'static str>,
    /// All known names.
    pub known: String,
}

fn hint(near: &Option<&'static str>) -> String {
    near.map(|near| format!(" (did you mean '{near}'?)")).unwrap_or_default()
}

/// The entry of a law.
pub fn law(law: Law) -> &'static Entry<Law> {
    &LAWS[law as usize]
}

/// The entry of a detector.
pub fn detector(detector: Detector) -> &'static Entry<Detector> {
    &DETECTORS[detector as usize]
}

/// The entry of a slow start.
pub fn start(start: SlowStart) -> &'static Entry<SlowStart> {
    &STARTS[start as usize]
}

/// All controls with the standard slow start: every law with its default detector, then the others.
pub fn controls() -> impl Iterator<Item = Control> {
    let others = LAWS.iter().filter(|law| law.item.couples()).flat_map(|law| {
        DETECTORS
            .iter()
            .map(|detector| Control { detector: detector.item, ..Control::of(law.item) })
    });
    let defaults = LAWS.iter().map(|law| Control::of(law.item));
    defaults.chain(others.filter(|control| *control != Control::of(control.law)))
}

/// All controls: those with the standard slow start, each followed by itself with the others.
pub fn all() -> impl Iterator<Item = Control> {
    controls().flat_map(|control| STARTS.map(|start| Control { start: start.item, ..control }))
}

/// The control called `name`: `LAW[+DETECTOR][+START]`, where the law may be an alias.
pub fn control(name: &str) -> Result<Control, Unknown> {
    // A slow start's name may itself end with plus signs, so it is not found by splitting.
    let started = STARTS
        .iter()
        .find_map(|start| Some((name.strip_suffix(start.name)?.strip_suffix('+')?, start.item)));
    let (name, start) = started.unwrap_or((name, SlowStart::Standard));
    let (law, detector) = match name.split_once('+') {
        Some((law, detector)) => (law, Some(detector)),
        None => (name, None),
    };
    let law = ALIASES.iter().find(|(alias, _)| *alias == law).map_or(law, |(_, law)| law);
    let mut control = Control { start, ..Control::of(find("law", &LAWS, &[], law)?) };
    if let Some(detector) = detector {
        let starts = STARTS.map(|start| start.name);
        control.detector = find("detector or slow start", &DETECTORS, &starts, detector)?;
    }
    Ok(control)
}

/// The control's name in the kernel, which allows `[A-Za-z0-9_.]` and 15 characters: `nr_olia`,
/// `nr_lia_dj`, `nr_reno_h`.
pub fn kernel_name(control: Control) -> String {
    let mut name = format!("nr_{}", law(control.law).code);
    if control.detector != Control::of(control.law).detector {
        name = format!("{name}_{}", detector(control.detector).code);
    }
    if control.start != SlowStart::Standard {
        name = format!("{name}_{}", start(control.start).code);
    }
    name
}

/// The entry called `name`; `others` are names that may also be meant here.
fn find<T: Copy>(
    kind: &'static str,
    entries: &'static [Entry<T>],
    others: &[&'static str],
    name: &str,
) -> Result<T, Unknown> {
    if let Some(entry) = entries.iter().find(|entry| entry.name == name) {
        return Ok(entry.item);
    }
    let names: Vec<&str> = entries.iter().map(|entry| entry.name).chain(others.to_vec()).collect();
    let near = names
        .iter()
        .map(|known| (distance(&name.to_lowercase(), known), *known))
        .min()
        .filter(|(distance, near)| *distance <= near.len() / 2)
        .map(|(_, near)| near);
    Err(Unknown { kind, name: name.to_owned(), near, known: names.join(", ") })
}

/// Levenshtein distance, in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replace = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stand_at_their_numbers() {
        for (number, entry) in LAWS.iter().enumerate() {
            assert_eq!(entry.item as usize, number);
        }
        for (number, entry) in STARTS.iter().enumerate() {
            assert_eq!(entry.item as usize, number);
        }
        for (number, entry) in DETECTORS.iter().enumerate() {
            assert_eq!(entry.item as usize, number);
        }
    }

    #[test]
    fn every_control_has_a_name_that_leads_back_to_it() {
        for one in all() {
            assert_eq!(control(&one.to_string()), Ok(one));
        }
        assert_eq!(control("lia+shared"), Ok(Control::LIA));
        for (alias, name) in ALIASES {
            assert_eq!(control(alias), control(name));
        }
    }

    #[test]
    fn kernel_names_fit_and_differ() {
        let mut names: Vec<String> = super::all().map(kernel_name).collect();
        for name in &names {
            assert!(name.len() <= 15, "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.'));
        }
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn a_mistyped_name_gets_the_nearest_one_and_the_list() {
        let error = control("ollia").unwrap_err().to_string();
        let start = "unknown law 'ollia' (did you mean 'olia'?); there is: reno, cubic, lia, olia";
        assert!(error.starts_with(start), "{error}");
        let error = control("olia+xyz").unwrap_err().to_string();
        let start = "unknown detector or slow start 'xyz'; there is: shared, disjoint, standard";
        assert!(error.starts_with(start), "{error}");
        let error = control("olia+hystart").unwrap_err().to_string();
        assert!(error.contains("did you mean 'hystart++'?"), "{error}");
    }
}
