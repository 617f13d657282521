//! The congestion control of a flow: a control of narrows, or one of the kernel's.

use std::fmt;
use std::str::FromStr;

use narrows_laws::Control;
use narrows_laws::catalogue::{Named, stands_for};
use serde::{Deserialize, Serialize};

/// The congestion control algorithm of a flow: a control of the catalogue, the system of a paper, or
/// one of the kernel's, written `kernel:NAME`, which only the kernel host runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Algorithm {
    /// A control of narrows, on any host.
    Ours(Control),
    /// The system of a paper: a control of narrows, and the settings of the scenario that belong to it
    /// ([`crate::Scenario::adopt`]).
    System(&'static Named),
    /// The kernel's own.
    Kernel(KernelName),
}

impl Algorithm {
    /// The control, if it is one of narrows.
    pub fn ours(self) -> Option<Control> {
        match self {
            Algorithm::Ours(control) => Some(control),
            Algorithm::System(named) => Some(named.control()),
            Algorithm::Kernel(_) => None,
        }
    }

    /// The system, if it is one.
    pub fn system(self) -> Option<&'static Named> {
        match self {
            Algorithm::System(named) => Some(named),
            _ => None,
        }
    }

    /// Is its detector dynamic?
    pub fn decides(self) -> bool {
        self.ours().is_some_and(|control| control.detector.decides())
    }
}

impl From<Control> for Algorithm {
    fn from(control: Control) -> Algorithm {
        Algorithm::Ours(control)
    }
}

impl From<Algorithm> for String {
    fn from(algorithm: Algorithm) -> String {
        algorithm.to_string()
    }
}

/// The prefix of the kernel's controls.
const KERNEL: &str = "kernel:";

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Algorithm, String> {
        let system = stands_for(text).filter(|named| named.is_system());
        match (text.strip_prefix(KERNEL), system) {
            (Some(name), _) => name.parse().map(Algorithm::Kernel),
            (None, Some(named)) => Ok(Algorithm::System(named)),
            (None, None) => text
                .parse()
                .map(Algorithm::Ours)
                .map_err(|e: crate::catalogue::NoControl| e.to_string()),
        }
    }
}

impl TryFrom<String> for Algorithm {
    type Error = String;

    fn try_from(text: String) -> Result<Algorithm, String> {
        text.parse()
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Algorithm::Ours(control) => control.fmt(f),
            Algorithm::System(named) => f.pad(named.name),
            Algorithm::Kernel(name) => write!(f, "{KERNEL}{name}"),
        }
    }
}

/// The longest name that the kernel gives a congestion control (`TCP_CA_NAME_MAX` less its zero).
const MAX_NAME: usize = 15;

/// A valid name of a congestion control in the kernel: 1 to 15 letters, digits, `_` and `.`. The
/// kernel need not have it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelName {
    /// The name, then zeros.
    bytes: [u8; MAX_NAME],
}

impl KernelName {
    /// The name, as `TCP_CONGESTION` takes it.
    pub fn as_str(&self) -> &str {
        let length = self.bytes.iter().position(|&byte| byte == 0).unwrap_or(MAX_NAME);
        // Reading let nothing in but ASCII.
        std::str::from_utf8(&self.bytes[..length]).unwrap_or_default()
    }
}

impl FromStr for KernelName {
    type Err = String;

    fn from_str(name: &str) -> Result<KernelName, String> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
        if !(1..=MAX_NAME).contains(&name.len()) || !name.bytes().all(allowed) {
            return Err(format!(
                "expected {KERNEL}NAME such as kernel:cubic, with 1 to {MAX_NAME} letters, digits, \
                 '_' and '.'; found '{name}'"
            ));
        }
        let mut bytes = [0; MAX_NAME];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Ok(KernelName { bytes })
    }
}

impl fmt::Display for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Algorithm {
        text.parse().unwrap()
    }

    #[test]
    fn every_algorithm_has_a_text_that_leads_back_to_it() {
        for text in
            ["olia", "lia+disjoint", "reno+hystart++", "mptcp-sbd", "kernel:bbr", "kernel:a_b.C9"]
        {
            assert_eq!(read(text).to_string(), text);
            let json = serde_json::to_string(&read(text)).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<Algorithm>(&json).unwrap(), read(text));
        }
        assert_eq!(read("cubic"), Control::CUBIC.into());
        assert_ne!(read("kernel:cubic"), read("cubic"));
        // A name for a control alone is that control.
        assert_eq!(read("uncoupled"), Control::RENO.into());
        assert_eq!(read("mptcp-sbd").ours(), read("olia+ssc").ours());
        assert_ne!(read("mptcp-sbd"), read("olia+ssc"));
    }

    #[test]
    fn a_name_is_one_that_the_kernel_can_have() {
        assert_eq!(read("kernel:a23456789012345").to_string(), "kernel:a23456789012345");
        for name in ["", "a234567890123456", "a b", "a-b", "b\u{fc}", "a/b", "a\0"] {
            let message = format!("kernel:{name}").parse::<Algorithm>().unwrap_err();
            assert!(message.starts_with("expected kernel:NAME such as"), "{message}");
        }
        // Another prefix is no name of ours either.
        assert!("Kernel:cubic".parse::<Algorithm>().unwrap_err().starts_with("unknown law"));
    }
}
