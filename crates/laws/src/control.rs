//! What a connection is controlled by: a law, a detector, a slow start.

use crate::catalogue;
use std::fmt;
use std::str::FromStr;

/// How much the paths of one mask may take together. The numbers are those of `enum nr_law`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Law {
    /// RFC 5681, uncoupled.
    Reno = 0,
    /// RFC 9438, uncoupled.
    Cubic,
    /// RFC 6356.
    Lia,
    /// draft-khalili-mptcp-congestion-control-05.
    Olia,
    /// draft-walid-mptcp-congestion-control-04.
    Balia,
}

/// Which paths meet in one bottleneck. The numbers are those of `enum nr_detector`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Detector {
    /// All of them, always.
    Shared = 0,
    /// None, ever: each path is on its own.
    Disjoint,
    /// RFC 8382: alike summary statistics of delay.
    Ssc,
    /// arXiv:1812.05816: alike slopes of rising delay.
    Tr,
    /// C-MPBBR: alike bandwidths.
    Btlbw,
}

impl Detector {
    /// Does it listen to what the paths measure, and decide?
    pub const fn listens(self) -> bool {
        match self {
            Detector::Shared | Detector::Disjoint => false,
            Detector::Ssc | Detector::Tr | Detector::Btlbw => true,
        }
    }
}

/// What a joining path may begin with. The numbers are those of `enum nr_start`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SlowStart {
    /// The initial window of RFC 6928, doubled each round trip; of CUBIC Linux's HyStart.
    Standard = 0,
    /// RFC 9406.
    HystartPlusPlus,
}

/// A congestion control, written `LAW[+DETECTOR][+START]`: `olia`, `lia+disjoint`,
/// `reno+hystart++`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Control {
    /// The law.
    pub law: Law,
    /// The detector.
    pub detector: Detector,
    /// The slow start.
    pub start: SlowStart,
}

impl Control {
    /// Reno on each path, uncoupled.
    pub const RENO: Control = Control::of(Law::Reno);
    /// CUBIC on each path, uncoupled.
    pub const CUBIC: Control = Control::of(Law::Cubic);
    /// LIA over all paths.
    pub const LIA: Control = Control::of(Law::Lia);
    /// OLIA over all paths.
    pub const OLIA: Control = Control::of(Law::Olia);
    /// Balia over all paths.
    pub const BALIA: Control = Control::of(Law::Balia);

    /// `law` with its own detector (full masks if it couples) and the standard slow start.
    pub const fn of(law: Law) -> Control {
        let detector = if law.couples() { Detector::Shared } else { Detector::Disjoint };
        Control { law, detector, start: SlowStart::Standard }
    }
}

impl Law {
    /// Does the law read the sibling paths in its mask?
    pub const fn couples(self) -> bool {
        match self {
            Law::Reno | Law::Cubic => false,
            Law::Lia | Law::Olia | Law::Balia => true,
        }
    }
}

impl FromStr for Control {
    type Err = catalogue::Unknown;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        catalogue::control(name)
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(catalogue::law(self.law).name)?;
        if self.detector != Control::of(self.law).detector {
            write!(f, "+{}", catalogue::detector(self.detector).name)?;
        }
        if self.start != SlowStart::Standard {
            write!(f, "+{}", catalogue::start(self.start).name)?;
        }
        Ok(())
    }
}
