//! Controls by their names: `LAW[+DETECTOR][+JOIN][+EXIT]`, and their names in the kernel.

use crate::control::{Control, Detector, Law, SlowStart};
use std::str::FromStr;

/// Aliases of controls. They do not set parameters: those of `mptcp-sbd`, too, are RFC 8382's by
/// default (see `ssc.preset`).
pub const ALIASES: [(&str, &str); 5] = [
    ("uncoupled", "reno"),
    ("coupled", "lia"),
    ("mptcp-sbd", "olia+ssc"),
    ("ssc-lia", "lia+ssc"),
    ("tr-lia", "lia+tr"),
];

/// A name that is not in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} '{name}'{hint}; expected one of: {known}", hint = hint(near))]
pub struct Unknown {
    /// `law`, `detector or slow start`, or `parameter`.
    pub kind: &'static str,
    /// The unknown name.
    pub name: String,
    /// The nearest known name, if one is near.
    pub near: Option<String>,
    /// All known names.
    pub known: String,
}

impl Unknown {
    pub(crate) fn new(kind: &'static str, name: &str, known: &[&str]) -> Unknown {
        let near = known
            .iter()
            .map(|known| (strsim::levenshtein(&name.to_lowercase(), known), *known))
            .min()
            .filter(|(distance, near)| *distance <= near.len() / 2)
            .map(|(_, near)| near.to_owned());
        Unknown { kind, name: name.to_owned(), near, known: known.join(", ") }
    }
}

fn hint(near: &Option<String>) -> String {
    near.as_ref().map(|near| format!(" (did you mean '{near}'?)")).unwrap_or_default()
}

/// Why a name is not a control.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
        std::iter::once(own).chain(with.filter(move |control| *control != own))
    })
}

/// The control called `name`: `LAW[+DETECTOR][+JOIN][+EXIT]`, where the law may be an alias.
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
    let unalias = |name| ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, is)| *is);
    let name = unalias(name).unwrap_or(name);
    let (law, detector) = match name.split_once('+') {
        Some((law, detector)) => (law, Some(detector)),
        None => (name, None),
    };
    let law = unalias(law).unwrap_or(law);
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
    let fault = |what: String| Err(NoControl::Fault(asked.to_owned(), what));
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

    #[test]
    fn every_control_has_a_name_that_leads_back_to_it() {
        for one in all() {
            assert_eq!(control(&one.to_string()), Ok(one));
        }
        assert_eq!(control("lia+shared"), Ok(Control::LIA));
        assert_eq!(control("cubic+hystart"), Ok(Control::CUBIC));
        let plain = control("cubic+standard").unwrap();
        assert_eq!(
            (plain.exit, plain.to_string().as_str()),
            (SlowStart::STANDARD, "cubic+standard")
        );
        for (alias, name) in ALIASES {
            assert_eq!(control(alias), control(name));
        }
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
    }

    #[test]
    fn a_mistyped_name_gets_the_nearest_one_and_the_list() {
        let error = control("ollia").unwrap_err().to_string();
        let start =
            "unknown law 'ollia' (did you mean 'olia'?); expected one of: reno, cubic, lia, olia";
        assert!(error.starts_with(start), "{error}");
        let error = control("olia+xyz").unwrap_err().to_string();
        let start = "unknown detector or slow start 'xyz'; expected one of: shared, disjoint, ssc, tr, btlbw";
        assert!(error.starts_with(start), "{error}");
        let error = control("olia+histart++").unwrap_err().to_string();
        assert!(error.contains("did you mean 'hystart++'?"), "{error}");
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
