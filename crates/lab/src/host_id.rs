//! The name of a host, apart from what runs there.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Longest name, bytes.
const MAX: usize = 15;

/// The name of a host, as options and results show it: `sim`, `kernel`. A result may be of a host
/// that this program was built without.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostId {
    /// The name, then zeros.
    bytes: [u8; MAX],
}

impl HostId {
    /// The packet simulator, which runs a scenario where nothing else is asked for.
    pub const SIM: HostId = HostId::new("sim");

    /// The host of this name.
    ///
    /// # Panics
    /// If the name has more than 15 bytes.
    pub const fn new(name: &str) -> HostId {
        let mut bytes = [0; MAX];
        let mut at = 0;
        while at < name.len() {
            bytes[at] = name.as_bytes()[at];
            at += 1;
        }
        HostId { bytes }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        let length = self.bytes.iter().position(|&byte| byte == 0).unwrap_or(MAX);
        // It was made of a string.
        std::str::from_utf8(&self.bytes[..length]).unwrap_or_default()
    }

    /// ` on quic`, behind the name of what it made; nothing of the simulator, which makes what is not said to be of another.
    pub fn suffix(self) -> String {
        if self == HostId::SIM { String::new() } else { format!(" on {self}") }
    }
}

impl TryFrom<String> for HostId {
    type Error = String;

    fn try_from(name: String) -> Result<HostId, String> {
        if name.len() > MAX {
            return Err(format!("expected a host's name of at most {MAX} bytes, found \"{name}\""));
        }
        Ok(HostId::new(&name))
    }
}

impl From<HostId> for String {
    fn from(host: HostId) -> String {
        host.as_str().into()
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}
