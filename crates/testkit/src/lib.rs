//! What tests of several crates wire again and again. Known only under `[dev-dependencies]`.

/// An answer of Linux by netlink, by its name in `recorded/netlink.hex`.
pub fn recorded_netlink(name: &str) -> Vec<u8> {
    let all = include_str!("../recorded/netlink.hex");
    let hex = all.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let hex = hex.unwrap_or_else(|| panic!("no answer {name}"));
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}
