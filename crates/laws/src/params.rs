//! The parameters of laws and detectors, from the lists of their headers, by name.

use crate::catalogue::Unknown;
use crate::control::{Detector, Law, SlowStart, text};
use crate::raw::{self, DETECTOR_PARAMS, JOIN_PARAMS, LAW_PARAMS, ParamRow, WINDOW_PARAMS};
use std::sync::OnceLock;

/// Q16: a ratio of 1 (`NR_Q16`).
pub const Q16: i64 = 1 << 16;

/// Words of all parameters: of decisions and detectors, of window laws, of each law and slow start,
/// and at the end of a law that is loaded at run time.
const WORDS: usize = 256;
const WINDOW: usize = DETECTOR_PARAMS;
const LAWS: usize = WINDOW + WINDOW_PARAMS;
const USER: usize = WORDS - LAW_PARAMS;

/// The unit of a parameter (`enum nr_unit`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// A number of things.
    Count,
    /// A ratio, kept as Q16.
    Ratio,
    /// A ratio that may be negative, kept as Q16.
    Signed,
    /// Milliseconds, kept as microseconds.
    Ms,
    /// Milliseconds per second, kept as microseconds per second.
    MsPerSecond,
    /// Seconds, kept as microseconds.
    Seconds,
    /// One of these words, kept as its place in the list.
    Choice(&'static [&'static str]),
}

impl Unit {
    fn of(number: u32) -> Unit {
        match number {
            0 => Unit::Count,
            1 => Unit::Ratio,
            2 => Unit::Signed,
            3 => Unit::Ms,
            4 => Unit::MsPerSecond,
            5 => Unit::Seconds,
            6 => Unit::Choice(&["off", "on"]),
            7 => Unit::Choice(&["none", "undecided", "all"]),
            8 => Unit::Choice(&["none", "han", "published", "group"]),
            9 => Unit::Choice(&["fastest", "nearest"]),
            _ => panic!("a unit of enum nr_unit"),
        }
    }

    /// Words kept for a value of 1.
    fn scale(self) -> f64 {
        match self {
            Unit::Ratio | Unit::Signed => Q16 as f64,
            Unit::Ms | Unit::MsPerSecond => 1e3,
            Unit::Seconds => 1e6,
            Unit::Count | Unit::Choice(_) => 1.0,
        }
    }
}

/// A parameter, as `narrows list` shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Param {
    /// The name, `LAW.PARAMETER` or `DETECTOR.PARAMETER`.
    pub name: String,
    /// What its number means.
    pub unit: Unit,
    /// Smallest and largest value, in its unit.
    pub range: (f64, f64),
    /// What it is, one line.
    pub about: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    default: u32,
    at: usize,
}

/// A name or value that a parameter does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// No parameter of this name.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The value is not one of the parameter's.
    #[error("{name}: '{value}' is not {expected}")]
    Value {
        /// The parameter.
        name: String,
        /// What was given.
        value: String,
        /// What it takes.
        expected: String,
    },
}

impl Param {
    fn new(group: &str, row: &ParamRow, at: usize) -> Param {
        let unit = Unit::of(row.unit);
        let default = (row.value * unit.scale()).round() as i64 as u32;
        Param {
            name: format!("{group}.{}", text(row.name)),
            unit,
            range: (row.low, row.high),
            about: text(row.about),
            source: text(row.source),
            default,
            at,
        }
    }

    /// Its law, detector or group: the name before the dot.
    pub fn group(&self) -> &str {
        self.name.split_once('.').expect("a name has two parts").0
    }

    /// The name after the dot.
    pub fn field(&self) -> &str {
        self.name.split_once('.').expect("a name has two parts").1
    }

    /// Its value in `params`, as the C side keeps it.
    fn kept(&self, params: &Params) -> i64 {
        let word = params.words[self.at];
        if self.unit == Unit::Signed { i64::from(word as i32) } else { word.into() }
    }

    /// Its value in `params`, as [`Params::set`] takes it.
    pub fn value(&self, params: &Params) -> String {
        let kept = self.kept(params);
        match self.unit {
            Unit::Choice(words) => words[kept as usize].to_owned(),
            // The fewest decimals that are kept as the same word.
            _ => {
                let exact = kept as f64 / self.unit.scale();
                let texts = (0..9).map(|decimals| format!("{exact:.decimals$}"));
                let mut same = texts.filter(|text| self.parse(text) == Some(kept));
                same.next().unwrap_or_else(|| exact.to_string())
            }
        }
    }

    /// The expected value, in words.
    pub fn takes(&self) -> String {
        let (low, high) = self.range;
        match self.unit {
            Unit::Ratio | Unit::Signed => format!("a number from {low} to {high}"),
            Unit::Ms => format!("a number of ms from {low} to {high}"),
            Unit::MsPerSecond => format!("a number of ms/s from {low} to {high}"),
            Unit::Seconds => format!("a number of seconds from {low} to {high}"),
            Unit::Count => format!("a whole number from {low} to {high}"),
            Unit::Choice(words) => format!("one of {}", words.join(", ")),
        }
    }

    fn error(&self, value: String) -> ParamError {
        ParamError::Value { name: self.name.clone(), value, expected: self.takes() }
    }

    fn parse(&self, value: &str) -> Option<i64> {
        if let Unit::Choice(words) = self.unit {
            return words.iter().position(|word| *word == value).map(|at| at as i64);
        }
        let number: f64 = value.parse().ok()?;
        let whole = self.unit != Unit::Count || number.fract() == 0.0;
        (whole && (self.range.0..=self.range.1).contains(&number))
            .then(|| (number * self.unit.scale()).round() as i64)
    }
}

/// Parameters of this program's laws and detectors, in the order of their lists.
fn built_in() -> &'static [Param] {
    static TABLE: OnceLock<Vec<Param>> = OnceLock::new();
    TABLE.get_or_init(|| {
        // SAFETY: rows of the C side, or null.
        let decision = (0..).map_while(|n| unsafe { raw::narrows_decision_param(n).as_ref() });
        let decision: Vec<&ParamRow> = decision.collect();
        // SAFETY: as above.
        let window = (0..).map_while(|n| unsafe { raw::narrows_window_param(n).as_ref() });
        let mut table = Vec::new();
        let mut add = |group: &str, rows: &[&ParamRow], mut at: usize, end: usize| {
            for row in rows {
                assert!(at < end, "room for parameters of {group}");
                table.push(Param::new(group, row, at));
                at += 1;
            }
            at
        };
        let mut at = decision.len();
        for detector in Detector::all() {
            let of = detector.table();
            at = add(detector.name(), &rows(of.param, of.params), at, DETECTOR_PARAMS);
        }
        add("decision", &decision, 0, DETECTOR_PARAMS);
        add("window", &window.collect::<Vec<_>>(), WINDOW, LAWS);
        let mut at = LAWS;
        for law in Law::all().filter(|law| *law != Law::USER) {
            let of = law.table();
            at = add(law.name(), &rows(of.param, of.params), at, USER);
        }
        for start in SlowStart::all() {
            let of = start.table();
            at = add(start.name(), &rows(of.param, of.params), at, USER);
        }
        table
    })
}

/// Parameters of the law that was loaded at run time. Empty until it is.
fn of_user() -> &'static [Param] {
    static TABLE: OnceLock<Vec<Param>> = OnceLock::new();
    if !Law::all().any(|law| law == Law::USER) {
        return &[];
    }
    TABLE.get_or_init(|| {
        let of = Law::USER.table();
        let rows = rows(of.param, of.params).into_iter().zip(USER..);
        rows.map(|(row, at)| Param::new(Law::USER.name(), row, at)).collect()
    })
}

/// What is wrong with the range of a row of a table, if anything is: its words have 32 bits.
#[cfg(all(feature = "user", target_os = "linux"))]
pub(crate) fn fault(row: &ParamRow) -> Option<String> {
    let unit = Unit::of(row.unit);
    let words = if unit == Unit::Signed {
        f64::from(i32::MIN)..=f64::from(i32::MAX)
    } else {
        0.0..=f64::from(u32::MAX)
    };
    let kept = |value: f64| words.contains(&(value * unit.scale()).round());
    let (low, high) = (row.low, row.high);
    (!kept(low) || !kept(high) || !(low..=high).contains(&row.value)).then(|| {
        format!(
            "parameter {}: expected lowest <= default <= highest, in {unit:?} from {} to {}",
            text(row.name),
            (words.start() / unit.scale()).ceil(),
            (words.end() / unit.scale()).floor()
        )
    })
}

pub(crate) fn rows(param: *const ParamRow, params: u32) -> Vec<&'static ParamRow> {
    // SAFETY: a table says how many rows it has; none where it is null.
    (0..params as usize).map(|n| unsafe { &*param.add(n) }).collect()
}

/// All parameters.
pub fn all() -> impl Iterator<Item = &'static Param> {
    built_in().iter().chain(of_user())
}

/// What has parameters: laws, detectors, decisions, window laws; each once.
pub fn groups() -> Vec<&'static str> {
    let mut groups: Vec<&str> = all().map(Param::group).collect();
    groups.dedup();
    groups
}

/// The parameter called `name`.
///
/// # Errors
/// There is none.
pub fn named(name: &str) -> Result<&'static Param, Unknown> {
    all().find(|param| param.name == name).ok_or_else(|| {
        let names: Vec<&str> = all().map(|param| param.name.as_str()).collect();
        Unknown::new("parameter", name, &names)
    })
}

/// A value for every parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Params {
    words: [u32; WORDS],
}

impl std::fmt::Debug for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.differing(&Params::default())).finish()
    }
}

impl Default for Params {
    fn default() -> Params {
        let mut words = [0; WORDS];
        for param in all() {
            words[param.at] = param.default;
        }
        Params { words }
    }
}

impl Params {
    /// Sets the parameter called `name`, or all of a detector by its preset, `DETECTOR.preset`, to
    /// `value` in its unit.
    ///
    /// # Errors
    /// No such parameter, or not a value of it; in one line.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ParamError> {
        if let Some(detector) = with_presets(name) {
            let settings = preset(detector, value).ok_or_else(|| ParamError::Value {
                name: name.to_owned(),
                value: value.to_owned(),
                expected: format!("one of {}", presets(detector).join(", ")),
            })?;
            self.reset(detector.name());
            for setting in settings.split_whitespace() {
                let (name, value) = setting.split_once('=').expect("a preset of NAME=VALUE");
                self.set(&format!("{}.{name}", detector.name()), value)?;
            }
            return Ok(());
        }
        let param = named(name)?;
        let kept = param.parse(value).ok_or_else(|| param.error(value.to_owned()))?;
        self.words[param.at] = kept as u32;
        Ok(())
    }

    /// Sets all parameters of a group, [`groups`], to their defaults.
    pub fn reset(&mut self, group: &str) {
        for param in all().filter(|param| param.group() == group) {
            self.words[param.at] = param.default;
        }
    }

    /// The same with values that are known to be right: for tests. Panics where `set` fails.
    #[must_use]
    pub fn with(mut self, settings: &[(&str, &str)]) -> Params {
        for (name, value) in settings {
            self.set(name, value).unwrap_or_else(|error| panic!("{error}"));
        }
        self
    }

    /// The value of the parameter called `name` as the C side keeps it: ratios are Q16, times µs.
    /// Panics if there is none.
    pub fn word(&self, name: &str) -> u32 {
        self.words[named(name).unwrap_or_else(|error| panic!("{error}")).at]
    }

    /// All of them, as [`Params::from_bytes`] of the same build takes them.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// What [`Params::to_bytes`] was called for; none if these are not as many bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Params> {
        let mut words = [0; WORDS];
        if bytes.len() != size_of_val(&words) {
            return None;
        }
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_ne_bytes(bytes.try_into().expect("four"));
        }
        Some(Params { words })
    }

    /// Is every parameter in its range, and do they fit each other?
    ///
    /// # Errors
    /// The first that does not, in one line.
    pub fn check(&self) -> Result<(), ParamError> {
        for param in all() {
            let (low, high) = param.range;
            let (kept, scale) = (param.kept(self) as f64, param.unit.scale());
            if kept < (low * scale).floor() || kept > (high * scale).ceil() {
                return Err(param.error(kept.to_string()));
            }
        }
        let (together, of) = (self.word("decision.together"), self.word("decision.observations"));
        if together > of {
            return Err(ParamError::Value {
                name: "decision.together".into(),
                value: together.to_string(),
                expected: format!("at most decision.observations, {of}"),
            });
        }
        let (least, most) = (self.word("lisa.least"), self.word("lisa.most"));
        if least > most {
            return Err(ParamError::Value {
                name: "lisa.least".into(),
                value: least.to_string(),
                expected: format!("at most lisa.most, {most}"),
            });
        }
        Ok(())
    }

    /// The parameters that differ from `other`'s, with their values here.
    pub fn differing<'a>(
        &'a self,
        other: &'a Params,
    ) -> impl Iterator<Item = (&'static str, String)> + 'a {
        let differs = |param: &&Param| param.kept(self) != param.kept(other);
        all().filter(differs).map(|param| (param.name.as_str(), param.value(self)))
    }

    /// Of decisions and detectors (`struct nr_params`).
    pub fn of_detectors(&self) -> [u32; DETECTOR_PARAMS] {
        self.words[..WINDOW].try_into().expect("as many words")
    }

    /// Of all window laws (`struct nr_window_params`).
    pub fn of_window(&self) -> [u32; WINDOW_PARAMS] {
        self.words[WINDOW..LAWS].try_into().expect("as many words")
    }

    /// Of `law`, in the order of its list.
    pub fn of_law(&self, law: Law) -> [u32; LAW_PARAMS] {
        self.of_group(law.name())
    }

    /// Of the slow start `join`, likewise; all 0 if it has none.
    pub fn of_join(&self, join: SlowStart) -> [u32; JOIN_PARAMS] {
        self.of_group(join.name())
    }

    fn of_group<const N: usize>(&self, group: &str) -> [u32; N] {
        let mut words = [0; N];
        let own = all().filter(|param| param.group() == group);
        for (word, param) in words.iter_mut().zip(own) {
            *word = self.words[param.at];
        }
        words
    }
}

/// Is `name` a preset, `DETECTOR.preset`, to be applied before other settings?
pub fn is_preset(name: &str) -> bool {
    with_presets(name).is_some()
}

impl Detector {
    /// How long a path that carries data stays undecided, µs.
    pub fn warm_up_us(self, params: &Params) -> u64 {
        // SAFETY: a detector that is there, and parameters of the C side's layout.
        unsafe { raw::narrows_warm_up_us(self.number(), &params.of_detectors()) }
    }

    /// Does it couple an undecided path with the others?
    pub fn couples_at_join(self, params: &Params) -> bool {
        // SAFETY: as above.
        unsafe { raw::narrows_first_row(self.number(), 0, &params.of_detectors()) != 1 }
    }
}

/// The detector whose presets `name` stands for: `ssc.preset`.
fn with_presets(name: &str) -> Option<Detector> {
    let group = name.strip_suffix(".preset")?;
    Detector::all().find(|of| of.name() == group && !of.table().preset.is_null())
}

fn preset_rows(detector: Detector) -> impl Iterator<Item = (&'static str, &'static str)> {
    let first = detector.table().preset;
    // SAFETY: a list of presets ends with a null name.
    let rows = (0..).map(move |n| unsafe { &*first.add(n) });
    rows.take_while(|row| !row.name.is_null()).map(|row| (text(row.name), text(row.set)))
}

fn preset(detector: Detector, name: &str) -> Option<&'static str> {
    preset_rows(detector).find(|(known, _)| *known == name).map(|(_, set)| set)
}

/// The presets of a detector, `DETECTOR.preset`.
pub fn presets(detector: Detector) -> Vec<&'static str> {
    if detector.table().preset.is_null() {
        return Vec::new();
    }
    preset_rows(detector).map(|(name, _)| name).collect()
}

/// The paths that a path is coupled with besides its group (`enum nr_couple`).
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Couple {
    /// None.
    None = 0,
    /// The undecided ones.
    Undecided,
    /// All.
    All,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_and_presets_are_in_range_and_can_be_set_as_they_are_shown() {
        assert_eq!(presets(Detector::SSC), ["rfc8382", "mptcp-sbd"]);
        for preset in presets(Detector::SSC) {
            let params = Params::default().with(&[("ssc.preset", preset)]);
            assert_eq!(params.check(), Ok(()));
            let mut again = Params::default();
            for param in all() {
                again.set(&param.name, &param.value(&params)).unwrap();
            }
            assert_eq!(again, params, "{preset}");
        }
        let sbd = Params::default().with(&[("ssc.preset", "mptcp-sbd")]);
        assert_eq!(sbd.differing(&Params::default()).count(), 7);
    }

    #[test]
    fn a_preset_is_all_of_the_detectors_parameters() {
        let params = Params::default().with(&[("ssc.t_ms", "100"), ("ssc.preset", "rfc8382")]);
        assert_eq!(params, Params::default());
    }

    #[test]
    fn values_are_kept_in_the_units_of_the_c() {
        let params = Params::default().with(&[
            ("ssc.p_s", "0.5"),
            ("ssc.c_s", "-0.01"),
            ("ssc.t_ms", "350.5"),
            ("tr.hold_s", "60"),
            ("decision.clear", "all"),
            ("olia.floor", "2"),
        ]);
        assert_eq!(params.word("ssc.p_s"), 32_768);
        assert_eq!(params.word("ssc.c_s") as i32, -655);
        assert_eq!(params.word("ssc.t_ms"), 350_500);
        assert_eq!(params.word("tr.hold_s"), 60_000_000);
        assert_eq!(params.word("decision.clear"), Couple::All as u32);
        assert_eq!(params.of_law(Law::OLIA)[..2], [2, 0]);
        assert_eq!(params.of_law(Law::LIA), [0; LAW_PARAMS]);
        assert_eq!(params.of_join(SlowStart::LISA), [10, 3, 0, 0]);
        assert_eq!(params.of_join(SlowStart::STANDARD), [0; JOIN_PARAMS]);
        let differing: Vec<_> = params.differing(&Params::default()).collect();
        assert_eq!(differing.len(), 6);
        assert_eq!(differing[0], ("ssc.t_ms", "350.5".to_owned()));
    }

    #[test]
    fn a_value_reads_as_what_is_kept() {
        for kept in (1..2 * 65_536).step_by(97) {
            let mut params = Params::default();
            params.words[named("ssc.p_s").unwrap().at] = kept;
            let text = named("ssc.p_s").unwrap().value(&params);
            let again = Params::default().with(&[("ssc.p_s", &text)]);
            assert_eq!(again.word("ssc.p_s"), kept, "{text}");
        }
        assert_eq!(named("ssc.p_s").unwrap().value(&Params::default()), "0.15");
    }

    #[test]
    fn the_range_of_every_parameter_fits_its_word() {
        let laws = Law::all().map(|law| (law.table().param, law.table().params));
        let detectors = Detector::all().map(|of| (of.table().param, of.table().params));
        let starts = SlowStart::all().map(|of| (of.table().param, of.table().params));
        let all = laws.chain(detectors).chain(starts);
        for row in all.flat_map(|(param, params)| rows(param, params)) {
            assert_eq!(fault(row), None);
        }
    }

    #[test]
    fn a_wrong_parameter_or_value_is_one_line() {
        let mut params = Params::default();
        let mut error = |name, value| params.set(name, value).unwrap_err().to_string();
        let unknown = error("ssc.ps", "0.1");
        let start = "unknown parameter 'ssc.ps' (did you mean 'ssc.p_s'?)";
        assert!(unknown.starts_with(start), "{unknown}");
        assert_eq!(error("ssc.p_s", "x"), "ssc.p_s: 'x' is not a number from 0 to 2");
        assert_eq!(error("ssc.n", "65"), "ssc.n: '65' is not a whole number from 2 to 64");
        assert_eq!(error("ssc.n", "9.5"), "ssc.n: '9.5' is not a whole number from 2 to 64");
        assert_eq!(
            error("ssc.t_ms", "nan"),
            "ssc.t_ms: 'nan' is not a number of ms from 10 to 10000"
        );
        let choice = "decision.clear: 'some' is not one of none, undecided, all";
        assert_eq!(error("decision.clear", "some"), choice);
        assert_eq!(
            error("ssc.preset", "old"),
            "ssc.preset: 'old' is not one of rfc8382, mptcp-sbd"
        );
        assert!(error("tr.preset", "x").starts_with("unknown parameter 'tr.preset'"));
        assert_eq!(error("olia.floor", "0"), "olia.floor: '0' is not a whole number from 1 to 2");
        assert_eq!(params, Params::default(), "nothing half done");
    }

    #[test]
    fn parameters_that_contradict_each_other_are_found() {
        let params = Params::default().with(&[("decision.together", "11")]);
        let error = params.check().unwrap_err().to_string();
        assert_eq!(error, "decision.together: '11' is not at most decision.observations, 10");
        let params = Params::default().with(&[("lisa.least", "11")]);
        let error = params.check().unwrap_err().to_string();
        assert_eq!(error, "lisa.least: '11' is not at most lisa.most, 10");
    }
}
