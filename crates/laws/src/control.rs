//! The parts of a congestion control: a law, a detector, a slow start.

use crate::raw::{self, DetectorTable, LawTable, Module, StartTable};
use std::ffi::{CStr, c_char};
use std::fmt;

/// A law, by its number in `c/laws.def`: how windows grow and shrink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Law(u8);

/// A detector, by its number in `c/detectors.def`: which paths share a bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Detector(u8);

/// A slow start, by its number in `c/starts.def`: the first window of a path, and when slow start
/// ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlowStart(u8);

/// A string of a table on the C side.
pub(crate) fn text(of: *const c_char) -> &'static str {
    // SAFETY: tables hold pointers to string constants, of this program or of a law that is never
    // unloaded.
    let text = unsafe { CStr::from_ptr(of) };
    text.to_str().expect("tables are in ASCII")
}

/// What each table says of itself.
macro_rules! described {
    ($($kind:ident)*) => {$(
        impl $kind {
            /// Its name in a control's name.
            pub fn name(self) -> &'static str {
                text(self.table().name)
            }

            /// Its part of a control's name in the kernel; see [`crate::catalogue::kernel_name`].
            pub fn code(self) -> &'static str {
                text(self.table().code)
            }

            /// What it does, one line.
            pub fn about(self) -> &'static str {
                text(self.table().about)
            }

            /// Where it is specified.
            pub fn source(self) -> &'static str {
                text(self.table().source)
            }
        }
    )*};
}
described! { Law Detector SlowStart }

impl Law {
    /// RFC 5681, uncoupled.
    pub const RENO: Law = Law(0);
    /// RFC 9438, uncoupled.
    pub const CUBIC: Law = Law(1);
    /// RFC 6356.
    pub const LIA: Law = Law(2);
    /// draft-khalili-mptcp-congestion-control-05.
    pub const OLIA: Law = Law(3);
    /// draft-walid-mptcp-congestion-control-04.
    pub const BALIA: Law = Law(4);
    /// The law that was loaded at run time, if one was: `NR_LAW_USER`.
    pub const USER: Law = Law(63);

    /// The law of a number, if there is one.
    pub fn from_number(number: u32) -> Option<Law> {
        let law = Law(number.try_into().ok()?);
        law.find().map(|_| law)
    }

    /// All laws, the one that was loaded at run time last.
    pub fn all() -> impl Iterator<Item = Law> {
        (0..=Law::USER.0).map(Law).filter(|law| law.find().is_some())
    }

    /// Its number, as hosts store it.
    pub fn number(self) -> u32 {
        self.0.into()
    }

    /// Does the law read the sibling paths in its mask?
    pub fn couples(self) -> bool {
        self.table().couples != 0
    }

    /// Does it keep its growth per acknowledged packet for up to a round trip?
    pub fn keeps_growth(self) -> bool {
        self.table().per_round != 0
    }

    /// Is it a scalable control, which answers marks otherwise than losses (RFC 9331)?
    pub fn scales(self) -> bool {
        self.table().scales != 0
    }

    /// Is it a model law, which publishes a bandwidth, and not a window law?
    pub fn is_model(self) -> bool {
        self.table().kind != 0
    }

    /// Does it act at each acknowledgement, before any growth?
    pub(crate) fn acts_at_acks(self) -> bool {
        !self.table().acked.is_null()
    }

    /// May it reduce a window at any event, for what a sibling published?
    pub(crate) fn follows(self) -> bool {
        !self.table().before.is_null()
    }

    fn find(self) -> Option<&'static Module> {
        if self == Law::USER {
            return raw::USER.get().copied();
        }
        // SAFETY: null, or a constant of the C side.
        unsafe { raw::narrows_law(self.number()).as_ref() }
    }

    pub(crate) fn module(self) -> &'static Module {
        self.find().expect("a law that is there")
    }

    pub(crate) fn table(self) -> &'static LawTable {
        // SAFETY: a module's table is a constant as it is.
        unsafe { &*self.module().law }
    }
}

impl Detector {
    /// All paths, always.
    pub const SHARED: Detector = Detector(0);
    /// No paths, always.
    pub const DISJOINT: Detector = Detector(1);
    /// RFC 8382: similar summary statistics of delay.
    pub const SSC: Detector = Detector(2);
    /// arXiv:1812.05816: similar slopes of rising delay.
    pub const TR: Detector = Detector(3);
    /// C-MPBBR: similar bandwidths.
    pub const BTLBW: Detector = Detector(4);
    /// Delays that rise and fall at the same moments by the same amount.
    pub const XCORR: Detector = Detector(5);
    /// Kim et al., SIGCOMM 2004: delays that correlate over 100 s.
    pub const DCW: Detector = Detector(6);

    /// The detector of a number, if there is one.
    pub fn from_number(number: u32) -> Option<Detector> {
        let detector = Detector(number.try_into().ok()?);
        detector.find().map(|_| detector)
    }

    /// All detectors.
    pub fn all() -> impl Iterator<Item = Detector> {
        (0..raw::DETECTORS_MAX).filter_map(Detector::from_number)
    }

    /// Its number, as hosts store it.
    pub fn number(self) -> u32 {
        self.0.into()
    }

    /// Is it dynamic, deciding from measurements? The others are fixed.
    pub fn decides(self) -> bool {
        self.table().measures != 0
    }

    /// Does it use delays and losses, which any flow has?
    pub fn measures_delay(self) -> bool {
        self.table().measures == raw::BY_DELAY
    }

    /// Is a decision of it too much work, or memory, for BPF?
    pub fn is_native(self) -> bool {
        self.table().native != 0
    }

    /// Can the kernel host run it? Not if it is native.
    pub fn is_for_kernel(self) -> bool {
        !self.is_native()
    }

    fn find(self) -> Option<&'static DetectorTable> {
        // SAFETY: null, or a constant of the C side.
        unsafe { raw::narrows_detector(self.number()).as_ref() }
    }

    pub(crate) fn table(self) -> &'static DetectorTable {
        self.find().expect("a detector that is there")
    }
}

impl SlowStart {
    /// The initial window of RFC 6928, doubled each round trip until a loss.
    pub const STANDARD: SlowStart = SlowStart(0);
    /// RFC 9406.
    pub const HYSTARTPP: SlowStart = SlowStart(1);
    /// Linux's HyStart, the exit of CUBIC.
    pub const HYSTART: SlowStart = SlowStart(2);
    /// Barik et al., ICC 2016: a joining path takes its first window from a sibling.
    pub const LISA: SlowStart = SlowStart(3);

    /// The slow start of a number, if there is one.
    pub fn from_number(number: u32) -> Option<SlowStart> {
        let start = SlowStart(number.try_into().ok()?);
        start.find().map(|_| start)
    }

    /// All slow starts.
    pub fn all() -> impl Iterator<Item = SlowStart> {
        (0..raw::STARTS_MAX).filter_map(SlowStart::from_number)
    }

    /// Does it act at the join? The others use the standard one there.
    pub fn joins(self) -> bool {
        !self.table().initial.is_null()
    }

    fn find(self) -> Option<&'static StartTable> {
        // SAFETY: null, or a constant of the C side.
        unsafe { raw::narrows_start(self.0.into()).as_ref() }
    }

    pub(crate) fn table(self) -> &'static StartTable {
        self.find().expect("a slow start that is there")
    }
}

/// A congestion control, written `LAW[+DETECTOR][+JOIN][+EXIT]`: `olia`, `lia+disjoint`,
/// `reno+hystart++`, `olia+lisa`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Control {
    /// The law.
    pub law: Law,
    /// The detector.
    pub detector: Detector,
    /// The slow start at the join.
    pub join: SlowStart,
    /// The slow start at the exit.
    pub exit: SlowStart,
}

impl Control {
    /// Reno on each path, uncoupled.
    pub const RENO: Control = Control::uncoupled(Law::RENO, SlowStart::STANDARD);
    /// CUBIC on each path, uncoupled, with HyStart.
    pub const CUBIC: Control = Control::uncoupled(Law::CUBIC, SlowStart::HYSTART);
    /// LIA over all paths.
    pub const LIA: Control = Control::coupled(Law::LIA);
    /// OLIA over all paths.
    pub const OLIA: Control = Control::coupled(Law::OLIA);
    /// Balia over all paths.
    pub const BALIA: Control = Control::coupled(Law::BALIA);

    const fn uncoupled(law: Law, exit: SlowStart) -> Control {
        Control { law, detector: Detector::DISJOINT, join: SlowStart::STANDARD, exit }
    }

    const fn coupled(law: Law) -> Control {
        let (join, exit) = (SlowStart::STANDARD, SlowStart::STANDARD);
        Control { law, detector: Detector::SHARED, join, exit }
    }

    /// `law` with its own detector (full masks if it couples) and its own slow start.
    pub fn of(law: Law) -> Control {
        Control::in_table(law, law.table())
    }

    /// The same of a law with this table.
    pub(crate) fn in_table(law: Law, table: &LawTable) -> Control {
        let detector = if table.couples != 0 { Detector::SHARED } else { Detector::DISJOINT };
        let exit = SlowStart(table.start as u8);
        Control { law, detector, join: SlowStart::STANDARD, exit }
    }

    /// Its slow start as the C side and hosts store it (`c/starts.h`).
    pub fn start(self) -> u32 {
        u32::from(self.join.0) << 3 | u32::from(self.exit.0)
    }

    /// The slow starts of a number that [`Control::start`] gave: join and exit.
    pub fn starts_of(number: u32) -> Option<(SlowStart, SlowStart)> {
        Some((SlowStart::from_number(number >> 3)?, SlowStart::from_number(number & 7)?))
    }

    /// Why its parts do not work together, if so.
    pub fn fault(self) -> Option<String> {
        let (law, detector) = (self.law.name(), self.detector.name());
        let starts = [self.join, self.exit].into_iter();
        if let Some(start) =
            starts.filter(|_| self.law.is_model()).find(|of| *of != SlowStart::STANDARD)
        {
            let start = start.name();
            return Some(format!("slow start '{start}' is for window laws; '{law}' has its own"));
        }
        (self.detector.decides() && !self.detector.measures_delay() && !self.law.is_model()).then(
            || {
                format!(
                    "detector '{detector}' uses the bandwidth estimate of a model law; '{law}' has none"
                )
            },
        )
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.law.name())?;
        let own = Control::of(self.law);
        if self.detector != own.detector {
            write!(f, "+{}", self.detector.name())?;
        }
        if self.join != own.join {
            write!(f, "+{}", self.join.name())?;
        }
        if self.exit != own.exit {
            write!(f, "+{}", self.exit.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_for_rust_are_those_of_the_tables() {
        let laws = [
            (Law::RENO, "reno"),
            (Law::CUBIC, "cubic"),
            (Law::LIA, "lia"),
            (Law::OLIA, "olia"),
            (Law::BALIA, "balia"),
        ];
        for (law, name) in laws {
            assert_eq!(law.name(), name);
        }
        for control in [Control::RENO, Control::CUBIC, Control::LIA, Control::OLIA, Control::BALIA]
        {
            assert_eq!(control, Control::of(control.law));
        }
        let detectors = [
            (Detector::SHARED, "shared"),
            (Detector::DISJOINT, "disjoint"),
            (Detector::SSC, "ssc"),
            (Detector::TR, "tr"),
            (Detector::BTLBW, "btlbw"),
            (Detector::XCORR, "xcorr"),
            (Detector::DCW, "dcw"),
        ];
        for (detector, name) in detectors {
            assert_eq!(detector.name(), name);
        }
        for (start, name) in [
            (SlowStart::STANDARD, "standard"),
            (SlowStart::HYSTARTPP, "hystart++"),
            (SlowStart::HYSTART, "hystart"),
            (SlowStart::LISA, "lisa"),
        ] {
            assert_eq!(start.name(), name);
        }
    }

    #[test]
    fn a_slow_start_is_a_join_with_parameters_or_an_exit_with_state() {
        for start in SlowStart::all().filter(|start| start.joins()) {
            let table = start.table();
            let exit = [table.acked, table.credit, table.timeout];
            assert!(exit.iter().all(|hook| hook.is_null()), "{}", start.name());
            assert_eq!(table.state, 0, "{}", start.name());
        }
        for start in SlowStart::all().filter(|start| !start.joins()) {
            assert_eq!(start.table().params, 0, "{}: parameters are the join's", start.name());
        }
    }

    #[test]
    fn a_detector_that_would_never_decide_is_a_fault() {
        let olia = |detector| Control { detector, ..Control::OLIA };
        assert_eq!(olia(Detector::SSC).fault(), None);
        assert_eq!(olia(Detector::DISJOINT).fault(), None);
        let fault = olia(Detector::BTLBW).fault().unwrap();
        assert!(fault.contains("'olia' has none"), "{fault}");
    }
}
