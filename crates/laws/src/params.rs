//! What can be set about the detectors: `c/detect/params.h`, with names.

use crate::catalogue::{self, PARAMS};
use crate::raw;

/// Q16: a ratio of 1 (`NR_Q16`).
pub const Q16: i64 = 1 << 16;

macro_rules! words {
    ($($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident: $word:ty,)+ })+) => {
        $(
            $(#[$about])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name {
                $($(#[$field_about])* pub $field: $word,)+
            }
        )+
    };
}

words! {
    /// Of `ssc` (`struct nr_ssc_params`). Ratios are Q16.
    SscParams {
        /// T, length of an interval, µs.
        t_us: u32,
        /// N, intervals of the key frequency, and of loss.
        n: u32,
        /// M, intervals of the mean, skewness and variability.
        m: u32,
        /// F, newest intervals of full weight.
        f: u32,
        /// Skewness below which there is congestion.
        c_s: i32,
        /// The same, where there was congestion before.
        c_h: i32,
        /// Loss above which there is congestion whatever the skewness.
        p_l: u32,
        /// Key frequencies this near are alike.
        p_f: u32,
        /// Variabilities this near, of the higher, are alike.
        p_mad: u32,
        /// Skewnesses this near are alike.
        p_s: u32,
        /// Losses this near, of the higher, are alike.
        p_d: u32,
        /// Half the band around the mean that is no crossing, of the variability.
        p_v: u32,
        /// Are variability and crossings of intervals without congestion left out?
        mask_noise: u32,
        /// Where a path loses more than p_l, does loss divide instead of skewness?
        loss_for_skew: u32,
        /// Do the clocks of delays run apart?
        clock_skew: u32,
        /// Intervals before a path's estimates are trusted.
        trusted: u32,
    }

    /// Of `tr` (`struct nr_tr_params`). Ratios are Q16.
    TrParams {
        /// Length of an interval, µs.
        t_us: u32,
        /// After an interval's end, until it is decided on, µs.
        settle_us: u32,
        /// Weight of the new sample.
        alpha: u32,
        /// Groups of rising delay this near in time may be one, µs.
        gap_us: u32,
        /// Slopes this near, of the larger, are alike.
        eps: u32,
        /// Groups of two paths this near in time may be compared, µs.
        tau_us: u32,
        /// Slopes up to this are like no other, µs/s.
        slope_min: u32,
        /// Paths stay coupled for as long after they were last found alike, µs.
        hold_us: u32,
        /// Whom a path asks to be coupled with that nothing is known of yet.
        undecided: u32,
    }

    /// Of `btlbw` (`struct nr_btlbw_params`). Ratios are Q16.
    BtlbwParams {
        /// Length of an interval, µs.
        t_us: u32,
        /// Bandwidths this near, of the smaller, are alike.
        alpha: u32,
        /// ProbeBW cycles for which they must be, or must not be any more.
        cycles: u32,
    }

    /// Of what is made of observations (`struct nr_decision_params`).
    DecisionParams {
        /// Newest observations that a decision looks at.
        observations: u32,
        /// Of so many, at which two paths are grouped.
        together: u32,
        /// Observations from a decision to the next.
        every: u32,
        /// Whom a path asks to be coupled with that nothing is known of yet.
        undecided: u32,
        /// Whom a path asks to be coupled with that is not congested.
        clear: u32,
        /// Whom a path in a group asks to be coupled with beside its group.
        grouped: u32,
    }

    /// The parameters of all detectors (`struct nr_params`).
    Params {
        /// Of `ssc`.
        ssc: SscParams,
        /// Of `tr`.
        tr: TrParams,
        /// Of `btlbw`.
        btlbw: BtlbwParams,
        /// Of what is made of observations.
        decision: DecisionParams,
    }
}

/// What a parameter's number means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A ratio, kept as Q16.
    Ratio,
    /// Milliseconds, kept as microseconds.
    Ms,
    /// Milliseconds per second, kept as microseconds per second.
    MsPerSecond,
    /// Seconds, kept as microseconds.
    Seconds,
    /// A number of things.
    Count,
    /// One of these words, kept as its place in the list.
    Choice(&'static [&'static str]),
}

/// A parameter, as `narrows list` shows it.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// The name, `DETECTOR.PARAMETER`.
    pub name: &'static str,
    /// What its number means.
    pub unit: Unit,
    /// Smallest and largest value, in its unit.
    pub range: (f64, f64),
    /// What it is, one line.
    pub about: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    pub(crate) get: fn(&Params) -> i64,
    pub(crate) put: fn(&mut Params, i64),
}

/// A name or value that a parameter does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// No parameter of this name.
    #[error(transparent)]
    Unknown(#[from] catalogue::Unknown),
    /// The value is not one of the parameter's.
    #[error("{name}: '{value}' is not {expected}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: String,
        /// What it takes.
        expected: String,
    },
}

impl Param {
    /// Words kept for a value of 1 in the parameter's unit.
    fn scale(&self) -> f64 {
        match self.unit {
            Unit::Ratio => Q16 as f64,
            Unit::Ms | Unit::MsPerSecond => 1e3,
            Unit::Seconds => 1e6,
            Unit::Count | Unit::Choice(_) => 1.0,
        }
    }

    /// Its value in `params`, as [`Params::set`] takes it.
    pub fn value(&self, params: &Params) -> String {
        let kept = (self.get)(params);
        match self.unit {
            Unit::Choice(words) => words[kept as usize].to_owned(),
            // Q16 is near enough to four decimals.
            _ => format!("{}", (kept as f64 / self.scale() * 1e4).round() / 1e4),
        }
    }

    /// What it takes, in words.
    pub fn takes(&self) -> String {
        let (low, high) = self.range;
        match self.unit {
            Unit::Ratio => format!("a number from {low} to {high}"),
            Unit::Ms => format!("a number of ms from {low} to {high}"),
            Unit::MsPerSecond => format!("a number of ms/s from {low} to {high}"),
            Unit::Seconds => format!("a number of seconds from {low} to {high}"),
            Unit::Count => format!("a whole number from {low} to {high}"),
            Unit::Choice(words) => format!("one of {}", words.join(", ")),
        }
    }

    fn error(&self, value: String) -> ParamError {
        ParamError::Value { name: self.name, value, expected: self.takes() }
    }

    fn parse(&self, value: &str) -> Option<i64> {
        if let Unit::Choice(words) = self.unit {
            return words.iter().position(|word| *word == value).map(|at| at as i64);
        }
        let number: f64 = value.parse().ok()?;
        let whole = self.unit != Unit::Count || number.fract() == 0.0;
        (whole && (self.range.0..=self.range.1).contains(&number))
            .then(|| (number * self.scale()).round() as i64)
    }
}

impl Default for Params {
    fn default() -> Params {
        Params::RFC8382
    }
}

impl Params {
    /// Sets the parameter called `name`, of [`PARAMS`] or `ssc.preset`, to `value` in its unit.
    ///
    /// # Errors
    /// No such parameter, or not a value of it; in one line.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ParamError> {
        if name == PRESET {
            let preset = Params::preset(value).ok_or_else(|| ParamError::Value {
                name: PRESET,
                value: value.to_owned(),
                expected: format!("one of {}", PRESETS.join(", ")),
            })?;
            self.ssc = preset.ssc;
            return Ok(());
        }
        let param = catalogue::param(name)?;
        let kept = param.parse(value).ok_or_else(|| param.error(value.to_owned()))?;
        (param.put)(self, kept);
        Ok(())
    }

    /// Is every parameter in its range, and do they fit each other?
    ///
    /// # Errors
    /// The first that does not, in one line.
    pub fn check(&self) -> Result<(), ParamError> {
        for param in &PARAMS {
            let (low, high) = param.range;
            let kept = (param.get)(self) as f64;
            if kept < (low * param.scale()).floor() || kept > (high * param.scale()).ceil() {
                return Err(param.error(kept.to_string()));
            }
        }
        if self.decision.together > self.decision.observations {
            return Err(ParamError::Value {
                name: "decision.together",
                value: self.decision.together.to_string(),
                expected: format!("at most decision.observations, {}", self.decision.observations),
            });
        }
        if self.tr.hold_us > raw::OBSERVATIONS as u32 * self.tr.t_us {
            return Err(ParamError::Value {
                name: "tr.hold_s",
                value: (f64::from(self.tr.hold_us) / 1e6).to_string(),
                expected: format!("at most {} times tr.t_s", raw::OBSERVATIONS),
            });
        }
        Ok(())
    }

    /// The parameters that differ from `other`'s, with their values here.
    pub fn differing<'a>(
        &'a self,
        other: &'a Params,
    ) -> impl Iterator<Item = (&'static str, String)> + 'a {
        let differs = |param: &&Param| (param.get)(self) != (param.get)(other);
        PARAMS.iter().filter(differs).map(|param| (param.name, param.value(self)))
    }
}

/// The name that sets all of `ssc` at once.
pub const PRESET: &str = "ssc.preset";

/// The presets, by name.
pub const PRESETS: [&str; 2] = ["rfc8382", "mptcp-sbd"];

/// A ratio as Q16, of a number of thousandths.
const fn q16(thousandths: i64) -> i64 {
    (thousandths * Q16 + thousandths.signum() * 500) / 1000
}

const fn ratio(thousandths: i64) -> u32 {
    q16(thousandths) as u32
}

impl Params {
    /// The detector of RFC 8382, section 2.2, and what is default of the others.
    pub const RFC8382: Params = Params {
        ssc: SscParams {
            t_us: 350_000,
            n: 50,
            m: 30,
            f: 20,
            c_s: q16(100) as i32,
            c_h: q16(300) as i32,
            p_l: ratio(100),
            p_f: ratio(100),
            p_mad: ratio(100),
            p_s: ratio(150),
            p_d: ratio(100),
            p_v: ratio(700),
            mask_noise: 1,
            loss_for_skew: 0,
            clock_skew: 0,
            trusted: 60,
        },
        tr: TrParams {
            t_us: 5_000_000,
            settle_us: 500_000,
            alpha: ratio(900),
            gap_us: 50_000,
            eps: ratio(200),
            tau_us: 1_000_000,
            slope_min: 10_000,
            hold_us: 100_000_000,
            undecided: Couple::None as u32,
        },
        btlbw: BtlbwParams { t_us: 1_000_000, alpha: ratio(200), cycles: 3 },
        decision: DecisionParams {
            observations: 10,
            together: 5,
            every: 10,
            undecided: Couple::All as u32,
            clear: Couple::None as u32,
            grouped: Couple::Undecided as u32,
        },
    };

    /// The detector of MPTCP-SBD (Table I): an earlier draft of the same, without weighting and
    /// masking.
    pub const MPTCP_SBD: Params = Params {
        ssc: SscParams {
            m: 50,
            f: 50,
            c_s: q16(-10) as i32,
            p_s: ratio(100),
            mask_noise: 0,
            loss_for_skew: 1,
            trusted: 50,
            ..Params::RFC8382.ssc
        },
        ..Params::RFC8382
    };

    /// The parameters called `name`, if it is one of [`PRESETS`].
    pub fn preset(name: &str) -> Option<Params> {
        let at = PRESETS.iter().position(|preset| *preset == name)?;
        Some([Params::RFC8382, Params::MPTCP_SBD][at])
    }
}

/// Whom a path asks to be coupled with, beside its own group (`enum nr_couple`).
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Couple {
    /// Nobody.
    None = 0,
    /// Those that nothing is known of yet.
    Undecided,
    /// All.
    All,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_and_presets_are_in_range_and_can_be_set_as_they_are_shown() {
        for preset in PRESETS {
            let params = Params::preset(preset).unwrap();
            assert_eq!(params.check(), Ok(()));
            let mut again = Params::default();
            for param in &PARAMS {
                again.set(param.name, &param.value(&params)).unwrap();
            }
            assert_eq!(again, params, "{preset}");
            let mut again = Params::default();
            again.set(PRESET, preset).unwrap();
            assert_eq!(again, params, "{preset}");
        }
        assert_eq!(Params::preset("draft"), None);
    }

    #[test]
    fn values_are_kept_in_the_units_of_the_c() {
        let mut params = Params::default();
        params.set("ssc.p_s", "0.5").unwrap();
        params.set("ssc.c_s", "-0.01").unwrap();
        params.set("ssc.t_ms", "350.5").unwrap();
        params.set("tr.hold_s", "60").unwrap();
        params.set("decision.clear", "all").unwrap();
        assert_eq!((params.ssc.p_s, params.ssc.c_s, params.ssc.t_us), (32_768, -655, 350_500));
        assert_eq!(params.tr.hold_us, 60_000_000);
        assert_eq!(params.decision.clear, Couple::All as u32);
        let differing: Vec<_> = params.differing(&Params::default()).collect();
        assert_eq!(differing.len(), 5);
        assert_eq!(differing[0], ("ssc.t_ms", "350.5".to_owned()));
    }

    #[test]
    fn what_is_not_a_parameter_or_not_its_value_is_said_in_one_line() {
        let mut params = Params::default();
        let mut said = |name, value| params.set(name, value).unwrap_err().to_string();
        let unknown = said("ssc.ps", "0.1");
        let start =
            "unknown parameter 'ssc.ps' (did you mean 'ssc.p_s'?); there is: ssc.t_ms, ssc.n";
        assert!(unknown.starts_with(start), "{unknown}");
        assert_eq!(said("ssc.p_s", "x"), "ssc.p_s: 'x' is not a number from 0 to 2");
        assert_eq!(said("ssc.n", "65"), "ssc.n: '65' is not a whole number from 2 to 64");
        assert_eq!(said("ssc.n", "9.5"), "ssc.n: '9.5' is not a whole number from 2 to 64");
        assert_eq!(
            said("ssc.t_ms", "nan"),
            "ssc.t_ms: 'nan' is not a number of ms from 10 to 10000"
        );
        let choice = "decision.clear: 'some' is not one of none, undecided, all";
        assert_eq!(said("decision.clear", "some"), choice);
        assert_eq!(said("ssc.preset", "old"), "ssc.preset: 'old' is not one of rfc8382, mptcp-sbd");
        assert_eq!(params, Params::default(), "nothing half done");
    }

    #[test]
    fn parameters_that_contradict_each_other_are_found() {
        let mut params = Params::default();
        params.set("decision.together", "11").unwrap();
        let said = params.check().unwrap_err().to_string();
        assert_eq!(said, "decision.together: '11' is not at most decision.observations, 10");
    }
}
