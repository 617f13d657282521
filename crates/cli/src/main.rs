//! The program `narrows`.

use std::process::ExitCode;

/// Uses huge pages: the state of a large network is spread over so much memory that TLB misses take
/// as long as the loads.
#[cfg(feature = "lab")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(narrows_cli::main(std::env::args_os().collect()))
}
