//! What the detector of a control samples.

use std::fmt;
use std::str::FromStr;

/// The delays that a detector samples at the sender, of every path (`enum nr_signal` in the C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Signal {
    /// Round-trip times.
    #[default]
    Rtt,
    /// One-way delays towards the peer, by its TCP timestamps (RFC 7323) of 1 ms or 1 µs.
    SenderMs,
    /// The same by timestamps of 1 µs only (Linux 6.7, route feature `tcp_usec_ts`).
    SenderUs,
}

impl Signal {
    /// All of them, by their numbers.
    pub const ALL: [Signal; 3] = [Signal::Rtt, Signal::SenderMs, Signal::SenderUs];

    /// As options and the status show it.
    pub fn name(self) -> &'static str {
        match self {
            Signal::Rtt => "rtt",
            Signal::SenderMs => "sender-ms",
            Signal::SenderUs => "sender-us",
        }
    }

    /// Its number in the C.
    pub(crate) fn number(self) -> u32 {
        self as u32
    }

    /// The one with this number.
    pub fn from_number(number: u32) -> Option<Signal> {
        Signal::ALL.into_iter().find(|signal| signal.number() == number)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Signal {
    type Err = String;

    fn from_str(text: &str) -> Result<Signal, String> {
        let known = Signal::ALL.into_iter().find(|signal| signal.name() == text);
        known.ok_or_else(|| {
            let names = Signal::ALL.map(Signal::name).join(", ");
            format!("the kernel's detectors do not sample \"{text}\"; expected one of: {names}")
        })
    }
}

/// What a detector samples of one path (`enum nr_delay`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// Round-trip times, as its control has it.
    Rtt,
    /// Nothing: its peer's clock is not known yet, or again.
    Unknown,
    /// One-way delays by timestamps of 1 ms.
    Ms,
    /// One-way delays by timestamps of 1 µs.
    Us,
    /// Round-trip times, as no timestamps were negotiated.
    NoTimestamps,
    /// Round-trip times, as timestamps are of 1 ms and the control wants 1 µs.
    NoUs,
    /// Round-trip times, as the peer's timestamps go neither by 1 ms nor by 1 µs, or unevenly.
    NoClock,
}

impl Delay {
    /// By the number in the C; a number of another build is round-trip times.
    pub(crate) fn from_number(number: u8) -> Delay {
        match number {
            1 => Delay::Unknown,
            2 => Delay::Ms,
            3 => Delay::Us,
            4 => Delay::NoTimestamps,
            5 => Delay::NoUs,
            6 => Delay::NoClock,
            _ => Delay::Rtt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_has_its_name_and_its_number() {
        for signal in Signal::ALL {
            assert_eq!(signal.name().parse(), Ok(signal));
            assert_eq!(Signal::from_number(signal.number()), Some(signal));
        }
        assert_eq!(Signal::from_number(3), None);
        let refused = "receiver-us".parse::<Signal>().unwrap_err();
        let expected = "the kernel's detectors do not sample \"receiver-us\"; \
                        expected one of: rtt, sender-ms, sender-us";
        assert_eq!(refused, expected);
    }
}
