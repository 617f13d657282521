//! The same dumbbell in ns-2, where its command `ns` is installed (Debian: package ns2).

use std::process::Command;

use super::dumbbell::Dumbbell;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/scenarios/dumbbell.tcl");

/// Data packets that ns-2 delivers per second of wall time; `None` if it is not installed.
pub fn packets_per_s(case: &Dumbbell) -> Option<f64> {
    let numbers = [
        case.flows,
        case.bits / 1_000_000,
        case.access_bits / 1_000_000,
        case.queue.into(),
        case.seconds,
    ];
    let arguments = numbers.map(|number| number.to_string());
    let output = Command::new("ns").arg(SCRIPT).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.split_whitespace().map(|number| number.parse::<f64>());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(packets)), Some(Ok(wall_s))) => Some(packets / wall_s),
        _ => panic!("ns-2 says: {text}{}", String::from_utf8_lossy(&output.stderr)),
    }
}
