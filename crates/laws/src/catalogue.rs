//! Controls by their names: `LAW[+DETECTOR][+JOIN][+EXIT]`, and their names in the kernel.

use crate::control::{Control, Detector, Law, SlowStart};
use std::str::FromStr;

/// A name that stands for a control, or for the system of a paper: a control with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// The control's own name.
    pub control: &'static str,
    /// What the scenario is set to, `FIELD=VALUE` with spaces between: the signal, and the parameters
    /// of detector and decisions that are not the defaults. Empty: nothing, it is a control alone.
    pub set: &'static str,
    /// Where it is from.
    pub source: &'static str,
}

const fn named(
    name: &'static str,
    control: &'static str,
    set: &'static str,
    source: &'static str,
) -> Named {
    Named { name, control, set, source }
}

/// All names that stand for something else.
#[rustfmt::skip]
pub static NAMES: [Named; 8] = [
    named("uncoupled", "reno", "", "RFC 5681 on each path"),
    named("coupled", "lia", "", "RFC 6356"),
    named("mptcp-sbd", "olia+ssc", "detection.signal=receiver-us ssc.preset=mptcp-sbd decision.clear=all",
        "Ferlin et al., INFOCOM 2016; clear=all is its authors' code, the paper reserves an id for uncongested paths (clear=none)"),
    named("tr-lia", "lia+tr", "detection.signal=rtt", "arXiv:1812.05816"),
    named("ssc-lia", "lia+ssc",
        "detection.signal=srtt ssc.preset=mptcp-sbd ssc.hold_s=100 decision.undecided=none decision.grouped=none",
        "arXiv:1812.05816, section 5.2: its baseline, with the parameters of MPTCP-SBD; uncoupled until paths are grouped"),
    named("u-mpbbr", "bbr", "bbr.share=none", "Nguyen et al.: BBR on each path"),
    named("han-bbr", "bbr", "bbr.share=han", "Han et al., APNet 2019; not for four equal paths or more, see laws/bbr/share.h"),
    named("c-mpbbr", "bbr+btlbw", "bbr.share=published bbr.close=0.6 decision.undecided=none decision.grouped=none",
        "Mahmud et al., IEEE Access 2020; uncoupled until three cycles agree within 20 %; a path is closed as by its code and pseudo code"),
];

impl Named {
    /// Does it bring settings?
    pub fn is_system(&self) -> bool {
        !self.set.is_empty()
    }

    /// The control.
    pub fn control(&self) -> Control {
        self.control.parse().expect("the name of a control")
    }

    /// The settings, by field.
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        self.set.split(' ').filter_map(|setting| setting.split_once('='))
    }
}

/// What `name` stands for, if for something else.
pub fn stands_for(name: &str) -> Option<&'static Named> {
    NAMES.iter().find(|named| named.name == name)
}

/// A name that is not in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} '{name}'{hint}{known}", hint = hint)]
#[non_exhaustive]
pub struct Unknown {
    /// What it should be: `law`, `parameter`, `link`.
    pub kind: &'static str,
    /// The unknown name.
    pub name: String,
    /// The nearest known name, if one is near: ` (did you mean 'olia'?)`.
    hint: String,
    /// `; expected one of:` and the known names, or the first of many; of many nothing if one is near.
    known: String,
}

/// Names that an error lists.
const LISTED: usize = 20;

impl Unknown {
    /// `name` is none of `known`.
    pub fn new(kind: &'static str, name: &str, known: &[&str]) -> Unknown {
        let hint = hint(name, known);
        let known = match known.len() {
            0 => String::new(),
            1..=LISTED => format!("; expected one of: {}", known.join(", ")),
            _ if !hint.is_empty() => String::new(),
            all => format!("; expected one of: {}, .. ({all})", known[..LISTED].join(", ")),
        };
        Unknown { kind, name: name.to_owned(), hint, known }
    }
}

/// The known name that was probably meant: few letters are wrong or exchanged with their neighbour.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |known: &str| strsim::osa_distance(&name.to_lowercase(), known);
    let near = known.iter().map(|known| (distance(known), *known)).min()?;
    (near.0 <= near.1.len() / 2).then_some(near.1)
}

/// ` (did you mean 'olia'?)` where a known name is near, or nothing.
pub fn hint(name: &str, known: &[&str]) -> String {
    nearest(name, known).map_or(String::new(), |near| format!(" (did you mean '{near}'?)"))
}

/// Why a name is not a control.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoControl {
    /// Part of it is not known.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// Its parts do not work together.
    #[error("{0}: {1}")]
    Fault(String, String),
}

impl FromStr for Control {
    type Err = NoControl;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        control(name)
    }
}

/// All controls with the slow start of their law: every law with its default detector, then coupled
/// laws with the others, except combinations that do not work.
pub fn controls() -> impl Iterator<Item = Control> {
    let others = Law::all().filter(|law| law.couples()).flat_map(|law| {
        Detector::all().map(move |detector| Control { detector, ..Control::of(law) })
    });
    let others = others.filter(|control| *control != Control::of(control.law));
    Law::all().map(Control::of).chain(others.filter(|control| control.fault().is_none()))
}

/// All controls: those with the slow start of their law, each followed by itself with the others.
pub fn all() -> impl Iterator<Item = Control> {
    controls().flat_map(|own| {
        let joins = SlowStart::all().filter(|start| *start == SlowStart::STANDARD || start.joins());
        let with = joins.flat_map(move |join| {
            let exits = SlowStart::all().filter(|exit| !exit.joins());
            exits.map(move |exit| Control { join, exit, ..own })
        });
        let with = with.filter(move |control| *control != own && control.fault().is_none());
        std::iter::once(own).chain(with)
    })
}

/// The control called `name`: `LAW[+DETECTOR][+JOIN][+EXIT]`, where the law may be one of [`NAMES`];
/// the settings of a system are for the caller to make.
///
/// # Errors
/// A part that is not known, or parts of which the detector could never decide.
pub fn control(name: &str) -> Result<Control, NoControl> {
    let asked = name;
    // A slow start's name may itself end with plus signs, so it is not found by splitting.
    let mut name = name;
    let mut starts = Vec::new();
    while let Some((rest, start)) = SlowStart::all()
        .find_map(|start| Some((name.strip_suffix(start.name())?.strip_suffix('+')?, start)))
    {
        starts.push(start);
        name = rest;
    }
    let fault = |what: String| Err(NoControl::Fault(asked.to_owned(), what));
    let whole = stands_for(name);
    if let Some(Named { name, control, .. }) = whole.filter(|of| of.is_system() && name != asked) {
        return fault(format!("'{name}' is a whole system; expected {control}+START with --set"));
    }
    let name = whole.map_or(name, |named| named.control);
    let (law, detector) = match name.split_once('+') {
        Some((law, detector)) => (law, Some(detector)),
        None => (name, None),
    };
    let law = match stands_for(law) {
        Some(named) if !named.is_system() => named.control,
        _ => law,
    };
    let known = Law::all()
        .find(|known| known.name() == law)
        .ok_or_else(|| Unknown::new("law", law, &Law::all().map(Law::name).collect::<Vec<_>>()))?;
    let mut control = Control::of(known);
    if let Some(detector) = detector {
        let known = Detector::all().find(|known| known.name() == detector);
        control.detector = known.ok_or_else(|| {
            let names = Detector::all().map(Detector::name);
            let names = names.chain(SlowStart::all().map(SlowStart::name));
            Unknown::new("detector or slow start", detector, &names.collect::<Vec<_>>())
        })?;
    }
    for start in starts.iter().rev() {
        let part = if start.joins() { &mut control.join } else { &mut control.exit };
        *part = *start;
    }
    if starts.iter().filter(|start| start.joins()).count() > 1
        || starts.iter().filter(|start| !start.joins()).count() > 1
    {
        return fault(
            "two slow starts for the join or for the exit; expected at most one for each".into(),
        );
    }
    match control.fault() {
        Some(what) => fault(what),
        None => Ok(control),
    }
}

/// The control's name in the kernel, which allows `[A-Za-z0-9_]` and 15 characters: `nr_olia`,
/// `nr_lia_dj`, `nr_reno_h`.
pub fn kernel_name(control: Control) -> String {
    let own = Control::of(control.law);
    let mut name = format!("nr_{}", control.law.code());
    if control.detector != own.detector {
        name = format!("{name}_{}", control.detector.code());
    }
    let join = if control.join != own.join { control.join.code() } else { "" };
    let exit = if control.exit != own.exit { control.exit.code() } else { "" };
    if !join.is_empty() || !exit.is_empty() {
        name = format!("{name}_{join}{exit}");
    }
    name
}

/// The control whose [`kernel_name`] is `name`.
pub fn control_of_kernel_name(name: &str) -> Option<Control> {
    all().find(|control| kernel_name(*control) == name)
}

/// Why the [`kernel_name`] of a control is invalid or equals that of another, in one line; none if
/// all are valid.
pub fn unfit_kernel_name() -> Option<String> {
    let mut names = std::collections::HashMap::new();
    // Also those that could never decide: others with as long names can.
    let starts: Vec<SlowStart> = SlowStart::all().collect();
    for law in Law::all() {
        for detector in Detector::all() {
            for &join in starts.iter().filter(|s| **s == SlowStart::STANDARD || s.joins()) {
                for &exit in starts.iter().filter(|start| !start.joins()) {
                    let control = Control { law, detector, join, exit };
                    let name = kernel_name(control);
                    let fits = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                    if name.len() > 15 || !fits {
                        return Some(format!(
                            "{control}: kernel name {name}, expected at most 15 of [A-Za-z0-9_]"
                        ));
                    }
                    if let Some(other) = names.insert(name.clone(), control) {
                        return Some(format!(
                            "{control} and {other} have the same kernel name, {name}"
                        ));
                    }
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;

    #[test]
    fn every_control_has_a_name_that_leads_back_to_it() {
        for one in all() {
            assert_eq!(control(&one.to_string()), Ok(one));
        }
        assert_eq!(control("lia+shared"), Ok(Control::LIA));
        assert_eq!(control("cubic+hystart"), Ok(Control::CUBIC));
        assert_eq!(control("olia+hystart+++lisa"), control("olia+lisa+hystart++"));
        let plain = control("cubic+standard").unwrap();
        assert_eq!(
            (plain.exit, plain.to_string().as_str()),
            (SlowStart::STANDARD, "cubic+standard")
        );
        for named in &NAMES {
            assert_eq!(control(named.name), Ok(named.control()));
        }
        assert_eq!(control("uncoupled+hystart++"), control("reno+hystart++"));
    }

    #[test]
    fn a_system_is_a_detector_with_its_settings_and_nothing_is_added_to_it() {
        for named in NAMES.iter().filter(|named| named.is_system()) {
            let groups = [named.control().detector.name(), named.control().law.name(), "decision"];
            let mut params = Params::default();
            for (field, value) in named.settings() {
                let of = field.split('.').next().unwrap();
                match field {
                    "detection.signal" => continue,
                    _ => params.set(field, value).unwrap(),
                }
                assert!(groups.contains(&of), "{field}");
            }
            assert_eq!(params.check(), Ok(()));
            assert_eq!(named.settings().count(), named.set.split(' ').count());
        }
        let error = control("mptcp-sbd+hystart++").unwrap_err().to_string();
        assert_eq!(
            error,
            "mptcp-sbd+hystart++: 'mptcp-sbd' is a whole system; expected olia+ssc+START with --set"
        );
        assert!(control("mptcp-sbd+tr").is_err());
    }

    #[test]
    fn a_laws_state_fits_beside_the_growth_it_keeps() {
        for law in Law::all() {
            assert!(law.table().state <= law.table().room(), "{}", law.name());
        }
    }

    #[test]
    fn kernel_names_fit_and_differ() {
        assert_eq!(unfit_kernel_name(), None);
        assert_eq!(kernel_name(Control::CUBIC), "nr_cubic");
        assert_eq!(kernel_name(control("olia+ssc+hystart++").unwrap()), "nr_olia_ssc_h");
        assert_eq!(kernel_name(control("olia+ssc+lisa+hystart++").unwrap()), "nr_olia_ssc_lh");
    }

    #[test]
    fn a_mistyped_name_gets_the_nearest_one_and_the_list() {
        let error = control("ollia").unwrap_err().to_string();
        let start =
            "unknown law 'ollia' (did you mean 'olia'?); expected one of: reno, cubic, lia, olia";
        assert!(error.starts_with(start), "{error}");
        let error = control("olia+xyz").unwrap_err().to_string();
        let start = "unknown detector or slow start 'xyz'; expected one of: shared, disjoint, ssc, tr, btlbw, xcorr, dcw";
        assert!(error.starts_with(start), "{error}");
        let error = control("olia+histart++").unwrap_err().to_string();
        assert!(error.contains("did you mean 'hystart++'?"), "{error}");
        assert_eq!(nearest("oila", &["reno", "lia", "olia"]), Some("olia"));
        assert_eq!(nearest("x", &["reno", "lia", "olia"]), None);
    }

    #[test]
    fn parts_that_do_not_work_together_are_refused() {
        let error = control("olia+btlbw").unwrap_err().to_string();
        assert!(
            error.starts_with("olia+btlbw: detector 'btlbw' uses the bandwidth estimate"),
            "{error}"
        );
        let error = control("reno+hystart+hystart++").unwrap_err().to_string();
        assert!(error.contains("two slow starts for the join or for the exit"), "{error}");
    }
}
