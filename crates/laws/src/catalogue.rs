//! The names of laws, detectors and slow starts, and where each comes from.

use crate::control::{Control, Detector, Law, SlowStart};
use crate::params::{Param, Unit};

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
pub const DETECTORS: [Entry<Detector>; 5] = [
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
    Entry {
        item: Detector::Ssc,
        name: "ssc",
        code: "ssc",
        about: "paths share a bottleneck whose delays have alike skewness, variability, frequency",
        source: "RFC 8382",
    },
    Entry {
        item: Detector::Tr,
        name: "tr",
        code: "tr",
        about: "paths share a bottleneck whose delays rise with the same slope at the same time",
        source: "arXiv:1812.05816",
    },
    Entry {
        item: Detector::Btlbw,
        name: "btlbw",
        code: "bw",
        about: "paths share a bottleneck whose bandwidths agree, cycle after cycle",
        source: "C-MPBBR, IEEE Access 2020",
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

const COUPLE: Unit = Unit::Choice(&["none", "undecided", "all"]);

macro_rules! param {
    ($name:literal, $part:ident.$field:ident, $unit:expr, $low:literal, $high:literal, $about:literal, $source:literal) => {
        Param {
            name: $name,
            unit: $unit,
            range: ($low, $high),
            about: $about,
            source: $source,
            get: |params| params.$part.$field as i64,
            put: |params, value| params.$part.$field = value as _,
        }
    };
}

/// What can be set about the detectors.
#[rustfmt::skip]
pub const PARAMS: [Param; 34] = [
    param!("ssc.t_ms", ssc.t_us, Unit::Ms, 10.0, 10000.0, "length of an interval, T", "RFC 8382, section 2.2"),
    param!("ssc.n", ssc.n, Unit::Count, 2.0, 64.0, "intervals of the key frequency, and of loss, N", "RFC 8382, section 2.2"),
    param!("ssc.m", ssc.m, Unit::Count, 2.0, 64.0, "intervals of the mean, skewness and variability, M", "RFC 8382, section 2.2"),
    param!("ssc.f", ssc.f, Unit::Count, 1.0, 64.0, "newest intervals of full weight, F; m: nothing is weighted", "RFC 8382, section 2.2"),
    param!("ssc.c_s", ssc.c_s, Unit::Ratio, -1.0, 1.0, "skewness below which there is congestion", "RFC 8382, section 2.2"),
    param!("ssc.c_h", ssc.c_h, Unit::Ratio, 0.0, 2.0, "the same, where there was congestion before", "RFC 8382, section 2.2"),
    param!("ssc.p_l", ssc.p_l, Unit::Ratio, 0.0, 1.0, "loss above which there is congestion whatever the skewness", "MPTCP-SBD, Table I (the RFC gives no value)"),
    param!("ssc.p_f", ssc.p_f, Unit::Ratio, 0.0, 1.0, "key frequencies this near are alike", "RFC 8382, section 2.2"),
    param!("ssc.p_mad", ssc.p_mad, Unit::Ratio, 0.0, 1.0, "variabilities this near, of the higher, are alike", "RFC 8382, section 2.2"),
    param!("ssc.p_s", ssc.p_s, Unit::Ratio, 0.0, 2.0, "skewnesses this near are alike", "RFC 8382, section 2.2"),
    param!("ssc.p_d", ssc.p_d, Unit::Ratio, 0.0, 1.0, "losses this near, of the higher, are alike", "RFC 8382, section 2.2"),
    param!("ssc.p_v", ssc.p_v, Unit::Ratio, 0.0, 10.0, "half the band around the mean that is no crossing, of the variability", "RFC 8382, section 2.2"),
    param!("ssc.mask_noise", ssc.mask_noise, Unit::Choice(&["off", "on"]), 0.0, 1.0, "variability and crossings of intervals without congestion are left out", "RFC 8382, section 4.2"),
    param!("ssc.loss_for_skew", ssc.loss_for_skew, Unit::Choice(&["off", "on"]), 0.0, 1.0, "where a path loses more than p_l, loss divides instead of skewness", "MPTCP-SBD, its implementation"),
    param!("ssc.clock_skew", ssc.clock_skew, Unit::Choice(&["off", "on"]), 0.0, 1.0, "the clocks of delays run apart", "RFC 8382, section 5.2"),
    param!("ssc.trusted", ssc.trusted, Unit::Count, 1.0, 1000.0, "intervals before a path's estimates are trusted", "RFC 8382: 2 M"),
    param!("tr.t_s", tr.t_us, Unit::Seconds, 1.0, 16.0, "length of a period", "arXiv:1812.05816, section 4.3"),
    param!("tr.settle_ms", tr.settle_us, Unit::Ms, 0.0, 1000.0, "after a period's end, until it is decided on", "paths report at their next sample"),
    param!("tr.alpha", tr.alpha, Unit::Ratio, 0.01, 1.0, "weight of the new delay in the smoothed one", "arXiv:1812.05816, section 4.3"),
    param!("tr.gap_ms", tr.gap_us, Unit::Ms, 0.0, 5000.0, "groups of rising delay this near in time may be one, delta", "arXiv:1812.05816, section 4.3"),
    param!("tr.eps", tr.eps, Unit::Ratio, 0.0, 1.0, "slopes this near, of the larger, are alike", "arXiv:1812.05816, section 4.3"),
    param!("tr.tau_s", tr.tau_us, Unit::Seconds, 0.0, 16.0, "groups of two paths this near in time may be compared", "arXiv:1812.05816, section 4.3"),
    param!("tr.slope_min", tr.slope_min, Unit::MsPerSecond, 0.0, 1000.0, "slopes up to this are like no other", "arXiv:1812.05816, its authors' code"),
    param!("tr.hold_s", tr.hold_us, Unit::Seconds, 1.0, 512.0, "paths stay coupled for as long after they were last found alike", "arXiv:1812.05816, section 5.2"),
    param!("tr.undecided", tr.undecided, COUPLE, 0.0, 2.0, "whom a path is coupled with that nothing is known of yet", "arXiv:1812.05816, section 5.2"),
    param!("btlbw.t_s", btlbw.t_us, Unit::Seconds, 0.1, 100.0, "time from a look at the newest cycles to the next", "a few cycles of 8 round trips"),
    param!("btlbw.alpha", btlbw.alpha, Unit::Ratio, 0.0, 1.0, "bandwidths this near, of the smaller, are alike", "C-MPBBR, Algorithm 1"),
    param!("btlbw.cycles", btlbw.cycles, Unit::Count, 1.0, 6.0, "ProbeBW cycles for which they must be, or must not be any more", "C-MPBBR, Algorithm 1"),
    param!("decision.observations", decision.observations, Unit::Count, 1.0, 32.0, "newest observations that a decision looks at", "MPTCP-SBD, section III-B"),
    param!("decision.together", decision.together, Unit::Count, 1.0, 32.0, "of so many, at which two paths are grouped", "MPTCP-SBD, section IV-B"),
    param!("decision.every", decision.every, Unit::Count, 1.0, 1000.0, "observations from a decision to the next", "MPTCP-SBD, section III-B"),
    param!("decision.undecided", decision.undecided, COUPLE, 0.0, 2.0, "whom a path is coupled with that nothing is known of yet", "MPTCP-SBD, its implementation"),
    param!("decision.clear", decision.clear, COUPLE, 0.0, 2.0, "whom a path is coupled with that is not congested", "MPTCP-SBD, section III-B"),
    param!("decision.grouped", decision.grouped, COUPLE, 0.0, 2.0, "whom a path in a group is coupled with beside its group", "MPTCP-SBD, its implementation"),
];

/// Other names under which controls are known, and what they are here. They name no parameters: those
/// of `mptcp-sbd` too are RFC 8382's, unless `ssc.preset` says otherwise.
pub const ALIASES: [(&str, &str); 5] = [
    ("uncoupled", "reno"),
    ("coupled", "lia"),
    ("mptcp-sbd", "olia+ssc"),
    ("ssc-lia", "lia+ssc"),
    ("tr-lia", "lia+tr"),
];

/// A name that nothing in the catalogue has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} '{name}'{hint}; there is: {known}", hint = hint(near))]
pub struct Unknown {
    /// `law`, `detector or slow start`, or `parameter`.
    pub kind: &'static str,
    /// The name that was asked for.
    pub name: String,
    /// The nearest known name, if one is near.
    pub near: Option<&'static str>,
    /// All known names.
    pub known: String,
}

impl Unknown {
    fn new(kind: &'static str, name: &str, known: &[&'static str]) -> Unknown {
        let near = known
            .iter()
            .map(|known| (distance(&name.to_lowercase(), known), *known))
            .min()
            .filter(|(distance, near)| *distance <= near.len() / 2)
            .map(|(_, near)| near);
        Unknown { kind, name: name.to_owned(), near, known: known.join(", ") }
    }
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

/// The parameter called `name`.
pub fn param(name: &str) -> Result<&'static Param, Unknown> {
    static TABLE: [Param; PARAMS.len()] = PARAMS;
    TABLE.iter().find(|param| param.name == name).ok_or_else(|| {
        let names: Vec<&str> = TABLE.iter().map(|param| param.name).collect();
        Unknown::new("parameter", name, &names)
    })
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
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
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

/// The control whose [`kernel_name`] is `name`.
pub fn control_of_kernel_name(name: &str) -> Option<Control> {
    all().find(|control| kernel_name(*control) == name)
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
    Err(Unknown::new(kind, name, &names))
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
        let start =
            "unknown detector or slow start 'xyz'; there is: shared, disjoint, ssc, tr, btlbw";
        assert!(error.starts_with(start), "{error}");
        let error = control("olia+hystart").unwrap_err().to_string();
        assert!(error.contains("did you mean 'hystart++'?"), "{error}");
    }
}
