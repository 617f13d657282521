//! The same dumbbell in other simulators, where they are installed: ns-2 as the command `ns` (Debian: package ns2), ns-3
//! from PyPI in target/ns3, where `make fidelity` puts it.

use std::process::Command;

use super::dumbbell::Dumbbell;

/// What runs it. The last line has the data packets that were delivered and the wall seconds.
pub type Peer = fn() -> Command;

const MBIT: u64 = 1_000_000;

fn command(program: &str, script: &str, arguments: &[&str], numbers: [u64; 5]) -> Command {
    let mut command = Command::new(program);
    command.arg(script).args(arguments).args(numbers.map(|number| number.to_string()));
    command
}

/// All of the case's time.
pub fn ns2(case: &Dumbbell) -> Command {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/scenarios/dumbbell.tcl");
    let (rate, access) = (case.bits / MBIT, case.access_bits / MBIT);
    command("ns", script, &[], [case.flows, rate, access, case.queue.into(), case.seconds])
}

/// The first ten seconds, as it takes hundreds of times as long as we do.
pub fn ns3(case: &Dumbbell) -> Command {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/ns3/bin/python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/peers/dumbbell_ns3.py");
    let (rate, access) = (case.bits / MBIT, case.access_bits / MBIT);
    command(program, script, &["dumbbell"], [case.flows, rate, access, 1, 10])
}

/// Data packets that it delivers per second of wall time; `None` if it is not installed.
pub fn packets_per_s(peer: Peer) -> Option<f64> {
    let mut command = peer();
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().next_back().unwrap_or_default();
    let numbers: Vec<f64> = last.split(' ').map_while(|number| number.parse().ok()).collect();
    match numbers[..] {
        [packets, wall_s] => Some(packets / wall_s),
        _ => panic!("{command:?} says: {text}{}", String::from_utf8_lossy(&output.stderr)),
    }
}
